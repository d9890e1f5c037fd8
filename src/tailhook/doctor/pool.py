"""Checks of the pool: whether it runs, and whether the last hooks were warm or cold."""

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence, Set

from tailhook._core import REASON_BUSY, REASON_NO_POOL, REASON_OFF, REASON_UNUSUAL
from tailhook.doctor.finding import NOTE, OK, WARNING, Finding
from tailhook.hook.answer import describe
from tailhook.pool.control import find_pools, may_hooks_start_pool, next_start, pool_start_failure, start_fault
from tailhook.pool.installation import client_folder_of, folder_fault_of
from tailhook.stores.hook_times import WARM, read_times

# Why no worker answered, by the letter that the client passes to the cold hook.
REASONS = {
    bytes([REASON_NO_POOL]): "no pool ran",
    bytes([REASON_BUSY]): "no worker was free",
    bytes([REASON_UNUSUAL]): "unusual surroundings",
    bytes([REASON_OFF]): "TAILHOOK_NO_POOL",
}
FEW = 0.5  # of the hooks; if more are cold although a pool could run, something is wrong
MANY = 20  # hooks; fewer show nothing
SLOW_HOOK_MS = 5000.0  # half of the time limit that `tailhook install` sets for hooks


def check_pool(client: str) -> Iterator[Finding]:
    """Yield whether a pool runs behind a client, and how the last hooks of each event went.

    client: its path.
    """
    folder = client_folder_of(client)
    pools = find_pools(folder)
    found = next((pool for pool in pools if pool.is_own), None)
    if found and (fault := folder_fault_of(found.socket.rpartition("/")[0])):
        advice = "Correct the folder; until then hooks start Python."
        yield Finding("pool", WARNING, f"a pool runs ({found.place}), and no hook uses it: {fault}", advice)
    elif found:
        figures: dict[str, float] = {} if found.memory is None else {"memory": found.memory}
        yield Finding("pool", OK, f"a pool runs: {found.place}", "", figures)
    elif pools:
        places = ", ".join(pool.place for pool in pools)
        others = "processes with other rights, another nice value or container"
        what = f"a pool runs for {others}: {places}; none for this process"
        advice = "Hooks start one for this process. If only a namespace or a security label differs, they are cold."
        yield Finding("pool", NOTE, what, advice)
    elif why := pool_start_failure(folder):
        advice = "Until one does, hooks start Python. To try it in a terminal:  tailhook pool serve"
        yield Finding("pool", WARNING, f"no pool starts: {why}", advice)
    elif may_hooks_start_pool() and (why := start_fault(folder)):
        what = f"no pool runs, and hooks can start none: {why}"
        yield Finding("pool", WARNING, what, "Until this is fixed, no hook is warm.")
    else:
        yield Finding("pool", OK, f"no pool runs now; {next_start(folder)}")
    try:
        times = read_times(folder)
    except OSError as error:
        yield Finding("pool", NOTE, describe(error), "Hooks work without this file.")
        return
    intended = {bytes([REASON_OFF])} | (set() if may_hooks_start_pool() else {bytes([REASON_NO_POOL])})
    for event, records in ((event, found) for event, found in times.items() if found):
        yield describe_hooks(event, [(duration / 1e6, way) for _, duration, way in records], intended)


def describe_hooks(event: str, hooks: Sequence[tuple[float, bytes]], intended: Set[bytes] = frozenset()) -> Finding:
    """Return how many hooks of an event were warm or cold, and how long they took.

    hooks: the milliseconds of each, and whether it was warm or why it was cold.
    intended: the reasons that the user has chosen; cold hooks with one of them are expected.
    """
    warm = sorted(duration for duration, way in hooks if way == WARM)
    cold = sorted(duration for duration, way in hooks if way != WARM)
    parts = [describe_times(title, times) for title, times in (("warm", warm), ("cold", cold)) if times]
    why = Counter(REASONS.get(way, "unknown") for _, way in hooks if way != WARM)
    if why:
        parts[-1] += f" ({', '.join(f'{reason}: {count}' for reason, count in why.most_common())})"
    last = f"the last {len(hooks)} {event} hooks" if len(hooks) > 1 else f"the last {event} hook"
    what = f"{last}: {'; '.join(parts) if len(hooks) > 1 else parts[0].removeprefix('1 ')}"
    figures: dict[str, float] = {"warm": len(warm), "cold": len(cold)}
    figures |= {} if not warm else {"warm_median_ms": statistics.median(warm), "warm_p99_ms": p99_of(warm)}
    figures |= {} if not cold else {"cold_median_ms": statistics.median(cold), "cold_p99_ms": p99_of(cold)}
    unintended = sum(way != WARM and way not in intended for _, way in hooks)
    if len(hooks) >= MANY and unintended > FEW * len(hooks):
        advice = "To see whether a pool runs, and why not:  tailhook pool status"
        return Finding("pool", WARNING, what, advice, figures)
    slowest = max(duration for duration, _ in hooks)
    if slowest > SLOW_HOOK_MS:
        what += f"; the slowest took {slowest / 1000:.1f} s, and a host ends a hook after 10 s"
        advice = (
            "Was the computer busy or asleep then? If it happens again, look for a slow file system, or a large store."
        )
        return Finding("pool", WARNING, what, advice, figures)
    return Finding("pool", OK, what, "", figures)


def describe_times(title: str, times: Sequence[float]) -> str:
    """Return the number of hooks of a kind, with the median and the 99th percentile of their times.

    title: the kind.
    times: sorted, in milliseconds.
    """
    if len(times) == 1:
        return f"1 {title}, {times[0]:.1f} ms"
    return f"{len(times)} {title}, median {statistics.median(times):.1f} ms, p99 {p99_of(times):.1f} ms"


def p99_of(times: Sequence[float]) -> float:
    """Return the 99th percentile: the time that 1 of 100 exceeds.  times: sorted."""
    return times[-(-len(times) * 99 // 100) - 1]
