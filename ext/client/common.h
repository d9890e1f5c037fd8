/* Shared by all parts of the client: the clock, a line on stderr, the environment, paths. */

#ifndef TAILHOOK_CLIENT_COMMON_H
#define TAILHOOK_CLIENT_COMMON_H

#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t
now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* Write the pieces as one line on stderr; NULL ends their list. The process ends after that. */
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

#endif
