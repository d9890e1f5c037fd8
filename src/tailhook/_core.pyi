"""The compiled core. Offsets and sizes are in bytes unless a function documents another unit."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from datetime import datetime
from importlib.machinery import ModuleSpec
from io import FileIO
from types import ModuleType
from typing import Any, BinaryIO, TypeVar, final, overload

from tailhook.fleet.columns import MatchOptions
from tailhook.transcripts.records import ToolResult, Usage

# ---- JSON --------------------------------------------------------------------

def parse_json(data: bytes | str) -> Any:
    r"""Return the value of one JSON text (RFC 8259), read strictly.

    Objects become dict (the last of equal names wins), numbers int or float. UTF-8 is checked; a byte order mark at the
    beginning is skipped; a surrogate escape without its partner is kept as a lone surrogate; a number beyond a float's
    range is infinite. Containers may nest 1,024 deep.

    Raises ValueError with the fault and its byte, also for an integer of more digits than
    `sys.get_int_max_str_digits()`.

    >>> parse_json(b'{"a": [1, 2.5, "\\u00e9"]}')
    {'a': [1, 2.5, 'é']}
    >>> parse_json(b'[1,]')
    Traceback (most recent call last):
    ValueError: invalid JSON: expected a value at byte 3
    """

def get_text(members: dict[str, Any], name: str) -> str:
    """Return a string of a JSON object, "" if it is missing or another kind of value.

    members: a dict from `parse_json`.

    >>> get_text({"cwd": "/home", "id": 7}, "cwd"), get_text({"cwd": "/home", "id": 7}, "id")
    ('/home', '')
    """

def write_json(value: Any, style: int = 0) -> bytes:
    """Return `value` as one JSON text in UTF-8.

    value: dict (with str keys), list, tuple, str, int, float, bool or None, at most 1,024 containers deep.
    style: 0 compact, 1 a space after each comma and colon, 2 one member a line, indented by two spaces.

    Only control characters, quotation marks, backslashes and lone surrogates are escaped. Raises ValueError for values
    that have no JSON form: NaN, infinity, a cycle, any other type.

    >>> write_json({"a": [1, None]}, 1)
    b'{"a": [1, null]}'
    """

def edit_json(data: bytes, edits: list[tuple[tuple[str | int, ...], bytes | None]]) -> bytes:
    """Return `data` with values set or removed and every other byte as it was.

    edits: (path, value) pairs, done in order. A path leads from the root by member names and element indices (negative
    ones count from the end); the value is a JSON text, or None to remove. If several members have one name, the last
    one is set, and all are removed. A missing member is added after the last one and laid out like the others.
    Removing a missing member changes nothing. Several set values in a row cost one pass together, unless one path leads
    through another.

    Raises ValueError if `data` or a value is not JSON, KeyError if a path leads through a value of another kind, a
    missing member or an index out of range.

    >>> edit_json(b'{"n": 1.0, "list": []}', [(("n",), b"2"), (("new",), b"true")])
    b'{"n": 2, "list": [], "new": true}'
    """

def read_json_columns(
    fd: int,
    array: str,
    choose: Callable[[dict[str, Any]], tuple[tuple[str, ...], ...]],
    window_bytes: int = 262144,
) -> tuple[dict[str, Any], list[list[Any]] | None, tuple[int, int] | None]:
    """Read the object in a JSON file, with one of its members, an array of many objects, as columns.

    fd: the descriptor of a regular file. It is read from its beginning. A byte order mark is skipped.
    array: the name of the array's member, at most 64 bytes of UTF-8.
    choose: called with the members before the array. Returns the path of each column, at most 16: the name of a member
    of a row, or two names: of the member, and of a member inside of it.
    window_bytes: how many bytes of the file are in memory at first, at least 4. The window grows to the size of the
    largest member or row; the result does not depend on it.

    Returns (value, columns, span). value: the root without the array. columns: for each path a list with one value for
    each row, None if the row has none. span: the array's bytes in the file, end exclusive. If the member is not an
    array, it is in `value`, and columns and span are None.

    The used memory depends on the result and on the largest member or row, not on the file's size.
    Raises ValueError if the file is not JSON, the root or a row is not an object, or an argument is out of range;
    OSError if the file cannot be read.
    """

def fingerprint(data: bytes) -> int:
    """Return a 64-bit hash, to see whether the bytes changed. It is not cryptographic.

    >>> fingerprint(b"tail") == fingerprint(b"tail"), fingerprint(b"tail") == fingerprint(b"hook")
    (True, False)
    """

@final
class JsonIndenter:
    """Lays out a JSON text with one line for each value, indented by two, like style 2 of `write_json`.

    Every value stays spelled as it is.

    depth: of this text in another one. Its first line is not indented.

    >>> JsonIndenter().feed(b'{"a":[1.0,{}]}')
    b'{\\n  "a": [\\n    1.0,\\n    {}\\n  ]\\n}'
    """

    def __init__(self, depth: int = 0) -> None: ...
    def feed(self, data: bytes) -> bytes:
        """Return the layout of one more piece of the text, cut anywhere. It must be JSON: it is not checked."""

@final
class JsonFramer:
    """Finds the end of the first JSON object in bytes that arrive in pieces.

    >>> framer = JsonFramer()
    >>> framer.feed(b'{"a": "}')
    -1
    >>> framer.feed(b'"} and more')
    10
    """

    def feed(self, data: bytes) -> int:
        """Return the offset after the object, counted from the first byte ever fed, or -1 if more bytes are needed.

        Only brackets and strings are read: `parse_json` decides whether the bytes before the offset are JSON.
        """

# ---- lines -------------------------------------------------------------------
#
# `file` is the descriptor of a regular file, whose position is neither used nor
# changed, or a seekable binary file object. Both directions return the same lines.

def reverse_lines(
    file: int | BinaryIO | FileIO,
    start: int = 0,
    end: int | None = None,
    max_line: int | None = None,
    containing: bytes | None = None,
    above: tuple[str, int] | None = None,
) -> Iterator[tuple[int, bytes]]:
    r"""Iterate over the lines of a file, newest first: (offset of the first byte, bytes without the line end).

    start, end: a byte range; only lines that begin in it are returned, whole. The default `end` is the
    file's size now: lines written later are not returned.
    max_line: bytes; longer lines are skipped and not kept in memory.
    containing: bytes that a line must contain. Other lines are skipped without becoming Python objects.
    above: a member's name, at most 64 bytes of UTF-8, and a number. A line with a JSON object is skipped if it lacks
    the member, or if the member is a whole number and not greater. Any other line is returned.

    A line ends with a newline, or a carriage return and a newline; the last line may have no end. A byte order mark at
    the start of the file is left out. If the file is truncated or overwritten meanwhile, the iteration ends.

    Raises OSError; ValueError for negative numbers; RuntimeError if two threads read at once.

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
    """Iterate over the lines like `reverse_lines`, oldest first."""

# ---- times -------------------------------------------------------------------

def unix_time(stamp: str) -> float | None:
    """Return the Unix time of a date and time in ISO 8601, in seconds, or None if it is invalid.

    Calendar, ordinal and week dates and times down to hour, minute or second, in the extended or the basic format,
    with fractions and zones (ISO 8601-1:2019, 5.2 to 5.4); also a space for T, and lower case (RFC 3339, 5.6).
    Without a zone a time counts as UTC; a date alone is its midnight.

    >>> unix_time("2026-01-02T03:04:05.5+05:30")
    1767303245.5
    >>> unix_time("2026-01-02 03:04:05z") == unix_time("2026-W01-5T03:04:05") == unix_time("20260102T030405Z")
    True
    """

def iso_time(seconds: float, milliseconds: bool = False) -> str:
    """Return a Unix time in UTC in ISO 8601, cut off to the second or to the millisecond.

    Raises ValueError outside of the years 0 to 9999.

    >>> iso_time(1767312245.678), iso_time(1767312245.678, milliseconds=True)
    ('2026-01-02T00:04:05Z', '2026-01-02T00:04:05.678Z')
    """

# ---- records -----------------------------------------------------------------

@final
class ToolUse:
    """A tool_use block: a call of a tool by the assistant."""

    @property
    def id(self) -> str | None: ...
    @property
    def name(self) -> str | None: ...
    @property
    def input(self) -> Any:
        """The tool's input, decoded by orjson at each access. Raises tailhook.errors.RecordError."""

@final
class Record:
    """One line of a transcript. Every attribute is decoded at each access.

    The attributes are members of the line's object and of its `message`; of equal names the last one counts. An
    absent member, or one of another kind, is None; a flag is true only if the value is `true`. Invalid UTF-8 in a
    string becomes U+FFFD; in the members that a hook reads, it makes the line a bad one.
    The names in a line are Claude Code's (2.1.329); other hosts' records are translated to them.
    """

    @property
    def text(self) -> str:
        """`message.content`, or the record's own `content` (not of a tool's result): the string, or its text blocks and
        bare strings joined by newlines, without those of only white space; "" otherwise.

        If a person typed a prompt while the agent worked (Claude Code 2.1.222), the record is an attachment: its
        `prompt` is the content.
        """
    @property
    def role(self) -> str | None:
        """The message's role, or the type of a flat record; "user" of a queued prompt; None in other records."""
    @property
    def type(self) -> str | None: ...
    @property
    def message_id(self) -> str | None: ...
    @property
    def uuid(self) -> str | None: ...
    @property
    def timestamp(self) -> str | None:
        """As in the record, normally ISO 8601 in UTC."""
    @property
    def time(self) -> datetime | None:
        """The timestamp as an aware datetime in UTC, to the microsecond; None if it is not a time of ISO 8601."""
    @property
    def session_id(self) -> str | None: ...
    @property
    def agent_id(self) -> str | None:
        """The id of the sub-agent that wrote it."""
    @property
    def parent_uuid(self) -> str | None:
        """The uuid of the record before it."""
    @property
    def request_id(self) -> str | None:
        """The id of the message's request to the API."""
    @property
    def model(self) -> str | None: ...
    @property
    def cwd(self) -> str | None:
        """The folder of the agent's work: its project."""
    @property
    def git_branch(self) -> str | None: ...
    @property
    def host_version(self) -> str | None: ...
    @property
    def subtype(self) -> str | None:
        """The kind within its type, such as "compact_boundary" of the type "system"."""
    @property
    def usage(self) -> Usage | None:
        """The tokens of the whole response, in every record of its message; None if the message has no `usage`.

        Of the records of one message, the one with the most output tokens counts.
        """
    @property
    def tool_results(self) -> list[ToolResult]:
        """The message's tool_result blocks, or the record itself if it is a flat tool_result."""
    @property
    def is_prompt(self) -> bool:
        """Whether a person typed it: it has words of a user, not of a tool's result or the host.

        The host writes meta records, sub-agents' prompts, summaries, commands and their output, notifications, marks of
        an interruption, and hooks' feedback.
        """
    @property
    def has_own_words(self) -> bool:
        """Whether it has words of the agent or a person, not of the host in their name.

        Words of a sub-agent are own words, too. The host writes meta records, API errors, summaries, commands and their
        output, notifications, marks of an interruption, and hooks' feedback.
        """
    @property
    def is_error(self) -> bool:
        """Whether a tool failed (one of the results is an error), or a request to the API did."""
    @property
    def is_sidechain(self) -> bool:
        """Whether a sub-agent wrote it."""
    @property
    def is_meta(self) -> bool:
        """Whether the host wrote it, such as a hook's feedback."""
    @property
    def is_api_error(self) -> bool: ...
    @property
    def is_compact_summary(self) -> bool: ...
    @property
    def tools(self) -> list[ToolUse]:
        """The message's tool_use blocks, or the record itself if it is a flat tool_use."""
    @property
    def offset(self) -> int:
        """Bytes from the start of the file to the record's line."""
    def json(self) -> Any:
        """Return the whole object as the host wrote it, decoded by orjson.

        Raises tailhook.errors.RecordError if a member unknown to this class is invalid UTF-8.
        """

def parse_record(line: bytes, offset: int = 0, original: Record | None = None) -> Record | None:
    r"""Return the record in a line that begins at `offset` of its file, or None.

    original: the record of another host, if the line is its translation; `json` then gives the original's.

    A good line is one JSON object. In a bad line, the record is the last complete object that starts the line, follows
    another complete object, or ends at the line's end, apart from white space and NULs. An object nested in a torn
    record is not a record. All of the line is checked against the JSON grammar; UTF-8 is checked in the texts, types,
    ids, names and inputs of the record and its message.

    >>> parse_record(b'{"type":"assistant","message":{"content":[{"type":"text","text":"Hi"}]}}').text
    'Hi'
    >>> parse_record(b'{"type":"user","message":{"con{"type":"summary"}').type
    'summary'
    """

def reverse_records(
    file: int | BinaryIO | FileIO,
    start: int = 0,
    end: int | None = None,
    max_line: int | None = None,
    once: bool = False,
) -> Iterator[Record]:
    """Iterate over the records of `reverse_lines`. Lines without a record are skipped.

    once: a repeated record (`SeenRecords`) is returned once. Behind a compaction, it is returned at its first place;
        all of the file is read for this.
    """

def forward_records(
    file: int | BinaryIO | FileIO,
    start: int = 0,
    end: int | None = None,
    max_line: int | None = None,
    once: bool = False,
) -> Iterator[Record]:
    """Iterate over the records of `forward_lines`. Lines without a record are skipped.

    once: a repeated record (`SeenRecords`) is returned at its first place.
    """

def reverse_messages(
    file: int | BinaryIO | FileIO,
    start: int = 0,
    end: int | None = None,
    max_line: int | None = None,
    max_lines: int | None = None,
    without: Container[int] | None = None,
) -> Iterator[tuple[bool, bytes, list[str | None]]]:
    """Iterate over the messages of the main conversation, newest first.

    Yields three values for each record of `reverse_records` with words or tools: whether it is the assistant's, its
    text, and the names of its tools. The text is `Record.text` in UTF-8 (a lone surrogate takes three bytes), or b"".
    max_lines: the largest number of lines to read.
    without: offsets of lines to leave out.

    The iterator has a method `may_repeat(fd, most)`. It returns whether the records read so far have a compaction and
    may repeat a message of an earlier line. They may if a message is older than the message before it, or if the uuid
    of the oldest one is in at most `most` bytes before it. A compaction writes a block of old messages again, in their
    order, so one of the two holds for each block. Raises OSError.
    """

def is_same_message(one: Record, other: Record) -> bool:
    """Return whether two records are of one message of the model's API: they have the same message id and request id.

    A record without a request id fits each response of its message id. Under load, a host gives two responses the same
    message id (Claude Code 2.1.332). The table usage (`ResponseCounter`) counts responses by the same rule.
    """

class SeenRecords:
    """The records seen so far, by their uuids: a host writes some records twice, with the same uuid."""

    def add(self, record: Record) -> bool:
        """Keep a record; return whether its uuid is new. A record without a uuid, or with "", is always new."""

def repeated_records(
    file: int | BinaryIO | FileIO,
    start: int = 0,
    end: int | None = None,
    max_line: int | None = None,
) -> set[int]:
    """Return the offsets of the records whose uuid is in an earlier line of this part of a file.

    start, end, max_line: as for `forward_records`.
    """

def reverse_tool_uses(
    file: int | BinaryIO | FileIO,
    names: Container[str] | None,
    start: int = 0,
    end: int | None = None,
    max_line: int | None = None,
    max_lines: int | None = None,
) -> Iterator[tuple[str, str | None, bytes, bool | None, int]]:
    """Iterate over the uses of tools, newest first: (the tool's name, the use's id, input, whether it failed, offset).

    The input is the JSON text of the tool_use block's `input`, its UTF-8 unchecked. A use failed if its tool_result
    block has `is_error` true; None if no result follows it. The offset is the line's.

    names: of the tools whose uses are returned; None for all. Uses without an input are left out.
    max_lines: the largest number of lines to read.
    """

def last_message(
    file: int | BinaryIO | FileIO,
    max_bytes: int | None = None,
    max_line: int | None = None,
    max_lines: int | None = None,
    sidechains: bool = False,
    once: bool = False,
) -> tuple[str, list[tuple[bytes, float | None]]]:
    """Return the newest message of the assistant with text, not of a sub-agent: (outcome, texts).

    max_bytes: how far to read back from the end of the file. None: no limit.
    max_line: bytes; longer lines are skipped. None: no limit.
    max_lines: how many lines to read. None: no limit.
    sidechains: messages of sub-agents count, too.
    once: records that a compaction wrote again do not count. If there may be some, all of the file is read.

    A message consists of all records with text that have its id and request id (`is_same_message`). texts: for each
    record, oldest first, its text and its timestamp in Unix seconds, None if it has no valid one. The text is UTF-8 (a
    lone surrogate takes three bytes): a str may need four times the memory. Outcomes, all but the first without texts:
    - "text": there is a message;
    - "no_text": there are assistant records, but none with text;
    - "no_assistant": there is no assistant record;
    - "unknown": a limit, a skipped line or an overwritten file came before an answer.
    """

# ---- Markdown ------------------------------------------------------------------

_Span = TypeVar("_Span", bound=tuple[str, int, int])

def code_spans(markdown: str | bytes, cls: type[_Span]) -> list[_Span]:
    """Return the ranges of `markdown` that are code, by CommonMark 0.31.2 (sections 3 to 6).

    cls: a class made by typing.NamedTuple of (kind, start, end). kind is fence, indented, span, comment or raw;
    start and end (exclusive) are code points of a str, bytes of bytes. A str may hold lone surrogates, and bytes need
    not be UTF-8: neither changes the ranges. Time and memory are linear in the text's length.

    Raises TypeError if markdown is neither str nor bytes.

    >>> from tailhook import Span
    >>> code_spans("a `b`", Span)
    [Span(kind='span', start=2, end=5)]
    """

# ---- patterns ----------------------------------------------------------------

_Tuple = TypeVar("_Tuple", bound=tuple[object, ...])

class Automaton:
    """The matcher over one table of `tailhook.patterns.automaton.compile_table`.  (ext/patterns/automaton.pxi)

    data: the table.
    names: the names of the patterns, by their number in the table.

    Raises ValueError if the data is not such a table. It is checked as a whole: no index in it can lead out of it.
    """

    data: bytes
    names: tuple[str, ...]

    def __init__(self, data: bytes, names: tuple[str, ...]) -> None: ...
    def hits(self, text: bytes, prefiltered: bool = True) -> list[tuple[int, int, int]]:
        """Return all matches, in any place: (number of the name, start, end), in no particular order.

        prefiltered: False runs only the automaton, over the whole text, as on processors without AVX2. The hits are the
        same.

        >>> from tailhook.patterns.automaton import compile_table
        >>> table = compile_table([(0, "he"), (1, "she")], ignore_case=False, word=False)
        >>> sorted(Automaton(table, ("he", "she")).hits(b"ushers"))
        [(0, 2, 4), (1, 1, 4)]
        """

    def has_hit(self, text: bytes, prefiltered: bool = True) -> bool:
        """Return whether there is a match. Stops at the first one, and takes no memory.

        prefiltered: as for `hits`.

        >>> from tailhook.patterns.automaton import compile_table
        >>> Automaton(compile_table([(0, "she")], ignore_case=False, word=False), ("she",)).has_hit(b"ushers")
        True
        """

    def findall(self, source: str | bytes, own_line: bool, outside_code: bool, cls: type[_Tuple]) -> list[_Tuple]:
        """Return the counting matches, sorted by start, end and name.

        Each is a `cls` of (name, start, end, line, in_code). Offsets count characters of a str, bytes of bytes; lines
        count from 1. `PatternSet` explains the options. Raises TypeError for other texts and if `cls` is not a
        NamedTuple class.
        """

def signals(source: str | bytes) -> list[str]:
    """Return the idle machine's signals in a text, in order.

    A signal counts if it is alone on its line and outside code. tailhook/machines/idle.py lists them.

    >>> signals("Done.\\n\\n<loop-done>COMPLETE</loop-done>\\n")
    ['<loop-done>COMPLETE</loop-done>']
    """

def keywords(text: bytes, tuned: bool = False) -> list[tuple[int, int, int]]:
    """Return the memory machine's keywords in a text in UTF-8: (number, start, end) of each, also in code.

    tuned: use the second profile's table. `tables` in tailhook/machines/keywords.py explains the numbers.

    >>> sorted(keywords(b"Picked it, because"))
    [(0, 0, 6), (1, 11, 18), (7, 11, 18)]
    """

def score_lines(messages: list[bytes], tuned: bool = False) -> list[tuple[int, int, bytes, bytes, bytes, bool]]:
    """Return the lines of messages that count for a category of the memory machine, in the session's order.

    messages: UTF-8, the oldest first. Their code (`code_spans`) is left out: a line of only code is removed, other code
    becomes one space.
    tuned: use the second profile's table: in it every keyword of a line counts.

    Returns a tuple for each counting of a line: the category (its index in tailhook/machines/memory.py, CATEGORIES),
    the message's index, the line, its keyword, the booster near it (b"" for none), and whether it counts as boosted. In
    each category at most MAX_BOOSTED count as boosted and MAX_PLAIN as plain. Time is linear in the text. The search
    stops when all categories are full.

    >>> score_lines([b"We chose A,\\nbecause of B."])
    [(0, 0, b'We chose A,', b'chose', b'because', True)]
    """

def promises(source: str | bytes, own_line: bool = False) -> list[str]:
    """Return the words of each `<promise>` in a text, from the nearest opening tag to the closing one, in order.

    Both tags must be outside code. The text between them may contain code and line ends. Of several equal ones in a
    row, only the first is returned.
    own_line: the tags must be alone on their line or lines, apart from the markers of quotes and list items.

    >>> promises("I promise: <promise>TESTS\\nGREEN</promise>, and `<promise>nothing</promise>` else")
    ['TESTS\\nGREEN']
    """

def find_keys(text: str) -> list[tuple[int, int]]:
    """Return the positions of keys with a known prefix: (start, end) of each, in characters.

    A key begins where a word begins, or behind a sign such as = or a slash. After its prefix come at least half of the
    rule's characters, or 16, with a digit or letters of both cases among them. The prefixes are those of
    tailhook/machines/secret_rules.py.

    >>> find_keys("push with ghp_0123456789abcdefghij, or npm_config_registry_name")
    [(10, 34)]
    """

# ---- the operating system ----------------------------------------------------

def flock_within(fd: int, seconds: float) -> bool:
    """Take an exclusive `flock` on a descriptor. Returns False if `seconds` pass without it.

    Raises OSError if the file cannot be locked.
    """

def wait_readable(fd: int, seconds: float) -> bool:
    """Wait up to `seconds` until a read of the descriptor will not block; return whether it will not.

    At the end of the input a read does not block. seconds: 0 or less looks once.

    Raises OSError if the descriptor cannot be polled.
    """

def wait_writable(fd: int, seconds: float) -> bool:
    """Wait up to `seconds` until a write to the descriptor will not block; return whether it will not.

    If the other end is closed, a write does not block. seconds, errors: as for `wait_readable`.
    """

def send_wake_up(path: bytes) -> int:
    """Send a wake-up, a datagram of one byte, to the Unix socket at `path` without blocking. Returns 0 or an errno.

    ENOENT and ECONNREFUSED: no process listens there. EAGAIN: the listener is busy and has wake-ups waiting.
    """

def folder_fault(folder: bytes) -> tuple[bool, str]:
    """Return whether a folder exists, and why another user could change or replace it, or "".

    The folder must belong to this user, and no other user may write to it. Each folder and link on the way to it must
    belong to this user or to root. If other users may write to such a folder, it must be sticky, as /tmp is: then they
    cannot rename what is in it. Above the folder, a group with the user's own number does not count as other users,
    except root's.

    folder: an absolute path. A part that cannot be looked at counts as missing.
    """

# ---- scans ---------------------------------------------------------------------

@final
class ArrowBatch:
    """Rows of a table in Arrow's memory layout, which Arrow's consumers take without a copy.  (ext/arrow/batch.pxi)

    Consumers may keep any part of it, and may release it in any order and thread.

    names: of the columns.
    """

    @property
    def names(self) -> tuple[str, ...]: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...
    def select(self, names: tuple[str, ...]) -> ArrowBatch:
        """Return some of the columns, in this order, without a copy. Raises ValueError for one that is missing.

        >>> make_batch("usage", ("model", "input_tokens"), [("m", 3)]).select(("input_tokens",)).columns()
        [[3]]
        """

    def head(self, length: int) -> ArrowBatch:
        """Return the first rows, or all if there are fewer, without a copy. Raises ValueError for a number below 0.

        >>> make_batch("usage", ("model",), [("m",), ("n",)]).head(1).columns()
        [['m']]
        """

    def columns(self, times_as_text: bool = False) -> list[list[Any]]:
        """Return the values of each column: str, int, bool, aware datetime or list of str, and None for a null.

        times_as_text: whether times are str, as ISO 8601 in UTC: 2026-11-22T09:00:00.000000Z.

        >>> make_batch("usage", ("model", "input_tokens"), [("m", 3), (None, None)]).columns()
        [['m', None], [3, None]]
        """

def make_batch(table: str, names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> ArrowBatch:
    """Return rows of Python values as a batch.

    names: of the columns.  rows: values as `ArrowBatch.columns` returns them, in the order of the names. A time may
        also be an int: microseconds since the beginning of 1970 in UTC.

    Raises ValueError for a column that no table has or a row of another length, TypeError for a value of another type,
    OverflowError for a number of more than 64 bits, MemoryError also if the texts of a column take 2 GiB.
    """

@final
class ResponseCounter:
    """Counts each API response once, however many records and files repeat it.  (ext/scan/responses.pxi)

    Two records are of one response if the first of these that they have is equal:

    - the message id and the request id. A message id that also occurs without a request id is one response.
    - the request id
    - the uuid
    - the place: path and offset

    The record with the most output tokens counts; of several, the latest by time, path and offset. The session, agent,
    project and host are those of the first record. The order in which records are added does not matter.

    The responses of an advisor have the ids of the response that asked for it, and numbers from 1 in `advisor`. In
    `copies` a record has its uuids in other threads, one a line. It is of one response with the records of these uuids.
    Then the earliest of the records with the most output tokens counts.

    One thread at a time may use a counter: its methods raise RuntimeError if another thread does.

    >>> names = ("path", "offset", "timestamp", "session_id", "message_id", "request_id", "uuid", "output_tokens")
    >>> names += ("advisor", "copies")
    >>> counter = ResponseCounter(names)
    >>> records = [("p", 0, None, "s", "m", "r", None, 3, 0, None), ("p", 90, None, "s", "m", "r", None, 7, 0, None)]
    >>> counter.add(make_batch("usage", names, records))
    >>> [batch.columns() for batch in counter.rows(("session_id", "output_tokens"))]
    [[['s'], [7]]]
    """

    def __new__(cls, names: tuple[str, ...]) -> ResponseCounter:
        """Return a counter for records with these columns.

        Raises ValueError if they lack one of `path`, `offset`, `timestamp`, `session_id`, `message_id`, `request_id`,
        `uuid`, `output_tokens`, `advisor` and `copies`, or if one is not a column of a table.
        """

    def add(self, batch: ArrowBatch) -> None:
        """Add records. Raises ValueError for other columns than the counter has, MemoryError."""

    def rows(self, names: tuple[str, ...]) -> list[ArrowBatch]:
        """Return a row for each response, with some of the counter's columns, in batches of at most 65,536 rows.

        They are sorted by time, session, message id, request id and place, missing values first.

        Raises ValueError for a column that the counter lacks, MemoryError.
        """

def arrow_stream(schema: ArrowBatch, batches: Iterable[ArrowBatch]) -> object:
    """Return an Arrow PyCapsule stream of batches, all with the columns of `schema`.

    An exception of the iterator, or a batch with other columns, is the stream's error.
    """

@final
class ScanProgram:
    """A question for `scan_range`. It can be pickled, with its compiled tables.  (ext/scan/program.pxi)

    table: "records" or "matches", or a table of halves: "usage", "tools", "sessions".
    columns: of the rows, each once.
    sets: for matches, of each pattern set: (table of the automaton, whether a match stands alone on its line, the
        number of its first name, how many names it has).
    names: of the matches.
    gate: the table of an automaton to find all lines that could give a row, in their JSON text. None: all lines.
        It may be the table of the only set. Such a set may find more than its names, under the next number: such a hit
        only opens the gate.
    options: for matches; up to 131,072 characters around a match.
    roles, projects, sessions: of the counting records; empty for all. A folder below a project counts too.
    since, until: microseconds since 1970; None for no limit.
    known_types: pairs of a host and a type: records of other types are counted; none are if this is empty.

    Threads can share it: it does not change.

    Raises ValueError for an unknown table or column, for bytes other than an automaton's table, and for values out of
    bounds; TypeError for a wrong type.
    """

    def __new__(
        cls,
        *,
        table: str,
        columns: Sequence[str],
        sets: Sequence[tuple[bytes, bool, int, int]] = (),
        names: Sequence[str] = (),
        gate: bytes | None = None,
        options: MatchOptions = ...,
        roles: Sequence[str] = (),
        since: int | None = None,
        until: int | None = None,
        projects: Sequence[str] = (),
        sessions: Sequence[str] = (),
        known_types: Sequence[tuple[str, str]] = (),
    ) -> ScanProgram: ...

def scan_range(
    source: int,
    start: int,
    end: int | None,
    program: ScanProgram,
    *,
    path: str = "",
    session_id: str = "",
    host: str = "claude-code",
    into: RangeScan | None = None,
) -> list[ArrowBatch]:
    """Scan a range of an open file, and return its rows as finished batches: at least one. It may be empty.

    A line belongs to the range of its first byte, so any cuts of a file give the same rows. A line of over 16 MiB
    without its newline is skipped and counted. The interpreter lock is not held from the first to the last byte, and
    threads can share the program and the file. So Ctrl-C is handled at the end of the range, unless a thread waits in
    `RangeScan.take`.  (ext/scan/range.pxi)

    source: the descriptor of a regular file. It stays open, and its position does not change.
    start, end: bytes.  end: None for the end of the file.
    path: for the rows.  session_id: of records without one.
    into: a scan of the same program. It gets the rows and the counts: then no batch is returned.

    Raises OSError if the file cannot be read; ValueError if the range begins before the file, or the scan has another
    program; RuntimeError if another thread uses the scan; MemoryError.

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     _ = file.write(b'{"type":"user"}\\n{"type":"assistant"}\\n')
    ...     file.flush()
    ...     batches = scan_range(file.fileno(), 5, None, ScanProgram(table="records", columns=["type", "offset"]))
    >>> [batch.columns() for batch in batches]
    [[['assistant'], [16]]]
    """

@final
class FoundFiles(Sequence[_Tuple]):
    """The found files of a scan, packed. An item is made on request.  (ext/scan/found_files.pxi)

    After `sort`, they are sorted by path.

    >>> from tailhook.fleet.plan import SourceFile
    >>> found = FoundFiles(SourceFile)
    >>> found.add("b.jsonl", 7, 0.5)
    >>> found.add("a.jsonl", 8, 0.5)
    >>> found.sort()
    >>> [file.path for file in found]
    ['a.jsonl', 'b.jsonl']
    """

    def __new__(cls, item: type[_Tuple]) -> FoundFiles[_Tuple]:
        """item: the class of an item: SourceFile (fleet/plan.py). Raises TypeError if it is not a NamedTuple."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, number: int) -> _Tuple: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[_Tuple]: ...
    def add(self, path: str, size: int, modified: float) -> None:
        """Add a file. Raises UnicodeEncodeError if its path cannot be written in UTF-8."""

    def add_folder(self, folder: str, first: str) -> tuple[list[str], list[tuple[str, int]]]:
        """Add the transcripts in a folder. Links are left out. Raises OSError if the folder cannot be read.

        first: the beginning of each path.

        Returns the paths of the folders in it, sorted, and the paths that cannot be scanned: each with its errno, or
        with 0 if it is not UTF-8 or not a regular file.
        """

    def sort(self) -> None:
        """Sort by path, and keep only the newest of those with the same path."""

def is_transcript_name(name: str) -> bool:
    """Return whether a file with this name in a folder of transcripts is a transcript.

    >>> is_transcript_name("a.jsonl.gz"), is_transcript_name("a.JSONL.001"), is_transcript_name("a.json")
    (True, True, False)
    """

@final
class RangeScan:
    """Gathers the rows of ranges of files, scanned one after another, in batches.  (ext/scan/range.pxi)

    A file of Claude Code's records is scanned with `scan_range`. For data that Python reads or translates: `begin`,
    then `feed` or `feed_line`, then `end_file`.

    One thread at a time may scan. While it does, other threads may use `take`, `stop`, `is_stopped` and `is_done`; most
    other methods raise RuntimeError there. After a MemoryError they raise it again, because a row may be incomplete.

    program: the question.
    is_done: whether the range has ended, and no more bytes are needed.
    is_stopped: whether `stop` was called.
    counts: records, broken_lines and long_lines so far.

    >>> scan = RangeScan(ScanProgram(table="records", columns=["type", "offset"]))
    >>> scan.begin("t.jsonl", "session", "claude-code")
    >>> scan.feed(b'{"type":"user"}\\n{"type":"assistant"}\\n')
    >>> scan.end_file()
    >>> [batch.columns() for batch in scan.finish()]
    [[['user', 'assistant'], [0, 16]]]
    """

    @property
    def program(self) -> ScanProgram: ...
    @property
    def is_done(self) -> bool: ...
    @property
    def is_stopped(self) -> bool: ...
    @property
    def line_gate(self) -> Automaton | None:
        """An automaton for all lines with a possible match or tokens; None if all lines count, and for other tables."""

    @property
    def counts(self) -> dict[str, int]: ...
    @property
    def unknown_types(self) -> dict[tuple[str, str], int]:
        """The number of decoded records of unknown types, by type and version of the host.

        The first 64 types are kept; all others count as ("others", "").
        """

    def __new__(cls, program: ScanProgram, max_waiting: int | None = None) -> RangeScan:
        """Return a scan.

        max_waiting: how many finished batches may wait for `take`. With so many, the scan waits until another thread
            takes one, and Ctrl-C does not end this wait. None: any number.

        Raises ValueError if it is 0.
        """

    def begin(self, path: str, session_id: str, host: str, start: int = 0, end: int | None = None) -> None:
        """Begin a range of a file, and forget an unfinished line. Raises ValueError if it begins before the file.

        path: for the rows.  session_id: of records without one.  end: None for the end of the file.
        """

    def read_small_files(self, parts: list[Any], first: int, host: str) -> int:
        """Scan whole files of less than 256 KiB, without the interpreter. Returns how many were scanned.

        Ends at a file that is larger, has an unexpected size, cannot be read, or does not begin with a record of Claude
        Code with an id and a session. Nothing of that file was scanned.

        parts: each a FileRange (fleet/plan.py).
        """

    def feed(self, data: bytes) -> None:
        """Scan the next bytes; the first ones are at the offset `start` - 1, or 0. RuntimeError: no range is begun."""

    def feed_line(self, line: bytes, translated: bytes | None, offset: int) -> None:
        """Scan one line of another host, as if it stood at `offset`. Raises RuntimeError without a range.

        line: with its newline, if it has one.
        translated: its record in Claude Code's form, None if it has none.
        """

    def end_file(self) -> None:
        """End the range, and scan the last line if it has no newline. Raises RuntimeError without a range."""

    def finish(self) -> list[ArrowBatch]:
        """Return the batches since the last call that were not taken: at least one. It may be empty.

        `take` then returns None, until the next range is begun.

        Raises ValueError if the question has a column of another table.
        """

    def take(self) -> ArrowBatch | None:
        """Wait for a batch and take it; None if the scan was finished or stopped, or has failed.

        It waits without the interpreter lock. Signals are handled, so that Ctrl-C raises KeyboardInterrupt here.
        """

    def stop(self) -> None:
        """Let the scan end soon, in any thread: after 256 KiB, or the line at hand. Rows are then missing."""

# ---- modules -----------------------------------------------------------------

@final
class ModuleFinder:
    """A finder and loader (PEP 451) for the modules of tailhook. It opens the .pyc file without a search.

    Put it first on `sys.meta_path`. It finds modules below `tailhook` if their `__pycache__` file (PEP 552) has the
    source's current time and size. All others are left to Python's own finder: it compiles them.

    >>> import sys
    >>> sys.meta_path.insert(0, ModuleFinder())  # doctest: +SKIP
    """

    def __init__(self) -> None: ...
    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None: ...
    def start_hook(self, entry: str, names: str) -> None:
        """Begin a hook's process, which has loaded only the core: put this finder first, and load the first modules.

        No garbage is collected, because the process ends before that is worthwhile: `gc.isenabled` is False.

        entry: the path of the package's hook/entry.py.
        names: as for `preload`, in one string: it takes Python 47,000 instructions less to compile than six.
        """

    def preload(self, *names: str) -> None:
        """Load modules before they are imported. A module that others import comes first.

        An `import` statement then finds them in sys.modules and does not run importlib, which takes over 100,000
        instructions for a module. A module whose bytecode is missing or outdated, and those after it, are left to their
        `import` statements.

        names: below the package, as "hook.answer"; a package before its modules. Loaded ones are skipped.

        Raises the errors of the modules.
        """

    def create_module(self, spec: ModuleSpec) -> None: ...
    def exec_module(self, module: ModuleType) -> None: ...

def preload(*names: str) -> None:
    """Load modules like `ModuleFinder.preload`, if a hook has put a finder first on `sys.meta_path`."""

# ---- the pool of hook workers ------------------------------------------------

# What a client and a worker send each other: see ext/os/request.h.
READY_MAGIC: int
REQUEST_MAGIC: int
REQUEST_DESCRIPTORS: int  # that come with a request
MAX_REQUEST_BYTES: int
KIND_DIGITS: int  # in the name of a socket
POOL_RETRY_S: int  # seconds between two attempts of clients to start a pool
MIN_FILES: int  # that a process may open to answer a request
# Why no worker answered, as the code of a letter: see ext/os/request.h.
REASON_NO_POOL: int
REASON_BUSY: int
REASON_UNUSUAL: int
REASON_OFF: int

def caller_kind() -> int:
    """Return a hash of this process's users, groups, nice value, root folder and rights, or 0.

    It is part of the name of a pool's socket. Returns 0 if a hook could reach a limit of setrlimit(2), or if the
    process has more than 256 groups.

    >>> caller_kind() == caller_kind()
    True
    """

def caller_identity() -> int:
    """Return a hash of `caller_kind` and of this process's namespaces and label; 0 if `caller_kind` returns 0.

    Two processes with the same hash find the same files and may do the same with them.

    >>> caller_identity() == caller_identity()
    True
    """

def watch_folders(folders: Iterable[bytes]) -> int:
    """Return a descriptor that is readable when a file of a folder is made, written, renamed or removed; inotify(7).

    Returns -1 if the system has no more of them, has none at all (macOS), or if a folder is missing.

    >>> fd = watch_folders([b"/"])
    """
