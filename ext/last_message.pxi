# The last message: what the hooks ask of a transcript.

cdef extern from "text.h" nogil:
    bint may_hold_assistant "tailhook_may_hold_assistant"(Cursor p, Cursor end)


# ---- time --------------------------------------------------------------------

cdef int two_digits(Cursor p) noexcept nogil:
    """0 to 99, or a large negative number, which no sum with digits makes good."""
    if c"0" <= p[0] <= c"9" and c"0" <= p[1] <= c"9":
        return (p[0] - c"0") * 10 + (p[1] - c"0")
    return -100000


cdef bint value_time(Slice* value, double* seconds) noexcept nogil:
    """Unix seconds of an RFC 3339 time such as 2026-01-31T23:59:59.123Z, without a zone UTC; False: it is none."""
    cdef Cursor p = value.start
    cdef Cursor end
    cdef int64_t year, month, day, hour, minute, second, days
    cdef double fraction = 0, place = 0.1
    cdef int offset = 0
    if p == NULL or p[0] != c'"' or value.end - p < 21:
        return False
    p += 1
    end = value.end - 1
    if p[4] != c"-" or p[7] != c"-" or (p[10] | 0x20 != c"t" and p[10] != c" ") or p[13] != c":" or p[16] != c":":
        return False
    year = two_digits(p) * 100 + two_digits(p + 2)
    month = two_digits(p + 5)
    day = two_digits(p + 8)
    hour = two_digits(p + 11)
    minute = two_digits(p + 14)
    second = two_digits(p + 17)
    if not (year >= 0 and 1 <= month <= 12 and 1 <= day <= 31 and 0 <= hour <= 24 and 0 <= minute <= 59):
        return False
    if not 0 <= second <= 60:
        return False
    p += 19
    if p != end and p[0] == c".":
        p += 1
        while p != end and c"0" <= p[0] <= c"9":
            fraction += place * (p[0] - c"0")
            place /= 10
            p += 1
    if end - p == 6 and (p[0] == c"+" or p[0] == c"-") and p[3] == c":":
        offset = two_digits(p + 1) * 60 + two_digits(p + 4)
        if offset < 0:
            return False
        if p[0] == c"-":
            offset = -offset
    elif p != end and not (end - p == 1 and p[0] | 0x20 == c"z"):
        return False
    # Days since 1970-01-01, counted in years that begin in March.
    if month <= 2:
        year -= 1
        month += 12
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 719469
    seconds[0] = ((days * 24 + hour) * 60 + minute - offset) * 60 + second + fraction
    return True


# ---- text in UTF-8 -----------------------------------------------------------
#
# The hooks want bytes: a str in which a single character is beyond U+FFFF takes
# four times the memory of its ASCII.

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

cdef extern from "Python.h":
    int _PyBytes_Resize(PyObject** text, Py_ssize_t size) except -1


cdef bytes json_utf8(Cursor p, Cursor end):
    """What json_decode gives, in UTF-8, a lone surrogate in its three bytes."""
    cdef PyObject* text
    cdef Py_ssize_t size
    cdef bint lone
    cdef object made = PyBytes_FromStringAndSize(NULL, end - p)
    size = json_unescape(p, end, <unsigned char*>PyBytes_AS_STRING(made), &lone)
    if size == end - p:
        return made
    text = <PyObject*>made
    Py_INCREF(made)
    made = None
    _PyBytes_Resize(&text, size)
    made = <object>text
    Py_DECREF(made)
    return made


cdef bytes record_utf8(RecordFields* fields, bint strings=False):
    """What record_text gives, in UTF-8; with `strings`, the strings among the content's blocks are texts, too."""
    cdef Slice* speech = record_speech(fields)
    cdef Slice texts = speech[FIELD_TEXTS]
    cdef Slice text
    cdef list parts = []
    if value_is_string(&speech[FIELD_CONTENT]):
        return json_utf8(speech[FIELD_CONTENT].start + 1, speech[FIELD_CONTENT].end - 1)
    while next_text(&texts, &text, strings):
        parts.append(json_utf8(text.start, text.end))
    return parts[0] if len(parts) == 1 else b"\n".join(parts)


# ---- the last message --------------------------------------------------------

cdef enum:
    # A message's lines may have others between them: 75 KB of them at most in 1,035 such pairs of real transcripts.
    MESSAGE_SPREAD = 262144
    # Lines that are read back at the most: 64 MiB hold a quarter as many where they are as long as in real transcripts.
    MAX_LINES = 250000


cdef object newest_message(Window* window):
    """(outcome, texts); see last_message in the stub."""
    cdef Line line
    cdef RecordFields fields
    cdef double time
    cdef bint seen = False
    cdef object message = None
    cdef list texts = []
    window.stops_at_long = True  # nothing is known of what lies before it but that it is older
    window.lines_left = MAX_LINES
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
