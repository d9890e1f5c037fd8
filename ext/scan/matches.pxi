# The rows of the table matches.
#
# Gives: scan_put_matches.
# Needs: ScanRun, ScanQuestion (scan/run.pxi), the columns (scan/fields.pxi, arrow/columns.pxi), scan_own_text and
# scan_put_origin (scan/records.pxi), RecFields (transcript/fields.pxi), match_find (patterns/automaton.pxi), which
# matches count (patterns/matches.pxi), md_build_map (markdown/code_map.pxi).

cdef int scan_put_match(ScanRun* run, RecFields* fields, MatchHit* hit, size_t start, size_t end) noexcept nogil:
    """Put the row of a match. start, end: in characters."""
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
    """Set run.hits to the sorted hits of the searches in run.text."""
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
    for i in range(question.set_count):
        begin = run.hits.count
        if match_find(&question.sets[i].table, data, size, True, &run.hits) < 0:
            return -1
        kept = begin
        for k in range(begin, run.hits.count):
            if run.hits.items[k].name < question.sets[i].name_count:
                run.hits.items[kept] = run.hits.items[k]
                kept += 1
        run.hits.count = kept
        if question.sets[i].own_line and run.hits.count != begin:
            qsort(run.hits.items + begin, run.hits.count - begin, sizeof(MatchHit), match_order_hits)
            lines = MatchLines(data, size, 0, 1, 0, 0, 1, 0)
            kept = begin
            for k in range(begin, run.hits.count):
                match_lines_advance(&lines, run.hits.items[k].start)
                if match_note_margins(&lines, run.hits.items[k].start, run.hits.items[k].end):
                    run.hits.items[kept] = run.hits.items[k]
                    kept += 1
            run.hits.count = kept
        for k in range(begin, run.hits.count):
            run.hits.items[k].name += <uint32_t>question.sets[i].first_name
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
    """Put a row for each match in a record's text."""
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
