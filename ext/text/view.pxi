# ---- text that is lent --------------------------------------------------------------
#
# The core reads UTF-8. A bytes object is read where it is, a str in the UTF-8 form
# that it keeps; only a str with lone surrogates, which has none, is encoded anew.
# Offsets go back as the caller counts: characters of a str, bytes of bytes.


cdef struct Utf8View:
    const uint8_t* data
    size_t length
    bint in_bytes        # a character is a byte, for the caller


cdef object utf8_open(object source, Utf8View* text):
    """The object to hold on to for as long as `text` is read."""
    cdef Py_ssize_t length = 0
    cdef object owner = source
    if isinstance(source, str):
        try:
            text.data = <const uint8_t*> PyUnicode_AsUTF8AndSize(source, &length)
        except UnicodeEncodeError:
            owner = source.encode("utf-8", "surrogatepass")
    elif not isinstance(source, bytes):
        raise TypeError(f"a text is str or bytes, not {type(source).__name__}")
    if isinstance(owner, bytes):
        text.data, length = <const uint8_t*> PyBytes_AS_STRING(owner), PyBytes_GET_SIZE(owner)
    text.length = length
    text.in_bytes = owner is source and isinstance(source, bytes) or <size_t> length == <size_t> len(source)
    return owner


cdef uint64_t text_fingerprint(const uint8_t* data, size_t length) noexcept nogil:
    """FNV-1a (Fowler, Noll, Vo) over words of eight bytes, the last one filled up, and the length."""
    cdef uint64_t digest = 0xCBF29CE484222325
    cdef uint64_t word
    cdef size_t at = 0
    while at < length:
        word = 0
        memcpy(&word, data + at, min(<size_t>8, length - at))
        digest = (digest ^ word) * <uint64_t>0x100000001B3
        digest ^= digest >> 29
        at += 8
    return (digest ^ length) * <uint64_t>0x100000001B3


# ---- for Python ---------------------------------------------------------------

def fingerprint(bytes data not None):
    return text_fingerprint(<const uint8_t*>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
