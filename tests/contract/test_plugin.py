"""The host's plugin: its files agree with the package, and its launcher finds the tailhook that is installed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.host import Stop, run_on_payload

import tailhook
from tailhook.install.hooks import find_ours, values_of, with_hooks
from tailhook.install.hooks_file import hooks_file_of

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "plugin"
LAUNCHER = PLUGIN / "bin" / "tailhook-hook"
FLAGS = ("--exit", "0", "--announce")
COMMANDS = ("loop", "memory", "ralph", "triage")

pytestmark = pytest.mark.skipif(not PLUGIN.exists(), reason="the plugin is in the source tree")


@pytest.fixture
def scripts(tmp_path) -> Path:
    """Return an empty folder that is on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


@pytest.fixture
def command(scripts):
    """Write a command `tailhook` into a folder; it notes each call."""

    def make(folder: Path = scripts) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        script, calls = folder / "tailhook", folder.parent / "calls"
        script.write_text(f'#!/bin/sh\necho "$1" >>"{calls}"\nexec "{sys.executable}" -m tailhook "$@"\n')
        script.chmod(0o755)
        return calls

    return make


@pytest.fixture
def launch(project, scripts, tmp_path):
    """Run the launcher on a stop, like the host."""
    project.env |= {"PATH": f"{scripts}:/usr/bin:/bin", "CLAUDE_PLUGIN_DATA": str(tmp_path / "data" / "tailhook")}

    def run(said: str = "Hm.", **env: str) -> Stop:
        payload = json.dumps(project.payload(last_assistant_message=said)).encode()
        argv = ["sh", LAUNCHER, *FLAGS]
        done = run_on_payload(argv, payload, env={**project.env, **env}, cwd=project.folder, text=True)
        return Stop(done.returncode, done.stdout, done.stderr)

    return run


# ---- the launcher ------------------------------------------------------------


def test_the_hook_of_the_installed_tailhook_answers(project, command, launch):
    command()
    project.loop()
    stop = launch()
    assert (stop.exit_code, stop.answer["decision"], stop.stderr) == (0, "block", "")
    assert "COMPLETE" in launch("<loop-done>COMPLETE</loop-done>").answer["systemMessage"]
    assert launch().allowed


def test_the_fast_form_is_asked_for_once(project, command, launch):
    calls = command()
    project.loop()
    for _ in range(3):
        assert launch().answer["decision"] == "block"
    assert calls.read_text() == "hook-command\n"


def test_a_tailhook_that_moved_is_found_again(project, command, launch, scripts):
    calls = command()
    project.loop()
    launch()
    known = Path(project.env["CLAUDE_PLUGIN_DATA"]) / "hook-command"
    found, python, entry = known.read_text().splitlines()
    for broken in (
        (found, "/nowhere/python", entry),
        (found, python, "/nowhere/entry.py"),
        ("/other", python, entry),
        (),
    ):
        known.write_text("".join(f"{line}\n" for line in broken))
        assert launch().answer["decision"] == "block"
        assert known.read_text().splitlines() == [found, python, entry]
    assert calls.read_text() == "hook-command\n" * 5


@pytest.mark.parametrize("data", ["", "/proc/nowhere"])
def test_without_a_folder_to_remember_in_the_command_itself_answers(project, command, launch, data):
    command()
    project.loop()
    stop = launch(CLAUDE_PLUGIN_DATA=data)
    assert (stop.exit_code, stop.answer["decision"]) == (0, "block")


def test_the_users_own_scripts_are_looked_at_too(project, command, launch):
    command(project.home / ".local" / "bin")
    project.loop()
    assert launch().answer["decision"] == "block"


def test_a_package_whose_path_json_escapes_is_run_all_the_same(project, command, launch, tmp_path):
    odd = tmp_path / 'a "quoted" föhn'
    odd.mkdir()
    (odd / "tailhook").symlink_to(Path(tailhook.__file__).parent)
    command()
    project.loop()
    assert launch(PYTHONPATH=str(odd)).answer["decision"] == "block"


def test_a_missing_tailhook_is_reported_plainly_and_traps_no_agent(project, launch):
    project.loop()
    stop = launch()
    assert stop.exit_code == 0
    assert set(stop.answer) == {"systemMessage"}
    for words in (stop.answer["systemMessage"], stop.stderr):
        assert "tailhook is not installed" in words
        assert "run this in a clone of its repository: pipx install . " in words  # it is not on PyPI


# ---- the files ---------------------------------------------------------------


@pytest.mark.parametrize("page", sorted((PLUGIN / "commands").glob("*.md")), ids=lambda page: page.stem)
def test_a_command_of_the_plugin_explains_how_to_install_tailhook(page):
    ways = [line for line in page.read_text().splitlines() if "install" in line]
    assert ways == [
        "If the command is not found, tell the user to run `pipx install .` in a clone of tailhook's repository."
    ]


def test_the_plugin_has_the_hooks_that_install_writes():
    plugin = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())
    launched = {event: group["hooks"] for event, (group,) in plugin["hooks"].items()}
    claude_code = hooks_file_of("claude-code")
    for hook in find_ours(claude_code, with_hooks(claude_code, "{}", None, "exec")):
        (entry,) = launched.pop(hook.event)
        named = ["--event", hook.event] if hook.event == claude_code.prompt_event else []  # for the launcher
        assert entry["args"] == ["${CLAUDE_PLUGIN_ROOT}/bin/tailhook-hook", *named, *FLAGS]
        assert {name: entry.get(name) for name in ("type", "timeout", "statusMessage")} == {
            name: hook.fields.get(name) for name in ("type", "timeout", "statusMessage")
        }
    assert launched == {}
    assert "compact" in plugin["hooks"]["SessionStart"][0]["matcher"].split("|")
    assert values_of(claude_code, json.dumps({"hooks": plugin["hooks"]}))


def test_the_manifest_and_the_marketplace_name_the_plugin():
    manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())
    assert (manifest["name"], manifest["version"]) == ("tailhook", tailhook.__version__)
    market = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text())
    (entry,) = market["plugins"]
    assert entry["name"] == manifest["name"]
    assert (ROOT / entry["source"]).resolve() == PLUGIN
    assert os.access(LAUNCHER, os.X_OK)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_slash_command_may_run_its_command_and_no_other(name):
    head, body = re.fullmatch(
        r"---\n(.*?)\n---\n(.*)", (PLUGIN / "commands" / f"{name}.md").read_text(), re.DOTALL
    ).groups()
    assert f"allowed-tools: Bash(tailhook {name}:*)" in head
    assert head.startswith("description: ")
    assert set(re.findall(r"tailhook (\w+) \w", body)) <= {name}
    assert f"`tailhook {name} " in body


@pytest.mark.parametrize("name", ["loop", "ralph"])
def test_a_slash_command_names_each_option_of_start_in_the_order_of_its_help(project, name):
    usage = project.tailhook(name, "start", "--help").stdout.partition("usage: ")[2].partition("\n\n")[0]
    options = re.findall(r"\[?(--[a-z-]+(?: [A-Z]+| {[a-z,]+})?)\]?", " ".join(usage.split()))
    of_users = [option for option in options if option not in ("--prompt-file F", "--json")]
    body = (PLUGIN / "commands" / f"{name}.md").read_text()
    named = re.findall("`(--[^`]+)`", body.partition("They are ")[2].partition(";")[0])
    assert named == [re.sub("{(.*)}", lambda values: values[1].replace(",", "|"), option) for option in of_users]
    assert len(named) > 5


@pytest.mark.parametrize("name", ["loop", "ralph"])
def test_the_start_that_a_slash_command_shows_works(project, command, scripts, name):
    body = (PLUGIN / "commands" / f"{name}.md").read_text()
    (start,) = re.findall(r"```sh\n(.*?)```", body, re.DOTALL)
    command()
    project.env["PATH"] = f"{scripts}:/usr/bin:/bin"
    if project.tailhook(name, "--help").returncode:
        pytest.skip(f"tailhook {name} is not in this build")
    script = re.sub(r"(?m)^  ", "", start).replace("the goal", 'Don\'t `touch` "$HOME".')
    done = subprocess.run(
        ["sh", "-c", script], env=project.env, cwd=project.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    status = project.tailhook(name, "status").stdout
    assert "20" in status
    assert name == "ralph" or 'Don\'t `touch` "$HOME".' in status


def test_the_skill_that_memorys_report_names_is_in_the_plugin():
    (name,) = re.findall(r"Use the (\S+) skill", (ROOT / "src/tailhook/machines/memory.py").read_text())
    head, about, body = (PLUGIN / "skills" / name / "SKILL.md").read_text().split("---\n", 2)
    assert head == ""
    assert about.startswith(f"name: {name}\ndescription: ")
    assert "you may stop" in body
