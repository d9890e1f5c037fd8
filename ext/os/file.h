/* Differences between platforms for readers of files: bytes at an offset, a file's size and time, the last newline of a
   block, a flag held by one thread at a time, and a flag that all threads can see. */

#ifndef TAILHOOK_FILE_H
#define TAILHOOK_FILE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* Read up to size bytes. Return how many: fewer only at the end of the file; -1 with errno set (it may be EINTR). */
static inline ptrdiff_t
tailhook_read_at(int fd, unsigned char *data, size_t size, int64_t offset)
{
    size_t done = 0;
    while (done != size) {
        const ssize_t count = pread(fd, data + done, size - done, (off_t)(offset + (int64_t)done));
        if (count < 0)
            return -1;
        if (count == 0)
            break;
        done += (size_t)count;
    }
    return (ptrdiff_t)done;
}

/* Return the size in bytes of a regular file, or -1 with errno set. */
static inline int64_t
tailhook_file_size(int fd)
{
    struct stat facts;
    if (fstat(fd, &facts) < 0)
        return -1;
    if (S_ISDIR(facts.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    if (!S_ISREG(facts.st_mode)) {
        errno = ESPIPE;
        return -1;
    }
    return (int64_t)facts.st_size;
}

/* Read a file whole. Return 1, or 0 if it cannot be read or has another size than `size`.
   data: with room for one byte more: that byte shows whether the file has grown. */
static inline int
tailhook_read_file(const char *path, unsigned char *data, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int is_whole;
    if (fd < 0)
        return 0;
    is_whole = pread(fd, data, size + 1, 0) == (ssize_t)size;
    close(fd);
    return is_whole;
}

/* Return the next name of a folder, or NULL at its end or with *error set to errno. */
static inline struct dirent *
tailhook_next_name(DIR *folder, int *error)
{
    struct dirent *name;
    errno = 0;
    name = readdir(folder);
    *error = name ? 0 : errno;
    return name;
}

struct tailhook_facts {
    int64_t size;
    double modified; /* Unix seconds */
    int is_folder, is_file, is_link;
};

/* Ask for the facts of a name in a folder; a link is not followed. Return 0 or errno. */
static inline int
tailhook_facts_in(int folder, const char *name, struct tailhook_facts *facts)
{
    struct stat found;
    volatile double fraction; /* a fused multiplication would round once, and os.stat rounds twice */
    if (fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) < 0)
        return errno;
#ifdef __APPLE__
    fraction = 1e-9 * (double)found.st_mtimespec.tv_nsec;
#else
    fraction = 1e-9 * (double)found.st_mtim.tv_nsec;
#endif
    facts->size = (int64_t)found.st_size;
    facts->modified = (double)found.st_mtime + fraction;
    facts->is_folder = S_ISDIR(found.st_mode);
    facts->is_file = S_ISREG(found.st_mode);
    facts->is_link = S_ISLNK(found.st_mode);
    return 0;
}

/* Return another descriptor of the same open file, or -1 with errno set. */
static inline int
tailhook_copy_descriptor(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static inline void
tailhook_close_descriptor(int fd)
{
    close(fd);
}

/* Return the last newline of the block, or NULL. */
static inline const unsigned char *
tailhook_last_newline(const unsigned char *data, size_t size)
{
#if defined(__GLIBC__) && !defined(TAILHOOK_PORTABLE)
    return (const unsigned char *)memrchr(data, '\n', size);
#else
    /* macOS has no memrchr; musl has it but cannot be recognised. Blocks are searched from the last to the first, each
       one forwards, which is as fast. */
    enum { BLOCK = 512 };
    while (size) {
        const size_t block = size < BLOCK ? size : BLOCK;
        const unsigned char *found = NULL, *at = data + size - block, *next;
        for (; (next = (const unsigned char *)memchr(at, '\n', (size_t)(data + size - at))); at = next + 1)
            found = next;
        if (found)
            return found;
        size -= block;
    }
    return NULL;
#endif
}

/* Take the flag. Return nonzero if it was free; then the caller holds it until tailhook_leave. */
static inline int
tailhook_enter(char *flag)
{
    return !__atomic_test_and_set(flag, __ATOMIC_ACQUIRE);
}

static inline void
tailhook_leave(char *flag)
{
    __atomic_clear(flag, __ATOMIC_RELEASE);
}

/* Set a flag that other threads look at. */
static inline void
tailhook_set(char *flag)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

static inline int
tailhook_is_set(const char *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

#endif
