"""The anatomy of a transcript as an SVG picture: bytes over time, what happened when, and the kinds of records."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tailhook.pictures.anatomy import EVENT_NAMES, RECORD_KINDS, Anatomy
from tailhook.pictures.axis import (
    Axis,
    Tick,
    format_bytes,
    format_duration,
    format_rate,
    format_step,
    format_time,
    make_axis,
    place_ticks,
)
from tailhook.pictures.chosen_message import count_of
from tailhook.pictures.markup import FONT, escape, plain_style

WIDE_PX = 960
BARS_PX = 150  # height of the largest bar
LANE_PX = 26
CELL_PX = 12.0  # nearer events share a symbol
MAX_SYMBOLS = 24  # in a lane; more events are drawn as bars
MAX_TYPES = 5  # of other records with a line each; the last line is for the rest
TYPE_PX = 15  # height of such a line
LETTER_PX = 6.6  # at most, on average, of a label
PICTURE_STYLE = f"""
svg.anatomy{{background:var(--card);font-family:{FONT};font-size:12px;}}
.anatomy .back{{fill:var(--card);}}
.anatomy text{{fill:var(--ink);}}
.anatomy .faint{{fill:var(--faint);}}
.anatomy .small{{font-size:11px;}}
.anatomy .title{{font-size:17px;font-weight:700;}}
.anatomy .head{{font-weight:600;}}
.anatomy .end{{text-anchor:end;}}
.anatomy .grid{{stroke:var(--grid);}}
.anatomy .rail{{fill:var(--grid);}}
.anatomy .over{{paint-order:stroke;stroke:var(--card);stroke-width:3px;}}
.anatomy .base{{stroke:var(--line);}}
.anatomy .pause{{stroke:var(--faint);stroke-dasharray:1 3;}}
.anatomy .compacted{{stroke:var(--summary);stroke-dasharray:4 3;stroke-width:1.5;}}
.anatomy .hit{{fill:var(--ink);fill-opacity:0;}}
.anatomy .hit:hover{{fill-opacity:.08;}}
.anatomy .prompts{{fill:var(--person);}}
.anatomy .tools{{fill:var(--call);}}
.anatomy .compactions{{fill:var(--summary);}}
.anatomy .signals{{fill:var(--good);}}
"""
KIND_STYLE = "".join(f".anatomy .{kind}{{fill:var(--{kind});}}\n" for kind in RECORD_KINDS)
# The shape of an event, around a point; tool calls are bars.
SYMBOLS = {
    "prompts": "M{x} {y}m-5 -5l10 5l-10 5z",
    "compactions": "M{x} {y}m0 -6l6 6l-6 6l-6 -6z",
    "signals": "M{x} {y}m-5.5 0a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0 -11 0z",
}


class Frame(NamedTuple):
    """The places of things: pixels from the left."""

    width: float
    pad: float
    left: float  # of the axis
    right: float
    is_narrow: bool


def make_frame(width: float) -> Frame:
    """Return the places of a picture of this width."""
    if width < 600:
        return Frame(width, 14, 14, width - 14, True)
    return Frame(width, 28, 196, width - 158, False)


def draw_anatomy(anatomy: Anatomy, name: str, width: float, prefix: str, has_head: bool) -> str:
    """Return the picture.

    name: of the transcript.
    width: in pixels; under 600, the labels are above their things.
    prefix: of the ids in it, and a class.
    has_head: whether the transcript's name and facts are in it.
    """
    frame = make_frame(width)
    is_time = bool(anatomy.times.counts)
    buckets = anatomy.times if is_time else anatomy.offsets
    axis = make_axis(buckets, is_time, frame.left, frame.right - frame.left)
    parts: list[str] = []
    y = frame.pad + 16
    if has_head:
        parts += draw_head(anatomy, name, frame, y)
        y += 34 + 18 * len(list(wrap_head(anatomy, frame)))
    parts.append(text(frame.pad, y, format_rate(axis), "head"))
    bars_top = y + 14
    bars_bottom = bars_top + BARS_PX
    lanes_top = bars_bottom + (40 if is_time else 26)
    lanes_bottom = lanes_top + len(EVENT_NAMES) * (LANE_PX + (16 if frame.is_narrow else 0))
    parts += draw_bars(axis, frame, bars_top)
    parts += draw_compactions(axis, bars_top, bars_bottom)
    parts += draw_ticks(place_ticks(axis, frame.right, 74), bars_bottom)
    parts += draw_lanes(axis, anatomy, frame, lanes_top)
    parts += draw_pauses(axis, frame, (bars_top, bars_bottom), (lanes_top, lanes_bottom))
    y = lanes_bottom + 26
    parts.append(text(frame.pad, y, "Kinds of records, each to its own scale", "head"))
    y += 12
    for kind, size in anatomy.bytes_by_kind.items():
        parts += draw_kind(axis, anatomy, kind, size, frame, y)
        y += 50 if frame.is_narrow else 36
        if kind == "other" and len(anatomy.types) > 1:
            parts += draw_types(anatomy, frame, y)
            y += TYPE_PX * min(len(anatomy.types), MAX_TYPES) + 6
    height = y + 8
    described = escape(describe_anatomy(anatomy, name))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" class="anatomy {prefix}" role="img" width="{number(width)}" \
height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}" \
aria-labelledby="{prefix}-title {prefix}-desc">
<title id="{prefix}-title">The anatomy of {escape(name)}</title>
<desc id="{prefix}-desc">{described}</desc>
{chr(10).join(parts)}
</svg>
"""


def anatomy_file(anatomy: Anatomy, name: str) -> str:
    """Return the picture as a file of its own."""
    picture = draw_anatomy(anatomy, name, WIDE_PX, "picture", True)
    begin = picture.index("\n<title")
    style = f"<style>{plain_style(PICTURE_STYLE + KIND_STYLE)}</style>"
    back = '<rect class="back" width="100%" height="100%"/>'  # not every program draws an element's background
    return f"{picture[:begin]}\n{style}\n{back}{picture[begin:]}"


# ---- words -------------------------------------------------------------------


def list_anatomy_facts(anatomy: Anatomy) -> list[str]:
    """Return the facts about the whole transcript."""
    broken = anatomy.records_by_kind.get("broken", 0)
    facts = [anatomy.host, f"{format_bytes(anatomy.size)} in {count_of(anatomy.records - broken, 'record')}"]
    if broken:
        facts.append(count_of(broken, "broken line"))
    if anatomy.start is not None and anatomy.end is not None:
        start, end = (time.isoformat(" ")[:16] for time in (anatomy.start, anatomy.end))
        facts.append(f"{start} to {end[11:] if start[:10] == end[:10] else end} UTC")
        facts.append(format_duration((anatomy.end - anatomy.start).total_seconds()))
    else:
        facts.append("no record has a time")
    return facts


def describe_anatomy(anatomy: Anatomy, name: str) -> str:
    """Return a description of the picture in words."""
    shares = ", ".join(
        f"{RECORD_KINDS[kind]} {format_bytes(size)} ({format_share(size, anatomy.size)})"
        for kind, size in anatomy.bytes_by_kind.items()
    )
    events = ", ".join(f"{EVENT_NAMES[event]} {count:,}" for event, count in anatomy.events.items())
    return f"{name}: {', '.join(list_anatomy_facts(anatomy))}. {events}. By kind: {shares}."


def format_share(size: int, whole: int) -> str:
    """Return a share in percent.

    >>> format_share(1, 3), format_share(1, 100_000), format_share(0, 5)
    ('33 %', '< 1 %', '0 %')
    """
    share = 100 * size / whole if whole else 0
    return f"{share:.0f} %" if share >= 0.5 or not size else "< 1 %"


def draw_head(anatomy: Anatomy, name: str, frame: Frame, y: float) -> Iterator[str]:
    """Yield the transcript's name and facts."""
    yield text(frame.pad, y, clip_words(name, frame.width - 2 * frame.pad, 10.0), "title")
    for words in wrap_head(anatomy, frame):
        y += 18
        yield text(frame.pad, y, words, "faint")


def wrap_head(anatomy: Anatomy, frame: Frame) -> Iterator[str]:
    """Yield the lines of the facts."""
    return wrap_facts(list_anatomy_facts(anatomy), (frame.width - 2 * frame.pad) / LETTER_PX)


def wrap_facts(facts: list[str], letters: float) -> Iterator[str]:
    """Yield lines of facts, of at most so many letters unless one fact is longer."""
    line = ""
    for fact in facts:
        if line and len(line) + 3 + len(fact) > letters:
            yield line
            line = fact
        else:
            line = f"{line} · {fact}" if line else fact
    yield line


def clip_words(words: str, room: float, letter: float = LETTER_PX) -> str:
    """Return words that fit in so many pixels; an ellipsis replaces a cut-off end.

    letter: the width of a letter, in pixels.
    """
    letters = max(int(room / letter), 1)
    return words if len(words) <= letters else f"{words[: letters - 1]}…"


def number(pixels: float) -> str:
    """Return a number of pixels, with one digit behind the point at most."""
    return f"{pixels:.1f}".removesuffix(".0")


def text(x: float, y: float, words: str, style: str = "") -> str:
    """Return a text element."""
    return f'<text x="{number(x)}" y="{number(y)}" class="{style}">{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    """Return a line element."""
    return f'<line x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}" class="{style}"/>'


def box(style: str, x: float, y: float, width: float, height: float, corner: float = 0) -> str:
    """Return a rectangle.  corner: its radius."""
    size = f'width="{number(width)}" height="{number(height)}"'
    return f'<rect class="{style}" x="{number(x)}" y="{number(y)}" {size} rx="{number(corner)}"/>'


# ---- bytes over time ---------------------------------------------------------


def cell_bytes(cell: Counter[str]) -> int:
    """Return the number of bytes in a step of the axis."""
    return sum(count for key, count in cell.items() if key.startswith("bytes "))


def draw_bars(axis: Axis, frame: Frame, top: float) -> Iterator[str]:
    """Yield the bars of all kinds, one on the other, with a scale."""
    largest = max(map(cell_bytes, axis.cells.values())) or 1
    step = nice_step(largest / 3)
    most = -(-largest // step) * step  # the axis ends at a labelled line above all bars
    bottom = top + BARS_PX
    labels = []  # in a narrow picture, over the bars
    for value in range(step, most + 1, step):
        y = bottom - value / most * BARS_PX
        yield line(frame.left, y, frame.right, y, "grid")
        if frame.is_narrow:
            labels.append(text(frame.right, y - 3, format_bytes(value), "faint small end over"))
        else:
            yield text(frame.left - 8, y + 4, format_bytes(value), "faint small end")
    yield line(frame.left, bottom, frame.right, bottom, "base")
    stacked = dict.fromkeys(axis.cells, 0)
    for kind in RECORD_KINDS:
        shapes = []
        for cell, counts in sorted(axis.cells.items()):
            if size := counts[f"bytes {kind}"]:
                before = stacked[cell]
                stacked[cell] += size
                y = bottom - stacked[cell] / most * BARS_PX
                shapes.append(bar(axis, cell, y, bottom - before / most * BARS_PX - y))
        if shapes:
            yield f'<path class="{kind}" d="{"".join(shapes)}"/>'
    yield from labels
    for cell, counts in sorted(axis.cells.items()):
        words = escape(describe_cell(axis, cell, counts))
        yield f"<g>{box('hit', axis.x(cell), top, axis.width, BARS_PX)}<title>{words}</title></g>"


def bar(axis: Axis, cell: int, y: float, height: float) -> str:
    """Return the path of a bar in a step of the axis, with a narrow gap beside it."""
    width = axis.width - min(axis.width * 0.2, 1)
    return f"M{number(axis.x(cell))} {y:.2f}h{number(width)}v{height:.2f}h-{number(width)}z"


def describe_cell(axis: Axis, cell: int, counts: Counter[str]) -> str:
    """Return a description of a step of the axis in words."""
    if axis.is_time:
        begin = f"{format_time(cell * axis.step)} UTC, {format_step(axis)}"
    else:
        begin = f"from {format_bytes(cell * axis.step)}"
    parts = [
        f"{RECORD_KINDS[kind]} {format_bytes(counts[f'bytes {kind}'])}"
        for kind in RECORD_KINDS
        if counts[f"bytes {kind}"]
    ]
    parts += [f"{words} {counts[event]:,}" for event, words in EVENT_NAMES.items() if counts[event]]
    return f"{begin}: {format_bytes(cell_bytes(counts))}: {', '.join(parts)}"


def nice_step(value: float) -> int:
    """Return the next number of 1, 2 or 5 times a power of ten.

    >>> nice_step(30), nice_step(500), nice_step(0.2)
    (50, 500, 1)
    """
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power >= value:
                return digit * power
        power *= 10


def draw_ticks(ticks: list[Tick], y: float) -> Iterator[str]:
    """Yield the labels of the axis."""
    for tick in ticks:
        x, style = (tick.x - 4, "faint small end") if tick.is_left else (tick.x + 4, "faint small")
        yield line(tick.x, y, tick.x, y + 14, "base")
        yield text(x, y + 14, tick.label, style)
        if tick.date:
            yield text(x, y + 27, tick.date, style)


def draw_pauses(axis: Axis, frame: Frame, bars: tuple[float, float], lanes: tuple[float, float]) -> Iterator[str]:
    """Yield dotted lines for each cut-out pause.

    bars, lanes: top and bottom of the crossed areas; the labels between them stay free.
    """
    pauses = list(axis.pauses())
    for x, end, after in pauses:
        words = escape(f"A pause of {format_duration((after - end) * axis.step)} is cut out")
        lines = "".join(line(x, top, x, bottom, "pause") for top, bottom in (bars, lanes))
        yield f"<g>{lines}<title>{words}</title></g>"
    if pauses:
        words = "1 pause is cut out" if len(pauses) == 1 else f"{len(pauses):,} pauses are cut out"
        yield text(frame.right, bars[0] - 14, f"{words} (dotted)", "faint small end")


# ---- events ------------------------------------------------------------------


def draw_lanes(axis: Axis, anatomy: Anatomy, frame: Frame, top: float) -> Iterator[str]:
    """Yield a lane for each kind of event, with its count."""
    for event, words in EVENT_NAMES.items():
        if frame.is_narrow:
            top += 16
            yield text(frame.pad, top - 2, words, "small")
            yield text(frame.right, top - 2, f"{anatomy.events[event]:,}", "small end")
        else:
            yield text(frame.pad + 20, top + 17, words)
            yield text(frame.right + 68, top + 17, f"{anatomy.events[event]:,}", "end")
            symbol = SYMBOLS.get(event, "M{x} {y}m-5 6v-7h3v7zM{x} {y}m-1 6v-12h3v12zM{x} {y}m3 6v-4h3v4z")
            yield f'<path class="{event}" d="{symbol.format(x=number(frame.pad + 6), y=number(top + 13))}"/>'
        bottom = top + LANE_PX - 4
        yield line(frame.left, bottom, frame.right, bottom, "base")
        if event == "tools":
            yield from draw_strip(axis, event, event, bottom, LANE_PX - 8)
        else:
            yield from draw_symbols(axis, frame, event, bottom)
        top += LANE_PX


def draw_symbols(axis: Axis, frame: Frame, event: str, bottom: float) -> Iterator[str]:
    """Yield the symbols of an event, one for several that would overlap; bars if there are too many."""
    groups: list[tuple[int, int]] = []  # the first step of each symbol, and the number of its events
    for cell, counts in sorted(axis.cells.items()):
        if counts[event]:
            first, count = groups[-1] if groups else (cell, 0)
            if count and axis.x(cell) - axis.x(first) < CELL_PX + number_room(count):
                groups[-1] = (first, count + counts[event])
            else:
                groups.append((cell, counts[event]))
    if len(groups) > MAX_SYMBOLS:
        yield from draw_strip(axis, event, event, bottom, LANE_PX - 8)
        return
    for first, count in groups:
        yield draw_symbol(axis, event, first, count, bottom - 9)
        if count > 1:
            x = axis.x(first) + axis.width / 2
            is_left = x + 8 + number_room(count) > frame.width - frame.pad
            style = "faint small over end" if is_left else "faint small over"
            yield text(x - 8 if is_left else x + 8, bottom - 5, f"{count:,}", style)


def number_room(count: int) -> float:
    """Return the width in pixels of the number beside a symbol. A symbol for one event has no number."""
    return LETTER_PX * len(f"{count:,}") + 2 if count > 1 else 0


def draw_symbol(axis: Axis, event: str, cell: int, count: int, y: float) -> str:
    """Return the symbol of events from a step of the axis on.  count: how many events."""
    x = axis.x(cell) + axis.width / 2
    place = f"{format_time(cell * axis.step)} UTC" if axis.is_time else format_bytes(cell * axis.step)
    words = escape(f"{place}: {EVENT_NAMES[event]} {count:,}")
    shape = SYMBOLS[event].format(x=number(x), y=number(y))
    return f'<path class="{event}" d="{shape}"><title>{words}</title></path>'


def draw_compactions(axis: Axis, top: float, bottom: float) -> Iterator[str]:
    """Yield a line through the bars for each step with a compaction, unless there are too many."""
    places = [axis.x(cell) + axis.width / 2 for cell, counts in sorted(axis.cells.items()) if counts["compactions"]]
    for x in places if len(places) <= MAX_SYMBOLS else ():
        yield line(x, top, x, bottom, "compacted")


def draw_strip(axis: Axis, key: str, style: str, bottom: float, height: float) -> Iterator[str]:
    """Yield the bars of one count, to their own scale; the smallest is one pixel high.

    key: of the count.
    """
    most = max((counts[key] for counts in axis.cells.values()), default=0) or 1
    shapes = []
    for cell, counts in sorted(axis.cells.items()):
        if counts[key]:
            size = max(counts[key] / most * height, 1)
            shapes.append(bar(axis, cell, bottom - size, size))
    if shapes:
        yield f'<path class="{style}" d="{"".join(shapes)}"/>'


# ---- kinds -------------------------------------------------------------------


def draw_kind(axis: Axis, anatomy: Anatomy, kind: str, size: int, frame: Frame, top: float) -> Iterator[str]:
    """Yield one kind of records: its name, its bytes over time, its size and its share of the file."""
    share = size / anatomy.size if anatomy.size else 0
    count = anatomy.records_by_kind[kind]
    figures = count_of(count, "line" if kind == "broken" else "record") if count else ""
    if frame.is_narrow:
        words = f"{RECORD_KINDS[kind]}: {format_bytes(size)}, {format_share(size, anatomy.size)}"
        yield box(kind, frame.pad, top + 5, 10, 10, 2)
        yield text(frame.pad + 16, top + 14, words, "small")
        bottom = top + 42
    else:
        bottom = top + 30
        yield box(kind, frame.pad, top + 5, 12, 12, 2)
        yield text(frame.pad + 20, top + 15, RECORD_KINDS[kind])
        if figures:
            yield text(frame.pad + 20, top + 29, clip_words(figures, frame.left - frame.pad - 28, 6.2), "faint small")
        yield text(frame.right + 68, top + 15, format_bytes(size), "end")
        yield text(frame.width - frame.pad, top + 15, format_share(size, anatomy.size), "end")
        room = frame.width - frame.pad - frame.right - 14
        x = frame.right + 14
        yield box("rail", x, top + 22, room, 6, 3)
        yield box(kind, x, top + 22, max(share * room, 1), 6, 3)
    yield line(frame.left, bottom, frame.right, bottom, "base")
    yield from draw_strip(axis, f"bytes {kind}", kind, bottom, 24)


def draw_types(anatomy: Anatomy, frame: Frame, top: float) -> Iterator[str]:
    """Yield a line for each of the largest types of other records: its name, its size and its share of the file."""
    types = list(anatomy.types.items())
    if len(types) > MAX_TYPES:
        left = types[MAX_TYPES - 1 :]
        types[MAX_TYPES - 1 :] = [(f"{len(left):,} more types", sum(size for _, size in left))]
    for name, size in types:
        top += TYPE_PX
        figures = f"{format_bytes(size)}, {format_share(size, anatomy.size)}"
        room = frame.width - 2 * frame.pad - 40 - LETTER_PX * len(figures)
        yield text(frame.pad + 20, top, clip_words(name, room), "faint small")
        yield text(frame.width - frame.pad, top, figures, "faint small end")
