/* The warm path: a worker answers the hook on this process's own descriptors. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/common.h"
#include "client/installation.h"
#include "os/caller.h"
#include "os/request.h"

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* macOS: SO_NOSIGPIPE */
#endif
#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

enum { READY_TIMEOUT_MS = 5 };

/* Return whether a codeset is UTF-8, in any spelling of C libraries: utf8, UTF-8, utf-8@euro. */
static int
is_utf8_codeset(const char *codeset)
{
    for (const char *letter = "utf8"; *letter; letter++, codeset++) {
        if (*codeset == '-')
            codeset++;
        if ((*codeset | 0x20) != (*letter | 0x20)) /* lower case; a digit stays */
            return 0;
    }
    return *codeset == '\0' || *codeset == '@';
}

/* Return whether Python would name files in UTF-8 for this environment, like the workers. */
static int
is_utf8(char *const *variables)
{
#ifdef __APPLE__
    (void)variables;
    return 1; /* whatever the locale is */
#else
    const char *locale = variable(variables, "LC_ALL");
    if (!locale || !*locale)
        locale = variable(variables, "LC_CTYPE");
    if (!locale || !*locale)
        locale = variable(variables, "LANG");
    if (!locale || !*locale || strcmp(locale, "C") == 0 || strcmp(locale, "POSIX") == 0)
        return 1; /* PEP 538 and 540 */
    const char *codeset = strchr(locale, '.');
    return is_utf8_codeset(codeset ? codeset + 1 : locale);
#endif
}

/* Return whether the socket is in a folder that only this user can use. */
static int
is_private(const char *socket_path)
{
    char folder[PATH_MAX];
    struct stat facts;
    const char *slash = strrchr(socket_path, '/');
    if (!slash || slash == socket_path || !join(folder, sizeof(folder), socket_path, ""))
        return 0;
    folder[slash - socket_path] = '\0';
    return lstat(folder, &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() && (facts.st_mode & 077) == 0;
}

static int
is_own_peer(int fd)
{
#ifdef SO_PEERCRED
    struct ucred peer;
    socklen_t size = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
#else
    uid_t uid;
    gid_t gid;
    return getpeereid(fd, &uid, &gid) == 0 && uid == geteuid();
#endif
}

/* Return a connection to a worker, or -1 with errno set. Does not wait. */
static int
connect_to(const char *path)
{
    struct sockaddr_un to;
    const size_t size = strlen(path) + 1;
    if (size > sizeof(to.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
#ifdef SOCK_CLOEXEC
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
#else
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    const int on = 1;
    if (fd >= 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        fcntl(fd, F_SETFL, O_NONBLOCK);
        setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
    }
#endif
    if (fd < 0)
        return -1;
    memset(&to, 0, sizeof(to));
    to.sun_family = AF_UNIX;
    memcpy(to.sun_path, path, size);
    if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0) {
        const int reason = errno;
        close(fd);
        errno = reason;
        return -1;
    }
    return fd;
}

/* Wait until there is something to read, at most `milliseconds`, without limit if that is negative. */
static int
wait_readable(int fd, int milliseconds)
{
    struct pollfd one = {fd, POLLIN, 0};
    int ready;
    while ((ready = poll(&one, 1, milliseconds)) < 0 && errno == EINTR)
        continue;
    return ready > 0;
}

/* Store the path of the socket of the pool for callers like this process. Return false if it does not fit. */
static int
find_socket(char *path, size_t size, const char *prefix, uint64_t kind)
{
    char ending[TAILHOOK_KIND_DIGITS + 2] = ".";
    for (size_t at = TAILHOOK_KIND_DIGITS; at; at--, kind >>= 4)
        ending[at] = "0123456789abcdef"[kind & 15];
    return join(path, size, prefix, ending);
}

/* Receive a worker's first message. Return false, with `reason` set, if the worker is for other callers or does not
   take a request now. */
static int
receive_ready(int fd, uint64_t kind, char *reason)
{
    const uint64_t identity = tailhook_caller_identity(kind); /* while the worker wakes up */
    struct tailhook_ready ready;
    if (!identity)
        return 0;
    *reason = TAILHOOK_REASON_BUSY;
    if (!wait_readable(fd, READY_TIMEOUT_MS) || recv(fd, &ready, sizeof(ready), 0) != (ssize_t)sizeof(ready))
        return 0;
    *reason = TAILHOOK_REASON_UNUSUAL;
    return ready.magic == TAILHOOK_READY_MAGIC && ready.identity == identity;
}

/* Append strings, each with its NUL. Return the number of used bytes, or 0 if the strings do not fit. */
static size_t
append_strings(char *data, size_t used, char *const *strings)
{
    for (; *strings; strings++) {
        const size_t size = strlen(*strings) + 1;
        if (size > TAILHOOK_MAX_REQUEST_BYTES - used)
            return 0;
        memcpy(data + used, *strings, size);
        used += size;
    }
    return used;
}

/* Send the request in one message. Return false if it could not be sent whole: then the worker ignores it. */
static int
send_request(int fd, int argc, char *const *argv, char *const *variables, int folder, uint64_t started)
{
    static char data[TAILHOOK_MAX_REQUEST_BYTES];
    struct tailhook_request header;
    union {
        struct cmsghdr alignment;
        char bytes[CMSG_SPACE(TAILHOOK_DESCRIPTORS * sizeof(int))];
    } control;
    const int descriptors[TAILHOOK_DESCRIPTORS] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, folder};
    size_t used = append_strings(data, sizeof(header), argv);
    if (used)
        used = append_strings(data, used, variables);
    if (!used)
        return 0;
    const mode_t mask = umask(0);
    umask(mask);
    header.magic = TAILHOOK_REQUEST_MAGIC;
    header.started_ns = started;
    header.size = (uint32_t)(used - sizeof(header));
    header.arguments = (uint32_t)argc;
    header.umask = (uint32_t)mask;
    header.parent = (int32_t)getppid();
    memcpy(data, &header, sizeof(header));

    struct iovec piece = {data, used};
    struct msghdr message;
    memset(&message, 0, sizeof(message));
    memset(&control, 0, sizeof(control));
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof(control.bytes);
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(descriptors));
    memcpy(CMSG_DATA(rights), descriptors, sizeof(descriptors));
    ssize_t sent;
    while ((sent = sendmsg(fd, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        continue;
    return sent == (ssize_t)used;
}

/* Wait for the worker's end of the request; return the exit code. */
static int
wait_for_exit_code(int fd)
{
    static const char *const STOPPED[] = {
        "tailhook: the process that answered this hook was killed. The agent may stop.", NULL};
    tailhook_exit_code code;
    ssize_t size;
    do {
        wait_readable(fd, -1);
        size = recv(fd, &code, sizeof(code), 0);
    } while (size < 0 && (errno == EINTR || errno == EAGAIN));
    if (size == (ssize_t)sizeof(code))
        return code;
    warn(STOPPED);
    return 0;
}

/* Let a worker answer. Return its exit code, or -1 if no worker took the request; `reason` is then a
   letter of os/request.h. */
static int
ask_pool(const struct installation *own, int argc, char *const *argv, char *const *variables, uint64_t started, char *reason)
{
    int code = -1;
    char path[PATH_MAX];
    *reason = TAILHOOK_REASON_UNUSUAL;
    const uint64_t kind = is_utf8(variables) ? tailhook_caller_kind() : 0;
    if (!kind || !find_socket(path, sizeof(path), own->socket_prefix, kind))
        return -1;
    *reason = TAILHOOK_REASON_NO_POOL;
    const int fd = connect_to(path);
    if (fd < 0) {
        if (errno != ENOENT && errno != ECONNREFUSED && errno != ENOTDIR)
            *reason = errno == EAGAIN ? TAILHOOK_REASON_BUSY : TAILHOOK_REASON_UNUSUAL;
        return -1;
    }
    *reason = TAILHOOK_REASON_UNUSUAL;
    if (is_private(own->socket_prefix) && is_own_peer(fd) && receive_ready(fd, kind, reason)) {
        const int folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (folder >= 0 && access(".", X_OK) == 0) {
            if (send_request(fd, argc, argv, variables, folder, started))
                code = wait_for_exit_code(fd);
        }
    }
    if (code < 0)
        close(fd);
    return code;
}
