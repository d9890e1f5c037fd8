"""The `tailhook` command."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one command; returns the exit code: 0 done, 1 failed with a line on stderr, 2 wrong usage."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["hook"] and "--help" not in words and "-h" not in words:
        from tailhook.hook.process import main as hook

        hook(words[1:])
    from tailhook.cli.parser import run_command

    return run_command(words)
