# Ids that were read before: those of tools' results, and of records, of which hosts write some twice.
#
# Gives: RecIds, rec_find_id, rec_add_id. For Python: SeenRecords, repeated_records.
# Needs: the window (transcript/window.pxi), rec_find (transcript/bad_lines.pxi), rec_value_is_string
# (transcript/fields.pxi), Record (transcript/record_class.pxi), text_hash (text/view.pxi).
#
# Claude Code writes old records again, with their uuid and time, at a second compaction, and when it resumes or forks
# a compacted session (2.1.332). A record whose uuid stands in an earlier line is that older record.

cdef struct RecIds:
    # A hash table of fingerprints, whose lowest bit is the mark that the id was added with. A slot of 0 is free. As
    # Python objects, they would take longer than everything else.
    uint64_t* slots
    size_t capacity  # a power of two
    size_t count


cdef uint64_t* rec_id_slot(RecIds* ids, uint64_t key) noexcept nogil:
    """Return the slot of a key, or the free one where it belongs. The table must have a free slot."""
    cdef size_t at = (key >> 1) & (ids.capacity - 1)
    while ids.slots[at] != 0 and ids.slots[at] >> 1 != key >> 1:
        at = (at + 1) & (ids.capacity - 1)
    return &ids.slots[at]


cdef inline uint64_t rec_id_key(RecSlice* name, bint mark) noexcept nogil:
    """Return what stands for an id in the table; never 0."""
    return ((text_hash(name.start, name.end - name.start) | 2) & ~<uint64_t>1) | mark


cdef uint64_t rec_find_id(RecIds* ids, RecSlice* name) noexcept nogil:
    """Return what stands for an id in the table, 0 if it is not in it."""
    return rec_id_slot(ids, rec_id_key(name, False))[0] if ids.capacity else 0


cdef int rec_add_id(RecIds* ids, RecSlice* name, bint mark) noexcept nogil:
    """Keep an id. Returns 0, or -1: no memory."""
    cdef RecIds wider
    cdef uint64_t key = rec_id_key(name, mark)
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


cdef bint rec_is_new(RecIds* seen, RecFields* fields) except -1:
    """Return whether no record with this one's uuid was seen before, and keep it. One without a uuid is always new."""
    cdef RecSlice* uuid = &fields.top[FIELD_UUID]
    if not rec_value_is_string(uuid):
        return True
    if rec_find_id(seen, uuid):
        return False
    if rec_add_id(seen, uuid, False) < 0:
        raise MemoryError()
    return True


# ---- for Python ---------------------------------------------------------------

@cython.final
cdef class SeenRecords:
    cdef RecIds ids

    def __dealloc__(self):
        PyMem_RawFree(self.ids.slots)

    def add(self, Record record not None):
        return rec_is_new(&self.ids, &record.fields)


def repeated_records(file, start=0, end=None, max_line=None):
    cdef WinWindow window
    cdef WinLine line
    cdef RecFields fields
    cdef SeenRecords seen = SeenRecords.__new__(SeenRecords)
    cdef set found = set()
    try:
        win_open(&window, file, start, end, max_line, True)
        while win_step(&window, &line):
            if rec_find(line.start, line.end, &fields) and not rec_is_new(&seen.ids, &fields):
                found.add(line.offset)
        return found
    finally:
        win_close(&window)
