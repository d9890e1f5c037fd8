"""Signs that a session works although no event comes: what its host writes and runs."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from tailhook.machines.plates import HostStatus
from tailhook.plates.changes import situation_of
from tailhook.plates.db import Moment
from tailhook.plates.tables import Plate

ANY_MOMENT = Moment(0, 0)


def is_working(
    plate: Plate, host: HostStatus | None, runs: Callable[[int, str, Moment], bool], is_suspended: Callable[[int], bool]
) -> bool:
    """Return whether a host shows right now that the session works.

    It does if its own file has "busy", or if it runs the command of a tool that has not ended. A host that a person
    has stopped (Ctrl-Z) does nothing, whatever its file has.

    host: the host's own word about the session, if it has one.
    runs: see `host_children.has_begun`.
    is_suspended: see `is_suspended`.
    """
    pid = plate["pid"]
    if pid is not None and is_suspended(pid):
        return False
    if host and host.word == "busy":
        return True
    return pid is not None and any(runs(pid, tool.about, ANY_MOMENT) for tool in situation_of(plate).tools)


def is_suspended(pid: int) -> bool:
    """Return whether a process is stopped by a signal. It then has no thread that runs."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_STOPPED
    except psutil.Error:
        return False


def last_write(plate: Plate) -> float:
    """Return when a transcript of the session or of one of its sub-agents was last written, in Unix seconds.

    Returns 0 if there is none.
    """
    path = plate["transcript_path"]
    paths = [agent.about for agent in situation_of(plate).agents] + ([*transcripts_of(path)] if path else [])
    return max(map(changed_at, paths), default=0.0)


def transcripts_of(path: str) -> Iterator[str]:
    """Yield the paths of a session's transcript and of its sub-agents' (Claude Code 2.1.329)."""
    yield path
    with contextlib.suppress(OSError, ValueError), os.scandir(agents_folder(path)) as found:
        yield from (entry.path for entry in found)


def agents_folder(path: str) -> str:
    """Return the folder of the sub-agents' transcripts, beside the session's (Claude Code 2.1.329)."""
    return f"{path.removesuffix('.jsonl')}/subagents"


def transcript_of_agent(path: str, agent_id: str) -> str:
    """Return the path of a sub-agent's transcript, in a folder beside the session's (Claude Code 2.1.329)."""
    return f"{agents_folder(path)}/agent-{Path(agent_id).name}.jsonl"


def changed_at(path: str) -> float:
    """Return when a file was last written, in Unix seconds, or 0 if it is missing."""
    try:
        return Path(path).stat().st_mtime
    except (OSError, ValueError):
        return 0.0
