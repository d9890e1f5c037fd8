"""Small histories in Gemini CLI's form, each with its bill, by a little model of its chat recording."""

from collections.abc import Callable
from copy import deepcopy
from json import dumps

from support.oracles.host_usage import Response
from support.usage_history import Clock, History, written

GEMINI_MODEL = "gemini-2.5-flash"


class Gemini:
    """A chat of Gemini: the records of its file, and the conversation."""

    def __init__(self, session_id: str = "s"):
        self.now, self.session_id = Clock(), session_id
        self.records: list[dict] = []
        self.messages: list[dict] = []
        self.bill: list[Response] = []
        self.begin()

    def begin(self) -> None:
        """Append the first record, as at the start and at a resume."""
        about = {"sessionId": self.session_id, "projectHash": "h", "startTime": self.now(), "kind": "main"}
        self.append({**about, "lastUpdated": about["startTime"]})

    def append(self, record: dict) -> None:
        """Append a record."""
        self.records.append(deepcopy(record))

    def push(self, message: dict) -> None:
        """Append a message, or one that has changed."""
        self.append(message)
        if message not in self.messages:
            self.messages.append(message)

    def ask(self, text: str = "Go on.") -> str:
        """Append a message of the person; return its id."""
        message = {"id": f"m{len(self.records)}", "timestamp": self.now(), "type": "user", "content": [{"text": text}]}
        self.push(message)
        self.append({"$set": {"lastUpdated": self.now()}})
        return message["id"]

    def respond(self, taken: int, cached: int, given: int, thoughts: int = 0, tool: int = 0, *, late: bool = False):
        """Write a response, and put it on the bill.

        late: whether its tokens come after its text.
        """
        names = ("input", "output", "cached", "thoughts", "tool", "total")
        numbers = (taken, given, cached, thoughts, tool, taken + given + thoughts + tool)
        tokens = dict(zip(names, numbers, strict=True))
        about = {"id": f"m{len(self.records)}", "timestamp": self.now(), "type": "gemini"}
        message = {**about, "content": "Well.", "thoughts": [], "tokens": None if late else tokens}
        message["model"] = GEMINI_MODEL
        self.push(message)
        if late:
            message["tokens"] = tokens
            self.append(message)
        message["toolCalls"] = [{"id": "t", "name": "run_shell_command", "status": "success"}]
        self.append(message)
        row = taken - cached + tool, given + thoughts, cached, 0
        self.bill.append(Response("gemini", self.session_id, GEMINI_MODEL, about["timestamp"], *row))

    def set_messages(self, keep: int) -> None:
        """Replace the conversation by a summary and its last messages, as a compression does."""
        summary = {"id": f"m{len(self.records)}", "timestamp": self.now(), "type": "gemini", "content": "In short."}
        self.messages = [summary, *self.messages[len(self.messages) - keep :]]
        self.append({"$set": {"messages": self.messages, "lastUpdated": self.now()}})

    def rewind(self, message_id: str) -> None:
        """Take away a message and all behind it."""
        ids = [message["id"] for message in self.messages]
        self.messages = self.messages[: ids.index(message_id)]
        self.append({"$rewindTo": message_id})

    def history(self, name: str = "session-2026-08-15T10-00-s.jsonl") -> History:
        """Return the file and the bill."""
        return History("gemini", {name: written(self.records)}, self.bill)


def gemini_plain() -> History:
    """Return a chat with messages appended two or three times, as their tokens and tools come."""
    gemini = Gemini()
    gemini.ask()
    gemini.respond(1000, 200, 50, thoughts=7, tool=3)
    gemini.respond(1100, 900, 51, late=True)
    gemini.respond(1100, 900, 51)
    return gemini.history()


def gemini_set() -> History:
    """Return a resumed and compressed chat: `$set` repeats messages with a record, and drops others."""
    gemini = Gemini()
    gemini.ask()
    gemini.respond(1000, 200, 50)
    gemini.respond(1100, 900, 51)
    gemini.begin()
    gemini.set_messages(keep=2)
    gemini.ask()
    gemini.respond(500, 0, 60)
    gemini.set_messages(keep=1)
    return gemini.history()


def gemini_only_in_set() -> History:
    """Return a chat with a response only in `$set`."""
    gemini = Gemini()
    gemini.ask()
    gemini.respond(1000, 200, 50)
    gemini.respond(1100, 900, 51)
    gemini.set_messages(keep=1)
    gemini.records = [record for record in gemini.records if record.get("id") != gemini.messages[-1]["id"]]
    return gemini.history()


def gemini_rewound() -> History:
    """Return a rewound chat: the removed part had been billed."""
    gemini = Gemini()
    gemini.ask()
    gemini.respond(1000, 200, 50)
    again = gemini.ask()
    gemini.respond(1100, 900, 51)
    gemini.rewind(again)
    gemini.ask("Otherwise.")
    gemini.respond(1100, 900, 51)
    return gemini.history()


def gemini_old_file() -> History:
    """Return an old chat, a single object in a .json file, and its copy continued by a newer version."""
    gemini = Gemini()
    gemini.ask()
    gemini.respond(1000, 200, 50)
    old = {**gemini.records[0], "messages": deepcopy(gemini.messages)}
    gemini.records = [gemini.records[0], *gemini.messages]
    gemini.ask()
    gemini.respond(1100, 900, 51)
    history = gemini.history()
    return history._replace(files={"session-2026-08-15T10-00-s.json": dumps(old, indent=2), **history.files})


def gemini_old_file_alone() -> History:
    """Return an old chat, a single object in a .json file."""
    gemini = Gemini()
    gemini.ask()
    gemini.respond(1000, 200, 50)
    old = {**gemini.records[0], "messages": gemini.messages}
    return History("gemini", {"session-2026-08-15T10-00-s.json": dumps(old, indent=2)}, gemini.bill)


def gemini_two_sessions() -> History:
    """Return a chat and that of its sub-agent. The ids of their messages are the same."""
    chats = [Gemini("s"), Gemini("t")]
    for chat in chats:
        chat.ask()
        chat.respond(1000, 200, 50)
    main, sub = (chat.history(f"{chat.session_id}.jsonl") for chat in chats)
    return History("gemini", main.files | sub.files, main.bill + sub.bill)


HISTORIES: dict[str, Callable[[], History]] = {
    "gemini, plain": gemini_plain,
    "gemini, $set": gemini_set,
    "gemini, only in $set": gemini_only_in_set,
    "gemini, rewound": gemini_rewound,
    "gemini, old file": gemini_old_file,
    "gemini, two sessions": gemini_two_sessions,
}

NOT_FOLLOWED: dict[str, Callable[[], History]] = {"gemini, old file alone": gemini_old_file_alone}
