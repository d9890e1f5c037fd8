"""The daemon's log on stderr. A failure that repeats must not fill the disk."""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

log = logging.getLogger("tailhook.plates")

REPEAT_INTERVAL_S = 60.0  # between two equal messages
MAX_REMEMBERED_MESSAGES = 1000  # messages whose repeats are dropped; beyond that the oldest is forgotten


def log_to_stderr() -> None:
    """Write warnings and errors on stderr, each of them at most once a minute."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("tailhook: %(message)s"))
    handler.addFilter(OnceAMinute())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


class OnceAMinute(logging.Filter):
    """Passes a message at most once a minute, and adds how many equal ones were dropped.

    clock: returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.clock = clock
        self.lock = threading.Lock()
        self.passed: dict[str, tuple[float, int]] = {}  # by message: the last time, and how many were dropped

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the message passes."""
        words = record.getMessage()
        now = self.clock()
        with self.lock:
            then, held_back = self.passed.pop(words, (now - REPEAT_INTERVAL_S, 0))
            if now - then < REPEAT_INTERVAL_S:
                self.passed[words] = then, held_back + 1
                return False
            if len(self.passed) >= MAX_REMEMBERED_MESSAGES:
                self.passed.pop(next(iter(self.passed)))
            self.passed[words] = now, 0
        if held_back:
            record.msg, record.args, record.exc_info = "%s (and %d more)", (words, held_back), None
        return True


def log_fault(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log the event loop's reports: failed tasks, and connections that cannot be accepted."""
    error = context.get("exception")
    is_foreseen = error is None or isinstance(error, OSError)
    log.error("%s: %s", context["message"], error, exc_info=None if is_foreseen else error)
