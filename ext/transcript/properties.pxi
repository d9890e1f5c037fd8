# More properties of a record: its origin, whether it failed, its counts and times.
#
# Gives: rec_is_*, rec_begins_with, rec_find_member, rec_next_object, rec_next_result, rec_read_count, rec_count,
# rec_read_time.
# Needs: a record (transcript/records.pxi), the fields (transcript/fields.pxi), the blocks of tools
# (transcript/tool_blocks.pxi), the grammar (json/grammar.pxi), iso_read_microseconds (text/iso8601.pxi).

cdef bint rec_find_member(RecSlice* container, Literal name, RecSlice* value) noexcept nogil:
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
        if rec_value_is(&found, name):
            value[0] = RecSlice(p, json_skip(p, end, &fault))
            p = value.end
        else:
            p = json_skip(p, end, &fault)
        p = json_skip_space(p, end)
        if p[0] == c",":
            p = json_skip_space(p + 1, end)
    return value.start != NULL


cdef bint rec_next_object(RecSlice* elements, RecSlice* found) noexcept nogil:
    """Find the next object of a valid array and move the start of `elements` behind it. Returns False if none is left.

    elements: at first a JSON value. If it is not an array, it has no objects.
    """
    cdef JsonFault fault
    cdef Cursor p = elements.start
    if p == NULL or (p[0] != c"[" and p[0] != c","):
        return False
    while True:
        p = json_skip_space(p + 1, elements.end)
        if p[0] == c"]":
            elements.start = NULL
            return False
        found[0] = RecSlice(p, json_skip(p, elements.end, &fault))
        p = json_skip_space(found.end, elements.end)
        elements.start = p if p[0] == c"," else NULL
        if found.start[0] == c"{":
            return True
        if elements.start == NULL:
            return False


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
        if rec_value_is(&block.type, LIT(b"tool_result")):
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
        or rec_value_is(&fields.top[FIELD_SUBTYPE], LIT(b"api_error"))
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
    return not rec_find_member(origin, LIT(b"kind"), &kind) or rec_value_is(&kind, LIT(b"human"))


cdef bint rec_is_persons(RecSlice* role) noexcept nogil:
    """Return whether this is the role of a person."""
    return rec_value_is(role, LIT(b"user")) or rec_value_is(role, LIT(b"human"))


cdef bint rec_is_prompt(RecFields* fields) noexcept nogil:
    """Return whether a person typed the record: it has words of a user, not of a tool or the host."""
    cdef RecSlice role = rec_role(fields)
    cdef RecSlice record = RecSlice(fields.start, fields.end)
    cdef RecSlice plan
    return (
        rec_is_persons(&role)
        and rec_speech(fields)[FIELD_RESULTS].start == NULL
        and not rec_value_is_true(&fields.top[FIELD_SIDECHAIN])
        and rec_is_of_person(&fields.top[FIELD_ORIGIN])
        and rec_is_own_words(fields)
        and not rec_is_app_written(fields)
        and not rec_find_member(&record, LIT(b"planContent"), &plan)  # the text of a button that begins with a plan
    )


cdef bint rec_is_own_words(RecFields* fields) noexcept nogil:
    """Return whether the record has words of the agent or a person, not of the host in their name."""
    cdef RecSlice role = rec_role(fields)
    cdef RecSlice text
    cdef bint is_persons = rec_is_persons(&role)
    if not (is_persons or rec_value_is(&role, LIT(b"assistant"))) or rec_is_host_made(fields):
        return False
    if not rec_first_text(fields, &text):
        return False
    return not is_persons or not rec_begins_with(&text, rec_host_written, REC_HOST_WRITTEN_COUNT)


cdef bint rec_is_app_written(RecFields* fields) noexcept nogil:
    """Return whether a person's record begins like a text of a button or a monitor of the host's app."""
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


cdef bint rec_read_count(RecSlice* container, Literal name, int64_t* count) noexcept nogil:
    """Set `count` to the whole number (0 to 2**63 - 1) in a member of an object. Returns False without one."""
    cdef RecSlice value
    cdef uint64_t number = 0
    count[0] = 0
    if not rec_find_member(container, name, &value) or value.end - value.start > 19:
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


cdef int64_t rec_count(RecSlice* container, Literal name) noexcept nogil:
    """Return the number of rec_read_count, or 0."""
    cdef int64_t count
    rec_read_count(container, name, &count)
    return count


cdef bint rec_read_time(RecSlice* value, int64_t* microseconds) noexcept nogil:
    """Return whether a JSON value is a time in the years 1 to 9999. microseconds: set to it."""
    return (
        rec_value_is_string(value)
        and iso_read_microseconds(value.start + 1, value.end - 1, microseconds)
        and -62_135_596_800_000_000LL <= microseconds[0] < 253_402_300_800_000_000LL  # 0001-01-01, 10000-01-01
    )
