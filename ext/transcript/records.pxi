# A record of a transcript, and its properties.
#
# Gives: rec_value_*, rec_is_*, rec_role, rec_has_text, rec_utf8; rec_message, rec_may_hold_message, rec_copy;
# rec_speech, rec_next_text, rec_next_element, rec_find_member, rec_next_result, rec_read_count, rec_read_time.
# For Python: Record, ToolUse, parse_record.
# Needs: the fields (transcript/fields.pxi), the blocks of tools (transcript/tool_blocks.pxi), rec_find
# (transcript/bad_lines.pxi), WinLine (transcript/window.pxi), the grammar (json/grammar.pxi), parse_json
# (json/read.pxi), bytes_between and bytes_cut (text/view.pxi), iso_read_microseconds (text/iso8601.pxi).

cdef inline bint rec_value_is_true(RecSlice* value) noexcept nogil:
    return value.start != NULL and value.start[0] == c"t"


cdef inline bint rec_is_assistant(RecFields* fields) noexcept nogil:
    return rec_value_is(&fields.top[FIELD_TYPE], b"assistant", 9)


cdef inline bint rec_is_spoken(RecFields* fields) noexcept nogil:
    """Return whether the record has one of the types that hold words, or is a queued prompt."""
    return (
        rec_is_assistant(fields)
        or rec_value_is(&fields.top[FIELD_TYPE], b"user", 4)
        or rec_value_is(&fields.top[FIELD_TYPE], b"human", 5)
        or fields.is_queued_prompt
    )


cdef inline bint rec_is_host_made(RecFields* fields) noexcept nogil:
    """Return whether the record is marked as written by the host in the name of the agent or of a person."""
    return (
        rec_value_is_true(&fields.top[FIELD_META])
        or rec_value_is_true(&fields.top[FIELD_API_ERROR])
        or rec_value_is_true(&fields.top[FIELD_COMPACT_SUMMARY])
    )


cdef inline bint rec_is_foreign(RecFields* fields) noexcept nogil:
    """Return whether the record is a sub-agent's, or marked as written by the host."""
    return rec_value_is_true(&fields.top[FIELD_SIDECHAIN]) or rec_is_host_made(fields)


cdef inline bint rec_is_result(RecFields* fields) noexcept nogil:
    """Return whether the record itself is a tool's result, as flat transcripts have it."""
    return rec_value_is(&fields.top[FIELD_TYPE], b"tool_result", 11)


cdef inline RecSlice* rec_speech(RecFields* fields) noexcept nogil:
    """Return the values that hold the content, which may be absent: the message's, or those of a flat record."""
    if fields.message[FIELD_CONTENT].start == NULL and rec_is_spoken(fields):
        return fields.top
    return fields.message


cdef inline RecSlice rec_role(RecFields* fields) noexcept nogil:
    """Return the value with the role: the message's, or the type of a flat record. Absent in records of other types."""
    cdef const char* user = b'"user"'
    if fields.is_queued_prompt:
        return RecSlice(<Cursor>user, <Cursor>user + 6)
    if not rec_is_spoken(fields):
        return RecSlice(NULL, NULL)
    return fields.top[FIELD_TYPE] if fields.message[FIELD_ROLE].start == NULL else fields.message[FIELD_ROLE]


cdef inline void rec_slice_move(RecSlice* value, Cursor old, Cursor new) noexcept nogil:
    if value.start != NULL:
        value.start = new + (value.start - old)
        value.end = new + (value.end - old)


cdef void rec_move(RecFields* fields, Cursor start) noexcept nogil:
    """Make the fields point into a copy of the object."""
    cdef int i
    for i in range(FIELDS):
        rec_slice_move(&fields.top[i], fields.start, start)
    for i in range(REC_MESSAGE_FIELDS):
        rec_slice_move(&fields.message[i], fields.start, start)
    fields.end = start + (fields.end - fields.start)
    fields.start = start


cdef enum:
    REC_NO_ELEMENT
    REC_OBJECT
    REC_STRING


cdef int rec_next_element(RecSlice* elements, RecSlice* block, bint strings) noexcept nogil:
    """Read the next object of a valid array and move the start of `elements` past it.

    Returns the kind of the element. strings: also return strings, as block[FIELD_TEXT].
    """
    cdef JsonFault fault
    cdef Cursor start
    while True:
        elements.start = start = json_skip_space(elements.start, elements.end)
        if start == elements.end or start[0] == c"]":
            return REC_NO_ELEMENT
        if start[0] == c",":
            elements.start += 1
        elif start[0] == c"{":
            memset(block, 0, REC_BLOCK_FIELDS * sizeof(RecSlice))
            elements.start = rec_walk_members(start, elements.end, REC_LEVEL_BLOCK, block, NULL, &fault)
            return REC_OBJECT
        else:
            elements.start = json_skip(start, elements.end, &fault)
            if strings and start[0] == c'"':
                block[FIELD_TEXT] = RecSlice(start, elements.start)
                return REC_STRING


cdef bint rec_next_text(RecSlice* texts, RecSlice* text, bint strings=True) noexcept nogil:
    """Set `text` to the next text that is not only white space, without its quotation marks. False: none is left.

    Texts are those of text blocks and, with `strings`, the strings among the blocks.
    """
    cdef RecSlice block[REC_BLOCK_FIELDS]
    cdef int kind
    if texts.start == NULL:
        return False
    while True:
        kind = rec_next_element(texts, block, strings)
        if kind == REC_NO_ELEMENT:
            return False
        if kind == REC_OBJECT and not rec_value_is(&block[FIELD_TYPE], b"text", 4):
            continue
        if not rec_value_is_string(&block[FIELD_TEXT]) or rec_value_is_white_space(&block[FIELD_TEXT]):
            continue
        text[0] = RecSlice(block[FIELD_TEXT].start + 1, block[FIELD_TEXT].end - 1)
        return True


cdef object rec_value_string(RecSlice* value):
    """Return a str, or None if the value is not a string."""
    return json_decode(value.start + 1, value.end - 1) if rec_value_is_string(value) else None


cdef unicode rec_text(RecFields* fields):
    """Return the content, or its texts joined by newlines, without those of only white space."""
    cdef RecSlice* speech = rec_speech(fields)
    cdef RecSlice texts = speech[FIELD_TEXTS]
    cdef RecSlice text
    cdef list parts = []
    if rec_value_is_string(&speech[FIELD_CONTENT]):
        return rec_value_string(&speech[FIELD_CONTENT])
    while rec_next_text(&texts, &text):
        parts.append(json_decode(text.start, text.end))
    return "\n".join(parts)


cdef bint rec_has_text(RecFields* fields, bint strings) noexcept nogil:
    """Return whether there is text other than white space. strings: as for rec_next_text."""
    cdef RecSlice* speech = rec_speech(fields)
    cdef RecSlice texts = speech[FIELD_TEXTS]
    cdef RecSlice text
    if rec_value_is_string(&speech[FIELD_CONTENT]):
        return not rec_value_is_white_space(&speech[FIELD_CONTENT])
    return rec_next_text(&texts, &text, strings)


cdef bytes rec_utf8(RecFields* fields, bint strings):
    """Return what rec_text returns, in UTF-8. strings: as for rec_next_text."""
    cdef RecSlice* speech = rec_speech(fields)
    cdef RecSlice texts = speech[FIELD_TEXTS]
    cdef RecSlice first, text
    cdef PyObject* made
    cdef unsigned char* out
    cdef Py_ssize_t size
    cdef bint lone
    if rec_value_is_string(&speech[FIELD_CONTENT]):
        return json_decode_utf8(speech[FIELD_CONTENT].start + 1, speech[FIELD_CONTENT].end - 1)
    if not rec_next_text(&texts, &first, strings):
        return b""
    if not rec_next_text(&texts, &text, strings):
        return json_decode_utf8(first.start, first.end)
    # One object for all texts: there may be a million. Each text is shorter than its literal by two quotation marks,
    # which leaves room for the newlines.
    made = bytes_new(NULL, texts.end - first.start)
    out = <unsigned char*>bytes_data(made)
    size = json_unescape(first.start, first.end, out, &lone)
    while True:
        out[size] = c"\n"
        size += 1
        size += json_unescape(text.start, text.end, out + size, &lone)
        if not rec_next_text(&texts, &text, strings):
            break
    return bytes_cut(made, size)


cdef list rec_tool_names(RecFields* fields):
    """Return the names of the tools that are used, in order, with None for one without a name."""
    cdef RecSlice* speech = rec_speech(fields)
    cdef RecSlice tools = speech[FIELD_TOOLS]
    cdef RecSlice block[REC_BLOCK_FIELDS]
    cdef list names = []
    if tools.start == NULL:
        return names
    if tools.start == speech[FIELD_LAST_TOOL].start:  # the only one, as hosts write it
        return [rec_value_string(&speech[FIELD_LAST_TOOL_NAME])]
    while rec_next_element(&tools, block, False):
        if rec_value_is(&block[FIELD_TYPE], b"tool_use", 8):
            names.append(rec_value_string(&block[FIELD_NAME]))
    return names


cdef bint rec_may_hold_message(WinLine* line) noexcept nogil:
    """Return whether the line may hold a record with words or tools: its type must be in it, or an escape.

    Only lines over 1 MiB are searched: shorter ones are read as fast as they are searched.
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


cdef tuple rec_message(RecFields* fields):
    """Return (whether it is the assistant's, its text in UTF-8, the names of its tools), or None if both are empty."""
    cdef list tools = []
    cdef bytes text
    if rec_is_foreign(fields):
        return None
    if rec_value_is(&fields.top[FIELD_TYPE], b"tool_use", 8):
        return (True, b"", [rec_value_string(&fields.top[FIELD_NAME])])
    if not rec_is_spoken(fields):
        return None
    text = rec_utf8(fields, True) if rec_has_text(fields, True) else b""
    if rec_is_assistant(fields):
        tools = rec_tool_names(fields)
    return (rec_is_assistant(fields), text, tools) if text or tools else None


# ---- what only the library asks for -------------------------------------------

cdef bint rec_find_member(RecSlice* container, const char* name, Py_ssize_t size, RecSlice* value) noexcept nogil:
    """Find the last member with this name in a valid object. Returns False if there is none, or it is not an object.

    name: has no character that must be escaped.
    """
    cdef JsonFault fault
    cdef Cursor p = container.start
    cdef Cursor end = container.end
    cdef RecSlice found
    value.start = NULL
    if p == NULL or p[0] != c"{":
        return False
    p = json_skip_space(p + 1, end)
    while p[0] == c'"':
        found = RecSlice(p, json_skip_string(p + 1, end, &fault))
        p = json_skip_space(json_skip_space(found.end, end) + 1, end)
        if rec_value_is(&found, name, size):
            value[0] = RecSlice(p, json_skip(p, end, &fault))
            p = value.end
        else:
            p = json_skip(p, end, &fault)
        p = json_skip_space(p, end)
        if p[0] == c",":
            p = json_skip_space(p + 1, end)
    return value.start != NULL


cdef bint rec_next_result(RecFields* fields, RecSlice* results, RecToolBlock* block) noexcept nogil:
    """Read the record's next result of a tool and move the start of `results` past it. Returns False if none is left.

    results: at first the content's FIELD_RESULTS.
    """
    if rec_is_result(fields):
        if results.start == fields.end:
            return False
        rec_walk_tool_block(fields.start, fields.end, block)
        results.start = fields.end
        return True
    if results.start == NULL:
        return False
    while rec_next_tool_block(results, block):
        if rec_value_is(&block.type, b"tool_result", 11):
            return True
    return False


cdef bint rec_is_error(RecFields* fields) noexcept nogil:
    """Return whether a tool failed, or a request to the API did."""
    cdef RecToolBlock block
    cdef bint has_failed
    if rec_is_result(fields):
        rec_walk_tool_block(fields.start, fields.end, &block)
        has_failed = rec_value_is_true(&block.is_error)
    else:
        has_failed = rec_speech(fields)[FIELD_FAILED].start != NULL
    return (
        has_failed
        or rec_value_is_true(&fields.top[FIELD_API_ERROR])
        or rec_value_is(&fields.top[FIELD_SUBTYPE], b"api_error", 9)
    )


cdef bint rec_begins_with(RecSlice* text, const char* const* beginnings, int count) noexcept nogil:
    """Return whether a text begins, after blank space, with one of some ASCII words.

    text: without its quotation marks.
    """
    cdef char start[REC_HOST_WRITTEN_MAX_BYTES + REC_APP_WRITTEN_MAX_BYTES]
    cdef Py_ssize_t size = 0
    cdef Cursor p = text.start
    cdef uint32_t character
    cdef int i
    while p != text.end and size < <Py_ssize_t>sizeof(start):
        p = json_read_character(p, text.end, &character)
        if size == 0 and (character == 32 or 9 <= character <= 13):
            continue
        if character > 126:
            break
        start[size] = <char>character
        size += 1
    for i in range(count):
        if <Py_ssize_t>strlen(beginnings[i]) <= size:
            if memcmp(start, beginnings[i], strlen(beginnings[i])) == 0:
                return True
    return False


cdef bint rec_is_of_person(RecSlice* origin) noexcept nogil:
    """Return whether a message with this `origin` may be a person's; it may be absent."""
    cdef RecSlice kind
    return not rec_find_member(origin, b"kind", 4, &kind) or rec_value_is(&kind, b"human", 5)


cdef bint rec_is_persons(RecSlice* role) noexcept nogil:
    """Return whether this is the role of a person."""
    return rec_value_is(role, b"user", 4) or rec_value_is(role, b"human", 5)


cdef bint rec_is_prompt(RecFields* fields) noexcept nogil:
    """Return whether a person typed the record: it has words of a user, and neither a tool nor the host wrote them."""
    cdef RecSlice role = rec_role(fields)
    return (
        rec_is_persons(&role)
        and rec_speech(fields)[FIELD_RESULTS].start == NULL
        and not rec_value_is_true(&fields.top[FIELD_SIDECHAIN])
        and rec_is_of_person(&fields.top[FIELD_ORIGIN])
        and rec_is_own_words(fields)
        and not rec_is_app_written(fields)
    )


cdef bint rec_is_own_words(RecFields* fields) noexcept nogil:
    """Return whether the agent or a person said what is in the record, and not the host in their name."""
    cdef RecSlice role = rec_role(fields)
    cdef RecSlice text
    cdef bint is_persons = rec_is_persons(&role)
    if not (is_persons or rec_value_is(&role, b"assistant", 9)) or rec_is_host_made(fields):
        return False
    if not rec_first_text(fields, &text):
        return False
    return not is_persons or not rec_begins_with(&text, rec_host_written, REC_HOST_WRITTEN_COUNT)


cdef bint rec_is_app_written(RecFields* fields) noexcept nogil:
    """Return whether a person's record begins with what a button or a monitor of the host's app sends."""
    cdef RecSlice role = rec_role(fields)
    cdef RecSlice text
    return (
        rec_is_persons(&role)
        and rec_first_text(fields, &text)
        and rec_begins_with(&text, rec_app_written, REC_APP_WRITTEN_COUNT)
    )


cdef bint rec_first_text(RecFields* fields, RecSlice* text) noexcept nogil:
    """Set `text` to the first text of a record's content, without its quotation marks. Returns False without one."""
    cdef RecSlice* speech = rec_speech(fields)
    cdef RecSlice texts = speech[FIELD_TEXTS]
    if not rec_value_is_string(&speech[FIELD_CONTENT]):
        return rec_next_text(&texts, text)
    text[0] = RecSlice(speech[FIELD_CONTENT].start + 1, speech[FIELD_CONTENT].end - 1)
    return not rec_value_is_white_space(&speech[FIELD_CONTENT])


cdef bint rec_read_count(RecSlice* container, const char* name, Py_ssize_t size, int64_t* count) noexcept nogil:
    """Set `count` to the whole number from 0 to 2**63 - 1 that a member of an object has. Returns False without one."""
    cdef RecSlice value
    cdef uint64_t number = 0
    count[0] = 0
    if not rec_find_member(container, name, size, &value) or value.end - value.start > 19:
        return False
    while value.start != value.end:
        if not c"0" <= value.start[0] <= c"9":
            return False
        number = 10 * number + value.start[0] - c"0"
        value.start += 1
    if number > INT64_MAX:
        return False
    count[0] = <int64_t>number
    return True


cdef int64_t rec_count(RecSlice* container, const char* name, Py_ssize_t size) noexcept nogil:
    """Return what rec_read_count finds, or 0."""
    cdef int64_t count
    rec_read_count(container, name, size, &count)
    return count


cdef bint rec_read_time(RecSlice* value, int64_t* microseconds) noexcept nogil:
    """Return whether a JSON value is a time in the years 1 to 9999. microseconds: set to it."""
    return (
        rec_value_is_string(value)
        and iso_read_microseconds(value.start + 1, value.end - 1, microseconds)
        and -62_135_596_800_000_000LL <= microseconds[0] < 253_402_300_800_000_000LL  # 0001-01-01, 10000-01-01
    )


# ---- for Python ---------------------------------------------------------------

cdef object rec_parse_value(bytes source):
    from tailhook.orjson_import import orjson
    try:
        return orjson.loads(source)
    except ValueError:
        pass  # invalid UTF-8, or a lone surrogate, which orjson rejects
    try:
        return parse_json(source)
    except ValueError as error:
        from tailhook.errors import RecordError
        raise RecordError(str(error)) from None


cdef bytes rec_valid_utf8(Cursor start, Cursor end):
    """Return a copy of [start, end), with U+FFFD for what is not UTF-8."""
    cdef bytes text = bytes_between(start, end)
    return text if utf8_stop(start, end) == end else text.decode("utf-8", "replace").encode()


cdef object rec_value_text(RecSlice* value):
    """Return a str, with U+FFFD for what is not UTF-8, or None if the value is not a string."""
    cdef bytes text
    cdef Cursor start
    if not rec_value_is_string(value) or utf8_stop(value.start, value.end) == value.end:
        return rec_value_string(value)
    text = rec_valid_utf8(value.start, value.end)
    start = <Cursor>PyBytes_AS_STRING(text)
    return json_decode(start + 1, start + PyBytes_GET_SIZE(text) - 1)


@cython.final
cdef class ToolUse:
    cdef readonly object id
    cdef readonly object name
    cdef bytes source

    @property
    def input(self):
        return rec_parse_value(self.source)

    def __repr__(self):
        return f"ToolUse(id={self.id!r}, name={self.name!r})"


cdef ToolUse rec_tool_use(RecSlice* values):
    cdef ToolUse tool = ToolUse.__new__(ToolUse)
    tool.id = rec_value_string(&values[FIELD_ID])
    tool.name = rec_value_string(&values[FIELD_NAME])
    tool.source = b"null"
    if values[FIELD_INPUT].start != NULL:
        tool.source = bytes_between(values[FIELD_INPUT].start, values[FIELD_INPUT].end)
    return tool


cdef object rec_tool_result(RecToolBlock* block):
    from tailhook.records import ToolResult
    content = rec_valid_utf8(block.content.start, block.content.end) if block.content.start != NULL else b"null"
    return ToolResult(rec_value_text(&block.use_id), rec_value_is_true(&block.is_error), content)


@cython.final
cdef class Record:
    cdef RecFields fields  # pointers into `source`
    cdef bytes source
    cdef Record original  # another host's, of which this is a translation, or None
    cdef readonly int64_t offset

    @property
    def type(self):
        return rec_value_string(&self.fields.top[FIELD_TYPE])

    @property
    def role(self):
        cdef RecSlice role = rec_role(&self.fields)
        return rec_value_string(&role)

    @property
    def text(self):
        return rec_text(&self.fields)

    @property
    def message_id(self):
        return rec_value_string(&self.fields.message[FIELD_ID])

    @property
    def uuid(self):
        return rec_value_string(&self.fields.top[FIELD_UUID])

    @property
    def timestamp(self):
        return rec_value_string(&self.fields.top[FIELD_TIMESTAMP])

    @property
    def time(self):
        cdef int64_t microseconds
        if not rec_read_time(&self.fields.top[FIELD_TIMESTAMP], &microseconds):
            return None
        from tailhook.records import utc_time
        return utc_time(microseconds)

    @property
    def session_id(self):
        return rec_value_text(&self.fields.top[FIELD_SESSION_ID])

    @property
    def agent_id(self):
        return rec_value_text(&self.fields.top[FIELD_AGENT_ID])

    @property
    def parent_uuid(self):
        return rec_value_text(&self.fields.top[FIELD_PARENT_UUID])

    @property
    def request_id(self):
        return rec_value_text(&self.fields.top[FIELD_REQUEST_ID])

    @property
    def model(self):
        return rec_value_text(&self.fields.message[FIELD_MODEL])

    @property
    def cwd(self):
        return rec_value_text(&self.fields.top[FIELD_CWD])

    @property
    def git_branch(self):
        return rec_value_text(&self.fields.top[FIELD_GIT_BRANCH])

    @property
    def host_version(self):
        return rec_value_text(&self.fields.top[FIELD_VERSION])

    @property
    def subtype(self):
        return rec_value_text(&self.fields.top[FIELD_SUBTYPE])

    @property
    def usage(self):
        cdef RecSlice* usage = &self.fields.message[FIELD_USAGE]
        if usage.start == NULL or usage.start[0] != c"{":
            return None
        from tailhook.records import Usage
        return Usage(
            rec_count(usage, b"input_tokens", 12),
            rec_count(usage, b"output_tokens", 13),
            rec_count(usage, b"cache_read_input_tokens", 23),
            rec_count(usage, b"cache_creation_input_tokens", 27),
        )

    @property
    def tool_results(self):
        cdef RecSlice results = rec_speech(&self.fields)[FIELD_RESULTS]
        cdef RecToolBlock block
        cdef list found = []
        while rec_next_result(&self.fields, &results, &block):
            found.append(rec_tool_result(&block))
        return found

    @property
    def is_prompt(self):
        return rec_is_prompt(&self.fields)

    @property
    def has_own_words(self):
        return rec_is_own_words(&self.fields)

    @property
    def is_error(self):
        return rec_is_error(&self.fields)

    @property
    def is_sidechain(self):
        return rec_value_is_true(&self.fields.top[FIELD_SIDECHAIN])

    @property
    def is_meta(self):
        return rec_value_is_true(&self.fields.top[FIELD_META])

    @property
    def is_api_error(self):
        return rec_value_is_true(&self.fields.top[FIELD_API_ERROR])

    @property
    def is_compact_summary(self):
        return rec_value_is_true(&self.fields.top[FIELD_COMPACT_SUMMARY])

    @property
    def tools(self):
        cdef RecSlice blocks = rec_speech(&self.fields)[FIELD_TOOLS]
        cdef RecSlice block[REC_BLOCK_FIELDS]
        cdef list tools = []
        if rec_value_is(&self.fields.top[FIELD_TYPE], b"tool_use", 8):
            tools.append(rec_tool_use(self.fields.top))
        while blocks.start != NULL and rec_next_element(&blocks, block, False):
            if rec_value_is(&block[FIELD_TYPE], b"tool_use", 8):
                tools.append(rec_tool_use(block))
        return tools

    def json(self):
        if self.original is not None:
            return self.original.json()
        return rec_parse_value(bytes_between(self.fields.start, self.fields.end))

    def __repr__(self):
        return f"Record(type={self.type!r}, offset={self.offset})"


cdef Record rec_copy(RecFields* fields, int64_t offset):
    """Return a record that has its own copy of the object."""
    cdef Record record = Record.__new__(Record)
    record.source = bytes_between(fields.start, fields.end)
    record.offset = offset
    record.fields = fields[0]
    rec_move(&record.fields, <Cursor>PyBytes_AS_STRING(record.source))
    return record


def parse_record(bytes line not None, int64_t offset=0, Record original=None):
    cdef Record record = Record.__new__(Record)
    cdef Cursor start = <Cursor>PyBytes_AS_STRING(line)
    if not rec_find(start, start + PyBytes_GET_SIZE(line), &record.fields):
        return None
    record.source = line
    record.offset = offset
    record.original = original
    return record
