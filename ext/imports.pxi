# Everything that the core imports: from Cython, the C library, POSIX, CPython and its own C headers.
#
# Gives: all names below. No other part has a `cimport` or a `cdef extern`.
# Needs: nothing.
#
# A `noexcept` function that needs memory returns -1 if there is none, or NULL if its result is a pointer. Otherwise it
# returns 0, unless its docstring names something else.

cimport cython

# ---- the C library and POSIX -------------------------------------------------

from libc.errno cimport EAGAIN, EINTR, EIO, ENAMETOOLONG, ENOENT, ENOMEM, errno
from libc.stddef cimport size_t
from libc.stdint cimport INT64_MAX, INT64_MIN, SIZE_MAX, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdio cimport FILE, fclose, fopen, fscanf
from libc.stdlib cimport bsearch, qsort
from libc.string cimport memchr, memcmp, memcpy, memmove, memset, strcmp, strerror, strlen
from posix.fcntl cimport O_CLOEXEC, O_RDONLY, open as os_open
from posix.stat cimport S_ISLNK, S_ISVTX, S_IWGRP, S_IWOTH, lstat, stat, struct_stat
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, nanosleep, timespec
from posix.types cimport uid_t
from posix.unistd cimport close, getegid, geteuid, read, readlink

cdef extern from "<string.h>" nogil:
    void* memmem(const void* text, size_t size, const void* needle, size_t needle_size)

cdef extern from "<strings.h>" nogil:
    int strncasecmp(const char* one, const char* other, size_t size)

cdef extern from "<dirent.h>" nogil:
    ctypedef struct DIR:
        pass
    struct dirent:
        unsigned char d_type
        char* d_name
    enum:
        DT_DIR
        DT_LNK
        DT_UNKNOWN
    DIR* opendir(const char* path)
    int dirfd(DIR* folder)
    int closedir(DIR* folder)

cdef extern from "<poll.h>" nogil:
    struct pollfd:
        int fd
        short events
        short revents
    int poll(pollfd* fds, unsigned long count, int milliseconds)
    const short POLLIN
    const short POLLOUT
    const short POLLNVAL

cdef extern from "<sys/file.h>" nogil:
    int flock(int fd, int operation)
    int LOCK_EX
    int LOCK_NB

cdef extern from "<sys/socket.h>" nogil:
    ctypedef unsigned short sa_family_t
    struct sockaddr:
        pass
    int socket(int domain, int kind, int protocol)
    ssize_t sendto(int fd, const void* data, size_t size, int flags, const sockaddr* to, unsigned int to_size)
    int AF_UNIX
    int SOCK_DGRAM
    int MSG_DONTWAIT

cdef extern from "<sys/un.h>" nogil:
    struct sockaddr_un:
        sa_family_t sun_family
        char sun_path[1]  # the real array is longer; its size depends on the system


# ---- CPython -----------------------------------------------------------------

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_SET_ITEM

cdef extern from "Python.h":
    unicode PyUnicode_New(Py_ssize_t size, Py_UCS4 highest)
    int PyUnicode_KIND(object text)
    void* PyUnicode_DATA(object text)
    void PyUnicode_WRITE(int kind, void* data, Py_ssize_t index, Py_UCS4 value) noexcept nogil
    object PyUnicode_EncodeFSDefault(object text)
    object PyUnicode_DecodeFSDefault(const char* text)
    object PyUnicode_FromString(const char* text)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    bint Py_UNICODE_ISALNUM(uint32_t character) nogil
    bint Py_UNICODE_ISSPACE(uint32_t character) nogil
    # Bytes objects: written before any other code sees them, and cut to their size afterwards.
    int _PyBytes_Resize(PyObject** text, Py_ssize_t size) except -1
    PyObject* bytes_new "PyBytes_FromStringAndSize"(const char* text, Py_ssize_t size) except NULL
    char* bytes_data "PyBytes_AS_STRING"(PyObject* text)
    object PyMemoryView_FromMemory(char* data, Py_ssize_t size, int flags)
    int PyBUF_WRITE
    object PyErr_SetFromErrno(object error)
    int PyErr_CheckSignals() except -1
    int Py_AddPendingCall(int (*call)(void*), void* argument)
    void PyErr_SetNone(object kind)
    int PyGC_Disable()
    PyObject* PySys_GetObject(const char* name)
    long PyImport_GetMagicNumber() except? -1
    const char* PyImport_GetMagicTag()
    PyObject* PyImport_GetModuleDict()
    object PyModule_NewObject(object name)

cdef extern from "pythread.h" nogil:
    ctypedef void* PyThread_type_lock
    enum:
        WAIT_LOCK
        NOWAIT_LOCK
    ctypedef enum PyLockStatus:
        PY_LOCK_INTR  # a signal came
    PyThread_type_lock PyThread_allocate_lock()
    void PyThread_free_lock(PyThread_type_lock lock)
    int PyThread_acquire_lock(PyThread_type_lock lock, int wait)
    PyLockStatus PyThread_acquire_lock_timed(PyThread_type_lock lock, long long microseconds, int ends_with_signals)
    void PyThread_release_lock(PyThread_type_lock lock)

cdef extern from "marshal.h":
    object PyMarshal_ReadObjectFromString(const char* data, Py_ssize_t size)


# ---- headers of the core -----------------------------------------------------
#
# In C their names begin with `tailhook_`; here with the subject, as in the parts.

cdef extern from *:
    unsigned int __builtin_ctzll(uint64_t bits) nogil

cdef extern from "named_tuple.h":
    bint tuple_is_plain "tailhook_is_named_tuple"(PyTypeObject* cls)
    object tuple_allocate "tailhook_new_named_tuple"(PyTypeObject* cls, Py_ssize_t size)

cdef extern from "cpu.h" nogil:
    void bytes_clear "tailhook_clear"(void* memory, size_t size)

cdef extern from "literal.h" nogil:
    ctypedef struct Literal "struct tailhook_literal":
        const char* text
        size_t size
    Literal LIT "tailhook_lit"(const char* text)
    bint bytes_begin "tailhook_begins"(const void* text, Literal literal)
    bint bytes_equal "tailhook_equals"(const void* text, size_t size, Literal literal)
    const void* bytes_find "tailhook_find"(const void* text, size_t size, Literal literal)
    void bytes_write "tailhook_write"(void* out, Literal literal)

cdef extern from "text/utf8.h" nogil:
    ctypedef const unsigned char* Cursor "tailhook_cursor"
    size_t utf8_sequence "tailhook_utf8_sequence"(Cursor p, Cursor end, bint surrogates)
    uint32_t utf8_decode "tailhook_utf8_decode"(Cursor p, size_t length)
    Cursor utf8_stop "tailhook_utf8_stop"(Cursor p, Cursor end)
    size_t utf8_count "tailhook_utf8_count"(Cursor p, Cursor end)

cdef extern from "json/strings.h" nogil:
    Cursor json_string_stop "tailhook_string_stop"(Cursor p, Cursor end)
    Cursor json_string_pass "tailhook_string_pass"(Cursor p, Cursor end)
    Cursor json_string_short "tailhook_string_short"(Cursor p, Cursor end)
    Cursor json_plain_stop "tailhook_plain_stop"(Cursor p, Cursor end)
    void json_widen "tailhook_widen"(void* data, int width, Py_ssize_t index, Cursor p, Py_ssize_t count)

cdef extern from "transcript/assistant.h" nogil:
    bint rec_may_hold_assistant "tailhook_may_hold_assistant"(Cursor p, Cursor end)

cdef extern from "transcript/uuids.h" nogil:
    enum:
        REC_MAX_WORD "TAILHOOK_MAX_WORD"
    Cursor rec_next_uuid "tailhook_next_uuid"(Cursor p, Cursor end)
    int rec_file_holds "tailhook_file_holds"(int fd, int64_t end, int64_t most, Cursor word, size_t size)

cdef extern from "os/file.h" nogil:
    Py_ssize_t os_read_at "tailhook_read_at"(int fd, unsigned char* data, size_t size, int64_t offset)
    bint os_read_file "tailhook_read_file"(const char* path, unsigned char* data, size_t size)
    int64_t os_file_size "tailhook_file_size"(int fd)
    ctypedef struct OsFacts "struct tailhook_facts":
        int64_t size
        double modified
        bint is_folder
        bint is_file
        bint is_link
    dirent* os_next_name "tailhook_next_name"(DIR* folder, int* error)
    int os_facts_in "tailhook_facts_in"(int folder, const char* name, OsFacts* facts)
    int os_copy_descriptor "tailhook_copy_descriptor"(int fd)
    void os_close_descriptor "tailhook_close_descriptor"(int fd)
    const unsigned char* os_last_newline "tailhook_last_newline"(const unsigned char* data, size_t size)
    bint os_flag_enter "tailhook_enter"(char* flag)
    void os_flag_leave "tailhook_leave"(char* flag)
    void os_flag_set "tailhook_set"(char* flag)
    bint os_flag_is_set "tailhook_is_set"(const char* flag)

cdef extern from "os/caller.h" nogil:
    uint64_t os_caller_kind "tailhook_caller_kind"()
    uint64_t os_caller_identity "tailhook_caller_identity"(uint64_t kind)
    enum:
        OS_MIN_FILES "TAILHOOK_MIN_FILES"

cdef extern from "os/request.h" nogil:
    uint64_t OS_READY_MAGIC "TAILHOOK_READY_MAGIC"
    uint64_t OS_REQUEST_MAGIC "TAILHOOK_REQUEST_MAGIC"
    enum:
        OS_DESCRIPTORS "TAILHOOK_DESCRIPTORS"
        OS_KIND_DIGITS "TAILHOOK_KIND_DIGITS"
        OS_MAX_REQUEST_BYTES "TAILHOOK_MAX_REQUEST_BYTES"
        OS_POOL_RETRY_S "TAILHOOK_POOL_RETRY_S"
        OS_REASON_NO_POOL "TAILHOOK_REASON_NO_POOL"
        OS_REASON_BUSY "TAILHOOK_REASON_BUSY"
        OS_REASON_UNUSUAL "TAILHOOK_REASON_UNUSUAL"
        OS_REASON_OFF "TAILHOOK_REASON_OFF"

cdef extern from "os/watch.h" nogil:
    int os_new_watch "tailhook_new_watch"()
    int os_watch_folder "tailhook_watch_folder"(int fd, const char* folder)

cdef extern from "markdown/markdown.h" nogil:
    enum:
        MD_LINE_ENDS "TAILHOOK_LINE_ENDS"
        MD_SPECIALS "TAILHOOK_SPECIALS"
    ctypedef struct MdSpan "tailhook_span":
        size_t start        # byte offsets into the text, end exclusive
        size_t end
        int    kind
    size_t MD_MARKS "TAILHOOK_MARKS"(size_t length)
    void md_mark "tailhook_mark"(const char* text, size_t length, uint64_t* marks)
    size_t md_next_mark "tailhook_next_mark"(const uint64_t* marks, int kind, size_t position)
    bint md_is_line_end "tailhook_is_line_end"(char c)
    bint md_may_start_block "tailhook_may_start_block"(char c)
    void md_spans_to_code_points "tailhook_spans_to_code_points"(const char* text, MdSpan* spans, size_t count)
    bint md_is_html_block "tailhook_is_html_block"(const char* text, size_t length)
    bint md_is_html_raw "tailhook_is_html_raw"(const char* text, size_t length)

cdef extern from "arrow/arrow.h" nogil:
    int64_t ARROW_FLAG_NULLABLE
    struct ArrowSchema:
        const char* format
        const char* name
        const char* metadata
        int64_t flags
        int64_t n_children
        ArrowSchema** children
        ArrowSchema* dictionary
        void (*release)(ArrowSchema*) noexcept nogil
        void* private_data
    struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void** buffers
        ArrowArray** children
        ArrowArray* dictionary
        void (*release)(ArrowArray*) noexcept nogil
        void* private_data
    struct ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream*, ArrowSchema*) noexcept
        int (*get_next)(ArrowArrayStream*, ArrowArray*) noexcept
        const char* (*get_last_error)(ArrowArrayStream*) noexcept
        void (*release)(ArrowArrayStream*) noexcept
        void* private_data
    ctypedef struct ArrowMetadata:
        pass
    const ArrowMetadata arrow_row_metadata "tailhook_row_metadata"
    int64_t arrow_count_reference "tailhook_count_reference"(int64_t* count, int64_t more)

cdef extern from "scan/tools.h" nogil:
    const char* const* scan_file_path_tools "tailhook_file_path_tools"
    const char* const* scan_notebook_tools "tailhook_notebook_tools"
    const char* const* scan_path_tools "tailhook_path_tools"
    const char* const* scan_patch_lines "tailhook_patch_lines"
    const char* const* scan_command_tools "tailhook_command_tools"
    const char* const* scan_cmd_tools "tailhook_cmd_tools"

cdef extern from "patterns/automaton.h" nogil:
    uint32_t MATCH_TABLE_MAGIC "TAILHOOK_TABLE_MAGIC"
    uint32_t MATCH_NO_CLASS "TAILHOOK_NO_CLASS"
    uint32_t MATCH_HASH_BITS "TAILHOOK_HASH_BITS"
    uint32_t MATCH_GROUPS "TAILHOOK_GROUPS"
    uint32_t MATCH_CHECK_BACK "TAILHOOK_CHECK_BACK"

    ctypedef struct MatchPattern "tailhook_pattern":
        uint32_t text
        uint32_t length
        uint32_t anchor_start
        uint32_t anchor_end
        uint32_t name

    ctypedef struct MatchOutput "tailhook_output":
        uint32_t pattern
        uint32_t length
        uint32_t next

    ctypedef struct MatchCheck "tailhook_check":
        uint32_t back

    ctypedef struct MatchTableHead "tailhook_table_head":
        uint32_t magic
        uint32_t words
        uint32_t fold
        uint32_t word
        uint32_t wide
        uint32_t stride
        uint32_t cells
        uint32_t outputs
        uint32_t patterns
        uint32_t texts
        uint32_t groups
        uint32_t reach
        uint32_t hashed
        uint32_t checks

    ctypedef struct MatchTable "tailhook_table":
        const MatchTableHead* head
        const uint8_t* classes
        const uint16_t* slots
        const MatchCheck* checks
        const MatchPattern* patterns
        const MatchOutput* outputs
        const uint8_t* texts
        const void* cells

    uint64_t match_table_view "tailhook_table_view"(MatchTable* table, const uint32_t* words)

cdef extern from "patterns/prefilter.h" nogil:
    ctypedef struct MatchBlock "tailhook_block":
        size_t at
        uint64_t places

    ctypedef struct MatchPrefilter "tailhook_prefilter":
        const MatchTable* table
        const uint8_t* text
        size_t length
        size_t at
        unsigned int count
        unsigned int next

    bint match_has_prefilter "tailhook_has_prefilter"(const MatchTable* table)
    bint match_prefilter_next "tailhook_prefilter_next"(MatchPrefilter* way, MatchBlock* block)

# Written by tables.py at each build: the literals of the machines.
cdef extern from "tables.h":
    const uint32_t* match_signals "tailhook_signals"
    const char* const* match_signal_names "tailhook_signals_names"
    const uint32_t* match_promise_tags "tailhook_promise_tags"
    const uint32_t* match_keywords_seed "tailhook_keywords_seed"
    const uint32_t* match_keywords_tuned "tailhook_keywords_tuned"
    enum:
        MEM_CATEGORIES "TAILHOOK_MEMORY_CATEGORIES"
        MEM_NEGATION "TAILHOOK_MEMORY_NEGATION"          # number of a negation; primary and booster come before it
        MEM_NUMBERS "TAILHOOK_MEMORY_NUMBERS"
        MEM_LINES_BEFORE "TAILHOOK_MEMORY_LINES_BEFORE"
        MEM_LINES_AFTER "TAILHOOK_MEMORY_LINES_AFTER"
        MEM_MAX_BOOSTED "TAILHOOK_MEMORY_MAX_BOOSTED"    # how many lines of a category count with a booster
        MEM_MAX_PLAIN "TAILHOOK_MEMORY_MAX_PLAIN"        # how many count without one
        MEM_NEGATION_REACH_BYTES "TAILHOOK_MEMORY_NEGATION_REACH_BYTES"
        REC_HOST_WRITTEN_COUNT "TAILHOOK_HOST_WRITTEN_COUNT"
        REC_HOST_WRITTEN_MAX_BYTES "TAILHOOK_HOST_WRITTEN_MAX_BYTES"
        REC_APP_WRITTEN_COUNT "TAILHOOK_APP_WRITTEN_COUNT"
        REC_APP_WRITTEN_MAX_BYTES "TAILHOOK_APP_WRITTEN_MAX_BYTES"
        KEY_COUNT "TAILHOOK_KEY_BEGINNINGS"
        MD_FOLDINGS "TAILHOOK_LABEL_FOLDINGS"
        MD_MAX_FOLDED "TAILHOOK_LABEL_MAX_GROWTH"        # bytes for each byte of a label, folded
    const char* const* rec_host_written "tailhook_host_written"    # how a text begins that a host wrote as a user
    const char* const* rec_app_written "tailhook_app_written"      # how one begins that its app sent as a user
    const char* const* key_beginnings "tailhook_key_beginnings"    # sorted
    const uint16_t* key_least "tailhook_key_least"                 # how many characters follow a beginning at least
    const uint16_t* key_signs "tailhook_key_signs"                 # a bit for each of key_sign_letters that may follow
    const char* key_sign_letters "tailhook_key_sign_letters"
    ctypedef struct MdFolding "tailhook_folding":
        uint32_t character
        uint32_t size
        uint8_t* folded
    const MdFolding* md_foldings "tailhook_foldings"               # what case folding changes beyond ASCII, sorted
