"""The `tailhook` command."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SHORT_LIST = ["plates", "list", "--waiting", "--short"]  # a status bar runs it every few seconds
EXIT_INTERRUPTED = 130  # 128 plus the number of SIGINT, as shells report it


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one command; returns the exit code: 0 done, 1 failed with a line on stderr, 2 wrong usage, 130 by Ctrl-C."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["hook"] and "--help" not in words and "-h" not in words:
        from tailhook.pool.launch import run_client

        run_client(words[1:])
        from tailhook.hook.process import main as hook

        hook(words[1:])
    try:
        if words[:2] == SHORT_LIST[:2] and {*words[2:]} == {*SHORT_LIST[2:]}:
            from tailhook.cli.short_list import print_short_list

            if print_short_list():
                return 0
        from tailhook.cli.parser import run_command

        return run_command(words)
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("tailhook: interrupted\n")
        return EXIT_INTERRUPTED
