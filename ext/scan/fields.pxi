# The columns that the tables of a scan have, and a row's values on their way into them.
#
# Gives: SCAN_* (columns), ScanColumns, scan_define_columns, scan_field_named, scan_cut_batch, scan_end_row;
# scan_put_*, scan_is_name, scan_string_bytes; ScanText, scan_text_*.
# Needs: the columns (arrow/columns.pxi), ScanQueue (scan/queue.pxi), RecSlice and its kin (transcript/fields.pxi),
# json_unescape (json/grammar.pxi), utf8_bad_length (text/utf8.pxi), scan_drop_responses (scan/responses.pxi),
# array_grow (array.pxi).
#
# All tables share the columns, so that one name means one thing. A table is a list of them, which the caller gives.
# What is put into a column that is not asked for is not decoded.

cdef enum:
    SCAN_PATH
    SCAN_OFFSET
    SCAN_HOST
    SCAN_HOST_VERSION
    SCAN_SESSION_ID
    SCAN_AGENT_ID
    SCAN_PROJECT
    SCAN_GIT_BRANCH
    SCAN_UUID
    SCAN_PARENT_UUID
    SCAN_TYPE
    SCAN_SUBTYPE
    SCAN_ROLE
    SCAN_TIMESTAMP
    SCAN_MESSAGE_ID
    SCAN_REQUEST_ID
    SCAN_MODEL
    SCAN_IS_PROMPT
    SCAN_IS_SIDECHAIN
    SCAN_IS_META
    SCAN_IS_ERROR
    SCAN_TOOLS
    SCAN_TEXT_BYTES
    SCAN_TEXT
    # of a match:
    SCAN_NAME
    SCAN_START
    SCAN_END
    SCAN_LINE
    SCAN_IN_CODE
    SCAN_CONTEXT
    # of an API response:
    SCAN_INPUT_TOKENS
    SCAN_OUTPUT_TOKENS
    SCAN_CACHE_READ_TOKENS
    SCAN_CACHE_CREATION_TOKENS
    SCAN_CACHE_CREATION_1H_TOKENS  # those of them that stay for an hour: no table has this column
    # in no table, either:
    SCAN_SPEED
    SCAN_INFERENCE_GEO
    SCAN_ADVISOR                   # which response of an advisor it is, from 1; 0 for the agent's own
    SCAN_COPIES                    # the ids that a repeated response may have in other threads, one a line
    # of a tool use and its result:
    SCAN_TOOL_USE_ID
    SCAN_STARTED
    SCAN_ENDED
    SCAN_DURATION_MS
    SCAN_INPUT
    SCAN_FILE
    SCAN_COMMAND
    SCAN_IS_RESULT         # of one half, before both are joined
    # of a session:
    SCAN_PARENT
    SCAN_MODELS
    SCAN_FIRST_TIME
    SCAN_LAST_TIME
    SCAN_PROMPTS
    SCAN_MESSAGES
    SCAN_TOOL_CALLS
    SCAN_ERRORS
    SCAN_SUB_AGENTS
    SCAN_BYTES
    SCAN_BROKEN_LINES
    # of a line, before the lines of a session are added up:
    SCAN_LINE_BYTES
    SCAN_HAS_RECORD
    SCAN_IS_BROKEN
    SCAN_HAS_OWN_WORDS
    SCAN_TOOL_IDS
    SCAN_UNNAMED_USES      # tool uses without an id
    SCAN_PROGRESS_AGENTS   # of a progress record
    SCAN_QUEUED            # what happened to a text that waits for the agent: see scan_put_queued
    SCAN_FIELDS

cdef enum:
    SCAN_MAX_NAME_BYTES = 4096   # of a name or an id; a longer one counts as missing
    SCAN_BATCH_ROWS = 1 << 16
    SCAN_BATCH_LINES = 1 << 12   # of session lines, which are read in Python, so that a batch takes little memory there
    SCAN_BATCH_BYTES = 4 << 20  # of texts

cdef struct ScanColumns:
    ArrowColumn items[SCAN_FIELDS]
    bint wanted[SCAN_FIELDS]
    int order[SCAN_FIELDS]  # the numbers of the question's columns
    size_t count            # of them
    size_t rows             # that are not in a batch yet
    size_t batch_rows       # that are cut off as a batch
    bint are_responses      # of which scan_drop_responses drops some
    ScanQueue queue         # of finished batches

# UTF-8 that grows.
cdef struct ScanText:
    uint8_t* data
    size_t size
    size_t capacity


cdef void scan_define(ScanColumns* columns, int field, int kind, const char* name) noexcept nogil:
    memset(&columns.items[field], 0, sizeof(ArrowColumn))
    columns.items[field].kind = kind
    columns.items[field].name = name


cdef void scan_define_columns(ScanColumns* columns) noexcept nogil:
    """Make all columns empty, without freeing what they had: the caller has moved it. What is wanted stays."""
    columns.rows = 0
    scan_define(columns, SCAN_PATH, ARROW_NAME, b"path")
    scan_define(columns, SCAN_OFFSET, ARROW_INT, b"offset")
    scan_define(columns, SCAN_HOST, ARROW_NAME, b"host")
    scan_define(columns, SCAN_HOST_VERSION, ARROW_NAME, b"host_version")
    scan_define(columns, SCAN_SESSION_ID, ARROW_NAME, b"session_id")
    scan_define(columns, SCAN_AGENT_ID, ARROW_NAME, b"agent_id")
    scan_define(columns, SCAN_PROJECT, ARROW_NAME, b"project")
    scan_define(columns, SCAN_GIT_BRANCH, ARROW_NAME, b"git_branch")
    scan_define(columns, SCAN_UUID, ARROW_TEXT, b"uuid")
    scan_define(columns, SCAN_PARENT_UUID, ARROW_TEXT, b"parent_uuid")
    scan_define(columns, SCAN_TYPE, ARROW_NAME, b"type")
    scan_define(columns, SCAN_SUBTYPE, ARROW_NAME, b"subtype")
    scan_define(columns, SCAN_ROLE, ARROW_NAME, b"role")
    scan_define(columns, SCAN_TIMESTAMP, ARROW_TIME, b"timestamp")
    scan_define(columns, SCAN_MESSAGE_ID, ARROW_TEXT, b"message_id")
    scan_define(columns, SCAN_REQUEST_ID, ARROW_TEXT, b"request_id")
    scan_define(columns, SCAN_MODEL, ARROW_NAME, b"model")
    scan_define(columns, SCAN_IS_PROMPT, ARROW_BOOL, b"is_prompt")
    scan_define(columns, SCAN_IS_SIDECHAIN, ARROW_BOOL, b"is_sidechain")
    scan_define(columns, SCAN_IS_META, ARROW_BOOL, b"is_meta")
    scan_define(columns, SCAN_IS_ERROR, ARROW_BOOL, b"is_error")
    scan_define(columns, SCAN_TOOLS, ARROW_NAMES, b"tools")
    scan_define(columns, SCAN_TEXT_BYTES, ARROW_INT, b"text_bytes")
    scan_define(columns, SCAN_TEXT, ARROW_TEXT, b"text")
    scan_define(columns, SCAN_NAME, ARROW_NAME, b"name")
    scan_define(columns, SCAN_START, ARROW_INT, b"start")
    scan_define(columns, SCAN_END, ARROW_INT, b"end")
    scan_define(columns, SCAN_LINE, ARROW_INT, b"line")
    scan_define(columns, SCAN_IN_CODE, ARROW_BOOL, b"in_code")
    scan_define(columns, SCAN_CONTEXT, ARROW_TEXT, b"context")
    scan_define(columns, SCAN_INPUT_TOKENS, ARROW_INT, b"input_tokens")
    scan_define(columns, SCAN_OUTPUT_TOKENS, ARROW_INT, b"output_tokens")
    scan_define(columns, SCAN_CACHE_READ_TOKENS, ARROW_INT, b"cache_read_tokens")
    scan_define(columns, SCAN_CACHE_CREATION_TOKENS, ARROW_INT, b"cache_creation_tokens")
    scan_define(columns, SCAN_CACHE_CREATION_1H_TOKENS, ARROW_INT, b"cache_creation_1h_tokens")
    scan_define(columns, SCAN_SPEED, ARROW_NAME, b"speed")
    scan_define(columns, SCAN_INFERENCE_GEO, ARROW_NAME, b"inference_geo")
    scan_define(columns, SCAN_ADVISOR, ARROW_INT, b"advisor")
    scan_define(columns, SCAN_COPIES, ARROW_TEXT, b"copies")
    scan_define(columns, SCAN_TOOL_USE_ID, ARROW_TEXT, b"tool_use_id")
    scan_define(columns, SCAN_STARTED, ARROW_TIME, b"started")
    scan_define(columns, SCAN_ENDED, ARROW_TIME, b"ended")
    scan_define(columns, SCAN_DURATION_MS, ARROW_INT, b"duration_ms")
    scan_define(columns, SCAN_INPUT, ARROW_TEXT, b"input")
    scan_define(columns, SCAN_FILE, ARROW_TEXT, b"file")
    scan_define(columns, SCAN_COMMAND, ARROW_TEXT, b"command")
    scan_define(columns, SCAN_IS_RESULT, ARROW_BOOL, b"is_result")
    scan_define(columns, SCAN_PARENT, ARROW_TEXT, b"parent")
    scan_define(columns, SCAN_MODELS, ARROW_NAMES, b"models")
    scan_define(columns, SCAN_FIRST_TIME, ARROW_TIME, b"start")
    scan_define(columns, SCAN_LAST_TIME, ARROW_TIME, b"end")
    scan_define(columns, SCAN_PROMPTS, ARROW_INT, b"prompts")
    scan_define(columns, SCAN_MESSAGES, ARROW_INT, b"messages")
    scan_define(columns, SCAN_TOOL_CALLS, ARROW_INT, b"tool_calls")
    scan_define(columns, SCAN_ERRORS, ARROW_INT, b"errors")
    scan_define(columns, SCAN_SUB_AGENTS, ARROW_INT, b"sub_agents")
    scan_define(columns, SCAN_BYTES, ARROW_INT, b"bytes")
    scan_define(columns, SCAN_BROKEN_LINES, ARROW_INT, b"broken_lines")
    scan_define(columns, SCAN_LINE_BYTES, ARROW_INT, b"line_bytes")
    scan_define(columns, SCAN_HAS_RECORD, ARROW_BOOL, b"has_record")
    scan_define(columns, SCAN_IS_BROKEN, ARROW_BOOL, b"is_broken")
    scan_define(columns, SCAN_HAS_OWN_WORDS, ARROW_BOOL, b"has_own_words")
    scan_define(columns, SCAN_TOOL_IDS, ARROW_NAMES, b"tool_ids")
    scan_define(columns, SCAN_UNNAMED_USES, ARROW_INT, b"unnamed_uses")
    scan_define(columns, SCAN_PROGRESS_AGENTS, ARROW_NAMES, b"progress_agents")
    scan_define(columns, SCAN_QUEUED, ARROW_TEXT, b"queued")


cdef int scan_field_named(str name, bint of_sessions) except -1:
    """Return the number of a column. Raises ValueError.

    of_sessions: whose `start` and `end` are times; those of a match are characters.
    """
    cdef ScanColumns columns
    cdef int field
    scan_define_columns(&columns)
    for field in reversed(range(SCAN_FIELDS)) if of_sessions else range(SCAN_FIELDS):
        if columns.items[field].name.decode() == name:
            return field
    raise ValueError(f"no table has a column named {name!r}")


cdef int scan_cut_batch(ScanColumns* columns, ScanBatch* batch) noexcept nogil:
    """Make a batch of the rows so far. Returns 0, or -1: no memory."""
    cdef size_t i
    if columns.are_responses and scan_drop_responses(columns) < 0:
        return -1
    batch.columns = <ArrowColumn*>PyMem_RawMalloc(max(<size_t>1, columns.count) * sizeof(ArrowColumn))
    if batch.columns == NULL:
        return -1
    for i in range(columns.count):
        batch.columns[i] = columns.items[columns.order[i]]
    batch.column_count = columns.count
    batch.rows = columns.rows
    scan_define_columns(columns)
    return 0


cdef int scan_hand_over(ScanColumns* columns) noexcept nogil:
    """Put the rows so far into the queue, as a batch. Returns 0, or -1: no memory."""
    cdef ScanBatch batch
    return -1 if scan_cut_batch(columns, &batch) < 0 else scan_queue_put(&columns.queue, &batch)


cdef inline int scan_end_row(ScanColumns* columns) noexcept nogil:
    """Count a row that was put into the columns, and cut if there are enough. Returns 0, or -1: no memory.

    A line has at most 16 MiB, and each of its bytes gives at most three of a text. So the texts of a column, which
    take 32-bit offsets, stay far below 2 GiB.
    """
    cdef size_t size = 0
    cdef size_t i
    columns.rows += 1
    for i in range(columns.count):
        size += columns.items[columns.order[i]].texts.size
    return scan_hand_over(columns) if columns.rows == columns.batch_rows or size >= SCAN_BATCH_BYTES else 0


# ---- texts ---------------------------------------------------------------------

cdef inline int scan_text_room(ScanText* text, size_t more) noexcept nogil:
    """Make room behind the text. Returns 0, or -1: no memory."""
    if text.size + more <= text.capacity:
        return 0
    return array_grow(<void**>&text.data, &text.capacity, text.size + more, 1)


cdef void scan_text_shrink(ScanText* text) noexcept nogil:
    """Make a text empty, with hardly any memory. It keeps an address."""
    cdef void* shrunk = PyMem_RawRealloc(text.data, 1)
    text.size = 0
    if shrunk != NULL:
        text.data = <uint8_t*>shrunk
        text.capacity = 1


cdef void scan_mend_utf8(ScanText* text, size_t start) noexcept nogil:
    """Replace the lone surrogates in text[start:], which have three bytes each, by U+FFFD, which has three as well."""
    cdef uint8_t* p = text.data + start
    cdef uint8_t* end = text.data + text.size
    while True:
        p = <uint8_t*>memchr(p, 0xED, end - p)
        if p == NULL:
            return
        if p[1] >= 0xA0:
            bytes_write(p, LIT(b"\xEF\xBF\xBD"))
        p += 3


cdef int scan_text_add(ScanText* text, Cursor start, Cursor end) noexcept nogil:
    """Add a JSON string's content; start, end: inside its quotation marks. Returns 0, or -1: no memory.

    What is not UTF-8, and lone surrogates, become U+FFFD.
    """
    cdef bint lone = False
    cdef size_t first = text.size
    cdef Cursor stop
    if scan_text_room(text, end - start) < 0:
        return -1
    stop = utf8_stop(start, end)
    while stop != end:
        # The escapes before and behind what is not UTF-8 are whole, as each begins with a backslash.
        text.size += json_unescape(start, stop, text.data + text.size, &lone)
        start = stop + utf8_bad_length(stop, end)
        if scan_text_room(text, 3 + (end - start)) < 0:
            return -1
        bytes_write(text.data + text.size, LIT(b"\xEF\xBF\xBD"))
        text.size += 3
        stop = utf8_stop(start, end)
    text.size += json_unescape(start, end, text.data + text.size, &lone)
    if lone:
        scan_mend_utf8(text, first)
    return 0


cdef int64_t scan_string_bytes(Cursor start, Cursor end) noexcept nogil:
    """Return how many bytes scan_text_add adds for a JSON string of valid UTF-8."""
    cdef unsigned char encoded[4]
    cdef int64_t size = 0
    cdef uint32_t code_point
    cdef Cursor stop
    while True:
        stop = json_string_stop(start, end)
        size += stop - start
        if stop == end:
            return size
        start = json_read_character(stop, end, &code_point)
        size += utf8_put(encoded, code_point) - encoded


# ---- values --------------------------------------------------------------------

cdef inline int scan_put_null(ScanColumns* columns, int field) noexcept nogil:
    return arrow_add_null(&columns.items[field]) if columns.wanted[field] else 0


cdef inline int scan_put_int(ScanColumns* columns, int field, int64_t value) noexcept nogil:
    return arrow_add_int(&columns.items[field], value) if columns.wanted[field] else 0


cdef inline int scan_put_bool(ScanColumns* columns, int field, bint value) noexcept nogil:
    return arrow_add_bool(&columns.items[field], value) if columns.wanted[field] else 0


cdef inline int scan_put_text(ScanColumns* columns, int field, Cursor start, size_t size) noexcept nogil:
    """Put valid UTF-8."""
    return arrow_add_text(&columns.items[field], start, size) if columns.wanted[field] else 0


cdef inline bint scan_is_name(RecSlice* value) noexcept nogil:
    """Return whether a JSON value is a string of at most SCAN_MAX_NAME_BYTES, as a name or an id must be.

    A row for each match of a line has the names of its record: longer ones would be copied too often.
    """
    cdef int64_t size
    if not rec_value_is_string(value):
        return False
    size = value.end - value.start - 2
    if SCAN_MAX_NAME_BYTES < size <= 6 * SCAN_MAX_NAME_BYTES:  # no escape is longer than six bytes
        size = scan_string_bytes(value.start + 1, value.end - 1)
    return size <= SCAN_MAX_NAME_BYTES


cdef int scan_put_name(ScanColumns* columns, int field, RecSlice* value, ScanText* scratch) noexcept nogil:
    """Put a JSON value if it is a name, otherwise null. Returns 0, or -1: no memory."""
    if columns.wanted[field] and not scan_is_name(value):
        return arrow_add_null(&columns.items[field])
    return scan_put_string(columns, field, value, scratch)


cdef int scan_put_string(ScanColumns* columns, int field, RecSlice* value, ScanText* scratch) noexcept nogil:
    """Put a JSON value if it is a string, otherwise null. Returns 0, or -1: no memory."""
    if not columns.wanted[field]:
        return 0
    if not rec_value_is_string(value):
        return arrow_add_null(&columns.items[field])
    if json_plain_stop(value.start + 1, value.end - 1) == value.end - 1:
        return arrow_add_text(&columns.items[field], value.start + 1, value.end - value.start - 2)
    scratch.size = 0
    if scan_text_add(scratch, value.start + 1, value.end - 1) < 0:
        return -1
    return arrow_add_text(&columns.items[field], scratch.data, scratch.size)
