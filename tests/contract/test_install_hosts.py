"""`tailhook install --host NAME`, as processes on the hooks files of other hosts than Claude Code."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.host import Stop
from support.host_payloads import BY_HOST, codex, gemini
from support.install import run_hook

from tailhook.hosts import CLAUDE_LIKE, NAMES
from tailhook.hosts import codex as codex_host
from tailhook.install.hooks import with_hooks
from tailhook.install.hooks_file import hooks_file_of
from tailhook.install.survey import survey_host

USER_FILES = {
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "cursor": ".cursor/hooks.json",
    "copilot": ".copilot/hooks/tailhook.json",
    "qwen": ".qwen/settings.json",
    "droid": ".factory/settings.json",
    "antigravity": ".gemini/config/hooks.json",
    "devin": ".config/devin/config.json",
}
PROJECT_FILES = {
    **USER_FILES,
    "copilot": ".github/hooks/tailhook.json",
    "antigravity": ".agents/hooks.json",
    "devin": ".devin/config.json",
}
GROUPS = (
    '{{\n\t"description" : "\\u0064ark",\n\t"hooks": '
    '{{"{}": [{{"hooks": [{{"type": "command", "command": "make stop"}}]}}]}}\n}}'
)
FLAT = '{{"version":1,"hooks":{{"{}":[{{"{}":"make stop"}}]}}}}\n'
THEIRS = {
    "codex": GROUPS.format("Stop"),
    "gemini": GROUPS.format("AfterAgent"),
    "cursor": FLAT.format("stop", "command"),
    "copilot": FLAT.format("agentStop", "bash"),
    "qwen": GROUPS.format("Stop"),
    "droid": GROUPS.format("Stop"),
    "devin": GROUPS.format("Stop"),
    "antigravity": '{"linter": {"Stop": []}, "tailhook": {"enabled": true, "Stop": [{"command": "make stop"}]}}\n',
}
EACH = pytest.mark.parametrize("name", BY_HOST)


def install(project, name, *words, **env):
    return project.tailhook("install", "--yes", "--host", name, *words, **env)


def uninstall(project, name, *words):
    return project.tailhook("uninstall", "--yes", "--host", name, *words)


def write(path: Path, text: str) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path.read_bytes()


def commands(name, path, event) -> list[str]:
    """Return the shell commands of an event."""
    file = hooks_file_of(name)
    entries = json.loads(path.read_text())[file.hooks_member][event]
    hooks = [hook for entry in entries for hook in entry["hooks"]] if file.has_groups else entries
    return [hook[file.command_members[0]] for hook in hooks]


def run_command(project, command, payload) -> Stop:
    """Run a shell command of a hooks file as the host does."""
    done = run_hook(project, ["/bin/sh", "-c", command], payload)
    return Stop(done.returncode, done.stdout, done.stderr)


def findings(project, check):
    """Return the doctor's findings of one check, and its exit code."""
    done = project.tailhook("doctor", "--json")
    found = json.loads(done.stdout)["findings"]
    return [finding for finding in found if finding["check"] == check], done.returncode


# ---- what is written ---------------------------------------------------------


@EACH
def test_the_installed_hook_keeps_a_loop_going_and_lets_it_end(project, name):
    assert install(project, name).returncode == 0
    (command,) = commands(name, project.home / USER_FILES[name], hooks_file_of(name).stop_event)
    project.loop()
    blocked = run_command(project, command, BY_HOST[name](project, "Hm."))
    assert (blocked.exit_code, "[ITERATION 2/10]" in blocked.stdout) == (0, True)
    ended = run_command(project, command, BY_HOST[name](project, "<loop-done>COMPLETE</loop-done>"))
    assert (ended.exit_code, "[ITERATION" in ended.stdout) == (0, False)


def test_codex_gets_the_loop_again_after_a_compaction_only(project):
    install(project, "codex")
    path = project.home / USER_FILES["codex"]
    (group,) = json.loads(path.read_text())["hooks"]["SessionStart"]
    assert group["matcher"] == "compact"
    project.loop()
    (command,) = commands("codex", path, "SessionStart")
    payload = {**codex(project, None), "hook_event_name": "SessionStart", "source": "compact"}
    assert "A loop is running" in run_command(project, command, payload).stdout


@pytest.mark.parametrize("name", ["gemini", "cursor", "copilot"])
def test_a_host_without_an_event_after_a_compaction_has_the_stop_only(project, name):
    install(project, name)
    hooks = json.loads((project.home / USER_FILES[name]).read_text())["hooks"]
    assert list(hooks) == [hooks_file_of(name).stop_event]


@EACH
def test_plates_is_registered_for_the_events_that_the_host_has(project, name):
    project.env["TAILHOOK_NO_AUTOSTART"] = "1"
    before = write(path := project.home / USER_FILES[name], THEIRS[name])
    assert install(project, name, "--with", "plates").returncode == 0
    file = hooks_file_of(name)
    assert set(json.loads(path.read_text())[file.hooks_member]) - {"enabled"} == set(file.events)
    assert install(project, name, "--with", "plates").stdout.startswith("Nothing to change")
    for event in file.reported_events:
        payload = {**BY_HOST[name](project, "Hm."), "notification_type": "permission_prompt", "trigger": "manual"}
        if "hook_event_name" in payload:
            payload["hook_event_name"] = event
        (command,) = commands(name, path, event)
        reported = run_command(project, command, payload)
        assert (reported.exit_code, reported.stdout, reported.stderr) == (0, "", "")
    spool = project.home / ".local" / "state" / "tailhook" / "events"
    kinds = [json.loads(line)["event_type"] for line in spool.read_text().splitlines()]
    assert len(kinds) == len(file.reported_events)
    assert "stop" not in kinds  # as an event would be whose name was not found
    assert install(project, name, "--without", "plates").returncode == 0
    assert uninstall(project, name).returncode == 0
    assert path.read_bytes() == before


def test_gemini_asking_about_a_tool_is_a_wait_on_the_board(project):
    project.env["TAILHOOK_NO_AUTOSTART"] = "1"
    payload = {**gemini(project, ""), "hook_event_name": "Notification", "notification_type": "ToolPermission"}
    project.argv = [*project.argv[:-1], "plates"]
    project.hook(json.dumps(payload).encode(), "--host", "gemini", read=False)
    spool = project.home / ".local" / "state" / "tailhook" / "events"
    assert json.loads(spool.read_text())["event_type"] == "permission_asked"


@EACH
def test_each_scope_has_its_file(project, name):
    assert install(project, name, "--scope", "project").returncode == 0
    path = project.folder / PROJECT_FILES[name]
    assert path.exists()
    assert uninstall(project, name, "--scope", "project").returncode == 0
    assert not (project.folder / PROJECT_FILES[name].partition("/")[0]).exists()


@pytest.mark.parametrize(
    ("name", "variable", "path"),
    [
        ("codex", "CODEX_HOME", "hooks.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("copilot", "COPILOT_HOME", "hooks/tailhook.json"),
        ("qwen", "QWEN_HOME", "settings.json"),
    ],
)
def test_the_hosts_own_folder_is_used_if_a_variable_names_it(project, tmp_path, name, variable, path):
    assert install(project, name, **{variable: str(tmp_path / "elsewhere")}).returncode == 0
    assert (tmp_path / "elsewhere" / path).exists()
    assert not (project.home / USER_FILES[name]).exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["codex", "--scope", "local"], "has no file for --scope local; it has: user, project"),
        (["copilot", "--form", "exec"], "runs hooks as shell commands only"),
        (["gemini", "--block-cap", "0"], "a limit on blocks in a row does not exist"),
        (["copilot", "--block-cap", "0"], "a limit on blocks in a row cannot be changed"),
        (["qwen", "--block-cap", "0"], "takes a --block-cap from 1 to 100"),
        (["qwen", "--block-cap", "101"], "takes a --block-cap from 1 to 100"),
        (["emacs"], "unknown host: emacs"),
    ],
)
def test_what_a_host_does_not_have_is_a_usage_error(project, words, reason):
    done = install(project, *words)
    assert (done.returncode, reason in done.stderr) == (2, True)
    assert not [path for path in USER_FILES.values() if (project.home / path).exists()]


@pytest.mark.parametrize(("word", "meant"), [("claude", "claude-code"), ("copilot-cli", "copilot"), ("vim", "")])
def test_a_host_by_another_name_is_a_usage_error_that_names_the_right_one(project, word, meant):
    done = project.tailhook("install", "--host", word)
    assert done.returncode == 2
    assert (f"Did you mean {meant!r}?" in done.stderr) == bool(meant)
    assert f"The hosts are: {', '.join(NAMES)}" in done.stderr


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("[features]\nhooks = false\n", False),
        ("[features]\ncodex_hooks = false\n", False),
        ("[features]\ncodex_hooks = false\nhooks = true\n", True),
        ('hooks = "not TOML', True),
    ],
)
def test_hooks_that_a_setting_of_codex_switches_off_are_reported(project, text, runs):
    install(project, "codex", "--cold")
    (project.home / ".codex/config.toml").write_text(text)
    assert (install(project, "codex", "--cold").returncode == 0) == runs
    assert ("the feature hooks is false" not in project.tailhook("doctor").stdout) == runs
    assert ("nothing will continue this loop" not in project.tailhook("loop", "start", "Go.").stderr) == runs


def test_the_limit_of_cursor_is_a_member_of_its_stop_hook(project):
    path = project.home / USER_FILES["cursor"]
    assert "after 5 blocks in a row" in install(project, "cursor").stdout

    def limit():
        (hook,) = json.loads(path.read_text())["hooks"]["stop"]
        return hook.get("loop_limit", "unset")

    assert limit() == "unset"
    for words, expected in ((["--block-cap", "0"], None), ([], None), (["--block-cap", "30"], 30), ([], 30)):
        assert "after 5 blocks" not in install(project, "cursor", *words).stdout
        assert limit() == expected
    (found,), _ = findings(project, "cap")
    assert (found["status"], "after 30 blocks in a row" in found["what"]) == ("ok", True)
    uninstall(project, "cursor")
    assert not path.parent.exists()


def test_a_limit_that_cannot_be_changed_is_reported(project):
    assert "send the agent another prompt; the loop continues" in install(project, "copilot").stdout
    (found,), code = findings(project, "cap")
    assert (found["status"], "8 blocks in a row" in found["what"], code) == ("note", True, 0)


def test_the_limit_of_qwen_is_a_variable_in_its_settings(project):
    path = project.home / USER_FILES["qwen"]
    advice = "To raise the host's limit:  tailhook install --host qwen --block-cap 100"
    assert advice in install(project, "qwen").stdout
    assert advice in project.tailhook("doctor").stdout
    assert advice not in install(project, "qwen", "--block-cap", "100").stdout
    assert json.loads(path.read_text())["env"] == {"QWEN_CODE_STOP_HOOK_BLOCK_CAP": "100"}
    uninstall(project, "qwen")
    assert not path.exists()


def test_a_hooks_file_of_droid_that_hides_the_settings_is_reported(project):
    install(project, "droid", "--cold")
    write(project.home / ".factory/hooks.json", "{}")
    (finding,), _ = findings(project, "settings")
    assert "hooks.json exists, so Factory Droid runs no hook of" in finding["what"]
    assert "tailhook install --host droid --print" in finding["advice"]
    assert install(project, "droid", "--cold").returncode == 1


def test_the_switch_of_droid_that_turns_all_hooks_off_is_reported(project):
    path = project.home / ".factory" / "settings.json"
    before = write(path, '{"hooks": {"hooksDisabled": true}}')
    done = install(project, "droid", "--cold")
    assert (done.returncode, "hooks.hooksDisabled is true" in done.stderr) == (1, True)
    (finding,), _ = findings(project, "off")
    assert str(path) in finding["what"]
    uninstall(project, "droid")
    assert path.read_bytes() == before


def test_codex_asks_for_trust(project):
    assert "only after you trust it" in install(project, "codex").stdout


# ---- once, and back ----------------------------------------------------------


@EACH
def test_a_second_install_changes_nothing_and_uninstall_restores_every_byte(project, name):
    before = write(path := project.home / USER_FILES[name], THEIRS[name])
    assert install(project, name).returncode == 0
    installed = path.read_bytes()
    stop, theirs = hooks_file_of(name).stop_event, "make stop"
    assert [command == theirs for command in commands(name, path, stop)] == [True, False]
    assert "Nothing to change" in install(project, name).stdout
    assert path.read_bytes() == installed
    assert "byte for byte" in uninstall(project, name).stdout
    assert path.read_bytes() == before


@EACH
def test_a_file_and_folders_that_were_made_are_removed(project, name):
    install(project, name)
    assert (project.home / USER_FILES[name]).exists()
    assert uninstall(project, name).returncode == 0
    assert not (project.home / USER_FILES[name].partition("/")[0]).exists()
    assert "Nothing to remove" in uninstall(project, name).stdout


@EACH
def test_what_a_person_added_meanwhile_stays(project, name):
    before = write(path := project.home / USER_FILES[name], THEIRS[name])
    install(project, name)
    edit = ('"make stop"', '"make  end"')
    path.write_text(path.read_text().replace(*edit))
    assert uninstall(project, name).returncode == 0
    assert path.read_text() == before.decode().replace(*edit)


@EACH
def test_hooks_of_several_hosts_come_and_go_by_themselves(project, name):
    install(project, "claude-code")
    claude_code = (project.home / ".claude" / "settings.json").read_bytes()
    install(project, name)
    uninstall(project, name)
    assert (project.home / ".claude" / "settings.json").read_bytes() == claude_code


@EACH
def test_a_broken_file_is_left_alone(project, name):
    before = write(path := project.home / USER_FILES[name], '{\n  // mine\n  "hooks": {}\n}')
    for command in (install, uninstall):
        done = command(project, name)
        assert (done.returncode, path.read_bytes()) == (1, before)
        assert "line 2, column 3" in done.stderr


@pytest.mark.parametrize("name", ["gemini", "cursor"])
def test_many_installs_at_once_are_one(project, name):
    before = write(path := project.home / USER_FILES[name], THEIRS[name])
    with ThreadPoolExecutor(4) as pool:
        assert {done.returncode for done in pool.map(lambda _: install(project, name), range(4))} == {0}
    assert len(commands(name, path, hooks_file_of(name).stop_event)) == 2
    uninstall(project, name)
    assert path.read_bytes() == before


# ---- the doctor --------------------------------------------------------------


@EACH
def test_the_doctor_runs_the_hooks_as_the_host_does(project, name):
    install(project, name)
    found, code = findings(project, "hook")
    assert code == 0, found
    assert {finding["status"] for finding in found} == {"ok"}
    assert all(str(project.home / USER_FILES[name]) in finding["what"] for finding in found)
    assert findings(project, "installed") == ([], 0)


@EACH
@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (" -I -S ", " -I -S /nowhere/", "package does not exist"),
        ("--host NAME", "--host claude-code", "did not answer for a running loop"),
        ('"/', '"/nowhere/', "interpreter does not exist"),
    ],
)
def test_the_doctor_finds_a_hook_that_does_not_run(project, name, old, new, complaint):
    if name in ("codex", *CLAUDE_LIKE) and "--host" in old:
        pytest.skip("it has the words of Claude Code")
    install(project, name)
    path = project.home / USER_FILES[name]
    text = path.read_text()
    path.write_text(text.replace(old.replace("NAME", name), new))
    assert path.read_text() != text
    found, code = findings(project, "hook")
    assert code == 1
    failed = [finding for finding in found if finding["status"] == "failure"]
    assert failed
    assert all(complaint in finding["what"] for finding in failed)
    assert all(f"tailhook install --host {name}" in finding["advice"] for finding in failed)


@EACH
def test_the_doctor_leaves_the_files_of_hosts_without_our_hooks_alone(project, name):
    install(project, "claude-code", "--block-cap", "0")
    text = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "make"}]}]}} // mine'
    write(project.home / USER_FILES[name], text)
    done = project.tailhook("doctor", "--json")
    assert done.returncode == 0
    assert USER_FILES[name] not in done.stdout


@EACH
def test_the_doctor_reports_a_file_with_our_hooks_that_cannot_be_read(project, name):
    install(project, name)
    path = project.home / USER_FILES[name]
    path.write_text(f"{path.read_text()} [")
    (found,), code = findings(project, "settings")
    assert (code, str(path) in found["what"]) == (1, True)


@pytest.mark.parametrize(("name", "own"), [("claude-code", "local"), ("codex", "user")])
def test_an_install_into_a_shared_file_reports_that_its_program_is_only_here(project, name, own):
    said = install(project, name, "--scope", "project").stdout
    assert "In another person's copy of the project they fail if it is missing there." in said
    assert f"If you share the project, use --scope {own} in place of --scope project." in said
    assert "another person" not in install(project, name).stdout


@pytest.mark.parametrize("name", [name for name in BY_HOST if hooks_file_of(name).has_comments])
def test_hooks_between_comments_of_a_host_that_accepts_them_are_found_and_not_changed(project, name):
    install(project, name)
    path = project.home / USER_FILES[name]
    text = path.read_text().replace("\n", '\n/* "hooks": { */ ', 1)
    path.write_text(f'// "a": 1\n{text}')
    title, written = hooks_file_of(name).host.TITLE, path.read_bytes()
    assert findings(project, "settings") == ([], 0)
    assert findings(project, "installed") == ([], 0)
    assert "nothing will continue" not in project.tailhook("loop", "start", "--max", "3", "Go.").stderr
    for done in (install(project, name), uninstall(project, name)):
        assert done.returncode == 1
        assert "line 1, column 1. Nothing was changed. Correct the file by hand, without comments: " in done.stderr
        assert f"{title} accepts them, tailhook does not." in done.stderr
    assert path.read_bytes() == written


@pytest.mark.parametrize("name", NAMES)
def test_a_machine_that_can_read_nothing_in_the_host_is_reported(project, name):
    if name == "kimi":
        pytest.skip("its other machines are refused")
    names = {"claude-code": [], "devin": ["gate", "memory"]}.get(name, ["gate"])
    said = install(project, name, "--with", "gate,memory").stdout
    title, verb = hooks_file_of(name).host.TITLE, "blocks" if len(names) == 1 else "block"
    what = f"{' and '.join(names)} cannot read what an agent of {title} did, and {verb} no stop there"
    assert (f"{what}." in said) is bool(names)
    found, _ = findings(project, "machines")
    assert [finding["what"].partition(f"{hooks_file_of(name).stop_event}: ")[2] for finding in found] == [what][
        : len(names)
    ]
    if names:
        assert found[0]["advice"].endswith(f" --host {name} --without {','.join(names)}")
        assert "cannot read" not in install(project, name, "--without", ",".join(names)).stdout
        assert findings(project, "machines")[0] == []


def test_two_hosts_that_ask_the_same_machines_are_fine(project):
    install(project, "claude-code")
    install(project, "codex")
    assert findings(project, "twice") == ([], 0)
    install(project, "codex", "--scope", "project")
    found, code = findings(project, "twice")
    assert code == 1
    assert all(
        "uninstall --host codex --scope SCOPE  (SCOPE is one of user, project)" in finding["advice"]
        for finding in found
    )


@pytest.mark.parametrize(
    ("name", "values"), [("gemini", {"hooksConfig": {"enabled": False}}), ("copilot", {"disableAllHooks": True})]
)
def test_the_doctor_finds_hooks_that_the_host_does_not_run(project, name, values):
    install(project, name)
    path = project.home / USER_FILES[name]
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    (found,), code = findings(project, "off")
    assert (code, str(path) in found["what"]) == (1, True)


@pytest.mark.parametrize(
    ("state", "found"),
    [
        ("", "runs it only with --dangerously-bypass-hook-trust"),
        ('trusted_hash = "sha256:00"', ""),
        ('enabled = false\ntrusted_hash = "sha256:00"', "the Stop hook of {path} is disabled"),
    ],
)
def test_hooks_that_the_person_has_not_trusted_in_codex_or_has_disabled_there_are_reported(project, state, found):
    assert install(project, "codex").returncode == 0  # the host asks for the trust
    path = project.home / ".codex/hooks.json"
    trusted = 'trusted_hash = "sha256:00"'
    states = [("stop", state), ("session_start", trusted), ("user_prompt_submit", trusted)]
    sections = "".join(f'[hooks.state."{path}:{event}:0:0"]\n{words}\n' for event, words in states)
    (project.home / "dotfiles.toml").write_text(sections)
    (project.home / ".codex/config.toml").symlink_to("../dotfiles.toml")
    untrusted, _ = findings(project, "trust")
    disabled, _ = findings(project, "off")
    reported = [finding["what"] for finding in [*untrusted, *disabled]]
    assert [found.format(path=path) in what for what in reported] == [True] * bool(found)
    assert install(project, "codex").returncode == (1 if disabled else 0)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ("allow_managed_hooks_only = true", "allow_managed_hooks_only is true, so the host runs no hook of the user"),
        ("[features]\nhooks = false", "the feature hooks is false, so the host runs no hook"),
        ("allow_managed_hooks_only = false", ""),
    ],
)
def test_the_requirements_of_an_administrator_keep_the_hooks_of_codex_from_running(
    tmp_path, monkeypatch, settings, reason
):
    path = tmp_path / "requirements.toml"
    path.write_text(settings)
    monkeypatch.setitem(codex_host.HOOKS_FILE, "toml_requirements", str(path))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    (tmp_path / "hooks.json").write_text(with_hooks(hooks_file_of("codex"), "{}", ["idle"], "shell"))
    survey = survey_host(hooks_file_of("codex"), ["idle"])
    obstacles = [obstacle.what for there in survey.installed for obstacle in survey.obstacles_of(there)]
    assert [what.startswith(f"{path}: {reason}") for what in obstacles] == [True] * len(survey.installed) * bool(reason)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"$schema": "x"}, "$schema is not one of hooks, description"),
        ({"description": 3}, "description is 3, not a string"),
        ({"hooks": {"Stop": [{"hooks": [{"type": "shell", "command": "x"}]}]}}, 'type is "shell", not one of command'),
        ({"hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}}, "command is missing"),
        ({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": "1"}]}]}}, 'timeout is "1"'),
        ({"hooks": {"Stop": [{"matcher": {}, "hooks": []}]}}, "matcher is an object"),
        ({"hooks": {"Stop": [{"matcher": None}, {"hooks": [{"type": "agent", "timeout": None}]}]}}, ""),
    ],
)
def test_a_file_that_codex_ignores_for_a_wrong_value_is_reported(project, change, place):
    """The real Codex (0.169.0) lists no hook for each of these files but the last one."""
    (project.home / ".codex").mkdir()
    (project.home / ".codex/hooks.json").write_text(json.dumps(change))
    done = install(project, "codex")
    assert done.returncode == bool(place), done.stderr
    assert place in done.stderr
    assert [place in finding["what"] for finding in findings(project, "settings")[0]] == [True] * bool(place)


def test_a_hook_whose_name_a_person_has_disabled_in_gemini_is_reported(project):
    (project.home / ".gemini").mkdir()
    path = project.home / ".gemini/settings.json"
    path.write_text(json.dumps({"hooksConfig": {"disabled": ["tailhook"]}}))
    done = install(project, "gemini")
    reason = 'hooksConfig.disabled has "tailhook", so Gemini CLI does not run that hook'
    assert (done.returncode, reason in done.stderr) == (1, True), done.stderr
    assert [finding["status"] for finding in findings(project, "off")[0]] == ["failure"]
    path.write_text(path.read_text().replace('["tailhook"]', '["another"]'))
    assert install(project, "gemini").returncode == 0
