"""The judge of hooks: intervals, verdicts, formats. The timing itself is tested with real processes."""

import itertools
import json
import math
import os
import random
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from tailhook.bench.processes import Sample
from tailhook.bench.report import (
    SCHEMA,
    SavedRunError,
    bench_facts,
    commit_of,
    compare_runs,
    format_figures,
    read_saved,
)
from tailhook.bench.rounds import Limits, Subject, measure_until_clear
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


# ---- rounds ----------------------------------------------------------------------


def subject_of(name="idle", times=(), bare=(), form="cold"):
    """Return a subject that was measured. A time is as of `sample_of`."""
    one = Subject(name, "10 KB", form, ["hook"], None)
    add_rounds(one, times, bare)
    return one


def add_rounds(subject, times, bare):
    """Add rounds to a subject."""
    subject.samples += map(sample_of, times)
    subject.bare_runs += map(sample_of, bare)
    subject.true_runs += [sample_of(1.0)] * len(times)


def sample_of(time):
    """Return a run of a process that had the processor all the time, if only a wall time is given.

    time: otherwise also its processor time, and how long it waited for a processor, if that is known.
    """
    wall, cpu, *waited = time if isinstance(time, tuple) else (time, time)
    return Sample(wall, cpu, 0, *(waited or [None]), system=4.0)


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
                add_rounds(one, times, [(50.0, 10.0) if isinstance(time, tuple) else 10.0 for time in times])

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


# A processor is shared with other programs: bare Python takes 10 ms of it in 50 ms.
WAITING = (50.0, 10.0)
SLOW_BY_WAITING, SLOW_BY_WORK = (70.0, 12.5), (75.0, 15.0)


def test_a_hook_that_exceeds_the_limit_while_bare_python_waits_for_a_processor_is_too_noisy():
    one = subject_of(times=[*[SLOW_BY_WAITING] * 84, *[12.5] * 16], bare=[*[WAITING] * 84, *[10.0] * 16])
    ((verdict, words),) = Limits(1.35).verdicts(one)
    first, _, then = words.partition("; ")
    assert verdict == NOISY
    assert first == "too noisy to decide: 1.40 times bare Python (1.40 to 1.40), the limit is 1.35"
    assert then.startswith("bare Python waited for a processor in 84 of 100 rounds, and the hook's processor time is ")
    assert then.endswith(" 1.25 times bare Python (1.25 to 1.25)")
    assert Limits(1.45).verdict(one) == PASS


def test_a_hook_that_exceeds_the_limit_by_processor_time_fails_however_busy_the_computer_is():
    one = subject_of(times=[SLOW_BY_WORK] * 20, bare=[WAITING] * 20)
    assert Limits(1.35).verdicts(one) == [(FAIL, "1.50 times bare Python (1.50 to 1.50), the limit is 1.35")]


def test_a_hook_over_the_limit_does_not_pass_because_bare_python_waits_as_long_as_it_does():
    one = subject_of(times=[(55.0, 15.0)] * 20, bare=[WAITING] * 20)
    assert Limits(1.35).verdict(one) == NOISY


@pytest.mark.parametrize(("busy", "verdict"), [(0, FAIL), (10, FAIL), (11, NOISY)])
def test_a_hook_that_waits_for_something_else_fails_unless_bare_python_waits_in_most_rounds(busy, verdict):
    """Its own waiting is not a sign of other programs."""
    bare = [*[WAITING] * busy, *[50.0] * (20 - busy)]
    assert Limits(1.35).verdict(subject_of(times=[(500.0, 10.0)] * 20, bare=bare)) == verdict


# How long a process waited for a processor is known.
KNOWN_WAITING = (50.0, 10.0, 40.0)


@pytest.mark.parametrize(
    ("time", "verdict"),
    [
        ((70.0, 12.5, 57.5), NOISY),  # it works
        ((75.0, 15.0, 60.0), FAIL),
        ((75.0, 1.0, 60.0), FAIL),  # it waits for something else, and then for a processor
        ((60.0, 1.0, 0.1), NOISY),
        ((60.0, 12.0, 48.0), PASS),
    ],
)
def test_what_a_hook_waits_for_a_processor_is_left_out_and_what_else_it_waits_for_is_not(time, verdict):
    assert Limits(1.35).verdict(subject_of(times=[time] * 20, bare=[KNOWN_WAITING] * 20)) == verdict


def test_a_hook_that_waits_for_something_else_fails_a_limit_in_milliseconds_on_a_busy_computer():
    one = subject_of(times=[(303.0, 1.0, 0.2)] * 400, bare=[KNOWN_WAITING] * 400)
    assert [verdict for verdict, _ in Limits(ms=100, p99_ms=100).verdicts(one)] == [FAIL, FAIL]
    assert (
        Limits(ms=302.9)
        .verdicts(one)[0][1]
        .endswith("and the hook's time without that is 302.80 ms (302.80 to 302.80)")
    )


def test_the_processor_time_counts_if_it_is_not_known_of_all_runs_how_long_they_waited():
    times = [(303.0, 1.0, 0.2)] * 19 + [(303.0, 1.0)]
    assert Limits(ms=100).verdict(subject_of(times=times, bare=[KNOWN_WAITING] * 20)) == NOISY
    assert Limits(1.35).verdict(subject_of(times=[(303.0, 1.0, 0.2)] * 20, bare=[WAITING] * 20)) == NOISY


def test_the_processor_time_of_a_warm_hook_is_not_all_that_it_takes():
    """Its worker may be too slow, or have waited: only the wall time shows that."""
    one = subject_of(times=[(75.0, 1.0)] * 20, bare=[WAITING] * 20, form="warm")
    ((verdict, words),) = Limits(1.35).verdicts(one)
    assert verdict == NOISY
    assert words.endswith("20 of 20 rounds, and the client's processor time is 0.10 times bare Python (0.10 to 0.10)")
    assert Limits(1.55).verdicts(one)[0][0] == PASS


def test_limits_in_milliseconds_are_judged_in_the_same_way():
    waiting = subject_of(times=[SLOW_BY_WAITING] * 400, bare=[WAITING] * 400)
    assert [verdict for verdict, _ in Limits(ms=60, p99_ms=60).verdicts(waiting)] == [NOISY, NOISY]
    assert Limits(ms=60).verdicts(waiting)[0][1].endswith("and the hook's processor time is 12.50 ms (12.50 to 12.50)")
    assert [verdict for verdict, _ in Limits(ms=12, p99_ms=12).verdicts(waiting)] == [FAIL, FAIL]
    rarely = subject_of(times=[*[12.5] * 380, *[SLOW_BY_WAITING] * 20], bare=[*[10.0] * 380, *[WAITING] * 20])
    assert [verdict for verdict, _ in Limits(ms=60, p99_ms=60).verdicts(rarely)] == [PASS, FAIL]


INTERRUPTED, DELAYED = (70.0, 12.5, 57.5), (70.0, 12.5, 0.5)


@pytest.mark.parametrize(
    ("limits", "slow", "slow_runs", "busy", "verdict"),
    [
        (Limits(p99_ms=60), INTERRUPTED, 20, 1, NOISY),
        (Limits(p99_ms=60), INTERRUPTED, 20, 0, FAIL),  # bare Python did not wait, so the computer is not busy
        (Limits(p99_ms=60), DELAYED, 20, 20, FAIL),
        (Limits(p99_ms=12), INTERRUPTED, 20, 20, FAIL),
        (Limits(ms=60), INTERRUPTED, 250, 41, NOISY),
        (Limits(ms=60), INTERRUPTED, 250, 40, FAIL),
        (Limits(ms=60), DELAYED, 250, 41, FAIL),
        (Limits(1.35), INTERRUPTED, 399, 41, NOISY),
        (Limits(1.35), DELAYED, 399, 41, FAIL),
    ],
)
def test_interruptions_count_if_there_are_enough_of_them_to_change_the_figure(limits, slow, slow_runs, busy, verdict):
    """Of 400 runs, 4 are above the 99th percentile and 200 above the median; a fifth as many may change it."""
    times = [*[(12.5, 12.5, 0.0)] * (400 - slow_runs), *[slow] * slow_runs]
    bare = [*[(10.0, 10.0, 0.0)] * (400 - busy), *[KNOWN_WAITING] * busy]
    assert limits.verdict(subject_of(times=times, bare=bare)) == verdict


def test_a_wide_interval_is_explained_by_what_interrupts():
    one = subject_of(times=[(80.0, 12.0), (300.0, 12.0)] * 10, bare=[WAITING] * 20)
    ((verdict, words),) = Limits(2).verdicts(one)
    assert verdict == NOISY
    assert words.endswith("20 of 20 rounds, and the hook's processor time is 1.20 times bare Python (1.20 to 1.20)")
    still = subject_of(times=WILD, bare=[10.0] * 20)
    assert Limits(1.35).verdicts(still)[0][1].endswith("the limit is 1.35")


def test_the_wall_time_decides_if_the_system_does_not_measure_so_short_a_processor_time():
    one = subject_of(times=[(15.0, 0.0)] * 20, bare=[(10.0, 0.0)] * 20)
    assert Limits(1.35).verdict(one) == FAIL
    one = subject_of(times=[SLOW_BY_WAITING] * 20, bare=[*[(10.0, 0.0)] * 5, *[WAITING] * 15])
    assert Limits(1.35).verdict(one) == NOISY


def test_a_hook_that_was_interrupted_gets_more_rounds_until_the_others_are_more(measured):
    busy, quiet = [SLOW_BY_WAITING] * 20, [12.5] * 41
    assert measured(Limits(1.35), a=[busy, quiet]) == ({"a": PASS}, [["a"], ["a"]])
    verdicts, asked = measured(Limits(1.35), attempts=3, a=[busy, busy, busy])
    assert (verdicts, len(asked)) == ({"a": NOISY}, 3)


def test_each_limit_has_its_verdict():
    one = subject_of(times=[*[12.0] * 99, 500.0], bare=[10.0] * 100)
    one.instructions, one.bare_instructions = 120, 100
    assert [verdict for verdict, _ in Limits(1.1, 13, 20, 1.1).verdicts(one)] == [FAIL, PASS, NOISY, FAIL]
    assert Limits(1.3, 13, None, 1.3).verdict(one) == PASS
    assert Limits().verdicts(one) == []


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
    found = json.loads(format_figures("json", facts))
    assert found["schema"] == SCHEMA
    assert {"tailhook", "commit", "python", "machine", "load", "date", "rows"} < set(found)
    row = found["rows"][1]
    assert (row["case"], row["verdict"], row["rounds"]) == ("ralph", "fail", 7)
    assert row["ratio_to_bare"] == {"value": 2.1, "low": 2.0, "high": 2.2}
    assert "2.10 times bare Python (2.00 to 2.20), the limit is 1.35" in row["reasons"]


def test_other_tools_get_their_format(facts):
    bmf = json.loads(format_figures("bmf", facts))
    assert bmf["ralph, 10 KB, cold"]["latency"] == {"value": 21e6, "lower_value": 20e6, "upper_value": 22e6}
    github = json.loads(format_figures("github", facts))
    assert {"name", "unit", "value", "range", "extra"} == set(github[0])
    hyperfine = json.loads(format_figures("hyperfine", facts))["results"][1]
    assert (hyperfine["user"], hyperfine["system"]) == (pytest.approx(0.017), pytest.approx(0.004))
    assert (hyperfine["median"], hyperfine["min"], hyperfine["times"]) == (
        0.021,
        0.02,
        [0.02, 0.02, 0.02, 0.021, 0.022, 0.022, 0.022],
    )
    markdown = format_figures("markdown", facts).splitlines()
    assert markdown[2].startswith("| idle \\| odd, 10 KB, cold | 12.50 ms |")
    assert markdown[3].endswith("| fail |")
    assert "ralph, 10 KB, cold" in format_figures("text", facts)


def test_a_hook_that_others_are_compared_with_is_in_each_format():
    one = subject_of("ralph", [20.0] * 8, [10.0] * 8)
    one.other = ["other", "hook"]
    one.others = [sample._replace(wall=40.0) for sample in one.samples]
    facts = bench_facts([one], Limits(1.35), {one.title: FAIL})
    assert facts["rows"][0]["other"]["command"] == "other hook"
    assert facts["rows"][0]["other"]["median_ms"]["value"] == 40.0
    markdown = format_figures("markdown", facts).splitlines()
    assert "| beside the other hook | verdict |" in markdown[0]
    assert "| 0.50 (0.50-0.50) | fail |" in markdown[2]
    assert markdown[-1].startswith("- ralph, 10 KB, cold: ")
    assert "x other" in format_figures("text", facts)
    title = "ralph, 10 KB, cold, other"
    assert json.loads(format_figures("bmf", facts))[title]["latency"]["value"] == 40e6
    assert [row["value"] for row in json.loads(format_figures("github", facts)) if row["name"] == title] == [4.0]
    hyperfine = json.loads(format_figures("hyperfine", facts))["results"]
    assert [row["median"] for row in hyperfine if row["command"] == title] == [0.04]
    assert hyperfine[0]["exit_codes"] == [0] * 8


@pytest.mark.parametrize("format_name", ["text", "markdown"])
def test_a_table_has_every_figure_of_a_hook(facts, format_name):
    head = "instructions, x bare" if format_name == "text" else "instructions, beside bare Python"
    assert head not in format_figures(format_name, facts)
    first, other = facts["rows"]
    first |= {"instructions": 120, "instruction_ratio": 1.2}
    words = format_figures(format_name, facts)
    assert head in words
    line = next(line for line in words.splitlines() if first["case"].partition(" ")[0] in line and "12.50 ms" in line)
    figures = ["12.50 ms", "13.00 ms", "1.25 (1.20-1.30)", "12.50 (12.00-13.00)", "1.200"]
    assert [figure for figure in figures if figure in line] == figures
    assert other["instruction_ratio"] is None


def test_an_earlier_run_is_compared(facts, tmp_path):
    path = tmp_path / "before.json"
    path.write_text(format_figures("json", facts))
    before = read_saved(str(path))
    subjects = [subject_of("ralph", [30.0] * 3, [10.0] * 3), subject_of("triage", [5.0] * 3, [10.0] * 3)]
    now = bench_facts(subjects, Limits(), {})
    lines = compare_runs(before, now)
    assert "+42.9%" in lines[1]
    assert lines[2].endswith("new")
    assert lines[3].endswith("gone")
    assert "within the noise" in compare_runs(before, before)[1]


def test_names_of_an_earlier_run_are_printed_without_their_control_characters(facts):
    row = {**facts["rows"][0], "case": "\x1b[31mred\nline", "transcript": "\x9b", "form": "\x07"}
    lines = compare_runs({"rows": [row]}, facts)
    assert lines[-1].startswith("\\x1b[31mred\\nline, \\x9b, \\x07")


def test_rows_of_two_hooks_are_not_compared():
    def run(argv, time):
        one = Subject("Stop", "10 KB", "command", argv, None)
        add_rounds(one, [time], [10.0])
        return bench_facts([one], Limits(), {})

    before, now = run(["python3", "a b.py"], 20.0), run(["node", "b.js"], 30.0)
    assert (before["rows"][0]["command"], before["rows"][0]["transcript"]) == ("python3 'a b.py'", "10 KB")
    assert "+50.0%" in compare_runs(before, run(["python3", "a b.py"], 30.0))[1]
    lines = compare_runs(before, now)
    assert len(lines) == 2
    assert lines[1].endswith("  another command: not compared")
    assert "%" not in lines[1]


def test_the_json_has_the_ratio_that_the_limit_on_instructions_judges():
    one = subject_of(times=[12.0], bare=[10.0])
    assert bench_facts([one], Limits(), {})["rows"][0]["instruction_ratio"] is None
    one.instructions, one.bare_instructions = 150, 100
    assert bench_facts([one], Limits(), {})["rows"][0]["instruction_ratio"] == 1.5
    assert bench_facts([one], Limits(), {})["rows"][0]["command"] is None


RATIO = '{"value": 1.2, "low": 1.1, "high": %s}'
ROW = '{"schema": 1, "rows": [{"case": "idle", "transcript": "", "form": "cold", "ratio_to_bare": %s}]}'


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", "{}", '{"schema": 99, "rows": []}', "nonsense", "\udcff"),
        *('{"schema": 1, "rows": [{}]}', '{"schema": 1, "rows": [7]}', ROW % "null", ROW % 1.2),
        *(ROW % (RATIO % end) for end in ('"x"', "null", "NaN", "0", "true")),
        pytest.param(ROW % (RATIO % ("1" + "0" * 400)), id="a large number"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param(f'{{"schema": {"[" * 400}1{"]" * 400}, "rows": []}}', id="a deep schema"),
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
    for name in ("1.gate", "gate.lock", "2.memory", "events", "jwz-index"):
        (state / name).touch()
    stop.reset()
    assert {path.name for path in state.iterdir()} == {"gate.lock", "events", "jwz-index"}
