"""The briefing of a ralph loop, at a prompt and after a compaction."""

from tailhook.hook.answer import plain_lines
from tailhook.hook.briefings import is_persons_prompt, once_in_session
from tailhook.hook.machines import decide_and_save
from tailhook.hook.ralph import find_own_ralph
from tailhook.machines import owns, ralph_briefing
from tailhook.machines.ralph import Facts
from tailhook.stores.ralph import find_ralph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tailhook.hook.event import HookEvent
    from tailhook.machines import Verdict
    from tailhook.machines.ralph import Values


def brief(event: "HookEvent") -> "Verdict[Values] | None":
    """Return the verdict with the agent's instructions for a loop if it has not had them; save that it has had them.

    The person reads once in a session that the loop belongs to another one. Raises OSError if the state cannot be read.
    """
    loop = find_ralph(event.folders)
    if loop is None:
        return None
    facts = Facts(event.session_id, unbound_acts=event.unbound_acts, own=lambda values: find_own_ralph(event, values))
    verdict = decide_and_save(
        loop,
        lambda: ralph_briefing.brief(loop.state, plain_lines(loop.prompt), facts, lambda: is_persons_prompt(event)),
        lambda verdict: loop.write(verdict.change or {}),
    )
    return once_in_session(event, loop.path, (loop.state or {}).get("began"), verdict)


def repeat(event: "HookEvent") -> str:
    """Return the agent's instructions for its loop after a compaction, "" if this session has no loop."""
    loop = find_ralph(event.folders)
    if loop is None or loop.state is None or not loop.prompt or not ralph_briefing.is_live(loop.state):
        return ""
    if not owns(event.session_id, (loop.state.get("session_id"),), event.unbound_acts):
        return ""
    words = ralph_briefing.briefing(loop.state, plain_lines(loop.prompt))
    return f"A ralph loop is running in this session.\n{words}"
