"""A loop in a worktree, and the commands from wherever the agent stands."""

import json
import os
import subprocess
import sys

import pytest
from support.host import looping, tailhook
from support.install import write_hooks
from support.oracles import jwz


def git(folder, *words):
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def test_a_worktree_is_recorded_with_its_branch_and_the_one_it_comes_from(project, loop, tmp_path):
    repository, tree = tmp_path / "repository", tmp_path / "the tree"
    repository.mkdir()
    git(repository, "init")
    git(repository, "commit", "--allow-empty", "-m", "first")
    git(repository, "worktree", "add", "-b", "fix/auth-17", str(tree))
    started = loop("start", "--mode", "issue", "--issue", "auth-17", "--worktree", str(tree), session="mine")
    place = f"the worktree {tree}, on branch fix/auth-17, based on main, for issue auth-17."
    assert f"Work in {place} Use absolute paths" in started.stdout
    top = jwz.newest(project.folder)["stack"][0]
    assert (top["worktree_path"], top["branch"], top["base_ref"]) == (str(tree), "fix/auth-17", "main")
    assert f"Its agent works in {place}\n" in loop("status").stdout
    assert place in project.stop("Hm.").answer["reason"]


def test_a_worktree_may_be_a_clone_or_any_folder_and_its_path_relative(project, loop):
    clone, folder = project.folder / "clone", project.folder / "folder"
    clone.mkdir()
    git(clone, "init")
    folder.mkdir()
    assert loop("start", "--worktree", "clone", "Go.").returncode == 0
    top = jwz.newest(project.folder)["stack"][0]
    assert (top["worktree_path"], top["branch"], top.get("base_ref")) == (str(clone), "main", None)
    assert loop("start", "--replace", "--worktree", "./folder", "Go.").returncode == 0
    top = jwz.newest(project.folder)["stack"][0]
    assert (top["worktree_path"], top.get("branch"), top.get("base_ref")) == (str(folder), None, None)


@pytest.mark.parametrize(
    "pointer", [b"gitdir: /worktrees/x", b"gitdir: ", b"", b"\xff\x00", b"gitdir: " + b"/x" * 9000]
)
def test_a_worktree_whose_pointer_leads_nowhere_has_no_base(project, loop, pointer):
    folder = project.folder / "odd"
    folder.mkdir()
    (folder / ".git").write_bytes(pointer)
    done = loop("start", "--worktree", "odd", "Go.")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert "base_ref" not in jwz.newest(project.folder)["stack"][0]


def test_a_worktrees_pointer_is_read_to_a_bound(project, loop):
    folder = project.folder / "odd"
    folder.mkdir()
    (folder / ".git").touch()
    os.truncate(folder / ".git", 1 << 40)
    assert loop("start", "--worktree", "odd", "Go.").returncode == 0


@pytest.mark.parametrize("name", ["a\nb", "a\x1bb", "a\udcffb", "\u202eb"])
def test_a_worktree_that_cannot_be_written_in_an_order_is_refused(project, loop, name):
    (project.folder / name).mkdir()
    done = loop("start", "--worktree", name, "Go.")
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot be put into a prompt" in done.stderr
    assert jwz.newest(project.folder) is None


@pytest.mark.parametrize("path", ["nowhere", "file", ""])
def test_a_worktree_that_is_not_a_folder_is_refused_with_its_path(project, loop, path):
    (project.folder / "file").write_text("")
    done = loop("start", "--worktree", path, "Go.")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"tailhook: {path}: not a folder. Make the worktree first:  git worktree add {path}\n"
    assert jwz.newest(project.folder) is None


# ---- wherever the agent stands -----------------------------------------------


@pytest.fixture
def places(project, tmp_path):
    """Return folders around and beside a project with a loop; its agent may be in any of them."""
    main, tree, module = project.folder, tmp_path / "tree", project.folder / "module"
    (main / ".git").rmdir()
    git(main, "init")
    git(main, "commit", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-b", "other", str(tree))
    git(main, "-c", "protocol.file.allow=always", "submodule", "add", str(tree), "module")
    nested = main / "nested"
    nested.mkdir()
    git(nested, "init")
    done = main / "done"
    done.mkdir()
    jwz.post(done, json.dumps({**looping(), "event": "DONE", "stack": []}))
    return {"nested": nested, "worktree": tree, "submodule": module, "a nearer loop that ended": done}


PLACES = ("nested", "worktree", "submodule", "a nearer loop that ended")


@pytest.mark.parametrize("group", ["loop", "ralph"])
@pytest.mark.parametrize("place", PLACES)
def test_status_adopt_and_cancel_find_the_loop_from_wherever_the_agent_stands(project, places, group, place):
    root = project.folder
    if group == "ralph":
        project.ralph()
    else:
        project.loop()

    def run(action):
        return tailhook(group, action, env=project.env, cwd=places[place])

    named = "" if place == "a nearer loop that ended" else f" It is in {root}."  # that folder is in the project itself
    assert f"loop is running in {root}/." in run("status").stdout
    assert f"that gets a prompt or stops.{named}\n" in run("adopt").stdout
    project.env["CLAUDE_PROJECT_DIR"] = str(root)  # as the host starts the hook
    assert not project.stop("Hm.").allowed
    del project.env["CLAUDE_PROJECT_DIR"]
    cancelled = run("cancel").stdout
    assert " was cancelled at iteration " in cancelled
    assert f".{named}\n" in cancelled
    assert project.stop("Hm.").allowed
    assert run("cancel").returncode == 1
    ended = run("status").stdout.splitlines()[-1]
    assert ended.startswith("The last one ended: ")
    assert place == "a nearer loop that ended" or (
        "it was cancelled (USER_CANCELLED), at iteration 2, at 20" in ended and ended.endswith(f", in {root}.")
    )


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_the_commands_in_a_main_worktree_find_the_loop_of_a_linked_one(project, places, group):
    start = tailhook(group, "start", "Go.", env=project.env, cwd=places["worktree"])
    assert start.returncode == 0, start.stderr
    done = project.as_agent(group, "cancel")
    assert f"It is in {places['worktree']}." in done.stdout


def test_each_worktree_may_have_its_own_loop(project, places, loop):
    assert loop("start", "Go.", session="mine").returncode == 0
    other = {**project.env, "CLAUDE_CODE_SESSION_ID": "other"}
    assert tailhook("loop", "start", "Go.", env=other, cwd=places["worktree"]).returncode == 0


@pytest.mark.parametrize("group", ["loop", "ralph"])
@pytest.mark.parametrize("action", ["cancel", "adopt"])
def test_a_session_changes_no_loop_of_another_session_in_another_worktree(project, places, group, action):
    assert project.as_agent(group, "start", "Go.", session="theirs").returncode == 0
    mine = {**project.env, "CLAUDE_CODE_SESSION_ID": "mine"}
    assert tailhook(group, "start", "Go.", env=mine, cwd=places["worktree"]).returncode == 0
    own = tailhook(group, "cancel", env=mine, cwd=places["worktree"])
    assert (own.returncode, "It is in" in own.stdout) == (0, False)
    done = tailhook(group, action, env=mine, cwd=places["worktree"])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"tailhook: a loop of session theirs is in {project.folder}: to change it, run this there\n"
    assert "loop is running in" in project.as_agent(group, "status", session="theirs").stdout


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_a_sessions_own_loop_is_cancelled_before_another_ones_in_a_nearer_folder(project, places, group):
    assert project.as_agent(group, "start", "Go.", session="mine").returncode == 0
    theirs = {**project.env, "CLAUDE_CODE_SESSION_ID": "theirs"}
    assert tailhook(group, "start", "Go.", env=theirs, cwd=places["nested"]).returncode == 0
    mine = {**project.env, "CLAUDE_CODE_SESSION_ID": "mine"}
    done = tailhook(group, "cancel", env=mine, cwd=places["nested"])
    assert f"It is in {project.folder}." in done.stdout
    assert "running in" in tailhook(group, "status", env=theirs, cwd=places["nested"]).stdout


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_start_refuses_a_second_loop_of_the_session_whose_hook_would_find_the_first(project, places, group):
    assert project.as_agent(group, "start", "Go.", session="mine").returncode == 0
    mine = {**project.env, "CLAUDE_CODE_SESSION_ID": "mine"}
    done = tailhook(group, "start", "Go.", env=mine, cwd=places["nested"])
    assert done.returncode == 1
    assert f"{project.folder}/" in done.stderr


# ---- the project of the agent's session ---------------------------------------


def run_in_session(project, folder, *words, before="true"):
    """Run a command in a folder, in a shell of a host whose own process is in the project, like Claude Code's.

    before: what the shell runs first.
    """
    argv = [sys.executable, "-m", "tailhook", *words]
    host = f'{before}; export CLAUDE_PID=$$; (cd "$0" && "$@"); exit $?'
    env = {**project.env, "CLAUDE_CODE_SESSION_ID": "mine"}
    return subprocess.run(
        ["bash", "-c", host, folder, *argv], cwd=project.folder, env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the folder of another process is known only on Linux")
@pytest.mark.parametrize("group", ["loop", "ralph"])
@pytest.mark.parametrize("place", ["nested", "worktree", "submodule", "another repository"])
def test_a_loop_of_a_session_is_in_its_project_wherever_its_agent_starts_it(project, places, group, place, tmp_path):
    folder = places.get(place, tmp_path / "elsewhere")
    (folder / ".git").exists() or (folder / ".git").mkdir(parents=True)
    started = run_in_session(project, folder, group, "start", "Go.")
    assert f"oop started in {project.folder}/." in started.stdout, started.stderr
    assert f"loop is running in {project.folder}/." in run_in_session(project, folder, group, "status").stdout
    project.argv = [*project.argv[:-1], "idle" if group == "loop" else group]
    project.env["CLAUDE_PROJECT_DIR"] = str(project.folder)
    for cwd in (project.folder, folder):
        assert not project.stop("Hm.", cwd=str(cwd)).allowed
    assert "was cancelled at iteration 3" in run_in_session(project, folder, group, "cancel").stdout


@pytest.mark.skipif(sys.platform != "linux", reason="the folder of another process is known only on Linux")
@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_a_session_whose_project_was_removed_and_cloned_again_finds_the_new_one(project, group):
    """The host's own process stays in the removed folder. Its hooks know the path."""
    cloned = 'rm -r "$0"; mkdir "$0" "$0/.git"'
    done = run_in_session(project, project.folder, group, "start", "Go.", before=cloned)
    assert f"oop started in {project.folder}/." in done.stdout, done.stderr


@pytest.mark.parametrize("pid", ["", "1", "none", "-1", "of another process"])
def test_a_process_that_is_not_the_hosts_names_no_project(project, places, pid):
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, cwd=project.folder) as other:
        host = str(other.pid) if pid == "of another process" else pid
        env = {**project.env, "CLAUDE_CODE_SESSION_ID": "mine", "CLAUDE_PID": host}
        done = tailhook("loop", "start", "Go.", env=env, cwd=places["nested"])
        other.stdin.close()
    assert f"Loop started in {places['nested']}/.jwz." in done.stdout


def test_status_promises_a_stop_only_in_the_folder_of_the_loop(project, places, loop):
    write_hooks(project)
    assert loop("start", "Go.").returncode == 0
    here = f" in {project.folder}"
    for folder, where in ((project.folder, ""), (places["worktree"], here), (places["nested"], here)):
        last = tailhook("loop", "status", env=project.env, cwd=folder).stdout.splitlines()[-1]
        assert last == f"At the next stop{where} the agent must continue: iteration 2/10."
