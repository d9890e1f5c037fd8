"""What can go wrong, by name. A missing file stays FileNotFoundError."""


class TailhookError(Exception):
    """The base of every error that is tailhook's own."""


class RecordError(TailhookError, ValueError):
    """A record, or a tool's input in it, cannot be decoded as a whole."""


class SourceError(TailhookError, OSError):
    """A transcript's file is not one that can be read: compressed and damaged, a pipe, out of the network's reach."""


class MissingExtraError(TailhookError, ImportError):
    """A source needs a library that the base install has not; the message names the extra that brings it."""


class ResumeError(TailhookError, ValueError):
    """A folder cannot go on with a scan: it has the rows of another question, or another scan is writing to it."""
