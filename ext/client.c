/* The native client: the program that a host runs as a hook, in front of the pool of workers. See docs/pool.md.

   It hands a worker its own descriptors, arguments and environment, and waits for the exit code. It reads nothing from
   stdin, so until the request is sent it can still run the cold hook in its own place, and nothing is lost. It does so
   whenever anything is unusual. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include "os/caller.h"
#include "os/request.h"

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* macOS: SO_NOSIGPIPE */
#endif
#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

enum {
    READY_TIMEOUT_MS = 5,
    MAX_INSTALLATION_BYTES = 16 << 10,
    MAX_ARGUMENTS = 1024,
    MAX_VARIABLES = 4096
};

static const char INSTALLATION_FILE[] = "installation"; /* beside this program */
static const char ATTEMPT_FILE[] = "pool-start";        /* beside it, too: its time is that of the last attempt */
static const char FORMAT[] = "tailhook-hook 1";
/* The variable with which the cold hook can note how long it took: when the client started, one letter for why no worker
   answered, and the client's folder. */
static const char MARK[] = "TAILHOOK_CLIENT=";

/* What the file beside this program contains: NUL-terminated strings, in this order. */
struct installation {
    char *socket_prefix;
    char *interpreter;
    char *hook_entry;
    char *pool_entry;
};

/* ---- small things ---------------------------------------------------------- */

static uint64_t
now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* Write the pieces, a list that ends with NULL, as one line on stderr. The process ends after that. */
static void
warn(const char *const *pieces)
{
    char line[PATH_MAX + 512];
    size_t size = 0;
    for (; *pieces; pieces++)
        for (const char *at = *pieces; *at && size < sizeof(line) - 1; at++)
            line[size++] = (unsigned char)*at < ' ' || *at == 0x7F ? '?' : *at;
    line[size++] = '\n';
    signal(SIGPIPE, SIG_IGN); /* the host may have closed it */
    if (write(STDERR_FILENO, line, size) < 0)
        return;
}

static const char *
variable(char *const *variables, const char *name)
{
    const size_t size = strlen(name);
    for (; *variables; variables++)
        if (strncmp(*variables, name, size) == 0 && (*variables)[size] == '=')
            return *variables + size + 1;
    return NULL;
}

/* Put folder and name together in `path`, of `size` bytes. Return false if they do not fit. */
static int
join(char *path, size_t size, const char *folder, const char *name)
{
    const size_t first = strlen(folder), second = strlen(name) + 1;
    if (first + second > size)
        return 0;
    memcpy(path, folder, first);
    memcpy(path + first, name, second);
    return 1;
}

/* ---- the installation ------------------------------------------------------- */

/* Store the path of this program's folder, with the slash at its end. Return false if it is unknown.
   `program` is how it was started: hosts name it by its whole path, which is used if there is no /proc. */
static int
find_own_folder(char *folder, size_t size, const char *program)
{
#ifdef __APPLE__
    char found[PATH_MAX];
    uint32_t length = sizeof(found);
    const int is_found =
        size >= PATH_MAX && _NSGetExecutablePath(found, &length) == 0 && realpath(found, folder) != NULL;
#else
    const ssize_t length = readlink("/proc/self/exe", folder, size - 1);
    const int is_found = length > 0;
    if (is_found)
        folder[length] = '\0';
#endif
    if (!is_found && (program[0] != '/' || !join(folder, size, program, "")))
        return 0;
    char *slash = strrchr(folder, '/');
    if (!slash)
        return 0;
    slash[1] = '\0';
    return 1;
}

/* Split the file's content, which ends with a NUL. Return false if it does not have the right form. */
static int
split_installation(char *data, size_t size, struct installation *own)
{
    char *fields[5], *at = data;
    for (size_t i = 0; i != 5; i++) {
        char *end = memchr(at, '\0', (size_t)(data + size - at));
        if (!end)
            return 0;
        fields[i] = at;
        at = end + 1;
    }
    own->socket_prefix = fields[1];
    own->interpreter = fields[2];
    own->hook_entry = fields[3];
    own->pool_entry = fields[4];
    return at == data + size && strcmp(fields[0], FORMAT) == 0 && own->interpreter[0] == '/' &&
           own->hook_entry[0] == '/' && own->pool_entry[0] == '/';
}

/* Read the file beside this program. `has_streams`: stored whether stdin, stdout and stderr are open. */
static int
read_installation(const char *path, struct installation *own, int *has_streams)
{
    static char data[MAX_INSTALLATION_BYTES];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    *has_streams = fd > STDERR_FILENO;
    const ssize_t size = read(fd, data, sizeof(data));
    close(fd);
    return size > 0 && size < (ssize_t)sizeof(data) && split_installation(data, (size_t)size, own);
}

/* ---- the warm path ---------------------------------------------------------- */

/* Return whether a codeset is UTF-8, in any of the spellings that C libraries accept: utf8, UTF-8, utf-8@euro. */
static int
is_utf8_codeset(const char *codeset)
{
    for (const char *letter = "utf8"; *letter; letter++, codeset++) {
        if (*codeset == '-')
            codeset++;
        if ((*codeset | 0x20) != (*letter | 0x20)) /* lower case, and a digit as it is */
            return 0;
    }
    return *codeset == '\0' || *codeset == '@';
}

/* Return whether Python would name files in UTF-8 for this environment, as the workers do. */
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

/* Return whether the socket is in a folder that only this user can use. Cuts the path for the time of the call. */
static int
is_private(char *socket_path)
{
    struct stat facts;
    char *slash = strrchr(socket_path, '/');
    if (!slash || slash == socket_path)
        return 0;
    *slash = '\0';
    const int found = lstat(socket_path, &facts);
    *slash = '/';
    return found == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() && (facts.st_mode & 077) == 0;
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

/* Return whether a worker that is like this process takes a request now; store in `reason` why not. */
static int
is_ready(int fd, uint64_t kind, char *reason)
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

/* Append strings, each with its NUL. Return how many bytes are used then, or 0 if they do not fit. */
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

/* Print one line and exit 0, as the cold hook does on SIGINT. */
static void
end_interrupted(int number)
{
    static const char *const INTERRUPTED[] = {"tailhook: the hook was interrupted. The agent may stop.", NULL};
    (void)number;
    warn(INTERRUPTED);
    _exit(0);
}

/* Do not let Ctrl-C end this process with another exit code; if it is ignored, as with nohup(1), it stays ignored.
   Cold hooks and pools do not inherit this handler, but they inherit an ignored signal (execve(2)). */
static void
handle_interrupt(void)
{
    if (signal(SIGINT, end_interrupted) == SIG_IGN)
        signal(SIGINT, SIG_IGN);
}

/* Let a worker answer. Return its exit code, or -1 if no worker took the request; `reason` is then a
   letter of os/request.h. */
static int
ask_pool(struct installation *own, int argc, char *const *argv, char *const *variables, uint64_t started, char *reason)
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
    if (is_private(own->socket_prefix) && is_own_peer(fd) && is_ready(fd, kind, reason)) {
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

/* ---- starting a pool --------------------------------------------------------- */

/* Return whether to start a pool now: not if that was tried in the last minute, or the folder belongs to another user. If
   so, note this attempt, and store in `attempt` the descriptor of its file. Change `reason` if no pool could answer this
   process. */
static int
may_start_pool(const char *folder, int *attempt, char *reason)
{
    char path[PATH_MAX];
    struct stat facts;
    if (stat(folder, &facts) < 0 || facts.st_uid != geteuid() || !join(path, sizeof(path), folder, ATTEMPT_FILE))
        return 0;
    const int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0)
        return 0;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &facts) < 0)
        goto no;
    if ((facts.st_mode & 0777) != 0600)
        fchmod(fd, 0600); /* the umask may have masked its owner's bits */
    const time_t age = time(NULL) - facts.st_mtime;
    if (facts.st_size && age > -TAILHOOK_POOL_RETRY_S && age < TAILHOOK_POOL_RETRY_S)
        goto no;
    if (!tailhook_caller_identity(tailhook_caller_kind())) { /* without /proc; only asked for here, as it takes time */
        *reason = TAILHOOK_REASON_UNUSUAL;
        goto no;
    }
    if (ftruncate(fd, 0) < 0 || write(fd, "\n", 1) != 1)
        goto no;
    flock(fd, LOCK_UN); /* the pool gets the same open file: it would hold the lock as long as it runs */
    *attempt = fd;
    return 1;
no:
    close(fd);
    return 0;
}

/* Start a pool in the background. Its stderr is the file `attempt`, which is closed here. It gets few variables: it lives
   longer than the session that it is started in. */
static void
spawn_pool(const struct installation *own, char *folder, char *const *variables, int attempt)
{
    static const char *const KEPT[] = {"HOME=", "XDG_STATE_HOME=", "XDG_RUNTIME_DIR=", "XDG_CONFIG_HOME=", NULL};
    char *environment[8];
    char isolated[] = "-I", no_site[] = "-S";
    char *argv[] = {own->interpreter, isolated, no_site, own->pool_entry, folder, NULL};
    size_t count = 0;
    for (; *variables; variables++)
        for (size_t i = 0; KEPT[i] && count != 7; i++)
            if (strncmp(*variables, KEPT[i], strlen(KEPT[i])) == 0)
                environment[count++] = *variables;
    environment[count] = NULL;

    pid_t child;
    posix_spawnattr_t how;
    posix_spawn_file_actions_t files;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    if (!posix_spawnattr_init(&how) && !posix_spawn_file_actions_init(&files) &&
        !posix_spawnattr_setsigmask(&how, &none) && !posix_spawnattr_setsigdefault(&how, &all) &&
        !posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) &&
        !posix_spawn_file_actions_adddup2(&files, attempt, STDERR_FILENO) &&
        !posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDWR, 0) &&
        !posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_RDWR, 0))
        posix_spawn(&child, own->interpreter, &files, &how, argv, environment);
    close(attempt);
}

/* ---- the cold path ------------------------------------------------------------ */

/* Python does not start if stdin is a folder. Let it be empty then, for the cold hook and for a worker. */
static void
replace_folder_as_stdin(void)
{
    struct stat facts;
    if (fstat(STDIN_FILENO, &facts) < 0 || !S_ISDIR(facts.st_mode))
        return;
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0)
        dup2(nothing, STDIN_FILENO);
}

/* Replace this process by the cold hook. Returns only if there is none. */
static void
run_cold(const struct installation *own, const char *folder, int argc, char *const *argv, char *const *variables,
         uint64_t started, char reason)
{
    static char *command[MAX_ARGUMENTS + 8], *environment[MAX_VARIABLES + 2];
    static char mark[sizeof(MARK) + 32 + PATH_MAX];
    char isolated[] = "-I", no_site[] = "-S", digits[24];
    const char *const gone[] = {"tailhook: ", access(own->interpreter, X_OK) < 0 ? own->interpreter : own->hook_entry,
        " is missing, so loops do not continue. To install the hooks again: tailhook install. ",
        "To remove them, edit the host's settings.", NULL};
    size_t count = 0, size = strlen(MARK), digit = sizeof(digits);
    static const char *const TOO_MANY[] = {"tailhook: the hook has too many arguments. The agent may stop.", NULL};
    if (access(own->hook_entry, R_OK) < 0) {
        warn(gone);
        return;
    }
    if (argc > MAX_ARGUMENTS) {
        warn(TOO_MANY);
        return;
    }
    command[0] = own->interpreter;
    command[1] = isolated;
    command[2] = no_site;
    command[3] = own->hook_entry;
    for (int i = 1; i < argc; i++)
        command[3 + i] = argv[i];

    memcpy(mark, MARK, size);
    do
        digits[--digit] = (char)('0' + started % 10);
    while (started /= 10);
    memcpy(mark + size, digits + digit, sizeof(digits) - digit);
    size += sizeof(digits) - digit;
    mark[size++] = reason;
    const int has_mark = join(mark + size, sizeof(mark) - size, folder, "");
    char *const *next = variables;
    for (; *next && count != MAX_VARIABLES; next++)
        if (strncmp(*next, MARK, strlen(MARK)) != 0)
            environment[count++] = *next;
    if (has_mark && !*next) {
        environment[count] = mark;
        variables = environment;
    }
    execve(own->interpreter, command, variables);
    warn(gone);
}

int
main(int argc, char **argv, char **variables)
{
    static const char *const NO_ARGUMENTS[] = {
        "tailhook: the hook's program was started without its first argument, \"hook\": this host does not pass on ",
        "the arguments of hooks. Nothing was decided.", NULL};
    static const char *const BROKEN[] = {
        "tailhook: the file \"installation\" beside the hook's program cannot be read or is damaged, so loops do not continue. ",
        "To install the hooks again: tailhook install", NULL};
    char folder[PATH_MAX], path[PATH_MAX], reason = TAILHOOK_REASON_OFF;
    struct installation own;
    int has_streams = 0;
    const uint64_t started = now_ns();
    handle_interrupt();
    if (argc < 2 || strcmp(argv[1], "hook") != 0) {
        warn(NO_ARGUMENTS);
        return 0;
    }
    if (!find_own_folder(folder, sizeof(folder), argv[0]) || !join(path, sizeof(path), folder, INSTALLATION_FILE) ||
        !read_installation(path, &own, &has_streams)) {
        warn(BROKEN);
        return 0;
    }
    argc--;
    argv++;
    replace_folder_as_stdin();
    const char *off = variable(variables, "TAILHOOK_NO_POOL");
    const int is_off = off && strcmp(off, "1") == 0;
    if (!is_off && !(has_streams && *own.socket_prefix))
        reason = TAILHOOK_REASON_UNUSUAL;
    else if (!is_off) {
        const int code = ask_pool(&own, argc, argv, variables, started, &reason);
        if (code >= 0)
            _exit(code);
        int attempt;
        if (reason == TAILHOOK_REASON_NO_POOL && may_start_pool(folder, &attempt, &reason))
            spawn_pool(&own, folder, variables, attempt);
    }
    run_cold(&own, folder, argc, argv, variables, started, reason);
    return 0;
}
