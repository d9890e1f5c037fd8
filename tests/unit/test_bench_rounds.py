"""Rounds of the judge of hooks: real programs take turns, and each one's waiting is measured."""

import itertools
import os
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from support.host import SANITIZER, Started, short_folder
from support.long_runs import IS_LONG, sample
from support.pool import LINUX, wait_until

from tailhook.bench import rounds
from tailhook.bench.cases import CASES, BenchProject
from tailhook.bench.intervals import NOISY
from tailhook.bench.processes import Sample, run_once
from tailhook.bench.rounds import Limits, Subject
from tailhook.bench.warm import pool_of_bench
from tailhook.install.command import hook_command
from tailhook.pool.installation import POOL_START_FILE, client_folder_of
from tailhook.pool.reference_programs import nothing_program

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("hooks", [1, 5])
def test_each_program_follows_every_other_one_equally_often(hooks):
    group = [Subject(f"{number}", "", "command", [f"{number}"], None) for number in range(hooks)]
    group[0].other = ["other"]
    started, chance = [], random.Random(1)

    def run(_, argv):
        started.append(argv[-1])
        return Sample(1.0, 1.0, 0)

    for _ in range(3000):
        rounds.run_group(group, run, chance)
    pairs = Counter((before, after) for before, after in itertools.pairwise(started) if before != after)
    programs = hooks + 3
    assert len(pairs) == programs * (programs - 1)
    mean = pairs.total() / len(pairs)
    assert all(0.8 * mean < count < 1.2 * mean for count in pairs.values())


def test_each_run_is_kept_with_those_of_its_round():
    group = [Subject(name, "", "command", [name], None, other) for name, other in (("a", None), ("b", ["c"]))]
    times = {"a": 1.0, "b": 2.0, "c": 3.0, "pass": 4.0, nothing_program(): 5.0}
    rounds.run_group(group, lambda _, argv: Sample(times[argv[-1]], 0.0, 0), random.Random(2))
    walls = [
        [[sample.wall for sample in samples] for samples in (one.samples, one.others, one.bare_runs, one.true_runs)]
        for one in group
    ]
    assert walls == [[[1.0], [], [4.0], [5.0]], [[2.0], [3.0], [4.0], [5.0]]]


def test_a_program_takes_as_long_as_itself_whatever_ran_before_it():
    """What a program leaves in the processor's caches makes the next one slower or faster."""
    one = Subject("true", "", "command", [nothing_program()], None, [nothing_program()])
    two = Subject("slow", "", "command", ["slow"], None)
    left, chance, programs = {"slow": 1.5, "pass": 0.8}, random.Random(1), ["slow"]

    def run(_, argv):
        programs.append(argv[-1])
        return Sample(left.get(programs[-2], 1.0) * chance.uniform(0.98, 1.02), 0.0, 0)

    for _ in range(2000):
        rounds.run_group([one, two], run, chance)
    for beside in (one.true_runs, one.others):
        assert 0.99 < one.ratio(beside).value < 1.01


@pytest.mark.skipif(not IS_LONG, reason="in `make fuzz`: it measures, on a computer that does nothing else")
def test_a_program_takes_as_long_as_itself(tmp_path):
    """Whatever the programs before it leave in the processor's caches."""
    case = next(case for case in CASES if case.name == "idle, no state")
    project = BenchProject(tmp_path / "project", case, "10 KB")
    one = Subject("true", "", "command", [nothing_program()], project, [nothing_program()])
    rounds.run_rounds([one], 150)
    for beside in (one.true_runs, one.others):
        found = one.ratio(beside)
        assert found.low < 1.05, found
        assert found.high > 0.95, found


@pytest.mark.parametrize(("limit", "runs"), sample([("ratio", 200 if IS_LONG else 50), ("ms", 200), ("p99_ms", 50)], 3))
def test_the_simulated_judge_is_wrong_as_rarely_as_is_promised(limit, runs):
    argv = [sys.executable, str(ROOT / "benches/bench_quality.py"), "--limit", limit, "--runs", str(runs)]
    printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    shares = re.findall(r"^\| \d \| (.+?) \| ([\d.]+)% \| ([\d.]+)% \|", printed, re.MULTILINE)
    assert len(shares) == 10
    wrong = {"within the limit": [], "10 % over it": []}
    for kind, passes, fails in shares:
        wrong[kind].append(float(fails if kind == "within the limit" else passes))
    assert max(wrong["within the limit"]) <= 1
    assert max(wrong["10 % over it"]) <= 5


def test_a_real_hook_is_compared_with_what_ran_beside_it(tmp_path):
    case = next(case for case in CASES if case.name == "idle, active")
    project = BenchProject(tmp_path / "project", case, "10 KB")
    project.check()
    one = Subject(case.name, "10 KB", "cold", project.hook, project, [nothing_program()])
    rounds.run_rounds([one], 3)
    assert [len(values) for values in (one.samples, one.others, one.bare_runs, one.true_runs)] == [3, 3, 3, 3]
    assert {sample.exit_code for sample in one.samples} == {2}
    assert all(sample.cpu > 0 for sample in (*one.samples, *one.bare_runs))
    assert min(sample.cpu for sample in one.samples) > max(sample.cpu for sample in one.others)


BUSY_LOOP = "end = time.process_time() + 0.05\nwhile time.process_time() < end: pass"


@LINUX
@pytest.mark.parametrize(("code", "waited", "slept"), [("time.sleep(0.2)", 0, 199), (BUSY_LOOP, 30, 0)])
def test_how_long_a_process_waited_for_a_processor_is_known(tmp_path, code, waited, slept):
    """It shares a processor with another process that works, and waits for half of the time."""
    (tmp_path / "payload").touch()
    one = min(os.sched_getaffinity(0))
    argv = ["taskset", "-c", str(one), sys.executable, "-S", "-c"]
    with Started([*argv, "while 1: pass"]) as other:
        sample = run_once([*argv, f"import time\n{code}"], tmp_path / "payload", dict(os.environ))
        other.kill()
    assert sample.waited >= waited
    assert sample.wall - sample.waited - sample.cpu > slept - 1
    assert 0 <= sample.system <= sample.cpu


@LINUX
def test_how_long_a_process_waited_is_not_known_if_others_worked_for_it(tmp_path):
    (tmp_path / "payload").touch()
    words = f"{sys.executable} -S -c 'import time\n{BUSY_LOOP}'; true"
    sample = run_once(["/bin/sh", "-c", words], tmp_path / "payload", dict(os.environ))
    assert (sample.cpu > 50, sample.waited) == (True, None)


@pytest.mark.skipif(bool(SANITIZER), reason="the hooks are started without a sanitizer's runtime")
def test_a_warm_hook_that_no_worker_answers_has_no_figures():
    case = next(case for case in CASES if case.name == "idle, active")
    with short_folder() as folder:
        with pool_of_bench(Path(folder, "pool")) as client:
            project = BenchProject(Path(folder, "project"), case, "10 KB")
            subjects = []

            def are_answered():
                """Measure them, unless workers were too late for most of a hook's runs: the machine was busy."""
                names = ("one", "two", "three")
                subjects[:] = [Subject(name, "", "warm", hook_command("idle", client), project) for name in names]
                rounds.run_rounds(subjects, 40)  # more runs than places in the ring
                return not any(one.unanswered() for one in subjects)

            wait_until(are_answered)
            assert all(20 <= one.answered <= 40 for one in subjects)
            Path(client_folder_of(client), POOL_START_FILE).write_text("\n")  # no hook starts another pool
        one = Subject("one", "", "warm", subjects[0].argv, project)
        rounds.run_rounds([one], 2)
    assert one.unanswered() == "no figures: a worker of the pool answered only 0 of its 2 runs"
    assert Limits(1000).verdict(one) == NOISY
