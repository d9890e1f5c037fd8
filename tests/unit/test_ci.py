"""The steps of `.ci/run`, with a `make` that only prints its targets. GitHub runs the same steps."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEPS = re.search(r"^STEPS=\((.*)\)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)[1].split()


@pytest.fixture
def run(tmp_path):
    """Run a script of .ci; `make lint` fails."""
    made = 'echo "made $*" ${TAILHOOK_PART:+"part $TAILHOOK_PART"}\n[ "$1" != "$FAILS" ]'
    programs = dict.fromkeys(("make", "cc", "valgrind", "rg", "chromium"), made)  # nothing is installed for the test
    for name, lines in {**programs, "git": 'echo "$COMMIT"'}.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{lines}\n")
        program.chmod(0o755)

    def run(name, *words, **variables):
        env = {name: value for name, value in os.environ.items() if name != "TAILHOOK_PART"}  # of this run
        env |= {"COMMIT": "00000a", "PATH": f"{tmp_path}:{os.environ['PATH']}", **variables}
        return subprocess.run([ROOT / ".ci" / name, *words], env=env, capture_output=True, text=True, check=False)

    return run


def test_all_steps_run_although_one_fails_and_each_has_its_time(run):
    done = run("run", FAILS="lint")
    assert done.returncode == 1
    assert re.findall(r"^== ([a-z-]+) \(", done.stdout, re.MULTILINE) == STEPS
    times = re.findall(r"^([a-z-]+) +(passed|FAILED) in \d+:\d\d$", done.stdout, re.MULTILINE)
    assert times == [(step, "FAILED" if step == "lint" else "passed") for step in STEPS]


def test_in_a_row_the_longest_steps_run_a_part_and_the_others_run_whole(run):
    made = re.findall(r"^made (.*)$", run("run", COMMIT="00000a").stdout, re.MULTILINE)
    parts = [line for line in made if "part" in line or "ONCE" in line]
    assert [line.partition(" ")[0] for line in parts] == ["host", "engines", "extras", "interpreters", "bench"]
    assert all(line.endswith("part 2/3") for line in parts[:-1])
    assert parts[-1] == "bench ONCE=1"
    assert "host part 1/3" in run("run", COMMIT="00000c").stdout
    assert "host part 1/3" in run("run", COMMIT="").stdout  # not in a clone


def test_one_step_runs_by_itself_and_so_do_the_tests_of_one_interpreter(run):
    done = run("run", "hosts", "interpreters-3.12")
    assert done.returncode == 0
    assert re.findall(r"^made (.*)$", done.stdout, re.MULTILINE) == ["host", "interpreters ONLY=3.12"]


def test_an_unknown_step_fails(run):
    done = run("run", "no-such-step")
    assert (done.returncode, "unknown step: no-such-step" in done.stdout) == (1, True)


def test_github_runs_every_step_as_a_job():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    listed = re.search(r"^ +step: \[(.*)\]$", workflow, re.MULTILINE)[1].split(", ")
    included = re.findall(r"step: ([\w.-]+), python", workflow)
    assert set(listed) | {step.partition("-")[0] for step in included} == set(STEPS)


def test_what_make_test_has_a_sample_of_runs_whole_each_week():
    workflow = (ROOT / ".github" / "workflows" / "weekly.yml").read_text()
    assert re.search(r"^ +target: \[(.*)\]$", workflow, re.MULTILINE)[1].split(", ") == ["stress", "fuzz", "faults"]


def test_new_releases_of_the_hosts_are_read_each_week_and_in_no_step():
    weekly = (ROOT / ".github" / "workflows" / "weekly.yml").read_text()
    assert "make contracts CHECK=1" in weekly
    assert "make host-matrix ENDS=1" in weekly
    assert "contracts" not in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize(
    ("fails", "code", "words"), [("no", 0, "0 of 2 runs failed"), ("test", 1, "2 of 2 runs failed")]
)
def test_stress_counts_the_runs_that_fail(run, tmp_path, fails, code, words):
    done = run("stress", RUNS="2", BUSY="1", FAILS=fails, LOGS=str(tmp_path))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (code, words)
    assert len(re.findall(r"^run \d: ", done.stdout, re.MULTILINE)) == 2
