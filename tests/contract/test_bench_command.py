"""`tailhook bench` as a process: real hooks, measured a few times."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.bench_runs import QUICK, TRUE
from support.host import ENVIRONMENT, SANITIZER, Started, short_folder, tailhook
from support.instructions import COUNTED
from support.pool import LINUX, STARTS, is_alive, pids_of, wait_until

import tailhook as tailhook_package
from tailhook.bench import commands
from tailhook.bench.cases import CASES, COMPARED, BenchProject
from tailhook.bench.instructions import processor_counts
from tailhook.cli.bench import ATTEMPTS

pytestmark = pytest.mark.skipif(bool(SANITIZER), reason="the command starts hooks without a sanitizer's runtime")


def test_each_case_is_measured_warm_and_cold(figures):
    code, rows = figures(*QUICK, "--case", "idle, *")
    assert code == 0
    assert {form for _, form in rows} == {"warm", "cold"}
    assert {case for case, _ in rows} == {case.name for case in CASES if case.name.startswith("idle, ")}
    for row in rows.values():
        assert (row["verdict"], row["transcript"]) == (None, "10 KB")
        # A warm case is measured again if a worker was too late for most of its runs.
        assert row["rounds"] in ([3] if row["form"] == "cold" else range(3, 3 * ATTEMPTS + 1, 3))
        assert 0 < row["median_ms"]["low"] <= row["median_ms"]["value"] <= row["p99_ms"]["value"]
        answered = row["answered_by_worker"]
        assert row["rounds"] / 2 <= answered <= row["rounds"] if row["form"] == "warm" else answered is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_benchmark_with_its_pool_and_its_folder(number, tmp_path):
    with short_folder() as place:
        words = [sys.executable, "-m", "tailhook", "bench", *QUICK, "--rounds", "100000", "--case", "idle, active"]
        env = {**ENVIRONMENT, "HOME": str(tmp_path), "TMPDIR": place}
        with Started(words, env=env, cwd=tmp_path, stderr=subprocess.PIPE) as running:
            wait_until(lambda: list(Path(place).glob("tailhook-bench-*/0-*")))
            entry = str(Path(tailhook_package.__file__).parent / "pool" / "entry.py")
            pools = [pid for pid in pids_of(entry) if f"{place}/".encode() in Path(f"/proc/{pid}/cmdline").read_bytes()]
            assert len(pools) >= 1
            running.send_signal(number)
            assert (running.communicate(timeout=STARTS)[1], running.returncode) == (b"", 128 + number)
        assert list(Path(place).iterdir()) == []
        wait_until(lambda: not any(map(is_alive, pools)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("first_runs", [0, 3])
def test_signals_end_the_hook_that_runs_and_remove_the_folder_however_many_come(number, first_runs, tmp_path):
    place, pids, hook = tmp_path / "place", tmp_path / "pids", tmp_path / "hook.sh"
    place.mkdir()
    hook.write_text(
        f'echo $$ >>"{pids}"; [ "$(wc -l <"{pids}")" -le {first_runs} ] && exit\nsleep 999 & echo $! >>"{pids}"; wait\n'
    )
    words = [sys.executable, "-m", "tailhook", "bench", "--hook", f"sh {hook}"]
    env = {**ENVIRONMENT, "HOME": str(tmp_path), "TMPDIR": str(place)}
    with Started(words, env=env, cwd=tmp_path, stderr=subprocess.PIPE) as running:
        wait_until(lambda: pids.exists() and len(pids.read_text().split()) == first_runs + 2)
        for _ in range(200):
            running.send_signal(number)
            time.sleep(0.0001)
        running.wait(timeout=STARTS)
    assert list(place.iterdir()) == []
    wait_until(lambda: not any(is_alive(int(pid)) for pid in pids.read_text().split()[-2:]))


def test_the_pool_of_the_benchmark_has_a_short_folder_although_the_usual_one_is_long(bench, tmp_path, monkeypatch):
    long = tmp_path / ("x" * 80)
    long.mkdir()
    monkeypatch.setitem(ENVIRONMENT, "TMPDIR", str(long))
    done = bench(*QUICK, "--json", "--case", "idle, no state")
    assert (done.returncode, done.stderr) == (0, "")
    assert {row["form"] for row in json.loads(done.stdout)["rows"]} == {"cold", "warm"}


def test_no_row_is_called_warm_if_the_pool_answers_nothing(programs):
    with short_folder() as home:
        words = [sys.executable, "-m", "tailhook", "bench", "--json", *QUICK, "--case", "idle, active"]
        done = subprocess.run(
            ["sh", "-c", 'ulimit -f 1000000; exec "$@"', "sh", *words],
            env={**ENVIRONMENT, "HOME": home, "PATH": str(programs)},
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
        )
    assert [row["form"] for row in json.loads(done.stdout)["rows"]] == ["cold"]
    assert "only the cold form is measured: pool: a limit of this process (ulimit)" in done.stderr


def test_all_cases_are_measured_beside_another_command(bench):
    done = bench("--json", "--rounds", "1", "--against-command", "/bin/true")
    assert done.stdout, done.stderr
    rows = json.loads(done.stdout)["rows"]
    found = {(row["case"], row["transcript"], row["form"]) for row in rows}
    # On a busy machine a worker may answer none of so few runs: then the row is missing, and a line names it.
    cold = [line for line in done.stderr.splitlines() if "no figures: a worker of the pool answered only" in line]
    assert (done.returncode, done.stderr.splitlines()) == (int(bool(cold)), cold)
    missing = set(itertools.product([case.name for case in CASES], COMPARED, ("cold", "warm"))) - found
    assert {f"tailhook: {', '.join(names)}" for names in missing} == {line.partition(": no")[0] for line in cold}
    assert all(row["ratio_to_other"]["value"] > 0 for row in rows)


def test_a_limit_that_no_hook_can_keep_fails_and_one_that_each_keeps_passes(bench):
    case = (*QUICK, "--case", "idle, active")
    done = bench(*case, "--max-ratio", "0.01")
    assert done.returncode == 1
    assert "idle, active, 10 KB, cold: " in done.stderr
    assert "the limit is 0.01" in done.stderr
    assert bench(*case, "--max-ratio", "1000", "--max-ms", "60000").returncode == 0
    done = bench(*case, "--max-p99-ms", "60000")
    assert (done.returncode, "too few rounds to decide" in done.stderr) == (3, True)


@pytest.mark.parametrize(
    ("words", "code"),
    [(("--max-ms", "0.0001"), 1), (("--max-p99-ms", "50", "--rounds", "2"), 3), (("--max-ms", "60000"), 0)],
)
def test_the_verdict_counts_although_the_reader_of_the_figures_has_left(tmp_path, words, code):
    reader, writer = os.pipe()
    os.close(reader)
    argv = [sys.executable, "-m", "tailhook", "bench", "--hook", "true", "--rounds", "8", *words]
    env = {**ENVIRONMENT, "HOME": str(tmp_path)}
    done = subprocess.run(argv, env=env, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, bool(done.stderr)) == (code, code != 0)


@LINUX
def test_a_benchmark_that_is_killed_takes_its_pool_with_it(tmp_path):
    with short_folder() as place:
        words = [sys.executable, "-m", "tailhook", "bench", *QUICK, "--rounds", "100000", "--case", "idle, active"]
        env = {**ENVIRONMENT, "HOME": str(tmp_path), "TMPDIR": place}
        with Started(words, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            wait_until(lambda: list(Path(place).glob("tailhook-bench-*/0-*")))
            entry = str(Path(tailhook_package.__file__).parent / "pool" / "entry.py")
            pools = [pid for pid in pids_of(entry) if f"{place}/".encode() in Path(f"/proc/{pid}/cmdline").read_bytes()]
            assert pools
            running.kill()
            assert running.communicate(timeout=STARTS)[0] == b""  # no process holds the pipe
        wait_until(lambda: not any(map(is_alive, pools)))


@pytest.mark.parametrize("flag", ["--max-ratio", "--max-ms", "--max-p99-ms", "--max-instructions"])
def test_a_limit_is_a_finite_number_above_zero(bench, flag):
    for limit in ("nan", "inf", "-1", "0", "x", "1e999", "1_35") if flag == "--max-ratio" else ("inf", "x"):
        done = bench(f"{flag}={limit}")
        assert (done.returncode, done.stdout) == (2, "")
        assert "is not a number above 0" in done.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--case", "nothing*"), "no case fits --case, --machine and --size: "),
        (("--event", "Stop,Nonsense", "--hook", "true"), "unknown event: Nonsense"),
        (("--event", "PreToolUse"), "--event is for --hook"),
        (("--event", "Stop"), "--event is for --hook"),
        (("--hook", "true", "--machine", "idle"), "--hook measures other commands"),
        (("--hook", "true", "--hook", "true"), "two hooks have the same name"),
        (("--hook", "true", "--hook", "false", "--name", "a"), "give one --name for each --hook"),
        (("--name", "a"), "give one --name for each --hook"),
        (("--hook", "true", "--max-regression", "1.1"), "--max-regression compares"),
        (("--hook", ""), "it is empty"),
        (("--hook", "sh -c 'x"), "No closing quotation"),
        (("--against", ""), "it is empty"),
        (("-o", "same", "--save", "./same"), "-o and --save: give two files"),
        (("--json", "--format", "markdown"), "--json and --format: give one of them"),
        (("--against", "x", "--against-command", "y"), "give one of them"),
    ],
)
def test_what_does_not_go_together_is_refused(bench, words, complaint):
    done = bench(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert complaint in done.stderr


def test_any_hook_is_measured_with_the_payloads_of_events(figures, tmp_path):
    seen = tmp_path / "seen"
    hook = tmp_path / "hook"
    hook.write_text(f'#!/bin/sh\ncat >>"{seen}"\n')
    hook.chmod(0o755)
    code, rows = figures("--hook", str(hook), "--event", "Stop,PreToolUse", "--rounds", "2", "--size", "10kb")
    assert (code, set(rows)) == (0, {(f"{hook}, {event}", "command") for event in ("Stop", "PreToolUse")})
    assert {(row["transcript"], row["command"]) for row in rows.values()} == {("10 KB", str(hook))}
    events = seen.read_text()
    # Two rounds, after a first run that is not measured.
    assert (events.count('"Stop"'), events.count('"PreToolUse"'), events.count("tool_input")) == (3, 3, 3)


def test_a_hook_is_measured_with_a_small_and_a_large_transcript_unless_a_size_is_asked_for(bench, tmp_path):
    (tmp_path / "hook.py").write_text(
        "import json, os, sys\n"
        f"with open({str(tmp_path / 'sizes')!r}, 'a') as sizes:\n"
        "    print(os.stat(json.load(sys.stdin)['transcript_path']).st_size, file=sizes)\n"
    )
    done = bench("--hook", f"python3 {tmp_path}/hook.py", "--rounds", "1", "--format", "hyperfine")
    assert done.returncode == 0
    sizes = [round(int(size) / 2**20, 2) for size in (tmp_path / "sizes").read_text().split()]
    assert sorted(sizes) == [0.01, 0.01, 100, 100]
    names = [result["command"] for result in json.loads(done.stdout)["results"]]
    assert names == [f"python3 {tmp_path}/hook.py, Stop, {size}" for size in ("10 KB", "100 MB")]


@pytest.mark.parametrize("form", ["text", "json", "markdown", "bmf", "github", "hyperfine"])
def test_several_hooks_are_measured_side_by_side_under_their_own_names_in_every_format(bench, form):
    hooks = ("--hook", "/bin/true", "--hook", "sh -c true", "--hook", "python3 -c pass")
    names = ("/bin/true", "sh -c true", "python3 -c pass")
    done = bench(*hooks, *QUICK, "--format", form)
    assert done.returncode == 0
    assert all(f"{name}, Stop" in done.stdout for name in names)
    done = bench(*hooks, "--name", "one", "--name", "two", "--name", "three", *QUICK, "--format", form)
    assert all(f"{name}, Stop" in done.stdout for name in ("one", "two", "three"))


def test_a_first_run_that_takes_long_is_named_while_it_runs(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "NOTICE_S", 0.0)
    project = BenchProject(tmp_path / "project", CASES[0], "10 KB")
    written = tmp_path / "stderr"
    with written.open("w") as file:
        monkeypatch.setattr(commands.sys, "stderr", file)
        until = f'until grep -q "has not ended" {written}; do sleep 0.01; done'
        file.reconfigure(line_buffering=True)
        assert commands.check_first_run(["sh", "-c", until], project) > 0
    assert written.read_text() == (
        f"tailhook: sh -c '{until}': a first run with Stop, 10 KB, has not ended; it has 600 s\n"
    )


@pytest.mark.parametrize("flag", ["-o", "--save"])
def test_the_name_of_a_folder_is_not_the_name_of_a_file(bench, tmp_path, flag):
    done = bench(*TRUE, "--rounds", "1", flag, f"{tmp_path}/new/")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"tailhook: {tmp_path}/new/: Is a directory\n")
    assert not (tmp_path / "new").exists()


def test_a_hook_that_does_not_run_does_not_pass(bench):
    done = bench("--hook", "/bin/false", "--rounds", "2", "--max-ms", "60000")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tailhook: /bin/false: a first run with Stop ended with exit code 1, not 0 or 2\n"


@pytest.mark.parametrize(
    ("hook", "reason"),
    [
        ("python3 .claude/hooks/check.py", "can't open file"),
        ('python3 "$CLAUDE_PROJECT_DIR"/.claude/hooks/check.py', "can't open file"),
        ("sh .claude/hooks/check.sh", "No such file"),
        ("python3 --no-such-option", "nknown option"),
        ("python3 -c 'import argparse; argparse.ArgumentParser().parse_args()' x", "usage: -c"),
        ("python3 -c", "rgument expected for the -c option"),
        ("echo Warning: it is old >&2; echo it will go >&2; echo 'usage: x [-h]' >&2; exit 2", "Warning: it is old"),
        ("true && exit 2", "printed no reason"),
        ("true &&", "yntax error"),
        ("true && false", "ended with exit code 1"),
        ("no-such-program", "not found"),
    ],
)
def test_exit_code_2_of_a_command_that_is_not_a_hooks_answer_does_not_pass(bench, hook, reason):
    done = bench("--hook", hook, "--event", "Stop,PreToolUse", "--max-ms", "60000", "--rounds", "2")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "a first run with Stop" in done.stderr
    assert reason in done.stderr


def test_a_command_is_run_by_a_shell_in_the_users_project_as_a_host_runs_it(bench, tmp_path):
    home, project, seen = tmp_path / "home", tmp_path / "project", tmp_path / "seen"
    for folder in (home, project):
        folder.mkdir()
        (folder / "hook.sh").write_text(f'echo "$NAME in $(pwd), $CLAUDE_PROJECT_DIR" >>"{seen}"\n')
    for hook in ('NAME=a sh "$CLAUDE_PROJECT_DIR"/hook.sh', "export NAME=a && sh hook.sh", "NAME=a sh ~/hook.sh"):
        words = ("bench", "--hook", hook, "--rounds", "1", "--size", "10 KB")
        assert tailhook(*words, env={"HOME": str(home)}, cwd=project).returncode == 0
    assert seen.read_text() == f"a in {project}, {project}\n" * 6


@pytest.mark.parametrize(
    "program",
    [
        "import sys; sys.stderr.write('Run the tests first.'); sys.exit(2)",
        "import sys; sys.stderr.write('The context is nearly full.\\nUsage: 180k of 200k tokens'); sys.exit(2)",
        "import sys; sys.stderr.write('usage: 90% of the budget. Stop.'); sys.exit(2)",
        "import sys; sys.stderr.write('Error: No such file or directory'); print('{}'); sys.exit(2)",
    ],
)
def test_a_hook_that_blocks_with_a_reason_is_measured(figures, tmp_path, program):
    (tmp_path / "hook.py").write_text(program)
    words = ("--max-ms", "60000", "--rounds", "6", "--size", "10 KB")
    code, rows = figures("--hook", f"python3 {tmp_path}/hook.py", "--name", "it", *words)
    assert (code, rows["it, Stop", "command"]["verdict"]) == (0, "pass")


def test_the_command_that_others_are_compared_with_must_run(bench):
    done = bench(*QUICK, "--case", "idle, no state", "--against-command", "false")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("tailhook: false: a first run with Stop ended with exit code 1")


def test_runs_that_fail_later_are_those_of_the_command_that_failed(bench, tmp_path):
    """The other command succeeds only in its first run."""
    (tmp_path / "other.sh").write_text(f'[ -e "{tmp_path}/ran" ] && exit 7; touch "{tmp_path}/ran"\n')
    words = ("--rounds", "2", "--size", "10 KB")
    done = bench("--hook", "/bin/true", "--against-command", f"sh {tmp_path}/other.sh", *words)
    failed = [line for line in done.stderr.splitlines() if "ended with" in line]
    assert done.returncode == 1
    assert len(failed) == 1
    words = "4 of 4 runs of the other command ended with exit code 7, not 0 or 2"
    assert failed[0] == f"tailhook: /bin/true, Stop, 10 KB: {words}"


def test_too_few_rounds_are_named_as_such(bench):
    words = ("--hook", "/bin/true", "--rounds", "1", "--max-ms")
    done = bench(*words, "60000")
    assert done.returncode == 3
    assert "too few rounds to decide" in done.stderr
    assert "4 rounds were run, this limit needs 6" in done.stderr
    assert done.stderr.endswith("Give --rounds 6 or more.\n")
    assert "too noisy" not in done.stderr
    done = bench(*words, "60000", "--max-p99-ms", "60000")
    assert done.stderr.endswith("Give --rounds 368 or more.\n")


@pytest.fixture
def busy_processor():
    """Leave this process and its children one processor, and let two others use it all the time."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system does not bind a process to a processor")
    former = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(former)})
    loop = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"  # a killed test leaves none
    busy = [subprocess.Popen([sys.executable, "-I", "-S", "-c", loop]) for _ in range(2)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()
        os.sched_setaffinity(0, former)


@pytest.mark.usefixtures("busy_processor")
def test_on_a_busy_computer_a_hook_with_processes_fails_only_by_processor_time(bench):
    words = ("--hook", "sh -c 'sleep 0.05; true'", "--size", "10 KB", "--rounds", "6", "--max-ratio")
    done = bench(*words, "0.5")
    assert (done.returncode, done.stderr.count("\n")) == (3, 2)
    assert "too noisy to decide: " in done.stderr
    assert "; bare Python waited for a processor in 2" in done.stderr  # of the 24 rounds
    assert "and the hook's processor time is " in done.stderr
    assert "Close other programs" in done.stderr
    done = bench(*words, "0.01")
    assert (done.returncode, "too noisy" in done.stderr) == (1, False)


@LINUX
@pytest.mark.usefixtures("busy_processor")
def test_on_a_busy_computer_a_hook_that_waits_for_something_else_fails(bench):
    done = bench("--hook", "sleep 0.1", "--size", "10 KB", "--rounds", "6", "--max-ms", "50")
    assert (done.returncode, "too noisy" in done.stderr) == (1, False)


@pytest.mark.parametrize("first_runs", [0, 3])
def test_a_hook_that_hangs_fails_at_the_time_limit_of_its_event(bench, tmp_path, first_runs):
    (tmp_path / "hook.sh").write_text(
        f'echo >>"{tmp_path}/runs"; [ "$(wc -l <"{tmp_path}/runs")" -le {first_runs} ] && exit; sleep 99\n'
    )
    done = bench("--hook", f"sh {tmp_path}/hook.sh", "--event", "SessionEnd", "--rounds", "6")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "did not end within 1.5 s" in done.stderr


def test_a_hook_that_does_not_exist_is_an_error_in_one_line(bench):
    done = bench("--hook", "/nowhere/hook", "--rounds", "1")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "/nowhere/hook" in done.stderr


@COUNTED
def test_instructions_are_counted_and_limited(bench):
    case = ("--rounds", "1", "--size", "10 KB", "--case", "idle, no state")
    with_all = ENVIRONMENT["PATH"]
    done = bench(*case, "--max-instructions", "100", "--json", path=with_all)
    assert done.returncode == 0
    cold, warm = sorted(json.loads(done.stdout)["rows"], key=lambda row: row["form"])
    assert (cold["verdict"], cold["reasons"], cold["instructions"] > 1_000_000) == ("pass", [], True)
    assert (warm["verdict"], warm["instructions"]) == ("not counted", None)
    assert warm["reasons"] == ["its instructions are not counted: a worker of the pool answers"]
    done = bench(*case, "--max-instructions", "0.01", path=with_all)
    assert (done.returncode, "the instructions of bare Python" in done.stderr) == (1, True)
    rows = json.loads(bench(*case, "--json", path=with_all).stdout)["rows"]
    assert sorted((row["form"], row["instructions"] is not None) for row in rows) == [("cold", True), ("warm", False)]


@pytest.mark.skipif(processor_counts(), reason="the processor counts the instructions of every hook")
def test_valgrind_does_not_start_a_hook_of_a_user_that_has_no_limit_on_instructions(bench, tmp_path):
    valgrind = tmp_path / "valgrind"
    valgrind.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    valgrind.chmod(0o755)
    done = bench(*TRUE, "--rounds", "1", path=f"{tmp_path}:{ENVIRONMENT['PATH']}")
    assert (done.returncode, (tmp_path / "started").exists()) == (0, False)


@pytest.mark.skipif(processor_counts(), reason="the processor counts the instructions: valgrind is not asked")
def test_a_limit_on_instructions_that_nothing_counts_is_an_error_in_one_line(bench, tmp_path):
    case = ("--rounds", "1", "--size", "10 KB", "--case", "idle, no state", "--max-instructions", "100")
    done = bench(*case, path=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "Install valgrind" in done.stderr
    valgrind = tmp_path / "valgrind"
    valgrind.write_text("#!/bin/sh\necho 'valgrind: out of order' >&2\nexit 1\n")
    valgrind.chmod(0o755)
    done = bench(*case, path=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "valgrind counted nothing: valgrind: out of order" in done.stderr
