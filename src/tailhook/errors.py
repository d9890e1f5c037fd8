"""What can go wrong, by name. A missing file stays FileNotFoundError."""


class TailhookError(Exception):
    """The base of every error that is tailhook's own."""


class RecordError(TailhookError, ValueError):
    """A record, or a tool's input in it, cannot be decoded as a whole."""


def describe(error: BaseException) -> str:
    """Return an error's message for a person: of an OSError the path and the reason, without its number."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename2 or error.filename}: {error.strerror}"
    return str(error)
