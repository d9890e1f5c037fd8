# Batches one after the other, as an Arrow C stream.
#
# Gives: nothing to other parts. For Python: arrow_stream.
# Needs: ArrowBatch and arrow_new_capsule (arrow/batch.pxi), the structs that are exported (arrow/export.pxi).

# What a stream owns.
cdef struct ArrowFeed:
    void* batches          # an iterator
    void* schema           # a batch with the columns
    void* problem          # bytes: the last error


cdef int arrow_raise_interrupt(void* _) noexcept:
    """Raise KeyboardInterrupt, for `Py_AddPendingCall`, which holds the GIL."""
    PyErr_SetNone(KeyboardInterrupt)
    return -1


cdef int arrow_feed_failed(ArrowFeed* feed, object error) noexcept with gil:
    """Keep an error's message for the stream's consumer. Returns its number, whatever happens."""
    Py_XDECREF(<PyObject*>feed.problem)
    feed.problem = NULL
    try:
        message = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace")
        Py_INCREF(message)
        feed.problem = <void*>message
        if isinstance(error, KeyboardInterrupt):
            Py_AddPendingCall(arrow_raise_interrupt, NULL)  # the consumer makes another exception of it
        return ENOMEM if isinstance(error, MemoryError) else EIO
    except BaseException:
        return EIO


cdef int arrow_stream_schema(ArrowArrayStream* stream, ArrowSchema* out) noexcept with gil:
    cdef ArrowFeed* feed = <ArrowFeed*>stream.private_data
    if arrow_table_schema((<ArrowBatch>feed.schema).storage, out) < 0:
        out.release(out)
        return ENOMEM
    return 0


cdef bint arrow_has_columns_of(const ArrowStorage* storage, const ArrowStorage* other) noexcept nogil:
    """Return whether both have the same columns."""
    cdef int64_t i
    if storage.count != other.count:
        return False
    for i in range(storage.count):
        if storage.columns[i].kind != other.columns[i].kind or strcmp(storage.columns[i].name, other.columns[i].name):
            return False
    return True


cdef int arrow_stream_next(ArrowArrayStream* stream, ArrowArray* out) noexcept with gil:
    cdef ArrowFeed* feed = <ArrowFeed*>stream.private_data
    cdef ArrowBatch batch
    out.release = NULL
    try:
        batch = next(<object>feed.batches, None)
        if batch is None:
            return 0
        if not arrow_has_columns_of(batch.storage, (<ArrowBatch>feed.schema).storage):
            raise TypeError("a batch has other columns than the stream")
        if arrow_table_array(batch.storage, out) < 0:
            if out.release != NULL:
                out.release(out)
            raise MemoryError
        return 0
    except BaseException as error:
        return arrow_feed_failed(feed, error)


cdef const char* arrow_stream_problem(ArrowArrayStream* stream) noexcept with gil:
    cdef ArrowFeed* feed = <ArrowFeed*>stream.private_data
    return NULL if feed.problem == NULL else bytes_data(<PyObject*>feed.problem)


cdef void arrow_stream_release(ArrowArrayStream* stream) noexcept with gil:
    cdef ArrowFeed* feed = <ArrowFeed*>stream.private_data
    Py_XDECREF(<PyObject*>feed.batches)
    Py_XDECREF(<PyObject*>feed.schema)
    Py_XDECREF(<PyObject*>feed.problem)
    PyMem_RawFree(feed)
    stream.release = NULL


cdef void arrow_free_stream_capsule(object capsule) noexcept:
    cdef ArrowArrayStream* stream = <ArrowArrayStream*>PyCapsule_GetPointer(capsule, b"arrow_array_stream")
    if stream.release != NULL:
        stream.release(stream)
    PyMem_RawFree(stream)


def arrow_stream(ArrowBatch schema not None, batches):
    cdef ArrowArrayStream* stream = <ArrowArrayStream*>PyMem_RawCalloc(1, sizeof(ArrowArrayStream))
    capsule = arrow_new_capsule(stream, b"arrow_array_stream", arrow_free_stream_capsule)
    batches = iter(batches)
    cdef ArrowFeed* feed = <ArrowFeed*>PyMem_RawCalloc(1, sizeof(ArrowFeed))
    if feed == NULL:
        raise MemoryError
    Py_INCREF(batches)
    Py_INCREF(schema)
    feed.batches, feed.schema = <void*>batches, <void*>schema
    stream.get_schema = arrow_stream_schema
    stream.get_next = arrow_stream_next
    stream.get_last_error = arrow_stream_problem
    stream.release = arrow_stream_release
    stream.private_data = feed
    return capsule
