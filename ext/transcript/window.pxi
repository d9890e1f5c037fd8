# Splits a file into lines, newest first or oldest first, through a window on it.
#
# Gives: WinWindow, WinLine; win_open, win_limit_lines, win_close, win_step, win_previous; win_line_contains.
# Needs: WinSource (transcript/source.pxi), os/file.h, utf8_after_bom (text/utf8.pxi).
#
# A block of the file is read and extended until it holds a whole line; lines are returned as pointers into it. The
# file is not mapped: a writer may truncate it at any time, and reading a page behind the end of a mapping kills the
# process. The window on a JSON file (json/columns.pxi) is another one: it goes forward only, over values, not lines.
#
# data[valid_start:valid_end] are bytes of the file. [start, end) of them have not been returned yet. Up to
# WIN_WITNESS_BYTES beside them are kept: every further read covers some known bytes again and compares them. If they
# differ, the file was overwritten. Then the iteration ends, so that old and new bytes are not joined.

cdef enum:
    WIN_FIRST_BYTES = 65536    # bytes of the first read
    WIN_STEP_BYTES = 524288    # bytes of a later one at most
    WIN_READS_PER_STEP = 8        # reads before they become twice as long: new memory costs more than a read
    WIN_WITNESS_BYTES = 64

cdef struct WinLine:
    Cursor start
    Cursor end      # past the last byte; the newline and a carriage return before it are left out
    int64_t offset  # of the line's first byte in the file

cdef inline bint win_line_contains(WinLine* line, bytes needle) noexcept:
    return memmem(line.start, line.end - line.start, PyBytes_AS_STRING(needle), PyBytes_GET_SIZE(needle)) != NULL


cdef struct WinWindow:
    WinSource source
    unsigned char* data
    Py_ssize_t capacity
    Py_ssize_t valid_start, valid_end
    Py_ssize_t start, end
    Py_ssize_t step        # bytes of the next read
    int reads              # of that size so far
    Py_ssize_t searched    # no newline between here and the end that the window grows from
    int64_t origin         # file offset of data[0], were it a byte of the file
    int64_t lower, upper   # lines that begin at lower or later and before upper are wanted
    int64_t max_line_bytes  # longer lines are skipped
    int64_t skipped_lines  # how many were skipped
    bint forward
    bint is_skipping       # the line at hand is too long: its bytes are not kept
    bint finished
    bint changed           # finished because the file was overwritten
    int64_t known_short    # the offset past the line that win_measure_line found short enough
    bint stops_at_long     # a line that is too long ends the iteration: its beginning is not searched
    int64_t lines_left     # number of lines left to read backwards; then the iteration ends as at a long line


cdef int win_open(
    WinWindow* window, object file, int64_t lower, object upper, object max_line_bytes, bint forward
) except -1:
    """Open a window on a file. The caller must close it, also after an error."""
    cdef int64_t size
    window.source.is_file = False
    window.data = NULL
    win_source_open(&window.source, file)
    size = win_source_size(&window.source)
    window.capacity = window.valid_start = window.valid_end = window.start = window.end = window.searched = 0
    window.lower = lower
    window.upper = size if upper is None else min(<int64_t>upper, size)
    window.max_line_bytes = INT64_MAX if max_line_bytes is None else max_line_bytes
    if lower < 0 or window.upper < 0 or window.max_line_bytes < 0:
        raise ValueError("offsets and lengths must not be negative")
    window.step = WIN_FIRST_BYTES
    window.reads = 0
    window.skipped_lines = 0
    window.forward = forward
    window.is_skipping = False
    window.changed = False
    window.stops_at_long = False
    window.lines_left = INT64_MAX
    window.known_short = -1
    window.finished = window.lower >= window.upper
    if window.finished:
        return 0
    if forward:
        window.origin = max(lower - 1, 0)
        window.is_skipping = lower > 0  # skip the end of the line before: it does not count
        window.skipped_lines = -1 if lower > 0 else 0
    else:
        window.origin = window.upper if window.upper == size else win_find_line_end(window)
    return 0


cdef int win_limit_lines(WinWindow* window, object count) except -1:
    """Set how many lines are read backwards at most. None: no limit."""
    window.lines_left = INT64_MAX if count is None else count
    if window.lines_left < 0:
        raise ValueError("the number of lines must not be negative")
    return 0


cdef int64_t win_find_line_end(WinWindow* window) except -1:
    """Return the file offset after the line with a byte right before `upper`."""
    cdef unsigned char piece[4096]
    cdef int64_t offset = window.upper - 1
    cdef Py_ssize_t count
    cdef void* newline
    while True:
        count = win_source_read(&window.source, piece, sizeof(piece), offset)
        newline = memchr(piece, c"\n", count)
        if newline != NULL:
            return offset + (<unsigned char*>newline - piece) + 1
        offset += count
        if count < <Py_ssize_t>sizeof(piece):
            return offset


cdef void win_close(WinWindow* window) noexcept:
    win_source_close(&window.source)
    PyMem_RawFree(window.data)
    window.data = NULL
    window.finished = True


cdef int win_make_room(WinWindow* window, Py_ssize_t room) except -1:
    """Drop bytes that are no longer needed, and make `room` bytes free on the growing side of the window."""
    cdef unsigned char* data = window.data
    cdef Py_ssize_t kept_start = window.valid_start
    cdef Py_ssize_t kept_end = window.valid_end
    cdef Py_ssize_t kept, shift, capacity
    if window.forward:
        kept_start = max(kept_start, min(window.start, kept_end - WIN_WITNESS_BYTES))
        if window.capacity - kept_end >= room:
            return 0
    else:
        kept_end = min(kept_end, max(window.end, kept_start + WIN_WITNESS_BYTES))
        window.valid_end = kept_end
        if kept_start >= room:
            return 0
    kept = kept_end - kept_start
    capacity = window.capacity
    if capacity < kept + room:
        capacity = max(kept + room, 2 * (capacity if kept > capacity // 2 else <Py_ssize_t>WIN_FIRST_BYTES))
        if capacity > 2 * WIN_STEP_BYTES:
            # A long line: make room for the longest one, so that it moves only once. Pages never written cost nothing.
            capacity = max(capacity, <Py_ssize_t>min(window.max_line_bytes, <int64_t>8 * capacity) + 2 * WIN_STEP_BYTES)
        data = <unsigned char*>PyMem_RawMalloc(capacity)
        if data == NULL:
            raise MemoryError
    shift = (0 if window.forward else capacity - kept) - kept_start
    if kept:
        memmove(data + kept_start + shift, window.data + kept_start, kept)
    if data != window.data:
        PyMem_RawFree(window.data)
    window.data = data
    window.capacity = capacity
    window.valid_start = kept_start + shift
    window.valid_end = kept_end + shift
    window.start += shift
    window.end += shift
    window.searched += shift
    window.origin -= shift
    return 0


cdef bint win_extend(WinWindow* window) except -1:
    """Read on in the window's direction. Returns False if there is no more, or the file was overwritten."""
    cdef unsigned char witness[WIN_WITNESS_BYTES]
    cdef Py_ssize_t wanted = window.step
    cdef Py_ssize_t count, known, position
    window.reads += 1
    if window.reads == WIN_READS_PER_STEP and window.step < WIN_STEP_BYTES:
        window.step *= 2
        window.reads = 0
    if not window.forward:
        wanted = min(wanted, window.origin + window.valid_start - max(window.lower - 1, 0))
    win_make_room(window, wanted)
    known = min(<Py_ssize_t>WIN_WITNESS_BYTES, window.valid_end - window.valid_start)
    if window.forward:
        position = window.valid_end - known
        memcpy(witness, window.data + position, known)
    else:
        position = window.valid_start - wanted
        memcpy(witness, window.data + window.valid_start, known)
    count = win_source_read(&window.source, window.data + position, wanted + known, window.origin + position)
    if count < known or memcmp(witness, window.data + position + (0 if window.forward else wanted), known) != 0:
        window.finished = window.changed = True
        return False
    if window.forward:
        window.valid_end = window.end = position + count
        return count != known
    if count != wanted + known:
        window.finished = window.changed = True
        return False
    window.valid_start = window.start = position
    if known == 0 and window.data[window.valid_end - 1] == c"\n":
        window.end -= 1
        window.searched = window.end
    return True


cdef inline bint win_hand_out(WinWindow* window, Py_ssize_t start, Py_ssize_t end, WinLine* line) noexcept:
    """Set `line` to data[start:end], without line end and byte order mark. Returns False if it is too long."""
    if window.is_skipping or end - start > window.max_line_bytes:
        window.is_skipping = False
        window.skipped_lines += 1
        return False
    line.offset = window.origin + start
    line.start = window.data + start
    line.end = window.data + end
    if end != start and (line.end - 1)[0] == c"\r":
        line.end -= 1
    if line.offset == 0:
        line.start = utf8_after_bom(line.start, line.end)
    return True


cdef bint win_measure_line(WinWindow* window) except -1:
    """Measure the line before `end`, which begins before `start`. Return whether it is too long.

    A long line is measured once before it is collected: new memory costs more than reading twice.
    """
    cdef unsigned char piece[65536]
    cdef Py_ssize_t held = window.end - window.start
    cdef int64_t line_end = window.origin + window.end
    cdef int64_t offset = window.origin + window.start
    cdef int64_t stop
    cdef Py_ssize_t size
    if held > window.max_line_bytes:
        return True
    if held < WIN_STEP_BYTES or window.max_line_bytes == INT64_MAX or window.known_short == line_end:
        return False
    stop = max(window.lower, line_end - window.max_line_bytes - 1)
    while offset > stop:
        size = min(<int64_t>sizeof(piece), offset - stop)
        offset -= size
        if win_source_read(&window.source, piece, size, offset) != size or os_last_newline(piece, size) != NULL:
            break
    else:
        if stop > window.lower:
            return True
    window.known_short = line_end
    return False


cdef bint win_previous(WinWindow* window, WinLine* line) except -1:
    """Set `line` to the line before the last one, valid until the next call. Returns False if there is none."""
    cdef const unsigned char* newline
    cdef Py_ssize_t start, end
    while not window.finished:
        newline = NULL
        if window.searched > window.start:
            newline = os_last_newline(window.data + window.start, window.searched - window.start)
        if newline != NULL:
            start = newline - window.data + 1
            end = window.end
            window.end = window.searched = start - 1
            window.lines_left -= 1
            if window.lines_left < 0:
                window.skipped_lines += 1
                window.finished = True
                break
            if window.origin + window.end < window.lower:
                window.finished = True
            if win_hand_out(window, start, end, line):
                return True
            continue
        window.searched = window.start
        if win_measure_line(window):
            window.is_skipping = True
            window.end = window.start
            if window.stops_at_long:
                window.skipped_lines += 1
                window.finished = True
                break
        if window.valid_start == window.valid_end or window.origin + window.start > max(window.lower - 1, 0):
            win_extend(window)
        else:
            window.finished = True
            if window.lower == 0 and win_hand_out(window, window.start, window.end, line):
                return True
    return False


cdef bint win_next(WinWindow* window, WinLine* line) except -1:
    """Set `line` to the line after the last one, valid until the next call. Returns False if there is none."""
    cdef const unsigned char* newline
    cdef Py_ssize_t start, end
    while not window.finished:
        if window.origin + window.start >= window.upper:
            window.finished = True
            break
        newline = NULL
        if window.searched < window.end:
            newline = <const unsigned char*>memchr(window.data + window.searched, c"\n", window.end - window.searched)
        if newline != NULL:
            start = window.start
            end = newline - window.data
            window.start = window.searched = end + 1
            if win_hand_out(window, start, end, line):
                return True
            continue
        window.searched = window.end
        if window.is_skipping or window.end - window.start > window.max_line_bytes:
            window.is_skipping = True
            window.start = window.end
        if not win_extend(window):
            if window.finished:
                break
            window.finished = True
            if window.start != window.end or window.is_skipping:
                if win_hand_out(window, window.start, window.end, line):
                    return True
    return False


cdef inline bint win_step(WinWindow* window, WinLine* line) except -1:
    """Set `line` to the next line in the window's direction. Returns False if there is none."""
    return win_next(window, line) if window.forward else win_previous(window, line)
