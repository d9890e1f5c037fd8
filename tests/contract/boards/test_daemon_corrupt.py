"""A corrupt database is renamed with all its files; any other database is left alone."""

import json
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.exc import DatabaseError
from support.daemon import answers, daemon_pid, listening, refused, request, spooled, wait_until
from support.host import HANGS_S

from tailhook.plates import opening
from tailhook.plates.opening import find_set_aside, is_corrupt, set_aside

GARBAGE = b"This is not a database, and long enough to be taken for one. " * 100


def serve_and_stop(own, *flags):
    """Let a daemon make its database, with one session."""
    own.start(*flags).post("stop", "before")
    own.stop()


def stderr_of(own):
    """End the daemon; return its stderr."""
    own.process.send_signal(signal.SIGTERM)
    said = own.process.communicate(timeout=HANGS_S)[1]
    assert own.process.returncode == 0
    own.process = None
    return said


def files(own, name="plates.db"):
    """Return the files that belong to a database, without the time in their names, with their bytes."""
    found = [path for path in own.state.iterdir() if path.name.startswith(name)]
    return {re.sub(r"\d{8}T\d{6}Z-\d{9}", "TIME", path.name): path.read_bytes() for path in found}


def leave_garbage(own):
    """Make the database's files something else; returns the contents of the file and of its log."""
    for end in ("", "-wal", "-shm"):
        path = own.state / f"plates.db{end}"
        path.touch(mode=0o600)
        path.write_bytes(GARBAGE + end.encode())
    return [GARBAGE, GARBAGE + b"-wal"]


def test_what_is_not_a_database_is_set_aside_and_a_new_one_begins_with_the_spool(own):
    own.spool(spooled(1, "from-the-spool"))
    serve_and_stop(own)
    contents = leave_garbage(own)
    own.start()
    wait_until(lambda: "from-the-spool" in own.plates())
    assert "before" not in own.plates()
    own.post("stop", "after")
    found = files(own)
    assert [found[f"plates.db.corrupt-TIME{end}"] for end in ("", "-wal")] == contents
    assert "plates.db.corrupt-TIME-shm" in found  # only an index of the log; SQLite makes it again at every look
    assert found["plates.db"].startswith(b"SQLite format 3\0")
    said = stderr_of(own)
    (aside,) = (path for path in own.state.glob("plates.db.corrupt-*") if not path.name.endswith(("-wal", "-shm")))
    assert said == (
        f"tailhook: the database cannot be opened: file is not a database. Its file is now {aside};"
        " a new one begins with what is in the spool\n"
    )
    assert aside.stat().st_mode & 0o777 == 0o600
    own.start()
    assert "after" in own.plates()
    assert stderr_of(own) == ""


def damage(path):
    """Overwrite all pages of a database but those that are read at the start, like a failing disk."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        [newest] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'ix_events_received_at'")
    connection.close()
    with path.open("r+b") as file:
        for page in range(3, file.seek(0, os.SEEK_END) // 4096 + 1):
            if page not in newest:
                file.seek(4096 * (page - 1))
                file.write(b"\xff" * 1000)


def test_damage_found_while_serving_is_handled_like_damage_at_the_start(own):
    """The tables' pages are damaged, and those that are read at the start are not."""
    serve_and_stop(own)
    damage(own.state / "plates.db")
    own.start()
    own.spool(spooled(1, "spooled"))
    wait_until(lambda: find_set_aside(f"sqlite:///{own.state}/plates.db"))
    wait_until(lambda: answers(own))
    wait_until(lambda: "spooled" in own.plates())
    said = stderr_of(own)
    assert said.count("the database cannot be used: (sqlite3.DatabaseError) database disk image is malformed") == 1
    assert "Traceback" not in said


def test_a_signed_in_browser_stays_signed_in_meanwhile(own):

    serve_and_stop(own)
    damage(own.state / "plates.db")
    own.start()
    secret = own.secret
    own.spool(spooled(1, "spooled"))
    wait_until(lambda: find_set_aside(f"sqlite:///{own.state}/plates.db"))
    wait_until(lambda: answers(own))
    answer = request("GET", f"{own.base}/plates", headers={"authorization": f"Bearer {secret}"}, timeout=HANGS_S)
    assert answer.status_code == 200


def test_a_daemon_that_a_hook_starts_does_the_same_and_the_doctor_reports_it(own, project):
    serve_and_stop(own)
    leave_garbage(own)
    project.argv = [*project.argv[:-1], "plates"]
    project.env = own.env
    assert project.hook(json.dumps(project.payload()).encode(), read=False).stderr == ""
    wait_until(lambda: answers(own))
    try:
        wait_until(lambda: "mine" in own.plates())
        settings = own.home / ".claude" / "settings.json"
        settings.parent.mkdir()
        settings.write_text(project.tailhook("install", "--print", "--with", "plates").stdout)
        findings = json.loads(project.tailhook("doctor", "--json").stdout)["findings"]
        found = [(one["status"], one["what"]) for one in findings if "was renamed" in one["what"]]
        (aside,) = find_set_aside(f"sqlite:///{own.state}/plates.db")
        what = f"{aside}: a corrupt database that was renamed; the board does not show the sessions in it"
        assert found == [("warning", what)]
    finally:
        os.kill(daemon_pid(own), signal.SIGTERM)
        wait_until(lambda: not answers(own))


def test_the_doctor_reports_what_happens_to_a_corrupt_database(own, project):
    serve_and_stop(own)
    leave_garbage(own)
    project.env = {**own.env, "TAILHOOK_NO_AUTOSTART": "1"}
    settings = own.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(project.tailhook("install", "--print", "--with", "plates").stdout)
    findings = json.loads(project.tailhook("doctor", "--json").stdout)["findings"]
    (found,) = (one for one in findings if "cannot be opened" in one["what"])
    assert "The daemon renames it at its next start" in found["advice"]
    assert files(own)["plates.db"] == GARBAGE


def test_a_log_that_makes_the_database_whole_is_used(own):
    """The file's first page is damaged, and the log beside it has that page."""
    own.start().post("stop", "before")
    path = own.state / "plates.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 1")  # is in the first page, and that is in the log from then on
    own.process.kill()
    own.process.communicate()
    own.process = None
    with path.open("r+b") as file:
        file.write(b"\xff" * 200)
    assert path.with_name("plates.db-wal").stat().st_size
    own.start()
    assert "before" in own.plates()
    assert find_set_aside(f"sqlite:///{path}") == []


# ---- a database that was named ---------------------------------------------------


def test_another_file_that_was_named_by_mistake_is_left_alone(own):
    notes = own.home / "notes.txt"
    notes.write_bytes(GARBAGE)
    for flags in (("--db", f"sqlite:///{notes}"),):
        assert "file is not a database" in refused(own, "--port", "0", *flags)
    assert notes.read_bytes() == GARBAGE
    assert [path.name for path in own.home.iterdir() if "corrupt" in path.name] == []


def test_a_named_database_that_the_daemon_has_served_with_is_set_aside(own):
    path = own.home / "team.db"
    serve_and_stop(own, "--db", f"sqlite:///{path}")
    path.write_bytes(GARBAGE)
    own.start("--db", f"sqlite:///{path}").post("stop", "after")
    (aside,) = find_set_aside(f"sqlite:///{path}")
    assert aside.read_bytes() == GARBAGE


# ---- databases that are not corrupt ----------------------------------------------


def is_untouched(own, before):
    return {name: data for name, data in files(own).items() if not name.endswith(("-wal", "-shm"))} == before


def test_a_locked_database_is_left_alone(own):
    serve_and_stop(own)
    before = {"plates.db": (own.state / "plates.db").read_bytes()}
    with sqlite3.connect(own.state / "plates.db", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        assert "database is locked" in refused(own, "--port", "0")
        other.execute("ROLLBACK")
    other.close()
    assert is_untouched(own, before)
    assert "before" in own.start().plates()


def test_a_database_that_may_not_be_opened_is_left_alone(own):
    """Root may open everything, so a folder is in the way."""
    own.state.mkdir(parents=True, mode=0o700)
    (own.state / "plates.db").mkdir()
    assert "unable to open database file" in refused(own, "--port", "0")
    assert (own.state / "plates.db").is_dir()


def test_a_full_disk_is_left_alone(own):
    """A limit of the size of files stands in for it."""
    serve_and_stop(own)
    before = {"plates.db": (own.state / "plates.db").read_bytes()}
    code = (
        "import resource, runpy, sys\n"
        "from tailhook.plates import tables\n"
        "tables.BUSY_TIMEOUT_S = 0\n"  # it could be another process that writes
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "sys.argv = ['tailhook', 'plates', 'serve', '--port', '0']\n"
        "runpy.run_module('tailhook', run_name='__main__')\n"
    )
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, env=own.env, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert (done.returncode, "the database cannot be opened: " in done.stderr) == (1, True)
    assert is_untouched(own, before)
    assert "before" in own.start().plates()


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux changes the limits of another process")
def test_a_disk_that_is_full_while_it_serves_is_reported_by_the_doctor_and_on_the_boards(own, project):
    own.start().post("stop", "before")
    settings = own.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    project.env = own.env
    settings.write_text(project.tailhook("install", "--print", "--with", "plates").stdout)
    usual = resource.prlimit(own.process.pid, resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    own.spool(spooled(1, "later"))
    failure = wait_until(lambda: own.ask("GET", "/status").json()["store_failure"])
    with listening(own) as sent:
        assert next(data for name, data, _ in sent if name == "catching_up") == {"events": 1}
    found = json.loads(project.tailhook("doctor", "--json").stdout)["findings"]
    what = f"the daemon cannot store what the hooks report: {failure}"
    assert [one["status"] for one in found if one["what"] == what] == ["failure"]
    resource.prlimit(own.process.pid, resource.RLIMIT_FSIZE, usual)
    wait_until(lambda: "later" in own.plates())
    wait_until(lambda: own.ask("GET", "/status").json()["store_failure"] == "")


def test_a_database_of_a_newer_version_is_left_alone(own):
    serve_and_stop(own)
    with sqlite3.connect(own.state / "plates.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    before = {"plates.db": (own.state / "plates.db").read_bytes()}
    assert "made by a newer tailhook" in refused(own, "--port", "0")
    assert is_untouched(own, before)


class Fake(sqlite3.DatabaseError):
    """An error with a result code."""

    def __init__(self, message, code):
        super().__init__(message)
        self.sqlite_errorcode = code


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (Fake("file is not a database", 26), True),
        (Fake("malformed database schema (x)", 11), True),
        (Fake("database disk image is malformed", 11 | 2 << 8), True),  # SQLITE_CORRUPT_SEQUENCE
        (Fake("database is locked", 5), False),
        (Fake("database or disk is full", 13), False),
        (Fake("attempt to write a readonly database", 8), False),
        (Fake("unable to open database file", 14), False),
        (Fake("disk I/O error", 10 | 11 << 8), False),
        (sqlite3.OperationalError("database is locked"), False),
        (ValueError("file is not a database"), False),
    ],
)
def test_what_sqlite_calls_corrupt(origin, expected):
    assert is_corrupt(DatabaseError("SELECT 1", {}, origin)) == expected
    assert is_corrupt(origin) == expected


def test_an_error_of_another_database_never_counts_as_corruption():
    psycopg = pytest.importorskip("psycopg")
    origin = psycopg.errors.DataCorrupted("database disk image is malformed")
    assert not is_corrupt(DatabaseError("SELECT 1", {}, origin))


# ---- renaming ----------------------------------------------------------------------


def test_an_interrupted_renaming_loses_nothing_and_is_completed(tmp_path, monkeypatch):
    path = tmp_path / "plates.db"
    contents = {"": b"main", "-wal": b"log", "-shm": b"index"}
    for end, data in contents.items():
        path.with_name(f"plates.db{end}").write_bytes(data)
    rename, renamed = Path.rename, []

    def killed(self, target):
        if len(renamed) == 2:
            raise KeyboardInterrupt
        renamed.append(self.name)
        return rename(self, target)

    monkeypatch.setattr(opening.Path, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        set_aside(f"sqlite:///{path}")
    assert renamed == ["plates.db-wal", "plates.db-shm"]  # SQLite removes a log beside a database that is new
    assert path.read_bytes() == b"main"
    monkeypatch.undo()
    aside = set_aside(f"sqlite:///{path}")
    assert aside.read_bytes() == b"main"
    assert sorted(one.read_bytes() for one in tmp_path.iterdir()) == sorted(contents.values())


def test_two_databases_that_are_set_aside_keep_their_own_names(tmp_path):
    url = f"sqlite:///{tmp_path}/plates.db"
    for number in range(3):
        (tmp_path / "plates.db").write_text(str(number))
        set_aside(url)
    assert [path.read_text() for path in find_set_aside(url)] == ["0", "1", "2"]
    assert find_set_aside("sqlite:////nowhere/plates.db") == []


def test_a_name_with_the_time_is_of_one_moment(tmp_path, monkeypatch):
    """With two readings of the clock, a later name could sort before an earlier one."""
    url = f"sqlite:///{tmp_path}/plates.db"
    moments = iter([1_700_000_000_999_999_999, 1_700_000_001_000_000_000])
    monkeypatch.setattr(time, "time_ns", lambda: next(moments))
    for number in range(2):
        (tmp_path / "plates.db").write_text(str(number))
        set_aside(url)
    assert [path.read_text() for path in find_set_aside(url)] == ["0", "1"]
