"""`tailhook run`: the command as without it, and its end reported to the daemon."""

import fcntl
import json
import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path
from urllib.parse import quote

import pytest
from support.daemon import daemon_in, spooled, wait_until
from support.host import HANGS_S, Started, tailhook
from support.terminal import Terminal

from tailhook.stores.processes import process_start

needs_bash = pytest.mark.skipif(shutil.which("bash", path="/bin") is None, reason="no /bin/bash here")
RUN = [sys.executable, "-m", "tailhook", "run", "--"]
# Prints that it is ready, then each signal that comes, until the last one of its argv comes.
LISTENER = """
import os, signal, sys
numbers = {getattr(signal, name) for name in sys.argv[1:]}
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
os.write(1, b"ready\\n")
name = ""
while name != sys.argv[-1]:
    name = signal.Signals(signal.sigwait(numbers)).name
    os.write(1, f"{name}\\n".encode())
"""


@pytest.fixture
def away(tmp_path):
    """Yield a daemon that is not started; hooks and the wrapper may not start one either."""
    with daemon_in(tmp_path) as one:
        one.env["TAILHOOK_NO_AUTOSTART"] = "1"
        yield one


@pytest.fixture
def daemon(away):
    """Return a running daemon."""
    return away.start()


def run(daemon, *argv, input=None):
    """Run a command under the wrapper to its end."""
    return tailhook("run", "--", *argv, env=daemon.env, cwd=daemon.home, stdin=input)


def python(code, *words):
    return [sys.executable, "-c", code, *words]


# ---- as without it -----------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_exit_code_is_the_commands(away, code):
    assert run(away, "sh", "-c", f"exit {code}").returncode == code


def test_input_and_output_are_the_commands(away):
    done = run(away, "sh", "-c", "cat; echo oops >&2", input="hello")
    assert (done.stdout, done.stderr) == ("hello", "oops\n")


@pytest.mark.parametrize("name", ["TERM", "KILL", "INT"])
def test_it_dies_of_the_signal_that_the_command_died_of(away, name):
    done = run(away, "sh", "-c", f"kill -{name} $$")
    assert (done.returncode, done.stderr) == (-signal.Signals[f"SIG{name}"], "")


@needs_bash
@pytest.mark.parametrize("command", ["no-such-command", "/nonexistent", "./none\x1b[31m"])
def test_a_command_that_is_not_there_exits_127_as_in_a_shell(away, command):
    done = run(away, command)
    shown = command.replace("\x1b", "\\x1b")
    assert (done.returncode, done.stderr) == (127, f"tailhook: {shown}: No such file or directory\n")
    assert shell(away, command) == 127


@needs_bash
@pytest.mark.parametrize(
    ("name", "content", "mode", "reason"),
    [
        ("folder", None, 0o755, "Permission denied"),
        ("text", "echo no\n", 0o644, "Permission denied"),
        ("text/below", None, 0, "Not a directory"),
        ("binary", "\x7fELF", 0o755, "Exec format error"),
    ],
)
def test_a_command_that_cannot_be_executed_exits_126_as_in_a_shell(away, name, content, mode, reason):
    path = away.home / name
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    elif "/" in name:
        path.parent.write_text("")
    else:
        path.mkdir(mode)
    done = run(away, str(path))
    assert (done.returncode, done.stderr) == (126, f"tailhook: {path}: {reason}\n")
    assert shell(away, str(path)) == 126


def shell(daemon, command):
    """Return the exit code of a shell that is asked to run the command."""
    script = f"{shlex.quote(command)} 2>/dev/null"
    done = subprocess.run(["bash", "-c", script], env=daemon.env, cwd=daemon.home, check=False)
    return done.returncode


def test_without_a_command_it_prints_its_usage(away):
    done = subprocess.run(RUN, env=away.env, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert done.returncode == 2
    assert "tailhook run -- claude" in done.stderr


def test_the_commands_own_flags_are_its_own(away):
    assert run(away, "echo", "--help", "-x", "--").stdout == "--help -x --\n"


def test_if_ended_children_are_ignored_the_exit_code_is_still_the_commands(away):
    code = (
        "import signal, sys, time; time.sleep(0.3); sys.exit(3 + (signal.getsignal(signal.SIGCHLD) != signal.SIG_IGN))"
    )
    done = subprocess.run(
        [*RUN, *python(code)],
        env=away.env,
        cwd=away.home,
        timeout=HANGS_S,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    )
    assert done.returncode == 3


def test_a_folder_that_is_gone_is_not_an_obstacle(away):
    script = 'mkdir gone; cd gone; rmdir ../gone; exec "$@"'
    argv = ["sh", "-c", script, "sh", *RUN, *python("raise SystemExit(4)")]
    done = subprocess.run(
        argv, env=away.env, cwd=away.home, capture_output=True, text=True, timeout=HANGS_S, check=False
    )
    assert (done.returncode, done.stderr) == (4, "")


def test_no_signal_is_blocked_in_the_command(away):
    code = "import signal; print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())))"
    assert run(away, *python(code)).stdout == "[]\n"


# ---- signals -----------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT"]
)
def test_a_signal_that_is_sent_to_it_reaches_the_command_once(away, name):
    last = "SIGUSR1" if name == "SIGUSR2" else "SIGUSR2"
    argv = [*RUN, *python(LISTENER, name, last)]
    with Started(argv, env=away.env, stdout=subprocess.PIPE, text=True, start_new_session=True) as wrapper:
        assert wrapper.stdout.readline() == "ready\n"
        wrapper.send_signal(getattr(signal, name))
        assert wrapper.stdout.readline() == f"{name}\n"
        send_last(wrapper.pid, last)
        assert wrapper.stdout.read() == f"{last}\n"
    assert wrapper.returncode == 0


def send_last(pid, name):
    """Send a signal to the wrapper once it has taken all that were sent before, so that it forwards this one last."""
    wait_until(lambda: not is_pending(pid))
    os.kill(pid, getattr(signal, name))


def is_pending(pid):
    """Return whether a signal waits for a process, on Linux; False elsewhere."""
    status = Path(f"/proc/{pid}/status")
    return status.exists() and int(status.read_text().split("\nShdPnd:")[1].split()[0], 16) != 0


def in_terminal(away, *argv):
    """Start the wrapper in a terminal of its own."""
    return Terminal([*RUN, *argv], away.env, away.home)


def test_what_is_typed_reaches_the_command_once(away):
    terminal = in_terminal(away, *python(LISTENER, "SIGINT", "SIGUSR2"))
    terminal.until("ready")
    os.write(terminal.fd, b"\x03")
    terminal.until("SIGINT")
    send_last(terminal.pid, "SIGUSR2")
    assert terminal.wait() == 0
    assert terminal.seen.count("SIGINT") == 1


def test_a_window_that_changes_is_reported_once(away):
    terminal = in_terminal(away, *python(LISTENER, "SIGWINCH", "SIGUSR2"))
    terminal.until("ready")
    fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 100, 0, 0))
    terminal.until("SIGWINCH")
    send_last(terminal.pid, "SIGUSR2")
    assert terminal.wait() == 0
    assert terminal.seen.count("SIGWINCH") == 1


def test_the_command_has_the_terminal(away):
    code = "import os, sys; print(os.isatty(0), os.tcgetpgrp(0) == os.getpgrp()); print('said', input())"
    terminal = in_terminal(away, *python(code))
    terminal.until("True True")
    os.write(terminal.fd, b"hello\n")
    terminal.until("said hello")
    assert terminal.wait() == 0


def in_shell(away, *argv):
    """Start the wrapper in a terminal of its own, from a shell with job control."""
    shell = Terminal(["/bin/bash", "--norc", "-i"], {**away.env, "PS1": "ready$ ", "TERM": "dumb"}, away.home)
    shell.until("ready$ ")
    os.write(shell.fd, f"{shlex.join([*RUN, *argv])}\n".encode())
    return shell


def type_at_prompt(shell, after, words):
    """Write a line to a shell that has shown its next prompt after some words. Before that, a shell may lose input."""
    shell.until(after)
    shell.seen = shell.seen.rpartition(after)[2]
    shell.until("ready$ ")
    os.write(shell.fd, f"{words}\n".encode())


@needs_bash
def test_a_command_that_stops_itself_gives_the_shell_its_terminal_back(away):
    shell = in_shell(away, "sh", "-c", "kill -STOP $$; echo resu''med")
    type_at_prompt(shell, "Stopped", "fg")
    type_at_prompt(shell, "resumed", "exit")
    assert shell.wait() == 0


@needs_bash
def test_a_command_that_is_stopped_from_the_terminal_goes_on_with_it(away):
    shell = in_shell(away, "sh", "-c", "echo 'begun by' $$.; read line; echo en''ded")
    shell.until(".\r\n")
    pid = int(shell.seen.rpartition(" ")[2].strip(".\r\n"))
    os.write(shell.fd, b"\x1a")
    wait_until(lambda: state_of(pid) == "T")  # until then, it may read the shell's input
    type_at_prompt(shell, "Stopped", "fg")
    wait_until(lambda: os.tcgetpgrp(shell.fd) != shell.pid)  # from now on, keys go to the command
    os.write(shell.fd, b"\n")
    type_at_prompt(shell, "ended", "exit")
    assert shell.wait() == 0


def test_a_command_that_a_person_stops_for_a_while_is_waited_for_if_there_is_no_shell(away):
    code = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP); print('resumed')"
    argv = [*RUN, *python("import os, sys; print(os.getpid(), flush=True);" + code)]
    with Started(argv, env=away.env, stdout=subprocess.PIPE, text=True, start_new_session=True) as wrapper:
        pid = int(wrapper.stdout.readline())
        wait_until(lambda: state_of(pid) == "T")
        send_last(wrapper.pid, "SIGWINCH")
        wait_until(lambda: not is_pending(wrapper.pid))  # so it has dealt with the stop
        assert state_of(wrapper.pid) != "T"
        os.kill(pid, signal.SIGCONT)
        assert wrapper.stdout.read() == "resumed\n"
    assert wrapper.returncode == 0


def test_the_command_is_run_where_python_cannot_look_at_a_child_that_stopped(away):
    code = "import os, sys, tailhook.cli; del os.waitid; sys.exit(tailhook.cli.main())"  # macOS before CPython 3.13
    argv = python(code, "run", "--", "sh", "-c", "echo $$; kill -STOP $$; exit 7")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Started(argv, env=away.env, text=True, start_new_session=True, **pipes) as wrapper:
        pid = int(wrapper.stdout.readline())
        wait_until(lambda: state_of(pid) == "T")
        os.kill(pid, signal.SIGCONT)
        assert (wrapper.wait(timeout=HANGS_S), wrapper.stderr.read()) == (7, "")


def state_of(pid):
    """Return the state of a process, from Linux."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


# ---- the end -----------------------------------------------------------------


def plate_of(daemon):
    """Return the only plate, or None."""
    found = list(daemon.plates().values())
    assert len(found) <= 1
    return found[0] if found else None


def test_the_session_is_shown_from_its_start_and_closed_at_its_end(daemon):
    with Started([*RUN, "cat"], env=daemon.env, cwd=daemon.home, stdin=subprocess.PIPE) as wrapper:
        plate = wait_until(lambda: plate_of(daemon))
        assert (plate["status"], plate["project_path"]) == ("starting", str(daemon.home))
        wrapper.stdin.close()
        wrapper.wait(HANGS_S)
    assert plate_of(daemon)["status"] == "closed"


@pytest.mark.skipif(sys.platform != "linux", reason="macOS does not show when a process started")
@pytest.mark.skipif(sys.platform != "linux", reason="macOS does not show when a process started")
def test_a_command_that_ends_before_it_is_registered_leaves_no_session_that_seems_to_start(daemon):
    def register(pid, started):
        code = f"from tailhook.plates.run import register; register('late', {pid}, {started})"
        subprocess.run([sys.executable, "-c", code], env=daemon.env, cwd=daemon.home, check=True)

    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as command:
        started = process_start(command.pid)
    register(command.pid, 0)
    assert plate_of(daemon) is None
    register(command.pid, started)
    wait_until(lambda: plate_of(daemon)["status"] == "closed")


def test_the_commands_hooks_name_its_run(daemon):
    print_event = (
        "import json, os; print(json.dumps({'event_id': 'e', 'event_type': 'stop', 'session_id': 's', 'ts': 1,"
        " 'project_path': os.getcwd(), 'run_id': os.environ['TAILHOOK_RUN_ID']}))"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with Started([*RUN, *python(f"input(); {print_event}")], env=daemon.env, cwd=daemon.home, **pipes) as wrapper:
        wait_until(lambda: plate_of(daemon))
        event = json.loads(wrapper.communicate(b"\n", timeout=HANGS_S)[0])
    daemon.spool(event)
    wait_until(lambda: "s" in daemon.plates())
    assert daemon.plates()["s"]["run_id"] == event["run_id"]


@pytest.mark.parametrize("how", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_its_own_death_is_reported(daemon, how):
    argv = [*RUN, sys.executable, "-c", "import time; time.sleep(60)"]
    with Started(
        argv,
        env=daemon.env,
        cwd=daemon.home,
        start_new_session=True,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(how, signal.SIG_DFL),  # the tests may run under nohup
    ) as one:
        wait_until(lambda: plate_of(daemon))
        one.send_signal(how)
        wait_until(lambda: plate_of(daemon)["status"] == "closed")
    assert one.returncode == -how or how == signal.SIGINT  # Python turns it into an exit


def test_a_terminal_that_is_closed_ends_the_session(daemon):
    terminal = in_terminal(daemon, "cat")
    wait_until(lambda: plate_of(daemon))
    os.close(terminal.fd)
    wait_until(lambda: plate_of(daemon)["status"] == "closed")
    os.waitpid(terminal.pid, 0)


def test_without_a_daemon_the_end_is_in_the_spool(away):
    run(away, "true")
    event = json.loads((away.state / "events").read_text().splitlines()[-1])
    assert event["event_type"] == "run_ended"
    assert event["run_id"]


def test_without_what_a_daemon_needs_the_end_is_in_the_spool(away, tmp_path):
    (tmp_path / "httpx.py").write_text("raise ImportError('not installed')")
    away.env["PYTHONPATH"] = str(tmp_path)
    done = run(away, "sh", "-c", "exit 5")
    assert (done.returncode, done.stderr) == (5, "")
    assert json.loads((away.state / "events").read_text().splitlines()[-1])["event_type"] == "run_ended"


def test_a_daemon_that_hangs_finds_the_end_in_the_spool(daemon):
    daemon.process.send_signal(signal.SIGSTOP)
    event = json.dumps(spooled(1, event_type="session_start", run_id="RUN"))
    run(daemon, "sh", "-c", f"""echo '{event}' | sed "s/RUN/$TAILHOOK_RUN_ID/" >> '{daemon.state}/events'""")
    assert "run_ended" in (daemon.state / "events").read_text()
    daemon.process.send_signal(signal.SIGCONT)
    wait_until(lambda: daemon.plates().get("s", {}).get("status") == "closed")


def test_an_end_that_meant_no_session_that_the_daemon_knows_is_in_the_spool(daemon):
    """The session's own events may still wait there."""
    with Started([*RUN, "cat"], env=daemon.env, cwd=daemon.home, stdin=subprocess.PIPE) as wrapper:
        plate = wait_until(lambda: plate_of(daemon))
        assert daemon.ask("DELETE", f"/plates/{quote(plate['session_id'])}").status_code == 200
        wrapper.stdin.close()
        wrapper.wait(HANGS_S)
    (event,) = map(json.loads, (daemon.state / "events").read_text().splitlines())
    assert (event["event_type"], event["run_id"]) == ("run_ended", plate["run_id"])


def test_a_user_can_switch_the_start_of_the_daemon_off(away):
    del away.env["TAILHOOK_NO_AUTOSTART"]
    config = away.home / ".config" / "tailhook" / "config.json"
    config.parent.mkdir(parents=True)
    config.write_text('{"plates": {"autostart": false}}')
    run(away, "sleep", "1")
    assert not (away.runtime / "http").exists()
    assert json.loads((away.state / "events").read_text().splitlines()[-1])["event_type"] == "run_ended"


def test_two_sessions_in_one_folder_do_not_close_each_other(daemon):
    wrappers = [
        subprocess.Popen([*RUN, "cat"], env=daemon.env, cwd=daemon.home, stdin=subprocess.PIPE) for _ in range(2)
    ]
    wait_until(lambda: len(daemon.plates()) == 2)
    wrappers[0].stdin.close()
    wrappers[0].wait(HANGS_S)
    assert sorted(plate["status"] for plate in daemon.plates().values()) == ["closed", "starting"]
    wrappers[1].stdin.close()
    wrappers[1].wait(HANGS_S)
    assert {plate["status"] for plate in daemon.plates().values()} == {"closed"}
