"""The triage machine: the sub-agents that the pipeline needs before its agent may stop. (docs/machines/triage.md)

Pure: the pipeline's state in; verdict out. `tailhook.hook.triage` finds, reads, locks and saves.
"""

from tailhook.machines import Verdict, clip_field, format_value, owns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    StateEdit = tuple[tuple[str, ...], object]  # a path in the state, and its new value
    StateEdits = list[StateEdit]

REQUIRED_PLANS = 5  # independent fix plans per group
REQUIRED_REVIEWS = 4  # angles of review per group
BATCH_SIZE = 5  # entries to investigate in one turn, if the state has no `batch_size`
STATE_STATUSES = ("pending", "completed", "failed")  # of an entry, the aggregation and the meta-review
MAX_FOLDER_CHARS = 60  # of a group's id in its folder's name
MAX_LIST_CHARS = 6000  # characters of the entries in a reason; hosts cut texts at 10,000

# The members of an entry that a phase reads; `Entries` has a column for each.
COLUMNS: "dict[str, tuple[tuple[str, ...], ...]]" = {
    "triage": (("status",), ("name",)),
    "aggregation": (("status",), ("route",), ("result", "is_true_positive")),
    "meta-review": (
        ("status",),
        ("route",),
        ("result", "is_true_positive"),
        ("result", "group_id"),
        ("result", "root_cause"),
    ),
}
ALL_COLUMNS = tuple(dict.fromkeys(path for paths in COLUMNS.values() for path in paths))


def columns_for(state: "dict[str, Any]") -> "tuple[tuple[str, ...], ...]":
    """Return the columns that the phase reads; all if the phase is not known yet."""
    if "phase" not in state:
        return ALL_COLUMNS
    phase = state["phase"]
    return COLUMNS.get(phase, ()) if isinstance(phase, str) else ()


class Entries:
    """The pipeline's entries, as columns: `status[n]` is the status of entry n, or None if it has no status.

    paths: the columns' paths.
    columns: the values of each column. A column that the phase does not read is an empty list.
    """

    __slots__ = ("group_id", "is_true_positive", "name", "root_cause", "route", "status")

    def __init__(self, paths: "Sequence[tuple[str, ...]]", columns: "Sequence[list[Any]]") -> None:
        by_name = {path[-1]: column for path, column in zip(paths, columns)}  # noqa: B905 - as many as of the other
        self.status: list[Any] = by_name.get("status", [])
        self.name: list[Any] = by_name.get("name", [])
        self.route: list[Any] = by_name.get("route", [])
        self.is_true_positive: list[Any] = by_name.get("is_true_positive", [])
        self.group_id: list[Any] = by_name.get("group_id", [])
        self.root_cause: list[Any] = by_name.get("root_cause", [])

    def pending(self) -> "list[int]":
        """Return the entries that are not investigated yet."""
        return [number for number, status in enumerate(self.status) if status == "pending"]

    def false_positives(self) -> "Iterator[int]":
        """Yield the entries that the model judged and found not to be true positives."""
        for number, route in enumerate(self.route):
            if route == "llm-triage" and self.is_true_positive[number] is False:
                yield number

    def groups(self) -> "dict[str, list[int]]":
        """Return the false positives by group, in order of first appearance.

        Raises BrokenError if a group's id is not a string.
        """
        groups: dict[str, list[int]] = {}
        for number in self.false_positives():
            group_id = self.group_id[number]
            if group_id is None:
                continue
            if not isinstance(group_id, str):
                raise BrokenError(f"entries[{number}].result.group_id is {format_value(group_id)}, not a string")
            groups.setdefault(group_id, []).append(number)
        return groups


class Facts:
    """The facts about one stop, from the payload and the configuration.

    path: the state file, absolute.
    plans: the folder of the fix plans.
    session_id: "" if the payload has none.
    paused: whether a background task will wake the agent.
    stop_hook_active: whether this turn was blocked before.
    while_active: whether to block such a turn again as long as the state changes.
    has_changed: returns whether the state has changed since the last block.
    unbound_acts: whether any session may act on a state that names no session.
    """

    __slots__ = (
        "has_changed",
        "path",
        "paused",
        "plans",
        "session_id",
        "stop_hook_active",
        "unbound_acts",
        "while_active",
    )

    def __init__(
        self,
        path: str,
        plans: str,
        session_id: str = "",
        paused: bool = False,
        stop_hook_active: bool = False,
        while_active: bool = False,
        has_changed: "Callable[[], bool]" = lambda: True,
        unbound_acts: bool = True,
    ) -> None:
        self.path = path
        self.plans = plans
        self.session_id = session_id
        self.paused = paused
        self.stop_hook_active = stop_hook_active
        self.while_active = while_active
        self.has_changed = has_changed
        self.unbound_acts = unbound_acts


class BrokenError(Exception):
    """The state is not valid. The message names the wrong member."""


def decide(state: object, entries: Entries | None, facts: Facts) -> "Verdict[StateEdits]":
    """Decide what happens to the pipeline when the agent stops.

    state: the file's value without its entries.
    entries: None if they are missing or not an array.
    """
    if not isinstance(state, dict):
        return broken("the state is not an object", facts)
    if facts.stop_hook_active and not facts.while_active:
        return Verdict("allow", "this turn was blocked before (stop_hook_active)")
    if not may_run(state, facts.session_id, facts.unbound_acts):
        return Verdict("allow", "another session's pipeline")
    if facts.paused:
        return Verdict("allow", "paused: a background task is running")
    if facts.stop_hook_active and not facts.has_changed():
        return Verdict("allow", "nothing changed since the last block")
    phase = state.get("phase")
    if phase is None:
        return broken('phase is missing: the first one is "triage"', facts)
    try:
        if phase == "triage":
            return in_triage(state, entries, facts)
        if phase == "aggregation":
            return in_aggregation(state, entries, facts)
        if phase == "meta-review":
            return in_meta_review(state, entries, facts)
        if phase == "fix-planning":
            return in_fix_planning(state, facts)
    except BrokenError as error:
        return broken(str(error), facts)
    if phase == "complete":
        return Verdict("allow", "the pipeline is complete")
    return broken(f"unknown phase {format_value(phase)}", facts)


def may_run(state: object, session_id: str, unbound_acts: bool) -> bool:
    """Return whether a session may run a pipeline; True if the state is not an object: each session reports that.

    session_id, unbound_acts: as in Facts.
    """
    return not isinstance(state, dict) or owns(session_id, (state.get("session_id"),), unbound_acts)


# ---- phase triage ------------------------------------------------------------


def in_triage(state: "dict[str, Any]", entries: Entries | None, facts: Facts) -> "Verdict[StateEdits]":
    """Decide in the first phase: investigate the pending entries, then go on to the aggregation."""
    entries = required(entries)
    if pending := entries.pending():
        return instruct("triage", investigate(pending, entries, batch_size(state), facts))
    for number, status in enumerate(entries.status):
        if status not in STATE_STATUSES:
            raise BrokenError(f"entries[{number}].status is {describe_status(status)}")
    return instruct("aggregation", aggregate(entries, facts), [(("phase",), "aggregation")])


# ---- phase aggregation -------------------------------------------------------


def in_aggregation(state: "dict[str, Any]", entries: Entries | None, facts: Facts) -> "Verdict[StateEdits]":
    """Decide in the aggregation: aggregate, then review the rules if there is a false positive."""
    entries = required(entries)
    status = status_of(state, "aggregation")
    if status in (None, "pending"):
        return instruct("aggregation", aggregate(entries, facts))
    if status == "failed":
        return complete("the aggregation failed")
    if next(entries.false_positives(), None) is None:
        return complete("no false positives")
    return instruct("meta-review", review_rules(entries, facts), [(("phase",), "meta-review")])


# ---- phase meta-review -------------------------------------------------------


def in_meta_review(state: "dict[str, Any]", entries: Entries | None, facts: Facts) -> "Verdict[StateEdits]":
    """Decide in the review of rules: review, then plan fixes if a group has more than one false positive."""
    entries = required(entries)
    status = status_of(state, "meta_review")
    if status in (None, "pending"):
        return instruct("meta-review", review_rules(entries, facts))
    if status == "failed":
        return complete("the meta-review failed")
    groups = {group_id: new_group(group_id, members, entries) for group_id, members in multiple(entries).items()}
    if not groups:
        return complete("no group of more than one false positive")
    fix_planning = {"fix_plans_dir": facts.plans, "groups": groups}
    group_id = next(iter(groups))
    return instruct(
        "fix-planning",
        work_on("planning", Group(group_id, groups, facts.plans), facts),
        [(("fix_planning",), fix_planning), (("phase",), "fix-planning")],
    )


def multiple(entries: Entries) -> "dict[str, list[int]]":
    """Return the groups of more than one false positive, in order of first appearance."""
    return {group_id: members for group_id, members in entries.groups().items() if len(members) > 1}


def new_group(group_id: str, members: "list[int]", entries: Entries) -> "dict[str, Any]":
    """Return the state of a group at the beginning of its fix planning."""
    return {
        "group_id": group_id,
        "root_cause": entries.root_cause[members[0]],
        "entry_count": len(members),
        "sub_phase": "planning",
        "plans_written": 0,
        "synthesis_written": False,
        "reviews_written": 0,
        "task_file": None,
    }


# ---- phase fix-planning ------------------------------------------------------


def in_fix_planning(state: "dict[str, Any]", facts: Facts) -> "Verdict[StateEdits]":
    """Decide in the planning of fixes: one group after the other."""
    fix_planning = section(state, "fix_planning")
    groups = section(fix_planning, "groups", "fix_planning")
    plans = fix_planning.get("fix_plans_dir")
    plans = plans if isinstance(plans, str) and plans else facts.plans
    edits: list[StateEdit] = []
    for group_id, group in groups.items():
        if not isinstance(group, dict):
            raise BrokenError(f"group {format_value(group_id)} is not an object")
        if group.get("sub_phase") == "complete":
            continue
        verdict = in_group(Group(group_id, groups, plans), facts)
        if verdict is not None:
            verdict.change = [*edits, *(verdict.change or ())] or None
            return verdict
        edits.append((("fix_planning", "groups", group_id, "sub_phase"), "complete"))
    return complete("every group has its task", edits)


class Group:
    """A group whose fix is planned.

    name: its id.  fields: its part of the state.  plans: the folder of all plans.
    """

    __slots__ = ("fields", "groups", "name", "plans")

    def __init__(self, name: str, groups: "dict[str, Any]", plans: str) -> None:
        self.name = name
        self.groups = groups
        self.fields: dict[str, Any] = groups[name]
        self.plans = plans


class FolderLetters(dict[int, str]):
    """A table for `str.translate` of a group's id: letters for names of files stay, others become `_`."""

    def __init__(self) -> None:
        super().__init__((code, chr(code)) for code in range(123) if chr(code).isalnum() or chr(code) in "._-")

    def __missing__(self, letter: int) -> str:
        return "_"


def folder_name(group: str, groups: "Iterable[str]") -> str:
    """Return the name of a group's folder: its id with `_` for other letters, and a number if names are equal.

    Linear in the number of groups.
    """
    letters = FolderLetters()
    taken: dict[str, int] = {}  # the highest suffix tried so far, by name
    for group_id in groups:
        plain = name = group_id.lstrip(".")[:MAX_FOLDER_CHARS].translate(letters) or "group"
        number = taken.get(plain, 1)
        while name in taken:
            number += 1
            name = f"{plain}-{number}"
        taken[plain] = number
        taken.setdefault(name, 1)
        if group_id == group:
            return name
    raise KeyError(group)


def in_group(group: Group, facts: Facts) -> "Verdict[StateEdits] | None":
    """Decide the next step of a group; return None if its task is written."""

    def move(sub_phase: str) -> "list[StateEdit]":
        """Return the edit that moves the group to a sub-phase."""
        return [(("fix_planning", "groups", group.name, "sub_phase"), sub_phase)]

    sub_phase = group.fields.get("sub_phase")
    if sub_phase == "planning":
        if count(group, "plans_written") < REQUIRED_PLANS:
            return instruct("planning", work_on("planning", group, facts))
        return instruct("synthesis", work_on("synthesis", group, facts), move("synthesis"))
    if sub_phase == "synthesis":
        written = group.fields.get("synthesis_written")
        if written is False:
            return instruct("synthesis", work_on("synthesis", group, facts))
        if written is not True:
            raise BrokenError(f"synthesis_written of group {format_value(group.name)} is neither true nor false")
        return instruct("review", work_on("review", group, facts), move("review"))
    if sub_phase == "review":
        if count(group, "reviews_written") < REQUIRED_REVIEWS:
            return instruct("review", work_on("review", group, facts))
        return instruct("task-writing", work_on("task-writing", group, facts), move("task-writing"))
    if sub_phase == "task-writing":
        task_file = group.fields.get("task_file")
        if task_file in (None, ""):
            return instruct("task-writing", work_on("task-writing", group, facts))
        if not isinstance(task_file, str):
            raise BrokenError(f"task_file of group {format_value(group.name)} is not a string")
        return None
    raise BrokenError(f"unknown sub_phase {format_value(sub_phase)} of group {format_value(group.name)}")


# ---- verdicts ----------------------------------------------------------------


def instruct(phase: str, reason: str, edits: "list[StateEdit] | None" = None) -> "Verdict[StateEdits]":
    """Return the verdict that makes the agent continue.

    phase: the next phase or sub-phase of the agent's work.
    reason: the instruction to the agent.
    edits: the changes of the state at the beginning of the phase; None if it has begun.
    """
    return Verdict("block", f"on to {phase}" if edits else phase, edits, reason)


def complete(why: str, edits: "Sequence[StateEdit]" = ()) -> "Verdict[StateEdits]":
    """Return the verdict that ends the pipeline."""
    return Verdict("allow", f"the pipeline is complete: {why}", [*edits, (("phase",), "complete")], ended=True)


def broken(what: str, facts: Facts) -> "Verdict[StateEdits]":
    """Let the agent stop and warn the person: the state is invalid, and stays as it is."""
    words = (
        f"tailhook: {clip_field(facts.path)}: {what}. The pipeline waits until its state is fixed; the agent may stop."
    )
    return Verdict("allow", what, warning=words, message=words)


# ---- the state's sections ----------------------------------------------------


def required(entries: Entries | None) -> Entries:
    """Return the entries. Raises BrokenError if they are missing."""
    if entries is None:
        raise BrokenError("entries is missing, or is not an array")
    return entries


def section(state: "dict[str, Any]", key: str, of: str = "the state") -> "dict[str, Any]":
    """Return a section of the state. Raises BrokenError if it is not an object."""
    value = state.get(key)
    if not isinstance(value, dict):
        raise BrokenError(f"{key} of {of} is not an object")
    return value


def status_of(state: "dict[str, Any]", key: str) -> str | None:
    """Return the status of a section, None if the section is missing."""
    if state.get(key) is None:
        return None
    status = section(state, key).get("status")
    if status not in STATE_STATUSES:
        raise BrokenError(f"{key}.status is {describe_status(status)}")
    return str(status)


def describe_status(status: object) -> str:
    """Return what is wrong with a status that STATE_STATUSES does not list."""
    found = "missing" if status is None else f"{format_value(status)}, which is unknown"
    return f"{found}: it must be one of {', '.join(STATE_STATUSES)}"


def batch_size(state: "dict[str, Any]") -> int:
    """Return how many entries one turn investigates. Raises BrokenError."""
    value = state.get("batch_size")
    if value is None:
        return BATCH_SIZE
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BrokenError(f"batch_size is {format_value(value)}, not a whole number of 1 or more")
    return value


def count(group: Group, key: str) -> int:
    """Return a count of a group. Raises BrokenError."""
    value = group.fields.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BrokenError(f"{key} of group {format_value(group.name)} is {format_value(value)}, not a whole number")
    return value


# ---- instructions ------------------------------------------------------------

# By sub-phase: the sub-agent, its purpose, and what the agent does with the result.
STEPS = {
    "planning": ("fix-planner", "to write a plan of its own each", "Count each plan in the group's plans_written."),
    "synthesis": ("plan-synthesizer", "to make one plan of them", "Then set the group's synthesis_written to true."),
    "review": (
        "plan-reviewer",
        "to review the synthesis, each from an angle of its own",
        "Count each review in the group's reviews_written.",
    ),
    "task-writing": (
        "task-writer",
        "to write the task that follows from the plan and its reviews",
        "Then set the group's task_file to the task's path.",
    ),
}


def investigate(pending: "list[int]", entries: Entries, batch: int, facts: Facts) -> str:
    """Return the instruction to investigate the next batch of entries."""
    total, named, length = len(entries.status), [], 0
    for number in pending[:batch]:
        name = entries.name[number]
        named.append(f"- entries[{number}]: {format_value(name) if name is not None else 'it has no name'}")
        length += len(named[-1])
        if length > MAX_LIST_CHARS:
            named.append("- and the pending ones that follow")
            break
    size = min(batch, len(pending))
    return instruction(
        facts,
        f"Triage: {total - len(pending)} of {total} entries are done, {len(pending)} pending.",
        f"Launch a **triage-investigator** sub-agent for {'this entry' if size == 1 else f'these {size} entries'}:",
        *named,
        "Write each one's result into the entry, and set its status to completed, or to failed with the error.",
    )


def aggregate(entries: Entries, facts: Facts) -> str:
    """Return the instruction to find common causes of the results."""
    return instruction(
        facts,
        f"Aggregation: every entry is investigated ({len(entries.status)} in all).",
        "Launch a **triage-aggregator** sub-agent to bring their results together by group.",
        "Then set aggregation to {status: completed, completed_at: now}, or its status to failed.",
    )


def review_rules(entries: Entries, facts: Facts) -> str:
    """Return the instruction to find the rules that would have recognized the false positives."""
    number = sum(1 for _ in entries.false_positives())
    return instruction(
        facts,
        f"Meta-review: false positives among the {len(entries.status)} entries: {number}.",
        "Launch a **triage-rule-reviewer** sub-agent to look for the patterns behind them.",
        "Then set meta_review to {status: completed, completed_at: now, patterns: [...]}, or its status to failed.",
    )


def work_on(sub_phase: str, group: Group, facts: Facts) -> str:
    """Instruct the agent to take a group's next step."""
    agent, purpose, then = STEPS[sub_phase]
    plans, reviews = REQUIRED_PLANS, 0
    if sub_phase == "planning":
        plans = count(group, "plans_written")
    elif sub_phase == "review":
        reviews = count(group, "reviews_written")
    elif sub_phase == "task-writing":
        reviews = REQUIRED_REVIEWS
    done = f"plans {plans}/{REQUIRED_PLANS}"
    if sub_phase in ("review", "task-writing"):
        done += f", reviews {reviews}/{REQUIRED_REVIEWS}"
    left = {"planning": REQUIRED_PLANS - plans, "review": REQUIRED_REVIEWS - reviews}.get(sub_phase, 1)
    agents = f"{left} **{agent}** sub-agents" if left > 1 else f"a **{agent}** sub-agent"
    cause = group.fields.get("root_cause")
    because = f", root cause: {clip_field(cause)}" if isinstance(cause, str) and cause else ""
    return instruction(
        facts,
        f"Fix planning, group {format_value(group.name)}{because}. Done: {done}.",
        f"Launch {agents} {purpose}.",
        f"Plans folder: {clip_field(group.plans)}",
        f"Files in it: {files_of(sub_phase, group, plans, reviews)}",
        then,
    )


def files_of(sub_phase: str, group: Group, plans: int, reviews: int) -> str:
    """Return the files that a step writes and reads. plans, reviews: their numbers."""
    folder = folder_name(group.name, group.groups)
    synthesis = f"{folder}/synthesis.md"
    if sub_phase == "planning":
        return f"write {list_files(folder, 'plan', plans + 1, REQUIRED_PLANS)}."
    if sub_phase == "synthesis":
        return f"read {list_files(folder, 'plan', 1, REQUIRED_PLANS)}; write {synthesis}."
    if sub_phase == "review":
        return f"read {synthesis}; write {list_files(folder, 'review', reviews + 1, REQUIRED_REVIEWS)}."
    return f"read {synthesis}, {list_files(folder, 'review', 1, REQUIRED_REVIEWS)}; write {folder}/task.md."


def list_files(folder: str, stem: str, first: int, last: int) -> str:
    """Return the paths of numbered files, relative to the plans' folder: `folder/stem_1.md, folder/stem_2.md`."""
    return ", ".join(f"{folder}/{stem}_{number}.md" for number in range(first, last + 1))


def instruction(facts: Facts, *lines: str) -> str:
    """Return an instruction to the agent, with the path of the state file at its end."""
    return "\n".join((*lines, f"State file: {clip_field(facts.path)}"))
