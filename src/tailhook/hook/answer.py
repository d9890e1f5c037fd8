"""The hook's output: at most one JSON object, in one write, and lines for people on stderr."""

import posix

from tailhook._core import wait_writable, write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

READER_TIMEOUT_S = 5.0  # how long to wait for a reader that takes nothing
warned: "set[str] | None" = None  # the lines that a command has written with `warn`; None in a hook: it writes all
COMPACT, SPACED = 0, 1  # `write_json` styles: without a space, or with one after each colon and comma


def write_output(fd: int, data: bytes, seconds: float = READER_TIMEOUT_S) -> None:
    """Write all of `data`; a reader that has gone away changes nothing.

    A host may have made its pipe non-blocking. If it is full, wait until the host has read from it.

    seconds: how long to wait for a reader that takes nothing. After that, the rest is lost.
    """
    rest = memoryview(data)
    try:
        while rest:
            try:
                rest = rest[posix.write(fd, rest) :]
            except BlockingIOError:
                if not wait_writable(fd, seconds):
                    return
    except OSError:
        pass


def send_answer(fields: "dict[str, Any]", style: int = SPACED) -> None:
    """Write the answer to the host: one line of JSON on stdout."""
    write_output(1, write_json(fields, style) + b"\n")


def warn(words: str) -> None:
    """Write one line for a person on stderr, unless a command has written it already."""
    if warned is not None:
        if words in warned:
            return
        warned.add(words)
    write_output(2, f"{plain(words)}\n".encode("utf-8", "backslashreplace"))


def plain_lines(words: str) -> str:
    """Return several lines, each made plain by `plain`."""
    return "\n".join(map(plain, words.split("\n")))


def plain(words: str) -> str:
    r"""Return words on one line, with tabs as blanks, and control and format characters as escapes.

    >>> print(plain("a\tb\x1b[31m"))
    a b\x1b[31m
    """
    if words.isprintable():
        return words
    from tailhook.machines import is_visible  # not at the start: most lines are printable

    words = words.replace("\t", " ")
    return "".join(letter if is_visible(letter) else ascii(letter)[1:-1] for letter in words)


def describe(error: BaseException) -> str:
    """Return an error on one line: `path: reason` for a file, otherwise the error's type and message."""
    if not isinstance(error, OSError):
        return f"{type(error).__name__}: {error}"
    if not error.strerror:
        return str(error)
    from tailhook.stores.atomic import IS_LINK, NOT_FOLLOWED
    from tailhook.stores.links import is_circle

    path = error.filename2 or error.filename
    reason = NOT_FOLLOWED if error.errno == IS_LINK and not is_circle(path or "/") else error.strerror
    return f"{path}: {reason}" if path else reason
