"""The judge of hooks: the number of its rounds, and its verdicts: too slow, too noisy."""

import json

import pytest
from support.bench_runs import add_rounds, sample_of, subject_of

from tailhook.bench.intervals import FAIL, NOISY, PASS
from tailhook.bench.report import bench_facts, note_earlier_run
from tailhook.bench.rounds import Limits, Subject, measure_until_clear


@pytest.fixture
def measured():
    """Let rounds give these times: one list for each measurement of a subject."""

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


# The time that a process waited for a processor is known.
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


def earlier(one, times, bare=(10.0,)):
    """Let a subject have had other times in an earlier run."""
    saved = json.loads(json.dumps(bench_facts([subject_of(times=times, bare=[*bare] * len(times))], Limits(), {})))
    assert note_earlier_run([one], saved) == []
    return one


def test_a_hook_that_became_slower_than_the_limit_on_regressions_fails():
    one = earlier(subject_of(times=[13.0] * 20, bare=[10.0] * 20), [10.0] * 20)
    assert Limits(regression=1.2).verdicts(one) == [
        (FAIL, "1.30 times what it was before (1.30 to 1.30), the limit is 1.2")
    ]
    assert Limits(regression=1.3).verdict(one) == PASS


def test_a_change_whose_interval_reaches_over_the_limit_is_too_noisy():
    wild = [8.0, 10.0, 12.0, 14.0, 16.0] * 4
    one = earlier(subject_of(times=wild, bare=[10.0] * 20), wild)
    ((verdict, words),) = Limits(regression=1.1).verdicts(one)
    assert (verdict, words.partition(": ")[0]) == (NOISY, "too noisy to decide")
    assert Limits(regression=3).verdict(one) == PASS


def test_a_change_that_the_processor_time_does_not_confirm_is_too_noisy():
    """The hook waits for a processor as bare Python does, and works as long as before."""
    one = earlier(subject_of(times=[(90.0, 12.0)] * 20, bare=[(50.0, 10.0)] * 20), [12.0] * 20)
    assert Limits(regression=1.3).verdict(one) == NOISY
    slower = earlier(subject_of(times=[(90.0, 18.0)] * 20, bare=[(50.0, 10.0)] * 20), [12.0] * 20)
    assert Limits(regression=1.3).verdict(slower) == FAIL


def test_a_regression_is_judged_beside_the_other_hook_of_the_same_rounds():
    one = subject_of(times=[13.0] * 20, bare=[10.0] * 20)
    one.others += [sample_of(10.0)] * 20
    assert Limits(regression=1.2).verdicts(one) == [
        (FAIL, "1.30 times the other hook (1.30 to 1.30), the limit is 1.2")
    ]
    assert Limits(regression=1.4).verdict(one) == PASS


def test_a_hook_without_an_earlier_run_has_no_regression():
    one = subject_of(times=[13.0] * 20, bare=[10.0] * 20)
    other = bench_facts([subject_of(name="other", times=[1.0], bare=[1.0])], Limits(), {})
    assert note_earlier_run([one], other) == [one]
    assert Limits(regression=1.2).verdicts(one) == []
