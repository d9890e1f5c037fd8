# Iterates over the uses of some tools, each with its outcome.
#
# Gives: nothing to other parts. For Python: reverse_tool_uses.
# Needs: the window (transcript/window.pxi), rec_find (transcript/bad_lines.pxi), rec_value_*
# (transcript/records.pxi), the fields (transcript/fields.pxi), rec_next_tool_block (transcript/tool_blocks.pxi), RecIds
# (transcript/ids.pxi), bytes_between (text/view.pxi).

cdef object rec_has_failed(RecIds* results, RecSlice* use_id):
    """Return whether the result of a use is an error, None without a result."""
    cdef uint64_t found = rec_find_id(results, use_id)
    return None if found == 0 else (found & 1) == 1


@cython.final
@cython.internal
@cython.no_gc_clear  # the window borrows the file from this object; a finalizer may still iterate
cdef class ToolUseIterator:
    cdef object file
    cdef object names  # of the tools whose uses are returned; None: all
    cdef RecIds results  # of uses, marked if the result is an error; a result is newer than its use
    cdef list found    # uses in the line that was read last, the oldest first
    cdef WinWindow window
    cdef char busy     # a thread is in __next__

    def __cinit__(self):
        self.found = []
        self.window.finished = True  # until reverse_tool_uses gives it a file

    def __dealloc__(self):
        win_close(&self.window)
        PyMem_RawFree(self.results.slots)

    def __iter__(self):
        return self

    cdef int read(self, WinLine* line) except -1:
        """Keep the results in a line, and put its uses into `found`."""
        cdef RecFields fields
        cdef RecSlice content
        cdef RecToolBlock block
        if not rec_find(line.start, line.end, &fields):
            return 0
        content = fields.message[FIELD_CONTENT]
        if content.start == NULL or content.start[0] != c"[":
            return 0
        content.start += 1
        while rec_next_tool_block(&content, &block):
            self.keep(&block, line.offset)
        return 0

    cdef int keep(self, RecToolBlock* block, int64_t offset) except -1:
        """Keep a block if it is a result, or a use of one of the tools."""
        if rec_value_is(&block.type, LIT(b"tool_result")):
            if rec_value_is_string(&block.use_id):
                if rec_add_id(&self.results, &block.use_id, rec_value_is_true(&block.is_error)) < 0:
                    raise MemoryError()
        elif rec_value_is(&block.type, LIT(b"tool_use")) and block.input.start != NULL:
            if not rec_value_is_utf8(&block.name):
                return 0
            name = rec_value_string(&block.name)
            if self.names is None or name in self.names:
                use_id = failed = None
                if rec_value_is_utf8(&block.id):
                    use_id, failed = rec_value_string(&block.id), rec_has_failed(&self.results, &block.id)
                given = bytes_between(block.input.start, block.input.end)
                self.found.append((name, use_id, given, failed, offset))
        return 0

    def __next__(self):
        cdef WinLine line
        if not os_flag_enter(&self.busy):
            raise RuntimeError("the lines are being read by another thread")
        try:
            while not self.found and win_step(&self.window, &line):
                if bytes_find(line.start, line.end - line.start, LIT(b'"tool_')) != NULL:
                    self.read(&line)
            if self.found:
                return self.found.pop()
            win_close(&self.window)
            raise StopIteration
        finally:
            os_flag_leave(&self.busy)


def reverse_tool_uses(file, names, start=0, end=None, max_line=None, max_lines=None):
    cdef ToolUseIterator uses = ToolUseIterator.__new__(ToolUseIterator)
    uses.file = file
    uses.names = names
    win_open(&uses.window, file, start, end, max_line, False)
    win_limit_lines(&uses.window, max_lines)
    return uses
