/* The native client: a host runs it as a hook, in front of the pool of workers. See docs/pool.md.

   It hands a worker its own descriptors, arguments and environment, and waits for the exit code. It reads nothing from
   stdin, so until the request is sent it can still run the cold hook in its own place, and nothing is lost. It does so
   whenever anything is unusual. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/common.h"
#include "client/installation.h"
#include "os/request.h"

/* Its parts. This is one translation unit, so that the compiler can inline across them. */
#include "client/cold.c"
#include "client/start.c"
#include "client/warm.c"

/* Print one line and exit 0, as the cold hook does on SIGINT. */
static void
end_interrupted(int number)
{
    static const char *const INTERRUPTED[] = {"tailhook: the hook was interrupted. The agent may stop.", NULL};
    (void)number;
    warn(INTERRUPTED);
    _exit(0);
}

/* Do not let Ctrl-C end this process with another exit code. If SIGINT is ignored, as with nohup(1), it stays ignored.
   Cold hooks and pools do not inherit this handler, but they inherit an ignored signal (execve(2)). */
static void
handle_interrupt(void)
{
    if (signal(SIGINT, end_interrupted) == SIG_IGN)
        signal(SIGINT, SIG_IGN);
}

/* Python does not start if stdin is a folder. Then make stdin empty, for the cold hook and for a worker. */
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
        if (reason == TAILHOOK_REASON_NO_POOL && begin_attempt(folder, &attempt, &reason))
            spawn_pool(&own, folder, variables, attempt);
    }
    run_cold(&own, folder, argc, argv, variables, started, reason);
    return 0;
}
