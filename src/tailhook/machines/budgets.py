"""Is a loop's budget of tokens or minutes spent?  (docs/machines/idle.md, "Budgets")

Pure, like the machines that use it. They import it only for a loop with a budget.
"""

from tailhook._core import unix_time
from tailhook.machines import MAX_COUNT, whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tailhook.machines import ChangeT, Verdict
    from tailhook.machines.protocols import Turn

BUDGET_REASONS = {"tokens": "TOKEN_LIMIT", "minutes": "TIME_LIMIT"}  # of an end, by the loop's field; judged in order
BUDGET_SPENT = "its budget is spent"
MAX_PLACES = 64  # transcripts with a saved place, the newest
MAX_RECENT = 16  # responses that may still get records


class Spent:
    """The tokens that a session and its sub-agents have used, and up to where they were counted.

    tokens: their number.
    until: when they were counted (Unix seconds).
    places: how far each transcript was read, by a name without blank space: the offset, and the time of the newest
        record with tokens in whole milliseconds.
    recent: the newest responses, by a hash of their ids: the output tokens, and all tokens that count.
    """

    __slots__ = ("places", "recent", "tokens", "until")

    def __init__(self, until: float) -> None:
        self.tokens = 0
        self.until = until
        self.places: dict[str, tuple[int, int]] = {}
        self.recent: dict[str, tuple[int, int]] = {}

    def add(self, response: str, output: int, tokens: int) -> None:
        """Count a response. If it was counted before, only the record with the most output tokens counts."""
        known = self.recent.pop(response, (-1, 0))
        output, tokens = min(MAX_COUNT, output), min(MAX_COUNT, tokens)
        if output < known[0]:
            output, tokens = known
        self.tokens = min(MAX_COUNT, max(0, self.tokens + tokens - known[1]))
        self.recent[response] = output, tokens

    def mark(self) -> str:
        """Return what a loop saves."""
        places = format_pairs(self.places, MAX_PLACES)
        return f"{self.tokens} {round(self.until * 1000)} {places} {format_pairs(self.recent, MAX_RECENT)}"


def parse_mark(mark: object) -> Spent | None:
    """Return what a loop has saved, None if it is missing or not readable: then everything is counted again."""
    parts = mark.split(" ") if isinstance(mark, str) else []
    if len(parts) != 4:
        return None
    tokens, until_ms = whole_number(parts[0]), whole_number(parts[1])
    places, recent = parse_pairs(parts[2]), parse_pairs(parts[3])
    if tokens is None or until_ms is None or places is None or recent is None:
        return None
    spent = Spent(until_ms / 1000)
    spent.tokens, spent.places, spent.recent = tokens, places, recent
    return spent


def format_pairs(pairs: "Mapping[str, tuple[int, int]]", most: int) -> str:
    """Return the newest pairs of numbers, each behind its name, without blank space."""
    newest = list(pairs.items())[-most:]
    return ",".join(f"{name}:{first}:{second}" for name, (first, second) in newest) or "-"


def parse_pairs(words: str) -> "dict[str, tuple[int, int]] | None":
    """Return the pairs of `format_pairs`, None for other words."""
    pairs = {}
    for word in words.split(",") if words != "-" else ():
        parts = word.split(":")
        if len(parts) != 3:
            return None
        first, second = whole_number(parts[1]), whole_number(parts[2])
        if first is None or second is None:
            return None
        pairs[parts[0]] = first, second
    return pairs


def judge_budgets(fields: "Mapping[str, Any]", turn: "Turn | None", now: float) -> "tuple[dict[str, str], str, str]":
    """Return what a loop saves at a stop, what it has spent if a budget is spent, and the reason if it ends now.

    If a budget is spent, the loop saves the reason in `wrap_up`, and the agent gets one last turn. It ends at the stop
    after it. A budget is never spent if it is not a whole number above 0, or if the tokens cannot be counted.

    fields: of the loop.
    turn: counts the tokens; without it those of the stop before count.
    now: the time, in Unix seconds.
    """
    change: dict[str, str] = {}
    if turn and whole_number(fields.get("tokens")) and (mark := turn.spent(fields)):
        change["spent"] = mark
    measured = measure({**fields, **change}, now)
    if asked := fields.get("wrap_up"):
        unit = next((unit for unit, reason in BUDGET_REASONS.items() if reason == asked), "tokens")
        return change, describe_spent(measured, unit), BUDGET_REASONS[unit]
    for unit, reason in BUDGET_REASONS.items():
        used, limit = measured.get(unit, (0, 1))
        if used is not None and used >= limit:
            return {**change, "wrap_up": reason}, describe_spent(measured, unit), ""
    return change, "", ""


def describe_spent(measured: "Mapping[str, tuple[int | None, int]]", unit: str) -> str:
    """Return what a loop has spent of a budget.  measured: by `measure`."""
    used, limit = measured.get(unit, (0, 0))
    return f"{BUDGET_SPENT}: {used or 0:,} of {count_units(limit, unit)}"


def count_units(number: int, unit: str) -> str:
    """Return a number of units in words.  unit: in the plural."""
    return f"{number:,} {unit if number != 1 else unit[:-1]}"


def measure(fields: "Mapping[str, Any]", now: float) -> "dict[str, tuple[int | None, int]]":
    """Return what a loop that tailhook began has spent of each budget, and the budget, by its unit.

    Tokens are those of the last stop; None if no stop has counted them.

    fields: of the loop.
    """
    measured: dict[str, tuple[int | None, int]] = {}
    began = fields.get("began")
    if began and (limit := whole_number(fields.get("tokens"))):
        spent = parse_mark(fields.get("spent"))
        measured["tokens"] = spent.tokens if spent else None, limit
    began_at = unix_time(began) if isinstance(began, str) else None
    if began_at is not None and (limit := whole_number(fields.get("minutes"))):
        measured["minutes"] = max(0, int((now - began_at) / 60)), limit
    return measured


def ask_to_wrap_up(verdict: "Verdict[ChangeT]", spent: str, is_refused: bool) -> "Verdict[ChangeT]":
    """Return the verdict of a block, and make it the beginning of the loop's last turn.

    spent: what the loop has spent.
    is_refused: whether the agent reads in the same reason which checks are missing.
    """
    verdict.why = f"{verdict.why}, {spent}"
    verdict.reason = f"{verdict.reason}\n\n{describe_last_turn(spent, is_refused)}"
    return verdict


def describe_last_turn(spent: str = BUDGET_SPENT, is_refused: bool = False) -> str:
    """Return the paragraph for the agent about a loop's last turn.  The parameters are those of `ask_to_wrap_up`."""
    new = "nothing new except the missing checks" if is_refused else "nothing new"
    return (
        f"This is the last turn of the loop, because {spent}. Begin {new}. Bring what you have begun into a safe "
        "state, and write what is done and what is left. The loop ends when you stop."
    )


def describe_budgets(fields: "Mapping[str, Any]") -> "list[str]":
    """Return a line for the agent about the budgets of a loop, [] if it has none.  fields: of the loop."""
    amounts = [
        f"{count_units(limit, unit)} {what}"
        for unit, what in (("tokens", "(input, cache creation and output)"), ("minutes", "since the loop began"))
        if fields.get("began") and (limit := whole_number(fields.get(unit)))
    ]
    if not amounts:
        return []
    return [f"Budget: {' and '.join(amounts)}. When it is spent, you get one last turn to write what is left."]


def describe_spending(fields: "Mapping[str, Any]", now: float) -> "list[str]":
    """Return a line for the person about each budget of a loop: what is spent, and what is left."""
    lines = []
    for unit, (used, limit) in measure(fields, now).items():
        if used is None:
            why = "No stop has counted them yet; only Claude Code's tokens are counted."
            lines.append(f"Budget of {unit}: {limit:,}. {why}")
        else:
            note = " (counted at the last stop)" if unit == "tokens" else ""
            lines.append(f"Budget of {unit}: {used:,} of {limit:,} spent, {max(0, limit - used):,} left{note}.")
    return lines
