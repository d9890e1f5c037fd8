"""The files of this installation's pool, and the client that hosts run.

An installation is one package with one interpreter. The client is copied out of the package into the private state
folder. A file beside it has the paths of the socket and of the cold hook. So if the package's environment is removed,
the client is still there and lets the agent stop.
"""

import posix
import struct
import sys

from tailhook import __version__, _core
from tailhook._core import KIND_DIGITS, READY_MAGIC, caller_identity, fingerprint, flock_within
from tailhook.stores.atomic import (
    SAFE,
    check_folder,
    make_folders,
    read_file,
    remove_file,
    replace_file,
    state_folder_path,
)
from tailhook.stores.hook_times import TIMES_FOLDER
from tailhook.stores.spool import runtime_folder

INSTALLATION_FORMAT = "tailhook-hook 1"
# Beside the client: INSTALLATION_FORMAT, the prefix of the sockets' paths, interpreter, entries of hook and pool.
INSTALLATION_FILE = "installation"
INSTALLATION_FIELDS = 5
POOL_START_FILE = "pool-start"  # beside the client: the last attempt to start a pool, with its stderr
POOL_LOCK_FILE = "pool-lock"  # beside the client: locked while a pool writes these files, or while they are removed
# After its start, a pool writes this line into POOL_START_FILE, in place of a reason for a failed start.
START_NOTE = "started"
STOP_NOTE = "stopped"  # `tailhook pool stop` adds this line: a pool that a hook has just started leaves
ATTEMPT = b"\n"  # a client writes this into POOL_START_FILE; an empty file would not count as an attempt
LEAVE_NOTE = "so the pool leaves"  # the end of a pool's line there if its workers fail
CLIENT_FILE = "tailhook-hook"
POOLS = "pool"  # the folder in the private state folder, and in the runtime folder
MAX_SOCKET_BYTES = 103 if sys.platform == "darwin" else 107  # of sun_path, without its NUL
MAX_CORE_BYTES = 64 << 20
NOT_PRIVATE = 0o077  # mode bits
READY_LAYOUT = struct.Struct("=QQ")  # magic and identity, as in `struct tailhook_ready` (ext/os/request.h)

PACKAGE = __file__.removesuffix("/pool/installation.py")
HOOK_ENTRY = f"{PACKAGE}/hook/entry.py"
POOL_ENTRY = f"{PACKAGE}/pool/entry.py"


def built_client() -> str:
    """Return the path of the client in the package. A pure Python package has none."""
    return f"{PACKAGE}/pool/{CLIENT_FILE}"


def client_folder(interpreter: str) -> str:
    """Return the folder of this installation's client. It may not exist. Raises OSError.

    interpreter: the real one's path.
    """
    return f"{state_folder_path()}/{POOLS}/{installation_digest(PACKAGE, interpreter)}"


def client_folder_of(client: str) -> str:
    """Return the folder of a client, by its path."""
    return client.rpartition("/")[0]


def installation_digest(*words: str) -> str:
    """Return a file name of 16 characters for some words."""
    return f"{fingerprint(chr(0).join(words).encode('utf-8', 'surrogateescape')):016x}"


def real_interpreter() -> str:
    """Return the interpreter's own file: a virtual environment's link or a version manager's shim starts slower."""
    import os

    return os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)


def build_id() -> str:
    """Return a hash of the core's file: it differs between two builds."""
    return f"{fingerprint(read_file(str(_core.__file__), max_bytes=MAX_CORE_BYTES, flags=posix.O_CLOEXEC)):016x}"


def socket_prefix(interpreter: str, state: str, known: str) -> str:
    """Return the prefix of the paths of this installation's sockets. It contains the version and the build.

    Makes their folder if it is missing; only this user can use it.

    state: the private state folder with the client.
    known: the prefix so far, or "". If its folder can be used, it stays: otherwise callers with different values of
    XDG_RUNTIME_DIR would end each other's pools.

    Raises OSError.
    """
    digest = installation_digest(PACKAGE, interpreter, __version__, build_id())
    folder, _, known_digest = known.rpartition("/")
    if known_digest == digest and not folder_fault_of(folder):
        return known
    folder = f"{runtime_folder(state)}/{POOLS}"
    prefix = f"{folder}/{digest}"
    if len(socket_of(prefix, 0).encode("utf-8", "surrogateescape")) > MAX_SOCKET_BYTES:
        raise OSError(f"{prefix}: too long for the name of a socket. Set XDG_RUNTIME_DIR to a folder with a short path")
    check_folder(folder)  # checked before a socket is made in another user's folder
    make_folders(folder)
    if fault := folder_fault_of(folder):
        raise OSError(fault)
    return prefix


def folder_fault_of(folder: str) -> str:
    """Return why a folder cannot have the sockets, "" if it can."""
    try:
        check_folder(folder)
        facts = posix.lstat(folder)
    except OSError as error:
        return str(error)
    if facts.st_mode & 0o170000 != 0o040000 or facts.st_mode & NOT_PRIVATE:
        return f"{folder} must be a folder that only you can access (mode 0700)"
    return ""


def ready_message() -> bytes:
    """Return a worker's first message to callers like this process (docs/pool.md)."""
    return READY_LAYOUT.pack(READY_MAGIC, caller_identity())


def socket_of(prefix: str, kind: int) -> str:
    """Return the socket of the pool for one kind of callers: see `ext/os/request.h`.

    prefix: of the paths of the installation's sockets.
    kind: `caller_kind` of these callers.
    """
    return f"{prefix}.{kind & ((1 << 4 * KIND_DIGITS) - 1):0{KIND_DIGITS}x}"


def sockets_of(prefix: str) -> list[str]:
    """Return an installation's existing sockets, for all kinds of callers."""
    folder, _, start = prefix.rpartition("/")
    try:
        return [f"{folder}/{found}" for found in sorted(posix.listdir(folder)) if found.startswith(f"{start}.")]
    except OSError:
        return []


def remove_dead_sockets(prefix: str) -> None:
    """Remove an installation's sockets without a listener: a killed pool leaves them. Raises OSError."""
    for path in sockets_of(prefix):
        if not is_served(path):
            remove_file(path)


def remove_sockets_folder(folder: str) -> None:
    """Remove a folder of sockets if it is empty, and its parent too, unless the daemon's socket is in that."""
    try:
        posix.rmdir(folder)
        posix.rmdir(folder.rpartition("/")[0])
    except OSError:
        pass


def is_served(path: str) -> bool:
    """Return whether a pool listens on a socket."""
    import socket  # not at the start: `tailhook hook` does not need it

    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    probe.settimeout(0)
    try:
        probe.connect(path)
    except BlockingIOError:  # its backlog is full
        return True
    except OSError:
        return False
    finally:
        probe.close()
    return True


def write_installation(interpreter: str, folder: str = "", keeps_socket: bool = False) -> tuple[str, str]:
    """Write the client and the file beside it, if they are missing or outdated.

    Makes the folder of times, sets the client's mode, and removes dead sockets of the old prefix. Returns the client's
    path and the prefix of the sockets' paths.

    interpreter: the real one's path.
    folder: the client's; "" for that of this installation.
    keeps_socket: whether the sockets stay in their old place if possible.

    Raises FileNotFoundError if the package has no client, and OSError.
    """
    program = read_file(built_client(), flags=posix.O_CLOEXEC)
    folder = folder or client_folder(interpreter)
    known = known_socket_prefix(folder)
    prefix = socket_prefix(interpreter, folder.rpartition(f"/{POOLS}/")[0], known if keeps_socket else "")
    make_folders(f"{folder}/{TIMES_FOLDER}")
    check_folder(folder)
    client = f"{folder}/{CLIENT_FILE}"
    if read_if_there(client) != program:
        replace_file(client, program)
    if posix.stat(client).st_mode & 0o777 != 0o700:
        posix.chmod(client, 0o700)
    fields = (INSTALLATION_FORMAT, prefix, interpreter, HOOK_ENTRY, POOL_ENTRY)
    words = "".join(f"{field}\0" for field in fields).encode("utf-8", "surrogateescape")
    if read_if_there(f"{folder}/{INSTALLATION_FILE}") != words:
        replace_file(f"{folder}/{INSTALLATION_FILE}", words)
    if known not in ("", prefix):
        remove_dead_sockets(known)
        if known.rpartition("/")[0] != prefix.rpartition("/")[0]:
            remove_sockets_folder(known.rpartition("/")[0])
    return client, prefix


def lock_installation(folder: str, seconds: float) -> int:
    """Lock the installation: no pool starts, and the client is not removed.

    Returns a descriptor that holds the lock. Close it to unlock.

    folder: the client's.
    seconds: how long to wait if another process holds the lock.

    Raises FileNotFoundError if the folder is missing or was removed meanwhile, TimeoutError, and OSError.
    """
    path = f"{folder}/{POOL_LOCK_FILE}"
    lock = posix.open(path, posix.O_RDWR | posix.O_CREAT | SAFE, 0o600)
    try:
        posix.fchmod(lock, 0o600)  # the umask may have masked its owner's bits
        if not flock_within(lock, seconds):
            raise TimeoutError(f"{path}: another pool is being started, or the client is being removed")
        if posix.stat(path).st_ino != posix.fstat(lock).st_ino:
            raise FileNotFoundError(f"{path} was removed meanwhile")
    except BaseException:
        posix.close(lock)
        raise
    return lock


def known_socket_prefix(folder: str) -> str:
    """Return the prefix of the sockets' paths in the file beside a client, "" if it has none. Raises OSError.

    folder: the client's.
    """
    fields = read_if_there(f"{folder}/{INSTALLATION_FILE}").decode("utf-8", "surrogateescape").split("\0")
    return fields[1] if len(fields) > 1 else ""


def read_if_there(path: str) -> bytes:
    """Return the bytes of a file, b"" if it is missing. Raises OSError."""
    try:
        return read_file(path)
    except FileNotFoundError:
        return b""
