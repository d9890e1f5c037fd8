/* The structs of the Arrow C data interface and C stream interface, from their specification
   (https://arrow.apache.org/docs/format/CDataInterface.html, CStreamInterface.html). */

#ifndef TAILHOOK_ARROW_H
#define TAILHOOK_ARROW_H

#include <stdint.h>

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#endif

/* The metadata of a table's schema: the version of the rows (docs/scan-rows.md). A change of the key or of the version
   changes the lengths, too. */
static const struct {
    int32_t pairs;
    int32_t key_bytes;
    char key[20];
    int32_t value_bytes;
    char value[4];
} tailhook_row_metadata = {
    1, 20, {'t', 'a', 'i', 'l', 'h', 'o', 'o', 'k', '.', 'r', 'o', 'w', '-', 'v', 'e', 'r', 's', 'i', 'o', 'n'}, 1, {'1'},
};

/* Count references from several threads. Return the new count. */
static inline int64_t
tailhook_count_reference(int64_t *count, int64_t more)
{
    return __atomic_add_fetch(count, more, __ATOMIC_ACQ_REL);
}

#endif
