# Finished batches, on their way from the scanning thread to the thread that takes them.
#
# Gives: ScanBatch, ScanQueue; scan_queue_*, scan_batch_free.
# Needs: ArrowColumn (arrow/columns.pxi), arrow_columns_free (arrow/export.pxi), array_grow (array.pxi), os_flag_set,
# os_flag_is_set (os/file.h).
#
# Neither thread needs the interpreter's lock while it waits or moves a batch. The locks are those of CPython, because
# a signal ends the wait for one. A thread with the interpreter's lock must not wait for `guard`: the thread with the
# guard may wait for the interpreter's lock, if it allocates while memory is traced (tracemalloc).

# Finished rows.
cdef struct ScanBatch:
    ArrowColumn* columns   # those of the question, in its order
    size_t column_count
    size_t rows

cdef struct ScanQueue:
    PyThread_type_lock guard        # of the members below; never held for long
    PyThread_type_lock batch_ready  # is released when a batch is put, or none will come
    PyThread_type_lock room_ready   # is released when a batch is taken, or the scan is stopped
    ScanBatch* batches              # the oldest one first
    size_t count
    size_t capacity
    size_t max_waiting              # batches; when there are so many, the scan waits
    bint has_ended                  # no batch will come
    size_t ends                     # how often the end was marked
    char is_stopped                 # os_flag_*: batches are dropped


cdef int scan_queue_open(ScanQueue* queue, size_t max_waiting) noexcept nogil:
    """Set up an empty queue in a zeroed struct."""
    queue.max_waiting = max_waiting
    queue.guard = PyThread_allocate_lock()
    queue.batch_ready = PyThread_allocate_lock()
    queue.room_ready = PyThread_allocate_lock()
    return -1 if queue.guard == NULL or queue.batch_ready == NULL or queue.room_ready == NULL else 0


cdef void scan_batch_free(ScanBatch* batch) noexcept nogil:
    arrow_columns_free(batch.columns, batch.column_count)


cdef void scan_queue_close(ScanQueue* queue) noexcept nogil:
    """Free a queue, which may be zeroed or half made."""
    cdef size_t i
    for i in range(queue.count):
        scan_batch_free(&queue.batches[i])
    PyMem_RawFree(queue.batches)
    if queue.guard != NULL:
        PyThread_free_lock(queue.guard)
    if queue.batch_ready != NULL:
        PyThread_free_lock(queue.batch_ready)
    if queue.room_ready != NULL:
        PyThread_free_lock(queue.room_ready)


cdef void scan_queue_wake(PyThread_type_lock waited_for) noexcept nogil:
    """Let a waiting thread go on, or the next one that waits. The caller has the guard."""
    PyThread_acquire_lock(waited_for, NOWAIT_LOCK)  # so that it is not released twice
    PyThread_release_lock(waited_for)


cdef int scan_queue_put(ScanQueue* queue, ScanBatch* batch) noexcept nogil:
    """Put a batch: the queue then owns it. Waits until there is room."""
    cdef int result = 0
    PyThread_acquire_lock(queue.guard, WAIT_LOCK)
    while queue.count >= queue.max_waiting and not os_flag_is_set(&queue.is_stopped):
        PyThread_release_lock(queue.guard)
        PyThread_acquire_lock(queue.room_ready, WAIT_LOCK)
        PyThread_acquire_lock(queue.guard, WAIT_LOCK)
    if not os_flag_is_set(&queue.is_stopped):
        if queue.count == queue.capacity:
            result = array_grow(<void**>&queue.batches, &queue.capacity, queue.count + 1, sizeof(ScanBatch))
        if result == 0:
            queue.batches[queue.count] = batch[0]
            queue.count += 1
            batch.columns = NULL
            scan_queue_wake(queue.batch_ready)
    PyThread_release_lock(queue.guard)
    if batch.columns != NULL:
        scan_batch_free(batch)
    return result


cdef inline bint scan_queue_has_ended(const ScanQueue* queue, size_t ends) noexcept nogil:
    """Return whether no batch will come, or the end was marked since `queue.ends` was `ends`."""
    return queue.has_ended or queue.ends != ends or os_flag_is_set(&queue.is_stopped)


cdef int scan_queue_take(ScanQueue* queue, ScanBatch* batch) noexcept nogil:
    """Wait for a batch and take it. Returns 1: done; 0: there will be none; -1: a signal came, ask again."""
    cdef int result = 0
    cdef size_t ends
    PyThread_acquire_lock(queue.guard, WAIT_LOCK)
    ends = queue.ends
    while queue.count == 0 and not scan_queue_has_ended(queue, ends):
        PyThread_release_lock(queue.guard)
        if PyThread_acquire_lock_timed(queue.batch_ready, -1, True) == PY_LOCK_INTR:
            return -1
        PyThread_acquire_lock(queue.guard, WAIT_LOCK)
    if queue.count and not os_flag_is_set(&queue.is_stopped):
        batch[0] = queue.batches[0]
        queue.count -= 1
        memmove(queue.batches, queue.batches + 1, queue.count * sizeof(ScanBatch))
        scan_queue_wake(queue.room_ready)
        result = 1
    if queue.count or not result:
        scan_queue_wake(queue.batch_ready)  # another thread may wait for the next batch, or for the end
    PyThread_release_lock(queue.guard)
    return result


cdef void scan_queue_end(ScanQueue* queue, ScanBatch** rest, size_t* count) noexcept nogil:
    """Mark the end of the batches, and take all waiting ones. rest: set to an array of them; the caller frees it."""
    PyThread_acquire_lock(queue.guard, WAIT_LOCK)
    queue.has_ended = True
    queue.ends += 1
    rest[0], count[0] = queue.batches, queue.count
    queue.batches = NULL
    queue.count = queue.capacity = 0
    scan_queue_wake(queue.batch_ready)
    PyThread_release_lock(queue.guard)


cdef void scan_queue_reopen(ScanQueue* queue) noexcept nogil:
    """Take back the mark of the end."""
    PyThread_acquire_lock(queue.guard, WAIT_LOCK)
    queue.has_ended = False
    PyThread_release_lock(queue.guard)


cdef void scan_queue_stop(ScanQueue* queue) noexcept nogil:
    """Let both sides go on: further batches are dropped, and nothing is taken."""
    PyThread_acquire_lock(queue.guard, WAIT_LOCK)
    os_flag_set(&queue.is_stopped)
    scan_queue_wake(queue.batch_ready)
    scan_queue_wake(queue.room_ready)
    PyThread_release_lock(queue.guard)
