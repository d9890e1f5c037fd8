# A record of a transcript: its kind, its role, its text and its tools.
#
# Gives: rec_value_*, rec_is_*, rec_role, rec_has_text, rec_text, rec_utf8; rec_message, rec_may_hold_message, rec_move;
# rec_speech, rec_content, rec_next_text, rec_next_element.
# Needs: the fields (transcript/fields.pxi), WinLine (transcript/window.pxi), the grammar (json/grammar.pxi), bytes_cut
# (text/view.pxi).

cdef inline bint rec_value_is_true(RecSlice* value) noexcept nogil:
    return value.start != NULL and value.start[0] == c"t"


cdef inline bint rec_is_assistant(RecFields* fields) noexcept nogil:
    return rec_value_is(&fields.top[FIELD_TYPE], LIT(b"assistant"))


cdef inline bint rec_is_spoken(RecFields* fields) noexcept nogil:
    """Return whether the record has one of the types that hold words, or is a queued prompt."""
    return (
        rec_is_assistant(fields)
        or rec_value_is(&fields.top[FIELD_TYPE], LIT(b"user"))
        or rec_value_is(&fields.top[FIELD_TYPE], LIT(b"human"))
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
    """Return whether the record itself is a tool's result, as in flat transcripts."""
    return rec_value_is(&fields.top[FIELD_TYPE], LIT(b"tool_result"))


cdef inline RecSlice* rec_speech(RecFields* fields) noexcept nogil:
    """Return the values with the content: the message's, or those of a flat record. The content may be absent."""
    if fields.message[FIELD_CONTENT].start == NULL and rec_is_spoken(fields):
        return fields.top
    return fields.message


cdef inline RecSlice* rec_content(RecFields* fields) noexcept nogil:
    """Return the values with the text: those of rec_speech, or of a record with only the host's words.

    {"type": "system", "content": TEXT}, {"type": "queue-operation", "content": TEXT}. A tool's result has no text.
    """
    if fields.message[FIELD_CONTENT].start == NULL and not rec_is_result(fields):
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
        if kind == REC_OBJECT and not rec_value_is(&block[FIELD_TYPE], LIT(b"text")):
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
    cdef RecSlice* values = rec_content(fields)
    cdef RecSlice texts = values[FIELD_TEXTS]
    cdef RecSlice text
    cdef list parts = []
    if rec_value_is_string(&values[FIELD_CONTENT]):
        return rec_value_string(&values[FIELD_CONTENT])
    while rec_next_text(&texts, &text):
        parts.append(json_decode(text.start, text.end))
    return "\n".join(parts)


cdef bint rec_has_text(RecFields* fields, bint strings) noexcept nogil:
    """Return whether a spoken record has text other than white space. strings: as for rec_next_text."""
    cdef RecSlice* speech = rec_speech(fields)
    cdef RecSlice texts = speech[FIELD_TEXTS]
    cdef RecSlice text
    if rec_value_is_string(&speech[FIELD_CONTENT]):
        return not rec_value_is_white_space(&speech[FIELD_CONTENT])
    return rec_next_text(&texts, &text, strings)


cdef bytes rec_utf8(RecFields* fields, bint strings):
    """Return the result of rec_text for a spoken record, in UTF-8. strings: as for rec_next_text."""
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
    # One object for all texts: there may be a million. Each text is shorter than its literal by two quotation marks:
    # this leaves room for the newlines.
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
    """Return the names of the used tools, in order, with None for a missing name."""
    cdef RecSlice* speech = rec_speech(fields)
    cdef RecSlice tools = speech[FIELD_TOOLS]
    cdef RecSlice block[REC_BLOCK_FIELDS]
    cdef list names = []
    if tools.start == NULL:
        return names
    if tools.start == speech[FIELD_LAST_TOOL].start:  # the only one, as hosts write it
        return [rec_value_string(&speech[FIELD_LAST_TOOL_NAME])]
    while rec_next_element(&tools, block, False):
        if rec_value_is(&block[FIELD_TYPE], LIT(b"tool_use")):
            names.append(rec_value_string(&block[FIELD_NAME]))
    return names


cdef bint rec_may_hold_message(WinLine* line) noexcept nogil:
    """Return whether the line may hold a record with words or tools: its type must be in it, or an escape.

    Only lines over 1 MiB are searched: reading shorter ones is as fast as searching them.
    """
    cdef size_t size = line.end - line.start
    return size != 0 and (
        size < 1 << 20
        or bytes_find(line.start, size, LIT(b"user")) != NULL
        or bytes_find(line.start, size, LIT(b"assistant")) != NULL
        or bytes_find(line.start, size, LIT(b"tool_use")) != NULL
        or bytes_find(line.start, size, LIT(b"human")) != NULL
        or bytes_find(line.start, size, LIT(b"\\u")) != NULL
    )


cdef tuple rec_message(RecFields* fields):
    """Return (whether it is the assistant's, its text in UTF-8, the names of its tools), or None if both are empty."""
    cdef list tools = []
    cdef bytes text
    if rec_is_foreign(fields):
        return None
    if rec_value_is(&fields.top[FIELD_TYPE], LIT(b"tool_use")):
        return (True, b"", [rec_value_string(&fields.top[FIELD_NAME])])
    if not rec_is_spoken(fields):
        return None
    text = rec_utf8(fields, True) if rec_has_text(fields, True) else b""
    if rec_is_assistant(fields):
        tools = rec_tool_names(fields)
    return (rec_is_assistant(fields), text, tools) if text or tools else None
