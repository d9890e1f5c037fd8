/* The file beside the client: it names the programs to start and the socket of the workers. */

#ifndef TAILHOOK_CLIENT_INSTALLATION_H
#define TAILHOOK_CLIENT_INSTALLATION_H

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include "client/common.h"

enum { MAX_INSTALLATION_BYTES = 16 << 10 };

static const char INSTALLATION_FILE[] = "installation"; /* beside this program */
static const char FORMAT[] = "tailhook-hook 1";

/* What the file contains: NUL-terminated strings, in this order. */
struct installation {
    char *socket_prefix;
    char *interpreter;
    char *hook_entry;
    char *pool_entry;
};

/* Store the path of this program's folder, with the slash at its end. Return false if it is unknown.
   `program`: the first word of its argv. Hosts name it by its whole path; this path is used if there is no /proc. */
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

#endif
