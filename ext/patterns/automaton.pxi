# Finds many patterns at once: an automaton over one table, with a prefilter.
#
# Gives: MatchHit, MatchHits, match_hits_free; match_find; MatchRun, match_run_from; match_table_is_sound.
# For Python: see pattern_set.pxi.
# Needs: patterns/automaton.h, patterns/prefilter.h, utf8_char_at and utf8_char_before (text/utf8.pxi), array_grow
# (array.pxi).

# ---- word boundaries and white space -----------------------------------------
#
# Letters, digits and white space are as in `re` and `str`: CPython's tables define them. Reading the tables needs no
# interpreter lock. A byte that is not part of a UTF-8 sequence belongs to no class.

cdef inline bint match_is_word_character(uint32_t character) noexcept nogil:
    return Py_UNICODE_ISALNUM(character) or character == c"_"


cdef inline bint match_is_boundary(const uint8_t* text, size_t length, size_t at) noexcept nogil:
    """Return whether a word begins or ends at `at`, like `\\b` of `re`."""
    cdef size_t width
    cdef bint before = at > 0 and match_is_word_character(utf8_char_before(text, at, &width))
    cdef bint after = at < length and match_is_word_character(utf8_char_at(text, length, at, &width))
    return before != after


cdef inline size_t match_skip_unicode_space(const uint8_t* text, size_t length, size_t at) noexcept nogil:
    """Return the end of the white space (str.isspace) that begins at `at`."""
    cdef size_t width
    while at < length and Py_UNICODE_ISSPACE(utf8_char_at(text, length, at, &width)):
        at += width
    return at


cdef inline size_t match_skip_unicode_space_back(const uint8_t* text, size_t at) noexcept nogil:
    """Return the start of the white space that ends at `at`."""
    cdef size_t width
    while at > 0 and Py_UNICODE_ISSPACE(utf8_char_before(text, at, &width)):
        at -= width
    return at


# ---- the rest of a pattern ---------------------------------------------------------
#
# The automaton finds a part of a pattern, its anchor. The parts before and behind it are compared here. In these a
# letter may have another length in the text (U+0130, U+0131, U+017F and U+212A are i, i, s and k), and one space
# stands for any run of white space.

cdef inline size_t match_spelled_at(uint8_t wanted, const uint8_t* text, size_t length, bint fold) noexcept nogil:
    """Return how many bytes at the start of `text` stand for `wanted`, a byte of a pattern, or 0."""
    cdef uint8_t byte
    if length == 0:
        return 0
    byte = text[0]
    if byte == wanted:
        return 1
    if not fold:
        return 0
    if c"A" <= byte <= c"Z":
        return byte + 32 == wanted
    if wanted == c"i":
        return 2 if length >= 2 and byte == 0xC4 and (text[1] == 0xB0 or text[1] == 0xB1) else 0
    if wanted == c"s":
        return 2 if length >= 2 and byte == 0xC5 and text[1] == 0xBF else 0
    if wanted == c"k":
        return 3 if length >= 3 and byte == 0xE2 and text[1] == 0x84 and text[2] == 0xAA else 0
    return 0


cdef inline size_t match_spelled_before(uint8_t wanted, const uint8_t* text, size_t at, bint fold) noexcept nogil:
    """Return how many bytes before `at` stand for `wanted`, or 0."""
    cdef size_t back
    for back in range(1, min(at, <size_t> (3 if fold else 1)) + 1):
        if match_spelled_at(wanted, text + at - back, back, fold) == back:
            return back
    return 0


cdef bint match_extend(
    const MatchTable* table, const MatchPattern* pattern, const uint8_t* text, size_t length,
    size_t* start, size_t* end,
) noexcept nogil:
    """Return whether the text around an anchor is the pattern's. start, end: widened to all of it."""
    cdef const uint8_t* wanted = table.texts + pattern.text
    cdef bint fold = table.head.fold
    cdef bint word = table.head.word
    cdef size_t i, more
    for i in range(pattern.anchor_start):
        if word and wanted[pattern.anchor_start - 1 - i] == c" ":
            more = start[0] - match_skip_unicode_space_back(text, start[0])
        else:
            more = match_spelled_before(wanted[pattern.anchor_start - 1 - i], text, start[0], fold)
        if more == 0:
            return False
        start[0] -= more
    for i in range(pattern.anchor_end, pattern.length):
        if word and wanted[i] == c" ":
            more = match_skip_unicode_space(text, length, end[0]) - end[0]
        else:
            more = match_spelled_at(wanted[i], text + end[0], length - end[0], fold)
        if more == 0:
            return False
        end[0] += more
    return not word or (match_is_boundary(text, length, start[0]) and match_is_boundary(text, length, end[0]))


# ---- the automaton -----------------------------------------------------------------
#
# The automaton runs over all of a text, or around the places that the prefilter reports. It starts at the first
# possible byte of a literal with its window at that place, and stops when no partial match from before the window is
# left. Both ways find the same matches.

cdef struct MatchHit:
    size_t start
    size_t end
    size_t line          # from 1; set by match_find_counting
    uint32_t name
    bint in_code         # set by match_find_counting


cdef struct MatchHits:
    MatchHit* items
    size_t count
    size_t capacity


cdef struct MatchRun:
    const MatchTable* table
    const uint8_t* text
    size_t length
    size_t position      # the bytes before it are done
    size_t state         # the first cell of its row
    MatchHits* hits      # NULL: it is enough to know whether there is a match


ctypedef fused MatchCell:
    uint16_t
    uint32_t


cdef int match_hits_add(MatchHits* hits, size_t start, size_t end, uint32_t name) noexcept nogil:
    if hits.count == hits.capacity and array_grow(
        <void**> &hits.items, &hits.capacity, hits.count + 1, sizeof(MatchHit)
    ) < 0:
        return -1
    hits.items[hits.count] = MatchHit(start, end, 0, name, False)
    hits.count += 1
    return 0


cdef inline void match_hits_free(MatchHits* hits) noexcept nogil:
    PyMem_RawFree(hits.items)
    hits.items = NULL
    hits.count = hits.capacity = 0


cdef int match_run_report(MatchRun* run, uint32_t output) noexcept nogil:
    """Add the patterns that end here. Returns 1 if one ends here and that is enough."""
    cdef const MatchTable* table = run.table
    cdef const MatchOutput* found
    cdef const MatchPattern* pattern
    cdef size_t start, end
    while output:
        found = &table.outputs[output - 1]
        pattern = &table.patterns[found.pattern]
        end = run.position
        start = end - found.length
        if match_extend(table, pattern, run.text, run.length, &start, &end):
            if run.hits == NULL:
                return 1
            if match_hits_add(run.hits, start, end, pattern.name) < 0:
                return -1
        output = found.next
    return 0


cdef inline int match_run_over(MatchRun* run, const MatchCell* cells, size_t window) noexcept nogil:
    """Run until no prefix that began at `window` or before it is left. Returns what `match_run_report` does."""
    cdef const uint8_t* classes = run.table.classes
    cdef int ended
    cdef size_t stride = run.table.head.stride
    cdef size_t state = run.state
    cdef size_t position = run.position
    while position < run.length and position <= window + cells[state + stride - 2]:
        state = cells[state + classes[run.text[position]]]
        position += 1
        if cells[state + stride - 1]:
            run.position = position
            ended = match_run_report(run, cells[state + stride - 1])
            if ended:
                return ended
    run.state, run.position = state, position
    return 0


cdef inline int match_run_from(MatchRun* run, size_t start, size_t window) noexcept nogil:
    """Find patterns with their window at `window` that begin at `start` or later.

    Returns what `match_run_report` does.
    """
    if start > run.position:
        run.position, run.state = start, 0
    if run.table.head.wide:
        return match_run_over(run, <const uint32_t*> run.table.cells, window)
    return match_run_over(run, <const uint16_t*> run.table.cells, window)


cdef int match_find(
    const MatchTable* table, const uint8_t* text, size_t length, bint prefiltered, MatchHits* hits
) noexcept nogil:
    """Add all matches in the order of their anchors' ends.

    prefiltered: False runs the automaton over the whole text: slower, with the same matches.
    hits: NULL to stop at the first match. Then it returns 1 if there is one, and otherwise 0.
    """
    cdef MatchRun run = MatchRun(table, text, length, 0, 0, hits)
    cdef size_t reach = table.head.reach
    cdef size_t window
    cdef int ended
    cdef MatchPrefilter way
    cdef MatchBlock block
    way.table, way.text, way.length = table, text, length
    way.at = way.count = way.next = 0
    if prefiltered and match_has_prefilter(table):
        while match_prefilter_next(&way, &block):
            while block.places:
                window = block.at + __builtin_ctzll(block.places)
                block.places &= block.places - 1
                ended = match_run_from(&run, window - min(window, reach), window)
                if ended:
                    return ended
    return match_run_from(&run, way.at - min(way.at, reach), length)


# ---- opening a table ---------------------------------------------------------------
#
# Tables made by the build are trusted. A table given as bytes is checked once as a whole: afterwards no index in it can
# lead out of it.

cdef inline bint match_cells_are_sound(const MatchTable* table, const MatchCell* cells) noexcept nogil:
    """Return whether each step leads to a row at most one byte deeper, with outputs no longer than its depth."""
    cdef size_t stride = table.head.stride
    cdef size_t row, state, column, depth, target
    if cells[stride - 2] != 0:
        return False
    for row in range(table.head.cells // stride):
        state = row * stride
        depth = cells[state + stride - 2]
        for column in range(stride - MATCH_NO_CLASS):
            target = cells[state + column]
            if target >= table.head.cells or target % stride or cells[target + stride - 2] > depth + 1:
                return False
        target = cells[state + stride - 1]
        if target > table.head.outputs or (target and table.outputs[target - 1].length > depth):
            return False
    return True


cdef bint match_table_is_sound(const uint32_t* words, size_t count, uint32_t names) noexcept nogil:
    cdef MatchTable table
    cdef const MatchTableHead* head = <const MatchTableHead*> words
    cdef const MatchPattern* pattern
    cdef const MatchOutput* output
    cdef size_t i
    if count < sizeof(MatchTableHead) // 4 or head.magic != MATCH_TABLE_MAGIC or head.words != count:
        return False
    if match_table_view(&table, words) != count or head.texts % 4:
        return False
    if head.groups > MATCH_GROUPS:
        return False
    if head.stride <= MATCH_NO_CLASS or head.cells < head.stride or head.cells % head.stride:
        return False
    for i in range(256):
        if table.classes[i] >= head.stride - MATCH_NO_CLASS:
            return False
    for i in range(<size_t> 1 << MATCH_HASH_BITS):
        if table.slots[i] >= head.checks:
            return False
    for i in range(head.checks):
        if table.checks[i].back > MATCH_CHECK_BACK:
            return False
    for i in range(head.patterns):
        pattern = &table.patterns[i]
        if pattern.text > head.texts or pattern.length > head.texts - pattern.text or pattern.name >= names:
            return False
        if pattern.anchor_start > pattern.anchor_end or pattern.anchor_end > pattern.length:
            return False
    for i in range(head.outputs):
        output = &table.outputs[i]
        if output.next > i or output.pattern >= head.patterns or output.length == 0:
            return False
        if output.next and table.outputs[output.next - 1].length > output.length:
            return False
    if head.wide:
        return match_cells_are_sound(&table, <const uint32_t*> table.cells)
    return match_cells_are_sound(&table, <const uint16_t*> table.cells)
