"""The hooks' side of the spool: no line is lost, and full files have numbers in their order."""

import ast
import errno
import inspect
import os
import posix
import socket
import stat
from pathlib import Path

import pytest
from support.host import short_folder

from tailhook.hook import plates as hook_plates
from tailhook.plates import run
from tailhook.plates.schemas import Report, RunEnd
from tailhook.stores import spool


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the path of the private state folder; it does not exist yet."""
    monkeypatch.setattr("posix.environ", {**posix.environ, b"XDG_STATE_HOME": os.fsencode(tmp_path)})
    return tmp_path / "tailhook"


def set_aside(folder):
    """Return the contents of the renamed files, in the order of their numbers."""
    paths = sorted(folder.glob("events.*"), key=lambda path: int(path.suffix[1:]))
    return [path.read_bytes() for path in paths]


def test_lines_are_appended_to_a_file_that_only_its_user_can_read(folder):
    spool.append_record(b"one\n")
    spool.append_record(b"two\n")
    assert [path.name for path in folder.iterdir()] == ["events"]
    assert (folder / "events").read_bytes() == b"one\ntwo\n"
    assert stat.S_IMODE((folder / "events").stat().st_mode) == 0o600


def test_a_link_in_place_of_the_spool_is_not_followed(folder, tmp_path):
    folder.mkdir(mode=0o700)
    (tmp_path / "other").write_bytes(b"")
    (folder / "events").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic link"):
        spool.append_record(b"one\n")
    assert (tmp_path / "other").read_bytes() == b""


def test_a_pipe_without_a_reader_in_place_of_the_spool_is_an_error_and_not_waited_for(folder):
    folder.mkdir(mode=0o700)
    os.mkfifo(folder / "events")
    with pytest.raises(OSError, match=os.strerror(errno.ENXIO)):
        spool.append_record(b"one\n")


def test_the_spools_descriptor_does_not_reach_other_programs(folder):
    folder.mkdir(mode=0o700)
    fd = spool.open_spool(str(folder))
    assert not os.get_inheritable(fd)
    os.close(fd)


def test_a_file_gets_another_name_only_once_it_is_longer_than_the_limit(folder, monkeypatch):
    monkeypatch.setattr(spool, "MAX_SPOOL_FILE_BYTES", 4)
    spool.append_record(b"one\n")
    assert set_aside(folder) == []
    spool.append_record(b"two\n")
    assert set_aside(folder) == [b"one\ntwo\n"]
    spool.append_record(b"three\n")
    assert set_aside(folder) == [b"one\ntwo\n", b"three\n"]
    assert not (folder / "events").exists()


@pytest.mark.parametrize("name", ["events.99999999999999999999", "events.1"])
def test_a_full_file_is_read_after_all_earlier_ones_even_if_the_clock_was_set_back(folder, monkeypatch, name):
    folder.mkdir(mode=0o700)
    (folder / name).write_bytes(b"earlier\n")
    monkeypatch.setattr(spool, "MAX_SPOOL_FILE_BYTES", 0)
    spool.append_record(b"one\n")
    assert set_aside(folder) == [b"earlier\n", b"one\n"]


def test_files_of_other_names_do_not_count(folder, monkeypatch):
    folder.mkdir(mode=0o700)
    for name in ("other.99999999999999999999", "events.x", "events-id"):
        (folder / name).write_bytes(b"")
    (folder / "events.7").write_bytes(b"")
    assert spool.file_numbers() == [7]


@pytest.mark.parametrize("leaves_a_file", [False, True])
def test_a_line_whose_file_was_taken_away_meanwhile_is_written_again(folder, monkeypatch, leaves_a_file):
    times = []

    def take_away(fd):
        times.append(fd)
        if len(times) == 1:
            (folder / "events").rename(folder / "events.1")
            if leaves_a_file:
                (folder / "events").write_bytes(b"new\n")

    monkeypatch.setattr(spool, "sync", take_away)
    spool.append_record(b"one\n")
    assert len(times) == 2
    assert (folder / "events.1").read_bytes() == b"one\n"
    assert (folder / "events").read_bytes() == (b"new\none\n" if leaves_a_file else b"one\n")


def test_a_file_that_another_hook_renamed_is_not_renamed_again(folder):
    folder.mkdir(mode=0o700)
    (folder / "events.1").write_bytes(b"full\n")
    (folder / "events").write_bytes(b"new\n")
    spool.rename_full_file(posix.stat(folder / "events.1"))
    assert (folder / "events").read_bytes() == b"new\n"


def test_another_hook_may_rename_the_file_between_the_look_and_the_renaming(folder, monkeypatch):
    folder.mkdir(mode=0o700)
    (folder / "events.1").write_bytes(b"full\n")
    monkeypatch.setattr(spool, "is_current", lambda state: True)
    spool.rename_full_file(posix.stat(folder / "events.1"))
    assert [path.name for path in folder.iterdir()] == ["events.1"]


# ---- the folder of the sockets -----------------------------------------------


def test_the_sockets_are_in_the_logins_folder_and_without_one_in_the_private_state_folder(
    folder, tmp_path, monkeypatch
):
    logins, own = tmp_path / "login", f"{folder}/run"
    logins.mkdir()
    monkeypatch.chdir(tmp_path)
    for value, found in ((str(logins), f"{logins}/tailhook"), (f"{logins}-ended", own), ("login", own), ("", own)):
        monkeypatch.setitem(posix.environ, b"XDG_RUNTIME_DIR", value.encode())
        assert spool.runtime_folder() == found
    assert spool.runtime_folder("/other") == "/other/run"


def test_a_wake_up_that_no_daemon_receives_is_noticed_with_and_without_a_socket_left_behind(monkeypatch):
    with short_folder() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        runtime = Path(folder)
        monkeypatch.setitem(posix.environ, b"XDG_RUNTIME_DIR", os.fsencode(runtime))
        assert not spool.wake_daemon()
        (runtime / "tailhook").mkdir()
        daemon.bind(str(runtime / "tailhook" / spool.WAKE_UP_SOCKET))
        assert spool.wake_daemon()
        daemon.close()
        assert not spool.wake_daemon()


# ---- the fields --------------------------------------------------------------


def fields_of_record(function):
    """The names in a function's dict with an `event_id`."""
    tree = ast.parse(inspect.getsource(function))
    dicts = [[key.value for key in node.keys if key] for node in ast.walk(tree) if isinstance(node, ast.Dict)]
    [names] = [names for names in dicts if "event_id" in names]
    return set(names)


def test_the_daemon_knows_every_field_that_a_hook_reports():
    sent = fields_of_record(hook_plates.report)
    assert sent - set(Report.model_fields) == {"pid_namespace"}  # `Inbox.origin` compares it with the daemon's own
    assert set(Report.model_fields) - sent == {"user"}  # the owner of the spool


def test_the_daemon_knows_every_field_of_the_end_of_a_run():
    assert fields_of_record(run.report_end) - {"event_id", "event_type"} == set(RunEnd.model_fields)
