# The values of a row on their way into the columns of a scan's tables.
#
# Gives: SCAN_BATCH_*, ScanColumns, scan_define_columns, scan_field_named, scan_cut_batch, scan_end_row; scan_put_*,
# scan_is_name, scan_string_bytes; ScanText, scan_text_*.
# Needs: scan_define_all and SCAN_* (made by ext/tables.py of src/tailhook/fleet/typed_rows.py), the columns
# (arrow/columns.pxi), ScanQueue (scan/queue.pxi), RecSlice and its kin (transcript/fields.pxi), json_unescape
# (json/grammar.pxi), utf8_bad_length (text/utf8.pxi), scan_drop_responses (scan/responses.pxi), array_grow (array.pxi).
#
# All tables share the columns, so that one name means one thing. A table is the caller's list of columns. Values for
# other columns are not decoded.

cdef enum:
    SCAN_MAX_NAME_BYTES = 4096   # of a name or an id; a longer one counts as missing
    SCAN_BATCH_ROWS = 1 << 16
    SCAN_BATCH_LINES = 1 << 12   # of session lines, which are read in Python, so that a batch takes little memory there
    SCAN_BATCH_BYTES = 4 << 20  # of texts

cdef struct ScanColumns:
    ArrowColumn items[SCAN_FIELDS]
    bint wanted[SCAN_FIELDS]
    int order[SCAN_FIELDS]  # the numbers of the question's columns
    size_t count            # of the numbers in `order`
    size_t rows             # rows that are not in a batch yet
    size_t batch_rows       # rows of a full batch
    bint are_responses      # scan_drop_responses drops rows that cannot count
    ScanQueue queue         # of finished batches

# UTF-8 that grows.
cdef struct ScanText:
    uint8_t* data
    size_t size
    size_t capacity


cdef inline void scan_define(ArrowColumn* column, int kind, const char* name) noexcept nogil:
    memset(column, 0, sizeof(ArrowColumn))
    column.kind = kind
    column.name = name


cdef void scan_define_columns(ScanColumns* columns) noexcept nogil:
    """Make all columns empty, without freeing their memory: the caller has moved it. Wanted columns stay wanted."""
    columns.rows = 0
    scan_define_all(columns.items)


cdef int scan_field_named(str name, bint of_sessions) except -1:
    """Return the number of a column. Raises ValueError.

    of_sessions: whose `start` and `end` are times; those of a match are characters.
    """
    cdef ScanColumns columns
    cdef int field
    scan_define_columns(&columns)
    for field in reversed(range(SCAN_FIELDS)) if of_sessions else range(SCAN_FIELDS):
        if columns.items[field].name.decode() == name:
            return field
    raise ValueError(f"no table has a column named {name!r}")


cdef int scan_cut_batch(ScanColumns* columns, ScanBatch* batch) noexcept nogil:
    """Make a batch of the rows so far."""
    cdef size_t i
    if columns.are_responses and scan_drop_responses(columns) < 0:
        return -1
    batch.columns = <ArrowColumn*>PyMem_RawMalloc(max(<size_t>1, columns.count) * sizeof(ArrowColumn))
    if batch.columns == NULL:
        return -1
    for i in range(columns.count):
        batch.columns[i] = columns.items[columns.order[i]]
    batch.column_count = columns.count
    batch.rows = columns.rows
    scan_define_columns(columns)
    return 0


cdef int scan_hand_over(ScanColumns* columns) noexcept nogil:
    """Put the rows so far into the queue, as a batch."""
    cdef ScanBatch batch
    return -1 if scan_cut_batch(columns, &batch) < 0 else scan_queue_put(&columns.queue, &batch)


cdef inline int scan_end_row(ScanColumns* columns) noexcept nogil:
    """Count a row that was put into the columns, and cut if there are enough.

    A line has at most 16 MiB, and each of its bytes gives at most three of a text. So the texts of a column stay far
    below 2 GiB, the limit of their 32-bit offsets.
    """
    cdef size_t size = 0
    cdef size_t i
    columns.rows += 1
    for i in range(columns.count):
        size += columns.items[columns.order[i]].texts.size
    return scan_hand_over(columns) if columns.rows == columns.batch_rows or size >= SCAN_BATCH_BYTES else 0


# ---- texts ---------------------------------------------------------------------

cdef inline int scan_text_room(ScanText* text, size_t more) noexcept nogil:
    """Make room behind the text."""
    if text.size + more <= text.capacity:
        return 0
    return array_grow(<void**>&text.data, &text.capacity, text.size + more, 1)


cdef void scan_text_shrink(ScanText* text) noexcept nogil:
    """Make a text empty, with hardly any memory. It keeps an address."""
    cdef void* shrunk = PyMem_RawRealloc(text.data, 1)
    text.size = 0
    if shrunk != NULL:
        text.data = <uint8_t*>shrunk
        text.capacity = 1


cdef void scan_mend_utf8(ScanText* text, size_t start) noexcept nogil:
    """Replace the lone surrogates in text[start:] by U+FFFD. Both have three bytes."""
    cdef uint8_t* p = text.data + start
    cdef uint8_t* end = text.data + text.size
    while True:
        p = <uint8_t*>memchr(p, 0xED, end - p)
        if p == NULL:
            return
        if p[1] >= 0xA0:
            bytes_write(p, LIT(b"\xEF\xBF\xBD"))
        p += 3


cdef int scan_text_add(ScanText* text, Cursor start, Cursor end) noexcept nogil:
    """Add a JSON string's content; start, end: inside its quotation marks.

    Invalid UTF-8 and lone surrogates become U+FFFD.
    """
    cdef bint lone = False
    cdef size_t first = text.size
    cdef Cursor stop
    if scan_text_room(text, end - start) < 0:
        return -1
    stop = utf8_stop(start, end)
    while stop != end:
        # The escapes before and behind invalid bytes are whole, because each begins with a backslash.
        text.size += json_unescape(start, stop, text.data + text.size, &lone)
        start = stop + utf8_bad_length(stop, end)
        if scan_text_room(text, 3 + (end - start)) < 0:
            return -1
        bytes_write(text.data + text.size, LIT(b"\xEF\xBF\xBD"))
        text.size += 3
        stop = utf8_stop(start, end)
    text.size += json_unescape(start, end, text.data + text.size, &lone)
    if lone:
        scan_mend_utf8(text, first)
    return 0


cdef int64_t scan_string_bytes(Cursor start, Cursor end) noexcept nogil:
    """Return the number of bytes that scan_text_add adds for a JSON string of valid UTF-8."""
    cdef unsigned char encoded[4]
    cdef int64_t size = 0
    cdef uint32_t code_point
    cdef Cursor stop
    while True:
        stop = json_string_stop(start, end)
        size += stop - start
        if stop == end:
            return size
        start = json_read_character(stop, end, &code_point)
        size += utf8_put(encoded, code_point) - encoded


# ---- values --------------------------------------------------------------------

cdef inline int scan_put_int(ScanColumns* columns, int field, int64_t value) noexcept nogil:
    return arrow_add_int(&columns.items[field], value) if columns.wanted[field] else 0


cdef inline int scan_put_bool(ScanColumns* columns, int field, bint value) noexcept nogil:
    return arrow_add_bool(&columns.items[field], value) if columns.wanted[field] else 0


cdef inline int scan_put_text(ScanColumns* columns, int field, Cursor start, size_t size) noexcept nogil:
    """Put valid UTF-8."""
    return arrow_add_text(&columns.items[field], start, size) if columns.wanted[field] else 0


cdef inline bint scan_is_name(RecSlice* value) noexcept nogil:
    """Return whether a JSON value is a string of at most SCAN_MAX_NAME_BYTES, as a name or an id must be.

    A row for each match of a line has the names of its record: longer ones would be copied too often.
    """
    cdef int64_t size
    if not rec_value_is_string(value):
        return False
    size = value.end - value.start - 2
    if SCAN_MAX_NAME_BYTES < size <= 6 * SCAN_MAX_NAME_BYTES:  # no escape is longer than six bytes
        size = scan_string_bytes(value.start + 1, value.end - 1)
    return size <= SCAN_MAX_NAME_BYTES


cdef int scan_put_name(ScanColumns* columns, int field, RecSlice* value, ScanText* scratch) noexcept nogil:
    """Put a JSON value if it is a name, otherwise null."""
    if columns.wanted[field] and not scan_is_name(value):
        return arrow_add_null(&columns.items[field])
    return scan_put_string(columns, field, value, scratch)


cdef int scan_put_string(ScanColumns* columns, int field, RecSlice* value, ScanText* scratch) noexcept nogil:
    """Put a JSON value if it is a string, otherwise null."""
    if not columns.wanted[field]:
        return 0
    if not rec_value_is_string(value):
        return arrow_add_null(&columns.items[field])
    if json_plain_stop(value.start + 1, value.end - 1) == value.end - 1:
        return arrow_add_text(&columns.items[field], value.start + 1, value.end - value.start - 2)
    scratch.size = 0
    if scan_text_add(scratch, value.start + 1, value.end - 1) < 0:
        return -1
    return arrow_add_text(&columns.items[field], scratch.data, scratch.size)
