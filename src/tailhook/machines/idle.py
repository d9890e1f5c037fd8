"""The idle machine: may a looping agent stop?  (docs/machines/idle.md)

Pure: state, words and clock in; verdict out. `tailhook.hook.idle` loads, locks and saves.
"""

from tailhook.machines import (
    CLAIM,
    REMINDED_EVERY,
    Verdict,
    clip_field,
    format_value,
    is_briefing_owed,
    owns,
    whole_number,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tailhook.machines.stillness import Turn
    from tailhook.machines.waiting import Work

ABORTED = "aborted before"  # why a stop is allowed if the last loop was aborted
PAUSED = "the loop is paused until `tailhook loop resume`"  # why a stop of a paused loop is allowed
STALE_AFTER_S = 7200  # seconds without an update before a loop counts as abandoned
DEFAULT_MAX = {"loop": 10, "issue": 10, "grind": 100}
MAX_MODE_CHARS = 40
MAX_BRIEFING_CHARS = 9350  # the goal is cut to fit; hosts show only a preview of texts over 10,000

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
    work: returns the background work that a loop may wait for. Called only before an iteration of tailhook's own loop.
    turn: returns what the agent did since the stop before. Called only for such a loop, and if stillness ends it.
    refusal: returns why an end of such a loop does not count, for the agent, "" if it does; and a doubt to add for the
        person. Its arguments: the top frame, the reason of the end, and what the agent has written, in a word.
    """

    __slots__ = (
        *("folder", "goal", "next_issue", "paused", "refusal", "session_id", "signals", "turn", "unbound_acts", "work"),
    )

    def __init__(
        self,
        session_id: str = "",
        paused: bool = False,
        signals: "Callable[[], Sequence[str]]" = lambda: (),
        folder: "Callable[[str], str | None]" = lambda path: None,
        unbound_acts: bool = True,
        next_issue: str = "",
        goal: "Callable[[], str]" = lambda: "",
        work: "Callable[[], Work | None]" = lambda: None,
        turn: "Callable[[], Turn | None]" = lambda: None,
        refusal: "Callable[[dict[str, Any], str, str], tuple[str, str]]" = lambda *_: ("", ""),
    ) -> None:
        self.session_id = session_id
        self.paused = paused
        self.signals = signals
        self.folder = folder
        self.unbound_acts = unbound_acts
        self.next_issue = next_issue
        self.goal = goal
        self.work = work
        self.turn = turn
        self.refusal = refusal


def decide(state: object, facts: Facts, now: float, stale_after: float = STALE_AFTER_S) -> "Verdict[dict[str, Any]]":
    """Decide what happens to the loop when the agent stops.

    state: the topic's newest body, any JSON value.
    now: the time, in Unix seconds.
    stale_after: the seconds without a change after which a loop counts as abandoned.
    """
    if not isinstance(state, dict):
        return Verdict(
            "allow",
            "corrupted: the state is not an object",
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
    claimed = claim(state, top, facts.session_id)
    if (age := age_of(state, now)) is None or age > stale_after:
        warning = f"Loop state is stale ({'unknown' if age is None else int(age)} seconds old), allowing exit"
        return Verdict(
            "allow",
            "stale",
            ended_state(claimed, "DONE", now, "STALENESS"),
            warning=f"Warning: {warning}",
            ended=True,
        )
    count, limit = whole_number(top.get("iter")), whole_number(top.get("max"))
    if count is None or limit is None:
        wrong = "iter" if count is None else "max"
        return Verdict(
            "allow",
            f"corrupted: {wrong} is not a whole number",
            ended_state(claimed, "ABORT", now, "CORRUPTED"),
            warning=f"Warning: Loop state is corrupted ({wrong} is not a whole number), allowing exit",
            ended=True,
        )
    if facts.paused:
        return Verdict("allow", "paused: a background task is running", claimed if claimed is not state else None)
    refusal = ""
    if word := completion(top, facts):
        refusal, doubt = facts.refusal(top, word, "signal") if top.get("began") else ("", "")
        if not refusal:
            return end_frame(claimed, word, f"{word}{doubt}", now)
    changes: dict[str, str] = {}
    if top.get("began") and (top.get("tokens") or top.get("minutes")):
        from tailhook.machines.budgets import ask_to_wrap_up, judge_budgets

        changes, spent, reason = judge_budgets(top, facts.turn(), now)
        if reason:
            return end_frame(claimed, reason, spent, now)
        if spent and count < limit:
            asked = refused(iterate(claimed, count + 1, limit, facts, now, None, changes), refusal)
            return ask_to_wrap_up(asked, spent)
    if count >= limit:
        return Verdict(
            "allow", f"limit of {limit} reached", ended_state(claimed, "DONE", now, "MAX_ITERATIONS"), ended=True
        )
    work = facts.work() if top.get("began") else None
    if work and work.is_waited_for(top.get("waits")):
        return work.wait(claimed if claimed is not state else None)
    if top.get("began") and top.get("stuck_after"):
        turn = facts.turn()
        from tailhook.machines.stillness import look_for_stillness

        still, repeated = look_for_stillness(top, turn)
        if repeated:
            return end_frame(claimed, "STUCK", f"it stands still: {repeated}", now)
        if still:
            changes["still"] = still
    return refused(iterate(claimed, count + 1, limit, facts, now, work, changes), refusal)


def refused(verdict: "Verdict[dict[str, Any]]", refusal: str) -> "Verdict[dict[str, Any]]":
    """Return an iteration, with the reason why the loop's end did not count; "" if it has no end."""
    if refusal:
        from tailhook.machines.evidence import add_refusal

        add_refusal(verdict, refusal)
    return verdict


def end_frame(state: "dict[str, Any]", reason: str, why: str, now: float) -> "Verdict[dict[str, Any]]":
    """Return the verdict that ends the top frame.

    reason: to save.  why: for the person.
    """
    if len(state["stack"]) > 1:
        outer = {**state, "event": "STATE", "stack": outer_frames(state), "updated_at": spell_time(now)}
        return Verdict("allow", f"inner loop ended: {why}. {waiting(outer)}", outer, ended=True)
    return Verdict("allow", f"ended: {why}", ended_state(state, "DONE", now, reason), ended=True)


def iterate(
    state: "dict[str, Any]",
    count: int,
    limit: int,
    facts: Facts,
    now: float,
    work: "Work | None",
    changes: "dict[str, str]",
) -> "Verdict[dict[str, Any]]":
    """Return the verdict that blocks and counts the next turn.

    changes: other fields of the top frame to save.
    """
    *outer, top = state["stack"]
    reason = (
        f"[ITERATION {count}/{limit}] Continue working on the task. "
        "Check your progress and either complete the task or keep iterating."
    )
    is_owed = is_briefing_owed(top.get("began"), top.get("briefed"), facts.session_id)
    top = {**top, "iter": count, **({"briefed": facts.session_id} if is_owed else {}), **changes}
    if work or (top.get("waits") and top.get("began")):
        top["waits"] = work.mark() if work else ""
    moved = {**state, "stack": [*outer, top], "updated_at": spell_time(now)}
    if is_owed:
        reason += f"\n\n{briefing(moved, facts.goal(), facts)}"
    elif subject := about(top, facts):
        reason += f"\n\n{subject}"
    is_reminded = top.get("began") and (count % REMINDED_EVERY == 0 or "wrap_up" in changes)
    if not is_owed and is_reminded and (signals := signals_of(top)):
        reason += f"\n\nTo end the loop, write alone on a line, outside code: {' or '.join(signals)}"
    if work:
        reason += f"\n\n{work.advice()}"
    return Verdict("block", f"iteration {count}/{limit}", moved, reason)


def brief(
    state: object, facts: Facts, now: float, stale_after: float = STALE_AFTER_S
) -> "Verdict[dict[str, Any]] | None":
    """Give an agent the briefing of its loop at a prompt, if it is owed: claim the loop, and save that it was given.

    The parameters are those of `decide`. The verdict's reason is the briefing. If the loop belongs to another session,
    the verdict has a message for the person instead. Return None if there is nothing to give.
    """
    if not is_live(state, now, stale_after) or not isinstance(state, dict):
        return None
    top = top_frame(state["stack"])
    is_owed = is_briefing_owed(top.get("began"), top.get("briefed"), facts.session_id)
    if not is_owed or is_loop_paused(top):
        return None
    if not is_owned(state, top, facts):
        where = f"a loop of this project (iteration {top['iter']} of {top['max']})"
        from tailhook.machines.notices import name_owner

        notice = name_owner((top.get("session_id"), state.get("session_id")), where, "loop")
        return Verdict("allow", "another session's loop", message=notice) if notice else None
    claimed = claim(state, top, facts.session_id)
    *outer, top = claimed["stack"]
    top = {**top, "briefed": facts.session_id}
    if top.get("stuck_after"):
        turn = facts.turn()
        from tailhook.machines.stillness import mark_beginning

        if still := mark_beginning(top, turn):
            top["still"] = still
    briefed = {**claimed, "stack": [*outer, top]}
    return Verdict(
        "allow", "briefed", briefed, f"A loop is running in this session.\n{briefing(briefed, facts.goal(), facts)}"
    )


def outer_frames(state: "dict[str, Any]") -> "list[Any]":
    """Return the frames without the top one. The briefing of the new top frame is owed again."""
    *frames, top = state["stack"][:-1]
    if isinstance(top, dict) and top.get("began") and "briefed" in top:
        top = {key: value for key, value in top.items() if key != "briefed"}
    return [*frames, top]


def ended_state(state: "dict[str, Any]", event: str, now: float, reason: str | None = None) -> "dict[str, Any]":
    """Return the state after its last frame is gone; every other top-level field stays."""
    ended = {**state, "event": event, "stack": [], "updated_at": spell_time(now)}
    if reason is not None:
        ended["reason"] = reason
    return ended


def is_same_loop(before: object, state: object) -> bool:
    """Return whether two states are of one loop: it may have moved on meanwhile, but no other one was started."""
    if before is state or not isinstance(before, dict) or not isinstance(state, dict):
        return before is state
    frames = before.get("stack"), state.get("stack")
    is_one_run = before.get("run_id") == state.get("run_id")
    return is_one_run and top_frame(frames[0]).get("id") == top_frame(frames[1]).get("id")


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


def bottom_frame(state: object) -> "dict[str, Any]":
    """Return the outermost frame of a state, or {} if there is none."""
    frames = state.get("stack") if isinstance(state, dict) else None
    return top_frame(frames[:1]) if isinstance(frames, list) else {}


def claim(state: "dict[str, Any]", top: "dict[str, Any]", session_id: str) -> "dict[str, Any]":
    """Return `state` with "claim", in its top frame and in itself, replaced by this session's id."""
    if top.get("session_id") == CLAIM:
        state = {**state, "stack": [*state["stack"][:-1], {**top, "session_id": session_id}]}
    if state.get("session_id") == CLAIM:
        state = {**state, "session_id": session_id}
    return state


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


def about(top: "dict[str, Any]", facts: Facts) -> str:
    """Return the lines about a frame's worktree, its issue, and the issues that it takes; "" for none."""
    place = worktree(top, facts)
    lines = [place] if place else []
    if (issue := name_in(top, "issue_id")) and not place:
        lines.append(f"Issue: {issue}")
    if filter_ := name_in(top, "filter"):
        lines.append(f"Issues to take: {filter_}")
    if top.get("mode") == "grind" and facts.next_issue:
        lines.append(f"To list the next issues: {clip_field(facts.next_issue)}")
    return "\n".join(lines)


def name_in(top: "dict[str, Any]", field: str) -> str:
    """Return a frame's string for a message, "" if it is absent."""
    value = top.get(field)
    return clip_field(value) if isinstance(value, str) else ""


def worktree(top: "dict[str, Any]", facts: Facts) -> str:
    """Return the paragraph about the folder of the work, "" if the frame names no existing folder."""
    path = top.get("worktree_path")
    folder = facts.folder(path) if isinstance(path, str) and path else None
    if folder is None:
        return ""
    parts = [f"Work in the worktree {clip_field(folder)}"]
    for field, words in (("branch", "on branch {}"), ("base_ref", "based on {}"), ("issue_id", "for issue {}")):
        if name := name_in(top, field):
            parts.append(words.format(name))
    return f"{', '.join(parts)}. Use absolute paths under it for every file, and run every command there."


def waiting(state: "dict[str, Any]") -> str:
    """Return the words for the person when an inner loop has ended: which loop waits, its iteration, how to go on."""
    top = top_frame(state.get("stack"))
    subject = name_in(top, "issue_id") or name_in(top, "filter")
    which = f"mode {mode_of(top)}{f', {subject}' if subject else ''}"
    counts = whole_number(top.get("iter")), whole_number(top.get("max"))
    where = "an unknown iteration" if None in counts else f"iteration {counts[0]} of {counts[1]}"
    advice = "send the agent a prompt to continue it, or end it with `tailhook loop cancel`"
    return f"The outer loop ({which}) waits at {where}: {advice}"


def mode_of(top: "dict[str, Any]") -> str:
    """Return the mode of a frame for a message."""
    mode = top.get("mode") or "loop"
    return clip_field(mode, MAX_MODE_CHARS) if isinstance(mode, str) else "unknown"


def briefing(state: "dict[str, Any]", goal: str, facts: Facts) -> str:
    """Return the instructions for an agent in a loop: the goal, its subject, the iteration, and how to end it.

    state: a state that `decide` reads as a live loop.  goal: the prompt; it is cut if it is long.
    """
    top = top_frame(state.get("stack"))
    subject = about(top, facts)
    lines = [subject] if subject else []
    where = f"Iteration {top.get('iter')} of at most {top.get('max')} (mode {mode_of(top)})"
    lines += [
        f"{where}: you must continue each time you stop.",
        *budget_lines(top),
        "To end the loop, write one of these alone on a line, outside code, as part of your answer:",
        *(f"  {signal}" for signal in signals_of(top)),
    ]
    room = MAX_BRIEFING_CHARS - sum(map(len, lines))
    if len(goal) > room:
        goal = f"{goal[:room]}… (cut; the whole is in {top.get('prompt_file')})"
    if goal:
        lines.insert(0, f"Goal: {goal}")
    return "\n".join(lines)


def budget_lines(top: "dict[str, Any]") -> "list[str]":
    """Return the line about a frame's budgets for the agent, [] if it has none."""
    from tailhook.machines.budgets import describe_budgets

    return describe_budgets(top)


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


def is_live(state: object, now: float, stale_after: float = STALE_AFTER_S) -> bool:
    """Return whether a loop runs here, of any session: not ended, not stale, not corrupted. It may be paused."""
    if not isinstance(state, dict) or not state.get("stack") or state.get("event") not in ("STATE", None):
        return False
    top, age = top_frame(state["stack"]), age_of(state, now)
    if (age is None or age > stale_after) and not is_loop_paused(top):
        return False
    return whole_number(top.get("iter")) is not None and whole_number(top.get("max")) is not None


def spell_time(now: float) -> str:
    """Return a time in the form of a state."""
    from tailhook._core import iso_time  # the core is built from this module

    return iso_time(now)
