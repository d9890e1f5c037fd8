"""The pool when its package is upgraded, installed or removed."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from support.host import ENVIRONMENT, Started, run_on_payload, tailhook
from support.pool import (
    STARTS,
    STOP,
    WITHOUT_SANITIZER,
    Pool,
    is_alive,
    iteration,
    let_pools_wait,
    looping_project,
    wait_until,
)

from tailhook import _core
from tailhook.pool.control import read_installation

pytestmark = WITHOUT_SANITIZER


# ---- upgrades --------------------------------------------------------------------


@pytest.mark.parametrize("change", ["a module is written", "the core is replaced", "a module is removed"])
def test_an_upgrade_ends_the_pool_and_the_next_one_is_new(home, site, change):
    with Pool(home, package=site) as pool:
        project = looping_project(home)
        pool.stop_until_warm(cwd=project)
        before = iteration(project)
        if change == "a module is written":
            with (site / "machines" / "idle.py").open("a") as out:
                out.write("\n# changed\n")
        elif change == "the core is replaced":
            core = site / Path(_core.__file__).name  # other interpreters' may stand beside it
            shutil.copy(core, site / "new")
            (site / "new").rename(core)
        else:
            (site / "hosts" / "cursor.py").unlink()
        records = pool.records("Stop")
        assert pool.hook(STOP, cwd=project).returncode == 2
        assert iteration(project) == before + 1
        assert "w" not in pool.ways_after(records)
        wait_until(lambda: not is_alive(pool.pid))
        with contextlib.suppress(FileNotFoundError):
            (pool.folder / "pool-start").unlink()
        pool.hook(STOP, cwd=project)
        wait_until(lambda: pool.finds_socket())
        pool.stop_until_warm(cwd=project)


@pytest.mark.parametrize("name", [".#idle.py", "lost.py"])
def test_a_link_to_nowhere_in_the_package_keeps_no_pool_from_starting(home, site, name):
    for folder in ("", "machines"):
        (site / folder / name).symlink_to("nowhere")
    with Pool(home, package=site) as pool:
        pool.stop_until_warm()


@pytest.mark.parametrize("change", ["a folder above is renamed", "a link is changed"])
def test_a_pool_leaves_if_another_package_has_its_path(home, site, change):
    for version in ("first", "second"):
        shutil.copytree(site, home / version / "tailhook")
    current = home / "current"
    if change == "a link is changed":
        current.symlink_to("first")
    else:
        (home / "first").rename(current)
    with Pool(home, package=current / "tailhook") as pool:
        pool.stop_until_warm()
        records = pool.records("Stop")
        if change == "a link is changed":
            (home / "new").symlink_to("second")
            (home / "new").rename(current)
        else:
            current.rename(home / "old")
            (home / "second").rename(current)
        assert pool.hook(STOP).returncode == 0
        assert "w" not in pool.ways_after(records)
        wait_until(lambda: not is_alive(pool.pid))
        pool.hook(STOP)
        wait_until(lambda: pool.finds_socket())
        pool.stop_until_warm()


def test_an_upgrade_while_a_pool_starts_ends_it(home, site):
    """The change comes when a module that is already loaded is replaced, before the last ones are loaded."""
    loaded = str(site / "stores" / "atomic.py")
    with (site / "pool" / "worker.py").open("a") as out:
        out.write(f"\nwith open({loaded!r}, 'a') as one:\n    one.write('# changed')\n")
    with Pool(home, package=site, starts=False) as pool:
        done = subprocess.run(
            [*pool.serve_argv(), "--asked"], env=pool.env, capture_output=True, text=True, check=False, timeout=STARTS
        )
        assert (done.returncode, "is being changed" in done.stderr) == (1, True)


def test_an_upgrade_leaves_no_socket_of_a_pool_that_was_killed(home, site):
    with Pool(home, package=site) as pool:
        before = pool.path
        pool.end(signal.SIGKILL)
        init = site / "__init__.py"
        init.write_text(re.sub(r'__version__ = "[^"]*"', '__version__ = "9.9.9"', init.read_text()))
        pool.hook(STOP)
        wait_until(lambda: pool.finds_socket())
        assert pool.path != before
        assert [one.name for one in before.parent.iterdir()] == [pool.path.name]


def test_a_removed_environment_lets_the_agent_go_with_one_line_and_ends_the_pool(home, site):
    with Pool(home, package=site) as pool:
        pool.stop_until_warm()
        processes = [pool.pid, *pool.workers()]
        shutil.rmtree(site)
        done = pool.hook(STOP)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (0, "", 1)
        assert "is missing" in done.stderr
        wait_until(lambda: not any(map(is_alive, processes)))


def test_if_the_hook_file_vanishes_while_python_starts_the_hook_answers(home, site):
    """Python itself would exit with 2, which a host takes for a block, without an answer."""
    project = looping_project(home)
    entry = site / "hook" / "entry.py"
    with Pool(home, package=site, starts=False) as pool:
        version, prefix, interpreter, _, pool_entry = read_installation(str(pool.folder))
        upgrading = home / "python"
        upgrading.write_text(f'#!/bin/sh\nrm {entry}\nexec {interpreter} "$@"\n')
        upgrading.chmod(0o700)
        fields = (version, prefix, str(upgrading), str(entry), pool_entry)
        (pool.folder / "installation").write_text("".join(f"{field}\0" for field in fields))
        done = pool.hook(STOP, [*pool.argv, "idle"], cwd=project, TAILHOOK_NO_POOL="1")
        assert not entry.exists()
        assert (done.returncode, json.loads(done.stdout)["decision"]) == (2, "block")


def test_the_clients_buffer_holds_the_hook_file_which_is_ascii_as_the_locale_decides_how_it_is_read():
    text = (Path(_core.__file__).parent / "hook" / "entry.py").read_text(encoding="ascii")
    assert len(text) < 8192  # half of the buffer


@pytest.mark.parametrize("left", ["nothing", "half of it", "zeros"])
def test_if_files_of_the_package_are_missing_a_hook_blocks_with_an_answer_or_lets_the_agent_go(home, site, left):
    """As during an upgrade: each file in turn, in a project with a loop."""
    project = looping_project(home)
    with Pool(home, package=site, starts=False) as pool:
        for path in sorted(site.rglob("*.py")) + sorted(site.glob("_core*.so")):
            if path.parent.name not in ("tailhook", "hook", "machines", "stores") or path.name == "entry.py":
                continue
            whole = path.read_bytes()
            if left == "nothing":
                path.unlink()
            elif path.suffix == ".so":
                continue  # the system's loader ends a process that loads half a library
            else:
                path.write_bytes(whole[: len(whole) // 2] if left == "half of it" else bytes(len(whole)))
            done = pool.hook(STOP, [*pool.cold, "idle"], cwd=project)
            path.write_bytes(whole)
            answer = json.loads(done.stdout)["decision"] if done.stdout else "allow"
            assert (done.returncode, answer) in ((0, "allow"), (2, "block")), (path, done)


# ---- install and uninstall ---------------------------------------------------------


def test_install_gives_a_warm_hook_and_uninstall_leaves_nothing(home):
    (home / "project" / ".git").mkdir(parents=True)

    def run(*words):
        done = tailhook(*words, env={"HOME": str(home)}, cwd=home / "project")
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "Workers that stay in memory answer" in run("install", "--yes", "--block-cap", "0")
    assert "Nothing to change" in run("install", "--yes", "--block-cap", "0")
    settings = json.loads((home / ".claude" / "settings.json").read_text())
    hook = settings["hooks"]["Stop"][0]["hooks"][0]
    client = Path(hook["command"])
    assert (client.name, hook["args"][0]) == ("tailhook-hook", "hook")
    assert stat.S_IMODE(client.stat().st_mode) == 0o700
    client.unlink()
    again = f"The program that they run was missing, and is there again: {client}\n"
    assert again in run("install", "--yes", "--block-cap", "0")
    assert client.exists()
    env = {**ENVIRONMENT, "HOME": str(home)}
    done = run_on_payload([client, *hook["args"]], json.dumps(STOP).encode(), env=env)
    assert done.returncode == 0
    wait_until(lambda: json.loads(run("pool", "status", "--json"))["running"])
    facts = json.loads(run("doctor", "--json"))
    assert [one for one in facts["findings"] if one["check"] == "pool" and "a pool runs" in one["what"]]
    assert any("warm_ms" in one["figures"] for one in facts["findings"])
    pid = json.loads(run("pool", "status", "--json"))["pid"]
    former = client.parent.with_name("former")  # with a Python that is gone
    shutil.copytree(client.parent, former)
    fields = (former / "installation").read_bytes().split(b"\0")
    (former / "installation").write_bytes(b"\0".join([fields[0], b"/gone/s", b"/gone/python3.9", *fields[3:]]))
    dead = home / ".local" / "state" / "tailhook" / "run" / "pool" / f"{Path(os.fsdecode(fields[1])).name}.0badcafe"
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(dead))
    assert "The pool was ended" in run("uninstall", "--yes")
    assert not is_alive(pid)
    left = [str(path.relative_to(home)) for path in home.rglob("*")]
    assert sorted(left) == ["project", "project/.git"]


@pytest.mark.parametrize("mode", [0o700, 0o755])
@pytest.mark.parametrize("has_file", [True, False])
@pytest.mark.parametrize("variable", [True, False])
def test_uninstall_leaves_folders_that_hooks_did_not_make(home, mode, has_file, variable):
    state = home / ".local" / "state"
    state.mkdir(parents=True)
    (home / ".local").chmod(0o755)
    state.chmod(mode)
    if has_file:
        (state / "theirs").touch()
    env = {"HOME": str(home), **({"XDG_STATE_HOME": str(state)} if variable else {})}
    for words in (("install", "--cold", "--yes"), ("uninstall", "--yes")):
        assert tailhook(*words, env=env, cwd=home).returncode == 0
    stays = mode == 0o755 or has_file or variable  # an empty folder with the mode of ours may be ours
    assert [state.exists(), (home / ".local").exists(), (state / "tailhook").exists()] == [stays, True, False]


def test_an_uninstall_while_a_pool_starts_leaves_nothing(home, site):
    """The pool has found its client, and has not yet written its files."""
    code = f"import sys; sys.path.insert(0, {str(site.parent)!r}); import tailhook.install.client as one; "
    code += f"one.LOCK_TIMEOUT_S = {STARTS}; one.remove_clients()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Pool(home, package=site, starts=False) as pool:
        let_pools_wait(site)
        folder, sockets = pool.folder, pool.path.parent
        with Started(pool.serve_argv(), env=pool.env, **pipes) as starting:
            assert starting.stdout.read(5) == b"found"
            with Started([sys.executable, "-I", "-c", code], env=pool.env, stderr=subprocess.PIPE) as removing:
                wait_until(lambda: not Path(pool.argv[0]).exists())
                starting.stdin.close()
                assert removing.stderr.read() == b""
            assert removing.returncode == 0
            starting.wait(timeout=STARTS)
        assert (folder.exists(), sockets.exists()) == (False, False)


def test_a_hook_starts_no_pool_without_its_client(home):
    with Pool(home, starts=False) as pool:
        argv, sockets = pool.serve_argv(), pool.path.parent
        for removed in (pool.folder / "tailhook-hook", pool.folder):
            removed.unlink() if removed.is_file() else shutil.rmtree(removed)
            done = subprocess.run(argv, env=pool.env, capture_output=True, text=True, check=False, timeout=STARTS)
            assert (done.returncode, done.stderr) == (0, "")
        assert (pool.folder.exists(), list(sockets.iterdir())) == (False, [])


def test_the_cold_form_can_be_installed_and_the_warm_one_again(home):
    def command(*words):
        done = tailhook("install", "--yes", *words, env={"HOME": str(home)}, cwd=home)
        assert done.returncode == 0, done.stderr
        return json.loads((home / ".claude" / "settings.json").read_text())["hooks"]["Stop"][0]["hooks"][0]["command"]

    assert "python" in Path(command("--cold")).name
    assert Path(command()).name == "tailhook-hook"
    assert "python" in Path(command("--cold")).name


def test_the_hook_command_hands_on_to_the_client(home, pool):
    pool.stop_until_warm()
    project = looping_project(home)
    for _ in range(20):
        before = pool.records("Stop")
        done = tailhook("hook", "idle", env={"HOME": str(home)}, cwd=project, stdin=json.dumps(STOP))
        assert done.returncode == 2
        if pool.ways_after(before) == ["w"]:
            return
    pytest.fail("no worker answered")
