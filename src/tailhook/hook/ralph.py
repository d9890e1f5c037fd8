"""The ralph machine's hook: finds the state file, asks the machine to decide, and rewrites or removes the file."""

from tailhook._core import get_text, iso_time, preload, promises
from tailhook.hook.answer import plain
from tailhook.hook.event import CLOCK_TOLERANCE_S
from tailhook.hook.machines import decide_and_save
from tailhook.hook.payload import is_paused
from tailhook.machines import ralph
from tailhook.stores.ralph import find_ralph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tailhook.hook.event import HookEvent
    from tailhook.machines import Verdict
    from tailhook.machines.own_loops import OwnLoop
    from tailhook.stores.ralph import RalphFile


def ask(event: "HookEvent") -> "Verdict[ralph.Values] | None":
    """Decide, then rewrite or remove the state file; return the verdict, or None if there is no loop.

    Reads the state file, and the transcript (at most 64 MiB) if the payload does not decide. Adds a line to the loop's
    log. Raises OSError if the state file cannot be read.
    """
    loop = find_ralph(event.folders)
    if loop is None:
        return None
    began = ralph.beginning_of(loop.state, loop.prompt)
    is_own = bool(loop.state and loop.state.get("began"))

    def save_and_log(verdict: "Verdict[ralph.Values]") -> None:
        save(loop, verdict, event.now, event.session_id)
        log(event, loop, verdict)  # under the lock: `tailhook ralph cancel` names the log if there is one

    verdict = decide_and_save(loop, lambda: None if loop.gone else decide_ralph(event, loop, began), save_and_log)
    if verdict is not None and verdict.why == ralph.INACTIVE:
        event.has_paused_loop = True
    if verdict is not None and verdict.ended and is_own:
        event.has_ended_own_loop = True
    if verdict is not None and verdict.change is None:
        try:
            with loop.lock():
                loop.reload()
                if not loop.gone:  # the command would not have named the log
                    log(event, loop, verdict)
        except OSError:
            pass
    return verdict


def log(event: "HookEvent", loop: "RalphFile", verdict: "Verdict[ralph.Values]") -> None:
    """Add a line about a verdict to the loop's log."""
    loop.log("\t".join((iso_time(event.now), plain(event.session_id[:40]), verdict.outcome, plain(verdict.why))))


def save(loop: "RalphFile", verdict: "Verdict[ralph.Values]", now: float, session_id: str) -> None:
    """Rewrite the state file, or remove it and save how the loop ended. Raises OSError.

    If the file cannot be removed, make the verdict a failure.

    session_id: of the stop; "" if the payload has none.
    """
    if verdict.change:
        loop.write(verdict.change)
        return
    try:
        loop.keep_end(verdict.end, now, session_id, verdict.why.removeprefix(ralph.RALPH_ENDED))
        loop.remove()
        verdict.warning = f"tailhook: {loop.path}: {verdict.why}. The state file is removed."
    except OSError as error:
        verdict.outcome, verdict.ended = "fail", False
        verdict.warning = (
            f"tailhook: {loop.path}: {verdict.why}, but its file cannot be removed: {error.strerror}. Remove it."
        )


def decide_ralph(event: "HookEvent", loop: "RalphFile", began: object) -> "Verdict[ralph.Values]":
    """Decide what happens to the loop.

    began: the beginning of the loop that the hook read first. The agent's words are not about a newer one.
    """

    def problem() -> str:
        if event.broken:
            return event.broken
        if get_text(event.payload, "last_assistant_message").strip():
            return ""
        missing = "the payload has no last message, and its transcript "
        path = event.transcript_path()
        outcome, _ = event.newest_message()
        if outcome == "unreadable":
            return f"{missing}{f'cannot be read: {path}' if path else 'is not named'}"
        what = {"no_assistant": "no assistant record", "no_text": "no assistant text"}.get(outcome)
        return f"{missing}has {what}: {path}" if what else ""

    def kept(own_line: bool) -> "Sequence[str]":
        if ralph.beginning_of(loop.state, loop.prompt) != began:
            return ()
        since = None if loop.changed > event.now else loop.changed - CLOCK_TOLERANCE_S
        return promises(event.final_text(since), own_line)

    facts = ralph.Facts(
        session_id=event.session_id,
        paused=is_paused(event.payload),
        problem=problem,
        promises=kept,
        unbound_acts=event.unbound_acts,
        line=loop.line_of,
        own=lambda values: find_own_ralph(event, values),
    )
    return ralph.decide(loop.state, loop.prompt, facts)


def find_own_ralph(event: "HookEvent", values: "Mapping[str, str | None]") -> "OwnLoop":
    """Return a loop that tailhook began, at a stop.  values: the front matter's."""
    preload("machines.own_loops", "hook.turns")
    from tailhook.hook.turns import read_own_loop

    return read_own_loop(event, values)
