"""The host's settings files: where they are, read and replaced whole, and what they were before we came.

A file reached through a symbolic link is replaced where the link leads, and the link stays: people keep their settings
in a folder of dotfiles. What a file was before is kept beside the loops' private files, for `tailhook uninstall`.
"""

import hashlib
import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tailhook._core import fingerprint, parse_json
from tailhook.hook.payload import project_root
from tailhook.install.hooks import SettingsError, values_of
from tailhook.stores.atomic import Lock, make_folders, read_file, remove_file, replace_file, state_folder

SCOPES = ("user", "project", "local")
BOM = b"\xef\xbb\xbf"


def settings_path(scope: str) -> str:
    """The settings file of a scope: the user's own, the project's, or the project's that is not shared."""
    if scope == "user":
        folder = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
        return str(folder.absolute() / "settings.json")
    name = "settings.json" if scope == "project" else "settings.local.json"
    return f"{project_root({})}/.claude/{name}"


class Settings:
    """One settings file as it was when it was read.

    path: as the host names it.  target: where its bytes are.  text: of the file, with its byte order mark; None where
    there is no file.
    Raises SettingsError, with the position, where it is no JSON or has not the shape that the host reads; OSError.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.target = os.path.realpath(path)
        self.text = read(self.target)
        if self.text is not None:
            check(self.path, self.text)

    def reload(self) -> "Settings":
        """The file as it is now."""
        return Settings(self.path)


def read(target: str) -> str | None:
    """The text of a settings file, None where there is none."""
    try:
        data = read_file(target)
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        raise SettingsError(f"{target} is a directory. The host reads a file there. Move the directory away.") from None
    try:
        parse_json(data.removeprefix(BOM))
    except ValueError as error:
        raise SettingsError(f"{target}: {position(data, str(error))}. The file is left as it is.") from None
    return data.decode("utf-8")


def check(path: str, text: str) -> None:
    """SettingsError where the settings have not the shape that the host reads."""
    try:
        values_of(text)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}. The file is left as it is.") from None


def position(data: bytes, complaint: str) -> str:
    """A complaint of `parse_json` with a line and a column instead of its byte."""
    said = re.fullmatch(r"(.*) at byte (\d+)", complaint)
    if not said:
        return complaint
    text = data.removeprefix(BOM)
    before = text[: int(said[2])].decode("utf-8", "replace")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return f"{said[1]} at line {line}, column {column}" + ("" if text.strip() else " (the file is empty)")


# ---- what it was before ------------------------------------------------------


class Receipt(NamedTuple):
    """What `tailhook install` did to a file.

    before: its text without our hooks, None where there was no file.  written: SHA-256 of the text we wrote.  cap: the
    limit on blocks in a row that we set, None for none.  folder: whether we made the file's folder.
    """

    before: str | None
    written: str
    cap: int | None
    folder: bool

    def wrote(self, text: str | None) -> bool:
        """Whether the text is the one we wrote, unedited."""
        return text is not None and digest(text) == self.written


def digest(text: str) -> str:
    """What a receipt remembers of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def private_name(target: str) -> str:
    """Return the name of the private files of a settings file, which may not exist yet: by a hash of its path."""
    digest = fingerprint(target.encode("utf-8", "surrogateescape"))
    return f"{target.rpartition('/')[2][-40:]}-{digest:016x}"


def receipt_path(target: str) -> str:
    """Where the receipt for a settings file is kept; the backup is beside it."""
    folder = f"{state_folder()}/settings"
    make_folders(folder)
    return f"{folder}/{private_name(target)}"


def backup_path(target: str) -> str:
    """Where the file is kept as it was before our last change."""
    return f"{receipt_path(target)}.backup"


def backup(target: str) -> str | None:
    """The text of the backup, None where there is none, or none that can be read."""
    try:
        return read_file(backup_path(target)).decode("utf-8")
    except (OSError, ValueError):
        return None


def receipt_for(target: str) -> Receipt | None:
    """The receipt for a settings file, None where there is none, or none that can be read."""
    try:
        fields: Any = parse_json(read_file(receipt_path(target)))
        return Receipt(fields["before"], fields["written"], fields["cap"], fields["folder"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


# ---- replacing ---------------------------------------------------------------


def lock(target: str) -> Lock:
    """The lock to hold from the last look at a settings file to its change."""
    return Lock(f"{state_folder()}/{private_name(target)}.lock")


def write(settings: Settings, text: str, before: str | None, cap: int | None) -> None:
    """Put the text in the file's place, and keep what it was. Only under the lock.

    before: the text without our hooks, None for no file.  cap: the limit that we have set.  Raises OSError, and then
    the old file stands.
    """
    data = encoded(settings, text)
    old = receipt_for(settings.target)
    keep_backup(settings)
    folder = Path(settings.target).parent
    made = not folder.is_dir() or bool(old and old.folder)
    receipt = Receipt(before, digest(text), cap, made)
    replace_file(receipt_path(settings.target), json.dumps(receipt._asdict()).encode("ascii"))
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(settings.target, data)


def restore(settings: Settings, text: str | None) -> None:
    """Put the text in the file's place, None for no file, and forget it. Only under the lock."""
    keep_backup(settings)
    if text is None:
        remove_file(settings.target)
    else:
        replace_file(settings.target, encoded(settings, text))
    forget(settings.target)


def forget(target: str) -> None:
    """Remove what is kept of a file without our hooks. Only under the lock.

    The receipt goes last: with it, what was killed on the way here can be completed.
    """
    receipt = receipt_for(target)
    if receipt and receipt.folder:
        remove_empty(Path(target).parent)
    if receipt and receipt.wrote(backup(target)):
        remove_file(backup_path(target))  # nothing in it that a new install would not write
    remove_file(receipt_path(target))


def encoded(settings: Settings, text: str) -> bytes:
    """The text's bytes; SettingsError where a path in it is no text, which JSON cannot hold."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise SettingsError(
            f"{settings.path}: the interpreter's path is not UTF-8. The file is left as it is."
        ) from None


def keep_backup(settings: Settings) -> None:
    """Keep the file's bytes as they are now."""
    path = backup_path(settings.target)
    if settings.text is None:
        remove_file(path)
    else:
        replace_file(path, settings.text.encode("utf-8"))


def remove_empty(folder: Path) -> None:
    """Remove a folder that nothing is in."""
    with suppress(OSError):
        folder.rmdir()
