"""`tailhook install`: the hooks in an agent host's settings."""

import argparse
import importlib.util
import shlex
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tailhook.cli.arguments import describe_unknown
from tailhook.cli.chosen_file import (
    INDENT,
    add_file,
    add_yes,
    chosen_file,
    confirm,
    describe_other_names,
    read_settings,
)
from tailhook.cli.output import CommandError, Commands, command, print_lines, whole
from tailhook.errors import TailhookError, install_command
from tailhook.exits import signals_as_exits
from tailhook.hook.answer import plain
from tailhook.hook.config import read_sections, user_bytes
from tailhook.hook.event import load_config
from tailhook.hook.machines import MACHINES, configured_machines
from tailhook.hook.payload import project_root, user_config
from tailhook.install import hooks, settings
from tailhook.install.client import (
    NoClientError,
    client_folders,
    client_path,
    files_by_client,
    prepare_client,
    remove_clients,
)
from tailhook.install.command import ENTRY, reporting_machines
from tailhook.install.hooks_file import SCOPES, HooksFile
from tailhook.install.survey import Survey, advise_cap, find_caps, survey_host
from tailhook.plates import paths

# Python has exit code 2 for a missing file, and hosts take that for a block.
BEFORE_REMOVAL = (
    "Run `tailhook uninstall` before you remove the package: without its files the host blocks each stop and prompt."
)
DAEMON_NEEDS = ("alembic", "fastapi", "psutil", "sqlalchemy", "sse_starlette", "uvicorn")


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "install",
        install,
        "write the hooks into the settings of an agent host",
        "tailhook install --scope local --with memory --block-cap 0",
    )
    add_file(parser)
    parser.add_argument(
        "--with",
        dest="added",
        action="extend",
        type=parse_machines,
        metavar="MACHINES",
        help="machines to add, separated by commas",
    )
    parser.add_argument(
        "--without",
        dest="left_out",
        action="extend",
        type=parse_machines,
        metavar="MACHINES",
        help="machines to leave out",
    )
    parser.add_argument(
        "--form",
        choices=("exec", "shell"),
        help="how the command is written: exec, a program and its arguments (default if the host can run that); "
        "shell, one shell command",
    )
    parser.add_argument(
        "--cold", action="store_true", help="start Python for each event, without the native client and its pool"
    )
    parser.add_argument(
        "--block-cap",
        type=whole,
        metavar="N",
        help="how often in a row a hook may block before the host ends the turn; 0: no limit (Claude Code, Cursor; "
        "Qwen Code has a limit up to 100)",
    )
    parser.add_argument(
        "--print", action="store_true", dest="print_only", help="print the entries and change no settings"
    )
    add_yes(parser)


def parse_machines(word: str) -> list[str]:
    """Return the machine names in a comma-separated argument. Raises ArgumentTypeError."""
    names = [name for name in word.split(",") if name]
    if unknown := [name for name in names if name not in MACHINES]:
        raise argparse.ArgumentTypeError(describe_unknown("machine", unknown, MACHINES))
    return names


def install(arguments: argparse.Namespace) -> None:
    """Show what would change, ask, and change it. If it is refused, fails or is ended, nothing of it is left."""
    file = chosen_file(arguments)
    had_clients = has_clients()
    text = ""
    try:
        with signals_as_exits():
            client, form, is_client_new = prepare_form(arguments)
            if not arguments.print_only:
                text = change_settings(file, arguments, client, form, is_client_new)
    except BaseException:
        if not had_clients:
            remove_unused_client()
        raise
    if arguments.print_only:
        print_lines(make_settings_text(file, file.new_text, arguments, client).rstrip("\n"))
        return
    report_path()
    report_cap(file, text, arguments.scope)
    if any(hook.event in file.reported_events for hook in hooks.find_ours(file, text)):
        print_lines(*prepare_daemon())
    if arguments.scope == "project":
        report_shared_file(file, text)
    asked = hooks.installed_machines(file, text) or machines_in_force(arguments.scope)
    if unread := [name for name in file.unread_by if name in asked]:
        print_lines(f"{file.describe_unread(unread)}.")
    survey = survey_host(file, machines_in_force("project"))
    report_repeats(survey, file.path(arguments.scope))
    refuse_silence(survey, file.path(arguments.scope))


def report_shared_file(file: HooksFile, text: str) -> None:
    """Print that the hooks in a project's shared file run a program of this computer."""
    argv = hooks.stops(file, text)[0].argv
    program = next((word for word in argv if word.endswith(ENTRY)), argv[0])
    own = "local" if "local" in file.paths else "user"
    print_lines(
        f"The hooks run {plain(program)}. In another person's copy of the project they fail if it is missing there.",
        f"If you share the project, use --scope {own} in place of --scope project.",
    )


def report_repeats(survey: Survey, path: str) -> None:
    """Print which machines the hooks now in the file ask beside those of another file: each stop counts twice."""
    asked: dict[str, list[str]] = {}
    for name, places in survey.repeats.items():
        for there in places if any(there.path == path for there in places) else ():
            if there.path != path:
                asked.setdefault(there.path if there.kind == "file" else path, []).append(name)
    for removable, names in asked.items():
        command = survey.file.install_command(removable).replace("install", "uninstall")
        print_lines(
            f"Hooks of another file ask {', '.join(names)}, too, so each stop counts twice. Keep those of one file.",
            f"To remove the hooks of {plain(removable)}:  {command}",
        )


def refuse_silence(survey: Survey, path: str) -> None:
    """Raise CommandError if the host will run none of the hooks now in the file."""
    ours = [survey.obstacles_of(there) for there in survey.installed if there.path == path and there.asks_stops]
    if ours and all(ours):
        reasons = {obstacle: f"{plain(obstacle.what)}.\n{INDENT}{obstacle.advice}" for obstacle in ours[0]}
        raise CommandError(f"no hook in {plain(path)} will run:\n{INDENT}" + f"\n{INDENT}".join(reasons.values()))


def refuse_second(file: HooksFile, text: str) -> None:
    """Raise CommandError if a plugin and the hooks in the text ask the same machine: each stop would count twice."""
    survey = survey_host(file, machines_in_force("project"))
    wanted = hooks.installed_machines(file, text) or machines_in_force("project")
    for there in survey.installed:
        twice = [name for name in wanted if name in there.machines]
        if there.kind == "plugin" and twice:
            advice = (
                f"Keep one of them. To remove the plugin:  claude plugin uninstall {there.where.rpartition(' ')[2]}"
            )
            if file.can_set_cap:
                advice += f"\n{INDENT}To remove only the host's limit{plain(advise_cap(survey))}"
            what = f"{plain(there.where)} asks {', '.join(twice)} already, so each stop would count twice"
            raise CommandError(f"{what}.\n{INDENT}{advice}")


def change_settings(file: HooksFile, arguments: argparse.Namespace, client: str, form: str, is_client_new: bool) -> str:
    """Show what would change in the settings, ask, and change it. Return their new text.

    client: the path of the native client, "" for the cold form.
    form: a line that names the form.
    is_client_new: whether the client was missing before.

    Raises CommandError, TailhookError and OSError.
    """
    path = file.path(arguments.scope)
    while True:
        found = read_settings(file, path)
        receipt = settings.receipt_for(found.target)
        try:
            text = make_settings_text(file, found.text_or_new, arguments, client, receipt and receipt.before)
        except TailhookError as error:  # the form of a list in TOML
            advice = f"Write each hook below a line [[{file.hooks_member}]] of its own, and remove an empty list."
            raise CommandError(f"{plain(path)}: {error}. {advice}") from None
        if text != found.text:
            refuse_second(file, text)
            confirm(found, text, arguments)
        with settings.settings_lock(found.target), settings.client_lock():  # also removes those of a killed command
            if found.reload().text != found.text:
                continue  # a person or another install has changed it: start again
            if text == found.text:
                print_lines(f"Nothing to change: the hooks are in {plain(path)}.")
                if is_client_new:
                    print_lines(f"The program that they run was missing, and is there again: {plain(client)}")
                return text
            if client and not Path(client).exists():
                prepare_client()  # an uninstall has removed it meanwhile
            cap = arguments.block_cap if arguments.block_cap is not None else receipt and receipt.cap
            settings.write(found, text, settings.without_ours(found, receipt), cap)
        print_lines(f"The hooks are in {plain(path)}. Restart running sessions to use them.", form)
        if file.note:
            print_lines(file.note)
        if found.text is not None:
            print_lines(f"Backup of the old file: {plain(settings.backup_path(found.target))}")
        print_lines(*describe_other_names(found))
        return text


def has_clients() -> bool:
    """Return whether a client exists, or can be neither written nor removed."""
    try:
        return bool(client_folders())
    except OSError:
        return True


def remove_unused_client() -> None:
    """Remove everything that a refused or failed install has written, unless another install ran meanwhile."""
    with suppress(OSError):
        with settings.client_lock():
            if not settings.has_receipts():
                remove_clients(files_by_client())
        settings.remove_empty_folders()


def prepare_form(arguments: argparse.Namespace) -> tuple[str, str, bool]:
    """Write the native client, unless --cold is given.

    Returns its path or "", a line with the form's name, and whether the client was missing.
    """
    if arguments.cold:
        return "", f"Each event starts Python. {BEFORE_REMOVAL}", False
    try:
        was_missing = not Path(client_path()).exists()
        form = "Workers that stay in memory answer the events (tailhook pool status)."
        return prepare_client(), form, was_missing
    except NoClientError as error:
        why = f"because the native client cannot be used: {plain(str(error))}"
        return "", f"Each event starts Python, {why}. {BEFORE_REMOVAL}", False


def make_settings_text(
    file: HooksFile, text: str, arguments: argparse.Namespace, client: str, before: str | None = None
) -> str:
    """Return the text with the hooks that the arguments ask for.

    client: the path of the native client, "" for the cold form.
    before: the text without hooks, if it is known.
    """
    form = arguments.form or hooks.installed_form(file, text)
    names = choose_machines(file, hooks.installed_machines(file, text), arguments)
    reports = names is None and bool(reporting_machines(machines_in_force(arguments.scope)))
    return hooks.with_hooks(file, text, names, form, arguments.block_cap, before, reports, client)


def choose_machines(
    file: HooksFile, installed: Sequence[str] | None, arguments: argparse.Namespace
) -> Sequence[str] | None:
    """Return the machines to name in the argv: the installed ones, changed by the arguments.

    None stands for the configured ones: these are installed, and the arguments change nothing. If only some machines
    can work in the host, those are installed.
    """
    added, left_out = set(arguments.added or ()), set(arguments.left_out or ())
    if file.machines:
        if refused := [name for name in MACHINES if name in added and name not in file.machines]:
            raise CommandError(describe_refusal(file, refused))
        installed = [name for name in installed or file.machines if name in file.machines]
    if not added and not left_out:
        return installed
    if both := added & left_out:
        raise CommandError(f"{', '.join(sorted(both))}: given to both --with and --without")
    base = set(installed or machines_in_force(arguments.scope))
    names = [name for name in MACHINES if name in (base | added) - left_out]
    if not names:
        raise CommandError("no machine would be left. To remove the hooks:  tailhook uninstall")
    return names


def describe_refusal(file: HooksFile, machines: Sequence[str]) -> str:
    """Return why machines cannot work in a host, and which ones can."""
    what = f"{', '.join(machines)} cannot work in {file.host.TITLE}"
    return f"{what}. {file.why_not_others}.\n{INDENT}What works there:  {file.install_command()}"


def machines_in_force(scope: str) -> list[str]:
    """Return the machines of the configuration that applies to these settings: the user's or the project's."""
    if scope == "user":
        return configured_machines(read_sections(user_config(), user_bytes))
    return configured_machines(load_config(project_root({})))


def report_path() -> None:
    """Print how a person gets the command `tailhook` on PATH if it is not there: agents run it by its name."""
    if shutil.which("tailhook"):
        return
    program = Path(sys.executable).with_name("tailhook")
    advice = "Add the folder of its environment to PATH."
    if program.exists():
        make = "" if Path("~/.local/bin").expanduser().is_dir() else "mkdir -p ~/.local/bin && "
        advice = f"To link it into a folder of PATH:  {make}{shlex.join(('ln', '-s', str(program)))} ~/.local/bin/"
    print_lines("The command tailhook is not on PATH, so agents do not find it.", f"{INDENT}{plain(advice)}")


def report_cap(file: HooksFile, text: str, scope: str) -> None:
    """Print that the host ends a turn before most loops end, if it does.

    text: of the file of this scope.
    """
    host = file.host
    is_set = hooks.block_cap(file, text) is not None
    if not is_set and not file.cap_member:  # another file of the host may set it, or the environment
        scopes = ("user",) if scope == "user" else SCOPES
        is_set = bool(find_caps(survey_host(file, machines_in_force(scope), scopes)))
    if not host.BLOCK_CAP or is_set:
        return
    count = f"{host.BLOCK_CAP} {host.BLOCK_CAP_COUNTS}"
    print_lines(
        f"{host.TITLE} ends a turn after {count}, even if a loop's own limit is higher.",
        f"{file.cap_advice}:  {file.install_command(file.path(scope))} --block-cap {file.highest_cap}"
        if file.can_set_cap
        else "When this happens, send the agent another prompt; the loop continues.",
    )


def prepare_daemon() -> list[str]:
    """Write the file from which hooks start the daemon. Return lines for the user if it cannot start, else []."""
    paths.write_argv()
    missing = [name for name in DAEMON_NEEDS if importlib.util.find_spec(name) is None]
    if not missing:
        return []
    return [
        f"Events are recorded, but no board can show them until these packages are installed: {', '.join(missing)}.",
        f"To install them:  {install_command('tailhook[serve]')}",
    ]
