"""Looks at the children of a host: an approved command, and running hooks."""

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil

from tailhook.machines.quoting import ELLIPSIS
from tailhook.machines.secrets import MASK
from tailhook.plates.db import Moment
from tailhook.stores.atomic import read_file
from tailhook.stores.processes import process_start

HOOK = re.compile(r"tailhook-hook\b|tailhook/hook/entry\.py")  # in the command line of a hook, also behind `sh -c`
WORDS = re.compile(r"\w+")  # a shell in between may quote all other characters


def has_begun(host: int, command: str, since: Moment) -> bool:
    """Return whether a process of the host runs a command: then a person has approved it, and no hook reports that.

    host: the process id of the agent's host.
    command: as reported: masked, and cut if it is long.
    since: an event before the process.
    """
    wanted = known_words(command)
    return bool(wanted) and any(contains(WORDS.findall(line), wanted) for line in lines_of_children(host, since))


def is_reporting(host: int) -> bool:
    """Return whether a hook of the host runs, so that an event is still to come."""
    return any(HOOK.search(line) for line in lines_of_children(host, Moment(0, 0)))


def known_words(command: str) -> list[str]:
    """Return the words in the longest part of a command without a masked secret."""
    parts = [WORDS.findall(part) for part in command.split(MASK)]
    if command.endswith(ELLIPSIS):  # the last word may be cut
        parts[-1] = parts[-1][:-1]
    return max(parts, key=len)


def contains(words: list[str], wanted: list[str]) -> bool:
    """Return whether some words stand in a list, one after the other."""
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words) - len(wanted) + 1))


def lines_of_children(host: int, since: Moment) -> Iterator[str]:
    """Yield the command lines of a process's children that started after an event."""
    if sys.platform == "linux":
        for child in children_of_threads(host):
            started_ms = process_start(child) * 1000 / os.sysconf("SC_CLK_TCK")
            if since.mono is not None and started_ms >= since.mono:
                with contextlib.suppress(OSError):
                    yield read_file(f"/proc/{child}/cmdline").decode("utf-8", "replace")
        return
    with contextlib.suppress(psutil.Error):
        for process in psutil.Process(host).children():
            with contextlib.suppress(psutil.Error):
                if process.create_time() * 1000 >= since.ts:
                    yield " ".join(process.cmdline())


def children_of_threads(pid: int) -> Iterator[int]:
    """Yield the ids of the processes that the threads of a process have started (proc(5))."""
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                yield from map(int, (thread / "children").read_text().split())
    except OSError:
        return
