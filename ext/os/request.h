/* The messages between the native client and a worker of the pool (see docs/pool.md, "The protocol"), and why a hook is
   cold. */

#ifndef TAILHOOK_REQUEST_H
#define TAILHOOK_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#define TAILHOOK_READY_MAGIC 0x31594452504F4F4CULL
#define TAILHOOK_REQUEST_MAGIC 0x31514552504F4F4CULL

/* A pool listens for callers like itself. The path of its socket is the prefix in the file "installation", a dot, and
   the lower half of its tailhook_caller_kind in TAILHOOK_KIND_DIGITS hexadecimal digits. */

/* The worker's message after it has accepted the connection: it can take a request. */
struct tailhook_ready {
    uint64_t magic;
    uint64_t identity; /* tailhook_caller_identity of the worker */
};

/* The client's message, with four descriptors: stdin, stdout, stderr and the working folder.
   Behind it are the arguments and the environment variables, each ended with a NUL. */
struct tailhook_request {
    uint64_t magic;
    uint64_t started_ns; /* when the client started, by CLOCK_MONOTONIC */
    uint32_t size;       /* bytes behind this header */
    uint32_t arguments;  /* how many of the strings are arguments */
    uint32_t umask;
    int32_t parent; /* the process that started the client */
};

/* The place of each number in these two. The worker has the same layout (READY_LAYOUT in
   src/tailhook/pool/installation.py, REQUEST_LAYOUT in src/tailhook/pool/worker.py), and tests/unit/test_pool.py
   compares them. */
#define TAILHOOK_LIES_AT(offset, message, member)                                                                        \
    _Static_assert(offsetof(struct message, member) == offset, "the layout of messages has changed")
TAILHOOK_LIES_AT(0, tailhook_ready, magic);
TAILHOOK_LIES_AT(8, tailhook_ready, identity);
TAILHOOK_LIES_AT(0, tailhook_request, magic);
TAILHOOK_LIES_AT(8, tailhook_request, started_ns);
TAILHOOK_LIES_AT(16, tailhook_request, size);
TAILHOOK_LIES_AT(20, tailhook_request, arguments);
TAILHOOK_LIES_AT(24, tailhook_request, umask);
TAILHOOK_LIES_AT(28, tailhook_request, parent);
_Static_assert(sizeof(struct tailhook_ready) == 16 && sizeof(struct tailhook_request) == 32, "a message is padded");

/* The worker's message after it has written the answer: the exit code. */
typedef unsigned char tailhook_exit_code;

enum {
    TAILHOOK_KIND_DIGITS = 8,
    TAILHOOK_DESCRIPTORS = 4,
    TAILHOOK_MAX_REQUEST_BYTES = 128 << 10, /* a larger request is not sent */
    TAILHOOK_POOL_RETRY_S = 60              /* between two attempts of clients to start a pool */
};

/* Why no worker answered: a letter for the cold hook, in TAILHOOK_CLIENT. The hook records it, and
   src/tailhook/doctor/pool.py reads these names. A worker records 'w' (src/tailhook/stores/hook_times.py). */
enum {
    TAILHOOK_REASON_NO_POOL = 'n',
    TAILHOOK_REASON_BUSY = 'b',    /* no worker was free in time */
    TAILHOOK_REASON_UNUSUAL = 'u', /* a worker could answer otherwise than the cold hook */
    TAILHOOK_REASON_OFF = 'o'      /* the client did not ask, as TAILHOOK_NO_POOL is set */
};

#endif
