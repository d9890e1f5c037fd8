# Iterators over the lines, records and messages of a file.
#
# Gives: nothing to other parts. For Python: reverse_lines, forward_lines, reverse_records, forward_records,
# reverse_messages.
# Needs: the window (transcript/window.pxi), RecFields (transcript/fields.pxi), rec_find (transcript/bad_lines.pxi),
# SeenRecords, rec_note_record and repeated_records (transcript/ids.pxi),
# rec_message and rec_may_hold_message (transcript/records.pxi), rec_copy (transcript/record_class.pxi), bytes_between
# (text/view.pxi), JsonColumn and json_scan_row (json/columns.pxi), json_skip_space (json/grammar.pxi).

cdef enum:
    WIN_LINES
    WIN_RECORDS
    WIN_MESSAGES


cdef bint win_may_exceed(WinLine* line, bytes name, int64_t bound) noexcept:
    """Return False if the line is an object with that member missing, or with a whole number up to `bound` in it."""
    cdef JsonColumn column
    cdef JsonFault fault
    cdef Cursor p = json_skip_space(line.start, line.end)
    cdef int64_t number = 0
    cdef bint is_negative
    if p == line.end or p[0] != c"{":
        return True
    memset(&column, 0, sizeof(column))
    column.name = <Cursor>PyBytes_AS_STRING(name)
    column.size = PyBytes_GET_SIZE(name)
    if json_scan_row(p, line.end, &column, 1, NULL, &fault) == NULL:
        return True
    p = column.value
    if p == NULL:
        return False
    is_negative = p[0] == c"-"
    p += is_negative
    if column.end - p > 18:
        return True
    while p != column.end:
        if not c"0" <= p[0] <= c"9":
            return True
        number = number * 10 + (p[0] - c"0")
        p += 1
    return (-number if is_negative else number) > bound


cdef struct WinOldest:
    # The oldest returned message: its line, its time with quotation marks, its uuid in the hosts' spelling.
    int64_t offset
    Py_ssize_t time_size
    Py_ssize_t uuid_size
    unsigned char time[REC_MAX_WORD]
    unsigned char uuid[REC_MAX_WORD]


@cython.final
@cython.internal
@cython.no_gc_clear  # the window borrows the file from this object; a finalizer may still iterate
cdef class LineIterator:
    cdef object file
    cdef bytes needle  # return only lines that contain it; None: all
    cdef bytes member  # if given, leave out the lines for which win_may_exceed returns False
    cdef int64_t bound
    cdef object without  # offsets of lines that are left out; None: none
    cdef SeenRecords seen  # if given, a repeated record is returned once
    cdef WinWindow window
    cdef bint saw_compaction  # the record of a compaction was among the lines
    cdef WinOldest oldest  # of the returned messages
    cdef bint goes_back  # a message is not newer than the one before it in the file
    cdef int give  # WIN_LINES, WIN_RECORDS or WIN_MESSAGES
    cdef char busy  # a thread is in __next__

    def __cinit__(self):
        self.window.finished = True  # until win_iterate gives it a file

    def __dealloc__(self):
        win_close(&self.window)

    def __iter__(self):
        return self

    def __next__(self):
        cdef WinLine line
        cdef RecFields fields
        if not os_flag_enter(&self.busy):
            raise RuntimeError("the lines are being read by another thread")
        try:
            while win_step(&self.window, &line):
                if self.needle is not None and not win_line_contains(&line, self.needle):
                    continue
                if self.give == WIN_LINES:
                    if self.member is not None and not win_may_exceed(&line, self.member, self.bound):
                        continue
                    return (line.offset, bytes_between(line.start, line.end))
                if self.give == WIN_MESSAGES and not rec_may_hold_message(&line):
                    continue
                if not rec_find(line.start, line.end, &fields):
                    continue
                if self.without is not None and line.offset in self.without:
                    continue
                if self.seen is not None and not self.note_record(&fields, line.offset):
                    continue
                if rec_value_is(&fields.top[FIELD_SUBTYPE], LIT(b"compact_boundary")):
                    self.saw_compaction = True
                if self.give == WIN_RECORDS:
                    return rec_copy(&fields, line.offset)
                if (message := rec_message(&fields)) is not None:
                    self.note_message(&fields, line.offset)
                    return message
            win_close(&self.window)
            raise StopIteration
        finally:
            os_flag_leave(&self.busy)

    cdef bint note_record(self, RecFields* fields, int64_t offset) except -1:
        """Keep a record's uuid. Return False if the record was returned before, or if it repeats an earlier line.

        Backwards, the earlier lines are searched only after passing a compaction: then all of the file is read.
        """
        if self.saw_compaction and self.without is None and not self.window.forward:
            self.without = repeated_records(self.file)
        return (self.without is None or offset not in self.without) and rec_note_record(&self.seen.ids, fields)

    cdef void note_message(self, RecFields* fields, int64_t offset) noexcept:
        """Keep a message's values for `may_repeat`. A queued prompt is an attachment with the time of its typing."""
        cdef RecSlice* time = &fields.top[FIELD_TIMESTAMP]
        cdef RecSlice* uuid = &fields.top[FIELD_UUID]
        cdef Py_ssize_t size = time.end - time.start
        cdef Literal name = LIT(b'"uuid":')
        if rec_value_is(&fields.top[FIELD_TYPE], LIT(b"attachment")):
            return
        if not rec_value_is_string(time) or size > REC_MAX_WORD:
            self.goes_back = True
        else:
            # Texts of one form that are in the order of their times.
            if self.oldest.time_size and (
                size != self.oldest.time_size or memcmp(self.oldest.time, time.start, size) <= 0
            ):
                self.goes_back = True
            memcpy(self.oldest.time, time.start, size)
            self.oldest.time_size = size
        self.oldest.offset = offset
        self.oldest.uuid_size = 0
        if rec_value_is_string(uuid) and 2 < uuid.end - uuid.start <= <Py_ssize_t>(REC_MAX_WORD - name.size):
            self.oldest.uuid_size = uuid.end - uuid.start + name.size
            bytes_write(self.oldest.uuid, name)
            memcpy(self.oldest.uuid + name.size, uuid.start, uuid.end - uuid.start)

    def may_repeat(self, int fd, int64_t most):
        cdef int found = 0
        if self.saw_compaction and not self.goes_back and self.oldest.uuid_size:
            found = rec_file_holds(fd, self.oldest.offset, most, self.oldest.uuid, self.oldest.uuid_size)
            if found < 0:
                PyErr_SetFromErrno(OSError)
        return self.saw_compaction and (self.goes_back or found != 0)


cdef LineIterator win_iterate(object file, int64_t start, object end, object max_line, bint forward, int give):
    cdef LineIterator lines = LineIterator.__new__(LineIterator)
    lines.file = file
    lines.give = give
    win_open(&lines.window, file, start, end, max_line, forward)
    return lines


cdef LineIterator rec_iterate(object file, int64_t start, object end, object max_line, bint forward, bint once):
    cdef LineIterator lines = win_iterate(file, start, end, max_line, forward, WIN_RECORDS)
    if once:
        lines.seen = SeenRecords.__new__(SeenRecords)
    return lines


def reverse_lines(file, start=0, end=None, max_line=None, bytes containing=None, tuple above=None):
    cdef LineIterator lines = win_iterate(file, start, end, max_line, False, WIN_LINES)
    lines.needle = containing
    if above is not None:
        name, bound = above
        lines.bound = min(max(bound, INT64_MIN), INT64_MAX)  # a longer number in a line is not compared with it
        lines.member = name.encode()
        if PyBytes_GET_SIZE(lines.member) > JSON_MAX_NAME_BYTES:
            raise ValueError("the member's name is too long")
    return lines


def forward_lines(file, start=0, end=None, max_line=None, bytes containing=None):
    cdef LineIterator lines = win_iterate(file, start, end, max_line, True, WIN_LINES)
    lines.needle = containing
    return lines


def reverse_records(file, start=0, end=None, max_line=None, bint once=False):
    return rec_iterate(file, start, end, max_line, False, once)


def reverse_messages(file, start=0, end=None, max_line=None, max_lines=None, without=None):
    cdef LineIterator lines = win_iterate(file, start, end, max_line, False, WIN_MESSAGES)
    lines.without = without
    win_limit_lines(&lines.window, max_lines)
    return lines


def forward_records(file, start=0, end=None, max_line=None, bint once=False):
    return rec_iterate(file, start, end, max_line, True, once)
