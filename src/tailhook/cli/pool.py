"""`tailhook pool`: the resident hook workers."""

import argparse
import os

from tailhook.cli.output import CommandError, Commands, add_json, command, counted, group, print_facts
from tailhook.hook.answer import plain
from tailhook.install.client import NoClientError, client_path, prepare_client
from tailhook.pool.control import find_pool, pool_start_failure, stop_pool
from tailhook.pool.installation import POOL_ENTRY, client_folder_of, real_interpreter
from tailhook.pool.serve import ASKED_FLAG


def add(commands: Commands) -> None:
    """Declare the group's commands."""
    pool = group(commands, "pool", "the resident workers that answer hooks", "tailhook pool status")
    command(pool, "serve", serve_here, "run a pool here until it is stopped", "tailhook pool serve")
    add_json(
        command(pool, "status", show_status, "print whether a pool runs, and how large it is", "tailhook pool status")
    )
    add_json(command(pool, "stop", stop, "end the pool; hooks then start Python again", "tailhook pool stop"))


def serve_here(_: argparse.Namespace) -> None:
    """Replace this process by the pool. Raises CommandError if another one runs."""
    folder = prepared_folder()
    if found := find_pool(folder):
        raise CommandError(f"a pool runs already: process {found.pid}. To end it:  tailhook pool stop")
    interpreter = real_interpreter()
    os.execv(interpreter, [interpreter, "-I", "-S", POOL_ENTRY, f"{folder}/", ASKED_FLAG])  # noqa: S606 - our own program


def show_status(arguments: argparse.Namespace) -> None:
    """Print the facts about the pool."""
    folder = own_folder()
    found = find_pool(folder)
    if found is None:
        why = pool_start_failure(folder)
        facts: dict[str, object] = {"running": False, "last_start": why or None}
        lines = ["No pool runs. The next hook starts one if the client is installed."]
        print_facts(arguments, facts, *lines, *([f"The last start failed: {plain(why)}"] if why else []))
        return
    workers = None if found.workers is None else len(found.workers)
    facts = {"running": True, "pid": found.pid, "socket": found.socket, "workers": workers, "memory": found.memory}
    words = [f"A pool runs: process {found.pid}"]
    if workers is not None:
        words.append(counted(workers, "workers"))
    if found.memory is not None:
        words.append(f"{found.memory / (1 << 20):.1f} MiB of memory in all")
    print_facts(arguments, facts, f"{', '.join(words)}.", f"Socket: {plain(found.socket)}")


def stop(arguments: argparse.Namespace) -> None:
    """End the pool, and wait for its end."""
    found = stop_pool(own_folder())
    line = f"The pool was stopped: process {found.pid}." if found else "No pool runs."
    print_facts(arguments, {"stopped": found is not None, "pid": found.pid if found else None}, line)


def own_folder() -> str:
    """Return the folder of this installation's client. Raises CommandError if the package has none."""
    try:
        return client_folder_of(client_path())
    except NoClientError as error:
        raise CommandError(f"no pool is possible here: {error}") from None


def prepared_folder() -> str:
    """Return the folder of this installation's client, once it is written. Raises CommandError."""
    try:
        return client_folder_of(prepare_client())
    except NoClientError as error:
        raise CommandError(f"no pool is possible here: {error}") from None
