# A batch: finished columns for Python, and for consumers of the Arrow C data interface.
#
# Gives: arrow_batch_of, arrow_new_capsule. For Python: ArrowBatch.
# Needs: the columns (arrow/columns.pxi), ArrowStorage and the structs that are exported (arrow/export.pxi), the values
# (arrow/values.pxi).

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
    """Add the buffers that an array must have. Raises MemoryError, and ValueError for a wrong number of values."""
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
