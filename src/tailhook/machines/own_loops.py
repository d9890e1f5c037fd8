"""A stop of a loop that tailhook began: its evidence, its budgets, what it waits for, and whether it stands still.

Pure, like the machines of loops, which ask it only for such a loop (docs/machines/idle.md). It imports only the parts
that the loop uses.
"""

from tailhook._core import preload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tailhook.machines import ChangeT, Verdict
    from tailhook.machines.protocols import Turn
    from tailhook.machines.waiting import Work

MAX_REFUSED_CHARS = 9660  # hosts show only a preview of texts over 10,000; a last turn adds some words
REMINDED_EVERY = 10  # iterations; long contexts forget how a loop ends


class OwnLoop:
    """A loop that tailhook began, at a stop.

    fields: of the loop, as they were saved.
    turn: what the agent did since the stop before; None if it is unknown: then only budgets of minutes are judged.
    now: the time, in Unix seconds.
    changes: the fields to save if the loop goes on.
    work: the background work that it may wait for; None without any.
    waits: whether it waits at this stop.
    spent: what is spent of a budget if the agent's last turn begins, otherwise "".
    refusal: why the end of the loop does not count, for the agent; "" if it does.
    note: the same for the person, behind the words about another end.
    """

    __slots__ = ("changes", "fields", "note", "now", "refusal", "spent", "turn", "waits", "work")

    def __init__(self, fields: "Mapping[str, Any]", turn: "Turn | None", now: float) -> None:
        self.fields = fields
        self.turn = turn
        self.now = now
        self.changes: dict[str, str] = {}
        self.work: Work | None = None
        self.waits = False
        self.spent = self.refusal = self.note = ""

    def is_briefing_owed(self, session_id: str) -> bool:
        """Return whether a session has not read yet how its loop ends.

        session_id: "" if the payload has none.
        """
        return is_briefing_owed(self.fields.get("began"), self.fields.get("briefed"), session_id)

    def describe_terms(self, signals: "Mapping[str, str]") -> "list[str]":
        """Return the lines of a briefing about the loop's budgets and checks.  signals: see `describe_terms`."""
        return describe_terms(self.fields, signals)

    def is_reminded(self, count: int) -> bool:
        """Return whether the agent reads at an iteration again how the loop ends."""
        return bool(self.spent) or count % REMINDED_EVERY == 0

    def judge_end(self, reason: str, signal: str) -> "str | None":
        """Return a doubt for the person about an end of the loop, "" without one; None if the end does not count.

        reason: to save for the end.
        signal: what the agent has written, in a word.
        """
        self.refusal, doubt = self.turn.refuse_end(self.fields, reason, signal) if self.turn else ("", "")
        if not self.refusal:
            return doubt
        self.note = f", and the agent's {signal} did not count: its checks have not succeeded"
        return None

    def find_end(self, is_over: bool = False) -> "tuple[str, str]":
        """Return the reason to save and why, for the person, if the loop ends without a signal; ("", "") if not.

        is_over: whether the limit is reached. Then nothing but the budgets is judged.
        """
        if self.fields.get("tokens") or self.fields.get("minutes"):
            preload("machines.budgets")
            from tailhook.machines.budgets import judge_budgets

            self.changes, self.spent, reason = judge_budgets(self.fields, self.turn, self.now)
            if reason:
                return reason, f"{self.spent}{self.note}"
        if not (is_over or self.spent or self.turn is None):
            self.work = self.turn.work()
            if self.work and self.work.is_waited_for(self.fields.get("waits")):
                self.waits = True
                return "", ""
            if self.fields.get("stuck_after") and (repeated := self.find_repeated(self.turn)):
                return "STUCK", f"it stands still: {repeated}{self.note}"
        if self.work or self.fields.get("waits"):
            self.changes["waits"] = self.work.mark() if self.work else ""
        return "", ""

    def find_repeated(self, turn: "Turn") -> str:
        """Return what the agent has repeated too often, "" if nothing."""
        preload("machines.stillness")
        from tailhook.machines.stillness import look_for_stillness

        still, repeated = look_for_stillness(self.fields, turn)
        if still:
            self.changes["still"] = still
        return repeated

    def add_words(self, verdict: "Verdict[ChangeT]", max_chars: int | None = MAX_REFUSED_CHARS) -> "Verdict[ChangeT]":
        """Return the verdict of a block, with the agent's paragraphs about this stop in its reason.

        max_chars: of the reason with a refusal; None for any number.
        """
        if self.work:
            verdict.reason = f"{verdict.reason}\n\n{self.work.advice()}"
        if self.refusal:
            verdict.reason = f"{verdict.reason}\n\n{self.refusal}"[:max_chars]
            verdict.why += "; the end did not count"
        if self.spent:
            from tailhook.machines.budgets import ask_to_wrap_up

            ask_to_wrap_up(verdict, self.spent, bool(self.refusal))
        return verdict

    def mark_beginning(self) -> "dict[str, str]":
        """Return the fields to save when the loop's first turn begins."""
        if not self.fields.get("stuck_after"):
            return {}
        preload("machines.stillness")
        from tailhook.machines.stillness import mark_beginning

        still = mark_beginning(self.fields, self.turn)
        return {"still": still} if still else {}


def describe_terms(fields: "Mapping[str, Any]", signals: "Mapping[str, str]") -> "list[str]":
    """Return the lines of a briefing about the budgets and the checks of a loop, [] without any.

    fields: of the loop.
    signals: the reason of each end, by what the agent writes for it, in words.
    """
    lines = []
    if fields.get("tokens") or fields.get("minutes"):
        preload("machines.budgets")
        from tailhook.machines.budgets import describe_budgets

        lines += describe_budgets(fields)
    if fields.get("checks"):
        preload("machines.shell_words", "machines.shell_line", "machines.rules", "machines.evidence")
        from tailhook.machines.evidence import describe_checks

        lines += describe_checks(fields, signals)
    return lines


def is_briefing_owed(began: object, briefed: object, session_id: str) -> bool:
    """Return whether a session has not read yet how its loop ends.

    began: when tailhook started the loop; loops of other programs have no such time, and get no briefing.
    briefed: the id of the session that has read it.
    session_id: "" if the payload has none.
    """
    return bool(began) and session_id not in ("", briefed)
