# System calls for the pool of hook workers.
#
# Gives: nothing to other parts. For Python: caller_kind, caller_identity, watch_folders, the numbers of the protocol.
# Needs: nothing.

READY_MAGIC = OS_READY_MAGIC
REQUEST_MAGIC = OS_REQUEST_MAGIC
REQUEST_DESCRIPTORS = OS_DESCRIPTORS
MAX_REQUEST_BYTES = OS_MAX_REQUEST_BYTES
KIND_DIGITS = OS_KIND_DIGITS
POOL_RETRY_S = OS_POOL_RETRY_S
MIN_FILES = OS_MIN_FILES
REASON_NO_POOL = OS_REASON_NO_POOL
REASON_BUSY = OS_REASON_BUSY
REASON_UNUSUAL = OS_REASON_UNUSUAL
REASON_OFF = OS_REASON_OFF


def caller_kind():
    return os_caller_kind()


def caller_identity():
    return os_caller_identity(os_caller_kind())


def watch_folders(folders not None):
    cdef list paths = list(folders)
    cdef bytes path
    cdef int fd = os_new_watch()
    if fd < 0:
        return -1
    for path in paths:
        if os_watch_folder(fd, path) < 0:
            os_close_descriptor(fd)
            return -1
    return fd
