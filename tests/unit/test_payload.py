"""The hook's input: the object on stdin, its fields, and the project's folders."""

import contextlib
import json
import os
import threading

import pytest
from support.host import HANGS_S, is_read, wait_until

from tailhook.hook import payload as module
from tailhook.hook.payload import (
    MAX_FOLDER_BYTES,
    exists,
    folder_of,
    get_text,
    is_path,
    is_paused,
    project_folders,
    project_root,
    read_payload,
    user_config,
    walk_up,
    working_folder,
)


@pytest.fixture
def env(monkeypatch):
    """Return the environment that the hook sees: it is empty."""
    variables: dict[bytes, bytes] = {}
    monkeypatch.setattr("posix.environ", variables)
    return variables


@pytest.fixture
def pipe():
    """Yield the two ends of a pipe; a test may close the writing end."""
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)
    with contextlib.suppress(OSError):
        os.close(writer)


# ---- reading -----------------------------------------------------------------


def read(pipe, data):
    reader, writer = pipe
    os.write(writer, data)
    os.close(writer)
    return read_payload(reader)


@pytest.mark.parametrize("data", [b'{"a": 1}', b'\xef\xbb\xbf{"a": 1}', b' \r\n\t{"a": 1}', b'{"a": 1}\n'])
def test_an_object_is_read(pipe, data):
    assert read(pipe, data) == {"a": 1}


def test_the_end_of_the_input_is_not_waited_for(pipe):
    os.write(pipe[1], b'{"a": "}"}')
    assert read_payload(pipe[0]) == {"a": "}"}


def test_what_follows_the_object_is_ignored(pipe):
    assert read(pipe, b'{"a": 1}{"b": 2') == {"a": 1}


def test_an_object_in_pieces_is_read(pipe, monkeypatch):
    monkeypatch.setattr(module, "PAYLOAD_TIMEOUT_S", HANGS_S)
    reader, writer = pipe
    data = json.dumps({"text": "é" * 500, "end": True}).encode()

    def write():
        for at in range(0, len(data), 100):
            os.write(writer, data[at : at + 100])
            wait_until(lambda: is_read(reader))

    thread = threading.Thread(target=write)
    thread.start()
    assert read_payload(reader, HANGS_S) == json.loads(data)
    thread.join()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the payload is empty"),
        (b"  ", "ends before it is complete"),
        (b'{"a": ', "ends before it is complete"),
        (b'{"a": "}', "ends before it is complete"),
        (b"{a}", "the payload is "),
        (b'{"a": NaN}', "the payload is "),
        (b'{"a": "\xff"}', "the payload is "),
    ],
)
def test_input_that_is_not_complete_json_is_an_error(pipe, data, words):
    with pytest.raises(ValueError, match=words):
        read(pipe, data)


@pytest.mark.parametrize("data", [b"[1]", b'[{"a": 1}]', b'"text" ', b"1 ", b"null ", b"true "])
def test_input_that_is_not_an_object_is_an_error(pipe, data):
    with pytest.raises(ValueError, match="the payload"):
        read(pipe, data)


def test_without_input_it_returns_none_after_the_timeout(pipe, monkeypatch):
    monkeypatch.setattr(module, "PAYLOAD_TIMEOUT_S", 0.05)
    assert read_payload(pipe[0], 0.05) is None


def test_with_a_timeout_of_0_only_what_is_buffered_is_read(pipe):
    assert read_payload(pipe[0], 0) is None
    os.write(pipe[1], b'{"a": 1}')
    assert read_payload(pipe[0], 0) == {"a": 1}


def test_an_object_that_does_not_come_to_its_end_in_time_is_given_up(pipe, monkeypatch):
    monkeypatch.setattr(module, "PAYLOAD_TIMEOUT_S", 0.05)
    os.write(pipe[1], b'{"a": ')
    assert read_payload(pipe[0]) is None


def test_an_object_whose_time_is_over_after_its_first_piece_is_given_up(pipe, monkeypatch):
    monkeypatch.setattr(module, "PAYLOAD_TIMEOUT_S", 0)
    os.write(pipe[1], b'{"a": ')
    assert read_payload(pipe[0], 2) is None
    os.write(pipe[1], b'{"a": 1}')
    assert read_payload(pipe[0], 2) == {"a": 1}


def test_a_payload_over_the_limit_is_given_up(pipe, monkeypatch):
    monkeypatch.setattr(module, "MAX_PAYLOAD_BYTES", 10)
    assert read(pipe, b'{"text": "more than ten bytes') is None


# ---- fields ------------------------------------------------------------------


@pytest.mark.parametrize("payload", [{}, {"key": None}, {"key": 1}, {"key": ["a"]}, {"key": {"a": "b"}}, {"key": True}])
def test_a_field_that_is_missing_or_not_a_string_is_empty(payload):
    assert get_text(payload, "key") == ""


def test_a_string_is_returned_as_it_is():
    assert get_text({"key": " a\0\ud800 "}, "key") == " a\0\ud800 "


@pytest.mark.parametrize(
    "tasks", [None, "subagent", {}, [], ["subagent"], [None], [{}], [{"type": None}], [{"type": 1}]]
)
def test_a_payload_without_a_background_task_is_not_paused(tasks):
    assert not is_paused({"background_tasks": tasks})
    assert not is_paused({})


@pytest.mark.parametrize("kind", ["subagent", "Local_Agent", "workflow", "teammate", "remote-session"])
def test_a_running_task_that_wakes_the_agent_pauses_it(kind):
    assert is_paused({"background_tasks": [{"type": "shell"}, {"type": kind, "status": "running"}]})
    assert is_paused({"background_tasks": [{"type": kind}]})
    assert is_paused({"background_tasks": [{"type": kind, "status": None}]})
    assert is_paused({"background_tasks": [{"type": kind, "status": "pending"}]})


@pytest.mark.parametrize(
    "task",
    [
        {"type": "shell", "status": "running"},
        {"type": "subagent", "status": "completed"},
        {"type": "subagent", "status": ""},
        {"type": "subagent", "status": ["running"]},
    ],
)
def test_a_shell_or_a_task_that_does_not_run_does_not_pause_it(task):
    assert not is_paused({"background_tasks": [task]})


# ---- paths -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "/a b", "é", "\udc80", os.fsdecode(b"/\xff")])
def test_a_name_that_the_system_can_take_is_a_path(name):
    assert is_path(name)


@pytest.mark.parametrize("name", ["\0", "/a\0b", "\ud800", "/\udbff"])
def test_a_name_with_nul_or_a_surrogate_that_is_not_a_byte_is_not_a_path(name):
    assert not is_path(name)


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("/a/b", ["/a/b", "/a", "/"]),
        ("/a/b//", ["/a/b", "/a", "/"]),
        ("/", ["/"]),
        ("//", ["/"]),
        ("", ["/"]),
    ],
)
def test_the_folders_above_are_walked_up_to_the_root(folder, expected):
    assert list(walk_up(folder)) == expected


def test_a_folder_variable_has_no_slash_at_its_end(env):
    assert folder_of(b"HOME") == ""
    env[b"HOME"] = b"/home/ada//"
    assert folder_of(b"HOME") == "/home/ada"
    env[b"HOME"] = b"/\xff"
    assert os.fsencode(folder_of(b"HOME")) == b"/\xff"


def test_a_broken_link_exists(tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    assert exists(str(tmp_path / "link"))
    assert not exists(str(tmp_path / "nowhere"))
    assert not exists(str(tmp_path / "link" / "below"))


# ---- the project -------------------------------------------------------------


def test_the_working_folder_is_the_payloads(env):
    assert working_folder({"cwd": "/nowhere/project"}) == "/nowhere/project"


@pytest.mark.parametrize("cwd", [None, 1, "", "relative", "./a", "~/a", "/a\0b", "/\ud800"])
def test_a_payload_without_a_usable_folder_leaves_the_hooks_own(env, tmp_path, monkeypatch, cwd):
    monkeypatch.chdir(tmp_path)
    assert working_folder({"cwd": cwd}) == str(tmp_path)


def test_if_the_hooks_folder_is_gone_the_projects_is_used(env, tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(FileNotFoundError):
        working_folder({})
    env[b"CLAUDE_PROJECT_DIR"] = b"/project/"
    assert working_folder({}) == "/project"


@pytest.mark.parametrize("name", ["a", "\N{BLACK STAR}", "\udcff"])
def test_a_folder_whose_path_the_system_refuses_is_the_nearest_one_above_it(env, name):
    """Such a folder can be a process's own: each `cd` in it is relative."""
    deep = f"/{name * 100}" * 60
    found = working_folder({"cwd": deep})
    size = len(os.fsencode(f"/{name * 100}"))
    assert found == f"/{name * 100}" * (MAX_FOLDER_BYTES // size)
    assert working_folder({"cwd": found}) == found


def test_the_project_is_the_variables_before_that_of_git(env, tmp_path):
    below = tmp_path / "project" / "src" / "deep"
    below.mkdir(parents=True)
    assert project_root({"cwd": str(below)}) == str(below)
    (tmp_path / "project" / ".git").write_text("gitdir: elsewhere\n")  # as in a worktree
    assert project_root({"cwd": str(below)}) == str(tmp_path / "project")
    env[b"CLAUDE_PROJECT_DIR"] = b"/elsewhere/"
    assert project_root({"cwd": str(below)}) == "/elsewhere"


def test_the_folders_go_up_to_the_repository(env, tmp_path):
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / ".git").mkdir()
    payload = {"cwd": str(project / "src")}
    assert list(project_folders(payload)) == [str(project / "src"), str(project)]
    env[b"CLAUDE_PROJECT_DIR"] = os.fsencode(project)
    assert list(project_folders(payload)) == [str(project), str(project / "src")]
    env[b"CLAUDE_PROJECT_DIR"] = b"/elsewhere"
    assert list(project_folders(payload)) == ["/elsewhere", str(project / "src"), str(project)]


def test_the_folders_go_up_to_the_home_or_the_root(env):
    assert list(project_folders({"cwd": "/nowhere/a"})) == ["/nowhere/a", "/nowhere", "/"]
    env[b"HOME"] = b"/nowhere/"
    assert list(project_folders({"cwd": "/nowhere/a"})) == ["/nowhere/a", "/nowhere"]


@pytest.mark.parametrize(
    ("variables", "path"),
    [
        ({b"HOME": b"/h"}, "/h/.config/tailhook/config.json"),
        ({b"HOME": b"/h", b"XDG_CONFIG_HOME": b"/c"}, "/c/tailhook/config.json"),
        ({b"HOME": b"/h", b"XDG_CONFIG_HOME": b"relative"}, "/h/.config/tailhook/config.json"),
        ({b"HOME": b"/h", b"XDG_CONFIG_HOME": b""}, "/h/.config/tailhook/config.json"),
        ({}, "/.config/tailhook/config.json"),
    ],
)
def test_the_users_configuration_follows_the_xdg_base_directories(env, variables, path):
    env.update(variables)
    assert user_config() == path
