# The inline structure (CommonMark 0.31.2, section 6).
#
# Gives: md_read_inlines.
# Needs: MdCodeMap (markdown/code_map.pxi), the grammar (markdown/grammar.pxi), md_find_definition
# (markdown/labels.pxi), the marks (markdown.h), array_grow (array.pxi).
#
# Prose is read once, from left to right, from special byte to special byte. Code spans, raw HTML and autolinks bind
# tighter than brackets, so they are taken where they start. A ] looks back at the opener on the stack, and ahead for a
# destination or label of a link; backticks in those are not code. Emphasis and entities change no code span.
#
# This stays linear. If a search for an end fails in a piece of prose, it is not repeated there (`missing`,
# MdCodeMap.runs, md_value_end). All other searches ahead stop at a byte that only one try can cross.

cdef enum:                  # bits of MdInlines.missing: no such end comes after the position of the search
    MD_NO_COMMENT_END = 1
    MD_NO_INSTRUCTION_END = 2
    MD_NO_DECLARATION_END = 4
    MD_NO_CDATA_END = 8
    MD_RUNS_KNOWN = 16         # not a missing end: MdCodeMap.runs and long_runs are valid


cdef struct MdInlines:
    MdCodeMap* map
    MdProse prose
    size_t length           # of the whole text
    int missing
    size_t inactive         # openers below this index cannot make a link any more: no links in links (section 6.3)


# ---- code spans (section 6.1) ---------------------------------------------------

cdef inline size_t md_backticks_end(const MdProse* prose, size_t p) noexcept nogil:
    while p < prose.end and prose.text[p] == c'`':
        p += 1
    return p


cdef inline size_t md_next_run(const MdInlines* s, size_t p) noexcept nogil:
    """Return the start of the next run of backticks, from p on; the prose's end or more if there is none."""
    p = md_next_mark(s.map.marks, MD_SPECIALS, p)
    while p < s.prose.end and s.prose.text[p] != c'`':
        p = md_next_mark(s.map.marks, MD_SPECIALS, p + 1)
    return p


cdef size_t md_find_long_run(const MdCodeMap* map, size_t length) noexcept nogil:
    """Return the index in long_runs of the run of that length, or of the first longer one."""
    cdef size_t low = 0, high = map.long_run_count, middle
    while low < high:
        middle = (low + high) // 2
        if map.long_runs[middle].length < length:
            low = middle + 1
        else:
            high = middle
    return low


cdef int md_note_run(MdCodeMap* map, size_t start, size_t length) noexcept nogil:
    """Note a run.

    A text of n bytes has long runs of at most sqrt(2 n) lengths, so moving them is linear.
    """
    cdef size_t i
    if length < MD_RUNS:
        map.runs[length] = start
        return 0
    i = md_find_long_run(map, length)
    if i == map.long_run_count or map.long_runs[i].length != length:
        if map.long_run_count == map.long_run_capacity and array_grow(
            <void**> &map.long_runs, &map.long_run_capacity, map.long_run_count + 1, sizeof(MdLongRun)
        ) < 0:
            return -1
        memmove(map.long_runs + i + 1, map.long_runs + i, (map.long_run_count - i) * sizeof(MdLongRun))
        map.long_run_count += 1
        map.long_runs[i].length = length
    map.long_runs[i].last = start
    return 0


cdef int md_learn_runs(MdInlines* s, size_t p) noexcept nogil:
    """Note the start of the last run of each length, from p on."""
    cdef size_t end
    memset(s.map.runs, 0, sizeof(s.map.runs))
    s.map.long_run_count = 0
    s.missing |= MD_RUNS_KNOWN
    p = md_next_run(s, p)
    while p < s.prose.end:
        end = md_backticks_end(&s.prose, p)
        if md_note_run(s.map, p, end - p) < 0:
            return -1
        p = md_next_run(s, end)
    return 0


cdef bint md_run_comes(const MdInlines* s, size_t p, size_t length) noexcept nogil:
    """Return whether a run of that length starts at p or later, or may do so."""
    cdef size_t i
    if not s.missing & MD_RUNS_KNOWN:
        return True
    if length < MD_RUNS:
        return s.map.runs[length] >= p
    i = md_find_long_run(s.map, length)
    return i < s.map.long_run_count and s.map.long_runs[i].length == length and s.map.long_runs[i].last >= p


cdef int md_read_backticks(MdInlines* s, size_t* p) noexcept nogil:
    """Move past the code span, or else the run of backticks, at p."""
    cdef MdCodeMap* map = s.map
    cdef size_t start = p[0], content = md_backticks_end(&s.prose, start), end, at
    p[0] = content
    if not md_run_comes(s, content, content - start):
        return 0
    at = md_next_run(s, content)
    while at < s.prose.end:
        end = md_backticks_end(&s.prose, at)
        if end - at == content - start:
            p[0] = end
            return md_push_span(&map.spans, &map.count, &map.capacity, start, end, MD_SPAN)
        at = md_next_run(s, end)
    return md_learn_runs(s, content)


# ---- angle brackets (sections 6.5 and 6.6) --------------------------------------

cdef size_t md_find_ending(MdInlines* s, size_t p, Literal what, int none) noexcept nogil:
    """Return the position after the first `what` from p on. If there is none, note it as `none` and return 0."""
    if s.missing & none:
        return 0
    p = md_find(s.prose.text, p, s.prose.end, what)
    if p < s.prose.end:
        return p + what.size
    s.missing |= none
    return 0


cdef size_t md_declaration_end(MdInlines* s, size_t p) noexcept nogil:
    """Like md_find_ending, for a > that is not part of a line's prefix."""
    if s.missing & MD_NO_DECLARATION_END:
        return 0
    while p < s.prose.end:
        if s.prose.text[p] == c'>':
            return p + 1
        p = md_after_line_end(&s.prose, p) if md_is_line_end(s.prose.text[p]) else p + 1
    s.missing |= MD_NO_DECLARATION_END
    return 0


cdef int md_read_less(MdInlines* s, size_t* p) noexcept nogil:
    """Move past the autolink or raw HTML, or else the <, at p."""
    cdef MdCodeMap* map = s.map
    cdef MdProse* prose = &s.prose
    cdef size_t start = p[0], end = 0
    cdef char c = md_peek(prose, start + 1)
    p[0] += 1
    if c == c'?':
        end = md_find_ending(s, start + 2, LIT(b"?>"), MD_NO_INSTRUCTION_END)
    elif c != c'!':
        end = md_autolink_end(prose, start)
        if end == 0:
            if prose.dead == NULL:
                map.dead = prose.dead = <uint64_t*> PyMem_RawCalloc(s.length // 64 + 1, sizeof(uint64_t))
                if prose.dead == NULL:
                    return -1
            end = md_tag_end(prose, start)
    elif md_is_letter(md_peek(prose, start + 2)):
        end = md_declaration_end(s, start + 3)
    elif md_stands_at(prose, start + 2, LIT(b"--")):
        # <!--> and <!---> are comments (0.31); in any other the end comes after the start.
        end = start + 4
        if md_peek(prose, end) == c'-' and md_peek(prose, end + 1) == c'>':
            end += 2
        elif md_peek(prose, end) == c'>':
            end += 1
        else:
            end = md_find_ending(s, end, LIT(b"-->"), MD_NO_COMMENT_END)
        if end and md_push_span(&map.spans, &map.count, &map.capacity, start, end, MD_COMMENT) < 0:
            return -1
    elif md_stands_at(prose, start + 2, LIT(b"[CDATA[")):
        end = md_find_ending(s, start + 9, LIT(b"]]>"), MD_NO_CDATA_END)
    if end:
        p[0] = end
    return 0


# ---- links and images (sections 6.3 and 6.4) ------------------------------------

cdef int md_reference_end(MdInlines* s, const MdOpener* opener, size_t p, size_t* end) noexcept nogil:
    """Find the reference that the ] at p ends. Returns 1: there is one, 0: there is none.

    end: set to the position after it.
    """
    cdef MdProse* prose = &s.prose
    cdef size_t label
    end[0] = p + 1
    if s.map.label_count == 0:
        return 0
    if md_peek(prose, p + 1) == c'[':
        label = md_label_end(prose, p + 1)
        if label:
            end[0] = label
            return md_find_definition(s.map, prose, p + 2, label - 1)
        if md_peek(prose, p + 2) == c']':
            end[0] = p + 3
    if opener.nested or md_label_end(prose, opener.text - 1) != p + 1:
        return 0
    return md_find_definition(s.map, prose, opener.text, p)


cdef int md_open_bracket(MdInlines* s, size_t p, bint image) noexcept nogil:
    cdef MdCodeMap* map = s.map
    cdef MdOpener* opener
    if map.opener_count == map.opener_capacity and array_grow(
        <void**> &map.openers, &map.opener_capacity, map.opener_count + 1, sizeof(MdOpener)
    ) < 0:
        return -1
    if map.opener_count:
        map.openers[map.opener_count - 1].nested = True
    opener = &map.openers[map.opener_count]
    opener.text = p + 1
    opener.image = image
    opener.nested = False
    map.opener_count += 1
    return 0


cdef int md_close_bracket(MdInlines* s, size_t* p) noexcept nogil:
    """Move past the ] at p and, if it ends a link or image, past the rest of that."""
    cdef MdCodeMap* map = s.map
    cdef MdOpener* opener
    cdef size_t end = 0
    cdef int found = 1
    p[0] += 1
    if map.opener_count == 0:
        return 0
    map.opener_count -= 1
    opener = &map.openers[map.opener_count]
    if map.opener_count < s.inactive:
        s.inactive = map.opener_count
        if not opener.image:
            return 0
    if md_peek(&s.prose, p[0]) == c'(':
        end = md_link_tail_end(&s.prose, p[0])
    if end == 0:
        found = md_reference_end(s, opener, p[0] - 1, &end)
    if found > 0:
        p[0] = end
        if not opener.image:
            s.inactive = map.opener_count
    return -1 if found < 0 else 0


# ---- a piece of prose -----------------------------------------------------------

cdef int md_read_prose(MdInlines* s, size_t p) noexcept nogil:
    """Push the spans from p to the prose's end.

    Only the bytes of TAILHOOK_SPECIAL_BYTES (markdown.h) stop here: a rule for another one needs it there.
    """
    cdef MdProse* prose = &s.prose
    cdef const char* text = prose.text
    cdef size_t escaped = p         # a ! before this byte does not start an image
    cdef int result = 0
    s.missing = 0
    s.inactive = 0
    s.map.opener_count = 0
    p = md_next_mark(s.map.marks, MD_SPECIALS, p)
    while p < prose.end:
        if text[p] == c'`':
            result = md_read_backticks(s, &p)
        elif text[p] == c'\\':
            p = escaped = md_after_escape(prose, p)
        elif text[p] == c'<':
            result = md_read_less(s, &p)
        elif text[p] == c'[':
            result = md_open_bracket(s, p, p > escaped and text[p - 1] == c'!')
            p += 1
        else:
            result = md_close_bracket(s, &p)
        if result < 0:
            return -1
        p = md_next_mark(s.map.marks, MD_SPECIALS, p)
    return 0


cdef int md_read_inlines(MdCodeMap* map, const char* text, size_t length, size_t first, size_t last) noexcept nogil:
    """Fill map.spans from map.blocks and from prose in [first, last)."""
    cdef MdInlines s
    cdef size_t i
    cdef MdSpan* block
    cdef int result = 0
    memset(&s, 0, sizeof(s))
    s.map = map
    s.length = length
    s.prose.text = text
    s.prose.lines = map.lines
    s.prose.line_count = map.line_count
    for i in range(map.block_count):
        block = &map.blocks[i]
        if block.kind == MD_PROSE:
            if block.end <= first or block.start >= last:
                continue
            s.prose.end = block.end
            result = md_read_prose(&s, block.start)
        else:
            result = md_push_span(&map.spans, &map.count, &map.capacity, block.start, block.end, block.kind)
        if result < 0:
            break
    return result
