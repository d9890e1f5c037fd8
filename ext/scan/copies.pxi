# Responses that are in several threads (one thread began as a copy of another), or in a sum.
#
# Gives: scan_join_copies.
# Needs: ScanResponse, SCAN_IS_JOINED, scan_join_response, scan_leave_out_joined, scan_new_slots (scan/responses.pxi),
# the columns (scan/fields.pxi), ArrowTexts (arrow/columns.pxi), RecSlice (transcript/fields.pxi), text_hash
# (text/view.pxi).

cdef uint32_t scan_root_of(uint32_t* joined_to, uint32_t response) noexcept nogil:
    """Return the response to which a response was joined, directly or through others; itself if it was not joined."""
    while joined_to[response] != response:
        joined_to[response] = joined_to[joined_to[response]]
        response = joined_to[response]
    return response


# A table of ids, by their hash: in a slot is the number of an id from 1, or 0.
cdef struct ScanIds:
    uint32_t* slots
    size_t slot_count
    RecSlice* ids
    uint32_t* owners   # the number of each id's response
    size_t count


cdef int scan_open_ids(ScanIds* table, size_t capacity) noexcept nogil:
    """Make an empty table, which the caller closes."""
    table.count = 0
    table.slots = scan_new_slots(capacity, &table.slot_count)
    table.ids = <RecSlice*>PyMem_RawMalloc(max(<size_t>1, capacity) * sizeof(RecSlice))
    table.owners = <uint32_t*>PyMem_RawMalloc(max(<size_t>1, capacity) * sizeof(uint32_t))
    return -1 if table.slots == NULL or table.ids == NULL or table.owners == NULL else 0


cdef void scan_close_ids(ScanIds* table) noexcept nogil:
    PyMem_RawFree(table.slots)
    PyMem_RawFree(table.ids)
    PyMem_RawFree(table.owners)


cdef uint32_t* scan_find_id(ScanIds* table, Cursor start, Cursor end) noexcept nogil:
    """Return the slot of an id; the slot holds 0 if the table lacks the id."""
    cdef size_t slot = text_hash(start, end - start) & (table.slot_count - 1)
    cdef RecSlice* other
    while table.slots[slot]:
        other = &table.ids[table.slots[slot] - 1]
        if other.end - other.start == end - start and memcmp(other.start, start, end - start) == 0:
            break
        slot = (slot + 1) & (table.slot_count - 1)
    return &table.slots[slot]


cdef uint32_t scan_owner_of_id(ScanIds* table, Cursor start, Cursor end, uint32_t response) noexcept nogil:
    """Return the response with an id. If the table lacks the id, this response gets it."""
    cdef uint32_t* slot = scan_find_id(table, start, end)
    if not slot[0]:
        table.ids[table.count] = RecSlice(start, end)
        table.owners[table.count] = response
        table.count += 1
        slot[0] = <uint32_t>table.count
    return table.owners[slot[0] - 1]


cdef void scan_join_to(uint32_t* joined_to, uint32_t response, uint32_t other) noexcept nogil:
    response, other = scan_root_of(joined_to, response), scan_root_of(joined_to, other)
    joined_to[max(response, other)] = min(response, other)


cdef bint scan_next_copy(RecSlice* rest, RecSlice* line) noexcept nogil:
    """Read the next line of SCAN_COPIES and move the start of `rest` behind it. Returns False if none is left."""
    if rest.start >= rest.end:
        return False
    line.start = rest.start
    line.end = <Cursor>memchr(rest.start, c"\n", rest.end - rest.start)
    if line.end == NULL:
        line.end = rest.end
    rest.start = line.end + 1
    return True


cdef void scan_find_copies(
    const ArrowTexts* copies, size_t rows, ScanIds* ids, ScanIds* missing, uint32_t* joined_to, const uint32_t* owners
) noexcept nogil:
    """Join each response to the ones that its rows name as originals: see scan_join_copies."""
    cdef RecSlice rest, line
    cdef Cursor thread_end
    cdef size_t row
    cdef uint32_t found
    cdef unsigned char mark
    cdef bint is_first
    for mark in b"=~":
        for row in range(rows):
            rest = RecSlice(copies.data + copies.offsets[row], copies.data + copies.offsets[row + 1])
            while scan_next_copy(&rest, &line):
                if line.start[0] == mark:
                    scan_owner_of_id(ids, line.start + 1, line.end, owners[row])
    for row in range(rows):
        rest = RecSlice(copies.data + copies.offsets[row], copies.data + copies.offsets[row + 1])
        is_first = True
        while scan_next_copy(&rest, &line):
            if line.start[0] == c"=" or line.start[0] == c"~" or line.start[0] == c"-":
                continue
            found = scan_find_id(ids, line.start, line.end)[0]
            thread_end = <Cursor>memchr(line.start, c" ", line.end - line.start)
            thread_end = line.end if thread_end == NULL else thread_end
            if found:
                scan_join_to(joined_to, owners[row], ids.owners[found - 1])
            elif is_first and not scan_find_id(ids, line.start, thread_end)[0]:
                found = scan_owner_of_id(missing, line.start, line.end, owners[row])
                scan_join_to(joined_to, owners[row], found)
            is_first = False


cdef void scan_leave_out_parts(
    const ArrowTexts* copies, size_t rows, ScanIds* ids, ScanResponse* responses, const uint32_t* owners
) noexcept nogil:
    """Mark the responses that are part of a sum as joined: see scan_join_copies."""
    cdef RecSlice rest, line
    cdef size_t row
    for row in range(rows):
        rest = RecSlice(copies.data + copies.offsets[row], copies.data + copies.offsets[row + 1])
        while scan_next_copy(&rest, &line):
            if line.start[0] == c"-" and scan_find_id(ids, line.start + 1, line.end)[0]:
                responses[owners[row]].first = SCAN_IS_JOINED


cdef int scan_join_copies(
    const ScanColumns* columns, ScanResponse* responses, size_t* count, const uint32_t* owners
) noexcept nogil:
    """Join each copied response to its original in another thread.

    If a thread begins as a copy of another one, it repeats that one's responses under its own ids. A line of
    SCAN_COPIES has

    - behind "=", the id of the thread, and ids of the response in its copies;
    - behind "~", such an id of a response that may be a copy within its own thread. It is a copy if another response
      has the id behind "=";
    - behind "-", an id of a sum of several responses. If the sum is there, this response is a part of it and does not
      count;
    - otherwise the possible ids of the original in other threads, the nearest thread first. Such an id begins with the
      id of the thread and a blank. The other thread may be a copy, too.

    If no row is of the nearest thread, because its file is missing, the copies of one response count as one.

    owners: the number of each row's response.  count: of the responses; set to the remaining number.
    """
    cdef const ArrowTexts* copies = &columns.items[SCAN_COPIES].texts
    cdef ScanIds ids, missing
    cdef size_t lines = 1
    cdef size_t i
    cdef uint32_t root
    cdef uint32_t* joined_to
    cdef bint has_memory
    if copies.size == 0:
        return 0
    for i in range(copies.size):
        lines += copies.data[i] == c"\n"
    lines += columns.rows
    has_memory = scan_open_ids(&ids, lines) == 0
    has_memory = scan_open_ids(&missing, columns.rows) == 0 and has_memory
    joined_to = <uint32_t*>PyMem_RawMalloc(max(<size_t>1, count[0]) * sizeof(uint32_t))
    if has_memory and joined_to != NULL:
        for i in range(count[0]):
            joined_to[i] = <uint32_t>i
        scan_find_copies(copies, columns.rows, &ids, &missing, joined_to, owners)
        scan_leave_out_parts(copies, columns.rows, &ids, responses, owners)
        for i in range(count[0]):
            root = scan_root_of(joined_to, <uint32_t>i)
            if root != i and responses[root].first != SCAN_IS_JOINED and responses[i].first != SCAN_IS_JOINED:
                scan_join_response(columns.items, &responses[root], &responses[i])
                responses[i].first = SCAN_IS_JOINED
        scan_leave_out_joined(responses, count)
    else:
        has_memory = False
    scan_close_ids(&ids)
    scan_close_ids(&missing)
    PyMem_RawFree(joined_to)
    return 0 if has_memory else -1
