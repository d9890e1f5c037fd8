"""What both boards show of a plate and an event: group, place, symbol, words, name, and the text for filters.

The daemon computes this once, and the boards draw the result. Pure: no I/O, no clock.

Text of a session is unchanged. Each board removes the characters that its own screen must not get.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, cast

from tailhook._core import iso_time
from tailhook.machines.plates import EventKind, Status
from tailhook.plates.fields import BoardGroup, EventOut, GroupOut, PlateFields, PlateOut, StatusesOut, StatusOut
from tailhook.plates.schemas import MAX_TIME_MS, STOP_PAUSED, find_subject, todo_progress_of
from tailhook.plates.tables import Plate

# In the boards' order.
BOARD_GROUPS = {
    group["id"]: group
    for group in (
        GroupOut(id="attention", title="Needs attention", summary="need attention", tone="attention"),
        GroupOut(id="running", title="Running", summary="running", tone="running"),
        GroupOut(id="rest", title="Other", summary="other", tone="muted"),
    )
}
STATUSES = {
    status["status"]: status
    for status in (
        StatusOut(
            status=Status.AWAITING_INPUT, symbol="?", words="awaiting input", group="attention", tone="attention"
        ),
        StatusOut(
            status=Status.AWAITING_APPROVAL, symbol="!", words="awaiting approval", group="attention", tone="attention"
        ),
        StatusOut(status=Status.ERROR, symbol="✗", words="error", group="attention", tone="error"),
        StatusOut(status=Status.RUNNING, symbol="●", words="running", group="running", tone="running"),
        StatusOut(status=Status.STARTING, symbol="◌", words="starting", group="rest", tone="muted"),
        StatusOut(status=Status.IDLE, symbol="○", words="idle", group="rest", tone="idle"),
        StatusOut(status=Status.CLOSED, symbol="·", words="closed", group="rest", tone="muted"),
    )
}
FILTER_FIELDS = "project, title, branch, status, tool, host, user or session"  # what `search_text` returns
EVENT_WORDS: dict[str, str] = {
    EventKind.TOOL_START.value: "tool starts",
    EventKind.TOOL_CALL.value: "tool ends",
    STOP_PAUSED: "stop, loop paused",
}
NO_SIGN = "no sign"  # of a session that should work
NO_MESSAGE = "There is no message of the agent that can be read."
MAX_RANK_NAME_CHARS = 100


def describe_plate(plate: Plate, name: str) -> PlateOut:
    """Return a plate as the API shows it: without what only the daemon needs, times in ISO 8601.

    name: of its project, see `ProjectNames`.
    """
    status = STATUSES[Status(plate["status"])]
    values = dict(plate)
    shared = cast("PlateFields", {field: values[field] for field in PlateFields.__annotations__})
    silent_since = plate["silent_since"]
    return {
        **shared,
        "pid": None if plate["pid_is_guess"] else plate["pid"],
        "status": status["status"],
        "created_at": format_ms(plate["created_at"]),
        "updated_at": format_ms(plate["updated_at"]),
        "since": format_ms(plate["since"]),
        "name": name,
        "group": group_of(plate),
        "rank": rank_of(plate),
        "symbol": status["symbol"],
        "status_words": status["words"] if silent_since is None else NO_SIGN,
        "tone": status["tone"] if silent_since is None else "muted",
        "silent_since": None if silent_since is None else format_ms(silent_since),
        "detail": detail_of(plate),
        "hidden": plate["hidden_at"] is not None,
        "search": search_text(plate),
    }


def describe_event(row: Mapping[str, Any]) -> EventOut:
    """Return an event as the API shows it.

    row: of the table `events`.
    """
    status = STATUSES[Status(row["status"])] if row["status"] else None
    params: dict[str, Any] = row["tool_params"] or {}
    kind = str(row["event_type"])
    todos = todo_progress_of(params)
    return {
        "event_type": kind,
        "tool_name": row["tool_name"],
        "agent_id": row["agent_id"],
        "tool_params": row["tool_params"],
        "error": row["error"],
        "ts": row["ts"],
        "status": status["status"] if status else None,
        "symbol": status["symbol"] if status else "",
        "status_words": status["words"] if status else "",
        "tone": status["tone"] if status else "muted",
        "words": EVENT_WORDS.get(kind, kind.replace("_", " ")),
        "about": str(row["error"] or find_subject(params) or (f"{todos} done" if todos else "")),
    }


def describe_statuses() -> StatusesOut:
    """Return the groups, how each status is shown, and what a filter searches."""
    return {"groups": list(BOARD_GROUPS.values()), "statuses": list(STATUSES.values()), "filter_fields": FILTER_FIELDS}


def encode(answer: object) -> str:
    """Return an answer, such as a PlateOut, as JSON."""
    return json.dumps(answer, default=lambda status: status.value)


def detail_of(plate: Plate) -> str:
    """Return a plate's error or last tool, or that its loop is paused; "" if it is closed, "hidden" if it is hidden."""
    if plate["hidden_at"] is not None:
        return "hidden"
    if plate["status"] == Status.CLOSED.value:
        return ""
    if plate["last_event_type"] == STOP_PAUSED:
        return "loop paused"
    return plate["error"] or plate["last_tool"] or ""


def group_of(plate: Plate) -> BoardGroup:
    """Return the group of the boards in which a plate stands. A hidden one asks for nothing."""
    return "rest" if plate["hidden_at"] is not None else STATUSES[Status(plate["status"])]["group"]


def rank_of(plate: Plate) -> str:
    """Return the sort key of a plate: ASCII text, the smallest first.

    First come the sessions that need attention, the longest wait first. Running ones are in the order of their
    projects' names and of their creation, so that they do not change places. The rest follow, newest change of status
    first.
    """
    group = group_of(plate)
    time = {"attention": plate["since"], "running": 0, "rest": MAX_TIME_MS - plate["since"]}[group]
    name = project_folder_name(plate["project_path"])[:MAX_RANK_NAME_CHARS] if group == "running" else ""
    parts = (
        str(list(BOARD_GROUPS).index(group)),
        f"{time:016}",
        name.encode().hex(),
        f"{plate['created_at']:016}",
        plate["session_id"].encode().hex(),
    )
    return "-".join(parts)


def search_text(plate: Plate) -> str:
    """Return what a filter searches, in small letters."""
    words = STATUSES[Status(plate["status"])]["words"]
    silence = None if plate["silent_since"] is None else NO_SIGN
    fields = (
        plate["project_path"],
        plate["folder"],
        plate["title"],
        plate["git_branch"],
        words,
        silence,
        plate["last_tool"],
        plate["host"],
        plate["user"],
        plate["session_id"],
    )
    return "\n".join(filter(None, fields)).lower()


def format_ms(at: int) -> str:
    """Return Unix milliseconds as ISO 8601 in UTC."""
    return iso_time(at / 1000, milliseconds=True)


def project_folder_name(path: str) -> str:
    """Return the last part of a project's path, or the whole path if it has none."""
    return PurePosixPath(path).name or path


class ProjectNames:
    """The names of the projects: the folder's name, with its parent's if two projects have the same folder name."""

    def __init__(self) -> None:
        self.paths: dict[str, str] = {}  # by session
        self.sessions: dict[str, dict[str, set[str]]] = {}  # by folder name and path

    def load(self, paths: Iterable[tuple[str, str]]) -> None:
        """Note the paths of many sessions.

        paths: pairs of session id and project path.
        """
        for session_id, path in paths:
            self.put(session_id, path)

    def put(self, session_id: str, path: str) -> dict[str, str]:
        """Note the path of a session. Returns the new names of the other sessions whose names this changes."""
        if self.paths.get(session_id) == path:
            return {}
        renamed = self.remove(session_id)
        self.paths[session_id] = path
        same = self.sessions.setdefault(project_folder_name(path), {})
        was_ambiguous = len(same) > 1
        same.setdefault(path, set()).add(session_id)
        if len(same) > 1 and not was_ambiguous:
            renamed |= self.names_in(same)
        renamed.pop(session_id, None)
        return renamed

    def remove(self, session_id: str) -> dict[str, str]:
        """Forget a session. Returns the new names of the other sessions whose names this changes."""
        path = self.paths.pop(session_id, None)
        if path is None:
            return {}
        folder = project_folder_name(path)
        same = self.sessions[folder]
        was_ambiguous = len(same) > 1
        same[path].discard(session_id)
        if not same[path]:
            del same[path]
        if not same:
            del self.sessions[folder]
        return self.names_in(same) if was_ambiguous and len(same) == 1 else {}

    def names_in(self, same: dict[str, set[str]]) -> dict[str, str]:
        """Return the names of all sessions of projects with the same folder name."""
        return {session_id: self.name_of(path) for path, ids in same.items() for session_id in ids}

    def name_of(self, path: str) -> str:
        """Return the name of a project."""
        name = project_folder_name(path)
        others = [other for other in tuple(self.sessions.get(name, ())) if other != path]
        if not others:
            return name
        parent = PurePosixPath(path).parent.name
        return f"{parent}/{name}" if parent else path
