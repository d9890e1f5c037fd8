"""Front matter: `key: value` lines between two `---` lines at a file's beginning, read and edited in place.

`FrontMatter` is the text, `FrontMatterFile` the file that holds it.

Only the set value changes; every other byte of the file stays.

>>> page = FrontMatter("---\\nactive: true\\niteration: 1\\n---\\nThe prompt.")
>>> page["iteration"]
'1'
>>> page.set("iteration", "2")
'---\\nactive: true\\niteration: 2\\n---\\nThe prompt.'
"""

import posix

from tailhook._core import iso_time, write_json
from tailhook.stores import path_in
from tailhook.stores.atomic import (
    TOO_LARGE,
    Lock,
    open_folder,
    private_file,
    read_file,
    remove_file,
    replace_file,
)

END = ".end"  # ending of the private file about the last loop's end
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"'}

MAX_FRONT_MATTER_CHARS = 16 << 10  # before the prompt: every key takes a microsecond at each stop
NULLS = ("", "null", "Null", "NULL", "~")


class FrontMatter:
    """A file's text with front matter. Raises ValueError if it has none, OSError (`errno` TOO_LARGE) if it is too long.

    Keys are looked up as in a dict. If a key occurs more than once, the first one counts. Values are strings without
    their quotes. Lines with a deeper indentation than the first key (a nested mapping, the text of a block scalar) hold
    no keys.
    """

    __slots__ = ("body", "spans", "text", "top")

    def __init__(self, text: str) -> None:
        top = 1 if text.startswith("\ufeff") else 0  # a byte order mark, which some editors write
        if text.startswith("---\r\n", top):
            top += 5
        elif text.startswith("---\n", top):
            top += 4
        else:
            raise ValueError("no front matter: the first line is not ---")
        end = text.find("\n---", top)
        if end < 0:
            raise ValueError("no front matter: the second --- is missing")
        if end - top > MAX_FRONT_MATTER_CHARS:
            raise OSError(TOO_LARGE, f"the front matter is larger than {MAX_FRONT_MATTER_CHARS >> 10} KiB")
        self.text = text
        self.top = top  # the index of the first key; without keys, the index for a new one
        self.body = text[end + 4 :].strip()
        self.spans: dict[str, tuple[int, int]] = {}
        start, depth = top, -1
        for line in text[top:end].split("\n"):
            key, colon, value = line.partition(":")
            name = key.strip()
            if colon and name and name[0] != "#":
                indentation = len(key) - len(key.lstrip())
                depth = indentation if depth < 0 else min(depth, indentation)
                # A line with a deeper indentation belongs to the key before it.
                if indentation == depth and name not in self.spans:
                    self.spans[name] = value_span(value, start + len(key) + 1)
            start += len(line) + 1

    def __contains__(self, key: str) -> bool:
        return key in self.spans

    def __getitem__(self, key: str) -> str:
        start, end = self.spans[key]
        return unquoted(self.text[start:end])

    def get(self, key: str, default: str | None = None) -> str | None:
        """Return the value of `key`; `default` if it is missing, empty or null."""
        if key not in self.spans:
            return default
        start, end = self.spans[key]
        return default if self.text[start:end] in NULLS else self[key]

    def values(self) -> "dict[str, str | None]":
        """Return every key's value; None for null, "" for a blank one."""
        return {key: "" if start == end else self.get(key) for key, (start, end) in self.spans.items()}

    def line(self, key: str) -> int:
        """Return the line number of `key`, from 1."""
        return self.text.count("\n", 0, self.spans[key][0]) + 1

    def set(self, key: str, value: str) -> str:
        """Return the whole text with the value of `key` replaced, or with the key added at the top if it is missing."""
        if key in self.spans:
            start, end = self.spans[key]
            space = " " if start == end and self.text[start - 1] == ":" else ""
            return f"{self.text[:start]}{space}{value}{self.text[end:]}"
        newline = "\r\n" if self.text[self.top - 2] == "\r" else "\n"
        return f"{self.text[: self.top]}{key}: {value}{newline}{self.text[self.top :]}"


MAX_PAGE_BYTES = 4 << 20  # bytes of a file; its prompt goes to the host at every stop


class FrontMatterFile:
    """A file `.claude/<name>` of a project. Raises OSError if it cannot be opened, or is a symbolic link.

    path: of the file.
    page: its front matter and text; None if it has no front matter.
    gone: whether it was removed after the last reading.
    changed: its modification time, in Unix seconds.
    """

    def __init__(self, project: str, name: str) -> None:
        self.name = name
        self.path = path_in(project, f".claude/{name}")
        self.folder = open_folder(project, ".claude")
        self.data: bytes | None = None
        self.page: FrontMatter | None = None
        self.reload()

    def __del__(self) -> None:
        if hasattr(self, "folder"):
            posix.close(self.folder)

    def lock(self) -> Lock:
        """Return the lock to hold from `reload` to `replace`."""
        return Lock(private_file(self.folder, self.name, ".lock"))

    def reload(self) -> bool:
        """Read the file again, and return whether it had changed. A missing file is not an error. Raises OSError."""
        before, self.data = self.data, self.read()
        self.gone = self.data is None
        self.changed = 0.0
        if self.data != before:
            self.page = None
        if self.data is not None:
            self.parse(self.data)
        return self.data != before

    def parse(self, data: bytes) -> None:
        """Set `page` from the file's bytes, and `changed` from its modification time. Raises OSError."""
        try:
            self.changed = posix.stat(self.name, dir_fd=self.folder, follow_symlinks=False).st_mtime
            self.page = self.page or FrontMatter(data.decode("utf-8", "surrogateescape"))
        except (FileNotFoundError, ValueError):
            pass
        except OSError as error:
            error.filename = self.path
            raise

    def read(self) -> bytes | None:
        """Return the file's bytes, or None if it is gone. Raises OSError."""
        try:
            return read_file(self.name, self.folder, max_bytes=MAX_PAGE_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            error.filename = self.path
            raise

    def replace(self, text: str) -> None:
        """Replace the file's text with `text`. Only under the lock. Raises OSError."""
        replace_file(self.name, text.encode("utf-8", "surrogateescape"), self.folder)

    def remove(self) -> None:
        """Remove the file. A missing one is fine. Only under the lock. Raises OSError."""
        remove_file(self.name, self.folder)

    def keep_end(self, reason: str, now: float, session_id: str = "", why: str = "") -> None:
        """Save the loop's end in the private state folder, before its file is removed. A failure changes nothing.

        session_id: of the stop that ends the loop; "" for the saved one.
        why: for the person.
        """
        values = self.page.values() if self.page else {}
        iteration, session = values.get("iteration"), values.get("session_id")
        end = {"reason": reason, "iteration": iteration, "at": iso_time(now), "session_id": session_id or session}
        end["project"] = self.path.rpartition("/.claude/")[0] or "/"
        if why:
            end["why"] = why
        try:
            replace_file(private_file(self.folder, self.name, END), write_json(end) + b"\n")
        except OSError:
            pass


def quote_yaml(value: str) -> str:
    """Return a value in YAML's double quotes: any text becomes one value on one line."""
    return write_json(value).decode("utf-8")


def value_span(value: str, at: int) -> tuple[int, int]:
    """Return the start and end of a value in the text, without blank space around it and without a comment."""
    stripped = value.strip()
    start = at + len(value) - len(value.lstrip()) if stripped else at
    if stripped[:1] in ("'", '"'):
        close = closing_quote(stripped)
        behind = stripped[close + 1 :]
        if close and (not behind or (behind[0].isspace() and behind.lstrip().startswith("#"))):
            return start, start + close + 1
    comment = stripped.find(" #")
    if comment >= 0:
        stripped = stripped[:comment].rstrip()
    return start, start + len(stripped)


def closing_quote(value: str) -> int:
    """Return the index of the quote that ends a quoted value, 0 if it is not closed."""
    quote, at = value[0], 1
    while at < len(value):
        if value[at] == "\\" and quote == '"':
            at += 2
            continue
        if value[at] == quote:
            if quote == "'" and value[at + 1 : at + 2] == "'":
                at += 2
                continue
            return at
        at += 1
    return 0


def unquoted(value: str) -> str:
    """Return a value without its quotes: YAML 1.2's double ones with the common escapes, or its single ones (7.3)."""
    if len(value) < 2 or value[0] != value[-1] or value[0] not in "'\"":
        return value
    inner = value[1:-1]
    if value[0] == "'":
        return inner.replace("''", "'")
    parts = inner.split("\\")
    words, literal = [parts[0]], False
    for part in parts[1:]:
        if literal:
            words.append(part)
            literal = False
        elif not part:
            words.append("\\")
            literal = True
        else:
            words.append(unescaped(part))
    return "".join(words)


def unescaped(part: str) -> str:
    """Return the text after a backslash with its escape resolved. An unknown escape stays as written."""
    if part[0] in ESCAPES:
        return ESCAPES[part[0]] + part[1:]
    width = {"x": 2, "u": 4, "U": 8}.get(part[0], 0)
    try:
        return chr(int(part[1 : 1 + width], 16)) + part[1 + width :] if width else f"\\{part}"
    except (ValueError, OverflowError):  # not hexadecimal; beyond U+10FFFF
        return f"\\{part}"
