# Bad lines.
#
# A writer that was killed, or two that wrote at once, leave lines that are no
# JSON text. Such a line yields its last complete object that starts the line,
# follows another complete one, or ends where the line ends. Whether the last of
# these is a record or a value within a torn one is told by reading the torn one
# up to it: is a value due there?

cdef inline bint is_filler(unsigned char byte) noexcept nogil:
    """White space or NUL."""
    return byte == c" " or byte == c"\t" or byte == c"\r" or byte == c"\n" or byte == 0


cdef inline Cursor skip_blank(Cursor p, Cursor end) noexcept nogil:
    while p != end and is_filler(p[0]):
        p += 1
    return p


cdef Cursor string_opening(Cursor p, Cursor quote) noexcept nogil:
    """The quotation mark in [p, quote) that opens the string closed by `quote`, or NULL."""
    cdef Cursor solidus
    while quote != p:
        quote -= 1
        if quote[0] != c'"':
            continue
        solidus = quote
        while solidus != p and (solidus - 1)[0] == c"\\":
            solidus -= 1
        if (quote - solidus) % 2 == 0:
            return quote
        quote = solidus
    return NULL


cdef Cursor object_opening(Cursor p, Cursor end) noexcept nogil:
    """The brace in [p, end) that opens the object whose last byte is the one before end, or NULL."""
    cdef Py_ssize_t depth = 0
    cdef Cursor at = end
    while at != p:
        at -= 1
        if at[0] == c'"':
            at = string_opening(p, at)
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


cdef unsigned char byte_before(Cursor p, Cursor* at) noexcept nogil:
    """The last byte of [p, *at) that is no white space, 0 if there is none; *at: moved to it."""
    while at[0] != p:
        at[0] -= 1
        if not is_filler(at[0][0]) or at[0][0] == 0:
            return at[0][0]
    return 0


cdef bint follows_like_a_value(Cursor p, Cursor at) noexcept nogil:
    """Does what stands before `at` look like the JSON before a nested value, whatever came earlier?"""
    cdef unsigned char mark = byte_before(p, &at)
    cdef unsigned char before = byte_before(p, &at)
    if mark == c":":
        return before == c'"' or before == 0
    if mark == c",":
        return before == c'"' or before == c"}" or before == c"]" or before == 0
    return mark == c"[" and (before == c":" or before == c"," or before == c"[" or before == 0)


cdef Cursor record_at_end(Cursor p, Cursor end) noexcept nogil:
    """Where the object begins that ends a torn text, if it is no value of the torn one; or NULL."""
    cdef JsonFault fault
    cdef Cursor start
    cdef bint nested
    while end != p and is_filler((end - 1)[0]):
        end -= 1
    start = object_opening(p, end)
    if start == NULL or start == p:
        return NULL
    if json_skip(p, start, &fault) == NULL and fault.at == start:
        nested = fault.value_due
    else:
        nested = follows_like_a_value(p, start)
    if nested:
        return NULL
    return start


cdef Cursor last_of_objects(Cursor p, Cursor end) noexcept nogil:
    """Where the last object begins, if the text is nothing but objects; or NULL."""
    cdef JsonFault fault
    cdef Cursor last = NULL
    while p != end and p[0] == c"{":
        last = p
        p = json_skip(p, end, &fault)
        if p == NULL:
            return NULL
        p = skip_blank(p, end)
    return last if p == end else NULL


cdef bint record_find(Cursor p, Cursor end, RecordFields* fields) noexcept nogil:
    """Is there a record in the line? A good line is one; a bad one yields its last."""
    cdef Cursor last = NULL
    cdef Cursor stop
    p = skip_blank(p, end)
    while p != end and p[0] == c"{":
        stop = record_walk(p, end, fields)
        if stop == NULL:
            break
        if last == NULL and stop != end:
            last = last_of_objects(skip_blank(stop, end), end)  # thousands of them are passed over faster than read
            if last != NULL and record_walk(last, end, fields) != NULL:
                return True
        last = p
        p = skip_blank(stop, end)
    if p == end:
        return last != NULL
    stop = record_at_end(p, end)
    if stop != NULL:
        stop = record_walk(stop, end, fields)
        if stop != NULL and skip_blank(stop, end) == end:
            return True
    return last != NULL and record_walk(last, end, fields) != NULL
