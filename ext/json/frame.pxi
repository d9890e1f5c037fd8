# ---- framing -----------------------------------------------------------------
#
# A pipe that its writer never closes: is the object whole yet? Only brackets and
# strings are followed, each byte once however many pieces it comes in; whether
# the text is good JSON is json_check's business.

cdef struct JsonFrame:
    Py_ssize_t size   # bytes seen
    Py_ssize_t depth  # brackets open
    bint in_string
    bint escaped      # the last byte was a reverse solidus in a string


cdef Py_ssize_t json_frame_feed(JsonFrame* frame, Cursor p, Cursor end) noexcept nogil:
    """The offset past the object's last byte, or -1: more is needed. Bytes before the object count."""
    cdef Cursor start = p
    while p != end:
        if frame.escaped:
            frame.escaped = False
        elif frame.in_string:
            p = json_string_stop(p, end)
            if p == end:
                break
            frame.escaped = p[0] == c"\\"
            frame.in_string = p[0] != c'"'
        elif p[0] == c'"':
            frame.in_string = frame.depth > 0
        elif p[0] == c"{" or p[0] == c"[":
            frame.depth += 1
        elif p[0] == c"}" or p[0] == c"]":
            frame.depth -= 1
            if frame.depth <= 0:
                return frame.size + (p + 1 - start)
        p += 1
    frame.size += end - start
    return -1


# ---- for Python ---------------------------------------------------------------

cdef class JsonFramer:
    cdef JsonFrame frame
    cdef char busy  # a thread is in `feed`

    def feed(self, bytes data not None):
        cdef Cursor start = <Cursor>PyBytes_AS_STRING(data)
        if not os_flag_enter(&self.busy):
            raise RuntimeError("the text is being fed by another thread")
        try:
            return json_frame_feed(&self.frame, start, start + PyBytes_GET_SIZE(data))
        finally:
            os_flag_leave(&self.busy)
