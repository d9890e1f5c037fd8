"""The judge of hooks: intervals, users' commands, instructions, cases. The contract tests time real processes."""

import itertools
import json
import math
import os
import random
import shlex
import statistics
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bench_runs import subject_of

from tailhook._core import iso_time
from tailhook.bench import instructions
from tailhook.bench.cases import CASES, EVENT_FIELDS, BenchProject, Case, no_state
from tailhook.bench.commands import command_argv
from tailhook.bench.instructions import (
    TASK_CLOCK,
    CountError,
    count_by_processor,
    count_by_valgrind,
    instruction_counter,
    open_counter,
    processor_counts,
)
from tailhook.bench.intervals import FAIL, NOISY, NOT_COUNTED, PASS, Estimate, at_least, estimate, judge
from tailhook.bench.rounds import Limits, Subject
from tailhook.hook.machines import MACHINES

# ---- intervals -------------------------------------------------------------------


def test_the_median_and_the_99th_percentile_are_values_that_were_measured():
    values = list(range(1, 101))
    assert estimate(values).value == 50
    assert estimate(values, 0.99).value == 99
    assert estimate(values, 1.0).value == 100
    assert estimate([7.0]) == Estimate(7.0, 7.0, 7.0)


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=60), st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_an_interval_contains_its_estimate(values, quantile):
    found = estimate(values, quantile)
    assert found.low <= found.value <= found.high
    assert {found.low, found.value, found.high} <= set(values)


def test_the_interval_is_that_of_a_bootstrap_at_random():
    values = [random.Random(5).gauss(10, 2) for _ in range(41)]
    draw = random.Random(7)
    medians = sorted(statistics.median_low(draw.choices(values, k=41)) for _ in range(20_000))
    found = estimate(values)
    ordered = sorted(values)
    for ours, theirs in ((found.low, medians[500]), (found.high, medians[-501])):
        assert abs(ordered.index(ours) - ordered.index(theirs)) <= 1


def test_the_interval_contains_the_true_median_almost_as_often_as_it_promises():
    """A bootstrap of the median of few values is a little too narrow."""
    draw = random.Random(11)
    found = [estimate([draw.lognormvariate(0, 0.3) for _ in range(60)]) for _ in range(1000)]
    assert 0.9 <= sum(one.low <= 1 <= one.high for one in found) / 1000 <= 0.98


@pytest.mark.parametrize(("successes", "trials", "chance"), [(0, 5, 0.3), (3, 5, 0.3), (5, 5, 0.3), (2, 7, 1.0)])
def test_the_probability_of_so_many_successes(successes, trials, chance):
    exact = sum(
        math.comb(trials, number) * chance**number * (1 - chance) ** (trials - number)
        for number in range(successes, trials + 1)
    )
    assert at_least(successes, trials, chance) == pytest.approx(exact)


@pytest.mark.parametrize(
    ("low", "value", "high", "verdict"),
    [
        (1.0, 1.1, 1.2, PASS),
        (1.0, 1.2, 1.3, PASS),
        (1.31, 1.4, 1.5, FAIL),
        (1.301, 1.302, 1.303, FAIL),
        (1.28, 1.31, 1.34, PASS),  # narrow: the lower end decides
        (1.0, 1.3, 1.8, NOISY),
    ],
)
def test_the_lower_end_of_the_interval_decides(low, value, high, verdict):
    assert judge(Estimate(value, low, high), 1.3) == verdict


# ---- commands of users -----------------------------------------------------------


@pytest.mark.parametrize("command", ["sh hook.sh --a=b", "sh 'my hook.sh'", "/bin/sh -c true"])
def test_a_command_without_shell_syntax_is_started_without_a_shell(command):
    assert command_argv(command) == shlex.split(command)


@pytest.mark.parametrize(
    "command",
    [
        "true && false",
        "sh $HOME/x",
        "sh ~/x",
        "A=1 sh x",
        "sh *.sh",
        "exec sh x",
        "true\nfalse",
        "no-such-program",
        "''",
    ],
)
def test_a_command_that_needs_a_shell_is_run_by_one(command):
    assert command_argv(command) == ["/bin/sh", "-c", command]


# ---- instructions ----------------------------------------------------------------


def perf_can_count(event):
    try:
        return count_by_processor(["true"], Path(os.devnull), {}, event) > 0
    except (OSError, CountError):
        return False


@pytest.mark.skipif(not perf_can_count(TASK_CLOCK), reason="the kernel allows no counters")
def test_what_the_kernel_counts_is_that_of_the_process_and_of_those_that_it_starts():
    count = "sum(range(3_000_000))"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{count}'])"

    def clock(program):
        return count_by_processor([sys.executable, "-c", program], Path(os.devnull), {}, TASK_CLOCK)

    nothing, alone, below = clock("pass"), clock(count), clock(child)
    assert 1e6 < nothing < alone
    assert below > alone - nothing / 2


@pytest.mark.parametrize("machine", ["x86_64", "pdp11"])
def test_without_a_counter_of_the_processor_valgrind_counts_if_it_may(monkeypatch, machine):
    """No hardware event has this number. The kernel refuses it like an event that the processor lacks."""
    monkeypatch.setattr(instructions, "INSTRUCTIONS", (0, 999))
    monkeypatch.setattr(instructions.platform, "machine", lambda: machine)
    monkeypatch.setattr(instructions.open_counter, "__defaults__", ((0, 999),))
    monkeypatch.setattr(instructions.count_by_processor, "__defaults__", ((0, 999),))
    with pytest.raises(OSError, match="perf_event_open"):
        open_counter()
    assert not processor_counts()
    assert instruction_counter(slow=False) is None
    monkeypatch.setattr(instructions.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert instruction_counter(slow=True) is count_by_valgrind


def test_a_limit_on_instructions_does_not_pass_what_is_not_counted():
    one = subject_of(times=[12.0] * 20, bare=[10.0] * 20)
    assert Limits(instructions=1.3).verdict(one) == NOT_COUNTED
    assert Limits(1.35, instructions=1.3).verdict(one) == PASS
    assert Limits(1.1, instructions=1.3).verdict(one) == FAIL


# ---- cases -----------------------------------------------------------------------


def test_every_machine_has_cases_and_no_two_cases_have_one_name():
    assert {case.machine for case in CASES if "," not in case.machine} == set(MACHINES)
    assert len({case.name for case in CASES}) == len(CASES)


def test_every_case_and_every_worst_case_has_a_baseline_of_its_instructions(monkeypatch):
    benches = Path(__file__).parents[2] / "benches"
    monkeypatch.syspath_prepend(benches)
    worst = {case.about for case in __import__("worst_cases").CASES}
    monkeypatch.delitem(sys.modules, "worst_cases")
    baseline = json.loads((benches / "instructions.json").read_text())
    assert ({case.name for case in CASES} | worst) - baseline.keys() == set()


def test_the_names_of_the_cases_with_every_machine_do_not_change_with_the_machines():
    names = [case.name for case in CASES if "," in case.machine]
    assert names == ["every machine that decides, no state", "every machine, no state"]


@pytest.mark.parametrize("event", EVENT_FIELDS)
def test_a_payload_of_each_event_is_standard(tmp_path, event):
    stop = BenchProject(tmp_path / "project", Case("plates", "x", "Hm.", False, no_state, event=event), "10 KB")
    payload = json.loads(stop.payload.read_text())
    assert payload["hook_event_name"] == event
    assert {"session_id", "transcript_path", "cwd"} < set(payload)


def test_the_titles_of_all_subjects_differ():
    titles = [
        Subject(case.name, size, form, [], None).title for case, size, form in itertools.product(CASES, "ab", "cw")
    ]
    assert len(set(titles)) == len(titles)


def test_a_reset_leaves_only_what_every_later_stop_finds(tmp_path):
    stop = BenchProject(tmp_path / "stop", Case("gate", "test", "Hm.", False, no_state), "10 KB")
    state = stop.folder / ".local/state/tailhook"
    state.mkdir(parents=True)
    (state / "memory/ab").mkdir(parents=True)
    for name in ("1.gate", "gate.lock", "memory/ab/2.memory", "memory/ab/2.memory.lock", "events", "jwz-index"):
        (state / name).touch()
    stop.reset()
    left = {path.name for path in state.rglob("*") if path.is_file()}
    assert left == {"gate.lock", "2.memory.lock", "events", "jwz-index"}


@pytest.mark.parametrize("case", [case for case in CASES if case.name in ("idle, completing", "ralph, promise kept")])
def test_a_later_round_decides_like_the_first(tmp_path, monkeypatch, case):
    monkeypatch.setattr("tailhook.bench.cases.iso_time", lambda at: iso_time(at - 50))  # it was written 50 s ago
    stop = BenchProject(tmp_path / "stop", case, "10 KB")
    for _ in range(2):
        stop.check()
        stop.reset()
