# A scan, for Python: the question as an object that can be pickled, and the scan of a range.
#
# Gives: nothing to other parts. For Python: ScanProgram, RangeScan, make_batch.
# Needs: scan_feed (scan/run.pxi), scan_finish_batch, scan_field_named (scan/fields.pxi), ScanPlace (scan/records.pxi),
# scan_has_response_columns (scan/responses.pxi), arrow_add_* (arrow/columns.pxi), ArrowBatch (arrow/batch.pxi),
# Automaton (patterns/pattern_set.pxi), match_hits_free (patterns/automaton.pxi), md_free_map (markdown/code_map.pxi).

cdef enum:
    SCAN_MAX_CONTEXT = 1 << 16  # characters on either side of a match
    SCAN_SIGNAL_BLOCKS = 8      # after so many blocks, signals are looked at

cdef int scan_fill_texts(ArrowTexts* texts, values) except -1:
    """Add strings to empty texts."""
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"a list of texts has {value!r}")
        data = value.encode("utf-8", "replace")
        if arrow_texts_add(texts, <Cursor>PyBytes_AS_STRING(data), len(data)) < 0:
            raise MemoryError
    return 0


cdef object scan_text_at(const ArrowTexts* texts, size_t i):
    return texts.data[texts.offsets[i]:texts.offsets[i + 1]].decode("utf-8", "replace")


cdef object scan_type_of(int kind):
    """Return the type of a column's values."""
    if kind == ARROW_NAMES:
        return list
    if kind == ARROW_INT:
        return int
    return bool if kind == ARROW_BOOL else str


cdef int scan_add_value(ArrowColumn* column, value, epoch) except -1:
    """Add a str, int, bool, list of str, or None for a null; of a time its microseconds, or an aware datetime.

    epoch: the beginning of 1970 in UTC, a datetime.
    """
    cdef bytes data
    cdef int failed = 0
    if value is not None and column.kind != ARROW_TIME and not isinstance(value, scan_type_of(column.kind)):
        raise TypeError(f"the column {column.name.decode()} takes {scan_type_of(column.kind).__name__}, not {value!r}")
    if value is None:
        failed = arrow_add_null(column)
    elif column.kind == ARROW_NAMES:
        scan_fill_texts(&column.texts, value)
        failed = arrow_end_names(column, True)
    elif column.kind == ARROW_INT or (column.kind == ARROW_TIME and isinstance(value, int)):
        failed = arrow_add_int(column, value)
    elif column.kind == ARROW_TIME:
        passed = value - epoch
        failed = arrow_add_int(
            column, (<int64_t>passed.days * 86400 + <int64_t>passed.seconds) * 1000000 + <int64_t>passed.microseconds
        )
    elif column.kind == ARROW_BOOL:
        failed = arrow_add_bool(column, value)
    else:
        data = value.encode("utf-8", "replace")
        failed = arrow_add_text(column, <Cursor>PyBytes_AS_STRING(data), len(data))
    if failed:
        raise MemoryError
    return 0


def make_batch(str table not None, tuple names not None, list rows not None):
    cdef Py_ssize_t count = len(names)
    cdef ArrowColumn* columns = <ArrowColumn*>PyMem_RawCalloc(max(1, count), sizeof(ArrowColumn))
    cdef ScanColumns known
    cdef Py_ssize_t i
    cdef tuple row
    if columns == NULL:
        raise MemoryError
    scan_define_columns(&known)
    from datetime import datetime, timezone
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    try:
        for i in range(count):
            columns[i] = known.items[scan_field_named(names[i], table == "sessions")]
        for values in rows:
            row = tuple(values)
            if len(row) != count:
                raise ValueError(f"a row has {len(row)} values for {count} columns")
            for i in range(count):
                scan_add_value(&columns[i], row[i], epoch)
    except BaseException:
        arrow_columns_free(columns, count)
        raise
    return arrow_batch_of(columns, count, len(rows))


@cython.final
@cython.no_gc_clear  # a scan borrows the tables from this object
cdef class ScanProgram:
    cdef ScanQuestion question
    cdef list automata     # which own the tables
    cdef tuple fields
    cdef dict arguments

    def __cinit__(self, *, str table not None, columns, searches=(), names=(), gate=None, roles=(), code=-1, context=0,
                  since=None, until=None, projects=(), sessions=(), all_text=False, sidechains=False, known_types=()):
        cdef Automaton automaton
        self.arguments = {
            "table": table, "columns": tuple(columns), "searches": tuple(searches), "names": tuple(names), "gate": gate,
            "roles": tuple(roles), "code": code, "context": context, "since": since, "until": until,
            "projects": tuple(projects), "sessions": tuple(sessions), "all_text": all_text, "sidechains": sidechains,
            "known_types": tuple(known_types),
        }
        cdef tuple tables = ("records", "matches", "usage", "tools", "sessions")  # in the order of SCAN_RECORDS, ...
        if table not in tables:
            raise ValueError(f"no scan of a range gives the table {table!r}")
        self.question.table = tables.index(table)
        self.fields = tuple([scan_field_named(name, False) for name in columns])
        if len(set(self.fields)) != len(self.fields):
            raise ValueError("a column is named twice")
        if code not in (-1, 0, 1):
            raise ValueError(f"code is -1, 0 or 1, not {code!r}")
        if not 0 <= context <= SCAN_MAX_CONTEXT:
            raise ValueError(f"the context has 0 to {SCAN_MAX_CONTEXT:,} characters, not {context:,}")
        self.question.code = code
        self.question.context = context
        self.question.all_text = all_text
        self.question.sidechains = sidechains
        self.question.has_times = since is not None or until is not None
        self.question.since = INT64_MIN if since is None else since
        self.question.until = INT64_MAX if until is None else until
        self.automata = []
        searches, names = self.arguments["searches"], self.arguments["names"]
        self.question.searches = <ScanSearch*>PyMem_RawCalloc(max(1, len(searches)), sizeof(ScanSearch))
        if self.question.searches == NULL:
            raise MemoryError
        for data, own_line, first_name, count in searches:
            if not 0 <= first_name <= len(names) or not 0 <= count <= len(names) - first_name:
                raise ValueError("a search has names beyond those that are given")
            automaton = Automaton(data, tuple(names[first_name:first_name + count]))
            self.automata.append(automaton)
            self.question.searches[self.question.search_count] = ScanSearch(automaton.table, own_line, first_name)
            self.question.search_count += 1
        if gate is not None:
            automaton = Automaton(gate, ("",))
            self.automata.append(automaton)
            self.question.gate = automaton.table
            self.question.has_gate = True
        scan_fill_texts(&self.question.names, names)
        scan_fill_texts(&self.question.roles, self.arguments["roles"])
        scan_fill_texts(&self.question.projects, self.arguments["projects"])
        scan_fill_texts(&self.question.sessions, self.arguments["sessions"])
        pairs = self.arguments["known_types"]
        scan_fill_texts(&self.question.known_types, [text for host, kind in pairs for text in (host, kind)])

    def __dealloc__(self):
        PyMem_RawFree(self.question.searches)
        arrow_texts_free(&self.question.names)
        arrow_texts_free(&self.question.roles)
        arrow_texts_free(&self.question.projects)
        arrow_texts_free(&self.question.sessions)
        arrow_texts_free(&self.question.known_types)

    def __reduce__(self):
        return scan_unpickle, (self.arguments,)


def scan_unpickle(dict arguments not None):
    return ScanProgram(**arguments)


@cython.final
@cython.no_gc_clear  # the scan borrows what these objects own
cdef class RangeScan:
    cdef ScanRun run
    cdef ScanProgram program
    cdef bytes path, session_id, host
    cdef object sink           # takes finished batches, or None
    cdef object sink_error     # what it raised, or None
    cdef unsigned char* block  # what `read` has read
    cdef char is_running       # in a thread
    cdef bint is_open          # a range is begun and its file not ended
    cdef bint has_failed       # no memory: rows may be incomplete

    def __cinit__(self, ScanProgram program not None, sink=None):
        self.program = program
        self.sink = sink
        self.run.question = &program.question
        self.run.is_done = True
        for field in program.fields:
            self.run.columns.wanted[<int>field] = True
            self.run.columns.order[self.run.columns.count] = field
            self.run.columns.count += 1
        self.run.columns.are_responses = program.question.table == SCAN_USAGE and scan_has_response_columns(
            &self.run.columns
        )
        scan_define_columns(&self.run.columns)
        # Texts that are empty have an address, too.
        if scan_text_room(&self.run.text, 1) < 0 or scan_text_room(&self.run.scratch, 1) < 0:
            raise MemoryError

    def __dealloc__(self):
        cdef ScanColumns* columns = &self.run.columns
        cdef size_t i
        for i in range(columns.batch_count):
            arrow_columns_free(columns.batches[i].columns, columns.count)
        PyMem_RawFree(columns.batches)
        for i in range(SCAN_FIELDS):
            arrow_column_free(&columns.items[i])
        PyMem_RawFree(self.block)
        PyMem_RawFree(self.run.pending.data)
        PyMem_RawFree(self.run.text.data)
        PyMem_RawFree(self.run.scratch.data)
        match_hits_free(&self.run.hits)
        match_hits_free(&self.run.gate_hits)
        md_free_map(&self.run.code)
        arrow_texts_free(&self.run.unknown_types)

    cdef int enter(self, bint needs_range) except -1:
        """Take the scan for this thread, until `leave`. Raises RuntimeError, and MemoryError if it failed before."""
        if not os_flag_enter(&self.is_running):
            raise RuntimeError("another thread uses this scan")
        if self.has_failed or (needs_range and not self.is_open):
            os_flag_leave(&self.is_running)
            if self.has_failed:
                raise MemoryError
            raise RuntimeError("begin a range first")
        self.run.thread = PyThreadState_Get()
        if self.sink is not None:
            self.run.columns.owner = <void*>self
            self.run.columns.hand_over = scan_hand_over
        return 0

    cdef int check(self, int failed) except -1:
        """Raise what the sink raised, or MemoryError. No rows can be had afterwards: the last one may be incomplete."""
        if failed:
            self.has_failed = True
            if self.sink_error is not None:
                error, self.sink_error = self.sink_error, None
                raise error
            raise MemoryError
        return 0

    cdef list take_batches(self):
        """Return the finished batches, which are then not the scan's any more."""
        cdef ScanColumns* columns = &self.run.columns
        cdef ArrowColumn* taken
        cdef size_t i
        cdef list batches = []
        try:
            for i in range(columns.batch_count):
                taken, columns.batches[i].columns = columns.batches[i].columns, NULL
                batches.append(arrow_batch_of(taken, columns.count, columns.batches[i].rows))
            columns.batch_count = 0
            return batches
        finally:
            self.has_failed = columns.batch_count != 0

    def begin(self, str path not None, str session_id not None, str host not None, int64_t start=0, end=None):
        cdef int64_t stop = INT64_MAX if end is None else end
        cdef tuple texts = tuple([text.encode("utf-8", "replace") for text in (path, session_id, host)])
        if not 0 <= start <= INT64_MAX // 2:
            raise ValueError("a range begins in its file")
        self.enter(False)
        self.path, self.session_id, self.host = texts
        self.run.place = ScanPlace(
            <Cursor>PyBytes_AS_STRING(self.path), len(self.path),
            <Cursor>PyBytes_AS_STRING(self.session_id), len(self.session_id),
            <Cursor>PyBytes_AS_STRING(self.host), len(self.host), 0,
        )
        self.run.pending.size = 0
        self.run.offset = max(start - 1, <int64_t>0)
        self.run.end = stop
        self.run.is_skipping = start > 0
        self.run.is_done = stop <= start
        self.is_open = True
        os_flag_leave(&self.is_running)

    @property
    def is_done(self):
        return self.run.is_done

    @property
    def text_gate(self):
        cdef bint is_gated = self.run.question.has_gate and self.run.question.table == SCAN_MATCHES
        return self.program.automata[len(self.program.automata) - 1] if is_gated else None

    def feed(self, bytes data not None):
        cdef Cursor start = <Cursor>PyBytes_AS_STRING(data)
        cdef Cursor end = start + PyBytes_GET_SIZE(data)
        cdef Cursor stop
        cdef int failed = 0
        self.enter(True)
        try:
            with nogil:
                while start != end and not self.run.is_done and not failed:
                    stop = start + min(<Py_ssize_t>SCAN_BLOCK_BYTES, end - start)
                    failed = scan_feed(&self.run, start, stop)
                    start = stop
            self.check(failed)
        finally:
            os_flag_leave(&self.is_running)

    def feed_line(self, bytes line not None, bytes translated, int64_t offset):
        cdef Cursor start = <Cursor>PyBytes_AS_STRING(line)
        cdef Cursor end = start + PyBytes_GET_SIZE(line)
        cdef bytes record = translated or b""
        cdef Cursor first = <Cursor>PyBytes_AS_STRING(record)
        cdef Cursor last = first + PyBytes_GET_SIZE(record)
        cdef int failed
        self.enter(True)
        try:
            with nogil:
                failed = scan_one_line(&self.run, start, end, first, last, offset)
            self.check(failed)
        finally:
            os_flag_leave(&self.is_running)

    def read(self, int fd, stop=None):
        cdef Py_ssize_t count = 1
        cdef int failed = 0
        cdef int i
        self.enter(True)
        try:
            if self.block == NULL:
                self.block = <unsigned char*>PyMem_RawMalloc(SCAN_BLOCK_BYTES)
                self.check(self.block == NULL)
            while count > 0 and not self.run.is_done and not (stop is not None and stop.is_set()):
                with nogil:
                    for i in range(SCAN_SIGNAL_BLOCKS):
                        count = os_read_at(fd, self.block, SCAN_BLOCK_BYTES, self.run.offset)
                        if count <= 0:
                            break
                        failed = scan_feed(&self.run, self.block, self.block + count)
                        if failed or self.run.is_done:
                            break
                self.check(failed)
                if count < 0 and errno != EINTR:
                    PyErr_SetFromErrno(OSError)
                count = 1 if count < 0 else count
                PyErr_CheckSignals()
        finally:
            os_flag_leave(&self.is_running)

    def end_file(self):
        cdef int failed
        self.enter(True)
        try:
            with nogil:
                failed = scan_end_of_file(&self.run)
            self.is_open = False
            self.check(failed)
        finally:
            os_flag_leave(&self.is_running)

    def finish(self):
        cdef ScanColumns* columns = &self.run.columns
        self.enter(False)
        try:
            columns.hand_over = NULL
            if columns.rows or not columns.batch_count:
                self.check(scan_finish_batch(columns))
            return self.take_batches()
        finally:
            os_flag_leave(&self.is_running)

    @property
    def counts(self):
        self.enter(False)
        try:
            return {
                "records": self.run.records, "broken_lines": self.run.broken_lines, "long_lines": self.run.long_lines,
            }
        finally:
            os_flag_leave(&self.is_running)

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
            os_flag_leave(&self.is_running)


ctypedef int (*ScanSinkCall)(void* owner) noexcept nogil


cdef int scan_hand_over(void* owner) noexcept nogil:
    """Give the finished batches of a RangeScan to its sink. Returns 0, or -1: see its sink_error."""
    cdef int failed
    PyEval_RestoreThread((<RangeScan>owner).run.thread)
    failed = (<ScanSinkCall>scan_call_sink)(owner)  # with the interpreter's lock, which was just taken
    PyEval_SaveThread()
    return failed


cdef int scan_call_sink(void* owner) noexcept:
    cdef RangeScan scan = <RangeScan>owner
    try:
        for batch in scan.take_batches():
            scan.sink(batch)
        return 0
    except BaseException as error:
        scan.sink_error = error
        return -1
