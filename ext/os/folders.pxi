# Checks that no other user can change a folder.
#
# Gives: nothing to other parts. For Python: folder_fault.
# Needs: nothing.
#
# Hooks call this. In Python, loading and running it took 1 % of a hook's instructions.

cdef enum:
    OS_MAX_LINKS = 40  # on the way to a folder, as on Linux (path_resolution(7))


cdef bint os_is_unmapped_user(uid_t uid):
    """Return whether `uid` stands for unknown users: this process is in a user namespace.

    There all users that the namespace does not map, root included, have one uid (user_namespaces(7)).
    """
    cdef unsigned int overflow = 0, first = 0, outside = 0, count = 0
    cdef FILE* file = fopen("/proc/sys/kernel/overflowuid", "re")
    if file is NULL:  # not Linux
        return False
    fscanf(file, "%u", &overflow)
    fclose(file)
    if uid != overflow:
        return False
    file = fopen("/proc/self/uid_map", "re")
    if file is NULL:
        return False
    fscanf(file, "%u %u %u", &first, &outside, &count)
    fclose(file)
    return not (first == 0 and outside == 0 and count == 0xFFFFFFFF)  # the map outside of all namespaces


cdef str os_describe_fault(bytes place, str fault):
    return f"{place.decode('utf-8', 'surrogateescape')} {fault}"


cdef bytes os_read_link(bytes link):
    cdef char target[4096]
    cdef Py_ssize_t size = readlink(link, target, sizeof(target))
    return target[:size] if size > 0 else b""


cdef tuple os_check_private(bytes folder):
    """Return whether the folder exists, and the fault that lets another user change it, "" for none."""
    cdef struct_stat facts
    cdef uid_t user = geteuid()
    cdef bint is_own_group = user != 0 and getegid() == user
    cdef bint is_shared = False  # whether `place` is sticky and other users may write to it
    cdef int links = 0
    cdef bytes place = b"", name, target
    cdef list names = folder.split(b"/")
    names.reverse()
    while names:
        name = names.pop()
        if name == b"" or name == b".":
            continue
        if name == b"..":
            place, is_shared = place.rpartition(b"/")[0], True
            continue
        name = place + b"/" + name
        if lstat(name, &facts):
            return False, ""
        if facts.st_uid != 0 and facts.st_uid != user and (is_shared or not os_is_unmapped_user(facts.st_uid)):
            return True, os_describe_fault(name, f"belongs to another user (uid {facts.st_uid})")
        if S_ISLNK(facts.st_mode):
            links += 1
            if links > OS_MAX_LINKS:
                return True, os_describe_fault(name, "is one of too many symbolic links")
            target = os_read_link(name)
            names += target.split(b"/")[::-1]
            if target.startswith(b"/"):
                place, is_shared = b"", False
            continue
        place, is_shared = name, facts.st_mode & S_ISVTX != 0
        # A user with a group of their own makes folders with the mode 0775 (login.defs(5), USERGROUPS_ENAB).
        if not is_shared and (
            facts.st_mode & S_IWOTH or facts.st_mode & S_IWGRP and not (is_own_group and facts.st_gid == user)
        ):
            return True, os_describe_fault(place, "can be written by other users")
    if stat(folder, &facts):
        return False, ""
    if facts.st_uid != user:
        return True, os_describe_fault(folder, f"belongs to another user (uid {facts.st_uid})")
    if facts.st_mode & (S_IWGRP | S_IWOTH):
        return True, os_describe_fault(folder, "can be written by other users")
    return True, ""


# ---- for Python ---------------------------------------------------------------

def folder_fault(bytes folder not None):
    return os_check_private(folder)
