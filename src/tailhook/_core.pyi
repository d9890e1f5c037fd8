"""The compiled core. Offsets and sizes are in bytes unless a function says otherwise."""

from typing import TypeVar, Any, final

# ---- JSON --------------------------------------------------------------------

def parse_json(data: bytes | str) -> Any:
    r"""The value of one JSON text (RFC 8259), read strictly.

    Objects become dict (the last of equal names wins), numbers int or float. UTF-8 is checked; a byte order mark is
    an error; a surrogate escape without its partner is kept as a lone surrogate; a number beyond a float's range is
    infinite. Containers may nest 1,024 deep.

    Raises ValueError, which says what was found and at which byte; also for an integer of more digits than
    `sys.get_int_max_str_digits()`.

    >>> parse_json(b'{"a": [1, 2.5, "\\u00e9"]}')
    {'a': [1, 2.5, 'é']}
    >>> parse_json(b'[1,]')
    Traceback (most recent call last):
    ValueError: invalid JSON: expected a value at byte 3
    """

def write_json(value: Any, style: int = 0) -> bytes:
    """`value` as one JSON text in UTF-8.

    value: dict (with str keys), list, tuple, str, int, float, bool or None, at most 1,024 containers deep.
    style: 0 compact, 1 a space after each comma and colon, 2 one member a line, indented by two spaces.

    Characters stand as themselves, except control characters, quotation marks and reverse solidi; a lone surrogate is
    written as an escape. Raises ValueError for what has no JSON form: NaN, infinity, a cycle, any other type.

    >>> write_json({"a": [1, None]}, 1)
    b'{"a": [1, null]}'
    """

def edit_json(data: bytes, edits: list[tuple[tuple[str | int, ...], bytes | None]]) -> bytes:
    """`data` with values set or removed, every other byte as it was.

    edits: (path, value) pairs, done in order. A path leads from the root by member names and element indices (from
    the end where negative); the value is a JSON text, or None to remove. Of several members of one name the last is
    set; all are removed. A member that is not there is added after the last one, laid out as the others are.
    Removing a member that is not there changes nothing.

    Raises ValueError where `data` or a value is not JSON, KeyError where a path leads through a value of another kind,
    a missing member or an index out of range.

    >>> edit_json(b'{"n": 1.0, "list": []}', [(("n",), b"2"), (("new",), b"true")])
    b'{"n": 2, "list": [], "new": true}'
    """

@final
class JsonFramer:
    """Finds the end of the first JSON object in bytes that come in pieces.

    >>> framer = JsonFramer()
    >>> framer.feed(b'{"a": "}')
    -1
    >>> framer.feed(b'"} and more')
    10
    """

    def feed(self, data: bytes) -> int:
        """The offset past the object, counted from the first byte ever fed; -1 while more is needed.

        Only brackets and strings are looked at: `parse_json` decides whether the bytes before the offset are JSON.
        """

# ---- Markdown ------------------------------------------------------------------

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

# ---- the operating system ----------------------------------------------------

def flock_within(fd: int, seconds: float) -> bool:
    """Take an exclusive `flock` on a descriptor: True when it is held, False when `seconds` passed without it.

    Raises OSError where the file cannot be locked at all.
    """

def wait_readable(fd: int, seconds: float) -> bool:
    """Whether a read of the descriptor would return at once, within `seconds`; at the end of input it would.

    Raises OSError where the descriptor cannot be waited for.
    """
