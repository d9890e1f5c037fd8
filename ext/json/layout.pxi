# Lays out a JSON text: one value a line, indented by two, with unchanged values.
#
# Gives: nothing to other parts. For Python: JsonIndenter.
# Needs: JsonOutput (json/write.pxi), json_skip_space (json/grammar.pxi), json/strings.h.
#
# The text may come in pieces, cut anywhere, so that a file of megabytes is rewritten in the memory of one piece.

cdef struct JsonLayout:
    Py_ssize_t depth
    bint in_string
    bint escaped  # the last byte was a backslash in a string
    bint opened   # the last token opened a container; it may be empty


cdef int json_layout_feed(JsonLayout* layout, Cursor p, Cursor end, JsonOutput* output) except -1:
    """Lay out one more piece of a valid text."""
    cdef Cursor stop
    cdef bint closes
    while p != end:
        if layout.in_string:
            if layout.escaped:
                stop = p + 1
                layout.escaped = False
            else:
                stop = json_string_stop(p, end)
                if stop != end:
                    layout.escaped = stop[0] == c"\\"
                    layout.in_string = stop[0] != c'"'
                    stop += 1
            json_out_put(output, p, stop - p)
            p = stop
            continue
        stop = json_skip_space(p, end)
        if stop != p:
            p = stop
            continue
        closes = p[0] == c"}" or p[0] == c"]"
        if closes:
            layout.depth -= 1
        if (layout.opened and not closes) or (closes and not layout.opened):
            json_out_newline(output, layout.depth)
        layout.opened = False
        if p[0] == c",":
            json_out_put(output, p, 1)
            json_out_newline(output, layout.depth)
        elif p[0] == c":":
            json_out_literal(output, LIT(b": "))
        elif p[0] == c"{" or p[0] == c"[":
            json_out_put(output, p, 1)
            layout.depth += 1
            layout.opened = True
        else:
            layout.in_string = p[0] == c'"'
            json_out_put(output, p, 1)
        p += 1
    return 0


# ---- for Python ---------------------------------------------------------------

cdef class JsonIndenter:
    cdef JsonLayout layout
    cdef char busy  # a thread is in `feed`

    def __init__(self, Py_ssize_t depth=0):
        self.layout.depth = depth

    def feed(self, bytes data not None):
        cdef JsonOutput output = JsonOutput(NULL, 0, 0)
        cdef Cursor start = <Cursor>PyBytes_AS_STRING(data)
        if not os_flag_enter(&self.busy):
            raise RuntimeError("the text is being fed by another thread")
        try:
            json_out_room(&output, PyBytes_GET_SIZE(data) * 2 + 64)
            json_layout_feed(&self.layout, start, start + PyBytes_GET_SIZE(data), &output)
            return PyBytes_FromStringAndSize(<const char*>output.data, output.size)
        finally:
            os_flag_leave(&self.busy)
            PyMem_RawFree(output.data)
