"""The daemon runs `claude agents --json` while a board is open: here a small program of that name."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest
from support.daemon import beginning, daemon_in, listening
from support.host import HANGS_S, Started, tailhook, wait_until
from support.pool import is_alive

LISTED = {"sessionId": "b0b", "cwd": "/src/shop", "kind": "background", "name": "tidy", "status": "busy", "pid": 7}
# Notes how it was run, in a file whose name appears only when it is whole.
NOTE = """
import json, os, sys
path = os.path.join({folder!r}, str(os.getpid()))
fields = {{"argv": sys.argv[1:], "folder": os.getcwd(), "stdin": sys.stdin.read(), "env": dict(os.environ)}}
open(path + ".part", "w").write(json.dumps(fields))
os.rename(path + ".part", path + ".run")
"""


class FakeClaude:
    """A program `claude` in a folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.board_has_begun = folder / "begun"
        folder.mkdir(parents=True)

    def does(self, source):
        """Let it run a program in Python."""
        program = self.folder / "claude"
        program.write_text(f"#!{sys.executable}\n{NOTE.format(folder=str(self.folder))}\n{source}")
        program.chmod(0o700)

    def lists(self, *entries):
        """Let it print a list, once a board has what it begins with: sessions of the list are changes after that."""
        wait = f"import time\nwhile not os.path.exists({str(self.board_has_begun)!r}): time.sleep(0.01)\n"
        self.does(f"{wait}print({json.dumps(json.dumps(entries))})")

    def runs(self):
        """Return how it was run."""
        return [json.loads(path.read_text()) for path in self.folder.glob("*.run")]


@pytest.fixture
def fake(tmp_path):
    return FakeClaude(tmp_path / "bin")


@pytest.fixture
def daemon(short_path, fake):
    """Yield a daemon that is not started, with the fake program on its PATH."""
    with daemon_in(short_path / "home") as one:
        one.env["PATH"] = f"{fake.folder}:{one.env['PATH']}"
        one.fake = fake
        yield one


@contextmanager
def board(daemon):
    """Open a board; yield the changes that it is sent: name and value."""
    with listening(daemon) as sent:
        beginning(sent)
        daemon.fake.board_has_begun.touch()
        yield ((name, value) for name, value, _ in sent)


def figures(daemon):
    return daemon.ask("GET", "/status").json()


def test_a_session_without_hooks_is_on_an_open_board_and_its_hooks_take_it_over(daemon, fake):
    fake.lists(LISTED)
    daemon.start()
    daemon.post("stop", "other", ts=1)
    with board(daemon) as sent:
        name, row = next(sent)
        assert (name, row["session_id"], row["status"], row["headline"]) == ("plate", "b0b", "running", "tidy")
        assert row["activity"]["words"] == "from claude agents"
        assert set(daemon.plates()) == {"other", "b0b"}
        assert daemon.ask("GET", "/plates", params={"project": "/src/shop"}).json() == [row]
        assert daemon.ask("GET", "/plates", params={"status": "idle"}).json()[0]["session_id"] == "other"
        first = daemon.ask("GET", "/plates?limit=1")
        second = daemon.ask("GET", first.links["next"]["url"])
        third = daemon.ask("GET", second.links["next"]["url"])
        assert [plate["session_id"] for plate in first.json() + second.json()] == ["b0b", "other"]
        assert (third.json(), third.links) == ([], {})
        assert daemon.ask("GET", "/summary").json()["counts"]["working"] == 1
        details = daemon.ask("GET", "/plates/b0b?events=10").json()
        assert (details["headline"], details["events"], details["last_message"]) == ("tidy", [], None)
        daemon.post("stop", "b0b", ts=2, project_path="/src/shop")
        name, row = next(sent)
        assert (name, row["session_id"], row["status"], row["last_event_type"]) == ("plate", "b0b", "idle", "stop")
        assert daemon.plates()["b0b"]["last_event_type"] == "stop"
    assert len(daemon.ask("GET", "/plates/b0b?events=10").json()["events"]) == 1


@pytest.mark.parametrize("script", ["echo $$; exec cat", "sh -c 'echo $$; exec cat'; exit 0"])
def test_a_session_of_the_wrapper_without_hooks_is_one_row(daemon, fake, script):
    daemon.start()
    argv = [sys.executable, "-m", "tailhook", "run", "--", "sh", "-c", script]  # the second starts the host as npx does
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with Started(argv, env=daemon.env, cwd=daemon.home, **pipes) as wrapper:
        fake.lists({**LISTED, "pid": int(wrapper.stdout.readline())})
        wait_until(daemon.plates)
        with listening(daemon) as sent:
            known = list(beginning(sent)[0].values())  # what is stored may come to the stream a moment later
            fake.board_has_begun.touch()
            later = (value for name, value, _ in sent if name == "plate" and value["session_id"] != "b0b")
            (plate,) = known or [next(later)]
            assert plate["status"] == "starting"
            gone = (value["session_id"] for name, value, _ in sent if name == "removed")
            assert next(gone) == plate["session_id"]
            assert daemon.plates().keys() == {"b0b"}
            wrapper.communicate(timeout=HANGS_S)
            assert wrapper.returncode == 0
            assert daemon.plates().keys() == {"b0b"}  # until the host lists it no more


def test_nothing_of_the_list_is_stored(daemon, fake):
    fake.lists(LISTED)
    daemon.start()
    with board(daemon) as sent:
        assert next(sent)[1]["session_id"] == "b0b"
        assert figures(daemon)["events"] == {}
    daemon.stop()
    daemon.start()
    assert daemon.plates() == {}


def test_the_program_runs_at_home_without_a_board_not_at_all_and_without_secrets(daemon, fake):
    fake.lists(LISTED)
    daemon.env["TAILHOOK_TOKEN"] = "t" * 40
    daemon.start()
    daemon.ask("GET", "/plates")
    daemon.ask("GET", "/summary")
    assert fake.runs() == []
    with board(daemon) as sent:
        next(sent)
    (run,) = fake.runs()
    assert (run["argv"], run["folder"], run["stdin"]) == (["agents", "--json"], str(daemon.home), "")
    assert run["env"]["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1"
    assert "TAILHOOK_TOKEN" not in run["env"]


def test_the_terminal_of_a_listed_session_is_not_known(daemon, fake):
    fake.lists(LISTED)
    daemon.start()
    with board(daemon) as sent:
        next(sent)
        assert daemon.ask("GET", "/terminals/b0b").json() == {"status": "ok", "terminal": None}


def test_two_boards_share_one_run(daemon, fake):
    fake.lists(LISTED)
    daemon.start()
    with board(daemon) as first:
        next(first)
        with listening(daemon) as second:
            plates, closed, _ = beginning(second)
            assert (list(plates), closed) == (["b0b"], 0)
    assert len(fake.runs()) == 1


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("sys.exit('error: unknown option')", "exit status 1: error: unknown option"),
        ("print('not JSON')", "its output is not JSON"),
        ("print('{}')", "its output is not a JSON array"),
        ("print('[' + ' ' * (2 << 20) + ']')", "it printed more than 1048576 bytes"),
        ("sys.stderr.write('\\x1b]0;x\\x07' * 10**6); sys.exit(3)", r"exit status 3: \x1b]0;x\x07"),
        ("os.kill(os.getpid(), 9)", "exit status -9"),
    ],
)
def test_a_program_that_fails_is_reported_by_doctor_and_harms_nothing(daemon, fake, source, why):
    fake.does(source)
    daemon.start()
    with board(daemon) as sent:
        found = wait_until(lambda: figures(daemon)["list_failure"])
        assert found.startswith(why)
        assert len(found) < 300
        assert found.isprintable()
        daemon.post("stop", "s", ts=1)
        assert next(sent)[1]["session_id"] == "s"
    assert tailhook("install", "--yes", "--with", "plates", env=daemon.env, cwd=daemon.home).returncode == 0
    printed = tailhook("doctor", env=daemon.env, cwd=daemon.home).stdout
    assert f"claude agents --json failed when a board was last open: {why}" in " ".join(printed.split())


def test_a_program_that_cannot_be_executed_is_reported(daemon, fake):
    (fake.folder / "claude").write_bytes(b"\x7fELF nothing")
    (fake.folder / "claude").chmod(0o700)
    daemon.start()
    with board(daemon):
        assert "Exec format error" in wait_until(lambda: figures(daemon)["list_failure"])


def test_a_program_that_hangs_ends_with_the_daemon(daemon, fake):
    fake.does("import time\nwhile True: time.sleep(1)")
    daemon.start()
    with board(daemon):
        wait_until(fake.runs)
        (run,) = fake.folder.glob("*.run")
    daemon.stop()
    wait_until(lambda: not is_alive(int(run.stem)))  # killed; init reaps it a moment later


def test_the_program_is_found_where_its_installer_puts_it(daemon, fake):
    daemon.env["PATH"] = "/usr/bin:/bin"
    fake.lists(LISTED)
    there = daemon.home / ".local" / "bin"
    there.mkdir(parents=True)
    (there / "claude").symlink_to(fake.folder / "claude")
    daemon.start()
    with board(daemon) as sent:
        assert next(sent)[1]["session_id"] == "b0b"


def test_a_program_in_a_relative_folder_of_path_is_never_run(daemon, fake, tmp_path):
    fake.lists(LISTED)
    relative = os.path.relpath(fake.folder, daemon.home)
    daemon.env["PATH"] = f"{relative}:{os.path.relpath(fake.folder)}::/usr/bin:/bin"
    daemon.start()
    with board(daemon) as sent:
        daemon.post("stop", "s", ts=1)
        assert next(sent)[1]["session_id"] == "s"
        assert figures(daemon)["list_failure"] == ""
    assert fake.runs() == []


def test_a_listed_session_can_be_hidden(daemon, fake):
    fake.lists(LISTED)
    daemon.start()
    with board(daemon) as sent:
        next(sent)
        assert daemon.ask("PATCH", "/plates/b0b", json={"seen": True}).json()["hidden"] is False
        for hides in (True, False):
            assert daemon.ask("PATCH", "/plates/b0b", json={"hidden": hides}).json()["hidden"] is hides
            name, row = next(sent)
            assert (name, row["hidden"]) == ("plate", hides)
        assert daemon.ask("DELETE", "/plates/b0b").status_code == 404
