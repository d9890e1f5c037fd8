"""A model on loopback: it answers a host's requests with what a test wrote for it."""

import json
import signal
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Where a message, a block or a tool's result has its text.
SPEECH = ("text", "content", "output", "parts", "functionResponse", "response")


@dataclass
class Request:
    """One request for the session's next message, of the Messages API or of another host's API."""

    body: dict

    @property
    def messages(self) -> list[dict]:
        """Return the conversation, oldest message first, by Anthropic's, OpenAI's or Google's field."""
        return next(self.body[name] for name in ("messages", "input", "contents") if name in self.body)

    @property
    def first(self) -> str:
        """Return all text of the first message: the task of a session or a sub-agent."""
        return "\n".join(texts(self.messages[0]))

    @property
    def begun(self) -> bool:
        """Return whether the model has answered in this conversation before."""
        return any(message["role"] == "assistant" for message in self.messages)

    @property
    def said(self) -> str:
        """Return all text of the last message, with tools' results and the host's reminders."""
        return "\n".join(texts(self.messages[-1]))

    @property
    def prompted(self) -> str:
        """Return all text of the whole conversation, oldest first."""
        return "\n".join(texts(self.messages))


def texts(content) -> list[str]:
    """Return the texts in a message's content, at any depth."""
    if isinstance(content, str):
        return [content]
    if isinstance(content, list):
        return [text for block in content for text in texts(block)]
    return next((texts(content[name]) for name in SPEECH if content.get(name)), [])


def use(tool: str, **given: object) -> dict:
    """Return the content block in which a model uses a tool."""
    return {"type": "tool_use", "name": tool, "input": given}


def bash(command: str) -> list[dict]:
    """Return a message that runs a command."""
    return [use("Bash", command=command, description="run it")]


class Model:
    """Answers the n-th request that offers tools with the n-th of its answers; then with a fixed sentence.

    answers: each a text, a list of content blocks, or a function of the Request that gives one of these. A request
        without tools (a title, a summary, the judge of a goal) takes none of them.
    asides: the answers to the requests without tools; then a few words.
    tokens: how many it claims to have read for its first answers, oldest first.
    url: where it listens, on loopback.
    requests: those that were answered so, oldest first; `others` those without tools.

    If it cannot answer a request, it answers 500 and raises the reason in the test, which waits in the main thread. A
    model in an answer of another model raises it at its own end, so that the other one fails.
    """

    tokens: tuple[int, ...] = ()

    def __init__(self, *answers, asides: Iterable[str] = ()):
        self.answers = list(answers)
        self.asides = iter(asides)
        self.requests: list[Request] = []
        self.others: list[Request] = []
        self.lock = threading.Lock()
        self.failure: Exception | None = None
        self.is_over = False

    def __enter__(self):
        model = self

        class Handler(self.api()):
            answer = staticmethod(model.answer)
            claim = staticmethod(model.claim)
            fail = staticmethod(model.fail)

        self.is_tests = threading.current_thread() is threading.main_thread()
        if self.is_tests:
            self.handler_before = signal.signal(signal.SIGUSR1, self.raise_failure)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        try:
            with self.lock:
                self.is_over = True
        finally:  # a signal that was sent before arrives here at the latest
            if self.is_tests:
                signal.signal(signal.SIGUSR1, self.handler_before)
            self.server.shutdown()
            self.server.server_close()
            self.thread.join()
        if self.failure and not self.is_tests:
            raise self.failure

    def fail(self, failure: Exception) -> None:
        """Raise the first failure in the test, unless the test has ended."""
        with self.lock:
            if not self.is_over and not self.failure:
                self.failure = failure
                if self.is_tests:
                    signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

    def raise_failure(self, *_) -> None:
        """Raise the failure, as the handler of a signal, which ends any wait."""
        if self.failure is None:
            self.handler_before(*_)  # it is that of an outer model
        raise self.failure

    def api(self) -> type:
        """Return the handler of requests, which speaks the API."""
        return MessagesHandler

    def claim(self) -> int:
        """Return how many tokens the newest answer claims to have read."""
        number = len(self.requests) + len(self.others) - 1
        return self.tokens[number] if number < len(self.tokens) else 1

    def answer(self, body: dict) -> list[dict]:
        """Return the content of the message that answers a request."""
        request = Request(body)
        with self.lock:
            if not body.get("tools"):
                self.others.append(request)
                return [{"type": "text", "text": next(self.asides, "A few words.")}]
            number = len(self.requests)
            self.requests.append(request)
        found = self.answers[number] if number < len(self.answers) else "There is nothing more to say."
        if callable(found):
            found = found(request)
        if isinstance(found, str):
            found = [{"type": "text", "text": found}]
        return [
            {**block, "id": f"toolu_{number:04d}_{at}"} if block["type"] == "tool_use" else block
            for at, block in enumerate(found)
        ]


class ApiHandler(BaseHTTPRequestHandler):
    """The part of a handler that all APIs share; `answer` returns the content blocks for a request's body."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        """Log nothing."""

    def do_GET(self):
        """Answer any GET with {}."""
        self.send({})

    do_HEAD = do_GET

    def do_POST(self):
        """Answer a request; if that raises, answer 500 with the reason."""
        try:
            self.respond(json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}"))
        except ConnectionError:  # the host has closed the connection
            raise
        except Exception as error:
            words = f"the model failed at {self.path}: {type(error).__name__}: {error}"
            failure = AssertionError(words)
            failure.__cause__ = error
            self.fail(failure)
            self.send({"error": {"type": "api_error", "message": words}}, status=500)

    def respond(self, body: dict) -> None:
        """Answer a request with this JSON."""
        raise NotImplementedError

    def send_stream(self, events: list[str]) -> None:
        """Send the events of a stream, all at once."""
        self.reply("".join(f"{event}\n\n" for event in events).encode(), "text/event-stream")

    def send(self, value: dict, status: int = 200) -> None:
        """Send one JSON object."""
        self.reply(json.dumps(value).encode(), "application/json", status)

    def reply(self, data: bytes, kind: str, status: int = 200) -> None:
        """Send bytes with their content type."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


class MessagesHandler(ApiHandler):
    """The part of the Messages API that a session needs, streamed or whole."""

    def respond(self, body):
        """Answer with a message, or with a count of tokens."""
        if not self.path.partition("?")[0].endswith("/messages"):
            self.send({"input_tokens": 1})
            return
        content = self.answer(body)
        stop = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
        message = {
            "id": f"msg_{id(content):x}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "none"),
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {"input_tokens": self.claim(), "output_tokens": 1},
        }
        if body.get("stream"):
            self.send_events(message)
        else:
            self.send(message)

    def send_events(self, message: dict) -> None:
        """Send the message as the events of a stream."""
        events = [("message_start", {"message": {**message, "content": [], "stop_reason": None}})]
        for index, block in enumerate(message["content"]):
            if block["type"] == "text":
                begun = {"type": "text", "text": ""}
                delta = {"type": "text_delta", "text": block["text"]}
            else:
                begun = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            events += [
                ("content_block_start", {"index": index, "content_block": begun}),
                ("content_block_delta", {"index": index, "delta": delta}),
                ("content_block_stop", {"index": index}),
            ]
        end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        events += [("message_delta", {"delta": end, "usage": {"output_tokens": 1}}), ("message_stop", {})]
        self.send_stream([f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}" for kind, fields in events])
