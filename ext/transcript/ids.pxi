# Ids that were read before: of tools' results, and of records, because hosts write some records twice.
#
# Gives: RecIds, rec_find_id, rec_add_id, rec_note_record, SeenRecords, repeated_records. For Python: the last two.
# Needs: the window (transcript/window.pxi), rec_next_uuid (transcript/uuids.h), rec_find (transcript/bad_lines.pxi),
# rec_value_is_string (transcript/fields.pxi), Record (transcript/record_class.pxi), text_hash (text/view.pxi).
#
# Claude Code writes old records again, with their uuid and time, at a second compaction, and when it resumes or forks
# a compacted session (2.1.332). If a record's uuid is in an earlier line, it is that older record.

cdef enum:
    REC_OWN_UUIDS = 16  # of one line, known as its own

cdef struct RecIds:
    # A hash table of fingerprints. The lowest bit of each is the id's mark. A slot of 0 is free. As Python objects,
    # they would take longer than everything else.
    uint64_t* slots
    size_t capacity  # a power of two
    size_t count


cdef uint64_t* rec_id_slot(RecIds* ids, uint64_t key) noexcept nogil:
    """Return the slot of a key, or a free slot for it. The table must have a free slot."""
    cdef size_t at = (key >> 1) & (ids.capacity - 1)
    while ids.slots[at] != 0 and ids.slots[at] >> 1 != key >> 1:
        at = (at + 1) & (ids.capacity - 1)
    return &ids.slots[at]


cdef inline uint64_t rec_id_key(RecSlice* name, bint mark) noexcept nogil:
    """Return the fingerprint of an id for the table; never 0."""
    return ((text_hash(name.start, name.end - name.start) | 2) & ~<uint64_t>1) | mark


cdef uint64_t rec_find_id(RecIds* ids, RecSlice* name) noexcept nogil:
    """Return the fingerprint of an id in the table, 0 if it is missing."""
    return rec_id_slot(ids, rec_id_key(name, False))[0] if ids.capacity else 0


cdef int rec_add_id(RecIds* ids, RecSlice* name, bint mark) noexcept nogil:
    """Keep an id."""
    return rec_add_key(ids, rec_id_key(name, mark))


cdef int rec_add_key(RecIds* ids, uint64_t key) noexcept nogil:
    """Keep the fingerprint of an id."""
    cdef RecIds wider
    cdef size_t i
    if 2 * ids.count >= ids.capacity:
        wider.capacity = max(<size_t>256, 4 * ids.capacity)
        wider.count = ids.count
        wider.slots = <uint64_t*>PyMem_RawCalloc(wider.capacity, sizeof(uint64_t))
        if wider.slots == NULL:
            return -1
        for i in range(ids.capacity):
            if ids.slots[i] != 0:
                rec_id_slot(&wider, ids.slots[i])[0] = ids.slots[i]
        PyMem_RawFree(ids.slots)
        ids[0] = wider
    ids.count += 1
    rec_id_slot(ids, key)[0] = key
    return 0


cdef bint rec_note_record(RecIds* seen, RecFields* fields) except -1:
    """Keep a record's uuid. Return whether it is new. A record without a uuid, or with "", is always new."""
    cdef RecSlice* uuid = &fields.top[FIELD_UUID]
    if not rec_value_is_string(uuid) or uuid.end - uuid.start == 2:
        return True
    if rec_find_id(seen, uuid):
        return False
    if rec_add_id(seen, uuid, False) < 0:
        raise MemoryError()
    return True


cdef bint rec_uuid_value(Cursor at, Cursor end, RecSlice* value) noexcept nogil:
    """Find the string behind a member's name "uuid". Return whether there is one; it may have escapes."""
    at += 6
    while at < end and at[0] in b" \t:":
        at += 1
    if at >= end or at[0] != c'"':
        return False
    value.start = at + 1
    value.end = <Cursor>memchr(at + 1, c'"', end - at - 1)
    return value.end != NULL


cdef bint rec_note_uuids(RecIds* seen, WinLine* line) except -1:
    """Keep all uuids in a line, at any depth. Return whether an earlier line may have one of them."""
    cdef uint64_t own[REC_OWN_UUIDS]
    cdef uint64_t key
    cdef int count = 0, i
    cdef RecSlice value
    cdef Cursor at = rec_next_uuid(line.start, line.end)
    while at != NULL:
        if rec_uuid_value(at, line.end, &value):
            key = rec_id_key(&value, False)
            for i in range(count):
                if own[i] == key:
                    break
            else:
                if count == REC_OWN_UUIDS or (seen.capacity and rec_id_slot(seen, key)[0]):
                    return True
                if rec_add_key(seen, key) < 0:
                    raise MemoryError()
                own[count] = key
                count += 1
        at = rec_next_uuid(at + 6, line.end)
    return False


cdef bint rec_may_repeat(object file, object start, object end, object max_line) except -1:
    """Return whether a uuid is in two lines: a search at the speed of memory, without reading the records."""
    cdef WinWindow window
    cdef WinLine line
    cdef SeenRecords seen = SeenRecords.__new__(SeenRecords)
    try:
        win_open(&window, file, start, end, max_line, True)
        while win_step(&window, &line):
            if rec_note_uuids(&seen.ids, &line):
                return True
        return False
    finally:
        win_close(&window)


# ---- for Python ---------------------------------------------------------------

@cython.final
cdef class SeenRecords:
    cdef RecIds ids

    def __dealloc__(self):
        PyMem_RawFree(self.ids.slots)

    def add(self, Record record not None):
        return rec_note_record(&self.ids, &record.fields)


def repeated_records(file, start=0, end=None, max_line=None):
    cdef WinWindow window
    cdef WinLine line
    cdef RecFields fields
    cdef SeenRecords seen = SeenRecords.__new__(SeenRecords)
    cdef set found = set()
    if not rec_may_repeat(file, start, end, max_line):
        return found
    try:
        win_open(&window, file, start, end, max_line, True)
        while win_step(&window, &line):
            if rec_find(line.start, line.end, &fields) and not rec_note_record(&seen.ids, &fields):
                found.add(line.offset)
        return found
    finally:
        win_close(&window)
