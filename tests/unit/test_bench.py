"""The judge of hooks: intervals, verdicts, formats. The timing itself is tested with real processes."""

import itertools
import json
import math
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.host import SANITIZER, short_folder

from tailhook.bench import instructions, rounds
from tailhook.bench.cases import CASES, EVENT_FIELDS, Case, Stop, nothing
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
from tailhook.bench.processes import Sample
from tailhook.bench.report import (
    SCHEMA,
    SavedRunError,
    bench_facts,
    commit_of,
    compare_runs,
    read_saved,
    write_as,
)
from tailhook.bench.rounds import Limits, Subject, measure_until_clear
from tailhook.bench.warm import pool_of_bench
from tailhook.hook.machines import MACHINES
from tailhook.install.command import hook_command
from tailhook.pool.installation import POOL_START_FILE, client_folder_of

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


# ---- rounds ----------------------------------------------------------------------


def subject_of(name="idle", times=(), bare=()):
    """Return a subject that was measured."""
    one = Subject(name, "10 KB", "cold", ["hook"], None)
    one.samples += [Sample(wall, wall / 2, 0) for wall in times]
    one.bare += bare
    one.nothing += [1.0] * len(times)
    return one


@pytest.fixture
def measured():
    """Let rounds give times that are given, one list for each time that a subject is measured."""

    def run(limits, attempts=4, **batches):
        subjects = [Subject(name, "", "command", [], None) for name in batches]
        asked = []

        def run_rounds(waiting, count):
            asked.append([one.name for one in waiting])
            for one in waiting:
                times = batches[one.name].pop(0)
                one.samples += [Sample(wall, 1.0, 0) for wall in times]
                one.bare += [10.0] * len(times)
                one.nothing += [1.0] * len(times)

        return measure_until_clear(subjects, 20, limits, attempts, run_rounds), asked

    return run


STEADY, SLOW, WILD = [12.0] * 20, [15.0] * 20, [8.0, 30.0] * 10


def test_hooks_within_the_limit_are_measured_once(measured):
    assert measured(Limits(1.35), a=[STEADY], b=[STEADY]) == ({"a": PASS, "b": PASS}, [["a", "b"]])


def test_a_hook_over_the_limit_fails_only_if_it_stays_over_it(measured):
    assert measured(Limits(1.35), a=[STEADY], b=[SLOW, SLOW]) == ({"a": PASS, "b": FAIL}, [["a", "b"], ["b"]])
    verdicts, asked = measured(Limits(1.35), a=[SLOW, STEADY * 3])
    assert (verdicts, asked) == ({"a": PASS}, [["a"], ["a"]])


def test_a_noisy_hook_gets_more_rounds_and_is_given_up_at_last(measured):
    verdicts, asked = measured(Limits(1.35), a=[WILD, STEADY * 10])
    assert (verdicts, len(asked)) == ({"a": PASS}, 2)
    verdicts, asked = measured(Limits(1.35), attempts=3, a=[WILD, WILD, WILD])
    assert (verdicts, len(asked)) == ({"a": NOISY}, 3)


def test_each_limit_has_its_verdict():
    one = subject_of(times=[*[12.0] * 99, 500.0], bare=[10.0] * 100)
    one.instructions, one.bare_instructions = 120, 100
    assert [verdict for verdict, _ in Limits(1.1, 13, 20, 1.1).verdicts(one)] == [FAIL, PASS, NOISY, FAIL]
    assert Limits(1.3, 13, None, 1.3).verdict(one) == PASS
    assert Limits().verdicts(one) == []


def test_a_real_hook_is_compared_with_what_ran_beside_it(tmp_path):
    case = next(case for case in CASES if case.name == "idle, active")
    project = Stop(tmp_path / "project", case, "10 KB")
    project.check()
    one = Subject(case.name, "10 KB", "cold", project.hook, project, ["/bin/true"])
    rounds.run_rounds([one], 3)
    assert [len(values) for values in (one.samples, one.others, one.bare, one.nothing)] == [3, 3, 3, 3]
    assert {sample.exit_code for sample in one.samples} == {2}
    assert all(sample.cpu > 0 for sample in one.samples)
    assert statistics.median(one.walls()) > statistics.median(sample.wall for sample in one.others)


@pytest.mark.skipif(bool(SANITIZER), reason="the hooks are started without a sanitizer's runtime")
def test_a_warm_hook_that_no_worker_answers_has_no_figures():
    case = next(case for case in CASES if case.name == "idle, active")
    with short_folder() as folder:
        with pool_of_bench(Path(folder, "pool")) as client:
            project = Stop(Path(folder, "project"), case, "10 KB")
            subjects = [
                Subject(name, "", "warm", hook_command("idle", client), project) for name in ("one", "two", "three")
            ]
            rounds.run_rounds(subjects, 40)  # more runs than the ring has places
            assert all(20 <= one.answered <= 40 for one in subjects)
            assert [one.unanswered() for one in subjects] == ["", "", ""]
            Path(client_folder_of(client), POOL_START_FILE).write_text("\n")  # no hook starts another pool
        one = Subject("one", "", "warm", subjects[0].argv, project)
        rounds.run_rounds([one], 2)
    assert one.unanswered() == "no figures: a worker of the pool answered only 0 of its 2 runs"
    assert Limits(1000).verdict(one) == NOISY


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
    """No hardware event has this number, so the kernel refuses it as it refuses one that the processor lacks."""
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


# ---- formats ---------------------------------------------------------------------


@pytest.fixture
def facts():
    subjects = [
        subject_of("idle | odd", [12.0, 13.0, 12.5], [10.0] * 3),
        subject_of("ralph", [20.0, 20.0, 20.0, 21.0, 22.0, 22.0, 22.0], [10.0] * 7),
    ]
    limits = Limits(1.35)
    return bench_facts(subjects, limits, {one.title: limits.verdict(one) for one in subjects})


def test_the_json_has_all_figures_and_a_schema(facts):
    found = json.loads(write_as("json", facts))
    assert found["schema"] == SCHEMA
    assert {"tailhook", "commit", "python", "machine", "load", "date", "rows"} < set(found)
    row = found["rows"][1]
    assert (row["case"], row["verdict"], row["rounds"]) == ("ralph", "fail", 7)
    assert row["ratio_to_bare"] == {"value": 2.1, "low": 2.0, "high": 2.2}
    assert "2.10 times bare Python (2.00 to 2.20), the limit is 1.35" in row["reasons"]


def test_other_tools_get_their_format(facts):
    bmf = json.loads(write_as("bmf", facts))
    assert bmf["ralph, 10 KB, cold"]["latency"] == {"value": 21e6, "lower_value": 20e6, "upper_value": 22e6}
    github = json.loads(write_as("github", facts))
    assert {"name", "unit", "value", "range", "extra"} == set(github[0])
    hyperfine = json.loads(write_as("hyperfine", facts))["results"][1]
    assert (hyperfine["median"], hyperfine["min"], hyperfine["times"]) == (
        0.021,
        0.02,
        [0.02, 0.02, 0.02, 0.021, 0.022, 0.022, 0.022],
    )
    markdown = write_as("markdown", facts).splitlines()
    assert markdown[2].startswith("| idle \\| odd, 10 KB, cold | 12.50 ms |")
    assert markdown[3].endswith("| fail |")
    assert "ralph, 10 KB, cold" in write_as("text", facts)


def test_an_earlier_run_is_compared(facts, tmp_path):
    path = tmp_path / "before.json"
    path.write_text(write_as("json", facts))
    before = read_saved(str(path))
    subjects = [subject_of("ralph", [30.0] * 3, [10.0] * 3), subject_of("triage", [5.0] * 3, [10.0] * 3)]
    now = bench_facts(subjects, Limits(), {})
    lines = compare_runs(before, now)
    assert "+42.9%" in lines[1]
    assert lines[2].endswith("new")
    assert lines[3].endswith("gone")
    assert "within the noise" in compare_runs(before, before)[1]


RATIO = '{"value": 1.2, "low": 1.1, "high": %s}'
ROW = '{"schema": 1, "rows": [{"case": "idle", "transcript": "", "form": "cold", "ratio_to_bare": %s}]}'


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", "{}", '{"schema": 99, "rows": []}', "nonsense", "\udcff"),
        *('{"schema": 1, "rows": [{}]}', '{"schema": 1, "rows": [7]}', ROW % "null", ROW % 1.2),
        *(ROW % (RATIO % end) for end in ('"x"', "null", "NaN", "0", "true")),
    ],
)
def test_a_file_that_is_not_of_an_earlier_run_is_refused(tmp_path, content):
    path = tmp_path / "before.json"
    path.write_text(content, errors="surrogateescape")
    with pytest.raises(SavedRunError, match=r"before\.json"):
        read_saved(str(path))


def test_the_commit_is_that_of_the_packages_own_checkout(tmp_path):
    checkout = tmp_path / "checkout"
    ours, installed = checkout / "src" / "tailhook", checkout / ".venv" / "tailhook"
    git = ["git", "-C", checkout, "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for package in (ours, installed):
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
    subprocess.run(["git", "init", "--quiet", checkout], check=True)
    assert commit_of(ours) is None
    subprocess.run([*git, "add", ours], check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "x"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    assert head.startswith(commit_of(ours))
    assert commit_of(installed) is None


# ---- cases -----------------------------------------------------------------------


def test_every_machine_has_cases_and_no_two_cases_have_one_name():
    assert {case.machine for case in CASES if "," not in case.machine} == set(MACHINES)
    assert len({case.name for case in CASES}) == len(CASES)


def test_the_names_of_the_cases_with_every_machine_do_not_change_with_the_machines():
    names = [case.name for case in CASES if "," in case.machine]
    assert names == ["every machine that decides, no state", "every machine, no state"]


@pytest.mark.parametrize("event", EVENT_FIELDS)
def test_a_payload_of_each_event_is_standard(tmp_path, event):
    stop = Stop(tmp_path / "project", Case("plates", "x", "Hm.", False, nothing, event=event), "10 KB")
    payload = json.loads(stop.payload.read_text())
    assert payload["hook_event_name"] == event
    assert {"session_id", "transcript_path", "cwd"} < set(payload)


def test_the_titles_of_all_subjects_differ():
    titles = [
        Subject(case.name, size, form, [], None).title for case, size, form in itertools.product(CASES, "ab", "cw")
    ]
    assert len(set(titles)) == len(titles)


def test_a_reset_leaves_only_what_every_later_stop_finds(tmp_path):
    stop = Stop(tmp_path / "stop", Case("gate", "test", "Hm.", False, nothing), "10 KB")
    state = stop.folder / ".local/state/tailhook"
    state.mkdir(parents=True)
    for name in ("1.gate", "gate.lock", "2.memory", "events", "jwz-index"):
        (state / name).touch()
    stop.reset()
    assert {path.name for path in state.iterdir()} == {"gate.lock", "events", "jwz-index"}
