# ---- the Markdown code map, for Python ------------------------------------------

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyTypeObject
from cpython.tuple cimport PyTuple_SET_ITEM

cdef extern from *:
    """
    /* A new instance of a class made by typing.NamedTuple, its items still NULL.
       From 3.14 on a tuple keeps its hash, and -1 is "not computed". */
    static inline PyObject *
    tailhook_new_named_tuple(PyTypeObject *cls, Py_ssize_t size)
    {
        PyObject *made = cls->tp_alloc(cls, size);
    #if PY_VERSION_HEX >= 0x030E0000
        if (made != NULL)
            ((PyTupleObject *)made)->ob_hash = -1;
    #endif
        return made;
    }
    """
    object tailhook_new_named_tuple(PyTypeObject* cls, Py_ssize_t size)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    bint PyUnicode_IS_ASCII(object text)


cdef list spans_as(type cls, const CodeMap* map, const char* text, bint is_bytes):
    """The spans as instances of `cls`, in bytes or code points."""
    cdef tuple kinds = ("fence", "indented", "span", "comment", "raw")
    cdef list spans = []
    cdef object span, item
    cdef size_t i, end = 0, points = 0, start_points
    for i in range(map.count):
        if is_bytes:
            start_points, points = map.spans[i].start, map.spans[i].end
        else:
            start_points = points + tailhook_count_code_points(text + end, map.spans[i].start - end)
            end = map.spans[i].end
            points = start_points + tailhook_count_code_points(text + map.spans[i].start, end - map.spans[i].start)
        span = tailhook_new_named_tuple(<PyTypeObject*> cls, 3)
        item = kinds[map.spans[i].kind]
        Py_INCREF(item)
        PyTuple_SET_ITEM(span, 0, item)
        item = start_points
        Py_INCREF(item)
        PyTuple_SET_ITEM(span, 1, item)
        item = points
        Py_INCREF(item)
        PyTuple_SET_ITEM(span, 2, item)
        spans.append(span)
    return spans


def code_spans(markdown, type cls not None):
    cdef CodeMap map
    cdef const char* text = NULL
    cdef Py_ssize_t length = 0
    cdef bint is_bytes = isinstance(markdown, bytes)
    cdef int result
    if not is_bytes and not isinstance(markdown, str):
        raise TypeError(f"markdown must be str or bytes, not {type(markdown).__name__}")
    cdef object data = markdown
    if not is_bytes:
        try:
            text = PyUnicode_AsUTF8AndSize(markdown, &length)
        except UnicodeEncodeError:      # lone surrogates
            data = markdown.encode("utf-8", "surrogatepass")
    if isinstance(data, bytes):
        text = PyBytes_AS_STRING(data)
        length = PyBytes_GET_SIZE(data)
    memset(&map, 0, sizeof(map))
    try:
        with nogil:
            result = code_map_build(&map, text, <size_t> length)
        if result < 0:
            raise MemoryError
        return spans_as(cls, &map, text, is_bytes or PyUnicode_IS_ASCII(markdown))
    finally:
        code_map_free(&map)
