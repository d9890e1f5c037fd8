"""Small histories in Codex's form, each with its bill (codex_writer.py)."""

from collections.abc import Callable

from support.codex_writer import CODEX_MODEL, Codex, usage_of
from support.usage_history import History


def codex_counts_only(history_mode: str) -> History:
    """Return a thread of 0.144 to 0.151: no token_usage_record, in either history mode."""
    codex = Codex("0.148.0", history_mode)
    thread = codex.thread("A").turn()
    thread.respond(1000, 200, 50)
    thread.turn("gpt-5.5-mini").respond(2000, 1000, 100)
    return codex.history()


def codex_both_records(history_mode: str) -> History:
    """Return a thread of 0.153 or later: both records for each response, in either history mode."""
    codex = Codex("0.169.0", history_mode, records=True)
    thread = codex.thread("A").turn()
    thread.respond(1000, 200, 50, cache_writes=30)
    thread.respond(2000, 1000, 100)
    return codex.history()


def codex_upgraded_in_the_middle() -> History:
    """Return a paginated thread that a newer version went on with: token_usage_record from there on."""
    codex = Codex("0.151.0", "paginated")
    thread = codex.thread("A").turn()
    thread.respond(1000, 200, 50)
    thread.respond(1500, 900, 20)
    codex.records = True
    thread.respond(2000, 1000, 100)
    thread.turn().respond(1000, 200, 50)
    return codex.history()


def codex_went_back_to_an_older_version() -> History:
    """Return a thread whose last responses have no token_usage_record; one of them is as large as one with it."""
    codex = Codex("0.153.0", records=True)
    thread = codex.thread("A").turn()
    thread.respond(1000, 200, 50)
    codex.records = False
    thread.turn().respond(1000, 200, 50)
    thread.respond(1200, 200, 50)
    return codex.history()


def codex_old_thread_resumed() -> History:
    """Return a file that 0.44 began, without turn ids, and 0.169.0 resumed: it stays legacy and gets both records."""
    codex = Codex("0.44.0", turn_ids=False)
    thread = codex.thread("A").turn("gpt-5-codex")
    thread.respond(1000, 200, 50)
    thread.respond(2000, 1000, 100)
    codex.records = codex.turn_ids = True
    thread.turn().respond(123, 23, 10)
    return codex.history()


def codex_repeated_counts() -> History:
    """Return a thread with token_counts that repeat the one before: no usage in a response, and new rate limits."""
    codex = Codex("0.150.0")
    thread = codex.thread("A").turn()
    thread.respond(1000, 200, 50)
    thread.count()
    thread.count()
    thread.respond(2000, 1000, 100)
    thread.respond(2000, 1000, 100)  # a response of the same size is another response
    thread.count()
    return codex.history()


def codex_unchanged_total() -> History:
    """Return a thread in which the last usage changes and the running total does not."""
    codex = Codex("0.147.0")
    thread = codex.thread("A").turn()
    thread.respond(1000, 200, 50)
    thread.last = usage_of(900, 0, 77)
    thread.count()
    thread.respond(2000, 1000, 100)
    return codex.history()


def codex_compacted(*, records: bool, model: str = CODEX_MODEL) -> History:
    """Return a thread that was compacted: a billed response, then an estimate in `total_tokens` alone."""
    codex = Codex("0.169.0" if records else "0.148.0", "paginated", records=records)
    thread = codex.thread("A").turn()
    thread.respond(1000, 200, 50)
    thread.begin_turn(model)
    if not records:
        thread.write_context()
    thread.compact(30000, 20000, 700)
    if records:
        thread.write_context()
    thread.estimate(8000)
    thread.turn().respond(9000, 0, 100)
    return codex.history()


def codex_estimate_first() -> History:
    """Return a sub-agent whose file begins with the estimate of a compacted history, and an overflowed one."""
    codex = Codex("0.148.0", "paginated")
    parent = codex.thread("A").turn()
    parent.respond(1000, 200, 50)
    child = parent.spawn("B", forked_from_id="A")
    child.total = usage_of(900_000, 800_000, 5000)
    child.estimate(9035)
    child.turn().respond(9500, 9000, 40)
    child.overflow()
    child.respond(700, 0, 30)
    return codex.history()


def codex_search_on_the_server() -> History:
    """Return a response whose last usage is the size of the context; its record and the running total have the bill."""
    codex = Codex("0.170.0", "paginated", records=True)
    thread = codex.thread("A").turn()
    thread.respond(1000, 200, 50)
    thread.respond(50_000, 40_000, 60, size=1300)
    thread.respond(1500, 1300, 20)
    return codex.history()


def codex_fork(*, records: bool) -> History:
    """Return a thread and its fork, which copied it; both went on."""
    codex = Codex("0.169.0" if records else "0.145.0", records=records)
    parent = codex.thread("A").turn()
    parent.respond(1000, 200, 50)
    parent.respond(2000, 1000, 100)
    child = parent.fork("B")
    child.turn().respond(3000, 2500, 30)
    parent.turn().respond(3100, 2500, 31)
    return codex.history()


def codex_fork_of_a_fork(*, meta: bool, records: bool) -> History:
    """Return a fork of a fork, with or without the copied session_metas."""
    codex = Codex("0.169.0" if records else "0.142.0", records=records)
    first = codex.thread("A").turn()
    first.respond(1000, 200, 50)
    second = first.fork("B", meta=meta)
    second.turn().respond(2000, 1000, 100)
    third = second.fork("C", meta=meta)
    third.turn().respond(3000, 2000, 150)
    first.turn().respond(1700, 1000, 15)
    return codex.history()


def codex_fork_without_its_parent() -> History:
    """Return two forks of a thread whose file is gone. Their common part was billed once."""
    codex = Codex("0.145.0")
    parent = codex.thread("A").turn()
    parent.respond(1000, 200, 50)
    parent.respond(2000, 1000, 100)
    children = [parent.fork(name) for name in "BC"]
    for child in children:
        child.turn().respond(3000, 2500, 30)
    codex.threads.remove(parent)
    history = codex.history()
    copies = [line for line in children[0].lines if line["payload"].get("type") == "token_count"]
    moved = [one._replace(session_id="B", timestamp=copies[at]["timestamp"]) for at, one in enumerate(history.bill[:2])]
    return history._replace(bill=moved + history.bill[2:])


def codex_fork_of_a_fork_that_is_gone() -> History:
    """Return a thread and a fork of its fork. The fork's file is gone: the copied session_metas have the whole line."""
    codex = Codex("0.142.0")
    first = codex.thread("A").turn()
    first.respond(1000, 200, 50)
    second = first.fork("B")
    second.turn().respond(2000, 1000, 100)
    third = second.fork("C")
    third.turn().respond(3000, 2000, 150)
    codex.threads.remove(second)
    history = codex.history()
    copies = [line["timestamp"] for line in third.lines if line["payload"].get("type") == "token_count"]
    moved = history.bill[1]._replace(session_id="C", timestamp=copies[1])
    return history._replace(bill=[history.bill[0], moved, history.bill[2]])


def codex_forks_with_equal_turns(*, turn_ids: bool) -> History:
    """Return two forks whose own first responses, and so their totals, are equal."""
    codex = Codex("0.145.0", turn_ids=turn_ids)
    parent = codex.thread("A").turn()
    parent.respond(1000, 200, 50)
    for name in "BC":
        parent.fork(name).turn().respond(2000, 1000, 100)
    return codex.history()


def codex_paginated_fork(*, records: bool) -> History:
    """Return a fork that names the end of its history, without a copy. It first repeats the total at that point."""
    codex = Codex("0.169.0" if records else "0.150.0", "paginated", records=records)
    parent = codex.thread("A").turn()
    parent.respond(1000, 200, 50)
    parent.respond(2000, 1000, 100)
    child = parent.refer("B")
    parent.turn().respond(3000, 2500, 30)
    child.turn().count()
    child.respond(3000, 2500, 30)
    grandchild = child.refer("C")
    grandchild.turn().respond(4000, 3500, 40)
    return codex.history()


def codex_reverted(*, records: bool, again: bool) -> History:
    """Return a reverted thread: it has a second file. All was billed.

    Each file first repeats the total of the one before it.

    again: whether the thread was reverted twice more, once to a turn of the second file, and that file was forked.
    """
    codex = Codex("0.169.0" if records else "0.150.0", "paginated", records=records)
    first = codex.thread("A").turn()
    first.respond(1000, 200, 50)
    end = first.ordinal
    first.turn().respond(2000, 1000, 100)
    second = first.refer("A", end, file_id="b")
    second.turn().count()
    second.respond(2000, 1000, 100)
    if not again:
        return codex.history()
    end_of_second = second.ordinal
    second.turn().respond(2500, 1000, 101)
    for thread in (
        second.refer("A", end_of_second, file_id="c"),
        second.refer("B"),
        first.refer("A", end, file_id="d"),
    ):
        thread.turn().count()
        thread.respond(2600, 1000, 102)
    return codex.history()


def codex_sub_agent_replays(*, turn_ids: bool) -> History:
    """Return an old sub-agent, which names its parent in `source` alone and has its token_counts."""
    codex = Codex("0.120.0", turn_ids=turn_ids)
    parent = codex.thread("A").turn()
    parent.respond(1000, 200, 50)
    parent.respond(2000, 1000, 100)
    source = parent.as_parent()["source"]
    child = parent.fork("B", meta=False, forked_from_id=None, source=source)
    child.turn().respond(3000, 2500, 30)
    return codex.history()


def codex_sub_agent_replays_later_turns() -> History:
    """Return a sub-agent that has only the last turn of its parent."""
    codex = Codex("0.143.0")
    parent = codex.thread("A").turn()
    parent.respond(1000, 200, 50)
    parent.turn().respond(2000, 1000, 100)
    parent.respond(2100, 1000, 110)
    child = parent.fork("B", turns=1, **parent.as_parent())
    child.turn().respond(3000, 2500, 30)
    return codex.history()


def codex_legacy_sub_agent_with_history() -> History:
    """Return a sub-agent of 0.169.0 in the legacy mode: it has its parent's token_counts, without their records."""
    codex = Codex("0.169.0", records=True)
    parent = codex.thread("A").turn()
    parent.respond(1000, 200, 50)
    parent.respond(1100, 210, 51)
    child = parent.fork("B", records=False, session_id="A", **parent.as_parent())
    child.turn().respond(1300, 230, 53)
    parent.respond(1400, 240, 54)
    return codex.history()


def codex_paginated_sub_agent_with_history() -> History:
    """Return a sub-agent of 0.169.0 in the paginated mode: it has no usage of its parent's, and starts at zero."""
    codex = Codex("0.169.0", "paginated", records=True)
    parent = codex.thread("A").turn()
    parent.respond(1000, 200, 50)
    child = parent.fork("B", records=False, counts=False, session_id="A", **parent.as_parent())
    child.turn().respond(1000, 200, 50)
    return codex.history()


def codex_sub_agents_with_equal_totals(*, records: bool) -> History:
    """Return sub-agents that start at zero, with equal responses; one is as large as its parent's first."""
    codex = Codex("0.169.0" if records else "0.145.0", "paginated", records=records)
    parent = codex.thread("A").turn()
    parent.respond(1000, 200, 50)
    for name in "BC":
        parent.spawn(name, forked_from_id="A").turn().respond(2000, 1000, 100)
    parent.spawn("D").turn().respond(1000, 200, 50)
    return codex.history()


def codex_fork_migrated() -> History:
    """Return an old thread and its fork after `codex migrate-rollouts`: invented turn ids, no copied session_meta."""
    codex = Codex("0.144.0", "paginated", turn_ids=False)
    parent = codex.thread("A").turn()
    parent.respond(1000, 200, 50)
    parent.respond(2000, 1000, 100)
    child = parent.fork("B", meta=False)
    for thread in (parent, child):
        thread.lines[1:1] = [
            {**thread.lines[0], "type": "event_msg", "payload": {"type": "task_started", "turn_id": "rollout-2"}}
        ]
    codex.turn_ids = True
    child.turn().respond(3000, 2500, 30)
    return codex.history()


def codex_compacted_record_alone() -> History:
    """Return a sub-agent after a migration that kept only the lines after its compaction: the record's copy alone."""
    codex = Codex("0.162.0", "paginated", records=True)
    thread = codex.thread("A").turn()
    thread.compact(30000, 20000, 700)
    thread.turn().respond(9000, 0, 100)
    kinds = [line["type"] for line in thread.lines]
    kept = kinds.index("compacted")
    compacted, context = thread.lines[kept], thread.lines[kinds.index("turn_context")]
    thread.lines[1:] = [context, *thread.lines[kept:]]
    history = codex.history()
    return history._replace(bill=[history.bill[0]._replace(timestamp=compacted["timestamp"]), *history.bill[1:]])


def codex_reviewer_from_a_checkpoint() -> History:
    """Return a reviewer, and one that begins with its checkpoint: a compacted record and a token_count of the first."""
    codex = Codex("0.162.0", "paginated", records=True)
    main = codex.thread("A").turn()
    main.respond(1000, 200, 50)
    guardian = {"source": {"subagent": {"other": "guardian"}}, "thread_source": "guardian_review", "session_id": "A"}
    first = codex.thread("G", parent_thread_id="A", **guardian).turn()
    first.respond(400, 0, 20)
    first.respond(500, 300, 21)
    second = codex.thread("H", parent_thread_id="A", **guardian)
    second.write("compacted", {"message": "", "replacement_history": [], "latest_token_usage_record": first.latest})
    second.total, second.last = first.total, first.last
    second.count()
    second.turn().respond(600, 500, 22)
    return codex.history()


def codex_repeated_response_ids() -> History:
    """Return a thread whose provider gives every response the same id."""
    codex = Codex("0.169.0", "paginated", records=True)
    thread = codex.thread("A").turn()
    for _ in range(3):
        codex.answers = 0
        thread.respond(1000, 200, 50)
    return codex.history()


HISTORIES: dict[str, Callable[[], History]] = {
    "codex, counts only, paginated": lambda: codex_counts_only("paginated"),
    "codex, counts only, legacy": lambda: codex_counts_only("legacy"),
    "codex, both records, paginated": lambda: codex_both_records("paginated"),
    "codex, both records, legacy": lambda: codex_both_records("legacy"),
    "codex, upgraded in the middle": codex_upgraded_in_the_middle,
    "codex, back to an older version": codex_went_back_to_an_older_version,
    "codex, old thread resumed": codex_old_thread_resumed,
    "codex, repeated counts": codex_repeated_counts,
    "codex, unchanged total": codex_unchanged_total,
    "codex, compacted": lambda: codex_compacted(records=False),
    "codex, compacted, with records": lambda: codex_compacted(records=True),
    "codex, estimate first": codex_estimate_first,
    "codex, search on the server": codex_search_on_the_server,
    "codex, fork": lambda: codex_fork(records=False),
    "codex, fork, with records": lambda: codex_fork(records=True),
    "codex, fork of a fork": lambda: codex_fork_of_a_fork(meta=True, records=False),
    "codex, fork of a fork, with records": lambda: codex_fork_of_a_fork(meta=True, records=True),
    "codex, fork of a fork, no copied meta": lambda: codex_fork_of_a_fork(meta=False, records=False),
    "codex, fork of a fork, no copied meta, with records": lambda: codex_fork_of_a_fork(meta=False, records=True),
    "codex, fork without its parent": codex_fork_without_its_parent,
    "codex, fork of a fork that is gone": codex_fork_of_a_fork_that_is_gone,
    "codex, forks with equal turns": lambda: codex_forks_with_equal_turns(turn_ids=True),
    "codex, forks with equal turns, no turn ids": lambda: codex_forks_with_equal_turns(turn_ids=False),
    "codex, paginated fork": lambda: codex_paginated_fork(records=False),
    "codex, paginated fork, with records": lambda: codex_paginated_fork(records=True),
    "codex, reverted": lambda: codex_reverted(records=False, again=False),
    "codex, reverted, with records": lambda: codex_reverted(records=True, again=False),
    "codex, reverted again": lambda: codex_reverted(records=False, again=True),
    "codex, reverted again, with records": lambda: codex_reverted(records=True, again=True),
    "codex, sub-agent replays": lambda: codex_sub_agent_replays(turn_ids=True),
    "codex, sub-agent replays, no turn ids": lambda: codex_sub_agent_replays(turn_ids=False),
    "codex, sub-agent replays later turns": codex_sub_agent_replays_later_turns,
    "codex, legacy sub-agent with history": codex_legacy_sub_agent_with_history,
    "codex, paginated sub-agent with history": codex_paginated_sub_agent_with_history,
    "codex, sub-agents with equal totals": lambda: codex_sub_agents_with_equal_totals(records=False),
    "codex, sub-agents with equal totals, with records": lambda: codex_sub_agents_with_equal_totals(records=True),
    "codex, fork migrated": codex_fork_migrated,
    "codex, compacted record alone": codex_compacted_record_alone,
    "codex, reviewer from a checkpoint": codex_reviewer_from_a_checkpoint,
    "codex, repeated response ids": codex_repeated_response_ids,
}

NOT_FOLLOWED: dict[str, Callable[[], History]] = {
    "codex, compacted with another model": lambda: codex_compacted(records=True, model="gpt-5.5-mini"),
}
