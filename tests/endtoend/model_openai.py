"""The model for Codex: OpenAI's Responses API."""

import json
from typing import NamedTuple

from model import ApiHandler, Model


class Billed(NamedTuple):
    """A response on the bill, with the columns of the table usage.

    thread_id: of the agent or sub-agent that asked for it.
    input_tokens: those neither read from a cache nor written to it.
    """

    thread_id: str
    session_id: str
    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_creation_tokens: int


class ResponsesModel(Model):
    """A model that speaks the Responses API.

    tokens: for further answers it claims a few hundred, each time another number.
    first_tokens: how many it claims to have read for the first answer to each agent, unless it is 0.
    bill: all answers, those without tools too, oldest first.
    """

    first_tokens = 0

    def __init__(self, *answers):
        super().__init__(*answers)
        self.bill: list[Billed] = []

    def api(self) -> type:
        """Return the handler of requests."""

        class Handler(ResponsesHandler):
            charge = staticmethod(self.charge)

        return Handler

    def charge(self, body: dict) -> tuple[int, dict]:
        """Put the answer to a request on the bill. Return its number on the bill, and its usage."""
        with self.lock:
            number = len(self.bill)
            taken = self.tokens[number] if number < len(self.tokens) else 200 + number
            if self.first_tokens and all(one.thread_id != body["thread_id"] for one in self.bill):
                taken = self.first_tokens
            cached, written, given = taken // 4, taken // 8, 10 + number
            self.bill.append(
                Billed(
                    body["thread_id"],
                    body["session_id"],
                    body["model"],
                    taken - cached - written,
                    given,
                    cached,
                    written,
                )
            )
        return number, {
            "input_tokens": taken,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
            "output_tokens": given,
            "output_tokens_details": {"reasoning_tokens": given // 2},
            "total_tokens": taken + given,
        }


class ResponsesHandler(ApiHandler):
    """The part of the Responses API that a session needs, streamed."""

    def respond(self, body):
        """Answer with a response."""
        # Not from client_metadata: 0.137.0 has none of them there.
        body |= {"thread_id": self.header("thread-id"), "session_id": self.header("session-id")}
        more = [tool for one in body["input"] if one["type"] == "additional_tools" for tool in one["tools"]]
        body["tools"] = [*body.get("tools", ()), *more]  # newer models get them as a part of the conversation
        blocks = self.answer(body)
        number, usage = self.charge(body)
        spaces = namespaces(body)
        items = [item(f"{number}_{at}", block, spaces) for at, block in enumerate(blocks)]
        response = {"id": f"resp_{number}", "output": items, "usage": usage}
        events = [("response.created", {"response": {"id": response["id"]}})]
        events += [("response.output_item.done", {"output_index": at, "item": one}) for at, one in enumerate(items)]
        events.append(("response.completed", {"response": response}))
        self.send_stream([f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}" for kind, fields in events])

    def header(self, name: str) -> str:
        """Return a header of the request. Raises KeyError if it is missing."""
        if (value := self.headers[name]) is None:
            raise KeyError(name)
        return value


def namespaces(body: dict) -> dict[str, str]:
    """Return the namespaces of a request's tools by the tools' names."""
    spaces = [tool for tool in body["tools"] if tool["type"] == "namespace"]
    return {tool["name"]: space["name"] for space in spaces for tool in space["tools"]}


def item(name: str, block: dict, spaces: dict[str, str]) -> dict:
    """Return a content block of the Messages API as an item of a response.

    spaces: the tools' namespaces.
    """
    if block["type"] == "text":
        content = [{"type": "output_text", "text": block["text"], "annotations": []}]
        return {"type": "message", "role": "assistant", "id": f"msg_{name}", "content": content}
    space = {"namespace": spaces[block["name"]]} if block["name"] in spaces else {}
    arguments = json.dumps(block["input"])
    call = {"id": f"fc_{name}", "call_id": block["id"], "name": block["name"], "arguments": arguments}
    return {"type": "function_call", **space, **call}
