/* The cold path: this process becomes Python with the hook's module. */

#ifndef TAILHOOK_CLIENT_COLD_H
#define TAILHOOK_CLIENT_COLD_H

#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "client/common.h"
#include "client/installation.h"

enum { MAX_ARGUMENTS = 1024, MAX_VARIABLES = 4096 };

/* The variable with which the cold hook can note how long it took: when the client started, one letter for why no worker
   answered, and the client's folder. */
static const char MARK[] = "TAILHOOK_CLIENT=";

/* What Python runs: the hook's file, which may be gone by the time Python opens it, during an upgrade. Given that file
   itself, Python would exit with 2, which hosts take for a block. */
static char START[] = "import posix, sys\n"
                      "__file__ = sys.argv.pop(1)\n"
                      "try:\n"
                      "    with open(__file__, 'rb') as file:\n"
                      "        code = file.read()\n"
                      "except OSError as error:\n"
                      "    try:\n"
                      "        posix.write(2, f'tailhook: {error}. The agent may stop.\\n'.encode('utf-8', 'backslashreplace'))\n"
                      "    finally:\n"
                      "        posix._exit(0)\n"
                      "exec(code)\n";

/* Replace this process by the cold hook. Returns only if there is none. */
static void
run_cold(const struct installation *own, const char *folder, int argc, char *const *argv, char *const *variables,
         uint64_t started, char reason)
{
    static char *command[MAX_ARGUMENTS + 8], *environment[MAX_VARIABLES + 2];
    static char mark[sizeof(MARK) + 32 + PATH_MAX];
    char isolated[] = "-I", no_site[] = "-S", as_code[] = "-c", digits[24];
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
    command[3] = as_code;
    command[4] = START;
    command[5] = own->hook_entry;
    for (int i = 1; i < argc; i++)
        command[5 + i] = argv[i];

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

#endif
