"""`tailhook pool`: the resident hook workers."""

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from tailhook.cli.output import CommandError, Commands, add_json, command, counted, group, print_facts
from tailhook.hook.answer import plain
from tailhook.install.client import NoClientError, client_path, prepare_client
from tailhook.pool.control import RunningPool, call_off_start, find_pools, next_start, pool_start_failure, stop_pools
from tailhook.pool.installation import (
    CLIENT_FILE,
    POOL_ENTRY,
    client_folder_of,
    folder_fault_of,
    real_interpreter,
)
from tailhook.pool.serve import ASKED_FLAG

KEPT = ("HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME")  # as ext/client/start.c


def add(commands: Commands) -> None:
    """Declare the group's commands."""
    pool = group(commands, "pool", "run, show or stop the resident workers that answer hooks", "tailhook pool status")
    command(pool, "serve", serve_here, "run a pool here until it is stopped", "tailhook pool serve")
    add_json(
        command(pool, "status", show_status, "print whether a pool runs, and how large it is", "tailhook pool status")
    )
    add_json(command(pool, "stop", stop, "end the pool; a later hook starts another one", "tailhook pool stop"))


def serve_here(_: argparse.Namespace) -> None:
    """Replace this process by the pool. Raises CommandError if another one runs."""
    folder = own_folder(prepare_client)
    if found := next((pool for pool in find_pools(folder) if pool.has_own_socket), None):
        raise CommandError(f"a pool runs already: {found.place}. To end it:  tailhook pool stop")
    interpreter = real_interpreter()
    words = [interpreter, "-I", "-S", POOL_ENTRY, f"{folder}/", ASKED_FLAG]
    os.execve(interpreter, words, {name: os.environ[name] for name in KEPT if name in os.environ})  # noqa: S606 - our own


def show_status(arguments: argparse.Namespace) -> None:
    """Print the facts about the pool, and about those for other callers."""
    folder = own_folder()
    pools = find_pools(folder)
    own = next((pool for pool in pools if pool.is_own), None)
    facts: dict[str, object] = {"running": own is not None}
    if own is None:
        why = pool_start_failure(folder)
        facts["last_start"] = why or None
        lines = [f"No pool runs; {why_none(folder, pools)}."]
        lines += [f"The last start failed: {plain(why)}"] if why else []
    else:
        facts |= pool_facts(own)
        lines = [f"A pool runs: {describe_pool(own)}.", f"Socket: {plain(own.socket)}"]
        if fault := folder_fault_of(own.socket.rpartition("/")[0]):
            lines.append(f"No hook uses it: {plain(fault)}")
    others = [pool for pool in pools if not pool.is_own]
    facts["others"] = [pool_facts(pool) for pool in others]
    lines += [
        f"Another one, for processes with other rights, another nice value or container: {describe_pool(pool)}."
        for pool in others
    ]
    print_facts(arguments, facts, *lines)


def why_none(folder: str, pools: Sequence[RunningPool]) -> str:
    """Return why no pool answers this process's hooks, or when one will be started. pools: the running ones."""
    if not Path(folder, CLIENT_FILE).exists():
        return "the client is not installed"
    if any(pool.has_own_socket for pool in pools):
        return "none can be started while one runs for processes in another container"
    return next_start(folder)


def pool_facts(pool: RunningPool) -> dict[str, object]:
    """Return the facts about a running pool."""
    workers = None if pool.workers is None else len(pool.workers)
    return {"pid": pool.pid, "socket": pool.socket, "workers": workers, "memory": pool.memory}


def describe_pool(pool: RunningPool) -> str:
    """Return the process of a running pool, and how large it is."""
    words = [pool.place]
    if pool.workers is not None:
        words.append(counted(len(pool.workers), "workers"))
    if pool.memory is not None:
        words.append(f"{pool.memory / (1 << 20):.1f} MiB of memory in all")
    return ", ".join(words)


def stop(arguments: argparse.Namespace) -> None:
    """End the pools of this installation, and wait for their end."""
    folder = own_folder()
    call_off_start(folder)
    found = stop_pools(folder)
    pids = [pool.pid for pool in found]
    line = f"The pool was stopped: process {' and '.join(map(str, pids))}." if found else "No pool runs."
    print_facts(arguments, {"stopped": bool(found), "pids": pids}, line)


def own_folder(find_client: Callable[[], str] = client_path) -> str:
    """Return the folder of this installation's client. Raises CommandError if the package has none.

    find_client: returns the client's path. It is `client_path`, or `prepare_client` to write the client before.
    """
    try:
        return client_folder_of(find_client())
    except NoClientError as error:
        raise CommandError(f"no pool is possible here: {error}") from None
