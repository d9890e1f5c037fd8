"""`tailhook doctor`: its findings about files of settings and configuration."""

import json

import pytest
from support.host import tailhook


def check_complaint(examined, path, complaint, code):
    """Check that the doctor has one complaint about a configuration file; None for none.  code: its exit code."""
    found, exit_code = examined("config")
    assert exit_code == code
    assert len(found) == bool(complaint)
    for finding in found:
        assert complaint in finding["what"]
        assert str(path) in finding["what"]


@pytest.mark.parametrize("text", ['{"hooks": null}', '{"hooks": {"Stop": 5}}', "{", "[]"])
def test_settings_that_cannot_be_read_are_reported_once_and_not_as_missing_hooks(project, settings, text):
    settings.write_text(text)
    for folder in (project.folder, project.home):  # in the home folder, it is the project's file, too
        lines = tailhook("doctor", env=project.env, cwd=folder).stdout.splitlines()
        failures = [line for line in lines if line.startswith("failure")]
        assert len(failures) == 1
        assert failures[0].startswith(f"failure  {settings}")


@pytest.mark.parametrize(
    ("text", "complaint", "code"),
    [
        ('{"idle": {"stale_after": 60}, "hook": {"machines": ["idle"]}}', None, 0),
        ('{"idel": {}}', "'idel' is unknown: the sections are hook, pool, idle, triage", 0),
        ('{"idle": {"stale": 60}}', "idle.stale is unknown: the keys of idle are stale_after, next_issue", 0),
        ('{"idle": 5}', "'idle' is not an object", 0),
        ('{"idle": {"stale_after": "60"}}', "is '60', not a number of seconds from 0 to 9007199254740992, and is", 0),
        ('{"idle": {"stale_after": true}}', "is True, not a number of seconds", 0),
        ('{"idle": {"stale_after": -5}}', "is -5, not a number of seconds", 0),
        ('{"idle": {"next_issue": 5}}', "is 5, not a text, and is ignored", 0),
        ('{"idle":\n {"stale_after": 5},}', "expected a member's name at line 2, column 21; the defaults are used", 1),
        ('{"hook": {"machines": ["idle", "lazy", 5]}}', "5, lazy", 0),
        (json.dumps({"triage": {"state_dirs": ["a"] * 101}}), "101 values, but only the first 100 count", 0),
        ('{"triage": {"state_dirs": ["a", 5]}}', "5 of triage.state_dirs is not a path and is ignored", 0),
        ('{"gate": {"rules": [{"edited": ["*.py"], "ran": "pytest"}]}}', None, 0),
        (
            '{"gate": {"rules": [{"edited": ["*.py"], "ran": "a; b"}]}}',
            "rule 1 of gate.rules is not valid: it is not one",
            0,
        ),
        ('{"gate": {"rules": [{"edited": ["*", "!a"], "ran": "a"}]}}', "the pattern '!a' cannot match", 0),
        ("{", "defaults are used", 1),
        ("[]", "defaults are used", 1),
    ],
)
@pytest.mark.parametrize("where", ["home/.config/tailhook/config.json", "project/.claude/tailhook.json"])
def test_a_configuration_is_read_through(settings, examined, tmp_path, text, complaint, code, where):
    path = tmp_path / where
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    check_complaint(examined, path, complaint, code)


@pytest.mark.parametrize(
    ("section", "values", "complaint"),
    [
        ("hook", {"unbound": "Refuse"}, """'Refuse', which is unknown and is ignored: it can be "act" or """),
        ("memory", {"profile": "big"}, """memory.profile is 'big', which is unknown and is ignored: it can be """),
        ("triage", {"while_active": "yes"}, """triage.while_active is 'yes', which is unknown and is ignored"""),
        ("triage", {"state_dirs": ["work", "~/states"]}, "'~/states' of triage.state_dirs is a folder in the project"),
        (
            "hook",
            {"log": "~/hooks.log"},
            "hook.log is '~/hooks.log': not an absolute path, so each hook looks for it in its own folder",
        ),
        ("hook", {"log": "/missing/hooks.log"}, "hook.log is '/missing/hooks.log': not writable"),
        ("hook", {"log": "/"}, "hook.log is '/': not writable"),
        ("idle.stale_after", 60, """'idle.stale_after' is unknown: write {"idle": {"stale_after": 60}}"""),
        ("plates", {"notify.on": ["waits"]}, """write {"plates": {"notify": {"on": ["waits"]}}}"""),
    ],
)
def test_a_value_that_no_hook_uses_is_reported(project, settings, examined, section, values, complaint):
    path = project.home / ".config" / "tailhook" / "config.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({section: values}))
    (finding,), _ = examined("config")
    assert complaint in finding["what"]


@pytest.mark.parametrize(
    ("text", "complaint", "code"),
    [
        ('{"triage": {"enabled": false, "max_messages": 10, "thresholds": {"decision": 1}}}', None, 0),
        ('{"triage": {"enabled": "False", "max_messages": 200, "thresholds": {"RUNBOOK": 0.5}}}', None, 0),
        ('{"triage":\n {"enabled": false,}}', "a member's name at line 2, column 20; the defaults are used", 1),
        ('{"enabled": false}', 'it has no object "triage"', 0),
        ('{"triage": {"enabled": "no"}}', "enabled is 'no', not true or false", 0),
        ('{"triage": {"max_messages": "20"}}', "max_messages is '20', not a whole number: 50 is used", 0),
        ('{"triage": {"max_messages": 5}}', "max_messages is 5, not from 10 to 200: 10 is used", 0),
        ('{"triage": {"profile": "tuned"}}', "profile is unknown: the keys are enabled, max_messages and ", 0),
        ('{"triage": {"thresholds": 0.4}}', "thresholds is 0.4, not an object", 0),
        ('{"triage": {"thresholds": {"DECISIONS": 0.4}}}', "thresholds is unknown: the categories are DECISION, ", 0),
        ('{"triage": {"thresholds": {"DECISION": "0.4"}}}', "the threshold of DECISION is '0.4', not a number", 0),
        ('{"triage": {"thresholds": {"DECISION": 40}}}', "the threshold of DECISION is 40, not from 0 to 1: 1 is", 0),
    ],
)
def test_memorys_own_configuration_is_read_through_if_the_machine_is_asked(project, examined, text, complaint, code):
    path = project.folder / ".claude" / "memory" / "memory-config.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    tailhook("install", "--yes", "--with", "memory", env=project.env, cwd=project.folder)
    check_complaint(examined, path, complaint, code)
    tailhook("install", "--yes", "--without", "memory", env=project.env, cwd=project.folder)
    assert examined("config")[0] == []


def test_a_projects_folder_of_states_outside_of_it_is_reported(project, settings, examined):
    (project.folder / ".claude").mkdir()
    (project.folder / ".claude" / "tailhook.json").write_text('{"triage": {"state_dirs": ["a", "../b", "/c"]}}')
    assert [finding["what"].split(": ")[1] for finding in examined("config")[0]] == [
        f"{path!r} of triage.state_dirs is ignored here" for path in ("../b", "/c")
    ]


@pytest.mark.parametrize("log", ["hooks.log", "new.log"])
def test_a_log_that_can_be_written_is_not_reported_and_not_made(project, settings, examined, tmp_path, log):
    (tmp_path / "hooks.log").touch()
    path = project.home / ".config" / "tailhook" / "config.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"hook": {"log": str(tmp_path / log)}}))
    assert examined("config")[0] == []
    assert not (tmp_path / "new.log").exists()


def test_a_variables_log_that_cannot_be_written_is_reported_wherever_the_variable_is_set(settings, examined, tmp_path):
    missing = str(tmp_path / "missing" / "hooks.log")
    (finding,), code = examined("config", TAILHOOK_LOG=missing)
    assert finding["what"].startswith(f"the environment: TAILHOOK_LOG is {missing!r}: not writable")
    assert code == 0
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "env": {"TAILHOOK_LOG": "hooks.log"}}))
    (finding,), _ = examined("config", TAILHOOK_LOG=str(tmp_path / "hooks.log"))
    assert finding["what"].startswith(f"{settings}: TAILHOOK_LOG is 'hooks.log': not an absolute path")


def test_a_projects_file_is_shown_only_the_keys_that_it_can_set(project, settings, examined):
    (project.folder / ".claude").mkdir()
    (project.folder / ".claude" / "tailhook.json").write_text('{"hook": {"logs": "x"}, "pool": {"start": true}}')
    hook, pool = (finding["what"].split(": ", 1)[1] for finding in examined("config")[0])
    assert hook == "the key hook.logs is unknown: the keys of hook are machines, unbound"
    assert pool == "the key pool.start is unknown"


def test_a_projects_key_that_only_the_user_may_set_is_reported(project, settings, examined):
    (project.folder / ".claude").mkdir()
    (project.folder / ".claude" / "tailhook.json").write_text('{"hook": {"log": "/tmp/x", "unbound": "act"}}')
    log, unbound = (finding["what"] for finding in examined("config")[0])
    assert "only the user's own file can set it" in log
    assert "can only set it to" in unbound


@pytest.mark.parametrize("text", ['{"hook": {"machines": ["gate", "idle"]}}', '{"gate": {"rules": []}, "hook": 1}'])
def test_a_machine_that_a_project_asks_for_and_its_user_did_not_enable_is_reported(project, settings, examined, text):
    path = project.folder / ".claude" / "tailhook.json"
    path.parent.mkdir()
    path.write_text(text)
    (finding,), code = examined("machines")
    assert finding["what"] == f"{path} asks for the machine gate, which you have not enabled, so it is not asked"
    assert "tailhook install --with gate " in finding["advice"]
    assert code == 0
    assert project.tailhook("install", "--yes", "--with", "gate").returncode == 0
    assert examined("machines") == ([], 0)


@pytest.mark.parametrize("machines", [["idle", "gate"], []])
def test_machines_of_the_configuration_that_an_argv_overrides_are_named(project, settings, examined, machines):
    config = project.home / ".config" / "tailhook" / "config.json"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"hook": {"machines": machines}}))
    assert examined("machines") == ([], 0)
    project.tailhook("install", "--yes", "--with", "memory", "--without", "gate")
    (finding,), code = examined("machines")
    assert (finding["status"], code) == ("note", 0)
    assert f"{settings}: Stop names its machines (" in finding["what"]
    assert f"so hook.machines of {config} has no effect there" in finding["what"]
    config.unlink()
    assert examined("machines") == ([], 0)


def test_gate_can_be_enabled_for_one_project_only(project, settings, examined):
    path = project.folder / ".claude" / "tailhook.json"
    path.parent.mkdir()
    path.write_text('{"gate": {"rules": [{"edited": ["*.py"], "ran": "pytest"}]}}')
    words = ("--yes", "--scope", "local", "--with", "gate", "--without", "idle,ralph,triage")
    assert project.tailhook("install", *words).returncode == 0
    assert examined("machines") == ([], 0)
    assert examined("twice") == ([], 0)
    assert '"gate"' in (project.folder / ".claude" / "settings.local.json").read_text()


def test_a_configuration_that_is_a_directory_is_named(project, settings, examined):
    path = project.home / ".config" / "tailhook" / "config.json"
    path.mkdir(parents=True)
    (finding,), code = examined("config")
    assert (finding["what"], code) == (f"{path}: Is a directory; the defaults are used", 1)
