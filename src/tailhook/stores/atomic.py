"""Files that others see whole or not at all: opening, locking, saving; and the private state folder.

Nothing here follows a symbolic link among a project's own files: a clone could point them anywhere.
"""

import posix
import sys

from tailhook._core import fingerprint, flock_within, folder_fault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_READ_FILE_BYTES = 16 << 20  # bytes of a file to read whole; a clone may bring files of any size
TOO_LARGE = 27  # EFBIG
IS_LINK = 40 if sys.platform == "linux" else 62  # ELOOP: the file is a symbolic link
READ_BYTES = 1 << 16  # bytes to read at a time; a larger buffer would be mapped and unmapped
LOCK_SECONDS = 2.0  # for a lock; then the hook lets the agent stop
PRIVATE = 0o700  # the mode of new folders
NOT_FOLLOWED = "a symbolic link, which is not followed"
# No link is followed, and opening a FIFO does not wait for its other end.
SAFE = posix.O_NOFOLLOW | posix.O_CLOEXEC | posix.O_NONBLOCK
FOLDER = posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC


class Lock:
    """An exclusive `flock` on a file, as a context manager. Creates the file if it is missing.

    path: of the file, below `folder` if that is given.
    folder: a descriptor.
    seconds: how long to wait.

    Raises TimeoutError if another process held the lock until then, otherwise OSError if the file cannot be opened.
    """

    __slots__ = ("fd", "folder", "path", "seconds")

    def __init__(self, path: str, folder: int | None = None, seconds: float = LOCK_SECONDS) -> None:
        self.path = path
        self.folder = folder
        self.seconds = seconds

    def __enter__(self) -> "Lock":
        self.fd = posix.open(self.path, posix.O_RDWR | posix.O_CREAT | SAFE, 0o666, dir_fd=self.folder)
        try:
            if not flock_within(self.fd, self.seconds):
                raise TimeoutError(f"{self.path}: locked by another process for {self.seconds:g} s")
        except BaseException as error:
            posix.close(self.fd)
            if isinstance(error, OSError) and error.errno:
                error.filename = self.path
            raise
        return self

    def __exit__(self, *_: object) -> None:
        posix.close(self.fd)


# ---- the private state folder ------------------------------------------------


checked = ""  # the state folder, after this process has found it safe


def state_folder() -> str:
    """Return the private folder for run-time files, `$XDG_STATE_HOME/tailhook`; make it, mode 0700, if it is missing.

    Raises the errors of `state_folder_path`, and OSError if the folder cannot be made.
    """
    folder = state_folder_path()
    make_folders(folder)
    if folder != checked:
        check_folder(folder)  # another user may have been faster
    return folder


def state_folder_path() -> str:
    """Return the path of the private state folder. If it exists, check it, once in a process.

    Raises OSError if another user could change the folder, or if neither XDG_STATE_HOME nor HOME is an absolute path.
    """
    global checked
    base = posix.environ.get(b"XDG_STATE_HOME", b"").decode("utf-8", "surrogateescape")
    if not base.startswith("/"):
        home = posix.environ.get(b"HOME", b"").decode("utf-8", "surrogateescape")
        if not home.startswith("/"):
            raise OSError("no private state folder: neither XDG_STATE_HOME nor HOME is an absolute path")
        base = f"{home}/.local/state"
    folder = f"{base}/tailhook"
    if folder != checked and check_folder(folder):
        checked = folder
    return folder


def forget_folder() -> None:
    """Forget the check of the state folder: the process answers another hook."""
    global checked
    checked = ""


def check_folder(folder: str) -> bool:
    """Return whether a private folder exists. Raises OSError if another user could change it: see `folder_fault`."""
    exists, fault = folder_fault(folder.encode("utf-8", "surrogateescape"))
    if fault:
        place, is_open, _ = fault.rpartition(" can be written by other users")
        advice = "Set XDG_STATE_HOME and XDG_RUNTIME_DIR to folders that only you can write to"
        if is_open:
            advice = f"Forbid that (chmod go-w {place}), or s{advice[1:]}"
        elif posix.geteuid() == 0:
            advice = f"If you used sudo, run the command without it. {advice}"
        unused = "it" if fault.startswith(f"{folder} ") else folder
        raise OSError(f"{fault}, so {unused} is not used. {advice}")
    return exists


def make_folders(path: str) -> None:
    """Make `path` and its missing parents, each with mode 0700. Existing folders are fine, even new ones."""
    try:
        make_folder(path)
    except FileNotFoundError:
        make_folders(path.rpartition("/")[0])
        make_folder(path)


def make_folder(path: str) -> None:
    """Make one folder, mode 0700. An existing one is fine."""
    try:
        posix.mkdir(path, PRIVATE)
    except FileExistsError:
        pass


def private_file(folder: int, name: str, ending: str) -> str:
    """Return the path of the private file that belongs to the state file `name`; make the private state folder.

    folder: the open folder of the state file. Its device and inode are in the path, so that all spellings of a
    project's path lead to one file.  ending: ".lock", or that of another private file.  Raises OSError.
    """
    facts = posix.fstat(folder)
    digest = fingerprint(name.encode("utf-8", "surrogateescape"))
    return f"{state_folder()}/{name[-40:]}-{facts.st_dev:x}-{facts.st_ino:x}-{digest:016x}{ending}"


# ---- reading and replacing ---------------------------------------------------


def open_folder(folder: str, *names: str) -> int:
    """Open folder/names… and return its descriptor. No name may be a symbolic link; `folder` itself may be.

    Raises OSError: FileNotFoundError, NotADirectoryError, or `errno` IS_LINK for a link.
    """
    fd = posix.open(folder, FOLDER)
    for name in names:
        try:
            below = posix.open(name, FOLDER | posix.O_NOFOLLOW, dir_fd=fd)
        except OSError as error:
            error.filename = "/".join((folder, *names))
            if isinstance(error, NotADirectoryError) and old_status(name, fd) is None:
                raise OSError(IS_LINK, NOT_FOLLOWED, error.filename) from None
            raise
        finally:
            posix.close(fd)
        fd = below
    return fd


def read_file(
    name: str,
    folder: int | None = None,
    flags: int = SAFE,
    max_bytes: int = MAX_READ_FILE_BYTES,
    forbidden: int | None = None,
) -> bytes:
    """Return the bytes of a file.

    name: its path, below the descriptor `folder` if one is given.
    max_bytes: a larger file is refused.
    forbidden: if given, the file must belong to this user, and its mode must have none of these bits.

    Raises OSError, also for a link and for a file that is too large (`errno` TOO_LARGE). Raises PermissionError if
    other users may have changed or read the file.
    """
    fd = posix.open(name, posix.O_RDONLY | flags, dir_fd=folder)
    try:
        facts = posix.fstat(fd)
        if facts.st_size > max_bytes:
            limit = f"{max_bytes >> 20} MiB" if max_bytes >= 1 << 20 else f"{max_bytes >> 10} KiB"
            raise OSError(TOO_LARGE, f"the file is larger than {limit}", name)
        if forbidden is not None and facts.st_uid != posix.geteuid():
            raise PermissionError(f"{name} belongs to another user (uid {facts.st_uid})")
        if forbidden is not None and facts.st_mode & forbidden:
            raise PermissionError(f"{name} can be used by other users (mode {facts.st_mode & 0o777:04o})")
        pieces = [posix.read(fd, READ_BYTES)]
        while pieces[-1]:
            pieces.append(posix.read(fd, READ_BYTES))
        return b"".join(pieces)
    except OSError as error:
        if error.errno:
            error.filename = name  # the error of a failed read names no file
        raise
    finally:
        posix.close(fd)


def stamp_of(facts: posix.stat_result) -> tuple[int, int, int]:
    """Return facts of a file that change whenever it is written or replaced."""
    return facts.st_mtime_ns, facts.st_size, facts.st_ino


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data`, in one write if the system allows it. Raises OSError."""
    written = posix.write(fd, data)
    while written < len(data):
        written += posix.write(fd, data[written:])


def replace_file(name: str, data: bytes, folder: int | None = None) -> None:
    """Put `data` in place of the file `name`; see `replace_pieces`."""
    replace_pieces(name, (data,), folder)


def replace_pieces(name: str, pieces: "Iterable[bytes]", folder: int | None = None) -> None:
    """Put the pieces, joined, in place of the file `name` in one step; its mode is kept, and its owner if root writes.

    A concurrent reader sees the old or the new bytes. A link is replaced by a new file.
    Raises OSError; the old file is then unchanged.
    """
    draft = f"{name}.{posix.getpid()}.tmp"
    try:
        old = old_status(name, folder)
        fd = posix.open(draft, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | SAFE, 0o600, dir_fd=folder)
    except OSError as error:
        error.filename = name
        raise
    try:
        try:
            for piece in pieces:
                write_all(fd, piece)
            if old is not None:
                keep_owner(fd, old)
                posix.fchmod(fd, old.st_mode & 0o7777)
            sync(fd)
        except OSError as error:
            error.filename = name
            raise
        finally:
            posix.close(fd)
        posix.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        try:
            posix.unlink(draft, dir_fd=folder)
        except FileNotFoundError:
            pass  # a signal came when it was in place
        raise
    if folder is not None:
        sync(folder)


def old_status(name: str, folder: int | None) -> "posix.stat_result | None":
    """Return the status of a file; None if it is missing or a link: the mode of a link has no meaning."""
    try:
        status = posix.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        return None
    return None if status.st_mode & 0o170000 == 0o120000 else status


def keep_owner(fd: int, old: "posix.stat_result") -> None:
    """Give a file the owner and the group of the old one, if this process is allowed to: only root is.

    Otherwise the person could no longer read a file that root has changed.
    """
    if posix.geteuid() == 0 and (old.st_uid or old.st_gid):
        try:
            posix.fchown(fd, old.st_uid, old.st_gid)
        except OSError:  # an owner outside of this user namespace
            pass


def sync(fd: int) -> None:
    """Call fsync if TAILHOOK_FSYNC=1."""
    if posix.environ.get(b"TAILHOOK_FSYNC") == b"1":
        posix.fsync(fd)


def remove_file(name: str, folder: int | None = None) -> None:
    """Remove a file. A missing one is fine."""
    try:
        posix.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass
