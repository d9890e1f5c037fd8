"""A command that a signal ends leaves nothing behind, at any moment."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

import tailhook
from tailhook.bench import processes
from tailhook.bench.processes import run_once
from tailhook.exits import run_to_end, signals_as_exits, signals_held, temporary_folder

ENDED = 128 + signal.SIGTERM


@pytest.fixture(autouse=True)
def handlers():
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before = {number: signal.getsignal(number) for number in numbers}
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def signal_after(monkeypatch):
    """A function that raises SIGTERM after a call, before the caller has the call's result."""

    def follow(owner, name):
        usual = getattr(owner, name)

        def call(*values, **named):
            made = usual(*values, **named)
            signal.raise_signal(signal.SIGTERM)
            return made

        monkeypatch.setattr(owner, name, call)

    return follow


def test_a_program_is_ended_if_the_signal_comes_while_it_starts(monkeypatch):
    begun = []

    class Begun(subprocess.Popen):
        def __init__(self, *values, **options):
            super().__init__(*values, **options)
            begun.append(self)
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Begun)
    with signals_as_exits(), pytest.raises(SystemExit) as ended:
        run_to_end(["sleep", "999"])
    assert (ended.value.code, begun[0].returncode) == (ENDED, -signal.SIGKILL)


def test_a_programs_output_its_input_and_its_exit_code_are_those_of_subprocess_run():
    words = ["sh", "-c", "cat; echo no >&2; exit 3"]
    usual = subprocess.run(words, input="text", capture_output=True, text=True, check=False)
    done = run_to_end(words, input="text", text=True)
    assert (done.stdout, done.stderr, done.returncode) == (usual.stdout, usual.stderr, usual.returncode)


def test_a_program_that_takes_too_long_is_ended():
    with pytest.raises(subprocess.TimeoutExpired):
        run_to_end(["sleep", "999"], timeout=0.01)


@pytest.mark.parametrize("folder", ["bench", "cli", "doctor", "install"])
def test_no_command_leaves_a_program_that_a_signal_finds_before_it_has_begun(folder):
    sources = Path(tailhook.__file__).parent.joinpath(folder).rglob("*.py")
    assert [path.name for path in sources if "subprocess.run(" in path.read_text()] == []


def test_a_folder_is_removed_if_the_signal_comes_while_it_is_made(signal_after, tmp_path):
    signal_after(tempfile, "mkdtemp")
    with signals_as_exits(), pytest.raises(SystemExit) as ended, temporary_folder("left-", str(tmp_path)):
        pytest.fail("the command went on")
    assert (ended.value.code, list(tmp_path.iterdir())) == (ENDED, [])


def test_a_folder_is_removed_if_the_signal_comes_while_it_is_removed(monkeypatch, tmp_path):
    usual = tempfile.TemporaryDirectory.__exit__

    def leave(folder, *values):
        signal.raise_signal(signal.SIGTERM)
        return usual(folder, *values)

    monkeypatch.setattr(tempfile.TemporaryDirectory, "__exit__", leave)
    with signals_as_exits(), pytest.raises(SystemExit) as ended, temporary_folder("left-", str(tmp_path)) as path:
        Path(path, "file").touch()
    assert (ended.value.code, list(tmp_path.iterdir())) == (ENDED, [])


def test_a_process_is_ended_if_the_signal_comes_while_it_is_started(signal_after, monkeypatch, tmp_path):
    pids = []
    usual = os.posix_spawnp
    monkeypatch.setattr(os, "posix_spawnp", lambda *values, **named: pids.append(usual(*values, **named)) or pids[0])
    signal_after(os, "posix_spawnp")
    waited = []
    monkeypatch.setattr(processes, "wait_for", waited.append)
    payload = tmp_path / "payload"
    payload.touch()
    with signals_as_exits(), pytest.raises(SystemExit) as ended:
        run_once(["sleep", "999"], payload, dict(os.environ))
    assert (ended.value.code, len(pids), waited) == (ENDED, 1, [])
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_a_signal_that_is_held_back_comes_once_when_the_block_has_ended():
    done = []

    def work():
        with signals_held():
            for _ in range(3):
                signal.raise_signal(signal.SIGTERM)
                done.append("went on")
        done.append("was not ended")

    with signals_as_exits():
        with pytest.raises(SystemExit) as ended:
            work()
        signal.raise_signal(signal.SIGTERM)  # has no effect: the command is ending
    assert (ended.value.code, done) == (ENDED, ["went on"] * 3)


def test_signals_are_as_before_when_the_command_has_ended():
    with signals_as_exits(), signals_held():
        assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
