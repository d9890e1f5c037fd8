"""What the agent and the person read about a loop of the idle machine.

Pure, like the machine. It imports this module only if a frame has a subject, the briefing is owed, or an inner loop
ends.
"""

from tailhook.machines import clip_field, whole_number
from tailhook.machines.own_loops import describe_terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tailhook.machines.idle import Facts

MAX_MODE_CHARS = 40
MAX_NAMED_LOOPS = 5
MAX_BRIEFING_CHARS = 9350  # the goal is cut to fit; hosts show only a preview of texts over 10,000


def write_briefing(top: "dict[str, Any]", signals: "Mapping[str, str]", goal: str, facts: "Facts") -> str:
    """Return the instructions for an agent in a loop: the goal, its subject, the iteration, and how to end it.

    top: the frame of a live loop.  signals: those that end it, with the reason of each.  goal: the prompt; it is cut if
        it is long.
    """
    subject = about(top, facts)
    lines = [subject] if subject else []
    reasons = {signal.partition(">")[2].partition("<")[0]: reason for signal, reason in signals.items()}
    where = f"Iteration {top.get('iter')} of at most {top.get('max')} (mode {mode_of(top)})"
    lines += [
        f"{where}: you must continue each time you stop.",
        "To end the loop, write one of these alone on a line, outside code, as part of your answer:",
        *(f"  {signal}" for signal in signals),
        *describe_terms(top, reasons),
    ]
    return "\n".join(with_goal(goal, lines, top))


def with_goal(goal: str, lines: list[str], top: "dict[str, Any]") -> list[str]:
    """Return the lines behind one with the goal, which is cut if a host would show only a preview of all of them."""
    room = MAX_BRIEFING_CHARS - sum(map(len, lines))
    if len(goal) > room:
        goal = f"{goal[:room]}… (cut; the whole is in {top.get('prompt_file')})"
    return [f"Goal: {goal}", *lines] if goal else lines


def about(top: "dict[str, Any]", facts: "Facts") -> str:
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


def worktree(top: "dict[str, Any]", facts: "Facts") -> str:
    """Return the paragraph about the folder of the work, "" if the frame names no existing folder."""
    place = name_worktree(top, facts)
    return f"Work in {place}. Use absolute paths under it for every file, and run every command there." if place else ""


def name_worktree(top: "dict[str, Any]", facts: "Facts") -> str:
    """Return a frame's worktree with its branches and its issue, "" if the frame names no existing folder."""
    path = top.get("worktree_path")
    folder = facts.folder(path) if isinstance(path, str) and path else None
    if folder is None:
        return ""
    parts = [f"the worktree {clip_field(folder)}"]
    for field, words in (("branch", "on branch {}"), ("base_ref", "based on {}"), ("issue_id", "for issue {}")):
        if name := name_in(top, field):
            parts.append(words.format(name))
    return ", ".join(parts)


def waiting(top: "dict[str, Any]", is_paused: bool) -> str:
    """Return the words for the person when an inner loop has ended: which loop waits, its iteration, how to go on.

    top: the frame of the outer loop.
    is_paused: whether a person paused it.
    """
    which, where = describe_frame(top)
    stands, how = "waits", "send the agent a prompt to continue it"
    if is_paused:
        stands, how = "is paused", "continue it with `tailhook loop resume`"
    return f"The outer loop ({which}) {stands} at {where}: {how}, or end it with `tailhook loop cancel`"


def around(frames: "Sequence[dict[str, Any]]") -> str:
    """Return the words for the person about the loops that ended with an inner one, the inner ones first.

    frames: the outer frames, the outermost first. Only the last MAX_NAMED_LOOPS are named.
    """
    named = [", at ".join(describe_frame(frame)) for frame in reversed(frames[-MAX_NAMED_LOOPS:])]
    loops = "The loop" if len(frames) == 1 else f"The {len(frames)} loops"
    return f"{loops} around it ended, too: {'; '.join(named)}"


def describe_frame(top: "dict[str, Any]") -> tuple[str, str]:
    """Return the mode and the subject of a frame, and its iteration, for the person."""
    subject = name_in(top, "issue_id") or name_in(top, "filter")
    counts = whole_number(top.get("iter")), whole_number(top.get("max"))
    where = "an unknown iteration" if None in counts else f"iteration {counts[0]} of {counts[1]}"
    return f"mode {mode_of(top)}{f', {subject}' if subject else ''}", where


def mode_of(top: "dict[str, Any]") -> str:
    """Return the mode of a frame for a message."""
    mode = top.get("mode") or "loop"
    return clip_field(mode, MAX_MODE_CHARS) if isinstance(mode, str) else "unknown"


def name_in(top: "dict[str, Any]", field: str) -> str:
    """Return a frame's string for a message, "" if it is absent."""
    value = top.get(field)
    return clip_field(value) if isinstance(value, str) else ""
