"""Random pipelines with an agent that follows the reasons: phases only move forward, and every run ends."""

import json
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.long_runs import examples
from support.triage import Agent, entry, pipeline

from tailhook.machines.triage import Entries, Facts, columns_for, decide
from tailhook.stores.jsonfile import JsonFile, find_files

PHASES = ("triage", "aggregation", "meta-review", "fix-planning", "complete")
FINDINGS = st.fixed_dictionaries(
    {
        "false_positive": st.booleans(),
        "group_id": st.sampled_from([None, "a", "b", "constructor", 'q"\\']),
        "route": st.sampled_from(["llm-triage", "llm-triage", "known-tp", "deterministic-fp"]),
    }
)


class Pipelines(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.reason, self.turns, self.limit = "", 0, 0
        self.seen = ["triage"]

    @initialize(
        findings=st.lists(FINDINGS, max_size=8),
        statuses=st.lists(st.sampled_from(["pending", "pending", "completed", "failed"]), min_size=8, max_size=8),
        batch=st.integers(1, 4),
        layout=st.sampled_from([None, 2, "\t"]),
    )
    def begin(self, findings, statuses, batch, layout):
        self.findings = findings
        self.folder = tempfile.mkdtemp()
        self.path = Path(self.folder) / "x_triage.json"
        entries = [
            entry(number, status, **(finding if status == "completed" else {"route": finding["route"]}))
            for number, (finding, status) in enumerate(zip(findings, statuses))  # noqa: B905 - as many as there are
        ]
        state = pipeline("triage", *entries, batch_size=batch, mine={"kept": [1, "é"]})
        self.path.write_text(json.dumps(state, indent=layout))
        self.agent = Agent(self.judge)
        self.limit = len(entries) + 30 + 20 * len(entries)

    def judge(self, number):
        if number % 5 == 4:
            return {"status": "failed", "error": "it could not decide"}
        found = entry(number, **self.findings[number])
        return {"status": found["status"], "result": found["result"]}

    @precondition(lambda self: self.limit and self.seen[-1] != "complete")
    @rule()
    def a_stop_and_a_turn(self):
        (file,) = find_files(self.folder, [], "_triage.json")
        verdict = self.stop(file)
        if verdict.change is not None:
            file.edit([*verdict.change, (("updated_at",), f"turn {self.turns}")])
        state = json.loads(self.path.read_text())
        self.seen.append(state["phase"])
        assert (verdict.outcome == "allow") is (state["phase"] == "complete")
        if verdict.outcome == "block":
            self.agent.obey(verdict.reason)
        self.turns += 1
        assert self.turns <= self.limit, "every run ends"

    @precondition(lambda self: self.limit and self.seen[-1] == "complete")
    @rule()
    def a_stop_after_the_end_changes_nothing(self):
        (file,) = find_files(self.folder, [], "_triage.json")
        verdict = self.stop(file)
        assert (verdict.outcome, verdict.change) == ("allow", None)

    def stop(self, file: JsonFile):
        paths = []
        state, columns = file.columns("entries", lambda top: paths.append(columns_for(top)) or paths[0])
        return decide(state, Entries(paths[0], columns), Facts(str(self.path), f"{self.folder}/fix_plans"))

    @precondition(lambda self: self.limit)
    @invariant()
    def phases_only_move_forward_and_by_one(self):
        numbers = [PHASES.index(phase) for phase in self.seen]
        assert numbers == sorted(numbers)
        if self.seen[-1] == "fix-planning":
            assert "meta-review" in self.seen

    @precondition(lambda self: self.limit)
    @invariant()
    def nothing_is_lost(self):
        state = json.loads(self.path.read_text())
        assert state["mine"] == {"kept": [1, "é"]}
        assert [one["name"] for one in state["entries"]] == [f"function_{n}" for n in range(len(self.findings))]
        groups = (state["fix_planning"] or {"groups": {}})["groups"]
        assert all(one["entry_count"] > 1 for one in groups.values())

    def teardown(self):
        while self.limit and self.seen[-1] != "complete":
            self.a_stop_and_a_turn()
        if self.limit:
            self.phases_only_move_forward_and_by_one()
            self.nothing_is_lost()
            shutil.rmtree(self.folder)


Pipelines.TestCase.settings = settings(max_examples=examples(30), stateful_step_count=20)
TestPipelines = Pipelines.TestCase
