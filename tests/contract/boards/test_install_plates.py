"""Installing the plates machine, and the doctor's report about its daemon."""

import json
import os
import re
import signal
import sqlite3

import pytest
from support.daemon import daemon_in, refused, spooled, wait_until
from support.host import Project, tailhook

from tailhook.install.hooks_file import hooks_file_of

EVERY_EVENT = {
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "PermissionDenied",
    "Elicitation",
    "ElicitationResult",
    "PostCompact",
    "SubagentStart",
    "SubagentStop",
    "Notification",
    "Stop",
    "StopFailure",
    "SessionEnd",
}


@pytest.fixture
def tmp_path(short_path):
    """Return the folder of the user's home; the sockets are in it."""
    return short_path


@pytest.fixture
def installed(project):
    """Return a project of a user with plates installed beside the other machines."""
    project.settings = project.home / ".claude" / "settings.json"
    project.settings.parent.mkdir()
    project.before = '{\n  "model": "opus"\n}\n'
    project.settings.write_text(project.before)
    project.env["TAILHOOK_NO_AUTOSTART"] = "1"
    done = project.tailhook("install", "--yes", "--with", "plates")
    assert done.returncode == 0, done.stderr
    return project


def findings(project: Project, check: str) -> list[dict]:
    """Return the doctor's findings of one check, without a limit of the board's delay."""
    slow = {"tailhook.doctor.daemon.SLOW_LAG_MS": 1e15}  # the events of these tests are as old as 1970
    rounds = {"tailhook.doctor.checks.ROUNDS": int(check == "hook")}  # each of thirteen hooks would be timed
    done = tailhook("doctor", "--json", env=project.env, cwd=project.folder, **slow, **rounds)
    return [finding for finding in json.loads(done.stdout)["findings"] if finding["check"] == check]


def test_every_event_is_registered_and_the_settings_come_back_byte_for_byte(installed):
    assert set(json.loads(installed.settings.read_text())["hooks"]) == EVERY_EVENT
    again = installed.tailhook("install", "--yes", "--with", "plates")
    assert "Nothing to change" in again.stdout
    assert installed.tailhook("uninstall", "--yes").returncode == 0
    assert installed.settings.read_text() == installed.before


def test_each_hook_that_was_written_reports_its_event(installed):
    hooks = json.loads(installed.settings.read_text())["hooks"]
    quiet = {"Notification", "PostCompact"}  # of these only some are reported, by a field of the payload
    for event in EVERY_EVENT - quiet:
        ((group,),) = (hooks[event],)
        installed.argv = [group["hooks"][0]["command"], *group["hooks"][0]["args"]]
        stop = installed.hook(json.dumps(installed.payload(hook_event_name=event)).encode(), read=False)
        assert (stop.exit_code, stop.stdout, stop.stderr) == (0, "", "")
    spool = installed.home / ".local" / "state" / "tailhook" / "events"
    assert len(spool.read_text().splitlines()) == len(EVERY_EVENT - quiet)


def test_without_plates_no_other_event_is_left(installed):
    done = installed.tailhook("install", "--yes", "--without", "plates")
    assert done.returncode == 0, done.stderr
    assert set(json.loads(installed.settings.read_text())["hooks"]) == {"Stop", "SessionStart", "UserPromptSubmit"}


def test_what_plates_adds_is_shown_as_a_table_of_events_and_one_entry(project):
    shown = project.tailhook("install", "--yes", "--with", "plates", "--block-cap", "0").stdout
    file = hooks_file_of("claude-code")
    for event in file.events:
        (line,) = [line for line in shown.splitlines() if line.startswith(f"+ {event} ")]
        matcher = file.reported_events.get(event) or ""
        asked = "idle,ralph,triage,plates" if event in file.answered_events else "plates"
        assert line.split()[2:] == [*filter(None, [matcher]), asked]
    assert shown.count('"command"') == 2  # a hook's type, and its program
    assert '"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "0"' in shown
    assert len(shown.splitlines()) < 50
    gone = project.tailhook("uninstall", "--yes").stdout
    assert re.findall(r"^- (\w+)", gone, re.MULTILINE) == file.events
    assert len(gone.splitlines()) < 50


def test_the_doctor_tries_every_hook(installed):
    tried = findings(installed, "hook")
    assert {finding["what"].split(": ")[1] for finding in tried} == EVERY_EVENT
    assert all(finding["status"] == "ok" for finding in tried), tried


def test_the_doctor_names_the_events_that_an_older_version_did_not_register(installed):
    assert findings(installed, "events") == []
    values = json.loads(installed.settings.read_text())
    for event in ("PermissionRequest", "SubagentStop"):
        del values["hooks"][event]
    installed.settings.write_text(json.dumps(values))
    (found,) = findings(installed, "events")
    assert (found["status"], "PermissionRequest, SubagentStop" in found["what"]) == ("warning", True)
    assert installed.tailhook("install", "--yes").returncode == 0
    assert findings(installed, "events") == []
    values = json.loads(installed.settings.read_text())
    for event in set(values["hooks"]) - {"Stop", "SessionStart", "UserPromptSubmit"}:
        del values["hooks"][event]
    installed.settings.write_text(json.dumps(values).replace(",plates", ""))
    assert findings(installed, "events") == []
    del values["hooks"]["UserPromptSubmit"]
    installed.settings.write_text(json.dumps(values).replace(",plates", ""))
    (found,) = findings(installed, "events")
    assert (found["status"], "loops get no UserPromptSubmit" in found["what"]) == ("warning", True)


def test_the_doctor_knows_a_daemon_that_is_away_from_one_that_is_there(installed):
    (away,) = findings(installed, "plates")
    assert (away["status"], "does not run" in away["what"]) == ("note", True)
    with daemon_in(installed.home) as daemon:
        daemon.start().post("stop")
        (there,) = findings(installed, "plates")
    assert there["status"] == "ok"
    assert "answers: 1 session, no event waits, " in there["what"]


def test_the_doctor_counts_what_a_daemon_could_not_take(installed):
    with daemon_in(installed.home) as daemon:
        daemon.start().spool(spooled(1))
        with (daemon.state / "events").open("a") as spool:
            spool.write("no event\n{}\n")
        daemon.spool(spooled(1, "behind"))
        wait_until(lambda: "behind" in daemon.plates())
        there, lost = findings(installed, "plates")
        assert (there["status"], lost["status"]) == ("ok", "warning")
        assert (f"{daemon.state}/events: " in lost["what"], lost["what"].endswith("them: 2")) == (True, True)
        daemon.stop()
        daemon.start()
        assert [finding["status"] for finding in findings(installed, "plates")] == ["ok"]


def test_the_doctor_sees_files_that_are_open_to_others(installed):
    token = installed.home / ".local" / "state" / "tailhook" / "token"
    token.write_text("known")
    token.chmod(0o644)
    found = findings(installed, "plates")
    assert [(finding["status"], str(token) in finding["what"]) for finding in found] == [
        ("note", False),
        ("failure", True),
    ]
    assert installed.tailhook("doctor").returncode == 1


def test_the_doctor_sees_an_interpreter_that_is_gone(installed):
    (installed.home / ".local" / "state" / "tailhook" / "daemon-argv").write_text("/gone/python\0-m\0tailhook")
    (found,) = findings(installed, "plates")
    assert (found["status"], "/gone/python" in found["what"]) == ("failure", True)


def test_the_doctor_sees_events_that_no_daemon_takes(installed):
    spool = installed.home / ".local" / "state" / "tailhook" / "events.17"
    with spool.open("wb") as out:
        out.truncate(40 << 20)
    found = findings(installed, "plates")
    assert any("40 MiB of events wait for the daemon" in finding["what"] for finding in found)


@pytest.fixture
def served(installed):
    """Yield a daemon that has stopped and left its database, in an installed project."""
    with daemon_in(installed.home) as daemon:
        daemon.start().post("stop")
        daemon.stop()
        yield daemon


def bad(project: Project) -> list[tuple[str, str]]:
    """Return the doctor's problems with plates."""
    return [(finding["status"], finding["what"]) for finding in findings(project, "plates")[1:]]


def test_the_doctor_opens_the_database_of_a_daemon_that_is_away(installed, served):
    assert bad(installed) == []
    path = served.state / "plates.db"
    path.chmod(0o644)
    ((status, what),) = bad(installed)
    assert (status, str(path) in what, "other users can use it" in what) == ("failure", True, True)
    path.chmod(0o600)
    path.write_text("no database, but as long as the beginning of one would have to be. " * 9)
    ((status, what),) = bad(installed)
    assert (status, "cannot be opened" in what, "not a database" in what) == ("failure", True, True)


def test_the_doctor_opens_the_database_that_the_hooks_start_the_daemon_with(installed, served):
    kept = {"db": f"postgresql+psycopg://me:secret@127.0.0.1:1/{'x' * 5}", "db_file": None, "retention": 30}
    (served.state / "daemon-settings").write_text(json.dumps(kept))
    ((status, what),) = bad(installed)
    assert (status, "cannot be opened" in what, "secret" in what) == ("failure", True, False)


def test_the_doctor_names_the_file_that_should_hold_the_databases_url(installed, served):
    file = served.home / "db-url"
    kept = {"db": None, "db_file": str(file), "retention": 30}
    (served.state / "daemon-settings").write_text(json.dumps(kept))
    for text in ("", "team.db"):
        file.write_text(text)
        file.chmod(0o600)
        ((status, what),) = bad(installed)
        assert (status, what.partition(". ")[0]) == (
            "failure",
            f"the database cannot be opened: {file} holds no URL",
        )


def test_the_doctor_sees_a_database_of_a_newer_version(installed, served):
    with sqlite3.connect(served.state / "plates.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    ((status, what),) = bad(installed)
    assert (status, "made by a newer tailhook" in what) == ("failure", True)
    advice = findings(installed, "plates")[1]["advice"]
    assert advice == "Upgrade tailhook, or start the daemon with another database:  tailhook plates serve --db URL"


def test_the_doctor_knows_a_daemon_that_hangs(installed, served):
    served.start()
    os.kill(served.process.pid, signal.SIGSTOP)
    (hangs, *_) = findings(installed, "plates")
    os.kill(served.process.pid, signal.SIGCONT)
    assert (hangs["status"], f"kill -9 {served.process.pid}" in hangs["advice"]) == ("failure", True)


def test_the_doctor_finds_a_daemon_whose_sockets_are_elsewhere(installed, served, tmp_path):
    served.start()
    (tmp_path / "run").mkdir()
    served.env["XDG_RUNTIME_DIR"] = installed.env["XDG_RUNTIME_DIR"] = str(tmp_path / "run")
    refused(served, "--no-port")
    assert [finding["status"] for finding in findings(installed, "plates")] == ["ok"]
