"""`tailhook loop`: start, show, pause, hand over or end a loop of the idle machine."""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tailhook._core import fingerprint, iso_time
from tailhook.cli.both_loops import report_ralph_loop
from tailhook.cli.checks import add_checks, check_fields
from tailhook.cli.git_exclude import exclude_from_git
from tailhook.cli.loop_ends import find_last_end, format_end, read_last_end
from tailhook.cli.loop_files import advise, changing, judge_next_stop, known_goal, known_prompt, naming_files
from tailhook.cli.loop_folders import (
    find_changeable,
    find_first_live,
    folder_of_loop,
    name_elsewhere,
    where_elsewhere,
)
from tailhook.cli.output import (
    CommandError,
    Commands,
    UsageError,
    add_json,
    command,
    group,
    positive,
    print_facts,
)
from tailhook.cli.readers import reading_session
from tailhook.cli.session import (
    NEXT_SESSION,
    add_actions,
    add_budgets,
    add_prompt,
    add_stuck_after,
    advise_about_live,
    advise_adopted,
    advise_resumed,
    budget_facts,
    budgets_of,
    describe_changed,
    describe_new_owner,
    describe_owner,
    describe_standing,
    format_next_stop,
    in_session_project,
    iteration_of,
    print_cancelled,
    prompt_argument,
    report_driver,
    session_words,
    shorten_goal,
    unbound_acts,
)
from tailhook.hook import idle as idle_hook
from tailhook.hook.answer import plain, plain_lines
from tailhook.hook.event import load_config
from tailhook.hook.payload import project_folders, project_root
from tailhook.hook.plates import git_branch, read_git_file
from tailhook.hosts import current_session
from tailhook.machines import (
    CLAIM,
    MAX_FIELD_CHARS,
    Verdict,
    clip_field,
    idle,
    idle_briefing,
    idle_words,
    whole_number,
)
from tailhook.machines.budgets import describe_spending
from tailhook.machines.evidence import describe_checks
from tailhook.machines.notices import known_session
from tailhook.machines.own_loops import OwnLoop
from tailhook.stores import STORE_FOLDERS
from tailhook.stores import loop as loops
from tailhook.stores.atomic import make_folders, replace_file, state_folder
from tailhook.stores.fallback import FileLoop
from tailhook.stores.jwz import Store
from tailhook.stores.loop import JwzLoop

PROMPT_DAYS = 365  # a paused loop of another project may be as old, and nothing shows whether it is still there
NOTHING_TO_NEST_IN = "no loop is running, so nothing can be nested in it. Start one without --push."
NO_LOOP = "no loop"  # why a stop is allowed if no loop was started or the last one has ended


class NoLoopError(CommandError):
    """A loop is not live, or not any more."""


def add(commands: Commands) -> None:
    """Declare the group's commands."""
    about = "start, show, pause, hand over or end a loop (the idle machine)"
    actions = group(commands, "loop", about, "tailhook loop status")

    parser = command(
        actions,
        "start",
        in_session_project(advise(start_loop)),
        "start a loop in this project",
        "tailhook loop start --max 20 'Make the tests pass.'",
    )
    parser.add_argument(
        "--mode",
        choices=tuple(idle.SIGNALS),
        default="loop",
        help="the kind of work: one task (loop), one issue or many (grind); decides which signals end the loop "
        "(default: loop)",
    )
    parser.add_argument(
        "--max", type=positive, metavar="N", help="maximum number of iterations (default: 10, grind: 100)"
    )
    parser.add_argument("--issue", metavar="ID", help="the issue to work on (shown to the agent)")
    parser.add_argument("--filter", metavar="F", help="the issues that a grind works on (shown to the agent)")
    parser.add_argument(
        "--worktree", metavar="PATH", help="the git worktree, or another folder, to work in (shown to the agent)"
    )
    add_checks(parser)
    add_budgets(parser)
    add_stuck_after(parser)
    nested = parser.add_mutually_exclusive_group()
    nested.add_argument("--push", action="store_true", help="nest the new loop inside the running one")
    nested.add_argument("--replace", action="store_true", help="end the running loop first")
    add_prompt(parser)
    add_json(parser)

    runs = {
        "status": print_loop_status,
        "pause": pause_loop,
        "resume": resume_loop,
        "adopt": adopt_loop,
        "cancel": cancel_loop,
    }
    add_actions(actions, "loop", "loop", runs)


# ---- start -------------------------------------------------------------------


def start_loop(arguments: argparse.Namespace) -> None:
    """Start a loop.

    Stores the prompt, ends the running loop with --replace, saves the first state under the lock, and prints the
    agent's instructions.
    """
    goal, checks = read_goal(arguments), check_fields(arguments)
    now = time.time()
    loop = find_replaced_loop(now)
    file = loop if isinstance(loop, FileLoop) and is_loop_live(loop, now) else None
    if file and isinstance(file.state, dict) and not arguments.replace:
        raise CommandError(describe_live(file, file.state, "End it with `tailhook loop cancel`, or use --replace."))
    frame = {**new_frame(arguments, now), **checks}
    if not isinstance(loop, JwzLoop):
        if arguments.push:
            raise CommandError(NOTHING_TO_NEST_IN)
        make_prompt_folder()  # if it fails, no store is left
        root = project_root({})
        with naming_files(f"{root}/{STORE_FOLDERS[0]}"):
            loop = JwzLoop(Store.make(root), None)
    exclude_from_git(folder_of_loop(loop.path))
    with changing(loop):
        before = state_before(loop, arguments, now)
        frame["prompt_file"] = store_prompt(f"{prompt_prefix(loop.path)}{frame['id']}.md", goal)
        replaced: list[str] = []
        if before and arguments.push:
            state = {**before, "updated_at": iso_time(now), "stack": [*before["stack"], frame]}
            loop.save(state, now)
        else:
            if file:
                goal_before = known_goal(file)
                with suppress(NoLoopError):  # it has ended meanwhile
                    replaced += describe_stack("replaced", end(file, "REPLACED", now), goal_before, file.path)
            if before:
                replaced += describe_stack("replaced", before, known_goal(loop), loop.path)
                loop.save(idle.ended_state(before, "ABORT", now, "REPLACED"), now)
            run_id = f"loop-{int(now)}-{os.getpid()}"
            state = {"schema": 1, "event": "STATE", "run_id": run_id, "updated_at": iso_time(now), "stack": [frame]}
            loop.begin(state, now)
        remove_old_prompts(prompt_prefix(loop.path), state["stack"])
    print_facts(
        arguments,
        {"path": loop.path, "state": state, "signals": list(idle.SIGNALS[arguments.mode])},
        *replaced,
        f"Loop started in {plain(loop.path)}.",
        *describe_new_owner(),
        plain_lines(idle_briefing.briefing(state, plain_lines(goal), command_facts(state))),
    )
    report_driver("idle", frame["max"], frame)
    report_ralph_loop()


def find_replaced_loop(now: float) -> JwzLoop | FileLoop | None:
    """Return the loop that a new one would replace: in the hook's folders, or this session's loop elsewhere."""
    loop, session = loops.find_loop(project_folders({})), current_session()
    if not session or (loop is not None and is_loop_live(loop, now)):
        return loop

    def is_own(loop: JwzLoop | FileLoop) -> bool:
        state = loop.state
        return (
            isinstance(state, dict)
            and is_loop_live(loop, now)
            and session in (state.get("session_id"), idle.top_frame(state.get("stack")).get("session_id"))
        )

    return find_first_live(loops.find_loop, is_own)


def read_goal(arguments: argparse.Namespace) -> str:
    """Return the prompt. Raises UsageError if it is missing and nothing else names the work of an issue or a grind."""
    goal = prompt_argument(arguments)
    if goal:
        return goal
    if arguments.mode == "loop":
        raise UsageError("the prompt is empty. Give the task:  tailhook loop start 'Make the tests pass.'")
    is_named = arguments.issue or arguments.filter or (arguments.mode == "grind" and command_facts(None).next_issue)
    if not is_named:
        flag = "--issue ID" if arguments.mode == "issue" else "--filter F"
        raise UsageError(f"the prompt is empty. Give the task, or {flag}")
    return goal


def state_before(loop: JwzLoop, arguments: argparse.Namespace, now: float) -> dict[str, Any] | None:
    """Return the state of the loop to nest in or to replace, None if there is none.

    Only under the lock. Raises CommandError if a loop runs, and no argument decides about it.
    """
    state = loop.state
    if not isinstance(state, dict) or not is_loop_live(loop, now):
        if arguments.push:
            raise CommandError(NOTHING_TO_NEST_IN)
        return None
    if arguments.replace:
        return state
    top = state["stack"][-1]
    if not idle.is_owned(state, top, idle.Facts(current_session() or CLAIM)):
        raise CommandError(describe_live(loop, state, ""))
    if not arguments.push:
        advice = "Use --push to nest in it, --replace to end it, or `tailhook loop cancel`."
        raise CommandError(describe_live(loop, state, advice))
    return state


def describe_live(loop: JwzLoop | FileLoop, state: dict[str, Any], advice: str) -> str:
    """Return a message about a live loop that is in the way of a new one.

    advice: what to do if it is not another session's.
    """
    top, owner = idle.top_frame(state["stack"]), owner_of_state(state)
    is_paused = idle.is_loop_paused(top)
    stands = describe_standing("loop", owner, is_paused, iteration_of(top), known_goal(loop))
    return f"{plain(loop.path)}: {stands}. {advise_about_live('loop', owner, is_paused, advice)}"


def describe_stack(how: str, state: dict[str, Any], goal: str, path: str) -> list[str]:
    """Return lines about a loop that a command has ended, and about those around it, the innermost first.

    how: "cancelled" or "replaced".
    state: the last one with frames.
    goal: the prompt of the innermost loop.
    path: of its store or state file.
    """
    owner = owner_of_state(state)
    *outer, top = state["stack"]
    lines = describe_changed("loop", how, owner, f"{iteration_of(top)}.{name_elsewhere(path)}", goal)
    for frame in map(idle.top_frame, ([frame] for frame in reversed(outer))):
        place = f"{iteration_of(frame)}, with the loop inside it."
        prompt = known_prompt(partial(loops.read_prompt, frame.get("prompt_file")))
        lines += describe_changed("outer loop", how, owner, place, prompt)
    return lines


def new_frame(arguments: argparse.Namespace, now: float) -> dict[str, Any]:
    """Return the frame of a new loop."""
    frame: dict[str, Any] = {
        "id": f"{arguments.mode}-{int(now)}-{os.getpid()}",
        "mode": arguments.mode,
        "iter": 1,
        "max": arguments.max or idle.DEFAULT_MAX[arguments.mode],
        "session_id": current_session() or CLAIM,
        "began": iso_time(now),
        **budgets_of(arguments),
        "stuck_after": arguments.stuck_after,
    }
    if reader := reading_session():
        frame["briefed"] = reader
    if arguments.issue:
        frame["issue_id"] = arguments.issue
    if arguments.filter:
        frame["filter"] = arguments.filter
    if arguments.worktree is not None:
        frame.update(worktree_fields(arguments.worktree))
    return frame


def worktree_fields(path: str) -> dict[str, str]:
    """Return a worktree's path, its branch and its repository's branch, as far as they are known.

    Raises CommandError if the path is not a folder.
    """
    if not path or not Path(path).is_dir():
        raise CommandError(f"{plain(path)}: not a folder. Make the worktree first:  git worktree add {plain(path)}")
    folder = Path(path).absolute()
    if clip_field(str(folder)) != str(folder):
        why = f"the path has control characters or is longer than {MAX_FIELD_CHARS:,} characters"
        raise CommandError(f"{plain(path)}: {why}, so it cannot be put into a prompt")
    branch, base = git_branch(str(folder)), ""
    pointer = folder / ".git"
    if pointer.is_file():  # a linked worktree's: gitdir: REPOSITORY/.git/worktrees/NAME (gitrepository-layout)
        target = folder / read_git_file(str(pointer)).partition(b"gitdir:")[2].strip().decode(
            "utf-8", "surrogateescape"
        )
        if target.parent.name == "worktrees" and len(target.parents) > 2:
            base = git_branch(str(target.parents[2]))
    fields = {"worktree_path": str(folder), "branch": branch, "base_ref": base}
    return {name: value for name, value in fields.items() if value}


def prompt_prefix(loop_path: str) -> str:
    """Return the beginning of the names of a project's stored prompts. Raises OSError.

    A moved project keeps its prompts: another one at the old path has another folder, and so another prefix.

    loop_path: the place of its saved loops.
    """
    facts = Path(loop_path).stat()
    place = f"{loop_path}\0{facts.st_dev}\0{facts.st_ino}"
    return f"{fingerprint(place.encode('utf-8', 'surrogateescape')):016x}-"


def store_prompt(name: str, goal: str) -> str:
    """Store the prompt in the private state folder and return its path."""
    make_prompt_folder()
    path = f"{loops.prompt_folder()}/{name}"
    replace_file(path, goal.encode("utf-8", "surrogateescape"))
    return path


def make_prompt_folder() -> None:
    """Make the folder of stored prompts. Raises OSError."""
    state_folder()
    make_folders(loops.prompt_folder())


def remove_old_prompts(prefix: str, frames: Sequence[object]) -> None:
    """Remove the prompts of a project's ended loops, and all prompts older than PROMPT_DAYS days.

    The loop has started already, so a failure changes nothing: another start may have removed a prompt meanwhile.

    prefix: of the names of the project's prompts.
    frames: of the running loop: their prompts stay.
    """
    kept = [frame.get("prompt_file") for frame in frames if isinstance(frame, dict)]
    for path in Path(loops.prompt_folder()).iterdir():
        with suppress(OSError):
            is_old = time.time() - path.lstat().st_mtime > PROMPT_DAYS * 86400
            if str(path) not in kept and (is_old or path.name.startswith(prefix)):
                path.unlink()


# ---- status, pause, resume, adopt, cancel ------------------------------------


def print_loop_status(arguments: argparse.Namespace) -> None:
    """Print the state, its age, and what the next stop would get."""
    now = time.time()
    loop = find_command_loop(now)
    state = loop.state if loop else None
    verdict = judge_idle_stop(loop, now) if loop else Verdict("allow", NO_LOOP)
    age = idle.age_of(state, now) if isinstance(state, dict) else None
    facts = {
        "path": loop.path if loop else None,
        "state": state,
        "age": age,
        "verdict": {"decision": verdict.outcome, "why": verdict.why, "reason": verdict.reason or None},
    }
    is_live = loop is not None and is_loop_live(loop, now)
    ending = describe_ending(loop, known_goal(loop), now) if loop and not is_live else []
    lines = ["No loop is running in this project.", *ending]
    if not ending and verdict.why not in (NO_LOOP, idle.ABORTED):
        lines[0] += plain(f" Last state: {verdict.why}.")
    if not is_live and (found := find_last_end(read_last_end)):
        if not ending:
            lines.append(format_end(*found))
        facts["ended"] = found[1]
    if loop and isinstance(state, dict) and is_live:
        top = idle.top_frame(state["stack"])
        owner, depth = top.get("session_id", "any"), len(state["stack"])
        nested = f" Nested loops: {depth}; this is the innermost one." if depth > 1 else ""
        facts |= budget_facts(top, now)
        stands = "paused" if idle.is_loop_paused(top) else "running"
        lines = [
            f"A loop is {stands} in {plain(loop.path)}. It changed {int(age or 0)} s ago.",
            plain(f"Session: {NEXT_SESSION if owner == CLAIM else owner}.{nested}"),
            plain_lines(describe_live_loop(state, plain_lines(known_goal(loop)))),
            *describe_spending(top, now),
            format_next_stop("idle", verdict.outcome, verdict.why, where_elsewhere(loop.path)),
        ]
    print_facts(arguments, facts, *lines)


def describe_ending(loop: JwzLoop | FileLoop, goal: str, now: float) -> list[str]:
    """Return lines about a stale or broken loop, which the next stop of its session ends; [] if it is not one.

    goal: its prompt.
    """
    owner = owner_of_state(loop.state)
    verdict = idle.decide(loop.state, idle.Facts(owner), now, stale_after_of(loop))
    if not verdict.ended or not verdict.change:
        return []
    stale = " is stale and" if verdict.change.get("reason") == "STALENESS" else ""
    why = verdict.why.removeprefix(idle.LOOP_ENDED)
    about = f"The last one{stale} ends at the next stop{session_words(owner)}: {why}."
    goals = [f"Goal: {plain_lines(goal)}"] if goal else []
    return [plain(about), *goals, "To start it again:  tailhook loop start"]


def describe_live_loop(state: dict[str, Any], goal: str) -> str:
    """Return what a loop is about and what ends it: as instructions only for the agent that must continue it.

    goal: the prompt.
    """
    top, facts = idle.top_frame(state["stack"]), command_facts(state)
    if current_session() and idle.is_owned(state, top, facts) and not idle.is_loop_paused(top):
        return idle_briefing.briefing(state, goal, facts)
    place, signals = idle_words.name_worktree(top, facts), idle.signals_of(top)
    words = {signal.partition(">")[2].partition("<")[0]: reason for signal, reason in signals.items()}
    lines = [
        f"Its agent works in {place}." if place else "",
        idle_words.about({**top, "worktree_path": "", **({"issue_id": ""} if place else {})}, facts),
        f"{iteration_of(top).capitalize()} (mode {idle_words.mode_of(top)}). Its agent ends it with one of these:",
        *(f"  {signal}" for signal in signals),
        *describe_checks(top, words),
    ]
    return "\n".join(idle_words.with_goal(goal, list(filter(None, lines)), top))


def owner_of_loop(loop: JwzLoop | FileLoop) -> str:
    """Return the id of a loop's session, or CLAIM or "" if it has none yet."""
    return owner_of_state(loop.state)


def owner_of_state(state: object) -> str:
    """Return the session's id in a loop's state, or CLAIM or "" if it has none."""
    top = idle.top_frame(state.get("stack")) if isinstance(state, dict) else {}
    owners = (top.get("session_id"), state.get("session_id") if isinstance(state, dict) else None)
    return next((owner for owner in owners if isinstance(owner, str) and owner), "")


def judge_idle_stop(loop: JwzLoop | FileLoop, now: float) -> "Verdict[Any]":
    """Return the verdict of the next stop, if the agent writes no signal."""
    facts = command_facts(loop.state, lambda: plain_lines(loop.goal))
    top = idle.top_frame(loop.state.get("stack")) if isinstance(loop.state, dict) else {}
    return judge_next_stop(loop, top, lambda: idle.decide(loop.state, facts, now, stale_after_of(loop)))


def command_facts(state: object, goal: Callable[[], str] = str) -> idle.Facts:
    """Return the facts of a silent stop of this session; outside of a session, of the loop's own one.

    goal: returns the prompt.
    """
    config = load_config(project_root({}))
    return idle.Facts(
        session_id=current_session() or owner_of_state(state),
        folder=lambda path: path if Path(path).is_dir() else None,
        unbound_acts=unbound_acts(config),
        next_issue=config.get("idle", {}).get("next_issue", ""),
        goal=goal,
        own=lambda fields: OwnLoop(fields, None, time.time()),
    )


def pause_loop(arguments: argparse.Namespace) -> None:
    """Keep the loop as it is, and let the agent stop."""
    now = time.time()
    path, _, lines = change_top(
        "paused", now, lambda top: top if idle.is_loop_paused(top) else {**top, "paused": iso_time(now)}
    )
    print_facts(arguments, {"path": path}, *lines, "To continue it:  tailhook loop resume")


def resume_loop(arguments: argparse.Namespace) -> None:
    """Continue a paused loop."""

    def resumed(top: dict[str, Any]) -> dict[str, Any]:
        if not idle.is_loop_paused(top):
            raise CommandError("the loop of this project is not paused")
        return {key: value for key, value in top.items() if key != "paused"}

    path, owner, lines = change_top("resumed", time.time(), resumed)
    print_facts(arguments, {"path": path}, *lines, advise_resumed(owner, "loop"))


def change_top(how: str, now: float, change: Callable[[dict[str, Any]], dict[str, Any]]) -> tuple[str, str, list[str]]:
    """Change the innermost frame of the live loop. Return the loop's path, its owner, and lines about it.

    how: what happens to it, for a person.
    change: returns the new frame.
    """
    loop = find_live_loop(now)
    with changing(loop):
        state, goal = live(loop, now), known_goal(loop)
        top = change(state["stack"][-1])
        if top is not state["stack"][-1]:
            loop.save({**state, "stack": [*state["stack"][:-1], top], "updated_at": iso_time(now)}, now)
    owner, place = owner_of_state(state), f"{iteration_of(top)}.{name_elsewhere(loop.path)}"
    return loop.path, owner, describe_changed("loop", how, owner, place, goal)


def adopt_loop(arguments: argparse.Namespace) -> None:
    """Give the loop to this session, or to the next one that gets a prompt or stops."""
    now, owner = time.time(), current_session() or CLAIM
    loop = find_live_loop(now)
    with changing(loop):
        state = live(loop, now)
        frames = [{**frame, "session_id": owner} if isinstance(frame, dict) else frame for frame in state["stack"]]
        adopted = {**state, "stack": frames, "updated_at": iso_time(now)}
        if "session_id" in state:
            adopted["session_id"] = owner
        loop.save(adopted, now)
    whose = describe_owner(owner)
    print_facts(
        arguments,
        {"path": loop.path, "session_id": owner},
        f"The loop now belongs to {whose}.{name_elsewhere(loop.path)}",
        *advise_adopted(idle.is_loop_paused(idle.top_frame(frames)), "loop"),
    )


def cancel_loop(arguments: argparse.Namespace) -> None:
    """End every frame of the loop."""
    now = time.time()
    loop = find_live_loop(now)
    goal = known_goal(loop)
    state = end(loop, "USER_CANCELLED", now)
    top, owner = idle.top_frame(state["stack"]), owner_of_state(state)
    count, limit = (whole_number(top.get(key)) for key in ("iter", "max"))
    facts = {
        "path": loop.path,
        "iteration": count,
        "max": limit,
        "goal": goal,
        "session_id": known_session(owner),
    }
    lines = describe_stack("cancelled", state, goal, loop.path)
    print_cancelled(arguments, facts, lines, loop.path if isinstance(loop, JwzLoop) else "")


def end(loop: JwzLoop | FileLoop, reason: str, now: float) -> dict[str, Any]:
    """Post the end of a live loop; returns the state before. Raises NoLoopError if it is not live any more."""
    with changing(loop):
        state = live(loop, now)
        loop.save(idle.ended_state(state, "ABORT", now, reason), now)
    return state


def find_live_loop(now: float) -> JwzLoop | FileLoop:
    """Return the live loop that a command may change. Raises CommandError if there is none."""
    loop = find_changeable(loops.find_loop, lambda loop: is_loop_live(loop, now), owner_of_loop)
    if loop is None:
        raise CommandError("no loop is running in this project")
    live(loop, now)
    return loop


def live(loop: JwzLoop | FileLoop, now: float) -> dict[str, Any]:
    """Return the state of a live loop. Raises NoLoopError if it is not live."""
    state = loop.state
    if not isinstance(state, dict) or not is_loop_live(loop, now):
        ending = describe_ending(loop, shorten_goal(known_goal(loop)), now)
        why = "\n          ".join([f"{plain(loop.path)}: no loop is running in this project", *ending])
        raise NoLoopError(why)
    return state


def find_command_loop(now: float) -> JwzLoop | FileLoop | None:
    """Return the loop for a command: the first live one, otherwise the one that the hook would find."""

    def runs(loop: JwzLoop | FileLoop) -> bool:
        return is_loop_live(loop, now)

    return find_first_live(loops.find_loop, runs)


def is_loop_live(loop: JwzLoop | FileLoop, now: float) -> bool:
    """Return whether a loop runs, of any session."""
    return idle_briefing.is_live(loop.state, now, stale_after_of(loop))


def stale_after_of(loop: JwzLoop | FileLoop) -> float:
    """Return the seconds after which a loop counts as abandoned in its project."""
    return idle_hook.stale_after(load_config(folder_of_loop(loop.path)))
