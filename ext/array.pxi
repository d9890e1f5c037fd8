# Arrays that grow.
#
# Gives: array_grow.
# Needs: nothing.
#
# All memory of the core comes from PyMem_Raw*: it needs no interpreter lock, and tracemalloc can see it.

cdef int array_grow(void** items, size_t* capacity, size_t needed, size_t item_bytes) noexcept nogil:
    """Give an array room for `needed` items, and for twice as many as it has."""
    cdef size_t wanted = max(<size_t>64, 2 * capacity[0], needed)
    cdef void* grown = PyMem_RawRealloc(items[0], wanted * item_bytes)
    if grown == NULL:
        return -1
    items[0] = grown
    capacity[0] = wanted
    return 0
