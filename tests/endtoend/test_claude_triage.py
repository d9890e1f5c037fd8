"""A whole triage pipeline in a session of Claude Code. The agent launches the requested sub-agents."""

import json
import re
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest
from model import Model, Request, bash, use
from support import triage

SUB_AGENTS = (
    "triage-investigator",
    "triage-aggregator",
    "triage-rule-reviewer",
    "fix-planner",
    "plan-synthesizer",
    "plan-reviewer",
    "task-writer",
)

TIMES = {"triage-investigator": 2, "fix-planner": 5, "plan-reviewer": 4}  # seven entries; plans and reviews of a group


def judge(number: int) -> dict:
    """Return what the investigator finds: three false positives, two of them with one cause."""
    return triage.entry(number, group_id="twins" if number < 2 else f"alone {number}", false_positive=number < 3)


class Pipeline:
    """A model that follows the machine: the session's agent launches sub-agents, and they change the state."""

    def __init__(self, state: Path, **how: bool):
        self.state = state
        self.how = how
        self.launched: list[str] = []

    def __call__(self, request: Request):
        """Return the next message of the session or of one of its sub-agents."""
        if "OBEY:" in request.first:
            return "Done." if request.begun else self.obey(request)
        if "Stop hook additional context: " not in request.said:
            return "What is next?"
        reason = request.said.partition("Stop hook additional context: ")[2].removesuffix("\n</system-reminder>")
        [name] = re.findall(r"\*\*([a-z-]+)\*\*", reason)[:1]
        self.launched.append(name)
        return [use("Agent", description="next", prompt=f"OBEY:{reason}", subagent_type=name, **self.how)]

    def obey(self, request: Request):
        """Return a sub-agent's message: it writes the state again, as the reason asks."""
        reason = request.first.partition("OBEY:")[2]
        before = self.state.read_text()
        triage.Agent(judge).obey(reason)
        after = self.state.read_text()
        self.state.write_text(before)
        return bash(f"cat > '{self.state}' <<'STATE'\n{after}\nSTATE")


@pytest.mark.parametrize("in_background", [True, False])
def test_a_pipeline_goes_from_triage_to_complete(installed, in_background):
    folder = installed.project / ".claude"
    (folder / "agents").mkdir(parents=True)
    for name in SUB_AGENTS:
        (folder / "agents" / f"{name}.md").write_text(f"---\nname: {name}\ndescription: it\n---\nDo it.\n")
    if not in_background:  # all in one turn
        (folder / "tailhook.json").write_text(json.dumps({"triage": {"while_active": "progress"}}))
    state = folder / "triage_state" / "p_triage.json"
    state.parent.mkdir()
    state.write_text(json.dumps(triage.pipeline("triage", *(triage.entry(number, "pending") for number in range(7)))))
    pipeline = Pipeline(state, run_in_background=in_background)
    with Model(*[pipeline] * 200) as model:
        session = installed.run(model)
    assert json.loads(state.read_text())["phase"] == "complete"
    assert [name for name, _ in groupby(pipeline.launched)] == list(SUB_AGENTS)
    assert Counter(pipeline.launched) == {**dict.fromkeys(SUB_AGENTS, 1), **TIMES}
    assert session.result["result"] == "What is next?"
