# ---- named tuples ------------------------------------------------------------
#
# What the library finds is given as instances of its NamedTuple classes, made
# item by item: a call of the class costs more than a whole short search.

from cpython.object cimport PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM

cdef extern from *:
    """
    /* May an instance of the class be made item by item? A tuple, and nothing more. */
    static inline int
    tailhook_is_named_tuple(PyTypeObject *cls)
    {
        return PyType_IsSubtype(cls, &PyTuple_Type) && cls->tp_basicsize == PyTuple_Type.tp_basicsize &&
               cls->tp_dictoffset == 0 && cls->tp_weaklistoffset == 0;
    }

    /* One with its items unset. The collector never learns of it: its items make no cycle.
       From 3.14 on a tuple keeps its hash, and -1 is "not computed". */
    static inline PyObject *
    tailhook_new_named_tuple(PyTypeObject *cls, Py_ssize_t size)
    {
        PyTupleObject *made = PyObject_GC_NewVar(PyTupleObject, cls, size);
        if (made != NULL) /* no memory for an item: those that are unset are not given back */
            memset(made->ob_item, 0, (size_t)size * sizeof(PyObject *));
    #if PY_VERSION_HEX >= 0x030E0000
        if (made != NULL)
            made->ob_hash = -1;
    #endif
        return (PyObject *)made;
    }
    """
    bint tailhook_is_named_tuple(PyTypeObject* cls)
    object tailhook_new_named_tuple(PyTypeObject* cls, Py_ssize_t size)


cdef inline object new_named_tuple(type cls, Py_ssize_t size):
    """An instance whose items are all to be set."""
    return tailhook_new_named_tuple(<PyTypeObject*> cls, size)


cdef inline void set_item(object items, Py_ssize_t position, object item):
    Py_INCREF(item)  # the tuple's own
    PyTuple_SET_ITEM(items, position, item)


cdef int require_named_tuple(type cls) except -1:
    if not tailhook_is_named_tuple(<PyTypeObject*> cls):
        raise TypeError(f"cls must be a NamedTuple class, not {cls.__name__}")
    return 0
