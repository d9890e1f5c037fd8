"""A loop whose state cannot be saved or read: the agent goes, and the person learns it from the hook and `status`."""

import json
import os
import sys

import pytest
from support.host import Stop, run_on_payload
from support.install import write_hooks

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
OTHER_USER = 65534


def run_on_full_disk(project, argv, stdin=b""):
    """Run a program that can write nothing into a file, and return its result."""
    script = ["/bin/sh", "-c", "trap '' XFSZ; exec prlimit --fsize=0 \"$@\"", "sh", *argv]
    return run_on_payload(script, stdin, env=project.env, cwd=project.folder)


@pytest.fixture
def began(project):
    """Return a function that starts a loop of a group in the project; the hook asks its machine."""
    write_hooks(project)

    def start(group, session="mine"):
        machine = "idle" if group == "loop" else group
        project.argv = [*project.argv[:-1], machine]
        words = ["--max", "9"] if group == "loop" else ["--completion-promise", "GREEN"]
        assert project.as_agent(group, "start", *words, "Go.", session=session).returncode == 0
        return project

    return start


def stop_of(project, *flags):
    """Return the announcing hook's result for an agent that stops without a signal."""
    payload = json.dumps(project.payload(last_assistant_message="Hm.")).encode()
    return project.hook(payload, "--exit", "0", *flags)


@pytest.mark.parametrize("group", ["loop", "ralph"])
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_FSIZE is tried as Linux has it")
def test_on_a_full_disk_the_person_reads_that_the_loop_let_the_agent_go(began, group):
    project = began(group)
    payload = json.dumps(project.payload(last_assistant_message="Hm.")).encode()
    done = run_on_full_disk(project, [*project.argv, "--exit", "0", "--announce"], payload)
    line = Stop(done.returncode, done.stdout.decode(), "").answer["systemMessage"]
    assert line.startswith(f"tailhook: {project.folder}/")
    assert "the state could not be saved (" in line
    assert line.endswith("The agent may stop. The next stop tries again: when this is mended, send the agent a prompt.")
    shown = run_on_full_disk(project, [sys.executable, "-m", "tailhook", group, "status"]).stdout.decode()
    assert "At the next stop the agent may stop: the hook would fail: " in shown
    assert "must continue: iteration" not in shown
    assert stop_of(project, "--announce").answer["decision"] == "block"
    status = project.as_agent(group, "status").stdout
    assert "the agent may stop" not in status


@pytest.mark.parametrize("flags", [(), ("--announce",)])
def test_a_store_that_cannot_be_locked_is_announced_with_the_flag_for_it(began, flags):
    project = began("loop")
    lock = project.folder / ".jwz" / "lock"
    lock.unlink()
    lock.mkdir()
    stop = stop_of(project, *flags)
    assert "the state could not be saved (lock: Is a directory)" in stop.stderr
    if flags:
        assert "the state could not be saved (lock: Is a directory)" in stop.answer["systemMessage"]
    else:
        assert stop.allowed
    facts = json.loads(project.as_agent("loop", "status", "--json").stdout)
    assert facts["verdict"]["decision"] == "allow"
    assert "Is a directory" in facts["verdict"]["why"]


@pytest.mark.parametrize("group", ["loop", "ralph"])
@needs_root
def test_a_state_folder_of_another_user_is_announced_before_the_loop_is_claimed(began, group):
    project = began(group, session=None)
    state = project.home / ".local" / "state" / "tailhook"
    os.chown(state, OTHER_USER, OTHER_USER)
    line = stop_of(project, "--announce").answer["systemMessage"]
    assert f"{state} belongs to another user (uid {OTHER_USER})" in line
    status = project.as_agent(group, "status")
    assert f"{state} belongs to another user (uid {OTHER_USER})" in status.stdout
    assert "must continue: iteration" not in status.stdout


def test_a_store_behind_a_link_is_not_announced_at_each_stop(project, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (project.folder / ".jwz").symlink_to(tmp_path / "elsewhere")
    stop = stop_of(project, "--announce")
    assert stop.allowed
    assert "a symbolic link, which is not followed" in stop.stderr


# ---- the commands ----------------------------------------------------------------


@pytest.mark.parametrize("word", ["pause", "adopt", "cancel"])
@needs_root
def test_with_a_state_folder_of_another_user_a_claimed_loop_can_still_be_ended(began, word):
    project = began("loop")
    assert stop_of(project).answer["reason"].startswith("[ITERATION 2/9]")
    os.chown(project.home / ".local" / "state" / "tailhook", OTHER_USER, OTHER_USER)
    assert stop_of(project).answer["reason"].startswith("[ITERATION 3/9]")
    assert "must continue: iteration 4/9" in project.as_agent("loop", "status", session="mine").stdout
    done = project.as_agent("loop", word)
    assert done.returncode == 0
    if word != "adopt":
        assert stop_of(project).allowed


@pytest.mark.parametrize("word", ["pause", "adopt", "cancel"])
@needs_root
def test_a_command_that_cannot_use_the_state_folder_names_ways_out_that_work(began, word):
    project = began("ralph")
    os.chown(project.home / ".local" / "state" / "tailhook", OTHER_USER, OTHER_USER)
    failed = project.as_agent("ralph", word)
    assert failed.returncode == 1
    assert f"belongs to another user (uid {OTHER_USER})" in failed.stderr
    assert "Other ways to let the agent stop: TAILHOOK_DISABLE=1 in front of " in failed.stderr
    assert "or removing .claude/ralph-loop.local.md\n" in failed.stderr
    assert stop_of(project).allowed


@pytest.mark.parametrize(
    ("words", "path", "way_out"),
    [
        (("loop", "pause"), ".jwz", ", or a file .idle-disabled at the project's root"),
        (("loop", "cancel"), ".jwz", ", or a file .idle-disabled at the project's root"),
        (("ralph", "pause"), ".claude/ralph-loop.local.md", ", or removing .claude/ralph-loop.local.md"),
        (("loop", "start", "--replace", "Go."), "", ""),
        (("ralph", "start", "--force", "Go."), ".claude/ralph-loop.local.md", ""),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_FSIZE is tried as Linux has it")
def test_a_command_on_a_full_disk_names_the_file_and_the_ways_out(began, words, path, way_out):
    project = began(words[0])
    before = project.as_agent(words[0], "status", "--json").stdout
    failed = run_on_full_disk(project, [sys.executable, "-m", "tailhook", *words])
    assert failed.returncode == 1
    assert failed.stderr.startswith(f"tailhook: {project.folder / path if path else project.home}".encode())
    assert failed.stderr.endswith(f"{way_out}\n".encode())
    assert failed.stderr.count(b"\n") == 1
    after = project.as_agent(words[0], "status", "--json").stdout
    assert json.loads(after)["state"] == json.loads(before)["state"]


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_FSIZE is tried as Linux has it")
def test_a_first_loop_on_a_full_disk_names_the_file(project):
    failed = run_on_full_disk(project, [sys.executable, "-m", "tailhook", "loop", "start", "Go."])
    assert failed.returncode == 1
    assert failed.stderr.startswith(f"tailhook: {project.folder}/.jwz/.gitignore: File too large".encode())


@pytest.mark.parametrize("words", [("loop", "start", "Go."), ("loop", "cancel")])
def test_a_link_in_place_of_the_store_is_named_with_advice(project, tmp_path, words):
    (tmp_path / "elsewhere").mkdir()
    (project.folder / ".jwz").symlink_to(tmp_path / "elsewhere")
    failed = project.tailhook(*words)
    assert failed.returncode == 1
    assert failed.stderr.startswith(f"tailhook: {project.folder}/.jwz: a symbolic link, which is not followed. Put a ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_project_that_the_user_may_not_change_is_named_with_advice(project):
    project.folder.chmod(0o500)
    failed = project.tailhook("loop", "start", "Go.")
    project.folder.chmod(0o700)
    assert failed.returncode == 1
    assert failed.stderr == f"tailhook: {project.folder}/.jwz: Permission denied. Give your user access to it\n"
