# A file that is read at offsets: a descriptor, or a seekable binary file object.
#
# Gives: WinSource, win_source_open, win_source_close, win_source_size, win_source_read.
# Needs: os/file.h.

cdef struct WinSource:
    int fd        # -1: read through `file`
    bint is_file  # the descriptor is our copy: `file`'s own may be closed and its number reused meanwhile
    void* file    # borrowed: a seekable binary file object


cdef int win_source_open(WinSource* source, object file) except -1:
    """Open a source. file: a regular file's descriptor, or a seekable binary file object. The caller keeps it."""
    source.fd = -1
    source.is_file = False
    source.file = <void*>file
    if isinstance(file, int):
        source.fd = file
        if source.fd < 0:
            raise ValueError("negative file descriptor")
        return 0
    import _io
    # Only these two types have the bytes of their descriptor: gzip's fileno() is the compressed file's.
    raw = file.raw if type(file) is _io.BufferedReader else file
    if type(raw) is _io.FileIO:
        source.fd = os_copy_descriptor(raw.fileno())
        if source.fd < 0:
            PyErr_SetFromErrno(OSError)
        source.is_file = True
    return 0


cdef void win_source_close(WinSource* source) noexcept:
    if source.is_file:
        os_close_descriptor(source.fd)
    source.is_file = False
    source.fd = -1


cdef int64_t win_source_size(WinSource* source) except? -1:
    cdef int64_t size
    if source.fd < 0:
        return (<object>source.file).seek(0, 2)
    size = os_file_size(source.fd)
    if size < 0:
        PyErr_SetFromErrno(OSError)
    return size


cdef Py_ssize_t win_source_read(WinSource* source, unsigned char* data, Py_ssize_t size, int64_t offset) except -1:
    """Read up to `size` bytes and return how many. There are fewer only at the end of the file."""
    cdef Py_ssize_t count, done = 0
    if source.fd < 0:
        file = <object>source.file
        file.seek(offset)
        while done != size:
            view = PyMemoryView_FromMemory(<char*>data + done, size - done, PyBUF_WRITE)
            try:
                count = file.readinto(view) or 0
            finally:
                view.release()  # the file object or a traceback may hold a reference
            if not 0 <= count <= size - done:
                raise OSError(f"readinto of {size - done} bytes returned {count}")
            if count == 0:
                break
            done += count
        return done
    if source.is_file:
        (<object>source.file).fileno()  # raises ValueError if it is closed
    while True:
        with nogil:
            count = os_read_at(source.fd, data, size, offset)
        if count >= 0:
            return count
        if errno != EINTR:
            PyErr_SetFromErrno(OSError)
        PyErr_CheckSignals()
