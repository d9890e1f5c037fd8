# Decides which matches count: alone on their line, outside code.
#
# Gives: match_find_counting, match_hits_sort, match_order_hits; MatchLines, match_lines_advance, match_note_margins.
# Needs: match_find (patterns/automaton.pxi), md_build_map (markdown/code_map.pxi), md_list_marker_end
# (markdown/grammar.pxi), utf8_char_at (text/utf8.pxi).
#
# Lines end at LF, CRLF and CR. A match stands alone if there is only white space (str.isspace) and markers of quotes
# and list items before it on its line, and only white space behind it.
#
# Matches come in order, so each place of the text is looked at once, also in a line with a million matches.

cdef struct MatchLines:
    const uint8_t* text
    size_t length
    size_t position      # lines are counted up to here
    size_t number        # of the line there, from 1
    size_t start         # of that line
    size_t margin        # markers and white space reach at least up to here
    size_t blank_start   # white space found behind a match,
    size_t blank_end     # up to its end on the line


cdef inline bint match_ends_line(const uint8_t* text, size_t at) noexcept nogil:
    """Return whether text[at] ends a line. text[at + 1] must be readable."""
    return text[at] == c"\n" or (text[at] == c"\r" and text[at + 1] != c"\n")


cdef void match_lines_advance(MatchLines* lines, size_t to) noexcept nogil:
    """Go on to the line of text[to], which must not be before the position."""
    cdef size_t at = lines.position
    cdef size_t ended = 0
    cdef size_t stop
    cdef uint8_t some
    while at < to:
        stop = min(to, at + 255)
        some = 0
        while at < stop:
            some += (lines.text[at] == c"\n") | ((lines.text[at] == c"\r") & (lines.text[at + 1] != c"\n"))
            at += 1
        ended += some
    if ended:
        while not match_ends_line(lines.text, at - 1):
            at -= 1
        lines.number += ended
        lines.start = lines.margin = at
    lines.position = to


cdef inline size_t match_marker_length(const uint8_t* text, size_t length, size_t at) noexcept nogil:
    """Return how long the marker of a quote or list item at `at` is, or 0 if there is none (CommonMark 5.1, 5.2)."""
    cdef size_t end
    if text[at] == c">":
        return 1
    end = md_list_marker_end(<const char*> text, at, length)
    return end - at if end else 0


cdef bint match_note_margins(MatchLines* lines, size_t start, size_t end) noexcept nogil:
    """Note the blanks around text[start:end]. Return whether it is alone on its line or lines.

    It begins on the current line.
    """
    cdef const uint8_t* text = lines.text
    cdef size_t width, at
    while lines.margin < start:
        if not Py_UNICODE_ISSPACE(utf8_char_at(text, lines.length, lines.margin, &width)):
            width = match_marker_length(text, lines.length, lines.margin)
        if width == 0:
            return False
        lines.margin += width
    if lines.margin > start:
        return False
    at = end
    if lines.blank_start <= end <= lines.blank_end:
        at = lines.blank_end
    while at < lines.length and text[at] != c"\n" and text[at] != c"\r":
        if not Py_UNICODE_ISSPACE(utf8_char_at(text, lines.length, at, &width)):
            break
        at += width
    lines.blank_start, lines.blank_end = end, at
    return at == lines.length or text[at] == c"\n" or text[at] == c"\r"


cdef int match_order_hits(const void* one, const void* other) noexcept nogil:
    """Compare by start, then end, then name, for qsort."""
    cdef const MatchHit* a = <const MatchHit*> one
    cdef const MatchHit* b = <const MatchHit*> other
    if a.start != b.start:
        return 1 if a.start > b.start else -1
    if a.end != b.end:
        return 1 if a.end > b.end else -1
    return (a.name > b.name) - (a.name < b.name)


cdef void match_hits_sort(MatchHits* hits) noexcept nogil:
    cdef size_t i
    for i in range(1, hits.count):
        if match_order_hits(&hits.items[i - 1], &hits.items[i]) > 0:
            qsort(hits.items, hits.count, sizeof(MatchHit), match_order_hits)
            return


cdef int match_find_counting(
    const MatchTable* table, const uint8_t* text, size_t length, bint own_line, bint outside_code, MatchHits* hits
) noexcept nogil:
    """Fill the empty `hits` with the matches that count, in order."""
    cdef MatchLines lines = MatchLines(text, length, 0, 1, 0, 0, 1, 0)
    cdef MdCodeMap code
    cdef MatchHit* hit
    cdef size_t i
    cdef size_t kept = 0
    cdef size_t region = 0
    cdef size_t reach = 0
    if match_find(table, text, length, True, hits) < 0:
        return -1
    match_hits_sort(hits)
    for i in range(hits.count):
        hit = &hits.items[i]
        match_lines_advance(&lines, hit.start)
        hit.line = lines.number
        if not own_line or match_note_margins(&lines, hit.start, hit.end):
            hits.items[kept] = hit[0]
            kept += 1
            reach = max(reach, hit.end)
    hits.count = kept
    if kept == 0:
        return 0
    memset(&code, 0, sizeof(MdCodeMap))
    if md_build_map(&code, <const char*> text, length, hits.items[0].start, reach) < 0:
        md_free_map(&code)
        return -1
    kept = 0
    for i in range(hits.count):
        hit = &hits.items[i]
        while region < code.count and code.spans[region].end <= hit.start:
            region += 1
        hit.in_code = region < code.count and code.spans[region].start < hit.end
        if not (outside_code and hit.in_code):
            hits.items[kept] = hit[0]
            kept += 1
    hits.count = kept
    md_free_map(&code)
    return 0
