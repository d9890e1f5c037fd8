"""What Claude Code does with settings that are right, wrong or managed, and what `tailhook doctor` reports."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import ClaudeCode
from model import Model
from support.claude_settings import CASES, DROPPED, READ
from support.host import tailhook

MANAGED = Path("/etc/claude-code")
OURS = ("user", "project", "local")


def settings_with(values, scope, log):
    """Return settings with a Stop hook that notes that it ran."""
    hooks = {event: list(groups) for event, groups in values.get("hooks", {}).items()}
    marker = {"type": "command", "command": f"echo {scope} >> {log}"}
    hooks["Stop"] = [*hooks.get("Stop", []), {"hooks": [marker]}]
    return json.dumps({**values, "hooks": hooks})


def findings(claude, check, status="failure"):
    """Return what the doctor finds in one check."""
    done = tailhook("doctor", "--json", env=claude.env, cwd=claude.project)
    found = json.loads(done.stdout)["findings"]
    return [one["what"] for one in found if (one["check"], one["status"]) == (check, status)]


def test_the_doctor_knows_the_settings_that_the_host_ignores(claude, tmp_path):
    def compare(number, name):
        values, outcome = CASES[name]
        host = ClaudeCode(tmp_path / f"home{number}", tmp_path / f"project{number}")
        log = host.home / "log"
        host.tailhook("install", "--yes", "--cold", "--block-cap", "0")
        installed = json.loads(host.settings.read_text())
        merged = {**installed, **values, "hooks": {**installed["hooks"], **values.get("hooks", {})}}
        host.settings.write_text(settings_with(merged, "user", log))
        with Model("One.") as model:
            host.run(model)
        expected = (outcome != DROPPED, outcome == DROPPED, outcome not in (DROPPED, READ))
        found = (log.exists(), bool(findings(host, "settings")), bool(findings(host, "settings", "warning")))
        return name, found, expected

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(compare, range(len(CASES)), CASES))
    assert len(results) > 40
    assert [(name, found) for name, found, expected in results if found != expected] == []


# ---- settings of an administrator ----------------------------------------------------------------------------------


def own_etc(folder):
    """Return the argv before a program, to give it an /etc of its own, and the folder for /etc/claude-code there."""
    old, new = folder / "old", folder / "new"
    old.mkdir(parents=True)
    (new / MANAGED.name).mkdir(parents=True)
    for path in MANAGED.parent.iterdir():
        if path.name != MANAGED.name:
            (new / path.name).symlink_to(old / path.name)
    script = 'mount --bind /etc "$0/old" && mount --bind "$0/new" /etc && exec "$@"'
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", script, str(folder)], new / MANAGED.name


# The contents of the files, and the files whose hooks run.
MANAGED_CASES = {
    "allowManagedHooksOnly": ({"managed": {"allowManagedHooksOnly": True}}, ["managed"]),
    "disableAllHooks": ({"managed": {"disableAllHooks": True}}, []),
    "plugins only": ({"managed": {"strictPluginOnlyCustomization": True}}, ["managed"]),
    "hooks of plugins only": ({"managed": {"strictPluginOnlyCustomization": ["hooks"]}}, ["managed"]),
    "agents of plugins only": ({"managed": {"strictPluginOnlyCustomization": ["agents"]}}, ["managed", *OURS]),
    "a part": ({"part": {"allowManagedHooksOnly": True}}, ["managed"]),
    "a part that takes it back": (
        {"managed": {"allowManagedHooksOnly": True}, "part": {"allowManagedHooksOnly": False}},
        ["managed", *OURS],
    ),
    "the user's switch": ({"user": {"disableAllHooks": True}}, ["managed"]),
    "the user's switch, taken back": (
        {"user": {"disableAllHooks": True}, "local": {"disableAllHooks": False}},
        ["managed", *OURS],
    ),
    "the project's switch": (
        {"user": {"disableAllHooks": False}, "project": {"disableAllHooks": True}},
        ["managed"],
    ),
    "a switch that the administrator takes back": (
        {"managed": {"disableAllHooks": False}, "user": {"disableAllHooks": True}},
        ["managed", *OURS],
    ),
    "a user's own allowManagedHooksOnly": ({"user": {"allowManagedHooksOnly": True}}, ["managed", *OURS]),
}


@pytest.mark.parametrize("name", MANAGED_CASES)
def test_the_doctor_knows_what_keeps_hooks_from_running(claude, tmp_path, name):
    settings, runs = MANAGED_CASES[name]
    claude.wrapper, folder = own_etc(tmp_path / "etc")
    if subprocess.run([*claude.wrapper, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace can be made here")
    claude.tailhook("install", "--yes", "--cold", "--block-cap", "0")
    log = tmp_path / "log"
    for scope, path in (
        ("managed", folder / "managed-settings.json"),
        ("user", claude.settings),
        ("project", claude.project / ".claude" / "settings.json"),
        ("local", claude.project / ".claude" / "settings.local.json"),
    ):
        path.parent.mkdir(exist_ok=True)
        before = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(settings_with({**before, **settings.get(scope, {})}, scope, log))
    if "part" in settings:
        (folder / "managed-settings.d").mkdir()
        (folder / "managed-settings.d" / "10.json").write_text(json.dumps(settings["part"]))
    with Model("One.") as model:
        claude.run(model)
    ran = log.read_text().split() if log.exists() else []
    argv = [*claude.wrapper, sys.executable, "-m", "tailhook", "doctor", "--json"]
    done = subprocess.run(argv, env=claude.env, cwd=claude.project, capture_output=True, text=True, check=False)
    failures = [one["what"] for one in json.loads(done.stdout)["findings"] if one["status"] == "failure"]
    assert sorted(ran) == sorted(runs)
    assert (len(failures), done.returncode) == (("user" not in runs), ("user" not in runs)), failures
