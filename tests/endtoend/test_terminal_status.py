"""What the board shows of a session of Copilot, Gemini or Qwen Code in a terminal."""

import os
from contextlib import contextmanager

import pytest
from other_hosts import Copilot, Gemini, Qwen
from support.daemon import daemon_in, wait_until
from test_claude_status import RefusingModel

PROMPT = "\u276f"  # the sign of Copilot's prompt
KEYS = {"copilot": b"1", "gemini": b"\r", "qwen": b"\r"}  # the answer "yes, once"


@pytest.fixture(params=[Copilot, Gemini, Qwen], ids=lambda kind: kind.name)
def host(tmp_path, request):
    """Return a host with its events reported."""
    host = request.param(tmp_path / "home", tmp_path / "project")
    host.install("plates")
    return host


@pytest.fixture
def daemon(host):
    """Yield a running daemon."""
    with daemon_in(host.home) as daemon:
        yield daemon.start()


@contextmanager
def working(host, model):
    """Yield a session in a terminal that has got a prompt."""
    words = "Do the work."
    is_typed = host.name == "copilot"  # 1.0.67 ignores the prompt of `--interactive` without an account
    with host.terminal(model, *[] if is_typed else [words]) as terminal:
        terminal.drain()
        if is_typed:
            wait_until(lambda: PROMPT in terminal.seen)
            os.write(terminal.fd, words.encode())
            wait_until(lambda: words in terminal.seen)
            os.write(terminal.fd, b"\r")
        yield terminal


def shown(daemon):
    """Return the statuses on the board."""
    return [plate["status"] for plate in daemon.plates().values()]


@pytest.mark.parametrize("host", [Copilot], ids=["copilot"], indirect=True)
def test_an_error_of_the_api_is_shown(host, daemon):
    with RefusingModel() as model, working(host, model):
        wait_until(lambda: shown(daemon) == ["error"])
        assert host.events() == ["session_start", "prompt_submit"]


@pytest.mark.parametrize("host", [Copilot], ids=["copilot"], indirect=True)
def test_an_interruption_by_the_person_is_shown(host, daemon):
    with host.model(host.bash("sleep 600"), "Done.") as model, working(host, model) as terminal:
        wait_until(lambda: "tool_start" in host.events())
        os.write(terminal.fd, b"\x03")
        wait_until(lambda: shown(daemon) == ["idle"])
        [session] = daemon.plates()
        newest = daemon.ask("GET", f"/plates/{session}?events=1").json()["events"]
        assert [one["event_type"] for one in newest] == ["interrupted"]


def test_a_permission_is_waited_for_until_the_person_gives_it(host, daemon):
    host.permissions = ()
    with host.model(host.bash("touch made"), "Done.") as model, working(host, model) as terminal:
        wait_until(lambda: shown(daemon) == ["awaiting_approval"])
        wait_until(lambda: "touch made" in terminal.seen)
        # It takes keys some time after its question.
        wait_until(lambda: os.write(terminal.fd, KEYS[host.name]) and "tool_call" in host.events())
        wait_until(lambda: shown(daemon) == ["idle"])
        [session] = daemon.plates()
        events = daemon.ask("GET", f"/plates/{session}?events=200").json()["events"]
        assert "health_check_recovery" not in [one["event_type"] for one in events]
    assert (host.project / "made").exists()
