"""The briefing of a ralph loop: how an agent that has not started it learns its prompt and its promise.

Pure, like the machine (docs/machines/ralph.md). A hook imports this module at a prompt and after a compaction.
"""

from tailhook._core import preload
from tailhook.machines import CLAIM, Verdict, owns
from tailhook.machines.own_loops import describe_terms, is_briefing_owed
from tailhook.machines.ralph import (
    COMPLETE,
    COUNTS,
    Facts,
    describe_turn,
    is_inactive,
    parse_count,
    promise_of,
    shorten,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tailhook.machines.ralph import Values


def brief(
    state: "Mapping[str, str | None] | None", prompt: str, facts: Facts, is_persons: "Callable[[], bool]" = bool
) -> "Verdict[Values] | None":
    """Give an agent the briefing of its loop at a prompt, if it is owed: claim the loop, and save that it was given.

    The parameters are those of `decide`. The verdict's reason is the briefing. If the loop belongs to another session,
    the verdict has a message for the person instead. Return None if there is nothing to give or to save.

    is_persons: returns whether the prompt is a person's: then the loop stops waiting.
    """
    if state is None or not prompt or not is_live(state):
        return None
    owner = state.get("session_id")
    is_ours = owns(facts.session_id, (owner,), facts.unbound_acts)
    waits = {"waits": ""} if state.get("began") and state.get("waits") and is_ours and is_persons() else {}
    if not is_briefing_owed(state.get("began"), state.get("briefed"), facts.session_id):
        return Verdict("allow", "waits no longer", waits) if waits else None
    if not is_ours:
        where = f"a ralph loop of this project (iteration {parse_count(state, 'iteration')})"
        from tailhook.machines.notices import name_owner

        notice = name_owner((owner,), where, "ralph")
        return Verdict("allow", "another session's loop", message=notice) if notice else None
    claimed = {"session_id": facts.session_id} if owner == CLAIM else {}
    words = f"A ralph loop is running in this session.\n{briefing(state, prompt)}"
    change = {**claimed, **waits, "briefed": facts.session_id}
    if own := facts.own(state):
        change.update(own.mark_beginning())
    return Verdict("allow", "briefed", change, words)


def briefing(state: "Mapping[str, str | None]", prompt: str) -> str:
    """Return the instructions for an agent in a loop: the prompt, the iteration, and how to end the loop."""
    count, limit = (parse_count(state, key) or 0 for key in COUNTS)
    promise = promise_of(state)
    terms = describe_terms(state, {"The promise": COMPLETE} if promise else {})
    lines = [describe_turn(count, limit, promise, state), *terms, f"Prompt: {shorten(prompt)}"]
    if state.get("began") and state.get("wrap_up"):
        preload("machines.budgets")
        from tailhook.machines.budgets import describe_last_turn

        lines.append(describe_last_turn())
    return "\n".join(lines)


def is_live(state: "Mapping[str, str | None] | None") -> bool:
    """Return whether a loop runs here, of any session."""
    return state is not None and has_counts(state) and not is_inactive(state)


def is_ralph_paused(state: "Mapping[str, str | None] | None") -> bool:
    """Return whether a loop, of any session, is here and switched off."""
    return state is not None and has_counts(state) and is_inactive(state)


def has_counts(state: "Mapping[str, str | None]") -> bool:
    """Return whether the counts of a state are whole numbers."""
    return all(parse_count(state, key) is not None for key in COUNTS)
