"""`tailhook install` and `tailhook uninstall`: the hooks in an agent host's settings."""

import argparse
import importlib.util
import os
import posix
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tailhook.cli.changes import describe_change
from tailhook.cli.output import CommandError, Commands, UsageError, command, counted, print_lines, whole
from tailhook.hook.answer import plain
from tailhook.hook.config import read_sections, user_bytes
from tailhook.hook.event import load_config
from tailhook.hook.hosts import DEFAULT, NAMES
from tailhook.hook.idle import stale_after
from tailhook.hook.machines import MACHINES, configured_machines
from tailhook.hook.payload import project_folders, project_root, user_config
from tailhook.install import hooks, settings
from tailhook.install.client import NoClientError, client_folders, prepare_client, remove_clients
from tailhook.install.command import client_of, reporting_machines
from tailhook.install.hooks import SettingsError
from tailhook.install.hooks_file import SCOPES, HooksFile, hooks_file_of
from tailhook.install.settings import Settings
from tailhook.install.survey import Survey, advise_cap, survey_host, surveys_here, why_not_driven
from tailhook.machines import idle, ralph
from tailhook.plates import paths
from tailhook.pool.control import is_running
from tailhook.pool.installation import POOLS
from tailhook.stores import loop as loops
from tailhook.stores.atomic import check_folder, state_folder_path
from tailhook.stores.ralph import find_ralph

INDENT = " " * len("tailhook: ")
DAEMON_ENDS_S = 10.0
DAEMON_NEEDS = ("alembic", "fastapi", "psutil", "sqlalchemy", "sse_starlette", "uvicorn")


def add(commands: Commands) -> None:
    """Declare the commands."""
    parser = command(
        commands,
        "install",
        install,
        "write the hooks into the settings of an agent host",
        "tailhook install --scope project --with memory --block-cap 0",
    )
    add_file(parser)
    parser.add_argument(
        "--with", dest="added", type=parse_machines, metavar="MACHINES", help="machines to add, separated by commas"
    )
    parser.add_argument(
        "--without", dest="left_out", type=parse_machines, metavar="MACHINES", help="machines to leave out"
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
        help="how often in a row a hook may block before the host ends the turn; 0: no limit (Claude Code and Cursor)",
    )
    parser.add_argument(
        "--print", action="store_true", dest="print_only", help="print the entries and change no settings"
    )
    add_yes(parser)

    parser = command(
        commands,
        "uninstall",
        uninstall,
        "remove the hooks from the settings of an agent host",
        "tailhook uninstall --scope project",
    )
    add_file(parser)
    add_yes(parser)


def add_file(parser: argparse.ArgumentParser) -> None:
    """Add the flags that choose the file."""
    about = f"the agent host: {', '.join(NAMES)} (default: {DEFAULT})"
    parser.add_argument("--host", type=parse_host, metavar="HOST", default=DEFAULT, help=about)
    about = "which settings file: user (default), project (shared), or local (this project, not shared)"
    parser.add_argument("--scope", choices=SCOPES, default="user", help=about)


def parse_host(word: str) -> str:
    """Return the name of a host. Raises ArgumentTypeError, with the name that was probably meant."""
    if word in NAMES:
        return word
    meant = next(
        (f" Did you mean {name}?" for name in NAMES if word and (name.startswith(word) or word.startswith(name))), ""
    )
    raise argparse.ArgumentTypeError(f"unknown host: {word}.{meant} The hosts are: {', '.join(NAMES)}")


def chosen_file(arguments: argparse.Namespace) -> HooksFile:
    """Return the description of the chosen host's hooks file.

    Raises UsageError if the host does not have what the arguments ask for.
    """
    file = hooks_file_of(arguments.host)
    title = file.host.TITLE
    if arguments.scope not in file.paths:
        raise UsageError(f"{title} has no file for --scope {arguments.scope}; it has: {', '.join(file.paths)}")
    if getattr(arguments, "form", None) == "exec" and not file.has_exec_form:
        raise UsageError(f"{title} runs hooks as shell commands only. Leave out --form exec.")
    if getattr(arguments, "block_cap", None) is not None and not file.can_set_cap:
        reason = "cannot be changed" if file.host.BLOCK_CAP else "does not exist"
        raise UsageError(f"{title}: a limit on blocks in a row {reason}. Leave out --block-cap.")
    return file


def add_yes(parser: argparse.ArgumentParser) -> None:
    """Add the flag that skips the question."""
    parser.add_argument("--yes", action="store_true", help="change the file without asking")


def parse_machines(word: str) -> list[str]:
    """Return the machine names in a comma-separated argument. Raises ArgumentTypeError."""
    names = [name for name in word.split(",") if name]
    if unknown := [name for name in names if name not in MACHINES]:
        raise argparse.ArgumentTypeError(
            f"unknown machine: {', '.join(unknown)}. The machines are: {', '.join(MACHINES)}"
        )
    return names


# ---- install -----------------------------------------------------------------


def install(arguments: argparse.Namespace) -> None:
    """Show what would change, ask, and change it. Nothing is left of an install that is refused or fails."""
    file = chosen_file(arguments)
    had_clients = has_clients()
    client, form = prepare_form(arguments)
    if arguments.print_only:
        print_lines(make_settings_text(file, settings.NEW, arguments, client).rstrip("\n"))
        return
    try:
        text = change_settings(file, arguments, client, form)
    except BaseException:
        if not had_clients:
            remove_unused_client()
        raise
    report_cap(file, text)
    if any(hook.event in file.reported_events for hook in hooks.find_ours(file, text)):
        print_lines(*prepare_daemon())
    refuse_silence(file, file.path(arguments.scope))


def refuse_silence(file: HooksFile, path: str) -> None:
    """Raise CommandError if the host runs none of the hooks that are now in the file."""
    survey = survey_host(file, machines_in_force("project"))
    ours = [survey.obstacles_of(there) for there in survey.installed if there.path == path and there.asks_stops]
    if ours and all(ours):
        reasons = {obstacle: f"{plain(obstacle.what)}.\n{INDENT}{obstacle.advice}" for obstacle in ours[0]}
        raise CommandError(f"no hook in {plain(path)} will run:\n{INDENT}" + f"\n{INDENT}".join(reasons.values()))


def refuse_second(file: HooksFile, text: str) -> None:
    """Raise CommandError if a plugin asks a machine that the hooks in the text ask: each stop would count twice."""
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


def change_settings(file: HooksFile, arguments: argparse.Namespace, client: str, form: str) -> str:
    """Show what would change in the settings, ask, and change it. Return their new text.

    client: the path of the native client, "" for the cold form.
    form: a line that names the form.

    Raises CommandError, TailhookError and OSError.
    """
    path = file.path(arguments.scope)
    while True:
        found = Settings(file, path)
        receipt = settings.receipt_for(found.target)
        text = make_settings_text(file, found.text_or_new, arguments, client, receipt and receipt.before)
        if text == found.text:
            print_lines(f"Nothing to change: the hooks are in {plain(path)}.")
            return text
        refuse_second(file, text)
        confirm(found, text, arguments)
        with settings.settings_lock(found.target), settings.client_lock():
            if found.reload().text != found.text:
                continue  # a person or another install has changed it: start again
            if client and not Path(client).exists():
                prepare_client()  # an uninstall has removed it meanwhile
            cap = arguments.block_cap if arguments.block_cap is not None else receipt and receipt.cap
            settings.write(found, text, without_ours(found, receipt), cap)
        print_lines(f"The hooks are in {plain(path)}. Restart running sessions to use them.", form)
        if file.note:
            print_lines(file.note)
        if found.text is not None:
            print_lines(f"Backup of the old file: {plain(settings.backup_path(found.target))}")
        print_lines(*describe_other_names(found))
        return text


def describe_other_names(found: Settings) -> list[str]:
    """Return a line about the other hard links of a file that was replaced, if it had any."""
    if found.names < 2:
        return []
    others = counted(found.names - 1, "other names")
    return [f"The old file has {others} (hard links) and stays as it was there; only {plain(found.target)} is changed."]


def has_clients() -> bool:
    """Return whether there is a client, or whether none can be written or removed."""
    try:
        return bool(client_folders())
    except OSError:
        return True


def remove_unused_client() -> None:
    """Remove what an install has written before it was refused or failed, unless another install has come meanwhile."""
    with suppress(OSError):
        with settings.client_lock():
            if not settings.has_receipts():
                remove_clients(files_by_client())
        settings.remove_empty_folders()


def without_ours(found: Settings, receipt: settings.Receipt | None) -> str | None:
    """Return the file's text without our hooks, which `uninstall` restores; None for no file."""
    if found.text is None or (receipt and receipt.wrote(found.text)):
        return receipt.before if receipt else None
    before, cap = (receipt.before, receipt.cap) if receipt else (None, None)
    return hooks.without_hooks(found.file, found.text, before, cap)


def prepare_form(arguments: argparse.Namespace) -> tuple[str, str]:
    """Write the native client unless --cold is given. Return its path, or "", and a line that names the form."""
    if arguments.cold:
        return "", "Each event starts Python: the cold form."
    try:
        return prepare_client(), "A native client hands each event to resident workers: the warm form."
    except NoClientError as error:
        return "", f"Each event starts Python, the cold form, because {plain(str(error))}."


def make_settings_text(
    file: HooksFile, text: str, arguments: argparse.Namespace, client: str, before: str | None = None
) -> str:
    """Return the text with the hooks that the arguments ask for.

    client: the path of the native client, "" for the cold form.
    before: the text without hooks, if it is known.
    """
    form = arguments.form or hooks.installed_form(file, text)
    names = choose_machines(hooks.installed_machines(file, text), arguments)
    reports = names is None and bool(reporting_machines(machines_in_force(arguments.scope)))
    return hooks.with_hooks(file, text, names, form, arguments.block_cap, before, reports, client)


def choose_machines(installed: Sequence[str] | None, arguments: argparse.Namespace) -> Sequence[str] | None:
    """Return the machines that the argv must name: the installed ones, changed by the arguments.

    None stands for those that are configured: they are installed, and the arguments change nothing.
    """
    if not arguments.added and not arguments.left_out:
        return installed
    added, left_out = set(arguments.added or ()), set(arguments.left_out or ())
    if both := added & left_out:
        raise CommandError(f"{', '.join(sorted(both))}: given to both --with and --without")
    base = set(installed or machines_in_force(arguments.scope))
    names = [name for name in MACHINES if name in (base | added) - left_out]
    if not names:
        raise CommandError("no machine would be left. To remove the hooks:  tailhook uninstall")
    return names


def machines_in_force(scope: str) -> list[str]:
    """Return the machines of the configuration that applies to these settings: the user's or the project's."""
    if scope == "user":
        return configured_machines(read_sections(user_config(), user_bytes))
    return configured_machines(load_config(project_root({})))


def report_cap(file: HooksFile, text: str) -> None:
    """Print that the host ends a turn before most loops end, if it does."""
    host = file.host
    variable = host.BLOCK_CAP_VARIABLE
    is_set = hooks.block_cap(file, text) is not None or bool(variable and os.environ.get(variable))
    if not host.BLOCK_CAP or is_set:
        return
    count = f"{host.BLOCK_CAP} {host.BLOCK_CAP_COUNTS}"
    print_lines(
        f"{host.TITLE} ends a turn after {count}, even if a loop's own limit is higher.",
        f"To remove the host's limit:  {file.install_command} --block-cap 0"
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
        "To install them:  pip install 'tailhook[serve]'",
    ]


# ---- uninstall ---------------------------------------------------------------


def uninstall(arguments: argparse.Namespace) -> None:
    """Show what would be removed, ask, and remove it."""
    file = chosen_file(arguments)
    path = file.path(arguments.scope)
    use_state_of_installed(file, path)
    had_hooks = True
    while True:
        found = Settings(file, path)
        receipt = settings.receipt_for(found.target)
        text = without_ours(found, receipt)
        if receipt and receipt.before is None and text is not None and hooks.is_empty(file, text):
            text = None  # the file is ours, and nothing else was added
        if text == found.text:
            if receipt:  # an uninstall was killed, or a person has removed the hooks
                with settings.settings_lock(found.target):
                    if found.reload().text != found.text:
                        continue
                    settings.forget(found.target)
            had_hooks = bool(receipt)
            print_lines(f"Nothing to remove: {plain(path)} has no tailhook hooks.")
            break
        confirm(found, text, arguments)
        with settings.settings_lock(found.target):
            if found.reload().text != found.text:
                continue
            settings.restore(found, text)
        print_lines(*describe_other_names(found))
        if text is None:
            print_lines(f"{plain(path)} contained nothing else and was removed.")
        elif receipt and receipt.wrote(found.text):
            print_lines(f"{plain(path)} is restored, byte for byte.")
        else:
            print_lines(
                f"The hooks were removed from {plain(path)}; the rest of it stays.",
                f"Backup of the old file: {plain(settings.backup_path(found.target))}",
            )
        break
    if not settings.has_receipts() and (had_hooks or may_remove_client(arguments)):
        with settings.client_lock():
            if not settings.has_receipts():  # no install has come meanwhile
                remove_rest()
    print_lines(*describe_loops())
    saved = settings.remove_empty_folders()
    if saved and not settings.has_receipts():
        print_lines(f"What hooks, loops and the daemon have saved stays: {plain(saved)}")


def describe_loops() -> list[str]:
    """Return lines about this project's loops, which stay: whether no hook continues them any more."""
    surveys = surveys_here()
    lines = []
    with suppress(OSError):
        folders = list(project_folders({}))
        found = loops.find_loop(folders)
        if found and idle.is_live(found.state, time.time(), stale_after(load_config(folders[0]))):
            lines += describe_loop(surveys, "idle", found.path, "loop")
        elif found:
            lines.append(f"What the loops of this project have saved stays: {plain(found.path)}")
        page = find_ralph(folders)
        if page and ralph.is_live(page.state):
            lines += describe_loop(surveys, "ralph", page.path, "ralph")
    return lines


def describe_loop(surveys: Sequence[Survey], machine: str, path: str, group: str) -> list[str]:
    """Return a line about a running loop if no hook continues it any more.

    group: of the command that ends it.
    """
    if not why_not_driven(surveys, machine):
        return []
    return [
        f"A loop is still running in {plain(path)}, and no hook continues it now. To end it:  tailhook {group} cancel"
    ]


def use_state_of_installed(file: HooksFile, path: str) -> None:
    """Let this process use the private state folder that the hooks were installed with.

    XDG_STATE_HOME may name another one now. Their client, its pool, and the receipts of what was installed are there.
    Only the user's own settings are trusted with this: a project's file may have come with a clone, and the processes
    behind the sockets of that folder will be ended.
    """
    is_own = os.path.realpath(path) == os.path.realpath(file.path("user"))
    with suppress(OSError, SettingsError, ValueError):
        ours = hooks.find_ours(file, Settings(file, path).text_or_new)
        clients = {client for hook in ours if (client := client_of(hook.argv))}
        (state,) = {client.rpartition(f"/{POOLS}/")[0] for client in clients}
        if state == state_folder_path() or not check_folder(state):
            return
        home = state.rpartition("/")[0]
        if not is_own:
            print_lines(f"The hooks of this file use a native client in {plain(state)}, which stays.")
        else:
            print_lines(f"The hooks were installed with XDG_STATE_HOME={plain(home)}, which is used here, too.")
            os.environ["XDG_STATE_HOME"] = home
            posix.environ[b"XDG_STATE_HOME"] = os.fsencode(home)  # which does not follow os.environ


def may_remove_client(arguments: argparse.Namespace) -> bool:
    """Ask whether to remove the client, if there is one: hooks that were written by hand may use it."""
    if arguments.yes or not client_folders(files_by_client()):
        return True
    if sys.stdin.isatty():
        return is_confirmed("Remove the native client, too? Hooks that were written by hand may use it.")
    print_lines("The native client stays, as hooks that were written by hand may use it. To remove it, add --yes.")
    return False


def remove_rest() -> None:
    """Remove the clients that no known hook uses, and end the pools and the daemon. Print what was done."""
    using = files_by_client()
    if remove_clients(using):
        print_lines("The pool was ended and the native client removed.")
    for client, path in using.items():
        print_lines(f"{plain(client)} stays: {plain(path)} has hooks that use it.")
    print_lines(*end_daemon())


def files_by_client() -> dict[str, str]:
    """Return the clients that hooks of the user or of this project use, each with a file that has such hooks."""
    found: dict[str, str] = {}
    for file in map(hooks_file_of, NAMES):
        for path in map(file.path, file.paths):
            with suppress(OSError, SettingsError, ValueError):
                text = Settings(file, path).text_or_new
                found |= {client: path for hook in hooks.find_ours(file, text) if (client := client_of(hook.argv))}
    return found


def end_daemon() -> list[str]:
    """End the daemon if a hook started it, and keep hooks from starting another. Return lines for the user."""
    lines = []
    pid, kind = paths.find_lock_owner()
    if pid and paths.is_locked():
        advice = f"(process {pid}). To end it:  kill {pid}"
        if kind == paths.WITH_PORT:
            lines = [f"The daemon that you started still runs {advice}"]
        elif end_daemon_process(pid):
            lines = [f"The daemon was ended. What it has recorded stays in {plain(str(paths.state_path()))}."]
        else:
            lines = [f"The daemon did not end within {DAEMON_ENDS_S:g} s {advice}"]
    paths.remove_argv()  # which a daemon that starts writes again
    return lines


def end_daemon_process(pid: int) -> bool:
    """End the daemon's process; return whether it has ended in time."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + DAEMON_ENDS_S
    while paths.is_locked() or is_running(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


# ---- both --------------------------------------------------------------------


def confirm(found: Settings, text: str | None, arguments: argparse.Namespace) -> None:
    """Show the change and ask. Raises CommandError if it is not wanted."""
    where = plain(found.path) + ("" if found.target == found.path else f" (a link to {plain(found.target)})")
    print_lines(f"{where}:", *describe_change(found.file, found.text or "", text or ""), "")
    if arguments.yes:
        return
    if not sys.stdin.isatty():
        raise CommandError(
            f"{plain(found.path)} was not changed: no terminal to ask for confirmation. Use --yes to skip the question."
        )
    if not is_confirmed("Write these changes?"):
        raise CommandError(f"{plain(found.path)} was not changed.")


def is_confirmed(question: str) -> bool:
    """Ask a question on the terminal, and return whether the answer is yes."""
    sys.stdout.write(f"{question} [y/N] ")
    sys.stdout.flush()
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        answer = ""
    return answer.strip().lower() in ("y", "yes")
