"""The cost of a hook grows no faster than its input: four times the input costs at most four times as much.

Instructions are counted, so a busy computer changes nothing. `make instructions` runs this: valgrind takes ten seconds.
"""

import json
import time

import pytest
from support.instructions import COUNTED, count_instructions

from tailhook._core import iso_time
from tailhook.bench.cases import WORKING, BenchProject, Case, idle_loop, ralph_loop, triage_pipeline
from tailhook.pool.reference_programs import bare_argv

AT_MOST = 4.6  # buffers that double, and the logarithm of a search, make it more than 4
LEAST = 0.85  # of the instructions of bare Python, for a hook with nothing to do


def groups_done(folder, number):
    """Write a state with groups that all become complete at once."""
    path = triage_pipeline(folder)
    group = {
        "sub_phase": "task-writing",
        "task_file": "task.md",
        "plans_written": 5,
        "synthesis_written": True,
        "reviews_written": 4,
    }
    groups = {f"g{n}": group for n in range(number)}
    path.write_text(json.dumps({"phase": "fix-planning", "entries": [], "fix_planning": {"groups": groups}}, indent=2))
    return path


def entries_reviewed(folder, number):
    """Write a state with only false positives among the entries, and with the groups made."""
    path = triage_pipeline(folder)
    entries = [
        {
            "name": f"f{n}",
            "route": "llm-triage",
            "status": "completed",
            "result": {"is_true_positive": False, "group_id": f"g{n // 2}", "root_cause": f"cause {n}"},
        }
        for n in range(number)
    ]
    done = {"status": "completed"}
    path.write_text(json.dumps({"phase": "meta-review", "entries": entries, "aggregation": done, "meta_review": done}))
    return path


def keys_of_front_matter(folder, number):
    """Write a loop with many keys in its front matter."""
    path = ralph_loop(folder)
    path.write_text(path.read_text().replace("---\n", "---\n" + "".join(f"k{n}: v\n" for n in range(number)), 1))
    return path


def configuration(folder, number):
    """Write a configuration with many unknown keys and folders of states."""
    (folder / ".claude").mkdir()
    config = {"hook": {f"k{n}": [] for n in range(number)}, "triage": {"state_dirs": [f"d{n}" for n in range(number)]}}
    (folder / ".claude" / "tailhook.json").write_text(json.dumps(config))


def body_of_a_state(folder, number):
    """Write a loop with many members of other programs in its state."""
    path = idle_loop(60)(folder)
    path.write_text(
        path.read_text().replace(r"\"mode\"", "".join(rf"\"k{n}\":[]," for n in range(number)) + r"\"mode\"")
    )
    return path


def payload_with(**fields):
    """Return the payload's fields for a size: each value is repeated so often."""
    return lambda number: {name: value * number for name, value in fields.items()}


def todos(number):
    """Return the payload of a tool that writes to-dos."""
    one = {"content": "Make the tests pass.", "status": "completed", "activeForm": "Making the tests pass"}
    return {"hook_event_name": "PostToolUse", "tool_name": "TodoWrite", "tool_input": {"todos": [one] * number}}


def no_state_of(folder, number):
    """Leave the project without a state."""


NOTHING = payload_with()
CASES = [
    pytest.param("triage", groups_done, NOTHING, 500, False, id="groups that are done at once"),
    pytest.param("triage", entries_reviewed, NOTHING, 1000, True, id="groups that are made at once"),
    pytest.param("ralph", keys_of_front_matter, NOTHING, 400, True, id="keys of a front matter"),
    pytest.param(
        "ralph",
        lambda folder, number: ralph_loop(folder),
        payload_with(last_assistant_message="<promise>a</promise><promise>b</promise>"),
        3000,
        True,
        id="promises",
    ),
    pytest.param("triage", configuration, NOTHING, 1000, False, id="a configuration"),
    pytest.param("idle", body_of_a_state, NOTHING, 2000, True, id="the members of a state"),
    pytest.param("idle", no_state_of, payload_with(tool_response=[[]]), 20_000, False, id="a payload of many values"),
    pytest.param("plates", no_state_of, todos, 2000, False, id="to-dos"),
]


def usage_since_the_last_stop(folder):
    """Make a loop with a budget, and responses at the transcript's end that its last stop has not read."""
    [transcript] = folder.parent.glob("*.jsonl")
    there, now = transcript.stat(), time.time()
    spent = f"5000 {round(now * 1000)} {there.st_ino}:{there.st_size}:{round(now * 1000)} -"
    message = {"id": "m", "role": "assistant", "content": [], "usage": {"input_tokens": 3, "output_tokens": 40}}
    lines = [
        {"type": "assistant", "message": {**message, "id": f"m{n}"}, "timestamp": iso_time(now)} for n in range(50)
    ]
    with transcript.open("a") as out:
        out.writelines(f"{json.dumps(line)}\n" for line in lines)
    return idle_loop(60, began=iso_time(now - 3600), briefed="bench", tokens=10**9, spent=spent)(folder)


@COUNTED
def test_the_budget_of_a_loop_costs_the_same_in_a_transcript_of_10_kb_and_of_10_gb(tmp_path):
    costs = []
    for size in ("10 KB", "10 GB"):
        case = Case("idle", "budget", WORKING, True, usage_since_the_last_stop)
        project = BenchProject(tmp_path / size.replace(" ", "") / "project", case, size)
        project.check()
        assert f"{5000 + 50 * 43} " in project.changed.read_text()
        project.reset()
        costs.append(count_instructions(project.hook, project.payload, project.env))
    assert abs(costs[1] - costs[0]) < 0.005 * costs[0]


@COUNTED
@pytest.mark.parametrize(("machine", "begin", "payload", "number", "blocks"), CASES)
def test_four_times_the_input_costs_a_hook_at_most_four_times_as_much(
    tmp_path, machine, begin, payload, number, blocks
):
    costs = []
    for size in (number, 4 * number):
        case = Case(machine, "cost", WORKING, blocks, lambda folder, size=size: begin(folder, size))
        project = BenchProject(tmp_path / str(size), case, "10 KB")
        project.payload.write_text(json.dumps(json.loads(project.payload.read_text()) | payload(size)))
        project.check()
        project.reset()
        at_least = count_instructions(bare_argv(), project.payload, project.env) * LEAST
        costs.append(count_instructions(project.hook, project.payload, project.env) - at_least)
    assert costs[1] < AT_MOST * costs[0]
