# Of the records of API responses, those that decide which record counts.
#
# Gives: scan_keep_responses.
# Needs: the columns (scan/fields.pxi, arrow/columns.pxi), text_fingerprint (text/view.pxi).
#
# A response stands in several records, which the reduce (src/tailhook/fleet/reduce.py) joins: it belongs to the session
# of the first one, and the one with the most tokens counts. All others of a batch are dropped before the interpreter
# sees them: the first and the one that counts are among those of any part of the records.

cdef struct ScanResponse:
    uint32_t first     # the least by (time, path, offset)
    uint32_t counted   # the greatest by (output tokens, time, path, offset)


cdef inline bint scan_is_valid(const ArrowColumn* column, size_t row) noexcept nogil:
    return column.valid[row // 8] >> (row % 8) & 1


cdef inline int64_t scan_int_at(const ArrowColumn* column, size_t row) noexcept nogil:
    """Return the value of a row, which is less than all others if it is null."""
    return (<const int64_t*>column.values)[row] if scan_is_valid(column, row) else INT64_MIN


cdef bint scan_has_same_text(const ArrowColumn* column, size_t row, size_t other) noexcept nogil:
    """Return whether two values of a column of ARROW_TEXT are the same text, or both are null or empty."""
    cdef const int32_t* offsets = column.texts.offsets
    cdef int32_t size = offsets[row + 1] - offsets[row]
    if size != offsets[other + 1] - offsets[other]:
        return False
    return size == 0 or memcmp(column.texts.data + offsets[row], column.texts.data + offsets[other], size) == 0


cdef int scan_compare_paths(const ArrowColumn* column, size_t row, size_t other) noexcept nogil:
    """Return a number below, at or over zero, as the first path is less than, equal to or greater than the second."""
    cdef const int32_t* offsets = column.texts.offsets
    cdef int32_t one = (<const int32_t*>column.values)[row]
    cdef int32_t two = (<const int32_t*>column.values)[other]
    cdef int32_t size = offsets[one + 1] - offsets[one]
    cdef int32_t other_size = offsets[two + 1] - offsets[two]
    cdef int order = 0
    if one != two:
        order = memcmp(column.texts.data + offsets[one], column.texts.data + offsets[two], min(size, other_size))
    return order if order else size - other_size


cdef bint scan_is_before(const ArrowColumn* items, size_t row, size_t other) noexcept nogil:
    """Return whether a row comes before another one by (time, path, offset)."""
    cdef int64_t time = scan_int_at(&items[SCAN_TIMESTAMP], row)
    cdef int64_t other_time = scan_int_at(&items[SCAN_TIMESTAMP], other)
    cdef int order
    if time != other_time:
        return time < other_time
    order = scan_compare_paths(&items[SCAN_PATH], row, other)
    if order:
        return order < 0
    return scan_int_at(&items[SCAN_OFFSET], row) < scan_int_at(&items[SCAN_OFFSET], other)


cdef int scan_keep_responses(ScanColumns* columns) noexcept nogil:
    """Drop the rows that cannot decide which record of a response counts. Returns 0, or -1: no memory.

    Rows without a message id stay. An empty id counts as missing.
    """
    cdef const ArrowColumn* items = columns.items
    cdef const ArrowTexts* ids = &items[SCAN_MESSAGE_ID].texts
    cdef size_t slot_count = 64
    cdef size_t row, slot, i
    cdef int64_t tokens, most
    cdef uint32_t* slots
    cdef uint8_t* keep
    cdef ScanResponse* responses
    cdef ScanResponse* response
    cdef size_t count = 0
    if columns.rows < 2:
        return 0
    while slot_count < 2 * columns.rows:
        slot_count *= 2
    slots = <uint32_t*>PyMem_RawCalloc(slot_count, sizeof(uint32_t))
    responses = <ScanResponse*>PyMem_RawMalloc(columns.rows * sizeof(ScanResponse))
    keep = <uint8_t*>PyMem_RawCalloc(columns.rows, 1)
    if slots == NULL or responses == NULL or keep == NULL:
        PyMem_RawFree(slots)
        PyMem_RawFree(responses)
        PyMem_RawFree(keep)
        return -1
    for row in range(columns.rows):
        if ids.offsets[row + 1] == ids.offsets[row]:
            keep[row] = True
            continue
        slot = text_fingerprint(ids.data + ids.offsets[row], ids.offsets[row + 1] - ids.offsets[row]) & (slot_count - 1)
        while True:
            if slots[slot] == 0:
                responses[count] = ScanResponse(row, row)
                count += 1
                slots[slot] = <uint32_t>count
                break
            response = &responses[slots[slot] - 1]
            if (
                scan_has_same_text(&items[SCAN_MESSAGE_ID], row, response.first)
                and scan_has_same_text(&items[SCAN_REQUEST_ID], row, response.first)
            ):
                tokens = scan_int_at(&items[SCAN_OUTPUT_TOKENS], row)
                most = scan_int_at(&items[SCAN_OUTPUT_TOKENS], response.counted)
                if tokens > most or (tokens == most and scan_is_before(items, response.counted, row)):
                    response.counted = <uint32_t>row
                if scan_is_before(items, row, response.first):
                    response.first = <uint32_t>row
                break
            slot = (slot + 1) & (slot_count - 1)
    for i in range(count):
        keep[responses[i].first] = keep[responses[i].counted] = True
    for i in range(columns.count):
        arrow_column_keep(&columns.items[columns.order[i]], keep)
    row = 0
    for i in range(columns.rows):
        row += keep[i]
    columns.rows = row
    PyMem_RawFree(slots)
    PyMem_RawFree(responses)
    PyMem_RawFree(keep)
    return 0
