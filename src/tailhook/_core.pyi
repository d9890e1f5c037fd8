"""The compiled core. What the names mean, with units, errors and sources, is said here; the code is in ext/."""

from typing import TypeVar

_Span = TypeVar("_Span", bound=tuple[str, int, int])

def code_spans(markdown: str | bytes, cls: type[_Span]) -> list[_Span]:
    """Where `markdown` is code, by CommonMark 0.31.2 (all of sections 3 to 6 that decides it).

    cls: a class made by typing.NamedTuple of (kind, start, end). kind is fence, indented, span, comment or raw;
    start and end (exclusive) are code points of a str, bytes of bytes. A str may hold lone surrogates and bytes need
    not be UTF-8: neither changes what is code. Time and memory are linear in the text's length.

    TypeError: markdown is neither str nor bytes.

    >>> from tailhook.patterns import Span
    >>> code_spans("a `b`", Span)
    [Span(kind='span', start=2, end=5)]
    """
