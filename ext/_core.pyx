# cython: freethreading_compatible=True, subinterpreters_compatible=own_gil, auto_pickle=False
"""The compiled core of tailhook: its table of contents and its Python face."""

include "imports.pxi"       # what comes from outside: cimports and C headers
include "json/grammar.pxi"          # the grammar, and what strings say
include "json/read.pxi"     # a text's value; where a text ends in a pipe
include "json/write.pxi"    # a value's text
include "json/edit.pxi"     # one member replaced, every other byte left
include "json/layout.pxi"   # a text laid out anew
include "transcript/lines.pxi"         # lines of a file, newest first or forward
include "json/columns.pxi"  # an array of many objects in a file, a few members of each
include "transcript/records.pxi"       # what a line of a transcript says
include "text/iso8601.pxi"       # dates and times
include "transcript/bad_lines.pxi"     # the record in a line that is no JSON text
include "transcript/last_message.pxi"  # what the hooks ask of a transcript
include "text/view.pxi"          # text that is lent
include "named_tuple.pxi"   # what is found, for Python
include "markdown/code_map.pxi"          # where Markdown is code
include "markdown/grammar.pxi"     # what can be told of a line by its bytes
include "markdown/blocks.pxi"   # its block structure
include "markdown/inlines.pxi"  # its code spans and comments
include "markdown/face.pxi"     # the map, for Python
include "patterns/automaton.pxi"     # many patterns at once
include "patterns/matches.pxi"      # which of their matches count
include "patterns/memory_lines.pxi"  # which lines of the messages count for the memory machine
include "patterns/keys.pxi"          # keys with a known prefix
include "os/waiting.pxi"        # locks, waiting, and a poke
include "os/folders.pxi"       # who may change a folder
include "os/modules.pxi"       # the hook's own modules


# ---- JSON --------------------------------------------------------------------

def parse_json(data):
    cdef bytes text = data.encode() if isinstance(data, str) else data
    cdef Cursor start
    json_require(text)
    start = <Cursor>PyBytes_AS_STRING(text)
    return json_build(start, start + PyBytes_GET_SIZE(text))


def write_json(value, int style=0):
    return json_bytes(value, style)


def edit_json(bytes data not None, edits):
    return json_edit(data, edits)


def read_json_columns(int fd, str array not None, choose, Py_ssize_t window_bytes=1 << 18):
    return ColumnReader().read(fd, array, choose, window_bytes)


cdef class JsonIndenter:
    cdef JsonLayout layout
    cdef char busy  # a thread is in `feed`

    def __init__(self, Py_ssize_t depth=0):
        self.layout.depth = depth

    def feed(self, bytes data not None):
        cdef Output output = Output(NULL, 0, 0)
        cdef Cursor start = <Cursor>PyBytes_AS_STRING(data)
        if not flag_enter(&self.busy):
            raise RuntimeError("the text is being fed by another thread")
        try:
            output_room(&output, PyBytes_GET_SIZE(data) * 2 + 64)
            layout_feed(&self.layout, start, start + PyBytes_GET_SIZE(data), &output)
            return PyBytes_FromStringAndSize(<const char*>output.data, output.size)
        finally:
            flag_leave(&self.busy)
            PyMem_RawFree(output.data)


def fingerprint(bytes data not None):
    return fingerprint_of(<const uint8_t*>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))


cdef class JsonFramer:
    cdef JsonFrame frame
    cdef char busy  # a thread is in `feed`

    def feed(self, bytes data not None):
        cdef Cursor start = <Cursor>PyBytes_AS_STRING(data)
        if not flag_enter(&self.busy):
            raise RuntimeError("the text is being fed by another thread")
        try:
            return json_frame(&self.frame, start, start + PyBytes_GET_SIZE(data))
        finally:
            flag_leave(&self.busy)


# ---- lines and records -------------------------------------------------------

cdef object whole_value(bytes source):
    import orjson
    try:
        return orjson.loads(source)
    except ValueError:
        pass  # a lone surrogate, which orjson refuses, or invalid UTF-8
    try:
        return parse_json(source)
    except ValueError as error:
        from tailhook.errors import RecordError
        raise RecordError(str(error)) from None


@cython.final
cdef class ToolUse:
    cdef readonly object id
    cdef readonly object name
    cdef bytes source

    @property
    def input(self):
        return whole_value(self.source)

    def __repr__(self):
        return f"ToolUse(id={self.id!r}, name={self.name!r})"


cdef ToolUse tool_use(Slice* values):
    cdef ToolUse tool = ToolUse.__new__(ToolUse)
    tool.id = value_string(&values[FIELD_ID])
    tool.name = value_string(&values[FIELD_NAME])
    tool.source = b"null"
    if values[FIELD_INPUT].start != NULL:
        tool.source = json_between(values[FIELD_INPUT].start, values[FIELD_INPUT].end)
    return tool


@cython.final
cdef class Record:
    cdef RecordFields fields  # pointers into `source`
    cdef bytes source
    cdef readonly int64_t offset

    @property
    def type(self):
        return value_string(&self.fields.top[FIELD_TYPE])

    @property
    def role(self):
        return record_role(&self.fields)

    @property
    def text(self):
        return record_text(&self.fields)

    @property
    def message_id(self):
        return value_string(&self.fields.message[FIELD_ID])

    @property
    def uuid(self):
        return value_string(&self.fields.top[FIELD_UUID])

    @property
    def timestamp(self):
        return value_string(&self.fields.top[FIELD_TIMESTAMP])

    @property
    def is_sidechain(self):
        return value_is_true(&self.fields.top[FIELD_SIDECHAIN])

    @property
    def is_meta(self):
        return value_is_true(&self.fields.top[FIELD_META])

    @property
    def is_api_error(self):
        return value_is_true(&self.fields.top[FIELD_API_ERROR])

    @property
    def is_compact_summary(self):
        return value_is_true(&self.fields.top[FIELD_COMPACT_SUMMARY])

    @property
    def tools(self):
        cdef Slice blocks = record_speech(&self.fields)[FIELD_TOOLS]
        cdef Slice block[FIELDS]
        cdef list tools = []
        if value_is(&self.fields.top[FIELD_TYPE], b"tool_use", 8):
            tools.append(tool_use(self.fields.top))
        while blocks.start != NULL and next_element(&blocks, block, False):
            if value_is(&block[FIELD_TYPE], b"tool_use", 8):
                tools.append(tool_use(block))
        return tools

    def json(self):
        return whole_value(json_between(self.fields.start, self.fields.end))

    def __repr__(self):
        return f"Record(type={self.type!r}, offset={self.offset})"


cdef Record record_own(RecordFields* fields, int64_t offset):
    """A record with its own copy of the object."""
    cdef Record record = Record.__new__(Record)
    record.source = json_between(fields.start, fields.end)
    record.offset = offset
    record.fields = fields[0]
    record_move(&record.fields, <Cursor>PyBytes_AS_STRING(record.source))
    return record


def parse_record(bytes line not None, int64_t offset=0):
    cdef Record record = Record.__new__(Record)
    cdef Cursor start = <Cursor>PyBytes_AS_STRING(line)
    if not record_find(start, start + PyBytes_GET_SIZE(line), &record.fields):
        return None
    record.source = line
    record.offset = offset
    return record


cdef enum:
    LINES
    RECORDS
    MESSAGES


cdef bint may_hold_message(Line* line) noexcept nogil:
    """May the line hold a record that says or uses something? Its type stands in it, spelt out or with an escape.

    Asked of lines over a megabyte alone: others are read as fast as they are searched.
    """
    cdef size_t size = line.end - line.start
    return (
        size < 1 << 20
        or memmem(line.start, size, b"user", 4) != NULL
        or memmem(line.start, size, b"assistant", 9) != NULL
        or memmem(line.start, size, b"tool_use", 8) != NULL
        or memmem(line.start, size, b"human", 5) != NULL
        or memmem(line.start, size, b"\\u", 2) != NULL
    )


cdef tuple message_of(RecordFields* fields):
    """(is it the assistant's, its text in UTF-8, the names of its tools), or None if it says and uses nothing."""
    cdef list tools = []
    cdef bytes text
    if record_is_foreign(fields):
        return None
    if value_is(&fields.top[FIELD_TYPE], b"tool_use", 8):
        return (True, b"", [value_string(&fields.top[FIELD_NAME])])
    if not record_is_spoken(fields):
        return None
    text = record_utf8(fields, True) if record_has_text(fields, True) else b""
    if record_is_assistant(fields):
        tools = record_tool_names(fields)
    return (record_is_assistant(fields), text, tools) if text or tools else None


@cython.final
@cython.internal
@cython.no_gc_clear  # the window's file is this object's, and may be asked for by a finaliser
cdef class Lines:
    cdef object file
    cdef bytes needle  # only lines that contain it are given; None: all
    cdef Window window
    cdef int give  # LINES, RECORDS or MESSAGES
    cdef char busy  # a thread is in __next__

    def __cinit__(self):
        self.window.finished = True  # until open_lines gives it a file

    def __dealloc__(self):
        window_close(&self.window)

    def __iter__(self):
        return self

    def __next__(self):
        cdef Line line
        cdef RecordFields fields
        if not flag_enter(&self.busy):
            raise RuntimeError("the lines are being read by another thread")
        try:
            while window_step(&self.window, &line):
                if self.needle is not None and not line_contains(&line, self.needle):
                    continue
                if self.give == LINES:
                    return (line.offset, json_between(line.start, line.end))
                if self.give == MESSAGES and not may_hold_message(&line):
                    continue
                if not record_find(line.start, line.end, &fields):
                    continue
                if self.give == RECORDS:
                    return record_own(&fields, line.offset)
                if (message := message_of(&fields)) is not None:
                    return message
            window_close(&self.window)
            raise StopIteration
        finally:
            flag_leave(&self.busy)


cdef Lines open_lines(object file, int64_t start, object end, object max_line, bint forward, int give):
    cdef Lines lines = Lines.__new__(Lines)
    lines.file = file
    lines.give = give
    window_open(&lines.window, file, start, end, max_line, forward)
    return lines


def reverse_lines(file, start=0, end=None, max_line=None, bytes containing=None):
    cdef Lines lines = open_lines(file, start, end, max_line, False, LINES)
    lines.needle = containing
    return lines


def forward_lines(file, start=0, end=None, max_line=None, bytes containing=None):
    cdef Lines lines = open_lines(file, start, end, max_line, True, LINES)
    lines.needle = containing
    return lines


def reverse_records(file, start=0, end=None, max_line=None):
    return open_lines(file, start, end, max_line, False, RECORDS)


def reverse_messages(file, start=0, end=None, max_line=None, max_lines=None):
    cdef Lines lines = open_lines(file, start, end, max_line, False, MESSAGES)
    window_limit_lines(&lines.window, max_lines)
    return lines


def forward_records(file, start=0, end=None, max_line=None):
    return open_lines(file, start, end, max_line, True, RECORDS)


def last_message(file, max_bytes=None, max_line=None, max_lines=None):
    cdef Window window
    try:
        window_open(&window, file, 0, None, max_line, False)
        window_limit_lines(&window, max_lines)
        if max_bytes is not None:
            window.lower = max(window.upper - <int64_t>max_bytes, 0)
            window.finished = window.finished or window.lower >= window.upper
        return newest_message(&window)
    finally:
        window_close(&window)


# ---- pattern sets ---------------------------------------------------------------------


cdef list table_hits(const tailhook_table* table, bytes text, bint prefiltered):
    """(number, start, end) of each hit, unsorted."""
    cdef Hits hits = Hits(NULL, 0, 0)
    cdef const uint8_t* data = <const uint8_t*> PyBytes_AS_STRING(text)
    cdef size_t length = PyBytes_GET_SIZE(text)
    cdef size_t i
    cdef int failed
    try:
        with nogil:
            failed = automaton_find(table, data, length, prefiltered, &hits)
        if failed:
            raise MemoryError
        return [(hits.items[i].name, hits.items[i].start, hits.items[i].end) for i in range(hits.count)]
    finally:
        hits_free(&hits)


cdef class Automaton:
    cdef tailhook_table table
    cdef readonly bytes data
    cdef readonly tuple names

    def __cinit__(self, bytes data not None, tuple names not None):
        cdef const uint32_t* words = <const uint32_t*> PyBytes_AS_STRING(data)
        if len(data) % 4 or not table_is_sound(words, len(data) // 4, <uint32_t> len(names)):
            raise ValueError("not a table of tailhook.automaton.compile_table for these names")
        self.data = data
        self.names = names
        tailhook_table_view(&self.table, words)

    def hits(self, bytes text not None, bint prefiltered=True):
        return table_hits(&self.table, text, prefiltered)

    def findall(self, source, bint own_line, bint outside_code, type cls not None):
        cdef Text text
        cdef Hits hits = Hits(NULL, 0, 0)
        cdef Hit* hit
        cdef size_t i, start, end
        cdef size_t byte = 0
        cdef size_t character = 0
        cdef int failed
        cdef list found = []
        cdef PyThreadState* thread = PyThreadState_Get()
        require_named_tuple(cls)
        _owner = text_open(source, &text)
        try:
            with nogil:
                failed = patterns_find(&self.table, text.data, text.length, own_line, outside_code, &hits, thread)
            if failed:
                raise MemoryError
            for i in range(hits.count):
                hit = &hits.items[i]
                start, end = hit.start, hit.end
                if not text.in_bytes:
                    character += count_characters(text.data, byte, hit.start)
                    byte = hit.start
                    start, end = character, character + count_characters(text.data, hit.start, hit.end)
                match = new_named_tuple(cls, 5)
                set_item(match, 0, self.names[hit.name])
                set_item(match, 1, start)
                set_item(match, 2, end)
                set_item(match, 3, hit.line)
                set_item(match, 4, hit.in_code)
                found.append(match)
            return found
        finally:
            hits_free(&hits)


cdef enum:
    OPENING_TAG = 0  # machines/ralph.py, TAGS


def signals(source):
    cdef Text text
    cdef tailhook_table table
    cdef Hits hits = Hits(NULL, 0, 0)
    cdef size_t i
    cdef int failed
    cdef PyThreadState* thread = PyThreadState_Get()
    _owner = text_open(source, &text)
    tailhook_table_view(&table, tailhook_signals)
    try:
        with nogil:
            failed = patterns_find(&table, text.data, text.length, True, True, &hits, thread)
        if failed:
            raise MemoryError
        return [tailhook_signals_names[hits.items[i].name].decode() for i in range(hits.count)]
    finally:
        hits_free(&hits)


def keywords(bytes text not None, bint tuned=False):
    cdef tailhook_table table
    tailhook_table_view(&table, tailhook_keywords_tuned if tuned else tailhook_keywords_seed)
    return table_hits(&table, text, True)


def promises(source, bint own_line=False):
    cdef Text text
    cdef tailhook_table table
    cdef Hits tags = Hits(NULL, 0, 0)
    cdef Hit* opening = NULL
    cdef Hit* tag
    cdef Place lines
    cdef size_t i
    cdef int failed
    cdef list found = []
    cdef PyThreadState* thread = PyThreadState_Get()
    _owner = text_open(source, &text)
    tailhook_table_view(&table, tailhook_promise_tags)
    lines = Place(text.data, text.length, 0, 1, 0, 0, 1, 0)
    try:
        with nogil:
            failed = patterns_find(&table, text.data, text.length, False, True, &tags, thread)
        if failed:
            raise MemoryError
        for i in range(tags.count):
            tag = &tags.items[i]
            if tag.name == OPENING_TAG:
                opening = tag
            elif opening:
                lines_advance(&lines, opening.start)
                if not own_line or stands_alone(&lines, opening.start, tag.end):
                    found.append(text.data[opening.end:tag.start].decode("utf-8", "replace"))
                opening = NULL
        return found
    finally:
        hits_free(&tags)


# ---- the operating system ----------------------------------------------------

def flock_within(int fd, double seconds):
    cdef int got
    with nogil:
        got = lock_exclusively(fd, seconds)
    if got < 0:
        raise OSError(errno, strerror(errno).decode())
    return got == 1


def wait_readable(int fd, double seconds):
    cdef int got
    with nogil:
        got = wait_input(fd, seconds)
    if got < 0:
        raise OSError(errno, strerror(errno).decode())
    return got == 1


def poke(bytes path not None):
    return send_poke(PyBytes_AS_STRING(path), PyBytes_GET_SIZE(path))


def folder_fault(bytes folder not None):
    return check_private(folder)
