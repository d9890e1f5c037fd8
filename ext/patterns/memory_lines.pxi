# Scores the lines of messages for the memory machine.
#
# Gives: nothing to other parts. For Python: score_lines.
# Needs: md_build_map (markdown/code_map.pxi), match_find (patterns/automaton.pxi), match_hits_sort
# (patterns/matches.pxi), tables.h.
#
# docs/machines/memory.md lists under "Scores" which lines count for a category. The prose of a message is read line by
# line. Of a line only the first place of each keyword is kept. A line is scored when the next line is known. So memory
# does not grow with the number of lines.

cdef enum:
    MEM_CHUNK_BYTES = 1 << 13  # whole lines of at least so many bytes are searched at once
    MEM_RECENT_LINES = MEM_LINES_BEFORE + 1 + MEM_LINES_AFTER  # the lines that one score may depend on


cdef struct MemRange:
    size_t start
    size_t end


cdef struct MemLine:
    MemRange place                # in the prose, without the newline
    size_t number                 # among the message's lines
    MemRange first[MEM_NUMBERS]   # the first keyword of each number; end 0: none
    size_t times[MEM_CATEGORIES]  # primary keywords that count: not negated, and not inside another one


cdef struct MemTally:
    size_t boosted[MEM_CATEGORIES]
    size_t plain[MEM_CATEGORIES]


cdef inline bint mem_is_full(const MemTally* tally, int category) noexcept nogil:
    return tally.boosted[category] == MEM_MAX_BOOSTED and tally.plain[category] == MEM_MAX_PLAIN


cdef bint mem_is_all_full(const MemTally* tally) noexcept nogil:
    cdef int category
    for category in range(MEM_CATEGORIES):
        if not mem_is_full(tally, category):
            return False
    return True


# ---- prose -----------------------------------------------------------------------------

cdef inline bint mem_is_ascii_space(const uint8_t* text, size_t length) noexcept nogil:
    cdef size_t i
    for i in range(length):
        if not (text[i] == c" " or 9 <= text[i] <= 13):
            return False
    return True


cdef size_t mem_copy_prose(const uint8_t* text, size_t length, const MdCodeMap* code, uint8_t* prose) noexcept nogil:
    """Copy a text without its code and return the copy's length.

    Code that fills its lines is left out with them. Other code becomes a space. A line of only such code is left out.
    """
    cdef size_t at = 0
    cdef size_t size = 0
    cdef size_t line = 0        # the start of the current line
    cdef bint has_code = False  # whether that line has code among its words
    cdef size_t i, stop
    cdef const uint8_t* newline
    for i in range(code.count + 1):
        stop = length if i == code.count else code.spans[i].start
        while at < stop:
            newline = <const uint8_t*> memchr(text + at, c"\n", stop - at) if has_code else NULL
            if newline is NULL and has_code:
                memcpy(prose + size, text + at, stop - at)
                size += stop - at
                at = stop
            elif newline is not NULL:
                memcpy(prose + size, text + at, newline - text - at)
                size += newline - text - at
                at = newline - text + 1
                has_code = False
                if mem_is_ascii_space(prose + line, size - line):
                    size = line
                else:
                    prose[size] = c"\n"
                    size += 1
                    line = size
            else:
                memcpy(prose + size, text + at, stop - at)
                newline = os_last_newline(text + at, stop - at)
                if newline is not NULL:
                    line = size + (newline - text - at) + 1
                size += stop - at
                at = stop
        if i == code.count:
            break
        at = code.spans[i].end
        if not mem_fills_lines(text, length, &code.spans[i]):
            prose[size] = c" "
            size += 1
            has_code = True
    if has_code and mem_is_ascii_space(prose + line, size - line):
        size = line
    return size


cdef inline bint mem_fills_lines(const uint8_t* text, size_t length, const MdSpan* span) noexcept nogil:
    """Return whether this code is alone on its lines."""
    if span.start != 0 and text[span.start - 1] != c"\n":
        return False
    return span.end == length or text[span.end - 1] == c"\n"


# ---- one line --------------------------------------------------------------------------

cdef void mem_look_at_line(MemLine* line, const MatchHit* hits, size_t count) noexcept nogil:
    """Note the keywords among the line's sorted hits. Linear in their number."""
    cdef size_t reached[MEM_CATEGORIES]
    cdef const MatchHit* hit
    cdef size_t pending = 0   # the end of the last negation, which may reach into this keyword
    cdef size_t negated = 0   # the end of the last negation before this keyword
    cdef size_t i
    cdef int category
    memset(line.first, 0, sizeof(line.first))
    memset(line.times, 0, sizeof(line.times))
    memset(reached, 0, sizeof(reached))
    for i in range(count):
        hit = &hits[i]
        if line.first[hit.name].end == 0:
            line.first[hit.name] = MemRange(hit.start, hit.end)
        if pending <= hit.start:
            negated = max(negated, pending)
        if hit.name == MEM_NEGATION:
            pending = hit.end
        elif hit.name % 2 == 0 and not (negated and hit.start - negated <= MEM_NEGATION_REACH_BYTES):
            category = hit.name // 2
            line.times[category] += hit.start >= reached[category]
            reached[category] = max(reached[category], hit.end)


# ---- scoring ---------------------------------------------------------------------------

@cython.final
@cython.internal
cdef class MemLineScorer:
    """Scores the lines of one message after another."""
    cdef MemTally tally
    cdef MemLine recent[MEM_RECENT_LINES]  # the n-th line with keywords is recent[n % MEM_RECENT_LINES]
    cdef size_t count                      # lines with keywords in the message so far
    cdef const uint8_t* prose
    cdef bint tuned
    cdef Py_ssize_t message
    cdef list found

    cdef int add_line(self, const MatchHit* hits, size_t hit_count, MemRange place, size_t number) except -1:
        """Add a line with keywords, and score the line whose window ends with it or before it."""
        cdef MemLine* line = &self.recent[self.count % MEM_RECENT_LINES]
        line.place = place
        line.number = number
        mem_look_at_line(line, hits, hit_count)
        self.count += 1
        if self.count > MEM_LINES_AFTER:
            self.score(self.count - 1 - MEM_LINES_AFTER)
        return 0

    cdef int end_message(self) except -1:
        cdef size_t place
        for place in range(self.count - min(self.count, <size_t>MEM_LINES_AFTER), self.count):
            self.score(place)
        self.count = 0
        return 0

    cdef int score(self, size_t place) except -1:
        """Score one line. The lines of its window are in `recent`."""
        cdef const MemLine* line = &self.recent[place % MEM_RECENT_LINES]
        cdef const MemLine* booster
        cdef size_t times, i
        cdef int category
        for category in range(MEM_CATEGORIES):
            if line.times[category] == 0 or mem_is_full(&self.tally, category):
                continue
            booster = self.booster_near(place, 2 * category + 1)
            times = line.times[category] if self.tuned else 1
            for i in range(times):
                if booster is not NULL and self.tally.boosted[category] < MEM_MAX_BOOSTED:
                    self.tally.boosted[category] += 1
                    self.add_found(category, line, booster, True)
                elif self.tally.plain[category] < MEM_MAX_PLAIN:
                    self.tally.plain[category] += 1
                    self.add_found(category, line, booster, False)
                else:
                    break
        return 0

    cdef const MemLine* booster_near(self, size_t place, int number) noexcept:
        """Return the first line of the window that holds this booster, or NULL."""
        cdef const MemLine* line = &self.recent[place % MEM_RECENT_LINES]
        cdef const MemLine* near
        cdef size_t i
        for i in range(place - min(place, <size_t>MEM_LINES_BEFORE), min(place + MEM_LINES_AFTER + 1, self.count)):
            near = &self.recent[i % MEM_RECENT_LINES]
            if near.number + MEM_LINES_BEFORE < line.number or near.number > line.number + MEM_LINES_AFTER:
                continue
            if near.first[number].end != 0:
                return near
        return NULL

    cdef bytes text_at(self, const MemRange* place):
        return PyBytes_FromStringAndSize(<const char*> self.prose + place.start, place.end - place.start)

    cdef int add_found(self, int category, const MemLine* line, const MemLine* booster, bint boosted) except -1:
        cdef bytes near = b"" if booster is NULL else self.text_at(&booster.first[2 * category + 1])
        cdef bytes keyword = self.text_at(&line.first[2 * category])
        self.found.append((category, self.message, self.text_at(&line.place), keyword, near, boosted))
        return 0

    cdef int score_prose(self, const MatchTable* table, size_t length, MatchHits* hits) except -1:
        """Score the lines of the message's prose, a chunk of whole lines at a time."""
        cdef const uint8_t* newline
        cdef MemRange line = MemRange(0, 0)
        cdef size_t counted = 0  # the newlines before it are counted in `number`
        cdef size_t number = 0
        cdef size_t at = 0
        cdef size_t end, i, kept, start
        while at < length and not mem_is_all_full(&self.tally):
            newline = NULL
            if length - at > MEM_CHUNK_BYTES:
                start = at + MEM_CHUNK_BYTES
                newline = <const uint8_t*> memchr(self.prose + start, c"\n", length - start)
            end = length if newline is NULL else newline - self.prose + 1
            hits.count = 0
            if match_find(table, self.prose + at, end - at, True, hits) < 0:
                raise MemoryError
            match_hits_sort(hits)
            i = 0
            while i < hits.count:
                start = at + hits.items[i].start
                number += mem_count_newlines(self.prose + counted, start - counted)
                counted = start
                newline = os_last_newline(self.prose + at, start - at)
                line.start = at if newline is NULL else newline - self.prose + 1
                newline = <const uint8_t*> memchr(self.prose + start, c"\n", end - start)
                line.end = end if newline is NULL else newline - self.prose
                kept = 0
                while i < hits.count and at + hits.items[i].start < line.end:
                    if at + hits.items[i].end <= line.end:  # a phrase must not go over a line end
                        hits.items[kept] = hits.items[i]
                        hits.items[kept].start += at
                        hits.items[kept].end += at
                        kept += 1
                    i += 1
                if kept:
                    self.add_line(hits.items, kept, line, number)
            at = end
        return self.end_message()


cdef inline size_t mem_count_newlines(const uint8_t* text, size_t length) noexcept nogil:
    cdef size_t count = 0
    cdef size_t i
    for i in range(length):
        count += text[i] == c"\n"
    return count


def score_lines(list messages not None, bint tuned=False):
    cdef MemLineScorer scorer = MemLineScorer.__new__(MemLineScorer)
    cdef MatchTable table
    cdef MdCodeMap code
    cdef MatchHits hits = MatchHits(NULL, 0, 0)
    cdef uint8_t* copy = NULL
    cdef size_t length
    cdef const uint8_t* text
    cdef bytes message
    match_table_view(&table, match_keywords_tuned if tuned else match_keywords_seed)
    memset(&code, 0, sizeof(code))
    scorer.tuned = tuned
    scorer.found = []
    try:
        for scorer.message, message in enumerate(messages):
            if mem_is_all_full(&scorer.tally):
                break
            text, length = <const uint8_t*> PyBytes_AS_STRING(message), PyBytes_GET_SIZE(message)
            if md_build_map(&code, <const char*> text, length, 0, length) < 0:
                raise MemoryError
            scorer.prose = text
            if code.count:
                PyMem_RawFree(copy)
                copy = <uint8_t*> PyMem_RawMalloc(length)  # code that becomes a space had at least one byte
                if copy is NULL:
                    raise MemoryError
                length = mem_copy_prose(text, length, &code, copy)
                scorer.prose = copy
            scorer.score_prose(&table, length, &hits)
        return scorer.found
    finally:
        PyMem_RawFree(copy)
        match_hits_free(&hits)
        md_free_map(&code)
