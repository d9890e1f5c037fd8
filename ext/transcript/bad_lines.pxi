# Finds the record in a line that is not one JSON text.
#
# Gives: rec_find.
# Needs: rec_walk and rec_read_attachment (transcript/fields.pxi), json_skip (json/grammar.pxi).
#
# A killed writer, or two concurrent writers, leave such lines. The record of a line is the last complete object that
# starts the line, follows another complete object, or ends at the line's end. An object at the line's end may be a
# value inside a torn record: then it is not a record. So the torn text before it is read. If that text ends where a
# value must begin, the object is the value.

cdef inline bint rec_is_space_or_nul(unsigned char byte) noexcept nogil:
    """Return whether the byte is white space or NUL. A crash may fill a file with NULs."""
    return byte == c" " or byte == c"\t" or byte == c"\r" or byte == c"\n" or byte == 0


cdef inline Cursor rec_skip_space_and_nul(Cursor p, Cursor end) noexcept nogil:
    while p != end and rec_is_space_or_nul(p[0]):
        p += 1
    return p


cdef Cursor rec_string_start(Cursor p, Cursor quote) noexcept nogil:
    """Return the opening quotation mark in [p, quote) of the string that `quote` closes, or NULL."""
    cdef Cursor backslash
    while quote != p:
        quote -= 1
        if quote[0] != c'"':
            continue
        backslash = quote
        while backslash != p and (backslash - 1)[0] == c"\\":
            backslash -= 1
        if (quote - backslash) % 2 == 0:
            return quote
        quote = backslash
    return NULL


cdef Cursor rec_object_start(Cursor p, Cursor end) noexcept nogil:
    """Return the opening brace in [p, end) of the object that ends right before `end`, or NULL."""
    cdef Py_ssize_t depth = 0
    cdef Cursor at = end
    while at != p:
        at -= 1
        if at[0] == c'"':
            at = rec_string_start(p, at)
            if at == NULL:
                return NULL
        elif at[0] == c"}" or at[0] == c"]":
            depth += 1
        elif at[0] == c"{" or at[0] == c"[":
            depth -= 1
            if depth == 0:
                return at if at[0] == c"{" else NULL
        elif depth == 0:
            return NULL
    return NULL


cdef unsigned char rec_byte_before(Cursor p, Cursor* at) noexcept nogil:
    """Return the last byte of [p, *at) that is not white space, or 0 if there is none. at: moved to it."""
    while at[0] != p:
        at[0] -= 1
        if not rec_is_space_or_nul(at[0][0]) or at[0][0] == 0:
            return at[0][0]
    return 0


cdef bint rec_looks_nested(Cursor p, Cursor at) noexcept nogil:
    """Return whether the bytes before `at` look like JSON before a nested value."""
    cdef unsigned char mark = rec_byte_before(p, &at)
    cdef unsigned char before = rec_byte_before(p, &at)
    if mark == c":":
        return before == c'"' or before == 0
    if mark == c",":
        return before == c'"' or before == c"}" or before == c"]" or before == 0
    return mark == c"[" and (before == c":" or before == c"," or before == c"[" or before == 0)


cdef Cursor rec_find_at_end(Cursor p, Cursor end) noexcept nogil:
    """Return the start of the object at the end of a torn text; NULL if there is none or it is a nested value."""
    cdef JsonFault fault
    cdef Cursor start
    cdef bint nested
    while end != p and rec_is_space_or_nul((end - 1)[0]):
        end -= 1
    start = rec_object_start(p, end)
    if start == NULL or start == p:
        return NULL
    if json_skip(p, start, &fault) == NULL and fault.at == start:
        nested = fault.value_due
    else:
        nested = rec_looks_nested(p, start)
    if nested:
        return NULL
    return start


cdef Cursor rec_last_of_objects(Cursor p, Cursor end) noexcept nogil:
    """Return the start of the last object if the text consists of objects only, otherwise NULL."""
    cdef JsonFault fault
    cdef Cursor last = NULL
    while p != end and p[0] == c"{":
        last = p
        p = json_skip(p, end, &fault)
        if p == NULL:
            return NULL
        p = rec_skip_space_and_nul(p, end)
    return last if p == end else NULL


cdef bint rec_find_object(Cursor p, Cursor end, RecFields* fields) noexcept nogil:
    """Find the object of the record in the line. Returns False if there is none."""
    cdef Cursor last = NULL
    cdef Cursor stop
    p = rec_skip_space_and_nul(p, end)
    while p != end and p[0] == c"{":
        stop = rec_walk(p, end, fields)
        if stop == NULL:
            break
        if last == NULL and stop != end:
            # Thousands of objects are skipped faster than they are read.
            last = rec_last_of_objects(rec_skip_space_and_nul(stop, end), end)
            if last != NULL and rec_walk(last, end, fields) != NULL:
                return True
        last = p
        p = rec_skip_space_and_nul(stop, end)
    if p == end:
        return last != NULL
    stop = rec_find_at_end(p, end)
    if stop != NULL:
        stop = rec_walk(stop, end, fields)
        if stop != NULL and rec_skip_space_and_nul(stop, end) == end:
            return True
    return last != NULL and rec_walk(last, end, fields) != NULL


cdef bint rec_find(Cursor p, Cursor end, RecFields* fields) noexcept nogil:
    """Find the record in the line: the line itself, or the last one in a bad line. Returns False if there is none."""
    cdef JsonFault fault
    if not rec_find_object(p, end, fields):
        return False
    return fields.top[FIELD_ATTACHMENT_TYPE].start == NULL or rec_read_attachment(fields, &fault)
