"""The idle machine's hook: finds the loop, asks the machine to decide, and saves the new state."""

from tailhook._core import preload, signals
from tailhook.hook.answer import plain_lines
from tailhook.hook.event import CLOCK_TOLERANCE_S
from tailhook.hook.machines import MACHINES, decide_and_save
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
    from tailhook.machines.own_loops import OwnLoop
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
    event.has_paused_loop = verdict is not None and verdict.why == idle.PAUSED
    if verdict is not None and verdict.ended and isinstance(before, dict):
        event.has_ended_own_loop = bool(idle.top_frame(before.get("stack")).get("began"))
    if verdict is not None and verdict.ended and verdict.warning:  # an unexpected end
        verdict.why += f" ({loop.path}). To begin a new loop:  tailhook loop start"
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


def facts_of(
    event: "HookEvent", loop: "JwzLoop | FileLoop", words: "Callable[[], Sequence[str]]" = lambda: ()
) -> idle.Facts:
    """Return the facts for the machine.

    words: returns the signals in the final text.
    """

    def own(fields: "dict[str, Any]") -> "OwnLoop":
        preload("machines.own_loops", "hook.turns")
        from tailhook.hook.turns import read_own_loop

        return read_own_loop(event, fields)

    return idle.Facts(
        session_id=event.session_id,
        paused=is_paused(event.payload),
        signals=words,
        folder=event.folder,
        unbound_acts=event.unbound_acts,
        next_issue=event.setting("idle", "next_issue", ""),
        goal=lambda: plain_lines(loop.goal),
        own=own,
    )


def stale_after(config: "Config") -> float:
    """Return the seconds after which a loop counts as abandoned; 0 in the configuration is never."""
    return float(config.get("idle", {}).get("stale_after", idle.STALE_AFTER_S)) or NEVER_S
