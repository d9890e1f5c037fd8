"""A state in a JSON file that other programs read too: finds, reads, edits and indents it."""

import posix

from tailhook._core import JsonIndenter, edit_json, read_json_columns, write_json
from tailhook.stores.atomic import (
    SAFE,
    TOO_LARGE,
    Lock,
    old_status,
    open_folder,
    private_file,
    read_file,
    replace_pieces,
    stamp_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    Columns = tuple[tuple[str, ...], ...]

BOM = b"\xef\xbb\xbf"
PLACEHOLDER = b'"(the rows of the array)"'  # replaces the array's rows while the rest of the file is edited
ROWS_PIECE_BYTES = 64 << 10  # bytes to lay out at a time
MAX_FILE_BYTES = 64 << 20  # a larger file is refused: a clone may bring one of any size


class JsonFile:
    """A state in a JSON file: reads it, edits it, and notices changes by other processes.

    path: the file's absolute path.
    folder: a descriptor of its folder; it is duplicated.
    name: the file's name in that folder.

    Raises OSError if the file does not exist.
    """

    __slots__ = ("folder", "name", "path", "read_from", "span", "stamp")

    def __init__(self, path: str, folder: int, name: str) -> None:
        self.path = path
        self.folder = posix.dup(folder)
        self.name = name
        self.read_from = -1  # stays open, so that a replacing file cannot get the same inode
        self.stamp = self.stamp_now()
        self.span: tuple[int, int] | None = None  # of the array, in the file

    def __del__(self) -> None:
        posix.close(self.folder)
        if self.read_from >= 0:
            posix.close(self.read_from)

    def private_file(self, ending: str) -> str:
        """Return the path of a private file that belongs to this one. Raises OSError."""
        return private_file(self.folder, self.name, ending)

    def lock(self) -> Lock:
        """Return the lock to hold from `has_changed` to `edit`."""
        return Lock(self.private_file(".lock"))

    def has_changed(self) -> bool:
        """Return whether the file was written or replaced since the last reading. Raises OSError."""
        return self.stamp_now() != self.stamp

    def stamp_now(self) -> "tuple[int, int, int]":
        """Return facts of the file that change whenever it is written or replaced."""
        return stamp_of(posix.stat(self.name, dir_fd=self.folder, follow_symlinks=False))

    def columns(self, array: str, choose: "Callable[[dict[str, Any]], Columns]") -> "tuple[dict[str, Any], Any]":
        """Return the object in the file, and one of its members as columns (`read_json_columns`).

        Raises OSError, also if the file has more than MAX_FILE_BYTES (`errno` TOO_LARGE), and ValueError if it is not
        such an object.
        """
        if self.read_from >= 0:
            posix.close(self.read_from)
            self.read_from = -1
        self.stamp = self.stamp_now()
        self.read_from = self.open()
        if posix.fstat(self.read_from).st_size > MAX_FILE_BYTES:
            raise OSError(TOO_LARGE, f"the file is larger than {MAX_FILE_BYTES >> 20} MiB", self.path)
        value, columns, self.span = read_json_columns(self.read_from, array, choose)
        return value, columns

    def data(self) -> bytes:
        """Return the file's bytes. Raises OSError."""
        return read_file(self.name, self.folder, max_bytes=MAX_FILE_BYTES)

    def edit(self, edits: "Sequence[tuple[tuple[str, ...], object]]") -> None:
        """Set values outside the array of `columns`, lay the text out with two spaces, and replace the file.

        Only under the lock, and after `columns`. Raises OSError, also if a process without the lock has written to the
        file, or if the container of an edited value is missing.
        """
        fd = self.open()
        try:
            facts = posix.fstat(fd)
            if stamp_of(facts) != self.stamp:
                raise OSError("the file has changed since it was read")
            start, end = self.span or (0, 0)
            before, after = posix.pread(fd, start, 0), posix.pread(fd, facts.st_size - end, end)
            placeholder = PLACEHOLDER
            while placeholder in before or placeholder in after:
                placeholder = placeholder[:-1] + b' "'
            rest = (before + placeholder + after if self.span else after).removeprefix(BOM)
            try:
                rest = edit_json(rest, [(path, write_json(value)) for path, value in edits])
            except KeyError as error:
                raise OSError(f"the member {error} is missing") from None
            before, found, after = (JsonIndenter().feed(rest) + b"\n").partition(placeholder)
            replace_pieces(self.name, text_around(before, rows(fd, start, end if found else start), after), self.folder)
        finally:
            posix.close(fd)
        self.stamp = self.stamp_now()

    def open(self) -> int:
        """Return a descriptor to read from. Raises OSError, also if the file is a symbolic link."""
        return posix.open(self.name, posix.O_RDONLY | SAFE, dir_fd=self.folder)


def text_around(before: bytes, pieces: "Iterator[bytes]", after: bytes) -> "Iterator[bytes]":
    """Yield `before`, the pieces, and `after`. (itertools.chain takes 2 % of a hook's time to import.)"""
    yield before
    yield from pieces
    yield after


def rows(fd: int, start: int, end: int) -> "Iterator[bytes]":
    """Yield an array of an open file with a new layout, in pieces: memory for the whole would cost more than writing.

    start, end: the array's place, in bytes.
    """
    layout = JsonIndenter(1)
    while start < end and (piece := posix.pread(fd, min(ROWS_PIECE_BYTES, end - start), start)):
        start += len(piece)
        yield layout.feed(piece)


def find_files(folder: str, names: "Sequence[str]", ending: str) -> "Iterator[JsonFile]":
    """Yield the files in folder/names… with that ending, in the order of their names' bytes.

    Leaves symbolic links out, and yields nothing if one of `names` is a symbolic link.
    """
    try:
        fd = open_folder(folder, *names)
    except OSError:
        return
    try:
        found = [name for name in posix.listdir(fd) if name.endswith(ending)]
        for name in sorted(found, key=lambda name: name.encode("utf-8", "surrogateescape")):
            try:
                if old_status(name, fd) is None:
                    continue
                file = JsonFile("/".join((folder, *names, name)), fd, name)
            except OSError:
                continue
            yield file
    finally:
        posix.close(fd)
