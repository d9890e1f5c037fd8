/* The facts about a process that must equal those of a hook's caller to answer in its place: see docs/pool.md. The
   native client and the pool's workers compare them. */

#ifndef TAILHOOK_CALLER_H
#define TAILHOOK_CALLER_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

enum {
    TAILHOOK_MAX_GROUPS = 256,
    TAILHOOK_MIN_FILES = 64 /* descriptors that a hook may have open; it needs fewer */
};

/* Return the FNV-1a hash of some bytes. It continues the hash of earlier bytes. */
static inline uint64_t
tailhook_hash(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)data;
    for (size_t i = 0; i != size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001B3ULL;
    return hash;
}

/* Add the device and the inode of a file to a hash. Return false if the file is missing. */
static inline int
tailhook_hash_file(uint64_t *hash, const char *path)
{
    struct stat facts;
    if (stat(path, &facts) < 0)
        return 0;
    const uint64_t numbers[2] = {(uint64_t)facts.st_dev, (uint64_t)facts.st_ino};
    *hash = tailhook_hash(*hash, numbers, sizeof(numbers));
    return 1;
}

#ifdef __linux__
/* Add the target of a link to a hash. The target of a namespace's link contains its number. Return false if the link is
   missing. */
static inline int
tailhook_hash_link(uint64_t *hash, const char *path)
{
    char target[64];
    const ssize_t size = readlink(path, target, sizeof(target)); /* takes half as long as stat(2) */
    if (size <= 0)
        return 0;
    *hash = tailhook_hash(*hash, target, (size_t)size);
    return 1;
}

/* Add the process's label in a security module, such as AppArmor or SELinux, to a hash. Most processes have none. */
static inline uint64_t
tailhook_hash_label(uint64_t hash)
{
    char label[512];
    const int fd = open("/proc/self/attr/current", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return hash;
    const ssize_t size = read(fd, label, sizeof(label));
    close(fd);
    return size > 0 ? tailhook_hash(hash, label, (size_t)size) : hash;
}
#endif

/* Return whether no resource limit is set that could make a worker behave unlike the cold hook. */
static inline int
tailhook_has_usual_limits(void)
{
    const int unlimited[] = {RLIMIT_FSIZE, RLIMIT_DATA, RLIMIT_CPU, RLIMIT_AS};
    struct rlimit limit;
    for (size_t i = 0; i != sizeof(unlimited) / sizeof(*unlimited); i++)
        if (getrlimit(unlimited[i], &limit) < 0 || limit.rlim_cur != RLIM_INFINITY)
            return 0;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= TAILHOOK_MIN_FILES;
}

/* Return a hash of facts that decide which files a process finds and may use, as far as the system reports them
   quickly: users, groups, nice value, root folder, seccomp mode, `no_new_privs` and capabilities. Return 0 if a limit
   is set, or if the facts are unknown. */
static inline uint64_t
tailhook_caller_kind(void)
{
    gid_t groups[TAILHOOK_MAX_GROUPS];
    const uid_t users[2] = {getuid(), geteuid()};
    const gid_t own_groups[2] = {getgid(), getegid()};
    const int count = getgroups(TAILHOOK_MAX_GROUPS, groups);
    uint64_t hash = 0xCBF29CE484222325ULL;
    if (count < 0 || !tailhook_has_usual_limits())
        return 0;
    hash = tailhook_hash(hash, users, sizeof(users));
    hash = tailhook_hash(hash, own_groups, sizeof(own_groups));
    hash = tailhook_hash(hash, groups, (size_t)count * sizeof(*groups));
    const int nice = getpriority(PRIO_PROCESS, 0);
    hash = tailhook_hash(hash, &nice, sizeof(nice));
    if (!tailhook_hash_file(&hash, "/"))
        return 0;
#ifdef __linux__
    const int modes[2] = {prctl(PR_GET_SECCOMP, 0, 0, 0, 0), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)};
    hash = tailhook_hash(hash, modes, sizeof(modes));
    struct __user_cap_header_struct version = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct capabilities[_LINUX_CAPABILITY_U32S_3] = {{0, 0, 0}};
    if (syscall(SYS_capget, &version, capabilities) < 0)
        return 0;
    hash = tailhook_hash(hash, capabilities, sizeof(capabilities));
#endif
    return hash ? hash : 1;
}

/* Add the process's namespaces and its label to the hash of tailhook_caller_kind. Return 0 if they are unknown. In a
   new process this takes 60 microseconds: /proc makes these files on request. */
static inline uint64_t
tailhook_caller_identity(uint64_t kind)
{
    uint64_t hash = kind;
    if (!kind)
        return 0;
#ifdef __linux__
    if (!tailhook_hash_link(&hash, "/proc/self/ns/mnt") || !tailhook_hash_link(&hash, "/proc/self/ns/pid") ||
        !tailhook_hash_link(&hash, "/proc/self/ns/user") || !tailhook_hash_link(&hash, "/proc/self/ns/uts"))
        return 0;
    hash = tailhook_hash_label(hash);
#endif
    return hash ? hash : 1;
}

#endif
