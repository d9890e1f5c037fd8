"""Hooks files of hosts: read, replaced whole, and restored to their text before the hooks were added.

The target of a symbolic link is replaced, and the link stays: people keep their settings in a folder of dotfiles. The
text of a file before the hooks is kept beside the loops' private files, for `tailhook uninstall`.
"""

import hashlib
import json
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tailhook._core import fingerprint, parse_json
from tailhook.hook.config import name_position
from tailhook.install.hooks import SettingsError, is_blank, is_empty, values_of, without_hooks
from tailhook.install.hooks_file import HooksFile
from tailhook.pool.control import is_running
from tailhook.stores.atomic import PRIVATE, Lock, make_folders, read_file, remove_file, replace_file, state_folder

COMMENT_OR_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
CLIENT_LOCK_S = 60.0  # for an uninstall that ends a pool, or an install with a test of its client


class Settings:
    """One hooks file, as it was read.

    file: the description of its host's hooks files.
    path: as the host names it.
    target: the path with links resolved.
    text: its text with its byte order mark, None if it does not exist.
    names: how many names the file has: hard links. A change goes to this name alone.

    Raises SettingsError, with the position, if it is not JSON (or TOML) or does not have the host's shape. Raises
    OSError if it cannot be read.
    """

    def __init__(self, file: HooksFile, path: str, is_changed: bool = True) -> None:
        """Read the file.  is_changed: False to read comments as blanks, if the host accepts them."""
        self.file = file
        self.path = path
        self.target = os.path.realpath(path)
        self.text = read(self.target, file.in_toml, file.has_comments and not is_changed)
        self.names = 1 if self.text is None else Path(self.target).stat().st_nlink
        if self.text is not None:
            check(file, self.path, self.text)

    @property
    def text_or_new(self) -> str:
        """The text to add hooks to; a new file's if the file is missing or blank."""
        return self.file.new_text if self.text is None or is_blank(self.text) else self.text

    def reload(self) -> "Settings":
        """Return the file as it is now."""
        return Settings(self.file, self.path)


def read(target: str, in_toml: bool, blanks_comments: bool = False) -> str | None:
    """Return the text of a hooks file, None if it does not exist.

    in_toml: whether it is TOML.
    blanks_comments: whether blanks replace its comments.
    """
    try:
        data = read_file(target)
        if blanks_comments:
            data = COMMENT_OR_STRING.sub(without_comment, data)
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        raise SettingsError(f"{target} is a directory, and the host reads a file there") from None
    is_blank_file = not data.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n") and Path(target).is_file()
    try:
        if in_toml:
            from tailhook.install import toml_text  # its parser takes longer than all the rest

            toml_text.read_toml_text(data.decode("utf-8"))
        elif not is_blank_file:  # a blank one has no settings
            parse_json(data)
    except ValueError as error:
        raise SettingsError(f"{target}: {name_position(data, str(error))}") from None
    return data.decode("utf-8")


def without_comment(found: re.Match[bytes]) -> bytes:
    """Return a string as it is, and blanks of the same length for a comment. Its line ends stay."""
    return found[0] if found[0][:1] == b'"' else re.sub(rb"[^\n]", b" ", found[0])


def check(file: HooksFile, path: str, text: str) -> None:
    """Raise SettingsError if the settings do not have the host's shape."""
    try:
        values_of(file, text)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None


# ---- what it was before ------------------------------------------------------


class Receipt(NamedTuple):
    """The changes of a file by `tailhook install`.

    before: its text without our hooks, None if there was no file.
    written: SHA-256 of the written text.
    cap: the new limit on blocks in a row, None for none.
    folder: how many folders were made for the file. (Older versions wrote true or false.)
    path: the file's, with links resolved. (Older versions did not write it.)
    """

    before: str | None
    written: str
    cap: int | None
    folder: int
    path: str = ""

    def wrote(self, text: str | None) -> bool:
        """Return whether the text is the written one, unedited."""
        return text is not None and digest(text) == self.written


def digest(text: str) -> str:
    """Return the digest of a text for a receipt."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def private_name(target: str) -> str:
    """Return the name of the private files for a hooks file: a hash of its path. The files may not exist yet."""
    digest = fingerprint(target.encode("utf-8", "surrogateescape"))
    return f"{target.rpartition('/')[2][-40:]}-{digest:016x}"


def receipt_path(target: str) -> str:
    """Return the path of the receipt for a hooks file; the backup is beside it."""
    folder = f"{state_folder()}/settings"
    make_folders(folder)
    return f"{folder}/{private_name(target)}"


def backup_path(target: str) -> str:
    """Return the path of the file's copy from before the last change."""
    return f"{receipt_path(target)}.backup"


def backup(target: str) -> str | None:
    """Return the text of the backup, None if it is missing or cannot be read."""
    try:
        return read_file(backup_path(target)).decode("utf-8")
    except (OSError, ValueError):
        return None


def receipt_for(target: str) -> Receipt | None:
    """Return the receipt for a hooks file, None if it is missing or cannot be read."""
    with suppress(OSError):  # of the folder
        return read_receipt(receipt_path(target))
    return None


def read_receipt(path: str) -> Receipt | None:
    """Return the receipt in a file, None if it is missing or cannot be read."""
    try:
        fields: Any = parse_json(read_file(path))
        before, written, cap, folder = (fields[name] for name in Receipt._fields[:4])
        return Receipt(before, written, cap, int(folder), str(fields.get("path", "")))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def has_receipts() -> bool:
    """Return whether hooks are installed in a file of any host."""
    return bool(list_receipts())


def list_receipts() -> list[Path]:
    """Return the paths of all receipts. The drafts of killed commands are none."""
    folder = Path(state_folder(), "settings")
    return [path for path in folder.iterdir() if path.suffix not in (".backup", ".tmp")] if folder.is_dir() else []


def find_gone_files() -> list[str]:
    """Return the hooks files with receipts if all of them are gone, with their project or without it; otherwise []."""
    targets = [(read_receipt(str(path)) or Receipt(None, "", None, 0)).path for path in list_receipts()]
    return targets if all(target and not os.path.lexists(target) for target in targets) else []


def without_ours(found: Settings, receipt: Receipt | None) -> str | None:
    """Return the file's text without our hooks, for `uninstall` to restore; None for no file.

    A file that a person has removed stays removed. If `install` made the file and nothing else is in it, returns None.
    """
    if found.text is None:
        return None
    if receipt and receipt.wrote(found.text):
        return receipt.before
    before, cap = (receipt.before, receipt.cap) if receipt else (None, None)
    text = without_hooks(found.file, found.text, before, cap)
    return None if receipt and before is None and is_empty(found.file, text) else text


# ---- replacing ---------------------------------------------------------------


class TemporaryLock(Lock):
    """A lock with a file that exists only while a process holds it or waits for it.

    After waiting, a process may have locked a removed file: then it locks the next one.
    """

    def __enter__(self) -> "TemporaryLock":
        while True:
            make_folders(self.path.rpartition("/")[0])
            with suppress(FileNotFoundError):
                super().__enter__()
                try:
                    if os.path.samestat(Path(self.path).stat(), os.fstat(self.fd)):
                        return self
                except BaseException:
                    os.close(self.fd)
                    raise
                os.close(self.fd)

    def __exit__(self, *_: object) -> None:
        remove_file(self.path)
        os.close(self.fd)


def settings_lock(target: str) -> TemporaryLock:
    """Return the lock to hold from the last read of a hooks file until it is changed."""
    return TemporaryLock(f"{state_folder()}/{private_name(target)}.lock")


def client_lock() -> TemporaryLock:
    """Return the lock to hold while clients are written or removed."""
    return TemporaryLock(f"{state_folder()}/client.lock", seconds=CLIENT_LOCK_S)


def write(settings: Settings, text: str, before: str | None, cap: int | None) -> None:
    """Replace the file, and keep its old text. Call it only under the lock.

    before: the text without our hooks, None for no file.
    cap: the limit on blocks in a row that was set, None for none.

    Raises OSError; the old file then stays.
    """
    data = encoded(settings, text)
    old = receipt_for(settings.target)
    keep_backup(settings)
    folders = Path(settings.target).parents
    made = sum(not folder.is_dir() for folder in folders) or (old.folder if old else made_for_others(settings))
    receipt = Receipt(before, digest(text), cap, made, settings.target)
    replace_file(receipt_path(settings.target), json.dumps(receipt._asdict()).encode("ascii"))
    folders[0].mkdir(parents=True, exist_ok=True)
    remove_drafts(settings.target)
    replace_file(settings.target, data)


def made_for_others(settings: Settings) -> int:
    """Return how many folders were made for another scope's file in the same folder."""
    others = {os.path.realpath(settings.file.path(scope)) for scope in settings.file.paths} - {settings.target}
    receipts = [receipt_for(other) for other in others if Path(other).parent == Path(settings.target).parent]
    return max((receipt.folder for receipt in receipts if receipt), default=0)


def restore(settings: Settings, text: str | None) -> None:
    """Replace the file by the text, None for no file, and forget it. Call it only under the lock."""
    keep_backup(settings)
    if text is None:
        remove_file(settings.target)
    else:
        replace_file(settings.target, encoded(settings, text))
    forget(settings.target)


def forget(target: str) -> None:
    """Remove the files kept for a hooks file without our hooks. Call it only under the lock.

    The receipt is removed last: with it, a killed uninstall can be completed.
    """
    receipt = receipt_for(target)
    for folder in Path(target).parents[: receipt.folder if receipt else 0]:
        remove_empty(folder)
    if receipt and receipt.wrote(backup(target)):
        remove_file(backup_path(target))  # a new install would write the same
    remove_drafts(target)
    path = Path(receipt_path(target))
    for draft in path.parent.iterdir():
        if draft.suffix == ".tmp" and draft.name.startswith(f"{path.name}."):
            draft.unlink()  # of a killed command
    remove_file(str(path))


def remove_drafts(path: str) -> None:
    """Remove the drafts of a file that killed commands left beside it. Call it only under the file's lock.

    A draft (see `replace_pieces`) of a live process stays: it may be another program's.
    """
    folder, _, name = path.rpartition("/")
    with suppress(FileNotFoundError, NotADirectoryError):
        for draft in Path(folder).iterdir():
            maker = draft.name.removeprefix(f"{name}.").removesuffix(".tmp")
            if draft.name == f"{name}.{maker}.tmp" and maker.isdecimal():
                with suppress(PermissionError, OverflowError):  # another user's process; not the number of one
                    if not is_running(int(maker)):
                        remove_file(str(draft))


def remove_empty_folders(with_parents: bool = True) -> str:
    """Remove the folders for hooks files' backups if they are empty, and ~/.local/state if it may be ours.

    It may be ours if it is empty and has our mode. Programs make it again when they need it.

    Returns the state folder if it stays because hooks, loops or the daemon have saved something in it, otherwise "".

    with_parents: False leaves ~/.local/state as it is.

    Source: XDG Base Directory Specification 0.8, "Referencing this specification".
    """
    folder = Path(state_folder())
    remove_empty(folder / "settings")
    remove_empty(folder)
    saved = str(folder) if folder.is_dir() and {path.name for path in folder.iterdir()} - {"settings"} else ""
    if with_parents and not os.environ.get("XDG_STATE_HOME", "").startswith("/"):
        for parent in folder.parents[:2]:
            with suppress(OSError):
                if stat.S_IMODE(parent.lstat().st_mode) == PRIVATE:
                    parent.rmdir()
    return saved


def encoded(settings: Settings, text: str) -> bytes:
    """Return the text's bytes. Raises SettingsError if a path in it is not UTF-8: JSON cannot hold it."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise SettingsError(f"{settings.path}: the interpreter's path is not UTF-8, and JSON cannot hold it") from None


def keep_backup(settings: Settings) -> None:
    """Keep a copy of the file as it is now."""
    path = backup_path(settings.target)
    if settings.text is None:
        remove_file(path)
    else:
        replace_file(path, settings.text.encode("utf-8"))


def remove_empty(folder: Path) -> None:
    """Remove a folder if it is empty."""
    with suppress(OSError):
        folder.rmdir()
