"""The briefing of the idle machine's loop, at a prompt and after a compaction."""

from tailhook.hook.briefings import is_persons_prompt, once_in_session
from tailhook.hook.idle import facts_of, find_enabled, stale_after
from tailhook.hook.machines import decide_and_save
from tailhook.machines import idle_briefing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tailhook.hook.event import HookEvent
    from tailhook.machines import Verdict


def brief(event: "HookEvent") -> "Verdict[dict[str, Any]] | None":
    """Return the verdict with the agent's instructions for a loop if it has not had them; save that it has had them.

    Reads and saves the state like `ask`. If it cannot be saved, the instructions are given at the next prompt or block.
    The person reads once in a session that the loop belongs to another one. Raises OSError if the state cannot be read.
    """
    loop = find_enabled(event)
    if loop is None:
        return None
    facts = facts_of(event, loop)
    verdict = decide_and_save(
        loop,
        lambda: idle_briefing.brief(
            loop.state, facts, event.now, stale_after(event.config), lambda: is_persons_prompt(event)
        ),
        lambda verdict: loop.save(verdict.change or {}, event.now),
    )
    return once_in_session(event, loop.path, idle_briefing.bottom_frame(loop.state).get("id"), verdict)


def repeat(event: "HookEvent") -> str:
    """Return the agent's instructions for its loop after a compaction, "" if this session has no loop."""
    loop = find_enabled(event)
    state = loop.state if loop else None
    if loop is None or not isinstance(state, dict):
        return ""
    facts = facts_of(event, loop)
    if not idle_briefing.is_to_repeat(state, facts, event.now, stale_after(event.config)):
        return ""
    return f"A loop is running in this session.\n{idle_briefing.briefing(state, facts.goal(), facts)}"
