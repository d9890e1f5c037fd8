/* Starting a pool, for the hooks that come after this one. */

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "client/common.h"
#include "client/installation.h"
#include "os/caller.h"
#include "os/request.h"

static const char ATTEMPT_FILE[] = "pool-start"; /* beside this program: its time is the last attempt's */
static const char NOTE = '\n';                    /* written into it, so that it is not empty after an attempt */

/* Begin an attempt to start a pool: note it, and store in `attempt` the descriptor of its file. Return false, and begin
   none, if one began in the last minute, or the folder belongs to another user. Change `reason` if no pool could answer
   this process. */
static int
begin_attempt(const char *folder, int *attempt, char *reason)
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
    if (ftruncate(fd, 0) < 0 || write(fd, &NOTE, sizeof(NOTE)) != (ssize_t)sizeof(NOTE))
        goto no;
    flock(fd, LOCK_UN); /* the pool gets the same open file: otherwise it would hold the lock as long as it runs */
    *attempt = fd;
    return 1;
no:
    close(fd);
    return 0;
}

/* Start a pool in the background. Its stderr is the file `attempt`; the file is closed here. The pool gets few
   variables, because it lives longer than its first session. */
static void
spawn_pool(const struct installation *own, char *folder, char *const *variables, int attempt)
{
    static const char *const KEPT[] = {"HOME=", "XDG_STATE_HOME=", "XDG_RUNTIME_DIR=", "XDG_CONFIG_HOME=", NULL};
    char *environment[8]; /* a variable may stand there twice */
    char isolated[] = "-I", no_site[] = "-S";
    char *argv[] = {own->interpreter, isolated, no_site, own->pool_entry, folder, NULL};
    size_t count = 0;
    for (; *variables; variables++)
        for (size_t i = 0; KEPT[i] && count != sizeof(environment) / sizeof(environment[0]) - 1; i++)
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
