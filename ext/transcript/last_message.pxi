# The last message: what the hooks ask of a transcript.


# ---- text in UTF-8 -----------------------------------------------------------
#
# The hooks want bytes: a str in which a single character is beyond U+FFFF takes
# four times the memory of its ASCII.


cdef bytes shortened(PyObject* text, Py_ssize_t size):
    """Return the first bytes of an object that has no other owner. The caller's reference is used up."""
    cdef object made
    _PyBytes_Resize(&text, size)  # after an error, it has released the object
    made = <object>text
    Py_DECREF(made)
    return made


cdef bytes json_utf8(Cursor p, Cursor end):
    """What json_decode gives, in UTF-8, a lone surrogate in its three bytes."""
    cdef PyObject* made = new_bytes(NULL, end - p)
    cdef bint lone
    return shortened(made, json_unescape(p, end, <unsigned char*>bytes_start(made), &lone))


cdef bytes record_utf8(RecordFields* fields, bint strings=False):
    """What record_text gives, in UTF-8; with `strings`, the strings among the content's blocks are texts, too."""
    cdef Slice* speech = record_speech(fields)
    cdef Slice texts = speech[FIELD_TEXTS]
    cdef Slice first, text
    cdef PyObject* made
    cdef unsigned char* out
    cdef Py_ssize_t size
    cdef bint lone
    if value_is_string(&speech[FIELD_CONTENT]):
        return json_utf8(speech[FIELD_CONTENT].start + 1, speech[FIELD_CONTENT].end - 1)
    if not next_text(&texts, &first, strings):
        return b""
    if not next_text(&texts, &text, strings):
        return json_utf8(first.start, first.end)
    # One object for all: there may be a million. Each text is shorter than its literal by two quotation marks, which
    # leaves room for the newlines.
    made = new_bytes(NULL, texts.end - first.start)
    out = <unsigned char*>bytes_start(made)
    size = json_unescape(first.start, first.end, out, &lone)
    while True:
        out[size] = c"\n"
        size += 1
        size += json_unescape(text.start, text.end, out + size, &lone)
        if not next_text(&texts, &text, strings):
            break
    return shortened(made, size)


# ---- the last message --------------------------------------------------------

cdef inline bint value_time(Slice* value, double* seconds) noexcept nogil:
    """The Unix time that a string without escapes spells; False: it is none."""
    return value_is_string(value) and iso_seconds(value.start + 1, value.end - 1, seconds)


cdef enum:
    # A message's lines may have others between them: 75 KB of them at most in 1,035 such pairs of real transcripts.
    MESSAGE_SPREAD = 262144


cdef object newest_message(Window* window):
    """(outcome, texts); see last_message in the stub."""
    cdef Line line
    cdef RecordFields fields
    cdef double time
    cdef bint seen = False
    cdef object message = None
    cdef list texts = []
    window.stops_at_long = True  # nothing is known of what lies before it but that it is older
    while window_previous(window, &line):
        if window.passed and not texts:
            break
        if not may_hold_assistant(line.start, line.end) or not record_find(line.start, line.end, &fields):
            continue
        if not record_is_assistant(&fields) or record_is_foreign(&fields):
            continue
        seen = True
        if texts and value_string(&fields.message[FIELD_ID]) != message:
            break
        if not record_has_text(&fields):
            continue
        texts.append((record_utf8(&fields), time if value_time(&fields.top[FIELD_TIMESTAMP], &time) else None))
        message = value_string(&fields.message[FIELD_ID])
        if not message:
            break
        window.lower = max(window.lower, line.offset - MESSAGE_SPREAD)
    if texts:
        texts.reverse()
        return ("text", texts)
    if window.passed or window.changed or window.lower > 0:
        return ("unknown", texts)
    return ("no_text" if seen else "no_assistant", texts)


# ---- for Python ---------------------------------------------------------------

def last_message(file, max_bytes=None, max_line=None, max_lines=None):
    cdef Window window
    try:
        window_open(&window, file, 0, None, max_line, False)
        window_limit_lines(&window, max_lines)
        if max_bytes is not None:
            window.lower = max(window.upper - <int64_t>max_bytes, 0)
            window.finished = window.finished or window.lower >= window.upper
        return newest_message(&window)
    finally:
        window_close(&window)
