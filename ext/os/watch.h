/* Notices changes in folders without looking at them again and again: inotify(7) on Linux, nothing elsewhere. */

#ifndef TAILHOOK_WATCH_H
#define TAILHOOK_WATCH_H

#ifdef __linux__
#include <sys/inotify.h>
#endif

/* Return a descriptor that is readable when something changes, or -1 if the system has none. */
static inline int
tailhook_new_watch(void)
{
#ifdef __linux__
    return inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
#else
    return -1;
#endif
}

/* Watch the files of a folder: made, removed, renamed, written, and the folder itself. Return -1 if that fails. */
static inline int
tailhook_watch_folder(int fd, const char *folder)
{
#ifdef __linux__
    return inotify_add_watch(fd, folder,
                             IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF |
                                 IN_MOVE_SELF | IN_ONLYDIR);
#else
    (void)fd;
    (void)folder;
    return -1;
#endif
}

#endif
