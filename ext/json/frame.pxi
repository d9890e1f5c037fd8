# Finds the end of a JSON object in a stream that may never be closed.
#
# Gives: nothing to other parts. For Python: JsonFramer.
# Needs: json/strings.h.
#
# Only brackets and strings are looked at, each byte once, in any number of pieces. json_check decides whether the bytes
# are JSON.

cdef struct JsonFrame:
    Py_ssize_t size   # bytes seen
    Py_ssize_t depth  # brackets open
    bint in_string
    bint escaped      # the last byte was a backslash in a string


cdef Py_ssize_t json_frame_feed(JsonFrame* frame, Cursor p, Cursor end) noexcept nogil:
    """Return the offset after the object, counted from the first byte ever fed, or -1 if more bytes are needed."""
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
