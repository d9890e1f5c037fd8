"""The daemon loses no event: one class for each fault, tried on a running process."""

import json
import shutil
import signal
import subprocess
import threading
import time
from itertools import repeat
from pathlib import Path

import pytest
from support.daemon import spooled, wait_until
from support.host import Project
from support.long_runs import IS_LONG

pytestmark = pytest.mark.system


def all_taken(daemon):
    """Return whether nothing waits in the spool."""
    return daemon.ask("GET", "/status").json()["spool_bytes"] == 0


def events_of(daemon, session):
    """Return the events of a session in the daemon's order."""
    return daemon.ask("GET", f"/plates/{session}?events=1000").json()["events"]


class TestKilledUnderLoad:
    def test_again_and_again_all_arrive_once_and_in_order(self, own, report):
        total, kills = (3000, 4) if IS_LONG else (1500, 2)

        def keep_writing():
            for number in range(total):
                own.spool(spooled(number, session=f"s{number % 20}"))
                time.sleep(0.0005)

        writer = threading.Thread(target=keep_writing)
        own.start()
        writer.start()
        for _ in range(kills):
            time.sleep(0.3)
            own.stop(signal.SIGKILL)
            own.start()
        writer.join()
        wait_until(lambda: all_taken(own))
        assert own.ask("GET", "/status").json()["events"] == {"tool_call": total}
        for session in range(20):
            assert [event["ts"] for event in events_of(own, f"s{session}")] == list(range(session, total, 20))
        report(f"plates: {total:,} events, the daemon killed {kills} times: each arrived once, in order per session")


class TestDiskFull:
    """The state folder is a disk of 1 MB in a mount namespace of the daemon. The test reaches it through /proc."""

    @pytest.fixture
    def small_disk(self, own, tmp_path):
        """Return the running daemon; its `state` is on that disk."""
        disk, runtime = tmp_path / "disk", tmp_path / "run"
        disk.mkdir()
        runtime.mkdir()
        mount = f"mount -t tmpfs -o size=1m,mode=700 none '{disk}'"
        own.before = ["unshare", "--map-root-user", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh"]
        tried = (
            subprocess.run([*own.before, "true"], capture_output=True, check=False) if shutil.which("unshare") else None
        )
        if tried is None or tried.returncode:
            pytest.skip("no disk can be mounted here")
        own.env |= {"XDG_STATE_HOME": str(disk), "XDG_RUNTIME_DIR": str(runtime)}
        own.runtime = runtime / "tailhook"
        own.start()
        own.disk = Path(f"/proc/{own.process.pid}/root{disk}")
        own.state = own.disk / "tailhook"
        return own

    def test_what_a_hook_could_write_arrives_once_when_there_is_room_again(self, small_disk, tmp_path, hook_argv):
        project = Project(tmp_path / "project", tmp_path / "home", [*hook_argv[:-1], "plates"])
        project.env |= {
            "XDG_STATE_HOME": str(small_disk.disk),
            "XDG_RUNTIME_DIR": str(small_disk.runtime.parent),
            "TAILHOOK_NO_AUTOSTART": "1",
        }

        def report(session):
            payload = project.payload(hook_event_name="PostToolUse", session_id=session, tool_name="T" * 500)
            stop = project.hook(json.dumps(payload).encode(), read=False)
            assert (stop.exit_code, stop.stdout) == (0, "")
            return not stop.stderr

        assert report("before")
        wait_until(lambda: all_taken(small_disk))
        fill(small_disk.disk / "filler")
        written = [name for name in (f"s{number}" for number in range(16)) if report(name)]
        assert 0 < len(written) < 16  # the rest of the spool's last page
        assert not all_taken(small_disk)
        assert set(small_disk.plates()) == {"before"}
        (small_disk.disk / "filler").unlink()
        assert report("after")
        wait_until(lambda: all_taken(small_disk))
        assert set(small_disk.plates()) == {"before", *written, "after"}
        assert small_disk.ask("GET", "/status").json()["events"] == {"tool_call": len(written) + 2}


def fill(path):
    """Write to a file until the disk is full."""
    with path.open("wb", buffering=0) as out, pytest.raises(OSError, match="No space"):
        out.writelines(repeat(bytes(4096)))


class TestClockSetBack:
    def test_an_hour_every_event_counts_in_the_order_in_which_it_happened(self, own):
        hour, now = 3_600_000, 1_800_000_000_000
        kinds = ["prompt_submit", "tool_start", "tool_call", "stop"]
        own.spool(*(spooled(number, ts=now + number, mono=number, event_type="tool_call") for number in range(4)))
        own.start()
        wait_until(lambda: all_taken(own))
        for number, kind in enumerate(kinds, 4):
            own.spool(spooled(number, ts=now - hour + number, mono=number, event_type=kind))
            wait_until(lambda: all_taken(own))
            assert own.plates()["s"]["last_event_type"] == kind
        found = events_of(own, "s")
        assert [event["event_type"] for event in found] == ["tool_call"] * 4 + kinds
        assert [event["status"] for event in found[4:]] == ["running", "running", "running", "idle"]

    def test_what_comes_late_is_still_late(self, own):
        own.spool(
            spooled(9, ts=5000, mono=9, event_type="stop"), spooled(8, ts=4000, mono=8, event_type="prompt_submit")
        )
        own.start()
        wait_until(lambda: all_taken(own))
        assert own.plates()["s"]["status"] == "idle"


class TestALongSpool:
    """`make figures` reads 100,000 events; here there are many files."""

    def test_of_several_files_arrives_once_and_in_order_though_the_daemon_is_killed(self, own):
        each, sessions = (1000 if IS_LONG else 500), 8
        total = 4 * each
        for number in range(0, total, each):
            own.spool(*(spooled(one, session=f"s{one % sessions}") for one in range(number, number + each)))
            if number < total - each:
                (own.state / "events").rename(own.state / f"events.{number + 1}")
        own.start()
        wait_until(own.plates)  # it has taken some
        own.stop(signal.SIGKILL)
        own.start()
        wait_until(lambda: all_taken(own))
        assert own.ask("GET", "/status").json()["events"] == {"tool_call": total}
        for session in range(sessions):
            assert [event["ts"] for event in events_of(own, f"s{session}")] == list(range(session, total, sessions))
        # If a process reads the database at that moment, as this test does, the daemon tries again a second later.
        wait_until(lambda: sorted(path.name for path in own.state.glob("events*")) == ["events", "events-id"])
