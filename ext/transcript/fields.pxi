# Finds the useful members of a transcript's record, without building objects.
#
# Gives: FIELD_* and FIELDS, REC_BLOCK_FIELDS, REC_MESSAGE_FIELDS, RecSlice, RecFields, rec_walk, rec_walk_members,
# REC_LEVEL_BLOCK; rec_read_attachment; rec_value_is, rec_value_is_string, rec_value_is_utf8, rec_value_is_white_space.
# Needs: the grammar (json/grammar.pxi), rec_find_member and rec_is_of_person (transcript/properties.pxi).
#
# One walk over a line notes the places of these values and skips all others. The whole line is checked against the
# grammar (RFC 8259: brackets, names, commas, numbers, escapes, control bytes). UTF-8 is checked only in the strings
# that hooks decode; the other fields are checked when they are decoded.
#
# A queued prompt is an attachment. Its content is found afterwards, so that other records do not cost more.
#
# To add a field: FIELD_* in the right part of the list (the order decides what rec_field_belongs and
# rec_field_is_checked return), rec_field_named here, a property of Record (transcript/record_class.pxi), and _core.pyi.

cdef enum:
    # Of a content block, of a record, and some of a message:
    FIELD_TYPE
    FIELD_ID
    FIELD_TEXT
    FIELD_NAME
    FIELD_INPUT
    FIELD_IS_ERROR
    REC_BLOCK_FIELDS
    # Of a message and of a record:
    FIELD_CONTENT = REC_BLOCK_FIELDS
    FIELD_ROLE
    # Without a name in JSON; ranges of a content array:
    FIELD_TEXTS           # from the first text that is not only white space, a block or a string, to after the last
    FIELD_TOOLS           # from the first tool_use block to after the last
    FIELD_LAST_TOOL       # the last tool_use block
    FIELD_LAST_TOOL_NAME  # and its name
    FIELD_RESULTS         # from the first tool_result block to after the last
    FIELD_FAILED          # the last tool_result block whose `is_error` is true
    # Of a message only. Invalid UTF-8 in these does not make the record invalid:
    FIELD_MODEL
    FIELD_USAGE
    REC_MESSAGE_FIELDS
    # Of a record only:
    FIELD_MESSAGE = REC_MESSAGE_FIELDS
    FIELD_UUID
    FIELD_TIMESTAMP
    FIELD_SIDECHAIN
    FIELD_META
    FIELD_API_ERROR
    FIELD_COMPACT_SUMMARY
    # Of a record only, as those before. Invalid UTF-8 in these does not make the record invalid:
    FIELD_SESSION_ID
    FIELD_AGENT_ID
    FIELD_PARENT_UUID
    FIELD_REQUEST_ID
    FIELD_CWD
    FIELD_GIT_BRANCH
    FIELD_VERSION
    FIELD_SUBTYPE
    FIELD_ORIGIN          # an object: what a user's message comes from
    FIELD_ATTACHMENT      # an object: what the host gives the agent beside the messages
    FIELD_ATTACHMENT_TYPE  # and its `type`, which has no name of its own
    FIELDS
    FIELD_OTHER = FIELDS

cdef enum:
    REC_LEVEL_RECORD
    REC_LEVEL_MESSAGE
    REC_LEVEL_ATTACHMENT
    REC_LEVEL_BLOCK

cdef struct RecSlice:
    Cursor start  # NULL if the value is absent
    Cursor end

cdef struct RecFields:
    Cursor start  # the record's object
    Cursor end
    RecSlice top[FIELDS]                  # JSON values of its own members, the last of a name
    RecSlice message[REC_MESSAGE_FIELDS]  # and of its message; of a queued prompt, those of the attachment
    bint is_queued_prompt                 # see rec_read_attachment


cdef inline bint rec_value_is_string(RecSlice* value) noexcept nogil:
    return value.start != NULL and value.start[0] == c'"'


cdef inline bint rec_value_is(RecSlice* value, Literal word) noexcept nogil:
    """Return whether the value is this string, escaped or not. word: has no character that must be escaped."""
    cdef unsigned char plain[128]
    cdef bint lone = False
    if not rec_value_is_string(value):
        return False
    if <size_t>(value.end - value.start) == word.size + 2 and bytes_begin(value.start + 1, word):
        return True
    return (
        value.end - value.start <= <Py_ssize_t>sizeof(plain)
        and memchr(value.start, c"\\", value.end - value.start) != NULL
        and bytes_equal(plain, json_unescape(value.start + 1, value.end - 1, plain, &lone), word)
    )


cdef inline bint rec_value_is_utf8(RecSlice* value) noexcept nogil:
    """Return whether the value is a string of valid UTF-8."""
    return rec_value_is_string(value) and utf8_stop(value.start, value.end) == value.end


cdef inline bint rec_value_is_white_space(RecSlice* value) noexcept nogil:
    """Return whether a string of valid UTF-8 has only white space."""
    cdef Cursor p = value.start + 1
    cdef Cursor end = value.end - 1
    cdef uint32_t code_point
    while p != end:
        p = json_read_character(p, end, &code_point)
        if not Py_UNICODE_ISSPACE(code_point):
            return False
    return True


cdef int rec_field_named(Cursor name, size_t size) noexcept nogil:
    """Return the field of a name. Names are grouped by length: the first one of a group gives it."""
    if size == LIT(b"type").size:
        if bytes_equal(name, size, LIT(b"type")):
            return FIELD_TYPE
        if bytes_equal(name, size, LIT(b"text")):
            return FIELD_TEXT
        if bytes_equal(name, size, LIT(b"role")):
            return FIELD_ROLE
        if bytes_equal(name, size, LIT(b"uuid")):
            return FIELD_UUID
        if bytes_equal(name, size, LIT(b"name")):
            return FIELD_NAME
    elif size == LIT(b"id").size:
        if bytes_equal(name, size, LIT(b"id")):
            return FIELD_ID
    elif size == LIT(b"cwd").size:
        if bytes_equal(name, size, LIT(b"cwd")):
            return FIELD_CWD
    elif size == LIT(b"input").size:
        if bytes_equal(name, size, LIT(b"input")):
            return FIELD_INPUT
        if bytes_equal(name, size, LIT(b"model")):
            return FIELD_MODEL
        if bytes_equal(name, size, LIT(b"usage")):
            return FIELD_USAGE
    elif size == LIT(b"isMeta").size:
        if bytes_equal(name, size, LIT(b"isMeta")):
            return FIELD_META
        if bytes_equal(name, size, LIT(b"origin")):
            return FIELD_ORIGIN
    elif size == LIT(b"content").size:
        if bytes_equal(name, size, LIT(b"content")):
            return FIELD_CONTENT
        if bytes_equal(name, size, LIT(b"message")):
            return FIELD_MESSAGE
        if bytes_equal(name, size, LIT(b"version")):
            return FIELD_VERSION
        if bytes_equal(name, size, LIT(b"agentId")):
            return FIELD_AGENT_ID
        if bytes_equal(name, size, LIT(b"subtype")):
            return FIELD_SUBTYPE
    elif size == LIT(b"is_error").size:
        if bytes_equal(name, size, LIT(b"is_error")):
            return FIELD_IS_ERROR
    elif size == LIT(b"timestamp").size:
        if bytes_equal(name, size, LIT(b"timestamp")):
            return FIELD_TIMESTAMP
        if bytes_equal(name, size, LIT(b"sessionId")):
            return FIELD_SESSION_ID
        if bytes_equal(name, size, LIT(b"gitBranch")):
            return FIELD_GIT_BRANCH
        if bytes_equal(name, size, LIT(b"requestId")):
            return FIELD_REQUEST_ID
    elif size == LIT(b"parentUuid").size:
        if bytes_equal(name, size, LIT(b"parentUuid")):
            return FIELD_PARENT_UUID
        if bytes_equal(name, size, LIT(b"attachment")):
            return FIELD_ATTACHMENT
    elif size == LIT(b"isSidechain").size:
        if bytes_equal(name, size, LIT(b"isSidechain")):
            return FIELD_SIDECHAIN
    elif size == LIT(b"isCompactSummary").size:
        if bytes_equal(name, size, LIT(b"isCompactSummary")):
            return FIELD_COMPACT_SUMMARY
    elif size == LIT(b"isApiErrorMessage").size:
        if bytes_equal(name, size, LIT(b"isApiErrorMessage")):
            return FIELD_API_ERROR
    return FIELD_OTHER


cdef inline bint rec_field_belongs(int field, int level) noexcept nogil:
    if level == REC_LEVEL_RECORD:
        return field >= REC_MESSAGE_FIELDS or (
            field < FIELD_TEXTS and field != FIELD_ROLE and field != FIELD_TEXT and field != FIELD_IS_ERROR
        )
    if level == REC_LEVEL_MESSAGE:
        return field == FIELD_ID or field == FIELD_CONTENT or field == FIELD_ROLE or (
            FIELD_MODEL <= field < REC_MESSAGE_FIELDS
        )
    return field < REC_BLOCK_FIELDS if level == REC_LEVEL_BLOCK else field == FIELD_TYPE


cdef inline bint rec_field_is_checked(int field) noexcept nogil:
    """Return whether a field with invalid UTF-8 makes its record invalid."""
    return field < FIELD_SESSION_ID and field != FIELD_MODEL and field != FIELD_USAGE


cdef int rec_field_escaped(Cursor name, Cursor end) noexcept nogil:
    """Return the field of a name with escapes."""
    cdef unsigned char plain[128]
    cdef bint lone = False
    if end - name > <Py_ssize_t>sizeof(plain):
        return FIELD_OTHER
    return rec_field_named(plain, json_unescape(name, end, plain, &lone))


cdef inline void rec_slice_extend(RecSlice* slice, Cursor start, Cursor end) noexcept nogil:
    if slice.start == NULL:
        slice.start = start
    slice.end = end


cdef Cursor rec_walk_blocks(Cursor p, Cursor end, RecSlice* values, JsonFault* fault) noexcept nogil:
    """Skip the array of content blocks at p. Checks the UTF-8 of texts, and notes the places of texts and tools."""
    cdef RecSlice block[REC_BLOCK_FIELDS]
    cdef Cursor start
    p = json_skip_space(p + 1, end)
    if p != end and p[0] == c"]":
        return p + 1
    while True:
        start = p
        if p != end and p[0] == c"{":
            block[FIELD_TYPE].start = block[FIELD_NAME].start = block[FIELD_TEXT].start = NULL
            block[FIELD_IS_ERROR].start = NULL
            p = rec_walk_members(p, end, REC_LEVEL_BLOCK, block, NULL, fault)
            if p != NULL and rec_value_is(&block[FIELD_TYPE], LIT(b"text")):
                if rec_value_is_string(&block[FIELD_TEXT]) and not rec_value_is_white_space(&block[FIELD_TEXT]):
                    rec_slice_extend(&values[FIELD_TEXTS], start, p)
            elif p != NULL and rec_value_is(&block[FIELD_TYPE], LIT(b"tool_use")):
                rec_slice_extend(&values[FIELD_TOOLS], start, p)
                values[FIELD_LAST_TOOL] = RecSlice(start, p)
                values[FIELD_LAST_TOOL_NAME] = block[FIELD_NAME]
            elif p != NULL and rec_value_is(&block[FIELD_TYPE], LIT(b"tool_result")):
                rec_slice_extend(&values[FIELD_RESULTS], start, p)
                if block[FIELD_IS_ERROR].start != NULL and block[FIELD_IS_ERROR].start[0] == c"t":
                    values[FIELD_FAILED] = RecSlice(start, p)
        else:
            p = json_skip(p, end, fault)
            if p != NULL and start[0] == c'"':
                if utf8_stop(start, p) != p:
                    return json_fail(fault, "invalid UTF-8", start)
                block[FIELD_TEXT] = RecSlice(start, p)
                if not rec_value_is_white_space(&block[FIELD_TEXT]):
                    rec_slice_extend(&values[FIELD_TEXTS], start, p)
        if p == NULL:
            return NULL
        p = json_skip_space(p, end)
        if p == end or (p[0] != c"," and p[0] != c"]"):
            return json_fail(fault, "expected ',' or the container's end", p)
        if p[0] == c"]":
            return p + 1
        p = json_skip_space(p + 1, end)


cdef Cursor rec_walk_members(
    Cursor p, Cursor end, int level, RecSlice* values, RecSlice* message, JsonFault* fault
) noexcept nogil:
    """Skip the object at p and note the values of the level's fields, and in `message` those of a record's message."""
    cdef Cursor name
    cdef Cursor start
    cdef int field
    p = json_skip_space(p + 1, end)
    if p != end and p[0] == c"}":
        return p + 1
    while True:
        if p == end or p[0] != c'"':
            return json_fail(fault, "expected a member's name", p)
        name = p + 1
        p = json_string_short(name, end)
        if p != end and p[0] == c'"':
            field = rec_field_named(name, p - name)
            p += 1
        else:
            p = json_skip_string_rest(p, end, fault)
            if p == NULL:
                return NULL
            field = rec_field_escaped(name, p - 1)
        p = json_skip_space(p, end)
        if p == end or p[0] != c":":
            return json_fail(fault, "expected ':'", p)
        p = start = json_skip_space(p + 1, end)
        if field == FIELD_OTHER or not rec_field_belongs(field, level):
            p = json_skip_value(p, end, fault)
        else:
            if field < REC_BLOCK_FIELDS:  # nothing that is walked: of blocks, no other field belongs
                p = json_skip_value(p, end, fault)
                if p != NULL and start[0] == c'"' and rec_field_is_checked(field) and utf8_stop(start, p) != p:
                    return json_fail(fault, "invalid UTF-8", start)
            else:
                p = rec_walk_value(p, end, field, values, message, fault)
            values[field].start = start
            values[field].end = p
        if p == NULL:
            return NULL
        p = json_skip_space(p, end)
        if p == end or (p[0] != c"," and p[0] != c"}"):
            return json_fail(fault, "expected ',' or the container's end", p)
        if p[0] == c"}":
            return p + 1
        p = json_skip_space(p + 1, end)


cdef Cursor rec_walk_value(
    Cursor start, Cursor end, int field, RecSlice* values, RecSlice* message, JsonFault* fault
) noexcept nogil:
    """Skip the value of a field, and note the contents of a message, of its content and of an attachment."""
    cdef Cursor p
    if field == FIELD_MESSAGE:
        memset(message, 0, REC_MESSAGE_FIELDS * sizeof(RecSlice))
    elif field == FIELD_CONTENT:
        values[FIELD_TEXTS].start = values[FIELD_TOOLS].start = values[FIELD_RESULTS].start = NULL
        values[FIELD_FAILED].start = NULL
    elif field == FIELD_ATTACHMENT:
        values[FIELD_ATTACHMENT_TYPE].start = NULL
    if start != end and start[0] == c"{" and field == FIELD_MESSAGE:
        return rec_walk_members(start, end, REC_LEVEL_MESSAGE, message, NULL, fault)
    if start != end and start[0] == c"[" and field == FIELD_CONTENT:
        return rec_walk_blocks(start, end, values, fault)
    if start != end and start[0] == c"{" and field == FIELD_ATTACHMENT:
        return rec_walk_members(start, end, REC_LEVEL_ATTACHMENT, values + FIELD_ATTACHMENT_TYPE, NULL, fault)
    p = json_skip_value(start, end, fault)
    if p != NULL and start[0] == c'"' and rec_field_is_checked(field) and utf8_stop(start, p) != p:
        return json_fail(fault, "invalid UTF-8", start)
    return p


cdef bint rec_read_attachment(RecFields* fields, JsonFault* fault) noexcept nogil:
    """Make an attachment a message if a person typed it while the agent worked. Returns False for bad UTF-8.

    Claude Code (2.1.222) gives such a prompt to the agent between two of its steps, and writes no other record for it:
    {"type": "attachment", "attachment": {"type": "queued_command", "commandMode": "prompt", "prompt": CONTENT}}
    """
    cdef RecSlice* attachment = &fields.top[FIELD_ATTACHMENT]
    cdef RecSlice value
    if (
        not rec_value_is(&fields.top[FIELD_TYPE], LIT(b"attachment"))
        or not rec_value_is(&fields.top[FIELD_ATTACHMENT_TYPE], LIT(b"queued_command"))
        or not rec_find_member(attachment, LIT(b"commandMode"), &value) or not rec_value_is(&value, LIT(b"prompt"))
        or (rec_find_member(attachment, LIT(b"isMeta"), &value) and value.start[0] == c"t")
        or (rec_find_member(attachment, LIT(b"origin"), &value) and not rec_is_of_person(&value))
    ):
        return True
    fields.is_queued_prompt = True
    memset(fields.message, 0, sizeof(fields.message))
    if not rec_find_member(attachment, LIT(b"prompt"), &value):
        return True
    fields.message[FIELD_CONTENT] = value
    if value.start[0] == c"[":
        return rec_walk_blocks(value.start, value.end, fields.message, fault) != NULL
    return value.start[0] != c'"' or utf8_stop(value.start, value.end) == value.end


cdef Cursor rec_walk(Cursor p, Cursor end, RecFields* fields) noexcept nogil:
    """Skip the object at p and fill `fields`. Returns the position after it, or NULL if it is invalid."""
    cdef JsonFault fault
    bytes_clear(fields, sizeof(RecFields))
    fields.start = p
    fields.end = rec_walk_members(p, end, REC_LEVEL_RECORD, fields.top, fields.message, &fault)
    return fields.end
