"""The idle machine's hook: finds the loop, asks the machine to decide, and saves the new state."""

from tailhook._core import preload, signals
from tailhook.hook.event import CLOCK_TOLERANCE_S
from tailhook.hook.machines import MACHINES, decide_and_save, once_in_session
from tailhook.hook.payload import exists, is_paused
from tailhook.machines import idle
from tailhook.stores.loop import JwzLoop, find_loop, remove_fallback

NEVER_S = float("inf")
FIRST_READ_TIMEOUT_S = 3.0  # for the first reading of a large store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tailhook.hook.config import Config
    from tailhook.hook.event import HookEvent
    from tailhook.machines import Verdict
    from tailhook.stores.fallback import FileLoop


def ask(event: "HookEvent") -> "Verdict[dict[str, Any]] | None":
    """Decide and save the new state; return the verdict, or None if there is no loop.

    Reads the store (a new, large one for at most FIRST_READ_TIMEOUT_S) and the transcript (at most 64 MiB). Reads the
    store again under its lock if there is something to save. Raises OSError if the state cannot be read.
    """
    loop = find_enabled(event)
    if loop is None:
        return None

    def save(verdict: "Verdict[dict[str, Any]]") -> None:
        if verdict.change is not None:
            loop.save(verdict.change, event.now)

    before = loop.state
    verdict = decide_and_save(loop, lambda: decide_loop(event, loop, before), save)
    if isinstance(loop, JwzLoop) and isinstance(loop.state, dict) and loop.state.get("event") == "ABORT":
        remove_fallback(event.folders)
    return verdict


def find_enabled(event: "HookEvent") -> "JwzLoop | FileLoop | None":
    """Return the project's loop; None if there is none or the machine is switched off there. Raises OSError."""
    if exists(f"{event.root}/{MACHINES['idle'].get('off_file')}"):
        return None
    return find_loop(event.folders, FIRST_READ_TIMEOUT_S)


def decide_loop(event: "HookEvent", loop: "JwzLoop | FileLoop", before: object) -> "Verdict[dict[str, Any]]":
    """Decide what happens to the loop.

    before: the state that the hook read first. If a new loop has begun since then, the agent's words are not about it.
    """
    state = loop.state

    def words() -> "Sequence[str]":
        if not idle.is_same_loop(before, state):
            return ()
        return signals(event.final_text(idle.words_since(state, event.now, CLOCK_TOLERANCE_S)))

    return idle.decide(state, facts_of(event, loop, words), event.now, stale_after(event.config))


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
        lambda: idle.brief(loop.state, facts, event.now, stale_after(event.config)),
        lambda verdict: loop.save(verdict.change or {}, event.now),
    )
    return once_in_session(event, loop.path, idle.bottom_frame(loop.state).get("id"), verdict)


def facts_of(
    event: "HookEvent", loop: "JwzLoop | FileLoop", words: "Callable[[], Sequence[str]]" = lambda: ()
) -> idle.Facts:
    """Return the facts for the machine.

    words: returns the signals in the final text.
    """

    def refusal(top: "dict[str, Any]", reason: str, signal: str) -> tuple[str, str]:
        if not top.get("checks") and "gate" not in event.asked:
            return "", ""
        preload("machines.shell_words", "machines.shell_line", "machines.gate", "hook.gate", "machines.evidence")
        from tailhook.hook.evidence import refuse_end

        return refuse_end(event, top, reason, signal)

    return idle.Facts(
        session_id=event.session_id,
        paused=is_paused(event.payload),
        signals=words,
        folder=event.folder,
        unbound_acts=event.unbound_acts(),
        next_issue=event.setting("idle", "next_issue", ""),
        goal=lambda: loop.goal,
        work=event.work,
        turn=event.turn,
        refusal=refusal,
    )


def stale_after(config: "Config") -> float:
    """Return the seconds after which a loop counts as abandoned; 0 in the configuration is never."""
    return float(config.get("idle", {}).get("stale_after", idle.STALE_AFTER_S)) or NEVER_S


def repeat(event: "HookEvent") -> str:
    """Return the agent's instructions for its loop after a compaction, "" if this session has no loop."""
    loop = find_enabled(event)
    state = loop.state if loop else None
    if loop is None or not isinstance(state, dict):
        return ""
    facts = facts_of(event, loop)
    if idle.decide(state, facts, event.now, stale_after(event.config)).outcome != "block":
        return ""
    return f"A loop is running in this session.\n{idle.briefing(state, loop.goal, facts)}"
