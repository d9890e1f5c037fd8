"""Runs other programs for a bounded time, without the daemon's secrets in their environment."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tailhook.stores.daemon import DATABASE_VARIABLE, TOKEN_VARIABLE, environment_without

MAX_ERROR_BYTES = 64 << 10  # that are kept of stderr
STREAM_PIECE_BYTES = 64 << 10  # of a stream at once


class ProgramEnd(NamedTuple):
    """How a program ended.

    output, errors: the beginning of what it wrote to stdout and to stderr; empty if that was not read.
    """

    status: int
    output: bytes
    errors: bytes


async def run_program(
    argv: Sequence[str],
    variables: Mapping[str, str],
    timeout_s: float,
    *,
    given: bytes = b"",
    folder: Path | None = None,
    max_output_bytes: int = 0,
    reads_errors: bool = False,
) -> ProgramEnd:
    """Run a program and return how it ended. If that takes too long, it and its children are killed.

    variables: further environment variables.
    given: its stdin.
    folder: where it runs, if not here.
    max_output_bytes: how much is kept of its stdout.

    Raises OSError if it cannot be started, and TimeoutError.
    """
    environment = dict(environment_without(TOKEN_VARIABLE, DATABASE_VARIABLE))
    environment |= {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=pipe,
        stdout=pipe if max_output_bytes else null,
        stderr=pipe if reads_errors else null,
        env=environment,
        cwd=folder,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(timeout_s):
            output, errors, *_ = await asyncio.gather(
                read_beginning(process.stdout, max_output_bytes),
                read_beginning(process.stderr, MAX_ERROR_BYTES),
                give(process.stdin, given),
                process.wait(),
            )
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.killpg(process.pid, signal.SIGKILL)
            await wait_whole(process)
    return ProgramEnd(process.returncode or 0, output, errors)


async def wait_whole(process: asyncio.subprocess.Process) -> None:
    """Wait until a killed program has ended, also if this task is cancelled meanwhile."""
    ending = asyncio.ensure_future(process.wait())
    is_cancelled = False
    while not ending.done():
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            is_cancelled = True
    if is_cancelled:
        raise asyncio.CancelledError


async def read_beginning(stream: asyncio.StreamReader | None, max_bytes: int) -> bytes:
    """Read a stream to its end, and return its first bytes. Returns b"" for None."""
    found = bytearray()
    while stream and (piece := await stream.read(STREAM_PIECE_BYTES)):
        found += piece[: max_bytes - len(found)]
    return bytes(found)


async def give(stream: asyncio.StreamWriter | None, given: bytes) -> None:
    """Write a program's stdin and close it. The program may end without reading it."""
    if stream:
        with contextlib.suppress(ConnectionError):
            stream.write(given)
            await stream.drain()
        stream.close()
