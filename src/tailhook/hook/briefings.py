"""The briefings of loops: what an agent and its person read at a prompt and after a compaction."""

from tailhook._core import preload
from tailhook.hook.answer import SPACED, plain_lines, warn
from tailhook.hook.machines import MACHINES, machine_modules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tailhook.hook.event import HookEvent
    from tailhook.hook.protocols import BriefingHook
    from tailhook.machines import ChangeT, Verdict


def give_loops(event: "HookEvent", machines: "Sequence[str]", send: "Callable[[dict[str, Any], int], None]") -> int:
    """Give the agent the instructions of the live loops of its session, and the person the notices about loops.

    After a compaction the agent has forgotten all of them; at a prompt it gets those that it has not had.
    """
    loops, notices = [], []
    for name in machines:
        if not MACHINES[name].get("repeats"):
            continue
        try:
            hook = briefing_hook(name)
            if event.name == "SessionStart":
                loops.append(hook.repeat(event))
            elif verdict := hook.brief(event):
                loops.append(verdict.reason)
                notices.append(verdict.message)
        except Exception as error:
            from tailhook.hook.failures import failed

            warn(failed(name, error).warning)
    fields: dict[str, Any] = {}
    if any(loops):
        context = plain_lines("\n\n".join(filter(None, loops)))
        fields["hookSpecificOutput"] = {"hookEventName": event.name, "additionalContext": context}
    if any(notices):
        fields["systemMessage"] = "\n".join(filter(None, notices))
    if fields:
        send(fields, SPACED)
    return 0


def once_in_session(
    event: "HookEvent", path: str, loop: object, verdict: "Verdict[ChangeT] | None"
) -> "Verdict[ChangeT] | None":
    """Return the verdict; None if it only has a message that this session's person has read already.

    If that cannot be saved, the person does not get the message: it would be repeated at each prompt.

    path: of the loop's store or state file.
    loop: a value that no earlier loop of the project has.
    """
    if verdict is None or not verdict.message:
        return verdict
    preload("stores.notices")
    from tailhook.stores.notices import save_notice

    try:
        return verdict if save_notice(path, str(loop), event.session_id) else None
    except OSError:
        return None


def is_persons_prompt(event: "HookEvent") -> bool:
    """Return whether a person or a program wrote the prompt, and not the host at the end of a background task."""
    preload("stores.processes", "stores.spool", "hook.plates")
    from tailhook.hook.plates import is_hosts_prompt

    return not is_hosts_prompt(event.payload)


def briefing_hook(name: str) -> "BriefingHook":
    """Import and return the module `tailhook.hook.<name>_briefing`."""
    preload(*machine_modules(name), "machines.own_loops", f"machines.{name}_briefing", f"hook.{name}_briefing")
    module: BriefingHook = __import__(f"tailhook.hook.{name}_briefing", None, None, ("brief",))
    return module
