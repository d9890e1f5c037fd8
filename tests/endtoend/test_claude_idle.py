"""The idle machine in whole sessions of Claude Code."""

import json
import re

from model import Model, bash, use
from support.host import wait_until

DONE = "<loop-done>COMPLETE</loop-done>"
GOAL = "Make the tests pass."
START = bash(f"tailhook loop start --max 20 '{GOAL}'")
START_CLOSELY = bash("tailhook loop start --stuck-after 2 Work.")  # six failures end it
FAILING = bash("cat /nonexistent")


def iterations(model: Model) -> list[int]:
    """Return the iteration at the end of each of the model's requests, 0 for a request without one."""
    found = [re.search(r"\[ITERATION (\d+)/20\]", one.said) for one in model.requests]
    return [int(one[1]) if one else 0 for one in found]


def test_a_loop_ends_at_the_signal_and_not_at_one_in_code(installed):
    answers = [
        START,
        "Begun.",
        f"I shall write:\n\n```\n{DONE}\n```\n",
        f"Not yet `{DONE}`.",
        bash("echo from the tool"),
        "Tested.",
        f"All pass.\n\n{DONE}",
    ]
    with Model(*answers) as model:
        session = installed.run(model)
    assert iterations(model) == [0, 0, 2, 3, 4, 0, 5]
    assert "from the tool" in model.requests[5].prompted
    assert session.result["result"].endswith(DONE)
    assert json.loads(installed.tailhook("loop", "status", "--json"))["state"]["reason"] == "COMPLETE"


def test_the_host_gives_the_agent_an_iteration_once_and_does_not_call_it_an_error(installed):
    with Model(START, "Begun.", DONE) as model:
        session = installed.run(model)
    assert model.requests[-1].prompted.count("[ITERATION 2/20]") == 1
    summaries = [one for one in session.records("system") if one.get("subtype") == "stop_hook_summary"]
    assert [one["hookErrors"] for one in summaries] == [[], []]
    assert "[ITERATION 2/20]" in summaries[0]["hookAdditionalContext"][0]


def test_to_a_version_that_ignores_contexts_at_a_stop_an_iteration_is_a_block(installed):
    installed.env["AI_AGENT"] = "another-agent"  # the host does not replace it, so the hook knows no version
    with Model(START, "Begun.", DONE) as model:
        session = installed.run(model)
    assert model.requests[-1].prompted.count("[ITERATION 2/20]") == 2
    summaries = [one for one in session.records("system") if one.get("subtype") == "stop_hook_summary"]
    assert ["[ITERATION 2/20]" in error for one in summaries for error in one["hookErrors"]] == [True]


def test_the_host_gives_the_last_text_of_a_message_alone_and_that_ends_the_loop(installed, stops):
    answers = [START, [{"type": "text", "text": "All pass."}, {"type": "text", "text": DONE}]]
    with Model(*answers) as model:
        installed.run(model)
    assert len(model.requests) == 2
    assert [stop["last_assistant_message"] for stop in stops()] == [DONE]


def test_twelve_iterations_with_the_cap_lifted_on_a_transcript_that_lags(installed, stops, report):
    said = [f"Step {letter}." for letter in "abcdefghijkl"]
    with Model(START, *said, DONE) as model:
        installed.run(model)
    assert iterations(model) == [0, 0, *range(2, 14)]
    assert [DONE in one.said for one in model.requests[2:]] == [at == 10 for at in range(2, 14)]
    assert [stop["last_assistant_message"] for stop in stops()] == [*said, DONE]
    late = sum(not stop["there"] for stop in stops())
    report(f"Claude Code: at {late} of {len(stops())} stops the transcript did not have the last message yet")


def test_without_the_cap_lifted_the_host_ignores_the_ninth_block(claude):
    claude.tailhook("install", "--yes")
    with Model(START, *(f"Step {letter}." for letter in "abcdefghijkl")) as model:
        session = claude.run(model)
    assert iterations(model) == [0, 0, *range(2, 10)]
    assert "9 consecutive times" in session.records("system")[-1]["content"]
    assert "tailhook install --block-cap 0" in claude.tailhook("doctor")


def test_only_the_session_that_owns_the_loop_is_held(installed):
    def meanwhile(_):
        with Model("I am another session.") as another:
            installed.run(another)
        assert len(another.requests) == 1
        return "Second."

    with Model(START, "First.", meanwhile, DONE) as model:
        installed.run(model)
    assert iterations(model) == [0, 0, 2, 3]


def test_two_loops_in_one_project_run_beside_each_other(installed):
    def meanwhile(_):
        with Model(bash("tailhook loop start --replace 'Something else.'"), "Hm.", DONE) as another:
            installed.run(another)
        assert len(another.requests) == 3
        return "Second."

    with Model(START, "First.", meanwhile) as model:
        installed.run(model)
    assert len(model.requests) == 3


def test_a_loop_is_adopted_by_a_session_with_a_new_id(installed):
    with Model(START, bash("echo interrupted")) as model:
        old = installed.run(model, "--max-turns", "2")
    with Model("I am new here.", "Anything else?") as model:
        new = installed.run(model)
    assert old.id != new.id
    assert len(model.requests) == 1
    with Model(bash("tailhook loop adopt"), "Now I am on it.", DONE) as model:
        installed.run(model, resume=new.id)
    assert iterations(model) == [0, 0, 2]


def test_a_loop_that_the_agent_starts_in_another_repository_holds_its_session(installed):
    there = f"mkdir -p ~/other/.git && cd ~/other && tailhook loop start --max 20 '{GOAL}'"
    with Model(bash(there), "Begun.", "Going on.", bash("cd ~/other && tailhook loop status"), DONE) as model:
        installed.run(model)
    assert iterations(model) == [0, 0, 2, 3, 0]
    assert "iteration 4/20" in model.requests[4].said
    assert json.loads(installed.tailhook("loop", "status", "--json"))["state"]["reason"] == "COMPLETE"


def test_the_agent_reads_the_goal_at_its_first_block_if_its_sub_agent_started_the_loop(installed):
    task = {"description": "start", "prompt": "Start it.", "subagent_type": "general-purpose"}
    agent = [use("Agent", **task, run_in_background=False)]
    with Model(agent, START, "Started.", "Begun.", "Going on.", DONE) as model:
        installed.run(model)
    assert iterations(model) == [0, 0, 0, 0, 2, 3]
    assert [f"Goal: {GOAL}" in one.said for one in model.requests[4:]] == [True, False]


def test_an_old_signal_does_not_end_a_new_loop(installed):
    with Model(START, DONE, START, "Once more.", DONE) as model:
        first = installed.run(model)
        installed.run(model, resume=first.id)
    assert iterations(model) == [0, 0, 0, 0, 2]


def test_a_loop_is_repeated_after_a_compaction(installed):
    with Model(START, "First.", bash("echo interrupted")) as model:
        session = installed.run(model, "--max-turns", "3")
    with Model() as model:
        installed.run(model, prompt="/compact", resume=session.id)
    with Model("Where were we?", DONE) as model:
        installed.run(model, prompt="Go on.", resume=session.id)
    assert f"Goal: {GOAL}" in model.requests[0].prompted
    assert "Iteration 2 of at most 20" in model.requests[0].prompted
    assert iterations(model) == [0, 3]


def test_an_agent_that_holds_for_a_shell_spends_one_iteration_and_goes_on_after_it(installed, claude, stops):
    until = f"until [ $(wc -l < '{claude.home}/stops.jsonl') -ge 2 ]; do sleep 0.1; done"  # the second stop
    shell = use("Bash", command=until, description="wait", run_in_background=True)
    with Model(START, [shell], "Holding.", "Holding.", DONE) as model:
        installed.run(model)
    assert iterations(model) == [0, 0, 0, 2, 0]
    assert "In the background: shell `until" in model.requests[3].said
    assert "task-notification" in model.requests[4].said
    assert [len(stop["background_tasks"]) for stop in stops()] == [1, 1, 0]
    assert json.loads(installed.tailhook("loop", "status", "--json"))["state"]["reason"] == "COMPLETE"


def test_an_agent_that_stands_still_is_let_go_and_the_person_reads_why(installed):
    with Model(START, *["Holding."] * 9) as model:
        session = installed.run(model)
    assert iterations(model) == [0, 0, 2, 3, 4, 5]  # the turn of the start had work
    notes = [one["attachment"] for one in session.records("attachment")]
    [note] = [one["content"] for one in notes if one["type"] == "hook_system_message"]
    assert '4 stops in a row without a tool, with the words "Holding."' in note
    assert json.loads(installed.tailhook("loop", "status", "--json"))["state"]["reason"] == "STUCK"


def test_calls_that_failed_before_a_loop_do_not_count_in_it(installed):
    with Model(*[FAILING] * 6, START_CLOSELY, *[FAILING] * 5, "A.", DONE) as model:
        installed.run(model)
    assert "[ITERATION 2/10]" in model.requests[-1].said
    assert json.loads(installed.tailhook("loop", "status", "--json"))["state"]["reason"] == "COMPLETE"


def test_the_same_failing_call_in_the_first_turn_of_a_loop_ends_it(installed):
    def once_all_are_written(_):  # the transcript may get the last result after the stop, and a model takes longer
        [transcript] = (installed.home / ".claude/projects").glob("*/*.jsonl")
        wait_until(lambda: transcript.read_text().count('"is_error":true') == 6)
        return "B."

    with Model(START_CLOSELY, *[FAILING] * 6, "A.", once_all_are_written, DONE) as model:
        installed.run(model)
    assert json.loads(installed.tailhook("loop", "status", "--json"))["state"]["reason"] == "STUCK"


def test_a_paused_loop_lets_the_agent_stop_until_it_is_resumed(installed):
    with Model(START, "First.", bash("tailhook loop pause"), "Paused.") as model:
        session = installed.run(model)
    assert iterations(model) == [0, 0, 2, 0]
    with Model("Still paused.") as model:
        installed.run(model, resume=session.id)
    assert len(model.requests) == 1
    installed.tailhook("loop", "resume")
    with Model("Second.", DONE) as model:
        installed.run(model, resume=session.id)
    assert iterations(model) == [0, 3]
