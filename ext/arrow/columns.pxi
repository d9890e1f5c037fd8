# Columns of a table in Arrow's memory layout. They grow by a value at a time.
#
# Gives: ArrowTexts, ArrowColumn, the kinds ARROW_*; arrow_add_*, arrow_end_names, arrow_text_is, arrow_texts_add,
# arrow_texts_free, arrow_column_filter, arrow_column_free, arrow_put_value, arrow_is_valid, arrow_copy_value,
# arrow_compare_texts.
# Needs: array_grow (array.pxi), text_hash (text/view.pxi), text/utf8.h.
#
# Layout: https://arrow.apache.org/docs/format/Columnar.html. Nothing here needs the interpreter.

cdef enum:
    ARROW_TEXT    # utf8
    ARROW_NAME    # utf8 of few values: an int32 index into a dictionary
    ARROW_NAMES   # a list of utf8
    ARROW_INT     # int64
    ARROW_TIME    # microseconds since 1970 in UTC
    ARROW_BOOL

cdef enum:
    ARROW_MAX_TEXT_BYTES = 0x7FFFFFFF  # of a column: offsets have 32 bits

cdef struct ArrowTexts:
    int32_t* offsets       # count + 1 of them, from 0
    size_t count
    size_t offset_capacity
    uint8_t* data
    size_t size
    size_t capacity

cdef struct ArrowColumn:
    int kind
    const char* name       # of the column; a constant
    size_t length
    size_t nulls
    uint8_t* valid         # a bit for each value, the first one lowest
    size_t valid_capacity
    uint8_t* values         # int64 values, int32 indices, bits, or the int32 offsets of lists; unused for texts
    size_t values_capacity  # bytes
    ArrowTexts texts       # the values, a dictionary's, or those of all lists
    uint32_t* slots        # of a dictionary: 1 + index by hash, or 0
    size_t slot_count      # a power of two
    int32_t last           # the index that was added last


cdef inline int arrow_add_bit(uint8_t** bits, size_t* capacity, size_t at, bint bit) noexcept nogil:
    """Set a bit behind the last one."""
    if at % 8 == 0:
        if at // 8 == capacity[0] and array_grow(<void**>bits, capacity, at // 8 + 1, 1) < 0:
            return -1
        bits[0][at // 8] = 0
    bits[0][at // 8] |= bit << (at % 8)
    return 0


cdef int arrow_texts_add(ArrowTexts* texts, Cursor start, size_t size) noexcept nogil:
    """Add a text of valid UTF-8. Returns -1 also if it is too much for offsets of 32 bits."""
    if size > ARROW_MAX_TEXT_BYTES - texts.size or texts.count >= ARROW_MAX_TEXT_BYTES:
        return -1
    if texts.count + 2 > texts.offset_capacity:
        if array_grow(<void**>&texts.offsets, &texts.offset_capacity, texts.count + 2, sizeof(int32_t)) < 0:
            return -1
        texts.offsets[0] = 0
    if texts.size + size > texts.capacity or texts.data == NULL:  # texts that are all empty have an address, too
        if array_grow(<void**>&texts.data, &texts.capacity, texts.size + size, 1) < 0:
            return -1
    if size:
        memcpy(texts.data + texts.size, start, size)
    texts.size += size
    texts.count += 1
    texts.offsets[texts.count] = <int32_t>texts.size
    return 0


cdef inline int arrow_put_value(ArrowColumn* column, size_t place, const void* value, size_t size) noexcept nogil:
    """Set the bytes of a value at the end of the column.

    place: how many values are before it.  value: NULL for zeros.
    """
    cdef size_t at = place * size
    if at + size > column.values_capacity:
        if array_grow(<void**>&column.values, &column.values_capacity, at + size, 1) < 0:
            return -1
    if value == NULL:
        memset(column.values + at, 0, size)
    else:
        memcpy(column.values + at, value, size)
    return 0


cdef inline int arrow_finish_value(ArrowColumn* column, bint valid) noexcept nogil:
    if arrow_add_bit(&column.valid, &column.valid_capacity, column.length, valid) < 0:
        return -1
    column.length += 1
    column.nulls += not valid
    return 0


cdef int arrow_add_null(ArrowColumn* column) noexcept nogil:
    cdef int64_t zero = 0
    cdef int failed
    if column.kind == ARROW_NAMES:
        return arrow_end_names(column, False)
    if column.kind == ARROW_TEXT:
        failed = arrow_texts_add(&column.texts, <Cursor>&zero, 0)
    elif column.kind == ARROW_BOOL:
        failed = arrow_add_bit(&column.values, &column.values_capacity, column.length, False)
    else:
        failed = arrow_put_value(
            column, column.length, NULL, sizeof(int32_t) if column.kind == ARROW_NAME else sizeof(int64_t)
        )
    return -1 if failed < 0 else arrow_finish_value(column, False)


cdef int arrow_add_int(ArrowColumn* column, int64_t value) noexcept nogil:
    """Add to a column of ARROW_INT or ARROW_TIME."""
    return -1 if arrow_put_value(column, column.length, &value, sizeof(value)) < 0 else arrow_finish_value(column, True)


cdef int arrow_add_bool(ArrowColumn* column, bint value) noexcept nogil:
    if arrow_add_bit(&column.values, &column.values_capacity, column.length, value) < 0:
        return -1
    return arrow_finish_value(column, True)


cdef int arrow_grow_dictionary(ArrowColumn* column) noexcept nogil:
    """Make the table of a dictionary's hashes twice as large."""
    cdef size_t wanted = max(<size_t>64, 2 * column.slot_count)
    cdef uint32_t* slots = <uint32_t*>PyMem_RawCalloc(wanted, sizeof(uint32_t))
    cdef ArrowTexts* texts = &column.texts
    cdef size_t i, slot
    if slots == NULL:
        return -1
    for i in range(texts.count):
        slot = text_hash(
            texts.data + texts.offsets[i], texts.offsets[i + 1] - texts.offsets[i]
        ) & (wanted - 1)
        while slots[slot]:
            slot = (slot + 1) & (wanted - 1)
        slots[slot] = <uint32_t>(i + 1)
    PyMem_RawFree(column.slots)
    column.slots = slots
    column.slot_count = wanted
    return 0


cdef inline bint arrow_text_is(const ArrowTexts* texts, size_t i, Cursor start, size_t size) noexcept nogil:
    """Return whether a text is this one."""
    return (
        <size_t>(texts.offsets[i + 1] - texts.offsets[i]) == size
        and memcmp(texts.data + texts.offsets[i], start, size) == 0
    )


cdef int32_t arrow_find_name(ArrowColumn* column, Cursor start, size_t size) noexcept nogil:
    """Return the index of a text in the dictionary, adding a new text."""
    cdef size_t slot
    if column.last < <int32_t>column.texts.count and arrow_text_is(&column.texts, column.last, start, size):
        return column.last
    if 2 * (column.texts.count + 1) > column.slot_count and arrow_grow_dictionary(column) < 0:
        return -1
    slot = text_hash(start, size) & (column.slot_count - 1)
    while column.slots[slot]:
        if arrow_text_is(&column.texts, column.slots[slot] - 1, start, size):
            column.last = <int32_t>(column.slots[slot] - 1)
            return column.last
        slot = (slot + 1) & (column.slot_count - 1)
    if arrow_texts_add(&column.texts, start, size) < 0:
        return -1
    column.slots[slot] = <uint32_t>column.texts.count
    column.last = <int32_t>(column.texts.count - 1)
    return column.last


cdef int arrow_add_text(ArrowColumn* column, Cursor start, size_t size) noexcept nogil:
    """Add valid UTF-8 to a column of ARROW_TEXT or ARROW_NAME."""
    cdef int32_t index
    if column.kind == ARROW_TEXT:
        if arrow_texts_add(&column.texts, start, size) < 0:
            return -1
        return arrow_finish_value(column, True)
    index = arrow_find_name(column, start, size)
    if index < 0 or arrow_put_value(column, column.length, &index, sizeof(index)) < 0:
        return -1
    return arrow_finish_value(column, True)


cdef int arrow_end_names(ArrowColumn* column, bint valid) noexcept nogil:
    """End a list of ARROW_NAMES, whose texts were added to column.texts.

    valid: False for a null, without texts.
    """
    cdef int32_t end = <int32_t>column.texts.count
    if column.length == 0 and arrow_put_value(column, 0, NULL, sizeof(end)) < 0:
        return -1
    if arrow_put_value(column, column.length + 1, &end, sizeof(end)) < 0:
        return -1
    return arrow_finish_value(column, valid)


cdef int arrow_compare_texts(const ArrowTexts* texts, size_t one, size_t other) noexcept nogil:
    """Return a number below, at or over zero, as the first text is less than, equal to or greater than the second."""
    cdef size_t size = texts.offsets[one + 1] - texts.offsets[one]
    cdef size_t other_size = texts.offsets[other + 1] - texts.offsets[other]
    cdef int order = 0
    if size and other_size:
        order = memcmp(texts.data + texts.offsets[one], texts.data + texts.offsets[other], min(size, other_size))
    return order if order else (size > other_size) - (size < other_size)


cdef inline bint arrow_is_valid(const ArrowColumn* column, size_t row) noexcept nogil:
    return column.valid[row // 8] >> (row % 8) & 1


cdef int arrow_copy_value(ArrowColumn* to, const ArrowColumn* column, size_t row) noexcept nogil:
    """Add a value of a column of the same kind, except ARROW_NAMES."""
    cdef const ArrowTexts* texts = &column.texts
    if not arrow_is_valid(column, row):
        return arrow_add_null(to)
    if to.kind == ARROW_BOOL:
        return arrow_add_bool(to, column.values[row // 8] >> (row % 8) & 1)
    if to.kind == ARROW_NAME:
        row = (<const int32_t*>column.values)[row]
    elif to.kind != ARROW_TEXT:
        return arrow_add_int(to, (<const int64_t*>column.values)[row])
    return arrow_add_text(to, texts.data + texts.offsets[row], texts.offsets[row + 1] - texts.offsets[row])


cdef inline void arrow_clear_bits(uint8_t* bits, size_t at) noexcept nogil:
    """Clear the bits from a place to the end of its byte: a bit that is added later is only set, not cleared."""
    if at % 8:
        bits[at // 8] &= (1 << (at % 8)) - 1


cdef inline void arrow_move_bit(uint8_t* bits, size_t to, size_t at) noexcept nogil:
    cdef uint8_t bit = bits[at // 8] >> (at % 8) & 1
    bits[to // 8] = (bits[to // 8] & ~(1 << (to % 8))) | bit << (to % 8)


cdef void arrow_texts_filter(ArrowTexts* texts, const uint8_t* keep) noexcept nogil:
    cdef size_t kept = 0
    cdef size_t size = 0
    cdef size_t i, start, end
    for i in range(texts.count):
        if keep[i]:
            start, end = texts.offsets[i], texts.offsets[i + 1]
            if start != size and start != end:
                memmove(texts.data + size, texts.data + start, end - start)
            size += end - start
            kept += 1
            texts.offsets[kept] = <int32_t>size
    texts.count, texts.size = kept, size


cdef void arrow_column_filter(ArrowColumn* column, const uint8_t* keep) noexcept nogil:
    """Drop values of a column of any kind but ARROW_NAMES.  keep: for each value whether it stays."""
    cdef size_t kept = 0
    cdef size_t nulls = 0
    cdef size_t i
    for i in range(column.length):
        if keep[i]:
            arrow_move_bit(column.valid, kept, i)
            nulls += not column.valid[kept // 8] >> (kept % 8) & 1
            if column.kind == ARROW_NAME:
                (<int32_t*>column.values)[kept] = (<int32_t*>column.values)[i]
            elif column.kind == ARROW_BOOL:
                arrow_move_bit(column.values, kept, i)
            elif column.kind != ARROW_TEXT:
                (<int64_t*>column.values)[kept] = (<int64_t*>column.values)[i]
            kept += 1
    if column.kind == ARROW_TEXT:
        arrow_texts_filter(&column.texts, keep)
    if column.kind == ARROW_BOOL:
        arrow_clear_bits(column.values, kept)
    arrow_clear_bits(column.valid, kept)
    column.length, column.nulls = kept, nulls


cdef void arrow_texts_free(ArrowTexts* texts) noexcept nogil:
    PyMem_RawFree(texts.offsets)
    PyMem_RawFree(texts.data)


cdef void arrow_column_free(ArrowColumn* column) noexcept nogil:
    PyMem_RawFree(column.valid)
    PyMem_RawFree(column.values)
    arrow_texts_free(&column.texts)
    PyMem_RawFree(column.slots)
