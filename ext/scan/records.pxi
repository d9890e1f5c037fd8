# What a scan asks of one record: its own text, and the rows that it gives.
#
# Gives: ScanPlace, scan_own_text, scan_put_record, scan_put_origin.
# Needs: the columns (scan/fields.pxi), the record (transcript/records.pxi, tool_blocks.pxi).

cdef struct ScanPlace:     # where a record stands, and what a record may not say itself
    Cursor path            # UTF-8
    size_t path_bytes
    Cursor session_id      # of the file, if the record names none
    size_t session_id_bytes
    Cursor host
    size_t host_bytes
    int64_t offset


cdef int scan_own_text(RecFields* fields, ScanText* text) noexcept nogil:
    """Set `text` to what `Record.text` returns. Returns 0, or -1: no memory."""
    cdef RecSlice* speech = rec_speech(fields)
    cdef RecSlice texts = speech[FIELD_TEXTS]
    cdef RecSlice part
    text.size = 0
    if rec_value_is_string(&speech[FIELD_CONTENT]):
        return scan_text_add(text, speech[FIELD_CONTENT].start + 1, speech[FIELD_CONTENT].end - 1)
    while rec_next_text(&texts, &part):
        if text.size:
            if scan_text_room(text, 1) < 0:
                return -1
            text.data[text.size] = c"\n"
            text.size += 1
        if scan_text_add(text, part.start, part.end) < 0:
            return -1
    return 0


cdef inline RecSlice* scan_role(RecFields* fields) noexcept nogil:
    """Return the value with the role: the message's, or the type of a flat record. NULL for records of other types."""
    if not rec_is_spoken(fields):
        return NULL
    if fields.message[FIELD_ROLE].start == NULL:
        return &fields.top[FIELD_TYPE]
    return &fields.message[FIELD_ROLE]


cdef int scan_put_tools(ScanColumns* columns, RecFields* fields, ScanText* scratch) noexcept nogil:
    """Put the names of the tools that a record uses; one without a name is "". Returns 0, or -1: no memory."""
    cdef ArrowColumn* column = &columns.items[SCAN_TOOLS]
    cdef RecSlice tools = rec_speech(fields)[FIELD_TOOLS]
    cdef RecSlice block[REC_BLOCK_FIELDS]
    cdef RecSlice* name
    cdef bint is_flat
    if not columns.wanted[SCAN_TOOLS]:
        return 0
    is_flat = rec_value_is(&fields.top[FIELD_TYPE], b"tool_use", 8)
    while is_flat or (tools.start != NULL and rec_next_element(&tools, block, False)):
        if not is_flat and not rec_value_is(&block[FIELD_TYPE], b"tool_use", 8):
            continue
        name = &fields.top[FIELD_NAME] if is_flat else &block[FIELD_NAME]
        is_flat = False
        scratch.size = 0
        if rec_value_is_string(name) and scan_text_add(scratch, name.start + 1, name.end - 1) < 0:
            return -1
        if arrow_texts_add(&column.texts, scratch.data, scratch.size) < 0:
            return -1
    return arrow_end_names(column)


cdef int scan_put_or(
    ScanColumns* columns, int field, RecSlice* value, Cursor other, size_t other_bytes, ScanText* scratch
) noexcept nogil:
    """Put a string, or another text if the value is not a string or is empty. Returns 0, or -1: no memory."""
    if rec_value_is_string(value) and value.end - value.start > 2:
        return scan_put_string(columns, field, value, scratch)
    return scan_put_text(columns, field, other, other_bytes)


cdef int scan_put_time(ScanColumns* columns, int field, RecSlice* value) noexcept nogil:
    """Put a time, or null. Returns 0, or -1: no memory."""
    cdef int64_t microseconds
    if not columns.wanted[field]:
        return 0
    if scan_read_time(value, &microseconds):
        return arrow_add_int(&columns.items[field], microseconds)
    return arrow_add_null(&columns.items[field])


cdef int scan_put_origin(ScanColumns* columns, RecFields* fields, ScanPlace* place, ScanText* scratch) noexcept nogil:
    """Put what rows of all tables have: where the record stands, and whose it is. Returns 0, or -1: no memory."""
    cdef RecSlice* top = fields.top
    cdef RecSlice* role = scan_role(fields)
    cdef RecSlice nothing = RecSlice(NULL, NULL)
    if (
        scan_put_text(columns, SCAN_PATH, place.path, place.path_bytes) < 0
        or scan_put_int(columns, SCAN_OFFSET, place.offset) < 0
        or scan_put_text(columns, SCAN_HOST, place.host, place.host_bytes) < 0
        or scan_put_string(columns, SCAN_HOST_VERSION, &top[FIELD_VERSION], scratch) < 0
        or scan_put_or(
            columns, SCAN_SESSION_ID, &top[FIELD_SESSION_ID], place.session_id, place.session_id_bytes, scratch
        ) < 0
        or scan_put_string(columns, SCAN_AGENT_ID, &top[FIELD_AGENT_ID], scratch) < 0
        or scan_put_string(columns, SCAN_PROJECT, &top[FIELD_CWD], scratch) < 0
        or scan_put_string(columns, SCAN_GIT_BRANCH, &top[FIELD_GIT_BRANCH], scratch) < 0
        or scan_put_string(columns, SCAN_ROLE, role if role != NULL else &nothing, scratch) < 0
        or scan_put_time(columns, SCAN_TIMESTAMP, &top[FIELD_TIMESTAMP]) < 0
        or scan_put_string(columns, SCAN_MESSAGE_ID, &fields.message[FIELD_ID], scratch) < 0
        or scan_put_string(columns, SCAN_REQUEST_ID, &top[FIELD_REQUEST_ID], scratch) < 0
        or scan_put_string(columns, SCAN_MODEL, &fields.message[FIELD_MODEL], scratch) < 0
    ):
        return -1
    return 0


cdef int scan_put_record(
    ScanColumns* columns, RecFields* fields, ScanPlace* place, ScanText* text, ScanText* scratch
) noexcept nogil:
    """Put the row of a record. Returns 0, or -1: no memory."""
    cdef RecSlice* top = fields.top
    if (
        scan_put_origin(columns, fields, place, scratch) < 0
        or scan_put_string(columns, SCAN_UUID, &top[FIELD_UUID], scratch) < 0
        or scan_put_string(columns, SCAN_PARENT_UUID, &top[FIELD_PARENT_UUID], scratch) < 0
        or scan_put_string(columns, SCAN_TYPE, &top[FIELD_TYPE], scratch) < 0
        or scan_put_string(columns, SCAN_SUBTYPE, &top[FIELD_SUBTYPE], scratch) < 0
        or scan_put_tools(columns, fields, scratch) < 0
    ):
        return -1
    if columns.wanted[SCAN_IS_PROMPT] and arrow_add_bool(&columns.items[SCAN_IS_PROMPT], rec_is_prompt(fields)) < 0:
        return -1
    if columns.wanted[SCAN_IS_ERROR] and arrow_add_bool(&columns.items[SCAN_IS_ERROR], rec_is_error(fields)) < 0:
        return -1
    if (
        scan_put_bool(columns, SCAN_IS_SIDECHAIN, rec_value_is_true(&top[FIELD_SIDECHAIN])) < 0
        or scan_put_bool(columns, SCAN_IS_META, rec_value_is_true(&top[FIELD_META])) < 0
    ):
        return -1
    if columns.wanted[SCAN_TEXT] or columns.wanted[SCAN_TEXT_BYTES]:
        if (
            scan_own_text(fields, text) < 0
            or scan_put_int(columns, SCAN_TEXT_BYTES, text.size) < 0
            or scan_put_text(columns, SCAN_TEXT, text.data, text.size) < 0
        ):
            return -1
    columns.rows += 1
    return 0
