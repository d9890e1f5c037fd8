# A record for Python.
#
# Gives: rec_copy, rec_value_text, rec_is_same_message. For Python: Record, ToolUse, parse_record, is_same_message.
# Needs: a record (transcript/records.pxi), its properties (transcript/properties.pxi), the fields
# (transcript/fields.pxi), the blocks of tools (transcript/tool_blocks.pxi), rec_find (transcript/bad_lines.pxi), the
# grammar (json/grammar.pxi), parse_json (json/read.pxi), bytes_between (text/view.pxi).

cdef object rec_parse_value(bytes source):
    from tailhook.transcripts.orjson_import import orjson
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
    """Return a copy of [start, end), with U+FFFD for invalid UTF-8."""
    cdef bytes text = bytes_between(start, end)
    return text if utf8_stop(start, end) == end else text.decode("utf-8", "replace").encode()


cdef object rec_value_text(RecSlice* value):
    """Return a str, with U+FFFD for invalid UTF-8, or None if the value is not a string."""
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
    from tailhook.transcripts.records import ToolResult
    content = rec_valid_utf8(block.content.start, block.content.end) if block.content.start != NULL else b"null"
    return ToolResult(rec_value_text(&block.use_id), rec_value_is_true(&block.is_error), content)


@cython.final
cdef class Record:
    cdef RecFields fields  # pointers into `source`
    cdef bytes source
    cdef Record original  # the original of this translation, if it is another host's; or None
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
        from tailhook.transcripts.records import utc_time
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
        from tailhook.transcripts.records import Usage
        return Usage(
            rec_count(usage, LIT(b"input_tokens")),
            rec_count(usage, LIT(b"output_tokens")),
            rec_count(usage, LIT(b"cache_read_input_tokens")),
            rec_count(usage, LIT(b"cache_creation_input_tokens")),
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
        if rec_value_is(&self.fields.top[FIELD_TYPE], LIT(b"tool_use")):
            tools.append(rec_tool_use(self.fields.top))
        while blocks.start != NULL and rec_next_element(&blocks, block, False):
            if rec_value_is(&block[FIELD_TYPE], LIT(b"tool_use")):
                tools.append(rec_tool_use(block))
        return tools

    def json(self):
        if self.original is not None:
            return self.original.json()
        return rec_parse_value(bytes_between(self.fields.start, self.fields.end))

    def __repr__(self):
        return f"Record(type={self.type!r}, offset={self.offset})"


cdef inline bint rec_is_same_message(object name, object request, object other, object other_request) except -1:
    """Return whether two records are of one message: they have the same message id and request id.

    A missing request id fits any other. name, other: message ids.
    """
    if not name or name != other:
        return False
    return not request or not other_request or request == other_request


def is_same_message(Record one not None, Record other not None):
    return rec_is_same_message(one.message_id, one.request_id, other.message_id, other.request_id)


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
