"""Kimi Code: its hooks stand in TOML, and only the board learns of its sessions."""

import json
import tomllib
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.host_payloads import kimi
from support.install import run_hook

from tailhook.hook.machines import MACHINES
from tailhook.install.hooks_file import hooks_file_of

FILE = hooks_file_of("kimi")
MINE = """# mine
default_model = "m"  # which one

[[hooks]]  # theirs
event = "Stop"
command = 'make stop'
# after theirs

[models.m]
note = \"\"\"
[[hooks]]
\"\"\"
"""
BASH = {"tool_name": "Bash", "tool_input": {"command": "touch made"}, "tool_call_id": "t1"}
TRIGGER = {"origin_kind": "system_trigger", "turn_id": 0, "prompt": [{"type": "text", "text": "Do a part."}]}
ASKED = {**BASH, "agent_id": "main", "id": "approval_1"}


@pytest.fixture
def config(project):
    """Return the path of a file with a comment, a key and a hook of the person."""
    path = project.home / ".kimi-code" / "config.toml"
    path.parent.mkdir()
    path.write_text(MINE)
    project.env["TAILHOOK_NO_AUTOSTART"] = "1"
    return path


def install(project, *words, **env):
    return project.tailhook("install", "--yes", "--host", "kimi", *words, **env)


def uninstall(project):
    return project.tailhook("uninstall", "--yes", "--host", "kimi")


def findings(project):
    """Return the doctor's findings that are not fine, and its exit code."""
    done = project.tailhook("doctor", "--json")
    found = json.loads(done.stdout)["findings"]
    return [one for one in found if one["status"] in ("warning", "failure")], done.returncode


# ---- the file ----------------------------------------------------------------


@pytest.mark.parametrize("words", [(), ("--with", "plates"), ("--cold",)])
def test_the_hooks_of_the_board_are_added_and_everything_else_stays(project, config, words):
    done = install(project, *words)
    assert done.returncode == 0, done.stderr
    assert config.read_text().startswith(MINE)
    theirs, *ours = tomllib.loads(config.read_text())["hooks"]
    assert theirs == {"event": "Stop", "command": "make stop"}
    assert [hook["event"] for hook in ours] == FILE.events
    assert [hook.get("matcher") for hook in ours] == [FILE.reported_events.get(event) for event in FILE.events]
    assert all("plates --host kimi" in hook["command"] and hook["timeout"] == 10 for hook in ours)
    written = config.read_bytes()
    assert "Nothing to change" in install(project, *words).stdout
    assert config.read_bytes() == written
    assert "byte for byte" in uninstall(project).stdout
    assert config.read_text() == MINE


def test_what_a_person_added_meanwhile_stays(project, config):
    install(project)
    config.write_text(config.read_text().replace("make stop", "make end") + "# later\n[last]\na = 1\n")
    assert uninstall(project).returncode == 0
    assert config.read_text() == MINE.replace("make stop", "make end") + "# later\n[last]\na = 1\n"


def test_another_form_replaces_the_commands_alone(project, config):
    install(project)
    written = config.read_text()
    config.write_text(written.replace("timeout = 10", "timeout = 20  # more", 1))
    assert install(project, "--cold").returncode == 0
    hooks = tomllib.loads(config.read_text())["hooks"]
    assert all("entry.py" in hook["command"] for hook in hooks[1:])
    assert (hooks[1]["timeout"], "20  # more" in config.read_text()) == (20, True)
    assert len(hooks) == 1 + len(FILE.events)


def test_a_command_that_a_person_has_written_in_another_way_is_replaced(project, config):
    install(project, "--cold")
    command = tomllib.loads(config.read_text())["hooks"][1]["command"]
    written = config.read_text()
    config.write_text(written.replace(json.dumps(command), f"'''{command} '''", 1))
    assert install(project, "--cold").returncode == 0
    hooks = tomllib.loads(config.read_text())["hooks"][1:]
    assert [hook["command"] for hook in hooks if hook["event"] == "Stop"] == [command]
    assert len(hooks) == len(FILE.events)


def test_a_hook_that_is_twice_there_or_has_another_matcher_is_written_once(project, config):
    install(project)
    ours = config.read_text().removeprefix(MINE)
    config.write_text(MINE + ours + ours.replace('matcher = "manual"\n', ""))
    assert install(project).returncode == 0
    assert [hook["event"] for hook in tomllib.loads(config.read_text())["hooks"][1:]] == FILE.events


def test_a_file_that_was_made_is_removed_with_its_folder(project):
    assert install(project).returncode == 0
    assert (project.home / ".kimi-code/config.toml").exists()
    assert uninstall(project).returncode == 0
    assert not (project.home / ".kimi-code").exists()


def test_the_hosts_own_folder_is_used_if_a_variable_names_it(project, tmp_path):
    assert install(project, KIMI_CODE_HOME=str(tmp_path / "elsewhere")).returncode == 0
    assert (tmp_path / "elsewhere" / "config.toml").exists()


def test_many_installs_at_once_are_one(project, config):
    with ThreadPoolExecutor(4) as pool:
        assert {done.returncode for done in pool.map(lambda _: install(project), range(4))} == {0}
    assert len(tomllib.loads(config.read_text())["hooks"]) == 1 + len(FILE.events)
    uninstall(project)
    assert config.read_text() == MINE


@pytest.mark.parametrize("command", [install, uninstall])
def test_a_broken_file_is_left_alone(project, config, command):
    config.write_text("a = 1\nb = = 2\n")
    done = command(project)
    assert (done.returncode, config.read_text()) == (1, "a = 1\nb = = 2\n")
    assert "line 2, column 5" in done.stderr


@pytest.mark.parametrize("text", ["hooks = []\n", 'hooks = [{event = "Stop", command = "make"}]  # mine\n'])
def test_a_list_of_hooks_in_one_value_is_left_alone(project, config, text):
    config.write_text(text)
    done = install(project)
    assert (done.returncode, config.read_text()) == (1, text)
    assert f'{config}: "hooks" is not written as [[hooks]]' in done.stderr
    assert "Write each hook below a line [[hooks]] of its own, and remove an empty list." in done.stderr


def test_the_entries_are_printed_as_toml(project):
    printed = tomllib.loads(install(project, "--print").stdout)["hooks"]
    assert [hook["event"] for hook in printed] == FILE.events
    assert not (project.home / ".kimi-code").exists()


# ---- machines that cannot work here ------------------------------------------


@pytest.mark.parametrize("machine", [name for name in MACHINES if name != "plates"])
def test_a_machine_that_cannot_work_there_is_refused_with_the_reason(project, config, machine):
    done = install(project, "--with", f"plates,{machine}")
    assert (done.returncode, config.read_text()) == (1, MINE)
    assert f"{machine} cannot work in Kimi Code. It asks its hooks once in a turn" in done.stderr
    assert "tailhook install --host kimi" in done.stderr


def test_nothing_is_left_without_plates(project, config):
    done = install(project, "--without", "plates")
    assert (done.returncode, "no machine would be left" in done.stderr) == (1, True)
    assert config.read_text() == MINE


def test_the_doctor_finds_a_machine_that_cannot_work_there_and_nothing_after_an_install(project, config):
    install(project)
    assert findings(project) == ([], 0)
    config.write_text(config.read_text().replace("plates --host", "idle,plates --host", 1))
    (found,), code = findings(project)
    assert "Stop asks idle, which cannot work in Kimi Code" in found["what"]
    assert (found["advice"].endswith("tailhook install --host kimi"), code) == (True, 1)
    assert "idle" not in install(project).stderr
    assert findings(project) == ([], 0)


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ("timeout = 0.5", "hooks[0].timeout is 0.5, not a whole number above 0"),
        ('name = "mine"', "hooks[0].name is not one of event, command, matcher, timeout"),
        ("matcher = 1", "hooks[0].matcher is 1, not a string"),
    ],
)
def test_an_entry_for_which_the_host_ignores_all_hooks_is_reported(project, config, entry, fault):
    """The real program (2.1.0) ran no hook of such a file."""
    config.write_text(MINE.replace("command = 'make stop'\n", f"command = 'make stop'\n{entry}\n"))
    done = install(project)
    assert (done.returncode, f"{fault}, so Kimi Code runs no hook of this file" in done.stderr) == (1, True), (
        done.stderr
    )
    (found,), code = findings(project)
    assert (fault in found["what"], code) == (True, 1)


# ---- what the board learns ---------------------------------------------------


@pytest.mark.parametrize(
    ("event", "members", "reported"),
    [
        ("SessionStart", {"source": "startup"}, {"event_type": "session_start", "source": "startup"}),
        (
            "UserPromptSubmit",
            {"prompt": [{"type": "text", "text": "Do it."}], "is_steer": False},
            {"event_type": "prompt_submit", "prompt": "Do it."},
        ),
        ("TurnStarted", {"origin_kind": "task", "turn_id": 1}, {"event_type": "prompt_submit", "by_host": True}),
        (
            "TurnStarted",
            {**TRIGGER, "origin_name": "goal_continuation"},
            {"event_type": "prompt_submit", "by_host": True},
        ),
        ("TurnStarted", {**TRIGGER, "origin_name": "subagent"}, {"event_type": "subagent_start"}),
        ("PreToolUse", BASH, {"event_type": "tool_start", "tool_use_id": "t1"}),
        ("PostToolUse", BASH, {"event_type": "tool_call", "tool_use_id": "t1"}),
        (
            "PostToolUseFailure",
            {**BASH, "error": {"code": "internal", "message": "It failed."}},
            {"event_type": "tool_call", "error": "It failed."},
        ),
        ("PermissionRequest", ASKED, {"event_type": "permission_asked", "tool_name": "Bash"}),
        ("PermissionResult", {**ASKED, "decision": "approved"}, {"event_type": "permission_given"}),
        ("PermissionResult", {**ASKED, "decision": "rejected"}, {"event_type": "tool_call", "tool_use_id": "t1"}),
        ("PermissionResult", {**ASKED, "decision": "cancelled"}, {"event_type": "tool_call"}),
        ("PostCompact", {"trigger": "manual"}, {"event_type": "turn_ended"}),
        ("SubagentStop", {"agent_name": "coder", "response": "Done."}, {"event_type": "subagent_stop"}),
        ("Stop", {}, {"event_type": "stop"}),
        ("StopFailure", {"error_type": "E", "error_message": "400"}, {"event_type": "stop_failure", "error": "400"}),
        ("Interrupt", {"turn_id": 0, "reason": "cancelled"}, {"event_type": "interrupted"}),
        ("SessionEnd", {"reason": "exit"}, {"event_type": "session_end"}),
    ],
)
def test_each_event_is_reported(project, config, event, members, reported):
    install(project, "--cold")
    (command,) = (h["command"] for h in tomllib.loads(config.read_text())["hooks"][1:] if h["event"] == event)
    done = run_hook(project, ["/bin/sh", "-c", command], kimi(project, event, **members))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (line,) = (project.home / ".local/state/tailhook/events").read_text().splitlines()
    found = json.loads(line)
    assert {name: found.get(name) for name in reported} == reported
    assert found["session_id"] == "session_mine"
    assert {"agent_id", "title"}.isdisjoint(found)
