"""The private state folder: every program refuses one that another user could change."""

import json
import os

import pytest
from support.daemon import wait_for_end
from support.host import MEMORABLE, PROMPT, assistant, tailhook

ATTACKER = 65534


@pytest.fixture
def tmp_path(short_path):
    """Return the folder of the user's home; the path of a socket would be in it."""
    return short_path


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


def belongs_to_another(folder):
    os.chown(folder, ATTACKER, ATTACKER)


def is_open_to_all(folder):
    folder.chmod(0o777)


def is_below_a_folder_of_another(folder):
    os.chown(folder.parent, ATTACKER, ATTACKER)


def is_below_a_folder_open_to_all(folder):
    folder.parent.chmod(0o777)


def is_behind_a_link_of_another(folder):
    folder.rename(folder.parent.parent / "elsewhere")
    folder.symlink_to("../elsewhere")
    os.lchown(folder, ATTACKER, ATTACKER)


def is_behind_a_link_through_a_folder_open_to_all(folder):
    """Make a link and a folder that the user owns, with an unsafe folder in between."""
    shared = folder.parent.parent / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    folder.rename(shared / "real")
    folder.symlink_to("../shared/real")


THEIRS, OPEN = "belongs to another user (uid 65534)", "can be written by other users"
UNSAFE = [
    pytest.param((belongs_to_another, THEIRS), marks=needs_root),
    (is_open_to_all, OPEN),
    pytest.param((is_below_a_folder_of_another, THEIRS), marks=needs_root),
    (is_below_a_folder_open_to_all, OPEN),
    pytest.param((is_behind_a_link_of_another, THEIRS), marks=needs_root),
    (is_behind_a_link_through_a_folder_open_to_all, OPEN),
]


@pytest.fixture(params=UNSAFE, ids=lambda one: one[0].__name__)
def unsafe(request, project):
    """Return a project whose user's state folder is not safe, with what an attacker left in it.

    `fault` is the reason. `ran` exists after the attacker's program has run.
    """
    spoil, project.fault = request.param
    project.state = project.home / ".local" / "state" / "tailhook"
    project.state.mkdir(parents=True)
    project.ran = project.home / "ran"
    argv = ["/bin/sh", "-c", f"touch '{project.ran}'"]
    (project.state / "daemon-argv").write_text("\0".join(argv))
    spoil(project.state)
    return project


def files_in(folder):
    """Return the files in a folder with their contents."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def report_event(project):
    """Run the hook of the plates machine."""
    return project.hook(json.dumps(project.payload(hook_event_name="UserPromptSubmit")).encode(), read=False)


def test_a_hook_does_not_run_what_another_user_left(unsafe):
    unsafe.argv = [*unsafe.argv[:-1], "plates"]
    del unsafe.env["TAILHOOK_NO_AUTOSTART"]
    before = files_in(unsafe.state)
    stop = report_event(unsafe)
    assert (stop.exit_code, stop.stdout) == (0, "")
    assert stop.stderr.startswith("tailhook: plates: /")
    assert unsafe.fault in stop.stderr
    named = unsafe.fault in stop.stderr.partition(f"{unsafe.state} ")[2][: len(unsafe.fault)]
    assert f"so {'it' if named else unsafe.state} is not used" in stop.stderr
    assert ("chmod go-w" in stop.stderr) is (unsafe.fault == OPEN)
    assert ("If you used sudo" in stop.stderr) is (unsafe.fault == THEIRS and os.geteuid() == 0)
    assert stop.stderr.count("\n") == 1
    assert files_in(unsafe.state) == before  # so it has tried no start: that leaves a mark
    assert not unsafe.ran.exists()


def belongs_to_another_user(path):
    os.chown(path, ATTACKER, ATTACKER)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        pytest.param(belongs_to_another_user, "belongs to another user (uid 65534)", marks=needs_root),
        (lambda path: path.chmod(0o622), "can be used by other users (mode 0622)"),
    ],
    ids=["owner", "mode"],
)
def test_a_hook_does_not_run_an_argv_that_another_user_may_have_written(project, spoil, fault):
    state = project.home / ".local" / "state" / "tailhook"
    state.mkdir(parents=True)
    ran = project.home / "ran"
    (state / "daemon-argv").write_text("\0".join(["/bin/sh", "-c", f"touch '{ran}'"]))
    spoil(state / "daemon-argv")
    project.argv = [*project.argv[:-1], "plates"]
    del project.env["TAILHOOK_NO_AUTOSTART"]
    stop = report_event(project)
    if (state / "daemon-start").exists():
        wait_for_end(state)
    assert (stop.exit_code, stop.stdout) == (0, "")
    reason = f"tailhook: plates: the daemon does not start: {state}/daemon-argv {fault}. Events are recorded"
    assert stop.stderr == f"{reason} and will appear later. For details:  tailhook doctor\n"
    assert not ran.exists()
    assert (state / "events").exists()


@pytest.mark.parametrize("machine", ["ralph", "memory"])
def test_a_hook_that_would_block_lets_the_agent_stop(unsafe, machine):
    before = files_in(unsafe.state)
    if machine == "ralph":
        unsafe.ralph(PROMPT)
    else:
        unsafe.write(assistant(MEMORABLE))
    unsafe.argv = [*unsafe.argv[:-1], machine]
    stop = unsafe.stop("Hm.")
    assert (stop.exit_code, stop.stdout, stop.stderr.count("\n")) == (0, "", 1)
    assert unsafe.fault in stop.stderr
    assert files_in(unsafe.state) == before


@pytest.mark.parametrize(
    "words",
    [
        ("plates", "serve", "--port", "0"),
        ("plates", "serve", "--no-port"),
        ("plates", "list"),
        ("install", "--yes"),
        ("install", "--yes", "--with", "plates"),
        ("loop", "start", "--max", "3", PROMPT),
        ("ralph", "start", PROMPT),
    ],
    ids=" ".join,
)
def test_a_command_ends_with_one_line(unsafe, words):
    before = files_in(unsafe.state)
    done = unsafe.tailhook(*words)
    assert done.returncode == 1
    assert done.stderr.startswith("tailhook: /")
    assert unsafe.fault in done.stderr
    assert done.stderr.count("\n") == 1
    assert files_in(unsafe.state) == before


def test_the_doctor_finds_it(unsafe):
    settings = unsafe.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(unsafe.tailhook("install", "--print", "--with", "plates").stdout)
    untimed = {"tailhook.doctor.checks.ROUNDS": 0}  # each of thirteen hooks would be timed
    done = tailhook("doctor", "--json", env=unsafe.env, cwd=unsafe.folder, **untimed)
    found = [one for one in json.loads(done.stdout)["findings"] if unsafe.fault in one["what"]]
    assert (done.returncode, done.stderr) == (1, "")
    assert {(one["check"], one["status"]) for one in found} == {("state", "failure"), ("plates", "failure")}
    assert not any("Make that folder writable" in one["advice"] for one in found)


def test_the_wrapper_warns_and_runs_the_command(unsafe):
    done = unsafe.tailhook("run", "--", "echo", "hello")
    assert (done.returncode, done.stdout) == (0, "hello\n")
    assert unsafe.fault in done.stderr


# ---- a folder that is not there yet --------------------------------------------


@needs_root
def test_a_folder_is_not_made_below_one_that_another_user_made_first(project):
    """HOME is a shared folder such as /tmp; the attacker was there first."""
    project.home.chmod(0o1777)
    theirs = project.home / ".local"
    theirs.mkdir()
    os.chown(theirs, ATTACKER, ATTACKER)
    del project.env["TAILHOOK_NO_AUTOSTART"]
    project.argv = [*project.argv[:-1], "plates"]
    stop = report_event(project)
    assert f"{theirs} belongs to another user (uid 65534)" in stop.stderr
    assert list(theirs.iterdir()) == []


# ---- folders that are safe -----------------------------------------------------


def works(project):
    """Return whether a hook can use the state folder."""
    project.argv = [*project.argv[:-1], "plates"]
    stop = report_event(project)
    return (stop.exit_code, stop.stderr) == (0, "")


def test_a_sticky_folder_above_it_is_safe(project):
    project.home.chmod(0o1777)
    assert works(project)


@pytest.mark.parametrize("target", ["../disk", "{home}/disk", ".././disk//"])
def test_a_link_to_a_folder_of_the_same_user_is_safe(project, target):
    (project.home / "disk").mkdir()
    (project.home / ".local").mkdir()
    (project.home / ".local" / "state").symlink_to(target.format(home=project.home))
    assert works(project)
    assert (project.home / "disk" / "tailhook" / "events").exists()
