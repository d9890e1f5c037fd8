# Finds keys and tokens that begin with a known prefix.
#
# Gives: nothing to other parts. For Python: find_keys.
# Needs: Utf8View and utf8_open (text/view.pxi), tables.h.
#
# A key is recognised by its beginning, and by the number and kinds of the following characters
# (machines/secret_rules.py). It begins where a word begins, or behind a sign that may precede a value.

cdef enum:
    KEY_MAX_REQUIRED_CHARS = 16   # a key that was cut off needs half of its characters, at most this many
    KEY_MIN_REQUIRED_CHARS = 8
    KEY_MAX_BYTES = 8192   # a longer key is masked in pieces
    KEY_MAX_PLAIN_CHARS = 256  # so many letters of one case without a digit are not a key


cdef inline bint key_is_letter_or_digit(uint8_t byte) noexcept nogil:
    return c"0" <= byte <= c"9" or c"a" <= byte | 0x20 <= c"z"


cdef inline bint key_is_hex(uint8_t byte) noexcept nogil:
    return c"0" <= byte <= c"9" or c"a" <= byte | 0x20 <= c"f"


cdef inline bint key_may_begin(const uint8_t* text, size_t at) noexcept nogil:
    """Return whether a key may begin at an offset: not inside a word, unless an escape stands before (%20, \\n)."""
    if at == 0:
        return True
    if not key_is_letter_or_digit(text[at - 1]):
        return text[at - 1] != c"_" and text[at - 1] != c"-"
    if at >= 3 and text[at - 3] == c"%" and key_is_hex(text[at - 2]) and key_is_hex(text[at - 1]):
        return True
    return at >= 2 and text[at - 2] == c"\\" and memchr(b"nrt", text[at - 1], 3) != NULL


cdef size_t key_length(const uint8_t* text, size_t length, uint32_t signs, size_t least) noexcept nogil:
    """Return the length of the key behind its prefix, or 0 if it is not a key."""
    cdef bint has_digit = False
    cdef bint has_upper = False
    cdef bint has_lower = False
    cdef const char* sign
    cdef size_t size = 0
    while size < min(length, <size_t>KEY_MAX_BYTES):
        if key_is_letter_or_digit(text[size]):
            has_digit |= text[size] <= c"9"
            has_upper |= c"A" <= text[size] <= c"Z"
            has_lower |= text[size] >= c"a"
        else:
            sign = <const char*> memchr(key_sign_letters, text[size], strlen(key_sign_letters))
            if sign == NULL or not signs >> (sign - key_sign_letters) & 1:
                break
        size += 1
        if size > KEY_MAX_PLAIN_CHARS and not (has_digit or (has_upper and has_lower)):
            return 0
    if size < max(<size_t>KEY_MIN_REQUIRED_CHARS, min(least // 2, <size_t>KEY_MAX_REQUIRED_CHARS)):
        return 0
    # Words that look like a key of fixed length are longer or shorter.
    return size if has_digit or (has_upper and has_lower) or (size == least and signs == 0) else 0


cdef int key_at(const uint8_t* text, size_t length, size_t* size) noexcept nogil:
    """Return whether the text begins with a key. size: set to the key's length, with its beginning."""
    cdef int low = 0
    cdef int high = KEY_COUNT
    cdef int middle
    cdef size_t known, rest
    while low < high:  # find the first beginning with that first letter
        middle = (low + high) // 2
        if <uint8_t> key_beginnings[middle][0] < text[0]:
            low = middle + 1
        else:
            high = middle
    while low < KEY_COUNT and <uint8_t> key_beginnings[low][0] == text[0]:
        known = strlen(key_beginnings[low])
        if known < length and memcmp(text, key_beginnings[low], known) == 0:
            rest = key_length(text + known, length - known, key_signs[low], key_least[low])
            if rest:
                size[0] = known + rest
                return True
        low += 1
    return False


def find_keys(unicode text not None):
    cdef Utf8View given
    cdef size_t at = 0
    cdef size_t byte = 0
    cdef size_t character = 0
    cdef size_t size
    cdef list found = []
    _owner = utf8_open(text, &given)
    while at < given.length:
        if key_may_begin(given.data, at) and key_at(given.data + at, given.length - at, &size):
            character += utf8_count(given.data + byte, given.data + at)
            byte = at
            found.append((character, character + size))  # a key is ASCII
            at += size
        else:
            at += 1
    return found
