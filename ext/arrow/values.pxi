# Finished columns as lists of Python values.
#
# Gives: arrow_column_list, arrow_times_list.
# Needs: the columns (arrow/columns.pxi).

cdef int64_t ARROW_DAY_US = 86_400_000_000


cdef object arrow_texts_list(const ArrowTexts* texts):
    """Return the texts as a list of str."""
    cdef size_t i
    return [
        (<const char*>texts.data)[texts.offsets[i] : texts.offsets[i + 1]].decode() for i in range(texts.count)
    ]


# A time in UTC.
cdef struct ArrowClock:
    int year, month, day, hour, minute, second, microsecond


cdef ArrowClock arrow_clock_of(int64_t microseconds) noexcept nogil:
    """Return the time so many microseconds after the beginning of 1970, in the years 1 to 9999.

    The date: https://howardhinnant.github.io/date_algorithms.html, civil_from_days.
    """
    cdef ArrowClock clock
    cdef int64_t since_year_0 = microseconds + 719468 * ARROW_DAY_US  # its 1st of March, where years begin here
    cdef int64_t days = since_year_0 // ARROW_DAY_US
    cdef int64_t rest = since_year_0 - days * ARROW_DAY_US
    cdef int64_t era = days // 146097
    cdef int64_t day = days - era * 146097
    cdef int64_t year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    cdef int64_t month
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    clock.day = <int>(day - (153 * month + 2) // 5 + 1)
    clock.month = <int>(month + 3 if month < 10 else month - 9)
    clock.year = <int>(year + era * 400 + (clock.month <= 2))
    clock.microsecond = <int>(rest % 1000000)
    rest //= 1000000
    clock.second = <int>(rest % 60)
    clock.minute = <int>(rest // 60 % 60)
    clock.hour = <int>(rest // 3600)
    return clock


cdef void arrow_put_digits(char* at, int count, int number) noexcept nogil:
    """Write a number with leading zeros."""
    while count:
        count -= 1
        at[count] = <char>(c'0' + number % 10)
        number //= 10


cdef object arrow_time_text(const ArrowClock* clock):
    """Return a time as ISO 8601: 2026-11-22T09:00:00.123456Z."""
    cdef char[28] text
    bytes_write(text, LIT(b"0000-00-00T00:00:00.000000Z"))
    arrow_put_digits(text, 4, clock.year)
    arrow_put_digits(text + 5, 2, clock.month)
    arrow_put_digits(text + 8, 2, clock.day)
    arrow_put_digits(text + 11, 2, clock.hour)
    arrow_put_digits(text + 14, 2, clock.minute)
    arrow_put_digits(text + 17, 2, clock.second)
    arrow_put_digits(text + 20, 6, clock.microsecond)
    return text[:27].decode("ascii")


cdef tuple arrow_datetime_and_utc = None


cdef tuple arrow_datetime():
    """Return datetime and UTC. The first call imports datetime, which few programs with the core need."""
    global arrow_datetime_and_utc
    if arrow_datetime_and_utc is None:
        from datetime import datetime, timezone
        arrow_datetime_and_utc = datetime, timezone.utc
    return arrow_datetime_and_utc


cdef object arrow_times_list(const ArrowColumn* column, bint as_text):
    """Return the values of a column of times as a list of aware datetimes, or of texts; None for a null."""
    cdef size_t i
    cdef ArrowClock at
    cdef list values = [None] * column.length
    if not as_text:
        datetime, utc = arrow_datetime()
    for i in range(column.length):
        if arrow_is_valid(column, i):
            at = arrow_clock_of((<const int64_t*>column.values)[i])
            if as_text:
                values[i] = arrow_time_text(&at)
            else:
                values[i] = datetime(at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond, utc)
    return values


cdef object arrow_column_list(const ArrowColumn* column):
    """Return the values of a column without times as a list of str, int, bool or list of str; None for a null."""
    cdef size_t i
    cdef list texts = arrow_texts_list(&column.texts)
    cdef const int64_t* ints = <const int64_t*>column.values
    cdef const int32_t* places = <const int32_t*>column.values
    cdef list values = [None] * column.length
    for i in range(column.length):
        if not arrow_is_valid(column, i):
            continue
        if column.kind == ARROW_TEXT:
            values[i] = texts[i]
        elif column.kind == ARROW_NAME:
            values[i] = texts[places[i]]
        elif column.kind == ARROW_NAMES:
            values[i] = texts[places[i] : places[i + 1]]
        elif column.kind == ARROW_INT:
            values[i] = ints[i]
        else:
            values[i] = bool(column.values[i // 8] >> (i % 8) & 1)
    return values
