"""Circles of symbolic links, for the reason of a failure: a hook imports this only then."""

import posix

from tailhook.stores.atomic import IS_LINK


def is_circle(path: "str | bytes") -> bool:
    """Return whether a path leads into a loop of symbolic links."""
    try:
        posix.stat(path)
    except OSError as error:
        return error.errno == IS_LINK
    return False
