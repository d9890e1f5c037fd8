# Whole files that are small, one after the other without the interpreter.
#
# Gives: ScanSmallFile, scan_small_files; SCAN_FILES_AT_ONCE.
# Needs: ScanRun, scan_feed, scan_end_of_file, SCAN_NO_MEMORY, SCAN_BLOCK_BYTES (scan/run.pxi), ScanPlace
# (scan/records.pxi), SCAN_MAX_NAME_BYTES (scan/fields.pxi), RecFields, RecSlice, FIELD_*, rec_value_is_utf8
# (transcript/fields.pxi), rec_find_member (transcript/properties.pxi), rec_find (transcript/bad_lines.pxi),
# os_read_file and os_flag_* (os/file.h).
#
# With 200,000 files of one line, Python's work for each takes longer than the reading. Here a file costs four system
# calls. Only files of Claude Code are read here, recognized by their first record; all others are left to the caller.

cdef enum:
    SCAN_FILES_AT_ONCE = 128  # handed over at once, without the interpreter's lock

# A file with its path in the rows, the path to open and its expected size.
cdef struct ScanSmallFile:
    const char* path
    const char* opened
    size_t path_bytes
    size_t size


cdef bint scan_find_own_session(Cursor start, Cursor end, RecSlice* session) noexcept nogil:
    """Find the session of a file. Return whether it begins with a record of Claude Code that has an id and a session.

    session: set to the session's id, without its quotes.
    """
    cdef Cursor newline = <Cursor>memchr(start, c"\n", end - start)
    cdef RecFields fields
    cdef RecSlice* named = &fields.top[FIELD_SESSION_ID]
    cdef RecSlice* uuid = &fields.top[FIELD_UUID]
    cdef RecSlice record, found
    if newline == NULL or not rec_find(start, newline, &fields) or fields.start != start:
        return False
    if not rec_value_is_string(uuid) or uuid.end - uuid.start <= 2 or not rec_value_is_utf8(named):
        return False
    if fields.message[FIELD_CONTENT].start == NULL:  # Qwen Code's records have both, too, but never a content
        record = RecSlice(fields.start, fields.end)
        if rec_find_member(&record, LIT(b"systemPayload"), &found):
            return False
        if rec_find_member(&fields.top[FIELD_MESSAGE], LIT(b"parts"), &found):
            return False
    session[0] = RecSlice(named.start + 1, named.end - 1)
    return (
        0 < session.end - session.start <= SCAN_MAX_NAME_BYTES
        and memchr(session.start, c"\\", session.end - session.start) == NULL
    )


cdef size_t scan_small_files(
    ScanRun* run, const ScanSmallFile* files, size_t count, const char* host, int* result
) noexcept nogil:
    """Scan files until one is not Claude Code's, has another size, or the scan is stopped.

    result: set to 0 or SCAN_NO_MEMORY.

    Returns how many files were scanned. Nothing of the next one was.
    """
    cdef RecSlice session
    cdef size_t done
    result[0] = 0
    if run.block == NULL:
        run.block = <unsigned char*>PyMem_RawMalloc(SCAN_BLOCK_BYTES)
        if run.block == NULL:
            result[0] = SCAN_NO_MEMORY
            return 0
    for done in range(count):
        if os_flag_is_set(&run.columns.queue.is_stopped):
            return done
        if not os_read_file(files[done].opened, run.block, files[done].size):
            return done
        if not scan_find_own_session(run.block, run.block + files[done].size, &session):
            return done
        run.place = ScanPlace(
            <Cursor>files[done].path, files[done].path_bytes, session.start, session.end - session.start,
            <Cursor>host, strlen(host), 0,
        )
        run.pending.size = 0
        run.offset = 0
        run.end = files[done].size
        run.is_skipping = False
        os_flag_leave(&run.is_done)
        if scan_feed(run, run.block, run.block + files[done].size) < 0 or scan_end_of_file(run) < 0:
            result[0] = SCAN_NO_MEMORY
            return done
    return count
