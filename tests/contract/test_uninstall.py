"""`tailhook uninstall`: it ends and removes more than the hooks, and leaves some files."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest
from support.host import ENVIRONMENT, HANGS_S, Started, run_on_payload, short_folder, tailhook
from support.pool import LINUX, WITHOUT_SANITIZER, Gate, is_alive, pids_of, wait_until
from support.terminal import Terminal

pytestmark = WITHOUT_SANITIZER
NO_HOOKS = "Nothing to remove"
STOP = {"hook_event_name": "Stop", "session_id": "s", "last_assistant_message": "Hm."}


class User:
    """A user with an empty home and a project in it."""

    def __init__(self, folder: str) -> None:
        self.home = Path(folder)
        self.project = self.home / "project"
        (self.project / ".git").mkdir(parents=True)
        self.env = {**ENVIRONMENT, "HOME": folder}

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "tailhook", *words]

    def run(self, *words: str, folder: Path | None = None, **env: str) -> str:
        """Run a command that must end well, without a terminal, in the project or a folder; return what it prints."""
        done = tailhook(*words, env={**self.env, **env}, cwd=folder or self.project)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def client(self) -> Path:
        """Return the path of this installation's client; write it if it is missing."""
        return Path(json.loads(self.run("hook-command", "--warm"))[0])

    def left(self) -> list[str]:
        """Return the files in the home, without the project and the folders for any program's state."""
        paths = (
            path.relative_to(self.home) for path in self.home.rglob("*") if self.project not in (path, *path.parents)
        )
        return sorted(map(str, {*paths} - {Path(".local"), Path(".local/state")}))


@pytest.fixture
def user():
    """Yield a user with a short path of the home. Pools are ended."""
    with short_folder() as folder:
        one = User(folder)
        yield one
        one.run("pool", "stop")
        clients = [f"{client.parent}/" for client in one.home.rglob("tailhook-hook")]
        wait_until(lambda: not any(map(pids_of, clients)))  # a pool that a client has just started leaves only now


def test_without_hooks_a_client_goes_only_if_that_is_asked_for(user):
    client = user.client()
    assert "The native client stays" in user.run("uninstall")
    assert client.exists()
    terminal = Terminal(user.argv("uninstall"), user.env, user.project)
    terminal.until("Remove the native client, too?")
    os.write(terminal.fd, b"n\n")
    assert (terminal.wait(), client.exists()) == (0, True)
    output = user.run("uninstall", "--yes")
    assert NO_HOOKS in output
    assert "native client removed" in output
    assert user.left() == []
    assert NO_HOOKS in user.run("uninstall")
    assert user.left() == []


def test_the_client_goes_with_the_last_hooks_although_a_project_with_hooks_was_deleted(user):
    deleted = user.home / "deleted"
    (deleted / ".git").mkdir(parents=True)
    user.run("install", "--yes", "--scope", "project", folder=deleted)
    user.run("install", "--yes")
    assert "client" not in user.run("uninstall", "--yes")  # the project's hooks use it
    shutil.rmtree(deleted)
    line = f"Hooks were installed in {deleted}/.claude/settings.json, too, and this file is gone.\n"
    assert f"{line}The native client stays, as hooks in a file that was moved may use it." in user.run("uninstall")
    assert user.client().exists()
    assert f"{line}The pool was ended and the native client removed.\n" in user.run("uninstall", "--yes")
    assert user.left() == []


def test_the_client_goes_with_the_hooks_of_a_project_that_was_moved(user):
    before = user.home / "before"
    (before / ".git").mkdir(parents=True)
    user.run("install", "--yes", "--scope", "project", folder=before)
    moved = before.rename(user.home / "moved")
    words = user.run("uninstall", "--yes", "--scope", "project", folder=moved)
    assert f"Hooks were installed in {before}/.claude/settings.json, too, and this file is gone.\n" in words
    assert "native client removed" in words
    assert user.run("uninstall", "--yes").startswith(NO_HOOKS)


def test_the_client_stays_if_hooks_are_installed_in_a_file_that_is_there(user):
    """Beside one that is gone."""
    for name in ("deleted", "there"):
        (user.home / name / ".git").mkdir(parents=True)
        user.run("install", "--yes", "--scope", "project", folder=user.home / name)
    shutil.rmtree(user.home / "deleted")
    client = user.client()
    assert "client" not in user.run("uninstall", "--yes")
    assert client.exists()


def test_in_a_folder_that_was_removed_nothing_is_changed(user):
    user.run("install", "--yes")
    there = user.home / "there"
    there.mkdir()
    script = 'cd "$0" && rmdir "$0" && exec "$@"'
    argv = ["/bin/sh", "-c", script, str(there), *user.argv("uninstall", "--yes")]
    done = subprocess.run(argv, env=user.env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tailhook: the current folder was removed: change to another one\n"
    assert (user.home / ".claude/settings.json").exists()


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_a_running_loop_that_no_hook_continues_any_more_is_named(user, group):
    user.run("install", "--yes", "--cold")
    user.run("install", "--yes", "--cold", "--scope", "project")
    user.run(group, "start", "Go.")
    place = ".jwz" if group == "loop" else ".claude/ralph-loop.local.md"
    line = f"A loop is still running in {user.project}/{place}, and no hook continues it now."
    assert line not in user.run("uninstall", "--yes", "--scope", "project")
    assert f"{line} To end it:  tailhook {group} cancel\n" in user.run("uninstall", "--yes")
    user.run(group, "cancel")
    words = user.run("uninstall", "--yes")
    assert (f" {user.project}/.jwz\n" in words) == (group == "loop")


def test_what_hooks_have_saved_is_named(user):
    assert "have saved stays" not in user.run("uninstall", "--yes")
    user.run("install", "--yes", "--with", "plates")
    event = {"hook_event_name": "SessionStart", "session_id": "s", "cwd": str(user.project)}
    argv = [sys.executable, "-m", "tailhook", "hook", "plates"]
    env = {**user.env, "TAILHOOK_NO_AUTOSTART": "1"}
    run_on_payload(argv, json.dumps(event).encode(), env=env, cwd=user.project, check=True)
    folder = user.home / ".local" / "state" / "tailhook"
    assert f"What hooks, loops and the daemon have saved stays: {folder}\n" in user.run("uninstall", "--yes")
    assert folder.exists()


def test_an_uninstall_after_a_killed_command_leaves_no_empty_file(user):
    """A command that is killed under its locks, in the middle of a backup, leaves such files."""
    user.run("install", "--yes")
    state = user.home / ".local/state/tailhook"
    (receipt,) = (state / "settings").iterdir()
    locks = [state / f"{receipt.name}.lock", state / "client.lock"]
    for left in (*locks, receipt.with_name(f"{receipt.name}.backup.1.tmp"), receipt.with_name(f"{receipt.name}.1.tmp")):
        left.touch()
    assert user.run("install", "--yes").startswith("Nothing to change")
    assert not any(lock.exists() for lock in locks)
    user.run("uninstall", "--yes")
    assert user.left() == []
    state.mkdir(parents=True, mode=0o700)
    locks[0].touch()
    assert user.run("uninstall", "--yes").startswith(NO_HOOKS)
    assert user.left() == []


def test_a_draft_that_a_killed_command_left_for_another_file_keeps_no_client(user):
    user.run("install", "--yes")
    (user.home / ".local/state/tailhook/settings/settings.json-0123456789abcdef.1.tmp").write_text("{")
    assert "native client removed" in user.run("uninstall", "--yes")


def test_a_client_that_hooks_written_by_hand_use_stays(user):
    client = user.client()
    settings = user.project / ".claude" / "settings.json"
    settings.parent.mkdir()
    hook = {"type": "command", "command": str(client), "args": ["hook"]}
    settings.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}))
    assert f"{client} stays: {settings} has hooks that use it." in user.run("uninstall", "--yes")
    done = run_on_payload([client, "hook"], json.dumps(STOP).encode(), env=user.env, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_install_that_waits_for_its_answer_writes_the_client_that_was_removed_meanwhile(user):
    terminal = Terminal(user.argv("install"), user.env, user.project)
    terminal.until("Write these changes?")
    assert "native client removed" in user.run("uninstall", "--scope", "project", "--yes")
    os.write(terminal.fd, b"y\n")
    assert terminal.wait() == 0
    settings = json.loads((user.home / ".claude" / "settings.json").read_text())
    assert Path(settings["hooks"]["Stop"][0]["hooks"][0]["command"]).exists()


def test_the_client_of_an_environment_that_is_gone_goes_with_its_pool(user):
    client = user.client()
    user.run("install", "--yes")
    former = client.parent.with_name("0123456789abcdef")
    shutil.copytree(client.parent, former)
    fields = (former / "installation").read_bytes().split(b"\0")
    env = {**user.env, "XDG_STATE_HOME": str(user.home / ".local" / "state")}
    serve = [sys.executable, "-I", "-S", str(Path(os.fsdecode(fields[4]))), f"{former}/", "--asked"]
    pool = subprocess.Popen(serve, env=env)
    try:
        wait_until(lambda: any((user.home / ".local/state/tailhook/run/pool").glob("*.*")))
        user.run("uninstall", "--yes")
        assert pool.wait(HANGS_S) == 0
    finally:
        pool.kill()
    assert user.left() == []


@pytest.mark.parametrize("order", [("project", "local"), ("local", "project")])
def test_a_folder_that_was_made_for_two_files_goes_with_the_second(user, order):
    user.run("install", "--yes", "--scope", "project")
    user.run("install", "--yes", "--scope", "local")
    for scope in order:
        assert (user.project / ".claude").exists()
        user.run("uninstall", "--yes", "--scope", scope)
    assert not (user.project / ".claude").exists()
    assert user.left() == []


def install_plates(user: User) -> tuple[Path, Callable[[], object]]:
    """Install the machine; return the state folder, and a function that runs a hook. That starts the daemon."""
    pytest.importorskip("uvicorn")
    user.run("install", "--yes", "--with", "plates")
    hook = json.loads(user.run("hook-command", "--cold", "plates"))
    event = {"hook_event_name": "SessionStart", "session_id": "s", "cwd": str(user.project)}
    run = partial(run_on_payload, hook, json.dumps(event).encode(), env=user.env, cwd=user.project, check=True)
    return user.home / ".local" / "state" / "tailhook", run


def test_the_daemon_that_a_hook_started_is_ended_and_what_it_recorded_stays(user):
    state, run_hook = install_plates(user)
    run_hook()
    wait_until(lambda: (state / "daemon-lock").exists() and (state / "plates.db").exists())
    pid = int((state / "daemon-lock").read_text().split()[0])
    output = user.run("uninstall", "--yes")
    assert f"The daemon was ended. What it has recorded stays in {state}." in output
    assert not is_alive(pid)
    assert (state / "plates.db").exists()
    assert not (state / "daemon-argv").exists()


@LINUX
def test_a_daemon_that_a_hook_has_just_started_is_ended(user):
    state, run_hook = install_plates(user)
    argv = state / "daemon-argv"
    code = "import tailhook.cli.uninstall as one; from tailhook.cli import main; "
    code += f"one.DAEMON_STARTS_S = one.DAEMON_ENDS_S = {HANGS_S}; main(['uninstall', '--yes'])"
    with Gate(user.home / "gate") as gate:
        slowly = ["/bin/sh", "-c", f'read -r _ <{gate.path}; exec "$@"', "sh"]
        argv.write_bytes(b"\0".join([*map(os.fsencode, slowly), argv.read_bytes()]))
        run_hook()
        (starting,) = pids_of(slowly[2])
        pipe = {"stdout": subprocess.PIPE}
        with Started([sys.executable, "-c", code], env=user.env, cwd=user.project, **pipe) as removing:
            attempt = str(state / "daemon-start")
            wait_until(lambda: attempt in [file.path for file in psutil.Process(removing.pid).open_files()])
            gate.open()
            assert b"The daemon was ended. What it has recorded stays in " in removing.stdout.read()
    assert (is_alive(starting), argv.exists()) == (False, False)


@pytest.mark.parametrize(("installed", "below"), [(None, "project"), ("first", "project"), (None, "")])
def test_the_client_of_another_state_folder_goes_with_its_hooks(user, installed, below):
    """XDG_STATE_HOME had another value, or none, when the hooks were installed."""
    settings = user.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"model": "opus"}')
    env = {"XDG_STATE_HOME": str(user.home / installed)} if installed else {}
    user.run("install", "--yes", **env)
    argv = json.loads(settings.read_text())["hooks"]["Stop"][0]["hooks"][0]
    hook = [argv["command"], *argv["args"]]
    run_on_payload(hook, json.dumps(STOP).encode(), env={**user.env, **env}, check=True)
    state = user.home / (installed or ".local/state")
    wait_until(lambda: any(state.glob("tailhook/run/pool/*.*")))
    output = user.run("uninstall", "--yes", folder=user.home / below, XDG_STATE_HOME=str(user.home / "second"))
    assert f"The hooks were installed with XDG_STATE_HOME={state}, which is used here, too." in output
    assert "is restored, byte for byte" in output
    assert not (state / "tailhook").exists()


@pytest.mark.parametrize("place", ["{}", "/{}", "{}/.", "{}/../project", "/proc/self/cwd"])
def test_a_state_folder_that_comes_with_a_project_is_not_used(user, place):
    below = "evil/tailhook/pool/0123456789abcdef/tailhook-hook"
    (user.project / below).parent.mkdir(parents=True, mode=0o700)
    (user.project / below).touch()
    client = f"{place.format(user.project)}/{below}"
    settings = user.project / ".claude" / "settings.json"
    settings.parent.mkdir()
    hook = {"type": "command", "command": client, "args": ["hook"]}
    settings.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}))
    output = user.run("uninstall", "--yes", "--scope", "project")
    assert "The hooks were removed" in output or "was removed" in output
    assert f"use a native client in {client.rpartition('/pool/')[0]}, which stays." in output
    assert "XDG_STATE_HOME" not in output
    assert (user.project / below).exists()


def test_a_pool_is_ended_although_another_program_listens_beside_it(user):
    user.run("install", "--yes")
    state = user.home / ".local" / "state" / "tailhook"
    with Started(user.argv("pool", "serve"), env=user.env, stdout=subprocess.PIPE) as serve:
        assert serve.stdout.readline().startswith(b"The pool runs: process ")
        (own,) = (state / "run" / "pool").glob("*.*")
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(own.with_suffix(".00000000")))
            other.listen()
            done = tailhook("pool", "stop", env=user.env, cwd=user.project)
        assert (done.returncode, "listens there and is not a pool" in done.stderr) == (1, True)
        assert serve.wait(HANGS_S) == 0


def test_a_pool_whose_state_folder_was_moved_is_ended(user):
    user.run("install", "--yes")
    with Started(user.argv("pool", "serve"), env=user.env, stdout=subprocess.PIPE) as serve:
        assert serve.stdout.readline().startswith(b"The pool runs: process ")
        state = user.home / ".local" / "state" / "tailhook"
        state.rename(state.with_name("moved"))
        state.symlink_to("moved")
        user.run("pool", "stop")
        assert serve.wait(HANGS_S) == 0


def test_a_program_that_is_not_a_pool_is_left_alone(user):
    """The file beside the client names the socket of another program of the user."""
    user.run("install", "--yes")
    folder = user.client().parent
    fields = (folder / "installation").read_bytes().split(b"\0")
    prefix = f"{user.home}/other"
    (folder / "installation").write_bytes(b"\0".join([fields[0], prefix.encode(), *fields[2:]]))
    script = (
        "import signal, socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); signal.pause()"
    )
    other = subprocess.Popen([sys.executable, "-c", script, f"{prefix}.sock"])
    try:
        wait_until(Path(f"{prefix}.sock").exists)
        done = tailhook("pool", "stop", env=user.env, cwd=user.project)
        assert done.returncode == 1
        assert f"process {other.pid} listens there and is not a pool. It was left alone" in done.stderr
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize("spoil", ["", "x"])
def test_sockets_of_a_damaged_installation_go_too(user, spoil):
    user.run("install", "--yes")
    installation = user.client().with_name("installation")
    installation.write_text(spoil)
    assert "have saved stays" not in user.run("uninstall", "--yes")
    assert not (user.home / ".local" / "state" / "tailhook").exists()


def test_no_folder_stays_where_the_sockets_were_before(user):
    runtime = user.home / "runtime"
    runtime.mkdir(mode=0o700)
    user.run("install", "--yes", XDG_RUNTIME_DIR=str(runtime))
    assert (runtime / "tailhook" / "pool").is_dir()
    with Started(user.argv("pool", "serve"), env=user.env, stdout=subprocess.PIPE) as serve:
        assert serve.stdout.readline().startswith(b"The pool runs: process ")
        user.run("uninstall", "--yes")
        assert serve.wait(HANGS_S) == 0
    assert list(runtime.iterdir()) == []


def test_a_home_whose_path_is_not_utf_8_gets_the_cold_form(user):
    home = user.home / os.fsdecode(b"\xff")
    home.mkdir()
    assert (
        "Each event starts Python, because the native client cannot be used: its path would not be UTF-8"
        in user.run("install", "--yes", HOME=str(home))
    )
    assert "contained nothing else and was removed" in user.run("uninstall", "--yes", HOME=str(home))
    assert not any(path.is_file() for path in home.rglob("*"))


def test_a_file_that_install_made_is_removed_even_if_it_was_edited_and_installed_again(user):
    user.run("install", "--yes")
    path = user.home / ".claude" / "settings.json"
    path.write_text(path.read_text().replace('"timeout": 10', '"timeout": 30', 1))
    user.run("install", "--yes", "--with", "gate")
    assert f"{path} contained nothing else and was removed." in user.run("uninstall", "--yes")
    assert user.left() == []


def test_a_comment_in_a_toml_file_that_install_made_stays(user):
    user.run("install", "--yes", "--host", "kimi")
    path = user.home / ".kimi-code" / "config.toml"
    path.write_text(f"# My own note.\n{path.read_text()}")
    assert "contained nothing else" not in user.run("uninstall", "--yes", "--host", "kimi")
    assert path.read_text().startswith("# My own note.\n")


def test_the_change_of_a_new_file_does_not_show_its_braces_beside_a_table_of_hooks(user):
    assert "Besides" not in user.run("install", "--yes", "--with", "plates")
    assert "Besides" not in user.run("uninstall", "--yes")
