# The JSON grammar (RFC 8259) and the content of strings.
#
# Gives: JsonFault and json_fail; json_skip, json_skip_value and the other json_skip_* functions; json_require;
# json_unescape, json_read_character, json_decode, json_decode_utf8; JSON_MAX_DEPTH.
# Needs: json/strings.h, utf8_put and utf8_after_bom (text/utf8.pxi), bytes_cut (text/view.pxi).
#
# json_skip knows the whole grammar. The reader and the editor first let it check a text, and then read the valid text.

# ---- the grammar -------------------------------------------------------------
#
# The functions named json_skip_* take a cursor and return the position after the part that they read, or NULL with
# `fault` set. A fault at the end of the text means that more bytes might complete it. Nothing recurses: the kind of
# each open container is one bit, so a text cannot overflow the stack.

cdef enum:
    JSON_DEPTH_WORDS = 16
    JSON_MAX_DEPTH = 1024  # open containers: 64 bits for each of the words

cdef struct JsonFault:
    const char* what
    Cursor at
    bint value_due  # the text ended where a value must begin


cdef inline Cursor json_fail(JsonFault* fault, const char* what, Cursor at) noexcept nogil:
    """Describe a fault. Always returns NULL."""
    fault.what = what
    fault.at = at
    fault.value_due = False
    return NULL


cdef inline Cursor json_skip_space(Cursor p, Cursor end) noexcept nogil:
    """Skip white space. Never fails."""
    while p != end and p[0] <= c" " and (p[0] == c" " or p[0] == c"\n" or p[0] == c"\t" or p[0] == c"\r"):
        p += 1
    return p


cdef inline int json_hex(unsigned char byte) noexcept nogil:
    """Return the value of a hexadecimal digit, or -1."""
    if c"0" <= byte <= c"9":
        return byte - c"0"
    byte |= 0x20
    return byte - c"a" + 10 if c"a" <= byte <= c"f" else -1


cdef Cursor json_skip_escape(Cursor p, Cursor end, JsonFault* fault) noexcept nogil:
    """Skip the escape whose backslash is at p."""
    cdef int i
    if end - p < 2:
        return json_fail(fault, "unfinished escape", end)
    if p[1] != c"u":
        if not (p[1] == c"n" or p[1] == c'"' or p[1] == c"\\" or p[1] == c"t" or p[1] == c"/" or p[1] == c"r"
                or p[1] == c"b" or p[1] == c"f"):
            return json_fail(fault, "unknown escape", p)
        return p + 2
    for i in range(2, 6):
        if p + i == end:
            return json_fail(fault, "unfinished escape", end)
        if json_hex(p[i]) < 0:
            return json_fail(fault, "escape without four hexadecimal digits", p)
    return p + 6


cdef Cursor json_skip_string_rest(Cursor p, Cursor end, JsonFault* fault) noexcept nogil:
    """Skip the rest of a string and its closing quotation mark. p: anywhere in it, but not within an escape."""
    while True:
        p = json_string_pass(p, end)
        if p == end:
            return json_fail(fault, "string without end", end)
        if p[0] == c'"':
            return p + 1
        if p[0] != c"\\":
            return json_fail(fault, "control character in a string", p)
        p = json_skip_escape(p, end, fault)
        if p == NULL:
            return NULL


cdef inline Cursor json_skip_string(Cursor p, Cursor end, JsonFault* fault) noexcept nogil:
    """Skip a string and its closing quotation mark. p: after the opening one."""
    p = json_string_short(p, end)
    if p != end and p[0] == c'"':
        return p + 1
    return json_skip_string_rest(p, end, fault)


cdef inline Cursor json_skip_digits(Cursor p, Cursor end, JsonFault* fault) noexcept nogil:
    """Skip one digit or more."""
    if p == end or not c"0" <= p[0] <= c"9":
        return json_fail(fault, "expected a digit", p)
    while p != end and c"0" <= p[0] <= c"9":
        p += 1
    return p


cdef Cursor json_skip_number(Cursor p, Cursor end, JsonFault* fault) noexcept nogil:
    if p[0] == c"-":
        p += 1
    if p != end and p[0] == c"0":
        p += 1
    else:
        p = json_skip_digits(p, end, fault)
    if p != NULL and p != end and p[0] == c".":
        p = json_skip_digits(p + 1, end, fault)
    if p != NULL and p != end and p[0] | 0x20 == c"e":
        p += 1
        if p != end and (p[0] == c"+" or p[0] == c"-"):
            p += 1
        p = json_skip_digits(p, end, fault)
    return p


cdef Cursor json_skip_word(Cursor p, Cursor end, JsonFault* fault) noexcept nogil:
    """Skip `true`, `false` or `null`."""
    cdef const char* word
    if end - p >= 5:  # without a loop; a mismatch is looked at below
        if bytes_begin(p, LIT(b"null")) or bytes_begin(p, LIT(b"true")):
            return p + 4
        if bytes_begin(p, LIT(b"false")):
            return p + 5
    if p[0] == c"t":
        word = b"true"
    elif p[0] == c"f":
        word = b"false"
    elif p[0] == c"n":
        word = b"null"
    else:
        return json_fail(fault, "expected a value", p)
    while word[0]:
        if p == end or p[0] != <unsigned char>word[0]:
            return json_fail(fault, "expected a value", p)
        p += 1
        word += 1
    return p


cdef inline Cursor json_skip_to_value(Cursor p, Cursor end, Cursor* stop, JsonFault* fault) noexcept nogil:
    """Skip a member's name and colon and return the start of its value. stop: set to the name's closing mark."""
    if p == end or p[0] != c'"':
        return json_fail(fault, "expected a member's name", p)
    p = json_skip_string(p + 1, end, fault)
    if p == NULL:
        return NULL
    stop[0] = p - 1
    p = json_skip_space(p, end)
    if p == end or p[0] != c":":
        return json_fail(fault, "expected ':'", p)
    return json_skip_space(p + 1, end)


cdef inline Cursor json_skip_name(Cursor p, Cursor end, JsonFault* fault) noexcept nogil:
    """Like json_skip_to_value, for a name that is not needed."""
    cdef Cursor stop
    return json_skip_to_value(p, end, &stop, fault)


cdef Cursor json_skip(Cursor p, Cursor end, JsonFault* fault) noexcept nogil:
    """Skip one value of any kind. p: at its first byte, after white space."""
    cdef uint64_t objects[JSON_DEPTH_WORDS]
    cdef uint64_t bit
    cdef int depth = 0
    cdef bint in_object = False
    cdef unsigned char byte
    while True:
        # A value begins at p.
        if p == end:
            json_fail(fault, "expected a value", end)
            fault.value_due = True
            return NULL
        byte = p[0]
        if byte == c'"':
            p = json_skip_string(p + 1, end, fault)
        elif byte == c"{" or byte == c"[":
            if depth == JSON_MAX_DEPTH:
                return json_fail(fault, "nested too deeply", p)
            bit = <uint64_t>1 << (depth & 63)
            in_object = byte == c"{"
            objects[depth >> 6] = objects[depth >> 6] | bit if in_object else objects[depth >> 6] & ~bit
            depth += 1
            p = json_skip_space(p + 1, end)
            if p == end or p[0] != byte + 2:  # "}" follows "{" by two in ASCII, "]" likewise "["
                if in_object:
                    p = json_skip_name(p, end, fault)
                    if p == NULL:
                        return NULL
                continue
        elif byte == c"-" or c"0" <= byte <= c"9":
            p = json_skip_number(p, end, fault)
        else:
            p = json_skip_word(p, end, fault)
        if p == NULL:
            return NULL
        # A value ends before p, or an empty container does at p.
        while depth:
            p = json_skip_space(p, end)
            if p == end:
                return json_fail(fault, "container without end", end)
            if p[0] == c",":
                p = json_skip_space(p + 1, end)
                if in_object:
                    p = json_skip_name(p, end, fault)
                    if p == NULL:
                        return NULL
                break
            if p[0] != (c"}" if in_object else c"]"):
                return json_fail(fault, "expected ',' or the container's end", p)
            p += 1
            depth -= 1
            if depth:
                in_object = objects[(depth - 1) >> 6] >> ((depth - 1) & 63) & 1
        else:
            return p


cdef inline Cursor json_skip_value(Cursor p, Cursor end, JsonFault* fault) noexcept nogil:
    """Like json_skip, faster for strings: most values of a record are strings."""
    if p != end and p[0] == c'"':
        return json_skip_string(p + 1, end, fault)
    return json_skip(p, end, fault)


cdef int json_check(Cursor p, Cursor end, JsonFault* fault) noexcept nogil:
    """Return 0 if [p, end) is one JSON text in valid UTF-8, otherwise -1 with `fault` set."""
    cdef Cursor stop = utf8_stop(p, end)
    if stop != end:
        json_fail(fault, "invalid UTF-8", stop)
        return -1
    p = json_skip(json_skip_space(p, end), end, fault)
    if p == NULL:
        return -1
    p = json_skip_space(p, end)
    if p != end:
        json_fail(fault, "expected the end of the text", p)
        return -1
    return 0


cdef int json_require(bytes text, bint may_have_bom=False) except -1:
    """Raise ValueError unless the bytes are one JSON text, after a byte order mark if it may have one."""
    cdef JsonFault fault
    cdef Cursor start
    cdef Cursor end
    cdef int status
    if text is None:
        raise TypeError("expected bytes, not None")
    start = <Cursor>PyBytes_AS_STRING(text)
    end = start + PyBytes_GET_SIZE(text)
    with nogil:
        status = json_check(utf8_after_bom(start, end) if may_have_bom else start, end, &fault)
    if status < 0:
        raise ValueError(f"invalid JSON: {fault.what.decode()} at byte {fault.at - start}")
    return 0


# ---- strings -----------------------------------------------------------------
#
# A text is never longer without its escapes than with them, so a buffer as long as the source is enough. A lone
# surrogate is kept: it becomes the three bytes of its would-be UTF-8.

cdef inline uint32_t json_code_unit(Cursor p) noexcept nogil:
    """Return the value of the escape \\uXXXX at p."""
    return <uint32_t>(json_hex(p[2]) << 12 | json_hex(p[3]) << 8 | json_hex(p[4]) << 4 | json_hex(p[5]))


cdef inline Cursor json_read_escape(Cursor p, Cursor end, uint32_t* code_point) noexcept nogil:
    """Read the valid escape at p, or two that make a surrogate pair. Returns the position after it."""
    cdef uint32_t unit, low
    if p[1] != c"u":
        code_point[0] = (
            c"\n" if p[1] == c"n" else c"\t" if p[1] == c"t" else c"\r" if p[1] == c"r"
            else c"\b" if p[1] == c"b" else c"\f" if p[1] == c"f" else p[1]
        )
        return p + 2
    unit = json_code_unit(p)
    p += 6
    if unit >> 10 == 0x36 and end - p >= 6 and p[0] == c"\\" and p[1] == c"u":
        low = json_code_unit(p)
        if low >> 10 == 0x37:
            unit = 0x10000 + ((unit & 0x3ff) << 10 | (low & 0x3ff))
            p += 6
    code_point[0] = unit
    return p


cdef Py_ssize_t json_unescape(Cursor p, Cursor end, unsigned char* out, bint* lone) noexcept nogil:
    """Write the UTF-8 of a valid string to `out` and return its length.

    p, end: inside the quotation marks. lone: set if there is a lone surrogate; it is written as three bytes.
    """
    cdef unsigned char* start = out
    cdef Cursor stop
    cdef uint32_t code_point
    while True:
        stop = json_string_stop(p, end)
        memcpy(out, p, stop - p)
        out += stop - p
        if stop == end:
            return out - start
        p = json_read_escape(stop, end, &code_point)
        if code_point >> 11 == 0x1b:
            lone[0] = True
        out = utf8_put(out, code_point)


cdef inline Cursor json_read_character(Cursor p, Cursor end, uint32_t* code_point) noexcept nogil:
    """Read the character at p, escaped or not, in a valid string. Returns the position after it."""
    cdef size_t size
    if p[0] == c"\\":
        return json_read_escape(p, end, code_point)
    if p[0] < 0x80:
        code_point[0] = p[0]
        return p + 1
    size = utf8_sequence(p, end, False)
    code_point[0] = utf8_decode(p, size)
    return p + size


cdef unicode json_decode(Cursor p, Cursor end):
    """Return a valid string as a str. p, end: inside its quotation marks.

    The str is measured before it is made, so that a large text is in memory once.
    """
    cdef unicode text
    cdef Cursor at = p
    cdef Cursor stop
    cdef Py_ssize_t length = 0
    cdef uint32_t code_point, highest = 0x7f
    cdef int kind
    while True:
        stop = json_plain_stop(at, end)
        length += stop - at
        if stop == end:
            break
        at = json_read_character(stop, end, &code_point)
        highest = max(highest, code_point)
        length += 1
    text = PyUnicode_New(length, highest)
    kind = PyUnicode_KIND(text)
    length = 0
    while True:
        stop = json_plain_stop(p, end)
        json_widen(PyUnicode_DATA(text), kind, length, p, stop - p)
        length += stop - p
        if stop == end:
            return text
        p = json_read_character(stop, end, &code_point)
        PyUnicode_WRITE(kind, PyUnicode_DATA(text), length, code_point)
        length += 1


cdef bytes json_decode_utf8(Cursor p, Cursor end):
    """Return the result of json_decode in UTF-8. A lone surrogate takes three bytes."""
    cdef PyObject* made = bytes_new(NULL, end - p)
    cdef bint lone
    return bytes_cut(made, json_unescape(p, end, <unsigned char*>bytes_data(made), &lone))
