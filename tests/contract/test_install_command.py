"""`tailhook install` and `tailhook uninstall`, as processes: the files that they write, the way back, the questions."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support import host
from support.host import HANGS_S
from support.install import THEIRS, install, run_installed, uninstall
from support.terminal import Terminal

from tailhook.install.command import client_of
from tailhook.install.settings import settings_lock

CAP = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"


# ---- what is written ---------------------------------------------------------


@pytest.mark.parametrize("form", ["exec", "shell"])
def test_what_was_installed_into_an_empty_home_answers_a_stop_and_a_compaction(project, user_settings, form):
    assert install(project, "--form", form).returncode == 0
    project.loop()
    done = run_installed(project, user_settings, last_assistant_message="Hm.")
    assert done.returncode == 0
    assert json.loads(done.stdout)["decision"] == "block"
    reported = run_installed(project, user_settings, "SessionStart", source="compact")
    assert "A loop is running" in json.loads(reported.stdout)["hookSpecificOutput"]["additionalContext"]
    ended = run_installed(project, user_settings, last_assistant_message="<loop-done>COMPLETE</loop-done>")
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


def test_the_hosts_own_folder_counts_when_it_is_named(project, tmp_path, user_settings):
    assert install(project, CLAUDE_CONFIG_DIR=str(tmp_path / "elsewhere")).returncode == 0
    assert (tmp_path / "elsewhere" / "settings.json").exists()
    assert not user_settings.exists()


def test_the_change_is_shown_before_it_is_done(project, user_settings, write_settings):
    write_settings(THEIRS)
    shown = install(project).stdout
    assert str(user_settings) in shown
    gone = [line for line in shown.splitlines() if line.startswith("-")]
    assert gone == ['-        "Stop": [{"hooks": [{"type": "command", "command": "make stop"}]}]']
    assert '"--announce"' in shown


def machines_in(user_settings):
    """Return the machines that the argv names between the entry file and the flags."""
    args = json.loads(user_settings.read_text())["hooks"]["Stop"][-1]["hooks"][0]["args"]
    return args[3 : args.index("--exit")]


def test_machines_are_added_and_left_out_from_what_is_there(project, user_settings):
    install(project)
    assert machines_in(user_settings) == []  # the configuration lists them
    install(project, "--with", "memory")
    assert machines_in(user_settings) == ["idle,ralph,triage,memory"]
    install(project, "--without", "ralph,triage")
    assert machines_in(user_settings) == ["idle,memory"]
    assert "Nothing to change" in install(project).stdout
    assert machines_in(user_settings) == ["idle,memory"]


def test_the_configured_machines_are_what_others_are_added_to(project, user_settings):
    folder = project.home / ".config" / "tailhook"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"hook": {"machines": ["triage"]}}')
    install(project, "--with", "memory")
    assert machines_in(user_settings) == ["triage,memory"]


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
def test_what_cannot_be_asked_for_changes_nothing(project, user_settings, words, code):
    done = install(project, *words)
    assert (done.returncode, user_settings.exists()) == (code, False)
    assert done.stderr.strip()


def test_the_entries_can_be_printed_alone(project, user_settings, write_settings):
    before = write_settings(THEIRS)
    printed = json.loads(project.tailhook("install", "--print", "--with", "memory", "--block-cap", "0").stdout)
    assert set(printed) == {"hooks", "env"}
    assert "--announce" in printed["hooks"]["Stop"][0]["hooks"][0]["args"]
    assert user_settings.read_bytes() == before


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


def test_the_hosts_limit_is_reported_until_it_is_set(project, user_settings):
    assert "--block-cap 0" in install(project).stdout
    done = install(project, "--block-cap", "0")
    assert "--block-cap 0" not in done.stdout.rpartition("\n@@")[2].rpartition("The hooks are in")[2]
    assert json.loads(user_settings.read_text())["env"] == {CAP: "0"}
    assert "Nothing to change" in install(project).stdout
    assert json.loads(user_settings.read_text())["env"] == {CAP: "0"}


def test_a_limit_that_another_file_of_the_host_sets_is_not_reported(project, user_settings):
    install(project, "--block-cap", "0")
    assert "--block-cap 0" not in install(project, "--scope", "local", "--with", "gate").stdout
    user_settings.unlink()
    install(project, "--scope", "local", "--block-cap", "0")
    assert "--block-cap 0" in install(project).stdout, "other projects have the host's limit"


def test_a_loop_of_which_two_hooks_would_count_each_stop_is_warned_of(project, user_settings):
    install(project)
    install(project, "--scope", "project", "--with", "gate")
    started = project.tailhook("loop", "start", "--max", "5", "Go.")
    assert f"each stop counts 2 times, because 2 hooks ask idle: {user_settings}: Stop, " in started.stderr
    project.tailhook("uninstall", "--yes", "--scope", "project")
    assert "times" not in project.tailhook("loop", "start", "--replace", "--max", "5", "Go.").stderr


def test_an_install_reports_how_agents_get_a_command_that_is_not_on_path(project, user_settings):
    program = Path(sys.executable).with_name("tailhook")
    done = install(project)
    assert "The command tailhook is not on PATH, so agents do not find it.\n" in done.stdout
    assert f"PATH:  mkdir -p ~/.local/bin && ln -s {program} ~/.local/bin/\n" in done.stdout
    (project.home / ".local" / "bin").mkdir(parents=True, exist_ok=True)
    assert f"PATH:  ln -s {program} ~/.local/bin/\n" in install(project).stdout
    project.env["PATH"] += f":{program.parent}"
    assert "PATH" not in install(project).stdout


def test_a_form_that_starts_python_is_installed_with_a_warning_about_the_removal_of_the_package(project, user_settings):
    """Python has exit code 2 for a missing file, which hosts take for a block."""
    said = install(project, "--cold").stdout.rpartition("The hooks are in")[2]
    assert "Each event starts Python. Run `tailhook uninstall` before you remove the package" in said


# ---- once, and back ----------------------------------------------------------


@pytest.mark.parametrize("text", [THEIRS, "{}", '{"a":1}\n', "\ufeff{\r\n}\r\n", f'{{"env": {{"{CAP}": "3"}}}}'])
def test_a_second_install_changes_nothing_and_uninstall_leaves_every_byte_as_it_was(
    project, user_settings, write_settings, text
):
    before = write_settings(text)
    user_settings.chmod(0o640)
    assert install(project, "--block-cap", "0").returncode == 0
    installed = user_settings.read_bytes()
    assert installed != before
    changed = user_settings.stat().st_mtime_ns
    assert "Nothing to change" in install(project, "--block-cap", "0").stdout
    assert (user_settings.read_bytes(), user_settings.stat().st_mtime_ns) == (installed, changed)
    assert "byte for byte" in uninstall(project).stdout
    assert user_settings.read_bytes() == before
    assert stat.S_IMODE(user_settings.stat().st_mode) == 0o640


def test_a_file_and_a_folder_that_were_made_are_gone_again(project, user_settings):
    install(project)
    assert user_settings.exists()
    assert uninstall(project).returncode == 0
    assert not user_settings.parent.exists()
    assert "Nothing to remove" in uninstall(project).stdout


def test_a_folder_that_came_to_hold_something_else_stays(project, user_settings):
    install(project)
    (user_settings.parent / "notes.md").write_text("mine")
    uninstall(project)
    assert os.listdir(user_settings.parent) == ["notes.md"]


def test_several_installs_are_undone_as_one(project, user_settings, write_settings):
    before = write_settings(THEIRS)
    install(project)
    install(project, "--with", "memory", "--form", "shell")
    install(project, "--without", "idle", "--block-cap", "20")
    uninstall(project)
    assert user_settings.read_bytes() == before


def test_what_a_person_wrote_meanwhile_stays(project, user_settings, write_settings):
    before = write_settings(THEIRS)
    install(project, "--block-cap", "0")
    edit = ('"model": "\\u006fpus"', '"model": "haiku" ,  "new": [1.0]')
    user_settings.write_text(user_settings.read_text().replace(*edit))
    assert uninstall(project).returncode == 0
    assert user_settings.read_text() == before.decode().replace(*edit)


def test_an_install_after_a_persons_edit_is_undone_to_that_edit(project, user_settings, write_settings):
    before = write_settings(THEIRS)
    install(project)
    edit = ('"permissions" : ', '"theme":"dark", "permissions" : ')
    user_settings.write_text(user_settings.read_text().replace(*edit))
    install(project, "--with", "memory")
    assert "byte for byte" in uninstall(project).stdout
    assert user_settings.read_text() == before.decode().replace(*edit)


def test_settings_that_a_person_removed_do_not_come_back(project, user_settings, write_settings):
    write_settings(THEIRS)
    install(project)
    user_settings.unlink()
    words = uninstall(project).stdout
    assert f"Nothing to remove: {user_settings} has no tailhook hooks.\n" in words
    assert not user_settings.exists()
    write_settings(THEIRS)
    install(project)
    user_settings.unlink()
    install(project)
    assert "was removed" in uninstall(project).stdout
    assert not user_settings.exists()


def test_hooks_without_a_receipt_are_taken_out_all_the_same(project, user_settings, write_settings):
    before = write_settings(THEIRS)
    install(project)
    for path in (project.home / ".local/state/tailhook/settings").iterdir():
        path.unlink()
    assert uninstall(project).returncode == 0
    assert user_settings.read_bytes() == before


def test_a_process_that_waits_for_a_removed_lock_file_locks_the_next_one(project, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(project.home / "state"))
    first, second = (settings_lock("/h/settings.json") for _ in range(2))
    with ThreadPoolExecutor(1) as thread:
        with first:
            waiting = thread.submit(second.__enter__)
            time.sleep(0.1)
        waiting.result(HANGS_S)
    assert os.path.samestat(Path(second.path).stat(), os.fstat(second.fd))
    second.__exit__()
    assert not Path(second.path).exists()


@pytest.mark.parametrize("text", [THEIRS, None])
def test_uninstall_completes_one_that_was_killed_before_it_forgot_the_file(
    project, user_settings, write_settings, text
):
    kept = project.home / ".local/state/tailhook/settings"
    before = text and write_settings(text)
    install(project)
    (receipt,) = (path for path in kept.iterdir() if path.suffix != ".backup")
    data, installed = receipt.read_bytes(), user_settings.read_bytes()
    uninstall(project)
    user_settings.parent.mkdir(exist_ok=True)
    kept.mkdir(parents=True)
    receipt.write_bytes(data)
    receipt.with_name(f"{receipt.name}.backup").write_bytes(installed)
    assert "Nothing to remove" in uninstall(project).stdout
    assert not kept.parent.exists()
    assert (user_settings.read_bytes() if user_settings.parent.exists() else None) == before


def test_uninstall_keeps_the_backup_of_a_file_that_hooks_were_taken_out_of_by_hand(
    project, user_settings, write_settings
):
    before = write_settings(THEIRS)
    path = Path(install(project).stdout.rpartition("Backup of the old file: ")[2].splitlines()[0])
    user_settings.write_text(edited := THEIRS.replace("make stop", "make end"))
    assert "Nothing to remove" in uninstall(project).stdout
    assert (path.read_bytes(), user_settings.read_text()) == (before, edited)
    assert os.listdir(path.parent) == [path.name]


def test_the_file_as_it_was_is_kept_where_only_its_owner_reads_it(project, write_settings):
    before = write_settings(THEIRS)
    path = Path(install(project).stdout.rpartition("Backup of the old file: ")[2].splitlines()[0])
    assert path.read_bytes() == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


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
        timeout=HANGS_S,
    )
    os.close(ours)
    os.close(theirs)
    return done


@pytest.mark.parametrize(
    ("answer", "written_to"),
    [(b"y\n", True), (b"Yes\n", True), (b"\n", False), (b"n\n", False), (b"\x04", False)],
)
def test_a_person_is_asked(project, user_settings, answer, written_to):
    done = answered(project, answer, "install")
    assert "[y/N]" in done.stdout
    assert (done.returncode, user_settings.exists()) == (0 if written_to else 1, written_to)


@pytest.fixture
def runtime(project):
    """Give the folder of the sockets a short path: without one there is no client."""
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_an_install_that_is_ended_while_it_asks_leaves_no_client(project, runtime, number):
    argv = [sys.executable, "-m", "tailhook", "install"]
    terminal = Terminal(argv, {**host.ENVIRONMENT, **project.env}, project.folder)
    terminal.until("Write these changes?")
    os.kill(terminal.pid, number)
    assert terminal.wait() == (1 if number == signal.SIGINT else 128 + number)
    assert traces(project, runtime) == []


def test_an_install_that_fails_leaves_no_client(project, user_settings, runtime):
    user_settings.parent.mkdir(parents=True)
    user_settings.write_text("{")
    assert install(project).returncode == 1
    assert traces(project, runtime) == []


def test_a_client_that_was_there_stays_if_an_install_is_refused(project, runtime):
    client = json.loads(project.tailhook("hook-command", "--warm").stdout)[0]
    assert answered(project, b"n\n", "install").returncode == 1
    assert Path(client).exists()


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_without_a_terminal_the_change_is_shown_and_not_done(project, user_settings, command):
    if command == "uninstall":
        install(project)
    before = user_settings.read_bytes() if user_settings.exists() else None
    done = project.tailhook(command)
    assert done.returncode == 1
    assert '"--announce"' in done.stdout
    assert "--yes" in done.stderr
    assert (user_settings.read_bytes() if user_settings.exists() else None) == before
