"""A question in the core's form: the tables of the patterns, and the gate that most lines do not pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import NamedTuple

from tailhook._core import ScanProgram
from tailhook.fleet.answer import Conditions
from tailhook.fleet.columns import MatchOptions
from tailhook.fleet.reduce import HALVES, half_columns
from tailhook.hosts import NAMES, find_host
from tailhook.machines import idle
from tailhook.machines.keywords import KEYWORDS
from tailhook.patterns.automaton import compile_table
from tailhook.patterns.sets import PatternSet
from tailhook.transcripts.records import EPOCH

# Pairs of a host and a type or subtype: of known records, and of records whose tokens are not their own.
KNOWN_TYPES = tuple((name, kind) for name in NAMES for kind in find_host(name).RECORD_TYPES)
KNOWN_TOKENS = tuple((name, kind) for name in NAMES for kind in find_host(name).TOKENS_ELSEWHERE)
REPLACEMENT = "\ufffd"  # in place of a lone surrogate: its escape may be any of two thousand
# The escapes of printable characters, without their backslash. The core looks for four bytes at first. With the
# backslash these would be `\u00`: the escapes of a terminal's control characters begin with that, too.
ESCAPED_ASCII = tuple(f"u00{digit}" for digit in range(2, 8))
ESCAPED_LETTERS = (r"\u0130", r"\u0131", r"\u017f", r"\u212a")  # they are i, i, s and k if case does not count


# The named searches of a question: the idle machine's signals, each by its text, and the primary keywords of the memory
# machine's categories, profile "seed".
SIGNAL_SET = PatternSet({text: [text] for texts in idle.SIGNALS.values() for text in texts}, own_line=True)
CATEGORY_SET = PatternSet({name: words for name, (words, _) in KEYWORDS.items()}, ignore_case=True, word=True)


class CompiledSets(NamedTuple):
    """The pattern sets of a question, compiled.

    sets: as `ScanProgram` takes them.
    names: of the matches.
    gate: finds every line that could match, in the bytes of its JSON text. None: all lines could.
    """

    sets: tuple[tuple[bytes, bool, int, int], ...] = ()
    names: tuple[str, ...] = ()
    gate: bytes | None = None


def make_program(
    table: str,
    columns: Sequence[str],
    compiled: CompiledSets,
    conditions: Conditions,
    options: MatchOptions,
) -> ScanProgram:
    """Return a question in the core's form. It can be pickled, with its compiled tables.

    columns: of the rows; halves of rows have columns of their own, see `half_columns`.
    compiled: the sets to find, for matches. Other tables have none.
    """
    if table in HALVES:
        names, marks = half_columns(table, columns), HALVES[table].marks
        gate = compile_table([(0, literal) for literal in (*marks, *ESCAPED_ASCII)], ignore_case=False, word=False)
        known = KNOWN_TOKENS if table == "usage" else KNOWN_TYPES
        return ScanProgram(table=table, columns=names, gate=gate if marks else None, known_types=known)
    since, until = microseconds(conditions.since), microseconds(conditions.until)
    if () in (conditions.roles, conditions.sessions):
        since = until = 0  # no time is in between. The core takes an empty list for all
    return ScanProgram(
        table=table,
        columns=columns,
        sets=compiled.sets,
        names=compiled.names,
        gate=compiled.gate,
        options=options,
        roles=conditions.roles or (),
        since=since,
        until=until,
        projects=() if conditions.project is None else (conditions.project,),
        sessions=conditions.sessions or (),
        known_types=KNOWN_TYPES,
    )


def microseconds(time: datetime | None) -> int | None:
    """Return a time as microseconds since 1970."""
    return None if time is None else (time - EPOCH) // timedelta(microseconds=1)


# ---- the tables ----------------------------------------------------------------


def compile_sets(sets: Sequence[PatternSet]) -> CompiledSets:
    """Return the tables of sets. A single set of plain patterns has one table: it is the gate, too."""
    if not sets:
        return CompiledSets()
    if len(sets) == 1 and sets[0]._compiled is None and is_plain(sets[0]):
        escapes = [(len(sets[0].patterns), escape) for escape in gate_escapes(sets)]
        gate = compile_table([*sets[0]._numbered(), *escapes], ignore_case=sets[0].ignore_case, word=False)
        return CompiledSets(((gate, sets[0].own_line, 0, len(sets[0].patterns)),), tuple(sets[0].patterns), gate)
    names: list[str] = []
    compiled = []
    for one in sets:
        compiled.append((one._automaton.data, one.own_line, len(names), len(one.patterns)))
        names += one.patterns
    return CompiledSets(tuple(compiled), tuple(names), make_gate(sets))


def is_plain(one: PatternSet) -> bool:
    """Return whether the JSON text of every string with a match has the pattern itself, unless it escapes ASCII."""
    return not one.word and all(plain_parts(text, False) == [text] for _, text in one._numbered())


def gate_escapes(sets: Iterable[PatternSet]) -> tuple[str, ...]:
    """Return the escapes behind which JSON could hide the patterns of sets."""
    return (*ESCAPED_ASCII, *(ESCAPED_LETTERS if any(one.ignore_case for one in sets) else ()))


def make_gate(sets: Sequence[PatternSet]) -> bytes | None:
    """Return a table to find all lines that could match, in the bytes of their JSON text; None for all lines."""
    literals = {*gate_escapes(sets)}
    for one in sets:
        for _, text in one._numbered():
            found = raw_literals(text, one.word)
            if not found:
                return None
            literals.update(found)
    ignore_case = any(one.ignore_case for one in sets)
    return compile_table([(0, literal) for literal in sorted(literals)], ignore_case=ignore_case, word=False)


def raw_literals(pattern: str, word: bool) -> list[str]:
    r"""Return literals. The JSON text of each string with the pattern has one of them, unless it escapes ASCII letters.

    word: a blank in the pattern stands for any blank space.

    >>> raw_literals('a "hello"', False), raw_literals("é", False)
    (['hello'], ['é', '\\u00e9', '\\u00E9'])
    """
    parts = plain_parts(pattern, word)
    if parts:
        return [max(parts, key=len)]
    other = next(
        (letter for letter in pattern if letter > "\x7f" and letter != REPLACEMENT and not letter.isspace()), None
    )
    return [] if other is None else [other, *spelled_escapes(other)]


def plain_parts(pattern: str, word: bool) -> list[str]:
    r"""Return the parts of a pattern that JSON need not escape.

    >>> plain_parts('a/b "c"\n', True)
    ['a', 'b', 'c']
    """
    marked = "".join(
        letter if " " <= letter < "\x7f" and letter not in '"\\/' and not (word and letter == " ") else "\n"
        for letter in pattern
    )
    return [part for part in marked.split("\n") if part]


def spelled_escapes(letter: str) -> Iterator[str]:
    r"""Yield the escapes of a letter in JSON: the digits from a to f in either case.

    >>> list(spelled_escapes("\u00e9"))
    ['\\u00e9', '\\u00E9']
    """
    data = letter.encode("utf-16-be", "surrogatepass").hex()
    units = [data[at : at + 4] for at in range(0, len(data), 4)]
    spellings = product(*({digit, digit.upper()} for digit in units[0]))
    for digits in sorted(spellings, reverse=True):
        yield rf"\u{''.join(digits)}"
