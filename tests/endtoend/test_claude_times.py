"""What the hooks cost in Claude Code: as it notes itself (`durationMs` of stops), and in turns of many tool calls."""

import json
import resource
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from statistics import median

import psutil
import pytest
from model import Model, bash, use

from tailhook.pool.installation import real_interpreter
from tailhook.stores.spool import SPOOL_FILE

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
FEW_TURNS = 5  # of each agent in each round
HANDLERS = ("no hook", "command", "command, async", "http", "mcp_tool")
EVERY_EVENT = ("SessionStart", *TURN_EVENTS, "SessionEnd")
HANDLER_ROUNDS = 4
SESSION_EVENTS = FEW_TURNS * EVENTS + 4  # the turn before has a prompt and a stop; the session's start and end
MCP_HANDLER = {"type": "mcp_tool", "server": "receivers", "tool": "report", "input": {"event": "${hook_event_name}"}}
RECEIVERS = Path(__file__).with_name("hook_receivers.py")
PLATES_FORMS = {"plates, warm": (), "plates, cold": ("--cold",)}


def stop_times(claude, answers: list, turns: int = TURNS) -> list[int]:
    """Return the milliseconds of the Stop hook in each turn of a session with the given answers."""
    with Model(*answers * turns) as model:
        session = claude.turns(model, ["Go on."] * turns)
    assert len(model.requests) == len(answers) * turns
    return [hook["durationMs"] for hook in session.hooks() if "durationMs" in hook]


def command(argv: list[str]) -> dict:
    """Return a handler that runs a program."""
    return {"type": "command", "command": argv[0], "args": argv[1:]}


def install_handler(claude, handler: dict, *events: str) -> None:
    """Write a handler of our own into the user's settings."""
    claude.settings.parent.mkdir(exist_ok=True)
    claude.settings.write_text(json.dumps({"hooks": {event: [{"hooks": [handler]}] for event in events}}))


@pytest.mark.parametrize("program", NOTHING)
def test_a_program_that_does_nothing(claude, program, report):
    install_handler(claude, command(NOTHING[program]), "Stop")
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


# ---- many agents, and turns of many tool calls -------------------------------------


def turns_s(claude, turns: int = 1, call: list[dict] | None = None) -> list[float]:
    """Return how long each turn of TOOL_CALLS tool calls takes, behind a first turn without any.

    call: of a tool; a shell that does nothing if it is None.
    """
    answers = ["Hello.", *[*[call or bash("true")] * TOOL_CALLS, "Done."] * turns]
    started = []

    def prompts():
        for prompt in ("Hello.", *["Go on."] * turns):
            started.append(time.perf_counter())
            yield prompt
        started.append(time.perf_counter())

    with Model(*answers) as model:
        claude.turns(model, prompts())
    assert len(model.requests) == len(answers)
    return [after - before for before, after in pairwise(started[1:])]


def per_event_ms(seconds: list[float], without: list[float]) -> float:
    """Return what the hooks of a turn add to it, for each event."""
    return (median(seconds) - median(without)) / EVENTS * 1000


def users_of(claude, folder, kinds, agents: int) -> dict:
    """Return agents for each kind of hooks. The agents of a kind have one user, and a project each."""
    return {
        kind: [type(claude)(folder / f"home{at}", folder / f"project{at}-{number}") for number in range(agents)]
        for at, kind in enumerate(kinds)
    }


def test_the_stops_of_many_agents_at_once(claude, tmp_path, report):
    """All kinds of hooks take turns, so slow phases of the computer slow each of them."""
    forms = {"warm": (), "cold": ("--cold",)}
    times: dict[str, list[int]] = {kind: [] for kind in (*NOTHING, *forms)}
    users = users_of(claude, tmp_path, times, AGENTS)
    for program, argv in NOTHING.items():
        install_handler(users[program][0], command(argv), "Stop")
    for form, flags in forms.items():
        users[form][0].tailhook("install", "--yes", *flags)
    with ThreadPoolExecutor(AGENTS) as threads:
        for _ in range(ROUNDS):
            for kind, sessions in users.items():
                for found in threads.map(lambda one: stop_times(one, ["Hello."], FEW_TURNS), sessions):
                    times[kind] += found
    for kind, found in times.items():
        assert len(found) == ROUNDS * AGENTS * FEW_TURNS
        report(f"{AGENTS} agents, durationMs, median of {len(found)}: {kind} {median(found):.0f} ms")


@pytest.mark.parametrize("agents", [1, AGENTS])
def test_the_events_of_a_turn_of_tool_calls(claude, tmp_path, agents, report):
    """All kinds of hooks take turns, so slow phases of the computer slow each of them."""
    kinds = ["no hook", *NOTHING, *PLATES_FORMS]
    users = users_of(claude, tmp_path, kinds, agents)
    for program, argv in NOTHING.items():
        install_handler(users[program][0], command(argv), *TURN_EVENTS)
    for form, flags in PLATES_FORMS.items():
        for one in users[form]:
            one.env["TAILHOOK_NO_AUTOSTART"] = "1"
        users[form][0].tailhook("install", "--yes", "--with", "plates", *flags)
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    with ThreadPoolExecutor(agents) as threads:
        for _ in range(ROUNDS):
            for kind, sessions in users.items():
                times[kind] += [one for [one] in threads.map(turns_s, sessions)]
    added = {kind: per_event_ms(seconds, times["no hook"]) for kind, seconds in times.items()}
    for kind in kinds[1:]:
        over = added[kind] - added["/bin/true"]
        report(f"{agents} agents, for each event of a turn: {kind} {added[kind]:.1f} ms, {over:+.1f} over /bin/true")
    assert all(len(seconds) == len(times["no hook"]) for seconds in times.values())


# ---- handlers without a wait, and without a process ---------------------------------


@pytest.fixture
def receiver(tmp_path):
    """Yield the URL of a resident server of hooks over HTTP, the file that gets what it receives, and its process."""
    log = tmp_path / "http.jsonl"
    argv = [sys.executable, str(RECEIVERS), "http", str(log)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/", log, psutil.Process(server.pid)
        server.terminate()


def handler_users(claude, folder, receiver) -> dict:
    """Return a user for each kind of handler, and the file that gets a line for each of the user's events."""
    users = {kind: user for kind, [user] in users_of(claude, folder, HANDLERS, 1).items()}
    url, log, _ = receiver
    logs = {"http": log, "no hook": log, "mcp_tool": folder / "mcp.jsonl"}
    install_handler(users["no hook"], command(["/bin/true"]), "PreCompact")  # the same settings, but for the events
    install_handler(users["http"], {"type": "http", "url": url}, *EVERY_EVENT)
    install_handler(users["mcp_tool"], MCP_HANDLER, *EVERY_EVENT)
    server = {"command": sys.executable, "args": [str(RECEIVERS), "mcp", str(logs["mcp_tool"])]}
    (users["mcp_tool"].home / ".claude.json").write_text(json.dumps({"mcpServers": {"receivers": server}}))
    for kind in ("command", "command, async"):
        user = users[kind]
        user.env["TAILHOOK_NO_AUTOSTART"] = "1"
        user.tailhook("install", "--yes", "--with", "plates")
        settings = json.loads(user.settings.read_text())
        plates = {"type": "command", **last_handler(settings, "PostToolUse")}
        install_handler(user, {**plates, "async": kind != "command"}, *EVERY_EVENT)
        logs[kind] = user.home / ".local/state/tailhook" / SPOOL_FILE
    return {kind: (user, logs[kind]) for kind, user in users.items()}


def last_handler(settings: dict, event: str) -> dict:
    """Return the newest handler of an event."""
    return settings["hooks"][event][-1]["hooks"][-1]


def processor_s(server: psutil.Process) -> float:
    """Return the processor time of all programs that have ended, hosts with their hooks, and of the resident server."""
    ended, resident = resource.getrusage(resource.RUSAGE_CHILDREN), server.cpu_times()
    return ended.ru_utime + ended.ru_stime + resident.user + resident.system


def lines_in(path) -> int:
    """Return how many lines a file has, 0 if it is missing."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_handlers_that_the_host_need_not_wait_for(claude, tmp_path, receiver, report):
    """All kinds of handlers take turns. What a session's events cost, and how many are lost when the host exits.

    The cheapest session of each kind counts: a busy computer only adds to it. Its time is the processor's, of the host
    and of all that its hooks start: the host waits for other things at the same time as for its hooks.
    """
    users = handler_users(claude, tmp_path, receiver)
    costs: dict[str, list[float]] = {kind: [] for kind in users}
    received: dict[str, int] = dict.fromkeys(users, 0)
    for _ in range(HANDLER_ROUNDS):
        for kind, (user, log) in users.items():
            before, began = lines_in(log), processor_s(receiver[-1])
            turns_s(user, FEW_TURNS, [use("Read", file_path=str(user.settings))])
            costs[kind].append(processor_s(receiver[-1]) - began)
            received[kind] += lines_in(log) - before
    for kind, found in costs.items():
        added = (min(found) - min(costs["no hook"])) / SESSION_EVENTS * 1000
        lost = HANDLER_ROUNDS * SESSION_EVENTS - received[kind]
        report(f"a handler of plates' events: {kind} {added:+.2f} ms of the processor an event; {lost} events missing")
    assert received["command"] == HANDLER_ROUNDS * SESSION_EVENTS
