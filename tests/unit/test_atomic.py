"""Folders and files that several processes make, replace and remove at once."""

import errno
import os
import re
import threading
import time
from random import Random

import pytest

from tailhook.stores.atomic import (
    MAX_READ_FILE_BYTES,
    READ_BYTES,
    TOO_LARGE,
    Lock,
    make_folders,
    open_folder,
    private_file,
    read_file,
    remove_file,
    replace_file,
    state_folder,
)


def test_many_threads_make_one_folder_at_once(tmp_path):
    failed = []

    def make(path, ready):
        ready.wait()
        try:
            make_folders(path)
        except OSError as error:
            failed.append(error)

    for number in range(100):
        ready = threading.Barrier(8)
        path = f"{tmp_path}/{number}/a/b/c"
        threads = [threading.Thread(target=make, args=(path, ready)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert os.path.isdir(path)
    assert failed == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_that_root_replaces_keeps_its_owner(tmp_path):
    path = tmp_path / "state"
    path.write_bytes(b"old")
    os.chown(path, 0, 12345)
    replace_file(str(path), b"new")
    assert (path.read_bytes(), path.stat().st_uid, path.stat().st_gid) == (b"new", 0, 12345)
    os.chown(path, 12345, 0)
    replace_file(str(path), b"newer")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 0)


def test_a_folder_behind_a_dangling_link_is_an_error_and_no_endless_search(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(OSError, match="link"):
        make_folders(f"{tmp_path}/link/a")


def test_the_state_folder_is_private_and_below_home(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("posix").environ, b"HOME", str(tmp_path).encode())
    monkeypatch.delitem(__import__("posix").environ, b"XDG_STATE_HOME", raising=False)
    assert state_folder() == f"{tmp_path}/.local/state/tailhook"
    assert os.stat(state_folder()).st_mode & 0o777 == 0o700
    monkeypatch.setitem(__import__("posix").environ, b"XDG_STATE_HOME", f"{tmp_path}/state".encode())
    assert state_folder() == f"{tmp_path}/state/tailhook"


def test_a_file_without_an_end_is_not_read(tmp_path):
    path = tmp_path / "file"
    path.touch()
    os.truncate(path, MAX_READ_FILE_BYTES)
    assert len(read_file(str(path))) == MAX_READ_FILE_BYTES
    os.truncate(path, MAX_READ_FILE_BYTES + 1)
    with pytest.raises(OSError, match="larger than 16 MiB") as caught:
        read_file(str(path))
    assert caught.value.errno == errno.EFBIG == TOO_LARGE
    with pytest.raises(OSError, match="larger than 3 KiB"):
        read_file(str(path), max_bytes=3 << 10)


def test_without_a_home_there_is_no_state_folder(monkeypatch):
    for name in (b"HOME", b"XDG_STATE_HOME"):
        monkeypatch.setitem(__import__("posix").environ, name, b"relative")
    with pytest.raises(OSError, match="HOME"):
        state_folder()


def test_a_private_file_is_the_same_for_every_spelling_of_a_path_and_another_for_each_file(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("posix").environ, b"XDG_STATE_HOME", os.fsencode(tmp_path / "state"))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("one")

    def path_for(folder, name="state", ending=".lock"):
        fd = os.open(folder, os.O_RDONLY)
        try:
            return private_file(fd, name, ending)
        finally:
            os.close(fd)

    spellings = [
        tmp_path / "one",
        tmp_path / "link",
        f"{tmp_path}/./one",
        f"/{tmp_path}//one",
        f"{tmp_path}/two/../one",
    ]
    assert len({path_for(folder) for folder in spellings}) == 1
    names = ["state", "other", "é", "x" * 255, "x" * 254 + "y", "y" + "x" * 254]
    paths = {path_for(tmp_path / folder, name) for folder in ("one", "two") for name in names}
    assert len(paths) == 2 * len(names)
    assert {os.path.dirname(path) for path in paths} == {str(tmp_path / "state/tailhook")}
    assert all(len(os.path.basename(path)) < 200 for path in paths)
    assert path_for(tmp_path / "one", ending=".seen").endswith(".seen")


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path):
    path = tmp_path / "state"
    replace_file(str(path), b"new")
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    replace_file(str(path), b"newer")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"newer", 0o644)
    assert os.listdir(tmp_path) == ["state"]


def test_a_replacement_that_fails_leaves_the_old_file_and_no_draft(tmp_path, monkeypatch):
    path = tmp_path / "state"
    path.write_bytes(b"old")

    def full(fd, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tailhook.stores.atomic.posix.write", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(str(path), b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["state"]


def test_a_link_in_place_of_a_file_or_folder_is_not_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"secret")
    (tmp_path / "folder").symlink_to(tmp_path / "real")
    (tmp_path / "file").symlink_to(tmp_path / "real" / "file")
    with pytest.raises(OSError, match="folder"):
        open_folder(str(tmp_path), "folder")
    with pytest.raises(OSError, match="file"):
        read_file(str(tmp_path / "file"))


def test_a_file_of_many_pieces_is_read_whole_and_no_piece_is_copied_for_the_next(tmp_path, monkeypatch):
    copied = []

    class Piece(bytes):
        def __add__(self, more):
            copied.append(len(self))
            return Piece(bytes(self) + more)

    path = tmp_path / "file"
    path.write_bytes(data := Random(1).randbytes(3 * READ_BYTES + 1))
    read = os.read
    monkeypatch.setattr("tailhook.stores.atomic.posix.read", lambda fd, size: Piece(read(fd, size)))
    assert read_file(str(path)) == data
    assert sum(copied) == 0


def test_a_lock_that_the_file_system_does_not_have_names_its_file(tmp_path, monkeypatch):
    def no_locks(fd, seconds):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("tailhook.stores.atomic.flock_within", no_locks)
    with pytest.raises(OSError, match="No locks available") as caught, Lock(f"{tmp_path}/lock"):
        pass
    assert caught.value.filename == f"{tmp_path}/lock"


def test_removing_what_is_gone_is_fine(tmp_path):
    remove_file(str(tmp_path / "gone"))


# ---- locks -------------------------------------------------------------------


def open_files():
    """Return how many descriptors this process has."""
    return len(os.listdir("/dev/fd"))


def test_a_lock_that_another_process_holds_is_waited_for_and_then_named(tmp_path):
    with Lock(f"{tmp_path}/lock"):
        before = open_files()
        started = time.monotonic()
        with (
            pytest.raises(TimeoutError, match=re.escape(f"{tmp_path}/lock: locked by another process for 0.2 s")),
            Lock(f"{tmp_path}/lock", seconds=0.2),
        ):
            pass
        assert time.monotonic() - started > 0.15
        assert open_files() == before
    with Lock(f"{tmp_path}/lock", seconds=0):
        pass


def test_a_hook_waits_two_seconds_for_a_lock():
    assert Lock("lock").seconds == 2


def test_all_users_of_the_folder_can_use_a_lock_file_and_it_is_not_a_link(tmp_path):
    before, mask = open_files(), os.umask(0)
    try:
        with Lock("lock", os.open(tmp_path, os.O_RDONLY)) as lock:
            os.close(lock.folder)
            assert not os.get_inheritable(lock.fd)
    finally:
        os.umask(mask)
    assert open_files() == before
    assert (tmp_path / "lock").stat().st_mode & 0o7777 == 0o666
    (tmp_path / "link").symlink_to("lock")
    with pytest.raises(OSError, match="symbolic link"), Lock(f"{tmp_path}/link"):
        pass


# ---- reading -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "forbidden", "is_read"),
    [(0o600, 0o077, True), (0o604, 0o077, False), (0o604, 0o022, True), (0o620, 0o022, False), (0o666, None, True)],
)
def test_a_file_that_others_may_have_changed_or_read_is_refused(tmp_path, mode, forbidden, is_read):
    path = tmp_path / "file"
    path.write_bytes(b"words")
    path.chmod(mode)
    if is_read:
        assert read_file(str(path), forbidden=forbidden) == b"words"
    else:
        with pytest.raises(PermissionError, match=f"can be used by other users \\(mode {mode:04o}\\)"):
            read_file(str(path), forbidden=forbidden)


def test_a_file_of_another_user_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"words")
    path.chmod(0o600)
    monkeypatch.setattr("tailhook.stores.atomic.posix.geteuid", lambda: os.getuid() + 1)
    with pytest.raises(PermissionError, match="belongs to another user"):
        read_file(str(path), forbidden=0o077)
    assert read_file(str(path)) == b"words"


def test_a_read_that_fails_names_its_file_and_leaves_nothing_open(tmp_path, monkeypatch):
    def fail(fd, size):
        raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "file").write_bytes(b"words")
    before = open_files()
    monkeypatch.setattr("tailhook.stores.atomic.posix.read", fail)
    with pytest.raises(OSError, match="Input/output") as caught:
        read_file(str(tmp_path / "file"))
    assert caught.value.filename == str(tmp_path / "file")
    assert open_files() == before


def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert read_file(str(tmp_path / "pipe")) == b""


# ---- folders -----------------------------------------------------------------


def test_a_folder_is_opened_below_another_one_and_nothing_else_stays_open(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    before = open_files()
    fd = open_folder(str(tmp_path), "a", "b")
    assert os.fstat(fd).st_ino == (tmp_path / "a" / "b").stat().st_ino
    assert not os.get_inheritable(fd)
    assert open_files() == before + 1
    os.close(fd)
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to("a")
    for name, kind, number in (
        ("gone", FileNotFoundError, errno.ENOENT),
        ("file", NotADirectoryError, errno.ENOTDIR),
        ("link", OSError, errno.ELOOP),
    ):
        with pytest.raises(kind) as caught:
            open_folder(str(tmp_path), name)
        assert (caught.value.errno, caught.value.filename) == (number, f"{tmp_path}/{name}")
    assert "not followed" in str(caught.value)
    assert open_files() == before


def test_missing_folders_are_made_for_their_user_alone(tmp_path):
    mask = os.umask(0)
    try:
        make_folders(f"{tmp_path}/a/b")
        make_folders(f"{tmp_path}/a/b")
    finally:
        os.umask(mask)
    assert [(tmp_path / name).stat().st_mode & 0o7777 for name in ("a", "a/b")] == [0o700] * 2


def test_the_state_folder_of_another_home_is_checked_too(tmp_path, monkeypatch):
    checked = []
    monkeypatch.setattr("tailhook.stores.atomic.checked", "")
    monkeypatch.setattr("tailhook.stores.atomic.folder_fault", lambda folder: (checked.append(folder) or True, ""))
    for name in ("one", "one", "two"):
        monkeypatch.setitem(__import__("posix").environ, b"XDG_STATE_HOME", os.fsencode(tmp_path / name))
        state_folder()
    assert checked == [os.fsencode(tmp_path / name / "tailhook") for name in ("one", "two")]


# ---- replacing ---------------------------------------------------------------


def test_every_bit_of_a_mode_is_kept(tmp_path):
    path = tmp_path / "state"
    path.write_bytes(b"old")
    path.chmod(0o7711)
    replace_file(str(path), b"new")
    assert path.stat().st_mode & 0o7777 == 0o7711


def test_a_new_file_is_its_users_alone_whatever_the_umask(tmp_path):
    mask = os.umask(0)
    try:
        replace_file(str(tmp_path / "state"), b"new")
    finally:
        os.umask(mask)
    assert (tmp_path / "state").stat().st_mode & 0o7777 == 0o600


def test_a_draft_that_was_left_behind_is_written_over(tmp_path):
    (tmp_path / f"state.{os.getpid()}.tmp").write_bytes(b"a longer draft of before")
    replace_file(str(tmp_path / "state"), b"new")
    assert (tmp_path / "state").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["state"]


def test_a_link_in_place_of_the_draft_is_not_followed(tmp_path):
    (tmp_path / "other").write_bytes(b"kept")
    (tmp_path / f"state.{os.getpid()}.tmp").symlink_to("other")
    with pytest.raises(OSError, match="symbolic link"):
        replace_file(str(tmp_path / "state"), b"new")
    assert (tmp_path / "other").read_bytes() == b"kept"


def test_data_is_written_whole_even_if_the_system_takes_it_in_parts(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr("tailhook.stores.atomic.posix.write", lambda fd, data: write(fd, data[:3]))
    replace_file(str(tmp_path / "state"), b"0123456789")
    assert (tmp_path / "state").read_bytes() == b"0123456789"


@pytest.mark.parametrize(("value", "times"), [(b"1", 2), (b"0", 0), (None, 0)])
def test_the_file_and_its_folder_are_synced_only_if_that_is_asked_for(tmp_path, monkeypatch, value, times):
    environ = {name: old for name, old in __import__("posix").environ.items() if name != b"TAILHOOK_FSYNC"}
    monkeypatch.setattr("tailhook.stores.atomic.posix.environ", environ | ({b"TAILHOOK_FSYNC": value} if value else {}))
    synced = []
    monkeypatch.setattr("tailhook.stores.atomic.posix.fsync", synced.append)
    folder = os.open(tmp_path, os.O_RDONLY)
    replace_file("state", b"new", folder)
    os.close(folder)
    assert len(synced) == times


def test_a_failure_names_the_file_and_not_its_draft(tmp_path, monkeypatch):
    def full(fd, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = open_files()
    monkeypatch.setattr("tailhook.stores.atomic.posix.write", full)
    with pytest.raises(OSError, match="No space") as caught:
        replace_file(str(tmp_path / "state"), b"new")
    assert caught.value.filename == str(tmp_path / "state")
    assert open_files() == before


def test_a_draft_that_cannot_be_made_names_the_file(tmp_path):
    for name in (f"{tmp_path}/none/state", f"{tmp_path}/{'n' * 250}"):
        with pytest.raises(OSError) as caught:  # noqa: PT011 - the name is looked at
            replace_file(name, b"new")
        assert caught.value.filename == name


def test_a_link_is_replaced_by_a_file_of_its_user_alone(tmp_path):
    (tmp_path / "other").write_bytes(b"kept")
    (tmp_path / "state").symlink_to("other")
    replace_file(str(tmp_path / "state"), b"new")
    assert (tmp_path / "state").lstat().st_mode & 0o7777 == 0o600
    assert ((tmp_path / "state").read_bytes(), (tmp_path / "other").read_bytes()) == (b"new", b"kept")


def test_a_file_is_removed_below_a_folder(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    folder = os.open(tmp_path, os.O_RDONLY)
    remove_file("file", folder)
    os.close(folder)
    assert os.listdir(tmp_path) == []


def test_a_signal_that_comes_when_the_file_is_in_place_is_the_one_exception(tmp_path, monkeypatch):
    rename = os.rename

    def rename_late(*args, **folders):
        rename(*args, **folders)
        raise SystemExit(143)

    monkeypatch.setattr("posix.rename", rename_late)
    with pytest.raises(SystemExit):
        replace_file(str(tmp_path / "state"), b"new")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("state", b"new")]
