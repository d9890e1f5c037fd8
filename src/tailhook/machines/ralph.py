"""The ralph machine: the same prompt again until the promise is kept.  (docs/machines/ralph.md)

Pure: the state file's values and the agent's words in; verdict out. `tailhook.hook.ralph` loads, locks and saves.
"""

from tailhook.machines import (
    CLAIM,
    Verdict,
    clip_field,
    owns,
    whole_number,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tailhook.machines.own_loops import OwnLoop

    Values = dict[str, str]  # to write into the front matter; without any, the file is removed

TAGS = ("<promise>", "</promise>")  # the compiled core finds them outside code (ext/tables.py)
COUNTS = ("iteration", "max_iterations")
OTHER_ENDS = ("tokens", "minutes", "stuck_after")  # keys of a loop that tailhook began
INACTIVE = "not active"  # why a stop of a paused loop is allowed
RALPH_ENDED = "the ralph loop ended: "  # begins the reason of a verdict that ends a loop
COMPLETE = "COMPLETE"  # the saved reason of a kept promise
MAX_RALPH_COUNT = 10**64  # only tailhook reads this file, so counts may exceed 2**53
MAX_REPEATED_CHARS = 8000  # characters of the prompt beside the promise; hosts cut texts at 10,000


class Facts:
    """The facts about one stop, from the payload and the transcript.

    session_id: "" if the payload has none.
    paused: whether a background task will wake the agent.
    problem: returns why the agent's words are unknown, "" if they are known.
    promises: returns the words of each counting promise. Its argument: whether a promise must stand alone on its line.
        Called only when they decide.
    unbound_acts: whether any session may act on a state that names no session.
    line: returns the number of a key's line in the file.
    own: returns a loop of tailhook's own at this stop, given the front matter. Called only if tailhook began the loop.
    """

    __slots__ = ("line", "own", "paused", "problem", "promises", "session_id", "unbound_acts")

    def __init__(
        self,
        session_id: str = "",
        paused: bool = False,
        problem: "Callable[[], str]" = str,
        promises: "Callable[[bool], Sequence[str]]" = lambda own_line: (),
        unbound_acts: bool = True,
        line: "Callable[[str], int]" = lambda key: 0,
        own: "Callable[[Mapping[str, str | None]], OwnLoop | None]" = lambda state: None,
    ) -> None:
        self.session_id = session_id
        self.paused = paused
        self.problem = problem
        self.promises = promises
        self.unbound_acts = unbound_acts
        self.line = line
        self.own = own


def decide(state: "Mapping[str, str | None] | None", prompt: str, facts: Facts) -> "Verdict[Values]":
    """Decide what happens to the loop when the agent stops.

    state: the front matter's values by key, null as None; None if there is no front matter.
    prompt: the text after the front matter.
    """
    if state is None:
        return ended("the state file has no front matter (--- lines around `key: value` lines at its beginning)")
    count, limit = (parse_count(state, key) for key in COUNTS)
    if count is None or limit is None:
        wrong = COUNTS[0] if count is None else COUNTS[1]
        value = clip_field(state[wrong] or "")
        return ended(f'{wrong} is "{value}", not a whole number (line {facts.line(wrong)})')
    if not owns(facts.session_id, (state.get("session_id"),), facts.unbound_acts):
        return Verdict("allow", "another session's loop")
    if is_inactive(state):
        return Verdict("allow", INACTIVE)
    claimed = {"session_id": facts.session_id} if state.get("session_id") == CLAIM else {}
    is_over = 0 < limit <= count
    over = f"the limit of {limit} iteration{'s' * (limit > 1)} is reached"
    if is_over and not state.get("began"):
        return ended(over, "MAX_ITERATIONS")
    if facts.paused:
        return Verdict("allow", "paused: a background task is running", claimed or None)
    if problem := facts.problem():
        return ended(over, "MAX_ITERATIONS") if is_over else ended(problem)
    promise = promise_of(state)
    own_line = (state.get("promise_own_line") or "").lower() == "true"
    own = facts.own(state) if state.get("began") else None
    if promise and promise in map(normalize_space, facts.promises(own_line)):
        doubt = own.judge_end(COMPLETE, "promise") if own else ""
        if doubt is not None:
            return ended(f"the promise is kept: {clip_field(promise)}{doubt}", COMPLETE)
    if not prompt:
        return ended("the prompt is empty")
    if own:
        reason, why = own.find_end(is_over)
        if reason:
            return ended(why, reason)
        if own.waits and own.work:
            return own.work.wait(claimed or None)
    if is_over:
        return ended(f"{over}{own.note if own else ''}", "MAX_ITERATIONS")
    count += 1
    turn = describe_turn(count, limit, promise, state)
    change = {"iteration": str(count), **claimed}
    verdict: Verdict[Values] = Verdict(
        "block", f"iteration {count}{f'/{limit}' if limit else ''}", change, prompt, message=turn
    )
    if own is None:
        return verdict
    change.update(own.changes)
    if own.is_briefing_owed(facts.session_id):
        terms = own.describe_terms({"The promise": COMPLETE} if promise else {})
        verdict.reason = "\n".join([f"{shorten(prompt)}\n\n{turn}", *terms])
        change["briefed"] = facts.session_id
    elif own.is_reminded(count):
        verdict.reason = f"{prompt}\n\n{turn}"
    return own.add_words(verdict, None)


def beginning_of(state: "Mapping[str, str | None] | None", prompt: str) -> object:
    """Return what differs between two loops, and stays the same in one: when it began, and its prompt."""
    return state and (state.get("began"), state.get("started_at")), prompt


def ended(why: str, reason: str = "CORRUPTED") -> "Verdict[Values]":
    """Return the verdict that ends a loop: its file is removed, and the person is notified.

    reason: to save.
    """
    verdict: Verdict[Values] = Verdict("allow", f"{RALPH_ENDED}{why}", {}, ended=True)
    verdict.end = reason
    return verdict


def is_inactive(state: "Mapping[str, str | None]") -> bool:
    """Return whether a person switched the loop off and wants its file kept."""
    return (state.get("active") or "").lower() == "false"


def parse_count(state: "Mapping[str, str | None]", key: str) -> int | None:
    """Return a count of the state: 0 if it is missing, None if it is not a whole number."""
    value = state.get(key)
    return 0 if value is None else whole_number(value, MAX_RALPH_COUNT)


def promise_of(state: "Mapping[str, str | None]") -> str:
    """Return the promise that ends the loop, with single spaces; "" if there is none."""
    return normalize_space(state.get("completion_promise") or "")


def normalize_space(words: str) -> str:
    """Return words without blank space around them, and with one space for each run of it inside."""
    return " ".join(words.split())


def describe_turn(count: int, limit: int, promise: str, state: "Mapping[str, str | None]") -> str:
    """Return the words beside the prompt, for the person and the agent."""
    turn = f"Ralph iteration {count}{f' of {limit}' if limit else ''}."
    if promise:
        return (
            f"{turn} To end the loop, write <promise>{clip_field(promise, len(promise))}</promise> outside code - "
            "only when it is true. Do not give a false promise to get out of the loop."
        )
    # A budget, or standing still, ends a loop of tailhook, too.
    is_only_limited = limit and not (state.get("began") and any((state.get(end) or "0") != "0" for end in OTHER_ENDS))
    return f"{turn} No promise is set, so {'only the limit' if is_only_limited else 'no text'} ends the loop."


def shorten(prompt: str) -> str:
    """Return the prompt, or its beginning if a host would show it only in part."""
    return f"{prompt[:MAX_REPEATED_CHARS]}… (cut)" if len(prompt) > MAX_REPEATED_CHARS else prompt
