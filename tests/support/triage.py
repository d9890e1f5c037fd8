"""A triage pipeline's state, and an agent that follows the machine's instructions."""

import json
import re
from pathlib import Path


def entry(number=0, status="completed", **fields):
    """Return an entry of the pipeline. Fields of its result may be given: false_positive, group_id, root_cause."""
    result = None
    if status == "completed":
        result = {
            "is_true_positive": not fields.pop("false_positive", False),
            "is_likely_dead_code": False,
            "group_id": fields.pop("group_id", None),
            "root_cause": fields.pop("root_cause", f"cause {number}"),
            "reasoning": "because",
        }
    return {
        "name": f"function_{number}",
        "file_path": f"src/file_{number}.ts",
        "start_line": number,
        "kind": "function",
        "signature": "()",
        "route": "llm-triage",
        "diagnosis": "none",
        "deterministic_group_id": None,
        "known_source": None,
        "status": status,
        "result": result,
        "error": None,
        "attempt_count": 1,
        **fields,
    }


def group(group_id="g", **fields):
    """Return a group at the beginning of the fix planning."""
    return {
        "group_id": group_id,
        "root_cause": "cause",
        "entry_count": 2,
        "sub_phase": "planning",
        "plans_written": 0,
        "synthesis_written": False,
        "reviews_written": 0,
        "task_file": None,
        **fields,
    }


def pipeline(phase="triage", *entries, **fields):
    """Return the state of a pipeline in a phase."""
    return {
        "project_name": "p",
        "project_path": "/p",
        "analysis_file": "/p/a.json",
        "phase": phase,
        "batch_size": 5,
        "created_at": "2026-01-01T00:00:00.000Z",
        "updated_at": "2026-01-01T00:00:00.000Z",
        "entries": list(entries),
        "aggregation": None,
        "meta_review": None,
        "fix_planning": None,
        **fields,
    }


def planning(*groups):
    """Return a fix planning with the given groups."""
    return {"fix_plans_dir": "/plans", "groups": {one["group_id"]: one for one in groups}}


class Agent:
    """An agent that follows only the reason of a block, in the reason's state file."""

    def __init__(self, judge):
        self.judge = judge  # of an entry: the investigator's findings

    def obey(self, reason):
        """Change the state file like the sub-agents that the reason names."""
        path = Path(re.search(r"^State file: (.*)$", reason, re.M)[1])
        state = json.loads(path.read_text())
        launched = re.search(r"\*\*([a-z-]+)\*\*", reason)[1]
        name = re.search(r'group "(.*?)"(?:, root cause: |\. Done: )', reason)
        one = state["fix_planning"]["groups"][name[1]] if name else None
        if launched == "triage-investigator":
            for number in map(int, re.findall(r"^- entries\[(\d+)\]", reason, re.M)):
                state["entries"][number].update(self.judge(number))
        elif launched == "triage-aggregator":
            state["aggregation"] = {"status": "completed", "completed_at": "now"}
        elif launched == "triage-rule-reviewer":
            state["meta_review"] = {"status": "completed", "completed_at": "now", "patterns": []}
        elif launched == "fix-planner":
            self.write(reason)
            one["plans_written"] += 1
        elif launched == "plan-synthesizer":
            self.write(reason)
            one["synthesis_written"] = True
        elif launched == "plan-reviewer":
            self.write(reason)
            one["reviews_written"] += 1
        elif launched == "task-writer":
            one["task_file"] = str(self.write(reason))
        path.write_text(json.dumps(state))

    def write(self, reason):
        """Check that the files to read exist, and write the first file to write; both are in the reason.

        Returns the path of the file that was written.
        """
        folder = Path(re.search(r"^Plans folder: (.*)$", reason, re.M)[1])
        read, written = re.search(r"^Files in it: (?:read (.*); )?write (.*)\.$", reason, re.M).groups()
        for name in read.split(", ") if read else ():
            assert (folder / name).read_text() == "written"
        path = folder / written.split(", ")[0]
        assert not path.exists(), f"{path} is another group's"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("written")
        return path
