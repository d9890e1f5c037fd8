"""Small histories in Qwen Code's form, each with its bill, by a little model of its chat recording."""

from collections.abc import Callable
from copy import deepcopy

from support.oracles.host_usage import Response
from support.usage_history import Clock, History, written

QWEN_MODEL = "qwen3-coder-plus"


class Qwen:
    """A chat of Qwen Code: the records of its file, and the bill."""

    def __init__(self, session_id: str = "s") -> None:
        self.now, self.session_id = Clock(), session_id
        self.records: list[dict] = []
        self.bill: list[Response] = []

    def append(self, kind: str, **members: object) -> None:
        """Append a record."""
        about = {"uuid": f"{self.session_id}-{len(self.records)}", "sessionId": self.session_id, "type": kind}
        self.records.append({**about, "timestamp": self.now(), "cwd": "/p", "version": "0.24.4", **members})

    def ask(self, text: str = "Go on.") -> None:
        """Append a message of the person."""
        self.append("user", message={"role": "user", "parts": [{"text": text}]})

    def respond(
        self, taken: int, cached: int, given: int, thoughts: int = 0, *, is_apart: bool = False, is_agents: bool = False
    ) -> None:
        """Write a response, and put it on the bill.

        is_apart: whether the output lacks the thoughts, as with Gemini's API.
        is_agents: whether a sub-agent got it: then its message is in another file.
        """
        names = ("input", "output", "cached_content", "thoughts", "total")
        numbers = (taken, given, cached, thoughts, taken + given + thoughts * is_apart)
        counts = {f"{name}_token_count": count for name, count in zip(names, numbers, strict=True)}
        event = {"event.name": "qwen-code.api_response", "model": QWEN_MODEL, "response_id": "r", **counts}
        self.append("system", subtype="ui_telemetry", systemPayload={"uiEvent": event})
        row = max(0, taken - cached), given + thoughts * is_apart, cached, 0
        self.bill.append(Response("qwen", self.session_id, QWEN_MODEL, self.records[-1]["timestamp"], *row))
        if not is_agents:
            usage = {"promptTokenCount": taken, "candidatesTokenCount": given, "totalTokenCount": numbers[-1]}
            message = {"role": "model", "parts": [{"text": "Well."}]}
            self.append("assistant", model=QWEN_MODEL, message=message, usageMetadata=usage)

    def fork(self, session_id: str) -> "Qwen":
        """Return a branch of the chat: it has copies of the records, and no bill yet."""
        other = Qwen(session_id)
        other.now.seconds = self.now.seconds
        for record in deepcopy(self.records):
            source = {"sessionId": self.session_id, "messageUuid": record["uuid"]}
            other.records.append({**record, "sessionId": session_id, "forkedFrom": source})
        return other

    def history(self, *others: "Qwen") -> History:
        """Return the files and the bill of this chat and others."""
        chats = [self, *others]
        files = {f"{chat.session_id}.jsonl": written(chat.records) for chat in chats}
        return History("qwen", files, [one for chat in chats for one in chat.bill])


def qwen_plain() -> History:
    """Return a chat with responses of several providers, and one of a sub-agent."""
    qwen = Qwen()
    qwen.ask()
    qwen.respond(1000, 200, 50)
    qwen.respond(1100, 900, 51, thoughts=7)
    qwen.respond(1100, 900, 51, thoughts=7, is_apart=True)
    qwen.respond(0, 900, 51)
    qwen.respond(300, 0, 5, is_agents=True)
    qwen.append("system", subtype="ui_telemetry", systemPayload={"uiEvent": {"event.name": "qwen-code.tool_call"}})
    qwen.append("system", subtype="chat_compression", systemPayload={"info": {"newTokenCount": 5}})
    return qwen.history()


def qwen_branches() -> History:
    """Return a chat, its branch, and a branch of that."""
    root = Qwen("s")
    root.ask()
    root.respond(1000, 200, 50)
    branch = root.fork("t")
    branch.ask()
    branch.respond(1100, 900, 51)
    second = branch.fork("u")
    second.respond(1200, 900, 52)
    root.respond(1300, 900, 53)
    return root.history(branch, second)


HISTORIES: dict[str, Callable[[], History]] = {"qwen, plain": qwen_plain, "qwen, branches": qwen_branches}
