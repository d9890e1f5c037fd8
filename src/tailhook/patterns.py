"""Code and patterns in Markdown text."""

from __future__ import annotations

from typing import NamedTuple

from tailhook import _core

__all__ = ["Span", "code_spans"]


class Span(NamedTuple):
    """A stretch of code: what kind, and where it stands (indices into the text, end exclusive)."""

    kind: str
    start: int
    end: int


def code_spans(markdown: str | bytes) -> list[Span]:
    r"""Where `markdown` is code, as CommonMark 0.31.2 has it.

    The kinds are fence, indented, raw (an HTML block of pre, script, style or textarea), comment (an HTML block or
    an inline) and span. A block covers its lines whole: fences, container prefixes and the final newline included.
    A code span goes from its first backtick to its last. Spans are in order and do not overlap.

    markdown: str or UTF-8 bytes.  Returns offsets in code points for a str, in bytes for bytes.

    >>> code_spans("Say `hi`:\n\n> ```sh\n> echo hi\n> ```\n")
    [Span(kind='span', start=4, end=8), Span(kind='fence', start=11, end=35)]
    """
    return _core.code_spans(markdown, Span)
