# JSON as RFC 8259 has it: one grammar, a reader and a writer.
#
# json_skip is the only place that knows the grammar. Everything else - the
# reader, the editor, the record walk - first lets it pass over a text and then
# reads what it already knows to be well formed.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memchr, memcpy

cdef extern from "Python.h":
    unicode PyUnicode_New(Py_ssize_t size, Py_UCS4 highest)
    int PyUnicode_KIND(object text)
    void* PyUnicode_DATA(object text)
    void PyUnicode_WRITE(int kind, void* data, Py_ssize_t index, Py_UCS4 value) noexcept nogil
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef extern from "text.h" nogil:
    ctypedef const unsigned char* Cursor "tailhook_cursor"
    Cursor string_stop "tailhook_string_stop"(Cursor p, Cursor end)
    Cursor string_pass "tailhook_string_pass"(Cursor p, Cursor end)
    Cursor string_short "tailhook_string_short"(Cursor p, Cursor end)
    Cursor plain_stop "tailhook_plain_stop"(Cursor p, Cursor end)
    void widen "tailhook_widen"(void* data, int width, Py_ssize_t index, Cursor p, Py_ssize_t count)
    size_t utf8_sequence "tailhook_utf8_sequence"(Cursor p, Cursor end)
    Cursor utf8_stop "tailhook_utf8_stop"(Cursor p, Cursor end)


# ---- the grammar -------------------------------------------------------------
#
# Functions take a cursor and return the one past what they read, or NULL with
# the fault noted. A fault at the end of the text means that more bytes might
# have completed it. Depth is counted, not recursed: a text cannot overflow the
# stack, and the kind of each open container is one bit.

cdef enum:
    JSON_DEPTH_WORDS = 16
    JSON_DEPTH = 1024  # containers open at once, a bit each of that many words of 64

cdef struct JsonFault:
    const char* what
    Cursor at
    bint value_due  # the text ended where a value was to begin


cdef inline Cursor json_fault(JsonFault* fault, const char* what, Cursor at) noexcept nogil:
    """Always NULL."""
    fault.what = what
    fault.at = at
    fault.value_due = False
    return NULL


cdef inline Cursor json_space(Cursor p, Cursor end) noexcept nogil:
    """Past white space; never fails."""
    while p != end and p[0] <= c" " and (p[0] == c" " or p[0] == c"\n" or p[0] == c"\t" or p[0] == c"\r"):
        p += 1
    return p


cdef inline int hex_value(unsigned char byte) noexcept nogil:
    """0 to 15, or -1."""
    if c"0" <= byte <= c"9":
        return byte - c"0"
    byte |= 0x20
    return byte - c"a" + 10 if c"a" <= byte <= c"f" else -1


cdef Cursor json_escape(Cursor p, Cursor end, JsonFault* fault) noexcept nogil:
    """p: at the reverse solidus."""
    cdef int i
    if end - p < 2:
        return json_fault(fault, "unfinished escape", end)
    if p[1] != c"u":
        if not (p[1] == c"n" or p[1] == c'"' or p[1] == c"\\" or p[1] == c"t" or p[1] == c"/" or p[1] == c"r"
                or p[1] == c"b" or p[1] == c"f"):
            return json_fault(fault, "unknown escape", p)
        return p + 2
    for i in range(2, 6):
        if p + i == end:
            return json_fault(fault, "unfinished escape", end)
        if hex_value(p[i]) < 0:
            return json_fault(fault, "escape without four hexadecimal digits", p)
    return p + 6


cdef Cursor json_string_rest(Cursor p, Cursor end, JsonFault* fault) noexcept nogil:
    """p: anywhere in a string but within an escape; the result: past the closing quotation mark."""
    while True:
        p = string_pass(p, end)
        if p == end:
            return json_fault(fault, "string without end", end)
        if p[0] == c'"':
            return p + 1
        if p[0] != c"\\":
            return json_fault(fault, "control character in a string", p)
        p = json_escape(p, end, fault)
        if p == NULL:
            return NULL


cdef inline Cursor json_string(Cursor p, Cursor end, JsonFault* fault) noexcept nogil:
    """p: past the opening quotation mark; the result: past the closing one."""
    p = string_short(p, end)
    if p != end and p[0] == c'"':
        return p + 1
    return json_string_rest(p, end, fault)


cdef inline Cursor json_digits(Cursor p, Cursor end, JsonFault* fault) noexcept nogil:
    """Past one digit or more."""
    if p == end or not c"0" <= p[0] <= c"9":
        return json_fault(fault, "expected a digit", p)
    while p != end and c"0" <= p[0] <= c"9":
        p += 1
    return p


cdef Cursor json_number(Cursor p, Cursor end, JsonFault* fault) noexcept nogil:
    if p[0] == c"-":
        p += 1
    if p != end and p[0] == c"0":
        p += 1
    else:
        p = json_digits(p, end, fault)
    if p != NULL and p != end and p[0] == c".":
        p = json_digits(p + 1, end, fault)
    if p != NULL and p != end and p[0] | 0x20 == c"e":
        p += 1
        if p != end and (p[0] == c"+" or p[0] == c"-"):
            p += 1
        p = json_digits(p, end, fault)
    return p


cdef Cursor json_word(Cursor p, Cursor end, JsonFault* fault) noexcept nogil:
    """Past `true`, `false` or `null`."""
    cdef const char* word
    if p[0] == c"t":
        word = b"true"
    elif p[0] == c"f":
        word = b"false"
    elif p[0] == c"n":
        word = b"null"
    else:
        return json_fault(fault, "expected a value", p)
    while word[0]:
        if p == end or p[0] != <unsigned char>word[0]:
            return json_fault(fault, "expected a value", p)
        p += 1
        word += 1
    return p


cdef inline Cursor json_name(Cursor p, Cursor end, JsonFault* fault) noexcept nogil:
    """Past a member's name, its colon and the white space after: at its value."""
    if p == end or p[0] != c'"':
        return json_fault(fault, "expected a member's name", p)
    p = json_string(p + 1, end, fault)
    if p == NULL:
        return NULL
    p = json_space(p, end)
    if p == end or p[0] != c":":
        return json_fault(fault, "expected ':'", p)
    return json_space(p + 1, end)


cdef Cursor json_skip(Cursor p, Cursor end, JsonFault* fault) noexcept nogil:
    """Past one value of any kind; p: at its first byte, white space passed."""
    cdef uint64_t objects[JSON_DEPTH_WORDS]
    cdef uint64_t bit
    cdef int depth = 0
    cdef bint in_object = False
    cdef unsigned char byte
    while True:
        # A value begins at p.
        if p == end:
            json_fault(fault, "expected a value", end)
            fault.value_due = True
            return NULL
        byte = p[0]
        if byte == c'"':
            p = json_string(p + 1, end, fault)
        elif byte == c"{" or byte == c"[":
            if depth == JSON_DEPTH:
                return json_fault(fault, "nested too deeply", p)
            bit = <uint64_t>1 << (depth & 63)
            in_object = byte == c"{"
            objects[depth >> 6] = objects[depth >> 6] | bit if in_object else objects[depth >> 6] & ~bit
            depth += 1
            p = json_space(p + 1, end)
            if p == end or p[0] != byte + 2:  # "}" follows "{" by two in ASCII, "]" likewise "["
                if in_object:
                    p = json_name(p, end, fault)
                    if p == NULL:
                        return NULL
                continue
        elif byte == c"-" or c"0" <= byte <= c"9":
            p = json_number(p, end, fault)
        else:
            p = json_word(p, end, fault)
        if p == NULL:
            return NULL
        # A value ends before p, or an empty container does at p.
        while depth:
            p = json_space(p, end)
            if p == end:
                return json_fault(fault, "container without end", end)
            if p[0] == c",":
                p = json_space(p + 1, end)
                if in_object:
                    p = json_name(p, end, fault)
                    if p == NULL:
                        return NULL
                break
            if p[0] != (c"}" if in_object else c"]"):
                return json_fault(fault, "expected ',' or the container's end", p)
            p += 1
            depth -= 1
            if depth:
                in_object = objects[(depth - 1) >> 6] >> ((depth - 1) & 63) & 1
        else:
            return p


cdef int json_check(Cursor p, Cursor end, JsonFault* fault) noexcept nogil:
    """0 if [p, end) is one JSON text, in UTF-8 throughout; -1 with the fault."""
    cdef Cursor stop = utf8_stop(p, end)
    if stop != end:
        json_fault(fault, "invalid UTF-8", stop)
        return -1
    p = json_skip(json_space(p, end), end, fault)
    if p == NULL:
        return -1
    p = json_space(p, end)
    if p != end:
        json_fault(fault, "expected the end of the text", p)
        return -1
    return 0


cdef int json_require(bytes text) except -1:
    """As json_check, the fault raised."""
    cdef JsonFault fault
    cdef Cursor start
    cdef Cursor end
    cdef int status
    if text is None:
        raise TypeError("expected bytes, not None")
    start = <Cursor>PyBytes_AS_STRING(text)
    end = start + PyBytes_GET_SIZE(text)
    with nogil:
        status = json_check(start, end, &fault)
    if status < 0:
        raise ValueError(f"invalid JSON: {fault.what.decode()} at byte {fault.at - start}")
    return 0


# ---- strings -----------------------------------------------------------------
#
# Escapes shrink: a text without them is never longer than it was with them, so
# the caller gives a buffer as long as the source. A surrogate that has lost its
# partner is kept, as the three bytes UTF-8 would have for it if it had any.

cdef inline uint32_t json_code_unit(Cursor p) noexcept nogil:
    """The value of \\uXXXX at p."""
    return <uint32_t>(hex_value(p[2]) << 12 | hex_value(p[3]) << 8 | hex_value(p[4]) << 4 | hex_value(p[5]))


cdef inline Cursor json_escaped(Cursor p, Cursor end, uint32_t* code_point) noexcept nogil:
    """Past the valid escape at p, or the two that make a surrogate pair."""
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


cdef inline unsigned char* utf8_put(unsigned char* out, uint32_t code_point) noexcept nogil:
    """Past what was written, four bytes at most."""
    if code_point < 0x80:
        out[0] = <unsigned char>code_point
        return out + 1
    if code_point < 0x800:
        out[0] = <unsigned char>(0xc0 | code_point >> 6)
    else:
        if code_point < 0x10000:
            out[0] = <unsigned char>(0xe0 | code_point >> 12)
        else:
            out[0] = <unsigned char>(0xf0 | code_point >> 18)
            out += 1
            out[0] = <unsigned char>(0x80 | (code_point >> 12 & 0x3f))
        out += 1
        out[0] = <unsigned char>(0x80 | (code_point >> 6 & 0x3f))
    out[1] = <unsigned char>(0x80 | (code_point & 0x3f))
    return out + 2


cdef Py_ssize_t json_unescape(Cursor p, Cursor end, unsigned char* out, bint* lone) noexcept nogil:
    """Bytes written; p, end: inside the quotation marks of a valid string. Sets *lone at a lone surrogate."""
    cdef unsigned char* start = out
    cdef Cursor stop
    cdef uint32_t code_point
    while True:
        stop = string_stop(p, end)
        memcpy(out, p, stop - p)
        out += stop - p
        if stop == end:
            return out - start
        p = json_escaped(stop, end, &code_point)
        if code_point >> 11 == 0x1b:
            lone[0] = True
        out = utf8_put(out, code_point)


cdef inline Cursor json_character(Cursor p, Cursor end, uint32_t* code_point) noexcept nogil:
    """Past the character at p, however it is written, in a valid string of valid UTF-8."""
    cdef size_t size, i
    if p[0] == c"\\":
        return json_escaped(p, end, code_point)
    if p[0] < 0x80:
        code_point[0] = p[0]
        return p + 1
    size = utf8_sequence(p, end)
    code_point[0] = p[0] & (0xff >> (size + 1))
    for i in range(1, size):
        code_point[0] = code_point[0] << 6 | (p[i] & 0x3f)
    return p + size


cdef unicode json_decode(Cursor p, Cursor end):
    """The str of a valid string of valid UTF-8; p, end: inside its quotation marks.

    Measured first, then written: a large text is in memory once.
    """
    cdef unicode text
    cdef Cursor at = p
    cdef Cursor stop
    cdef Py_ssize_t length = 0
    cdef uint32_t code_point, highest = 0x7f
    cdef int kind
    while True:
        stop = plain_stop(at, end)
        length += stop - at
        if stop == end:
            break
        at = json_character(stop, end, &code_point)
        highest = max(highest, code_point)
        length += 1
    text = PyUnicode_New(length, highest)
    kind = PyUnicode_KIND(text)
    length = 0
    while True:
        stop = plain_stop(p, end)
        widen(PyUnicode_DATA(text), kind, length, p, stop - p)
        length += stop - p
        if stop == end:
            return text
        p = json_character(stop, end, &code_point)
        PyUnicode_WRITE(kind, PyUnicode_DATA(text), length, code_point)
        length += 1


# ---- reader ------------------------------------------------------------------

cdef object json_integer(Cursor p, Cursor end, Cursor start):
    """An int; p, end: a valid number without fraction or exponent."""
    cdef long long value = 0
    cdef Cursor digit = p + (p[0] == c"-")
    if end - digit > 18:
        try:
            return int(PyBytes_FromStringAndSize(<const char*>p, end - p))
        except ValueError:
            raise ValueError(f"a number of {end - digit} digits is over Python's limit at byte {p - start}") from None
    while digit != end:
        value = value * 10 + (digit[0] - c"0")
        digit += 1
    return -value if p[0] == c"-" else value


cdef object json_scalar(Cursor* at, Cursor end, Cursor start):
    """What is neither object nor array; moves the cursor past it."""
    cdef JsonFault fault
    cdef Cursor p = at[0]
    cdef Cursor stop
    cdef Cursor digit
    if p[0] == c'"':
        at[0] = json_string(p + 1, end, &fault)
        return json_decode(p + 1, at[0] - 1)
    if p[0] >= c"a":
        at[0] = json_word(p, end, &fault)
        return None if p[0] == c"n" else p[0] == c"t"
    at[0] = stop = json_number(p, end, &fault)
    digit = p + (p[0] == c"-")
    while digit != stop and c"0" <= digit[0] <= c"9":
        digit += 1
    if digit == stop:
        return json_integer(p, stop, start)
    return float(PyBytes_FromStringAndSize(<const char*>p, stop - p))


cdef object json_build(Cursor start, Cursor end):
    """The value of a text that json_check has passed."""
    cdef Cursor p = json_space(start, end)
    cdef list stack = []
    cdef object root = None
    cdef object top = None
    cdef object name = None
    cdef object value
    cdef bint opened
    while True:
        # A value begins at p.
        opened = p[0] == c"{" or p[0] == c"["
        if opened:
            value = {} if p[0] == c"{" else []
            p += 1
        else:
            value = json_scalar(&p, end, start)
        if top is None:
            root = value
        elif type(top) is dict:
            (<dict>top)[name] = value
        else:
            (<list>top).append(value)
        if opened:
            stack.append(top)
            top = value
        # A value ends before p, or a container has just begun there.
        while top is not None:
            p = json_space(p, end)
            if p[0] == c"}" or p[0] == c"]":
                p += 1
                top = stack.pop()
                opened = False
                continue
            if not opened:
                p = json_space(p + 1, end)  # past the comma
            if type(top) is dict:
                name = json_scalar(&p, end, start)
                p = json_space(json_space(p, end) + 1, end)  # past the colon
            break
        else:
            return root


# ---- writer ------------------------------------------------------------------
#
# Bytes are gathered in one growing block. The containers being written stand on
# a list of iterators, so neither depth nor a cycle can overflow the stack.

cdef struct Output:
    unsigned char* data
    Py_ssize_t size
    Py_ssize_t capacity


cdef unsigned char* output_room(Output* output, Py_ssize_t needed) except NULL:
    """Where `needed` bytes may be written; the caller then adds to size."""
    cdef unsigned char* data
    cdef Py_ssize_t capacity
    if output.capacity - output.size < needed:
        capacity = max(output.capacity * 2, output.size + needed)
        data = <unsigned char*>PyMem_RawRealloc(output.data, capacity)
        if data == NULL:
            raise MemoryError
        output.data = data
        output.capacity = capacity
    return output.data + output.size


cdef int output_put(Output* output, const void* data, Py_ssize_t size) except -1:
    memcpy(output_room(output, size), data, size)
    output.size += size
    return 0


cdef int output_escape(Output* output, uint32_t unit) except -1:
    """\\uXXXX, or the two-character form where there is one."""
    cdef unsigned char* out = output_room(output, 6)
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


cdef int output_string(Output* output, unicode text) except -1:
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
    output_put(output, b'"', 1)
    while True:
        stop = string_stop(p, end)
        if lone:  # only a surrogate begins with ED A0 or more
            size = 0
            while p + size != stop and not (p[size] == 0xed and p[size + 1] >= 0xa0):
                size += 1
            stop = p + size
        output_put(output, p, stop - p)
        if stop == end:
            break
        if stop[0] == 0xed:
            output_escape(output, 0xd000 | (stop[1] & 0x3f) << 6 | (stop[2] & 0x3f))
            p = stop + 3
        else:
            output_escape(output, stop[0])
            p = stop + 1
    return output_put(output, b'"', 1)


cdef int output_scalar(Output* output, object value) except -1:
    cdef bytes text
    if value is None:
        return output_put(output, b"null", 4)
    if value is True:
        return output_put(output, b"true", 4)
    if value is False:
        return output_put(output, b"false", 5)
    if isinstance(value, str):
        return output_string(output, value)
    if isinstance(value, int):
        text = int.__repr__(value).encode()
    elif isinstance(value, float):
        if value - value != 0:
            raise ValueError(f"{value!r} has no JSON form")
        text = float.__repr__(value).encode()
    else:
        raise ValueError(f"a {type(value).__name__} has no JSON form")
    return output_put(output, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))


cdef int output_newline(Output* output, Py_ssize_t depth) except -1:
    cdef Py_ssize_t i
    output_put(output, b"\n", 1)
    for i in range(depth):
        output_put(output, b"  ", 2)
    return 0


cdef int output_value(Output* output, object value, int style) except -1:
    """style: 0 compact, 1 a space after comma and colon, 2 indented by two."""
    cdef list stack = []  # (iterator over the rest, is it an object's)
    cdef object rest = None
    cdef bint in_object = False
    cdef bint first = False
    while True:
        # A value is to be written.
        if isinstance(value, (dict, list, tuple)):
            if len(stack) == JSON_DEPTH:
                raise ValueError("nested too deeply, or within itself")
            stack.append((rest, in_object))
            in_object = isinstance(value, dict)
            rest = iter(value.items() if in_object else value)
            output_put(output, b"{" if in_object else b"[", 1)
            first = True
        else:
            output_scalar(output, value)
        # A value has been written, or a container begun.
        while stack:
            try:
                value = next(rest)
            except StopIteration:
                if style == 2 and not first:
                    output_newline(output, len(stack) - 1)
                output_put(output, b"}" if in_object else b"]", 1)
                rest, in_object = stack.pop()
                first = False
                continue
            if not first:
                output_put(output, b", ", 2 if style == 1 else 1)
            first = False
            if style == 2:
                output_newline(output, len(stack))
            if in_object:
                name, value = value
                if not isinstance(name, str):
                    raise ValueError(f"a member's name must be a str, not {type(name).__name__}")
                output_string(output, name)
                output_put(output, b": ", 2 if style else 1)
            break
        else:
            return 0


cdef bytes json_bytes(object value, int style):
    cdef Output output
    output.data = NULL
    output.size = output.capacity = 0
    try:
        output_value(&output, value, style)
        return PyBytes_FromStringAndSize(<const char*>output.data, output.size)
    finally:
        PyMem_RawFree(output.data)


# ---- framing -----------------------------------------------------------------
#
# A pipe that its writer never closes: is the object whole yet? Only brackets and
# strings are followed, each byte once however many pieces it comes in; whether
# the text is good JSON is json_check's business.

cdef struct JsonFrame:
    Py_ssize_t size   # bytes seen
    Py_ssize_t depth  # brackets open
    bint in_string
    bint escaped      # the last byte was a reverse solidus in a string


cdef Py_ssize_t json_frame(JsonFrame* frame, Cursor p, Cursor end) noexcept nogil:
    """The offset past the object's last byte, or -1: more is needed. Bytes before the object count."""
    cdef Cursor start = p
    while p != end:
        if frame.escaped:
            frame.escaped = False
        elif frame.in_string:
            p = string_stop(p, end)
            if p == end:
                break
            frame.escaped = p[0] == c"\\"
            frame.in_string = p[0] != c'"'
        elif p[0] == c'"':
            frame.in_string = frame.depth > 0
        elif p[0] == c"{" or p[0] == c"[":
            frame.depth += 1
        elif p[0] == c"}" or p[0] == c"]":
            frame.depth -= 1
            if frame.depth <= 0:
                return frame.size + (p + 1 - start)
        p += 1
    frame.size += end - start
    return -1
