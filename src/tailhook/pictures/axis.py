"""An axis of time, or of a file's bytes: equal, round steps, and breaks for long pauses."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import pairwise
from typing import NamedTuple

from tailhook.pictures.anatomy import Buckets
from tailhook.transcripts.records import EPOCH

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400
# Steps of time in seconds, each a multiple of an earlier one.
TIME_STEPS_S = (
    *(1, 2, 5, 10, 15, 30),
    *(MINUTE_S * count for count in (1, 2, 5, 10, 15, 30)),
    *(HOUR_S * count for count in (1, 2, 3, 6, 12)),
    *(DAY_S * count for count in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)),
)
BYTE_STEPS = tuple(digit * 10**power for power in range(2, 19) for digit in (1, 2, 5))
MIN_PAUSE_S = 600  # a shorter pause is never cut out
MIN_PAUSE_SHARE = 0.1  # of the time without pauses: a shorter pause is not cut out, either
MIN_PAUSE_STEPS = 3
MIN_STEP_PX, MAX_STEP_PX = 5.0, 24.0
MIN_PAUSE_PX, MAX_PAUSE_PX = 2.0, 12.0
MAX_PAUSES_SHARE = 0.2  # of the axis


class Stretch(NamedTuple):
    """Steps without a pause between them.

    first: the number of the first step: its beginning divided by the step.
    steps: how many.
    left: pixels.
    """

    first: int
    steps: int
    left: float


class Axis(NamedTuple):
    """The places of the steps.

    step: seconds, or bytes of the file.
    width: of a step, in pixels.
    cells: the contents of each step that is not empty, by its number.
    """

    is_time: bool
    step: int
    width: float
    stretches: list[Stretch]
    cells: dict[int, Counter[str]]

    def x(self, number: float) -> float:
        """Return the start of a step of the axis, in pixels."""
        place = max(bisect_right(self.stretches, number, key=lambda one: one.first) - 1, 0)
        stretch = self.stretches[place]
        return stretch.left + (number - stretch.first) * self.width

    def pauses(self) -> Iterator[tuple[float, int, int]]:
        """Yield each cut-out pause: the pixel in its middle, the step before it and the step after it."""
        for before, after in pairwise(self.stretches):
            end = before.first + before.steps
            yield (before.left + before.steps * self.width + after.left) / 2, end, after.first


def make_axis(buckets: Buckets, is_time: bool, left: float, width: float) -> Axis:
    """Return the axis with the smallest steps that fit.

    buckets: with at least one.
    left, width: of the axis, in pixels.
    """
    found = buckets.sorted()
    pauses = (min(after - place, MIN_PAUSE_S) for (place, _), (after, _) in pairwise(found))
    shortest = max(MIN_PAUSE_S, MIN_PAUSE_SHARE * sum(pauses)) if is_time else math.inf
    steps = [step for step in (TIME_STEPS_S if is_time else BYTE_STEPS) if step >= buckets.width]
    axes = (lay_out(found, is_time, step, shortest, left, width) for step in steps)
    return next(axis for axis in axes if axis.width >= MIN_STEP_PX)


def lay_out(
    found: list[tuple[float, Counter[str]]], is_time: bool, step: int, shortest: float, left: float, width: float
) -> Axis:
    """Return the axis with steps of this size.

    found: the sorted buckets.
    shortest: the shortest cut-out pause, in seconds.
    left, width: of the axis, in pixels.
    """
    cells: dict[int, Counter[str]] = {}
    for place, counts in found:
        cells.setdefault(int(place // step), Counter()).update(counts)
    stretches = find_stretches(sorted(cells), max(shortest / step, MIN_PAUSE_STEPS))
    breaks = len(stretches) - 1
    pause_px = max(min(MAX_PAUSES_SHARE * width / max(breaks, 1), MAX_PAUSE_PX), MIN_PAUSE_PX)
    step_px = min((width - pause_px * breaks) / sum(stretch.steps for stretch in stretches), MAX_STEP_PX)
    placed = []
    for stretch in stretches:
        placed.append(stretch._replace(left=left))
        left += stretch.steps * step_px + pause_px
    return Axis(is_time, step, step_px, placed, cells)


def find_stretches(numbers: list[int], pause: float) -> list[Stretch]:
    """Return the stretches between long pauses.

    numbers: of the steps that are not empty, sorted.
    pause: the number of empty steps to cut out.

    >>> find_stretches([3, 4, 9], 4)
    [Stretch(first=3, steps=2, left=0), Stretch(first=9, steps=1, left=0)]
    """
    stretches = [Stretch(numbers[0], 1, 0)]
    for number in numbers[1:]:
        last = stretches[-1]
        if number - last.first - last.steps >= pause:
            stretches.append(Stretch(number, 1, 0))
        else:
            stretches[-1] = last._replace(steps=number - last.first + 1)
    return stretches


class Tick(NamedTuple):
    """A label of an axis.

    x: pixels.
    date: on a second line, "" if it equals the previous one.
    is_left: whether the label is to the left of the tick, because it has no room to the right.
    """

    x: float
    label: str
    date: str
    is_left: bool


def place_ticks(axis: Axis, right: float, room: float) -> list[Tick]:
    """Return ticks with labels that do not overlap.

    They are at round numbers. A stretch without such a tick has one at its beginning, if there is room; the last
    stretch always has one.

    right: the limit for the end of the last label. room: for a label. Both in pixels.
    """
    steps = TIME_STEPS_S if axis.is_time else BYTE_STEPS
    fitting = (one for one in steps if one % axis.step == 0 and one / axis.step * axis.width >= room)
    tick = next(fitting, steps[-1]) // axis.step or 1
    chosen: dict[int, float] = {}  # the start of each tick's label

    def choose(numbers: Iterable[int]) -> bool:
        before = len(chosen)
        for number in numbers:
            x = axis.x(number)
            if x + room <= right and all(abs(x - other) >= room for other in chosen.values()):
                chosen[number] = x
        return len(chosen) > before

    *others, last = axis.stretches
    if others and not choose(round_numbers(last, tick)[:1]) and not choose([last.first]):
        chosen[last.first] = axis.x(last.first) - room
    unlabelled = [stretch for stretch in others if not choose(round_numbers(stretch, tick))]
    if not choose(round_numbers(last, tick)) and not others:
        unlabelled.append(last)
    choose(stretch.first for stretch in unlabelled)
    if not chosen:
        chosen[axis.stretches[0].first] = axis.stretches[0].left
    ticks: list[Tick] = []
    shown = ""
    for number in sorted(chosen):
        label, date = format_tick(axis, number, tick * axis.step)
        x = axis.x(number)
        ticks.append(Tick(x, label, date if date != shown else "", chosen[number] < x))
        shown = date
    return ticks


def round_numbers(stretch: Stretch, tick: int) -> range:
    """Return the steps of a stretch that are multiples of a number of steps."""
    return range(-(-stretch.first // tick) * tick, stretch.first + stretch.steps, tick)


def format_tick(axis: Axis, number: int, tick: int) -> tuple[str, str]:
    """Return the label of a tick, and its date.  tick: seconds or bytes from one to the next."""
    if not axis.is_time:
        return format_bytes(number * axis.step), ""
    date, time = format_time(number * axis.step).split(" ")
    if axis.step >= DAY_S:
        return date, ""
    return time if axis.step < MINUTE_S and tick < MINUTE_S else time[:5], date


def format_time(seconds: float) -> str:
    """Return a Unix time in UTC, to the second.

    >>> format_time(1793610840)
    '2026-11-02 09:14:00'
    """
    try:
        return (EPOCH + timedelta(seconds=int(seconds))).isoformat(" ")[:19]
    except OverflowError:
        return "9999-12-31 24:00:00"


def format_rate(axis: Axis) -> str:
    """Return the title of the bars: the part of the axis for each of them.

    >>> format_rate(Axis(True, 60, 4.0, [], {})), format_rate(Axis(True, 1800, 4.0, [], {}))
    ('Bytes per minute', 'Bytes per 30 min')
    >>> format_rate(Axis(False, 500, 4.0, [], {}))
    'Bytes by place in the file, one bar per 500 B'
    """
    if not axis.is_time:
        return f"Bytes by place in the file, one bar per {format_step(axis)}"
    units = {1: "second", MINUTE_S: "minute", HOUR_S: "hour", DAY_S: "day"}
    return f"Bytes per {units.get(axis.step) or format_step(axis)}"


def format_step(axis: Axis) -> str:
    """Return the size of a step of an axis in words.

    >>> format_step(Axis(True, 1800, 4.0, [], {}))
    '30 min'
    """
    return format_duration(axis.step) if axis.is_time else format_bytes(axis.step)


def format_duration(seconds: float) -> str:
    """Return a duration by its two largest units.

    >>> format_duration(5), format_duration(3900), format_duration(172800)
    ('5 s', '1 h 5 min', '2 d')
    """
    parts: list[str] = []
    rest = int(seconds)
    for size, unit in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min"), (1, "s")):
        count, rest = divmod(rest, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count:,} {unit}")
        elif parts:
            break
    return " ".join(parts[:2])


def format_bytes(size: float) -> str:
    """Return a size with three digits.

    >>> format_bytes(999), format_bytes(1000), format_bytes(43210), format_bytes(1234567)
    ('999 B', '1 kB', '43.2 kB', '1.23 MB')
    """
    units = ["TB", "GB", "MB", "kB", "B"]
    while size >= 999.5 and len(units) > 1:
        size /= 1000
        units.pop()
    places = 0 if size >= 99.95 or units[-1] == "B" else 1 if size >= 9.995 else 2
    digits = f"{size:,.{places}f}"
    return f"{digits.rstrip('0').rstrip('.') if places else digits} {units[-1]}"
