# ---- what a record says ------------------------------------------------------

cdef inline bint value_is(Slice* value, const char* word, Py_ssize_t size) noexcept nogil:
    """Is the value this string? `word` has no character that must be escaped; the value may escape what it likes."""
    cdef unsigned char plain[128]
    cdef bint lone = False
    if not value_is_string(value):
        return False
    if value.end - value.start == size + 2 and memcmp(value.start + 1, word, size) == 0:
        return True
    return (
        value.end - value.start <= <Py_ssize_t>sizeof(plain)
        and memchr(value.start, c"\\", value.end - value.start) != NULL
        and json_unescape(value.start + 1, value.end - 1, plain, &lone) == size
        and memcmp(plain, word, size) == 0
    )


cdef inline bint value_is_string(Slice* value) noexcept nogil:
    return value.start != NULL and value.start[0] == c'"'


cdef inline bint value_is_true(Slice* value) noexcept nogil:
    return value.start != NULL and value.start[0] == c"t"


cdef inline bint record_is_assistant(RecordFields* fields) noexcept nogil:
    return value_is(&fields.top[FIELD_TYPE], b"assistant", 9)


cdef inline bint record_is_spoken(RecordFields* fields) noexcept nogil:
    """Has the record one of the types that say something?"""
    return (
        record_is_assistant(fields)
        or value_is(&fields.top[FIELD_TYPE], b"user", 4)
        or value_is(&fields.top[FIELD_TYPE], b"human", 5)
    )


cdef inline bint record_is_foreign(RecordFields* fields) noexcept nogil:
    """Is it a sub-agent's, or made by the host in the agent's name?"""
    return (
        value_is_true(&fields.top[FIELD_SIDECHAIN])
        or value_is_true(&fields.top[FIELD_META])
        or value_is_true(&fields.top[FIELD_API_ERROR])
        or value_is_true(&fields.top[FIELD_COMPACT_SUMMARY])
    )


cdef inline Slice* record_speech(RecordFields* fields) noexcept nogil:
    """The values among which the content is: the message's, or those of a flat record; it may be absent."""
    if fields.message[FIELD_CONTENT].start == NULL and record_is_spoken(fields):
        return fields.top
    return fields.message


cdef object record_role(RecordFields* fields):
    """Who speaks: the message's role, or the type of a flat record; None in records of other types."""
    if not record_is_spoken(fields):
        return None
    if fields.message[FIELD_ROLE].start == NULL:
        return value_string(&fields.top[FIELD_TYPE])
    return value_string(&fields.message[FIELD_ROLE])


cdef inline void slice_move(Slice* value, Cursor old, Cursor new) noexcept nogil:
    if value.start != NULL:
        value.start = new + (value.start - old)
        value.end = new + (value.end - old)


cdef void record_move(RecordFields* fields, Cursor start) noexcept nogil:
    """Let the fields point into a copy of the object."""
    cdef int i
    for i in range(FIELDS):
        slice_move(&fields.top[i], fields.start, start)
        slice_move(&fields.message[i], fields.start, start)
    fields.end = start + (fields.end - fields.start)
    fields.start = start


cdef enum:
    NO_ELEMENT
    OBJECT_ELEMENT
    STRING_ELEMENT


cdef int next_element(Slice* elements, Slice* block, bint strings) noexcept nogil:
    """Read the next object of an array's valid elements, and move the slice's start past it.

    strings: read strings as well; such a string is block[FIELD_TEXT].
    """
    cdef JsonFault fault
    cdef Cursor start
    while True:
        elements.start = start = json_space(elements.start, elements.end)
        if start == elements.end or start[0] == c"]":
            return NO_ELEMENT
        if start[0] == c",":
            elements.start += 1
        elif start[0] == c"{":
            memset(block, 0, FIELDS * sizeof(Slice))
            elements.start = walk_members(start, elements.end, LEVEL_BLOCK, block, NULL, &fault)
            return OBJECT_ELEMENT
        else:
            elements.start = json_skip(start, elements.end, &fault)
            if strings and start[0] == c'"':
                block[FIELD_TEXT] = Slice(start, elements.start)
                return STRING_ELEMENT


cdef inline bint value_is_blank(Slice* value) noexcept nogil:
    """Is the string, whose UTF-8 has been checked, of white space only?"""
    cdef Cursor p = value.start + 1
    cdef Cursor end = value.end - 1
    cdef uint32_t code_point
    while p != end:
        p = json_character(p, end, &code_point)
        if not Py_UNICODE_ISSPACE(code_point):
            return False
    return True


cdef bint next_text(Slice* texts, Slice* text, bint strings=False) noexcept nogil:
    """The next text that is not blank, inside its quotation marks; False: none is left.

    Texts are those of text blocks and, with `strings`, the strings among the blocks.
    """
    cdef Slice block[FIELDS]
    cdef int kind
    if texts.start == NULL:
        return False
    while True:
        kind = next_element(texts, block, strings)
        if kind == NO_ELEMENT:
            return False
        if kind == OBJECT_ELEMENT and not value_is(&block[FIELD_TYPE], b"text", 4):
            continue
        if not value_is_string(&block[FIELD_TEXT]) or value_is_blank(&block[FIELD_TEXT]):
            continue
        text[0] = Slice(block[FIELD_TEXT].start + 1, block[FIELD_TEXT].end - 1)
        return True


cdef object value_string(Slice* value):
    """A str, or None where there is no string."""
    return json_decode(value.start + 1, value.end - 1) if value_is_string(value) else None


cdef unicode record_text(RecordFields* fields):
    """The content, or its text blocks that are not blank, joined by newlines."""
    cdef Slice* speech = record_speech(fields)
    cdef Slice texts = speech[FIELD_TEXTS]
    cdef Slice text
    cdef list parts = []
    if value_is_string(&speech[FIELD_CONTENT]):
        return value_string(&speech[FIELD_CONTENT])
    while next_text(&texts, &text):
        parts.append(json_decode(text.start, text.end))
    return "\n".join(parts)


cdef bint record_has_text(RecordFields* fields, bint strings=False) noexcept nogil:
    """Is there any that is not blank? strings: as for next_text."""
    cdef Slice* speech = record_speech(fields)
    cdef Slice texts = speech[FIELD_TEXTS]
    cdef Slice text
    if value_is_string(&speech[FIELD_CONTENT]):
        return not value_is_blank(&speech[FIELD_CONTENT])
    return next_text(&texts, &text, strings)


cdef list record_tool_names(RecordFields* fields):
    """The names of the tools that are used, in order; None for one without a name."""
    cdef Slice* speech = record_speech(fields)
    cdef Slice tools = speech[FIELD_TOOLS]
    cdef Slice block[FIELDS]
    cdef list names = []
    if tools.start == NULL:
        return names
    if tools.start == speech[FIELD_LAST_TOOL].start:  # the only one, as the hosts write it: it is not read again
        return [value_string(&speech[FIELD_LAST_TOOL_NAME])]
    while next_element(&tools, block, False):
        if value_is(&block[FIELD_TYPE], b"tool_use", 8):
            names.append(value_string(&block[FIELD_NAME]))
    return names


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


# ---- for Python ---------------------------------------------------------------

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
