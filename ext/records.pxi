# What a line of a transcript says, without building objects.
#
# One walk over a line notes where the values stand that somebody may ask for;
# everything else is passed over. Of what is passed over the grammar is checked
# whole (RFC 8259: brackets, names, commas, numbers, escapes, control bytes), but
# not its UTF-8; strings that may be decoded are checked for that, too.

from libc.string cimport memset

cdef extern from "Python.h":
    bint Py_UNICODE_ISSPACE(uint32_t code_point) nogil


# ---- the walk ----------------------------------------------------------------

cdef enum:
    FIELD_TYPE
    FIELD_MESSAGE
    FIELD_CONTENT
    FIELD_ID
    FIELD_ROLE
    FIELD_TEXT
    FIELD_NAME
    FIELD_INPUT
    FIELD_UUID
    FIELD_TIMESTAMP
    FIELD_SIDECHAIN
    FIELD_META
    FIELD_API_ERROR
    FIELD_COMPACT_SUMMARY
    FIELD_TEXTS  # no name in JSON: in a content array, from its first text block to past its last
    FIELDS
    FIELD_OTHER = FIELDS

cdef enum:
    LEVEL_RECORD
    LEVEL_MESSAGE
    LEVEL_BLOCK

cdef struct Slice:
    Cursor start  # NULL: absent
    Cursor end

cdef struct RecordFields:
    Cursor start  # the record's object
    Cursor end
    Slice top[FIELDS]      # JSON values of its own members, the last of a name
    Slice message[FIELDS]  # and of its message's


cdef int field_named(Cursor name, Py_ssize_t size) noexcept nogil:
    if size == 4:
        if memcmp(name, b"type", 4) == 0:
            return FIELD_TYPE
        if memcmp(name, b"text", 4) == 0:
            return FIELD_TEXT
        if memcmp(name, b"role", 4) == 0:
            return FIELD_ROLE
        if memcmp(name, b"uuid", 4) == 0:
            return FIELD_UUID
        if memcmp(name, b"name", 4) == 0:
            return FIELD_NAME
    elif size == 2 and memcmp(name, b"id", 2) == 0:
        return FIELD_ID
    elif size == 5 and memcmp(name, b"input", 5) == 0:
        return FIELD_INPUT
    elif size == 6 and memcmp(name, b"isMeta", 6) == 0:
        return FIELD_META
    elif size == 7:
        if memcmp(name, b"content", 7) == 0:
            return FIELD_CONTENT
        if memcmp(name, b"message", 7) == 0:
            return FIELD_MESSAGE
    elif size == 9 and memcmp(name, b"timestamp", 9) == 0:
        return FIELD_TIMESTAMP
    elif size == 11 and memcmp(name, b"isSidechain", 11) == 0:
        return FIELD_SIDECHAIN
    elif size == 16 and memcmp(name, b"isCompactSummary", 16) == 0:
        return FIELD_COMPACT_SUMMARY
    elif size == 17 and memcmp(name, b"isApiErrorMessage", 17) == 0:
        return FIELD_API_ERROR
    return FIELD_OTHER


cdef inline bint field_belongs(int field, int level) noexcept nogil:
    if level == LEVEL_RECORD:
        return field != FIELD_ROLE and field != FIELD_TEXT
    if level == LEVEL_MESSAGE:
        return field == FIELD_CONTENT or field == FIELD_ID or field == FIELD_ROLE
    return (
        field == FIELD_TYPE or field == FIELD_TEXT or field == FIELD_ID or field == FIELD_NAME or field == FIELD_INPUT
    )


cdef int field_escaped(Cursor name, Cursor end) noexcept nogil:
    """The field whose name is written with escapes."""
    cdef unsigned char plain[128]
    cdef bint lone = False
    if end - name > <Py_ssize_t>sizeof(plain):
        return FIELD_OTHER
    return field_named(plain, json_unescape(name, end, plain, &lone))


cdef Cursor walk_blocks(Cursor p, Cursor end, Slice* texts, JsonFault* fault) noexcept nogil:
    """Past an array of content blocks, whose texts are checked and noted; p: at its bracket."""
    cdef Slice block[FIELDS]
    cdef Cursor start
    p = json_space(p + 1, end)
    if p != end and p[0] == c"]":
        return p + 1
    while True:
        if p != end and p[0] == c"{":
            start = p
            block[FIELD_TYPE].start = NULL
            p = walk_members(p, end, LEVEL_BLOCK, block, NULL, fault)
            if p != NULL and value_is(&block[FIELD_TYPE], b"text", 4):
                texts.end = p
                if texts.start == NULL:
                    texts.start = start
        else:
            p = json_skip(p, end, fault)
        if p == NULL:
            return NULL
        p = json_space(p, end)
        if p == end or (p[0] != c"," and p[0] != c"]"):
            return json_fault(fault, "expected ',' or the container's end", p)
        if p[0] == c"]":
            return p + 1
        p = json_space(p + 1, end)


cdef Cursor walk_members(
    Cursor p, Cursor end, int level, Slice* values, Slice* message, JsonFault* fault
) noexcept nogil:
    """Past the object at p; notes the values that belong to the level, those of a record's message in `message`."""
    cdef Cursor name
    cdef Cursor start
    cdef int field
    p = json_space(p + 1, end)
    if p != end and p[0] == c"}":
        return p + 1
    while True:
        if p == end or p[0] != c'"':
            return json_fault(fault, "expected a member's name", p)
        name = p + 1
        p = string_short(name, end)
        if p != end and p[0] == c'"':
            field = field_named(name, p - name)
            p += 1
        else:
            p = json_string_rest(p, end, fault)
            if p == NULL:
                return NULL
            field = field_escaped(name, p - 1)
        p = json_space(p, end)
        if p == end or p[0] != c":":
            return json_fault(fault, "expected ':'", p)
        p = start = json_space(p + 1, end)
        if field == FIELD_OTHER or not field_belongs(field, level):
            p = json_skip(p, end, fault)
        else:
            if field == FIELD_MESSAGE:
                memset(message, 0, FIELDS * sizeof(Slice))
            elif field == FIELD_CONTENT:
                values[FIELD_TEXTS].start = NULL
            if p != end and p[0] == c"{" and field == FIELD_MESSAGE:
                p = walk_members(p, end, LEVEL_MESSAGE, message, NULL, fault)
            elif p != end and p[0] == c"[" and field == FIELD_CONTENT:
                p = walk_blocks(p, end, &values[FIELD_TEXTS], fault)
            else:
                p = json_skip(p, end, fault)
                if p != NULL and start[0] == c'"' and utf8_stop(start, p) != p:
                    return json_fault(fault, "invalid UTF-8", start)
            values[field].start = start
            values[field].end = p
        if p == NULL:
            return NULL
        p = json_space(p, end)
        if p == end or (p[0] != c"," and p[0] != c"}"):
            return json_fault(fault, "expected ',' or the container's end", p)
        if p[0] == c"}":
            return p + 1
        p = json_space(p + 1, end)


cdef Cursor record_walk(Cursor p, Cursor end, RecordFields* fields) noexcept nogil:
    """Past the object at p, or NULL."""
    cdef JsonFault fault
    memset(fields, 0, sizeof(RecordFields))
    fields.start = p
    fields.end = walk_members(p, end, LEVEL_RECORD, fields.top, fields.message, &fault)
    return fields.end


# ---- bad lines ---------------------------------------------------------------
#
# A writer that was killed, or two that wrote at once, leave lines that are no
# JSON text. Such a line yields its last complete object that starts the line,
# follows another complete one, or ends where the line ends. Whether the last of
# these is a record or a value within a torn one is told by reading the torn one
# up to it: is a value due there?

cdef inline bint is_blank(unsigned char byte) noexcept nogil:
    """White space or NUL."""
    return byte == c" " or byte == c"\t" or byte == c"\r" or byte == c"\n" or byte == 0


cdef inline Cursor skip_blank(Cursor p, Cursor end) noexcept nogil:
    while p != end and is_blank(p[0]):
        p += 1
    return p


cdef Cursor string_opening(Cursor p, Cursor quote) noexcept nogil:
    """The quotation mark in [p, quote) that opens the string closed by `quote`, or NULL."""
    cdef Cursor solidus
    while quote != p:
        quote -= 1
        if quote[0] != c'"':
            continue
        solidus = quote
        while solidus != p and (solidus - 1)[0] == c"\\":
            solidus -= 1
        if (quote - solidus) % 2 == 0:
            return quote
        quote = solidus
    return NULL


cdef Cursor object_opening(Cursor p, Cursor end) noexcept nogil:
    """The brace in [p, end) that opens the object whose last byte is (end - 1)[0], or NULL; it may not be well formed."""
    cdef Py_ssize_t depth = 0
    cdef Cursor at = end
    while at != p:
        at -= 1
        if at[0] == c'"':
            at = string_opening(p, at)
            if at == NULL:
                return NULL
        elif at[0] == c"}" or at[0] == c"]":
            depth += 1
        elif at[0] == c"{" or at[0] == c"[":
            depth -= 1
            if depth == 0:
                return at if at[0] == c"{" else NULL
        elif depth == 0:
            return NULL
    return NULL


cdef unsigned char byte_before(Cursor p, Cursor* at) noexcept nogil:
    """The last byte of [p, *at) that is no white space, 0 if there is none; *at: moved to it."""
    while at[0] != p:
        at[0] -= 1
        if not is_blank(at[0][0]) or at[0][0] == 0:
            return at[0][0]
    return 0


cdef bint follows_like_a_value(Cursor p, Cursor at) noexcept nogil:
    """Does what stands before `at` look like the JSON before a nested value, whatever came earlier?"""
    cdef unsigned char mark = byte_before(p, &at)
    cdef unsigned char before = byte_before(p, &at)
    if mark == c":":
        return before == c'"' or before == 0
    if mark == c",":
        return before == c'"' or before == c"}" or before == c"]" or before == 0
    return mark == c"[" and (before == c":" or before == c"," or before == c"[" or before == 0)


cdef Cursor record_at_end(Cursor p, Cursor end) noexcept nogil:
    """Where the object begins that ends with [p, end), a torn text, and is not part of a torn one; or NULL."""
    cdef JsonFault fault
    cdef Cursor start
    cdef bint nested
    while end != p and is_blank((end - 1)[0]):
        end -= 1
    start = object_opening(p, end)
    if start == NULL or start == p:
        return NULL
    if json_skip(p, start, &fault) == NULL and fault.at == start:
        nested = fault.value_due
    else:
        nested = follows_like_a_value(p, start)
    if nested:
        return NULL
    return start


cdef bint record_find(Cursor p, Cursor end, RecordFields* fields) noexcept nogil:
    """Is there a record in the line? A good line is one; a bad one yields its last."""
    cdef Cursor last = NULL
    cdef Cursor stop
    p = skip_blank(p, end)
    while p != end and p[0] == c"{":
        stop = record_walk(p, end, fields)
        if stop == NULL:
            break
        last = p
        p = skip_blank(stop, end)
    if p == end:
        return last != NULL
    stop = record_at_end(p, end)
    if stop != NULL and record_walk(stop, end, fields) != NULL:
        return True
    return last != NULL and record_walk(last, end, fields) != NULL


# ---- what a record says ------------------------------------------------------

cdef inline bint value_is(Slice* value, const char* word, Py_ssize_t size) noexcept nogil:
    """Is the value this string? `word` has no character that must be escaped; the value may escape what it likes."""
    cdef unsigned char plain[128]
    cdef bint lone = False
    if not value_is_string(value):
        return False
    if value.end - value.start == size + 2 and memcmp(value.start + 1, word, size) == 0:
        return True
    return (
        value.end - value.start <= <Py_ssize_t>sizeof(plain)
        and memchr(value.start, c"\\", value.end - value.start) != NULL
        and json_unescape(value.start + 1, value.end - 1, plain, &lone) == size
        and memcmp(plain, word, size) == 0
    )


cdef inline bint value_is_string(Slice* value) noexcept nogil:
    return value.start != NULL and value.start[0] == c'"'


cdef inline bint value_is_true(Slice* value) noexcept nogil:
    return value.start != NULL and value.start[0] == c"t"


cdef inline bint record_is_assistant(RecordFields* fields) noexcept nogil:
    return value_is(&fields.top[FIELD_TYPE], b"assistant", 9)


cdef inline bint record_is_spoken(RecordFields* fields) noexcept nogil:
    """Has the record one of the types that say something?"""
    return (
        record_is_assistant(fields)
        or value_is(&fields.top[FIELD_TYPE], b"user", 4)
        or value_is(&fields.top[FIELD_TYPE], b"human", 5)
    )


cdef inline bint record_is_foreign(RecordFields* fields) noexcept nogil:
    """Is it a sub-agent's, or made by the host in the agent's name?"""
    return (
        value_is_true(&fields.top[FIELD_SIDECHAIN])
        or value_is_true(&fields.top[FIELD_META])
        or value_is_true(&fields.top[FIELD_API_ERROR])
        or value_is_true(&fields.top[FIELD_COMPACT_SUMMARY])
    )


cdef inline Slice* record_speech(RecordFields* fields) noexcept nogil:
    """The values among which the content is: the message's, or those of a flat record; it may be absent."""
    if fields.message[FIELD_CONTENT].start == NULL and record_is_spoken(fields):
        return fields.top
    return fields.message


cdef inline Slice* record_role(RecordFields* fields) noexcept nogil:
    """Who speaks: the message's role, or the type of a flat record; absent in records of other types."""
    if record_is_spoken(fields) and fields.message[FIELD_ROLE].start == NULL:
        return &fields.top[FIELD_TYPE]
    return &fields.message[FIELD_ROLE] if record_is_spoken(fields) else &fields.top[FIELD_ROLE]


cdef inline void slice_move(Slice* value, Cursor old, Cursor new) noexcept nogil:
    if value.start != NULL:
        value.start = new + (value.start - old)
        value.end = new + (value.end - old)


cdef void record_move(RecordFields* fields, Cursor start) noexcept nogil:
    """Let the fields point into a copy of the object."""
    cdef int i
    for i in range(FIELDS):
        slice_move(&fields.top[i], fields.start, start)
        slice_move(&fields.message[i], fields.start, start)
    fields.end = start + (fields.end - fields.start)
    fields.start = start


cdef bint next_block(Slice* blocks, Slice* block) noexcept nogil:
    """Read the next object of an array's valid elements, and move the slice's start past it; False: none is left."""
    cdef JsonFault fault
    while True:
        blocks.start = json_space(blocks.start, blocks.end)
        if blocks.start == blocks.end or blocks.start[0] == c"]":
            return False
        if blocks.start[0] == c"{":
            memset(block, 0, FIELDS * sizeof(Slice))
            blocks.start = walk_members(blocks.start, blocks.end, LEVEL_BLOCK, block, NULL, &fault)
            return True
        if blocks.start[0] == c",":
            blocks.start += 1
        else:
            blocks.start = json_skip(blocks.start, blocks.end, &fault)


cdef bint string_is_blank(Cursor p, Cursor end) noexcept nogil:
    """Is the string, p to end inside its quotation marks, of white space only?"""
    cdef uint32_t code_point
    while p != end:
        p = json_character(p, end, &code_point)
        if not Py_UNICODE_ISSPACE(code_point):
            return False
    return True


cdef bint next_text(Slice* texts, Slice* text) noexcept nogil:
    """The next text of the blocks that is not blank, inside its quotation marks; False: none is left."""
    cdef Slice block[FIELDS]
    while texts.start != NULL and next_block(texts, block):
        text.start = block[FIELD_TEXT].start
        if text.start == NULL or text.start[0] != c'"' or not value_is(&block[FIELD_TYPE], b"text", 4):
            continue
        text.start += 1
        text.end = block[FIELD_TEXT].end - 1
        if not string_is_blank(text.start, text.end):
            return True
    return False


cdef object value_string(Slice* value):
    """A str, or None where there is no string."""
    return json_decode(value.start + 1, value.end - 1) if value_is_string(value) else None


cdef unicode record_text(RecordFields* fields):
    """The content, or its text blocks that are not blank, joined by newlines."""
    cdef Slice* speech = record_speech(fields)
    cdef Slice texts = speech[FIELD_TEXTS]
    cdef Slice text
    cdef list parts = []
    if value_is_string(&speech[FIELD_CONTENT]):
        return value_string(&speech[FIELD_CONTENT])
    while next_text(&texts, &text):
        parts.append(json_decode(text.start, text.end))
    return "\n".join(parts)


cdef bint record_has_text(RecordFields* fields) noexcept nogil:
    """Is there any that is not blank?"""
    cdef Slice* speech = record_speech(fields)
    cdef Slice texts = speech[FIELD_TEXTS]
    cdef Slice text
    if value_is_string(&speech[FIELD_CONTENT]):
        return not string_is_blank(speech[FIELD_CONTENT].start + 1, speech[FIELD_CONTENT].end - 1)
    return next_text(&texts, &text)


# ---- time --------------------------------------------------------------------

cdef int two_digits(Cursor p) noexcept nogil:
    """0 to 99, or a large negative number, which no sum with digits makes good."""
    if c"0" <= p[0] <= c"9" and c"0" <= p[1] <= c"9":
        return (p[0] - c"0") * 10 + (p[1] - c"0")
    return -100000


cdef bint value_time(Slice* value, double* seconds) noexcept nogil:
    """Unix seconds of an RFC 3339 time such as 2026-01-31T23:59:59.123Z, without a zone UTC; False: it is none."""
    cdef Cursor p = value.start
    cdef Cursor end
    cdef int64_t year, month, day, hour, minute, second, days
    cdef double fraction = 0, place = 0.1
    cdef int offset = 0
    if p == NULL or p[0] != c'"' or value.end - p < 21:
        return False
    p += 1
    end = value.end - 1
    if p[4] != c"-" or p[7] != c"-" or (p[10] | 0x20 != c"t" and p[10] != c" ") or p[13] != c":" or p[16] != c":":
        return False
    year = two_digits(p) * 100 + two_digits(p + 2)
    month = two_digits(p + 5)
    day = two_digits(p + 8)
    hour = two_digits(p + 11)
    minute = two_digits(p + 14)
    second = two_digits(p + 17)
    if not (year >= 0 and 1 <= month <= 12 and 1 <= day <= 31 and 0 <= hour <= 24 and 0 <= minute <= 59):
        return False
    if not 0 <= second <= 60:
        return False
    p += 19
    if p != end and p[0] == c".":
        p += 1
        while p != end and c"0" <= p[0] <= c"9":
            fraction += place * (p[0] - c"0")
            place /= 10
            p += 1
    if end - p == 6 and (p[0] == c"+" or p[0] == c"-") and p[3] == c":":
        offset = two_digits(p + 1) * 60 + two_digits(p + 4)
        if offset < 0:
            return False
        if p[0] == c"-":
            offset = -offset
    elif p != end and not (end - p == 1 and p[0] | 0x20 == c"z"):
        return False
    # Days since 1970-01-01, counted in years that begin in March.
    if month <= 2:
        year -= 1
        month += 12
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 719469
    seconds[0] = ((days * 24 + hour) * 60 + minute - offset) * 60 + second + fraction
    return True


# ---- the last message --------------------------------------------------------

cdef object newest_message(Window* window, object since):
    """(outcome, text); see last_message in the stub."""
    cdef Line line
    cdef RecordFields fields
    cdef double earliest = 0 if since is None else since
    cdef double time
    cdef bint stale, seen = False
    cdef object message = None
    cdef list texts = []
    while window_previous(window, &line):
        if window.passed and not texts:
            break
        if not record_find(line.start, line.end, &fields):
            continue
        if not record_is_assistant(&fields) or record_is_foreign(&fields):
            continue
        seen = True
        if texts and value_string(&fields.message[FIELD_ID]) != message:
            break
        if not record_has_text(&fields):
            continue
        stale = since is not None and value_time(&fields.top[FIELD_TIMESTAMP], &time) and time < earliest
        if stale and not texts:
            return ("stale", None)
        if stale:
            break
        texts.append(record_text(&fields))
        message = value_string(&fields.message[FIELD_ID])
        if not message:
            break
    if texts:
        texts.reverse()
        return ("text", "\n".join(texts))
    if window.passed or window.changed or window.lower > 0:
        return ("unknown", None)
    return ("no_text" if seen else "no_assistant", None)
