"""The idle machine: may a looping agent stop?  (docs/machines/idle.md)

Pure: state, words and clock in; verdict out. `tailhook.hook.idle` loads, locks and saves.
"""

from tailhook.machines import (
    CLAIM,
    Verdict,
    format_value,
    owns,
    whole_number,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tailhook.machines.own_loops import OwnLoop

ABORTED = "aborted before"  # why a stop is allowed if the last loop was aborted
PAUSED = "the loop is paused until `tailhook loop resume`"  # why a stop of a paused loop is allowed
LOOP_ENDED = "the loop ended: "  # begins why a stop is allowed that ends a loop
STALE_AFTER_S = 7200  # seconds without an update before a loop counts as abandoned
WAITING_STALE_AFTER_S = 86400  # the same of a loop that waits: its work in the background may take so long
DEFAULT_MAX = {"loop": 10, "issue": 10, "grind": 100}
SUBJECTS = frozenset(("worktree_path", "issue_id", "filter"))  # the fields of a frame that name what it is about

# The signals that end a loop, by its mode, and the recorded reason of each. The compiled core is built from this table
# (ext/tables.py): a signal added here is found everywhere.
LOOP_SIGNALS = {
    "<loop-done>COMPLETE</loop-done>": "COMPLETE",
    "<loop-done>MAX_ITERATIONS</loop-done>": "MAX_ITERATIONS",
    "<loop-done>STUCK</loop-done>": "STUCK",
}
SIGNALS = {
    "loop": LOOP_SIGNALS,
    "issue": {**LOOP_SIGNALS, "<issue-complete>DONE</issue-complete>": "COMPLETE"},
    "grind": {
        "<grind-done>NO_MORE_ISSUES</grind-done>": "NO_MORE_ISSUES",
        "<grind-done>MAX_ISSUES</grind-done>": "MAX_ISSUES",
    },
}


class Facts:
    """The facts about one stop, from the payload and the transcript.

    session_id: "" if the payload has none.
    paused: whether a background task will wake the agent.
    signals: returns the signals that count in the final text, in order of appearance; called only when they decide.
    folder: returns the absolute form of a path if it is a folder, else None.
    unbound_acts: whether any session may act on a state that names no session.
    next_issue: the configured command line that lists the next issues, "" for none. The agent gets
        it; the hook does not run it.
    goal: returns the prompt of the top frame, "" if it is unknown; called only if the briefing is owed.
    own: returns a loop of tailhook's own at this stop, given its frame. Called only if tailhook began the loop.
    """

    __slots__ = ("folder", "goal", "next_issue", "own", "paused", "session_id", "signals", "unbound_acts")

    def __init__(
        self,
        session_id: str = "",
        paused: bool = False,
        signals: "Callable[[], Sequence[str]]" = tuple,
        folder: "Callable[[str], str | None]" = lambda path: None,
        unbound_acts: bool = True,
        next_issue: str = "",
        goal: "Callable[[], str]" = str,
        own: "Callable[[dict[str, Any]], OwnLoop | None]" = lambda top: None,
    ) -> None:
        self.session_id = session_id
        self.paused = paused
        self.signals = signals
        self.folder = folder
        self.unbound_acts = unbound_acts
        self.next_issue = next_issue
        self.goal = goal
        self.own = own


def decide(state: object, facts: Facts, now: float, stale_after: float = STALE_AFTER_S) -> "Verdict[dict[str, Any]]":
    """Decide what happens to the loop when the agent stops.

    state: the topic's newest body, any JSON value.
    now: the time, in Unix seconds.
    stale_after: the seconds without a change after which a loop counts as abandoned.
    """
    if not isinstance(state, dict):
        return Verdict(
            "allow",
            f"{LOOP_ENDED}its state is broken: it is not an object",
            ended_state({"schema": 1}, "ABORT", now, "CORRUPTED"),
            warning="Warning: Loop state is corrupted (not an object), allowing exit",
            ended=True,
        )
    frames, event = state.get("stack"), state.get("event")
    if event == "ABORT":
        if frames:
            return Verdict("allow", "aborted before; its frames are cleared", ended_state(state, "ABORT", now))
        return Verdict("allow", ABORTED)
    if not frames or event == "DONE":
        return Verdict("allow", "no loop")
    if event not in ("STATE", None):
        return Verdict("allow", f"unknown event {format_value(event)}")
    top = top_frame(frames)
    if not is_owned(state, top, facts):
        return Verdict("allow", "another session's loop")
    if is_loop_paused(top):
        return Verdict("allow", PAUSED)
    claimed = claim(state, facts.session_id)
    if (age := age_of(state, now)) is None or age > patience(top, stale_after):
        said = "unknown" if age is None else int(age)
        warning = f"Warning: Loop state is stale ({said} seconds old), allowing exit"
        rested = "the time of its last change is unknown" if age is None else f"nothing changed it for {said} seconds"
        return end_stack(claimed, "DONE", "STALENESS", rested, now, warning)
    count, limit = whole_number(top.get("iter")), whole_number(top.get("max"))
    if count is None or limit is None:
        wrong = "iter" if count is None else "max"
        warning = f"Warning: Loop state is corrupted ({wrong} is not a whole number), allowing exit"
        broken = f"its state is broken: {wrong} is not a whole number"
        return end_stack(claimed, "ABORT", "CORRUPTED", broken, now, warning)
    if facts.paused:
        return Verdict("allow", "paused: a background task is running", claimed if claimed is not state else None)
    own = facts.own(top) if top.get("began") else None
    if word := completion(top, facts):
        doubt = own.judge_end(word, "signal") if own else ""
        if doubt is not None:
            return end_frame(claimed, word, f"{word}{doubt}", now)
    if own:
        reason, why = own.find_end(count >= limit)
        if reason:
            return end_frame(claimed, reason, why, now)
    if count >= limit:
        why = f"iteration {count} of {limit} was its last one{own.note if own else ''}"
        return end_stack(claimed, "DONE", "MAX_ITERATIONS", why, now)
    if own and own.waits and own.work:
        return own.work.wait(claimed if claimed is not state else None)
    return iterate(claimed, count + 1, limit, facts, now, own)


def end_frame(state: "dict[str, Any]", reason: str, why: str, now: float) -> "Verdict[dict[str, Any]]":
    """Return the verdict that ends the top frame.

    reason: to save.  why: for the person.
    """
    if len(state["stack"]) > 1:
        outer = {**state, "event": "STATE", "stack": outer_frames(state), "updated_at": spell_time(now)}
        from tailhook.machines.idle_words import waiting

        top = top_frame(outer["stack"])
        words = waiting(top, is_loop_paused(top))
        return Verdict("allow", f"inner loop ended: {why}. {words}", outer, ended=True)
    return end_stack(state, "DONE", reason, why, now)


def end_stack(
    state: "dict[str, Any]", event: str, reason: str, why: str, now: float, warning: str = ""
) -> "Verdict[dict[str, Any]]":
    """Return the verdict that ends all frames.

    reason: to save.  why: for the person.
    """
    frames = state["stack"]
    if isinstance(frames, list) and len(frames) > 1:
        from tailhook.machines.idle_words import around

        why = f"{why}. {around([top_frame([frame]) for frame in frames[:-1]])}"
    saved = ended_state(state, event, now, reason, why)
    return Verdict("allow", f"{LOOP_ENDED}{why}", saved, warning=warning, ended=True)


def iterate(
    state: "dict[str, Any]", count: int, limit: int, facts: Facts, now: float, own: "OwnLoop | None"
) -> "Verdict[dict[str, Any]]":
    """Return the verdict that blocks and counts the next turn."""
    *outer, top = state["stack"]
    reason = (
        f"[ITERATION {count}/{limit}] Continue working on the task. "
        "Check your progress and either complete the task or keep iterating."
    )
    top = {**top, "iter": count}
    is_owed = False
    if own:
        top.update(own.changes)
        if is_owed := own.is_briefing_owed(facts.session_id):
            top["briefed"] = facts.session_id
    if is_owed or top.get("mode") == "grind" or not SUBJECTS.isdisjoint(top):
        from tailhook._core import preload  # the core is built from this module

        preload("machines.own_loops", "machines.idle_words")
        from tailhook.machines.idle_words import about, write_briefing

        if words := write_briefing(top, signals_of(top), facts.goal(), facts) if is_owed else about(top, facts):
            reason += f"\n\n{words}"
    moved = {**state, "stack": [*outer, top], "updated_at": spell_time(now)}
    verdict = Verdict("block", f"iteration {count}/{limit}", moved, reason)
    if own is None:
        return verdict
    if not is_owed and own.is_reminded(count) and (signals := signals_of(top)):
        verdict.reason += f"\n\nTo end the loop, write alone on a line, outside code: {' or '.join(signals)}"
    return own.add_words(verdict)


def outer_frames(state: "dict[str, Any]") -> "list[Any]":
    """Return the frames without the top one. The briefing of the new top frame is owed again."""
    *frames, top = state["stack"][:-1]
    if isinstance(top, dict) and top.get("began") and "briefed" in top:
        top = {key: value for key, value in top.items() if key != "briefed"}
    return [*frames, top]


def ended_state(
    state: "dict[str, Any]", event: str, now: float, reason: str | None = None, why: str = ""
) -> "dict[str, Any]":
    """Return the state after its last frame is gone; every other top-level field stays.

    why: for the person. It is saved, with the session, if tailhook began the loop.
    """
    ended = {**state, "event": event, "stack": [], "updated_at": spell_time(now)}
    if reason is not None:
        ended["reason"] = reason
        top = top_frame(state.get("stack"))
        if top.get("began"):
            ended.update(session_id=top.get("session_id"), why=why)
    return ended


def is_same_loop(before: object, state: object) -> bool:
    """Return whether two states are of one loop: it may have moved on meanwhile, but no other one was started."""
    if before is state or not isinstance(before, dict) or not isinstance(state, dict):
        return before is state
    frames = before.get("stack"), state.get("stack")
    is_one_run = before.get("run_id") == state.get("run_id")
    return is_one_run and top_frame(frames[0]).get("id") == top_frame(frames[1]).get("id")


def patience(top: "dict[str, Any]", stale_after: float) -> float:
    """Return the seconds of rest until a loop counts as abandoned.  stale_after: for a loop at work."""
    return max(stale_after, WAITING_STALE_AFTER_S) if top.get("waits") and top.get("began") else stale_after


def is_loop_paused(top: "dict[str, Any]") -> bool:
    """Return whether a person paused a frame's loop: it stays as it is until `tailhook loop resume`."""
    return bool(top.get("paused")) and top["paused"] != "false"


def is_owned(state: "dict[str, Any]", top: "dict[str, Any]", facts: Facts) -> bool:
    """Return whether a stop of the session `facts.session_id` may act on this loop."""
    return owns(facts.session_id, (state.get("session_id"), top.get("session_id")), facts.unbound_acts)


def top_frame(frames: object) -> "dict[str, Any]":
    """Return the top of the stack, or {} if the stack is empty or malformed."""
    top = frames[-1] if isinstance(frames, list) and frames else None
    return top if isinstance(top, dict) else {}


def claim(state: "dict[str, Any]", session_id: str) -> "dict[str, Any]":
    """Return `state` with "claim", in its frames and in itself, replaced by this session's id.

    The outer loops are claimed with the inner one. Otherwise another session could take them when the inner one ends.
    """
    frames = state["stack"]
    if isinstance(frames, list) and any(is_unclaimed(frame) for frame in frames):
        frames = [{**frame, "session_id": session_id} if is_unclaimed(frame) else frame for frame in frames]
        state = {**state, "stack": frames}
    if state.get("session_id") == CLAIM:
        state = {**state, "session_id": session_id}
    return state


def is_unclaimed(frame: object) -> bool:
    """Return whether a frame is for the next session that gets a prompt or stops."""
    return isinstance(frame, dict) and frame.get("session_id") == CLAIM


def completion(top: "dict[str, Any]", facts: Facts) -> str:
    """Return the reason of the last signal that counts in the frame's mode, "" if the final text has none."""
    words = signals_of(top)
    if not words:
        return ""
    for signal in reversed(facts.signals()):
        if signal in words:
            return words[signal]
    return ""


def signals_of(top: "dict[str, Any]") -> "dict[str, str]":
    """Return the signals that end a frame, with the reason of each. An absent mode is loop; an unknown one has none."""
    mode = top.get("mode")
    return SIGNALS.get(mode if isinstance(mode, str) else "loop" if mode is None else "", {})


# ---- times in the form of a state ------------------------------


def age_of(state: "dict[str, Any]", now: float) -> float | None:
    """Return the seconds since the state's last change; 0 if it names no time or a future one.

    Return None if the time cannot be read.
    """
    stamp = state.get("updated_at")
    if stamp is None:
        return 0
    changed = time_of(stamp)
    return None if changed is None else max(0, now - changed)


def words_since(state: object, now: float, slack: float) -> float | None:
    """Return the time (Unix seconds) after which an agent's words count for this state; None if all count.

    slack: seconds by which words may be older than the state's last change. A change in the future is ignored.
    """
    changed = time_of(state.get("updated_at")) if isinstance(state, dict) else None
    return None if changed is None or changed > now else changed - slack


def time_of(stamp: object) -> float | None:
    """Return the Unix time of a value in a state, or None if it is not a string of ISO 8601."""
    from tailhook._core import unix_time  # the core is built from this module

    return unix_time(stamp) if isinstance(stamp, str) else None


def spell_time(now: float) -> str:
    """Return a time in the form of a state."""
    from tailhook._core import iso_time  # the core is built from this module

    return iso_time(now)
