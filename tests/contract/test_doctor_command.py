"""`tailhook doctor`: its findings. It changes nothing."""

import errno
import json
import os
import posix
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.host import ENVIRONMENT, HANGS_S, SANITIZER, frame, short_folder, tailhook
from support.pool import HAS_LOWER_PRIORITY, Pool, wait_until

from tailhook.doctor import checks
from tailhook.doctor.trial import Stage, Timed, time_both, try_hook
from tailhook.install.hooks import find_ours
from tailhook.install.hooks_file import hooks_file_of


def edit(path, change):
    """Change the values of a JSON file."""
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


def hook_of(values):
    return values["hooks"]["Stop"][0]["hooks"][0]


def test_all_is_well_after_an_install(project, settings):
    done = project.tailhook("doctor", "--json")
    facts = json.loads(done.stdout)
    assert (done.returncode, facts["well"]) == (0, True)
    hooks = [finding for finding in facts["findings"] if finding["check"] == "hook"]
    assert len(hooks) == 3
    for finding in hooks:
        assert finding["status"] == "ok"
        assert all(figure > 0 for figure in finding["figures"].values())
        assert finding["figures"]["ratio"] == finding["figures"]["median_ms"] / finding["figures"]["bare_ms"]
        shown = re.search(r"in ([\d.]+) ms, ([\d.]+) times bare Python \(([\d.]+) ms\)", finding["what"])
        time, ratio, bare = map(float, shown.groups())
        assert (time - 0.05) / (bare + 0.05) - 0.005 <= ratio <= (time + 0.05) / (bare - 0.05) + 0.005
    words = project.tailhook("doctor").stdout
    assert words.splitlines()[-1] == "No problems found."
    assert "times bare Python" in words


@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini", "cursor"])
def test_in_the_home_folder_one_file_of_two_scopes_counts_once(project, host):
    project.env["HOME"] = str(project.folder)
    assert project.tailhook("install", "--yes", "--host", host).returncode == 0
    done = project.tailhook("doctor")
    assert "asked 2 times" not in done.stdout
    assert done.returncode == 0, done.stdout


def test_looking_moves_no_loop_and_leaves_nothing_in_the_project(project, settings):
    state = project.loop()
    before = sorted(project.folder.rglob("*"))
    assert project.tailhook("doctor").returncode == 0
    assert sorted(project.folder.rglob("*")) == before
    assert project.stop("Hm.").state["stack"][0]["iter"] == state["stack"][0]["iter"] + 1


def test_the_last_line_counts_failures_and_warnings(project):
    assert project.tailhook("doctor").stdout.endswith("\nFound 1 failure.\n")  # no hook is installed
    broken = project.home / ".config" / "tailhook" / "config.json"
    broken.parent.mkdir(parents=True)
    broken.write_text('{"idle": {"unknown": 1}}')
    assert project.tailhook("doctor").stdout.endswith("\nFound 1 failure and 1 warning.\n")


@pytest.mark.parametrize(
    ("limit", "advice"), [("SLOW_RATIO", "Is the computer busy"), ("SLOW_START", "Python itself starts slowly")]
)
def test_a_slow_hook_is_a_warning(project, settings, limit, advice):
    slow = {f"tailhook.doctor.checks.{limit}": 0.0}
    done = tailhook("doctor", "--json", env=project.env, cwd=project.folder, **slow)
    hooks = [finding for finding in json.loads(done.stdout)["findings"] if finding["check"] == "hook"]
    assert [(finding["status"], finding["advice"].startswith(advice)) for finding in hooks] == [("warning", True)] * 3
    assert done.returncode == 0


def test_failures_come_first_and_each_file_is_named_once(project, settings):
    edit(settings, lambda values: values.update(disableAllHooks=True))
    edit(settings, lambda values: values["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "true"}]}))
    lines = project.tailhook("doctor").stdout.splitlines()
    assert lines[0] == f"failure  {settings}: disableAllHooks is true, so the host runs no hook"
    assert lines.count(str(settings)) == 1
    below = lines[lines.index(str(settings)) + 1 :]
    assert any(line.startswith("  ok       Stop: answers") for line in below)
    assert any(line.startswith("  note     another Stop hook runs too: true") for line in below)
    assert sum(str(settings) in line for line in lines[2:]) == 1


def test_before_an_install_it_leaves_no_folder(project):
    assert project.tailhook("doctor").returncode == 1
    assert not (project.home / ".local").exists()
    state = project.home / ".local" / "state"
    state.mkdir(mode=0o700, parents=True)
    assert project.tailhook("doctor").returncode == 1
    assert list(state.iterdir()) == []


def test_a_folder_that_an_install_has_just_made_stays(project):
    made = project.home / ".local/state/tailhook/settings"
    made.mkdir(parents=True, mode=0o700)
    project.tailhook("doctor")
    assert made.exists()


def test_nothing_installed_is_a_failure(examined):
    (finding,), code = examined("installed")
    assert (finding["status"], code) == ("failure", 1)
    assert "tailhook install" in finding["advice"]


def test_one_scope_can_be_looked_at(project, settings, examined):
    found, code = examined("installed", "--scope", "local")
    assert (len(found), code) == (1, 1)
    assert examined("installed", "--scope", "user") == ([], 0)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda hook: hook.update(command="/nowhere/python"), "interpreter does not exist"),
        (lambda hook: hook["args"].__setitem__(2, "/nowhere/tailhook/hook/entry.py"), "package does not exist"),
        (lambda hook: hook.update(command="/bin/false"), "cannot be imported"),
        (lambda hook: hook["args"].append("--event=PreToolUse"), None),
        (lambda hook: hook["args"].extend(["nonsense"]), "unknown arguments ignored: nonsense"),
    ],
)
def test_a_hook_that_does_not_run_is_a_failure(settings, examined, change, complaint):
    edit(settings, lambda values: change(hook_of(values)))
    found, code = examined("hook")
    assert (code == 1) is (complaint is not None)
    assert [complaint in finding["what"] for finding in found if complaint] == [True] * bool(complaint)


def test_an_interpreter_that_may_not_be_run_is_distinguished(settings, examined, tmp_path):
    (tmp_path / "python").write_text("")
    edit(settings, lambda values: hook_of(values).update(command=str(tmp_path / "python")))
    (finding,), code = examined("hook")
    assert "is not executable" in finding["what"]
    assert code == 1


def test_a_package_without_its_core_is_distinguished(settings, examined, tmp_path):
    package = tmp_path / "broken" / "tailhook"
    (package / "hook").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "hook" / "entry.py").touch()
    edit(settings, lambda values: hook_of(values)["args"].__setitem__(2, str(package / "hook" / "entry.py")))
    (finding,), _ = examined("hook")
    assert "-I -S" in finding["what"]
    assert "_core" in finding["what"]


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("exit 3", "exit code is 3"),
        ("echo not json", "not JSON"),
        ("echo lost >&2", "lost"),
        ("exit 0", "did not answer for a running loop"),
    ],
)
def test_a_hook_that_answers_wrongly_is_a_failure(settings, examined, tmp_path, script, complaint):
    """Another program in the place of the slow form's command."""
    program = tmp_path / "tailhook"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    hook = {"type": "command", "command": f"{program} hook idle"}
    edit(settings, lambda values: values["hooks"]["Stop"][0].update(hooks=[hook]))
    (finding,), code = examined("hook")
    assert complaint in finding["what"]
    assert code == 1


@pytest.mark.parametrize(
    ("error", "complaint"),
    [
        (FileNotFoundError(2, "No such file or directory", "/tailhook-hook"), "it does not start"),  # an uninstall
        (subprocess.TimeoutExpired("tailhook-hook", 30), "it did not end within 30 s"),
    ],
)
def test_a_hook_that_answers_once_and_then_no_more_is_a_failure(settings, monkeypatch, error, complaint):
    def fail(*_):
        raise error

    monkeypatch.setattr(Stage, "time", fail)
    file = hooks_file_of("claude-code")
    trial = try_hook(file, find_ours(file, settings.read_text())[0])
    assert trial.fault.startswith(f"it answered once, and then {complaint}")
    assert trial.advice


@pytest.mark.parametrize("other", ["project", "local"])
def test_the_same_machine_twice_is_a_failure(project, settings, examined, other):
    said = project.tailhook("install", "--yes", "--scope", other, "--with", "gate").stdout
    assert "Hooks of another file ask idle, ralph, triage, too, so each stop counts twice." in said
    assert f"To remove the hooks of {settings}:  tailhook uninstall\n" in said
    found, code = examined("twice")
    assert code == 1
    assert [finding["what"].split()[0] for finding in found] == ["idle", "ralph", "triage"]
    assert all(str(settings) in finding["what"] and "project" in finding["what"] for finding in found)
    command, scopes = re.search(r"tailhook (.*) SCOPE  \(SCOPE is one of (.*)\)$", found[0]["advice"]).groups()
    assert other in scopes.split(", ")
    assert project.tailhook(*command.split(), other, "--yes").returncode == 0
    assert examined("twice") == ([], 0)


def test_hooks_that_the_host_runs_once_are_not_asked_twice(project, settings, examined):
    """Claude Code runs hooks with the same command once."""
    assert "twice" not in project.tailhook("install", "--yes", "--scope", "project").stdout
    assert examined("twice") == ([], 0)


def test_hooks_of_a_clone_whose_client_is_elsewhere_are_a_failure_and_not_asked_twice(project, settings, examined):
    project.tailhook("install", "--yes", "--scope", "project")
    path = project.folder / ".claude" / "settings.json"
    edit(path, lambda values: hook_of(values).update(command="/elsewhere/tailhook/pool/0/tailhook-hook"))
    assert examined("twice")[0] == []
    (found,), code = examined("hook")
    assert ("/elsewhere/tailhook/pool/0/tailhook-hook is missing" in found["what"], code) == (True, 1)


@pytest.mark.parametrize("form", [[], ["--cold"]], ids=["warm", "cold"])
def test_a_loop_that_only_a_missing_program_would_continue_is_warned_of(project, form):
    project.tailhook("install", "--yes", "--scope", "project", *form)
    path = project.folder / ".claude" / "settings.json"
    moved = path.read_text().replace("/tailhook/hook/entry.py", "/gone/tailhook/hook/entry.py")
    path.write_text(moved.replace("/tailhook/pool/", "/gone/tailhook/pool/"))
    said = project.tailhook("loop", "start", "--max", "3", "Go.").stderr
    assert "nothing will continue this loop: no hook runs here: " in said
    missing = r"is missing, or not executable|does not exist: \S+/gone/tailhook/hook/entry\.py"
    assert re.search(rf"({missing})\. To install it again:", said)


def run_advice(project, advice):
    """Run the command at the end of an advice."""
    return project.tailhook(*re.search("tailhook (.*)", advice)[1].split(), "--yes")


@pytest.mark.parametrize("check", ["hook", "cap", "events"])
def test_the_advice_about_a_projects_hooks_mends_these_and_installs_no_others(project, examined, check):
    project.tailhook("install", "--yes", "--scope", "project")
    settings = project.folder / ".claude" / "settings.json"
    if check == "hook":
        edit(settings, lambda values: hook_of(values).update(command="/elsewhere/tailhook/pool/0/tailhook-hook"))
    if check == "events":
        edit(settings, lambda values: values["hooks"].pop("UserPromptSubmit"))
    found, _ = examined(check)
    assert run_advice(project, found[0]["advice"]).returncode == 0
    assert examined(check)[0] == []
    assert examined("twice")[0] == []


@pytest.mark.parametrize("scope", ["project", "local"])
def test_the_advice_about_the_hosts_limit_is_about_the_file_that_was_written(project, examined, scope):
    said = project.tailhook("install", "--yes", "--scope", scope).stdout
    assert run_advice(project, said[said.index("To remove the host's limit") :]).returncode == 0
    assert (examined("cap")[0], examined("twice")[0]) == ([], [])


def test_the_advice_to_add_a_machine_is_about_the_installed_hooks(project, examined):
    project.tailhook("install", "--yes", "--scope", "project", "--without", "ralph")
    said = project.tailhook("ralph", "start", "--max-iterations", "3", "Go.").stderr
    assert run_advice(project, said).returncode == 0
    assert examined("twice")[0] == []


def test_different_machines_in_two_places_are_fine(project, settings, examined):
    project.tailhook("install", "--yes", "--scope", "project", "--with", "memory", "--without", "idle,ralph,triage")
    assert examined("twice") == ([], 0)


def test_the_plugin_counts_as_an_installation(settings, examined, tmp_path):
    edit(settings, lambda values: values.update(enabledPlugins={"tailhook@somewhere": True, "other@x": True}))
    found, _ = examined("twice")
    assert "the plugin tailhook@somewhere" in found[0]["what"]
    assert "disable the plugin" in found[0]["advice"]
    (finding,), _ = examined("hook")
    assert "does not find the command" in finding["what"]
    edit(settings, lambda values: values["enabledPlugins"].update({"tailhook@somewhere": False}))
    assert examined("twice") == ([], 0)


@pytest.mark.skipif(bool(SANITIZER), reason="the client is started without a sanitizer's runtime")
def test_the_pool_of_the_plugin_is_checked():
    with short_folder() as home, Pool(Path(home)) as pool:
        pool.stop_until_warm()
        settings = Path(home, ".claude", "settings.json")
        settings.parent.mkdir()
        settings.write_text('{"enabledPlugins": {"tailhook@somewhere": true}}')
        done = tailhook("doctor", "--json", env={"HOME": home}, cwd=Path(home))
        found = [one["what"] for one in json.loads(done.stdout)["findings"] if one["check"] == "pool"]
        assert found[0] == f"a pool runs: process {pool.pid}"
        assert any("Stop hook" in what and "warm" in what for what in found)


def doctor_facts(home, check, *before):
    """Return the findings of a check, by a doctor that other programs may start."""
    code = "import sys, tailhook.doctor.checks as one; one.ROUNDS = 1; from tailhook.cli import main; sys.exit(main())"
    argv = [*before, sys.executable, "-c", code, "doctor", "--json"]
    env = {**ENVIRONMENT, "HOME": str(home)}
    done = subprocess.run(argv, env=env, cwd=home, capture_output=True, text=True, check=False)
    return [one for one in json.loads(done.stdout)["findings"] if one["check"] == check]


def test_the_pool_of_hooks_that_were_written_by_hand_is_checked():
    with short_folder() as home, Pool(Path(home)) as pool:
        pool.stop_until_warm()
        assert doctor_facts(home, "pool")[0]["what"] == f"a pool runs: process {pool.pid}"


def test_a_pool_that_no_hook_uses_is_a_warning():
    with short_folder() as home, Pool(Path(home)) as pool:
        pool.path.parent.chmod(0o755)
        finding = doctor_facts(home, "pool")[0]
        fault = f"{pool.path.parent} must be a folder that only you can access (mode 0700)"
        assert (finding["status"], finding["what"]) == (
            "warning",
            f"a pool runs (process {pool.pid}), and no hook uses it: {fault}",
        )
        status = tailhook("pool", "status", env={"HOME": home}, cwd=Path(home)).stdout
        assert status.endswith(f"No hook uses it: {fault}\n")


def test_doctor_fails_although_the_reader_of_its_findings_has_left(project):
    for words in ("doctor", "doctor --json"):
        reader, writer = os.pipe()
        os.close(reader)
        argv = [sys.executable, "-m", "tailhook", *words.split()]
        done = subprocess.run(argv, env=project.env, cwd=project.folder, stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        assert (done.returncode, done.stderr) == (1, b"")


@HAS_LOWER_PRIORITY
def test_a_pool_for_callers_of_another_kind_is_named():
    with short_folder() as home, Pool(Path(home)) as pool:
        tailhook("install", "--yes", env={"HOME": home}, cwd=Path(home))
        assert doctor_facts(home, "pool")[0]["what"] == f"a pool runs: process {pool.pid}"
        figures = []

        def are_warm():
            """Time the hooks. A run without a free worker does not count: the machine was busy."""
            figures[:] = [one["figures"] for one in doctor_facts(home, "hook")]
            return all("warm_ratio" in one for one in figures)

        wait_until(are_warm)
        assert [one["warm_ratio"] == one["warm_ms"] / one["true_ms"] for one in figures] == [True] * 3
        what = doctor_facts(home, "pool", "nice", "-n", "3")[0]["what"]
        assert what.endswith(f"another nice value or container: process {pool.pid}; none for this process")
        assert not_timed(doctor_facts(home, "hook", "nice", "-n", "3")) == ["no pool runs for it"] * 3


def test_each_form_is_named_with_its_own_time_and_beside_its_own_program():
    class Timer:
        def timed(self, commands, rounds):
            return [[Timed(wall, cpu)] * rounds for wall, cpu in dict(commands).values()]

    commands = {"cold": (0.012, 0.01), "bare": (0.008, 0.008), "warm": (0.002, 0.001), "true": (0.001, 0.001)}
    trial = time_both(Timer(), commands.items(), 9)
    assert (trial.cold_ms, trial.bare_ms, trial.warm_ms, trial.true_ms) == (12, 8, 2, 1)
    assert (trial.cold_ratio, trial.warm_ratio) == (1.5, 2)
    commands["warm"] = (0.002, 0.005)  # it has started Python
    trial = time_both(Timer(), commands.items(), 9)
    assert (trial.cold_ms, trial.warm_ms, trial.why_not_warm) == (12, 0, "no worker answers here")


def not_timed(findings):
    """Return why doctor did not time the warm form of the hooks."""
    found = [one["what"].partition("not timed with the pool: ")[2] for one in findings]
    return [words.partition(";")[0] for words in found]  # a busy computer is named behind it


def needs(*argv):
    """Skip the test if a program cannot be started as the test needs it."""
    if not shutil.which(argv[0]) or subprocess.run([*argv, "/bin/true"], capture_output=True, check=False).returncode:
        pytest.skip(f"{argv[0]} is not allowed here")


def test_a_pool_for_callers_in_another_namespace_is_named():
    """It has the socket that they look for, but no worker answers them."""
    elsewhere = ("unshare", "--uts")
    needs(*elsewhere)
    with short_folder() as home, Pool(Path(home)) as pool:
        tailhook("install", "--yes", env={"HOME": home}, cwd=Path(home))
        what = doctor_facts(home, "pool", *elsewhere)[0]["what"]
        assert what.endswith(f"another nice value or container: process {pool.pid}; none for this process")
        assert not_timed(doctor_facts(home, "hook", *elsewhere)) == ["no pool runs for it"] * 3
        argv = [*elsewhere, sys.executable, "-m", "tailhook", "pool", "status"]
        status = subprocess.run(
            argv, env={**ENVIRONMENT, "HOME": home}, cwd=home, capture_output=True, text=True, check=True
        )
        words = "none can be started while one runs for processes in another container"
        assert status.stdout.splitlines()[0] == f"No pool runs; {words}."
        assert f"process {pool.pid}" in status.stdout


def test_a_cold_time_is_not_shown_as_that_of_a_worker():
    with short_folder() as home, Pool(Path(home)) as pool:
        tailhook("install", "--yes", env={"HOME": home}, cwd=Path(home))
        os.kill(pool.pid, signal.SIGSTOP)
        wait_until(lambda: "State:\tT" in Path(f"/proc/{pool.pid}/status").read_text())  # it starts no more workers
        processes = [pool.pid, *pool.workers()]
        for process in processes[1:]:
            os.kill(process, signal.SIGSTOP)
        assert not_timed(doctor_facts(home, "hook")) == ["no worker answers here"] * 3
        for process in reversed(processes):  # the pool's own one last: it ends workers that do not answer it
            os.kill(process, signal.SIGCONT)


def test_a_pool_that_no_hook_may_start_is_not_announced():
    with short_folder() as home:
        config = Path(home, ".config", "tailhook", "config.json")
        config.parent.mkdir(parents=True)
        config.write_text('{"pool": {"autostart": false}}')
        tailhook("install", "--yes", env={"HOME": home}, cwd=Path(home))
        words = "hooks start none, as pool.autostart is false"
        assert doctor_facts(home, "pool")[0]["what"] == f"no pool runs now; {words}"
        status = tailhook("pool", "status", env={"HOME": home}, cwd=Path(home))
        assert status.stdout == f"No pool runs; {words}.\n"


def test_a_pool_that_no_hook_can_start_is_a_warning():
    with short_folder() as home, Pool(Path(home), starts=False) as pool:
        (pool.folder / "pool-start").mkdir()
        found = doctor_facts(home, "pool")[0]
        words = f"no pool runs, and hooks can start none: {pool.folder}/pool-start is not a regular file"
        assert (found["status"], found["what"]) == ("warning", words)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_doctor_that_is_ended_leaves_no_folder(project, settings, tmp_path, number):
    (tmp_path / "place").mkdir()
    env = {**project.env, "TMPDIR": str(tmp_path / "place")}
    argv = [sys.executable, "-m", "tailhook", "doctor"]
    doctor = subprocess.Popen(
        argv,
        env=env,
        cwd=project.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # the tests may run under nohup
    )
    wait_until(lambda: list((tmp_path / "place").iterdir()))
    doctor.send_signal(number)
    _, stderr = doctor.communicate(timeout=HANGS_S)
    assert (doctor.returncode != 0, "Traceback" in stderr) == (True, False)
    assert list((tmp_path / "place").iterdir()) == []


def test_other_tools_stop_hooks_are_named(settings, examined):
    theirs = {"hooks": [{"type": "command", "command": "npm run check"}, {"type": "http", "url": "http://[::1]/"}]}
    edit(settings, lambda values: values["hooks"]["Stop"].append(theirs))
    found, code = examined("beside")
    assert ["npm run check" in found[0]["what"], "http://[::1]/" in found[1]["what"], code] == [True, True, 0]


def test_the_hosts_limit_is_reported(settings, examined):
    edit(settings, lambda values: values.pop("env"))
    (finding,), code = examined("cap")
    assert "8 blocks" in finding["what"]
    assert "--block-cap 0" in finding["advice"]
    assert code == 0
    assert examined("cap", CLAUDE_CODE_STOP_HOOK_BLOCK_CAP="0") == ([], 0)
    for value in ("lots", "-1", "1_0", None):
        edit(settings, lambda values, value=value: values.update(env={"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": value}))
        assert f"{value!r}, not a whole number" in examined("cap")[0][0]["what"]
    settings.write_text(settings.read_text().replace("null", "1e999"))
    assert "inf, not a whole number" in examined("cap")[0][0]["what"]


def test_what_keeps_hooks_from_acting_is_reported(settings, examined):
    assert "TAILHOOK_DISABLE=1 disables all machines" in examined("off", TAILHOOK_DISABLE="1")[0][0]["what"]
    edit(settings, lambda values: values["env"].update(IDLE_LOOP_DISABLE="1"))
    assert "IDLE_LOOP_DISABLE=1 disables the idle machine" in examined("off")[0][0]["what"]
    edit(settings, lambda values: values.update(disableAllHooks=True))
    assert examined("off")[1] == 1


def test_a_switch_with_another_value_is_reported(settings, examined):
    (finding,), code = examined("off", TAILHOOK_DISABLE="true")
    assert finding["what"].endswith("TAILHOOK_DISABLE is 'true', which does not disable all machines: only 1 does")
    assert code == 0
    assert examined("off", TAILHOOK_DISABLE="0", IDLE_LOOP_DISABLE="") == ([], 0)


def test_a_file_that_disables_a_machine_is_reported(project, settings, examined):
    path = project.folder / ".idle-disabled"
    path.touch()
    assert [finding["what"] for finding in examined("off")[0]] == [f"{path} disables the idle machine in this project"]
    path.unlink()
    assert examined("off") == ([], 0)


def test_the_command_that_repairs_the_daemons_path_is_of_the_hooks_that_report_to_it(project, examined):
    """`tailhook install` alone would install hooks for another host, too."""
    words = ("--host", "codex", "--scope", "project")
    assert project.tailhook("install", "--yes", *words, "--with", "plates").returncode == 0
    (project.home / ".local/state/tailhook/daemon-argv").write_text("/gone/python\0-E")
    findings, code = examined("plates")
    assert [finding["advice"].partition(":  ")[2] for finding in findings] == [f"tailhook install {' '.join(words)}"]
    assert code == 1


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (
            {"hooks": {"PreToolUse": [{"matcher": {"type": "always"}, "hooks": []}]}},
            "hooks.PreToolUse[0].matcher is an object",
        ),
        ({"hooks": {"PreToolUse": [{"matcher": "Bash", "command": "true"}]}}, "hooks.PreToolUse[0].hooks is missing"),
        ({"permissions": {"allow": "Bash"}}, 'permissions.allow is "Bash", not a list'),
    ],
)
def test_settings_that_the_host_ignores_are_a_failure(settings, examined, change, place):
    edit(settings, lambda values: values.update({**change, "hooks": {**values["hooks"], **change.get("hooks", {})}}))
    (finding,), code = examined("settings")
    assert (finding["status"], code) == ("failure", 1)
    assert finding["what"].startswith(f"{settings}, line 1: {place}")
    assert "so Claude Code runs no hook of this file" in finding["what"]


@pytest.mark.parametrize(("ours", "status"), [(True, "failure"), (False, "warning")])
def test_an_entry_that_the_host_ignores_is_a_failure_if_it_is_ours(settings, examined, ours, status):
    theirs = {"hooks": [{"type": "command", "command": "true", "timeout": "10"}]}
    if ours:
        edit(settings, lambda values: hook_of(values).update(timeout="10"))
    else:
        edit(settings, lambda values: values["hooks"]["Stop"].append(theirs))
    (finding,), code = examined("settings")
    assert (finding["status"], code) == (status, 1 if ours else 0)


@pytest.mark.parametrize(
    ("scope", "value", "fails"), [("project", True, True), ("local", True, True), ("local", False, False)]
)
def test_the_switch_of_the_last_scope_counts(project, settings, examined, scope, value, fails):
    edit(settings, lambda values: values.update(disableAllHooks=True))
    path = project.folder / ".claude" / f"settings{'.local' * (scope == 'local')}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"disableAllHooks": value}))
    assert [str(path) in finding["what"] for finding in examined("off")[0]] == [True] * fails


def test_a_plugin_that_two_files_enable_is_asked_once(project, settings, examined):
    edit(settings, lambda values: values.update(hooks={}, enabledPlugins={"tailhook@them": True}))
    (project.folder / ".claude").mkdir()
    (project.folder / ".claude" / "settings.json").write_text('{"enabledPlugins": {"tailhook@them": true}}')
    assert examined("twice")[0] == []


def test_the_advice_to_plugin_users_leads_to_nothing_that_the_doctor_calls_a_failure(settings, examined):
    edit(settings, lambda values: (values.clear(), values.update(enabledPlugins={"tailhook@them": True})))
    (finding,), _ = examined("cap")
    advised = re.search(r'add ("env": .*) to (/.*)', finding["advice"])
    assert advised[2] == str(settings)
    edit(settings, lambda values: values.update(json.loads(f"{{{advised[1]}}}")))
    assert (examined("cap")[0], examined("twice")[0]) == ([], [])


def test_without_a_hook_the_hosts_limit_is_not_warned_of(project, examined):
    assert examined("cap")[0] == []


def test_settings_that_cannot_be_read_are_a_failure(settings, examined):
    settings.write_text('{\n "a": }')
    (finding,), code = examined("settings")
    assert "line 2, column 7" in finding["what"]
    assert code == 1


def test_settings_that_are_too_large_for_tailhook_are_not_said_to_be_too_large_for_the_host(settings, examined):
    os.truncate(settings, (16 << 20) + 1)
    (finding,), _ = examined("settings")
    assert finding["what"] == f"{settings}: the file is larger than 16 MiB"
    assert finding["advice"] == "Make the file smaller. The host may read it, but tailhook does not."


def test_a_state_folder_that_cannot_be_made_is_a_failure(project, settings, examined):
    (project.home / "file").touch()
    (finding,), code = examined("state", XDG_STATE_HOME=str(project.home / "file"))
    assert finding["what"] == f"state files cannot be saved: {project.home}/file/tailhook: Not a directory"
    assert code == 1


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.ENOSPC, "Make room on its disk, or "), (errno.EROFS, "Make that folder writable, or ")],
)
def test_the_advice_about_states_that_cannot_be_saved_fits_the_fault(monkeypatch, tmp_path, number, advice):
    def fail(path, _):
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setitem(posix.environ, b"XDG_STATE_HOME", os.fsencode(tmp_path))
    monkeypatch.setattr("tailhook.doctor.checks.replace_file", fail)
    (finding,) = checks.check_state_folder()
    assert finding.advice.startswith(advice)


def test_the_command_that_is_advised_for_a_stale_loop_works(project, settings, examined):
    project.loop(age=10_000)
    (finding,), code = examined("loop")
    assert re.search("has not changed for 10[0-9]{3} s", finding["what"])
    assert (finding["status"], code) == ("warning", 0)
    command = finding["advice"].partition("tailhook ")[2]
    assert project.tailhook(*command.split(), "Go on.").returncode == 0
    assert examined("loop") == ([], 0)


def test_a_project_that_cannot_be_written_is_reported(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(tmp_path))
    monkeypatch.setattr(checks.os, "access", lambda *_: False)  # root may write everywhere
    *_, finding = checks.check_state_folder()
    assert finding.what == f"{tmp_path} is not writable, so loops cannot be saved in this project"
    assert finding.advice == "Make the folder writable."


def test_another_sessions_loops_are_reported(project, settings, examined):
    project.loop(frame(session_id="theirs"))
    ralph = project.folder / ".claude" / "ralph-loop.local.md"
    ralph.parent.mkdir()
    ralph.write_text('---\nactive: true\niteration: 1\nsession_id: "also theirs"\n---\nGo on.\n')
    os.utime(ralph, (0, 0))
    found, _ = examined("loop")
    assert ["theirs" in found[0]["what"], "hours" in found[1]["what"], "also theirs" in found[2]["what"]] == [True] * 3
    assert "tailhook loop adopt" in found[0]["advice"]
    assert "theirs" not in str(examined("loop", CLAUDE_CODE_SESSION_ID="theirs")[0][0]["what"])


def test_a_loop_that_cannot_be_read_is_a_failure(project, settings, examined):
    ralph = project.folder / ".claude" / "ralph-loop.local.md"
    ralph.mkdir(parents=True)
    (finding,), code = examined("loop")
    assert (finding["what"], code) == (f"{ralph}: Is a directory", 1)


def test_words_of_settings_reach_the_terminal_plain(project, settings):
    theirs = {"hooks": [{"type": "command", "command": "echo \x1b[31m\u202e"}]}
    edit(settings, lambda values: values["hooks"]["Stop"].append(theirs))
    shown = project.tailhook("doctor").stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
