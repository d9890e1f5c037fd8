# The scan of a range, for Python.
#
# Gives: nothing to other parts. For Python: scan_range, RangeScan.
# Needs: ScanSmallFile, scan_small_files (scan/small_files.pxi), scan_read, scan_feed_blocks, scan_one_line,
# scan_end_of_file, scan_free_working_memory (scan/run.pxi), scan_queue_*, scan_batch_free (scan/queue.pxi),
# scan_define_columns, scan_cut_batch, scan_text_room (scan/fields.pxi), ScanPlace (scan/records.pxi), ScanProgram
# (scan/program.pxi), scan_has_response_columns (scan/responses.pxi), arrow_column_free, arrow_texts_free
# (arrow/columns.pxi), arrow_batch_of (arrow/batch.pxi).

@cython.final
@cython.no_gc_clear  # the scan borrows what these objects own
cdef class RangeScan:
    cdef ScanRun run
    cdef readonly ScanProgram program
    cdef bytes path, session_id, host
    cdef char is_running       # in a thread
    cdef bint is_open          # a range is begun and its file not ended
    cdef bint has_failed       # rows are missing or incomplete

    def __cinit__(self, ScanProgram program not None, max_waiting=None):
        cdef size_t batches = SIZE_MAX if max_waiting is None else max_waiting
        if batches == 0:
            raise ValueError("max_waiting is at least 1")
        self.program = program
        self.run.question = &program.question
        self.run.is_done = True
        for field in program.fields:
            self.run.columns.wanted[<int>field] = True
            self.run.columns.order[self.run.columns.count] = field
            self.run.columns.count += 1
        self.run.columns.batch_rows = (
            SCAN_BATCH_LINES if program.question.table == SCAN_SESSION_LINES else SCAN_BATCH_ROWS
        )
        self.run.columns.are_responses = program.question.table == SCAN_USAGE and scan_has_response_columns(
            &self.run.columns
        )
        scan_define_columns(&self.run.columns)
        # Texts that are empty have an address, too.
        if scan_text_room(&self.run.text, 1) < 0 or scan_text_room(&self.run.scratch, 1) < 0:
            raise MemoryError
        if scan_queue_open(&self.run.columns.queue, batches) < 0:
            raise MemoryError

    def __dealloc__(self):
        cdef ScanColumns* columns = &self.run.columns
        cdef size_t i
        scan_queue_close(&columns.queue)
        for i in range(SCAN_FIELDS):
            arrow_column_free(&columns.items[i])
        arrow_texts_free(&self.run.unknown_types)
        scan_free_working_memory(&self.run)
        PyMem_RawFree(self.run.pending.data)
        PyMem_RawFree(self.run.text.data)
        PyMem_RawFree(self.run.scratch.data)

    cdef int enter(self, bint needs_range) except -1:
        """Take the scan for this thread, until `leave`. Raises RuntimeError, and MemoryError if it failed before."""
        if not os_flag_enter(&self.is_running):
            raise RuntimeError("another thread uses this scan")
        if self.has_failed or (needs_range and not self.is_open):
            self.leave()
            if self.has_failed:
                raise MemoryError
            raise RuntimeError("begin a range first")
        return 0

    cdef void leave(self) noexcept:
        os_flag_leave(&self.is_running)

    cdef int check(self, int result) except -1:
        """Raise the error of a result. After a MemoryError there are no more rows: the last one may be incomplete."""
        if result == SCAN_UNREADABLE:
            PyErr_SetFromErrno(OSError)
        if result == SCAN_NO_MEMORY:
            self.fail()
            raise MemoryError
        return 0

    cdef void fail(self) noexcept:
        """Give no more rows."""
        self.has_failed = True
        with nogil:
            scan_queue_stop(&self.run.columns.queue)

    cdef int begin_range(self, str path, str session_id, str host, int64_t start, end) except -1:
        """Begin a range. The caller has entered."""
        cdef int64_t stop = INT64_MAX if end is None else end
        cdef bytes path_text = path.encode("utf-8", "replace")
        cdef bytes session_text = session_id.encode("utf-8", "replace")
        cdef bytes host_text = host.encode("utf-8", "replace")
        if not 0 <= start <= INT64_MAX // 2:
            raise ValueError("a range begins in its file")
        self.path, self.session_id, self.host = path_text, session_text, host_text
        self.run.place = ScanPlace(
            <Cursor>PyBytes_AS_STRING(self.path), len(self.path),
            <Cursor>PyBytes_AS_STRING(self.session_id), len(self.session_id),
            <Cursor>PyBytes_AS_STRING(self.host), len(self.host), 0,
        )
        self.run.pending.size = 0
        self.run.offset = max(start - 1, <int64_t>0)
        self.run.end = stop
        self.run.is_skipping = start > 0
        if stop <= start:
            os_flag_set(&self.run.is_done)
        else:
            os_flag_leave(&self.run.is_done)
        return 0

    def begin(self, str path not None, str session_id not None, str host not None, int64_t start=0, end=None):
        self.enter(False)
        try:
            self.begin_range(path, session_id, host, start, end)
            self.is_open = True
            with nogil:
                scan_queue_reopen(&self.run.columns.queue)
        finally:
            self.leave()

    def read_small_files(self, list parts not None, Py_ssize_t first, str host not None):
        cdef ScanSmallFile files[SCAN_FILES_AT_ONCE]
        cdef bytes host_name = host.encode()
        cdef const char* host_text = PyBytes_AS_STRING(host_name)
        cdef Py_ssize_t begun = first
        cdef Py_ssize_t path_bytes
        cdef size_t done = 0
        cdef size_t count = 0
        cdef int result = 0
        self.enter(False)
        try:
            self.is_open = False
            with nogil:
                scan_queue_reopen(&self.run.columns.queue)
            while done == count:
                first += done
                count = 0
                while count < SCAN_FILES_AT_ONCE and first + <Py_ssize_t>count < len(parts):
                    path, start, end, size, version, begin, url = parts[first + count]
                    if version is not None or start or begin or end != size or size >= SCAN_BLOCK_BYTES or "\0" in path:
                        break
                    files[count].path = PyUnicode_AsUTF8AndSize(path, &path_bytes)
                    files[count].opened = PyUnicode_AsUTF8AndSize(url, NULL) if url else files[count].path
                    files[count].path_bytes, files[count].size = path_bytes, size
                    count += 1
                if count == 0:
                    break
                with nogil:
                    done = scan_small_files(&self.run, files, count, host_text, &result)
                self.check(result)
            return first + (0 if count == 0 else <Py_ssize_t>done) - begun
        finally:
            memset(&self.run.place, 0, sizeof(ScanPlace))
            self.leave()

    @property
    def is_done(self):
        return os_flag_is_set(&self.run.is_done)

    @property
    def line_gate(self):
        cdef bint is_gated = self.run.question.has_gate and self.run.question.table in (SCAN_MATCHES, SCAN_USAGE)
        return self.program.automata[len(self.program.automata) - 1] if is_gated else None

    def feed(self, bytes data not None):
        cdef Cursor start = <Cursor>PyBytes_AS_STRING(data)
        cdef Cursor end = start + PyBytes_GET_SIZE(data)
        cdef int result
        self.enter(True)
        try:
            with nogil:
                result = scan_feed_blocks(&self.run, start, end)
            self.check(result)
        finally:
            self.leave()

    def feed_line(self, bytes line not None, bytes translated, int64_t offset):
        cdef Cursor start = <Cursor>PyBytes_AS_STRING(line)
        cdef Cursor end = start + PyBytes_GET_SIZE(line)
        cdef bytes record = translated or b""
        cdef Cursor first = <Cursor>PyBytes_AS_STRING(record)
        cdef Cursor last = first + PyBytes_GET_SIZE(record)
        cdef int result
        self.enter(True)
        try:
            with nogil:
                result = scan_one_line(&self.run, start, end, first, last, offset)
            self.check(result)
        finally:
            self.leave()

    def end_file(self):
        cdef int result
        self.enter(True)
        try:
            with nogil:
                result = scan_end_of_file(&self.run)
            self.is_open = False
            self.check(result)
        finally:
            self.leave()

    def take(self):
        cdef ScanBatch batch
        cdef int result
        while True:
            with nogil:
                result = scan_queue_take(&self.run.columns.queue, &batch)
            if result >= 0:  # a signal is handled only after the call, so that the batch is not lost
                break
            PyErr_CheckSignals()
        return arrow_batch_of(batch.columns, batch.column_count, batch.rows) if result else None

    def stop(self):
        with nogil:
            scan_queue_stop(&self.run.columns.queue)

    @property
    def is_stopped(self):
        return os_flag_is_set(&self.run.columns.queue.is_stopped)

    def finish(self):
        cdef ScanColumns* columns = &self.run.columns
        cdef ScanBatch* waiting = NULL
        cdef ScanBatch last
        cdef size_t count = 0
        cdef size_t given = 0
        cdef list batches = []
        self.enter(False)
        try:
            with nogil:
                scan_queue_end(&columns.queue, &waiting, &count)
            while given < count:
                given += 1
                last = waiting[given - 1]
                batches.append(arrow_batch_of(last.columns, last.column_count, last.rows))
            if columns.rows or not batches:
                self.check(scan_cut_batch(columns, &last))
                batches.append(arrow_batch_of(last.columns, last.column_count, last.rows))
            return batches
        except BaseException:
            self.fail()
            raise
        finally:
            while given < count:
                scan_batch_free(&waiting[given])
                given += 1
            PyMem_RawFree(waiting)
            scan_free_working_memory(&self.run)
            self.leave()

    @property
    def counts(self):
        self.enter(False)
        try:
            return {
                "records": self.run.records, "broken_lines": self.run.broken_lines, "long_lines": self.run.long_lines,
            }
        finally:
            self.leave()

    @property
    def unknown_types(self):
        cdef ArrowTexts* texts = &self.run.unknown_types
        cdef dict counts = {}
        cdef size_t i
        self.enter(False)
        try:
            for i in range(texts.count // 2):
                pair = scan_text_at(texts, 2 * i), scan_text_at(texts, 2 * i + 1)
                counts[pair] = counts.get(pair, 0) + self.run.unknown_counts[i]
            if self.run.unknown_counts[SCAN_MAX_UNKNOWN_TYPES]:
                counts["others", ""] = counts.get(("others", ""), 0) + self.run.unknown_counts[SCAN_MAX_UNKNOWN_TYPES]
            return counts
        finally:
            self.leave()


cdef object scan_text_at(const ArrowTexts* texts, size_t i):
    return texts.data[texts.offsets[i]:texts.offsets[i + 1]].decode("utf-8", "replace")


def scan_range(
    int source, int64_t start, end, ScanProgram program not None, *, str path not None="", str session_id not None="",
    str host not None="claude-code", RangeScan into=None,
):
    cdef RangeScan scan = RangeScan(program) if into is None else into
    cdef int result
    if scan.program is not program:
        raise ValueError("the scan has another question")
    scan.enter(False)
    try:
        scan.begin_range(path, session_id, host, start, end)
        scan.is_open = False
        with nogil:
            scan_queue_reopen(&scan.run.columns.queue)
            result = scan_read(&scan.run, source)
        scan.check(result)
    finally:
        scan.leave()
    return scan.finish() if into is None else []
