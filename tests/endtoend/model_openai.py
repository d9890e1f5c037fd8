"""The model for Codex: OpenAI's Responses API."""

import json

from model import ApiHandler, Model


class ResponsesModel(Model):
    """A model that speaks the Responses API.

    tokens: how many it claims to have read for each of its answers, oldest first. For further answers it claims 1.
    billed: what it claimed to have read for each answer that it gave, those without tools too.
    """

    tokens: tuple[int, ...] = ()

    def __init__(self, *answers):
        super().__init__(*answers)
        self.billed: list[int] = []

    def api(self) -> type:
        """Return the handler of requests."""
        model = self

        class Handler(ResponsesHandler):
            billed = model.billed

            @property
            def tokens(self) -> int:
                return dict(enumerate(model.tokens, 1)).get(len(model.requests), 1)

        return Handler


class ResponsesHandler(ApiHandler):
    """The part of the Responses API that a session needs, streamed."""

    def do_POST(self):
        """Answer with a response."""
        body = self.body()
        items = [item(f"{id(body):x}_{at}", block) for at, block in enumerate(self.answer(body))]
        taken = self.tokens
        self.billed.append(taken)
        usage = {"input_tokens": taken, "output_tokens": 1, "total_tokens": taken + 1}
        response = {"id": f"resp_{id(body):x}", "output": items, "usage": usage}
        events = [("response.created", {"response": {"id": response["id"]}})]
        events += [("response.output_item.done", {"output_index": at, "item": one}) for at, one in enumerate(items)]
        events.append(("response.completed", {"response": response}))
        self.send_stream([f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}" for kind, fields in events])


def item(name: str, block: dict) -> dict:
    """Return a content block of the Messages API as an item of a response."""
    if block["type"] == "text":
        content = [{"type": "output_text", "text": block["text"], "annotations": []}]
        return {"type": "message", "role": "assistant", "id": f"msg_{name}", "content": content}
    arguments = json.dumps(block["input"])
    return {
        "type": "function_call",
        "id": f"fc_{name}",
        "call_id": block["id"],
        "name": block["name"],
        "arguments": arguments,
    }
