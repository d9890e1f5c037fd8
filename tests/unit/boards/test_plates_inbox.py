"""The daemon's side of the spool: every event is stored once, even if files are torn, full, emptied or removed."""

import getpass
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError, IntegrityError, InternalError, OperationalError, ProgrammingError
from support.databases import database_in
from support.host import Started
from support.long_runs import IS_LONG

from tailhook.plates.db import Database
from tailhook.plates.inbox import MAX_BATCH_LINES, Inbox
from tailhook.plates.rows import insert_report
from tailhook.stores import spool
from tailhook.stores.processes import pid_namespace


@pytest.fixture
def inbox(tmp_path, monkeypatch):
    """Yield an inbox of the spool that `append_record` writes to. No transaction ends because its time is over."""
    monkeypatch.setitem(os.environ, "XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("posix.environ", {**spool.posix.environ, b"XDG_STATE_HOME": str(tmp_path).encode()})
    (tmp_path / "tailhook").mkdir(mode=0o700)
    database = Database(database_in(tmp_path))
    database.record_lines = partial(database.record_lines, clock=lambda: 0.0)
    yield Inbox(tmp_path / "tailhook", database)
    database.close()


def event(number, **fields):
    """Return an event's line as a hook writes it."""
    common = {
        "event_id": f"e{number}",
        "event_type": "tool_call",
        "ts": number,
        "session_id": "s",
        "project_path": "/p",
    }
    return json.dumps({**common, **fields}, separators=(",", ":")).encode() + b"\n"


def known(inbox):
    """Return the ids of the stored events, in their order."""
    with inbox.database.engine.connect() as tx:
        return [row[0] for row in tx.exec_driver_sql("SELECT event_id FROM events ORDER BY id")]


def test_what_hooks_append_is_taken_once_and_in_order(inbox):
    for number in range(3):
        spool.append_record(event(number))
    assert inbox.count_waiting_bytes() == 3 * len(event(0))
    assert inbox.ingest() == 3
    assert (inbox.ingest(), inbox.count_waiting_bytes()) == (0, 0)
    spool.append_record(event(3))
    assert inbox.ingest() == 1
    assert known(inbox) == ["e0", "e1", "e2", "e3"]


def test_the_spool_is_drained_when_no_whole_line_waits(inbox):
    assert inbox.is_drained()
    spool.append_record(event(0))
    assert not inbox.is_drained()
    inbox.ingest()
    assert inbox.is_drained()
    spool.append_record(event(1)[:20])  # cut off by a full disk: nothing to wait for
    assert inbox.is_drained()
    spool.append_record(event(2))
    (inbox.folder / spool.SPOOL_FILE).rename(inbox.folder / f"{spool.SPOOL_FILE}.5")
    assert not inbox.is_drained()


def test_nothing_is_there_before_the_first_hook(inbox):
    assert (inbox.ingest(), inbox.count_waiting_bytes()) == (0, 0)


def test_another_daemon_goes_on_where_the_first_one_was(inbox):
    spool.append_record(event(0))
    inbox.ingest()
    spool.append_record(event(1))
    assert Inbox(inbox.folder, inbox.database).ingest() == 1


def test_the_same_event_twice_in_the_spool_comes_once(inbox):
    spool.append_record(event(0) + event(0))
    assert inbox.ingest() == 1


def test_a_line_that_is_not_whole_yet_waits(inbox):
    line = event(0)
    spool.append_record(line[:20])
    assert inbox.ingest() == 0
    spool.append_record(line[20:])
    assert inbox.ingest() == 1


def test_a_line_that_was_cut_off_costs_itself_alone(inbox):
    spool.append_record(event(0)[:30])  # the disk was full
    spool.append_record(event(1))
    spool.append_record(event(2))
    assert inbox.ingest() == 2
    assert known(inbox) == ["e1", "e2"]


NO_EVENTS = [b"{}", b"[]", b"null", b"\xff\xfe", b"{", b'{"event_id":"x"}', b"[" * 100_000, b"1" * 5000]


@pytest.mark.parametrize(
    "line",
    [*NO_EVENTS, event(2, tool_params={"a": 0})[:-4] + b"[" * 450 + b"]" * 450 + b"}}"],
    ids=lambda line: line[:9],
)
def test_what_is_not_an_event_is_counted_and_passed_over(inbox, line):
    spool.append_record(line + b"\n")
    spool.append_record(event(1))
    assert inbox.ingest() == 1
    assert (inbox.lost, inbox.count_waiting_bytes()) == (1, 0)


def test_an_event_is_read_whatever_the_order_of_its_members(inbox):
    fields = json.loads(event(1))
    spool.append_record(json.dumps(dict(reversed(fields.items()))).encode() + b"\n")
    assert (inbox.ingest(), known(inbox)) == (1, ["e1"])


def test_an_event_in_an_event_is_not_the_event(inbox):
    inner = json.loads(event(2))
    spool.append_record(event(1, tool_params=inner))
    assert (inbox.ingest(), known(inbox)) == (1, ["e1"])


@pytest.mark.parametrize("letter", [b"x", b"5", b"{", b","])
def test_behind_a_letter_too_much_only_an_event_as_hooks_write_it_is_found(inbox, letter):
    fields = json.loads(event(1))
    spool.append_record(letter + json.dumps(dict(reversed(fields.items()))).encode() + b"\n")
    spool.append_record(letter + event(2))
    assert (inbox.ingest(), known(inbox), inbox.lost) == (1, ["e2"], 1)


def test_a_line_that_the_database_can_never_store_is_counted_once(inbox, monkeypatch):
    def refuse(report):
        raise ValueError("not a value of a database")

    refusing(monkeypatch, refuse)
    spool.append_record(event(0))
    assert (inbox.ingest(), inbox.lost) == (0, 1)


def test_lines_that_fail_in_turn_are_each_tried_three_times(inbox, monkeypatch):
    """A failure counts only for its own line."""
    refused = []

    def refuse(report):
        refused.append(report.event_id)
        raise IntegrityError("INSERT", {}, Exception("violates a constraint"))

    refusing(monkeypatch, refuse)
    spool.append_record(event(0) + event(1))
    for _ in range(2 + 2):
        with pytest.raises(IntegrityError):
            inbox.ingest()
    assert (inbox.ingest(), inbox.lost) == (0, 2)
    assert refused == ["e0"] + ["e0"] * 3 + ["e1"] * 3  # the first time together with others


def test_lines_that_fail_together_count_once_when_they_are_stored_alone(inbox, monkeypatch):
    broken = [IntegrityError("INSERT", {}, Exception("violates a constraint"))]

    def refuse(_):
        if broken:
            raise broken.pop()

    refusing(monkeypatch, refuse)
    spool.append_record(event(0) + event(1))
    assert (inbox.ingest(), inbox.lost) == (2, 0)


def test_text_that_no_database_keeps_is_made_fit(inbox):
    spool.append_record(event(1, tool_name="a\0b", git_branch="\ud800", project_path="/\udcff"))
    assert inbox.ingest() == 1
    plate = inbox.database.get("s")
    assert (plate["git_branch"], plate["project_path"]) == ("\ufffd", "/\ufffd")


def test_files_that_were_full_are_taken_first_and_removed(inbox):
    spool.append_record(event(1))
    path = inbox.folder / spool.SPOOL_FILE
    path.rename(f"{path}.5")
    spool.append_record(event(2))
    path.rename(f"{path}.17")
    spool.append_record(event(3))
    assert inbox.ingest() == 3
    assert known(inbox) == ["e1", "e2", "e3"]
    assert [found.name for found in inbox.files() if found.exists()] == [spool.SPOOL_FILE]


def test_a_file_is_removed_once_its_events_are_on_the_disk(inbox, tmp_path, monkeypatch):
    """Events that are only in the database's log are not on the disk yet."""
    spool.append_record(event(1))
    (inbox.folder / spool.SPOOL_FILE).rename(inbox.folder / f"{spool.SPOOL_FILE}.5")
    unlink = Path.unlink

    def copy_first(path):
        shutil.copy(tmp_path / "plates.db", tmp_path / "after.db")  # a power cut that loses the log
        unlink(path)

    monkeypatch.setattr(Path, "unlink", copy_first)
    inbox.ingest()
    after = Database(f"sqlite:///{tmp_path}/after.db")
    assert [found["event_id"] for found in after.events_of("s", 10)] == ["e1"]
    after.close()


def test_a_file_stays_while_its_events_cannot_be_brought_to_the_disk(inbox, tmp_path):
    spool.append_record(event(1))
    inbox.ingest()
    spool.append_record(event(2))
    aside = inbox.folder / f"{spool.SPOOL_FILE}.5"
    (inbox.folder / spool.SPOOL_FILE).rename(aside)
    reader = sqlite3.connect(tmp_path / "plates.db", isolation_level=None)
    with closing(reader):
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM events").fetchall()  # what it sees has to stay
        assert (inbox.ingest(), aside.exists()) == (1, True)
    assert (inbox.ingest(), aside.exists()) == (0, False)


def test_a_log_that_another_process_is_moving_is_not_on_the_disk(inbox, tmp_path):
    spool.append_record(event(1))
    inbox.ingest()
    with locked_for_checkpoint(tmp_path / "plates.db"):
        assert not inbox.database.checkpoint()
    assert inbox.database.checkpoint()


@contextmanager
def locked_for_checkpoint(database):
    """Hold SQLite's checkpoint lock in another process, as if it moved the log into the file."""
    code = (
        "import fcntl, struct, sys\n"
        "shm = open(sys.argv[1], 'r+b')\n"
        "fcntl.lockf(shm, fcntl.LOCK_EX, 1, 121)\n"  # WAL_CKPT_LOCK (www.sqlite.org/walformat.html, 2.3.2)
        "print('locked', flush=True)\n"
        "sys.stdin.read()"
    )
    argv = [sys.executable, "-c", code, f"{database}-shm"]
    with Started(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield
        process.stdin.close()


def test_a_file_that_got_another_name_goes_on_where_it_was(inbox):
    spool.append_record(event(1))
    inbox.ingest()
    spool.append_record(event(2))
    path = inbox.folder / spool.SPOOL_FILE
    path.rename(f"{path}.5")
    assert inbox.ingest() == 1


def test_an_event_written_into_a_removed_file_is_written_again(inbox, monkeypatch):
    write_all = spool.write_all

    def removed_meanwhile(fd, line):
        if (inbox.folder / spool.SPOOL_FILE).exists():
            (inbox.folder / spool.SPOOL_FILE).rename(inbox.folder / f"{spool.SPOOL_FILE}.5")
            monkeypatch.setattr(spool, "write_all", write_all)
            inbox.ingest()
        write_all(fd, line)

    monkeypatch.setattr(spool, "write_all", removed_meanwhile)
    spool.append_record(event(1))
    assert inbox.ingest() == 1
    assert known(inbox) == ["e1"]


def test_an_event_written_into_a_full_file_is_written_again(inbox, monkeypatch):
    """The daemon may have read that file to its end, and then it removes the file."""
    write_all = spool.write_all

    def set_aside_meanwhile(fd, line):
        monkeypatch.setattr(spool, "write_all", write_all)
        (inbox.folder / spool.SPOOL_FILE).rename(inbox.folder / f"{spool.SPOOL_FILE}.5")
        write_all(fd, line)

    monkeypatch.setattr(spool, "write_all", set_aside_meanwhile)
    spool.append_record(event(1))
    assert (inbox.folder / spool.SPOOL_FILE).read_bytes() == event(1)
    assert (inbox.ingest(), known(inbox)) == (1, ["e1"])


@pytest.mark.parametrize("at", [(Path, "unlink"), (Database, "forget_file")])
def test_one_that_is_killed_while_it_removes_a_file_brings_no_dismissed_session_back(inbox, monkeypatch, at):
    spool.append_record(event(1))
    inbox.ingest()
    (inbox.folder / spool.SPOOL_FILE).rename(inbox.folder / f"{spool.SPOOL_FILE}.5")
    inbox.database.delete("s")
    with monkeypatch.context() as patched:
        patched.setattr(*at, killed)
        with pytest.raises(KeyboardInterrupt):
            inbox.ingest()
    assert (inbox.ingest(), inbox.database.all()) == (0, [])


def killed(*_):
    """Raise KeyboardInterrupt in place of a kill of the daemon."""
    raise KeyboardInterrupt


def test_a_name_that_is_not_a_spools_is_left_alone(inbox):
    (inbox.folder / f"{spool.SPOOL_FILE}.\u00b2").write_bytes(event(1))
    assert inbox.ingest() == 0


def test_a_file_that_was_emptied_is_read_from_its_start(inbox):
    spool.append_record(event(1) + event(2))
    inbox.ingest()
    os.truncate(inbox.folder / spool.SPOOL_FILE, 0)
    spool.append_record(event(3))
    assert inbox.ingest() == 1


def test_a_file_that_was_emptied_and_begins_as_before_is_read_from_its_start_too(inbox):
    spool.append_record(event(1) + event(2))
    inbox.ingest()
    (inbox.folder / spool.SPOOL_FILE).write_bytes(event(1))
    assert (inbox.ingest(), inbox.lost) == (0, 0)


def test_a_link_in_place_of_the_spool_is_not_followed(inbox, tmp_path):
    (tmp_path / "elsewhere").write_bytes(event(1))
    (inbox.folder / spool.SPOOL_FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        inbox.ingest()


def test_a_failing_database_leaves_the_event_in_the_spool(inbox, monkeypatch):
    spool.append_record(event(1))
    with monkeypatch.context() as patched:
        refusing(patched, lambda _: (_ for _ in ()).throw(OSError(28, "No space left")))
        with pytest.raises(OSError, match="No space"):
            inbox.ingest()
    assert inbox.ingest() == 1


def refusing(monkeypatch, refuse):
    """Call `refuse` with each report before it is stored; it may raise an error of the database."""

    def refused(tx, report, owner, read):
        refuse(report)
        return insert_report(tx, report, owner, read)

    monkeypatch.setattr("tailhook.plates.db.insert_report", refused)


@pytest.mark.parametrize("error", [DatabaseError, InternalError, OperationalError, ProgrammingError])
def test_a_database_that_is_away_full_or_broken_loses_none(inbox, monkeypatch, error):
    broken = [error("INSERT", {}, Exception("database or disk is full"))] * 9

    def refuse(_):
        if broken:
            raise broken.pop()

    refusing(monkeypatch, refuse)
    spool.append_record(event(0))
    for _ in range(9):
        with pytest.raises(error):
            inbox.ingest()
        assert ("database or disk is full" in inbox.failure, inbox.backlog) == (True, 1)
    assert (inbox.ingest(), inbox.lost, inbox.failure, inbox.backlog) == (1, 0, "", 0)


def test_a_database_that_cannot_be_read_either_does_not_hide_how_many_events_wait(inbox, monkeypatch):
    spool.append_record(event(0) + event(1))
    inbox.ingest()
    read, is_away = inbox.database.offset, True

    def offset(file):
        if is_away:
            raise OperationalError("SELECT", {}, Exception("connection refused"))
        return read(file)

    monkeypatch.setattr(inbox.database, "offset", offset)
    spool.append_record(event(2) + event(3) + event(4))
    with pytest.raises(OperationalError):
        inbox.ingest()
    assert ("connection refused" in inbox.failure, inbox.backlog) == (True, 3)
    inbox.folder.joinpath("events").rename(inbox.folder / "events.1")
    spool.append_record(event(5))
    with pytest.raises(OperationalError):
        inbox.ingest()
    assert inbox.backlog == 4
    is_away = False
    assert (inbox.ingest(), inbox.failure, inbox.backlog) == (4, "", 0)


def test_a_line_that_the_database_never_takes_blocks_none_behind_it(inbox, monkeypatch, caplog):
    def refuse(report):
        if report.event_id == "e1":
            raise IntegrityError("INSERT", {}, Exception("violates a constraint"))

    refusing(monkeypatch, refuse)
    spool.append_record(event(0) + event(1) + event(2))
    for _ in range(2):
        with pytest.raises(IntegrityError):
            inbox.ingest()
    assert inbox.ingest() == 1
    assert (known(inbox), inbox.lost, inbox.count_waiting_bytes()) == (["e0", "e2"], 1, 0)
    assert "violates a constraint" in caplog.text


def test_one_that_gets_a_signal_stops_between_two_lines(inbox, monkeypatch):
    spool.append_record(event(0) + event(1) + event(2))
    (inbox.folder / spool.SPOOL_FILE).rename(inbox.folder / f"{spool.SPOOL_FILE}.5")

    def stop(report):
        inbox.stopping = report.event_id == "e1"

    refusing(monkeypatch, stop)
    assert inbox.ingest() == 2
    inbox.stopping = False
    assert inbox.ingest() == 1
    assert known(inbox) == ["e0", "e1", "e2"]


def count_transactions(database):
    """Return a list that gets an item with each committed transaction."""
    found = []
    sa.event.listen(database.engine, "commit", found.append)
    return found


def test_a_backlog_is_taken_in_transactions_of_many_events(inbox):
    numbers = range(2 * MAX_BATCH_LINES + 5)
    spool.append_record(b"".join(event(number, session_id=f"s{number % 7}") for number in numbers))
    transactions = count_transactions(inbox.database)
    assert inbox.ingest() == len(numbers)
    assert len(transactions) == 3
    assert known(inbox) == [f"e{number}" for number in numbers]
    assert inbox.database.event_counts() == {"tool_call": len(numbers)}


def test_a_transaction_of_a_backlog_ends_after_a_twentieth_of_a_second(inbox):
    spool.append_record(b"".join(map(event, range(40))))
    clock = count()
    inbox.database.record_lines = partial(inbox.database.record_lines, clock=lambda: next(clock) / 100)
    transactions = count_transactions(inbox.database)
    assert inbox.ingest() == 40
    assert len(transactions) == 7  # six events each, and the last four
    assert known(inbox) == [f"e{number}" for number in range(40)]


def test_each_changed_session_of_a_transaction_is_published_once(inbox):
    published = []
    inbox.database.changed = lambda plate: published.append((plate["session_id"], plate["version"]))
    spool.append_record(b"".join(event(number, session_id=f"s{number % 2}") for number in range(10)))
    inbox.ingest()
    assert published == [("s0", 1), ("s1", 1)]


def test_the_number_of_waiting_events_is_published_while_a_backlog_is_taken(inbox):
    published = []
    inbox.notify_backlog = published.append
    spool.append_record(b"".join(map(event, range(3 * MAX_BATCH_LINES))))
    (inbox.folder / spool.SPOOL_FILE).rename(inbox.folder / f"{spool.SPOOL_FILE}.5")
    spool.append_record(b"".join(map(event, range(1000, 1000 + MAX_BATCH_LINES))))
    assert inbox.ingest() == 4 * MAX_BATCH_LINES
    assert published == [3 * MAX_BATCH_LINES, 2 * MAX_BATCH_LINES, MAX_BATCH_LINES, 0]
    spool.append_record(event(5000) + event(5001))
    inbox.ingest()
    assert published[4:] == []


def test_events_that_come_while_a_backlog_is_taken_are_in_the_published_number(inbox):
    published = []

    def notify(lines):
        published.append(lines)
        if len(published) == 1:
            spool.append_record(b"".join(map(event, range(1000, 1005))))

    inbox.notify_backlog = notify
    spool.append_record(b"".join(map(event, range(3 * MAX_BATCH_LINES))))
    assert inbox.ingest() == 3 * MAX_BATCH_LINES + 5
    assert published == [2 * MAX_BATCH_LINES, MAX_BATCH_LINES, 5, 0]


def test_a_refused_line_in_a_backlog_takes_no_other_with_it(inbox, monkeypatch):
    def refuse(report):
        if report.event_id == "e50":
            raise IntegrityError("INSERT", {}, Exception("violates a constraint"))

    refusing(monkeypatch, refuse)
    spool.append_record(b"".join(map(event, range(100))) + b"{}\n")
    for _ in range(2):
        with pytest.raises(IntegrityError):
            inbox.ingest()
    assert inbox.ingest() == 49
    assert known(inbox) == [f"e{number}" for number in range(100) if number != 50]
    assert (inbox.lost, inbox.count_waiting_bytes()) == (2, 0)


def test_a_daemon_that_is_killed_in_a_transaction_of_many_events_loses_and_doubles_none(inbox, monkeypatch):
    def die(report):
        if report.event_id == "e5":
            killed()

    spool.append_record(b"".join(map(event, range(10))))
    with monkeypatch.context() as patched:
        refusing(patched, die)
        with pytest.raises(KeyboardInterrupt):
            inbox.ingest()
    assert known(inbox) == []
    assert Inbox(inbox.folder, inbox.database).ingest() == 10
    assert known(inbox) == [f"e{number}" for number in range(10)]


def test_a_file_that_was_removed_gives_its_offset_to_no_other(inbox):
    spool.append_record(event(0) + event(1))
    inbox.ingest()
    path = inbox.folder / spool.SPOOL_FILE
    with path.open("r+b") as same_inode:  # as a new file may have it
        same_inode.truncate()
        same_inode.write(event(2) + event(3) + event(4))
    assert inbox.count_waiting_bytes() == 3 * len(event(2))
    assert inbox.ingest() == 3
    assert known(inbox) == [f"e{number}" for number in range(5)]


def test_the_end_of_a_run_closes_its_session(inbox):
    spool.append_record(event(1, run_id="r"))
    spool.append_record(b'{"event_id":"x","event_type":"run_ended","run_id":"r"}\n')
    inbox.ingest()
    assert inbox.database.get("s")["status"] == "closed"
    assert (inbox.count_waiting_bytes(), inbox.lost) == (0, 0)


def test_the_end_of_a_run_counts_from_when_it_happened(inbox):
    spool.append_record(event(1, run_id="r"))
    spool.append_record(b'{"event_id":"x","event_type":"run_ended","run_id":"r","ts":5}\n')
    spool.append_record(event(7, event_type="session_start"))  # resumed, without the wrapper
    inbox.ingest()
    assert inbox.database.get("s")["status"] == "running"


# ---- where an event happened --------------------------------------------------

HOST, USER = os.uname().nodename, getpass.getuser()
OWN = pid_namespace()

# An event's fields; the address that sent it, None for the spool and the Unix socket; and the result: the host, the
# user, whether this daemon looks after its plate, and its process.
ORIGINS = [
    ({"pid": 5}, None, (HOST, USER, True, 5)),
    ({"pid": 5, "host": HOST, "user": USER}, None, (HOST, USER, True, 5)),
    ({"pid": 5, "host": "container"}, None, ("container", USER, False, 5)),
    ({"pid": 5, "user": "other"}, None, (HOST, "other", False, 5)),
    ({"pid": 5, "host": HOST, "pid_namespace": OWN}, None, (HOST, USER, True, 5)),
    ({"pid": 5, "host": HOST, "pid_namespace": "pid:[1]"}, None, (HOST, USER, True, None)),
    ({"pid": 5}, "127.0.0.1", (HOST, USER, True, None)),  # a tunnel ends here, too
    ({"pid": 5}, "::1", (HOST, USER, True, None)),
    ({"pid": 5, "host": HOST}, "127.0.0.1", (HOST, USER, True, 5)),
    ({"pid": 5, "host": "far"}, "127.0.0.1", ("far", USER, False, 5)),
    ({"pid": 5}, "192.168.1.5", ("192.168.1.5", None, False, None)),
    ({"pid": 5, "host": HOST, "user": USER}, "192.168.1.5", (HOST, USER, False, 5)),  # anyone can claim that
    ({"pid": 5}, "::ffff:10.0.0.1", ("::ffff:10.0.0.1", None, False, None)),
]


@pytest.mark.parametrize(("said", "peer", "expected"), ORIGINS)
def test_the_origin_of_an_event(inbox, said, peer, expected):
    origin = inbox.origin({"pid_started": 50, **said}, peer)
    taken = {"pid_started": 50, **said, **origin.fields}
    assert (taken["host"], taken["user"], origin.owner == inbox.id, taken["pid"]) == expected
    assert (taken["pid_started"] is None) == (taken["pid"] is None)


def test_a_session_that_moves_to_a_container_is_left_alone(inbox):
    spool.append_record(event(1, event_type="tool_start", tool_name="ExitPlanMode"))
    inbox.ingest()
    [plate] = inbox.database.open_plates(inbox.id)
    assert (plate["session_id"], plate["host"]) == ("s", HOST)
    spool.append_record(event(2, host="container"))
    inbox.ingest()
    assert inbox.database.open_plates(inbox.id) == []


def test_a_machine_that_gets_another_name_keeps_its_plates(inbox, monkeypatch):
    spool.append_record(event(1, host=HOST))
    inbox.ingest()
    monkeypatch.setattr("tailhook.plates.paths.local_identity", lambda: {"host": "renamed", "user": USER})
    spool.append_record(event(2, host="renamed", session_id="new"))
    inbox.ingest()
    assert {plate["session_id"] for plate in inbox.database.open_plates(inbox.id)} == {"s", "new"}


def test_two_spools_in_one_database_do_not_take_each_others_offset(inbox, tmp_path):
    spool.append_record(event(1) + event(2))
    (tmp_path / "another").mkdir()
    os.link(
        inbox.folder / spool.SPOOL_FILE, tmp_path / "another" / spool.SPOOL_FILE
    )  # the same inode, as two machines may have
    another = Inbox(tmp_path / "another", inbox.database)
    inbox.ingest()
    assert another.count_waiting_bytes() == 2 * len(event(1))
    assert (another.ingest(), another.count_waiting_bytes()) == (0, 0)


def test_a_file_that_was_full_is_read_once(inbox, monkeypatch):
    spool.append_record(event(1) + event(2))
    (inbox.folder / spool.SPOOL_FILE).rename(inbox.folder / f"{spool.SPOOL_FILE}.5")
    reports = []
    refusing(monkeypatch, reports.append)
    inbox.ingest()
    assert len(reports) == 2


def test_a_long_spool_arrives_once_and_in_order(inbox, report):
    count, sessions = (5_000 if IS_LONG else 1_500), 50
    with (inbox.folder / spool.SPOOL_FILE).open("wb") as out:
        for number in range(count):
            out.write(event(number, session_id=f"s{number % sessions}"))
    assert inbox.ingest() == count
    assert known(inbox) == [f"e{number}" for number in range(count)]
    report(f"plates: {count:,} events in the spool, each taken once and in order")
