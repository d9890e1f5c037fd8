"""State on disk. This module has the names and the paths of a project's files.

The registry of machines repeats these names: every hook reads it, but loads this package only if a file exists.
"""

STORE_FOLDERS = (".jwz", ".zawinski")  # of a jwz store: the name, and the older name
FALLBACK_FILE = "idle-loop.local.md"  # in .claude, as the next
RALPH_FILE = "ralph-loop.local.md"


def path_in(project: str, name: str) -> str:
    """Return the path of a project's file; the project may be the root folder."""
    return f"{project.rstrip('/')}/{name}"
