"""What the hooks cost in Claude Code: as it notes itself (`durationMs` of stops), and in turns of many tool calls."""

import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import pytest
from model import Model, bash

from tailhook.pool.installation import real_interpreter

TURNS = 20
START, DONE = bash("tailhook loop start --replace Work."), "<loop-done>COMPLETE</loop-done>"
CASES = {
    "no state": ((), ["Hello."]),
    "a loop that completes": ((), [START, DONE]),
    "memory asked, with nothing to save": (("--with", "memory"), ["Hello."]),
}
NOTHING = {
    "/bin/true": ["/bin/true"],
    "bare Python": [real_interpreter(), "-I", "-S", "-c", "pass"],
    "node": [shutil.which("node") or "node", "-e", "0"],
}
TOOL_CALLS = 20
TURN_EVENTS = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
EVENTS = 2 * TOOL_CALLS + 2  # before and after each call; the prompt and the stop
AGENTS = 8
ROUNDS = 3
PLATES_FORMS = {"plates, warm": (), "plates, cold": ("--cold",)}


def stop_times(claude, answers: list) -> list[int]:
    """Return the milliseconds of the Stop hook in each turn of a session with the given answers."""
    with Model(*answers * TURNS) as model:
        session = claude.turns(model, ["Go on."] * TURNS)
    assert len(model.requests) == len(answers) * TURNS
    return [hook["durationMs"] for hook in session.hooks() if "durationMs" in hook]


def install_hook(claude, argv: list[str], *events: str) -> None:
    """Write a hook of our own into the user's settings."""
    hook = {"type": "command", "command": argv[0], "args": argv[1:]}
    claude.settings.parent.mkdir(exist_ok=True)
    claude.settings.write_text(json.dumps({"hooks": {event: [{"hooks": [hook]}] for event in events}}))


@pytest.mark.parametrize("program", NOTHING)
def test_a_program_that_does_nothing(claude, program, report):
    install_hook(claude, NOTHING[program], "Stop")
    times = stop_times(claude, ["Hello."])
    assert len(times) == TURNS
    report(f"durationMs, median of {TURNS}: {program} {median(times):.0f} ms")


@pytest.mark.parametrize("form", ["warm", "cold"])
@pytest.mark.parametrize("case", CASES)
def test_a_hook(claude, case, form, report):
    flags, answers = CASES[case]
    claude.tailhook("install", "--yes", *flags, *(["--cold"] if form == "cold" else []))
    times = stop_times(claude, answers)
    assert len(times) == TURNS
    report(f"durationMs, median of {TURNS}: {case}, {form} {median(times):.0f} ms")


# ---- a turn of many tool calls -----------------------------------------------------


def turn_s(claude) -> float:
    """Return how long a turn of TOOL_CALLS tool calls takes; it is the session's second one."""
    answers = ["Hello.", *[bash("true")] * TOOL_CALLS, "Done."]
    started = []

    def prompts():
        for prompt in ("Hello.", "Go on."):
            started.append(time.perf_counter())
            yield prompt
        started.append(time.perf_counter())

    with Model(*answers) as model:
        claude.turns(model, prompts())
    assert len(model.requests) == len(answers)
    return started[2] - started[1]


def per_event_ms(seconds: list[float], without: list[float]) -> float:
    """Return what the hooks of a turn add to it, for each event."""
    return (median(seconds) - median(without)) / EVENTS * 1000


@pytest.mark.parametrize("agents", [1, AGENTS])
def test_the_events_of_a_turn_of_tool_calls(claude, tmp_path, agents, report):
    """All kinds of hooks take turns, so that what slows the computer slows each of them."""
    kinds = ["no hook", *NOTHING, *PLATES_FORMS]
    hosts = {
        kind: [type(claude)(tmp_path / f"h{at}{n}", tmp_path / f"p{at}{n}") for n in range(agents)]
        for at, kind in enumerate(kinds)
    }
    for kind, sessions in hosts.items():
        for one in sessions:
            if kind in NOTHING:
                install_hook(one, NOTHING[kind], *TURN_EVENTS)
            elif kind in PLATES_FORMS:
                one.env["TAILHOOK_NO_AUTOSTART"] = "1"
                one.tailhook("install", "--yes", "--with", "plates", *PLATES_FORMS[kind])
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    with ThreadPoolExecutor(agents) as threads:
        for _ in range(ROUNDS):
            for kind, sessions in hosts.items():
                times[kind] += threads.map(turn_s, sessions)
    added = {kind: per_event_ms(seconds, times["no hook"]) for kind, seconds in times.items()}
    for kind in kinds[1:]:
        over = added[kind] - added["/bin/true"]
        report(f"{agents} agents, for each event of a turn: {kind} {added[kind]:.1f} ms, {over:+.1f} over /bin/true")
    assert all(len(seconds) == len(times["no hook"]) for seconds in times.values())
