"""`tailhook plates list --short`: one line for a status bar. Bars call it every few seconds, so it imports little."""

import sys

from tailhook._core import parse_json
from tailhook.hook.answer import plain
from tailhook.stores.atomic import check_folder
from tailhook.stores.daemon import HTTP_SOCKET
from tailhook.stores.spool import runtime_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SUMMARY_TIMEOUT_S = 2.0  # for a daemon to answer
MAX_NAMED_SESSIONS = 3  # waiting sessions in the line
MAX_WORD_CHARS = 40  # of what one of them asks
GROUP_WORDS = {"waits": "wait", "finished": "done", "stuck": "stuck", "working": "run"}  # by the boards' group


def print_short_list() -> bool:
    """Print the line. Returns False if the daemon does not answer as expected: the ordinary command prints why."""
    try:
        summary = request_summary()
        line = summary_line(summary)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False
    sys.stdout.write(f"{line}\n")
    return True


def request_summary() -> "Any":
    """Return the daemon's answer to `GET /summary`, over its Unix socket. Raises OSError and ValueError."""
    from _socket import AF_UNIX, SOCK_STREAM, socket  # `socket` itself would take longer than the request

    folder = runtime_folder()
    check_folder(folder)
    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        connection.settimeout(SUMMARY_TIMEOUT_S)
        connection.connect(f"{folder}/{HTTP_SOCKET}")
        connection.sendall(b"GET /summary HTTP/1.0\r\nHost: localhost\r\n\r\n")  # RFC 1945: then it closes
        parts = []
        while part := connection.recv(1 << 16):
            parts.append(part)
    finally:
        connection.close()
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0]:
        raise ValueError("the daemon refused the request")
    return parse_json(body)


def summary_line(summary: "Any") -> str:
    """Return the sessions of a summary in one line: how many wait, and for what, and how many there are otherwise.

    >>> activity = {"words": "asks", "tool": "", "text": "Which database?", "is_code": False}
    >>> waiting = [{"name": "shop", "activity": activity}]
    >>> summary_line({"counts": {"waits": 1, "finished": 0, "stuck": 0, "working": 4}, "waiting": waiting})
    '1 wait: shop "Which database?" · 4 run'
    """
    counts = summary["counts"]
    parts = [f"{counts[group]} {word}" for group, word in GROUP_WORDS.items() if counts[group]]
    if waiting := summary["waiting"]:
        named = [f"{plain(plate['name'])} {ask_words(plate['activity'])}".rstrip() for plate in waiting]
        more = ["…"] if len(named) > MAX_NAMED_SESSIONS else []
        parts[0] += f": {', '.join(named[:MAX_NAMED_SESSIONS] + more)}"
    return " · ".join(parts).replace("#[", "# [")  # otherwise tmux takes it for a style


def ask_words(activity: "Any") -> str:
    """Return in a few words what a session asks: a question in quotes, a tool and what it works on, or an error."""
    tool, text = plain(activity["tool"]), plain(activity["text"])
    shown = text if len(text) <= MAX_WORD_CHARS else f"{text[: MAX_WORD_CHARS - 1].rstrip()}…"
    if activity["words"] == "asks" and shown:
        return f'"{shown}"'
    name = "Bash" if activity["words"] == "asks to run" else tool
    return f"{name} {shown}".strip() or activity["words"]


def summary_json(summary: "Any") -> "dict[str, Any]":
    """Return a summary for programs. A custom module of waybar reads `text`, `tooltip` and `class`."""
    counts, waiting = summary["counts"], summary["waiting"]
    lines = [f"{plain(plate['name'])}: {waiting_words(plate['activity'])}" for plate in waiting]
    group = next((group for group in GROUP_WORDS if counts[group]), "rest")
    return {
        "text": summary_line(summary),
        "tooltip": "\n".join(lines),
        "class": group,
        "counts": counts,
        "waiting": waiting,
    }


def waiting_words(activity: "Any") -> str:
    """Return all that a session asks on one line."""
    choices = [f"{number}) {choice}" for number, choice in enumerate(activity["choices"], 1)]
    return plain(" ".join([*filter(None, (activity["words"], activity["tool"], activity["text"])), *choices]))
