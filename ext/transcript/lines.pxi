cdef enum:
    LINES
    RECORDS
    MESSAGES


@cython.final
@cython.internal
@cython.no_gc_clear  # the window's file is this object's, and may be asked for by a finaliser
cdef class Lines:
    cdef object file
    cdef bytes needle  # only lines that contain it are given; None: all
    cdef Window window
    cdef int give  # LINES, RECORDS or MESSAGES
    cdef char busy  # a thread is in __next__

    def __cinit__(self):
        self.window.finished = True  # until open_lines gives it a file

    def __dealloc__(self):
        window_close(&self.window)

    def __iter__(self):
        return self

    def __next__(self):
        cdef Line line
        cdef RecordFields fields
        if not flag_enter(&self.busy):
            raise RuntimeError("the lines are being read by another thread")
        try:
            while window_step(&self.window, &line):
                if self.needle is not None and not line_contains(&line, self.needle):
                    continue
                if self.give == LINES:
                    return (line.offset, json_between(line.start, line.end))
                if self.give == MESSAGES and not may_hold_message(&line):
                    continue
                if not record_find(line.start, line.end, &fields):
                    continue
                if self.give == RECORDS:
                    return record_own(&fields, line.offset)
                if (message := message_of(&fields)) is not None:
                    return message
            window_close(&self.window)
            raise StopIteration
        finally:
            flag_leave(&self.busy)


cdef Lines open_lines(object file, int64_t start, object end, object max_line, bint forward, int give):
    cdef Lines lines = Lines.__new__(Lines)
    lines.file = file
    lines.give = give
    window_open(&lines.window, file, start, end, max_line, forward)
    return lines


def reverse_lines(file, start=0, end=None, max_line=None, bytes containing=None):
    cdef Lines lines = open_lines(file, start, end, max_line, False, LINES)
    lines.needle = containing
    return lines


def forward_lines(file, start=0, end=None, max_line=None, bytes containing=None):
    cdef Lines lines = open_lines(file, start, end, max_line, True, LINES)
    lines.needle = containing
    return lines


def reverse_records(file, start=0, end=None, max_line=None):
    return open_lines(file, start, end, max_line, False, RECORDS)


def reverse_messages(file, start=0, end=None, max_line=None, max_lines=None):
    cdef Lines lines = open_lines(file, start, end, max_line, False, MESSAGES)
    window_limit_lines(&lines.window, max_lines)
    return lines


def forward_records(file, start=0, end=None, max_line=None):
    return open_lines(file, start, end, max_line, True, RECORDS)
