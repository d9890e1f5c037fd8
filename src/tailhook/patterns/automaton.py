"""From pattern strings to the one table of the core's automaton.

Three steps, each a section below:

1. a pattern is folded by its set's options, and an *anchor* is chosen in it: a part with few spellings in bytes. A
   plain pattern is its own anchor;
2. the spellings of all anchors, the *literals*, become an Aho-Corasick automaton, as one dense table: a row a
   state, a column a class of bytes that are alike for all literals;
3. a window of up to six bytes of each literal goes into one of eight or sixteen *buckets*: with them the SIMD prefilter
   finds the possible places of literals.

The build runs this too, for the core's own sets (ext/tables.py); so nothing here may import the core. The layout of the
table is that of `tailhook_table` in ext/patterns/automaton.h.
"""

from __future__ import annotations

from array import array
from functools import cache, reduce
from itertools import product
from math import prod
from operator import or_
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

MAGIC = 0x74616231
CELL_LIMIT = 1 << 28  # of 4 bytes each: 1 GiB
NO_CLASS = 2  # columns of a row besides the classes: the state's depth and its first output


def compile_table(
    patterns: Sequence[tuple[int, str]], *, ignore_case: bool, word: bool, thorough: bool = False
) -> bytes:
    """Return the table of `patterns`: pairs of a name's number and the text to find.

    thorough: spend three times as long on a large set. The search is then 2 to 7 % faster, as the build wants it.
    Raises ValueError for an empty pattern, for a blank pattern if `word` is true (blank space then has no length), and
    for a set with a table of more than 1 GiB.
    """
    pieces: dict[str, tuple[int, int, list[bytes]]] = {}
    literals: dict[bytes, list[tuple[int, int]]] = {}
    texts, rows = bytearray(), array("I")
    for name, pattern in dict.fromkeys((name, normalize(text, ignore_case, word)) for name, text in patterns):
        start, end, spelled = pieces.get(pattern) or pieces.setdefault(pattern, anchor(pattern, ignore_case, word))
        text = encode_text(pattern)
        for literal in spelled:
            literals.setdefault(literal, []).append((len(rows) // 5, len(literal)))
        rows.extend((len(texts), len(text), start, end, name))
        texts += text
    automaton = flatten(literals, ignore_case)
    buckets = prefilter(literals, ignore_case, thorough)
    texts += bytes(-len(texts) % 4)
    cells = automaton.cells.tobytes()
    head = array(
        "I", (MAGIC, 0, ASCII_CASE if ignore_case else 0, word, automaton.wide, automaton.stride, len(automaton.cells))
    )
    head.extend((len(automaton.outputs) // 3, len(rows) // 5, len(texts)))
    head.extend((buckets.groups, buckets.reach, buckets.hashed, len(buckets.checks) // 5))
    sections = (
        *(automaton.classes, buckets.nibbles, buckets.slots, buckets.checks),
        *(rows, automaton.outputs, texts, cells + bytes(-len(cells) % 4)),
    )
    head[1] = len(head) + sum(memoryview(section).nbytes for section in sections) // 4
    return b"".join((head, *sections))


# ---- patterns: folding and anchors --------------------------------------------
#
# For `re.IGNORECASE`, an ASCII letter equals that letter in both cases and, for three letters, also letters of two or
# three bytes. A pattern is folded once, here. The text is folded during reading, because offsets are into the original.
# The automaton does not fold letters of several bytes: in the anchor all their spellings are listed, and in the rest of
# the pattern they are compared letter by letter (ext/patterns/automaton.pxi).

FOLDED = {"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"}
SPELLINGS = {letter: [letter, *(other for other in FOLDED if FOLDED[other] == letter)] for letter in "isk"}
FOLD = str.maketrans(FOLDED | {chr(upper): chr(upper + 32) for upper in range(ord("A"), ord("Z") + 1)})
MAX_SPELLINGS = 6


def encode_text(text: str) -> bytes:
    """Return a text in UTF-8; a lone surrogate is three bytes."""
    return text.encode("utf-8", "surrogatepass")


def normalize(pattern: str, ignore_case: bool, word: bool) -> str:
    """Return `pattern` in folded letters and, for `word`, with one space for each run of blank space."""
    if not pattern:
        raise ValueError("a pattern is empty: it would match everywhere")
    if word:
        if pattern.isspace():
            raise ValueError(f"the pattern {pattern!r} is blank: with word=True blank space has no length of its own")
        inner = " ".join(pattern.split())
        pattern = (" " if pattern[0].isspace() else "") + inner + (" " if pattern[-1].isspace() else "")
    return pattern.translate(FOLD) if ignore_case else pattern


def anchor(pattern: str, ignore_case: bool, word: bool) -> tuple[int, int, list[bytes]]:
    """Return the anchor's place in the pattern's bytes (start, end), and its spellings."""
    anchors = list(anchor_spans(pattern, ignore_case, word))
    start, end = anchors[0]
    if len(anchors) > 1:
        start, end = min(anchors, key=lambda span: likelihood(encode_text(pattern[slice(*span)])))
    letters = [SPELLINGS.get(letter, letter) if ignore_case else letter for letter in pattern[start:end]]
    before = len(encode_text(pattern[:start]))
    return (
        before,
        before + len(encode_text(pattern[start:end])),
        [encode_text("".join(way)) for way in product(*letters)],
    )


def anchor_spans(pattern: str, ignore_case: bool, word: bool) -> Iterator[tuple[int, int]]:
    """Yield each possible anchor's place: the longest parts without blank space (`word`) and with few spellings."""
    start, ways = 0, 1
    for at, letter in enumerate(pattern):
        blank = word and letter == " "
        more = len(SPELLINGS.get(letter, letter)) if ignore_case else 1
        if start < at and (blank or ways * more > MAX_SPELLINGS):
            yield start, at
        if blank:
            start, ways = at + 1, 1
            continue
        ways *= more
        while ways > MAX_SPELLINGS:
            ways //= len(SPELLINGS.get(pattern[start], " "))
            start += 1
    if start < len(pattern):
        yield start, len(pattern)


# ---- the automaton, flattened ---------------------------------------------------
#
# A cell holds the number of its row's first cell, so that a step is one addition and one load. Two more cells end each
# row: the length of the state's literal prefix, and the first output. Outputs are a linked list, because a state shares
# the outputs of its fallback state.


class FlatAutomaton(NamedTuple):
    classes: bytes
    stride: int
    wide: bool  # cells of 32 bits, not 16
    outputs: array[int]
    cells: array[int]


def flatten(literals: Mapping[bytes, Iterable[tuple[int, int]]], ignore_case: bool) -> FlatAutomaton:
    """Return the automaton of `literals`, each with its outputs: (number of a pattern, length of the literal)."""
    used = sorted(set().union(*literals))
    stride = len(used) + 1 + NO_CLASS
    children = grow_trie(literals)
    states = len(children)
    if states * stride > CELL_LIMIT:
        raise ValueError(
            f"{len(literals)} literals need a table of {states * stride >> 18} MiB, more than 1024: "
            "split the set, or use shorter patterns"
        )
    column = {byte: number for number, byte in enumerate(used, 1)}
    classes = bytearray(column.get(byte, 0) for byte in range(256))
    if ignore_case:
        classes[ord("A") : ord("Z") + 1] = classes[ord("a") : ord("z") + 1]

    cells = array("I", bytes(4 * states * stride))
    view = memoryview(cells)
    row, fallback, order = [0] * states, [0] * states, [0]  # first cells: of a state, and of its fallback state
    for node in order:  # breadth first: the fallback state is shorter, so its row is there
        here, behind = row[node], fallback[node]
        view[here : here + stride - 2] = view[behind : behind + stride - 2]
        for byte, child in sorted(children[node].items()):
            step = here + column[byte]
            fallback[child] = cells[step]
            row[child] = cells[step] = len(order) * stride
            cells[row[child] + stride - 2] = cells[here + stride - 2] + 1
            order.append(child)

    ends: dict[int, bytes] = {}
    for literal in literals:
        state = 0
        for byte in literal:
            state = cells[state + column[byte]]
        ends[state] = literal
    outputs = array("I")
    for node in order:
        here, behind = row[node], fallback[node]
        cells[here + stride - 1] = cells[behind + stride - 1]
        for pattern, length in literals[ends[here]] if here in ends else ():
            outputs.extend((pattern, length, cells[here + stride - 1]))
            cells[here + stride - 1] = len(outputs) // 3
    wide = max(len(cells), len(outputs) // 3) > 0xFFFF
    if not wide:
        cells = array("H", cells)
    return FlatAutomaton(bytes(classes), stride, wide, outputs, cells)


def grow_trie(literals: Iterable[bytes]) -> list[dict[int, int]]:
    """Return the next states of each state of the trie of `literals`, by byte. State 0 is the root."""
    children: list[dict[int, int]] = [{}]
    for literal in literals:
        following = children[0]
        for byte in literal:
            if byte not in following:
                following[byte] = len(children)
                children.append({})
            following = children[following[byte]]
    return children


# ---- the prefilter ---------------------------------------------------------------
#
# A literal is searched by a window of its bytes. Windows go into buckets. For each place in a window and each half of a
# byte (nibble), a table has the buckets with a window that fits. Two shuffles and an AND look this up for 32 or 64
# bytes of text at once. A bucket also passes mixtures of its windows. So windows are chosen and grouped such that
# ordinary prose passes as rarely as possible, by the estimate of the model below. A window that passes is looked up by
# its hash, and eight bytes around it are compared with the common bytes of the literals with that hash.

BUCKETS = 8  # of a group
MAX_GROUPS = 2
WINDOW = 6  # bytes, at most
FEW_LITERALS = 32  # have one group of buckets and windows of four bytes
CHOSEN_AGAIN = 256  # up to so many literals choose their windows three times, more choose once
MAX_LITERALS = 600  # with more, the buckets are full: the automaton alone is faster
MAX_WINDOW_OFFSET = 8  # bytes from a literal's start to its window, at most: the automaton steps back so far
HASHED = 4  # bytes of a window, at most
HASH_BITS = 11
ASCII_CASE = 0x20202020
HASH_FACTOR = 0x9E3779B1
CHECK = 8
CHECK_BACK = 4
CHECK_NOTHING = (1, 0, 0, 0, 0)  # no text has these bytes under this mask

COMMON = b" etaoinsrhldcumfpgwybvk.,-'`_/:0SITAC1"  # of English prose about programs, the commonest first
SHARE = [0.0005] * 256
for _rank, _byte in enumerate(COMMON):
    SHARE[_byte] = max(0.11 * 0.9**_rank, 0.002)
# Triples of letters in English: the product of the letters' shares would make them far too rare.
COMMON_TRIPLES = frozenset(
    b"""
    the and ing ion tio ent ati for her ter hat tha ere ate con res ver all ons nce men ith ted ers pro thi wit are
    ess not ive was ect rea com eve per int est sta cti ica ist ear ain one our iti rat ill use out oun oul uld ack
    """.split()
)
TRIPLE_SHARE = 0.006


def independent_likelihood(literal: bytes) -> float:
    """Return the share of places in prose with this literal, if its bytes were independent."""
    return prod(SHARE[byte] for byte in literal)


def triple_likelihood(window: bytes) -> float:
    """Return how often this window occurs in prose, if it holds one of the commonest triples."""
    rest = (window[:at] + window[at + 3 :] for at in range(len(window) - 2) if window[at : at + 3] in COMMON_TRIPLES)
    return max((TRIPLE_SHARE * independent_likelihood(other) for other in rest), default=0.0)


def likelihood(literal: bytes) -> float:
    """Return the share of places in prose with this literal: the larger of two estimates."""
    return max(independent_likelihood(literal), triple_likelihood(literal))


# The share of places in prose with a window because of a common triple, and the nibbles of WINDOW bytes.
Window: TypeAlias = "tuple[float, int, int, int, int, int, int]"


class Shares(dict[int, float]):
    """The share of bytes in prose with such nibbles: a bit for each low one, 16 higher for each high one."""

    def __missing__(self, nibbles: int) -> float:
        low = [nibble for nibble in NIBBLES if nibbles >> nibble & 1]
        high = [16 * nibble for nibble in NIBBLES if nibbles >> 16 + nibble & 1]
        self[nibbles] = sum([SHARE[more + less] for more in high for less in low])
        return self[nibbles]


NIBBLES = range(16)
ANY = 0xFFFFFFFF
SHARES = Shares({ANY: 1.0})


@cache
def nibble_mask(byte: int, ignore_case: bool) -> int:
    """Return the nibbles of a byte, in the form of `Shares`."""
    cases = {byte, byte ^ 32} if ignore_case and ord("a") <= byte <= ord("z") else {byte}
    return 1 << (byte & 15) | sum(1 << (16 + (case >> 4)) for case in cases)


def find_windows(literal: bytes, width: int, ignore_case: bool) -> list[Window]:
    """Return the windows of a literal by their place: the first begins at the first byte.

    A short or narrow window accepts any byte after its end.
    """
    masks = [nibble_mask(byte, ignore_case) for byte in literal[: MAX_WINDOW_OFFSET + width]] + [ANY] * WINDOW
    places = range(min(max(len(literal) - width, 0), MAX_WINDOW_OFFSET) + 1)
    narrow = [ANY] * (WINDOW - width)
    return [
        (triple_likelihood(literal[at : at + width]), *(masks[at : at + width] + narrow))  # type: ignore[misc]
        for at in places
    ]


class Bucket:
    """Literals that the prefilter treats alike, and the nibbles of their windows."""

    def __init__(self, others: Iterable[int]) -> None:
        """others: the nibbles of all possible bytes of a window, in the form of `Shares`."""
        self.members: dict[bytes, tuple[int, ...]] = {}  # windows by literal
        self.masks = [0] * WINDOW
        self.others = others
        # The shares of bytes with the nibbles of each mask or others, by these others.
        self.widened = [{other: SHARES[other] for other in others}] * WINDOW
        self.passing = 0.0  # the share of places in prose with a window of this bucket

    def costs(self, windows: Iterable[Window]) -> list[float]:
        """Return for each window how much the share of passing places in prose would grow."""
        first, second, third, fourth, fifth, sixth = self.widened
        passing = self.passing
        return [
            common + first[a] * second[b] * third[c] * fourth[d] * fifth[e] * sixth[f] - passing
            for common, a, b, c, d, e, f in windows
        ]

    def put(self, literal: bytes, window: tuple[int, ...] | None) -> None:
        """Add a literal by the nibbles of its window, or remove it.  window: None to remove it."""
        if window is None:
            del self.members[literal]
        else:
            self.members[literal] = window
        columns = zip(*self.members.values(), strict=True) if self.members else [()] * WINDOW
        for at, column in enumerate(columns):
            mask = reduce(or_, column, 0)
            if mask != self.masks[at]:
                self.masks[at] = mask
                self.widened[at] = {other: SHARES[mask | other] for other in self.others}
        self.passing = prod(SHARES[mask] for mask in self.masks) if self.members else 0.0


class Prefilter(NamedTuple):
    """The tables of the prefilter.

    groups: of eight buckets; 0 if there is no prefilter.
    reach: the largest distance of a window from its literal's start, in bytes.
    hashed: a mask of the bytes that are hashed, of a window's first four.
    nibbles: the buckets in which a nibble occurs, by group, place in the window and nibble: a bit for each.
    slots: the index in `checks` of each hash.
    checks: of `surest_check`, one after another.
    """

    groups: int = 0
    reach: int = 0
    hashed: int = 0
    nibbles: bytes = bytes(MAX_GROUPS * WINDOW * 2 * 16)
    slots: array[int] = array("H", bytes(2 << HASH_BITS))
    checks: array[int] = array("I", CHECK_NOTHING)


def prefilter(literals: Iterable[bytes], ignore_case: bool, thorough: bool = False) -> Prefilter:
    """Return the tables of the prefilter. It skips places of a text that cannot have a literal.

    Spreads the literals over the buckets so that few places of prose pass any.
    """
    ordered = sorted(literals)
    if len(ordered) > MAX_LITERALS:
        return Prefilter()
    groups, width = (1, 4) if len(ordered) <= FEW_LITERALS else (MAX_GROUPS, WINDOW)
    others = {ANY, *(nibble_mask(byte, ignore_case) for byte in set().union(*ordered))}
    buckets = [Bucket(others) for _ in range(groups * BUCKETS)]
    windows = {literal: find_windows(literal, width, ignore_case) for literal in ordered}
    chosen: dict[bytes, tuple[Bucket, int]] = {}
    # Each literal goes to the bucket where it costs least. It chooses again when all others have a place. Choosing
    # takes most of the time of compile_table. With many literals, the second and third time would make the search only
    # 2 to 7 % faster.
    for _ in range(3 if thorough or len(ordered) <= CHOSEN_AGAIN else 1):
        for literal in ordered:
            if literal in chosen:
                chosen[literal][0].put(literal, None)
            costs = [bucket.costs(windows[literal]) for bucket in buckets]
            least = list(map(min, costs))
            number = least.index(min(least))
            at = costs[number].index(least[number])
            buckets[number].put(literal, windows[literal][at][1:])
            chosen[literal] = buckets[number], at

    nibbles = bytearray(MAX_GROUPS * WINDOW * 2 * 16)
    for number, bucket in enumerate(buckets):
        group, bit = divmod(number, BUCKETS)
        for position, masks in enumerate(bucket.masks[:width]):
            for nibble in range(32):  # 16 low ones, 16 high ones
                nibbles[(group * WINDOW + position) * 32 + nibble] |= (masks >> nibble & 1) << bit
    hashed = min(HASHED, *map(len, ordered))
    slots, checks = array("H", bytes(2 << HASH_BITS)), array("I", CHECK_NOTHING)
    alike: dict[int, list[tuple[bytes, int]]] = {}
    for literal, (_, at) in chosen.items():
        alike.setdefault(hash_of(literal[at : at + hashed], ignore_case), []).append((literal, at))
    for slot, members in alike.items():
        slots[slot] = len(checks) // 5
        checks.extend(surest_check(members, ignore_case))
    return Prefilter(groups, max(at for _, at in chosen.values()), (1 << 8 * hashed) - 1, bytes(nibbles), slots, checks)


def hash_of(window: bytes, ignore_case: bool) -> int:
    """Return a hash. If case is ignored, letters of both cases have the same hash (so do some other bytes: no harm)."""
    number = int.from_bytes(bytes(byte | 32 for byte in window) if ignore_case else window, "little")
    return (number * HASH_FACTOR & 0xFFFFFFFF) >> (32 - HASH_BITS)


def surest_check(members: list[tuple[bytes, int]], ignore_case: bool) -> tuple[int, ...]:
    """Return the place of the eight bytes around the windows that have most bytes in common in all literals.

    members: the literals, each with its window's place.

    Returns two words of bytes, two of a mask, and the distance from their start to the windows.
    """
    value, mask = bytearray(CHECK_BACK + CHECK), bytearray(CHECK_BACK + CHECK)
    for place in range(-CHECK_BACK, CHECK):
        bytes_there = {
            (literal[at + place] | (32 if ignore_case else 0)) if 0 <= at + place < len(literal) else None
            for literal, at in members
        }
        if len(bytes_there) == 1 and (common := bytes_there.pop()) is not None:
            value[CHECK_BACK + place], mask[CHECK_BACK + place] = common, 0xFF
    # Of several with equal numbers, the last.
    start = max(range(CHECK_BACK, -1, -1), key=lambda start: mask.count(0xFF, start, start + CHECK))
    return (*array("I", bytes(value[start : start + CHECK] + mask[start : start + CHECK])), CHECK_BACK - start)
