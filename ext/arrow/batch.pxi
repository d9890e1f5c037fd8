# Finished columns: handed out through the Arrow C data interface without a copy, or as rows of Python values.
#
# Gives: arrow_batch_of, arrow_columns_free. For Python: ArrowBatch, arrow_stream.
# Needs: arrow/arrow.h, the columns (arrow/columns.pxi).
#
# A consumer may hold a part of a batch longer than the rest, and may release it in any thread. So the memory is counted
# without the interpreter: by the batch itself, and by each exported array.

cdef int64_t ARROW_DAY_US = 86_400_000_000

cdef struct ArrowStorage:
    int64_t references
    int64_t length
    int64_t count          # of the columns
    ArrowColumn* columns
    ArrowStorage* owner    # of the columns' memory, if that is another batch; or NULL

# What an exported array owns.
cdef struct ArrowOwned:
    ArrowStorage* storage
    const void* buffers[3]


cdef void arrow_columns_free(ArrowColumn* columns, int64_t count) noexcept nogil:
    """Free columns and their values. columns: may be NULL."""
    cdef int64_t i
    if columns != NULL:
        for i in range(count):
            arrow_column_free(&columns[i])
    PyMem_RawFree(columns)


cdef void arrow_release_storage(ArrowStorage* storage) noexcept nogil:
    if arrow_count_reference(&storage.references, -1) == 0:
        if storage.owner != NULL:
            arrow_release_storage(storage.owner)
            storage.count = 0
        arrow_columns_free(storage.columns, storage.count)
        PyMem_RawFree(storage)


# ---- schemas -----------------------------------------------------------------

cdef const char* arrow_format(int kind) noexcept nogil:
    """Return the format string of a column, or of a dictionary's indices."""
    if kind == ARROW_TEXT:
        return b"u"
    if kind == ARROW_NAME:
        return b"i"
    if kind == ARROW_NAMES:
        return b"+l"
    if kind == ARROW_INT:
        return b"l"
    if kind == ARROW_TIME:
        return b"tsu:UTC"
    return b"b"


cdef void arrow_release_schema(ArrowSchema* schema) noexcept nogil:
    cdef int64_t i
    for i in range(schema.n_children):
        if schema.children[i].release != NULL:
            schema.children[i].release(schema.children[i])
        PyMem_RawFree(schema.children[i])
    PyMem_RawFree(schema.children)
    if schema.dictionary != NULL:
        if schema.dictionary.release != NULL:
            schema.dictionary.release(schema.dictionary)
        PyMem_RawFree(schema.dictionary)
    schema.release = NULL


cdef int arrow_begin_schema(ArrowSchema* schema, const char* format, const char* name, int64_t children) noexcept nogil:
    """Fill a schema whose children are still empty. Returns 0, or -1: no memory."""
    memset(schema, 0, sizeof(ArrowSchema))
    schema.format = format
    schema.name = name
    schema.flags = ARROW_FLAG_NULLABLE
    schema.release = arrow_release_schema
    if children:
        schema.children = <ArrowSchema**>PyMem_RawCalloc(children, sizeof(ArrowSchema*))
        if schema.children == NULL:
            return -1
        while schema.n_children < children:
            schema.children[schema.n_children] = <ArrowSchema*>PyMem_RawCalloc(1, sizeof(ArrowSchema))
            if schema.children[schema.n_children] == NULL:
                return -1
            schema.n_children += 1
    return 0


cdef int arrow_column_schema(const ArrowColumn* column, ArrowSchema* schema) noexcept nogil:
    if arrow_begin_schema(schema, arrow_format(column.kind), column.name, column.kind == ARROW_NAMES) < 0:
        return -1
    if column.kind == ARROW_NAMES:
        return arrow_begin_schema(schema.children[0], b"u", b"item", 0)
    if column.kind == ARROW_NAME:
        schema.dictionary = <ArrowSchema*>PyMem_RawCalloc(1, sizeof(ArrowSchema))
        if schema.dictionary == NULL:
            return -1
        return arrow_begin_schema(schema.dictionary, b"u", b"", 0)
    return 0


cdef int arrow_table_schema(const ArrowStorage* storage, ArrowSchema* schema) noexcept nogil:
    """Fill the schema of a table: a struct of its columns. Returns 0, or -1: no memory; release it in both cases."""
    cdef int64_t i
    if arrow_begin_schema(schema, b"+s", b"", storage.count) < 0:
        return -1
    schema.flags = 0
    schema.metadata = <const char*>&arrow_row_metadata
    for i in range(storage.count):
        if arrow_column_schema(&storage.columns[i], schema.children[i]) < 0:
            return -1
    return 0


# ---- arrays ------------------------------------------------------------------

cdef void arrow_release_array(ArrowArray* array) noexcept nogil:
    cdef int64_t i
    cdef ArrowOwned* owned = <ArrowOwned*>array.private_data
    for i in range(array.n_children):
        if array.children[i].release != NULL:
            array.children[i].release(array.children[i])
        PyMem_RawFree(array.children[i])
    PyMem_RawFree(array.children)
    if array.dictionary != NULL:
        if array.dictionary.release != NULL:
            array.dictionary.release(array.dictionary)
        PyMem_RawFree(array.dictionary)
    arrow_release_storage(owned.storage)
    PyMem_RawFree(owned)
    array.release = NULL


cdef ArrowOwned* arrow_begin_array(
    ArrowArray* array, ArrowStorage* storage, int64_t length, int64_t buffers, int64_t children
) noexcept nogil:
    """Fill an array whose buffers and children are still empty. Returns what it owns, or NULL: no memory."""
    cdef ArrowOwned* owned = <ArrowOwned*>PyMem_RawCalloc(1, sizeof(ArrowOwned))
    memset(array, 0, sizeof(ArrowArray))
    if owned == NULL:
        return NULL
    owned.storage = storage
    arrow_count_reference(&storage.references, 1)
    array.length = length
    array.n_buffers = buffers
    array.buffers = owned.buffers
    array.private_data = owned
    array.release = arrow_release_array
    if children:
        array.children = <ArrowArray**>PyMem_RawCalloc(children, sizeof(ArrowArray*))
        if array.children == NULL:
            return NULL
        while array.n_children < children:
            array.children[array.n_children] = <ArrowArray*>PyMem_RawCalloc(1, sizeof(ArrowArray))
            if array.children[array.n_children] == NULL:
                return NULL
            array.n_children += 1
    return owned


cdef int arrow_texts_array(ArrowTexts* texts, ArrowStorage* storage, ArrowArray* array) noexcept nogil:
    cdef ArrowOwned* owned = arrow_begin_array(array, storage, texts.count, 3, 0)
    if owned == NULL:
        return -1
    owned.buffers[1] = texts.offsets
    owned.buffers[2] = texts.data
    return 0


cdef int arrow_column_array(ArrowColumn* column, ArrowStorage* storage, ArrowArray* array) noexcept nogil:
    cdef ArrowOwned* owned
    if column.kind == ARROW_TEXT:
        if arrow_texts_array(&column.texts, storage, array) < 0:
            return -1
        owned = <ArrowOwned*>array.private_data
    else:
        owned = arrow_begin_array(array, storage, column.length, 2, column.kind == ARROW_NAMES)
        if owned == NULL:
            return -1
        owned.buffers[1] = column.values
    if column.nulls:
        owned.buffers[0] = column.valid
    array.null_count = column.nulls
    if column.kind == ARROW_NAMES:
        return arrow_texts_array(&column.texts, storage, array.children[0])
    if column.kind == ARROW_NAME:
        array.dictionary = <ArrowArray*>PyMem_RawCalloc(1, sizeof(ArrowArray))
        if array.dictionary == NULL:
            return -1
        return arrow_texts_array(&column.texts, storage, array.dictionary)
    return 0


cdef int arrow_table_array(ArrowStorage* storage, ArrowArray* array) noexcept nogil:
    """Fill the array of a table. Returns 0, or -1: no memory; release it in both cases, if it can be released."""
    cdef int64_t i
    if arrow_begin_array(array, storage, storage.length, 1, storage.count) == NULL:
        return -1
    for i in range(storage.count):
        if arrow_column_array(&storage.columns[i], storage, array.children[i]) < 0:
            return -1
    return 0


# ---- for Python ---------------------------------------------------------------

cdef void arrow_free_schema_capsule(object capsule) noexcept:
    cdef ArrowSchema* schema = <ArrowSchema*>PyCapsule_GetPointer(capsule, b"arrow_schema")
    if schema.release != NULL:
        schema.release(schema)
    PyMem_RawFree(schema)


cdef void arrow_free_array_capsule(object capsule) noexcept:
    cdef ArrowArray* array = <ArrowArray*>PyCapsule_GetPointer(capsule, b"arrow_array")
    if array.release != NULL:
        array.release(array)
    PyMem_RawFree(array)


cdef object arrow_new_capsule(void* content, const char* name, void (*free_content)(object) noexcept):
    """Return a capsule that owns its content, a zeroed struct. Raises MemoryError, also if the content is NULL."""
    if content == NULL:
        raise MemoryError
    try:
        return PyCapsule_New(content, name, free_content)
    except BaseException:
        PyMem_RawFree(content)
        raise


cdef object arrow_schema_capsule(const ArrowStorage* storage):
    cdef ArrowSchema* schema = <ArrowSchema*>PyMem_RawCalloc(1, sizeof(ArrowSchema))
    capsule = arrow_new_capsule(schema, b"arrow_schema", arrow_free_schema_capsule)
    if arrow_table_schema(storage, schema) < 0:
        raise MemoryError
    return capsule


cdef object arrow_array_capsule(ArrowStorage* storage):
    cdef ArrowArray* array = <ArrowArray*>PyMem_RawCalloc(1, sizeof(ArrowArray))
    capsule = arrow_new_capsule(array, b"arrow_array", arrow_free_array_capsule)
    if arrow_table_array(storage, array) < 0:
        raise MemoryError
    return capsule


cdef object arrow_texts_list(const ArrowTexts* texts):
    """Return the texts as a list of str."""
    cdef size_t i
    return [
        (<const char*>texts.data)[texts.offsets[i] : texts.offsets[i + 1]].decode() for i in range(texts.count)
    ]


# A time in UTC.
cdef struct ArrowClock:
    int year, month, day, hour, minute, second, microsecond


cdef ArrowClock arrow_clock_of(int64_t microseconds) noexcept nogil:
    """Return the time so many microseconds after the beginning of 1970, in the years 1 to 9999.

    The date: https://howardhinnant.github.io/date_algorithms.html, civil_from_days.
    """
    cdef ArrowClock clock
    cdef int64_t since_year_0 = microseconds + 719468 * ARROW_DAY_US  # its 1st of March, where years begin here
    cdef int64_t days = since_year_0 // ARROW_DAY_US
    cdef int64_t rest = since_year_0 - days * ARROW_DAY_US
    cdef int64_t era = days // 146097
    cdef int64_t day = days - era * 146097
    cdef int64_t year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    cdef int64_t month
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    clock.day = <int>(day - (153 * month + 2) // 5 + 1)
    clock.month = <int>(month + 3 if month < 10 else month - 9)
    clock.year = <int>(year + era * 400 + (clock.month <= 2))
    clock.microsecond = <int>(rest % 1000000)
    rest //= 1000000
    clock.second = <int>(rest % 60)
    clock.minute = <int>(rest // 60 % 60)
    clock.hour = <int>(rest // 3600)
    return clock


cdef void arrow_put_digits(char* at, int count, int number) noexcept nogil:
    """Write a number with leading zeros."""
    while count:
        count -= 1
        at[count] = <char>(c'0' + number % 10)
        number //= 10


cdef object arrow_time_text(const ArrowClock* clock):
    """Return a time as ISO 8601: 2026-11-22T09:00:00.123456Z."""
    cdef char[28] text
    memcpy(text, b"0000-00-00T00:00:00.000000Z", 28)
    arrow_put_digits(text, 4, clock.year)
    arrow_put_digits(text + 5, 2, clock.month)
    arrow_put_digits(text + 8, 2, clock.day)
    arrow_put_digits(text + 11, 2, clock.hour)
    arrow_put_digits(text + 14, 2, clock.minute)
    arrow_put_digits(text + 17, 2, clock.second)
    arrow_put_digits(text + 20, 6, clock.microsecond)
    return text[:27].decode("ascii")


cdef object arrow_times_list(const ArrowColumn* column, bint as_text):
    """Return the values of a column of times as a list of aware datetimes, or of texts; None for a null."""
    cdef size_t i
    cdef ArrowClock at
    cdef list values = [None] * column.length
    if not as_text:
        from datetime import datetime, timezone
        utc = timezone.utc
    for i in range(column.length):
        if arrow_is_valid(column, i):
            at = arrow_clock_of((<const int64_t*>column.values)[i])
            if as_text:
                values[i] = arrow_time_text(&at)
            else:
                values[i] = datetime(at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond, utc)
    return values


cdef object arrow_column_list(const ArrowColumn* column):
    """Return the values of a column without times as a list of str, int, bool or list of str; None for a null."""
    cdef size_t i
    cdef list texts = arrow_texts_list(&column.texts)
    cdef const int64_t* ints = <const int64_t*>column.values
    cdef const int32_t* places = <const int32_t*>column.values
    cdef list values = [None] * column.length
    for i in range(column.length):
        if not arrow_is_valid(column, i):
            continue
        if column.kind == ARROW_TEXT:
            values[i] = texts[i]
        elif column.kind == ARROW_NAME:
            values[i] = texts[places[i]]
        elif column.kind == ARROW_NAMES:
            values[i] = texts[places[i] : places[i + 1]]
        elif column.kind == ARROW_INT:
            values[i] = ints[i]
        else:
            values[i] = bool(column.values[i // 8] >> (i % 8) & 1)
    return values


@cython.final
cdef class ArrowBatch:
    cdef ArrowStorage* storage

    def __cinit__(self):
        """Make a batch without columns, which arrow_batch_of fills."""
        self.storage = <ArrowStorage*>PyMem_RawCalloc(1, sizeof(ArrowStorage))
        if self.storage == NULL:
            raise MemoryError
        self.storage.references = 1

    def __dealloc__(self):
        if self.storage != NULL:
            arrow_release_storage(self.storage)

    def __len__(self):
        return self.storage.length

    @property
    def names(self):
        cdef int64_t i
        return tuple([self.storage.columns[i].name.decode() for i in range(self.storage.count)])

    def __arrow_c_schema__(self):
        return arrow_schema_capsule(self.storage)

    def __arrow_c_array__(self, requested_schema=None):
        return arrow_schema_capsule(self.storage), arrow_array_capsule(self.storage)

    def columns(self, bint times_as_text=False):
        cdef int64_t i
        return [
            arrow_times_list(&self.storage.columns[i], times_as_text)
            if self.storage.columns[i].kind == ARROW_TIME
            else arrow_column_list(&self.storage.columns[i])
            for i in range(self.storage.count)
        ]

    def select(self, tuple names not None):
        cdef tuple known = self.names
        return arrow_part_of(self, [known.index(name) for name in names], self.storage.length)

    def head(self, int64_t length):
        if length < 0:
            raise ValueError("a batch cannot have less than 0 rows")
        return arrow_part_of(self, list(range(self.storage.count)), min(length, self.storage.length))


cdef ArrowBatch arrow_part_of(ArrowBatch batch, list places, int64_t length):
    """Return the first rows of some columns of a batch, which share its memory.  places: of the columns."""
    cdef ArrowBatch part = ArrowBatch.__new__(ArrowBatch)
    cdef ArrowColumn* column
    cdef ArrowColumn* columns = <ArrowColumn*>PyMem_RawCalloc(max(1, len(places)), sizeof(ArrowColumn))
    cdef Py_ssize_t i
    cdef int64_t row
    if columns == NULL:
        raise MemoryError
    part.storage.columns, part.storage.length, part.storage.owner = columns, length, batch.storage
    arrow_count_reference(&batch.storage.references, 1)
    part.storage.count = len(places)
    for i in range(len(places)):
        column = &columns[i]
        column[0] = batch.storage.columns[<int64_t>places[i]]
        column.length = length
        column.nulls = 0
        for row in range(length):
            column.nulls += not arrow_is_valid(column, row)
        if column.kind == ARROW_TEXT:
            column.texts.count = length
    return part


cdef int arrow_finish_column(ArrowColumn* column, size_t length) except -1:
    """Give a column what an array must have. Raises MemoryError, and ValueError if its values are not as many."""
    if column.length != length:
        raise ValueError(f"this table has no column {column.name.decode()!r}")
    PyMem_RawFree(column.slots)
    column.slots = NULL
    # An array of offsets has one more than values, also without values.
    if column.texts.offsets == NULL:
        if arrow_texts_add(&column.texts, <Cursor>b"", 0) < 0:
            raise MemoryError
        column.texts.count = 0
    if column.kind == ARROW_NAMES and length == 0 and arrow_put_value(column, 0, NULL, sizeof(int32_t)) < 0:
        raise MemoryError
    return 0


cdef ArrowBatch arrow_batch_of(ArrowColumn* columns, size_t count, size_t length):
    """Return a batch that owns the columns. If it raises MemoryError or ValueError, it has freed them.

    length: of each column.
    """
    cdef ArrowBatch batch
    cdef size_t i
    try:
        batch = ArrowBatch.__new__(ArrowBatch)
        for i in range(count):
            arrow_finish_column(&columns[i], length)
    except BaseException:
        arrow_columns_free(columns, count)
        raise
    batch.storage.length, batch.storage.count, batch.storage.columns = length, count, columns
    return batch


# ---- streams -----------------------------------------------------------------

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
