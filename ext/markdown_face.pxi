# ---- the Markdown code map, for Python ------------------------------------------

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyTypeObject
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_SET_ITEM

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
    void PyObject_GC_UnTrack(PyObject* made)


cdef inline object new_span(type cls, object kind, object start, object end):
    cdef object span = tailhook_new_named_tuple(<PyTypeObject*> cls, 3)
    Py_INCREF(kind)
    Py_INCREF(start)
    Py_INCREF(end)
    PyTuple_SET_ITEM(span, 0, kind)
    PyTuple_SET_ITEM(span, 1, start)
    PyTuple_SET_ITEM(span, 2, end)
    PyObject_GC_UnTrack(<PyObject*> span)   # a str and two ints make no cycle: no collection need look at them
    return span


cdef list spans_as(type cls, const CodeMap* map, const char* text, bint is_bytes):
    """The spans as instances of `cls`, in bytes or code points."""
    cdef tuple kinds = ("fence", "indented", "span", "comment", "raw")
    cdef list spans = PyList_New(<Py_ssize_t> map.count)
    cdef const CodeSpan* span
    cdef object item
    cdef size_t i, start, end = 0, byte = 0
    for i in range(map.count):
        span = &map.spans[i]
        if is_bytes:
            start, end = span.start, span.end
        else:
            start = end + tailhook_count_code_points(text + byte, span.start - byte)
            end = start + tailhook_count_code_points(text + span.start, span.end - span.start)
            byte = span.end
        item = new_span(cls, <object> PyTuple_GET_ITEM(kinds, span.kind), start, end)
        Py_INCREF(item)
        PyList_SET_ITEM(spans, <Py_ssize_t> i, item)
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
