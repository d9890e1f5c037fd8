"""What tailhook writes into a project is not in git's list of untracked files."""

import subprocess
from pathlib import Path

import pytest
from support.host import assistant

OF_LOOPS = [
    "**/.claude/ralph-loop.local.md",
    "**/.claude/ralph-debug.log",
    "**/.claude/idle-loop.local.md",
    "**/.claude/.stop_hook_active",
]


def git(folder, *words):
    """Run git in a folder without the user's own settings; return what it prints."""
    env = {"HOME": "/nonexistent", "PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def repository(project):
    """Return a project that is a repository with a commit."""
    git(project.folder, "init", "-q")
    words = ("-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "First")
    git(project.folder, *words)
    return project


def untracked(folder):
    """Return what git lists as untracked."""
    return git(folder, "status", "--porcelain", "--untracked-files=all").splitlines()


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_git_lists_nothing_of_a_loop(repository, group):
    assert repository.as_agent(group, "start", "Make the tests pass.", session="mine").returncode == 0
    repository.argv = [*repository.argv[:-1], "ralph" if group == "ralph" else "idle"]
    assert not repository.stop("Hm.").allowed
    assert untracked(repository.folder) == []


def test_git_lists_no_flag_of_the_memory_machine(repository):
    repository.as_agent("loop", "start", "Make the tests pass.")
    repository.as_agent("loop", "cancel")
    repository.write(assistant("We chose A because of B.\nWe picked C over D."))
    repository.argv = [*repository.argv[:-1], "memory"]
    assert not repository.stop().allowed
    assert (repository.folder / ".claude" / ".stop_hook_active").exists()
    assert untracked(repository.folder) == []


def test_other_lines_stay_and_each_of_ours_is_there_once(repository):
    exclude = repository.folder / ".git" / "info" / "exclude"
    for before in ("*.log\n# mine", "*.log\n# mine\n", ""):
        exclude.write_text(before)
        for group in ("ralph", "loop", "ralph"):
            repository.as_agent(group, "start", "Go.", "--force" if group == "ralph" else "--replace")
        assert exclude.read_text().splitlines() == [*before.splitlines(), *OF_LOOPS]


def test_a_repository_without_the_file_gets_it(repository):
    exclude = repository.folder / ".git" / "info" / "exclude"
    exclude.unlink()
    exclude.parent.rmdir()
    repository.as_agent("ralph", "start", "Go.")
    assert exclude.read_text().splitlines() == OF_LOOPS


def test_the_store_of_another_program_is_left_alone(repository):
    (repository.folder / ".jwz").mkdir()
    (repository.folder / ".jwz" / "messages.jsonl").touch()
    repository.as_agent("loop", "start", "Go.")
    assert not (repository.folder / ".jwz" / ".gitignore").exists()


def test_in_a_linked_worktree_the_lines_are_those_of_its_repository(repository, tmp_path):
    linked = tmp_path / "linked"
    git(repository.folder, "worktree", "add", "-q", str(linked))
    repository.folder = linked
    repository.as_agent("ralph", "start", "Go.")
    assert (linked / ".claude" / "ralph-loop.local.md").exists()
    assert untracked(linked) == []


def test_a_project_below_the_top_of_its_repository_is_ignored_too(repository):
    below = repository.folder / "web" / "app"
    below.mkdir(parents=True)
    repository.env["CLAUDE_PROJECT_DIR"] = str(below)
    repository.as_agent("ralph", "start", "Go.")
    assert (below / ".claude" / "ralph-loop.local.md").exists()
    assert untracked(repository.folder) == []


@pytest.mark.parametrize("spoil", ["a link", "a folder", "no repository"])
def test_a_loop_starts_though_the_file_cannot_be_written(repository, tmp_path, spoil):
    exclude = repository.folder / ".git" / "info" / "exclude"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine\n")
    exclude.unlink()
    if spoil == "a link":
        exclude.symlink_to(elsewhere)
    elif spoil == "a folder":
        exclude.mkdir()
    else:
        Path(repository.folder / ".git").rename(tmp_path / "moved")
    done = repository.as_agent("ralph", "start", "Go.")
    assert (done.returncode, "started" in done.stdout) == (0, True)
    assert elsewhere.read_text() == "mine\n"


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_cancel_and_uninstall_name_what_stays_in_the_project(repository, group):
    repository.as_agent(group, "start", "Make the tests pass.", session="mine")
    repository.argv = [*repository.argv[:-1], "ralph" if group == "ralph" else "idle"]
    assert not repository.stop("Hm.").allowed
    rest = repository.folder / (".jwz" if group == "loop" else ".claude/ralph-debug.log")
    cancelled = repository.as_agent(group, "cancel", session="mine").stdout
    exclude = repository.folder / ".git" / "info" / "exclude"
    listed = f"The names of its files stay in git's list of ignored files: {exclude}\n"
    assert cancelled.endswith(f"What it has saved stays: {rest}\n{listed}")
    assert f" {rest}\n" in repository.tailhook("uninstall", "--yes").stdout
    named = {rest, rest.parent, *rest.glob("*")}
    assert {path for path in repository.folder.rglob("*") if ".git/" not in f"{path}/"} == named - {repository.folder}


@pytest.mark.parametrize("left", [*OF_LOOPS, "**/.claude/ralph-loop.local.md.4711.tmp"])
def test_uninstall_names_each_file_that_loops_and_hooks_have_left(repository, left):
    path = repository.folder / ".claude" / left.removeprefix("**/.claude/")
    assert str(path) not in repository.tailhook("uninstall", "--yes").stdout
    path.parent.mkdir()
    path.write_text("---\nactive: false\niteration: 1\nmax_iterations: 5\n---\nThe prompt.\n")
    assert repository.tailhook("uninstall", "--yes").stdout.count(f"stays: {path}\n") == 1


def test_cancel_names_no_list_of_git_that_does_not_have_the_files(repository):
    exclude = repository.folder / ".git" / "info" / "exclude"
    repository.as_agent("ralph", "start", "Go.", session="mine")
    exclude.write_text("mine\n")
    assert "ignored files" not in repository.as_agent("ralph", "cancel", session="mine").stdout


def test_uninstall_names_the_lines_for_git(repository):
    exclude = repository.folder / ".git" / "info" / "exclude"
    named = f"stays: {exclude}\n"
    assert named not in repository.tailhook("uninstall", "--yes").stdout
    repository.as_agent("ralph", "start", "Go.")
    repository.as_agent("ralph", "cancel")
    assert named in repository.tailhook("uninstall", "--yes").stdout
    exclude.unlink()
    assert named not in repository.tailhook("uninstall", "--yes").stdout


def test_what_uninstall_leaves_in_a_project_is_named(repository):
    """Every file that was made by install, loops and hooks of all machines, and by uninstall itself."""
    before = files_of(repository.folder)
    for scope in ("project", "local"):
        repository.tailhook("install", "--yes", "--cold", "--scope", scope, "--with", "memory,plates")
    repository.as_agent("loop", "start", "Go.", session="mine")
    repository.as_agent("ralph", "start", "Go.", session="mine")
    repository.write(assistant("We chose A because of B.\nWe picked C over D."))
    for machine in ("idle", "ralph", "memory"):
        repository.argv = [*repository.argv[:-1], machine]
        assert not repository.stop("Hm.").allowed
    repository.as_agent("ralph", "pause", session="mine")
    repository.as_agent("loop", "cancel", session="mine")
    output = "".join(
        repository.tailhook("uninstall", "--yes", "--scope", scope).stdout for scope in ("project", "local")
    )
    assert output.count("What loops and hooks of this project have saved stays:") == 2  # once for each scope
    made = files_of(repository.folder) - before | {repository.folder / ".git" / "info" / "exclude"}
    assert {path.name for path in made} >= {"messages.jsonl", "ralph-loop.local.md", ".stop_hook_active"}
    store = repository.folder / ".jwz"
    for path in made:
        assert f" {store if store in path.parents else path}\n" in output


def files_of(folder):
    """Return the files in a folder."""
    return {path for path in folder.rglob("*") if path.is_file()}
