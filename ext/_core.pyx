# cython: freethreading_compatible=True, subinterpreters_compatible=own_gil
"""The compiled core of tailhook: its table of contents and its Python face."""

include "json.pxi"        # JSON texts: grammar, reader, writer
include "json_edit.pxi"   # one member replaced, every other byte left
include "system.pxi"      # locks and waiting


# ---- JSON --------------------------------------------------------------------

def parse_json(data):
    cdef bytes text = data.encode() if isinstance(data, str) else data
    cdef Cursor start = <Cursor>PyBytes_AS_STRING(text)
    json_require(start, start + PyBytes_GET_SIZE(text))
    return json_build(start, start + PyBytes_GET_SIZE(text))


def write_json(value, int style=0):
    return json_bytes(value, style)


def edit_json(bytes data not None, edits):
    return json_edit(data, edits)


cdef class JsonFramer:
    cdef JsonFrame frame

    def feed(self, bytes data not None):
        cdef Cursor start = <Cursor>PyBytes_AS_STRING(data)
        return json_frame(&self.frame, start, start + PyBytes_GET_SIZE(data))


# ---- the operating system ----------------------------------------------------

def flock_within(int fd, double seconds):
    cdef int got
    with nogil:
        got = lock_exclusively(fd, seconds)
    if got < 0:
        raise OSError(errno, strerror(errno).decode())
    return got == 1


def wait_readable(int fd, double seconds):
    cdef int got
    with nogil:
        got = wait_input(fd, seconds)
    if got < 0:
        raise OSError(errno, strerror(errno).decode())
    return got == 1
