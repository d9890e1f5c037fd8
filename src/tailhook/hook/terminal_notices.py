"""Notices in the session's terminal, which Claude Code passes on from a hook's answer (2.1.141 and later).

They need no daemon and no other program: the terminal itself shows a title and a notification.
"""

from tailhook._core import get_text
from tailhook.hook.answer import SPACED
from tailhook.hook.payload import count_waking_tasks, folder_of, working_folder
from tailhook.hook.plates import TOOL_SUBJECTS, error_of, event_type_of, first_words, reply_of, tool_params
from tailhook.machines.quoting import plain_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tailhook.hook.event import HookEvent

MAX_NOTICE_CHARS = 200
# By their names in the configuration: the title of the terminal (xterm), and the notifications of iTerm2, of kitty and
# of urxvt. Other terminals took them over.
SEQUENCES = {
    "title": "\x1b]0;{}\x07",
    "osc9": "\x1b]9;{}\x07",
    "osc99": "\x1b]99;;{}\x1b\\",
    "osc777": "\x1b]777;notify;tailhook;{}\x07",
}
ASKING_TOOLS = {"AskUserQuestion": "asks", "ExitPlanMode": "shows a plan"}


class NoticeSender:
    """Keeps the answer of a hook until it is known whether the agent may stop, and sends it with a notice.

    send: sends an answer.
    wanted: names of SEQUENCES.
    """

    def __init__(self, send: "Callable[[dict[str, Any], int], None]", wanted: "Sequence[str]") -> None:
        self.send = send
        self.wanted = wanted
        self.fields: dict[str, Any] = {}
        self.style = SPACED

    def keep(self, fields: "dict[str, Any]", style: int) -> None:
        """Keep an answer."""
        self.fields, self.style = fields, style

    def finish(self, event: "HookEvent", blocked: bool) -> None:
        """Send the answer with a notice. If there is neither, send nothing.

        blocked: whether the answer makes the agent go on.
        """
        words = "" if blocked else find_notice(event)
        if words:
            self.fields["terminalSequence"] = write_sequences(event, words, self.wanted)
        if self.fields:
            self.send(self.fields, self.style)


def write_sequences(event: "HookEvent", words: str, wanted: "Sequence[str]") -> str:
    """Return a notice in the wanted forms. A semicolon would end the text in some of them."""
    project = (folder_of(b"CLAUDE_PROJECT_DIR") or working_folder(event.payload)).rstrip("/").rpartition("/")[2]
    text = plain_words(f"{project}: {words.removesuffix(': ')}", MAX_NOTICE_CHARS).replace(";", ",")
    return "".join(SEQUENCES[name].format(text) for name in SEQUENCES if name in wanted)


def find_notice(event: "HookEvent") -> str:
    """Return the words for an event after which the session waits for a person; "" for any other.

    The host's own notifications repeat such events, some seconds later.
    """
    payload, kind = event.payload, event_type_of(event)
    tool = get_text(payload, "tool_name")
    if kind == "tool_start":
        return f"{ASKING_TOOLS[tool]}: {subject_of(event)}" if tool in ASKING_TOOLS else ""
    if kind == "permission_asked" and event.name != "Notification":
        return "" if tool in ASKING_TOOLS else f"asks to use {tool}: {subject_of(event)}"
    if kind == "input_asked" and event.name != "Notification":
        return f"asks: {first_words(get_text(payload, 'message'))}"
    if kind == "stop_failure" or (kind == "stop" and payload.get("error")):
        return f"stopped: {error_of(payload)}"
    if kind != "stop" or count_waking_tasks(payload):
        return ""
    what = "the loop has ended" if event.has_ended_loop else "has finished"
    return f"{what}: {reply_of(event)}"


def subject_of(event: "HookEvent") -> str:
    """Return what the event's tool works on."""
    params = tool_params(event.payload) or {}
    return next((str(params[name]) for name in ("file_path", *TOOL_SUBJECTS) if params.get(name)), "")
