# A record in a scan: its own text, and its rows.
#
# Gives: ScanPlace; scan_is_own_words, scan_own_text; scan_put_origin, scan_put_time, scan_put_record,
# scan_put_usage, scan_put_line.
# Needs: the columns (scan/fields.pxi, arrow/columns.pxi), rec_walk and RecFields (transcript/fields.pxi), rec_is_*,
# rec_role and rec_value_is_* (transcript/records.pxi), the properties (transcript/properties.pxi), RecToolBlock
# (transcript/tool_blocks.pxi).

# The place of a record, and the file's values for missing members.
cdef struct ScanPlace:
    Cursor path            # UTF-8
    size_t path_bytes
    Cursor session_id      # of the file, if the record names none
    size_t session_id_bytes
    Cursor host
    size_t host_bytes
    int64_t offset


cdef int scan_own_text(RecFields* fields, ScanText* text) noexcept nogil:
    """Set `text` to what `Record.text` returns."""
    cdef RecSlice* values = rec_content(fields)
    cdef RecSlice texts = values[FIELD_TEXTS]
    cdef RecSlice part
    text.size = 0
    if rec_value_is_string(&values[FIELD_CONTENT]):
        return scan_text_add(text, values[FIELD_CONTENT].start + 1, values[FIELD_CONTENT].end - 1)
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
    """Return the length of the text of scan_own_text."""
    cdef RecSlice* values = rec_content(fields)
    cdef RecSlice texts = values[FIELD_TEXTS]
    cdef RecSlice part
    cdef int64_t size = 0
    if rec_value_is_string(&values[FIELD_CONTENT]):
        return scan_string_bytes(values[FIELD_CONTENT].start + 1, values[FIELD_CONTENT].end - 1)
    while rec_next_text(&texts, &part):
        size += (size != 0) + scan_string_bytes(part.start, part.end)
    return size


cdef int scan_add_to_list(ArrowColumn* column, RecSlice* value, ScanText* scratch) noexcept nogil:
    """Add a JSON string to the current list of a column."""
    scratch.size = 0
    if scan_text_add(scratch, value.start + 1, value.end - 1) < 0:
        return -1
    return arrow_texts_add(&column.texts, scratch.data, scratch.size)


cdef int scan_put_tools(ScanColumns* columns, RecFields* fields, ScanText* scratch) noexcept nogil:
    """Put the names of the tools that a record uses."""
    cdef ArrowColumn* column = &columns.items[SCAN_TOOLS]
    cdef RecSlice tools = rec_speech(fields)[FIELD_TOOLS]
    cdef RecSlice block[REC_BLOCK_FIELDS]
    cdef RecSlice* name
    cdef bint is_flat
    if not columns.wanted[SCAN_TOOLS]:
        return 0
    is_flat = rec_value_is(&fields.top[FIELD_TYPE], LIT(b"tool_use"))
    while is_flat or (tools.start != NULL and rec_next_element(&tools, block, False)):
        if not is_flat and not rec_value_is(&block[FIELD_TYPE], LIT(b"tool_use")):
            continue
        name = &fields.top[FIELD_NAME] if is_flat else &block[FIELD_NAME]
        is_flat = False
        if scan_is_name(name) and scan_add_to_list(column, name, scratch) < 0:
            return -1
    return arrow_end_names(column, True)


cdef int scan_put_or(
    ScanColumns* columns, int field, RecSlice* value, Cursor other, size_t other_bytes, ScanText* scratch
) noexcept nogil:
    """Put a value if it is a name and not empty, otherwise the text `other`."""
    if scan_is_name(value) and value.end - value.start > 2:
        return scan_put_string(columns, field, value, scratch)
    return scan_put_text(columns, field, other, other_bytes)


cdef int scan_put_time(ScanColumns* columns, int field, RecSlice* value) noexcept nogil:
    """Put a time, or null."""
    cdef int64_t microseconds
    if not columns.wanted[field]:
        return 0
    if rec_read_time(value, &microseconds):
        return arrow_add_int(&columns.items[field], microseconds)
    return arrow_add_null(&columns.items[field])


cdef int scan_put_origin(ScanColumns* columns, RecFields* fields, ScanPlace* place, ScanText* scratch) noexcept nogil:
    """Put the values of all tables' rows: the record's place, session and agent."""
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
    """Put the row of a record."""
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

cdef int scan_put_count(ScanColumns* columns, int field, RecSlice* usage, Literal name) noexcept nogil:
    """Put a member of an object if it is a whole number from 0 to 2**63 - 1, otherwise null."""
    cdef int64_t count
    if not columns.wanted[field]:
        return 0
    if rec_read_count(usage, name, &count):
        return arrow_add_int(&columns.items[field], count)
    return arrow_add_null(&columns.items[field])


cdef bint scan_is_own_words(RecFields* fields) noexcept nogil:
    """Return whether the record has words of the agent or a person, not of the host or its app.

    For the memory machine, the app's texts are messages.
    """
    return rec_is_own_words(fields) and not rec_is_app_written(fields)


cdef inline bint scan_is_translated(ScanPlace* place) noexcept nogil:
    """Return whether the file is another host's than Claude Code's: the caller has translated its records."""
    return not bytes_equal(place.host, place.host_bytes, LIT(b"claude-code"))


cdef bint scan_find_response(RecFields* fields, RecFields* response, bint is_translated) noexcept nogil:
    """Return whether a record has an API response: its own, or a sub-agent's in a progress record.

    response: set to the record with the response.
    is_translated: whether it is another host's; then it may have `partUsage`, for tokens that a later sum may include.
    """
    cdef RecSlice record = RecSlice(fields.start, fields.end)
    cdef RecSlice data, nested
    response[0] = fields[0]
    if is_translated and response.message[FIELD_USAGE].start == NULL:
        rec_find_member(&record, LIT(b"partUsage"), &response.message[FIELD_USAGE])
    if rec_value_is(&fields.top[FIELD_TYPE], LIT(b"progress")):
        if not rec_find_member(&record, LIT(b"data"), &data) or not rec_find_member(&data, LIT(b"message"), &nested):
            return False
        if nested.start[0] != c"{":
            return False
        if rec_walk(nested.start, nested.end, response) == NULL:
            return False
    return (
        rec_is_assistant(response)
        and response.message[FIELD_USAGE].start != NULL
        and response.message[FIELD_USAGE].start[0] == c"{"
        and not rec_value_is(&response.message[FIELD_MODEL], LIT(b"<synthetic>"))
        and not rec_value_is_true(&response.top[FIELD_API_ERROR])
    )


# The place of a response's tokens, and the values of its row from its record.
cdef struct ScanUsage:
    RecFields response    # the record with the response; it may be nested in another one
    RecSlice time
    RecSlice agent
    RecSlice own_id       # the response's id if it has no other id
    RecSlice copies       # see SCAN_COPIES
    RecSlice model
    RecSlice tokens       # an object
    int64_t advisor       # the number of the advisor's response in the record from 1, 0 for the agent's


cdef int scan_put_response(
    ScanColumns* columns, RecFields* fields, ScanUsage* usage, ScanPlace* place, ScanText* scratch
) noexcept nogil:
    """Put the row of one response."""
    cdef RecSlice* tokens = &usage.tokens
    cdef RecSlice written = RecSlice(NULL, NULL)
    cdef RecSlice speed = RecSlice(NULL, NULL)
    cdef RecSlice region = RecSlice(NULL, NULL)
    if columns.wanted[SCAN_CACHE_CREATION_1H_TOKENS]:
        rec_find_member(tokens, LIT(b"cache_creation"), &written)
    if columns.wanted[SCAN_SPEED]:
        rec_find_member(tokens, LIT(b"speed"), &speed)
    if columns.wanted[SCAN_INFERENCE_GEO]:
        rec_find_member(&usage.response.message[FIELD_USAGE], LIT(b"inference_geo"), &region)
    if (
        scan_put_text(columns, SCAN_PATH, place.path, place.path_bytes) < 0
        or scan_put_int(columns, SCAN_OFFSET, place.offset) < 0
        or scan_put_text(columns, SCAN_HOST, place.host, place.host_bytes) < 0
        or scan_put_or(
            columns, SCAN_SESSION_ID, &fields.top[FIELD_SESSION_ID], place.session_id, place.session_id_bytes, scratch
        ) < 0
        or scan_put_name(columns, SCAN_AGENT_ID, &usage.agent, scratch) < 0
        or scan_put_name(columns, SCAN_PROJECT, &fields.top[FIELD_CWD], scratch) < 0
        or scan_put_name(columns, SCAN_UUID, &usage.own_id, scratch) < 0
        or scan_put_time(columns, SCAN_TIMESTAMP, &usage.time) < 0
        or scan_put_name(columns, SCAN_MESSAGE_ID, &usage.response.message[FIELD_ID], scratch) < 0
        or scan_put_name(columns, SCAN_REQUEST_ID, &usage.response.top[FIELD_REQUEST_ID], scratch) < 0
        or scan_put_name(columns, SCAN_MODEL, &usage.model, scratch) < 0
        or scan_put_count(columns, SCAN_INPUT_TOKENS, tokens, LIT(b"input_tokens")) < 0
        or scan_put_count(columns, SCAN_OUTPUT_TOKENS, tokens, LIT(b"output_tokens")) < 0
        or scan_put_count(columns, SCAN_CACHE_READ_TOKENS, tokens, LIT(b"cache_read_input_tokens")) < 0
        or scan_put_count(columns, SCAN_CACHE_CREATION_TOKENS, tokens, LIT(b"cache_creation_input_tokens")) < 0
        or scan_put_count(columns, SCAN_CACHE_CREATION_1H_TOKENS, &written, LIT(b"ephemeral_1h_input_tokens")) < 0
        or scan_put_name(columns, SCAN_SPEED, &speed, scratch) < 0
        or scan_put_name(columns, SCAN_INFERENCE_GEO, &region, scratch) < 0
        or scan_put_int(columns, SCAN_ADVISOR, usage.advisor) < 0
        or scan_put_string(columns, SCAN_COPIES, &usage.copies, scratch) < 0
    ):
        return -1
    return scan_end_row(columns)


cdef int scan_put_usage(ScanColumns* columns, RecFields* fields, ScanPlace* place, ScanText* scratch) noexcept nogil:
    """Put the rows of a record with an API response: its own, and an advisor's.

    An advisor is another model that the API asks meanwhile. Its tokens are only in the iterations of the usage, not in
    the sums. Returns 1 if it has one, otherwise 0.
    """
    cdef ScanUsage usage
    cdef RecSlice record = RecSlice(fields.start, fields.end)
    cdef RecSlice data, nested_agent, iterations, kind
    cdef RecSlice part
    cdef int64_t at
    if not scan_find_response(fields, &usage.response, scan_is_translated(place)):
        return 0
    usage.agent = fields.top[FIELD_AGENT_ID]
    usage.time = usage.response.top[FIELD_TIMESTAMP]
    usage.own_id = usage.response.top[FIELD_UUID]
    usage.copies = RecSlice(NULL, NULL)
    usage.model = usage.response.message[FIELD_MODEL]
    usage.tokens = usage.response.message[FIELD_USAGE]
    usage.advisor = 0
    if scan_is_translated(place) and rec_find_member(&record, LIT(b"usageCopies"), &usage.copies):
        rec_find_member(&record, LIT(b"usageId"), &usage.own_id)
    if usage.response.start != fields.start:
        if rec_find_member(&record, LIT(b"data"), &data) and rec_find_member(&data, LIT(b"agentId"), &nested_agent):
            if scan_is_name(&nested_agent) and nested_agent.end - nested_agent.start > 2:
                usage.agent = nested_agent
        if not rec_read_time(&usage.time, &at):
            usage.time = fields.top[FIELD_TIMESTAMP]
    if scan_put_response(columns, fields, &usage, place, scratch) < 0:
        return -1
    if not columns.wanted[SCAN_ADVISOR] or not rec_find_member(&usage.tokens, LIT(b"iterations"), &iterations):
        return 1
    while rec_next_object(&iterations, &part):
        if not rec_find_member(&part, LIT(b"type"), &kind) or not rec_value_is(&kind, LIT(b"advisor_message")):
            continue
        usage.advisor += 1
        usage.tokens = part
        usage.model = RecSlice(NULL, NULL)
        rec_find_member(&part, LIT(b"model"), &usage.model)
        if scan_put_response(columns, fields, &usage, place, scratch) < 0:
            return -1
    return 1


# ---- sessions ------------------------------------------------------------------

cdef int scan_put_tool_ids(ScanColumns* columns, RecFields* fields, ScanText* scratch) noexcept nogil:
    """Put the ids of a record's tool uses, and the number of uses without an id."""
    cdef ArrowColumn* column = &columns.items[SCAN_TOOL_IDS]
    cdef RecSlice tools = rec_speech(fields)[FIELD_TOOLS]
    cdef RecToolBlock block
    cdef int64_t unnamed = 0
    cdef bint is_flat = rec_value_is(&fields.top[FIELD_TYPE], LIT(b"tool_use"))
    if not columns.wanted[SCAN_TOOL_IDS] and not columns.wanted[SCAN_UNNAMED_USES]:
        return 0
    if is_flat:
        rec_walk_tool_block(fields.start, fields.end, &block)
    while is_flat or (tools.start != NULL and rec_next_tool_block(&tools, &block)):
        is_flat = False
        if not rec_value_is(&block.type, LIT(b"tool_use")):
            continue
        if not scan_is_name(&block.id):
            unnamed += 1
        elif columns.wanted[SCAN_TOOL_IDS] and scan_add_to_list(column, &block.id, scratch) < 0:
            return -1
    if columns.wanted[SCAN_TOOL_IDS] and arrow_end_names(column, True) < 0:
        return -1
    return scan_put_int(columns, SCAN_UNNAMED_USES, unnamed)


cdef int scan_put_agents(ScanColumns* columns, RecFields* fields, ScanText* scratch) noexcept nogil:
    """Put the sub-agent that a progress record is about."""
    cdef ArrowColumn* column = &columns.items[SCAN_PROGRESS_AGENTS]
    cdef RecSlice record = RecSlice(fields.start, fields.end)
    cdef RecSlice data, agent
    if not columns.wanted[SCAN_PROGRESS_AGENTS]:
        return 0
    if rec_value_is(&fields.top[FIELD_TYPE], LIT(b"progress")) and rec_find_member(&record, LIT(b"data"), &data):
        if rec_find_member(&data, LIT(b"agentId"), &agent) and scan_is_name(&agent):
            if scan_add_to_list(column, &agent, scratch) < 0:
                return -1
    return arrow_end_names(column, True)


cdef const char* scan_queue_step(RecFields* fields) noexcept nogil:
    """Return the effect of a record on the queue of texts that wait while the agent works, or NULL.

    {"type": "queue-operation", "operation": "enqueue", "content": TEXT}; a `dequeue`, `remove` or `popAll` takes a text
    from the queue, with or without `content` (Claude Code 2.0.76 and later). An enqueued text is a person's ("typed"),
    a slash command or a message without text ("command"), or the host's ("notice"). An attachment with a prompt is
    "given".
    """
    cdef const char* slash = b"/"
    cdef RecSlice record = RecSlice(fields.start, fields.end)
    cdef RecSlice* content = &fields.top[FIELD_CONTENT]
    cdef RecSlice step, text
    if fields.is_queued_prompt:
        return b"given"
    if not rec_value_is(&fields.top[FIELD_TYPE], LIT(b"queue-operation")):
        return NULL
    if not rec_find_member(&record, LIT(b"operation"), &step):
        return NULL
    if rec_value_is(&step, LIT(b"dequeue")):
        return b"dequeue"
    if rec_value_is(&step, LIT(b"remove")):
        return b"remove"
    if rec_value_is(&step, LIT(b"popAll")):
        return b"popAll"
    if not rec_value_is(&step, LIT(b"enqueue")):
        return NULL
    if not rec_value_is_string(content) or rec_value_is_white_space(content):
        return b"command"
    text = RecSlice(content.start + 1, content.end - 1)
    if rec_begins_with(&text, rec_host_written, REC_HOST_WRITTEN_COUNT):
        return b"notice"
    if rec_begins_with(&text, rec_app_written, REC_APP_WRITTEN_COUNT):
        return b"notice"
    return b"command" if rec_begins_with(&text, &slash, 1) else b"typed"


cdef int scan_put_queued(ScanColumns* columns, RecFields* fields, ScanText* scratch) noexcept nogil:
    """Put a record's text, a newline, and the result of scan_queue_step, or null."""
    cdef const char* step
    cdef size_t size
    if not columns.wanted[SCAN_QUEUED]:
        return 0
    step = scan_queue_step(fields)
    if step == NULL:
        return arrow_add_null(&columns.items[SCAN_QUEUED])
    size = strlen(step)
    if scan_own_text(fields, scratch) < 0 or scan_text_room(scratch, 1 + size) < 0:
        return -1
    scratch.data[scratch.size] = c"\n"
    memcpy(scratch.data + scratch.size + 1, step, size)
    return arrow_add_text(&columns.items[SCAN_QUEUED], scratch.data, scratch.size + 1 + size)


cdef int scan_put_line(
    ScanColumns* columns, RecFields* fields, bint has_record, bint is_broken, int64_t size, ScanPlace* place,
    ScanText* scratch,
) noexcept nogil:
    """Put a line's contribution to its session.

    fields: zeroed if there is no record.  size: of the line with its newline, in bytes.
    """
    cdef RecSlice record = RecSlice(fields.start, fields.end)
    cdef RecSlice fork
    cdef RecSlice parent = RecSlice(NULL, NULL)
    if has_record and rec_find_member(&record, LIT(b"forkedFrom"), &fork):
        rec_find_member(&fork, LIT(b"sessionId"), &parent)
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
        or scan_put_queued(columns, fields, scratch) < 0
        or scan_put_int(columns, SCAN_LINE_BYTES, size) < 0
        or scan_put_bool(columns, SCAN_HAS_RECORD, has_record) < 0
        or scan_put_bool(columns, SCAN_IS_BROKEN, is_broken) < 0
    ):
        return -1
    return scan_end_row(columns)
