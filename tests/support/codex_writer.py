"""A little model of Codex's writer. Each answer is on the bill, whatever its records have.

The records have the shapes of real files of the named versions.
"""

from copy import deepcopy

from support.oracles.host_usage import Response
from support.usage_history import Clock, History, written

USAGE = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
    "total_tokens",
)
CODEX_MODEL = "gpt-5.5"


class Codex:
    """Codex with its threads.

    version: of `cli_version`.
    history_mode: "legacy" or "paginated", of new threads.
    records: whether it writes token_usage_record (since an alpha of 0.151).
    turn_ids: whether its turns have ids (not in 2025).
    """

    def __init__(self, version: str, history_mode: str = "legacy", *, records: bool = False, turn_ids: bool = True):
        self.version, self.history_mode, self.records, self.turn_ids = version, history_mode, records, turn_ids
        self.now = Clock()
        self.threads: list[CodexThread] = []
        self.bill: list[Response] = []
        self.answers = self.turns = 0

    def thread(self, thread_id: str, **meta: object) -> "CodexThread":
        """Start a thread."""
        return CodexThread(self, thread_id, meta)

    def history(self) -> History:
        """Return the files and the bill."""
        return History("codex", {thread.name: written(thread.lines) for thread in self.threads}, self.bill)


class CodexThread:
    """A thread, and its file.

    meta: more fields of the session_meta.
    total: the running total, and `last` the usage of the last token_count.
    """

    def __init__(self, codex: Codex, thread_id: str, meta: dict, file_id: str = ""):
        self.codex, self.id, self.turn_id = codex, thread_id, None
        self.file_id = file_id or thread_id
        name = f"{thread_id}_{file_id}" if file_id else thread_id
        self.name = f"rollout-2026-08-15T10-00-{len(codex.threads):02}-{name}.jsonl"
        self.lines: list[dict] = []
        self.total, self.last, self.recorded = dict.fromkeys(USAGE, 0), dict.fromkeys(USAGE, 0), dict.fromkeys(USAGE, 0)
        self.ordinal = 0
        codex.threads.append(self)
        self.session_id = meta.get("session_id", thread_id)
        about = {"session_id": self.session_id, "id": thread_id, "cwd": "/p/shop", "cli_version": codex.version}
        self.paginated = meta.get("history_mode", codex.history_mode) == "paginated"
        self.ordinal = (meta.get("history_base") or {}).get("end_ordinal_exclusive", 0)
        begun = {"timestamp": codex.now(), "originator": "codex_cli_rs", "source": "cli"}
        self.write("session_meta", {**about, **begun, "history_mode": codex.history_mode, **meta})

    def write(self, kind: str, payload: dict) -> None:
        """Append a record."""
        numbered = {"ordinal": self.ordinal} if self.paginated else {}
        self.lines.append({"timestamp": self.codex.now(), **numbered, "type": kind, "payload": deepcopy(payload)})
        self.ordinal += 1

    def turn(self, model: str = CODEX_MODEL) -> "CodexThread":
        """Begin a turn."""
        self.begin_turn(model)
        self.write_context()
        return self

    def begin_turn(self, model: str) -> None:
        """Begin a turn that compacts: its turn_context comes later."""
        self.model = model
        if self.codex.turn_ids:
            self.codex.turns += 1
            self.turn_id = f"turn-{self.codex.turns}"
            self.write("event_msg", {"type": "task_started", "turn_id": self.turn_id})

    def write_context(self) -> None:
        """Write the turn_context."""
        named = {"turn_id": self.turn_id} if self.codex.turn_ids else {}
        allowed = {"approval_policy": "never", "sandbox_policy": {"type": "danger-full-access"}, "summary": "auto"}
        self.write("turn_context", {**named, "cwd": "/p/shop", **allowed, "model": self.model})

    def respond(self, taken: int, cached: int, given: int, cache_writes: int = 0, size: int | None = None) -> None:
        """Write the records of a response, and put it on the bill.

        taken: its input.
        cached, cache_writes: the parts of the input read from the cache and written to it.
        given: its output.
        size: the size of the context, if the last usage has that as its input (a search on the server's side).
        """
        usage = usage_of(taken, cached, given, cache_writes)
        stamp = self.record(usage) if self.codex.records else ""
        self.write("response_item", {"type": "message", "role": "assistant", "content": []})
        self.total = plus(self.total, usage)
        self.last = usage if size is None else usage_of(size, min(size, cached), given, 0)
        self.count()
        billed = Response(
            "codex",
            self.session_id,
            self.model,
            stamp or self.lines[-1]["timestamp"],
            taken - cached - cache_writes,
            given,
            cached,
            cache_writes,
        )
        self.codex.bill.append(billed)

    def record(self, usage: dict) -> str:
        """Write the token_usage_record of a response; return its time."""
        self.codex.answers += 1
        self.recorded = plus(self.recorded, usage)
        named = {"thread_id": self.id, "turn_id": self.turn_id, "session_id": self.session_id}
        named["response_id"] = f"resp_{self.codex.answers}"
        self.write("token_usage_record", {**named, "usage": usage, "thread_token_usage": self.recorded})
        self.latest = self.lines[-1]["payload"]
        return self.lines[-1]["timestamp"]

    def count(self) -> None:
        """Write the last token_count again: as after a response without usage, or with new rate limits."""
        info = {"total_token_usage": self.total, "last_token_usage": self.last, "model_context_window": 258400}
        self.write("event_msg", {"type": "token_count", "info": info, "rate_limits": None})

    def estimate(self, tokens: int) -> None:
        """Write the token_count that follows a compaction."""
        self.last = {**dict.fromkeys(USAGE, 0), "total_tokens": tokens}
        self.count()

    def overflow(self, window: int = 258400) -> None:
        """Write the token_count of a context that was too long."""
        self.estimate(max(0, window - self.total["total_tokens"]))
        self.total = {**dict.fromkeys(USAGE, 0), "total_tokens": window}
        self.lines[-1]["payload"]["info"]["total_token_usage"] = self.total

    def compact(self, taken: int, cached: int, given: int) -> None:
        """Compact the context with a response of its own."""
        self.respond(taken, cached, given)
        copied = {"latest_token_usage_record": self.latest} if self.codex.records else {}
        self.write("compacted", {"message": "", "replacement_history": [], **copied})

    def fork(
        self, thread_id: str, *, meta: bool = True, records: bool = True, counts: bool = True, turns: int = 0, **fields
    ):
        """Return a new thread that copied this one's history, as it is now.

        meta, records, counts: whether its session_meta, token_usage_records and token_counts are copied.
        turns: how many of its first turns are left out.
        fields: more fields of the new session_meta; `forked_from_id` is one unless it is given.
        """
        child = self.codex.thread(thread_id, **{"forked_from_id": self.id, **fields})
        starts = [at for at, line in enumerate(self.lines) if line["type"] == "turn_context"]
        left_out = {"session_meta": not meta, "token_usage_record": not records}
        for line in self.lines[starts[turns] if turns else 0 :]:
            is_count = line["payload"].get("type") == "token_count"
            if not left_out.get(line["type"]) and (counts or not is_count):
                child.write(line["type"], line["payload"])
        child.inherit(self, counts=counts, records=records)
        return child

    def refer(self, thread_id: str, end: int | None = None, file_id: str = "") -> "CodexThread":
        """Return a new file that goes on from an ordinal of this one and copies nothing: a fork, or a revert.

        end: the ordinal, otherwise the next one.
        file_id: of a revert's file.
        """
        end = self.ordinal if end is None else end
        meta = {"history_base": {"thread_id": self.file_id, "end_ordinal_exclusive": end}}
        if thread_id != self.id:
            meta |= {"forked_from_id": self.id, "forked_from_ordinal_exclusive": end}
        child = CodexThread(self.codex, thread_id, meta, file_id)
        child.inherit(self, until=end)
        return child

    def inherit(
        self, other: "CodexThread", *, counts: bool = True, records: bool = True, until: float = float("inf")
    ) -> None:
        """Go on from the last totals of another thread."""
        for line in [line for line in other.lines if line.get("ordinal", 0) < until]:
            if counts and line["payload"].get("type") == "token_count":
                info = line["payload"]["info"]
                self.total, self.last = info["total_token_usage"], info["last_token_usage"]
            if records and line["type"] == "token_usage_record":
                self.recorded = line["payload"]["thread_token_usage"]

    def spawn(self, thread_id: str, **fields) -> "CodexThread":
        """Return a sub-agent that starts at zero."""
        return self.codex.thread(thread_id, **{**self.as_parent(), "session_id": self.session_id, **fields})

    def as_parent(self) -> dict:
        """Return the fields of the session_meta of a sub-agent."""
        source = {"subagent": {"thread_spawn": {"parent_thread_id": self.id, "depth": 1}}}
        return {"source": source, "parent_thread_id": self.id, "thread_source": "subagent"}


def usage_of(taken: int, cached: int, given: int, cache_writes: int = 0) -> dict:
    """Return a TokenUsage."""
    return dict(zip(USAGE, (taken, cached, cache_writes, given, given // 5, taken + given), strict=True))


def plus(one: dict, other: dict) -> dict:
    """Return the sum of two usages."""
    return {name: one[name] + other[name] for name in USAGE}
