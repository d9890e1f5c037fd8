# Reads and writes dates and times of ISO 8601-1:2019.
#
# Gives: iso_read_time, iso_read_microseconds. For Python: unix_time, iso_time.
# Needs: Cursor (text/utf8.h).
#
# A date is YYYY-MM-DD (5.2.2), YYYY-DDD (5.2.3) or YYYY-Www-D (5.2.4); a time is hh, hh:mm or hh:mm:ss (5.3.1), and its
# last part may have a fraction. Both may be in the basic format, without separators. A zone is Z, ±hh, ±hh:mm or ±hhmm
# (5.3.4); without one a time counts as UTC. Date and time are separated by T or, as RFC 3339 (5.6) allows, by a space;
# T and Z may be lower case. A date alone is its midnight. 24:00 is the end of its day, and second 60 a leap second.

cdef int iso_read_digits(Cursor* p, Cursor end, int count) noexcept nogil:
    """Read `count` digits and move the cursor past them. Returns the number, or -1 if they are not all digits."""
    cdef int number = 0
    cdef int i
    if end - p[0] < count:
        return -1
    for i in range(count):
        if not c"0" <= p[0][i] <= c"9":
            return -1
        number = 10 * number + p[0][i] - c"0"
    p[0] += count
    return number


cdef inline bint iso_skip_byte(Cursor* p, Cursor end, unsigned char byte) noexcept nogil:
    """Move the cursor past the byte if it is there. Returns whether it was."""
    if p[0] == end or p[0][0] != byte:
        return False
    p[0] += 1
    return True


cdef inline bint iso_is_leap_year(int year) noexcept nogil:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


cdef inline int64_t iso_days_to(int year, int month, int day) noexcept nogil:
    """Return the days from 1970-01-01 to a date of the Gregorian calendar."""
    # Years that begin in March end with their leap day, so the days before a month follow one formula.
    # C rounds the quotient of a negative number up, so the year 0 is counted as 400: both years begin alike.
    if month <= 2:
        year -= 1
        month += 12
    year += 400
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 719469 - 146097


cdef int iso_days_in_month(int year, int month) noexcept nogil:
    if month == 2:
        return 29 if iso_is_leap_year(year) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


cdef bint iso_read_date(Cursor* p, Cursor end, int64_t* days) noexcept nogil:
    """Read a date. Returns False if there is none. days: set to the days from 1970-01-01."""
    cdef int year = iso_read_digits(p, end, 4)
    cdef bint extended = iso_skip_byte(p, end, c"-")
    cdef Cursor rest
    cdef int64_t monday
    cdef int month, day, week
    if year < 0:
        return False
    if iso_skip_byte(p, end, c"W"):
        week = iso_read_digits(p, end, 2)
        if extended and not iso_skip_byte(p, end, c"-"):
            return False
        day = iso_read_digits(p, end, 1)
        monday = iso_days_to(year, 1, 4)
        monday -= (monday + 719468 + 2) % 7  # the week of January 4 is the first; 0000-03-01 was a Wednesday
        days[0] = monday + 7 * (week - 1) + day - 1
        return 1 <= week <= 53 and 1 <= day <= 7 and days[0] - day + 4 < iso_days_to(year + 1, 1, 1)
    rest = p[0]
    day = iso_read_digits(&rest, end, 3)
    if day >= 0 and (rest == end or not c"0" <= rest[0] <= c"9"):
        p[0] = rest
        days[0] = iso_days_to(year, 1, 1) + day - 1
        return 1 <= day <= 365 + iso_is_leap_year(year)
    month = iso_read_digits(p, end, 2)
    if extended and not iso_skip_byte(p, end, c"-"):
        return False
    day = iso_read_digits(p, end, 2)
    if not 1 <= month <= 12 or not 1 <= day <= iso_days_in_month(year, month):
        return False
    days[0] = iso_days_to(year, month, day)
    return True


cdef bint iso_read_clock(Cursor* p, Cursor end, int64_t* microseconds) noexcept nogil:
    """Read a time of day. Returns False if there is none. microseconds: set to those since midnight, rounded down."""
    cdef int hour = iso_read_digits(p, end, 2)
    cdef int minute = 0
    cdef int second = 0
    cdef int64_t unit = 3_600_000_000  # of the part that may have a fraction
    cdef int64_t fraction = 0
    cdef int64_t divisor = 1
    cdef bint extended = iso_skip_byte(p, end, c":")
    cdef bint is_whole = True
    if extended or (p[0] != end and c"0" <= p[0][0] <= c"9"):
        minute, unit = iso_read_digits(p, end, 2), 60_000_000
        if iso_skip_byte(p, end, c":") if extended else p[0] != end and c"0" <= p[0][0] <= c"9":
            second, unit = iso_read_digits(p, end, 2), 1_000_000
    if not (0 <= hour <= 24 and 0 <= minute <= 59 and 0 <= second <= 60):
        return False
    if p[0] != end and (p[0][0] == c"." or p[0][0] == c","):
        p[0] += 1
        if p[0] == end or not c"0" <= p[0][0] <= c"9":
            return False
        while p[0] != end and c"0" <= p[0][0] <= c"9":
            if divisor < 1_000_000_000:  # of an hour, further digits are a few microseconds
                fraction = 10 * fraction + (p[0][0] - c"0")
                divisor *= 10
            is_whole = is_whole and p[0][0] == c"0"
            p[0] += 1
    microseconds[0] = 1_000_000 * <int64_t>(hour * 3600 + minute * 60 + second) + unit * fraction // divisor
    return hour < 24 or (is_whole and minute == 0 and second == 0)


cdef bint iso_read_zone(Cursor* p, Cursor end, int* minutes) noexcept nogil:
    """Read a zone; it may be missing. Returns False if it is invalid. minutes: set to the minutes east of UTC."""
    cdef bint west
    cdef int hour
    cdef int minute = 0
    minutes[0] = 0
    if p[0] == end:
        return True
    if p[0][0] | 0x20 == c"z":
        p[0] += 1
        return True
    west = p[0][0] == c"-"
    if not west and p[0][0] != c"+":
        return False
    p[0] += 1
    hour = iso_read_digits(p, end, 2)
    if iso_skip_byte(p, end, c":") or p[0] != end:
        minute = iso_read_digits(p, end, 2)
    if not (0 <= hour <= 23 and 0 <= minute <= 59):
        return False
    minutes[0] = -(hour * 60 + minute) if west else hour * 60 + minute
    return True


cdef bint iso_read_microseconds(Cursor p, Cursor end, int64_t* microseconds) noexcept nogil:
    """Read a date and time, or a date. Returns False if it is neither. microseconds: set to those since 1970."""
    cdef int64_t days
    cdef int64_t clock = 0
    cdef int zone = 0
    if not iso_read_date(&p, end, &days):
        return False
    if p != end:
        if p[0] | 0x20 != c"t" and p[0] != c" ":
            return False
        p += 1
        if not iso_read_clock(&p, end, &clock) or not iso_read_zone(&p, end, &zone) or p != end:
            return False
    microseconds[0] = 1_000_000 * (days * 86400 - zone * 60) + clock
    return True


cdef bint iso_read_time(Cursor p, Cursor end, double* seconds) noexcept nogil:
    """Read a date and time, or a date. Returns False if it is neither. seconds: set to the Unix time."""
    cdef int64_t microseconds
    if not iso_read_microseconds(p, end, &microseconds):
        return False
    seconds[0] = <double>(microseconds // 1_000_000) + <double>(microseconds % 1_000_000) / 1e6
    return True


cdef void iso_write_digits(unsigned char* out, int64_t number, int count) noexcept nogil:
    """Write a number with `count` digits."""
    while count:
        count -= 1
        out[count] = <unsigned char>(c"0" + number % 10)
        number //= 10


cdef void iso_write_time(unsigned char* out, int64_t milliseconds) noexcept nogil:
    """Write YYYY-MM-DDThh:mm:ss.sss for the milliseconds from 0000-01-01."""
    cdef int64_t second = milliseconds // 1000
    # Days from March 1 of the year -400, so that a leap day is a year's last one; 146,097 days are 400 years.
    cdef int64_t day = second // 86400 + 146097 - 60
    cdef int64_t era = day // 146097
    cdef int64_t year, month
    day %= 146097
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    year += 400 * (era - 1) + (month >= 10)
    bytes_write(out, LIT(b"YYYY-MM-DDThh:mm:ss.sss"))
    iso_write_digits(out, year, 4)
    iso_write_digits(out + 5, month + 3 if month < 10 else month - 9, 2)
    iso_write_digits(out + 8, day + 1, 2)
    iso_write_digits(out + 11, second // 3600 % 24, 2)
    iso_write_digits(out + 14, second // 60 % 60, 2)
    iso_write_digits(out + 17, second % 60, 2)
    iso_write_digits(out + 20, milliseconds % 1000, 3)


# ---- for Python ---------------------------------------------------------------

def unix_time(unicode stamp not None):
    cdef Py_ssize_t size
    cdef Cursor text
    cdef double seconds
    if not stamp.isascii():
        return None
    text = <Cursor>PyUnicode_AsUTF8AndSize(stamp, &size)
    return seconds if iso_read_time(text, text + size, &seconds) else None


def iso_time(double seconds, bint milliseconds=False):
    cdef unsigned char stamp[23]
    cdef int64_t since_year_0
    cdef double thousandths
    if not -62167219200 <= seconds < 253402300800:  # 0000-01-01 and 10000-01-01
        raise ValueError("a time outside of the years 0 to 9999")
    thousandths = seconds * 1000 + 0.0005  # today's times are exact to 0.0002 ms: a whole millisecond stays what it was
    since_year_0 = <int64_t>thousandths
    since_year_0 -= since_year_0 > thousandths
    iso_write_time(stamp, since_year_0 + 62167219200000)
    return PyBytes_FromStringAndSize(<const char*>stamp, 23 if milliseconds else 19).decode("ascii") + "Z"
