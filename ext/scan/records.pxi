# What a scan asks of one record: its own text, and the rows that it gives.
#
# Gives: ScanPlace; scan_is_own_words, scan_own_text; scan_put_origin, scan_put_record, scan_put_usage,
# scan_put_tool_halves, scan_put_line.
# Needs: the columns (scan/fields.pxi, arrow/columns.pxi), rec_walk and RecFields (transcript/fields.pxi), rec_is_*,
# rec_role and rec_value_is_* (transcript/records.pxi), the properties (transcript/properties.pxi), RecToolBlock
# (transcript/tool_blocks.pxi), json_skip (json/grammar.pxi), utf8_bad_length (text/utf8.pxi), scan/tools.h.

# Where a record stands, and what it may leave out.
cdef struct ScanPlace:
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


cdef int64_t scan_text_bytes(RecFields* fields) noexcept nogil:
    """Return how long the text is that scan_own_text gives."""
    cdef RecSlice* speech = rec_speech(fields)
    cdef RecSlice texts = speech[FIELD_TEXTS]
    cdef RecSlice part
    cdef int64_t size = 0
    if rec_value_is_string(&speech[FIELD_CONTENT]):
        return scan_string_bytes(speech[FIELD_CONTENT].start + 1, speech[FIELD_CONTENT].end - 1)
    while rec_next_text(&texts, &part):
        size += (size != 0) + scan_string_bytes(part.start, part.end)
    return size


cdef int scan_add_to_list(ArrowColumn* column, RecSlice* value, ScanText* scratch) noexcept nogil:
    """Add a JSON string to the list that is begun in a column. Returns 0, or -1: no memory."""
    scratch.size = 0
    if scan_text_add(scratch, value.start + 1, value.end - 1) < 0:
        return -1
    return arrow_texts_add(&column.texts, scratch.data, scratch.size)


cdef int scan_put_tools(ScanColumns* columns, RecFields* fields, ScanText* scratch) noexcept nogil:
    """Put the names of the tools that a record uses. Returns 0, or -1: no memory."""
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
        if scan_is_name(name) and scan_add_to_list(column, name, scratch) < 0:
            return -1
    return arrow_end_names(column, True)


cdef int scan_put_or(
    ScanColumns* columns, int field, RecSlice* value, Cursor other, size_t other_bytes, ScanText* scratch
) noexcept nogil:
    """Put a value if it is a name and not empty, otherwise the text `other`. Returns 0, or -1: no memory."""
    if scan_is_name(value) and value.end - value.start > 2:
        return scan_put_string(columns, field, value, scratch)
    return scan_put_text(columns, field, other, other_bytes)


cdef int scan_put_time(ScanColumns* columns, int field, RecSlice* value) noexcept nogil:
    """Put a time, or null. Returns 0, or -1: no memory."""
    cdef int64_t microseconds
    if not columns.wanted[field]:
        return 0
    if rec_read_time(value, &microseconds):
        return arrow_add_int(&columns.items[field], microseconds)
    return arrow_add_null(&columns.items[field])


cdef int scan_put_origin(ScanColumns* columns, RecFields* fields, ScanPlace* place, ScanText* scratch) noexcept nogil:
    """Put what rows of all tables have: where the record stands, and whose it is. Returns 0, or -1: no memory."""
    cdef RecSlice* top = fields.top
    cdef RecSlice role = rec_role(fields)
    if (
        scan_put_text(columns, SCAN_PATH, place.path, place.path_bytes) < 0
        or scan_put_int(columns, SCAN_OFFSET, place.offset) < 0
        or scan_put_text(columns, SCAN_HOST, place.host, place.host_bytes) < 0
        or scan_put_name(columns, SCAN_HOST_VERSION, &top[FIELD_VERSION], scratch) < 0
        or scan_put_or(
            columns, SCAN_SESSION_ID, &top[FIELD_SESSION_ID], place.session_id, place.session_id_bytes, scratch
        ) < 0
        or scan_put_name(columns, SCAN_AGENT_ID, &top[FIELD_AGENT_ID], scratch) < 0
        or scan_put_name(columns, SCAN_PROJECT, &top[FIELD_CWD], scratch) < 0
        or scan_put_name(columns, SCAN_GIT_BRANCH, &top[FIELD_GIT_BRANCH], scratch) < 0
        or scan_put_name(columns, SCAN_ROLE, &role, scratch) < 0
        or scan_put_time(columns, SCAN_TIMESTAMP, &top[FIELD_TIMESTAMP]) < 0
        or scan_put_name(columns, SCAN_MESSAGE_ID, &fields.message[FIELD_ID], scratch) < 0
        or scan_put_name(columns, SCAN_REQUEST_ID, &top[FIELD_REQUEST_ID], scratch) < 0
        or scan_put_name(columns, SCAN_MODEL, &fields.message[FIELD_MODEL], scratch) < 0
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
        or scan_put_name(columns, SCAN_UUID, &top[FIELD_UUID], scratch) < 0
        or scan_put_name(columns, SCAN_PARENT_UUID, &top[FIELD_PARENT_UUID], scratch) < 0
        or scan_put_name(columns, SCAN_TYPE, &top[FIELD_TYPE], scratch) < 0
        or scan_put_name(columns, SCAN_SUBTYPE, &top[FIELD_SUBTYPE], scratch) < 0
        or scan_put_tools(columns, fields, scratch) < 0
    ):
        return -1
    if columns.wanted[SCAN_IS_PROMPT] and scan_put_bool(columns, SCAN_IS_PROMPT, rec_is_prompt(fields)) < 0:
        return -1
    if columns.wanted[SCAN_IS_ERROR] and scan_put_bool(columns, SCAN_IS_ERROR, rec_is_error(fields)) < 0:
        return -1
    if (
        scan_put_bool(columns, SCAN_IS_SIDECHAIN, rec_value_is_true(&top[FIELD_SIDECHAIN])) < 0
        or scan_put_bool(columns, SCAN_IS_META, rec_value_is_true(&top[FIELD_META])) < 0
    ):
        return -1
    if columns.wanted[SCAN_TEXT_BYTES] and scan_put_int(columns, SCAN_TEXT_BYTES, scan_text_bytes(fields)) < 0:
        return -1
    if columns.wanted[SCAN_TEXT]:
        if scan_own_text(fields, text) < 0 or scan_put_text(columns, SCAN_TEXT, text.data, text.size) < 0:
            return -1
    return scan_end_row(columns)


# ---- usage ---------------------------------------------------------------------

cdef int scan_put_count(ScanColumns* columns, int field, RecSlice* usage, const char* name, size_t size) noexcept nogil:
    """Put a member of an object if it is a whole number from 0 to 2**63 - 1, otherwise null."""
    cdef int64_t count
    if not columns.wanted[field]:
        return 0
    if rec_read_count(usage, name, size, &count):
        return arrow_add_int(&columns.items[field], count)
    return arrow_add_null(&columns.items[field])


cdef bint scan_is_own_words(RecFields* fields) noexcept nogil:
    """Return whether the agent or a person said what is in the record, and neither the host nor its app.

    To the memory machine, what the app sends is a message.
    """
    return rec_is_own_words(fields) and not rec_is_app_written(fields)


cdef bint scan_find_response(RecFields* fields, RecFields* response) noexcept nogil:
    """Return whether an API response is in a record: its own, or one that a progress record repeats of a sub-agent.

    response: set to the record with the response.
    """
    cdef RecSlice record = RecSlice(fields.start, fields.end)
    cdef RecSlice data, nested
    response[0] = fields[0]
    if rec_value_is(&fields.top[FIELD_TYPE], b"progress", 8):
        if not rec_find_member(&record, b"data", 4, &data) or not rec_find_member(&data, b"message", 7, &nested):
            return False
        if nested.start[0] != c"{":
            return False
        if rec_walk(nested.start, nested.end, response) == NULL:
            return False
    return (
        rec_is_assistant(response)
        and response.message[FIELD_USAGE].start != NULL
        and response.message[FIELD_USAGE].start[0] == c"{"
        and not rec_value_is(&response.message[FIELD_MODEL], b"<synthetic>", 11)
        and not rec_value_is_true(&response.top[FIELD_API_ERROR])
    )


cdef int scan_put_usage(ScanColumns* columns, RecFields* fields, ScanPlace* place, ScanText* scratch) noexcept nogil:
    """Put the row of a record with an API response, if it has one. Returns 0, or -1: no memory."""
    cdef RecFields response
    cdef RecSlice* usage = &response.message[FIELD_USAGE]
    cdef RecSlice* time = &response.top[FIELD_TIMESTAMP]
    cdef RecSlice record = RecSlice(fields.start, fields.end)
    cdef RecSlice agent = fields.top[FIELD_AGENT_ID]
    cdef RecSlice data, nested_agent, written
    cdef int64_t at
    if not scan_find_response(fields, &response):
        return 0
    if response.start != fields.start:
        if rec_find_member(&record, b"data", 4, &data) and rec_find_member(&data, b"agentId", 7, &nested_agent):
            if scan_is_name(&nested_agent) and nested_agent.end - nested_agent.start > 2:
                agent = nested_agent
        if not rec_read_time(time, &at):
            time = &fields.top[FIELD_TIMESTAMP]
    written.start = NULL
    if columns.wanted[SCAN_CACHE_CREATION_1H_TOKENS]:
        rec_find_member(usage, b"cache_creation", 14, &written)
    if (
        scan_put_text(columns, SCAN_PATH, place.path, place.path_bytes) < 0
        or scan_put_int(columns, SCAN_OFFSET, place.offset) < 0
        or scan_put_text(columns, SCAN_HOST, place.host, place.host_bytes) < 0
        or scan_put_or(
            columns, SCAN_SESSION_ID, &fields.top[FIELD_SESSION_ID], place.session_id, place.session_id_bytes, scratch
        ) < 0
        or scan_put_name(columns, SCAN_AGENT_ID, &agent, scratch) < 0
        or scan_put_name(columns, SCAN_PROJECT, &fields.top[FIELD_CWD], scratch) < 0
        or scan_put_name(columns, SCAN_UUID, &response.top[FIELD_UUID], scratch) < 0
        or scan_put_time(columns, SCAN_TIMESTAMP, time) < 0
        or scan_put_name(columns, SCAN_MESSAGE_ID, &response.message[FIELD_ID], scratch) < 0
        or scan_put_name(columns, SCAN_REQUEST_ID, &response.top[FIELD_REQUEST_ID], scratch) < 0
        or scan_put_name(columns, SCAN_MODEL, &response.message[FIELD_MODEL], scratch) < 0
        or scan_put_count(columns, SCAN_INPUT_TOKENS, usage, b"input_tokens", 12) < 0
        or scan_put_count(columns, SCAN_OUTPUT_TOKENS, usage, b"output_tokens", 13) < 0
        or scan_put_count(columns, SCAN_CACHE_READ_TOKENS, usage, b"cache_read_input_tokens", 23) < 0
        or scan_put_count(columns, SCAN_CACHE_CREATION_TOKENS, usage, b"cache_creation_input_tokens", 27) < 0
        or scan_put_count(columns, SCAN_CACHE_CREATION_1H_TOKENS, &written, b"ephemeral_1h_input_tokens", 25) < 0
    ):
        return -1
    return scan_end_row(columns)


# ---- tools ---------------------------------------------------------------------

cdef bint scan_tool_is(RecSlice* name, const char* const* names) noexcept nogil:
    """Return whether a tool has one of the names. names: ends with NULL."""
    cdef int i = 0
    while names[i] != NULL:
        if rec_value_is(name, names[i], strlen(names[i])):
            return True
        i += 1
    return False


cdef void scan_find_argument(
    RecToolBlock* use, const char* const* names, const char* member, RecSlice* found
) noexcept nogil:
    """Find a member of the input of a tool, if the tool has one of the names and nothing was found yet."""
    if found.start == NULL and scan_tool_is(&use.name, names):
        rec_find_member(&use.input, member, strlen(member), found)


cdef bint scan_find_patched(ScanText* text, RecSlice* name) noexcept nogil:
    """Find the first file that a patch for apply_patch adds, updates or deletes."""
    cdef Cursor p = text.data
    cdef Cursor end = text.data + text.size
    cdef Cursor stop
    cdef Py_ssize_t size
    cdef int i
    while p < end:
        stop = <Cursor>memchr(p, c"\n", end - p)
        stop = end if stop == NULL else stop
        i = 0
        while scan_patch_lines[i] != NULL:
            size = strlen(scan_patch_lines[i])
            if stop - p > size and memcmp(p, scan_patch_lines[i], size) == 0:
                name[0] = RecSlice(p + size, stop)
                while name.end - name.start > 1 and (name.end - 1)[0] in (c" ", c"\t", c"\r"):
                    name.end -= 1
                return True
            i += 1
        p = stop + 1
    return False


cdef int scan_put_file(ScanColumns* columns, RecToolBlock* use, ScanText* scratch) noexcept nogil:
    """Put the file that a tool edits, null if it edits none. Returns 0, or -1: no memory."""
    cdef RecSlice file = RecSlice(NULL, NULL)
    cdef RecSlice patch
    if not columns.wanted[SCAN_FILE]:
        return 0
    if rec_value_is(&use.name, b"apply_patch", 11):
        patch = use.input
        if not rec_value_is_string(&patch):
            rec_find_member(&use.input, b"input", 5, &patch)
        if rec_value_is_string(&patch):
            scratch.size = 0
            if scan_text_add(scratch, patch.start + 1, patch.end - 1) < 0:
                return -1
            if scan_find_patched(scratch, &file):
                return arrow_add_text(&columns.items[SCAN_FILE], file.start, file.end - file.start)
        return arrow_add_null(&columns.items[SCAN_FILE])
    scan_find_argument(use, scan_file_path_tools, b"file_path", &file)
    scan_find_argument(use, scan_notebook_tools, b"notebook_path", &file)
    scan_find_argument(use, scan_path_tools, b"path", &file)
    return scan_put_string(columns, SCAN_FILE, &file, scratch)


cdef int scan_put_words(ScanColumns* columns, int field, RecSlice* value, ScanText* scratch) noexcept nogil:
    """Put a string, or the strings of an array joined by spaces, otherwise null. Returns 0, or -1: no memory."""
    cdef JsonFault fault
    cdef Cursor p = value.start
    cdef Cursor stop
    if p == NULL or p[0] != c"[":
        return scan_put_string(columns, field, value, scratch)
    if not columns.wanted[field]:
        return 0
    p = json_skip_space(p + 1, value.end)
    if p[0] == c"]":
        return arrow_add_null(&columns.items[field])
    scratch.size = 0
    while True:
        if p[0] != c'"':
            return arrow_add_null(&columns.items[field])
        stop = json_skip_string(p + 1, value.end, &fault)
        if scan_text_add(scratch, p + 1, stop - 1) < 0:
            return -1
        p = json_skip_space(stop, value.end)
        if p[0] == c"]":
            return arrow_add_text(&columns.items[field], scratch.data, scratch.size)
        p = json_skip_space(p + 1, value.end)
        if scan_text_room(scratch, 1) < 0:
            return -1
        scratch.data[scratch.size] = c" "
        scratch.size += 1


cdef int scan_put_json(ScanColumns* columns, int field, RecSlice* value, ScanText* scratch) noexcept nogil:
    """Put a JSON value as it is written, with U+FFFD for what is not UTF-8. Returns 0, or -1: no memory."""
    cdef Cursor start = value.start
    cdef Cursor stop = utf8_stop(start, value.end)
    if stop == value.end:
        return arrow_add_text(&columns.items[field], start, value.end - start)
    scratch.size = 0
    while True:
        if scan_text_room(scratch, stop - start + 3) < 0:
            return -1
        memcpy(scratch.data + scratch.size, start, stop - start)
        scratch.size += stop - start
        if stop == value.end:
            return arrow_add_text(&columns.items[field], scratch.data, scratch.size)
        memcpy(scratch.data + scratch.size, b"\xEF\xBF\xBD", 3)
        scratch.size += 3
        start = stop + utf8_bad_length(stop, value.end)
        stop = utf8_stop(start, value.end)


cdef int scan_put_use(
    ScanColumns* columns, RecFields* fields, RecToolBlock* use, ScanPlace* place, ScanText* scratch
) noexcept nogil:
    """Put the half of a tool's row that its use has. Returns 0, or -1: no memory."""
    cdef RecSlice command = RecSlice(NULL, NULL)
    scan_find_argument(use, scan_command_tools, b"command", &command)
    scan_find_argument(use, scan_cmd_tools, b"cmd", &command)
    if (
        scan_put_origin(columns, fields, place, scratch) < 0
        or scan_put_name(columns, SCAN_TOOL_USE_ID, &use.id, scratch) < 0
        or scan_put_name(columns, SCAN_NAME, &use.name, scratch) < 0
        or scan_put_time(columns, SCAN_STARTED, &fields.top[FIELD_TIMESTAMP]) < 0
        or scan_put_null(columns, SCAN_ENDED) < 0
        or scan_put_null(columns, SCAN_IS_ERROR) < 0
        or scan_put_file(columns, use, scratch) < 0
        or scan_put_words(columns, SCAN_COMMAND, &command, scratch) < 0
        or scan_put_bool(columns, SCAN_IS_RESULT, False) < 0
    ):
        return -1
    if columns.wanted[SCAN_INPUT]:
        if use.input.start == NULL:
            if scan_put_null(columns, SCAN_INPUT) < 0:
                return -1
        elif scan_put_json(columns, SCAN_INPUT, &use.input, scratch) < 0:
            return -1
    return scan_end_row(columns)


cdef int scan_put_result(
    ScanColumns* columns, RecFields* fields, RecToolBlock* result, ScanPlace* place, ScanText* scratch
) noexcept nogil:
    """Put the half of a tool's row that its result has. Returns 0, or -1: no memory."""
    cdef RecSlice* ended = &fields.top[FIELD_TIMESTAMP]
    cdef int64_t at
    if rec_read_time(&result.timestamp, &at):
        ended = &result.timestamp
    if (
        scan_put_origin(columns, fields, place, scratch) < 0
        or scan_put_name(columns, SCAN_TOOL_USE_ID, &result.use_id, scratch) < 0
        or scan_put_null(columns, SCAN_NAME) < 0
        or scan_put_null(columns, SCAN_STARTED) < 0
        or scan_put_time(columns, SCAN_ENDED, ended) < 0
        or scan_put_bool(columns, SCAN_IS_ERROR, rec_value_is_true(&result.is_error)) < 0
        or scan_put_null(columns, SCAN_FILE) < 0
        or scan_put_null(columns, SCAN_COMMAND) < 0
        or scan_put_null(columns, SCAN_INPUT) < 0
        or scan_put_bool(columns, SCAN_IS_RESULT, True) < 0
    ):
        return -1
    return scan_end_row(columns)


cdef int scan_put_tool_halves(
    ScanColumns* columns, RecFields* fields, ScanPlace* place, ScanText* scratch
) noexcept nogil:
    """Put a row for each use and each result of a tool in a record. Returns 0, or -1: no memory."""
    cdef RecSlice tools = rec_speech(fields)[FIELD_TOOLS]
    cdef RecSlice results = rec_speech(fields)[FIELD_RESULTS]
    cdef RecToolBlock block
    if rec_value_is(&fields.top[FIELD_TYPE], b"tool_use", 8):
        rec_walk_tool_block(fields.start, fields.end, &block)
        if scan_put_use(columns, fields, &block, place, scratch) < 0:
            return -1
    while tools.start != NULL and rec_next_tool_block(&tools, &block):
        if rec_value_is(&block.type, b"tool_use", 8) and scan_put_use(columns, fields, &block, place, scratch) < 0:
            return -1
    while rec_next_result(fields, &results, &block):
        if scan_put_result(columns, fields, &block, place, scratch) < 0:
            return -1
    return 0


# ---- sessions ------------------------------------------------------------------

cdef int scan_put_tool_ids(ScanColumns* columns, RecFields* fields, ScanText* scratch) noexcept nogil:
    """Put the ids of a record's tool uses, and how many have none. Returns 0, or -1: no memory."""
    cdef ArrowColumn* column = &columns.items[SCAN_TOOL_IDS]
    cdef RecSlice tools = rec_speech(fields)[FIELD_TOOLS]
    cdef RecToolBlock block
    cdef int64_t unnamed = 0
    cdef bint is_flat = rec_value_is(&fields.top[FIELD_TYPE], b"tool_use", 8)
    if not columns.wanted[SCAN_TOOL_IDS] and not columns.wanted[SCAN_UNNAMED_USES]:
        return 0
    if is_flat:
        rec_walk_tool_block(fields.start, fields.end, &block)
    while is_flat or (tools.start != NULL and rec_next_tool_block(&tools, &block)):
        is_flat = False
        if not rec_value_is(&block.type, b"tool_use", 8):
            continue
        if not scan_is_name(&block.id):
            unnamed += 1
        elif columns.wanted[SCAN_TOOL_IDS] and scan_add_to_list(column, &block.id, scratch) < 0:
            return -1
    if columns.wanted[SCAN_TOOL_IDS] and arrow_end_names(column, True) < 0:
        return -1
    return scan_put_int(columns, SCAN_UNNAMED_USES, unnamed)


cdef int scan_put_agents(ScanColumns* columns, RecFields* fields, ScanText* scratch) noexcept nogil:
    """Put the sub-agent that a progress record is about. Returns 0, or -1: no memory."""
    cdef ArrowColumn* column = &columns.items[SCAN_PROGRESS_AGENTS]
    cdef RecSlice record = RecSlice(fields.start, fields.end)
    cdef RecSlice data, agent
    if not columns.wanted[SCAN_PROGRESS_AGENTS]:
        return 0
    if rec_value_is(&fields.top[FIELD_TYPE], b"progress", 8) and rec_find_member(&record, b"data", 4, &data):
        if rec_find_member(&data, b"agentId", 7, &agent) and scan_is_name(&agent):
            if scan_add_to_list(column, &agent, scratch) < 0:
                return -1
    return arrow_end_names(column, True)


cdef int scan_put_line(
    ScanColumns* columns, RecFields* fields, bint has_record, bint is_broken, int64_t size, ScanPlace* place,
    ScanText* scratch,
) noexcept nogil:
    """Put what a session gets from one line. Returns 0, or -1: no memory.

    fields: zeroed if there is no record.  size: of the line with its newline, in bytes.
    """
    cdef RecSlice record = RecSlice(fields.start, fields.end)
    cdef RecSlice fork
    cdef RecSlice parent = RecSlice(NULL, NULL)
    if has_record and rec_find_member(&record, b"forkedFrom", 10, &fork):
        rec_find_member(&fork, b"sessionId", 9, &parent)
    if (
        scan_put_origin(columns, fields, place, scratch) < 0
        or scan_put_name(columns, SCAN_UUID, &fields.top[FIELD_UUID], scratch) < 0
        or scan_put_name(columns, SCAN_PARENT, &parent, scratch) < 0
        or scan_put_bool(columns, SCAN_IS_PROMPT, has_record and rec_is_prompt(fields)) < 0
        or scan_put_bool(columns, SCAN_IS_SIDECHAIN, rec_value_is_true(&fields.top[FIELD_SIDECHAIN])) < 0
        or scan_put_bool(columns, SCAN_IS_ERROR, has_record and rec_is_error(fields)) < 0
        or scan_put_bool(columns, SCAN_HAS_OWN_WORDS, has_record and scan_is_own_words(fields)) < 0
        or scan_put_tool_ids(columns, fields, scratch) < 0
        or scan_put_agents(columns, fields, scratch) < 0
        or scan_put_int(columns, SCAN_LINE_BYTES, size) < 0
        or scan_put_bool(columns, SCAN_HAS_RECORD, has_record) < 0
        or scan_put_bool(columns, SCAN_IS_BROKEN, is_broken) < 0
    ):
        return -1
    return scan_end_row(columns)
