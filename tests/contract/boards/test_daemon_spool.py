"""The events in the spool reach the daemon, whether it runs or not."""

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

from support.daemon import SERVE, answers, beginning, daemon_pid, listening, spooled, wait_until
from support.host import Started, tailhook


def test_what_came_while_it_was_away_is_there_when_it_is_back(own):
    own.spool(spooled(1), spooled(2, event_type="stop"))
    own.start()
    wait_until(lambda: own.plates().get("s", {}).get("status") == "idle")


def test_a_wait_outlives_a_daemon_that_is_killed(own):
    def spool(number, kind, tool, tool_use_id):
        own.spool(spooled(number, event_type=kind, tool_name=tool, tool_use_id=tool_use_id))

    own.start()
    spool(1, "tool_start", "Read", "a")
    spool(2, "tool_start", "Bash", "b")
    spool(3, "permission_asked", "Read", None)
    wait_until(lambda: own.plates().get("s", {}).get("status") == "awaiting_approval")
    own.stop(signal.SIGKILL)
    spool(4, "tool_call", "Bash", "b")
    own.start()
    wait_until(lambda: len(own.ask("GET", "/plates/s?events=9").json()["events"]) == 4)
    assert own.plates()["s"]["status"] == "awaiting_approval"
    spool(5, "tool_call", "Read", "a")
    wait_until(lambda: own.plates()["s"]["status"] == "running")


def test_an_empty_name_hides_no_session(own):
    own.start().post("stop", "the-only-one")
    done = tailhook("plates", "dismiss", "", env=own.env, cwd=own.home)
    assert done.returncode == 2
    assert done.stderr == "tailhook: the session is an empty name: give a session id, or its first characters\n"
    assert not own.plates()["the-only-one"]["hidden"]


def test_the_list_has_the_boards_order_and_how_long_each_status_has_lasted(own):
    own.start()
    now = time.time_ns() // 1_000_000
    for session, kind, ago in (
        ("late", "permission_asked", 50),
        ("first", "permission_asked", 7200),
        ("busy", "stop", 5),
    ):
        own.post(kind, session, ts=now - ago * 1000, project_path=f"/p/{session}")
    own.post("tool_call", "late", ts=now - 60_000, git_branch="main", project_path="/p/late")  # fills a field
    own.post("stop", "ahead", ts=now + 3_600_000, project_path="/p/ahead")
    own.post("stop", "away", ts=now - 10_000, project_path="/p/away")
    tailhook("plates", "dismiss", "away", env=own.env, cwd=own.home)
    head, *listed, hidden = tailhook("plates", "list", env=own.env, cwd=own.home).stdout.splitlines()
    assert head.split() == ["STATUS", "AGE", "PROJECT", "BRANCH", "TO", "DO", "SESSION", "ACTIVITY"]
    assert len({line.index("/p/") for line in [*listed, hidden]} | {head.index("PROJECT")}) == 1
    sessions = [line[head.index("SESSION") : head.index("ACTIVITY")].strip() for line in [*listed, hidden]]
    assert sessions == ["first", "late", "ahead", "busy", "away"]
    assert hidden.split()[2:] == ["/p/away", "away", "hidden"]
    assert listed[0].endswith("  asks for a permission")
    ages = [line.split()[1] for line in listed]
    assert ages[0] == "2h"
    assert 50 <= int(ages[1].removesuffix("s")) < 60
    assert int(ages[2].removesuffix("s")) < 30
    code = "import sys; from tailhook.cli import main; main(['plates', 'list']); print(*sys.modules, file=sys.stderr)"
    argv = [sys.executable, "-c", code]
    loaded = subprocess.run(argv, env=own.env, cwd=own.home, capture_output=True, text=True, check=True).stderr.split()
    assert {"tailhook.board.view"} <= set(loaded)
    assert not {"sqlalchemy", "alembic", "pydantic"} & set(loaded)
    reported = json.loads(tailhook("plates", "list", "--json", env=own.env, cwd=own.home).stdout)["plates"]
    assert {plate["session_id"]: plate["since"] for plate in reported}["first"] < reported[0]["since"]


def test_a_hook_is_on_the_board_at_once(own, project):
    own.start()
    project.argv = [*project.argv[:-1], "plates"]
    project.env = {**own.env, "TAILHOOK_NO_AUTOSTART": "1"}
    with listening(own) as reported:
        beginning(reported)
        project.hook(json.dumps(project.payload(hook_event_name="UserPromptSubmit")).encode(), read=False)
        name, plate, _ = next(reported)
    assert (name, plate["session_id"], plate["status"]) == ("plate", "mine", "running")


def test_the_first_hook_starts_the_daemon_that_was_installed(own, project):
    own.start().stop()  # leaves what starts it
    project.argv = [*project.argv[:-1], "plates"]
    project.env = own.env
    project.hook(json.dumps(project.payload(hook_event_name="UserPromptSubmit")).encode(), read=False)
    wait_until(lambda: answers(own))
    try:
        wait_until(lambda: "mine" in own.plates())
    finally:
        os.kill(daemon_pid(own), signal.SIGTERM)
        wait_until(lambda: not (own.runtime / "http").exists())


def test_the_hooks_start_the_daemon_with_the_same_database(own, project, tmp_path):
    own.start("--db", f"sqlite:///{tmp_path}/team.db", "--retention", "7").post("stop", "before")
    own.stop()
    done = tailhook("install", "--yes", "--with", "plates", env=own.env, cwd=own.home)
    assert done.returncode == 0, done.stderr
    project.argv = [*project.argv[:-1], "plates"]
    project.env = own.env
    project.hook(json.dumps(project.payload(hook_event_name="UserPromptSubmit")).encode(), read=False)
    wait_until(lambda: answers(own))
    try:
        wait_until(lambda: own.plates().keys() == {"before", "mine"})
        assert b"team.db" not in Path(f"/proc/{daemon_pid(own)}/cmdline").read_bytes()  # a password may be in it
    finally:
        os.kill(daemon_pid(own), signal.SIGTERM)
        wait_until(lambda: not (own.runtime / "http").exists())
    assert not (own.state / "plates.db").exists()
    kept = own.state / "daemon-settings"
    assert (stat.S_IMODE(kept.stat().st_mode), json.loads(kept.read_text())["retention"]) == (0o600, 7)


def test_a_database_in_the_folder_of_the_person_is_meant_there(own, project):
    argv = [*SERVE, "--port", "0", "--db", "sqlite:///team.db"]
    with Started(argv, env=own.env, cwd=project.folder, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline()
        process.terminate()
    assert json.loads((own.state / "daemon-settings").read_text())["db"] == f"sqlite:///{project.folder}/team.db"


# A host: it has a hook run for the first events of its session, then waits for its end.
HOST = """
import json, subprocess, sys
for payload in sys.argv[2:]:
    subprocess.run(json.loads(sys.argv[1]), input=payload.encode(), check=True)
print("ready", flush=True)
sys.stdin.read()
"""


def host_of(own, project, session, names_itself):
    """Start a host that reports a session's start.  names_itself: like Claude Code: it runs hooks in a shell."""
    argv = project.argv
    if names_itself:
        argv = ["/bin/sh", "-c", f"CLAUDE_PID=$PPID; export CLAUDE_PID; {shlex.join(argv)}; true"]
    events = ["SessionStart", "UserPromptSubmit"]
    payloads = [json.dumps(project.payload(session_id=session, hook_event_name=name)) for name in events]
    return subprocess.Popen(
        [sys.executable, "-c", HOST, json.dumps(argv), *payloads],
        env={**own.env, "TAILHOOK_NO_AUTOSTART": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def test_a_session_without_the_wrapper_is_closed_when_its_host_is_killed(own, project):
    project.argv = [*project.argv[:-1], "plates"]
    dead = [host_of(own, project, f"dead {names}", names) for names in (True, False)]
    alive = [host_of(own, project, f"alive {names}", names) for names in (True, False)]
    for host in dead + alive:
        assert host.stdout.readline() == b"ready\n"
    for host in dead:
        host.kill()  # before the daemon has seen it
        host.communicate()
    own.start()
    wait_until(lambda: sum(plate["status"] == "closed" for plate in own.plates().values()) == 2)
    statuses = {name: plate["status"] for name, plate in own.plates().items()}
    for host in alive:
        host.kill()
        host.communicate()
    assert statuses == {
        "dead True": "closed",
        "dead False": "closed",
        "alive True": "running",
        "alive False": "running",
    }
