# ---- the memory machine's lines ------------------------------------------------------
#
# Gives: score_lines, for Python.
# Needs: code_map_build (markdown.pxi), automaton_find and hits_sort (automaton.pxi, patterns.pxi), tables.h.
#
# Which lines of the messages count for a category, as docs/machines/memory.md says under "Scores". The prose of a
# message is looked at line by line. Of a line no more is kept than where each keyword stands first, and a line is
# scored when the one after it is known, so that memory does not grow with the number of lines.


cdef enum:
    CHUNK_BYTES = 1 << 13                           # whole lines of it are searched at once
    RECENT_LINES = LINES_BEFORE + 1 + LINES_AFTER   # that the score of one may depend on


cdef struct Stretch:
    size_t start
    size_t end


cdef struct LineFacts:
    Stretch place              # in the prose, without the newline
    size_t number              # among the message's lines
    Stretch first[NUMBERS]     # the first keyword of each number; end 0: none
    size_t times[CATEGORIES]   # how many primary keywords count: no negation before them, not inside another one


cdef struct Tally:
    size_t boosted[CATEGORIES]
    size_t plain[CATEGORIES]


cdef inline bint is_full(const Tally* tally, int category) noexcept nogil:
    return tally.boosted[category] == MAX_BOOSTED and tally.plain[category] == MAX_PLAIN


cdef bint is_all_full(const Tally* tally) noexcept nogil:
    cdef int category
    for category in range(CATEGORIES):
        if not is_full(tally, category):
            return False
    return True


# ---- prose -----------------------------------------------------------------------------

cdef inline bint is_blank_ascii(const uint8_t* text, size_t length) noexcept nogil:
    cdef size_t i
    for i in range(length):
        if not (text[i] == c" " or 9 <= text[i] <= 13):
            return False
    return True


cdef size_t copy_prose(const uint8_t* text, size_t length, const CodeMap* code, uint8_t* prose) noexcept nogil:
    """Copy a text without its code and return the copy's length.

    Code that fills its lines is left out with them. Other code becomes a space, and a line of nothing else is left out.
    """
    cdef size_t at = 0
    cdef size_t size = 0
    cdef size_t line = 0        # where the line that is being copied begins
    cdef bint has_code = False  # whether it has code among its words
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
                if is_blank_ascii(prose + line, size - line):
                    size = line
                else:
                    prose[size] = c"\n"
                    size += 1
                    line = size
            else:
                memcpy(prose + size, text + at, stop - at)
                newline = last_newline(text + at, stop - at)
                if newline is not NULL:
                    line = size + (newline - text - at) + 1
                size += stop - at
                at = stop
        if i == code.count:
            break
        at = code.spans[i].end
        if not fills_lines(text, length, &code.spans[i]):
            prose[size] = c" "
            size += 1
            has_code = True
    if has_code and is_blank_ascii(prose + line, size - line):
        size = line
    return size


cdef inline bint fills_lines(const uint8_t* text, size_t length, const CodeSpan* span) noexcept nogil:
    """Is there nothing but this code on its lines?"""
    if span.start != 0 and text[span.start - 1] != c"\n":
        return False
    return span.end == length or text[span.end - 1] == c"\n"


# ---- one line --------------------------------------------------------------------------

cdef void line_look(LineFacts* line, const Hit* hits, size_t count) noexcept nogil:
    """Note what the line's hits, which are sorted, come to. Linear in their number."""
    cdef size_t reached[CATEGORIES]
    cdef const Hit* hit
    cdef size_t pending = 0   # the end of the last negation, which may go into the keyword at hand
    cdef size_t negated = 0   # the end of the last negation before it
    cdef size_t i
    cdef int category
    memset(line.first, 0, sizeof(line.first))
    memset(line.times, 0, sizeof(line.times))
    memset(reached, 0, sizeof(reached))
    for i in range(count):
        hit = &hits[i]
        if line.first[hit.name].end == 0:
            line.first[hit.name] = Stretch(hit.start, hit.end)
        if pending <= hit.start:
            negated = max(negated, pending)
        if hit.name == NEGATION:
            pending = hit.end
        elif hit.name % 2 == 0 and not (negated and hit.start - negated <= NEGATION_REACH_BYTES):
            category = hit.name // 2
            line.times[category] += hit.start >= reached[category]
            reached[category] = max(reached[category], hit.end)


# ---- scoring ---------------------------------------------------------------------------

@cython.final
@cython.internal
cdef class LineScorer:
    """Scores the lines of one message after another."""
    cdef Tally tally
    cdef LineFacts recent[RECENT_LINES]  # line n of those with keywords is in recent[n % RECENT_LINES]
    cdef size_t count                    # how many such lines the message has so far
    cdef const uint8_t* prose
    cdef bint tuned
    cdef Py_ssize_t message
    cdef list found

    cdef int add_line(self, const Hit* hits, size_t hit_count, Stretch place, size_t number) except -1:
        """Take a line with keywords, and score the one whose window ends with it or before it."""
        cdef LineFacts* line = &self.recent[self.count % RECENT_LINES]
        line.place = place
        line.number = number
        line_look(line, hits, hit_count)
        self.count += 1
        if self.count > LINES_AFTER:
            self.score(self.count - 1 - LINES_AFTER)
        return 0

    cdef int end_message(self) except -1:
        cdef size_t place
        for place in range(self.count - min(self.count, <size_t>LINES_AFTER), self.count):
            self.score(place)
        self.count = 0
        return 0

    cdef int score(self, size_t place) except -1:
        """Score one line; those of its window are in `recent`."""
        cdef const LineFacts* line = &self.recent[place % RECENT_LINES]
        cdef const LineFacts* booster
        cdef size_t times, i
        cdef int category
        for category in range(CATEGORIES):
            if line.times[category] == 0 or is_full(&self.tally, category):
                continue
            booster = self.booster_near(place, 2 * category + 1)
            times = line.times[category] if self.tuned else 1
            for i in range(times):
                if booster is not NULL and self.tally.boosted[category] < MAX_BOOSTED:
                    self.tally.boosted[category] += 1
                    self.add_found(category, line, booster, True)
                elif self.tally.plain[category] < MAX_PLAIN:
                    self.tally.plain[category] += 1
                    self.add_found(category, line, booster, False)
                else:
                    break
        return 0

    cdef const LineFacts* booster_near(self, size_t place, int number) noexcept:
        """The first line of the window that holds this booster, or NULL."""
        cdef const LineFacts* line = &self.recent[place % RECENT_LINES]
        cdef const LineFacts* near
        cdef size_t i
        for i in range(place - min(place, <size_t>LINES_BEFORE), min(place + LINES_AFTER + 1, self.count)):
            near = &self.recent[i % RECENT_LINES]
            if near.number + LINES_BEFORE < line.number or near.number > line.number + LINES_AFTER:
                continue
            if near.first[number].end != 0:
                return near
        return NULL

    cdef bytes text_at(self, const Stretch* place):
        return PyBytes_FromStringAndSize(<const char*> self.prose + place.start, place.end - place.start)

    cdef int add_found(self, int category, const LineFacts* line, const LineFacts* booster, bint boosted) except -1:
        cdef bytes near = b"" if booster is NULL else self.text_at(&booster.first[2 * category + 1])
        cdef bytes keyword = self.text_at(&line.first[2 * category])
        self.found.append((category, self.message, self.text_at(&line.place), keyword, near, boosted))
        return 0

    cdef int score_prose(self, const tailhook_table* table, size_t length, Hits* hits) except -1:
        """Score the lines of the message's prose, a chunk of whole lines at a time."""
        cdef const uint8_t* newline
        cdef Stretch line = Stretch(0, 0)
        cdef size_t counted = 0  # newlines before it are in `number`
        cdef size_t number = 0
        cdef size_t at = 0
        cdef size_t end, i, kept, start
        while at < length and not is_all_full(&self.tally):
            newline = NULL
            if length - at > CHUNK_BYTES:
                newline = <const uint8_t*> memchr(self.prose + at + CHUNK_BYTES, c"\n", length - at - CHUNK_BYTES)
            end = length if newline is NULL else newline - self.prose + 1
            hits.count = 0
            if automaton_find(table, self.prose + at, end - at, True, hits) < 0:
                raise MemoryError
            hits_sort(hits)
            i = 0
            while i < hits.count:
                start = at + hits.items[i].start
                number += count_newlines(self.prose + counted, start - counted)
                counted = start
                newline = last_newline(self.prose + at, start - at)
                line.start = at if newline is NULL else newline - self.prose + 1
                newline = <const uint8_t*> memchr(self.prose + start, c"\n", end - start)
                line.end = end if newline is NULL else newline - self.prose
                kept = 0
                while i < hits.count and at + hits.items[i].start < line.end:
                    if at + hits.items[i].end <= line.end:  # a phrase does not go over lines
                        hits.items[kept] = hits.items[i]
                        hits.items[kept].start += at
                        hits.items[kept].end += at
                        kept += 1
                    i += 1
                if kept:
                    self.add_line(hits.items, kept, line, number)
            at = end
        return self.end_message()


cdef inline size_t count_newlines(const uint8_t* text, size_t length) noexcept nogil:
    cdef size_t count = 0
    cdef size_t i
    for i in range(length):
        count += text[i] == c"\n"
    return count


def score_lines(list messages not None, bint tuned=False):
    cdef LineScorer scorer = LineScorer.__new__(LineScorer)
    cdef tailhook_table table
    cdef CodeMap code
    cdef Hits hits = Hits(NULL, 0, 0)
    cdef uint8_t* copy = NULL
    cdef size_t length
    cdef const uint8_t* text
    cdef bytes message
    tailhook_table_view(&table, tailhook_keywords_tuned if tuned else tailhook_keywords_seed)
    memset(&code, 0, sizeof(code))
    scorer.tuned = tuned
    scorer.found = []
    try:
        for scorer.message, message in enumerate(messages):
            if is_all_full(&scorer.tally):
                break
            text, length = <const uint8_t*> PyBytes_AS_STRING(message), PyBytes_GET_SIZE(message)
            if code_map_build(&code, <const char*> text, length, 0, length) < 0:
                raise MemoryError
            scorer.prose = text
            if code.count:
                free(copy)
                copy = <uint8_t*> malloc(length)  # code that becomes a space had at least one byte
                if copy is NULL:
                    raise MemoryError
                length = copy_prose(text, length, &code, copy)
                scorer.prose = copy
            scorer.score_prose(&table, length, &hits)
        return scorer.found
    finally:
        free(copy)
        hits_free(&hits)
        code_map_free(&code)
