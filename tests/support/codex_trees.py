"""Random histories of Codex with a known bill: forks, sub-agents, reverts, compactions and upgrades.

The little model of the host's writer (codex_writer.py) has the bill. This module only has the order of the steps.
"""

from random import Random

from support.codex_writer import Codex, CodexThread
from support.usage_history import History

# Few sizes, so that responses and running totals of different threads are often equal.
SIZES = ((1000, 200, 50), (2000, 1000, 100), (1000, 200, 50), (3000, 2500, 30))
MODELS = ("gpt-5.5", "gpt-5.5-mini")


def grow_codex(random: Random, steps: int = 14) -> History:
    """Return a random history of one person: a few threads in one history mode, some begun before an upgrade."""
    mode = random.choice(("legacy", "paginated"))
    is_old = mode == "legacy" and random.random() < 0.3
    codex = Codex("0.148.0", mode, records=not is_old and random.random() < 0.4, turn_ids=not is_old)
    live = [codex.thread("A")]
    for _ in range(steps):
        if random.random() < 0.1:
            codex.records = codex.turn_ids = True  # an upgrade; some files have both kinds of records from there on
        thread = random.choice(live)
        if thread.total["total_tokens"] and random.random() < 0.35 and len(live) < 7:
            live.append(branch(random, codex, thread, f"T{len(codex.threads)}"))
        else:
            work(random, thread)
    return codex.history()


def work(random: Random, thread: CodexThread) -> None:
    """Let a thread answer in a turn of its own, with Codex's records around the answers."""
    thread.turn(random.choice(MODELS))
    if random.random() < 0.3 and thread.total["total_tokens"]:
        thread.count()  # the session was resumed, or has other limits
    for _ in range(random.randint(1, 3)):
        thread.respond(*size_of(random, thread))
        if random.random() < 0.2:
            thread.count()
    if random.random() < 0.15:
        thread.compact(*size_of(random, thread))
        thread.estimate(random.randint(1, 9000))


def size_of(random: Random, thread: CodexThread) -> tuple[int, int, int]:
    """Return a response's input, the cached part of it, and its output.

    They have few sizes, so totals are often equal. But sometimes no file shows which of two equal totals a line
    repeats, and then the sizes differ: without the ids of turns, and after a revert, because a file that goes on from a
    reverted thread's file has another id for it.
    """
    has_reverted = any(one.file_id != one.id for one in thread.codex.threads)
    if thread.codex.turn_ids and not has_reverted:
        return random.choice(SIZES)
    return random.randint(9000, 99999), 800, random.randint(1, 999)


def branch(random: Random, codex: Codex, thread: CodexThread, name: str) -> CodexThread:
    """Return a thread that began from another one, in one of the ways of its history mode."""
    ways = [spawn_at_zero, spawn_as_fork]
    ways += [refer, revert] if thread.paginated else [fork, fork_of_bare_lines, spawn_with_history]
    return random.choice(ways)(codex, thread, name)


def spawn_at_zero(codex: Codex, thread: CodexThread, name: str) -> CodexThread:
    """Return a sub-agent without its parent's history."""
    return thread.spawn(name)


def spawn_as_fork(codex: Codex, thread: CodexThread, name: str) -> CodexThread:
    """Return a sub-agent that starts at zero and names its parent as the origin of its fork."""
    return thread.spawn(name, forked_from_id=thread.id)


def fork(codex: Codex, thread: CodexThread, name: str) -> CodexThread:
    """Return a fork that copied all lines."""
    return thread.fork(name)


def fork_of_bare_lines(codex: Codex, thread: CodexThread, name: str) -> CodexThread:
    """Return a fork that copied all lines but the session_meta."""
    return thread.fork(name, meta=False)


def spawn_with_history(codex: Codex, thread: CodexThread, name: str) -> CodexThread:
    """Return a sub-agent with its parent's token_counts, and without their token_usage_records."""
    return thread.fork(name, records=False, session_id=thread.session_id, **thread.as_parent())


def refer(codex: Codex, thread: CodexThread, name: str) -> CodexThread:
    """Return a fork that names the end of its history, and then repeats the running total."""
    child = thread.refer(name)
    child.turn().count()
    return child


def revert(codex: Codex, thread: CodexThread, name: str) -> CodexThread:
    """Return another file of the same thread, which goes on from an earlier turn of it."""
    ends = [line["ordinal"] for line in thread.lines if line["payload"].get("type") == "token_count"]
    child = thread.refer(thread.id, ends[len(ends) // 2] + 1, file_id=f"f{name}")
    child.turn().count()
    return child
