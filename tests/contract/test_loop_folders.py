"""The commands of a loop find it from other folders than its own: how far they look, and a paused one, too."""

import re

import pytest
from support.host import tailhook

GROUPS = pytest.mark.parametrize("group", ["loop", "ralph"])


def run(project, group, action, folder, *words, **env):
    """Run a command of a loop in a folder; return what it prints, "" if it failed."""
    done = tailhook(group, action, *words, env={**project.env, **env}, cwd=folder)
    assert (done.returncode, bool(done.stdout)) in ((0, True), (1, False))
    return done.stdout


@pytest.fixture
def started(project):
    """Start a loop in a folder; return the folder."""

    def start(group, folder):
        assert tailhook(group, "start", "Go.", env=project.env, cwd=folder).returncode == 0
        return folder

    return start


@pytest.fixture
def inner(project):
    """Return a repository below a folder of the home, and let that folder be the project."""
    project.folder = project.home / "project"
    folder = project.folder / "a" / "b"
    (folder / ".git").mkdir(parents=True)
    return folder


@GROUPS
def test_a_loop_in_a_folder_around_the_agents_is_found_up_to_the_home_folder(project, inner, started, group):
    for folder in (inner.parent, project.folder, project.home):
        started(group, folder)
        assert f"running in {folder}/" in run(project, group, "status", inner)
        assert f"It is in {folder}." in run(project, group, "cancel", inner)
        assert run(project, group, "cancel", inner) == ""


@GROUPS
def test_a_loop_above_the_home_folder_is_not_found(project, inner, started, group):
    started(group, project.home.parent)
    assert run(project, group, "cancel", inner) == ""
    assert "was cancelled" in run(project, group, "cancel", project.home.parent)


@GROUPS
def test_the_nearest_live_loop_is_found_first(project, inner, started, group):
    for folder in (inner, inner.parent, project.folder):
        started(group, folder)
    assert run(project, group, "cancel", inner).count("It is in") == 0
    assert f"It is in {inner.parent}." in run(project, group, "cancel", inner)
    assert f"It is in {project.folder}." in run(project, group, "cancel", inner)


def test_a_stop_finds_the_loop_of_the_repository_although_one_of_the_agents_folder_has_ended(project, started):
    below = project.folder / "below"
    below.mkdir()
    (project.folder / ".git").mkdir(exist_ok=True)
    for words in (("start", "Go."), ("cancel",)):
        run(project, "loop", words[0], below, *words[1:], CLAUDE_PROJECT_DIR=str(below))
    assert (below / ".jwz").is_dir()
    started("loop", project.folder)
    project.argv = [*project.argv[:-1], "idle"]
    assert f"running in {project.folder}/.jwz" in run(project, "loop", "status", below)
    assert not project.stop("Hm.", cwd=str(below)).allowed


@GROUPS
def test_a_paused_loop_is_found_like_a_running_one(project, inner, started, group):
    started(group, project.folder)
    elsewhere = f"It is in {project.folder}."
    assert elsewhere in run(project, group, "pause", inner)
    assert re.search(f" is paused in {project.folder}/", run(project, group, "status", inner))
    assert elsewhere in run(project, group, "adopt", inner)
    assert elsewhere in run(project, group, "resume", inner)
    run(project, group, "pause", inner)
    assert elsewhere in run(project, group, "cancel", inner)


@GROUPS
def test_a_sessions_own_paused_loop_is_not_started_twice(project, inner, group):
    own = {"CLAUDE_CODE_SESSION_ID": "mine"}
    assert run(project, group, "start", project.folder, "Go.", **own) != ""
    run(project, group, "pause", project.folder, **own)
    assert run(project, group, "start", inner, "Go.", **own) == ""
    assert "paused" in run(project, group, "status", inner, **own)
