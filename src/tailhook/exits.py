"""Turns signals that end a command into exceptions, so that nothing of it is left."""

import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

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
    """Let the exceptions of `signals_as_exits` wait until this block has ended. Not to be nested.

    Otherwise, if a signal comes before a call has returned, the call's files are left.
    """
    global _held
    _held = []
    try:
        yield
    finally:
        came, _held = _held, None
        if came:
            signal.raise_signal(came[0])


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
