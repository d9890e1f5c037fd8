"""The health check after the computer slept, and after its clock was set."""

import pytest

from tailhook.machines.plates import Look


def test_after_sleep_nothing_is_judged_for_ten_seconds(world):
    world.event("s", "tool_start:ExitPlanMode")
    world.now += 5
    world.looks["s"] = Look(world.now, at=world.now)
    world.now += 3600
    assert world.health.check() == 0
    world.now += 4
    assert world.health.check() == 0
    world.now += 6
    assert world.health.check() == 1


@pytest.mark.parametrize(("gap", "has_slept"), [(30, False), (30.001, True)])
def test_more_than_thirty_seconds_between_two_checks_are_sleep(world, gap, has_slept):
    world.event("s", "tool_start:ExitPlanMode")
    world.now += 5
    world.looks["s"] = Look(world.now, at=world.now)
    world.now += gap - 5
    assert world.health.check() == (not has_slept)


def test_a_clock_that_is_set_is_not_a_sleep(world):
    world.event("s", "tool_start:ExitPlanMode")
    world.set_forward = 3600.0
    world.looks["s"] = Look(world.now + 3600, at=world.now + 3600)
    world.now += 2
    assert world.health.check() == 1


def test_a_clock_that_is_set_back_delays_no_recovery(world):
    world.event("s", "tool_start:ExitPlanMode")
    world.looks["s"] = Look(world.now, at=world.now)
    world.set_forward = -3600.0
    for _ in range(3):
        world.now += 10
        assert world.health.check() == 0
    world.looks["s"] = Look(world.now - 3600, at=world.now - 3600)
    world.now += 10
    assert world.health.check() == 1
    assert world.status("s") == "idle"


def test_a_new_wait_under_a_clock_that_was_set_back_is_examined_again(world):
    world.event("s", "tool_start:ExitPlanMode")
    world.set_forward = -3600.0
    world.health.check()
    world.looks["s"] = Look(world.now, at=world.now)
    world.event("s", "tool_start:AskUserQuestion")
    assert world.health.check() == 0
