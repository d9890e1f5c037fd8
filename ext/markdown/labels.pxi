# Link labels, in their form for comparison (CommonMark 0.31.2, section 6.3).
#
# Gives: md_find_definition.
# Needs: MdCodeMap, MdLabel (markdown/code_map.pxi), the grammar (markdown/grammar.pxi), the pairs of case folding
# (tables.h, as Python has them), array_grow (array.pxi), utf8_sequence, utf8_decode (text/utf8.h).
#
# White space is one space, and case is folded, also of characters of several bytes. Bytes that are not UTF-8 stay as
# they are. The labels of the definitions are written in this form, and sorted, when the first label is looked up.

cdef const MdFolding* md_folding_of(uint32_t character) noexcept nogil:
    """Return the folded form of a character of several bytes, or NULL if it stays as it is."""
    cdef size_t low = 0, high = MD_FOLDINGS, middle
    while low < high:
        middle = (low + high) // 2
        if md_foldings[middle].character < character:
            low = middle + 1
        else:
            high = middle
    return &md_foldings[low] if low < MD_FOLDINGS and md_foldings[low].character == character else NULL


cdef int md_fold_label(MdProse* prose, size_t p, size_t end, MdFolded* folded) noexcept nogil:
    """Add the label text[p:end) to the folded ones."""
    cdef const uint8_t* text = <const uint8_t*> prose.text
    cdef const MdFolding* folding
    cdef uint8_t* to
    cdef size_t first = folded.size, width
    cdef size_t room = folded.size + MD_MAX_FOLDED * (end - p)
    if folded.capacity < room and array_grow(<void**> &folded.data, &folded.capacity, room, 1) < 0:
        return -1
    to = folded.data + first
    p = md_skip_white_space(prose, p)
    while p < end:
        if md_is_space_or_tab(prose.text[p]) or md_is_line_end(prose.text[p]):
            p = md_skip_white_space(prose, p)
            if p < end:
                to[0] = c' '
                to += 1
            continue
        if text[p] < 0x80:
            to[0] = text[p] + 32 if c'A' <= text[p] <= c'Z' else text[p]
            to += 1
            p += 1
            continue
        width = utf8_sequence(text + p, text + end, False)
        folding = md_folding_of(utf8_decode(text + p, width)) if width else NULL
        if folding != NULL:
            memcpy(to, folding.folded, folding.size)
            to += folding.size
        else:
            memcpy(to, text + p, max(width, <size_t> 1))
            to += max(width, <size_t> 1)
        p += max(width, <size_t> 1)
    folded.size = to - folded.data
    return 0


cdef int md_order_labels(const void* first, const void* second) noexcept nogil:
    cdef const MdLabel* a = <const MdLabel*> first
    cdef const MdLabel* b = <const MdLabel*> second
    cdef int order = memcmp(a.text, b.text, min(a.size, b.size))
    return order if order else (a.size > b.size) - (a.size < b.size)


cdef int md_fold_definitions(MdCodeMap* map, const MdProse* part) noexcept nogil:
    """Fill map.defined with the labels of the definitions, sorted.

    part: any prose of the text, for the text itself and its lines.
    """
    cdef MdProse prose = part[0]
    cdef const uint8_t* text
    cdef size_t i, before = 0
    if map.defined_capacity < map.label_count and array_grow(
        <void**> &map.defined, &map.defined_capacity, map.label_count, sizeof(MdLabel)
    ) < 0:
        return -1
    map.folded.size = 0
    prose.end = map.labels[map.label_count - 1].end
    prose.line = 0
    for i in range(map.label_count):
        if md_fold_label(&prose, map.labels[i].start, map.labels[i].end, &map.folded) < 0:
            return -1
        map.defined[i].size = map.folded.size - before
        before = map.folded.size
    text = map.folded.data
    for i in range(map.label_count):
        map.defined[i].text = text
        text += map.defined[i].size
    qsort(map.defined, map.label_count, sizeof(MdLabel), md_order_labels)
    map.defined_count = map.label_count
    return 0


cdef int md_find_definition(MdCodeMap* map, MdProse* prose, size_t p, size_t end) noexcept nogil:
    """Look a label up. Returns 1 if text[p:end) is the label of a definition, 0 if not, -1 without memory.

    There are definitions. The first call fills map.defined, and each call map.wanted.
    """
    cdef MdLabel wanted
    if map.defined_count == 0 and md_fold_definitions(map, prose) < 0:
        return -1
    map.wanted.size = 0
    if md_fold_label(prose, p, end, &map.wanted) < 0:
        return -1
    wanted = MdLabel(map.wanted.data, map.wanted.size)
    return bsearch(&wanted, map.defined, map.defined_count, sizeof(MdLabel), md_order_labels) != NULL
