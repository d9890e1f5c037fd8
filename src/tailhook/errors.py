"""The library's errors, and what to do about a missing module. A missing file stays FileNotFoundError."""

import sys

UPGRADE_ADVICE = "If tailhook is being upgraded, try again; otherwise install it again"


class TailhookError(Exception):
    """The base of tailhook's own errors."""


class RecordError(TailhookError, ValueError):
    """A record, or a tool's input in it, cannot be decoded as a whole."""


class SourceError(TailhookError, OSError):
    """A transcript cannot be read: it is a damaged compressed file, a pipe, or a URL without an answer."""


class MissingExtraError(TailhookError, ImportError):
    """A source needs a library that is not installed. The message names the extra to install."""


class ResumeError(TailhookError, ValueError):
    """A folder cannot continue a scan: it has the rows of another question, is damaged, or is in use."""


def is_own_part(error: ImportError) -> bool:
    """Return whether a module of tailhook's own is missing, as during an upgrade, and not another package."""
    return (error.name or "").partition(".")[0] == "tailhook"


def install_command(requirement: str) -> str:
    """Return the command that installs a requirement where this program runs: `pip` may be another environment's.

    >>> install_command("tailhook[s3]")  # doctest: +SKIP
    "/home/me/.tailhook/bin/python -m pip install 'tailhook[s3]'"
    """
    import shlex  # only for this message

    pip = [sys.executable, "-m", "pip"] if sys.executable else ["pip"]  # an embedded interpreter may have no name
    return shlex.join([*pip, "install", requirement])
