# ---- named tuples ------------------------------------------------------------
#
# What the library finds is given as instances of its NamedTuple classes, made
# item by item: a call of the class costs more than a whole short search.


cdef inline object tuple_new(type cls, Py_ssize_t size):
    """An instance whose items are all to be set."""
    return tuple_allocate(<PyTypeObject*> cls, size)


cdef inline void tuple_set(object items, Py_ssize_t position, object item):
    Py_INCREF(item)  # the tuple's own
    PyTuple_SET_ITEM(items, position, item)


cdef int tuple_require(type cls) except -1:
    if not tuple_is_plain(<PyTypeObject*> cls):
        raise TypeError(f"cls must be a NamedTuple class, not {cls.__name__}")
    return 0
