"""Does the end of a loop count? Each of its checks must have succeeded.  (docs/machines/idle.md, "Checks")

Pure, like the machines that use it. They import it only for a loop with checks.
"""

from tailhook._core import parse_json, preload
from tailhook.machines import clip_field
from tailhook.machines.rules import MAX_NAMED, MAX_PATTERNS_COST, MAX_RULES, Rule, unchecked
from tailhook.machines.shell_words import Budget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tailhook.machines.rules import Edit

PROVEN = ("COMPLETE", "NO_MORE_ISSUES")  # the reasons of ends that claim success; the others need no evidence
MAX_LISTED_CHECKS = 10  # in a briefing
MAX_FILES_CHARS = 500  # of the patterns there
EVERY_FILE = "**"  # the pattern without --check-files


def needs_evidence(frame: "Mapping[str, object]", reason: str) -> bool:
    """Return whether an end of a loop counts only if its checks have succeeded.

    frame: see `parse_checks`.  reason: to save for the end.
    """
    return bool(frame.get("checks")) and reason in PROVEN


def find_evidence(
    checks: "Sequence[Rule]",
    happened: "Iterable[Edit | str]",
    unread: "Callable[[], str]",
    began: "Callable[[], str]",
    signal: str = "signal",
) -> tuple[str, str]:
    """Return whether each check has succeeded since the loop began, and since the newest edit.

    happened: the edits and the shell commands since then that did not fail, newest first.
    unread: returns what is missing in `happened`, "" if it is complete; called when all of it was read.
    began: returns when the loop began, as HH:MM; "" if that is unknown. Called if a check is missing since then.
    signal: what the agent has written to end the loop, in a word.

    Returns what the agent reads: which commands are missing, and since when; "" if the end counts. And what the person
    reads: why it is unknown whether the checks have succeeded, "" if it is known.
    """
    unchecked_rules, undecided = unchecked(checks, happened)
    unknown = unread() if undecided else ""
    missing = [(rule, edit.describe(), line, why) for rule, edit, line, why in unchecked_rules]
    if undecided and not unknown:
        clock = began()
        since = f"the loop began{clock and f' at {clock}'}"
        missing += [(rule, since, line, why) for rule, line, why in undecided]
    if not missing:
        return "", unknown
    preload("machines.missing_runs")
    from tailhook.machines.missing_runs import describe_missing

    lines = [describe_missing(rule.command, since, line, why) for rule, since, line, why in missing[:MAX_NAMED]]
    if len(missing) > MAX_NAMED:
        lines.append(f"- and {len(missing) - MAX_NAMED} more, which a later stop names")
    head = (
        f"Your {signal} did not count: each check of this loop must succeed after the last edit. Run what is missing,"
        f" fix the problems that it reports, and write the {signal} again only then:"
    )
    return "\n".join((head, *lines)), ""


def parse_checks(frame: "Mapping[str, object]") -> list[Rule]:
    """Return the checks of a loop. One that cannot be read is left out.

    frame: of idle, with lists, or the front matter of ralph, with the same lists in JSON.
    """
    files = [text for text in listed_texts(frame.get("check_files")) if text] or [EVERY_FILE]
    checks, budget = [], Budget(MAX_PATTERNS_COST)
    for text in listed_texts(frame.get("checks"))[:MAX_RULES]:
        try:
            checks.append(Rule(files, text, budget))
        except ValueError:
            continue
    return checks


def listed_texts(value: object) -> list[str]:
    """Return the texts in a list, or in the JSON text of one; [] for another value."""
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return []
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def describe_checks(frame: "Mapping[str, object]", signals: "Mapping[str, str]") -> list[str]:
    """Return the lines of a briefing about the checks, [] without any.

    signals: see `own_loops.describe_terms`.
    """
    checks = parse_checks(frame)
    proven = " or ".join(word for word, reason in signals.items() if reason in PROVEN)
    if not checks or not proven or not frame.get("began"):
        return []
    files = clip_field(" or ".join(f"`{text}`" for text in listed_texts(frame.get("check_files"))), MAX_FILES_CHARS)
    edited = f"a file that matches {files}" if files else "any file"
    each = "this command has" if len(checks) == 1 else "each of these commands has"
    head = f"{proven} counts only if {each} succeeded in this loop, and after the last edit of {edited}:"
    lines = [head, *(f"  {check.command}" for check in checks[:MAX_LISTED_CHECKS])]
    if len(checks) > MAX_LISTED_CHECKS:
        lines.append(f"  and {len(checks) - MAX_LISTED_CHECKS} more, which a stop without them names")
    return lines
