# Finds the newest message of the assistant, for the hooks.
#
# Gives: nothing to other parts. For Python: last_message.
# Needs: the window (transcript/window.pxi), the fields (transcript/fields.pxi), rec_find (transcript/bad_lines.pxi),
# records (transcript/records.pxi), rec_is_same_message (transcript/record_class.pxi), repeated_records
# (transcript/ids.pxi), iso_read_time (text/iso8601.pxi), transcript/assistant.h.
#
# The hooks want texts as bytes: a str with a single character over U+FFFF takes four bytes for each character.

# ---- the last message --------------------------------------------------------

cdef inline bint rec_value_time(RecSlice* value, double* seconds) noexcept nogil:
    """Read the time in a string without escapes. Returns False if it is not a time. seconds: set to the Unix time."""
    return rec_value_is_string(value) and iso_read_time(value.start + 1, value.end - 1, seconds)


cdef enum:
    # Other lines may be between those of a message: at most 75 KB in 1,035 such pairs of real transcripts.
    REC_MAX_MESSAGE_SPREAD_BYTES = 262144
    REC_MIN_ASSISTANT_BYTES = 20  # {"type":"assistant"}


cdef object rec_newest_message(WinWindow* window, bint sidechains, object file):
    """Return (outcome, texts): see last_message in _core.pyi.

    file: if given, records that repeat an earlier line of it are skipped.
    """
    cdef WinLine line
    cdef RecFields fields
    cdef double time
    cdef bint seen = False
    cdef object message = None
    cdef object request = None
    cdef object other
    cdef list texts = []
    cdef object repeated = None
    cdef bint saw_compaction = False
    window.stops_at_long = True  # lines before a long line are older than an unknown message
    while win_previous(window, &line):
        if window.skipped_lines and not texts:
            break
        if line.end - line.start < REC_MIN_ASSISTANT_BYTES:
            continue
        if file is not None and not saw_compaction:
            saw_compaction = win_line_contains(&line, b'"compact_boundary"')
        if not rec_may_hold_assistant(line.start, line.end) or not rec_find(line.start, line.end, &fields):
            continue
        if not rec_is_assistant(&fields) or (rec_is_host_made(&fields) if sidechains else rec_is_foreign(&fields)):
            continue
        seen = True
        if texts:
            other = rec_value_string(&fields.message[FIELD_ID])
            if not rec_is_same_message(other, rec_value_text(&fields.top[FIELD_REQUEST_ID]), message, request):
                break
        if not rec_has_text(&fields, False):
            continue
        if saw_compaction:
            repeated = repeated_records(file) if repeated is None else repeated
            if line.offset in repeated:
                continue
        texts.append((rec_utf8(&fields, False), time if rec_value_time(&fields.top[FIELD_TIMESTAMP], &time) else None))
        message = rec_value_string(&fields.message[FIELD_ID])
        request = rec_value_text(&fields.top[FIELD_REQUEST_ID])
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

def last_message(file, max_bytes=None, max_line=None, max_lines=None, bint sidechains=False, bint once=False):
    cdef WinWindow window
    try:
        win_open(&window, file, 0, None, max_line, False)
        win_limit_lines(&window, max_lines)
        if max_bytes is not None:
            window.lower = max(window.upper - <int64_t>max_bytes, 0)
            window.finished = window.finished or window.lower >= window.upper
        return rec_newest_message(&window, sidechains, file if once else None)
    finally:
        win_close(&window)
