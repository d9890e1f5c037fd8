# Instances of NamedTuple classes, made item by item: a call of the class costs more than a whole short search.
#
# Gives: tuple_new, tuple_set, tuple_require.
# Needs: named_tuple.h.

cdef inline object tuple_new(type cls, Py_ssize_t size):
    """Return an instance. The caller must set all its items."""
    return tuple_allocate(<PyTypeObject*> cls, size)


cdef inline void tuple_set(object items, Py_ssize_t position, object item):
    Py_INCREF(item)  # PyTuple_SET_ITEM takes this reference
    PyTuple_SET_ITEM(items, position, item)


cdef int tuple_require(type cls) except -1:
    """Raise TypeError unless instances of the class can be made item by item."""
    if not tuple_is_plain(<PyTypeObject*> cls):
        raise TypeError(f"cls must be a NamedTuple class, not {cls.__name__}")
    return 0
