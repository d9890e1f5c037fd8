"""The daemon's side of the spool: every event once, whatever is torn, full, emptied or removed meanwhile."""

import json
import os

import pytest
from sqlalchemy.exc import IntegrityError, OperationalError

from tailhook.plates.db import Database
from tailhook.plates.inbox import Inbox
from tailhook.stores import spool


@pytest.fixture
def inbox(tmp_path, monkeypatch):
    """An inbox over the spool that `append` writes to."""
    monkeypatch.setitem(os.environ, "XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("posix.environ", {**spool.posix.environ, b"XDG_STATE_HOME": str(tmp_path).encode()})
    (tmp_path / "tailhook").mkdir(mode=0o700)
    database = Database(f"sqlite:///{tmp_path}/plates.db")
    yield Inbox(tmp_path / "tailhook", database)
    database.close()


def event(number, **fields):
    """The line of an event as a hook writes it."""
    common = {
        "event_id": f"e{number}",
        "event_type": "tool_call",
        "ts": number,
        "session_id": "s",
        "project_path": "/p",
    }
    return json.dumps({**common, **fields}, separators=(",", ":")).encode() + b"\n"


def known(inbox):
    """The ids of the events that were taken, in their order."""
    with inbox.database.engine.connect() as tx:
        return [row[0] for row in tx.exec_driver_sql("SELECT event_id FROM events ORDER BY id")]


def test_what_hooks_append_is_taken_once_and_in_order(inbox):
    for number in range(3):
        spool.append(event(number))
    assert inbox.waiting() == 3 * len(event(0))
    assert inbox.take() == 3
    assert (inbox.take(), inbox.waiting()) == (0, 0)
    spool.append(event(3))
    assert inbox.take() == 1
    assert known(inbox) == ["e0", "e1", "e2", "e3"]


def test_nothing_is_there_before_the_first_hook(inbox):
    assert (inbox.take(), inbox.waiting()) == (0, 0)


def test_another_daemon_goes_on_where_the_first_one_was(inbox):
    spool.append(event(0))
    inbox.take()
    spool.append(event(1))
    assert Inbox(inbox.folder, inbox.database).take() == 1


def test_the_same_event_twice_in_the_spool_comes_once(inbox):
    spool.append(event(0) + event(0))
    assert inbox.take() == 1


def test_a_line_that_is_not_whole_yet_waits(inbox):
    line = event(0)
    spool.append(line[:20])
    assert inbox.take() == 0
    spool.append(line[20:])
    assert inbox.take() == 1


def test_a_line_that_was_cut_off_costs_itself_alone(inbox):
    spool.append(event(0)[:30])  # the disk was full
    spool.append(event(1))
    spool.append(event(2))
    assert inbox.take() == 2
    assert known(inbox) == ["e1", "e2"]


@pytest.mark.parametrize(
    "line", [b"{}", b"[]", b"null", b"\xff\xfe", b"{", b'{"event_id":"x"}', b"[" * 100_000, b"1" * 5000]
)
def test_what_is_no_event_is_counted_and_passed_over(inbox, line):
    spool.append(line + b"\n")
    spool.append(event(1))
    assert inbox.take() == 1
    assert (inbox.lost, inbox.waiting()) == (1, 0)


def test_text_that_no_database_keeps_is_made_fit(inbox):
    spool.append(event(1, tool_name="a\0b", git_branch="\ud800", project_path="/\udcff"))
    assert inbox.take() == 1
    plate = inbox.database.get("s")
    assert (plate["git_branch"], plate["project_path"]) == ("\ufffd", "/\ufffd")


def test_files_that_were_full_are_taken_first_and_removed(inbox):
    spool.append(event(1))
    path = inbox.folder / spool.NAME
    path.rename(f"{path}.5")
    spool.append(event(2))
    path.rename(f"{path}.17")
    spool.append(event(3))
    assert inbox.take() == 3
    assert known(inbox) == ["e1", "e2", "e3"]
    assert [found.name for found in inbox.files() if found.exists()] == [spool.NAME]


def test_a_file_that_got_another_name_goes_on_where_it_was(inbox):
    spool.append(event(1))
    inbox.take()
    spool.append(event(2))
    path = inbox.folder / spool.NAME
    path.rename(f"{path}.5")
    assert inbox.take() == 1


def test_an_event_written_into_a_removed_file_is_written_again(inbox, monkeypatch):
    write_all = spool.write_all

    def removed_meanwhile(fd, line):
        if (inbox.folder / spool.NAME).exists():
            (inbox.folder / spool.NAME).rename(inbox.folder / f"{spool.NAME}.5")
            monkeypatch.setattr(spool, "write_all", write_all)
            inbox.take()
        write_all(fd, line)

    monkeypatch.setattr(spool, "write_all", removed_meanwhile)
    spool.append(event(1))
    assert inbox.take() == 1
    assert known(inbox) == ["e1"]


def test_a_file_that_was_emptied_is_read_from_its_start(inbox):
    spool.append(event(1) + event(2))
    inbox.take()
    os.truncate(inbox.folder / spool.NAME, 0)
    spool.append(event(3))
    assert inbox.take() == 1


def test_a_link_in_place_of_the_spool_is_not_followed(inbox, tmp_path):
    (tmp_path / "elsewhere").write_bytes(event(1))
    (inbox.folder / spool.NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        inbox.take()


def test_a_failing_database_leaves_the_event_in_the_spool(inbox, monkeypatch):
    spool.append(event(1))
    record = inbox.database.record
    monkeypatch.setattr(inbox.database, "record", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(OSError, match="No space"):
        inbox.take()
    monkeypatch.setattr(inbox.database, "record", record)
    assert inbox.take() == 1


def refusing(inbox, monkeypatch, refuse):
    """Let `refuse` raise what the database says to each report first."""
    record = inbox.database.record

    def refused(report, place):
        refuse(report)
        return record(report, place)

    monkeypatch.setattr(inbox.database, "record", refused)


def test_a_line_that_the_database_never_takes_blocks_none_behind_it(inbox, monkeypatch, caplog):
    def refuse(report):
        if report.event_id == "e1":
            raise IntegrityError("INSERT", {}, Exception("violates a constraint"))

    refusing(inbox, monkeypatch, refuse)
    spool.append(event(0) + event(1) + event(2))
    for _ in range(2):
        with pytest.raises(IntegrityError):
            inbox.take()
    assert inbox.take() == 1
    assert (known(inbox), inbox.lost, inbox.waiting()) == (["e0", "e2"], 1, 0)
    assert "violates a constraint" in caplog.text


def test_a_database_that_is_away_or_full_loses_none(inbox, monkeypatch):
    away = [OperationalError("INSERT", {}, Exception("database or disk is full"))] * 9

    def refuse(_):
        if away:
            raise away.pop()

    refusing(inbox, monkeypatch, refuse)
    spool.append(event(0))
    for _ in range(9):
        with pytest.raises(OperationalError):
            inbox.take()
    assert (inbox.take(), inbox.lost) == (1, 0)


def test_one_that_is_told_to_stop_stops_between_two_lines(inbox, monkeypatch):
    spool.append(event(0) + event(1) + event(2))
    (inbox.folder / spool.NAME).rename(inbox.folder / f"{spool.NAME}.5")

    def stop(report):
        inbox.stopping = report.event_id == "e1"

    refusing(inbox, monkeypatch, stop)
    assert inbox.take() == 2
    inbox.stopping = False
    assert inbox.take() == 1
    assert known(inbox) == ["e0", "e1", "e2"]


def test_a_file_that_was_removed_gives_its_offset_to_no_other(inbox):
    spool.append(event(0) + event(1))
    inbox.take()
    path = inbox.folder / spool.NAME
    with path.open("r+b") as same_inode:  # as a new file may have it
        same_inode.truncate()
        same_inode.write(event(2) + event(3) + event(4))
    assert inbox.waiting() == 3 * len(event(2))
    assert inbox.take() == 3
    assert known(inbox) == [f"e{number}" for number in range(5)]


def test_the_end_of_a_run_closes_its_session(inbox):
    spool.append(event(1, run_id="r"))
    spool.append(b'{"event_id":"x","event_type":"run_ended","run_id":"r"}\n')
    inbox.take()
    assert inbox.database.get("s")["status"] == "closed"
    assert (inbox.waiting(), inbox.lost) == (0, 0)


def test_the_end_of_a_run_counts_from_when_it_happened(inbox):
    spool.append(event(1, run_id="r"))
    spool.append(b'{"event_id":"x","event_type":"run_ended","run_id":"r","ts":5}\n')
    spool.append(event(7, event_type="session_start"))  # resumed, without the wrapper
    inbox.take()
    assert inbox.database.get("s")["status"] == "running"


def test_two_spools_in_one_database_do_not_take_each_others_offset(inbox, tmp_path):
    spool.append(event(1) + event(2))
    (tmp_path / "another").mkdir()
    os.link(inbox.folder / spool.NAME, tmp_path / "another" / spool.NAME)  # the same inode, as two machines may have
    another = Inbox(tmp_path / "another", inbox.database)
    inbox.take()
    assert another.waiting() == 2 * len(event(1))
    assert (another.take(), another.waiting()) == (0, 0)


def test_a_file_that_was_full_is_read_once(inbox, monkeypatch):
    spool.append(event(1) + event(2))
    (inbox.folder / spool.NAME).rename(inbox.folder / f"{spool.NAME}.5")
    reports = []
    record = inbox.database.record
    monkeypatch.setattr(inbox.database, "record", lambda report, place: reports.append(report) or record(report, place))
    inbox.take()
    assert len(reports) == 2


def test_a_long_spool_arrives_once_and_in_order(inbox, report):
    count, sessions = 5_000, 50
    with (inbox.folder / spool.NAME).open("wb") as out:
        for number in range(count):
            out.write(event(number, session_id=f"s{number % sessions}"))
    assert inbox.take() == count
    assert known(inbox) == [f"e{number}" for number in range(count)]
    report(f"plates: {count:,} events in the spool, each taken once and in order")
