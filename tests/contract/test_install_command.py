"""`tailhook install` and `tailhook uninstall`, as processes on real files."""

import json
import os
import re
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support import host

import tailhook
from tailhook.install.command import argv_of, client_of
from tailhook.install.settings import settings_lock
from tailhook.stores.atomic import MAX_READ_FILE_BYTES, stamp_of

CAP = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
THEIRS = (
    '{\n\t"permissions" : {"allow": ["Bash(ls:*)"]},\n\t"hooks": {\n\t\t"Stop": '
    '[{"hooks": [{"type": "command", "command": "make stop"}]}]\n\t},\n\t"model": "\\u006fpus"\n}'
)


@pytest.fixture
def settings(project) -> Path:
    """Return the path of the user's settings file, which does not exist."""
    return project.home / ".claude" / "settings.json"


@pytest.fixture
def written(settings):
    """Write the user's settings."""

    def write(text: str) -> bytes:
        settings.parent.mkdir(exist_ok=True)
        settings.write_bytes(text.encode())
        return settings.read_bytes()

    return write


def install(project, *words, **env):
    return project.tailhook("install", "--yes", *words, **env)


def uninstall(project, *words, **env):
    return project.tailhook("uninstall", "--yes", *words, **env)


def run_installed(project, path, event="Stop", **fields):
    """Run the hook of a settings file as the host would."""
    (hook,) = [hook for group in json.loads(path.read_text())["hooks"][event] for hook in group["hooks"]]
    command = [hook["command"], *hook["args"]] if "args" in hook else ["/bin/sh", "-c", hook["command"]]
    payload = project.payload(hook_event_name=event, **fields)
    return subprocess.run(
        command,
        input=json.dumps(payload),
        env=project.env,
        cwd=project.folder,
        capture_output=True,
        text=True,
        check=False,
    )


# ---- what is written ---------------------------------------------------------


@pytest.mark.parametrize("form", ["exec", "shell"])
def test_what_was_installed_into_an_empty_home_answers_a_stop_and_a_compaction(project, settings, form):
    assert install(project, "--form", form).returncode == 0
    project.loop()
    done = run_installed(project, settings, last_assistant_message="Hm.")
    assert done.returncode == 0
    assert json.loads(done.stdout)["decision"] == "block"
    reported = run_installed(project, settings, "SessionStart", source="compact")
    assert "A loop is running" in json.loads(reported.stdout)["hookSpecificOutput"]["additionalContext"]
    ended = run_installed(project, settings, last_assistant_message="<loop-done>COMPLETE</loop-done>")
    assert "COMPLETE" in json.loads(ended.stdout)["systemMessage"]


@pytest.mark.parametrize(
    ("scope", "path"),
    [
        ("user", "home/.claude/settings.json"),
        ("project", "project/.claude/settings.json"),
        ("local", "project/.claude/settings.local.json"),
    ],
)
def test_each_scope_has_its_file(project, tmp_path, scope, path):
    assert install(project, "--scope", scope).returncode == 0
    assert json.loads((tmp_path / path).read_text())["hooks"]["Stop"]
    assert uninstall(project, "--scope", scope).returncode == 0
    assert not (tmp_path / path).parent.exists()


def test_the_projects_file_is_at_its_root_wherever_the_command_runs(project):
    below = project.folder / "a" / "b"
    below.mkdir(parents=True)
    project.folder, root = below, project.folder
    assert install(project, "--scope", "project").returncode == 0
    assert (root / ".claude" / "settings.json").exists()


def test_the_hosts_own_folder_counts_when_it_is_named(project, tmp_path, settings):
    assert install(project, CLAUDE_CONFIG_DIR=str(tmp_path / "elsewhere")).returncode == 0
    assert (tmp_path / "elsewhere" / "settings.json").exists()
    assert not settings.exists()


def test_the_change_is_shown_before_it_is_done(project, settings, written):
    written(THEIRS)
    shown = install(project).stdout
    assert str(settings) in shown
    gone = [line for line in shown.splitlines() if line.startswith("-")]
    assert gone == ['-        "Stop": [{"hooks": [{"type": "command", "command": "make stop"}]}]']
    assert '"--announce"' in shown


def machines_in(settings):
    """Return the machines that the argv names between the entry file and the flags."""
    args = json.loads(settings.read_text())["hooks"]["Stop"][-1]["hooks"][0]["args"]
    return args[3 : args.index("--exit")]


def test_machines_are_added_and_left_out_from_what_is_there(project, settings):
    install(project)
    assert machines_in(settings) == []  # the configuration lists them
    install(project, "--with", "memory")
    assert machines_in(settings) == ["idle,ralph,triage,memory"]
    install(project, "--without", "ralph,triage")
    assert machines_in(settings) == ["idle,memory"]
    assert "Nothing to change" in install(project).stdout
    assert machines_in(settings) == ["idle,memory"]


def test_the_configured_machines_are_what_others_are_added_to(project, settings):
    folder = project.home / ".config" / "tailhook"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"hook": {"machines": ["triage"]}}')
    install(project, "--with", "memory")
    assert machines_in(settings) == ["triage,memory"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--with", "nonsense"], 2),
        (["--scope", "world"], 2),
        (["--form", "poem"], 2),
        (["--block-cap", "-1"], 2),
        (["--block-cap", "many"], 2),
        (["--with", "memory", "--without", "memory"], 1),
        (["--without", "idle,ralph,triage"], 1),
    ],
)
def test_what_cannot_be_asked_for_changes_nothing(project, settings, words, code):
    done = install(project, *words)
    assert (done.returncode, settings.exists()) == (code, False)
    assert done.stderr.strip()


def test_the_entries_can_be_printed_alone(project, settings, written):
    before = written(THEIRS)
    printed = json.loads(project.tailhook("install", "--print", "--with", "memory", "--block-cap", "0").stdout)
    assert set(printed) == {"hooks", "env"}
    assert "--announce" in printed["hooks"]["Stop"][0]["hooks"][0]["args"]
    assert settings.read_bytes() == before


def test_what_was_printed_in_an_empty_home_runs():
    with host.short_folder() as home:
        env = {"HOME": home, "TAILHOOK_NO_POOL": "1"}
        printed = json.loads(host.tailhook("install", "--print", env=env, cwd=Path(home)).stdout)
        hook = printed["hooks"]["Stop"][0]["hooks"][0]
        argv = [hook["command"], *hook["args"]]
        assert client_of(argv)
        env = {**host.ENVIRONMENT, **env}
        done = subprocess.run(argv, input="{}", env=env, cwd=home, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert not Path(home, ".claude").exists()


def test_the_hosts_limit_is_reported_until_it_is_set(project, settings):
    assert "--block-cap 0" in install(project).stdout
    done = install(project, "--block-cap", "0")
    assert "--block-cap 0" not in done.stdout.rpartition("\n@@")[2].rpartition("The hooks are in")[2]
    assert json.loads(settings.read_text())["env"] == {CAP: "0"}
    assert "Nothing to change" in install(project).stdout
    assert json.loads(settings.read_text())["env"] == {CAP: "0"}


# ---- once, and back ----------------------------------------------------------


@pytest.mark.parametrize("text", [THEIRS, "{}", '{"a":1}\n', "\ufeff{\r\n}\r\n", f'{{"env": {{"{CAP}": "3"}}}}'])
def test_a_second_install_changes_nothing_and_uninstall_leaves_every_byte_as_it_was(project, settings, written, text):
    before = written(text)
    settings.chmod(0o640)
    assert install(project, "--block-cap", "0").returncode == 0
    installed = settings.read_bytes()
    assert installed != before
    changed = settings.stat().st_mtime_ns
    assert "Nothing to change" in install(project, "--block-cap", "0").stdout
    assert (settings.read_bytes(), settings.stat().st_mtime_ns) == (installed, changed)
    assert "byte for byte" in uninstall(project).stdout
    assert settings.read_bytes() == before
    assert stat.S_IMODE(settings.stat().st_mode) == 0o640


def test_a_file_and_a_folder_that_were_made_are_gone_again(project, settings):
    install(project)
    assert settings.exists()
    assert uninstall(project).returncode == 0
    assert not settings.parent.exists()
    assert "Nothing to remove" in uninstall(project).stdout


def test_a_folder_that_came_to_hold_something_else_stays(project, settings):
    install(project)
    (settings.parent / "notes.md").write_text("mine")
    uninstall(project)
    assert os.listdir(settings.parent) == ["notes.md"]


def test_several_installs_are_undone_as_one(project, settings, written):
    before = written(THEIRS)
    install(project)
    install(project, "--with", "memory", "--form", "shell")
    install(project, "--without", "idle", "--block-cap", "20")
    uninstall(project)
    assert settings.read_bytes() == before


def test_what_a_person_wrote_meanwhile_stays(project, settings, written):
    before = written(THEIRS)
    install(project, "--block-cap", "0")
    edit = ('"model": "\\u006fpus"', '"model": "haiku" ,  "new": [1.0]')
    settings.write_text(settings.read_text().replace(*edit))
    assert uninstall(project).returncode == 0
    assert settings.read_text() == before.decode().replace(*edit)


def test_an_install_after_a_persons_edit_is_undone_to_that_edit(project, settings, written):
    before = written(THEIRS)
    install(project)
    edit = ('"permissions" : ', '"theme":"dark", "permissions" : ')
    settings.write_text(settings.read_text().replace(*edit))
    install(project, "--with", "memory")
    assert "byte for byte" in uninstall(project).stdout
    assert settings.read_text() == before.decode().replace(*edit)


def test_hooks_without_a_receipt_are_taken_out_all_the_same(project, settings, written):
    before = written(THEIRS)
    install(project)
    for path in (project.home / ".local/state/tailhook/settings").iterdir():
        path.unlink()
    assert uninstall(project).returncode == 0
    assert settings.read_bytes() == before


def test_a_process_that_waits_for_a_removed_lock_file_locks_the_next_one(project, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(project.home / "state"))
    first, second = (settings_lock("/h/settings.json") for _ in range(2))
    with ThreadPoolExecutor(1) as thread:
        with first:
            waiting = thread.submit(second.__enter__)
            time.sleep(0.1)
        waiting.result(10)
    assert os.path.samestat(Path(second.path).stat(), os.fstat(second.fd))
    second.__exit__()
    assert not Path(second.path).exists()


@pytest.mark.parametrize("text", [THEIRS, None])
def test_uninstall_completes_one_that_was_killed_before_it_forgot_the_file(project, settings, written, text):
    kept = project.home / ".local/state/tailhook/settings"
    before = text and written(text)
    install(project)
    (receipt,) = (path for path in kept.iterdir() if path.suffix != ".backup")
    data, installed = receipt.read_bytes(), settings.read_bytes()
    uninstall(project)
    settings.parent.mkdir(exist_ok=True)
    kept.mkdir(parents=True)
    receipt.write_bytes(data)
    receipt.with_name(f"{receipt.name}.backup").write_bytes(installed)
    assert "Nothing to remove" in uninstall(project).stdout
    assert not kept.parent.exists()
    assert (settings.read_bytes() if settings.parent.exists() else None) == before


def test_uninstall_keeps_the_backup_of_a_file_that_hooks_were_taken_out_of_by_hand(project, settings, written):
    before = written(THEIRS)
    path = Path(install(project).stdout.rpartition("Backup of the old file: ")[2].splitlines()[0])
    settings.write_text(edited := THEIRS.replace("make stop", "make end"))
    assert "Nothing to remove" in uninstall(project).stdout
    assert (path.read_bytes(), settings.read_text()) == (before, edited)
    assert os.listdir(path.parent) == [path.name]


def test_the_file_as_it_was_is_kept_where_only_its_owner_reads_it(project, written):
    before = written(THEIRS)
    path = Path(install(project).stdout.rpartition("Backup of the old file: ")[2].splitlines()[0])
    assert path.read_bytes() == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# ---- files that are not plain ------------------------------------------------


def test_a_link_stays_a_link_and_its_target_is_edited(project, settings, tmp_path):
    target = tmp_path / "dotfiles" / "claude.json"
    target.parent.mkdir()
    target.write_text(THEIRS)
    settings.parent.mkdir()
    settings.symlink_to("../../dotfiles/claude.json")
    shown = install(project).stdout
    assert str(target) in shown
    assert settings.is_symlink()
    assert json.loads(target.read_text())["hooks"]["SessionStart"]
    uninstall(project)
    assert (settings.is_symlink(), target.read_text()) == (True, THEIRS)


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"", "line 1, column 1"),
        (b'{\n  "a": 1,\n  // mine\n}', "line 3, column 3"),
        (b'{"a": 1,}', "line 1, column 9"),
        (b'{"a": "\xff"}', "column 8"),
        (b'\xef\xbb\xbf{"\xc3\xbc": x}', "line 1, column 7"),
        (b"[]", "not a JSON object"),
        (b'{"hooks": []}', '"hooks" is not an object'),
        (b'{"hooks": {"Stop": {}}}', '"Stop"'),
        (b"{" * 100_000, "line 1"),
    ],
)
@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_settings_that_cannot_be_read_are_left_untouched(project, settings, data, where, command):
    settings.parent.mkdir()
    settings.write_bytes(data)
    done = project.tailhook(command, "--yes")
    assert (done.returncode, settings.read_bytes()) == (1, data)
    assert where in done.stderr
    assert done.stderr.count("\n") == 1
    assert os.listdir(settings.parent) == ["settings.json"]


def make_link_to_itself(path):
    path.symlink_to(path)


def make_large_file(path):
    path.touch()
    os.truncate(path, MAX_READ_FILE_BYTES + 1)


@pytest.mark.parametrize("command", ["install", "uninstall", "doctor"])
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (Path.mkdir, "{path} is a directory."),
        (os.mkfifo, "{path}: invalid JSON"),
        (make_link_to_itself, "{path}: Too many levels of symbolic links"),
        (make_large_file, "{path}: the file is larger than 16 MiB"),
    ],
)
def test_settings_that_are_not_an_ordinary_file_are_named_and_left_alone(project, settings, command, make, reason):
    settings.parent.mkdir()
    make(settings)
    before = stamp_of(settings.lstat())
    done = project.tailhook(command, *([] if command == "doctor" else ["--yes"]))
    assert done.returncode == 1
    assert reason.format(path=settings) in (done.stdout if command == "doctor" else done.stderr)
    assert "Errno" not in done.stdout + done.stderr
    assert stamp_of(settings.lstat()) == before


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_failed_write_names_the_file(project, settings, written, command):
    """A limit of 0 bytes stands in for a full disk: both make `write` fail, which knows no path."""
    written(THEIRS)
    if command == "uninstall":
        assert install(project).returncode == 0
    before = settings.read_bytes()
    code = "import resource, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); runpy.run_module('tailhook')"
    done = subprocess.run(
        [sys.executable, "-c", code, command, "--yes"],
        env=project.env,
        cwd=project.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, settings.read_bytes()) == (1, before)
    assert re.fullmatch(r"tailhook: /\S+\.backup: File too large\n", done.stderr)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_reported(project, settings, written):
    before = written(THEIRS)
    settings.parent.chmod(0o500)
    done = install(project)
    settings.parent.chmod(0o700)
    assert (done.returncode, settings.read_bytes()) == (1, before)
    assert "Traceback" not in done.stderr


def test_without_a_place_for_the_backup_nothing_is_changed(project, settings, written):
    before = written(THEIRS)
    (project.home / ".local").write_text("in the way")
    done = install(project)
    assert (done.returncode, settings.read_bytes()) == (1, before)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("form", ["exec", "shell"])
def test_a_path_with_spaces_and_quotes_runs_in_both_forms(project, settings, tmp_path, form):
    odd = tmp_path / 'it\'s a "folder" $HOME'
    odd.mkdir()
    (odd / "tailhook").symlink_to(Path(tailhook.__file__).parent)
    done = project.tailhook("install", "--yes", "--form", form, PYTHONPATH=str(odd))
    assert done.returncode == 0
    (hook,) = json.loads(settings.read_text())["hooks"]["Stop"][0]["hooks"]
    assert f"{odd}/tailhook/hook/entry.py" in argv_of(hook)
    project.loop()
    done = run_installed(project, settings, last_assistant_message="Hm.")
    assert json.loads(done.stdout)["decision"] == "block", done.stderr


def test_many_installs_at_once_are_one(project, settings, written):
    before = written(THEIRS)
    with ThreadPoolExecutor(8) as pool:
        codes = [done.returncode for done in pool.map(lambda _: install(project), range(8))]
    assert codes == [0] * 8
    events = json.loads(settings.read_text())["hooks"]
    assert (len(events["Stop"]), len(events["SessionStart"])) == (2, 1)
    uninstall(project)
    assert settings.read_bytes() == before


# ---- the question ------------------------------------------------------------


def answered(project, answer, *words):
    """Run the command at a terminal, and type an answer."""
    ours, theirs = os.openpty()
    os.write(ours, answer)
    done = subprocess.run(
        [sys.executable, "-m", "tailhook", *words],
        stdin=theirs,
        env=project.env,
        cwd=project.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    os.close(ours)
    os.close(theirs)
    return done


@pytest.mark.parametrize(
    ("answer", "written_to"),
    [(b"y\n", True), (b"Yes\n", True), (b"\n", False), (b"n\n", False), (b"\x04", False)],
)
def test_a_person_is_asked(project, settings, answer, written_to):
    done = answered(project, answer, "install")
    assert "[y/N]" in done.stdout
    assert (done.returncode, settings.exists()) == (0 if written_to else 1, written_to)


@pytest.fixture
def runtime(project):
    """Make the folder of the sockets one with a short path, without which there is no client."""
    with host.short_folder() as folder:
        project.env["XDG_RUNTIME_DIR"] = folder
        yield Path(folder)


def traces(project, runtime):
    """Return all files of tailhook."""
    return sorted([*(project.home / ".local/state").rglob("*"), *runtime.rglob("*")])


@pytest.mark.parametrize("refused", [b"n\n", b"\n"])
def test_an_install_that_is_refused_leaves_no_client(project, runtime, refused):
    assert "tailhook-hook" in answered(project, refused, "install").stdout
    assert traces(project, runtime) == []


def test_an_install_that_fails_leaves_no_client(project, settings, runtime):
    settings.parent.mkdir(parents=True)
    settings.write_text("{")
    assert install(project).returncode == 1
    assert traces(project, runtime) == []


def test_a_client_that_was_there_stays_if_an_install_is_refused(project, runtime):
    client = json.loads(project.tailhook("hook-command", "--warm").stdout)[0]
    assert answered(project, b"n\n", "install").returncode == 1
    assert Path(client).exists()


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_without_a_terminal_the_change_is_shown_and_not_done(project, settings, command):
    if command == "uninstall":
        install(project)
    before = settings.read_bytes() if settings.exists() else None
    done = project.tailhook(command)
    assert done.returncode == 1
    assert '"--announce"' in done.stdout
    assert "--yes" in done.stderr
    assert (settings.read_bytes() if settings.exists() else None) == before
