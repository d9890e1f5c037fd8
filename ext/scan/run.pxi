# A scan of a range of bytes: from blocks of a file to rows, without the interpreter.
#
# Gives: ScanQuestion, ScanPatternSet, ScanRun; scan_read, scan_feed, scan_feed_blocks, scan_one_line, scan_end_of_file;
# scan_free_working_memory; SCAN_UNREADABLE, SCAN_NO_MEMORY, SCAN_MAX_UNKNOWN_TYPES, SCAN_BLOCK_BYTES.
# Needs: the rows (scan/fields.pxi, scan/records.pxi, scan/matches.pxi, scan/tool_halves.pxi, arrow/columns.pxi),
# scan_check_record, scan_note_type and scan_note_tokens (scan/filters.pxi), RecFields (transcript/fields.pxi),
# rec_value_is_true (transcript/records.pxi), rec_find (transcript/bad_lines.pxi), json_skip_space (json/grammar.pxi),
# match_run_from (patterns/automaton.pxi), MdCodeMap (markdown/code_map.pxi), utf8_after_bom (text/utf8.pxi).
#
# A line belongs to the range of its first byte. A range inside the file begins after the first newline at or behind the
# byte before the range; its last line is read past the range's end. So any cuts give the same rows.
#
# All of it runs without the interpreter's lock, and a ScanRun in one thread at a time. A ScanQuestion does not change,
# so threads can share it.
#
# With a gate, a line is parsed only if its bytes contain one of the gate's literals: parts of the patterns that JSON
# does not escape, and the escapes for such parts.

cdef enum:
    SCAN_BLOCK_BYTES = 1 << 18      # stays in a core's cache
    SCAN_MAX_LINE_BYTES = 16 << 20  # without its newline; a longer line is skipped and counted
    SCAN_MAX_UNKNOWN_TYPES = 64     # kept, each with the version of its host

cdef enum:
    SCAN_NO_MEMORY = -1
    SCAN_UNREADABLE = -2            # see errno

cdef enum:
    SCAN_RECORDS
    SCAN_MATCHES
    SCAN_USAGE             # responses, not yet counted once
    SCAN_TOOL_HALVES       # uses and results, not yet joined
    SCAN_SESSION_LINES     # lines, not yet added up

# A pattern set, as PatternSet is for Python.
cdef struct ScanPatternSet:
    MatchTable table
    bint own_line
    size_t first_name      # of its names in the question's
    size_t name_count      # a hit under a later number only opens the gate

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
    ScanPatternSet* sets
    size_t set_count
    ArrowTexts names       # of the sets' hits
    ArrowTexts roles       # which count; all if there are none
    ArrowTexts projects    # the same; folders below them count too
    ArrowTexts sessions    # the same
    ArrowTexts known_types  # two texts each: a host and a type; records of other types are counted, if any is known

cdef struct ScanRun:
    const ScanQuestion* question
    ScanPlace place
    ScanColumns columns
    ScanText pending       # bytes of an unfinished line
    ScanText text
    ScanText scratch
    MatchHits hits
    MatchHits gate_hits
    MdCodeMap code
    int64_t offset         # of the next byte that is fed
    int64_t end            # lines that begin here or later belong to another range
    RecSlice line          # the current line, in the host's form; empty for a further record of a line
    bint is_skipping       # up to the next newline: a line that is too long, or another range's
    bint lacks_newline     # the line at hand is the file's last, and its newline is not in the file
    char is_done           # os_flag_*, any thread may look at it: the next line belongs to another range
    unsigned char* block   # the bytes of the last reading
    int64_t records
    int64_t broken_lines
    int64_t long_lines
    ArrowTexts unknown_types    # two texts each: a type that is not known, and the version of the host
    int64_t unknown_counts[SCAN_MAX_UNKNOWN_TYPES + 1]  # of each; the last one is for all that have no place


# ---- lines ---------------------------------------------------------------------

# The contents of a line.
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
    """Put the rows of a line."""
    cdef ScanLine line
    scan_find_record(start, end, &line)
    if line.is_blank:
        return 0
    run.line = RecSlice(start, end)
    return scan_put_rows(run, &line.fields, line.is_broken, end - start + (not run.lacks_newline), offset)


cdef int scan_put_rows(
    ScanRun* run, RecFields* fields, bint is_broken, int64_t size, int64_t offset
) noexcept nogil:
    """Put the rows of a line that is not blank.

    fields: zeroed without a record.  size: of the line with its newline, in bytes.
    """
    cdef bint has_record = fields.start != NULL
    cdef int wanted
    run.records += has_record
    run.broken_lines += is_broken
    run.place.offset = offset
    if has_record and run.question.table != SCAN_USAGE and scan_note_type(run, fields) < 0:
        return -1
    if run.question.table == SCAN_SESSION_LINES:
        return scan_put_line(
            &run.columns, fields, has_record, is_broken, size, &run.place, &run.scratch
        )
    if not has_record:
        return 0
    wanted = scan_check_record(run, fields)
    if wanted != 1:
        return wanted
    if run.question.table == SCAN_RECORDS:
        return scan_put_record(&run.columns, fields, &run.place, &run.text, &run.scratch)
    if run.question.table == SCAN_USAGE:
        wanted = scan_put_usage(&run.columns, fields, &run.place, &run.scratch)
        return scan_note_tokens(run, fields) if wanted == 0 else min(wanted, 0)
    if run.question.table == SCAN_TOOL_HALVES:
        return scan_put_tool_halves(&run.columns, fields, &run.place, &run.scratch)
    if run.question.all_text or (
        scan_is_own_words(fields)
        and (run.question.sidechains or not rec_value_is_true(&fields.top[FIELD_SIDECHAIN]))
    ):
        return scan_put_matches(run, fields)
    return 0


cdef int scan_all_lines(ScanRun* run, Cursor start, Cursor end, int64_t offset) noexcept nogil:
    """Scan whole lines, each with its newline. offset: that of `start` in the file."""
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
    """Scan the line of `at`, if it is not done yet.

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
    """Scan the whole lines that may have a match.

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
    """Scan whole lines, each with its newline. offset: that of `start` in the file."""
    if start == end:
        return 0
    if run.question.has_gate and match_has_prefilter(&run.question.gate):
        return scan_gated_lines(run, start, end, offset)
    return scan_all_lines(run, start, end, offset)


# ---- blocks --------------------------------------------------------------------

cdef int scan_hold(ScanRun* run, Cursor start, Cursor end) noexcept nogil:
    """Keep more of a line until the rest comes, unless the line is too long.

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
    """Scan the line that was kept, up to run.offset."""
    cdef int64_t offset = run.offset - run.pending.size
    if scan_text_room(&run.pending, 1) < 0:
        return -1
    run.pending.data[run.pending.size] = c"\n"
    return scan_lines(run, run.pending.data, run.pending.data + run.pending.size + 1, offset)


cdef int scan_feed(ScanRun* run, Cursor start, Cursor end) noexcept nogil:
    """Scan the next bytes of the file."""
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
    """Scan the last line, if it has no newline."""
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
    """Scan a line of another host, at any offset, unless it is too long.

    start, end: the line, with its newline if it has one; empty for a further record of the line before.
    translated, translated_end: its record in Claude Code's form; equal if it has none.
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
    if line.is_blank and (size or translated == translated_end):
        return 0
    if translated == translated_end or not rec_find(translated, translated_end, &fields):
        memset(&fields, 0, sizeof(RecFields))
    run.line = RecSlice(start, end)
    return scan_put_rows(run, &fields, (size and line.is_broken) or fields.start == NULL, size, offset)


cdef void scan_free_working_memory(ScanRun* run) noexcept nogil:
    """Free working memory between ranges: a long line may have made it large."""
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
