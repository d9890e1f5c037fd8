"""The ralph machine's stop: the state file found, decided on, and rewritten or removed."""

from tailhook._core import promises
from tailhook.hook.answer import plain, warn
from tailhook.hook.payload import is_paused, text
from tailhook.hook.process import CLOCK_SLACK
from tailhook.machines import Verdict, iso, ralph
from tailhook.stores.ralph import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tailhook.hook.process import Event
    from tailhook.stores.ralph import RalphFile


def ask(event: "Event") -> "Verdict | None":
    """The verdict, saved; None where there is no loop."""
    home = find(event.folders)
    if home is None:
        return None
    verdict = decide(event, home)
    if verdict.ended or verdict.state:
        # Decided once without the lock, to read the transcript before it is taken; what counts is the second time.
        try:
            with home.lock():
                if home.has_changed():
                    home.reload()
                    if home.gone:
                        return None
                    verdict = decide(event, home)
                save(home, verdict)
        except OSError as error:
            warn(f"tailhook: {home.path}: {error}. The loop's state could not be saved; the agent may stop.")
            return None
    home.log("\t".join((iso(event.now), plain(event.session_id[:40]), verdict.outcome, plain(verdict.why))))
    return verdict


def save(home: "RalphFile", verdict: Verdict) -> None:
    """Rewrite or remove the state file; one that cannot be removed makes the hook fail. Raises OSError."""
    if not verdict.ended:
        if verdict.state:
            home.write(verdict.state)
        return
    try:
        home.remove()
        verdict.warning = f"tailhook: {home.path}: {verdict.why}. The state file is removed."
    except OSError as error:
        verdict.outcome, verdict.ended = "fail", False
        verdict.warning = f"tailhook: {home.path}: {verdict.why}, but its file cannot be removed: {error}. Remove it."


def decide(event: "Event", home: "RalphFile") -> Verdict:
    """What the machine says of this event."""

    def problem() -> str:
        if event.broken:
            return event.broken
        if text(event.payload, "last_assistant_message").strip():
            return ""
        missing = "the payload has no last message, and its transcript "
        path = event.transcript_path()
        outcome, _ = event.newest_message()
        if outcome == "unreadable":
            return f"{missing}{f'cannot be read: {path}' if path else 'is not named'}"
        what = {"no_assistant": "no assistant record", "no_text": "no assistant text"}.get(outcome)
        return f"{missing}has {what}: {path}" if what else ""

    def kept(own_line: bool) -> "Sequence[str]":
        since = None if home.changed > event.now else home.changed - CLOCK_SLACK
        return promises(event.final_text(since), own_line)

    facts = ralph.Facts(
        session_id=event.session_id,
        paused=is_paused(event.payload),
        problem=problem,
        promises=kept,
        unbound_acts=event.unbound_acts(),
        line=home.page.line if home.page else int,
    )
    return ralph.decide(home.state, home.prompt, facts)


def tell_again(event: "Event") -> str:
    """What the agent must know of its loop, "" when this session has none."""
    home = find(event.folders)
    if home is None or home.state is None:
        return ""
    silent = ralph.Facts(event.session_id, unbound_acts=event.unbound_acts())
    if ralph.decide(home.state, home.prompt, silent).outcome != "block":
        return ""
    return f"A ralph loop is running in this session.\n{ralph.briefing(home.state, home.prompt)}"
