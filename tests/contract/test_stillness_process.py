"""Whole hooks of an agent that stands still in a loop."""

import json
import time

import pytest
from support.host import assistant


@pytest.fixture(params=["loop", "ralph"])
def group(request, project):
    project.argv = [*project.argv[:-1], "ralph" if request.param == "ralph" else "idle"]
    return request.param


@pytest.fixture
def start(project, group):
    """Start a loop of this session, with more flags, and let a person send a prompt."""
    words = ("--completion-promise", "GREEN") if group == "ralph" else ("--max", "50")

    def begin(*flags):
        project.as_agent(group, "start", *words, *flags, "Work.").check_returncode()
        assert project.stop(hook_event_name="UserPromptSubmit", prompt="Go.").exit_code == 0

    return begin


def call(number, error, after=1):
    """Return the two records of a failed call.  after: seconds from now."""
    use = assistant(id=f"msg_{number}", at=time.time() + after)
    use["message"]["content"] = [{"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "make"}}]
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "is_error": True, "content": error}
    return use, {"type": "user", "message": {"role": "user", "content": [result]}}


def ending(project, group):
    """Return how the last loop ended."""
    found = json.loads(project.tailhook(group, "status", "--json").stdout)
    return found["ended"]["reason"] if group == "ralph" else found["state"]["reason"]


def test_holding_again_and_again_ends_the_loop_and_the_person_reads_why(project, group, start):
    start()
    for number in range(3):
        project.write(assistant(f"Holding {number}.", id=f"msg_{number}"))
        assert not project.stop(f"Holding {number}.").allowed
    project.write(assistant("Holding 4.", id="msg_4"))
    last = project.stop("Holding 4.", "--announce")
    words = 'it stands still: 4 stops in a row without a tool, with the words "Holding 4."'
    assert words in last.answer["systemMessage"]
    assert ending(project, group) == "STUCK"
    assert project.stop("Holding 5.").allowed


def test_the_same_failing_call_ends_the_loop_over_several_turns(project, group, start):
    start("--stuck-after", "2")
    for turn, calls in enumerate((range(3), range(3, 5), range(5, 6))):
        for number in calls:
            project.write(*call(number, f"make: *** [all] Error {number}"))
        project.write(assistant(f"Turn {'abc'[turn]}.", id=f"end_{turn}"))
        last = project.stop(f"Turn {'abc'[turn]}.", "--announce")
        assert ("reason" in last.answer) == (turn < 2)
    assert "6 calls of Bash with the same input" in last.answer["systemMessage"]
    assert ending(project, group) == "STUCK"


@pytest.mark.parametrize("late", [1, 2])
def test_a_call_whose_result_the_host_writes_after_the_stop_counts_at_the_next_one(project, start, late):
    start("--stuck-after", "2")
    records = [call(number, "make: *** no rule") for number in range(6)]
    for use, result in records[: 6 - late]:
        project.write(use, result)
    project.write(*[use for use, _ in records[6 - late :]])
    assert not project.stop("One.").allowed
    assert not project.stop("Two.").allowed  # still without a result
    project.write(*[result for _, result in records[6 - late :]], assistant("Three."))
    assert project.stop("Three.").allowed


def test_a_call_that_never_has_a_result_is_not_one_that_failed(project, start):
    start("--stuck-after", "3")
    for number in range(12):
        use, result = call(number, "make: *** no rule")
        project.write(use, *([] if number == 6 else [result]))
        assert not project.stop(f"Turn {'abcdefghijkl'[number]}.").allowed


@pytest.mark.parametrize("after", [-60, 1])
def test_the_calls_of_the_first_turn_count_from_the_beginning_of_the_loop(project, group, after):
    project.as_agent(group, "start", "Work.").check_returncode()
    for number in range(12):
        project.write(*call(number, "make: *** no rule", after))
    project.write(assistant("It fails."))
    assert project.stop("It fails.").allowed == (after > 0)


@pytest.mark.parametrize("after", [-60, 1])
def test_without_a_prompt_the_first_stop_is_one_of_those_in_a_row_unless_it_used_a_tool(project, group, after):
    project.tailhook(group, "start", "--stuck-after", "2", "Work.").check_returncode()
    project.write(*call(1, "No.", after))
    project.write(assistant("Holding."))
    found = [project.stop("Holding.").allowed for _ in range(3)]
    assert found.index(True) == (2 if after > 0 else 1)


def test_never_is_a_choice(project, start):
    start("--stuck-after", "0")
    assert not any(project.stop("Holding.").allowed for _ in range(9))


def test_a_work_of_any_kind_goes_on(project, start):
    start("--stuck-after", "1")
    for number in range(4):
        use, result = call(number, "no")
        result["message"]["content"][0]["is_error"] = False
        project.write(use, result, assistant("Again."))
        assert not project.stop("Again.").allowed


@pytest.mark.parametrize("word", ["-1", "x", "1.5"])
def test_another_value_than_a_number_is_refused(project, group, word):
    assert project.as_agent(group, "start", "--stuck-after", word, "Work.").returncode == 2
