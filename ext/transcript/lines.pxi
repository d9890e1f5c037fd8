# Iterators over the lines, records and messages of a file.
#
# Gives: nothing to other parts. For Python: reverse_lines, forward_lines, reverse_records, forward_records,
# reverse_messages.
# Needs: the window (transcript/window.pxi), RecFields (transcript/fields.pxi), rec_find (transcript/bad_lines.pxi),
# rec_message and rec_may_hold_message (transcript/records.pxi), rec_copy (transcript/record_class.pxi), bytes_between
# (text/view.pxi).

cdef enum:
    WIN_LINES
    WIN_RECORDS
    WIN_MESSAGES


@cython.final
@cython.internal
@cython.no_gc_clear  # the window borrows the file from this object; a finalizer may still iterate
cdef class LineIterator:
    cdef object file
    cdef bytes needle  # return only lines that contain it; None: all
    cdef WinWindow window
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
                    return (line.offset, bytes_between(line.start, line.end))
                if self.give == WIN_MESSAGES and not rec_may_hold_message(&line):
                    continue
                if not rec_find(line.start, line.end, &fields):
                    continue
                if self.give == WIN_RECORDS:
                    return rec_copy(&fields, line.offset)
                if (message := rec_message(&fields)) is not None:
                    return message
            win_close(&self.window)
            raise StopIteration
        finally:
            os_flag_leave(&self.busy)


cdef LineIterator win_iterate(object file, int64_t start, object end, object max_line, bint forward, int give):
    cdef LineIterator lines = LineIterator.__new__(LineIterator)
    lines.file = file
    lines.give = give
    win_open(&lines.window, file, start, end, max_line, forward)
    return lines


def reverse_lines(file, start=0, end=None, max_line=None, bytes containing=None):
    cdef LineIterator lines = win_iterate(file, start, end, max_line, False, WIN_LINES)
    lines.needle = containing
    return lines


def forward_lines(file, start=0, end=None, max_line=None, bytes containing=None):
    cdef LineIterator lines = win_iterate(file, start, end, max_line, True, WIN_LINES)
    lines.needle = containing
    return lines


def reverse_records(file, start=0, end=None, max_line=None):
    return win_iterate(file, start, end, max_line, False, WIN_RECORDS)


def reverse_messages(file, start=0, end=None, max_line=None, max_lines=None):
    cdef LineIterator lines = win_iterate(file, start, end, max_line, False, WIN_MESSAGES)
    win_limit_lines(&lines.window, max_lines)
    return lines


def forward_records(file, start=0, end=None, max_line=None):
    return win_iterate(file, start, end, max_line, True, WIN_RECORDS)
