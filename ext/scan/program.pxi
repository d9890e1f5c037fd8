# A scan's question, as an object that can be pickled; and rows of Python values as a batch.
#
# Gives: ScanProgram. For Python: ScanProgram, make_batch.
# Needs: ScanQuestion, ScanPatternSet (scan/run.pxi), scan_define_columns, scan_field_named (scan/fields.pxi),
# arrow_add_* (arrow/columns.pxi), arrow_batch_of (arrow/batch.pxi), arrow_columns_free (arrow/export.pxi), Automaton
# (patterns/pattern_set.pxi).

cdef enum:
    SCAN_MAX_CONTEXT = 1 << 17  # characters on either side of a match; to redact, more are read than given

cdef int scan_fill_texts(ArrowTexts* texts, values) except -1:
    """Add strings to empty texts."""
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"a list of texts has {value!r}")
        data = value.encode("utf-8", "replace")
        if arrow_texts_add(texts, <Cursor>PyBytes_AS_STRING(data), len(data)) < 0:
            raise MemoryError
    return 0


cdef object scan_type_of(int kind):
    """Return the type of a column's values."""
    if kind == ARROW_NAMES:
        return list
    if kind == ARROW_INT:
        return int
    return bool if kind == ARROW_BOOL else str


cdef object scan_epoch_time = None


cdef object scan_epoch():
    """Return the beginning of 1970 in UTC. The first call imports datetime, which few programs with the core need."""
    global scan_epoch_time
    if scan_epoch_time is None:
        from datetime import datetime, timezone
        scan_epoch_time = datetime(1970, 1, 1, tzinfo=timezone.utc)
    return scan_epoch_time


cdef int scan_add_value(ArrowColumn* column, value) except -1:
    """Add a str, int, bool, list of str, or None for a null; of a time its microseconds, or an aware datetime."""
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
        passed = value - scan_epoch()
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
    try:
        for i in range(count):
            columns[i] = known.items[scan_field_named(names[i], table == "sessions")]
        for values in rows:
            row = tuple(values)
            if len(row) != count:
                raise ValueError(f"a row has {len(row)} values for {count} columns")
            for i in range(count):
                scan_add_value(&columns[i], row[i])
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

    def __cinit__(self, *, str table not None, columns, sets=(), names=(), gate=None, options=(None, 0, False, False),
                  roles=(), since=None, until=None, projects=(), sessions=(), known_types=()):
        cdef Automaton automaton
        self.arguments = {
            "table": table, "columns": tuple(columns), "sets": tuple(sets), "names": tuple(names), "gate": gate,
            "options": tuple(options), "roles": tuple(roles), "since": since, "until": until,
            "projects": tuple(projects), "sessions": tuple(sessions), "known_types": tuple(known_types),
        }
        cdef tuple tables = ("records", "matches", "usage", "tools", "sessions")  # in the order of SCAN_RECORDS, ...
        if table not in tables:
            raise ValueError(f"no scan of a range gives the table {table!r}")
        self.question.table = tables.index(table)
        self.fields = tuple([scan_field_named(name, False) for name in columns])
        if len(set(self.fields)) != len(self.fields):
            raise ValueError("a column is named twice")
        in_code, context, self.question.all_text, self.question.sidechains = options
        self.question.code = -1 if in_code is None else bool(in_code)
        if not 0 <= context <= SCAN_MAX_CONTEXT:
            raise ValueError(f"the context has 0 to {SCAN_MAX_CONTEXT:,} characters, not {context:,}")
        self.question.context = context
        self.question.has_times = since is not None or until is not None
        self.question.since = INT64_MIN if since is None else since
        self.question.until = INT64_MAX if until is None else until
        self.automata = []
        is_gate = False        # the table of the only set
        sets, names = self.arguments["sets"], self.arguments["names"]
        self.question.sets = <ScanPatternSet*>PyMem_RawCalloc(max(1, len(sets)), sizeof(ScanPatternSet))
        if self.question.sets == NULL:
            raise MemoryError
        for data, own_line, first_name, count in sets:
            if not 0 <= first_name <= len(names) or not 0 <= count <= len(names) - first_name:
                raise ValueError("a set has names beyond those that are given")
            is_gate = len(sets) == 1 and data == gate
            automaton = Automaton(data, (*names[first_name:first_name + count], *("",) * is_gate))
            self.automata.append(automaton)
            self.question.sets[self.question.set_count] = ScanPatternSet(
                automaton.table, own_line, first_name, count
            )
            self.question.set_count += 1
        if gate is not None:
            if not is_gate:
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
        PyMem_RawFree(self.question.sets)
        arrow_texts_free(&self.question.names)
        arrow_texts_free(&self.question.roles)
        arrow_texts_free(&self.question.projects)
        arrow_texts_free(&self.question.sessions)
        arrow_texts_free(&self.question.known_types)

    def __reduce__(self):
        return scan_unpickle, (self.arguments,)


def scan_unpickle(dict arguments not None):
    return ScanProgram(**arguments)
