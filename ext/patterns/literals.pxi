# The literals of the machines: signals (idle), promises (ralph) and keywords (memory).
#
# Gives: nothing to other parts. For Python: signals, keywords, promises.
# Needs: tables.h, match_find_counting (patterns/matches.pxi), match_table_hits (patterns/pattern_set.pxi),
# MatchHits (patterns/automaton.pxi), Utf8View and utf8_open (text/view.pxi).
#
# The literals are in src/tailhook/machines/. tables.py compiles them into constant tables at each build.

cdef enum:
    MATCH_OPENING_TAG = 0  # number of the opening tag in machines/ralph.py, TAGS


def signals(source):
    cdef Utf8View text
    cdef MatchTable table
    cdef MatchHits hits = MatchHits(NULL, 0, 0)
    cdef size_t i
    cdef int failed
    _owner = utf8_open(source, &text)
    match_table_view(&table, match_signals)
    try:
        with nogil:
            failed = match_find_counting(&table, text.data, text.length, True, True, &hits)
        if failed:
            raise MemoryError
        return [match_signal_names[hits.items[i].name].decode() for i in range(hits.count)]
    finally:
        match_hits_free(&hits)


def keywords(bytes text not None, bint tuned=False):
    cdef MatchTable table
    match_table_view(&table, match_keywords_tuned if tuned else match_keywords_seed)
    return match_table_hits(&table, text, True)


def promises(source, bint own_line=False):
    cdef Utf8View text
    cdef MatchTable table
    cdef MatchHits tags = MatchHits(NULL, 0, 0)
    cdef MatchHit* opening = NULL
    cdef MatchHit* tag
    cdef MatchLines lines
    cdef size_t i
    cdef int failed
    cdef list found = []
    cdef Py_ssize_t start, size
    cdef Py_ssize_t last_start = 0  # of the promise before
    cdef Py_ssize_t last_size = -1
    _owner = utf8_open(source, &text)
    match_table_view(&table, match_promise_tags)
    lines = MatchLines(text.data, text.length, 0, 1, 0, 0, 1, 0)
    try:
        with nogil:
            failed = match_find_counting(&table, text.data, text.length, False, True, &tags)
        if failed:
            raise MemoryError
        for i in range(tags.count):
            tag = &tags.items[i]
            if tag.name == MATCH_OPENING_TAG:
                opening = tag
            elif opening:
                match_lines_advance(&lines, opening.start)
                if not own_line or match_note_margins(&lines, opening.start, tag.end):
                    start = opening.end
                    size = <Py_ssize_t>tag.start - start
                    if size != last_size or memcmp(text.data + start, text.data + last_start, size) != 0:
                        found.append(text.data[start:start + size].decode("utf-8", "replace"))
                    last_start = start
                    last_size = size
                opening = NULL
        return found
    finally:
        match_hits_free(&tags)
