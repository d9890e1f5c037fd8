"""State on disk. Here are the names under which a project has it.

The registry of machines names the same files again: it is read by every hook, and this package only if one exists.
"""

STORE_FOLDERS = (".jwz", ".zawinski")  # of a jwz store: the name, and the older one
FALLBACK_FILE = "idle-loop.local.md"  # in .claude, as the next
RALPH_FILE = "ralph-loop.local.md"
