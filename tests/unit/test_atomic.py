"""Folders and files that several processes make, replace and remove at once."""

import errno
import os
import threading

import pytest

from tailhook.stores.atomic import (
    CHUNK,
    LARGEST,
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
    os.truncate(path, LARGEST)
    assert len(read_file(str(path))) == LARGEST
    os.truncate(path, LARGEST + 1)
    with pytest.raises(OSError, match="larger than 16 MB") as caught:
        read_file(str(path))
    assert caught.value.errno == errno.EFBIG == TOO_LARGE


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
    path.write_bytes(data := os.urandom(3 * CHUNK + 1))
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
