"""What can go wrong, by name. A missing file stays FileNotFoundError."""


class TailhookError(Exception):
    """The base of every error that is tailhook's own."""


class RecordError(TailhookError, ValueError):
    """A record, or a tool's input in it, cannot be decoded as a whole."""


class SourceError(TailhookError, OSError):
    """A transcript cannot be read: it is a damaged compressed file, a pipe, or a URL that does not answer."""


class MissingExtraError(TailhookError, ImportError):
    """A source needs a library that is not installed; the message names the extra that has it."""


class ResumeError(TailhookError, ValueError):
    """A folder cannot go on with a scan: it has the rows of another question, or is damaged or in use."""
