"""The briefing of a loop: how an agent that has not started it learns its goal and its signals.

Pure, like the machine (docs/machines/idle.md). A hook imports this module at a prompt and after a compaction.
"""

from tailhook._core import preload
from tailhook.machines import Verdict, whole_number
from tailhook.machines.idle import (
    STALE_AFTER_S,
    Facts,
    age_of,
    claim,
    is_loop_paused,
    is_owned,
    patience,
    signals_of,
    spell_time,
    top_frame,
)
from tailhook.machines.own_loops import is_briefing_owed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def brief(
    state: object,
    facts: Facts,
    now: float,
    stale_after: float = STALE_AFTER_S,
    is_persons: "Callable[[], bool]" = bool,
) -> "Verdict[dict[str, Any]] | None":
    """Give an agent the briefing of its loop at a prompt, if it is owed: claim the loop, and save that it was given.

    The parameters are those of `decide`. The verdict's reason is the briefing. If the loop belongs to another session,
    the verdict has a message for the person instead. Return None if there is nothing to give or to save.

    is_persons: returns whether the prompt is a person's: then the loop stops waiting.
    """
    if not is_live(state, now, stale_after) or not isinstance(state, dict):
        return None
    top = top_frame(state["stack"])
    is_owed = is_briefing_owed(top.get("began"), top.get("briefed"), facts.session_id)
    if is_loop_paused(top):
        return None
    if top.get("began") and top.get("waits") and is_owned(state, top, facts) and is_persons():
        top = {**top, "waits": ""}
        state = {**state, "stack": [*state["stack"][:-1], top], "updated_at": spell_time(now)}
        if not is_owed:
            return Verdict("allow", "waits no longer", state)
    if not is_owed:
        return None
    if not is_owned(state, top, facts):
        where = f"a loop of this project (iteration {top['iter']} of {top['max']})"
        from tailhook.machines.notices import name_owner

        notice = name_owner((top.get("session_id"), state.get("session_id")), where, "loop")
        return Verdict("allow", "another session's loop", message=notice) if notice else None
    claimed = claim(state, facts.session_id)
    *outer, top = claimed["stack"]
    top = {**top, "briefed": facts.session_id}
    if own := facts.own(top):
        top.update(own.mark_beginning())
    briefed = {**claimed, "stack": [*outer, top]}
    return Verdict(
        "allow", "briefed", briefed, f"A loop is running in this session.\n{briefing(briefed, facts.goal(), facts)}"
    )


def is_to_repeat(state: object, facts: Facts, now: float, stale_after: float = STALE_AFTER_S) -> bool:
    """Return whether a session needs the briefing again after a compaction. The parameters are those of `decide`."""
    if not is_live(state, now, stale_after) or not isinstance(state, dict):
        return False
    top = top_frame(state["stack"])
    return is_owned(state, top, facts) and not is_loop_paused(top)


def briefing(state: "dict[str, Any]", goal: str, facts: Facts) -> str:
    """Return the instructions for an agent in a loop.

    state: a state that `decide` reads as a live loop.  goal: the prompt; it is cut if it is long.
    """
    top = top_frame(state.get("stack"))
    preload("machines.idle_words")
    from tailhook.machines.idle_words import write_briefing

    words = write_briefing(top, signals_of(top), goal, facts)
    if top.get("began") and top.get("wrap_up"):
        preload("machines.budgets")
        from tailhook.machines.budgets import describe_last_turn

        words = f"{words}\n{describe_last_turn()}"
    return words


def is_live(state: object, now: float, stale_after: float = STALE_AFTER_S) -> bool:
    """Return whether a loop runs here, of any session: not ended, not stale, not corrupted. It may be paused."""
    if not isinstance(state, dict) or not state.get("stack") or state.get("event") not in ("STATE", None):
        return False
    top, age = top_frame(state["stack"]), age_of(state, now)
    if (age is None or age > patience(top, stale_after)) and not is_loop_paused(top):
        return False
    return whole_number(top.get("iter")) is not None and whole_number(top.get("max")) is not None


def bottom_frame(state: object) -> "dict[str, Any]":
    """Return the outermost frame of a state, or {} if there is none."""
    frames = state.get("stack") if isinstance(state, dict) else None
    return top_frame(frames[:1]) if isinstance(frames, list) else {}
