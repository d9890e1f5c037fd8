"""The cost of a daemon while nothing happens, at its start and after a backlog."""

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from support.daemon import daemon_in, spooled, wait_until

from tailhook.machines.plates import HEALTH_CHECK_INTERVAL

MAX_WAKE_UPS = 2  # a second
MAX_MEMORY_KIB = 60_000
MAX_GROWTH_KIB = 3_000
BACKLOG = 5_000  # events
WATCHED_S = HEALTH_CHECK_INTERVAL
WATCHES = 10

pytestmark = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux's /proc")


@pytest.fixture(scope="module")
def resting(tmp_path_factory):
    """Yield a daemon that has made its database, has a port, and has stored an event. The tests share it."""
    with daemon_in(tmp_path_factory.mktemp("resting")) as one:
        one.is_forked = False
        one.start().spool(spooled(1, event_type="stop"))
        wait_until(lambda: "s" in one.plates())
        one.fresh_memory = memory_of(one.process.pid, "Anonymous")
        one.spool(*(spooled(number, f"b{number // 300}", detail="x" * 300) for number in range(BACKLOG)))
        wait_until(lambda: one.ask("GET", "/status").json()["events"].get("tool_call") == BACKLOG)
        yield one


def count_wake_ups(pid):
    """Return how often the threads of a process have waited for something."""
    found = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        words = (thread / "status").read_text().split("\nvoluntary_ctxt_switches:")[1]
        found += int(words.split()[0])
    return found


def memory_of(pid, kind="Pss"):
    """Return the memory of a process in KiB: with its part of what it shares (Pss), or without files (Anonymous)."""
    words = Path(f"/proc/{pid}/smaps_rollup").read_text().split(f"\n{kind}:")[1]
    return int(words.split()[0])


def test_a_daemon_at_rest_wakes_at_most_twice_a_second(resting, record_property):
    # Its threads also wait for the disk and for each other. A busy computer can only add to that, so the least counts.
    rates = []
    while len(rates) < WATCHES and (not rates or min(rates) > MAX_WAKE_UPS):
        before, begun = count_wake_ups(resting.process.pid), time.monotonic()
        wait_until(lambda begun=begun: time.monotonic() > begun + WATCHED_S)
        rates.append((count_wake_ups(resting.process.pid) - before) / (time.monotonic() - begun))
    record_property("figure", f"a daemon at rest: {min(rates):.1f} wake-ups a second")
    assert min(rates) <= MAX_WAKE_UPS


def test_a_daemon_at_rest_takes_sixty_megabytes(resting, record_property):
    found = memory_of(resting.process.pid)
    record_property("figure", f"a daemon at rest: {found // 1000} MB")
    assert found <= MAX_MEMORY_KIB


def test_a_backlog_leaves_little_in_memory(resting, record_property):
    grown = memory_of(resting.process.pid, "Anonymous") - resting.fresh_memory
    record_property("figure", f"a daemon at rest after {BACKLOG} events: {grown / 1000:.1f} MB more")
    assert grown <= MAX_GROWTH_KIB


def test_an_event_without_a_wake_up_is_stored_too(resting):
    """A hook in a container may reach the state folder and not the socket."""
    line = b'{"event_id":"quiet","event_type":"stop","session_id":"quiet","project_path":"/p"}\n'
    fd = os.open(resting.state / "events", os.O_WRONLY | os.O_APPEND)
    os.write(fd, line)
    os.close(fd)
    wait_until(lambda: "quiet" in resting.plates())


OPEN = (
    "import sys; from tailhook.plates.opening import open_database; open_database(sys.argv[1]).close();"
    " print('alembic' in sys.modules)"
)


def test_what_migrates_the_database_does_not_stay_in_memory(tmp_path):
    path = tmp_path / "plates.db"
    opened = subprocess.run(
        [sys.executable, "-c", OPEN, f"sqlite:///{path}"], capture_output=True, text=True, check=True
    )
    assert (opened.stdout, opened.stderr) == ("False\n", "")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM event_counts").fetchone() == (0,)


def test_the_answers_have_the_time(resting):
    first = resting.ask("GET", "/health").headers["date"]
    wait_until(lambda: resting.ask("GET", "/health").headers["date"] != first)


def test_the_board_and_the_health_answer_head(resting):
    for path in ("/", "/health"):
        answer = resting.ask("HEAD", path)
        assert (answer.status_code, answer.content) == (200, b"")
