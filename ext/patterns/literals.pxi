cdef enum:
    OPENING_TAG = 0  # machines/ralph.py, TAGS


def signals(source):
    cdef Text text
    cdef tailhook_table table
    cdef Hits hits = Hits(NULL, 0, 0)
    cdef size_t i
    cdef int failed
    cdef PyThreadState* thread = PyThreadState_Get()
    _owner = text_open(source, &text)
    tailhook_table_view(&table, tailhook_signals)
    try:
        with nogil:
            failed = patterns_find(&table, text.data, text.length, True, True, &hits, thread)
        if failed:
            raise MemoryError
        return [tailhook_signals_names[hits.items[i].name].decode() for i in range(hits.count)]
    finally:
        hits_free(&hits)


def keywords(bytes text not None, bint tuned=False):
    cdef tailhook_table table
    tailhook_table_view(&table, tailhook_keywords_tuned if tuned else tailhook_keywords_seed)
    return table_hits(&table, text, True)


def promises(source, bint own_line=False):
    cdef Text text
    cdef tailhook_table table
    cdef Hits tags = Hits(NULL, 0, 0)
    cdef Hit* opening = NULL
    cdef Hit* tag
    cdef Place lines
    cdef size_t i
    cdef int failed
    cdef list found = []
    cdef PyThreadState* thread = PyThreadState_Get()
    _owner = text_open(source, &text)
    tailhook_table_view(&table, tailhook_promise_tags)
    lines = Place(text.data, text.length, 0, 1, 0, 0, 1, 0)
    try:
        with nogil:
            failed = patterns_find(&table, text.data, text.length, False, True, &tags, thread)
        if failed:
            raise MemoryError
        for i in range(tags.count):
            tag = &tags.items[i]
            if tag.name == OPENING_TAG:
                opening = tag
            elif opening:
                lines_advance(&lines, opening.start)
                if not own_line or stands_alone(&lines, opening.start, tag.end):
                    found.append(text.data[opening.end:tag.start].decode("utf-8", "replace"))
                opening = NULL
        return found
    finally:
        hits_free(&tags)
