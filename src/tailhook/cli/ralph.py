"""`tailhook ralph`: start, show, pause, hand over or end a ralph loop."""

import argparse
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tailhook._core import iso_time
from tailhook.cli.both_loops import report_idle_loop
from tailhook.cli.checks import add_checks, check_fields, quote_list
from tailhook.cli.git_exclude import exclude_from_git
from tailhook.cli.loop_ends import find_last_end, format_end, read_end
from tailhook.cli.loop_files import advise, changing, judge_next_stop, naming_files
from tailhook.cli.loop_folders import find_changeable, find_first_live, folder_of_loop, name_elsewhere
from tailhook.cli.output import CommandError, Commands, UsageError, add_json, command, group, print_facts, whole
from tailhook.cli.readers import reading_session
from tailhook.cli.session import (
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
    in_session_project,
    iteration_of_ralph,
    print_cancelled,
    prompt_argument,
    report_driver,
    unbound_acts,
)
from tailhook.hook.answer import plain, plain_lines
from tailhook.hook.event import load_config
from tailhook.hook.payload import project_folders, project_root
from tailhook.hosts import current_session
from tailhook.install.survey import surveys_here, why_not_driven
from tailhook.machines import CLAIM, Verdict, is_visible, owns, ralph, ralph_briefing
from tailhook.machines.budgets import describe_spending
from tailhook.machines.evidence import describe_checks, listed_texts
from tailhook.machines.notices import known_session
from tailhook.stores import RALPH_FILE
from tailhook.stores import ralph as store
from tailhook.stores.atomic import Lock, open_folder, private_file, remove_file, replace_file
from tailhook.stores.frontmatter import END, FrontMatter, quote_yaml

NO_RALPH = "no ralph loop is running in this project"
MAX_SHOWN_CHARS = 10_000  # hosts show longer answers of a hook only in part
HOOKS_NOTES = ("briefed", "still", "waits", "spent")  # values that only the next stop reads


def add(commands: Commands) -> None:
    """Declare the group's commands."""
    actions = group(
        commands,
        "ralph",
        "start, show, pause, hand over or end a loop that repeats one prompt (the ralph machine)",
        "tailhook ralph status",
    )

    parser = command(
        actions,
        "start",
        in_session_project(advise(start_ralph)),
        "repeat a prompt each time the agent stops, until it writes the promised text",
        "tailhook ralph start --max-iterations 20 --completion-promise 'TESTS GREEN' Make the tests pass.",
    )
    parser.add_argument(
        "--max-iterations",
        type=whole,
        default=0,
        metavar="N",
        help="maximum number of iterations (default: 0, no limit)",
    )
    parser.add_argument(
        "--completion-promise",
        default="",
        metavar="TEXT",
        help="the text that the agent must write in <promise>...</promise> to end the loop",
    )
    add_checks(parser)
    add_budgets(parser)
    add_stuck_after(parser)
    parser.add_argument("--force", action="store_true", help="end the running loop first")
    add_prompt(parser)
    add_json(parser)

    runs = {
        "status": print_ralph_status,
        "pause": pause_ralph,
        "resume": resume_ralph,
        "adopt": adopt_ralph,
        "cancel": cancel_ralph,
    }
    add_actions(actions, "ralph", "ralph loop", runs)


# ---- start -------------------------------------------------------------------


def start_ralph(arguments: argparse.Namespace) -> None:
    """Write the state file of a new loop, and print its agent's instructions."""
    prompt = prompt_argument(arguments)
    if not (prompt or arguments.prompt_file or sys.stdin.isatty()):
        prompt = sys.stdin.read().strip()
    if not prompt:
        raise UsageError("the prompt is empty. Give the task:  tailhook ralph start Make the tests pass.")
    promise = ralph.normalize_space(arguments.completion_promise)
    if fault := promise_fault(promise):
        raise UsageError(f"the promise contains {fault}, so it can never match. Choose another text.")
    checks = check_fields(arguments)
    if checks and not promise:
        advice = "Give one:  --completion-promise 'TESTS GREEN'"
        raise UsageError(f"--check decides whether a kept promise counts, and there is no promise. {advice}")
    text = page(arguments, promise, prompt, checks)
    try:
        FrontMatter(text)
    except OSError:
        what = "the promise and the checks are" if arguments.check else "the promise is"
        raise UsageError(f"{what} too long to be kept in the state file. Choose a shorter text.") from None
    found = find_replaced_ralph()
    root = folder_of_loop(found.path) if found else project_root({})
    exclude_from_git(root)
    is_new = not Path(f"{root}/.claude").exists()
    Path(f"{root}/.claude").mkdir(exist_ok=True)
    folder = open_folder(root, ".claude")
    try:
        with naming_files(f"{root}/.claude"), Lock(private_file(folder, RALPH_FILE, ".lock")):
            replaced = judge_live(arguments.force)
            replace_file(RALPH_FILE, text.encode("utf-8"), folder)
            remove_file(private_file(folder, RALPH_FILE, END))  # the end of the loop before is not that of this one
            loop = store.RalphFile(root)  # a stop may end it as soon as the lock is free
    finally:
        os.close(folder)
        if is_new:
            with suppress(OSError):  # it is not empty, as the loop has started
                Path(f"{root}/.claude").rmdir()
    facts = {"path": loop.path, "state": loop.state, "prompt": loop.prompt}
    lines = [
        *replaced,
        f"Ralph loop started in {plain(loop.path)}.",
        *describe_new_owner(),
        plain_lines(ralph_briefing.briefing(loop.state or {}, plain_lines(loop.prompt))),
    ]
    if not (promise or arguments.max_iterations or budgets_of(arguments)):
        still = arguments.stuck_after
        others = (
            f"It ends if the agent stands still (--stuck-after {still}), or with"
            if still
            else "Only this command ends it"
        )
        lines.append(f"It has no limit either. {others}:  tailhook ralph cancel")
    print_facts(arguments, facts, *lines)
    if len(prompt) > MAX_SHOWN_CHARS:
        sys.stderr.write(
            f"tailhook: the prompt has {len(prompt):,} characters. Hosts show only a preview of texts over "
            f"{MAX_SHOWN_CHARS:,} characters. Keep the details in a file and name the file in the prompt.\n"
        )
    report_driver("ralph", arguments.max_iterations or None, loop.state or {})
    report_idle_loop()


def promise_fault(promise: str) -> str:
    """Return what in a promise no agent could repeat in `<promise>...</promise>`, "" if it can be kept."""
    hidden = next((ascii(letter) for letter in promise if not is_visible(letter)), "")
    return f"{hidden}, which is not shown" if hidden else next((tag for tag in ralph.TAGS if tag in promise), "")


def page(arguments: argparse.Namespace, promise: str, prompt: str, checks: Mapping[str, list[str]]) -> str:
    """Return the state file of a new loop.

    checks: the lists of texts about its checks, by key.
    """
    now, session = iso_time(time.time()), current_session()
    return "\n".join(
        (
            "---",
            "active: true",
            "iteration: 1",
            f"max_iterations: {arguments.max_iterations}",
            f"completion_promise: {quote_yaml(promise) if promise else 'null'}",
            f"session_id: {quote_yaml(session or CLAIM)}",
            f"started_at: {quote_yaml(now)}",
            f"began: {quote_yaml(now)}",
            *(f"{unit}: {limit}" for unit, limit in budgets_of(arguments).items()),
            f"stuck_after: {arguments.stuck_after}",
            *(f"{key}: {quote_list(texts)}" for key, texts in checks.items()),
            *([f"briefed: {quote_yaml(reader)}"] if (reader := reading_session()) else []),
            "---",
            "",
            prompt.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
            "",
        )
    )


def judge_live(force: bool) -> list[str]:
    """Return lines about the loop that a new one replaces. Only under the lock.

    Raises CommandError if a loop runs, or is paused, and must not be ended.
    """
    loop = find_replaced_ralph()
    state = loop.state if loop else None
    if not (loop and state and ralph_briefing.has_counts(state)):
        return []
    count, owner = iteration_of_ralph(state), owner_of_ralph(loop)
    if force:
        return describe_ralph_change(loop, "replaced")
    is_paused = ralph_briefing.is_ralph_paused(state)
    what = describe_standing("ralph loop", owner, is_paused, count, loop.prompt)
    advice = "End it with `tailhook ralph cancel`, or use --force."
    advice = advise_about_live("ralph", owner, is_paused, advice)
    raise CommandError(f"{plain(loop.path)}: {what}. {advice}")


def find_replaced_ralph() -> store.RalphFile | None:
    """Return the loop that a new one would replace: in the hook's folders, or this session's loop elsewhere."""
    loop, session = store.find_ralph(project_folders({})), current_session()
    if not session or loop is not None:
        return loop
    return find_first_live(
        store.find_ralph, lambda loop: is_ralph_live(loop) and (loop.state or {}).get("session_id") == session
    )


# ---- status, pause, resume, adopt, cancel ------------------------------------


def is_ralph_live(loop: store.RalphFile) -> bool:
    """Return whether a loop, of any session, runs or is paused."""
    return loop.state is not None and ralph_briefing.has_counts(loop.state)


def print_ralph_status(arguments: argparse.Namespace) -> None:
    """Print the state file's values, and the prompt."""
    loop = find_first_live(store.find_ralph, is_ralph_live)
    state = loop.state if loop else None
    active = ralph_briefing.is_live(state)
    facts: dict[str, object] = {
        "path": loop.path if loop else None,
        "active": active,
        "state": state,
        "prompt": loop.prompt if loop else None,
    }
    if state:
        facts |= budget_facts(state, time.time())
    if loop is None:
        lines = ["No ralph loop is running in this project."]
        if found := find_last_end(lambda folder: read_end(folder, RALPH_FILE)):
            lines.append(format_end(*found))
            facts["ended"] = found[1]
    elif state is None:
        lines = [f"{plain(loop.path)} has no front matter; the next stop removes it."]
    else:
        advice = " To continue it:  tailhook ralph resume" if ralph_briefing.is_ralph_paused(state) else ""
        lines = [
            f"A ralph loop is {describe_ralph_state(state)} in {plain(loop.path)}.{advice}",
            *(
                plain(f"  {key}: {describe_ralph_value(key, value)}")
                for key, value in state.items()
                if key not in HOOKS_NOTES
            ),
            plain_lines(describe_live_ralph(state, plain_lines(loop.prompt))),
            *describe_spending(state, time.time()),
        ]
        if active and (undriven := why_not_driven(surveys_here(), "ralph")):
            lines.append(f"At the next stop nothing happens: {plain(undriven)}")
        elif active and (verdict := judge_ralph_stop(loop)).outcome != "block":
            lines.append(f"At the next stop the agent may stop: {plain(verdict.why)}.")
    print_facts(arguments, facts, *lines)


def describe_live_ralph(state: Mapping[str, str | None], prompt: str) -> str:
    """Return a loop's checks and its prompt: with instructions only for the agent that must continue it."""
    session, acts = current_session(), unbound_acts(load_config(project_root({})))
    if session and ralph_briefing.is_live(state) and owns(session, (state.get("session_id"),), acts):
        return ralph_briefing.briefing(state, prompt)
    checks = describe_checks(state, {"The promise": ralph.COMPLETE} if ralph.promise_of(state) else {})
    return "\n".join([*checks, f"Prompt: {ralph.shorten(prompt)}"])


def judge_ralph_stop(loop: store.RalphFile) -> "Verdict[dict[str, str]]":
    """Return the verdict of the next stop of the loop's session, if the agent writes no promise."""
    owner = owner_of_ralph(loop) or CLAIM
    acts = unbound_acts(load_config(project_root({})))
    facts = ralph.Facts(current_session() or owner, unbound_acts=acts, line=loop.line_of)
    return judge_next_stop(loop, loop.state or {}, lambda: ralph.decide(loop.state, loop.prompt, facts))


def describe_ralph_state(state: Mapping[str, str | None]) -> str:
    """Return whether a loop runs, for a person."""
    if ralph_briefing.is_ralph_paused(state):
        return "paused"
    return "running" if ralph_briefing.is_live(state) else "broken"


def describe_ralph_value(key: str, value: str | None) -> str:
    """Return a value of the state file for a person."""
    if value is None:
        return "none"
    if key in ("checks", "check_files"):
        return ", ".join(listed_texts(value)) or value
    return "the next session that gets a prompt or stops" if (key, value) == ("session_id", CLAIM) else value


def pause_ralph(arguments: argparse.Namespace) -> None:
    """Keep the loop as it is, and let the agent stop."""
    loop = find_live_ralph()
    with changing(loop):
        if ralph_briefing.is_live(loop.state):
            loop.write({"active": "false"})
        elif not ralph_briefing.is_ralph_paused(loop.state):
            raise CommandError(NO_RALPH)
    lines = describe_ralph_change(loop, "paused")
    print_facts(arguments, {"path": loop.path}, *lines, "To continue it:  tailhook ralph resume")


def resume_ralph(arguments: argparse.Namespace) -> None:
    """Continue a paused loop."""
    loop = find_changeable(store.find_ralph, lambda loop: ralph_briefing.is_ralph_paused(loop.state), owner_of_ralph)
    if loop is None:
        raise CommandError(NO_RALPH)
    with changing(loop):
        if not ralph_briefing.is_ralph_paused(loop.state):
            raise CommandError("the ralph loop of this project is not paused")
        loop.write({"active": "true"})
    lines = describe_ralph_change(loop, "resumed")
    print_facts(arguments, {"path": loop.path}, *lines, advise_resumed(owner_of_ralph(loop), "ralph"))


def describe_ralph_change(loop: store.RalphFile, how: str) -> list[str]:
    """Return lines about a loop that a command changes or ends.  how: as for `describe_changed`."""
    place = f"{iteration_of_ralph(loop.state)}.{name_elsewhere(loop.path)}"
    return describe_changed("ralph loop", how, owner_of_ralph(loop), place, loop.prompt)


def adopt_ralph(arguments: argparse.Namespace) -> None:
    """Give the loop to this session, or to the next one that gets a prompt or stops."""
    loop, owner = find_live_ralph(), current_session() or CLAIM
    with changing(loop):
        if not is_ralph_live(loop):
            raise CommandError(NO_RALPH)
        loop.write({"session_id": owner})
    whose = describe_owner(owner)
    print_facts(
        arguments,
        {"path": loop.path, "session_id": owner},
        f"The ralph loop now belongs to {whose}.{name_elsewhere(loop.path)}",
        *advise_adopted(ralph_briefing.is_ralph_paused(loop.state), "ralph"),
    )


def cancel_ralph(arguments: argparse.Namespace) -> None:
    """Remove the state file, even if it is not valid."""
    loop = find_live_ralph()
    with changing(loop):
        if loop.gone:
            raise CommandError(NO_RALPH)
        state = loop.state
        loop.keep_end("USER_CANCELLED", time.time())
        loop.remove()
    count, owner = ralph.parse_count(state, "iteration") if state else None, owner_of_ralph(loop)
    facts = {
        "path": loop.path,
        "iteration": count,
        "goal": loop.prompt,
        "session_id": known_session(owner),
    }
    lines = describe_ralph_change(loop, "cancelled")
    log, folder = Path(loop.path).with_name(store.LOG), Path(loop.path).parent
    rest = str(log) if log.exists() else "" if any(folder.iterdir()) else f"{folder}, an empty folder"
    print_cancelled(arguments, facts, lines, rest)


def owner_of_ralph(loop: store.RalphFile) -> str:
    """Return the id of a loop's session, or CLAIM or "" if it has none yet."""
    owner = (loop.state or {}).get("session_id")
    return owner if isinstance(owner, str) else ""


def find_live_ralph() -> store.RalphFile:
    """Return the state file that a command may change. Raises CommandError if there is none."""
    loop = find_changeable(store.find_ralph, is_ralph_live, owner_of_ralph)
    if loop is None:
        raise CommandError(NO_RALPH)
    return loop
