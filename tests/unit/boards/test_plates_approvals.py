"""A command that a person approved: its process ends the wait, because no hook reports the answer."""

import os
import subprocess
import sys
import threading
import time

import pytest
from support.cases import in_one_test
from support.plate_situations import APPROVAL, IDLE, RUNNING, play

from tailhook.hook.plates import MAX_REPORTED_CHARS
from tailhook.machines.quoting import plain_words
from tailhook.plates import host_children
from tailhook.plates.db import Moment
from tailhook.plates.host_children import has_begun, is_reporting
from tailhook.stores.processes import uptime_ms

ALWAYS = Moment(0, 0)

# ---- the machine -------------------------------------------------------------


def test_a_tool_that_was_allowed_runs_until_its_end():
    play(
        ("tool_start:Bash=a", RUNNING),
        ("permission_asked:Bash", APPROVAL),
        ("permission_given:Bash=a", RUNNING),
        ("tool_call:Bash=a", RUNNING),
    )


def test_another_question_is_still_open():
    play(
        ("tool_start:Bash=a", RUNNING),
        ("permission_asked:Bash", APPROVAL),
        ("tool_start:ExitPlanMode=b", APPROVAL),
        ("permission_given:Bash=a", APPROVAL),
        ("permission_given:Bash=c", APPROVAL),
        ("tool_call:ExitPlanMode=b", RUNNING),
    )


def test_a_sub_agents_tool_that_was_allowed_leaves_the_session_as_it_was():
    play(
        ("stop", IDLE),
        ("x/tool_start:Bash=a", IDLE),
        ("x/permission_asked:Bash", APPROVAL),
        ("x/permission_given:Bash=a", IDLE),
    )


# ---- the health check --------------------------------------------------------


@pytest.fixture
def asking(world):
    """Return a world with a session that has asked for a command long ago."""
    world.processes[5] = 1234
    fields = {"tool_params": {"command": "make test"}, "pid": 5, "pid_started": 1234}
    world.event("s", "tool_start:Bash", tool_use_id="a", **fields)
    world.event("s", "permission_asked:Bash", **fields)
    world.now += 20
    world.health.check()
    world.health.take_news()
    world.now += 9
    assert not world.health.take_news()
    return world


def test_the_wait_ends_when_the_command_begins_and_its_end_is_a_tools_end(asking):
    asking.commands.add((5, "make test"))
    assert asking.health.take_news()
    assert asking.health.check() == 1
    assert asking.status("s") == "running"
    last = asking.database.events_of("s", 1)[0]
    assert (last["event_type"], last["tool_use_id"]) == ("permission_given", "a")
    assert asking.health.check() == 0
    asking.event("s", "tool_call:Bash", tool_use_id="a")
    assert not asking.database.get("s")["tools"]


def test_a_command_of_another_host_than_claude_code_ends_its_wait_too(world):
    fields = {"tool_params": {"command": "make test"}, "pid": 5, "pid_started": 1234}
    world.processes[5] = 1234
    world.event("s", "tool_start:run_shell_command", **fields)
    world.event("s", "permission_asked", **fields)
    world.now += 20
    world.health.check()
    world.commands.add((5, "make test"))
    assert world.health.check() == 1
    assert world.status("s") == "running"


@pytest.mark.parametrize("running", [(6, "make test"), (5, "make")])
def test_another_command_or_another_hosts_ends_nothing(asking, running):
    asking.commands.add(running)
    assert not asking.health.take_news()
    asking.health.check()
    assert asking.status("s") == "awaiting_approval"


# ---- the processes -----------------------------------------------------------

LINES = [
    ("make test", "make test", True),
    ("make test", "cd x && make test -j4", True),
    ("make test", "make", False),
    ("make test", "make tests", False),
    ("make test", "test make", False),
    ("ls", "echo false", False),
    ("echo 'a b' > \"c\"", "echo 'a b' > \"c\"", True),
    ("deploy --token [secret] --to production-7", "deploy --token abc123 --to production-7", True),
    ("", "anything", False),
    ("[secret]", "anything", False),
    (plain_words("word " * 50, MAX_REPORTED_CHARS), "word " * 50, True),
    (plain_words("a" * 150 + " " + "b" * 150, MAX_REPORTED_CHARS), "a" * 150 + " " + "b" * 150, True),
]


@in_one_test(("asked", "line", "expected"), LINES)
def test_the_words_of_a_command_are_found_in_what_a_shell_got(monkeypatch, asked, line, expected):
    quoted = "eval '" + line.replace("'", "'\"'\"'") + "' < /dev/null"
    monkeypatch.setattr(host_children, "lines_of_children", lambda host, since: [f"/bin/bash\0-c\0{quoted}"])
    assert has_begun(1, asked, ALWAYS) is expected


@pytest.fixture
def child():
    """Yield the moment before a child of another thread than the first one, which waits for the end of its stdin."""
    before, made = Moment(int(time.time() * 1000) - 5000, uptime_ms() - 100), []  # psutil counts from a whole second
    argv = [sys.executable, "-c", "import sys; sys.stdin.read()", "make", "the-test"]

    def start():
        made.append(subprocess.Popen(argv, stdin=subprocess.PIPE))
        over.wait()

    over = threading.Event()
    thread = threading.Thread(target=start)
    thread.start()
    while not made:
        thread.join(0.01)
    yield before
    over.set()
    thread.join()
    made[0].communicate()


@pytest.mark.parametrize("platform", [sys.platform, "darwin"])
def test_a_real_child_is_found_if_it_began_after_the_question(monkeypatch, child, platform):
    monkeypatch.setattr(host_children.sys, "platform", platform)
    assert has_begun(os.getpid(), "make the-test", child)
    assert not has_begun(os.getpid(), "make another-test", child)
    assert not has_begun(os.getpid(), "make the-test", Moment(child.ts + 10**9, child.mono + 10**9))
    assert not has_begun(os.getppid(), "make the-test", child)
    assert not has_begun(1 << 30, "make the-test", child)


@in_one_test(
    ("line", "expected"),
    [
        ("/home/me/.local/state/tailhook/pool/0af/tailhook-hook\0hook\0plates", True),
        ("/bin/sh\0-c\0'/home/my me/tailhook-hook' hook plates --exit 0", True),
        ("python3\0-I\0-S\0/venv/lib/tailhook/hook/entry.py\0plates", True),
        ("bash\0-c\0eval 'tailhook plates serve'", False),
        ("vim\0tailhook-hooks.md", False),
    ],
)
def test_a_hook_is_known_by_its_program(monkeypatch, line, expected):
    monkeypatch.setattr(host_children, "lines_of_children", lambda host, since: [line])
    assert is_reporting(1) is expected
