# Waits for locks and input, and wakes the daemon up.
#
# Gives: nothing to other parts. For Python: flock_within, wait_readable, wait_writable, send_wake_up.
# Needs: nothing.
#
# CPython has these in the shared libraries `fcntl`, `select` and `_socket`: loading one costs the hook more than
# reading a transcript.

cdef inline double os_now_s() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <double>now.tv_sec + <double>now.tv_nsec * 1e-9


cdef inline int os_wait(int fd, short events, double seconds) noexcept nogil:
    """Wait for events of poll(2). Returns 1, 0 if the time is up, or -1 with errno set: EINTR at a signal."""
    cdef pollfd one = pollfd(fd, events, 0)
    cdef int ready = poll(&one, 1, <int>(seconds * 1000) + 1 if seconds > 0 else 0)
    if ready < 0:
        return -1
    return ready > 0 and not one.revents & POLLNVAL


cdef inline int os_lock(int fd, double seconds) noexcept nogil:
    """Take an exclusive flock. Returns 1, 0 if the time is up, or -1 with errno set."""
    cdef double deadline = os_now_s() + seconds
    cdef timespec pause = timespec(0, 200_000)  # ns, doubled up to 6.4 ms; a hook holds the lock for less than 1 ms
    while flock(fd, LOCK_EX | LOCK_NB):
        if errno != EAGAIN and errno != EINTR:
            return -1
        if os_now_s() >= deadline:
            return 0
        nanosleep(&pause, NULL)
        if pause.tv_nsec < 6_400_000:
            pause.tv_nsec *= 2
    return 1


cdef inline int os_send_wake_up(const char* path, size_t size) noexcept nogil:
    """Send one byte to the Unix datagram socket at `path` without blocking. Returns 0 or errno."""
    cdef sockaddr_un to
    cdef int fd
    cdef int error = 0
    cdef char wake = c'!'
    if size >= sizeof(to) - os_path_offset(&to):
        return ENAMETOOLONG
    memset(&to, 0, sizeof(to))
    to.sun_family = AF_UNIX
    memcpy(to.sun_path, path, size)
    fd = socket(AF_UNIX, SOCK_DGRAM, 0)
    if fd < 0:
        return errno
    if sendto(fd, &wake, sizeof(wake), MSG_DONTWAIT, <const sockaddr*>&to, sizeof(to)) < 0:
        error = errno
    close(fd)
    return error


cdef inline size_t os_path_offset(sockaddr_un* to) noexcept nogil:
    return <size_t>(<char*>to.sun_path - <char*>to)


# ---- for Python ---------------------------------------------------------------

def flock_within(int fd, double seconds):
    cdef int got
    with nogil:
        got = os_lock(fd, seconds)
    if got < 0:
        PyErr_SetFromErrno(OSError)
    return got == 1


cdef object os_wait_on(int fd, short events, double seconds):
    cdef double deadline = os_now_s() + seconds
    cdef int got
    while True:
        with nogil:
            got = os_wait(fd, events, seconds)
        if got >= 0:
            return got == 1
        if errno != EINTR:
            PyErr_SetFromErrno(OSError)
        PyErr_CheckSignals()
        seconds = deadline - os_now_s()


def wait_readable(int fd, double seconds):
    return os_wait_on(fd, POLLIN, seconds)


def wait_writable(int fd, double seconds):
    return os_wait_on(fd, POLLOUT, seconds)


def send_wake_up(bytes path not None):
    return os_send_wake_up(PyBytes_AS_STRING(path), PyBytes_GET_SIZE(path))
