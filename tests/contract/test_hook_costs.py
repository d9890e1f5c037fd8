"""What a hook costs grows no faster than its input: four times as much of it costs at most four times as much.

Instructions are counted, so a busy computer changes nothing.
"""

import json

import pytest

from tailhook.bench.cases import WORKING, BenchProject, Case, triage_pipeline
from tailhook.bench.instructions import instruction_counter
from tailhook.reference_programs import bare_argv

AT_MOST = 4.6  # what grows by doubling, and the logarithm in a search, make it more than 4
COUNT = instruction_counter(slow=True)


def groups_done(folder, number):
    """Write a state in which all groups become complete at once."""
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


CASES = [
    pytest.param("triage", groups_done, 500, False, id="groups that are done at once"),
]  # fmt: skip


@pytest.mark.skipif(COUNT is None, reason="neither the processor nor valgrind counts instructions here")
@pytest.mark.parametrize(("machine", "begin", "number", "blocks"), CASES)
def test_four_times_the_input_costs_a_hook_at_most_four_times_as_much(tmp_path, machine, begin, number, blocks):
    costs = []
    for size in (number, 4 * number):
        case = Case(machine, "cost", WORKING, blocks, lambda folder, size=size: begin(folder, size))
        project = BenchProject(tmp_path / str(size), case, "10 KB")
        project.check()
        project.reset()
        bare = COUNT(bare_argv(), project.payload, project.env)
        costs.append(COUNT(project.hook, project.payload, project.env) - bare)
    assert costs[1] < AT_MOST * max(costs[0], bare // 10)
