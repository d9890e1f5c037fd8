"""`tailhook install` and `tailhook uninstall` on files that are not plain: links, damage, failed writes, odd paths."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.install import THEIRS, install, run_installed, uninstall

import tailhook
from tailhook.install.command import argv_of
from tailhook.stores.atomic import MAX_READ_FILE_BYTES, stamp_of


def test_a_link_stays_a_link_and_its_target_is_edited(project, user_settings, tmp_path):
    target = tmp_path / "dotfiles" / "claude.json"
    target.parent.mkdir()
    target.write_text(THEIRS)
    user_settings.parent.mkdir()
    user_settings.symlink_to("../../dotfiles/claude.json")
    shown = install(project).stdout
    assert str(target) in shown
    assert user_settings.is_symlink()
    assert json.loads(target.read_text())["hooks"]["SessionStart"]
    uninstall(project)
    assert (user_settings.is_symlink(), target.read_text()) == (True, THEIRS)


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b'{\n  "a": 1,\n  // mine\n}', "line 3, column 3"),
        (b'{"a": 1,}', "line 1, column 9"),
        (b'{"a": "\xff"}', "column 8"),
        (b'\xef\xbb\xbf{"\xc3\xbc": x}', "line 1, column 7"),
        pytest.param(b"\xef", "line 1", id="half of a byte order mark"),
        (b"[]", "not a JSON object"),
        (b'{"hooks": []}', '"hooks" is not an object'),
        (b'{"hooks": {"Stop": {}}}', '"Stop"'),
        pytest.param(b"{" * 100_000, "line 1", id="deep"),
    ],
)
@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_settings_that_cannot_be_read_are_left_untouched(project, user_settings, data, where, command):
    user_settings.parent.mkdir()
    user_settings.write_bytes(data)
    done = project.tailhook(command, "--yes")
    assert (done.returncode, user_settings.read_bytes()) == (1, data)
    assert where in done.stderr
    assert done.stderr.count("\n") == 1
    assert os.listdir(user_settings.parent) == ["settings.json"]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (
            {"hooks": {"PreToolUse": [{"matcher": {"a": 1}, "hooks": []}]}},
            "line 3: hooks.PreToolUse[0].matcher is an object",
        ),
        ({"permissions": {"allow": "Bash"}}, 'line 2: permissions.allow is "Bash", not a list'),
        ({"disableAllHooks": True}, "disableAllHooks is true, so the host runs no hook"),
    ],
)
def test_an_install_after_which_no_hook_runs_prints_why_and_fails(project, user_settings, values, reason):
    user_settings.parent.mkdir()
    text = (
        json.dumps(values).replace('"permissions": {', '"permissions": {\n').replace('"hooks": {', '\n"hooks": {\n', 1)
    )
    user_settings.write_text(text)
    done = project.tailhook("install", "--yes")
    assert done.returncode == 1
    assert done.stderr.startswith(f"tailhook: no hook in {user_settings} will run:\n          {user_settings}")
    assert reason in done.stderr
    assert project.tailhook("uninstall", "--yes").returncode == 0
    assert user_settings.read_text() == text


@pytest.mark.parametrize("text", ["", " \n\n", "\ufeff\n"])
def test_an_empty_settings_file_has_no_settings_and_comes_back_as_it_was(project, user_settings, text):
    user_settings.parent.mkdir()
    user_settings.write_text(text)
    assert project.tailhook("doctor").stdout.startswith("failure  no tailhook hook is installed\n")
    assert project.tailhook("install", "--yes").returncode == 0
    assert "Stop" in json.loads(user_settings.read_text())["hooks"]
    assert project.tailhook("uninstall", "--yes").returncode == 0
    assert user_settings.read_text() == text


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_an_install_by_root_keeps_the_owner_and_the_group(project, user_settings):
    user_settings.parent.mkdir()
    user_settings.write_text("{}")
    os.chown(user_settings, 1234, 1235)
    user_settings.chmod(0o640)
    for command in ("install", "uninstall"):
        assert project.tailhook(command, "--yes").returncode == 0
        status = user_settings.stat()
        assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (1234, 1235, 0o640)


def test_another_name_of_the_file_is_reported_and_keeps_the_old_text(project, user_settings, tmp_path):
    user_settings.parent.mkdir()
    user_settings.write_text("{}")
    (tmp_path / "another").hardlink_to(user_settings)
    done = project.tailhook("install", "--yes")
    assert f"The old file has 1 other name (hard links) and stays as it was there; only {user_settings}" in done.stdout
    assert (tmp_path / "another").read_text() == "{}"
    assert "hard links" not in project.tailhook("uninstall", "--yes").stdout


def test_hooks_that_an_enabled_plugin_asks_already_are_not_installed_beside_it(project, user_settings):
    user_settings.parent.mkdir()
    text = '{"enabledPlugins": {"tailhook@them": true}}'
    user_settings.write_text(text)
    done = project.tailhook("install", "--yes", "--block-cap", "0")
    assert (done.returncode, user_settings.read_text()) == (1, text)
    assert "claude plugin uninstall tailhook@them" in done.stderr
    assert "asks idle, ralph, triage already, so each stop would count twice" in done.stderr
    assert project.tailhook("install", "--yes", "--with", "memory", "--without", "idle,ralph,triage").returncode == 0


def make_link_to_itself(path):
    path.symlink_to(path)


def make_large_file(path):
    path.touch()
    os.truncate(path, MAX_READ_FILE_BYTES + 1)


@pytest.mark.parametrize("command", ["install", "uninstall", "doctor"])
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (Path.mkdir, "{path} is a directory"),
        (os.mkfifo, "{path}: invalid JSON"),
        (make_link_to_itself, "{path}: Too many levels of symbolic links"),
        (make_large_file, "{path}: the file is larger than 16 MiB"),
    ],
)
def test_settings_that_are_not_an_ordinary_file_are_named_and_left_alone(project, user_settings, command, make, reason):
    user_settings.parent.mkdir()
    make(user_settings)
    before = stamp_of(user_settings.lstat())
    done = project.tailhook(command, *([] if command == "doctor" else ["--yes"]))
    assert done.returncode == 1
    assert reason.format(path=user_settings) in (done.stdout if command == "doctor" else done.stderr)
    assert "Errno" not in done.stdout + done.stderr
    assert stamp_of(user_settings.lstat()) == before


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_failed_write_names_the_file(project, user_settings, write_settings, command):
    """A limit of 0 bytes stands in for a full disk: both make `write` fail, and `write` knows no path."""
    write_settings(THEIRS)
    if command == "uninstall":
        assert install(project).returncode == 0
    before = user_settings.read_bytes()
    code = "import resource, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); runpy.run_module('tailhook')"
    done = subprocess.run(
        [sys.executable, "-c", code, command, "--yes"],
        env=project.env,
        cwd=project.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, user_settings.read_bytes()) == (1, before)
    assert re.fullmatch(r"tailhook: /\S+\.backup: File too large\n", done.stderr)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_reported(project, user_settings, write_settings):
    before = write_settings(THEIRS)
    user_settings.parent.chmod(0o500)
    done = install(project)
    user_settings.parent.chmod(0o700)
    assert (done.returncode, user_settings.read_bytes()) == (1, before)
    assert "Traceback" not in done.stderr


def test_without_a_place_for_the_backup_nothing_is_changed(project, user_settings, write_settings):
    before = write_settings(THEIRS)
    (project.home / ".local").write_text("in the way")
    done = install(project)
    assert (done.returncode, user_settings.read_bytes()) == (1, before)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("form", ["exec", "shell"])
def test_a_path_with_spaces_and_quotes_runs_in_both_forms(project, user_settings, tmp_path, form):
    odd = tmp_path / 'it\'s a "folder" $HOME'
    odd.mkdir()
    (odd / "tailhook").symlink_to(Path(tailhook.__file__).parent)
    done = project.tailhook("install", "--yes", "--form", form, PYTHONPATH=str(odd))
    assert done.returncode == 0
    (hook,) = json.loads(user_settings.read_text())["hooks"]["Stop"][0]["hooks"]
    assert f"{odd}/tailhook/hook/entry.py" in argv_of(hook)
    project.loop()
    done = run_installed(project, user_settings, last_assistant_message="Hm.")
    assert json.loads(done.stdout)["decision"] == "block", done.stderr


def test_many_installs_at_once_are_one(project, user_settings, write_settings):
    before = write_settings(THEIRS)
    with ThreadPoolExecutor(8) as pool:
        codes = [done.returncode for done in pool.map(lambda _: install(project), range(8))]
    assert codes == [0] * 8
    events = json.loads(user_settings.read_text())["hooks"]
    assert (len(events["Stop"]), len(events["SessionStart"])) == (2, 1)
    uninstall(project)
    assert user_settings.read_bytes() == before


@pytest.mark.parametrize(
    ("event", "member", "wrong"),
    [
        ("Stop", "timeout", "10"),
        ("Stop", "timeout", 0),
        ("Stop", "type", "shell"),
        ("SessionStart", "statusMessage", 3),
    ],
)
def test_a_value_of_our_own_entry_that_the_host_cannot_use_is_set_right(project, user_settings, event, member, wrong):
    install(project)
    good = user_settings.read_text()
    values = json.loads(good)
    (hook,) = values["hooks"][event][0]["hooks"]
    hook[member] = wrong
    user_settings.write_text(json.dumps(values))
    done = install(project)
    assert (done.returncode, json.loads(user_settings.read_text())) == (0, json.loads(good)), done.stderr


def test_a_longer_timeout_that_a_person_has_set_stays(project, user_settings):
    install(project)
    changed = user_settings.read_text().replace('"timeout": 10', '"timeout": 60.5')
    user_settings.write_text(changed)
    assert install(project).stdout.startswith("Nothing to change")
    assert user_settings.read_text() == changed


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_in_the_home_folder_of_a_user_leaves_nothing_there_and_names_sudo(project):
    os.chown(project.home, 1234, 1235)
    before = sorted(project.home.rglob("*"))
    done = project.tailhook("install", "--yes")
    assert done.returncode == 1
    assert "belongs to another user (uid 1234)" in done.stderr
    assert "If you used sudo, run the command without it." in done.stderr
    assert sorted(project.home.rglob("*")) == before
