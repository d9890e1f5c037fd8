"""The model for Gemini CLI: Google's Gemini API."""

import json

from model import ApiHandler, Model


class GeminiModel(Model):
    """A model that speaks the Gemini API."""

    def api(self) -> type:
        """Return the handler of requests."""
        return GeminiHandler


class GeminiHandler(ApiHandler):
    """The part of the Gemini API that a session needs, streamed or whole."""

    def respond(self, body):
        """Answer with generated content."""
        content = {"role": "model", "parts": [part(block) for block in self.answer(body)]}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        candidate = {"content": content, "finishReason": "STOP", "index": 0}
        response = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "none"}
        if ":streamGenerateContent" in self.path:
            self.send_stream([f"data: {json.dumps(response)}"])
        else:
            self.send(response)


def part(block: dict) -> dict:
    """Return a content block of the Messages API as a part of the Gemini API."""
    if block["type"] == "text":
        return {"text": block["text"]}
    return {"functionCall": {"name": block["name"], "args": block["input"]}}
