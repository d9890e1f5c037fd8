"""Runs other programs for a bounded time, without the daemon's secrets in their environment."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tailhook.stores.daemon import DATABASE_VARIABLE, TOKEN_VARIABLE, environment_without


class ProgramEnd(NamedTuple):
    """How a program ended.

    errors: what it wrote to stderr; empty if that was not read.
    """

    status: int
    errors: bytes


async def run_program(
    argv: Sequence[str],
    variables: Mapping[str, str],
    timeout_s: float,
    *,
    given: bytes = b"",
    folder: Path | None = None,
    reads_errors: bool = False,
) -> ProgramEnd:
    """Run a program and return how it ended. If that takes too long, it and its children are killed.

    variables: further environment variables.
    given: its stdin.
    folder: where it runs, if not here.

    Raises OSError if it cannot be started, and TimeoutError.
    """
    environment = dict(environment_without(TOKEN_VARIABLE, DATABASE_VARIABLE))
    environment |= {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=pipe,
        stdout=null,
        stderr=pipe if reads_errors else null,
        env=environment,
        cwd=folder,
        start_new_session=True,
    )
    try:
        _, errors = await asyncio.wait_for(process.communicate(given), timeout_s)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return ProgramEnd(process.returncode or 0, errors or b"")
