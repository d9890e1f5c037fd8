"""Where the pool of this installation has its files, and the client that hosts run.

An installation is one package with one interpreter. The client is copied out of the package into the private state
folder, with a file beside it that has the paths of the socket and of the cold hook. So it is still there, and can let
the agent go, when the package's environment has been removed.
"""

import posix
import sys

from tailhook import __version__, _core
from tailhook._core import fingerprint
from tailhook.stores.atomic import check_folder, make_folders, read_file, replace_file, state_folder_path
from tailhook.stores.hook_times import TIMES_FOLDER
from tailhook.stores.spool import runtime_folder

INSTALLATION_FORMAT = "tailhook-hook 1"
INSTALLATION_FILE = (
    "installation"  # beside the client: INSTALLATION_FORMAT, socket, interpreter, entry of the hook, of the pool
)
POOL_START_FILE = "pool-start"  # beside the client: the last attempt to start a pool, with what it wrote on stderr
CLIENT_FILE = "tailhook-hook"
POOLS = "pool"  # the folder in the private state folder, and in the runtime folder
MAX_SOCKET_BYTES = 103 if sys.platform == "darwin" else 107  # of sun_path, without its NUL
MAX_CORE_BYTES = 64 << 20
NOT_PRIVATE = 0o077  # mode bits

PACKAGE = __file__.removesuffix("/pool/installation.py")
HOOK_ENTRY = f"{PACKAGE}/hook/entry.py"
POOL_ENTRY = f"{PACKAGE}/pool/entry.py"


def built_client() -> str:
    """Return the path of the client in the package; a package without a platform has none."""
    return f"{PACKAGE}/pool/{CLIENT_FILE}"


def client_folder(interpreter: str) -> str:
    """Return the folder of this installation's client, whether it exists or not. Raises OSError.

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
    """Return what differs between two builds of the core."""
    return f"{fingerprint(read_file(str(_core.__file__), max_bytes=MAX_CORE_BYTES, flags=posix.O_CLOEXEC)):016x}"


def socket_path(interpreter: str, state: str) -> str:
    """Return where the pool of this installation listens: its version and its build are in the name.

    The socket's folder can only be used by this user; it is made if it is missing.

    state: the private state folder that the client is in.

    Raises OSError.
    """
    folder = f"{runtime_folder(state)}/{POOLS}"
    make_folders(folder)
    check_folder(folder)
    facts = posix.lstat(folder)
    if facts.st_mode & 0o170000 != 0o040000 or facts.st_mode & NOT_PRIVATE:
        raise OSError(f"{folder} must be a folder that only you can access (mode 0700)")
    path = f"{folder}/{installation_digest(PACKAGE, interpreter, __version__, build_id())}"
    if len(path.encode("utf-8", "surrogateescape")) > MAX_SOCKET_BYTES:
        raise OSError(f"{path}: too long for the name of a socket. Set XDG_RUNTIME_DIR to a folder with a short path")
    return path


def write_installation(interpreter: str, folder: str = "") -> tuple[str, str]:
    """Write the client and the file beside it, unless they are there already; return the paths of client and socket.

    interpreter: the real one's path.
    folder: the client's; "" for that of this installation.

    Raises FileNotFoundError if the package has no client, and OSError.
    """
    program = read_file(built_client(), flags=posix.O_CLOEXEC)
    folder = folder or client_folder(interpreter)
    socket = socket_path(interpreter, folder.rpartition(f"/{POOLS}/")[0])
    make_folders(f"{folder}/{TIMES_FOLDER}")
    check_folder(folder)
    client = f"{folder}/{CLIENT_FILE}"
    if read_if_there(client) != program:
        replace_file(client, program)
    if posix.stat(client).st_mode & 0o777 != 0o700:
        posix.chmod(client, 0o700)
    fields = (INSTALLATION_FORMAT, socket, interpreter, HOOK_ENTRY, POOL_ENTRY)
    words = "".join(f"{field}\0" for field in fields).encode("utf-8", "surrogateescape")
    if read_if_there(f"{folder}/{INSTALLATION_FILE}") != words:
        replace_file(f"{folder}/{INSTALLATION_FILE}", words)
    return client, socket


def read_if_there(path: str) -> bytes:
    """Return the bytes of a file, b"" if it is missing. Raises OSError."""
    try:
        return read_file(path)
    except FileNotFoundError:
        return b""
