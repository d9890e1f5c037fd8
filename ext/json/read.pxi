# Turns a JSON text into Python objects.
#
# Gives: json_build, json_scalar. For Python: parse_json, get_text.
# Needs: the grammar (json/grammar.pxi), utf8_after_bom (text/utf8.pxi).

cdef object json_integer(Cursor p, Cursor end, Cursor start):
    """Return an int. p, end: a valid number without fraction or exponent. start: of the text, for messages."""
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
    """Return a string, number, bool or None and move the cursor past it."""
    cdef JsonFault fault
    cdef Cursor p = at[0]
    cdef Cursor stop
    cdef Cursor digit
    if p[0] == c'"':
        at[0] = json_skip_string(p + 1, end, &fault)
        return json_decode(p + 1, at[0] - 1)
    if p[0] >= c"a":
        at[0] = json_skip_word(p, end, &fault)
        return None if p[0] == c"n" else p[0] == c"t"
    at[0] = stop = json_skip_number(p, end, &fault)
    digit = p + (p[0] == c"-")
    while digit != stop and c"0" <= digit[0] <= c"9":
        digit += 1
    if digit == stop:
        return json_integer(p, stop, start)
    return float(PyBytes_FromStringAndSize(<const char*>p, stop - p))


cdef object json_build(Cursor start, Cursor end):
    """Return the value of a text that json_check accepts, after a byte order mark if there is one."""
    cdef Cursor p = json_skip_space(utf8_after_bom(start, end), end)
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
            p = json_skip_space(p, end)
            if p[0] == c"}" or p[0] == c"]":
                p += 1
                top = stack.pop()
                opened = False
                continue
            if not opened:
                p = json_skip_space(p + 1, end)  # past the comma
            if type(top) is dict:
                name = json_scalar(&p, end, start)
                p = json_skip_space(json_skip_space(p, end) + 1, end)  # past the colon
            break
        else:
            return root


# ---- for Python ---------------------------------------------------------------

def parse_json(data):
    cdef bytes text = data.encode() if isinstance(data, str) else data
    cdef Cursor start
    json_require(text, may_have_bom=True)
    start = <Cursor>PyBytes_AS_STRING(text)
    return json_build(start, start + PyBytes_GET_SIZE(text))


def get_text(dict members not None, str name not None):
    cdef object value = members.get(name)
    return value if isinstance(value, str) else ""
