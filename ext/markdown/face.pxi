# ---- the Markdown code map, for Python ------------------------------------------


cdef list spans_as(type cls, const CodeMap* map):
    cdef tuple kinds = ("fence", "indented", "span", "comment", "raw")
    cdef list spans = PyList_New(<Py_ssize_t> map.count)
    cdef object span
    cdef size_t i
    for i in range(map.count):
        span = new_named_tuple(cls, 3)
        set_item(span, 0, <object> PyTuple_GET_ITEM(kinds, map.spans[i].kind))
        set_item(span, 1, map.spans[i].start)
        set_item(span, 2, map.spans[i].end)
        Py_INCREF(span)
        PyList_SET_ITEM(spans, <Py_ssize_t> i, span)
    return spans


def code_spans(markdown, type cls not None):
    cdef CodeMap map
    cdef Text text
    cdef int result
    require_named_tuple(cls)
    _owner = text_open(markdown, &text)
    memset(&map, 0, sizeof(map))
    map.thread = PyThreadState_Get()
    try:
        with nogil:
            result = code_map_build(&map, <const char*> text.data, text.length, 0, text.length)
            if result == 0 and not text.in_bytes:
                tailhook_spans_to_code_points(<const char*> text.data, text.length, map.spans, map.count)
        if result < 0:
            raise MemoryError
        return spans_as(cls, &map)
    finally:
        code_map_free(&map)
