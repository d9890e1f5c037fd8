"""Reads the host's own word about a session: Claude Code keeps a file for each of its processes (2.1.329)."""

from pathlib import Path
from typing import Any

from tailhook._core import get_text, parse_json
from tailhook.hook.answer import plain
from tailhook.hook.plates import MAX_REPORTED_CHARS
from tailhook.machines.plates import HostStatus
from tailhook.plates.tables import Plate
from tailhook.stores.atomic import read_file


def status_file(plate: Plate) -> Path | None:
    """Return the path of the host's file about a session, or None if its process or its transcript is unknown.

    It is `sessions/PID.json` in the host's folder, whose `projects/PROJECT/SESSION.jsonl` is the transcript.
    """
    if plate["pid"] is None or not plate["transcript_path"]:
        return None
    above = Path(plate["transcript_path"]).parents
    return above[2] / "sessions" / f"{plate['pid']}.json" if len(above) > 2 and above[1].name == "projects" else None


def read_status(plate: Plate) -> HostStatus | None:
    """Return the host's word about a session, or None if the host has none, or has it about another session."""
    path = status_file(plate)
    if path is None:
        return None
    try:
        found: Any = parse_json(read_file(str(path)))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or found.get("sessionId") != plate["session_id"]:
        return None
    word, since_ms = found.get("status"), found.get("statusUpdatedAt")
    if not isinstance(word, str) or not isinstance(since_ms, int | float):
        return None
    return HostStatus(word, since_ms / 1000, plain(get_text(found, "waitingFor"))[:MAX_REPORTED_CHARS])
