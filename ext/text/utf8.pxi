# UTF-8, one character at a time.
#
# Gives: utf8_char_at, utf8_char_before, utf8_put, utf8_after_bom, utf8_bad_length.
# Needs: text/utf8.h.

cdef enum:
    UTF8_INVALID = 0xFFFD  # stands for a byte that is not part of a character


cdef uint32_t utf8_long_char_at(const uint8_t* text, size_t length, size_t at, size_t* width) noexcept nogil:
    """Return the character of several bytes that begins at `at`, like utf8_char_at."""
    width[0] = utf8_sequence(text + at, text + length, True)
    if width[0]:
        return utf8_decode(text + at, width[0])
    width[0] = 1
    return UTF8_INVALID


cdef inline uint32_t utf8_char_at(const uint8_t* text, size_t length, size_t at, size_t* width) noexcept nogil:
    """Return the character that begins at `at` < `length`, or UTF8_INVALID. A surrogate counts: a str may hold one.

    width: set to the character's length in bytes.
    """
    if text[at] < 0x80:
        width[0] = 1
        return text[at]
    return utf8_long_char_at(text, length, at, width)


cdef inline uint32_t utf8_char_before(const uint8_t* text, size_t at, size_t* width) noexcept nogil:
    """Return the character that ends at `at` > 0, like utf8_char_at."""
    cdef size_t back = 1
    cdef uint32_t character
    while back < 4 and back < at and text[at - back] & 0xC0 == 0x80:
        back += 1
    character = utf8_char_at(text, at, at - back, width)
    if width[0] != back:
        width[0] = 1
        return UTF8_INVALID
    return character


cdef inline unsigned char* utf8_put(unsigned char* out, uint32_t code_point) noexcept nogil:
    """Write a code point, also a surrogate, in 1 to 4 bytes, and return the position after it."""
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


cdef inline Cursor utf8_after_bom(Cursor p, Cursor end) noexcept nogil:
    """Return p, or the position after the byte order mark there."""
    return p + 3 if end - p >= 3 and bytes_begin(p, LIT(b"\xef\xbb\xbf")) else p


cdef inline size_t utf8_bad_length(Cursor p, Cursor end) noexcept nogil:
    """Return the number of invalid bytes at p that Python's decoder replaces by one U+FFFD.

    They are the longest beginning of a valid sequence, or one byte (Unicode 15, section 3.9, "substitution of maximal
    subparts").
    """
    cdef unsigned int lead = p[0]
    cdef unsigned int lowest = 0x80
    cdef unsigned int highest = 0xBF
    cdef size_t length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    cdef size_t i = 1
    if lead < 0xC2 or lead > 0xF4:
        return 1
    if lead == 0xE0:
        lowest = 0xA0
    elif lead == 0xED:
        highest = 0x9F
    elif lead == 0xF0:
        lowest = 0x90
    elif lead == 0xF4:
        highest = 0x8F
    while i < length and p + i != end and lowest <= p[i] <= highest:
        lowest, highest = 0x80, 0xBF
        i += 1
    return i
