"""What the commands that start a loop know of the session they run in, and how they take its prompt."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from tailhook.cli.output import CommandError, Commands, UsageError, add_json, command
from tailhook.hook.hosts import current_host
from tailhook.machines import whole_number

MAX_PROMPT_CHARS = 1_000_000  # characters; the hook reads a state of 4 MB, and no host shows so much

Run = Callable[[argparse.Namespace], int | None]


def add_actions(actions: Commands, group: str, loop: str, status: Run, adopt: Run, cancel: Run) -> None:
    """Declare what can be done with a loop that runs; `loop` is what it is called."""
    for name, run, about in (
        ("status", status, f"show the state of the {loop} of this project"),
        ("adopt", adopt, f"let this session take over the {loop} of this project"),
        ("cancel", cancel, f"end the {loop} of this project"),
    ):
        add_json(command(actions, name, run, about, f"tailhook {group} {name}"))


def add_prompt(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that give a prompt."""
    parser.add_argument("--prompt-file", metavar="F", help="read the prompt from a file; - reads stdin")
    parser.add_argument("prompt", nargs="*", metavar="PROMPT", help="the task for the agent")
    parser.set_defaults(add_words=add_to_prompt)


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
        prompt = Path(arguments.prompt_file).read_text(encoding="utf-8", errors="replace")
    else:
        prompt = " ".join(arguments.prompt)
    if len(prompt) > MAX_PROMPT_CHARS:
        advice = "Keep the details in a file and name the file in the prompt."
        raise CommandError(f"the prompt has {len(prompt):,} characters, more than {MAX_PROMPT_CHARS:,}. {advice}")
    return prompt.strip()


def warn_of_cap(limit: int | None) -> None:
    """Print a warning if the host would end the turn before the loop's own limit.

    limit: None if the loop has none.
    """
    host = current_host()
    word = os.environ.get(host.BLOCK_CAP_VARIABLE) if host.BLOCK_CAP_VARIABLE else None
    cap = whole_number(word) if word else host.BLOCK_CAP
    advice = "When this happens, send the agent another prompt; the loop continues."
    if host.BLOCK_CAP_VARIABLE:
        advice = f"To remove the host's limit, set {host.BLOCK_CAP_VARIABLE}=0 under `env` in its settings."
    if cap and (limit is None or limit > cap):
        own = "this loop has no limit" if limit is None else f"this loop's limit is {limit}"
        count = f"{cap} {host.BLOCK_CAP_COUNTS}"
        sys.stderr.write(f"tailhook: the host ends a turn after {count}; {own}.\n          {advice}\n")
