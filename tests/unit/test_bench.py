"""The benchmark's gate: what is timed again, and when it fails. The timing itself is tested with real hooks."""

from argparse import Namespace

import pytest

from tailhook.cli import bench
from tailhook.cli.bench import ATTEMPTS, CASES, Case, Stop, nothing
from tailhook.hook.machines import MACHINES

SLOW, FINE = 1.5, 1.2


@pytest.fixture
def gate(monkeypatch, capsys):
    """Run the gate on two hooks, whose ratios are given for each time that they are measured."""

    def run(**ratios):
        measured = []

        def measure(stops, rounds, against):
            measured.append(list(stops))
            rows = [
                {"case": stop, "transcript": "10 KB", "median_ms": 9.0, "p99_ms": 9.0, "ratio": ratios[stop].pop(0)}
                for stop in stops
            ]
            bare = {"median_ms": 6.0, "p99_ms": 6.0}
            return {"python": "", "rounds": rounds, "bare": bare, "hooks": rows, "against": None}

        monkeypatch.setattr(bench, "waiting_stops", lambda folder: list(ratios))
        monkeypatch.setattr(bench, "measure", measure)
        code = bench.bench(Namespace(against=None, max_ratio=1.35, rounds=1, json=False))
        return code, measured, capsys.readouterr().err

    return run


def test_hooks_within_the_limit_are_timed_once(gate):
    assert gate(one=[FINE], two=[FINE]) == (0, [["one", "two"]], "")


def test_a_hook_over_the_limit_is_timed_again_alone(gate):
    assert gate(one=[FINE], two=[SLOW, SLOW, FINE]) == (0, [["one", "two"], ["two"], ["two"]], "")


def test_a_hook_that_stays_over_the_limit_fails(gate):
    code, measured, reported = gate(one=[FINE], two=[SLOW] * ATTEMPTS)
    assert (code, len(measured)) == (1, ATTEMPTS)
    assert reported == "tailhook: two at 10 KB takes 1.50 times bare Python, over the limit of 1.35\n"


def test_every_machine_has_cases_and_no_two_cases_have_one_name():
    assert {case.machine for case in CASES if "," not in case.machine} == set(MACHINES)
    assert len({case.name for case in CASES}) == len(CASES)


def test_the_names_of_the_cases_with_every_machine_do_not_change_with_the_machines():
    names = [case.name for case in CASES if "," in case.machine]
    assert names == ["every machine that decides, no state", "every machine, no state"]


def test_a_reset_empties_the_state_folder(tmp_path):
    stop = Stop(tmp_path / "stop", Case("gate", "test", "Hm.", False, nothing), "10 KB")
    state = stop.folder / ".local/state/tailhook"
    state.mkdir(parents=True)
    for name in ("1.gate", "gate.lock", "2.memory", "events"):
        (state / name).touch()
    stop.reset()
    assert list(state.iterdir()) == []
