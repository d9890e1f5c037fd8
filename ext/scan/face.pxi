# A scan, for Python: the question as an object that can be pickled, and the scan of a range.
#
# Gives: nothing to other parts. For Python: ScanProgram, RangeScan, make_batch.
# Needs: scan/run.pxi, ArrowBatch (arrow/batch.pxi), Automaton (patterns/pattern_set.pxi).

cdef int scan_fill_texts(ArrowTexts* texts, values) except -1:
    """Add strings to empty texts."""
    for value in values:
        data = value.encode("utf-8", "replace")
        if arrow_texts_add(texts, <Cursor>PyBytes_AS_STRING(data), len(data)) < 0:
            raise MemoryError
    return 0


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


cdef int scan_add_value(ArrowColumn* column, value) except -1:
    """Add a str, int, bool, aware datetime, list of str, or None for a null."""
    cdef bytes data
    cdef int failed = 0
    if value is None:
        failed = arrow_add_null(column)
    elif column.kind == ARROW_NAMES:
        scan_fill_texts(&column.texts, value)
        failed = arrow_end_names(column)
    elif column.kind == ARROW_INT:
        failed = arrow_add_int(column, value)
    elif column.kind == ARROW_TIME:
        from datetime import datetime, timedelta, timezone
        failed = arrow_add_int(column, (value - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1))
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
    if columns == NULL:
        raise MemoryError
    scan_define_columns(&known)
    try:
        for i in range(count):
            columns[i] = known.items[scan_field_named(names[i], table == "sessions")]
        for row in rows:
            for i in range(count):
                scan_add_value(&columns[i], row[i])
    except BaseException:
        arrow_columns_free(columns, count)
        raise
    return arrow_batch_of(columns, count, len(rows))


@cython.final
cdef class ScanProgram:
    cdef ScanQuestion question
    cdef list automata     # which own the tables
    cdef tuple fields
    cdef dict arguments

    def __cinit__(self, *, str table not None, columns, searches=(), names=(), gate=None, roles=(), code=-1, context=0,
                  since=None, until=None, projects=(), sessions=(), all_text=False, sidechains=False, known_types=()):
        cdef Automaton automaton
        cdef int i
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
        self.question.code = code
        self.question.context = context
        self.question.all_text = all_text
        self.question.sidechains = sidechains
        self.question.has_times = since is not None or until is not None
        self.question.since = INT64_MIN if since is None else since
        self.question.until = INT64_MAX if until is None else until
        self.automata = []
        self.question.search_count = len(searches)
        self.question.searches = <ScanSearch*>PyMem_RawCalloc(max(1, len(searches)), sizeof(ScanSearch))
        if self.question.searches == NULL:
            raise MemoryError
        for i, (data, own_line, first_name, count) in enumerate(searches):
            automaton = Automaton(data, tuple(names[first_name:first_name + count]))
            if len(automaton.names) != count:
                raise ValueError("a search has names beyond those that are given")
            self.automata.append(automaton)
            self.question.searches[i] = ScanSearch(automaton.table, own_line, first_name)
        if gate is not None:
            automaton = Automaton(gate, ("",))
            self.automata.append(automaton)
            self.question.gate = automaton.table
            self.question.has_gate = True
        scan_fill_texts(&self.question.names, names)
        scan_fill_texts(&self.question.roles, roles)
        scan_fill_texts(&self.question.projects, projects)
        scan_fill_texts(&self.question.sessions, sessions)
        scan_fill_texts(&self.question.known_types, known_types)

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
cdef class RangeScan:
    cdef ScanRun run
    cdef ScanProgram program
    cdef bytes path, session_id, host
    cdef list batches
    cdef char is_running   # in a thread

    def __cinit__(self, ScanProgram program not None):
        self.program = program
        self.batches = []
        self.run.question = &program.question
        self.run.is_done = True
        for field in program.fields:
            self.run.columns.wanted[<int>field] = True
        scan_define_columns(&self.run.columns)

    def begin(self, str path not None, str session_id not None, str host not None, int64_t start=0, end=None):
        if start < 0:
            raise ValueError("a range does not begin before its file")
        self.path = path.encode("utf-8", "replace")
        self.session_id = session_id.encode("utf-8", "replace")
        self.host = host.encode("utf-8", "replace")
        self.run.place = ScanPlace(
            <Cursor>PyBytes_AS_STRING(self.path), len(self.path),
            <Cursor>PyBytes_AS_STRING(self.session_id), len(self.session_id),
            <Cursor>PyBytes_AS_STRING(self.host), len(self.host), 0,
        )
        self.run.pending.size = 0
        self.run.offset = max(start - 1, 0)
        self.run.end = INT64_MAX if end is None else end
        self.run.is_skipping = start > 0
        self.run.is_done = self.run.end <= start

    def __dealloc__(self):
        cdef int field
        for field in range(SCAN_FIELDS):
            arrow_column_free(&self.run.columns.items[field])
        PyMem_RawFree(self.run.pending.data)
        PyMem_RawFree(self.run.text.data)
        PyMem_RawFree(self.run.scratch.data)
        match_hits_free(&self.run.hits)
        match_hits_free(&self.run.gate_hits)
        md_free_map(&self.run.code)
        arrow_texts_free(&self.run.unknown_types)

    cdef int cut(self) except -1:
        """Make a batch of the rows so far."""
        cdef Py_ssize_t count = len(self.program.fields)
        cdef ArrowColumn* columns = <ArrowColumn*>PyMem_RawCalloc(max(1, count), sizeof(ArrowColumn))
        cdef size_t rows = self.run.columns.rows
        cdef Py_ssize_t i
        if columns == NULL:
            raise MemoryError
        for i in range(count):
            columns[i] = self.run.columns.items[<int>self.program.fields[i]]
        scan_define_columns(&self.run.columns)
        self.batches.append(arrow_batch_of(columns, count, rows))
        return 0

    @property
    def is_done(self):
        return self.run.is_done

    def feed(self, bytes data not None):
        cdef Cursor start = <Cursor>PyBytes_AS_STRING(data)
        cdef Cursor end = start + PyBytes_GET_SIZE(data)
        cdef int failed = 0
        if not os_flag_enter(&self.is_running):
            raise RuntimeError("another thread feeds this scan")
        self.run.thread = PyThreadState_Get()
        try:
            with nogil:
                if not self.run.is_done:
                    failed = scan_feed(&self.run, start, end)
            if failed:
                raise MemoryError
            if scan_is_large(&self.run.columns):
                self.cut()
        finally:
            os_flag_leave(&self.is_running)

    def feed_line(self, bytes line not None, int64_t offset):
        """Scan one line without its newline, whatever its offset."""
        cdef Cursor start = <Cursor>PyBytes_AS_STRING(line)
        cdef Cursor end = start + PyBytes_GET_SIZE(line)
        cdef int failed
        if not os_flag_enter(&self.is_running):
            raise RuntimeError("another thread feeds this scan")
        self.run.thread = PyThreadState_Get()
        try:
            with nogil:
                failed = scan_line(&self.run, start, end, offset)
            if failed:
                raise MemoryError
            if scan_is_large(&self.run.columns):
                self.cut()
        finally:
            os_flag_leave(&self.is_running)

    def read(self, int fd):
        """Feed what a descriptor has, up to the end of the range."""
        cdef unsigned char* block = <unsigned char*>PyMem_RawMalloc(SCAN_BLOCK_BYTES)
        cdef Py_ssize_t count = 1
        cdef int failed = 0
        cdef bint large = False
        if block == NULL:
            raise MemoryError
        if not os_flag_enter(&self.is_running):
            PyMem_RawFree(block)
            raise RuntimeError("another thread feeds this scan")
        self.run.thread = PyThreadState_Get()
        try:
            while count > 0 and not self.run.is_done:
                with nogil:
                    while not self.run.is_done:
                        count = os_read_at(fd, block, SCAN_BLOCK_BYTES, self.run.offset)
                        if count <= 0:
                            break
                        failed = scan_feed(&self.run, block, block + count)
                        large = scan_is_large(&self.run.columns)
                        if failed or large:
                            break
                if count < 0 and errno == EINTR:
                    count = 1
                    PyErr_CheckSignals()
                    continue
                if count < 0:
                    PyErr_SetFromErrno(OSError)
                if failed:
                    raise MemoryError
                if large:
                    self.cut()
        finally:
            PyMem_RawFree(block)
            os_flag_leave(&self.is_running)

    def end_file(self):
        cdef int failed
        self.run.thread = PyThreadState_Get()
        with nogil:
            failed = scan_end_of_file(&self.run)
        if failed:
            raise MemoryError
        self.run.is_done = True

    def finish(self):
        cdef list batches
        if self.run.columns.rows or not self.batches:
            self.cut()
        batches, self.batches = self.batches, []
        return batches

    @property
    def counts(self):
        return {
            "records": self.run.records, "broken_lines": self.run.broken_lines, "long_lines": self.run.long_lines,
        }

    @property
    def unknown_types(self):
        cdef ArrowTexts* texts = &self.run.unknown_types
        cdef size_t i
        found = [
            texts.data[texts.offsets[i]:texts.offsets[i + 1]].decode("utf-8", "replace") for i in range(texts.count)
        ]
        counts = {pair: self.run.unknown_counts[i] for i, pair in enumerate(zip(found[::2], found[1::2], strict=True))}
        if self.run.unknown_counts[SCAN_MAX_UNKNOWN_TYPES]:
            counts["others", ""] = self.run.unknown_counts[SCAN_MAX_UNKNOWN_TYPES]
        return counts
