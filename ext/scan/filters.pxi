# Filters a question's records, and counts unknown types of records and tokens without a response.
#
# Gives: scan_check_record, scan_note_type, scan_note_tokens.
# Needs: ScanRun, ScanQuestion (scan/run.pxi), ScanText and scan_is_name (scan/fields.pxi), the fields
# (transcript/fields.pxi), rec_role, rec_speech (transcript/records.pxi), json_skip_space (json/grammar.pxi),
# rec_read_time (transcript/properties.pxi), ArrowTexts (arrow/columns.pxi).

cdef enum:
    SCAN_MAX_TYPE_BYTES = 128       # of an unknown type's name, and of a version


cdef bint scan_is_separator(unsigned char letter) noexcept nogil:
    """Return whether a character separates the names of folders."""
    return letter == c"/" or letter == c"\\"


cdef bint scan_is_among(const ArrowTexts* texts, Cursor start, size_t size, bint or_below) noexcept nogil:
    """Return whether a text is one of the texts. or_below: a folder below one of them counts, too."""
    cdef size_t i, length
    cdef Cursor known
    for i in range(texts.count):
        known = <Cursor>texts.data + texts.offsets[i]
        length = texts.offsets[i + 1] - texts.offsets[i]
        if length > size or memcmp(known, start, length) != 0:
            continue
        if length == size:
            return True
        if or_below and (scan_is_separator(start[length]) or (length > 0 and scan_is_separator(known[length - 1]))):
            return True
    return False


cdef int scan_check_value(const ArrowTexts* texts, RecSlice* value, bint or_below, ScanText* scratch) noexcept nogil:
    """Look for a JSON value among texts. Returns 1 if it is one of them or there are none, 0 if not, -1 without memory.

    or_below: a folder below one of them counts, too.  scratch: overwritten.
    """
    if texts.count == 0:
        return 1
    if not scan_is_name(value):
        return 0
    scratch.size = 0
    if scan_text_add(scratch, value.start + 1, value.end - 1) < 0:
        return -1
    return scan_is_among(texts, scratch.data, scratch.size, or_below)


cdef int scan_check_record(ScanRun* run, RecFields* fields) noexcept nogil:
    """Compare a record with the question. Returns 1 if its rows are asked for, 0 if not, -1 without memory.

    Overwrites run.scratch.
    """
    cdef const ScanQuestion* question = run.question
    cdef RecSlice* session = &fields.top[FIELD_SESSION_ID]
    cdef int64_t at
    cdef RecSlice role = rec_role(fields)
    cdef int wanted = scan_check_value(&question.roles, &role, False, &run.scratch)
    if wanted == 1 and question.has_times:
        if not rec_read_time(&fields.top[FIELD_TIMESTAMP], &at) or at < question.since or at >= question.until:
            return 0
    if wanted == 1 and question.sessions.count:
        if scan_is_name(session) and session.end - session.start > 2:
            wanted = scan_check_value(&question.sessions, session, False, &run.scratch)
        else:
            wanted = scan_is_among(&question.sessions, run.place.session_id, run.place.session_id_bytes, False)
    if wanted == 1:
        wanted = scan_check_value(&question.projects, &fields.top[FIELD_CWD], True, &run.scratch)
    return wanted


cdef int scan_add_unknown_text(ScanRun* run, RecSlice* value) noexcept nogil:
    """Add a JSON value to the texts of unknown types, "" if it is not a string."""
    cdef size_t size
    run.scratch.size = 0
    if rec_value_is_string(value) and scan_text_add(&run.scratch, value.start + 1, value.end - 1) < 0:
        return -1
    size = min(run.scratch.size, <size_t>SCAN_MAX_TYPE_BYTES)
    while size < run.scratch.size and run.scratch.data[size] & 0xC0 == 0x80:
        size -= 1
    return arrow_texts_add(&run.unknown_types, run.scratch.data, size)


cdef bint scan_is_known_type(ScanRun* run, Cursor start, size_t size) noexcept nogil:
    """Return whether the host of the file has records of a type."""
    cdef const ArrowTexts* known = &run.question.known_types
    cdef size_t i
    for i in range(0, known.count, 2):
        if arrow_text_is(known, i + 1, start, size) and arrow_text_is(known, i, run.place.host, run.place.host_bytes):
            return True
    return False


cdef int scan_note_type(ScanRun* run, RecFields* fields) noexcept nogil:
    """Count a record's type if it is not known."""
    return scan_note_kind(run, fields, &fields.top[FIELD_TYPE])


cdef int scan_note_kind(ScanRun* run, RecFields* fields, RecSlice* kind) noexcept nogil:
    """Count a record if its kind is not known.  kind: its type or subtype."""
    cdef ArrowTexts* texts = &run.unknown_types
    cdef size_t i, last
    if run.question.known_types.count == 0 or not rec_value_is_string(kind):
        return 0
    if scan_is_known_type(run, kind.start + 1, kind.end - kind.start - 2):
        return 0
    run.scratch.size = 0
    if scan_text_add(&run.scratch, kind.start + 1, kind.end - 1) < 0:
        return -1
    if scan_is_known_type(run, run.scratch.data, run.scratch.size):  # it was written with escapes
        return 0
    if scan_add_unknown_text(run, kind) < 0 or scan_add_unknown_text(run, &fields.top[FIELD_VERSION]) < 0:
        return -1
    last = texts.count - 2  # the pair that was added stays only if it is new
    for i in range(0, last, 2):
        if (
            arrow_text_is(texts, i, texts.data + texts.offsets[last], texts.offsets[last + 1] - texts.offsets[last])
            and arrow_text_is(
                texts, i + 1, texts.data + texts.offsets[last + 1], texts.offsets[last + 2] - texts.offsets[last + 1]
            )
        ):
            break
    else:
        i = last
    if i != last or last == 2 * SCAN_MAX_UNKNOWN_TYPES:
        texts.count = last
        texts.size = texts.offsets[last]
    run.unknown_counts[i // 2] += 1
    return 0


cdef bint scan_begins_count(Cursor p, Cursor end) noexcept nogil:
    """Return whether a colon and a number over 0 begin at `p`."""
    p = json_skip_space(p, end)
    if p == end or p[0] != c":":
        return False
    p = json_skip_space(p + 1, end)
    return p != end and c"1" <= p[0] <= c"9"


cdef bint scan_has_tokens(Cursor p, Cursor end) noexcept nogil:
    """Return whether a JSON text has a number over 0 under a name with "token", or in an object under such a name.

    A quote within a string has a backslash, so a text from "token" to a quote and a colon is a name.
    """
    cdef Cursor stop
    while True:
        p = <Cursor>bytes_find(p, end - p, LIT(b"oken"))
        if p == NULL:
            return False
        while p != end and (c"a" <= p[0] | 0x20 <= c"z" or c"0" <= p[0] <= c"9" or p[0] == c"_"):
            p += 1
        if p == end or p[0] != c'"':
            continue
        p += 1
        if scan_begins_count(p, end):
            return True
        stop = json_skip_space(p, end)
        if stop == end or stop[0] != c":":
            continue
        stop = json_skip_space(stop + 1, end)
        if stop == end or stop[0] != c"{":
            continue
        stop = <Cursor>memchr(stop, c"}", end - stop)
        while stop != NULL and p < stop:
            p = <Cursor>memchr(p, c'"', stop - p)
            if p == NULL:
                p = stop
            elif scan_begins_count(p + 1, stop):
                return True
            else:
                p += 1


cdef int scan_note_tokens(ScanRun* run, RecFields* fields) noexcept nogil:
    """Count a record without a response, if it has tokens and its type and subtype are unknown.

    The tokens of known ones are those of other records, or belong to no response. A tool's input may have any names.
    """
    cdef RecSlice* subtype = &fields.top[FIELD_SUBTYPE]
    cdef RecSlice* kind = &fields.top[FIELD_TYPE]
    if rec_speech(fields)[FIELD_TOOLS].start != NULL:
        return 0
    if rec_value_is_string(kind) and scan_is_known_type(run, kind.start + 1, kind.end - kind.start - 2):
        return 0
    if rec_value_is_string(subtype) and subtype.end - subtype.start > 2:
        kind = subtype
    if not rec_value_is_string(kind) or scan_is_known_type(run, kind.start + 1, kind.end - kind.start - 2):
        return 0
    return scan_note_kind(run, fields, kind) if scan_has_tokens(run.line.start, run.line.end) else 0
