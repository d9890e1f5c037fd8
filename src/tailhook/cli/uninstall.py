"""`tailhook uninstall` removes the hooks from a host's settings, and with the last ones the files that hooks need."""

import argparse
import os
import posix
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from tailhook.cli.chosen_file import (
    add_file,
    add_yes,
    ask_to_confirm,
    chosen_file,
    confirm,
    describe_other_names,
    read_settings,
)
from tailhook.cli.git_exclude import saved_paths
from tailhook.cli.output import Commands, command, print_lines
from tailhook.hook.answer import plain
from tailhook.hook.event import load_config
from tailhook.hook.idle import stale_after
from tailhook.hook.payload import project_folders, project_root
from tailhook.install import hooks, settings
from tailhook.install.client import client_folders, files_by_client, remove_clients
from tailhook.install.command import client_of
from tailhook.install.hooks import SettingsError
from tailhook.install.hooks_file import HooksFile
from tailhook.install.settings import Settings, without_ours
from tailhook.install.survey import Survey, surveys_here, why_not_driven
from tailhook.machines import idle_briefing, ralph_briefing
from tailhook.plates import paths
from tailhook.pool.control import is_running
from tailhook.pool.installation import POOLS
from tailhook.stores import loop as loops
from tailhook.stores.atomic import check_folder, state_folder_path
from tailhook.stores.ralph import find_ralph

DAEMON_STARTS_S = DAEMON_ENDS_S = 10.0


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands,
        "uninstall",
        uninstall,
        "remove the hooks from the settings of an agent host",
        "tailhook uninstall --scope project",
    )
    add_file(parser)
    add_yes(parser)


def uninstall(arguments: argparse.Namespace) -> None:
    """Show what would be removed, ask, and remove it."""
    project_root({})  # it fails in a folder that was removed: then nothing is changed
    file = chosen_file(arguments)
    path = file.path(arguments.scope)
    use_state_of_installed(file, path)
    had_hooks = True
    while True:
        found = read_settings(file, path)
        receipt = settings.receipt_for(found.target)
        text = without_ours(found, receipt)
        if text == found.text:
            with settings.settings_lock(found.target):  # also removes the lock and the receipt of a killed command
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
    gone = settings.find_gone_files()
    if (gone or not settings.has_receipts()) and ((had_hooks and not gone) or ask_to_remove_client(arguments, gone)):
        with settings.client_lock():
            for target in settings.find_gone_files():
                settings.forget(target)
            if not settings.has_receipts():  # no install has come meanwhile
                remove_rest()
    print_lines(*describe_loops())
    saved = settings.remove_empty_folders()
    if saved and not settings.has_receipts():
        print_lines(f"What hooks, loops and the daemon have saved stays: {plain(saved)}")


def describe_loops() -> list[str]:
    """Return lines about what stays in this project: loops that no hook continues any more, and other files."""
    surveys = surveys_here()
    lines = []
    with suppress(OSError):
        folders = list(project_folders({}))
        found = loops.find_loop(folders)
        if found and idle_briefing.is_live(found.state, time.time(), stale_after(load_config(folders[0]))):
            lines += describe_loop(surveys, "idle", found.path, "loop")
        page = find_ralph(folders)
        if page and ralph_briefing.is_live(page.state):
            lines += describe_loop(surveys, "ralph", page.path, "ralph")
        paths = map(plain, dict.fromkeys(([found.path] if found else []) + [*saved_paths(folders)]))
        saved = [path for path in paths if not any(path in line for line in lines)]
        what = "What loops and hooks of this project have saved stays:"
        lines += [f"{what} {path}" for path in saved] if len(saved) < 2 else [what, *(f"  {path}" for path in saved)]
    return lines


def describe_loop(surveys: Sequence[Survey], machine: str, path: str, group: str) -> list[str]:
    """Return a line about a running loop if no hook continues it any more.

    group: of the command to end it.
    """
    if not why_not_driven(surveys, machine):
        return []
    return [
        f"A loop is still running in {plain(path)}, and no hook continues it now. To end it:  tailhook {group} cancel"
    ]


def use_state_of_installed(file: HooksFile, path: str) -> None:
    """Let this process use the private state folder of the installed hooks.

    XDG_STATE_HOME may name another one now. The hooks' client, its pool, and the receipts of the installation are
    there. Only the user's own settings may name it: a project's file may come with a clone, and the processes behind
    that folder's sockets will be ended.
    """
    is_own = os.path.realpath(path) == os.path.realpath(file.path("user"))
    with suppress(OSError, SettingsError, ValueError):
        ours = hooks.find_ours(file, Settings(file, path, is_changed=False).text_or_new)
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
            posix.environ[b"XDG_STATE_HOME"] = os.fsencode(home)  # it does not follow os.environ


def ask_to_remove_client(arguments: argparse.Namespace, gone: Sequence[str]) -> bool:
    """Ask whether to remove the client, if there is one: hand-written hooks may use it, or those of a moved project.

    gone: the hooks files that are not at their place any more.
    """
    print_lines(*(f"Hooks were installed in {plain(path)}, too, and this file is gone." for path in gone))
    if arguments.yes or not client_folders(files_by_client()):
        return True
    whose = "in a file that was moved" if gone else "that were written by hand"
    if sys.stdin.isatty():
        return ask_to_confirm(f"Remove the native client, too? Hooks {whose} may use it.")
    print_lines(f"The native client stays, as hooks {whose} may use it. To remove it, add --yes.")
    return False


def remove_rest() -> None:
    """Remove the clients that no known hook uses, and end the pools and the daemon. Print the results."""
    using = files_by_client()
    if remove_clients(using):
        print_lines("The pool was ended and the native client removed.")
    for client, path in using.items():
        print_lines(f"{plain(client)} stays: {plain(path)} has hooks that use it.")
    print_lines(*end_daemon())


def end_daemon() -> list[str]:
    """End the daemon if a hook started it, and keep hooks from starting another. Return lines for the user."""
    lines = []
    paths.wait_for_start(DAEMON_STARTS_S)
    pid, kind = paths.find_lock_owner()
    if pid and paths.is_locked():
        advice = f"(process {pid}). To end it:  kill {pid}"
        if kind == paths.WITH_PORT:
            lines = [f"The daemon that you started still runs {advice}"]
        elif end_daemon_process(pid):
            lines = [f"The daemon was ended. What it has recorded stays in {plain(str(paths.state_path()))}."]
        else:
            lines = [f"The daemon did not end within {DAEMON_ENDS_S:g} s {advice}"]
    paths.remove_argv()
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
