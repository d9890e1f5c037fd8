# Drops records of API responses that cannot count, and gives each response once.
#
# Gives: ScanResponse, SCAN_IS_JOINED, scan_drop_responses, scan_has_response_columns; scan_join_response,
# scan_leave_out_joined, scan_new_slots. For Python: ResponseCounter.
# Needs: the columns, scan_field_named (scan/fields.pxi), scan_join_copies (scan/copies.pxi), arrow_copy_value
# (arrow/columns.pxi), ArrowBatch, arrow_batch_of (arrow/batch.pxi), arrow_columns_free (arrow/export.pxi), text_hash
# (text/view.pxi).
#
# An advisor's response has the ids of the agent's response, and its own number.
#
# A response is known by its message id and request id; by its request id or its uuid if it has no message id; and by
# its place if it has none of them. An empty id counts as missing. It may be in several records of several files. It
# belongs to the session of the first record, and the record with the most tokens counts. All others so far may be
# dropped at any time: they can never become the first or the counting one.

cdef enum:
    SCAN_IS_JOINED = 0xFFFFFFFF   # instead of the first row: the response was joined to another one
    SCAN_MIN_DROP_ROWS = 1 << 16  # after so many more rows, a counter drops those that cannot count

cdef struct ScanResponse:
    uint32_t first     # the least by (time, path, offset)
    uint32_t counted   # the greatest by (output tokens, time, path, offset), but see scan_join_response


cdef inline int64_t scan_int_at(const ArrowColumn* column, size_t row) noexcept nogil:
    """Return the value of a row; a null is less than all others."""
    return (<const int64_t*>column.values)[row] if arrow_is_valid(column, row) else INT64_MIN


cdef bint scan_has_same_text(const ArrowColumn* column, size_t row, size_t other) noexcept nogil:
    """Return whether two values of a column of ARROW_TEXT are the same text, or both are null or empty."""
    cdef const int32_t* offsets = column.texts.offsets
    cdef int32_t size = offsets[row + 1] - offsets[row]
    if size != offsets[other + 1] - offsets[other]:
        return False
    return size == 0 or memcmp(column.texts.data + offsets[row], column.texts.data + offsets[other], size) == 0


cdef int scan_compare_names(const ArrowColumn* column, size_t row, size_t other) noexcept nogil:
    """Return a number below, at or over zero, as the first name is less than, equal to or greater than the second."""
    cdef const ArrowTexts* texts = &column.texts
    cdef int32_t one = (<const int32_t*>column.values)[row]
    cdef int32_t two = (<const int32_t*>column.values)[other]
    return 0 if one == two else arrow_compare_texts(texts, one, two)


cdef bint scan_is_before(const ArrowColumn* items, size_t row, size_t other) noexcept nogil:
    """Return whether a row comes before another one by (time, path, offset)."""
    cdef int64_t time = scan_int_at(&items[SCAN_TIMESTAMP], row)
    cdef int64_t other_time = scan_int_at(&items[SCAN_TIMESTAMP], other)
    cdef int order
    if time != other_time:
        return time < other_time
    order = scan_compare_names(&items[SCAN_PATH], row, other)
    if order:
        return order < 0
    return scan_int_at(&items[SCAN_OFFSET], row) < scan_int_at(&items[SCAN_OFFSET], other)


cdef inline size_t scan_size_of(const ArrowColumn* column, size_t row) noexcept nogil:
    """Return the number of bytes of a value in a column of ARROW_TEXT; 0 for a null."""
    return column.texts.offsets[row + 1] - column.texts.offsets[row]


cdef inline int scan_id_of(const ArrowColumn* items, size_t row) noexcept nogil:
    """Return the column that identifies a row's response, or -1 for its place."""
    if arrow_is_valid(&items[SCAN_COPIES], row):
        return SCAN_UUID
    if scan_size_of(&items[SCAN_MESSAGE_ID], row):
        return SCAN_MESSAGE_ID
    if scan_size_of(&items[SCAN_REQUEST_ID], row):
        return SCAN_REQUEST_ID
    return SCAN_UUID if scan_size_of(&items[SCAN_UUID], row) else -1


cdef inline bint scan_is_same_advisor(const ArrowColumn* items, size_t row, size_t other) noexcept nogil:
    """Return whether two rows are both of the agent's own response, or of the same advisor's response."""
    return scan_int_at(&items[SCAN_ADVISOR], row) == scan_int_at(&items[SCAN_ADVISOR], other)


cdef bint scan_is_same_response(const ArrowColumn* items, size_t row, size_t other) noexcept nogil:
    """Return whether two rows are of one response; a message id without a request id is an identity of its own."""
    cdef int known_by = scan_id_of(items, row)
    if known_by != scan_id_of(items, other) or not scan_is_same_advisor(items, row, other):
        return False
    if known_by < 0:
        return (
            scan_int_at(&items[SCAN_OFFSET], row) == scan_int_at(&items[SCAN_OFFSET], other)
            and scan_compare_names(&items[SCAN_PATH], row, other) == 0
        )
    return scan_has_same_text(&items[known_by], row, other) and (
        known_by != SCAN_MESSAGE_ID or scan_has_same_text(&items[SCAN_REQUEST_ID], row, other)
    )


cdef inline size_t scan_hash_text(const ArrowColumn* column, size_t row) noexcept nogil:
    """Return a hash of a value of a column of ARROW_TEXT."""
    return text_hash(column.texts.data + column.texts.offsets[row], scan_size_of(column, row))


cdef size_t scan_hash_response(const ArrowColumn* items, size_t row) noexcept nogil:
    """Return a hash of the identity of a row's response."""
    cdef int known_by = scan_id_of(items, row)
    cdef size_t found
    if known_by < 0:
        return text_hash(<Cursor>((<const int64_t*>items[SCAN_OFFSET].values) + row), sizeof(int64_t))
    found = scan_hash_text(&items[known_by], row)
    if known_by == SCAN_MESSAGE_ID:
        found = 31 * found + scan_hash_text(&items[SCAN_REQUEST_ID], row)
    return found


cdef uint32_t* scan_new_slots(size_t count, size_t* slot_count) noexcept nogil:
    """Return a hash table for `count` items. The caller frees it."""
    slot_count[0] = 64
    while slot_count[0] < 2 * count:
        slot_count[0] *= 2
    return <uint32_t*>PyMem_RawCalloc(slot_count[0], sizeof(uint32_t))


cdef void scan_join_response(const ArrowColumn* items, ScanResponse* response, ScanResponse* other) noexcept nogil:
    """Add the facts from other records of a response."""
    cdef int64_t tokens = scan_int_at(&items[SCAN_OUTPUT_TOKENS], other.counted)
    cdef int64_t most = scan_int_at(&items[SCAN_OUTPUT_TOKENS], response.counted)
    cdef bint is_later = scan_is_before(items, response.counted, other.counted)
    # A thread that repeats another one's line gives it a new time: the response's time is the first one.
    if tokens > most or (tokens == most and is_later != arrow_is_valid(&items[SCAN_COPIES], other.counted)):
        response.counted = other.counted
    if scan_is_before(items, other.first, response.first):
        response.first = other.first


cdef ScanResponse* scan_find_responses(const ScanColumns* columns, size_t* count, uint32_t* owners) noexcept nogil:
    """Return the responses of all rows. The caller frees them.

    count: set to their number.
    owners: set to the number of each row's response, if it is not NULL.
    """
    cdef const ArrowColumn* items = columns.items
    cdef size_t slot_count, row, slot
    cdef ScanResponse one
    cdef uint32_t* slots = scan_new_slots(columns.rows, &slot_count)
    cdef ScanResponse* responses = <ScanResponse*>PyMem_RawMalloc(max(<size_t>1, columns.rows) * sizeof(ScanResponse))
    count[0] = 0
    if slots == NULL or responses == NULL:
        PyMem_RawFree(slots)
        PyMem_RawFree(responses)
        return NULL
    for row in range(columns.rows):
        one = ScanResponse(<uint32_t>row, <uint32_t>row)
        slot = scan_hash_response(items, row) & (slot_count - 1)
        while slots[slot] and not scan_is_same_response(items, row, responses[slots[slot] - 1].first):
            slot = (slot + 1) & (slot_count - 1)
        if slots[slot]:
            scan_join_response(items, &responses[slots[slot] - 1], &one)
        else:
            responses[count[0]] = one
            count[0] += 1
            slots[slot] = <uint32_t>count[0]
        if owners != NULL:
            owners[row] = slots[slot] - 1
    PyMem_RawFree(slots)
    return responses


cdef void scan_leave_out_joined(ScanResponse* responses, size_t* count) noexcept nogil:
    """Leave out the responses that were joined to others. count: set to the remaining number."""
    cdef size_t left = 0
    cdef size_t i
    for i in range(count[0]):
        if responses[i].first != SCAN_IS_JOINED:
            responses[left] = responses[i]
            left += 1
    count[0] = left


cdef int scan_join_requests(const ArrowColumn* items, ScanResponse* responses, size_t* count) noexcept nogil:
    """Join the responses of a message id that also occurs without a request id.

    count: of the responses, set to how many are left.
    """
    cdef const ArrowColumn* messages = &items[SCAN_MESSAGE_ID]
    cdef size_t slot_count, i, slot
    cdef size_t found = 0
    cdef uint32_t* slots = scan_new_slots(count[0], &slot_count)
    if slots == NULL:
        return -1
    for i in range(count[0]):
        if (
            scan_id_of(items, responses[i].first) == SCAN_MESSAGE_ID
            and not scan_size_of(&items[SCAN_REQUEST_ID], responses[i].first)
        ):
            slot = scan_hash_text(messages, responses[i].first) & (slot_count - 1)
            while slots[slot]:
                slot = (slot + 1) & (slot_count - 1)
            slots[slot] = <uint32_t>(i + 1)
            found += 1
    for i in range(count[0] if found else 0):
        if scan_id_of(items, responses[i].first) != SCAN_MESSAGE_ID:
            continue
        slot = scan_hash_text(messages, responses[i].first) & (slot_count - 1)
        while slots[slot] and not (
            scan_has_same_text(messages, responses[i].first, responses[slots[slot] - 1].first)
            and scan_is_same_advisor(items, responses[i].first, responses[slots[slot] - 1].first)
        ):
            slot = (slot + 1) & (slot_count - 1)
        if slots[slot] and slots[slot] != i + 1:
            scan_join_response(items, &responses[slots[slot] - 1], &responses[i])
            responses[i].first = SCAN_IS_JOINED
    PyMem_RawFree(slots)
    scan_leave_out_joined(responses, count)
    return 0


cdef bint scan_has_response_columns(const ScanColumns* columns) noexcept nogil:
    """Return whether all columns are there to identify a response's records and the one that counts."""
    return (
        columns.wanted[SCAN_PATH] and columns.wanted[SCAN_OFFSET] and columns.wanted[SCAN_TIMESTAMP]
        and columns.wanted[SCAN_MESSAGE_ID] and columns.wanted[SCAN_REQUEST_ID] and columns.wanted[SCAN_UUID]
        and columns.wanted[SCAN_SESSION_ID] and columns.wanted[SCAN_OUTPUT_TOKENS]
        and columns.wanted[SCAN_ADVISOR] and columns.wanted[SCAN_COPIES]
    )


cdef int scan_drop_responses(ScanColumns* columns) noexcept nogil:
    """Drop the rows that cannot affect which record of a response counts."""
    cdef size_t count, i
    cdef size_t left = 0
    cdef uint8_t* keep
    cdef ScanResponse* responses
    if columns.rows < 2:
        return 0
    responses = scan_find_responses(columns, &count, NULL)
    keep = <uint8_t*>PyMem_RawCalloc(columns.rows, 1)
    if responses == NULL or keep == NULL:
        PyMem_RawFree(responses)
        PyMem_RawFree(keep)
        return -1
    for i in range(count):
        keep[responses[i].first] = keep[responses[i].counted] = True
    for i in range(columns.rows):
        keep[i] |= arrow_is_valid(&columns.items[SCAN_COPIES], i)  # any may show a copy of another thread
    for i in range(columns.count):
        arrow_column_filter(&columns.items[columns.order[i]], keep)
    for i in range(columns.rows):
        left += keep[i]
    columns.rows = left
    PyMem_RawFree(responses)
    PyMem_RawFree(keep)
    return 0


# ---- for Python ----------------------------------------------------------------

# A response on its way into an order.
cdef struct ScanOrdered:
    const ArrowColumn* items
    ScanResponse response


cdef int scan_order_responses(const void* one, const void* other) noexcept nogil:
    """Compare by time, session, message id, request id and place. Missing values come first."""
    cdef const ArrowColumn* items = (<const ScanOrdered*>one).items
    cdef ScanResponse left = (<const ScanOrdered*>one).response
    cdef ScanResponse right = (<const ScanOrdered*>other).response
    cdef int64_t time = scan_int_at(&items[SCAN_TIMESTAMP], left.counted)
    cdef int64_t other_time = scan_int_at(&items[SCAN_TIMESTAMP], right.counted)
    cdef int order = (time > other_time) - (time < other_time)
    if order == 0:
        order = scan_compare_names(&items[SCAN_SESSION_ID], left.first, right.first)
    if order == 0:
        order = arrow_compare_texts(&items[SCAN_MESSAGE_ID].texts, left.counted, right.counted)
    if order == 0:
        order = arrow_compare_texts(&items[SCAN_REQUEST_ID].texts, left.counted, right.counted)
    if order == 0:
        order = scan_is_before(items, right.counted, left.counted) - scan_is_before(items, left.counted, right.counted)
    return order if order else (left.counted > right.counted) - (left.counted < right.counted)


@cython.final
cdef class ResponseCounter:
    cdef ScanColumns columns
    cdef tuple names
    cdef size_t kept           # rows after the last drop of rows that cannot count
    cdef char is_running       # in a thread
    cdef bint has_failed       # no memory: the columns may have different lengths

    def __cinit__(self, tuple names not None):
        cdef int field
        self.names = names
        for name in names:
            field = scan_field_named(name, False)
            if not self.columns.wanted[field]:
                self.columns.wanted[field] = True
                self.columns.order[self.columns.count] = field
                self.columns.count += 1
        if not scan_has_response_columns(&self.columns) or self.columns.count != <size_t>len(names):
            raise ValueError("these columns do not show which records are of one response")
        scan_define_columns(&self.columns)
        if any([self.columns.items[self.columns.order[i]].kind == ARROW_NAMES for i in range(self.columns.count)]):
            raise ValueError("a counter has no columns of lists")

    def __dealloc__(self):
        cdef int i
        for i in range(SCAN_FIELDS):
            arrow_column_free(&self.columns.items[i])

    cdef int enter(self) except -1:
        """Take the counter for this thread, until `is_running` is left. Raises RuntimeError, or MemoryError again."""
        if not os_flag_enter(&self.is_running):
            raise RuntimeError("another thread uses this counter")
        if self.has_failed:
            os_flag_leave(&self.is_running)
            raise MemoryError
        return 0

    cdef int append(self, const ArrowColumn* more, size_t rows) noexcept nogil:
        """Append rows; now and then, drop the rows that cannot count.

        more: the rows' columns, in the order of the names.
        """
        cdef ScanColumns* columns = &self.columns
        cdef size_t i, row
        if rows >= SCAN_IS_JOINED - columns.rows:
            return -1
        for i in range(columns.count):
            for row in range(rows):
                if arrow_copy_value(&columns.items[columns.order[i]], &more[i], row) < 0:
                    return -1
        columns.rows += rows
        if columns.rows >= 2 * self.kept + SCAN_MIN_DROP_ROWS:
            if scan_drop_responses(columns) < 0:
                return -1
            self.kept = columns.rows
        return 0

    def add(self, ArrowBatch batch not None):
        if batch.names != self.names:
            raise ValueError("the batch has other columns than the counter")
        self.enter()
        with nogil:
            self.has_failed = self.append(batch.storage.columns, batch.storage.length) < 0
        os_flag_leave(&self.is_running)
        if self.has_failed:
            raise MemoryError

    cdef ScanOrdered* ordered(self, size_t* count) noexcept nogil:
        """Return the responses in order. The caller frees them. count: set to their number."""
        cdef const ArrowColumn* items = self.columns.items
        cdef uint32_t* owners = <uint32_t*>PyMem_RawMalloc(max(<size_t>1, self.columns.rows) * sizeof(uint32_t))
        cdef ScanResponse* responses = NULL
        cdef ScanOrdered* found = NULL
        cdef size_t i
        if owners != NULL:
            responses = scan_find_responses(&self.columns, count, owners)
        if (
            responses != NULL
            and scan_join_copies(&self.columns, responses, count, owners) == 0
            and scan_join_requests(items, responses, count) == 0
        ):
            found = <ScanOrdered*>PyMem_RawMalloc(max(<size_t>1, count[0]) * sizeof(ScanOrdered))
            for i in range(count[0] if found != NULL else 0):
                found[i] = ScanOrdered(items, responses[i])
            if found != NULL:
                qsort(found, count[0], sizeof(ScanOrdered), scan_order_responses)
        PyMem_RawFree(owners)
        PyMem_RawFree(responses)
        return found

    def rows(self, tuple names not None):
        cdef ScanOrdered* found = NULL
        cdef size_t count, i
        if not set(names) <= set(self.names):
            raise ValueError("the counter lacks one of the columns")
        self.enter()
        try:
            with nogil:
                found = self.ordered(&count)
            if found == NULL:
                raise MemoryError
            return [
                scan_response_batch(self.columns.items, found + i, min(count - i, <size_t>SCAN_BATCH_ROWS), names)
                for i in range(0, count, SCAN_BATCH_ROWS)
            ]
        finally:
            PyMem_RawFree(found)
            os_flag_leave(&self.is_running)


cdef ArrowBatch scan_response_batch(
    const ArrowColumn* items, const ScanOrdered* ordered, size_t count, tuple names
):
    """Return a batch with a row for each response."""
    cdef ArrowColumn* columns = <ArrowColumn*>PyMem_RawCalloc(max(1, len(names)), sizeof(ArrowColumn))
    cdef size_t width = len(names)
    cdef size_t i, k
    cdef int field
    cdef bint of_first
    if columns == NULL:
        raise MemoryError
    try:
        for i in range(width):
            field = scan_field_named(names[i], False)
            of_first = field in (SCAN_SESSION_ID, SCAN_AGENT_ID, SCAN_PROJECT, SCAN_HOST)  # the response's session
            columns[i].kind, columns[i].name = items[field].kind, items[field].name
            for k in range(count):
                if arrow_copy_value(
                    &columns[i], &items[field], ordered[k].response.first if of_first else ordered[k].response.counted
                ) < 0:
                    raise MemoryError
    except BaseException:
        arrow_columns_free(columns, width)
        raise
    return arrow_batch_of(columns, width, count)
