# Finds the newest message of the assistant, as the hooks need it.
#
# Gives: rec_utf8. For Python: last_message.
# Needs: the window (transcript/window.pxi), rec_find (transcript/bad_lines.pxi), records (transcript/records.pxi),
# iso_read_time (text/iso8601.pxi), transcript/assistant.h.
#
# The hooks want texts as bytes: a str with a single character over U+FFFF takes four bytes for each character.

cdef bytes bytes_cut(PyObject* text, Py_ssize_t size):
    """Return the first `size` bytes of an object that has no other owner. Takes the caller's reference."""
    cdef object made
    _PyBytes_Resize(&text, size)  # after an error, it has released the object
    made = <object>text
    Py_DECREF(made)
    return made


cdef bytes json_decode_utf8(Cursor p, Cursor end):
    """Return what json_decode returns, in UTF-8. A lone surrogate takes three bytes."""
    cdef PyObject* made = bytes_new(NULL, end - p)
    cdef bint lone
    return bytes_cut(made, json_unescape(p, end, <unsigned char*>bytes_data(made), &lone))


cdef bytes rec_utf8(RecFields* fields, bint strings=False):
    """Return what rec_text returns, in UTF-8. strings: strings among the content's blocks are texts, too."""
    cdef RecSlice* speech = rec_speech(fields)
    cdef RecSlice texts = speech[FIELD_TEXTS]
    cdef RecSlice first, text
    cdef PyObject* made
    cdef unsigned char* out
    cdef Py_ssize_t size
    cdef bint lone
    if rec_value_is_string(&speech[FIELD_CONTENT]):
        return json_decode_utf8(speech[FIELD_CONTENT].start + 1, speech[FIELD_CONTENT].end - 1)
    if not rec_next_text(&texts, &first, strings):
        return b""
    if not rec_next_text(&texts, &text, strings):
        return json_decode_utf8(first.start, first.end)
    # One object for all texts: there may be a million. Each text is shorter than its literal by two quotation marks,
    # which leaves room for the newlines.
    made = bytes_new(NULL, texts.end - first.start)
    out = <unsigned char*>bytes_data(made)
    size = json_unescape(first.start, first.end, out, &lone)
    while True:
        out[size] = c"\n"
        size += 1
        size += json_unescape(text.start, text.end, out + size, &lone)
        if not rec_next_text(&texts, &text, strings):
            break
    return bytes_cut(made, size)


# ---- the last message --------------------------------------------------------

cdef inline bint rec_value_time(RecSlice* value, double* seconds) noexcept nogil:
    """Read the time in a string without escapes. Returns False if it is not a time. seconds: set to the Unix time."""
    return rec_value_is_string(value) and iso_read_time(value.start + 1, value.end - 1, seconds)


cdef enum:
    # Other lines may be between those of a message: at most 75 KB in 1,035 such pairs of real transcripts.
    REC_MAX_MESSAGE_SPREAD_BYTES = 262144


cdef object rec_newest_message(WinWindow* window):
    """Return (outcome, texts), as last_message in _core.pyi says."""
    cdef WinLine line
    cdef RecFields fields
    cdef double time
    cdef bint seen = False
    cdef object message = None
    cdef list texts = []
    window.stops_at_long = True  # what is before a long line is older than an unknown message
    while win_previous(window, &line):
        if window.skipped_lines and not texts:
            break
        if not rec_may_hold_assistant(line.start, line.end) or not rec_find(line.start, line.end, &fields):
            continue
        if not rec_is_assistant(&fields) or rec_is_foreign(&fields):
            continue
        seen = True
        if texts and rec_value_string(&fields.message[FIELD_ID]) != message:
            break
        if not rec_has_text(&fields):
            continue
        texts.append((rec_utf8(&fields), time if rec_value_time(&fields.top[FIELD_TIMESTAMP], &time) else None))
        message = rec_value_string(&fields.message[FIELD_ID])
        if not message:
            break
        window.lower = max(window.lower, line.offset - REC_MAX_MESSAGE_SPREAD_BYTES)
    if texts:
        texts.reverse()
        return ("text", texts)
    if window.skipped_lines or window.changed or window.lower > 0:
        return ("unknown", texts)
    return ("no_text" if seen else "no_assistant", texts)


# ---- for Python ---------------------------------------------------------------

def last_message(file, max_bytes=None, max_line=None, max_lines=None):
    cdef WinWindow window
    try:
        win_open(&window, file, 0, None, max_line, False)
        win_limit_lines(&window, max_lines)
        if max_bytes is not None:
            window.lower = max(window.upper - <int64_t>max_bytes, 0)
            window.finished = window.finished or window.lower >= window.upper
        return rec_newest_message(&window)
    finally:
        win_close(&window)
