"""`loop start` and `status` print whether a hook will continue the loop."""

import itertools
import json
import subprocess
import sys

import pytest
from support.host import short_folder
from support.install import install, write_hooks
from support.oracles import jwz

from tailhook.install.command import ENTRY
from tailhook.pool.installation import CLIENT_FILE, real_interpreter

NOTHING = "nothing will continue this loop: "


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_starting_a_loop_without_an_installed_hook_prints_in_one_line_that_nothing_continues_it(project, group):
    started = project.tailhook(group, "start", "Go.")
    assert started.returncode == 0
    assert started.stderr == (
        f"tailhook: {NOTHING}no hook is installed here. To install the hooks:  tailhook install\n"
    )
    assert project.tailhook(group, "status").stdout.endswith(
        "At the next stop nothing happens: no hook is installed here. To install the hooks:  tailhook install\n"
    )


@pytest.fixture
def runtime(project):
    """Give the folder of the sockets a short path: without one there is no client."""
    with short_folder() as folder:
        project.env["XDG_RUNTIME_DIR"] = folder
        yield


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_a_hook_whose_client_was_removed_does_not_continue_a_loop(project, runtime, group):
    assert install(project, "--with", "ralph").returncode == 0
    (client,) = (project.home / ".local/state/tailhook/pool").glob(f"*/{CLIENT_FILE}")
    assert NOTHING not in project.tailhook(group, "start", "Go.").stderr
    settings = project.home / ".claude/settings.json"
    client.unlink()
    why = f"no hook runs here: {settings}: Stop: its client cannot be used: {client} is missing, or not executable. "
    advice = "To install it again:  tailhook install\n"
    again = "--replace" if group == "loop" else "--force"
    assert f"tailhook: {NOTHING}{why}{advice}" in project.tailhook(group, "start", again, "Go.").stderr
    assert project.tailhook(group, "status").stdout.endswith(f"At the next stop nothing happens: {why}{advice}")
    assert install(project, "--with", "ralph").returncode == 0
    assert NOTHING not in project.tailhook(group, "start", again, "Go.").stderr


@pytest.mark.parametrize(
    ("part", "kind"), [(ENTRY, "package"), (real_interpreter(), "interpreter")], ids=["package", "python"]
)
def test_a_hook_without_its_interpreter_or_its_package_does_not_continue_a_loop(project, loop, part, kind):
    settings = write_hooks(project)
    settings.write_text(settings.read_text().replace(part, f"/gone{ENTRY if kind == 'package' else '/python'}"))
    assert f"{NOTHING}no hook runs here: {settings}: Stop: its {kind} does not exist: " in loop("start", "Go.").stderr


@pytest.mark.parametrize("scope", ["user", "project", "local"])
def test_a_hook_in_the_settings_of_any_scope_continues_a_loop(project, loop, scope):
    text = write_hooks(project).read_text()
    (project.home / ".claude/settings.json").unlink()
    root = project.home if scope == "user" else project.folder
    (root / ".claude").mkdir(exist_ok=True)
    (root / ".claude" / f"settings{'.local' * (scope == 'local')}.json").write_text(text)
    assert NOTHING not in loop("start", "Go.").stderr
    assert "must continue" in loop("status").stdout


@pytest.mark.parametrize(("enabled", "continues"), [(True, True), (False, False)])
def test_an_enabled_plugin_continues_a_loop(project, loop, enabled, continues):
    (project.home / ".claude").mkdir()
    (project.home / ".claude/settings.json").write_text('{"enabledPlugins": {"tailhook@them": true}}')
    (project.folder / ".claude").mkdir()
    local = {"enabledPlugins": {"tailhook@them": enabled}}
    (project.folder / ".claude/settings.local.json").write_text(json.dumps(local))
    assert (NOTHING not in loop("start", "Go.").stderr) == continues


def test_a_hook_of_another_host_does_not_continue_a_loop_of_this_agent(project, loop):
    write_hooks(project, "codex")
    assert NOTHING not in loop("start", "Go.").stderr
    reported = loop("start", "--replace", "Go.", GEMINI_CLI="1").stderr
    assert reported.endswith("To install the hooks:  tailhook install --host gemini\n")


def test_hooks_that_do_not_ask_the_machine_do_not_continue_its_loop(project, loop):
    write_hooks(project, machines=["ralph"])
    assert loop("start", "Go.").stderr.endswith("asks idle. To add it:  tailhook install --with idle\n")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"disableAllHooks": True}, "disableAllHooks is true"),
        ({"permissions": {"allow": "Bash"}}, 'line 1: permissions.allow is "Bash", not a list'),
    ],
)
def test_hooks_that_the_host_does_not_run_do_not_continue_a_loop(project, loop, change, reason):
    path = write_hooks(project)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    reported = loop("start", "Go.").stderr
    assert reported.count("\n") == 1
    assert reported.startswith(f"tailhook: {NOTHING}no hook runs here: {path}")
    assert reason in reported
    assert "must continue: " not in loop("status").stdout


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ('{"hooks": {"Stop": [}}', "settings.json: invalid JSON: expected a value at line 1, column 21. Correct"),
        (
            '{"hooks": {"PreToolUse": [{"matcher": {}, "hooks": []}]}}',
            "line 1: hooks.PreToolUse[0].matcher is an object",
        ),
        ('{"disableAllHooks": true}', "settings.json: disableAllHooks is true"),
    ],
)
def test_the_advice_without_a_hook_names_what_would_keep_an_installed_hook_from_running(project, loop, settings, fault):
    (project.home / ".claude").mkdir()
    (project.home / ".claude/settings.json").write_text(settings)
    reported = loop("start", "Go.").stderr
    assert (reported.count("\n"), fault in reported) == (1, True), reported
    assert reported.endswith("Then:  tailhook install\n")


@pytest.mark.parametrize(
    ("env", "owner"), [({"CODEX_SESSION_ID": "codex"}, "codex"), ({"GEMINI_CLI": "1"}, "claim"), ({}, "claim")]
)
def test_a_loop_belongs_to_the_session_whose_agent_starts_it(project, loop, env, owner):
    loop("start", "Go.", **env)
    assert jwz.newest(project.folder)["stack"][0]["session_id"] == owner


@pytest.mark.skipif(sys.platform != "linux", reason="the environment of another process is known only on Linux")
@pytest.mark.parametrize(
    "agents", itertools.permutations(["CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID", "QWEN_CODE_SESSION_ID"], 2)
)
def test_a_loop_that_an_agent_in_another_ones_shell_starts_is_the_inner_ones(project, agents):
    """It has the inner agent's session and project."""
    folder = project.folder / "inner"
    (folder / ".git").mkdir(parents=True)
    argv = [sys.executable, "-m", "tailhook", "loop", "start", "Go."]
    for agent, session, project_folder in zip(reversed(agents), ("inner", "outer"), (".", "inner"), strict=True):
        names = f"{agent}={session}{' CLAUDE_PID=$$' if 'CLAUDE' in agent else ''}"
        shell = f'export {names}; cd {project_folder}; "$@"; exit $?'
        argv = ["bash", "-c", shell, session, *argv]
    subprocess.run(argv, env=project.env, cwd=project.folder, check=True)
    assert jwz.newest(folder)["stack"][0]["session_id"] == "inner"


@pytest.mark.parametrize("switch", ["TAILHOOK_DISABLE", "IDLE_LOOP_DISABLE", ".idle-disabled"])
def test_a_switch_that_is_off_is_named_at_the_start_and_in_the_status(project, loop, switch):
    write_hooks(project)
    env = {} if switch.startswith(".") else {switch: "1"}
    path = project.folder / ".idle-disabled"
    if not env:
        path.touch()
    what = f"{switch} is 1 in the environment. To use loops again, unset it"
    what = what if env else f"{path} is there. To use loops again, remove it"
    assert f"nothing will continue this loop: {what}" in loop("start", "--max", "5", "Go.", **env).stderr
    status = loop("status", **env).stdout
    assert f"At the next stop nothing happens: {what}" in status
    assert "must continue: iteration" not in status
    path.unlink(missing_ok=True)
    assert "At the next stop the agent must continue" in loop("status").stdout
