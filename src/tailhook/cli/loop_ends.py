"""The end of a project's last loop: in its store, or in the private state folder if its file is gone."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tailhook._core import parse_json, reverse_lines, unix_time
from tailhook.cli.loop_folders import loop_folders
from tailhook.hook.answer import plain
from tailhook.hook.payload import project_folders
from tailhook.machines import idle, whole_number
from tailhook.machines.notices import known_session
from tailhook.stores import FALLBACK_FILE
from tailhook.stores import loop as loops
from tailhook.stores.atomic import open_folder, private_file, read_file
from tailhook.stores.fallback import FileLoop
from tailhook.stores.frontmatter import END
from tailhook.stores.jwz import MAX_LINE_BYTES, MESSAGES_FILE, parse_jwz_record
from tailhook.stores.loop import JwzLoop

MAX_SEARCHED_BYTES = 16 << 20  # searched from a store's end for the last frame of a loop
# The meanings of reasons, for an end without words of its own.
END_WORDS = {
    **dict.fromkeys(("COMPLETE", "STUCK", "NO_MORE_ISSUES", "MAX_ISSUES"), "the agent reported it"),
    "USER_CANCELLED": "it was cancelled",
    "REPLACED": "another loop replaced it",
    "MAX_ITERATIONS": "its limit was reached",
    "STALENESS": "it was left alone for too long",
    "CORRUPTED": "its state was broken",
}


def find_last_end(read: Callable[[str], Mapping[str, object] | None]) -> tuple[str, dict[str, object]] | None:
    """Return the folder of the last ended loop, and how it ended; None if that is unknown.

    Searches the hook's folders for the newest end, and then the other folders.

    read: returns how the last loop in a folder ended, None if that is unknown.
    """

    def newest(folders: Iterable[str]) -> tuple[str, dict[str, object]] | None:
        ends = [(folder, end) for folder in folders if (end := read(folder)) is not None]
        if not ends:
            return None
        folder, end = max(ends, key=lambda one: str(one[1].get("at") or ""))
        count = whole_number(end.get("iteration"))
        return folder, {
            **end,
            "iteration": end.get("iteration") if count is None else count,
            "session_id": known_session(end.get("session_id")),
        }

    return newest(project_folders({})) or newest(loop_folders())


def format_end(folder: str, ended: Mapping[str, object]) -> str:
    """Return how the last loop ended as a sentence for a person: reason, iteration, time and session, if known.

    folder: the loop's. It is named if this folder's hook does not look there.
    """
    parts = [describe_reason(str(ended.get("reason") or ""), ended.get("why"))]
    shown = {**ended, "at": format_end_time(ended.get("at"))}
    if parts[0].startswith(f"iteration {ended.get('iteration')} of "):
        del shown["iteration"]
    for key, words in (("iteration", "at iteration"), ("at", "at"), ("session_id", "session")):
        if shown.get(key) is not None:
            parts.append(f"{words} {shown[key]}")
    if folder not in project_folders({}):
        parts.append(f"in {folder}")
    return plain(f"The last one ended: {', '.join(parts)}.")


def describe_reason(reason: str, why: object) -> str:
    """Return why a loop ended, for a person.

    reason: the saved one, "" if it is unknown.
    why: the words that the person read at the end; any other value if there are none.
    """
    if isinstance(why, str) and why:
        words, _, more = why.partition(reason) if reason and why.startswith(reason) else (why, "", "")
        return f"{words} ({reason or 'unknown'})" if words else f"the agent reported {reason}{more}"
    return f"{END_WORDS[reason]} ({reason})" if reason in END_WORDS else reason or "for an unknown reason"


def format_end_time(stamp: object) -> object:
    """Return a time of ISO 8601 as local time with the zone's name, and any other value as it is."""
    seconds = unix_time(stamp) if isinstance(stamp, str) else None
    return stamp if seconds is None else time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(seconds))


def read_last_end(folder: str) -> dict[str, Any] | None:
    """Return how the last loop in a folder ended: reason, iteration, time and session; None if that is unknown."""
    of_file = read_end(folder, FALLBACK_FILE)
    try:
        of_store = end_of_store(loops.find_loop([folder]))
    except OSError:
        of_store = None
    ends = [end for end in (of_file, of_store) if end is not None]
    return max(ends, key=lambda end: str(end.get("at") or ""), default=None)


def read_end(project: str, name: str) -> "dict[str, object] | None":
    """Return how the last loop of a project's file `name` ended, None if unknown.

    The private file is that of the folder's number. A new folder may have the number of a removed one, so the end also
    names its project.
    """
    try:
        folder = open_folder(project, ".claude")
    except OSError:
        return None
    try:
        end = parse_json(read_file(private_file(folder, name, END)))
    except (OSError, ValueError):
        return None
    finally:
        os.close(folder)
    if not isinstance(end, dict):
        return None
    of_project = end.pop("project", project)  # older versions do not write it
    with suppress(OSError):
        return end if isinstance(of_project, str) and Path(of_project).samefile(project) else None
    return None


def end_of_store(loop: JwzLoop | FileLoop | None) -> dict[str, Any] | None:
    """Return how the loop in a store ended, None if it has not ended. Raises OSError."""
    state = loop.state if loop else None
    if not isinstance(loop, JwzLoop) or not isinstance(state, dict) or state.get("event") not in ("DONE", "ABORT"):
        return None
    top = idle.top_frame(last_frames(f"{loop.path}/{MESSAGES_FILE}", state.get("run_id")))
    why = {"why": state["why"]} if state.get("why") else {}
    return {
        "reason": state.get("reason"),
        "iteration": top.get("iter"),
        "at": state.get("updated_at"),
        "session_id": known_session(state.get("session_id")) or top.get("session_id"),
        **why,
    }


def last_frames(path: str, run_id: object) -> object:
    """Return a run's newest stack with a frame, from a store's file; None if it is not near the end.

    An ended state has no frame: the message before it has the last one.
    """
    with Path(path).open("rb") as lines:
        start = max(0, lines.seek(0, os.SEEK_END) - MAX_SEARCHED_BYTES)
        for _, line in reverse_lines(lines, start, None, MAX_LINE_BYTES, b"stack"):
            body = parse_jwz_record(line).get("body")
            state = loops.parse_body(body) if isinstance(body, str) else None
            if isinstance(state, dict) and state.get("stack") and state.get("run_id") == run_id:
                return state["stack"]
    return None
