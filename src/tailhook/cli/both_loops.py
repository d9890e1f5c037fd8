"""A loop of the idle machine and a ralph loop in one session: they run one after the other, the ralph loop last."""

import sys
import time
from contextlib import suppress

from tailhook.cli.loop_files import known_goal
from tailhook.cli.session import describe_standing, is_of_another_session, iteration_of, iteration_of_ralph
from tailhook.hook.event import load_config
from tailhook.hook.idle import stale_after
from tailhook.hook.payload import project_folders, project_root
from tailhook.hosts import current_session
from tailhook.machines import idle, idle_briefing, ralph_briefing
from tailhook.stores.loop import find_loop
from tailhook.stores.ralph import find_ralph


def report_idle_loop() -> None:
    """Print a note beside a new ralph loop if a loop of the idle machine runs here, unless it is another session's."""
    with suppress(OSError):  # the ralph loop has started
        loop = find_loop(project_folders({}))
        state = loop.state if loop else None
        if not loop or not idle_briefing.is_live(state, time.time(), stale_after(load_config(project_root({})))):
            return
        top = idle.top_frame(state["stack"]) if isinstance(state, dict) else {}
        if not idle.is_loop_paused(top):
            advice = "In the same session, the ralph loop continues when that one has ended"
            report_running("loop", top.get("session_id"), iteration_of(top), known_goal(loop), advice)


def report_ralph_loop() -> None:
    """Print a note beside a new loop of the idle machine if a ralph loop runs here, unless it is another session's."""
    with suppress(OSError):  # the loop has started
        found = find_ralph(project_folders({}))
        state = found.state if found else None
        if found and state and ralph_briefing.is_live(state):
            advice = "In the same session, it continues when the new loop has ended"
            report_running("ralph loop", state.get("session_id"), iteration_of_ralph(state), found.prompt, advice)


def report_running(loop: str, owner: object, iteration: str, goal: str, advice: str) -> None:
    """Print a note about a running loop, unless it is another session's.

    loop: its name.
    owner: its saved session.
    iteration, goal: see `describe_standing`.
    advice: what happens to the two loops.
    """
    session = owner if isinstance(owner, str) else ""
    if not (current_session() and is_of_another_session(session)):
        sys.stderr.write(f"tailhook: {describe_standing(loop, session, False, iteration, goal)}. {advice}.\n")
