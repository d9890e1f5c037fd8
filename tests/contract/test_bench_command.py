"""`tailhook bench` as a process: real hooks, measured a few times."""

import itertools
import json
import signal
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
from support.host import ENVIRONMENT, SANITIZER, short_folder, tailhook
from support.pool import STARTS, is_alive, pids_of, wait_until

import tailhook as tailhook_package
from tailhook.bench.cases import CASES, COMPARED
from tailhook.bench.instructions import instruction_counter, processor_counts
from tailhook.bench.rounds import run_rounds
from tailhook.cli.bench import forms_in, subjects_in
from tailhook.pool.installation import HOOK_ENTRY, real_interpreter

QUICK = ("--rounds", "3", "--size", "10 KB")

pytestmark = pytest.mark.skipif(bool(SANITIZER), reason="the command starts hooks without a sanitizer's runtime")


@pytest.fixture
def bench():
    """Run the benchmark in a home with a short path; returns the finished process."""
    with short_folder() as home:
        yield lambda *words: tailhook("bench", *words, env={"HOME": home}, cwd=Path(home))


@pytest.fixture
def figures(bench):
    """Run the benchmark; returns its rows, {title: row}."""

    def run(*words):
        done = bench("--json", *words)
        assert done.stderr == ""
        return done.returncode, {(row["case"], row["form"]): row for row in json.loads(done.stdout)["rows"]}

    return run


def test_each_case_is_measured_warm_and_cold(figures):
    code, rows = figures(*QUICK, "--case", "idle, *")
    assert code == 0
    assert {form for _, form in rows} == {"warm", "cold"}
    assert len({case for case, _ in rows}) == 4
    for row in rows.values():
        assert (row["rounds"], row["verdict"], row["transcript"]) == (3, None, "10 KB")
        assert 0 < row["median_ms"]["low"] <= row["median_ms"]["value"] <= row["p99_ms"]["value"]
        assert row["answered_by_worker"] in ((2, 3) if row["form"] == "warm" else (None,))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_benchmark_with_its_pool_and_its_folder(number, tmp_path):
    with short_folder() as place:
        words = [sys.executable, "-m", "tailhook", "bench", *QUICK, "--rounds", "100000", "--case", "idle, active"]
        env = {**ENVIRONMENT, "HOME": str(tmp_path), "TMPDIR": place}
        with subprocess.Popen(words, env=env, cwd=tmp_path, stderr=subprocess.PIPE) as running:
            wait_until(lambda: list(Path(place).glob("tailhook-bench-*/0-*")))
            entry = str(Path(tailhook_package.__file__).parent / "pool" / "entry.py")
            pools = [pid for pid in pids_of(entry) if f"{place}/".encode() in Path(f"/proc/{pid}/cmdline").read_bytes()]
            assert len(pools) >= 1
            running.send_signal(number)
            assert running.wait(timeout=STARTS) == 128 + number
        assert list(Path(place).iterdir()) == []
        wait_until(lambda: not any(map(is_alive, pools)))


def test_the_pool_of_the_benchmark_has_a_short_folder_although_the_usual_one_is_long(bench, tmp_path, monkeypatch):
    long = tmp_path / ("x" * 80)
    long.mkdir()
    monkeypatch.setitem(ENVIRONMENT, "TMPDIR", str(long))
    done = bench(*QUICK, "--json", "--case", "idle, no state")
    assert (done.returncode, done.stderr) == (0, "")
    assert {row["form"] for row in json.loads(done.stdout)["rows"]} == {"cold", "warm"}


def test_no_row_is_called_warm_if_the_pool_answers_nothing():
    with short_folder() as home:
        words = [sys.executable, "-m", "tailhook", "bench", "--json", *QUICK, "--case", "idle, active"]
        done = subprocess.run(
            ["sh", "-c", 'ulimit -f 1000000; exec "$@"', "sh", *words],
            env={**ENVIRONMENT, "HOME": home},
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
        )
    assert [row["form"] for row in json.loads(done.stdout)["rows"]] == ["cold"]
    assert "only the cold form is measured: pool: a limit of this process (ulimit)" in done.stderr


def test_all_cases_are_measured_beside_another_command(bench):
    done = bench("--json", "--rounds", "1", "--against-command", "/bin/true")
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
    assert (done.returncode, "too noisy to decide" in done.stderr) == (3, True)  # 12 rounds show no 99th percentile


@pytest.mark.parametrize("limit", ["nan", "inf", "-1", "0", "x", "1e999"])
@pytest.mark.parametrize("flag", ["--max-ratio", "--max-ms", "--max-p99-ms", "--max-instructions"])
def test_a_limit_is_a_finite_number_above_zero(bench, flag, limit):
    done = bench(f"{flag}={limit}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not a number above 0" in done.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--case", "nothing*"), "no case is left"),
        (("--event", "Stop,Nonsense", "--hook", "true"), "unknown event: Nonsense"),
        (("--event", "PreToolUse"), "--event is for --hook"),
        (("--hook", "true", "--machine", "idle"), "--hook measures one command"),
        (("--hook", ""), "it is empty"),
        (("--hook", "sh -c 'x"), "No closing quotation"),
        (("--against", ""), "it is empty"),
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
    code, rows = figures("--hook", str(hook), "--event", "Stop,PreToolUse", "--rounds", "2")
    assert (code, set(rows)) == (0, {("Stop", "command"), ("PreToolUse", "command")})
    events = seen.read_text()
    assert (events.count('"Stop"'), events.count('"PreToolUse"'), events.count("tool_input")) == (2, 2, 2)


def test_a_hook_that_does_not_run_does_not_pass(bench):
    done = bench("--hook", "/bin/false", "--rounds", "2", "--max-ms", "60000")
    assert done.returncode == 1
    assert "ended with exit code 1, not 0 or 2" in done.stderr


def test_a_hook_that_does_not_exist_is_an_error_in_one_line(bench):
    done = bench("--hook", "/nowhere/hook", "--rounds", "1")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "/nowhere/hook" in done.stderr


def test_another_installation_is_measured_case_by_case(figures):
    code, rows = figures(*QUICK, "--case", "idle, active", "--against", sys.prefix)
    assert code == 0
    assert rows["idle, active", "cold"]["ratio_to_other"]["value"] > 0
    assert rows["idle, active", "warm"]["ratio_to_other"]["value"] > 0


@pytest.fixture
def old_environment(tmp_path):
    """Make an environment whose tailhook has no pool and one form of the hook; return its folder."""
    python = tmp_path / "old" / "bin" / "python"
    python.parent.mkdir(parents=True)
    argv = json.dumps([real_interpreter(), "-I", "-S", HOOK_ENTRY, "idle"])
    python.write_text(
        f"""#!/bin/sh
case "$*" in
*hook-command*--cold*) echo "unrecognized arguments: --cold" >&2; exit 2 ;;
*hook-command*) echo '{argv}' ;;
*) echo "ModuleNotFoundError: No module named 'tailhook.pool'" >&2; exit 1 ;;
esac
"""
    )
    python.chmod(0o755)
    return python.parents[1]


def test_a_warm_hook_is_not_compared_with_a_cold_one(bench, old_environment):
    done = bench(*QUICK, "--json", "--case", "idle, active", "--against", str(old_environment))
    assert "only the cold forms are compared" in done.stderr
    rows = {row["form"]: row["ratio_to_other"] for row in json.loads(done.stdout)["rows"]}
    assert rows.pop("cold")["value"] > 0
    assert rows == {"warm": None}


def test_each_form_is_compared_with_the_same_form_of_the_other_installation():
    arguments = Namespace(hook=None, against=sys.prefix, against_command=None, size="10 KB", case="idle, active")
    arguments.machine = None
    with short_folder() as folder, forms_in(Path(folder), arguments) as forms:
        cold, warm = subjects_in(Path(folder), arguments, forms)
        run_rounds([cold, warm], 6)
    assert (cold.other, cold.others_answered) == (cold.argv, 0)
    assert warm.other[0] != warm.argv[0]
    assert warm.others_answered >= 3
    assert warm.unanswered() == ""


def test_an_environment_without_tailhook_is_an_error_in_one_line(bench, tmp_path):
    done = bench(*QUICK, "--case", "idle, active", "--against", str(tmp_path))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "virtual environment" in done.stderr


def test_figures_are_kept_and_compared(bench, tmp_path):
    kept, report = tmp_path / "kept.json", tmp_path / "report.md"
    case = (*QUICK, "--case", "ralph, active")
    assert bench(*case, "--save", str(kept), "--format", "markdown", "-o", str(report)).stdout == ""
    assert json.loads(kept.read_text())["schema"] == 1
    assert report.read_text().startswith("| hook |")
    done = bench(*case, "--compare", str(kept))
    assert done.returncode == 0
    assert "before" in done.stdout
    assert bench(*case, "--compare", str(report)).returncode == 1
    done = bench(*case, "--json", "--compare", str(kept))
    assert json.loads(done.stdout)["schema"] == 1
    assert "before" in done.stderr


@pytest.mark.skipif(not instruction_counter(slow=True), reason="valgrind or the processor counts the instructions")
def test_instructions_are_counted_and_limited(bench):
    case = ("--rounds", "1", "--size", "10 KB", "--case", "idle, no state")
    done = bench(*case, "--max-instructions", "100", "--json")
    assert done.returncode == 0
    cold, warm = sorted(json.loads(done.stdout)["rows"], key=lambda row: row["form"])
    assert (cold["verdict"], cold["reasons"], cold["instructions"] > 1_000_000) == ("pass", [], True)
    assert (warm["verdict"], warm["instructions"]) == ("not counted", None)
    assert warm["reasons"] == ["its instructions are not counted: a worker of the pool answers"]
    done = bench(*case, "--max-instructions", "0.01")
    assert (done.returncode, "the instructions of bare Python" in done.stderr) == (1, True)


@pytest.mark.skipif(processor_counts(), reason="the processor counts the instructions: valgrind is not asked")
def test_a_limit_on_instructions_that_nothing_counts_is_an_error_in_one_line(bench, tmp_path, monkeypatch):
    case = ("--rounds", "1", "--size", "10 KB", "--case", "idle, no state", "--max-instructions", "100")
    monkeypatch.setitem(ENVIRONMENT, "PATH", str(tmp_path))
    done = bench(*case)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "Install valgrind" in done.stderr
    valgrind = tmp_path / "valgrind"
    valgrind.write_text("#!/bin/sh\necho 'valgrind: out of order' >&2\nexit 1\n")
    valgrind.chmod(0o755)
    done = bench(*case)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "valgrind counted nothing: valgrind: out of order" in done.stderr


def test_the_action_runs_the_words_that_it_is_given(tmp_path):
    """The step's shell code, with what GitHub sets; `tailhook` notes its words."""
    action = Path(__file__).parents[2] / "action.yml"
    if not action.exists():
        pytest.skip("the action is in the source tree")
    lines = action.read_text().splitlines()
    begin = lines.index("      run: |", next(at for at, line in enumerate(lines) if "id: bench" in line)) + 1
    end = next(at for at in range(begin, len(lines)) if lines[at].startswith("      shell"))
    script = "\n".join(line[8:] for line in lines[begin:end])
    stub = tmp_path / "tailhook"
    notes = f'printf "%s\\n" "$@" >"{tmp_path}/words"; echo table >"$RUNNER_TEMP/summary.md"'
    stub.write_text(f"#!/bin/sh\n{notes}\nexit 3\n")
    (tmp_path / "python").symlink_to(sys.executable)
    stub.chmod(0o755)
    names = ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
    env = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "RUNNER_TEMP": str(tmp_path),
        "ARGUMENTS": """--hook "python3 my hook.py" --event Stop; touch hacked""",
        **{name: str(tmp_path / name) for name in names},
    }
    done = subprocess.run(["bash", "-e", "-c", script], env=env, cwd=tmp_path, check=False)
    assert done.returncode == 3
    words = (tmp_path / "words").read_text().splitlines()
    assert words[0:2] == ["bench", "--format"]
    assert words[-5:] == ["python3 my hook.py", "--event", "Stop;", "touch", "hacked"]
    assert (tmp_path / "GITHUB_STEP_SUMMARY").read_text() == "table\n"
    assert not (tmp_path / "hacked").exists()
