"""The checks of a new loop: commands that must have succeeded before its end counts."""

import argparse

from tailhook._core import write_json
from tailhook.cli.output import UsageError
from tailhook.machines.evidence import EVERY_FILE
from tailhook.machines.rules import MAX_PATTERNS_COST, MAX_RULES, Rule, blank_fault, pattern_fault
from tailhook.machines.shell_words import Budget

MAX_ARGUMENT_CHARS = 80  # of an argument in a message


def add_checks(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the checks of a loop."""
    parser.add_argument(
        "--check",
        action="append",
        default=[],
        metavar="CMD",
        help="the loop ends as complete only if this command has succeeded after the last edit of a file (repeatable); "
        "only Claude Code shows which commands succeeded",
    )
    parser.add_argument(
        "--check-files",
        action="append",
        default=[],
        metavar="PATTERN",
        help="a check is needed after edits of matching files only: '*.py', 'src/**' (repeatable; default: all)",
    )


def check_fields(arguments: argparse.Namespace) -> dict[str, list[str]]:
    """Return the fields of a new loop about its checks, {} without any. Raises UsageError if one is not valid."""
    checks, files = (list(dict.fromkeys(texts)) for texts in (arguments.check, arguments.check_files))
    if files and not checks:
        raise UsageError("--check-files needs a check:  --check 'pytest -q' --check-files '*.py'")
    for pattern in files:
        if fault := pattern_fault(pattern):
            raise UsageError(f"--check-files {quote_argument(pattern)} cannot match: {fault}")
    if not all(map(str.strip, checks)):
        raise UsageError("--check is empty. Give a command:  --check 'pytest -q'")
    if len(checks) > MAX_RULES:
        raise UsageError(f"a loop has at most {MAX_RULES} checks, and {len(checks)} are given")
    budget = Budget(MAX_PATTERNS_COST)
    for check in checks:
        if why := blank_fault(check):
            raise UsageError(f"--check {quote_argument(check)}: {why}. Write a space in its place.")
        try:
            Rule(files or [EVERY_FILE], check, budget)
        except ValueError as error:
            advice = "For several commands, give --check again, or name a script that runs them."
            raise UsageError(f"--check {quote_argument(check)}: {error}. {advice}") from None
    return {name: texts for name, texts in (("checks", checks), ("check_files", files)) if texts}


def quote_argument(text: str) -> str:
    """Return an argument for a message, in quotes."""
    return repr(text if len(text) <= MAX_ARGUMENT_CHARS else f"{text[:MAX_ARGUMENT_CHARS]}…")


def quote_list(values: "list[str]") -> str:
    """Return texts as a flow sequence of YAML on one line, which is also JSON. No text in it begins a comment."""
    return write_json(values).decode("utf-8").replace("#", "\\u0023")
