# ---- the Markdown code map, for Python ------------------------------------------

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.object cimport PyTypeObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_SET_ITEM

cdef extern from *:
    """
    /* May an instance of the class be made item by item? A tuple, and nothing more. */
    static inline int
    tailhook_is_named_tuple(PyTypeObject *cls)
    {
        return PyType_IsSubtype(cls, &PyTuple_Type) && cls->tp_basicsize == PyTuple_Type.tp_basicsize &&
               cls->tp_dictoffset == 0 && cls->tp_weaklistoffset == 0;
    }

    /* One with its items unset. The collector never learns of it: a str and two ints make no cycle.
       From 3.14 on a tuple keeps its hash, and -1 is "not computed". */
    static inline PyObject *
    tailhook_new_named_tuple(PyTypeObject *cls, Py_ssize_t size)
    {
        PyTupleObject *made = PyObject_GC_NewVar(PyTupleObject, cls, size);
    #if PY_VERSION_HEX >= 0x030E0000
        if (made != NULL)
            made->ob_hash = -1;
    #endif
        return (PyObject *)made;
    }
    """
    bint tailhook_is_named_tuple(PyTypeObject* cls)
    object tailhook_new_named_tuple(PyTypeObject* cls, Py_ssize_t size)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    bint PyUnicode_IS_ASCII(object text)


cdef inline object new_span(type cls, object kind, object start, object end):
    cdef object span = tailhook_new_named_tuple(<PyTypeObject*> cls, 3)
    Py_INCREF(kind)
    Py_INCREF(start)
    Py_INCREF(end)
    PyTuple_SET_ITEM(span, 0, kind)
    PyTuple_SET_ITEM(span, 1, start)
    PyTuple_SET_ITEM(span, 2, end)
    return span


cdef list spans_as(type cls, const CodeMap* map):
    cdef tuple kinds = ("fence", "indented", "span", "comment", "raw")
    cdef list spans = PyList_New(<Py_ssize_t> map.count)
    cdef object span
    cdef size_t i
    for i in range(map.count):
        span = new_span(cls, <object> PyTuple_GET_ITEM(kinds, map.spans[i].kind), map.spans[i].start, map.spans[i].end)
        Py_INCREF(span)
        PyList_SET_ITEM(spans, <Py_ssize_t> i, span)
    return spans


def code_spans(markdown, type cls not None):
    cdef CodeMap map
    cdef const char* text = NULL
    cdef Py_ssize_t length = 0
    cdef object data = markdown
    cdef bint in_bytes
    cdef int result
    if not tailhook_is_named_tuple(<PyTypeObject*> cls):
        raise TypeError(f"cls must be a NamedTuple class, not {cls.__name__}")
    if isinstance(markdown, str):
        in_bytes = PyUnicode_IS_ASCII(markdown)
        try:
            text = PyUnicode_AsUTF8AndSize(markdown, &length)
        except UnicodeEncodeError:      # lone surrogates
            data = markdown.encode("utf-8", "surrogatepass")
    elif isinstance(markdown, bytes):
        in_bytes = True
    else:
        raise TypeError(f"markdown must be str or bytes, not {type(markdown).__name__}")
    if isinstance(data, bytes):
        text = PyBytes_AS_STRING(data)
        length = PyBytes_GET_SIZE(data)
    memset(&map, 0, sizeof(map))
    try:
        with nogil:
            result = code_map_build(&map, text, <size_t> length, 0, <size_t> length)
            if result == 0 and not in_bytes:
                tailhook_spans_to_code_points(text, <size_t> length, map.spans, map.count)
        if result < 0:
            raise MemoryError
        return spans_as(cls, &map)
    finally:
        code_map_free(&map)
