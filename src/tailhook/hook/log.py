"""The log: one line for each asked machine, if the user wants a log."""

import posix

from tailhook._core import iso_time
from tailhook.hook.answer import plain, write_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tailhook.machines import Verdict


def write_log_line(path: str, now: float, machine: str, verdict: "Verdict[Any] | None", seconds: float) -> None:
    """Append time, machine, decision, why and milliseconds, separated by tabs. A failure changes nothing."""
    decision, why = (verdict.outcome, verdict.why) if verdict else ("allow", "nothing to decide")
    line = "\t".join((iso_time(now), machine, decision, plain(why), f"{seconds * 1000:.1f}"))
    try:
        flags = posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | posix.O_NOFOLLOW | posix.O_CLOEXEC | posix.O_NONBLOCK
        fd = posix.open(path, flags, 0o600)
    except (OSError, ValueError):
        return
    write_output(fd, f"{line}\n".encode("utf-8", "backslashreplace"), 0)  # a pipe may have no reader
    posix.close(fd)
