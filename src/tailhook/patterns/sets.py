"""Where Markdown is code, and sets of patterns to find in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tailhook import _core


class Span(NamedTuple):
    """A stretch of code: its kind and its place (indices into the text, end exclusive)."""

    kind: str
    start: int
    end: int


def code_spans(markdown: str | bytes) -> list[Span]:
    r"""Return the ranges of `markdown` that are code (CommonMark 0.31.2).

    The kinds are fence, indented, raw (an HTML block of pre, script, style or textarea), comment (an HTML block or
    an inline) and span. A block covers its lines whole: fences, container prefixes and the final newline included.
    A code span goes from its first backtick to its last. Spans are in order and do not overlap.

    markdown: str or UTF-8 bytes.  Returns offsets in code points for a str, in bytes for bytes.

    >>> code_spans("Say `hi`:\n\n> ```sh\n> echo hi\n> ```\n")
    [Span(kind='span', start=4, end=8), Span(kind='fence', start=11, end=35)]
    """
    return _core.code_spans(markdown, Span)


class Match(NamedTuple):
    """A pattern's match in a text.

    `start` and `end` (exclusive) count characters of a str, bytes of bytes; `line` counts from 1, and LF,
    CRLF and CR each end one. A match that is partly in code counts as in code.
    """

    name: str
    start: int
    end: int
    line: int
    in_code: bool

    def with_record(self, record: Any) -> RecordMatch:
        """Return this match with its record."""
        match = RecordMatch(*self)
        match.record = record
        return match


class RecordMatch(Match):
    """A match in a transcript: its offsets and its line are those in `record.text`."""

    record: Any


class PatternSet:
    """Patterns to find all at once, in one pass over a text.

    patterns: texts to find, by name: ``{"done": "<loop-done>COMPLETE</loop-done>", "stop": ["stop", "halt"]}``; or
    strings, each with itself as its name.
    own_line: a match must stand alone on its line. Blank space (`str.isspace`) may stand around it, and the
    markers of quotes and list items before it (``> - ``, ``1. ``); a heading's ``#`` may not.
    outside_code: a match must not touch code, as CommonMark 0.31.2 has it: fenced and indented blocks, code
    spans, comments, the raw text of ``<pre>``, ``<script>``, ``<style>`` and ``<textarea>``.
    ignore_case: the letters a to z match as in `re.IGNORECASE` (so U+212A is a k); other letters match as they are.
    word: a match begins and ends at word boundaries (``\\b`` of `re`), and blank space in a pattern matches
    any run of blank space.

    All matches count, overlapping ones too. A set is immutable, may be used by several threads at once, and
    can be pickled. Raises ValueError if there is no pattern or an empty one.

    >>> signals = PatternSet({"done": "<loop-done>COMPLETE</loop-done>"}, own_line=True)
    >>> signals.findall("All green.\\n\\n- <loop-done>COMPLETE</loop-done>\\n")
    [Match(name='done', start=14, end=45, line=3, in_code=False)]
    >>> signals.findall("Say `<loop-done>COMPLETE</loop-done>` when you are done.")
    []
    """

    __slots__ = ("_compiled", "ignore_case", "outside_code", "own_line", "patterns", "word")

    patterns: Mapping[str, tuple[str, ...]]
    own_line: bool
    outside_code: bool
    ignore_case: bool
    word: bool
    _compiled: _core.Automaton | None

    def __init__(
        self,
        patterns: Mapping[str, str | Sequence[str]] | Iterable[str],
        *,
        own_line: bool = False,
        outside_code: bool = True,
        ignore_case: bool = False,
        word: bool = False,
    ) -> None:
        from tailhook.patterns.automaton import normalize

        self.patterns = by_name(patterns)
        self.own_line, self.outside_code = own_line, outside_code
        self.ignore_case, self.word = ignore_case, word
        self._compiled = None
        for _, text in self._numbered():
            normalize(text, ignore_case, word)  # which raises ValueError

    def _numbered(self) -> list[tuple[int, str]]:
        """Return the texts to find, each with the number of its name."""
        return [(number, text) for number, texts in enumerate(self.patterns.values()) for text in texts]

    @property
    def _automaton(self) -> _core.Automaton:
        """The compiled set. The first use compiles it: a scan may have a table of its own, with more texts."""
        if self._compiled is None:
            from tailhook.patterns.automaton import compile_table

            table = compile_table(self._numbered(), ignore_case=self.ignore_case, word=self.word)
            self._compiled = _core.Automaton(table, tuple(self.patterns))
        return self._compiled

    def findall(self, markdown: str | bytes) -> list[Match]:
        """Return all matches in `markdown`, sorted by start, end and name (in the order of `patterns`).

        >>> PatternSet(["rate limit", "limit"], word=True, ignore_case=True).findall("The Rate  limit")
        [Match(name='rate limit', start=4, end=15, line=1, in_code=False), \
Match(name='limit', start=10, end=15, line=1, in_code=False)]
        """
        return self._automaton.findall(markdown, self.own_line, self.outside_code, Match)

    def find_last(self, markdown: str | bytes) -> Match | None:
        """Return the last match of `findall`, or None.

        >>> PatternSet(["ja", "nein"]).find_last("ja ... nein")
        Match(name='nein', start=7, end=11, line=1, in_code=False)
        """
        matches = self.findall(markdown)
        return matches[-1] if matches else None

    def options(self) -> dict[str, bool]:
        """Return the keyword arguments of the constructor."""
        return {name: getattr(self, name) for name in ("own_line", "outside_code", "ignore_case", "word")}

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt, (self.patterns, self.options())

    def __repr__(self) -> str:
        options = "".join(f", {name}={value}" for name, value in self.options().items())
        return f"PatternSet({self.patterns!r}{options})"


def rebuilt(patterns: Mapping[str, tuple[str, ...]], options: dict[str, bool]) -> PatternSet:
    """Return a pickled pattern set."""
    return PatternSet(patterns, **options)


def check_text(text: Any) -> str:
    """Return a pattern or its name. Raises TypeError if it is not a str."""
    if not isinstance(text, str):
        raise TypeError(f"patterns and their names are str, not {type(text).__name__}: {text!r}")
    return text


def by_name(patterns: Mapping[str, str | Sequence[str]] | Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the texts to find, by name.

    Raises TypeError or ValueError if they are not a set of patterns.
    """
    if isinstance(patterns, str | bytes):
        raise TypeError(f"patterns is a single {type(patterns).__name__}: give a list of strings, or strings by name")
    if not isinstance(patterns, Iterable):
        raise TypeError(f"patterns is {patterns!r}: give a list of strings, or strings by name")
    if not isinstance(patterns, Mapping):
        patterns = {check_text(pattern): pattern for pattern in patterns}
    named: dict[str, tuple[str, ...]] = {}
    for name, texts in patterns.items():
        several = isinstance(texts, Iterable) and not isinstance(texts, str | bytes)
        named[check_text(name)] = tuple(map(check_text, texts if several else (texts,)))
    for name, texts in named.items():
        if not texts:
            raise ValueError(f"no patterns under the name {name!r}")
    if not named:
        raise ValueError("no patterns: a set needs at least one")
    return named
