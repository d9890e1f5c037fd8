"""`tailhook install` and `tailhook uninstall`: the hooks in an agent host's settings."""

import argparse
import difflib
import importlib.util
import os
import sys
from collections.abc import Sequence

from tailhook.cli.output import CommandError, Commands, coloured, command, say
from tailhook.hook.answer import plain
from tailhook.hook.config import read_sections, user_bytes
from tailhook.hook.event import load_config
from tailhook.hook.machines import MACHINES, configured_machines
from tailhook.hook.payload import project_root, user_config
from tailhook.install import hooks, settings
from tailhook.install.settings import SCOPES, Settings
from tailhook.machines import whole_number
from tailhook.plates.paths import write_argv

NEW = "{}\n"  # a settings file that we make begins as
DAEMON_NEEDS = ("alembic", "fastapi", "psutil", "sqlalchemy", "sse_starlette", "uvicorn")


def add(commands: Commands) -> None:
    """Declare the commands."""
    parser = command(
        commands,
        "install",
        install,
        "write the hooks into the settings of Claude Code",
        "tailhook install --scope project --with memory --block-cap 0",
    )
    add_scope(parser)
    parser.add_argument("--with", dest="added", type=machines, metavar="MACHINES", help="machines to ask besides")
    parser.add_argument("--without", dest="left_out", type=machines, metavar="MACHINES", help="machines not to ask")
    parser.add_argument(
        "--form", choices=("exec", "shell"), help="exec (default; Claude Code 2.1.139 and later) or one shell command"
    )
    parser.add_argument(
        "--block-cap",
        type=limit,
        metavar="N",
        help="let the host block N times in a row without tool use, 0 for any number (the host's own limit is 8)",
    )
    parser.add_argument("--print", action="store_true", dest="print_only", help="print the entries, write nothing")
    add_yes(parser)

    parser = command(
        commands,
        "uninstall",
        uninstall,
        "take the hooks out of the settings again",
        "tailhook uninstall --scope project",
    )
    add_scope(parser)
    add_yes(parser)


def add_scope(parser: argparse.ArgumentParser) -> None:
    """The flag that says which settings file."""
    about = "the user's settings (default), the project's, or the project's that are not shared"
    parser.add_argument("--scope", choices=SCOPES, default="user", help=about)


def add_yes(parser: argparse.ArgumentParser) -> None:
    """The flag that skips the question."""
    parser.add_argument("--yes", action="store_true", help="do not ask before the file is changed")


def machines(word: str) -> list[str]:
    """Machine names, comma-separated, as an argument's type."""
    names = [name for name in word.split(",") if name]
    if unknown := [name for name in names if name not in MACHINES]:
        raise argparse.ArgumentTypeError(f"no machine is named {', '.join(unknown)}; there are: {', '.join(MACHINES)}")
    return names


def limit(word: str) -> int:
    """A whole number from 0 on, as an argument's type."""
    number = whole_number(word)
    if number is None:
        raise argparse.ArgumentTypeError(f"{word!r} is not a whole number from 0 on")
    return number


# ---- install -----------------------------------------------------------------


def install(arguments: argparse.Namespace) -> None:
    """Show what would change, ask, and change it."""
    if arguments.print_only:
        say(entries(arguments))
        return
    path = settings.settings_path(arguments.scope)
    while True:
        found = Settings(path)
        receipt = settings.receipt_for(found.target)
        text = wanted(found.text or NEW, arguments, receipt and receipt.before)
        if text == found.text:
            say(f"Nothing to change: the hooks are in {plain(path)}.")
            break
        confirm(found, text, arguments)
        with settings.lock(found.target):
            if found.reload().text != found.text:
                continue  # changed meanwhile, by a person or another install: look again
            cap = arguments.block_cap if arguments.block_cap is not None else receipt and receipt.cap
            settings.write(found, text, without_ours(found, receipt), cap)
        say(f"The hooks are in {plain(path)}; a session that runs reads them at its next start.")
        if found.text is not None:
            say(f"The file as it was: {plain(settings.backup_path(found.target))}")
        break
    tell_cap(text)
    if any(hook.event in hooks.REPORTED for hook in hooks.ours(text)):
        say(*prepare_daemon())


def without_ours(found: Settings, receipt: settings.Receipt | None) -> str | None:
    """The file as it would be without us, None for no file: what `uninstall` is to restore."""
    if found.text is None or (receipt and receipt.wrote(found.text)):
        return receipt.before if receipt else None
    before, cap = (receipt.before, receipt.cap) if receipt else (None, None)
    return hooks.without_hooks(found.text, before, cap)


def wanted(text: str, arguments: argparse.Namespace, before: str | None = None) -> str:
    """The text with the hooks that the arguments ask for; before: what it was without any, where that is known."""
    form = arguments.form or hooks.installed_form(text) or "exec"
    names = chosen(hooks.installed_machines(text), arguments)
    reports = names is None and "plates" in machines_in_force(arguments.scope)
    return hooks.with_hooks(text, names, form, arguments.block_cap, before, reports)


def chosen(installed: Sequence[str] | None, arguments: argparse.Namespace) -> Sequence[str] | None:
    """The machines that the argv shall name: those that are installed, with and without those of the arguments.

    None for those that are configured, where that is what is installed and nothing else is asked for.
    """
    if not arguments.added and not arguments.left_out:
        return installed
    added, left_out = set(arguments.added or ()), set(arguments.left_out or ())
    if both := added & left_out:
        raise CommandError(f"{', '.join(sorted(both))}: named by --with and by --without")
    base = set(installed or machines_in_force(arguments.scope))
    names = [name for name in MACHINES if name in (base | added) - left_out]
    if not names:
        raise CommandError("no machine is left to ask. To remove the hooks: tailhook uninstall")
    return names


def machines_in_force(scope: str) -> list[str]:
    """Return the machines of the configuration that is in force where these settings are."""
    if scope == "user":
        return configured_machines(read_sections(user_config(), user_bytes))
    return configured_machines(load_config(project_root({})))


def entries(arguments: argparse.Namespace) -> str:
    """What is put into the settings, alone."""
    return wanted(NEW, arguments).rstrip("\n")


def tell_cap(text: str) -> None:
    """Say so when the host will end a turn before most loops do."""
    if hooks.block_cap(text) is None and not os.environ.get(hooks.CAP):
        say(
            "The host ends a turn after 8 blocks in a row without tool use, whatever a loop's own limit is.",
            "To lift that:  tailhook install --block-cap 0",
        )


def prepare_daemon() -> list[str]:
    """Write the file from which hooks start the daemon. Return lines for the user if it cannot start, else []."""
    write_argv()
    missing = [name for name in DAEMON_NEEDS if importlib.util.find_spec(name) is None]
    if not missing:
        return []
    return [
        f"The events are kept, but no board can show them: the daemon needs {', '.join(missing)}.",
        "To add what it needs:  pip install 'tailhook[serve]'",
    ]


# ---- uninstall ---------------------------------------------------------------


def uninstall(arguments: argparse.Namespace) -> None:
    """Show what would go, ask, and take it out."""
    path = settings.settings_path(arguments.scope)
    while True:
        found = Settings(path)
        receipt = settings.receipt_for(found.target)
        text = without_ours(found, receipt)
        if receipt and receipt.before is None and text is not None and not hooks.values_of(text):
            text = None  # the file is ours, and nothing else came into it
        if text == found.text:
            if receipt:  # of an uninstall that was killed, or of hooks that someone took out
                with settings.lock(found.target):
                    if found.reload().text != found.text:
                        continue
                    settings.forget(found.target)
            say(f"Nothing to remove: no hooks of tailhook are in {plain(path)}.")
            return
        confirm(found, text, arguments)
        with settings.lock(found.target):
            if found.reload().text != found.text:
                continue
            settings.restore(found, text)
        if text is None:
            say(f"{plain(path)} was tailhook's alone and is removed.")
        elif receipt and receipt.wrote(found.text):
            say(f"{plain(path)} is again as it was before, byte for byte.")
        else:
            say(
                f"The hooks are out of {plain(path)}; the rest of it stands.",
                f"The file as it was: {plain(settings.backup_path(found.target))}",
            )
        return


# ---- both --------------------------------------------------------------------


def confirm(found: Settings, text: str | None, arguments: argparse.Namespace) -> None:
    """Show the change; go on where it is wanted, CommandError where it is not."""
    where = plain(found.path) + ("" if found.target == found.path else f" (a link to {plain(found.target)})")
    say(f"{where}:", *difference(found.text or "", text or ""), "")
    if arguments.yes:
        return
    if not sys.stdin.isatty():
        raise CommandError(f"{plain(found.path)} is left as it is: nobody can be asked here. With --yes it is changed.")
    sys.stdout.write("Change the file like this? [y/N] ")
    sys.stdout.flush()
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise CommandError(f"{plain(found.path)} is left as it is")


def difference(old: str, new: str) -> list[str]:
    """The lines that go and come, with three around them, for a person."""
    colours = {"+": 32, "-": 31}
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=3)
    shown = [plain(line[:1] + line[1:].expandtabs(4)) for line in lines if not line.startswith(("---", "+++"))]
    return [coloured(line, colours[line[0]]) if line[:1] in colours else line for line in shown]
