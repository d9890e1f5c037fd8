cdef list table_hits(const tailhook_table* table, bytes text, bint prefiltered):
    """(number, start, end) of each hit, unsorted."""
    cdef Hits hits = Hits(NULL, 0, 0)
    cdef const uint8_t* data = <const uint8_t*> PyBytes_AS_STRING(text)
    cdef size_t length = PyBytes_GET_SIZE(text)
    cdef size_t i
    cdef int failed
    try:
        with nogil:
            failed = automaton_find(table, data, length, prefiltered, &hits)
        if failed:
            raise MemoryError
        return [(hits.items[i].name, hits.items[i].start, hits.items[i].end) for i in range(hits.count)]
    finally:
        hits_free(&hits)


cdef class Automaton:
    cdef tailhook_table table
    cdef readonly bytes data
    cdef readonly tuple names

    def __cinit__(self, bytes data not None, tuple names not None):
        cdef const uint32_t* words = <const uint32_t*> PyBytes_AS_STRING(data)
        if len(data) % 4 or not table_is_sound(words, len(data) // 4, <uint32_t> len(names)):
            raise ValueError("not a table of tailhook.automaton.compile_table for these names")
        self.data = data
        self.names = names
        tailhook_table_view(&self.table, words)

    def hits(self, bytes text not None, bint prefiltered=True):
        return table_hits(&self.table, text, prefiltered)

    def findall(self, source, bint own_line, bint outside_code, type cls not None):
        cdef Text text
        cdef Hits hits = Hits(NULL, 0, 0)
        cdef Hit* hit
        cdef size_t i, start, end
        cdef size_t byte = 0
        cdef size_t character = 0
        cdef int failed
        cdef list found = []
        cdef PyThreadState* thread = PyThreadState_Get()
        require_named_tuple(cls)
        _owner = text_open(source, &text)
        try:
            with nogil:
                failed = patterns_find(&self.table, text.data, text.length, own_line, outside_code, &hits, thread)
            if failed:
                raise MemoryError
            for i in range(hits.count):
                hit = &hits.items[i]
                start, end = hit.start, hit.end
                if not text.in_bytes:
                    character += count_characters(text.data, byte, hit.start)
                    byte = hit.start
                    start, end = character, character + count_characters(text.data, hit.start, hit.end)
                match = new_named_tuple(cls, 5)
                set_item(match, 0, self.names[hit.name])
                set_item(match, 1, start)
                set_item(match, 2, end)
                set_item(match, 3, hit.line)
                set_item(match, 4, hit.in_code)
                found.append(match)
            return found
        finally:
            hits_free(&hits)
