"""Common parts of the commands that start a loop: their session and its prompt."""

import argparse
import sys
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any

from tailhook.cli.git_exclude import listing_file
from tailhook.cli.loop_files import advise
from tailhook.cli.loop_folders import enter_session_project, folder_of_loop
from tailhook.cli.output import CommandError, Commands, Run, UsageError, add_json, command, positive, print_facts, whole
from tailhook.hook.answer import plain
from tailhook.hosts import DEFAULT, current_session
from tailhook.install.survey import Survey, advise_cap, find_caps, surveys_here, why_not_driven
from tailhook.machines import CLAIM, ralph, whole_number
from tailhook.machines.budgets import BUDGET_REASONS, measure
from tailhook.machines.notices import known_session
from tailhook.stores import RALPH_FILE

MAX_PROMPT_CHARS = 1_000_000  # characters; the hook reads a state of 4 MB, and no host shows so much

MAX_SHOWN_GOAL_CHARS = 80
STUCK_AFTER = 4  # stops until a loop stands still

# What lets an agent stop although no command can change its loop: docs/troubleshooting.md, "How to get out".
DISABLE = "TAILHOOK_DISABLE=1 in front of the command that starts the agent's host"
WAYS_OUT = {
    "loop": f"Other ways to let the agent stop: {DISABLE}, or a file .idle-disabled at the project's root",
    "ralph": f"Other ways to let the agent stop: {DISABLE}, or removing .claude/{RALPH_FILE}",
}
ABOUT_ACTIONS = {
    "status": "show the state of the {} of this project",
    "pause": "let the agent stop, and keep the {} of this project",
    "resume": "continue the paused {} of this project",
    "adopt": "let this session take over the {} of this project",
    "cancel": "end the {} of this project",
}


def add_actions(actions: Commands, group: str, loop: str, runs: Mapping[str, Run]) -> None:
    """Declare the commands for a running loop.

    loop: its name in the help.
    runs: the functions of the commands in ABOUT_ACTIONS, by name.
    """
    for name, about in ABOUT_ACTIONS.items():
        run = in_session_project(advise(runs[name], WAYS_OUT[group]))
        add_json(command(actions, name, run, about.format(loop), f"tailhook {group} {name}"))


def in_session_project(run: Run) -> Run:
    """Return a command that runs in the project of its session, wherever its agent is."""

    def run_there(arguments: argparse.Namespace) -> int | None:
        enter_session_project()
        return run(arguments)

    return run_there


def add_prompt(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for a prompt."""
    parser.add_argument("--prompt-file", metavar="F", help="read the prompt from a file; - reads stdin")
    parser.add_argument("prompt", nargs="*", metavar="PROMPT", help="the task for the agent")
    parser.set_defaults(add_words=add_to_prompt)


def add_stuck_after(parser: argparse.ArgumentParser) -> None:
    """Add the argument that ends a loop if it stands still."""
    parser.add_argument(
        "--stuck-after",
        type=whole,
        default=STUCK_AFTER,
        metavar="K",
        help="end the loop after K stops in a row with the same words and without work; the same failing call ends it "
        f"after 3 x K times (default: {STUCK_AFTER}; 0: never)",
    )


def add_budgets(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that end a loop when it has used so many tokens or minutes."""
    parser.add_argument(
        "--tokens",
        type=positive,
        metavar="N",
        help="end the loop after N tokens (input, cache creation and output, with those of sub-agents) and one turn to "
        "wrap up; only Claude Code's are counted",
    )
    parser.add_argument(
        "--minutes", type=positive, metavar="N", help="end the loop after N minutes and one turn to wrap up"
    )


def budgets_of(arguments: argparse.Namespace) -> dict[str, int]:
    """Return the chosen budgets, by the loop's fields for them."""
    return {unit: limit for unit in BUDGET_REASONS if (limit := getattr(arguments, unit))}


def budget_facts(fields: Mapping[str, Any], now: float) -> dict[str, Any]:
    """Return what a loop has spent of each budget, as a member for --json; {} if it has none.

    fields: of the loop.
    """
    budgets = {
        unit: {"spent": used, "limit": limit, "left": None if used is None else max(0, limit - used)}
        for unit, (used, limit) in measure(fields, now).items()
    }
    return {"budgets": budgets} if budgets else {}


def describe_owner(owner: str) -> str:
    """Return a loop's owner for a message.  owner: the id of its session, or CLAIM."""
    return (
        "the next session of this project that gets a prompt or stops" if owner == CLAIM else f"session {plain(owner)}"
    )


NEXT_SESSION = "the next one that gets a prompt or stops"


def describe_new_owner() -> list[str]:
    """Return a line about the session that a new loop will belong to, if the command runs outside of a session."""
    return [] if current_session() else [f"Session: {NEXT_SESSION}. Its agent gets this:"]


def add_to_prompt(arguments: argparse.Namespace, words: list[str]) -> None:
    """Add words of a prompt that follow flags."""
    arguments.prompt += words


def prompt_argument(arguments: argparse.Namespace) -> str:
    """Return the prompt from the arguments, a file or stdin, without blank space around it; "" if there is none.

    Raises UsageError if it is given twice, CommandError if it is too long.
    """
    if arguments.prompt_file and arguments.prompt:
        raise UsageError("the prompt is given twice: as arguments and with --prompt-file")
    if arguments.prompt_file == "-":
        prompt = sys.stdin.read()
    elif arguments.prompt_file:
        prompt = Path(arguments.prompt_file).read_text(encoding="utf-8-sig", errors="replace")
    else:
        prompt = " ".join(arguments.prompt)
    if len(prompt) > MAX_PROMPT_CHARS:
        advice = "Keep the details in a file and name the file in the prompt."
        raise CommandError(f"the prompt has {len(prompt):,} characters, more than {MAX_PROMPT_CHARS:,}. {advice}")
    return prompt.strip()


# What the fields of a loop do not do in other hosts than Claude Code. {} is the host's title.
ONLY_IN_CLAUDE_CODE = {
    "tokens": "tokens of {} are not counted, so --tokens ends no loop there",
    "checks": "{} does not show which commands succeeded, so --check has no effect there",
}


def report_driver(machine: str, limit: int | None, fields: Container[str] = ()) -> None:
    """Print a warning if no hook would continue the loop here, or a host would end its turns before its limit.

    machine: the loop's machine.
    limit: the loop's own, None if it has none.
    fields: of the loop. Print a warning for hosts in which one of them does nothing.
    """
    surveys = surveys_here()
    if why := why_not_driven(surveys, machine):
        sys.stderr.write(f"tailhook: nothing will continue this loop: {plain(why)}\n")
        return
    for survey in surveys:
        if any(there.asks(machine) for there in survey.installed):
            warn_of_cap(survey, limit)
            if places := survey.repeats.get(machine):
                where = plain(", ".join(there.where for there in places))
                what = f"each stop counts {len(places)} times, because {len(places)} hooks ask {machine}: {where}"
                sys.stderr.write(f"tailhook: {what}.\n          For the way to remove one:  tailhook doctor\n")
            if (host := survey.installed[0].file.host).NAME != DEFAULT:
                for field, words in ONLY_IN_CLAUDE_CODE.items():
                    if field in fields:
                        sys.stderr.write(f"tailhook: {words.format(host.TITLE)}\n")


def warn_of_cap(survey: Survey, limit: int | None) -> None:
    """Print a warning if the host would end the turn before the loop's own limit.

    limit: None if the loop has none.
    """
    file = survey.installed[0].file
    host = file.host
    set_to = find_caps(survey)
    cap = (whole_number(set_to[-1][2]) or 0) if set_to else host.BLOCK_CAP
    if not cap or (limit is not None and limit <= cap):
        return
    advice = "When this happens, send the agent another prompt; the loop continues."
    if file.can_set_cap:
        advice = plain(f"{file.cap_advice}{advise_cap(survey)}")
    own = "this loop has no limit" if limit is None else f"this loop's limit is {limit}"
    count = f"{cap} {host.BLOCK_CAP_COUNTS}"
    sys.stderr.write(f"tailhook: {host.TITLE} ends a turn after {count}; {own}.\n          {advice}\n")


def describe_standing(loop: str, owner: str, is_paused: bool, iteration: str, goal: str) -> str:
    """Return what a live loop does, for a message: "a loop of session … is running already (iteration 2 of 10, …)".

    loop: its name.
    owner: the id of its session, or CLAIM or "" if it has none yet.
    iteration: by `iteration_words`.
    goal: the prompt.
    """
    stands = "paused" if is_paused else "running already"
    about = f"; goal: {goal}" if (goal := shorten_goal(goal)) else ""
    return plain(f"a {loop}{session_words(owner)} is {stands} ({iteration}{about})")


def advise_about_live(group: str, owner: str, is_paused: bool, advice: str) -> str:
    """Return what to do about a live loop that is in the way of a new one.

    group: the commands of its machine.
    owner: the id of its session, or CLAIM or "" if it has none yet.
    advice: what to do if it is not another session's.
    """
    if is_of_another_session(owner):
        advice = f"{advise_adopting(group)}\n          To end it:  tailhook {group} cancel"
    return f"To continue it:  tailhook {group} resume\n          {advice}" if is_paused else advice


def advise_adopting(group: str) -> str:
    """Return how another session takes over a loop.  group: as above."""
    session = "this session, as after /clear" if current_session() else "another session, as after /clear"
    return f"To continue it in {session}:  tailhook {group} adopt"


def advise_resumed(owner: str, group: str) -> str:
    """Return when a resumed loop continues.  owner: its session, as below.  group: as above."""
    if current_session() and is_of_another_session(owner):
        return advise_adopting(group)
    return "It continues at the agent's next stop. If the agent has stopped already, send it a prompt."


def advise_adopted(is_paused: bool, group: str) -> list[str]:
    """Return a line about an adopted loop if it is paused: to adopt it does not continue it.  group: as above."""
    return [f"It is paused. To continue it:  tailhook {group} resume"] if is_paused else []


def is_of_another_session(owner: str) -> bool:
    """Return whether a loop belongs to another session than this one.  owner: as above."""
    return known_session(owner) not in (None, current_session())


def session_words(owner: str) -> str:
    """Return " of session …", "" if a loop has none yet.  owner: as above."""
    return f" of session {owner}" if known_session(owner) else ""


def iteration_words(count: int | None, limit: int | None) -> str:
    """Return an iteration for a message: "iteration 2 of 10", without a limit "iteration 2".  None: it is unknown."""
    return "an unknown iteration" if count is None else f"iteration {count}{f' of {limit}' if limit else ''}"


def iteration_of(frame: Mapping[str, Any]) -> str:
    """Return the iteration of a frame of the idle machine for a message: "iteration 2 of 10"."""
    return iteration_words(*(whole_number(frame.get(key)) for key in ("iter", "max")))


def iteration_of_ralph(state: Mapping[str, str | None] | None) -> str:
    """Return a ralph loop's iteration for a message.  state: None if the file is broken."""
    return iteration_words(*(ralph.parse_count(state, key) if state else None for key in ralph.COUNTS))


def unbound_acts(config: Mapping[str, Any]) -> bool:
    """Return whether any session may act on a state without a session."""
    return bool(config.get("hook", {}).get("unbound") != "refuse")


def shorten_goal(goal: str) -> str:
    """Return the beginning of a prompt, on one line."""
    goal = " ".join(goal.split())
    return f"{goal[:MAX_SHOWN_GOAL_CHARS]}…" if len(goal) > MAX_SHOWN_GOAL_CHARS else goal


def describe_changed(loop: str, how: str, owner: str, place: str, goal: str) -> list[str]:
    """Return lines about a loop that a command has changed or ended.

    loop: its name.
    how: "cancelled", "replaced", "paused" or "resumed".
    owner: the id of its session, or CLAIM or "" if it has none yet.
    place: the iteration, and the loop's folder if it is elsewhere.
    goal: the prompt.
    """
    goal = shorten_goal(goal)
    lines = [f"The {loop}{session_words(owner)} was {how} at {place}", *([f"Goal: {goal}"] if goal else [])]
    return list(map(plain, lines))


def print_cancelled(arguments: argparse.Namespace, facts: Mapping[str, Any], lines: Sequence[str], rest: str) -> None:
    """Print what was cancelled, and what stays in the project and its repository.

    facts: for --json; `path` is that of the loop's store or state file.
    lines: about the loop.
    rest: the path of what stays, "" if nothing does.
    """
    stays = [f"What it has saved stays: {rest}"] if rest else []
    if listing := listing_file(folder_of_loop(facts["path"])):
        stays.append(f"The names of its files stay in git's list of ignored files: {listing}")
    print_facts(arguments, facts, *lines, *map(plain, stays))


def format_next_stop(machine: str, outcome: str, why: str, where: str = "") -> str:
    """Return a verdict about the next stop as a sentence for a person.

    machine: the deciding one.
    where: the folder of the stop, behind " in", if it is not this one.
    """
    stop = f"At the next stop{where}"
    if outcome != "block":
        return f"{stop} the agent may stop: {why}."
    if undriven := why_not_driven(surveys_here(), machine):
        return f"{stop} nothing happens: {plain(undriven)}"
    return f"{stop} the agent must continue: {why}."
