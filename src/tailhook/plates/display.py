"""What both boards show of a plate and an event: group, place, symbol, words, name, and the text for filters.

The daemon computes this once, and the boards draw the result. Pure: no I/O, no clock.

Text of a session is unchanged. Each board removes the characters that its own screen must not get.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from shlex import quote
from typing import Any, cast

from tailhook import hosts
from tailhook._core import iso_time
from tailhook.machines.plates import (
    AGENT,
    COMMAND_TOOLS,
    HOST,
    MCP_SERVER,
    PLAN_TOOL,
    STUCK_TIMEOUT,
    EventKind,
    OpenTool,
    Status,
)
from tailhook.plates.changes import situation_of
from tailhook.plates.fields import (
    RUN_WORDS,
    ActivityOut,
    BoardGroup,
    EventOut,
    GroupOut,
    PlateFields,
    PlateOut,
    StatusesOut,
    StatusOut,
    Tone,
)
from tailhook.plates.schemas import LISTED, MAX_TIME_MS, STOP_PAUSED, find_subject, todo_progress_of
from tailhook.plates.tables import Plate

NAME_NO_CAUSE = ("antigravity", "cursor")  # hosts whose failed turn may have another cause than their API


def make_group(
    name: BoardGroup, title: str, summary: str, tone: Tone, note: str = "", summary_of_one: str = ""
) -> GroupOut:
    """Return a group of the boards."""
    return {
        "id": name,
        "title": title,
        "note": note,
        "summary": summary,
        "summary_of_one": summary_of_one or summary,
        "tone": tone,
    }


# In the boards' order.
BOARD_GROUPS: dict[BoardGroup, GroupOut] = {
    group["id"]: group
    for group in (
        make_group("waits", "Waits for you", "wait for you", "attention", "longest first", "waits for you"),
        make_group("finished", "Finished, not looked at", "finished", "idle", "newest first"),
        make_group("stuck", "Stuck", "stuck", "error"),
        make_group("working", "Working", "working", "running", "by project, so that rows keep their places"),
        make_group("rest", "At rest", "at rest", "muted"),
    )
}
STATUSES = {
    status["status"]: status
    for status in (
        StatusOut(status=Status.AWAITING_INPUT, symbol="?", words="awaiting input", group="waits", tone="attention"),
        StatusOut(
            status=Status.AWAITING_APPROVAL, symbol="!", words="awaiting approval", group="waits", tone="attention"
        ),
        StatusOut(status=Status.ERROR, symbol="✗", words="error", group="waits", tone="error"),
        StatusOut(status=Status.RUNNING, symbol="●", words="running", group="working", tone="running"),
        StatusOut(status=Status.STARTING, symbol="◌", words="starting", group="rest", tone="muted"),
        StatusOut(status=Status.IDLE, symbol="○", words="idle", group="rest", tone="idle"),
        StatusOut(status=Status.CLOSED, symbol="·", words="closed", group="rest", tone="muted"),
    )
}
# How a session is shown if it is not in the group of its status.
GROUP_SIGNS: dict[BoardGroup, StatusOut] = {
    "finished": StatusOut(status=Status.IDLE, symbol="✓", words="finished", group="finished", tone="idle"),
    "stuck": StatusOut(status=Status.RUNNING, symbol="▲", words="stuck", group="stuck", tone="error"),
}
FILTER_FIELDS = "project, title, prompt, branch, status, tool, host, user or session"  # what `search_text` returns
LONG_WAIT_HOURS = 8  # a working day
EVENT_WORDS: dict[str, str] = {
    EventKind.TOOL_START.value: "tool starts",
    EventKind.TOOL_CALL.value: "tool ends",
    STOP_PAUSED: "stop, loop paused",
}
NO_SIGN = "no sign"  # of a session that should work
FROM_LIST = "from claude agents"  # the mark of a session that no hook reports
NO_MESSAGE = "There is no message of the agent that can be read."
SHELL_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
MAX_RANK_NAME_CHARS = 100
MESSAGE = re.compile(r'"message"\s*:\s*"([^"\\]+)"')  # in the JSON of an API's error, which may be cut
NUMBER = re.compile(r"\b[1-5][0-9]{2}\b")  # HTTP's status, before that JSON


def describe_plate(plate: Plate, name: str, tokens_used: str | None = None) -> PlateOut:
    """Return a plate as the API shows it: without what only the daemon needs, times in ISO 8601.

    name: of its project, see `ProjectNames`.
    tokens_used: see `PlateOut`.
    """
    group = group_of(plate)
    sign = GROUP_SIGNS.get(group) or STATUSES[Status(plate["status"])]
    values = dict(plate)
    shared = cast("PlateFields", {field: values[field] for field in PlateFields.__annotations__})
    silent_since = plate["silent_since"]
    return {
        **shared,
        "pid": None if plate["pid_is_guess"] else plate["pid"],
        "status": Status(plate["status"]),
        "created_at": format_ms(plate["created_at"]),
        "updated_at": format_ms(plate["updated_at"]),
        "since": format_ms(plate["since"]),
        "name": name,
        "headline": plate["title"] or plate["prompt"] or "",
        "group": group,
        "rank": rank_of(plate, group),
        "symbol": sign["symbol"],
        "status_words": sign["words"] if silent_since is None else NO_SIGN,
        "tone": sign["tone"] if silent_since is None or group == "stuck" else "muted",
        "silent_since": format_if_known(silent_since),
        "activity": activity_of(plate),
        "agents": count_agents(plate),
        "turn_since": format_if_known(plate["prompted_at"]),
        "turn_until": format_if_known(plate["finished_at"]),
        "unseen": is_unseen(plate),
        "quiet_since": format_if_known(plate["quiet_since"]),
        "resume": resume_command(plate),
        "hidden": plate["hidden_at"] is not None,
        "tokens_used": tokens_used,
        "search": search_text(plate, group),
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


def describe_statuses(stuck_timeout: float = STUCK_TIMEOUT) -> StatusesOut:
    """Return the groups, how statuses and marks are shown, and what a filter searches.

    stuck_timeout: see `tailhook.machines.plates.is_stuck`.
    """
    minutes, seconds = divmod(stuck_timeout, 60)
    quiet = f"{stuck_timeout:g} s" if seconds else f"{minutes:g} min"
    note = "" if math.isinf(stuck_timeout) else f"nothing happened for {quiet}"
    stuck: GroupOut = {**BOARD_GROUPS["stuck"], "note": note}
    return {
        "groups": [stuck if group["id"] == "stuck" else group for group in BOARD_GROUPS.values()],
        "statuses": list(STATUSES.values()),
        "marks": list(GROUP_SIGNS.values()),
        "filter_fields": FILTER_FIELDS,
        "long_wait_hours": LONG_WAIT_HOURS,
    }


def encode(answer: object) -> str:
    """Return an answer, such as a PlateOut, as JSON."""
    return json.dumps(answer, default=lambda status: status.value)


def group_of(plate: Plate) -> BoardGroup:
    """Return the group of the boards in which a plate stands. A hidden one asks for nothing."""
    if plate["hidden_at"] is not None:
        return "rest"
    if is_unseen(plate):
        return "finished"
    status = Status(plate["status"])
    return "stuck" if status is Status.RUNNING and plate["quiet_since"] is not None else STATUSES[status]["group"]


def is_unseen(plate: Plate) -> bool:
    """Return whether a session's turn has ended by itself, and no person has looked at it since."""
    return plate["status"] == Status.IDLE.value and plate["finished_at"] is not None and plate["seen_at"] is None


def count_agents(plate: Plate) -> int:
    """Return how many sub-agents of a session work."""
    ids = {tool.agent_id for tool in situation_of(plate).tools} - {"", MCP_SERVER}
    return max(len(ids), plate["background"] or 0)


def activity_of(plate: Plate) -> ActivityOut:
    """Return what a session asks, does or did last."""
    tools = [tool for tool in situation_of(plate).tools if tool.name != AGENT]
    waits = [tool for tool in tools if tool.wait]
    status = Status(plate["status"])
    if plate["last_event_type"] == LISTED:
        about = waits[-1].about if waits else ""
        return make_activity(FROM_LIST + ":" if about else FROM_LIST, text=about)
    if status is Status.ERROR:
        is_named = plate["agent_program"] not in NAME_NO_CAUSE
        is_refused = is_named and plate["last_event_type"] == EventKind.STOP_FAILURE.value
        cause = "the API refused" if is_refused else "it stopped"
        error = read_error(plate["error"] or "")
        return make_activity(f"waits for you; {cause}{':' if error else ''}", text=error)
    if status is Status.AWAITING_INPUT:
        return describe_question(waits[-1] if waits else OpenTool("", ""))
    if status is Status.AWAITING_APPROVAL:
        return describe_approval(plate, waits[-1] if waits else OpenTool("", ""))
    if status is Status.RUNNING:
        own = [tool for tool in tools if not tool.agent_id]
        return describe_tool(plate, own[-1]) if own else make_activity("thinking")
    if plate["last_event_type"] == STOP_PAUSED:
        return make_activity("loop paused", text=plate["reply"] or "")
    if plate["last_event_type"] == EventKind.INTERRUPTED.value:
        return make_activity("interrupted")
    return make_activity("", text=plate["reply"] or "")


def make_activity(words: str, tool: str = "", text: str = "", *, is_code: bool = False) -> ActivityOut:
    """Return an activity without choices."""
    return {"words": words, "tool": tool, "text": text, "choices": [], "is_code": is_code}


def describe_question(tool: OpenTool) -> ActivityOut:
    """Return what a session asks: its own question, an MCP server's, or the kind of the host's dialog."""
    if tool.name == HOST:
        return make_activity("shows a dialog", text=tool.about)
    server = tool.name.removeprefix("mcp__") if tool.agent_id == MCP_SERVER else ""
    return {**make_activity("asks", server, tool.about), "choices": [*tool.choices]}


def describe_approval(plate: Plate, tool: OpenTool) -> ActivityOut:
    """Return for what a session asks an approval."""
    if tool.name == PLAN_TOOL:
        return make_activity("shows a plan", text=tool.about)
    if tool.name in COMMAND_TOOLS and tool.about:
        return make_activity(RUN_WORDS, text=tool.about, is_code=True)
    return {**describe_tool(plate, tool), "words": "asks to use" if tool.name else "asks for a permission"}


def describe_tool(plate: Plate, tool: OpenTool) -> ActivityOut:
    """Return a tool and what it works on: a path inside the project without the project's folder."""
    below = f"{plate['project_path'].rstrip('/')}/"
    is_path = tool.about.startswith("/")
    return make_activity("", tool.name, tool.about.removeprefix(below), is_code=is_path or tool.name in COMMAND_TOOLS)


def read_error(error: str) -> str:
    """Return an error of an API in a person's words: without the JSON in which it came.

    >>> read_error('API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}')
    'Overloaded (529)'
    """
    head, brace, rest = error.partition("{")
    if not brace:
        return error
    found = MESSAGE.search(rest)
    number = NUMBER.search(head)
    if not found:
        return head.strip(" :") or error
    return found[1] + (f" ({number[0]})" if number else "")


def resume_command(plate: Plate) -> str:
    """Return the shell's command that continues a session in its project, "" if none is known."""
    folder, session_id, program = plate["project_path"], plate["session_id"], plate["agent_program"]
    if program not in hosts.NAMES or not SHELL_SAFE_ID.fullmatch(session_id):
        return ""
    command = hosts.find_host(program).RESUME_COMMAND
    return f"cd {quote(folder)} && {command} {session_id}" if command and is_plain_path(folder) else ""


def is_plain_path(path: str) -> bool:
    """Return whether a path is absolute, and each of its characters can be seen in a terminal."""
    return path.startswith("/") and path.isprintable()


def rank_of(plate: Plate, group: BoardGroup) -> str:
    """Return the sort key of a plate: ASCII text, the smallest first.

    First come the sessions that wait for a person, the longest wait first. Then come the finished ones, newest first,
    and the stuck ones, longest quiet first. Working ones are in the order of their projects' names and of their
    creation, so that they do not change places. The rest follow, newest change of status first.
    """
    time = {
        "waits": plate["since"],
        "finished": MAX_TIME_MS - (plate["finished_at"] or 0),
        "stuck": plate["quiet_since"] or 0,
        "working": 0,
        "rest": MAX_TIME_MS - plate["since"],
    }[group]
    name = project_folder_name(plate["project_path"])[:MAX_RANK_NAME_CHARS] if group == "working" else ""
    parts = (
        str(list(BOARD_GROUPS).index(group)),
        f"{time:016}",
        name.encode().hex(),
        f"{plate['created_at']:016}",
        plate["session_id"].encode().hex(),
    )
    return "-".join(parts)


def search_text(plate: Plate, group: BoardGroup) -> str:
    """Return what a filter searches, in small letters."""
    words = STATUSES[Status(plate["status"])]["words"]
    mark = GROUP_SIGNS.get(group)
    silence = None if plate["silent_since"] is None else NO_SIGN
    fields = (
        plate["project_path"],
        plate["folder"],
        plate["title"],
        plate["prompt"],
        plate["git_branch"],
        words,
        mark and mark["words"],
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


def format_if_known(at: int | None) -> str | None:
    """Return Unix milliseconds as ISO 8601 in UTC, or None for None."""
    return None if at is None else format_ms(at)


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
