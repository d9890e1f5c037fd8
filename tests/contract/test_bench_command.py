"""`tailhook bench` as a process: real hooks, measured a few times."""

import itertools
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support.host import SANITIZER, tailhook

from tailhook.bench.cases import CASES, COMPARED

QUICK = ("--rounds", "3", "--size", "10 KB")

pytestmark = pytest.mark.skipif(bool(SANITIZER), reason="the command starts hooks without a sanitizer's runtime")


@pytest.fixture
def bench():
    """Run the benchmark in a home with a short path; returns the finished process."""
    with tempfile.TemporaryDirectory(prefix="tailhook-") as home:
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


def test_all_cases_are_measured_beside_another_command(bench):
    done = bench("--json", "--rounds", "1", "--against-command", "/bin/true")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)["rows"]
    found = {(row["case"], row["transcript"], row["form"]) for row in rows}
    assert found == set(itertools.product([case.name for case in CASES], COMPARED, ("cold", "warm")))
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


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind counts the instructions")
def test_instructions_are_counted_and_limited(bench):
    case = ("--rounds", "1", "--size", "10 KB", "--case", "idle, no state")
    assert bench(*case, "--max-instructions", "100").returncode == 0
    done = bench(*case, "--max-instructions", "0.01")
    assert (done.returncode, "the instructions of bare Python" in done.stderr) == (1, True)


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
