# ---- letters around a place ------------------------------------------------------
#
# What is a letter, a digit or blank space is CPython's own table, so that it is
# what `re` and `str` say; it needs no interpreter lock. A byte that is no part
# of a UTF-8 sequence is neither. Surrogates are taken as they are: a str may
# hold them.


cdef inline bint match_is_word_character(uint32_t character) noexcept nogil:
    return Py_UNICODE_ISALNUM(character) or character == c"_"


cdef inline bint match_is_boundary(const uint8_t* text, size_t length, size_t at) noexcept nogil:
    """Does a word begin or end at `at`, as `\\b` of `re` has it?"""
    cdef size_t width
    cdef bint before = at > 0 and match_is_word_character(utf8_char_before(text, at, &width))
    cdef bint after = at < length and match_is_word_character(utf8_char_at(text, length, at, &width))
    return before != after


cdef inline size_t match_skip_unicode_space(const uint8_t* text, size_t length, size_t at) noexcept nogil:
    """The end of the blank space that begins at `at`."""
    cdef size_t width
    while at < length and Py_UNICODE_ISSPACE(utf8_char_at(text, length, at, &width)):
        at += width
    return at


cdef inline size_t match_skip_unicode_space_back(const uint8_t* text, size_t at) noexcept nogil:
    """The start of the blank space that ends at `at`."""
    cdef size_t width
    while at > 0 and Py_UNICODE_ISSPACE(utf8_char_before(text, at, &width)):
        at -= width
    return at


# ---- the rest of a pattern ---------------------------------------------------------
#
# The automaton has found a pattern's anchor. What stands before and behind it in
# the pattern is compared here, because there a letter may have another length in
# the text (U+0130, U+0131, U+017F and U+212A are i, i, s and k), and one space
# stands for any run of blank space.

cdef inline size_t match_spelled_at(uint8_t wanted, const uint8_t* text, size_t length, bint fold) noexcept nogil:
    """How many bytes of `text` are `wanted`, a byte of a pattern: 0 if none are."""
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
    """How many bytes before `at` are `wanted`: 0 if none are."""
    cdef size_t back
    for back in range(1, min(at, <size_t> (3 if fold else 1)) + 1):
        if match_spelled_at(wanted, text + at - back, back, fold) == back:
            return back
    return 0


cdef bint match_extend(
    const MatchTable* table, const MatchPattern* pattern, const uint8_t* text, size_t length,
    size_t* start, size_t* end,
) noexcept nogil:
    """Is the text around an anchor that of the pattern? Widens `start` and `end` to all of it."""
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
# Either it runs over all of a text, or over the neighbourhoods that the prefilter
# names: from the farthest start of a literal whose window may be there, until no
# prefix that began before the window is alive. Both find the same.

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
    size_t position      # what is before it is done
    size_t state         # the first cell of its row
    MatchHits* hits


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
    """Add what ends here. 0, or -1: no memory."""
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
            if match_hits_add(run.hits, start, end, pattern.name) < 0:
                return -1
        output = found.next
    return 0


cdef inline int match_run_over(MatchRun* run, const MatchCell* cells, size_t window) noexcept nogil:
    """Run on until nothing that began at `window` or before it is alive. 0, or -1: no memory."""
    cdef const uint8_t* classes = run.table.classes
    cdef size_t stride = run.table.head.stride
    cdef size_t state = run.state
    cdef size_t position = run.position
    while position < run.length and position <= window + cells[state + stride - 2]:
        state = cells[state + classes[run.text[position]]]
        position += 1
        if cells[state + stride - 1]:
            run.position = position
            if match_run_report(run, cells[state + stride - 1]) < 0:
                return -1
    run.state, run.position = state, position
    return 0


cdef inline int match_run_from(MatchRun* run, size_t start, size_t window) noexcept nogil:
    """Find what has a window at `window`, for which nothing before `start` matters. 0, or -1: no memory."""
    if start > run.position:
        run.position, run.state = start, 0
    if run.table.head.wide:
        return match_run_over(run, <const uint32_t*> run.table.cells, window)
    return match_run_over(run, <const uint16_t*> run.table.cells, window)


cdef int match_find(
    const MatchTable* table, const uint8_t* text, size_t length, bint prefiltered, MatchHits* hits
) noexcept nogil:
    """Add all matches in the order of their anchors' ends. 0, or -1: no memory.

    `prefiltered` False: by the automaton alone, which is slower and finds the same.
    """
    cdef MatchRun run = MatchRun(table, text, length, 0, 0, hits)
    cdef size_t reach = table.head.reach
    cdef size_t window
    cdef MatchPrefilter way
    cdef MatchBlock block
    way.table, way.text, way.length = table, text, length
    way.at = way.count = way.next = 0
    if prefiltered and match_has_prefilter(table):
        while match_prefilter_next(&way, &block):
            while block.places:
                window = block.at + __builtin_ctzll(block.places)
                block.places &= block.places - 1
                if match_run_from(&run, window - min(window, reach), window) < 0:
                    return -1
    return match_run_from(&run, way.at - min(way.at, reach), length)


# ---- opening a table ---------------------------------------------------------------
#
# Built-in tables are the build's and are trusted. A table that comes in as bytes
# is checked whole, once: what it says can never lead out of it afterwards.

cdef inline bint match_cells_are_sound(const MatchTable* table, const MatchCell* cells) noexcept nogil:
    """Does each step lead to a row, one byte deeper at most, whose outputs are no longer than it is deep?"""
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
