"""When hooks start the daemon, with which program, and the report if it does not start."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from support.daemon import answers, daemon_in, daemon_pid, wait_for_end, wait_until
from support.host import ENVIRONMENT, HANGS_S, tailhook

import tailhook as package

NEEDED = "the daemon needs more packages (No module named "
ADVICE = "-m pip install 'tailhook[serve]'"


@pytest.fixture
def tmp_path(short_path):
    """Return the folder of the user's home; the sockets are in it."""
    return short_path


@pytest.fixture
def plates(project):
    """Return a project with a hook that reports events and may start the daemon. No daemon is running."""
    project.argv = [*project.argv[:-1], "plates"]
    del project.env["TAILHOOK_NO_AUTOSTART"]
    project.state = project.home / ".local" / "state" / "tailhook"
    return project


def send(project):
    """Report an event; return the hook's stderr."""
    payload = project.payload(hook_event_name="UserPromptSubmit")
    stop = project.hook(json.dumps(payload).encode(), read=False)
    assert (stop.exit_code, stop.stdout) == (0, "")
    return stop.stderr


def leave_argv(project, script):
    """Let hooks start a shell script in place of the daemon."""
    project.state.mkdir(parents=True, exist_ok=True)
    (project.state / "daemon-argv").write_text("\0".join(["/bin/sh", "-c", script]))


@pytest.fixture
def starts(plates):
    """Return a file. A program started in place of the daemon appends a line to it."""
    path = plates.home / "starts"
    leave_argv(plates, f"echo started >> '{path}'")
    return path


def attempted(project, seconds_ago):
    """Set the time of the last attempt to start the daemon.

    seconds_ago: below 0 if it is in the future. So much of the future counts as so much of the past, and an attempt
        there comes nearer first: a busy computer has that time twice before it is an old one.
    """
    at = time.time() - seconds_ago
    os.utime(project.state / "daemon-start", (at, at))


# ---- when ----------------------------------------------------------------------


def test_a_hook_that_finds_no_daemon_starts_it_at_most_every_ten_seconds(plates, starts):
    for _ in range(3):
        assert send(plates) == ""
        attempted(plates, -9)
    wait_until(starts.exists)
    wait_for_end(plates.state)
    attempted(plates, -9)
    send(plates)
    assert starts.read_text() == "started\n"
    attempted(plates, 11)
    send(plates)
    wait_until(lambda: starts.read_text() == "started\n" * 2)


def test_an_attempt_in_the_future_does_not_keep_the_daemon_from_being_started(plates, starts):
    """The clock was set back since."""
    plates.state.joinpath("daemon-start").touch()
    attempted(plates, -3600)
    send(plates)
    wait_until(starts.exists)


def test_a_daemon_that_takes_long_to_start_is_not_started_twice(plates):
    starts, may_end = plates.home / "starts", plates.home / "may-end"
    leave_argv(plates, f"echo started >> '{starts}'; while ! test -e '{may_end}'; do sleep 0.1; done")
    send(plates)
    wait_until(starts.exists)
    attempted(plates, 3600)
    assert send(plates) == ""
    may_end.touch()
    wait_for_end(plates.state)
    assert starts.read_text() == "started\n"
    send(plates)
    wait_until(lambda: starts.read_text() == "started\n" * 2)


def test_the_socket_of_a_dead_daemon_does_not_keep_it_from_being_started(plates, starts, tmp_path):
    folder = tmp_path / "run"
    (folder / "tailhook").mkdir(parents=True)
    plates.env["XDG_RUNTIME_DIR"] = str(folder)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(folder / "tailhook" / "poke"))
    send(plates)
    wait_until(starts.exists)


def is_never_started(project, starts):
    """Return whether a hook has not tried to start the daemon: that leaves a mark."""
    send(project)
    return not starts.exists() and not (project.state / "daemon-start").exists()


def test_the_environment_may_forbid_the_start(plates, starts):
    plates.env["TAILHOOK_NO_AUTOSTART"] = "1"
    assert is_never_started(plates, starts)


def test_the_configuration_may_forbid_the_start(plates, starts):
    config = plates.home / ".config" / "tailhook" / "config.json"
    config.parent.mkdir(parents=True)
    config.write_text('{"plates": {"autostart": false}}')
    assert is_never_started(plates, starts)


def test_a_projects_configuration_may_not_forbid_the_start(plates, starts):
    (plates.folder / ".claude").mkdir()
    (plates.folder / ".claude" / "tailhook.json").write_text('{"plates": {"autostart": false}}')
    send(plates)
    wait_until(starts.exists)


# ---- with which program ----------------------------------------------------------


@pytest.fixture
def installed(plates):
    """Return a project with a hook from one folder with all packages, as by `pip install 'tailhook[serve]'`.

    Nothing else of tailhook was ever run there: no command left anything for the hooks.
    """
    site = plates.home / "site-packages"
    site.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "tailhook" not in path.name:
            (site / path.name).symlink_to(path)
    shutil.copytree(Path(package.__file__).parent, site / "tailhook")
    interpreter, *flags = plates.argv[:3]
    plates.argv = [interpreter, *flags, str(site / "tailhook" / "hook" / "entry.py"), "plates"]
    plates.site = site
    return plates


@pytest.fixture
def daemon(plates):
    """Yield the daemon of that user; end it afterwards if it runs."""
    with daemon_in(plates.home) as one:
        yield one
        if answers(one):
            os.kill(daemon_pid(one), signal.SIGTERM)
            wait_until(lambda: not (one.runtime / "http").exists())


def test_a_hook_written_by_hand_starts_the_daemon(installed, daemon):
    """`daemon-argv` is missing: the hook uses its own interpreter and its own package."""
    assert send(installed) == ""
    wait_until(lambda: answers(daemon))
    wait_until(lambda: "mine" in daemon.plates())
    argv = Path(f"/proc/{daemon_pid(daemon)}/cmdline").read_bytes().split(b"\0")
    assert argv[0].decode() == installed.argv[0]
    assert str(installed.site).encode() in argv
    wait_until(lambda: not (installed.state / "daemon-start").exists())


def test_what_such_a_daemon_leaves_starts_it_again(installed, daemon):
    send(installed)
    wait_until(lambda: answers(daemon))
    pid = daemon_pid(daemon)
    wait_until((installed.state / "daemon-argv").exists)
    wait_until(lambda: not (installed.state / "daemon-start").exists())  # until then no hook would try again
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not answers(daemon))
    send(installed)
    wait_until(lambda: answers(daemon))
    assert daemon_pid(daemon) != pid


def test_the_modules_of_the_current_folder_do_not_count(installed, daemon):
    for name in ("uvicorn", "site", "tailhook", "sqlalchemy"):
        (installed.folder / f"{name}.py").write_text("raise SystemExit(3)\n")
    installed.env["PYTHONPATH"] = str(installed.folder)
    send(installed)
    wait_until(lambda: answers(daemon))


def argv_left(project, *words, **env):
    """Run `tailhook hook-command`; return its output, and whether it wrote the file that starts the daemon."""
    done = tailhook("hook-command", "--cold", *words, env={**project.env, **env}, cwd=project.folder)
    assert done.returncode == 0
    assert isinstance(json.loads(done.stdout), list)
    return done.stderr, (project.state / "daemon-argv").exists()


def test_hook_command_leaves_what_starts_the_daemon(plates):
    assert argv_left(plates, "idle,plates") == ("", True)
    argv = (plates.state / "daemon-argv").read_text().split("\0")
    assert argv[0] == sys.executable
    assert (plates.state / "daemon-argv").stat().st_mode & 0o777 == 0o600


def test_hook_command_leaves_nothing_for_other_machines(plates):
    assert argv_left(plates, "idle,ralph") == ("", False)
    assert argv_left(plates) == ("", False)


def test_hook_command_leaves_it_if_the_configured_machines_include_plates(plates):
    config = plates.home / ".config" / "tailhook" / "config.json"
    config.parent.mkdir(parents=True)
    config.write_text('{"hook": {"machines": ["idle", "plates"]}}')
    assert argv_left(plates) == ("", True)


def test_hook_command_prints_the_argv_even_if_it_can_leave_nothing(plates):
    (plates.home / "file").touch()
    note, _ = argv_left(plates, "plates", XDG_STATE_HOME=str(plates.home / "file"))
    assert note == (f"tailhook: Hooks cannot start the daemon: {plates.home}/file/tailhook: Not a directory\n")


# ---- if it does not start --------------------------------------------------------


def test_a_daemon_without_its_packages_is_reported_once_and_not_tried_all_the_time(plates):
    """The hook's own interpreter has no packages of the extra `serve`."""
    assert send(plates) == ""
    wait_for_end(plates.state)
    first = (plates.state / "daemon-start").read_text()
    assert NEEDED in first
    assert ADVICE in first
    said = send(plates)
    assert said.startswith(f"tailhook: plates: the daemon does not start: {NEEDED}")
    assert ADVICE in said
    assert said.endswith("Events are recorded and will appear later. For details:  tailhook doctor\n")
    assert said.count("\n") == 1
    assert send(plates) == ""
    attempted(plates, -59)
    last = (plates.state / "daemon-start").stat().st_mtime_ns
    assert send(plates) == ""
    assert (plates.state / "daemon-start").stat().st_mtime_ns == last  # it was not tried
    attempted(plates, 61)
    last = (plates.state / "daemon-start").stat().st_mtime_ns
    assert send(plates) == ""
    wait_for_end(plates.state)
    assert (plates.state / "daemon-start").stat().st_mtime_ns > last + 60 * 10**9
    assert (plates.state / "daemon-start").read_text() == first
    assert send(plates) == ""  # for the same reason
    assert len((plates.state / "events").read_text().splitlines()) == 6


def test_another_reason_is_reported_too(plates):
    for reason in ("one", "two\n\n", "two"):
        leave_argv(plates, f"printf 'noise\\n%s\\n' 'tailhook: {reason}' >&2")
        send(plates)
        wait_for_end(plates.state)
        said = send(plates)
        if (plates.state / "daemon-start").exists():
            attempted(plates, 61)
        assert said == (
            f"tailhook: plates: the daemon does not start: {reason.strip()}. Events are recorded"
            " and will appear later. For details:  tailhook doctor\n"
            if reason != "two"
            else ""
        )


def test_a_program_that_is_gone_is_reported_at_once_and_once(plates):
    plates.state.mkdir(parents=True)
    (plates.state / "daemon-argv").write_text("/gone/python\0-c\0pass")
    said = send(plates)
    assert "/gone/python" in said
    assert said.count("\n") == 1
    assert send(plates) == ""
    attempted(plates, 61)
    assert send(plates) == ""


def test_what_a_failing_program_writes_reaches_the_terminal_as_plain_text(plates):
    leave_argv(plates, r"printf '\033[31mred\033]0;owned\007' >&2")
    send(plates)
    wait_for_end(plates.state)
    said = send(plates)
    assert r"\x1b[31mred\x1b]0;owned\x07" in said
    assert "\x1b" not in said


def findings(project):
    """Return the doctor's findings about plates, with the project's hook installed."""
    settings = project.home / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(project.tailhook("install", "--print", "--with", "plates").stdout)
    done = project.tailhook("doctor", "--json")
    return [one for one in json.loads(done.stdout)["findings"] if one["check"] == "plates"]


def test_the_doctor_reports_the_reason_until_a_daemon_runs(plates, daemon):
    send(plates)
    wait_for_end(plates.state)
    (found,) = findings(plates)
    assert found["status"] == "failure"
    assert f"did not start when a hook last tried: {NEEDED}" in found["what"]
    assert ADVICE in found["what"]
    send(plates)  # reports it
    daemon.start()
    (found,) = findings(plates)
    assert found["status"] in ("ok", "note")  # a note: the events have waited for the daemon
    assert not list(plates.state.glob("daemon-start*"))


def test_the_failure_of_another_installation_is_forgotten_when_the_hooks_are_installed_again(plates):
    leave_argv(plates, "echo tailhook: not here >&2; exit 1")
    send(plates)
    wait_for_end(plates.state)
    (found,) = findings(plates)
    assert found["what"] == "the daemon did not start when a hook last tried: not here"
    plates.tailhook("install", "--yes", "--with", "plates", "--block-cap", "0")
    (found,) = findings(plates)
    assert (found["status"], found["what"]) == ("note", "the daemon does not run; the next event starts it")


def test_the_doctor_knows_that_a_hook_can_start_the_daemon_without_an_argv(plates):
    (found,) = findings(plates)
    assert (found["status"], found["what"]) == ("note", "the daemon does not run; the next event starts it")


def test_a_second_daemon_that_a_hook_started_leaves_without_a_complaint(plates, daemon):
    """It did not find the other one: that was moving its sockets or still starting."""
    daemon.start()
    argv = (plates.state / "daemon-argv").read_text().split("\0")
    done = subprocess.run(
        argv, env={**ENVIRONMENT, "HOME": str(plates.home)}, capture_output=True, timeout=HANGS_S, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_daemon_that_a_hook_started_does_not_fill_a_file_while_it_serves(installed, daemon):
    send(installed)
    wait_until(lambda: answers(daemon))
    wait_until(lambda: Path(f"/proc/{daemon_pid(daemon)}/fd/2").readlink() == Path("/dev/null"))
