"""The gate machine: were files edited after the last successful run of the command that checks them?
(docs/machines/gate.md)

Pure: the rules and the session's edits and commands in; verdict out. `tailhook.hook.gate` reads the facts.
"""

from tailhook._core import fingerprint, preload
from tailhook.machines import Verdict, clip_field
from tailhook.machines.rules import (
    MAX_NAMED,
    MAX_PATTERNS_COST,
    MAX_RULES,
    Edit,
    Rule,
    blank_fault,
    pattern_fault,
    unchecked,
)
from tailhook.machines.shell_words import Budget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
    from typing import Any


class Facts:
    """The facts about one stop, from the payload, the configuration and the session's state.

    rules: the valid rules.
    happened: the edits and the shell commands (str) that did not fail, newest first; read as far as needed.
    paused: whether a background task will wake the agent.
    stop_hook_active: whether this turn was blocked before.
    blocked: the `block_id`s for which a stop was blocked already. Older versions saved the ids of edits instead: these
        count for every rule.
    """

    __slots__ = ("blocked", "happened", "paused", "rules", "stop_hook_active")

    def __init__(
        self,
        rules: "Sequence[Rule]",
        happened: "Iterable[Edit | str]" = (),
        paused: bool = False,
        stop_hook_active: bool = False,
        blocked: "Set[str]" = frozenset(),
    ) -> None:
        self.rules = rules
        self.happened = happened
        self.paused = paused
        self.stop_hook_active = stop_hook_active
        self.blocked = blocked


def decide(facts: Facts) -> "Verdict[list[str]]":
    """Decide whether the agent may stop. The verdict's change is the `block_id`s of the edits in its reason."""
    if not facts.rules:
        return Verdict("allow", "no rules")
    if facts.paused:
        return Verdict("allow", "paused: a background task is running")
    if facts.stop_hook_active:
        return Verdict("allow", "this turn was blocked before (stop_hook_active)")
    missing, _ = unchecked(facts.rules, facts.happened)
    if not missing:
        return Verdict("allow", "no unchecked edit was found")
    new = [
        (rule, edit, line, why)
        for rule, edit, line, why in missing
        if facts.blocked.isdisjoint((edit.id, block_id(edit, rule)))
    ]
    if not new:
        return Verdict("allow", "a stop was blocked for these edits already")
    named = [*new, *(one for one in missing if one not in new)][:MAX_NAMED]
    preload("machines.missing_runs")
    from tailhook.machines.missing_runs import describe_missing

    lines = [describe_missing(rule.command, edit.describe(), line, why) for rule, edit, line, why in named]
    if len(missing) > len(named):
        lines.append(f"- and {len(missing) - len(named)} more, which a later stop names")
    head = (
        "Files were edited and not checked since. Before you stop, run each of these commands, and fix the problems"
        " that it reports. They are in gate.rules, in this project's .claude/tailhook.json or in the user's own"
        " configuration. Leave out a command that does not check files:"
    )
    why = f"{len(missing)} command{'s' if len(missing) > 1 else ''} not run since an edit"
    return Verdict("block", why, [block_id(edit, rule) for rule, edit, *_ in named], "\n".join((head, *lines)))


def block_id(edit: Edit, rule: Rule) -> str:
    """Return the saved mark of a block for an edit that a rule's command did not check."""
    return f"{fingerprint(f'{edit.id} {rule.command}'.encode('utf-8', 'surrogatepass')):016x}"


def parse_rules(values: "Sequence[Mapping[str, Any]]") -> list[Rule]:
    """Return the valid rules of the configuration; of more than MAX_RULES, the first ones."""
    rules, budget = [], Budget(MAX_PATTERNS_COST)
    for value in values[:MAX_RULES]:
        try:
            rules.append(parse_rule(value, budget))
        except ValueError:
            pass  # `check_config` reports it
    return rules


def parse_rule(value: object, budget: Budget) -> Rule:
    """Return one rule of the configuration. Raises ValueError with the reason if it is not valid.

    budget: for the patterns of all rules.
    """
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    edited, ran = value.get("edited"), value.get("ran")
    if not isinstance(edited, list):
        raise ValueError('"edited" is not a list of patterns')
    if not isinstance(ran, str) or not ran.strip():
        raise ValueError('"ran" is not a command')
    if why := blank_fault(ran):
        raise ValueError(f'"ran" is not a command: {why}')
    return Rule(edited, ran, budget)


def check_config(values: "Mapping[str, Any]") -> "Iterator[str]":
    """Yield the faults of the machine's section of the configuration: rules and patterns that do not count."""
    rules = values.get("rules")
    if not isinstance(rules, list):
        return
    budget = Budget(MAX_PATTERNS_COST)
    for number, value in enumerate(rules, 1):
        if number > MAX_RULES:
            yield f"gate.rules has {len(rules)} rules, but only the first {MAX_RULES} count"
            return
        try:
            parse_rule(value, budget)
        except ValueError as error:
            yield f"rule {number} of gate.rules is not valid: {error}"
            continue
        for pattern in value["edited"]:
            if fault := pattern_fault(pattern):
                yield f"rule {number} of gate.rules: the pattern {clip_field(repr(pattern), 100)} cannot match: {fault}"
