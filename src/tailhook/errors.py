"""What can go wrong, by name. A missing file stays FileNotFoundError."""


class TailhookError(Exception):
    """The base of every error that is tailhook's own."""


class RecordError(TailhookError, ValueError):
    """A record, or a tool's input in it, cannot be decoded as a whole."""
