# ---- named tuples ------------------------------------------------------------
#
# What the library finds is given as instances of its NamedTuple classes, made
# item by item: a call of the class costs more than a whole short search.


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
