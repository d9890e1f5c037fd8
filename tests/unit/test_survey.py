"""An administrator's settings may keep a host from running hooks."""

import json
import sys

import pytest

from tailhook.hosts import claude_code
from tailhook.install import hooks
from tailhook.install.hooks_file import hooks_file_of
from tailhook.install.survey import survey_host


@pytest.fixture
def managed(tmp_path, monkeypatch):
    """Return the folder of an administrator's settings; our hooks are in the user's and in the administrator's file."""
    folder = tmp_path / "managed"
    monkeypatch.setitem(claude_code.HOOKS_FILE, "managed_folders", {sys.platform: str(folder)})
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "user"))
    monkeypatch.chdir(tmp_path)
    text = hooks.with_hooks(hooks_file_of("claude-code"), "{}", ["idle"], "exec")
    for path in (tmp_path / "user" / "settings.json", folder / "managed-settings.json"):
        path.parent.mkdir()
        path.write_text(text)
    (folder / "managed-settings.d").mkdir()
    return folder


@pytest.mark.parametrize(
    ("settings", "runs"),
    [
        ({}, ["file", "managed"]),
        ({"10.json": {"allowManagedHooksOnly": True}}, ["managed"]),
        ({"10.json": {"strictPluginOnlyCustomization": ["hooks"]}}, ["managed"]),
        ({"10.json": {"strictPluginOnlyCustomization": ["agents"]}}, ["file", "managed"]),
        ({"10.json": {"disableAllHooks": True}}, []),
        ({"10.json": {"disableAllHooks": True}, "20.json": {"disableAllHooks": False}}, ["file", "managed"]),
        ({".10.json": {"disableAllHooks": True}, "10.txt": {"disableAllHooks": True}}, ["file", "managed"]),
    ],
)
def test_the_settings_of_an_administrator_keep_hooks_from_running(managed, settings, runs):
    for name, values in settings.items():
        (managed / "managed-settings.d" / name).write_text(json.dumps(values))
    survey = survey_host(hooks_file_of("claude-code"), ["idle"])
    running = [there for there in survey.installed if there.asks_stops and not survey.obstacles_of(there)]
    assert sorted(there.kind for there in running) == runs
