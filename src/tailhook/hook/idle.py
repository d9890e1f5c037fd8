"""The idle machine's stop: the loop found, its state decided on, and saved."""

from tailhook._core import signals
from tailhook.hook.answer import warn
from tailhook.hook.payload import exists, is_paused
from tailhook.hook.process import CLOCK_SLACK
from tailhook.machines import idle
from tailhook.stores import loop

FIRST_READ_SECONDS = 3.0  # how long a stop reads a large store that was not read before

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tailhook.hook.process import Event
    from tailhook.machines import Verdict
    from tailhook.stores.fallback import FileLoop
    from tailhook.stores.loop import JwzLoop


def ask(event: "Event") -> "Verdict | None":
    """Decide and save the new state; return the verdict, or None if there is no loop.

    Reads the store (a large one for at most FIRST_READ_SECONDS when it is new) and the transcript (at most 64 MiB), and
    again under the store's lock if there is something to save. Raises OSError if the state cannot be read.
    """
    if is_disabled(event):
        return None
    home = loop.find(event.folders, FIRST_READ_SECONDS)
    if home is None:
        return None
    verdict = decide(event, home)
    if verdict.state is not None:
        # Decided once without the lock, to read the transcript before it is taken; what counts is the second time.
        try:
            with home.lock():
                home.reload()
                verdict = decide(event, home)
                if verdict.state is not None:
                    home.save(verdict.state, event.now)
        except OSError as error:
            warn(f"tailhook: {home.path}: {error}. The loop's state could not be saved; the agent may stop.")
            return None
    return verdict


def is_disabled(event: "Event") -> bool:
    """Whether the machine is switched off in this project."""
    return exists(f"{event.root}/.idle-disabled")


def decide(event: "Event", home: "JwzLoop | FileLoop") -> "Verdict":
    """Decide what happens to the loop."""
    state = home.state

    def words() -> "Sequence[str]":
        return signals(event.final_text(idle.words_since(state, event.now, CLOCK_SLACK)))

    return idle.decide(state, facts_of(event, words), event.now, stale_after(event))


def facts_of(event: "Event", words: "Callable[[], Sequence[str]]" = tuple) -> idle.Facts:
    """Return what the machine decides on.  words: the signals in the final text; none if not given."""
    return idle.Facts(
        session_id=event.session_id,
        paused=is_paused(event.payload),
        signals=words,
        folder=event.folder,
        unbound_acts=event.unbound_acts(),
        next_issue=event.setting("idle", "next_issue", ""),
    )


def stale_after(event: "Event") -> float:
    """Return the seconds after which a loop counts as abandoned."""
    return float(event.setting("idle", "stale_after", idle.STALE_AFTER))


def tell_again(event: "Event") -> str:
    """Return what the agent must know of its loop, "" if this session has none."""
    home = None if is_disabled(event) else loop.find(event.folders, FIRST_READ_SECONDS)
    state = home.state if home else None
    facts = facts_of(event)
    if home is None or not isinstance(state, dict):
        return ""
    if idle.decide(state, facts, event.now, stale_after(event)).outcome != "block":
        return ""
    return f"A loop is running in this session.\n{idle.briefing(state, home.goal, facts)}"
