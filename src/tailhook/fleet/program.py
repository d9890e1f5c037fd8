"""A question as the core runs it: the tables of the patterns, and the gate that most lines do not pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import Any, NamedTuple

from tailhook._core import ScanProgram
from tailhook.fleet.answer import Conditions
from tailhook.fleet.reduce import HALVES, half_columns
from tailhook.hosts import NAMES, find_host
from tailhook.machines import idle
from tailhook.machines.keywords import KEYWORDS
from tailhook.patterns.automaton import compile_table
from tailhook.transcripts.records import EPOCH

# Pairs of a host and a type or subtype: of records that tailhook knows, and of those whose tokens are not its own.
KNOWN_TYPES = tuple((name, kind) for name in NAMES for kind in find_host(name).RECORD_TYPES)
KNOWN_TOKENS = tuple((name, kind) for name in NAMES for kind in find_host(name).TOKENS_ELSEWHERE)
REPLACEMENT = "\ufffd"  # what a lone surrogate becomes: its escape may be any of two thousand
# How the escapes of printable characters go on behind their backslash. The core looks for four bytes at first: with the
# backslash these would be `\u00`, with which the escapes of a terminal's control characters begin, too.
ESCAPED_ASCII = tuple(f"u00{digit}" for digit in range(2, 8))
ESCAPED_LETTERS = (r"\u0130", r"\u0131", r"\u017f", r"\u212a")  # which are i, i, s and k if case does not count


class Search(NamedTuple):
    """Patterns of one kind. A question has one search for the user's patterns, one for signals, one for categories.

    patterns: texts by the name of the match.  compiled: their table, if there is one.
    own_line, ignore_case, word: as of a PatternSet.
    """

    patterns: Mapping[str, Sequence[str]]
    own_line: bool = False
    ignore_case: bool = False
    word: bool = False
    compiled: bytes | None = None

    def table(self, more: Iterable[str] = ()) -> bytes:
        """Return the table of the automaton.  more: texts to find, too, under the number after the patterns'."""
        if self.compiled is not None and not more:
            return self.compiled
        texts = [(number, text) for number, texts in enumerate(self.patterns.values()) for text in texts]
        texts += [(len(self.patterns), text) for text in more]
        return compile_table(texts, ignore_case=self.ignore_case, word=self.word)

    def is_plain(self) -> bool:
        """Return whether the JSON text of every string with a match has the pattern itself, unless it escapes ASCII."""
        texts = (text for texts in self.patterns.values() for text in texts)
        return not self.word and all(plain_parts(text, False) == [text] for text in texts)


class SearchTables(NamedTuple):
    """The searches of a question, compiled.

    searches: as `ScanProgram` takes them.
    names: of the matches.
    gate: finds every line that could match, in the bytes of its JSON text. None: all lines could.
    """

    searches: tuple[tuple[bytes, bool, int, int], ...] = ()
    names: tuple[str, ...] = ()
    gate: bytes | None = None


def signal_search() -> Search:
    """Return the search for the idle machine's signals, each by its text."""
    return Search({text: [text] for texts in idle.SIGNALS.values() for text in texts}, own_line=True)


def category_search() -> Search:
    """Return the search for the primary keywords of the memory machine's categories, profile "seed"."""
    return Search({name: words for name, (words, _) in KEYWORDS.items()}, ignore_case=True, word=True)


def make_program(
    table: str, columns: Sequence[str], tables: SearchTables, conditions: Conditions, **options: Any
) -> ScanProgram:
    """Return a question as the core runs it. It can be pickled, and needs nothing to be compiled again.

    columns: of the rows; halves of rows have columns of their own, see `half_columns`.
    tables: what to find, for matches. Other tables have none.
    options: of matches: code (-1 for anywhere, 0 for outside code, 1 for in code), context (characters), all_text,
        sidechains.
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
        searches=tables.searches,
        names=tables.names,
        gate=tables.gate,
        roles=conditions.roles or (),
        since=since,
        until=until,
        projects=() if conditions.project is None else (conditions.project,),
        sessions=conditions.sessions or (),
        known_types=KNOWN_TYPES,
        **options,
    )


def microseconds(time: datetime | None) -> int | None:
    """Return a time as microseconds since 1970."""
    return None if time is None else (time - EPOCH) // timedelta(microseconds=1)


# ---- the tables ----------------------------------------------------------------


def compile_searches(searches: Sequence[Search]) -> SearchTables:
    """Return the tables of searches. One search of plain patterns has one table, which is the gate, too."""
    if not searches:
        return SearchTables()
    if len(searches) == 1 and searches[0].compiled is None and searches[0].is_plain():
        tables = [searches[0].table(more=gate_escapes(searches))]
        gate: bytes | None = tables[0]
    else:
        tables = [search.table() for search in searches]
        gate = make_gate(searches)
    names: list[str] = []
    compiled = []
    for search, table in zip(searches, tables, strict=True):
        compiled.append((table, search.own_line, len(names), len(search.patterns)))
        names += search.patterns
    return SearchTables(tuple(compiled), tuple(names), gate)


def gate_escapes(searches: Iterable[Search]) -> tuple[str, ...]:
    """Return the escapes behind which JSON could hide the patterns of searches."""
    return (*ESCAPED_ASCII, *(ESCAPED_LETTERS if any(search.ignore_case for search in searches) else ()))


def make_gate(searches: Sequence[Search]) -> bytes | None:
    """Return the table that finds every line which could match, in the bytes of its JSON text; None for all lines."""
    ignore_case = any(search.ignore_case for search in searches)
    literals = {*gate_escapes(searches)}
    for search in searches:
        for texts in search.patterns.values():
            for text in texts:
                found = raw_literals(text, search.word)
                if not found:
                    return None
                literals.update(found)
    return compile_table([(0, literal) for literal in sorted(literals)], ignore_case=ignore_case, word=False)


def raw_literals(pattern: str, word: bool) -> list[str]:
    r"""Return literals of which one is in the JSON text of every string with the pattern, unless it escapes ASCII.

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
    r"""Return the parts of a pattern that JSON writes as they are, if it does not escape what it need not escape.

    >>> plain_parts('a/b "c"\n', True)
    ['a', 'b', 'c']
    """
    marked = "".join(
        letter if " " <= letter < "\x7f" and letter not in '"\\/' and not (word and letter == " ") else "\n"
        for letter in pattern
    )
    return [part for part in marked.split("\n") if part]


def spelled_escapes(letter: str) -> Iterator[str]:
    r"""Yield how JSON can escape a letter: the digits from a to f in either case.

    >>> list(spelled_escapes("\u00e9"))
    ['\\u00e9', '\\u00E9']
    """
    data = letter.encode("utf-16-be", "surrogatepass").hex()
    units = [data[at : at + 4] for at in range(0, len(data), 4)]
    spellings = product(*({digit, digit.upper()} for digit in units[0]))
    for digits in sorted(spellings, reverse=True):
        yield rf"\u{''.join(digits)}"
