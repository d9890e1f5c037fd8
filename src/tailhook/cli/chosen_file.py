"""The hooks file that `install` and `uninstall` change: chosen by the arguments, shown, and asked about."""

import argparse
import sys

from tailhook.cli.arguments import Once, describe_unknown
from tailhook.cli.changes import describe_change
from tailhook.cli.output import CommandError, UsageError, counted, print_lines
from tailhook.hook.answer import plain
from tailhook.hosts import DEFAULT, NAMES
from tailhook.install.hooks import SettingsError
from tailhook.install.hooks_file import SCOPES, HooksFile, hooks_file_of
from tailhook.install.settings import Settings
from tailhook.install.survey import repair_of

INDENT = " " * len("tailhook: ")


def add_file(parser: argparse.ArgumentParser) -> None:
    """Add the flags that choose the file."""
    about = f"the agent host: {', '.join(NAMES)} (default: {DEFAULT})"
    parser.add_argument("--host", action=Once, type=parse_host, metavar="HOST", default=DEFAULT, help=about)
    about = "the settings file: user (default), project (shared), or local (this project, not shared)"
    parser.add_argument("--scope", action=Once, choices=SCOPES, default="user", help=about)


def parse_host(word: str) -> str:
    """Return the name of a host. Raises ArgumentTypeError, with the name that was probably meant."""
    if word in NAMES:
        return word
    raise argparse.ArgumentTypeError(describe_unknown("host", [word], NAMES))


def chosen_file(arguments: argparse.Namespace) -> HooksFile:
    """Return the description of the chosen host's hooks file.

    Raises UsageError if the host lacks something that the arguments ask for.
    """
    file = hooks_file_of(arguments.host)
    title = file.host.TITLE
    if arguments.scope not in file.paths:
        raise UsageError(f"{title} has no file for --scope {arguments.scope}; it has: {', '.join(file.paths)}")
    if getattr(arguments, "form", None) == "exec" and not file.has_exec_form:
        raise UsageError(f"{title} runs hooks as shell commands only. Leave out --form exec.")
    cap = getattr(arguments, "block_cap", None)
    if cap is not None and not file.can_set_cap:
        reason = "cannot be changed" if file.host.BLOCK_CAP else "does not exist"
        raise UsageError(f"{title}: a limit on blocks in a row {reason}. Leave out --block-cap.")
    if cap is not None and file.highest_cap and not 1 <= cap <= file.highest_cap:
        raise UsageError(f"{title} takes a --block-cap from 1 to {file.highest_cap}.")
    return file


def add_yes(parser: argparse.ArgumentParser) -> None:
    """Add the flag that skips the question."""
    parser.add_argument("--yes", action="store_true", help="change the file without asking")


def read_settings(file: HooksFile, path: str) -> Settings:
    """Return a hooks file as it is now. Raises CommandError if it cannot be used, OSError if it cannot be read."""
    try:
        return Settings(file, path)
    except SettingsError as error:
        raise CommandError(f"{error}. Nothing was changed. {repair_of(file, error)}") from None


def confirm(found: Settings, text: str | None, arguments: argparse.Namespace) -> None:
    """Show the change and ask. Raises CommandError if the answer is no."""
    where = plain(found.path) + ("" if found.target == found.path else f" (a link to {plain(found.target)})")
    print_lines(f"{where}:", *describe_change(found.file, found.text or "", text or ""), "")
    if arguments.yes:
        return
    if not sys.stdin.isatty():
        raise CommandError(
            f"{plain(found.path)} was not changed: no terminal to ask for confirmation. Use --yes to skip the question."
        )
    if not ask_to_confirm("Write these changes?"):
        raise CommandError(f"{plain(found.path)} was not changed.")


def ask_to_confirm(question: str) -> bool:
    """Ask a question on the terminal. Return whether the answer is yes."""
    try:
        sys.stdout.write(f"{question} [y/N] ")
        sys.stdout.flush()
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        answer = ""
    return answer.strip().lower() in ("y", "yes")


def describe_other_names(found: Settings) -> list[str]:
    """Return a line about the other hard links of a replaced file, if it had any."""
    if found.names < 2:
        return []
    others = counted(found.names - 1, "other names")
    return [f"The old file has {others} (hard links) and stays as it was there; only {plain(found.target)} is changed."]
