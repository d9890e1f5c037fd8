"""`tailhook triage status`: where the pipeline stands."""

import argparse
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tailhook.cli.output import CommandError, Commands, add_json, command, group, print_facts
from tailhook.cli.session import format_next_stop, unbound_acts
from tailhook.hook.answer import plain
from tailhook.hook.event import load_config
from tailhook.hook.machines import MACHINES
from tailhook.hook.payload import project_folders, project_root
from tailhook.hook.triage import ENDING, Pipeline, decide_pipeline, find_pipeline
from tailhook.hosts import current_session
from tailhook.machines import format_value
from tailhook.machines.triage import ALL_COLUMNS, REQUIRED_PLANS, REQUIRED_REVIEWS, Entries, Facts, may_run


def add(commands: Commands) -> None:
    """Declare the group's commands."""
    about = "show the state of the triage pipeline of this project"
    actions = group(commands, "triage", "show the triage pipeline", "tailhook triage status")
    add_json(command(actions, "status", print_triage_status, about, "tailhook triage status --json"))


def print_triage_status(arguments: argparse.Namespace) -> None:
    """Print the phase, the counts, the groups, and the verdict of the next stop."""
    config = load_config(project_root({}))
    session = current_session()
    pipeline = find_pipeline(
        list(project_folders({})),
        config.get("triage", {}).get("state_dirs"),
        lambda found: not session or may_run(found.state, session, unbound_acts=True),
    )
    facts = pipeline_facts(config, pipeline)
    print_facts(arguments, facts, *format_pipeline(facts, new_state_folder(config)))


def new_state_folder(config: Mapping[str, Any]) -> str:
    """Return the first folder in which hooks look for states."""
    folders = config.get("triage", {}).get("state_dirs") or MACHINES["triage"].get("marker_files", ())
    return next(iter(folders)).rstrip("/") or "/"


def pipeline_facts(config: Mapping[str, Any], pipeline: Pipeline | None) -> dict[str, Any]:
    """Return the facts for a program."""
    if pipeline is None:
        return {"path": None, "phase": None, "entries": None, "groups": [], "verdict": None}
    state = pipeline.state if isinstance(pipeline.state, dict) else {}
    entries = None
    if not pipeline.problem:
        try:
            _, columns = pipeline.file.columns("entries", lambda _: ALL_COLUMNS)
        except ValueError as error:  # its agent is writing it just now
            raise CommandError(f"{plain(pipeline.path)}: {error}. Run the command again.") from None
        entries = None if columns is None else Entries(ALL_COLUMNS, columns)
    owner = state.get("session_id")
    session_id = current_session() or (owner if isinstance(owner, str) else "")
    facts = Facts(pipeline.path, pipeline.plans, session_id, unbound_acts=unbound_acts(config))
    verdict = decide_pipeline(pipeline, facts)
    fix_planning = state.get("fix_planning")
    groups = fix_planning.get("groups") if isinstance(fix_planning, dict) else None
    counts = None
    if entries:
        counts = {
            "total": len(entries.status),
            **Counter(status if isinstance(status, str) else format_value(status) for status in entries.status),
            "false_positives": sum(1 for _ in entries.false_positives()),
        }
    return {
        "path": pipeline.file.path,
        "phase": state.get("phase"),
        "entries": counts,
        "groups": [one for one in groups.values() if isinstance(one, dict)] if isinstance(groups, dict) else [],
        "verdict": {"decision": verdict.outcome, "why": verdict.why, "reason": verdict.reason or None},
    }


# A state with the members that a pipeline needs.
SAMPLE = {"phase": "triage", "entries": [{"name": "NAME", "route": "llm-triage", "status": "pending", "result": None}]}


def format_pipeline(facts: dict[str, Any], folder: str) -> list[str]:
    """Return the facts as lines for a person.  folder: for a new state."""
    if facts["path"] is None:
        advice = f"To begin one, save a state as {folder}/NAME{ENDING}, such as {json.dumps(SAMPLE)}"
        return ["No triage pipeline is running in this project.", plain(advice)]
    lines = [plain(f"{facts['path']}")]
    if facts["phase"] is not None:
        lines.append(plain(f"  phase        {facts['phase']}"))
    for name, number in (facts["entries"] or {}).items():
        lines.append(plain(f"  {name:<16} {number}"))
    if facts["groups"]:
        lines.append(f"  {'group':<24} {'entries':>7}  {'sub-phase':<12} {'plans':>6} {'reviews':>8}  task")
    for one in facts["groups"]:
        plans = f"{one.get('plans_written')}/{REQUIRED_PLANS}"
        reviews = f"{one.get('reviews_written')}/{REQUIRED_REVIEWS}"
        line = (
            f"  {one.get('group_id')!s:<24} {one.get('entry_count')!s:>7}  {one.get('sub_phase')!s:<12} "
            f"{plans:>6} {reviews:>8}  {one.get('task_file') or '-'}"
        )
        lines.append(plain(line))
    lines.append(plain(f"  {format_next_stop('triage', facts['verdict']['decision'], facts['verdict']['why'])}"))
    return lines
