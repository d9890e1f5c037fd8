"""The ralph machine: the same prompt again until the promise is kept.  (docs/machines/ralph.md)

Pure: the state file's values and the agent's words in; verdict out. `tailhook.hook.ralph` loads, locks and saves.
"""

from tailhook.machines import (
    BUDGET_SPENT,
    CLAIM,
    REMINDED_EVERY,
    Verdict,
    clip_field,
    is_briefing_owed,
    owns,
    whole_number,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tailhook.machines.stillness import Turn
    from tailhook.machines.waiting import Work

    Values = dict[str, str]  # to write into the front matter; without any, the file is removed

TAGS = ("<promise>", "</promise>")  # the compiled core finds them outside code (ext/tables.py)
COUNTS = ("iteration", "max_iterations")
# why a loop ended
ENDED, PROMISE_KEPT, LIMIT_REACHED = "the ralph loop ended: ", "the promise is kept", "the limit of"
STANDS_STILL = "it stands still"
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
    work: returns the background work that a loop may wait for. Called only before an iteration of tailhook's own loop.
    turn: returns what the agent did since the stop before. Called only for such a loop, if stillness or a budget ends
        it.
    refusal: returns why a kept promise of such a loop does not count, for the agent, "" if it does; and a doubt to add
        for the person. Its arguments: the front matter, the reason of the end, and what the agent wrote, in a word.
    now: the time, in Unix seconds.
    """

    __slots__ = (
        "line",
        "now",
        "paused",
        "problem",
        "promises",
        "refusal",
        "session_id",
        "turn",
        "unbound_acts",
        "work",
    )

    def __init__(
        self,
        session_id: str = "",
        paused: bool = False,
        problem: "Callable[[], str]" = lambda: "",
        promises: "Callable[[bool], Sequence[str]]" = lambda own_line: (),
        unbound_acts: bool = True,
        line: "Callable[[str], int]" = lambda key: 0,
        work: "Callable[[], Work | None]" = lambda: None,
        turn: "Callable[[], Turn | None]" = lambda: None,
        refusal: "Callable[[Mapping[str, str | None], str, str], tuple[str, str]]" = lambda *_: ("", ""),
        now: float = 0,
    ) -> None:
        self.session_id = session_id
        self.paused = paused
        self.problem = problem
        self.promises = promises
        self.unbound_acts = unbound_acts
        self.line = line
        self.work = work
        self.turn = turn
        self.refusal = refusal
        self.now = now


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
    if is_inactive(state):
        return Verdict("allow", "not active")
    if not owns(facts.session_id, (state.get("session_id"),), facts.unbound_acts):
        return Verdict("allow", "another session's loop")
    claimed = {"session_id": facts.session_id} if state.get("session_id") == CLAIM else {}
    has_budget = state.get("began") and (state.get("tokens") or state.get("minutes"))
    if 0 < limit <= count and not (has_budget and state.get("wrap_up")):
        return ended(f"{LIMIT_REACHED} {limit} iterations is reached")
    if facts.paused:
        return Verdict("allow", "paused: a background task is running", claimed or None)
    if problem := facts.problem():
        return ended(problem)
    promise = promise_of(state)
    own_line = (state.get("promise_own_line") or "").lower() == "true"
    refusal = ""
    if promise and promise in map(normalize_space, facts.promises(own_line)):
        refusal, doubt = facts.refusal(state, COMPLETE, "promise") if state.get("began") else ("", "")
        if not refusal:
            return ended(f"{PROMISE_KEPT}: {clip_field(promise)}{doubt}")
    if not prompt:
        return ended("the prompt is empty")
    seen: Values = {}
    spent = ""
    if has_budget:
        from tailhook.machines.budgets import judge_budgets

        seen, spent, is_over = judge_budgets(state, facts.turn(), facts.now)
        if is_over:
            return ended(spent)
    work = facts.work() if state.get("began") and not spent else None
    if work and work.is_waited_for(state.get("waits")):
        return work.wait(claimed or None)
    if state.get("began") and state.get("stuck_after") and not spent:
        work_done = facts.turn()
        from tailhook.machines.stillness import look_for_stillness

        still, repeated = look_for_stillness(state, work_done)
        if repeated:
            return ended(f"{STANDS_STILL}: {repeated}")
        if still:
            seen["still"] = still
    count += 1
    turn, reason, briefed = describe_turn(count, limit, promise), prompt, {}
    if is_briefing_owed(state.get("began"), state.get("briefed"), facts.session_id):
        reason, briefed = f"{shorten(prompt)}\n\n{turn}", {"briefed": facts.session_id}
    elif state.get("began") and (spent or count % REMINDED_EVERY == 0):
        reason = f"{prompt}\n\n{turn}"
    if work:
        reason = f"{reason}\n\n{work.advice()}"
        seen["waits"] = work.mark()
    elif state.get("waits") and state.get("began"):
        seen["waits"] = ""
    verdict: Verdict[Values] = Verdict(
        "block",
        f"iteration {count}{f'/{limit}' if limit else ''}",
        {"iteration": str(count), **claimed, **briefed, **seen},
        reason,
        message=turn,
    )
    if refusal:
        from tailhook.machines.evidence import add_refusal

        add_refusal(verdict, refusal, None)
    if spent:
        from tailhook.machines.budgets import ask_to_wrap_up

        ask_to_wrap_up(verdict, spent)
    return verdict


def brief(state: "Mapping[str, str | None] | None", prompt: str, facts: Facts) -> "Verdict[Values] | None":
    """Give an agent the briefing of its loop at a prompt, if it is owed: claim the loop, and save that it was given.

    The parameters are those of `decide`. The verdict's reason is the briefing. If the loop belongs to another session,
    the verdict has a message for the person instead. Return None if there is nothing to give.
    """
    if state is None or not prompt or not is_live(state):
        return None
    owner = state.get("session_id")
    if not is_briefing_owed(state.get("began"), state.get("briefed"), facts.session_id):
        return None
    if not owns(facts.session_id, (owner,), facts.unbound_acts):
        where = f"a ralph loop of this project (iteration {parse_count(state, 'iteration')})"
        from tailhook.machines.notices import name_owner

        notice = name_owner((owner,), where, "ralph")
        return Verdict("allow", "another session's loop", message=notice) if notice else None
    claimed = {"session_id": facts.session_id} if owner == CLAIM else {}
    words = f"A ralph loop is running in this session.\n{briefing(state, prompt)}"
    change = {**claimed, "briefed": facts.session_id}
    if state.get("stuck_after"):
        turn = facts.turn()
        from tailhook.machines.stillness import mark_beginning

        if still := mark_beginning(state, turn):
            change["still"] = still
    return Verdict("allow", "briefed", change, words)


def beginning_of(state: "Mapping[str, str | None] | None", prompt: str) -> object:
    """Return what differs between two loops, and stays the same in one: when it began, and its prompt."""
    return state and (state.get("began"), state.get("started_at")), prompt


def ended(why: str) -> "Verdict[Values]":
    """Return the verdict that ends a loop: its file is removed, and the person is notified."""
    return Verdict("allow", f"{ENDED}{why}", {}, ended=True)


def end_reason(why: str) -> str:
    """Return the saved reason of a loop's end. why: the verdict's."""
    why = why.removeprefix(ENDED)
    if why.startswith(PROMISE_KEPT):
        return COMPLETE
    if why.startswith(STANDS_STILL):
        return "STUCK"
    if why.startswith(BUDGET_SPENT):
        return "TIME_LIMIT" if "minute" in why else "TOKEN_LIMIT"
    return "MAX_ITERATIONS" if why.startswith(LIMIT_REACHED) else "CORRUPTED"


def is_inactive(state: "Mapping[str, str | None]") -> bool:
    """Return whether a person switched the loop off and wants its file kept."""
    return (state.get("active") or "").lower() == "false"


def is_live(state: "Mapping[str, str | None] | None") -> bool:
    """Return whether a loop runs here, of any session."""
    return state is not None and has_counts(state) and not is_inactive(state)


def is_ralph_paused(state: "Mapping[str, str | None] | None") -> bool:
    """Return whether a loop, of any session, is here and switched off."""
    return state is not None and has_counts(state) and is_inactive(state)


def has_counts(state: "Mapping[str, str | None]") -> bool:
    """Return whether the counts of a state are whole numbers."""
    return all(parse_count(state, key) is not None for key in COUNTS)


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


def describe_turn(count: int, limit: int, promise: str) -> str:
    """Return the words beside the prompt, for the person and the agent."""
    turn = f"Ralph iteration {count}{f' of {limit}' if limit else ''}."
    if promise:
        return (
            f"{turn} To end the loop, write <promise>{clip_field(promise, len(promise))}</promise> outside code - "
            "only when it is true. Do not give a false promise to get out of the loop."
        )
    return f"{turn} No promise is set, so {'only the limit' if limit else 'no text'} ends the loop."


def briefing(state: "Mapping[str, str | None]", prompt: str) -> str:
    """Return the instructions for an agent in a loop: the prompt, the iteration, and how to end the loop."""
    count, limit = (parse_count(state, key) or 0 for key in COUNTS)
    from tailhook.machines.budgets import describe_budgets

    lines = [describe_turn(count, limit, promise_of(state)), *describe_budgets(state), f"Prompt: {shorten(prompt)}"]
    return "\n".join(lines)


def shorten(prompt: str) -> str:
    """Return the prompt, or its beginning if a host would show it only in part."""
    return f"{prompt[:MAX_REPEATED_CHARS]}… (cut)" if len(prompt) > MAX_REPEATED_CHARS else prompt
