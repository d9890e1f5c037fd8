# ---- stand-in for the Markdown code map (thrown away at the merge) -----------
#
# Knows backtick spans of one backtick within one line, and nothing else.

cdef struct CodeSpan:
    size_t start
    size_t end
    int kind


cdef struct CodeMap:
    CodeSpan* spans
    size_t count
    size_t capacity


cdef int code_map_build(CodeMap* map, const char* text, size_t length) noexcept nogil:
    cdef size_t at, opened = 0
    cdef bint inside = False
    cdef CodeSpan* grown
    map.spans = NULL
    map.count = map.capacity = 0
    for at in range(length):
        if text[at] == 10:
            inside = False
        elif text[at] == 96:
            if inside:
                if map.count == map.capacity:
                    map.capacity = 2 * map.capacity + 8
                    grown = <CodeSpan*> realloc(map.spans, map.capacity * sizeof(CodeSpan))
                    if grown is NULL:
                        return -1
                    map.spans = grown
                map.spans[map.count] = CodeSpan(opened, at + 1, 0)
                map.count += 1
            opened = at
            inside = not inside
    return 0


cdef void code_map_free(CodeMap* map) noexcept nogil:
    free(map.spans)
    map.spans = NULL
