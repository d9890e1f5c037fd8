# The rows of one record in the table of tools: a use or a result each. They are joined later.
#
# Gives: scan_put_tool_halves.
# Needs: the columns (scan/fields.pxi, arrow/columns.pxi), ScanPlace, scan_put_origin and scan_put_time
# (scan/records.pxi), the fields (transcript/fields.pxi), the blocks of tools (transcript/tool_blocks.pxi), rec_speech
# and rec_value_is_true (transcript/records.pxi), the properties (transcript/properties.pxi), the grammar
# (json/grammar.pxi), utf8_bad_length (text/utf8.pxi), scan/tools.h.

cdef bint scan_tool_is(RecSlice* name, const char* const* names) noexcept nogil:
    """Return whether a tool has one of the names. names: ends with NULL."""
    cdef int i = 0
    while names[i] != NULL:
        if rec_value_is(name, LIT(names[i])):
            return True
        i += 1
    return False


cdef void scan_find_argument(
    RecToolBlock* use, const char* const* names, const char* member, RecSlice* found
) noexcept nogil:
    """Find a member of the input of a tool, if the tool has one of the names and nothing was found yet."""
    if found.start == NULL and scan_tool_is(&use.name, names):
        rec_find_member(&use.input, LIT(member), found)


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
    """Put the file that a tool edits, null if it edits none."""
    cdef RecSlice file = RecSlice(NULL, NULL)
    cdef RecSlice patch
    if not columns.wanted[SCAN_FILE]:
        return 0
    if rec_value_is(&use.name, LIT(b"apply_patch")):
        patch = use.input
        if not rec_value_is_string(&patch):
            rec_find_member(&use.input, LIT(b"input"), &patch)
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
    """Put a string, or the strings of an array joined by spaces, otherwise null."""
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
    """Put a JSON value as it is written, with U+FFFD for invalid UTF-8.

    value: without a start if there is none; then nothing is put.
    """
    cdef Cursor start = value.start
    cdef Cursor stop
    if start == NULL or not columns.wanted[field]:
        return 0
    stop = utf8_stop(start, value.end)
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
        bytes_write(scratch.data + scratch.size, LIT(b"\xEF\xBF\xBD"))
        scratch.size += 3
        start = stop + utf8_bad_length(stop, value.end)
        stop = utf8_stop(start, value.end)


cdef int scan_end_half(ScanColumns* columns) noexcept nogil:
    """Count a half in the columns. The columns of the other half are null."""
    cdef size_t i
    for i in range(columns.count):
        if columns.items[columns.order[i]].length == columns.rows:
            if arrow_add_null(&columns.items[columns.order[i]]) < 0:
                return -1
    return scan_end_row(columns)


cdef int scan_put_use(
    ScanColumns* columns, RecFields* fields, RecToolBlock* use, ScanPlace* place, ScanText* scratch
) noexcept nogil:
    """Put the use's half of a tool's row."""
    cdef RecSlice command = RecSlice(NULL, NULL)
    scan_find_argument(use, scan_command_tools, b"command", &command)
    scan_find_argument(use, scan_cmd_tools, b"cmd", &command)
    if (
        scan_put_origin(columns, fields, place, scratch) < 0
        or scan_put_name(columns, SCAN_TOOL_USE_ID, &use.id, scratch) < 0
        or scan_put_name(columns, SCAN_NAME, &use.name, scratch) < 0
        or scan_put_time(columns, SCAN_STARTED, &fields.top[FIELD_TIMESTAMP]) < 0
        or scan_put_file(columns, use, scratch) < 0
        or scan_put_words(columns, SCAN_COMMAND, &command, scratch) < 0
        or scan_put_json(columns, SCAN_INPUT, &use.input, scratch) < 0
        or scan_put_bool(columns, SCAN_IS_RESULT, False) < 0
    ):
        return -1
    return scan_end_half(columns)


cdef int scan_put_result(
    ScanColumns* columns, RecFields* fields, RecToolBlock* result, ScanPlace* place, ScanText* scratch
) noexcept nogil:
    """Put the result's half of a tool's row."""
    cdef RecSlice* ended = &fields.top[FIELD_TIMESTAMP]
    cdef int64_t at
    if rec_read_time(&result.timestamp, &at):
        ended = &result.timestamp
    if (
        scan_put_origin(columns, fields, place, scratch) < 0
        or scan_put_name(columns, SCAN_TOOL_USE_ID, &result.use_id, scratch) < 0
        or scan_put_time(columns, SCAN_ENDED, ended) < 0
        or scan_put_bool(columns, SCAN_IS_ERROR, rec_value_is_true(&result.is_error)) < 0
        or scan_put_bool(columns, SCAN_IS_RESULT, True) < 0
    ):
        return -1
    return scan_end_half(columns)


cdef int scan_put_tool_halves(
    ScanColumns* columns, RecFields* fields, ScanPlace* place, ScanText* scratch
) noexcept nogil:
    """Put a row for each use and each result of a tool in a record."""
    cdef RecSlice tools = rec_speech(fields)[FIELD_TOOLS]
    cdef RecSlice results = rec_speech(fields)[FIELD_RESULTS]
    cdef RecToolBlock block
    if rec_value_is(&fields.top[FIELD_TYPE], LIT(b"tool_use")):
        rec_walk_tool_block(fields.start, fields.end, &block)
        if scan_put_use(columns, fields, &block, place, scratch) < 0:
            return -1
    while tools.start != NULL and rec_next_tool_block(&tools, &block):
        if rec_value_is(&block.type, LIT(b"tool_use")) and scan_put_use(columns, fields, &block, place, scratch) < 0:
            return -1
    while rec_next_result(fields, &results, &block):
        if scan_put_result(columns, fields, &block, place, scratch) < 0:
            return -1
    return 0
