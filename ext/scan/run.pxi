# A scan of a range of bytes: from blocks of a file to rows, without the interpreter.
#
# Gives: ScanQuestion, ScanSearch, ScanRun; scan_read, scan_feed_blocks, scan_one_line, scan_end_of_file;
# scan_free_working_memory; SCAN_UNREADABLE, SCAN_NO_MEMORY.
# Needs: the rows (scan/fields.pxi, scan/records.pxi, arrow/columns.pxi), RecFields (transcript/fields.pxi),
# rec_value_is_true (transcript/records.pxi), rec_find (transcript/bad_lines.pxi), json_skip_space (json/grammar.pxi),
# match_find (patterns/automaton.pxi), match_hits_sort (patterns/matches.pxi), md_build_map (markdown/code_map.pxi),
# utf8_after_bom (text/utf8.pxi).
#
# A line belongs to the range in which its first byte is. A range that does not begin the file begins after the first
# newline at or behind the byte before it; its last line is read past its end. So any cuts give the same rows.
#
# All of it runs without the interpreter's lock, and a ScanRun in one thread at a time. A ScanQuestion does not change,
# so threads can share it.
#
# With a gate, a line is parsed only if its bytes contain one of the gate's literals: parts of the patterns that JSON
# writes as they are, and the escapes that could hide such parts.

cdef enum:
    SCAN_BLOCK_BYTES = 1 << 18      # stays in a core's cache
    SCAN_MAX_LINE_BYTES = 16 << 20  # without its newline; a longer line is skipped and counted
    SCAN_MAX_UNKNOWN_TYPES = 64     # that are kept, each with the version of its host
    SCAN_MAX_TYPE_BYTES = 128       # of an unknown type's name, and of a version

cdef enum:
    SCAN_NO_MEMORY = -1
    SCAN_UNREADABLE = -2            # see errno

cdef enum:
    SCAN_RECORDS
    SCAN_MATCHES
    SCAN_USAGE             # responses, not yet counted once
    SCAN_TOOL_HALVES       # uses and results, not yet joined
    SCAN_SESSION_LINES     # lines, not yet added up

# A pattern set.
cdef struct ScanSearch:
    MatchTable table
    bint own_line
    size_t first_name      # of its names in the question's

cdef struct ScanQuestion:
    int table
    bint all_text          # matches: in the text of every record, not only in own words
    bint sidechains        # matches: also in sub-agents' own words
    int code               # matches: -1 anywhere, 0 only outside code, 1 only in code
    size_t context         # characters around a match
    int64_t since, until   # microseconds
    bint has_times
    bint has_gate
    MatchTable gate
    ScanSearch* searches
    size_t search_count
    ArrowTexts names       # of what the searches find
    ArrowTexts roles       # which count; all if there are none
    ArrowTexts projects    # the same; folders below them count too
    ArrowTexts sessions    # the same
    ArrowTexts known_types  # two texts each: a host and a type; records of other types are counted, if any is known

cdef struct ScanRun:
    const ScanQuestion* question
    ScanPlace place
    ScanColumns columns
    ScanText pending       # bytes of a line whose end has not come yet
    ScanText text
    ScanText scratch
    MatchHits hits
    MatchHits gate_hits
    MdCodeMap code
    int64_t offset         # of the next byte that is fed
    int64_t end            # lines that begin here or later belong to another range
    bint is_skipping       # up to the next newline: a line that is too long, or another range's
    bint lacks_newline     # the line at hand is the file's last, and its newline is not in the file
    char is_done           # os_flag_*, any thread may look at it: the next line belongs to another range
    unsigned char* block   # what was read last
    int64_t records
    int64_t broken_lines
    int64_t long_lines
    ArrowTexts unknown_types    # two texts each: a type that is not known, and the version of the host
    int64_t unknown_counts[SCAN_MAX_UNKNOWN_TYPES + 1]  # of each; the last one is for all that have no place


cdef bint scan_is_separator(unsigned char letter) noexcept nogil:
    """Return whether a character separates the names of folders."""
    return letter == c"/" or letter == c"\\"


cdef bint scan_is_among(const ArrowTexts* texts, Cursor start, size_t size, bint or_below) noexcept nogil:
    """Return whether a text is one of the texts. or_below: a folder below one of them counts, too."""
    cdef size_t i, length
    cdef Cursor known
    for i in range(texts.count):
        known = <Cursor>texts.data + texts.offsets[i]
        length = texts.offsets[i + 1] - texts.offsets[i]
        if length > size or memcmp(known, start, length) != 0:
            continue
        if length == size:
            return True
        if or_below and (scan_is_separator(start[length]) or (length > 0 and scan_is_separator(known[length - 1]))):
            return True
    return False


cdef int scan_is_wanted(const ArrowTexts* texts, RecSlice* value, bint or_below, ScanText* scratch) noexcept nogil:
    """Return 1 if a JSON value is one of the texts or there are no texts, otherwise 0; or -1: no memory."""
    if texts.count == 0:
        return 1
    if not scan_is_name(value):
        return 0
    scratch.size = 0
    if scan_text_add(scratch, value.start + 1, value.end - 1) < 0:
        return -1
    return scan_is_among(texts, scratch.data, scratch.size, or_below)


cdef int scan_concerns(ScanRun* run, RecFields* fields) noexcept nogil:
    """Return 1 if a record is among those that the question is about, otherwise 0; or -1: no memory."""
    cdef const ScanQuestion* question = run.question
    cdef RecSlice* session = &fields.top[FIELD_SESSION_ID]
    cdef int64_t at
    cdef RecSlice role = rec_role(fields)
    cdef int wanted = scan_is_wanted(&question.roles, &role, False, &run.scratch)
    if wanted == 1 and question.has_times:
        if not rec_read_time(&fields.top[FIELD_TIMESTAMP], &at) or at < question.since or at >= question.until:
            return 0
    if wanted == 1 and question.sessions.count:
        if scan_is_name(session) and session.end - session.start > 2:
            wanted = scan_is_wanted(&question.sessions, session, False, &run.scratch)
        else:
            wanted = scan_is_among(&question.sessions, run.place.session_id, run.place.session_id_bytes, False)
    if wanted == 1:
        wanted = scan_is_wanted(&question.projects, &fields.top[FIELD_CWD], True, &run.scratch)
    return wanted


# ---- unknown types -------------------------------------------------------------

cdef int scan_add_unknown_text(ScanRun* run, RecSlice* value) noexcept nogil:
    """Add a JSON value to the texts of unknown types, "" if it is not a string. Returns 0, or -1: no memory."""
    cdef size_t size
    run.scratch.size = 0
    if rec_value_is_string(value) and scan_text_add(&run.scratch, value.start + 1, value.end - 1) < 0:
        return -1
    size = min(run.scratch.size, <size_t>SCAN_MAX_TYPE_BYTES)
    while size < run.scratch.size and run.scratch.data[size] & 0xC0 == 0x80:
        size -= 1
    return arrow_texts_add(&run.unknown_types, run.scratch.data, size)


cdef bint scan_is_known_type(ScanRun* run, Cursor start, size_t size) noexcept nogil:
    """Return whether the host of the file has records of a type."""
    cdef const ArrowTexts* known = &run.question.known_types
    cdef size_t i
    for i in range(0, known.count, 2):
        if arrow_text_is(known, i + 1, start, size) and arrow_text_is(known, i, run.place.host, run.place.host_bytes):
            return True
    return False


cdef int scan_note_type(ScanRun* run, RecFields* fields) noexcept nogil:
    """Count a record's type if it is not known. Returns 0, or -1: no memory."""
    cdef ArrowTexts* texts = &run.unknown_types
    cdef RecSlice* kind = &fields.top[FIELD_TYPE]
    cdef size_t i, last
    if run.question.known_types.count == 0 or not rec_value_is_string(kind):
        return 0
    if scan_is_known_type(run, kind.start + 1, kind.end - kind.start - 2):
        return 0
    run.scratch.size = 0
    if scan_text_add(&run.scratch, kind.start + 1, kind.end - 1) < 0:
        return -1
    if scan_is_known_type(run, run.scratch.data, run.scratch.size):  # it was written with escapes
        return 0
    if scan_add_unknown_text(run, kind) < 0 or scan_add_unknown_text(run, &fields.top[FIELD_VERSION]) < 0:
        return -1
    last = texts.count - 2  # the pair that was added stays only if it is new
    for i in range(0, last, 2):
        if (
            arrow_text_is(texts, i, texts.data + texts.offsets[last], texts.offsets[last + 1] - texts.offsets[last])
            and arrow_text_is(
                texts, i + 1, texts.data + texts.offsets[last + 1], texts.offsets[last + 2] - texts.offsets[last + 1]
            )
        ):
            break
    else:
        i = last
    if i != last or last == 2 * SCAN_MAX_UNKNOWN_TYPES:
        texts.count = last
        texts.size = texts.offsets[last]
    run.unknown_counts[i // 2] += 1
    return 0


# ---- matches -------------------------------------------------------------------

cdef int scan_put_match(ScanRun* run, RecFields* fields, MatchHit* hit, size_t start, size_t end) noexcept nogil:
    """Put the row of a match. start, end: in characters. Returns 0, or -1: no memory."""
    cdef ScanColumns* columns = &run.columns
    cdef const ArrowTexts* names = &run.question.names
    cdef ScanText* text = &run.text
    cdef size_t first = hit.start
    cdef size_t last = hit.end
    cdef size_t left
    if (
        scan_put_origin(columns, fields, &run.place, &run.scratch) < 0
        or scan_put_text(
            columns, SCAN_NAME, names.data + names.offsets[hit.name],
            names.offsets[hit.name + 1] - names.offsets[hit.name],
        ) < 0
        or scan_put_int(columns, SCAN_START, start) < 0
        or scan_put_int(columns, SCAN_END, end) < 0
        or scan_put_int(columns, SCAN_LINE, hit.line) < 0
        or scan_put_bool(columns, SCAN_IN_CODE, hit.in_code) < 0
    ):
        return -1
    if columns.wanted[SCAN_CONTEXT]:
        left = run.question.context
        while left and first:
            first -= 1
            while first and text.data[first] & 0xC0 == 0x80:
                first -= 1
            left -= 1
        left = run.question.context
        while left and last < text.size:
            last += 1
            while last < text.size and text.data[last] & 0xC0 == 0x80:
                last += 1
            left -= 1
        if arrow_add_text(&columns.items[SCAN_CONTEXT], text.data + first, last - first) < 0:
            return -1
    return scan_end_row(columns)


cdef int scan_find_matches(ScanRun* run) noexcept nogil:
    """Set run.hits to what the searches find in run.text, sorted. Returns 0, or -1: no memory."""
    cdef const ScanQuestion* question = run.question
    cdef const uint8_t* data = run.text.data
    cdef size_t size = run.text.size
    cdef MatchLines lines
    cdef MatchHit* hit
    cdef size_t i, k
    cdef size_t begin = 0
    cdef size_t kept = 0
    cdef size_t region = 0
    cdef size_t reach = 0
    run.hits.count = 0
    for i in range(question.search_count):
        begin = run.hits.count
        if match_find(&question.searches[i].table, data, size, True, &run.hits) < 0:
            return -1
        if question.searches[i].own_line and run.hits.count != begin:
            qsort(run.hits.items + begin, run.hits.count - begin, sizeof(MatchHit), match_order_hits)
            lines = MatchLines(data, size, 0, 1, 0, 0, 1, 0)
            kept = begin
            for k in range(begin, run.hits.count):
                match_lines_advance(&lines, run.hits.items[k].start)
                if match_stands_alone(&lines, run.hits.items[k].start, run.hits.items[k].end):
                    run.hits.items[kept] = run.hits.items[k]
                    kept += 1
            run.hits.count = kept
        for k in range(begin, run.hits.count):
            run.hits.items[k].name += <uint32_t>question.searches[i].first_name
    if run.hits.count == 0:
        return 0
    match_hits_sort(&run.hits)
    for i in range(run.hits.count):
        reach = max(reach, run.hits.items[i].end)
    if md_build_map(&run.code, <const char*>data, size, run.hits.items[0].start, reach) < 0:
        return -1
    lines = MatchLines(data, size, 0, 1, 0, 0, 1, 0)
    kept = 0
    for i in range(run.hits.count):
        hit = &run.hits.items[i]
        while region < run.code.count and run.code.spans[region].end <= hit.start:
            region += 1
        hit.in_code = region < run.code.count and run.code.spans[region].start < hit.end
        if question.code >= 0 and hit.in_code != question.code:
            continue
        match_lines_advance(&lines, hit.start)
        hit.line = lines.number
        run.hits.items[kept] = hit[0]
        kept += 1
    run.hits.count = kept
    return 0


cdef int scan_put_matches(ScanRun* run, RecFields* fields) noexcept nogil:
    """Put a row for each match in a record's text. Returns 0, or -1: no memory."""
    cdef const uint8_t* data
    cdef MatchHit* hit
    cdef size_t i
    cdef size_t byte = 0
    cdef size_t character = 0
    if scan_own_text(fields, &run.text) < 0 or scan_find_matches(run) < 0:
        return -1
    data = run.text.data
    for i in range(run.hits.count):
        hit = &run.hits.items[i]
        character += utf8_count(data + byte, data + hit.start)
        byte = hit.start
        if scan_put_match(run, fields, hit, character, character + utf8_count(data + hit.start, data + hit.end)) < 0:
            return -1
    return 0


# ---- lines ---------------------------------------------------------------------

# What a line holds.
cdef struct ScanLine:
    RecFields fields       # zeroed without a record
    bint is_blank
    bint has_record
    bint is_broken


cdef inline void scan_find_record(Cursor start, Cursor end, ScanLine* line) noexcept nogil:
    """Find the record of a line without its newline."""
    if end != start and (end - 1)[0] == c"\r":
        end -= 1
    start = utf8_after_bom(start, end)  # on later lines, too: files are joined
    line.is_blank = json_skip_space(start, end) == end
    line.has_record = not line.is_blank and rec_find(start, end, &line.fields)
    if not line.has_record:
        memset(&line.fields, 0, sizeof(RecFields))
    line.is_broken = not line.has_record or line.fields.start != json_skip_space(start, end)
    line.is_broken = line.is_broken or json_skip_space(line.fields.end, end) != end


cdef int scan_line(ScanRun* run, Cursor start, Cursor end, int64_t offset) noexcept nogil:
    """Put the rows of a line. Returns 0, or -1: no memory."""
    cdef ScanLine line
    scan_find_record(start, end, &line)
    if line.is_blank:
        return 0
    return scan_put_rows(run, &line.fields, line.is_broken, end - start + (not run.lacks_newline), offset)


cdef int scan_put_rows(
    ScanRun* run, RecFields* fields, bint is_broken, int64_t size, int64_t offset
) noexcept nogil:
    """Put the rows of a line that is not blank. Returns 0, or -1: no memory.

    fields: zeroed without a record.  size: of the line with its newline, in bytes.
    """
    cdef bint has_record = fields.start != NULL
    cdef int wanted
    run.records += has_record
    run.broken_lines += is_broken
    run.place.offset = offset
    if has_record and scan_note_type(run, fields) < 0:
        return -1
    if run.question.table == SCAN_SESSION_LINES:
        return scan_put_line(
            &run.columns, fields, has_record, is_broken, size, &run.place, &run.scratch
        )
    if not has_record:
        return 0
    wanted = scan_concerns(run, fields)
    if wanted != 1:
        return wanted
    if run.question.table == SCAN_RECORDS:
        return scan_put_record(&run.columns, fields, &run.place, &run.text, &run.scratch)
    if run.question.table == SCAN_USAGE:
        return scan_put_usage(&run.columns, fields, &run.place, &run.scratch)
    if run.question.table == SCAN_TOOL_HALVES:
        return scan_put_tool_halves(&run.columns, fields, &run.place, &run.scratch)
    if run.question.all_text or (
        scan_is_own_words(fields)
        and (run.question.sidechains or not rec_value_is_true(&fields.top[FIELD_SIDECHAIN]))
    ):
        return scan_put_matches(run, fields)
    return 0


cdef int scan_all_lines(ScanRun* run, Cursor start, Cursor end, int64_t offset) noexcept nogil:
    """Scan whole lines, each with its newline. Returns 0, or -1: no memory. offset: that of `start` in the file."""
    cdef Cursor newline
    cdef Cursor p = start
    while p != end:
        if offset + (p - start) >= run.end:
            os_flag_set(&run.is_done)
            return 0
        newline = <Cursor>memchr(p, c"\n", end - p)
        if newline != p and scan_line(run, p, newline, offset + (p - start)) < 0:
            return -1
        p = newline + 1
    return 0


cdef int scan_line_at(ScanRun* run, Cursor start, Cursor end, Cursor at, Cursor* done, int64_t offset) noexcept nogil:
    """Scan the line of `at`, if it is not done yet. Returns 0, or -1: no memory.

    done: the lines before it are done; it is moved behind the line. offset: that of `start` in the file.
    """
    cdef Cursor first
    cdef Cursor last
    if at < done[0] or run.is_done:
        return 0
    first = os_last_newline(done[0], at - done[0])
    first = done[0] if first == NULL else first + 1
    if offset + (first - start) >= run.end:
        os_flag_set(&run.is_done)
        return 0
    last = <Cursor>memchr(at, c"\n", end - at)
    done[0] = last + 1
    return scan_line(run, first, last, offset + (first - start))


cdef int scan_gated_lines(ScanRun* run, Cursor start, Cursor end, int64_t offset) noexcept nogil:
    """Scan those of the whole lines in which a match may be. Returns 0, or -1: no memory.

    Needs a gate with a prefilter: without one, a record is skipped as fast as it is searched.
    """
    cdef const MatchTable* table = &run.question.gate
    cdef size_t reach = table.head.reach
    cdef MatchRun gate = MatchRun(table, start, end - start, 0, 0, &run.gate_hits)
    cdef MatchPrefilter way
    cdef MatchBlock block
    cdef Cursor done = start
    cdef size_t window, i
    way.table, way.text, way.length = table, start, end - start
    way.at = way.count = way.next = 0
    run.gate_hits.count = 0
    while not run.is_done and match_prefilter_next(&way, &block):
        while block.places:
            window = block.at + __builtin_ctzll(block.places)
            block.places &= block.places - 1
            if start + window < done:
                continue
            if match_run_from(&gate, window - min(window, reach), window) < 0:
                return -1
            if run.gate_hits.count:
                run.gate_hits.count = 0
                if scan_line_at(run, start, end, start + window, &done, offset) < 0:
                    return -1
    if match_run_from(&gate, way.at - min(way.at, reach), end - start) < 0:
        return -1
    for i in range(run.gate_hits.count):
        if scan_line_at(run, start, end, start + run.gate_hits.items[i].start, &done, offset) < 0:
            return -1
    return 0


cdef int scan_lines(ScanRun* run, Cursor start, Cursor end, int64_t offset) noexcept nogil:
    """Scan whole lines, each with its newline. Returns 0, or -1: no memory. offset: that of `start` in the file."""
    if start == end:
        return 0
    if run.question.has_gate and match_has_prefilter(&run.question.gate):
        return scan_gated_lines(run, start, end, offset)
    return scan_all_lines(run, start, end, offset)


# ---- blocks --------------------------------------------------------------------

cdef int scan_hold(ScanRun* run, Cursor start, Cursor end) noexcept nogil:
    """Keep more of a line until the rest comes, unless the line is too long. Returns 0, or -1: no memory.

    start, end: without the newline.
    """
    if run.pending.size + (end - start) > SCAN_MAX_LINE_BYTES:
        run.pending.size = 0
        run.is_skipping = True
        run.long_lines += 1
        return 0
    if scan_text_room(&run.pending, end - start) < 0:
        return -1
    memcpy(run.pending.data + run.pending.size, start, end - start)
    run.pending.size += end - start
    return 0


cdef int scan_pending(ScanRun* run) noexcept nogil:
    """Scan the line that was kept, up to run.offset. Returns 0, or -1: no memory."""
    cdef int64_t offset = run.offset - run.pending.size
    if scan_text_room(&run.pending, 1) < 0:
        return -1
    run.pending.data[run.pending.size] = c"\n"
    return scan_lines(run, run.pending.data, run.pending.data + run.pending.size + 1, offset)


cdef int scan_feed(ScanRun* run, Cursor start, Cursor end) noexcept nogil:
    """Scan the next bytes of the file. Returns 0, or -1: no memory."""
    cdef Cursor newline
    if run.is_skipping or run.pending.size:
        newline = <Cursor>memchr(start, c"\n", end - start)
        if newline == NULL:
            run.offset += end - start
            if not run.is_skipping and scan_hold(run, start, end) < 0:
                return -1
            if run.is_skipping and run.offset >= run.end:
                os_flag_set(&run.is_done)
            return 0
        run.offset += newline - start
        if not run.is_skipping and scan_hold(run, start, newline) < 0:
            return -1
        if not run.is_skipping and scan_pending(run) < 0:
            return -1
        run.offset += 1
        run.is_skipping = False
        run.pending.size = 0
        start = newline + 1
    newline = os_last_newline(start, end - start)
    if newline != NULL:
        if scan_lines(run, start, newline + 1, run.offset) < 0:
            return -1
        run.offset += newline + 1 - start
        start = newline + 1
    if run.offset >= run.end:
        os_flag_set(&run.is_done)
    run.offset += end - start
    return 0 if run.is_done or start == end else scan_hold(run, start, end)


cdef int scan_end_of_file(ScanRun* run) noexcept nogil:
    """Scan the last line, if it has no newline. Returns 0, or -1: no memory."""
    cdef int failed = 0
    if not run.is_done and not run.is_skipping and run.pending.size:
        run.lacks_newline = True
        failed = scan_pending(run)
        run.lacks_newline = False
    os_flag_set(&run.is_done)
    return failed


cdef int scan_feed_blocks(ScanRun* run, Cursor start, Cursor end) noexcept nogil:
    """Scan the next bytes, up to the end of the range, or until it is stopped. Returns 0 or SCAN_NO_MEMORY."""
    cdef Cursor stop
    while start != end and not run.is_done and not os_flag_is_set(&run.columns.queue.is_stopped):
        stop = start + min(<Py_ssize_t>SCAN_BLOCK_BYTES, end - start)
        if scan_feed(run, start, stop) < 0:
            return SCAN_NO_MEMORY
        start = stop
    return 0


cdef int scan_read(ScanRun* run, int fd) noexcept nogil:
    """Scan the range of an open file, until it is stopped. Returns 0, SCAN_NO_MEMORY or SCAN_UNREADABLE."""
    cdef Py_ssize_t count
    if run.block == NULL:
        run.block = <unsigned char*>PyMem_RawMalloc(SCAN_BLOCK_BYTES)
        if run.block == NULL:
            return SCAN_NO_MEMORY
    while not run.is_done and not os_flag_is_set(&run.columns.queue.is_stopped):
        count = os_read_at(fd, run.block, SCAN_BLOCK_BYTES, run.offset)
        if count == 0:
            return scan_end_of_file(run)
        if count > 0 and scan_feed(run, run.block, run.block + count) < 0:
            return SCAN_NO_MEMORY
        if count < 0 and errno != EINTR:
            return SCAN_UNREADABLE
    return 0


cdef int scan_one_line(
    ScanRun* run, Cursor start, Cursor end, Cursor translated, Cursor translated_end, int64_t offset
) noexcept nogil:
    """Scan a line of another host, whatever its offset, unless it is too long. Returns 0, or -1: no memory.

    start, end: the line, with its newline if it has one.
    translated, translated_end: its record as Claude Code would have written it; equal if it has none.
    """
    cdef int64_t size = end - start
    cdef ScanLine line
    cdef RecFields fields
    if size and (end - 1)[0] == c"\n":
        end -= 1
    if end - start > SCAN_MAX_LINE_BYTES:
        run.long_lines += 1
        return 0
    scan_find_record(start, end, &line)
    if line.is_blank:
        return 0
    if translated == translated_end or not rec_find(translated, translated_end, &fields):
        memset(&fields, 0, sizeof(RecFields))
    return scan_put_rows(run, &fields, line.is_broken or fields.start == NULL, size, offset)


cdef void scan_free_working_memory(ScanRun* run) noexcept nogil:
    """Free what the next range does not need: a long line may have made it large."""
    if run.is_done:
        run.pending.size = 0
    if run.pending.size == 0:
        scan_text_shrink(&run.pending)
    scan_text_shrink(&run.text)
    scan_text_shrink(&run.scratch)
    PyMem_RawFree(run.block)
    run.block = NULL
    match_hits_free(&run.hits)
    match_hits_free(&run.gate_hits)
    md_free_map(&run.code)
