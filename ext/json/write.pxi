# Turns Python objects into a JSON text.
#
# Gives: JsonOutput and json_out_room, json_out_put, json_out_literal, json_out_newline; json_write.
# For Python: write_json.
# Needs: array_grow (array.pxi), JSON_MAX_DEPTH (json/grammar.pxi).
#
# The containers being written are kept in a list of iterators, so neither depth nor a cycle can overflow the stack.

cdef struct JsonOutput:
    unsigned char* data
    Py_ssize_t size
    size_t capacity


cdef unsigned char* json_out_room(JsonOutput* output, Py_ssize_t needed) except NULL:
    """Return a place for `needed` bytes. The caller then adds to output.size."""
    cdef size_t wanted = output.size + needed
    if output.capacity < wanted and array_grow(<void**>&output.data, &output.capacity, wanted, 1) < 0:
        raise MemoryError
    return output.data + output.size


cdef int json_out_put(JsonOutput* output, const void* data, Py_ssize_t size) except -1:
    memcpy(json_out_room(output, size), data, size)
    output.size += size
    return 0


cdef inline int json_out_literal(JsonOutput* output, Literal literal) except -1:
    return json_out_put(output, literal.text, literal.size)


cdef int json_out_escape(JsonOutput* output, uint32_t unit) except -1:
    """Write an escape: two characters if there is such a form, otherwise \\uXXXX."""
    cdef unsigned char* out = json_out_room(output, 6)
    cdef const char* short_form = b"\"\"\\\\\nn\tt\rr\bb\ff"
    cdef int i
    out[0] = c"\\"
    for i in range(0, 14, 2):
        if unit == <uint32_t>short_form[i]:
            out[1] = <unsigned char>short_form[i + 1]
            output.size += 2
            return 0
    out[1] = c"u"
    for i in range(4):
        out[2 + i] = <unsigned char>b"0123456789abcdef"[unit >> (12 - 4 * i) & 15]
    output.size += 6
    return 0


cdef int json_out_string(JsonOutput* output, object text) except -1:
    cdef Py_ssize_t size
    cdef Cursor p
    cdef Cursor end
    cdef Cursor stop
    cdef bytes encoded
    cdef bint lone = False
    try:
        p = <Cursor>PyUnicode_AsUTF8AndSize(text, &size)
    except UnicodeEncodeError:
        lone = True
        encoded = text.encode("utf-8", "surrogatepass")
        p = <Cursor>PyBytes_AS_STRING(encoded)
        size = PyBytes_GET_SIZE(encoded)
    end = p + size
    json_out_literal(output, LIT(b'"'))
    while True:
        stop = json_string_stop(p, end)
        if lone:  # only surrogates begin with the byte ED and then A0 or more
            size = 0
            while p + size != stop and not (p[size] == 0xed and p[size + 1] >= 0xa0):
                size += 1
            stop = p + size
        json_out_put(output, p, stop - p)
        if stop == end:
            break
        if stop[0] == 0xed:
            json_out_escape(output, 0xd000 | (stop[1] & 0x3f) << 6 | (stop[2] & 0x3f))
            p = stop + 3
        else:
            json_out_escape(output, stop[0])
            p = stop + 1
    return json_out_literal(output, LIT(b'"'))


cdef int json_out_scalar(JsonOutput* output, object value) except -1:
    cdef bytes text
    if value is None:
        return json_out_literal(output, LIT(b"null"))
    if value is True:
        return json_out_literal(output, LIT(b"true"))
    if value is False:
        return json_out_literal(output, LIT(b"false"))
    if isinstance(value, str):
        return json_out_string(output, value)
    if isinstance(value, int):
        text = int.__repr__(value).encode()
    elif isinstance(value, float):
        if value - value != 0:
            raise ValueError(f"{value!r} has no JSON form")
        text = float.__repr__(value).encode()
    else:
        raise ValueError(f"a {type(value).__name__} has no JSON form")
    return json_out_put(output, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))


cdef int json_out_newline(JsonOutput* output, Py_ssize_t depth) except -1:
    cdef Py_ssize_t i
    json_out_literal(output, LIT(b"\n"))
    for i in range(depth):
        json_out_literal(output, LIT(b"  "))
    return 0


cdef int json_out_value(JsonOutput* output, object value, int style) except -1:
    """Write a value. style: 0 compact, 1 a space after comma and colon, 2 indented by two."""
    cdef list stack = []  # (iterator over the rest, whether it is an object's)
    cdef object rest = None
    cdef bint in_object = False
    cdef bint first = False
    while True:
        # A value is to be written.
        if isinstance(value, (dict, list, tuple)):
            if len(stack) == JSON_MAX_DEPTH:
                raise ValueError("nested too deeply, or within itself")
            stack.append((rest, in_object))
            in_object = isinstance(value, dict)
            rest = iter(value.items() if in_object else value)
            json_out_literal(output, LIT(b"{" if in_object else b"["))
            first = True
        else:
            json_out_scalar(output, value)
        # A value has been written, or a container begun.
        while stack:
            try:
                value = next(rest)
            except StopIteration:
                if style == 2 and not first:
                    json_out_newline(output, len(stack) - 1)
                json_out_literal(output, LIT(b"}" if in_object else b"]"))
                rest, in_object = stack.pop()
                first = False
                continue
            if not first:
                json_out_literal(output, LIT(b", " if style == 1 else b","))
            first = False
            if style == 2:
                json_out_newline(output, len(stack))
            if in_object:
                name, value = value
                if not isinstance(name, str):
                    raise ValueError(f"a member's name must be a str, not {type(name).__name__}")
                json_out_string(output, name)
                json_out_literal(output, LIT(b": " if style else b":"))
            break
        else:
            return 0


cdef bytes json_write(object value, int style):
    cdef JsonOutput output
    output.data = NULL
    output.size = output.capacity = 0
    try:
        json_out_value(&output, value, style)
        return PyBytes_FromStringAndSize(<const char*>output.data, output.size)
    finally:
        PyMem_RawFree(output.data)


# ---- for Python ---------------------------------------------------------------

def write_json(value, int style=0):
    return json_write(value, style)
