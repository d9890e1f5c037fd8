"""A second counter of Codex's token usage, from Codex's own files.

A rollout has two kinds of records with tokens.

token_usage_record (since 0.151 alphas; in both history modes, with and without `ordinal`: 0.169.0 writes it to files
that 0.44 began). One for each response with usage, also for that of a compaction. It names its
thread, its turn and its response. codex-rs/core/src/session/mod.rs writes it when the response completes, before the
token_count of the same response (turn.rs). A user's fork copies it as it is; a sub-agent's fork leaves it out
(codex-rs/core/src/agent/control/spawn.rs, keep_forked_rollout_item). A `compacted` record holds a second copy of the
thread's latest one.

event_msg token_count (all versions). The thread's running total, and the last usage. TokenUsageInfo in
codex-rs/protocol/src/protocol.rs: append_last_usage adds a response to the total and makes it the last usage. Other
events write one without a response. A response without usage and new rate limits repeat the same pair. After a
compaction (Session::recompute_token_usage) the last usage is an estimate, in `total_tokens` alone; the total stays.
After an overflow (fill_to_context_window) both have `total_tokens` alone.

A thread's total begins at zero, or where its copied history ended: Session::record_initial_history takes up the last
token_count of what was resumed or forked. A fork in the paginated mode copies nothing: `history_base` names the
file and the ordinal at which its own lines go on. So does the file that thread/revert begins for the same thread. Its
name has an id of its own behind that of the thread, and a later `history_base` may have this id (0.169.0).
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from support.oracles.usage_rows import Response, number, part, records_of

COMPONENTS = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
)


class Count(NamedTuple):
    """A token_count with usage: where it stands in its file, the running total, and the last usage."""

    at: int
    total: tuple[int, ...]
    last: tuple[int, ...]


class Rollout:
    """One file of Codex, and its records about its thread."""

    def __init__(self, path: Path):
        self.records = records_of(path)
        self.entries = [(str(record.get("type")), part(record, "payload")) for record in self.records]
        self.metas = [payload for kind, payload in self.entries if kind == "session_meta"]
        self.meta = self.metas[0] if self.metas else {}  # its own; later ones were copied with a history
        self.id = self.meta.get("id")
        self.file_id = path.stem.rpartition("_")[2] if "_" in path.stem else self.id  # 0.169.0: of a reverted thread
        self.session_id = self.meta.get("session_id") or self.id
        self.begun = (str(self.records[0].get("timestamp")) if self.records else "", str(path))
        self.counts = [
            Count(at, *(amounts(part(payload, "info", name)) for name in ("total_token_usage", "last_token_usage")))
            for at, (kind, payload) in enumerate(self.entries)
            if kind == "event_msg" and payload.get("type") == "token_count" and part(payload, "info")
        ]
        self.contexts = [(at, payload) for at, (kind, payload) in enumerate(self.entries) if kind == "turn_context"]
        self.turns = {payload.get("turn_id") for _, payload in self.contexts}

    def ancestors(self) -> list[str]:
        """Return the ids of the threads whose history this one may have copied, the nearest first.

        SessionMeta in codex-rs/protocol/src/protocol.rs: `forked_from_id` of a fork; `parent_thread_id` and
        `source.subagent.thread_spawn` of a sub-agent, which has `forked_from_id` only if it inherited the history.
        The copied history begins with the session_meta of the thread that it is from; a chain of forks has them all.
        """
        spawn = part(self.meta, "source", "subagent", "thread_spawn")
        named = [self.meta.get("forked_from_id"), self.meta.get("parent_thread_id"), spawn.get("parent_thread_id")]
        named += [meta.get("id") for meta in self.metas[1:]]
        return [str(name) for name in dict.fromkeys(named) if name and name != self.id]

    def model_at(self, at: int, turn_id: object = None) -> str | None:
        """Return the model of a turn, or the model in use at a record.

        The turn_context of a turn that compacts stands behind the records of its response. If the turn has another
        model with another `comp_hash`, the former model made that response (0.169.0).
        """
        earlier = [payload for place, payload in self.contexts if place < at]
        former = earlier[-1] if earlier else {}
        for place, payload in self.contexts:
            if turn_id is not None and payload.get("turn_id") == turn_id:
                hashes = {payload.get("comp_hash"), former.get("comp_hash")} - {None}
                return former.get("model") if place > at and len(hashes) > 1 else payload.get("model")
        return former.get("model")

    def first_own_turn(self, turns: Iterable[object]) -> int:
        """Return the place of the first turn that another file does not have."""
        own = [at for at, payload in self.contexts if payload.get("turn_id") not in (None, *turns)]
        return own[0] if own else len(self.records)


def amounts(usage: dict) -> tuple[int, ...]:
    """Return the components of a TokenUsage, and its total."""
    return tuple(number(usage.get(name)) for name in (*COMPONENTS, "total_tokens"))


def codex(files: list[Path]) -> list[Response]:
    """Return each billed response of Codex's rollouts."""
    rollouts = sorted((Rollout(path) for path in files), key=lambda rollout: rollout.begun)
    found = recorded(rollouts)
    for rollout in rollouts:
        found += counted(rollout, rollouts)
    return found


def recorded(rollouts: list[Rollout]) -> list[Response]:
    """Return each response that has a token_usage_record.

    A copy keeps the ids and the running total of its thread. The total is part of the key because a provider may use an
    id twice. The earliest is the original. A `compacted` record's copy counts only if the record itself is nowhere
    (migrate-rollouts keeps of a sub-agent only what follows the last compaction).
    """
    found: dict[tuple, Response] = {}
    for rollout in rollouts:
        for at, (kind, payload) in enumerate(rollout.entries):
            record = part(payload, "latest_token_usage_record") if kind == "compacted" else payload
            if kind not in ("token_usage_record", "compacted") or not part(record, "usage"):
                continue
            running = amounts(part(record, "thread_token_usage"))
            key = (record.get("thread_id"), record.get("response_id"), record.get("turn_id"), running)
            session_id = record.get("session_id") or record.get("thread_id") or rollout.session_id
            model = rollout.model_at(at, record.get("turn_id"))
            timestamp = rollout.records[at].get("timestamp")
            response = codex_response(session_id, model, timestamp, amounts(part(record, "usage")))
            if key not in found or str(timestamp) < str(found[key].timestamp):
                found[key] = response
    return [response for response in found.values() if any(response[4:])]


def counted(rollout: Rollout, rollouts: list[Rollout]) -> list[Response]:
    """Return the responses of a file with only a token_count.

    Such a response changes the running total. Its last usage has components, was not copied from another file, and is
    not in a token_usage_record in front of it. The record's usage is the last usage, or it is
    the growth of the total: a later version takes server-side searches out of the last usage, which is the size
    of the context (server_web_search_usage_does_not_inflate_active_context in codex-rs/core/tests). A reviewer may go
    on from another one's checkpoint. Then it begins with a `compacted` record that has the other's latest record, and
    the token_count of the same response (codex-rs/core/src/session/guardian_checkpoint.rs).
    """
    copied = max((copied_counts(rollout, other) for other in sources(rollout, rollouts)), default=0)
    before = inherited_total(rollout, rollouts)
    waiting: list[tuple[int, ...]] = []
    found, at = [], 0
    for place, count in enumerate(rollout.counts):
        for kind, payload in rollout.entries[at : count.at]:
            checkpoint = part(payload, "latest_token_usage_record") if kind == "compacted" else {}
            if kind == "token_usage_record":
                waiting.append(amounts(part(payload, "usage")))
            elif checkpoint.get("thread_id") not in (None, rollout.id):
                waiting.append(amounts(part(checkpoint, "usage")))
        at = count.at
        changed, added = count.total != before, growth(before, count.total)
        before = count.total
        if not changed or not any(count.last[:-1]):
            continue
        pair = next((usage for usage in waiting if usage in (count.last, added)), None)
        if pair is not None:
            waiting.remove(pair)
        elif place >= copied:
            timestamp = rollout.records[count.at].get("timestamp")
            found.append(codex_response(rollout.session_id, rollout.model_at(count.at), timestamp, count.last))
    return found


def growth(before: tuple[int, ...] | None, total: tuple[int, ...]) -> tuple[int, ...]:
    """Return the growth of a running total."""
    return tuple(new - old for new, old in zip(total, before or (0,) * len(total), strict=True))


def inherited_total(rollout: Rollout, rollouts: list[Rollout]) -> tuple[int, ...] | None:
    """Return the running total before the file's first line, None if it is zero or not known."""
    base = part(rollout.meta, "history_base")
    for other in rollouts:
        if base and other.file_id == base.get("thread_id"):
            end = number(base.get("end_ordinal_exclusive"))
            earlier = [count.total for count in other.counts if number(other.records[count.at].get("ordinal")) < end]
            return earlier[-1] if earlier else inherited_total(other, rollouts)
    return None


def sources(rollout: Rollout, rollouts: list[Rollout]) -> list[Rollout]:
    """Return the files that may have the originals of this file's copied lines.

    They are those of the threads that it names, and earlier files of its own thread. If the nearest of those threads
    has no file, an earlier file that copied from the same thread stands for it.
    """
    named = rollout.ancestors()
    earlier = rollouts[: rollouts.index(rollout)]
    found = [other for other in rollouts if other.id in named]
    found += [other for other in earlier if other.id == rollout.id]
    if named and all(other.id != named[0] for other in rollouts):
        found += [other for other in earlier if named[0] in other.ancestors()]
    return found


def copied_counts(rollout: Rollout, source: Rollout) -> int:
    """Return how many of the first token_counts of a file were copied from another file.

    A copy has the same running total and the same last usage, at a new time, in the same order without a gap, from
    the beginning or from a later turn on (spawn.rs: `fork_turns`; a compaction). A thread's own
    turns begin at the first turn id that the other file does not have; old versions wrote none.
    """
    stop = rollout.first_own_turn(source.turns)
    mine = [count[1:] for count in rollout.counts if count.at < stop]
    theirs = [count[1:] for count in source.counts]
    best = 0
    for start in range(len(theirs)):
        length = 0
        for own, original in zip(mine, theirs[start:], strict=False):
            if own != original:
                break
            length += 1
        best = max(best, length)
    return best


def codex_response(session_id: object, model: object, timestamp: object, usage: tuple[int, ...]) -> Response:
    """Return a response as a row.

    TokenUsage: `input_tokens` has the cached ones and those written to the cache, `output_tokens` has the reasoning,
    and `total_tokens` is their sum.
    """
    taken, cached, written, given = usage[:4]
    return Response("codex", session_id, model, timestamp, max(0, taken - cached - written), given, cached, written)
