"""The compiled core. Offsets and sizes are in bytes unless a function says otherwise."""

from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from io import FileIO
from types import ModuleType
from typing import Any, BinaryIO, TypeVar, final

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

def read_json_columns(
    fd: int,
    array: str,
    choose: Callable[[dict[str, Any]], tuple[tuple[str, ...], ...]],
    window_bytes: int = 262144,
) -> tuple[dict[str, Any], list[list[Any]] | None, tuple[int, int] | None]:
    """The object in a JSON file, one member of it - an array of many objects - as columns.

    fd: a descriptor of a regular file, read from its beginning; a byte order mark is passed over.
    array: the name of that member of the root, at most 64 bytes of UTF-8.  choose: called with the members before it,
    gives for each column the path to it: a member of a row, or that and a member of it; 16 columns at the most.
    window_bytes: how many bytes of the file are in memory at first, at least 4. The window grows as far as the largest
    member or row needs; the result does not depend on it.
    Returns (value, columns, span): the root without the array; for each path a list of as many values as there are
    rows, None where a row has none; where the array stands in the file, end exclusive. columns and span are None where
    the member is no array, and then it is in the value.

    Memory follows what is kept and the largest member or row, not the file.
    Raises ValueError where the file is not JSON, the root or a row is no object, or an argument is out of range;
    OSError when it cannot be read.
    """

def fingerprint(data: bytes) -> int:
    """A number of 64 bits that stands for the bytes: it tells whether they changed. Not for keeping secrets.

    >>> fingerprint(b"tail") == fingerprint(b"tail"), fingerprint(b"tail") == fingerprint(b"hook")
    (True, False)
    """

@final
class JsonIndenter:
    """Lays a JSON text out with a line for each value, indented by two as `write_json` does.

    Every value stays as it was spelt.

    depth: how deep the text is to stand in another one; its first line is not indented.

    >>> JsonIndenter().feed(b'{"a":[1.0,{}]}')
    b'{\\n  "a": [\\n    1.0,\\n    {}\\n  ]\\n}'
    """

    def __init__(self, depth: int = 0) -> None: ...
    def feed(self, data: bytes) -> bytes:
        """What comes of one more piece of the text, which may be cut anywhere. It is not checked: it must be JSON."""

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

# ---- lines -------------------------------------------------------------------
#
# `file` is the descriptor of a regular file, whose position is neither used nor
# moved, or a seekable binary file object. Both directions give the same lines.

def reverse_lines(
    file: int | BinaryIO | FileIO,
    start: int = 0,
    end: int | None = None,
    max_line: int | None = None,
    containing: bytes | None = None,
) -> Iterator[tuple[int, bytes]]:
    r"""The lines of a file, newest first: (offset of the first byte, bytes without the line's end).

    start, end: bytes; the lines that begin in this range. A line begun before `end` is given whole. The default `end`
    is the file's size now: lines written later are not given.
    max_line: bytes; longer lines are passed over, and not kept in memory.
    containing: bytes that a line must contain; other lines are passed over without becoming Python objects.

    A line ends with a newline, or a carriage return and one; the last may lack it. A byte order mark at the file's
    start is left out. A file that is truncated or written anew meanwhile ends the iteration.

    Raises OSError; ValueError for negative numbers; RuntimeError when two threads read at once.

    >>> import io
    >>> list(reverse_lines(io.BytesIO(b"one\ntwo\r\n\nfour")))
    [(10, b'four'), (9, b''), (4, b'two'), (0, b'one')]
    >>> list(reverse_lines(io.BytesIO(b"one\ntwo\r\n\nfour"), containing=b"o"))
    [(10, b'four'), (4, b'two'), (0, b'one')]
    """

def forward_lines(
    file: int | BinaryIO | FileIO,
    start: int = 0,
    end: int | None = None,
    max_line: int | None = None,
    containing: bytes | None = None,
) -> Iterator[tuple[int, bytes]]:
    """As `reverse_lines`, oldest first."""

# ---- times -------------------------------------------------------------------

def unix_time(stamp: str) -> float | None:
    """Return the Unix time that a date and time of ISO 8601 stands for, in seconds, or None if it is not one.

    Calendar, ordinal and week dates and times down to hour, minute or second, in the extended or the basic format,
    with fractions and zones (ISO 8601-1:2019, 5.2 to 5.4); also a space for the T, and small letters (RFC 3339, 5.6).
    Without a zone a time counts as UTC; a date alone is its midnight.

    >>> unix_time("2026-01-02T03:04:05.5+05:30")
    1767303245.5
    >>> unix_time("2026-01-02 03:04:05z") == unix_time("2026-W01-5T03:04:05") == unix_time("20260102T030405Z")
    True
    """

# ---- records -----------------------------------------------------------------

@final
class ToolUse:
    """A tool_use block: what the assistant asked a tool to do."""

    @property
    def id(self) -> str | None: ...
    @property
    def name(self) -> str | None: ...
    @property
    def input(self) -> Any:
        """The tool's input, decoded by orjson at each call. Raises tailhook.errors.RecordError."""

@final
class Record:
    """One line of a transcript. Every attribute is decoded when it is asked for.

    Members are those of the line's own object and of its `message`; of equal names the last. Absent ones, and values
    of another kind, are None; flags are true only where the value is `true`.
    """

    @property
    def text(self) -> str:
        """`message.content`, or the flat `content` of a human, user or assistant record: the string, or its text blocks
        joined by newlines, those of white space only left out; "" otherwise."""
    @property
    def role(self) -> str | None:
        """The message's role, or the type of a flat record; None in records of other types than these."""
    @property
    def type(self) -> str | None: ...
    @property
    def message_id(self) -> str | None: ...
    @property
    def uuid(self) -> str | None: ...
    @property
    def timestamp(self) -> str | None:
        """As the record has it, normally ISO 8601 in UTC."""
    @property
    def is_sidechain(self) -> bool:
        """A sub-agent's."""
    @property
    def is_meta(self) -> bool:
        """Written by the host, such as a hook's feedback."""
    @property
    def is_api_error(self) -> bool: ...
    @property
    def is_compact_summary(self) -> bool: ...
    @property
    def tools(self) -> list[ToolUse]:
        """The message's tool_use blocks, or the record itself where it is a flat tool_use."""
    @property
    def offset(self) -> int:
        """Bytes from the file's start to the record's line."""
    def json(self) -> Any:
        """The whole object, decoded by orjson.

        Raises tailhook.errors.RecordError where a member that this class does not show is invalid UTF-8.
        """

def parse_record(line: bytes, offset: int = 0) -> Record | None:
    r"""The record in a line that begins at `offset` of its file; None if there is none.

    A good line is one JSON object. A bad one yields its last complete object that starts the line, follows another
    complete one, or ends where the line ends (white space and NULs aside); objects nested in a torn record are no
    records. The JSON grammar is checked throughout; UTF-8 in the strings that the record may be asked for.

    >>> parse_record(b'{"type":"assistant","message":{"content":[{"type":"text","text":"Hi"}]}}').text
    'Hi'
    >>> parse_record(b'{"type":"user","message":{"con{"type":"summary"}').type
    'summary'
    """

def reverse_records(
    file: int | BinaryIO | FileIO, start: int = 0, end: int | None = None, max_line: int | None = None
) -> Iterator[Record]:
    """The records of `reverse_lines`; lines that hold none are passed over."""

def forward_records(
    file: int | BinaryIO | FileIO, start: int = 0, end: int | None = None, max_line: int | None = None
) -> Iterator[Record]:
    """The records of `forward_lines`; lines that hold none are passed over."""

def reverse_messages(
    file: int | BinaryIO | FileIO,
    start: int = 0,
    end: int | None = None,
    max_line: int | None = None,
    max_lines: int | None = None,
) -> Iterator[tuple[bool, bytes, list[str | None]]]:
    """Iterate over what was said and done, newest first: (is it the assistant's, its text, names of its tools).

    One for each record of `reverse_records` that is the main conversation's own and has words or tools. The text is
    UTF-8 (lone surrogates in their three bytes): `Record.text`, and the strings in a content list; b"" for no words.
    max_lines: how many lines are read, at most.
    """

def last_message(
    file: int | BinaryIO | FileIO,
    max_bytes: int | None = None,
    max_line: int | None = None,
    max_lines: int | None = None,
) -> tuple[str, list[tuple[bytes, float | None]]]:
    """The newest message of the assistant's own that has text: (outcome, texts).

    max_bytes: how far from the file's end to read; max_line: longer lines are passed over; max_lines: how many lines
    are read. None: no bound.

    The message is all records with its id that have text. texts: of each, oldest first, the text (UTF-8, lone
    surrogates in their three bytes: a str may need four times the memory) and the timestamp in Unix seconds, None
    when it has none that can be read. Outcomes, all but the first without texts:
    - "text": here they are;
    - "no_text": there are assistant records, but none with text;
    - "no_assistant": there is no assistant record;
    - "unknown": a bound, a line passed over or a file that was written anew lies before the answer.
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

# ---- patterns ----------------------------------------------------------------

_Tuple = TypeVar("_Tuple", bound=tuple[object, ...])

class Automaton:
    """The matcher over one table of `tailhook.automaton.compile_table`.  (ext/patterns/automaton.pxi)

    data: the table. names: of the numbers that the patterns were given. Raises ValueError for anything else than
    such a table: it is checked whole, so that a damaged one cannot lead out of itself.
    """

    data: bytes
    names: tuple[str, ...]

    def __init__(self, data: bytes, names: tuple[str, ...]) -> None: ...
    def hits(self, text: bytes, prefiltered: bool = True) -> list[tuple[int, int, int]]:
        """All matches, wherever they stand: (number of the name, start, end), in no promised order.

        prefiltered: False runs the automaton alone over all of the text, as on processors without AVX2; it finds
        the same.

        >>> from tailhook.automaton import compile_table
        >>> table = compile_table([(0, "he"), (1, "she")], ignore_case=False, word=False)
        >>> sorted(Automaton(table, ("he", "she")).hits(b"ushers"))
        [(0, 2, 4), (1, 1, 4)]
        """

    def findall(self, source: str | bytes, own_line: bool, outside_code: bool, cls: type[_Tuple]) -> list[_Tuple]:
        """The matches that count, by start, end and name: a `cls` of (name, start, end, line, in_code) each.

        Offsets count characters of a str, bytes of bytes; lines count from 1. `PatternSet` says what the options
        mean. Raises TypeError for other texts and for a `cls` that is no tuple.
        """

def signals(source: str | bytes) -> list[str]:
    """The idle machine's signals that count in a text, as they are written, in order.

    A signal stands alone on its line and outside code. Which there are is said in tailhook/machines/idle.py.

    >>> signals("Done.\\n\\n<loop-done>COMPLETE</loop-done>\\n")
    ['<loop-done>COMPLETE</loop-done>']
    """

def keywords(text: bytes, tuned: bool = False) -> list[tuple[int, int, int]]:
    """The memory machine's keywords in a text, UTF-8: (number, start, end) of each, whatever line or code it is in.

    tuned: by the second profile's table. What the numbers stand for: `tables` in tailhook/machines/keywords.py.

    >>> sorted(keywords(b"Picked it, because"))
    [(0, 0, 6), (1, 11, 18), (7, 11, 18)]
    """

def score_lines(messages: list[bytes], tuned: bool = False) -> list[tuple[int, int, bytes, bytes, bytes, bool]]:
    """Return the lines of the messages that count for a category of the memory machine, in the session's order.

    messages: UTF-8, the oldest first. Their code is left out (`code_spans`): a line that is all code is not a line,
    other code is one space. tuned: use the second profile's table, in which every keyword of a line counts.

    A tuple for each time that a line counts: the category (its place in tailhook/machines/memory.py, CATEGORIES), the
    message's index, the line, its keyword, the booster near it (b"" for none), and whether it counts as boosted. Of a
    category at most MAX_BOOSTED count as boosted and MAX_PLAIN as plain. Time is linear in the text; it ends with the
    line that makes the last category full.

    >>> score_lines([b"We chose A,\\nbecause of B."])
    [(0, 0, b'We chose A,', b'chose', b'because', True)]
    """

def promises(source: str | bytes, own_line: bool = False) -> list[str]:
    """The words of each `<promise>` in a text, from the nearest opening tag to the closing one, in order.

    Both tags must be outside code; what is between them may be or hold code, and go over lines.
    own_line: the tags stand alone on their line or lines, but for the markers of quotes and list items.

    >>> promises("I promise: <promise>TESTS\\nGREEN</promise>, and `<promise>nothing</promise>` else")
    ['TESTS\\nGREEN']
    """

def find_keys(text: str) -> list[tuple[int, int]]:
    """Return the positions of keys that have a known prefix: (start, end) of each, in characters.

    A key begins where a word does, or behind a sign such as = or a slash. Behind its beginning stand at least half of
    the characters that belong there, or 16, with a digit among them or letters of both cases. The beginnings are those
    of tailhook/machines/secret_rules.py.

    >>> find_keys("push with ghp_0123456789abcdefghij, or npm_config_registry_name")
    [(10, 34)]
    """

# ---- the operating system ----------------------------------------------------

def flock_within(fd: int, seconds: float) -> bool:
    """Take an exclusive `flock` on a descriptor: True when it is held, False when `seconds` passed without it.

    Raises OSError where the file cannot be locked at all.
    """

def wait_readable(fd: int, seconds: float) -> bool:
    """Whether a read of the descriptor would return at once, within `seconds`; at the end of input it would.

    seconds: 0 or less looks once.

    Raises OSError where the descriptor cannot be waited for.
    """

def poke(path: bytes) -> int:
    """Send a datagram of one byte to the Unix socket at `path`, waiting for nobody; 0, or the errno of what hinders it.

    ENOENT and ECONNREFUSED: nobody listens there. EAGAIN: who listens is busy, and has been poked already.
    """

def folder_fault(folder: bytes) -> tuple[bool, str]:
    """Return whether a folder exists, and what lets another user change it or put another one in its place, or "".

    The folder must belong to this user, and no other user may write to it. Each folder and link on the way to it must
    belong to this user or to root. If other users may write to such a folder, it must be sticky, as /tmp is: then they
    cannot rename what is in it. Above the folder, a group with the user's own number does not count as other users,
    except root's.

    folder: an absolute path. A part that cannot be looked at counts as missing.
    """

# ---- modules -----------------------------------------------------------------

@final
class ModuleFinder:
    """A finder and loader (PEP 451) of tailhook's own modules: straight to the file that Python compiled, no search.

    Put first on `sys.meta_path`. It answers for modules below `tailhook` whose `__pycache__` file (PEP 552) names the
    time and size that the source has now; all others it leaves to Python's own finder, which compiles them.

    >>> import sys
    >>> sys.meta_path.insert(0, ModuleFinder())  # doctest: +SKIP
    """

    def __init__(self) -> None: ...
    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None: ...
    def create_module(self, spec: ModuleSpec) -> None: ...
    def exec_module(self, module: ModuleType) -> None: ...
