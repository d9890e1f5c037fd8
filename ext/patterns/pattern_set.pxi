# A compiled set of patterns, for Python.
#
# Gives: match_table_hits. For Python: Automaton.
# Needs: match_find, match_table_is_sound (patterns/automaton.pxi), match_find_counting (patterns/matches.pxi),
# Utf8View and utf8_open (text/view.pxi), tuple_new (named_tuple.pxi).

cdef list match_table_hits(const MatchTable* table, bytes text, bint prefiltered):
    """Return (number, start, end) of each hit, unsorted."""
    cdef MatchHits hits = MatchHits(NULL, 0, 0)
    cdef const uint8_t* data = <const uint8_t*> PyBytes_AS_STRING(text)
    cdef size_t length = PyBytes_GET_SIZE(text)
    cdef size_t i
    cdef int failed
    try:
        with nogil:
            failed = match_find(table, data, length, prefiltered, &hits)
        if failed:
            raise MemoryError
        return [(hits.items[i].name, hits.items[i].start, hits.items[i].end) for i in range(hits.count)]
    finally:
        match_hits_free(&hits)


cdef class Automaton:
    cdef MatchTable table
    cdef readonly bytes data
    cdef readonly tuple names

    def __cinit__(self, bytes data not None, tuple names not None):
        cdef const uint32_t* words = <const uint32_t*> PyBytes_AS_STRING(data)
        if len(data) % 4 or not match_table_is_sound(words, len(data) // 4, <uint32_t> len(names)):
            raise ValueError("not a table of tailhook.patterns.automaton.compile_table for these names")
        self.data = data
        self.names = names
        match_table_view(&self.table, words)

    def hits(self, bytes text not None, bint prefiltered=True):
        return match_table_hits(&self.table, text, prefiltered)

    def has_hit(self, bytes text not None, bint prefiltered=True):
        cdef const uint8_t* data = <const uint8_t*> PyBytes_AS_STRING(text)
        cdef size_t length = PyBytes_GET_SIZE(text)
        cdef bint found
        with nogil:
            found = match_find(&self.table, data, length, prefiltered, NULL)
        return found

    def findall(self, source, bint own_line, bint outside_code, type cls not None):
        cdef Utf8View text
        cdef MatchHits hits = MatchHits(NULL, 0, 0)
        cdef MatchHit* hit
        cdef size_t i, start, end
        cdef size_t byte = 0
        cdef size_t character = 0
        cdef int failed
        cdef list found = []
        tuple_require(cls)
        _owner = utf8_open(source, &text)
        try:
            with nogil:
                failed = match_find_counting(&self.table, text.data, text.length, own_line, outside_code, &hits)
            if failed:
                raise MemoryError
            for i in range(hits.count):
                hit = &hits.items[i]
                start, end = hit.start, hit.end
                if not text.in_bytes:
                    character += utf8_count(text.data + byte, text.data + hit.start)
                    byte = hit.start
                    start, end = character, character + utf8_count(text.data + hit.start, text.data + hit.end)
                match = tuple_new(cls, 5)
                tuple_set(match, 0, self.names[hit.name])
                tuple_set(match, 1, start)
                tuple_set(match, 2, end)
                tuple_set(match, 3, hit.line)
                tuple_set(match, 4, hit.in_code)
                found.append(match)
            return found
        finally:
            match_hits_free(&hits)
