# Reads a few members of each row of one large array of objects in a JSON file.
#
# Gives: JsonColumn, json_scan_row, JSON_MAX_NAME_BYTES. For Python: read_json_columns.
# Needs: the grammar and the reader (json/grammar.pxi, json/read.pxi), utf8_after_bom (text/utf8.pxi),
# os_read_at (os/file.h).
#
# Of a state with two thousand entries, three members of each are needed. The rest is skipped at the speed of the
# grammar, in a window that stays in the cache: memory for the whole file would cost more than reading it. If a value
# equals the one in the row before, it is the same object.

cdef enum:
    JSON_MAX_COLUMNS = 16
    JSON_MAX_NAME_BYTES = 64
    JSON_MIN_WINDOW_BYTES = 4  # a byte order mark is recognised in the first window

cdef struct JsonColumn:
    Cursor name         # of the member, without quotation marks
    Py_ssize_t size
    Cursor inner        # name of a member of that member, or NULL if the column is the member itself
    Py_ssize_t inner_size
    Cursor value        # in this row, or NULL
    Cursor end
    Cursor last         # in the row before
    Cursor last_end


cdef inline bint json_column_name_is(Cursor name, Cursor stop, Cursor wanted, Py_ssize_t size) noexcept nogil:
    """Return whether the name, without quotation marks, is the wanted one, escaped or not."""
    cdef unsigned char plain[6 * JSON_MAX_NAME_BYTES]
    cdef bint lone = False
    if stop - name == size:
        return memcmp(name, wanted, size) == 0
    if stop - name < size or stop - name > 6 * size or memchr(name, c"\\", stop - name) == NULL:
        return False
    return json_unescape(name, stop, plain, &lone) == size and memcmp(plain, wanted, size) == 0


cdef Cursor json_scan_row(
    Cursor p, Cursor end, JsonColumn* columns, int count, Cursor outer, JsonFault* fault
) noexcept nogil:
    """Skip the object at p and set the columns' values that are in it.

    outer: NULL if the object is a row. If it is a member of a row: that member's name, the pointer in the columns.
    """
    cdef Cursor name
    cdef Cursor stop
    cdef Cursor value
    cdef Cursor nested
    cdef JsonColumn* column
    cdef bint wanted
    cdef int i
    p = json_skip_space(p + 1, end)
    if p != end and p[0] == c"}":
        return p + 1
    while True:
        name = p + 1
        value = json_skip_to_value(p, end, &stop, fault)
        if value == NULL:
            return NULL
        p = json_skip(value, end, fault)
        if p == NULL:
            return NULL
        nested = NULL
        for i in range(count):
            column = &columns[i]
            if outer == NULL:
                wanted = json_column_name_is(name, stop, column.name, column.size)
            else:
                wanted = column.inner != NULL and column.name == outer and json_column_name_is(
                    name, stop, column.inner, column.inner_size
                )
            if not wanted:
                continue
            if outer != NULL or column.inner == NULL:
                column.value = value
                column.end = p
            else:
                column.value = NULL  # an earlier member of the same name does not count
                nested = column.name
        if nested != NULL and value[0] == c"{":
            json_scan_row(value, end, columns, count, nested, fault)
        p = json_skip_space(p, end)
        if p == end:
            return json_fail(fault, "container without end", end)
        if p[0] == c"}":
            return p + 1
        if p[0] != c",":
            return json_fail(fault, "expected ',' or the container's end", p)
        p = json_skip_space(p + 1, end)


cdef object json_column_value(JsonColumn* column, object before, Cursor start):
    """Return the column's value in this row. before: its value in the row before."""
    cdef Cursor p = column.value
    if p == NULL:
        return None
    if (
        column.last != NULL
        and column.end - p == column.last_end - column.last
        and memcmp(p, column.last, column.end - p) == 0
    ):
        return before
    if p[0] == c"{" or p[0] == c"[":
        return json_build(p, column.end)
    return json_scalar(&p, column.end, start)


# ---- the window ----------------------------------------------------------------
#
# The file is read in units: a member of the root, or a row. A unit must lie in the window as a whole. If it reaches the
# end of the window, it may go on in the file: the window moves to where the unit begins, or grows, and the unit is read
# again. The window on a transcript (transcript/window.pxi) is another one: it also goes backwards, returns lines, and
# notices if a growing file was overwritten. This one goes forward only.

cdef struct JsonWindow:
    int fd
    unsigned char* data
    size_t capacity
    size_t size      # bytes that have been read
    int64_t offset   # of data[0] in the file
    bint whole       # the data reaches the end of the file


cdef int json_window_advance(JsonWindow* window, Cursor* at) except -1:
    """Drop the bytes before `at`, read more of the file, and set `at` to that byte's new place."""
    cdef size_t used = at[0] - window.data
    cdef unsigned char* data
    cdef Py_ssize_t got
    if used == 0 and window.size == window.capacity:
        data = <unsigned char*>PyMem_RawRealloc(window.data, window.capacity * 2)
        if data == NULL:
            raise MemoryError
        window.data = data
        window.capacity *= 2
    memmove(window.data, window.data + used, window.size - used)
    window.size -= used
    window.offset += used
    at[0] = window.data
    while window.size < window.capacity and not window.whole:
        got = os_read_at(
            window.fd, window.data + window.size, window.capacity - window.size, window.offset + <int64_t>window.size
        )
        if got < 0 and errno != EINTR:
            PyErr_SetFromErrno(OSError)
        if got >= 0:
            window.whole = window.size + got < window.capacity
            window.size += got
    return 0


@cython.final
@cython.internal
cdef class JsonColumnReader:
    cdef JsonWindow window
    cdef JsonFault fault
    cdef JsonColumn columns[JSON_MAX_COLUMNS]
    cdef int count
    cdef dict names  # encoded names of the columns: keeps them alive, and makes equal names one pointer

    def __dealloc__(self):
        PyMem_RawFree(self.window.data)

    cdef Cursor end(self) noexcept:
        return self.window.data + self.window.size

    cdef int failed(self, Cursor at) except -1:
        cdef int64_t byte = self.window.offset + (at - self.window.data)
        raise ValueError(f"invalid JSON: {self.fault.what.decode()} at byte {byte}")

    cdef int read_on(self, Cursor* at) except -1:
        """Read more of the file, from `at` on, and set `at` to that byte's new place.

        The columns forget the row before: its bytes are at another place in the window, or gone.
        """
        cdef int i
        json_window_advance(&self.window, at)
        for i in range(self.count):
            self.columns[i].last = NULL
        return 0

    cdef bint go_on(self, Cursor* at, Cursor found) except -1:
        """Return whether the unit at `at` must be read again, after reading more of the file.

        found: its end, or NULL for a fault. Raises ValueError if more of the file cannot remove the fault.
        """
        if found != NULL and found != self.end() or self.window.whole:
            if found == NULL:
                self.failed(self.fault.at)
            return False
        if found == NULL and self.fault.at != self.end():
            self.failed(self.fault.at)
        self.read_on(at)
        return True

    cdef Cursor next(self, Cursor p) except NULL:
        """Skip white space, reading more of the file if needed."""
        while True:
            p = json_skip_space(p, self.end())
            if p != self.end():
                return p
            if self.window.whole:
                json_fail(&self.fault, "container without end", p)
                self.failed(p)
            self.read_on(&p)

    cdef int check(self, Cursor p, Cursor end) except -1:
        cdef Cursor stop = utf8_stop(p, end)
        if stop != end:
            json_fail(&self.fault, "invalid UTF-8", stop)
            self.failed(stop)
        return 0

    cdef int choose(self, tuple paths) except -1:
        cdef JsonColumn* column
        cdef bytes step
        if len(paths) > JSON_MAX_COLUMNS:
            raise ValueError(f"more than {JSON_MAX_COLUMNS} columns")
        self.names = {}
        self.count = 0
        for path in paths:
            if not 1 <= len(path) <= 2 or not all(0 < len(name.encode()) <= JSON_MAX_NAME_BYTES for name in path):
                raise ValueError("a column's path is one name or two, none of them long")
            column = &self.columns[self.count]
            step = self.names.setdefault(path[0], path[0].encode())
            column.name, column.size = <Cursor>PyBytes_AS_STRING(step), len(step)
            column.inner = column.last = NULL
            if len(path) == 2:
                step = self.names.setdefault(path[1], path[1].encode())
                column.inner, column.inner_size = <Cursor>PyBytes_AS_STRING(step), len(step)
            self.count += 1
        return 0

    cdef Cursor rows(self, Cursor p, list lists) except NULL:
        """Read the array at p and append the values of its rows to the lists, one for each column."""
        cdef list before = [None] * self.count
        cdef Cursor after
        cdef JsonColumn* column
        cdef object value
        cdef int i
        p = self.next(p + 1)
        if p[0] == c"]":
            return p + 1
        while True:
            if p[0] != c"{":
                raise ValueError(f"a row is not an object at byte {self.window.offset + (p - self.window.data)}")
            for i in range(self.count):
                self.columns[i].value = NULL
            after = json_scan_row(p, self.end(), self.columns, self.count, NULL, &self.fault)
            if self.go_on(&p, after):
                continue
            self.check(p, after)
            for i in range(self.count):
                column = &self.columns[i]
                value = json_column_value(column, before[i], self.window.data)
                before[i] = value
                column.last, column.last_end = column.value, column.end
                (<list>lists[i]).append(value)
            p = self.next(after)
            if p[0] == c"]":
                return p + 1
            if p[0] != c",":
                json_fail(&self.fault, "expected ',' or the container's end", p)
                self.failed(p)
            p = self.next(p + 1)

    cdef tuple read(self, int fd, unicode array, object choose, Py_ssize_t window_bytes):
        cdef bytes wanted = array.encode()
        cdef dict top = {}
        cdef list lists = None
        cdef object span = None
        cdef int64_t start
        cdef Cursor p
        cdef Cursor value
        cdef Cursor stop = NULL
        cdef Cursor after
        if not 0 < len(wanted) <= JSON_MAX_NAME_BYTES:
            raise ValueError(f"the array's name must have 1 to {JSON_MAX_NAME_BYTES} bytes of UTF-8")
        if window_bytes < JSON_MIN_WINDOW_BYTES:
            raise ValueError(f"the window must have at least {JSON_MIN_WINDOW_BYTES} bytes")
        self.window.fd = fd
        self.window.capacity = window_bytes
        self.window.data = <unsigned char*>PyMem_RawMalloc(window_bytes)
        if self.window.data == NULL:
            raise MemoryError
        p = self.window.data
        self.read_on(&p)
        p = self.next(utf8_after_bom(p, self.end()))
        if p[0] != c"{":
            raise ValueError("the JSON text is not an object")
        p = self.next(p + 1)
        while p[0] != c"}":
            value = json_skip_to_value(p, self.end(), &stop, &self.fault)
            if self.go_on(&p, value):
                continue
            if value == self.end():
                json_fail(&self.fault, "expected a value", value)
                self.failed(value)
            if value[0] == c"[" and json_column_name_is(p + 1, stop, <Cursor>PyBytes_AS_STRING(wanted), len(wanted)):
                self.choose(choose(top))
                lists = [[] for _ in range(self.count)]
                top.pop(array, None)
                start = self.window.offset + (value - self.window.data)
                after = self.rows(value, lists)
                span = (start, self.window.offset + (after - self.window.data))
            else:
                after = json_skip(value, self.end(), &self.fault)
                if self.go_on(&p, after):
                    continue
                self.check(p, after)
                name = json_decode(p + 1, stop)
                top[name] = json_build(value, after)
                if name == array:
                    lists = span = None
            p = self.next(after)
            if p[0] == c",":
                p = self.next(p + 1)
                if p[0] != c'"':
                    json_fail(&self.fault, "expected a member's name", p)
                    self.failed(p)
            elif p[0] != c"}":
                json_fail(&self.fault, "expected ',' or the container's end", p)
                self.failed(p)
        p += 1
        while True:
            p = json_skip_space(p, self.end())
            if p != self.end():
                json_fail(&self.fault, "expected the end of the text", p)
                self.failed(p)
            if self.window.whole:
                return top, lists, span
            self.read_on(&p)


# ---- for Python ---------------------------------------------------------------

def read_json_columns(int fd, str array not None, choose, Py_ssize_t window_bytes=1 << 18):
    return JsonColumnReader().read(fd, array, choose, window_bytes)
