# Finished columns as the structs of the Arrow C data interface, without a copy.
#
# Gives: ArrowStorage; arrow_table_schema, arrow_table_array; arrow_columns_free, arrow_release_storage.
# Needs: arrow/arrow.h, the columns (arrow/columns.pxi).
#
# A consumer may hold a part of a batch longer than the rest, and may release it in any thread. So the memory is counted
# without the interpreter: by the batch itself, and by each exported array.

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
    """Fill a schema whose children are still empty."""
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
    """Fill the schema of a table: a struct of its columns. Release it after a failure, too."""
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
    """Fill an array whose buffers and children are still empty. Returns what it owns."""
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
    """Fill the array of a table. If it can be released, release it after a failure, too."""
    cdef int64_t i
    if arrow_begin_array(array, storage, storage.length, 1, storage.count) == NULL:
        return -1
    for i in range(storage.count):
        if arrow_column_array(&storage.columns[i], storage, array.children[i]) < 0:
            return -1
    return 0
