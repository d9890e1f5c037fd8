"""The briefing of a ralph loop, at a prompt and after a compaction."""

from tailhook.hook.briefings import once_in_session
from tailhook.hook.machines import decide_and_save
from tailhook.hook.ralph import find_own_ralph
from tailhook.machines import ralph_briefing
from tailhook.machines.ralph import Facts, decide
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
        lambda: ralph_briefing.brief(loop.state, loop.prompt, facts),
        lambda verdict: loop.write(verdict.change or {}),
    )
    return once_in_session(event, loop.path, (loop.state or {}).get("began"), verdict)


def repeat(event: "HookEvent") -> str:
    """Return the agent's instructions for its loop after a compaction, "" if this session has no loop."""
    loop = find_ralph(event.folders)
    if loop is None or loop.state is None:
        return ""
    silent = Facts(event.session_id, unbound_acts=event.unbound_acts)
    if decide(loop.state, loop.prompt, silent).outcome != "block":
        return ""
    return f"A ralph loop is running in this session.\n{ralph_briefing.briefing(loop.state, loop.prompt)}"
