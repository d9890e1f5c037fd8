"""Which agent runs this process, if one agent was started in the shell of another. Only on Linux: it reads /proc."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailhook.hosts.protocols import Host


def ancestors() -> "Iterator[int]":
    """Yield the ids of this process's parent, of the parent's parent, and so on, without 1."""
    pid = os.getppid()
    while pid > 1:
        yield pid
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
        except OSError:
            return


def innermost_host(hosts: "Sequence[Host]") -> "Host":
    """Return the host whose agent runs this process.

    An agent in another one's shell has the other one's variable, and gives its own to its commands only. So it is the
    nearest ancestor without one of the variables.

    hosts: those that have their variable in this process's environment; at least one. The first is returned if the
        ancestors are unknown.
    """
    with suppress(OSError):  # one of them is another user's
        for pid in ancestors():
            names = {entry.partition(b"=")[0] for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")}
            if without := [host for host in hosts if host.SHELL_VARIABLE.encode() not in names]:
                return without[0]
    return hosts[0]
