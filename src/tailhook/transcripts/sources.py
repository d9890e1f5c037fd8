"""Where a transcript comes from: a path, a URL or a binary file, as it is or compressed."""

from __future__ import annotations

import io
import os
import stat

from tailhook.errors import MissingExtraError, SourceError, install_command
from tailhook.transcripts.urls import is_url, normalize_scheme, open_url, without_credentials

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO, TypeAlias

    from tailhook.transcripts.urls import UrlVersion

    TranscriptSource: TypeAlias = str | os.PathLike[str] | BinaryIO
    SeekableFile: TypeAlias = BinaryIO | io.FileIO

GZIP_MARK = b"\x1f\x8b"  # RFC 1952, section 2.3.1
ZSTD_MARK = b"\x28\xb5\x2f\xfd"  # RFC 8878, section 3.1.1
ZSTD_SKIPPED_MARK = b"\x2a\x4d\x18"  # of a skippable frame, after its first byte (section 3.1.2)
MARK_BYTES_OF_FILE = 4  # needed to recognize these and the next
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")  # byte order marks, in little and in big endian (RFC 2781, section 3.2)
UNREAD_MARKS = {b"BZh": "bzip2", b"\xfd7zX": "xz", b"\x04\x22\x4d\x18": "lz4", b"PK\x03\x04": "zip"}  # by first bytes
GARBAGE = "it has bytes behind its compressed data that are not gzip: they were not read"
COPY_BYTES = 1 << 20  # copied at a time


class OpenSource:
    """An open source.

    file: a seekable file of the transcript's own bytes, decompressed if they were compressed.
    is_owned: whether `close` closes the file.
    path: its path or URL, or None.
    is_live: whether a program may still write it: it is neither compressed nor at a URL.
    version: how often `restart` was called: its content was replaced.
    fault: a fault of a readable source, or None.
    """

    def __init__(self, file: SeekableFile, is_owned: bool, path: str | None, is_live: bool) -> None:
        self.file, self.is_owned, self.path, self.is_live = file, is_owned, path, is_live
        self.version = 0
        self.fault: str | None = None
        self._replaced: list[SeekableFile] = []  # which an iteration may still read

    def restart(self, file: SeekableFile | None = None) -> None:
        """Note that other content has replaced it.

        file: the new one at the path; it belongs to this object. None: it is the same file.
        """
        if file is not None:
            if self.file.closed or os.path.samestat(os.fstat(file.fileno()), os.fstat(self.file.fileno())):
                file.close()
                return
            self._replaced.append(self.file)
            self.file = file
        self.version += 1

    def close(self) -> None:
        for file in (self.file, *self._replaced) if self.is_owned else ():
            file.close()


def open_source(source: TranscriptSource, version: UrlVersion | None = None) -> OpenSource:
    """Open a path, a URL or a seekable binary file.

    A compressed source is recognized by its first bytes, and decompressed into a temporary file.

    version: the wanted version of a URL; None for the current one.

    Raises TypeError for anything else, FileNotFoundError and the other errors of opening a file, SourceError for a
    pipe, a damaged compressed file, another compression, UTF-16 or a URL that cannot be read, and MissingExtraError if
    a library is missing.
    """
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if not isinstance(path, str):
            raise TypeError(f"a transcript's path is a str, not {type(path).__name__}")
        at_url = is_url(path)
        path = normalize_scheme(path) if at_url else path
        found = OpenSource(open_url(path, version) if at_url else open_path(path), True, path, not at_url)
    elif is_seekable_binary(source):
        found = OpenSource(source, False, None, True)
    else:
        raise TypeError(f"a transcript is a path, a URL or a seekable binary file, not {type(source).__name__}")
    name = without_credentials(found.path) if found.path else "the transcript"
    try:
        plain = decompress(found.file, name)
        if plain is not None:
            found.close()
            found = OpenSource(plain[0], True, found.path, False)
            found.fault = plain[1]
        check_encoding(read_start(found.file, MARK_BYTES_OF_FILE), name)
    except BaseException:
        found.close()
        raise
    return found


def is_seekable_binary(source: object) -> bool:
    """Return whether it is a binary file that the core can read at any offset."""
    if isinstance(source, io.TextIOBase) or not (hasattr(source, "seek") and hasattr(source, "readinto")):
        return False
    seekable = getattr(source, "seekable", None)
    return seekable is None or bool(seekable())


def open_path(path: str) -> io.FileIO:
    """Open a regular file. Raises SourceError for a pipe or a device, without waiting for a writer; OSError."""
    file = io.FileIO(path, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise SourceError(f"{path} is not a regular file: copy what it gives to a file, and open that")
    return file


# ---- compressed files --------------------------------------------------------


def decompress(file: SeekableFile, name: str) -> tuple[io.FileIO, str | None] | None:
    """Return an unnamed temporary file with the decompressed bytes of a gzip or zstd file; None if it is neither.

    The second value is a fault of a readable file, or None.

    It is decompressed at once, because a transcript is often read from its end.

    name: of the source, for messages. Raises SourceError if the file is cut off or damaged.
    """
    start = read_start(file, MARK_BYTES_OF_FILE)
    if not is_compressed(start):
        return None
    if start.startswith(GZIP_MARK):
        import gzip
        import zlib

        packed = GzipMembers(gzip.GzipFile(fileobj=file, mode="rb"))
        plain = copy_to_temporary(packed, (gzip.BadGzipFile, zlib.error), name)
        return plain, GARBAGE if packed.has_garbage else None
    zstd = import_zstd(name)
    return copy_to_temporary(zstd.ZstdFile(file), (zstd.ZstdError,), name), None


class GzipMembers:
    """Reads all members of a gzip file, and stops at the first byte that begins no member, like gzip(1).

    has_garbage: whether there was such a byte.
    """

    def __init__(self, file: Any) -> None:
        self.file = file
        self.has_garbage = False

    def read(self, size: int) -> bytes:
        """Return the next bytes, b"" at the end. Raises gzip.BadGzipFile, zlib.error or EOFError for damaged data."""
        import gzip

        try:
            return bytes(self.file.read1(size))
        except gzip.BadGzipFile as error:
            if "Not a gzipped file" not in str(error) or not self.file.tell():
                raise
            self.has_garbage = True
            return b""

    def __enter__(self) -> GzipMembers:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


def check_encoding(start: bytes, name: str) -> None:
    """Raise SourceError if a file is UTF-16, or compressed with a program that is not known, by its first bytes.

    name: of the source, for messages.
    """
    if start.startswith(UTF16_MARKS):
        raise SourceError(f"{name} is UTF-16, and transcripts are UTF-8: convert it")
    for mark, program in UNREAD_MARKS.items():
        if start.startswith(mark):
            raise SourceError(f"{name} is compressed with {program}, and only gzip and zstd are read: decompress it")


def is_compressed(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of gzip or zstd."""
    return start.startswith((GZIP_MARK, ZSTD_MARK)) or (start[1:4] == ZSTD_SKIPPED_MARK and start[0] >> 4 == 5)


def read_start(file: SeekableFile, size: int) -> bytes:
    """Return the first bytes of a file, and leave it at its beginning."""
    file.seek(0)
    start = bytearray()
    while len(start) < size and (more := file.read(size - len(start))):
        start += more
    file.seek(0)
    return bytes(start)


def import_zstd(name: str) -> Any:
    """Return the module for zstd. Raises MissingExtraError before Python 3.14 without backports.zstd."""
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        try:
            from backports import zstd
        except ImportError:
            command = install_command("tailhook[zstd]")
            raise MissingExtraError(f"{name} is compressed with zstd: {command}") from None
    return zstd


def write_chunk(plain: Any, chunk: bytes, name: str) -> None:
    """Write a part of a temporary copy.  name: of the source, for messages. Raises SourceError."""
    import tempfile

    view = memoryview(chunk)
    try:
        while view:
            view = view[plain.write(view) :]
    except OSError as error:
        reason = f"{tempfile.gettempdir()}: {error.strerror}"
        raise SourceError(f"{name} cannot be copied to a temporary file: {reason}") from None


def copy_to_temporary(source: Any, errors: tuple[type[Exception], ...], name: str) -> io.FileIO:
    """Return an unnamed temporary file with all bytes of a source, and close the source.

    source: a file; it may decompress during reading.
    errors: raised by it for damaged data.
    name: of the source, for messages.

    Raises SourceError if the data is damaged or there is no room for the copy.
    """
    import tempfile

    plain: Any = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - the caller closes it
    try:
        with source:
            while chunk := source.read(COPY_BYTES):
                write_chunk(plain, chunk, name)
    except BaseException as error:
        plain.close()
        if isinstance(error, EOFError):
            raise SourceError(f"{name} is cut off: its compressed data has no end") from None
        if isinstance(error, errors):
            raise SourceError(f"{name} cannot be decompressed: {error}") from None
        raise
    return plain  # type: ignore[no-any-return]
