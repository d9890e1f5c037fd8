"""Turns signals that end a command into exceptions, so that nothing of it is left."""

import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

_held: list[int] | None = None  # the signals received while they are held back; None otherwise


@contextmanager
def signals_as_exits() -> Iterator[None]:
    """Let the signals that end a program raise an exception instead, so that its files and processes are removed.

    SIGINT raises KeyboardInterrupt, the others SystemExit. Later signals have no effect: they would interrupt that
    work. `timeout` sends each signal twice, to the process and to its group.
    """
    is_leaving = False

    def leave(number: int, _: object) -> None:
        nonlocal is_leaving
        if _held is not None:
            _held.append(number)
            return
        is_leaving = True
        for one in ours:
            signal.signal(one, lambda *_: None)
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    usual = {signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    ours = {number: handler for number, handler in usual.items() if signal.getsignal(number) == handler}
    for number in ours:
        signal.signal(number, leave)
    try:
        yield
    finally:
        if not is_leaving:
            for number, handler in ours.items():
                signal.signal(number, handler)


@contextmanager
def signals_held() -> Iterator[None]:
    """Raise the exceptions of `signals_as_exits` only after this block. Such blocks must not be nested.

    Without the block, a signal during a call that makes files could leave these files.
    """
    global _held
    _held = []
    try:
        yield
    finally:
        came, _held = _held, None
        if came:
            signal.raise_signal(came[0])


def run_to_end(
    argv: Sequence[str | Path],
    *,
    input: str | bytes | None = None,  # noqa: A002 - as that of subprocess.run
    timeout: float | None = None,
    **options: Any,
) -> "subprocess.CompletedProcess[Any]":
    """Run a program and return its end with its output, like `subprocess.run`. An exception here kills it.

    `subprocess.run` leaves it running if a signal comes before it has begun. It may then write into a folder that is
    being removed.

    options: of `subprocess.Popen`.

    Raises OSError and subprocess.TimeoutExpired.
    """
    options = {**options, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with ExitStack() as stack:
        with signals_held():
            begun: subprocess.Popen[Any] = subprocess.Popen(argv, **options)  # noqa: S603 - the caller's
            process = stack.enter_context(begun)
            stack.callback(process.kill)  # without effect after its end
        output, errors = process.communicate(input, timeout)
    return subprocess.CompletedProcess(argv, process.returncode, output, errors)


@contextmanager
def temporary_folder(prefix: str, parent: str | None = None) -> Iterator[str]:
    """Make a folder, yield its path, and remove it with its contents, even if a signal comes. Raises OSError.

    parent: its parent folder; None for the computer's own place for temporary files.
    """
    with ExitStack() as stack:
        with signals_held():
            path = stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix, dir=parent))
        try:
            yield path
        finally:
            with signals_held():
                stack.close()
