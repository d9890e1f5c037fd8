# Borrowed UTF-8 views of str and bytes objects.
#
# Gives: Utf8View, utf8_open, bytes_between, bytes_cut, text_hash. For Python: fingerprint.
# Needs: text/utf8.h.
#
# The core reads UTF-8. The bytes of a bytes object are read in place, and so is the cached UTF-8 form of a str. A str
# with lone surrogates has no such form; it is encoded into a new object. Python gets offsets back in its own
# unit: characters of a str, bytes of bytes.

cdef struct Utf8View:
    const uint8_t* data
    size_t length
    bint in_bytes        # the caller's offsets are bytes: the source is bytes, or ASCII


cdef object utf8_open(object source, Utf8View* text):
    """Fill `text` with a view of a str or bytes object.

    Returns the object that owns the memory. The caller must keep a reference to it while it reads.
    """
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


cdef bytes bytes_between(Cursor p, Cursor end):
    """Return a copy of [p, end)."""
    return PyBytes_FromStringAndSize(<const char*>p, end - p)


cdef bytes bytes_cut(PyObject* text, Py_ssize_t size):
    """Return the first `size` bytes of an object that has no other owner. Takes the caller's reference."""
    cdef object made
    _PyBytes_Resize(&text, size)  # after an error, it has released the object
    made = <object>text
    Py_DECREF(made)
    return made


cdef uint64_t text_fingerprint(const uint8_t* data, size_t length) noexcept nogil:
    """Return a hash that is the same in every process: see text_digest."""
    return text_digest(0xCBF29CE484222325ULL, data, length)


cdef uint64_t text_hash(const uint8_t* data, size_t length) noexcept nogil:
    """Return a hash for a table in memory.

    It starts with an address of this process, so no transcript can be made with many equal hashes.
    """
    return text_digest(<uint64_t><size_t><void*>text_fingerprint * 0x9E3779B97F4A7C15ULL, data, length)


cdef inline uint64_t text_digest(uint64_t digest, const uint8_t* data, size_t length) noexcept nogil:
    """Return a hash: FNV-1a (Fowler, Noll, Vo) over words of 8 bytes, the last padded with zeros, and the length.

    digest: the start value.
    """
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
