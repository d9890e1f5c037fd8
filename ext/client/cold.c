/* The cold path: this process becomes Python with the hook's module. */

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "client/common.h"
#include "client/installation.h"

enum { MAX_ARGUMENTS = 1024, MAX_VARIABLES = 4096, MAX_CODE_BYTES = 16 << 10 };

/* The variable for the cold hook's record of its time: the client's start, one letter for why no worker answered, and
   the client's folder. */
static const char MARK[] = "TAILHOOK_CLIENT=";

/* Append the text of the hook's file to `code`, which Python runs. It gets the text, not the path: during an upgrade the
   file may be gone by the time Python opens it, and Python would exit with 2, which hosts take for a block.
   Return false if the file cannot be read. */
static int
append_file(char *code, size_t size, const char *path)
{
    const size_t used = strlen(code);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    const ssize_t more = read(fd, code + used, size - used);
    close(fd);
    return more > 0 && (size_t)more < size - used; /* the rest are NULs */
}

/* Replace this process by the cold hook. Returns only if there is none. */
static void
run_cold(const struct installation *own, const char *folder, int argc, char *const *argv, char *const *variables,
         uint64_t started, char reason)
{
    static char *command[MAX_ARGUMENTS + 8], *environment[MAX_VARIABLES + 2];
    static char code[MAX_CODE_BYTES] = "import sys\n__file__ = sys.argv.pop(1)\n";
    static char mark[sizeof(MARK) + 32 + PATH_MAX];
    char isolated[] = "-I", no_site[] = "-S", as_code[] = "-c", digits[24];
    const char *const gone[] = {"tailhook: ", access(own->interpreter, X_OK) < 0 ? own->interpreter : own->hook_entry,
        " is missing, so loops do not continue. To install the hooks again: tailhook install. ",
        "To remove them, edit the host's settings.", NULL};
    size_t count = 0, size = strlen(MARK), digit = sizeof(digits);
    static const char *const TOO_MANY[] = {"tailhook: the hook has too many arguments. The agent may stop.", NULL};
    if (!append_file(code, sizeof(code), own->hook_entry)) {
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
    command[4] = code;
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
