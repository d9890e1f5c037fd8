"""`tailhook board`: every session's status in the terminal, live."""

import argparse
import sys

from tailhook.cli.output import CommandError, Commands, command, import_fault

SAVE_TITLE, RESTORE_TITLE = "\x1b[22;2t", "\x1b[23;2t"  # of the terminal (xterm); others ignore them


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(
        commands, "board", board, "show every session's status in the terminal, live", "tailhook board --bell"
    )
    parser.add_argument(
        "--bell", action="store_true", help="ring the terminal's bell when a session begins to need attention"
    )
    parser.add_argument(
        "--notify", action="store_true", help="show a desktop notification when a session begins to need attention"
    )


def board(arguments: argparse.Namespace) -> None:
    """Show the board until the person quits."""
    try:
        from tailhook.board.alerts import Alert, make_notifier, ring_bell
        from tailhook.board.source import DaemonSource
        from tailhook.board.tui import Board
        from tailhook.plates import client
    except ImportError as error:
        raise import_fault("the board", "board", error) from error
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandError("the board needs a terminal. Without one:  tailhook plates list")
    alerts: list[Alert] = [ring_bell] if arguments.bell else []
    if arguments.notify:
        alerts.append(make_notifier())
    client.ensure_daemon()
    if not sys.stderr.isatty():
        sys.__stderr__ = sys.__stdout__  # type: ignore[misc]  # Textual 8.2 draws on stderr
    app = Board(DaemonSource(), alerts=alerts)
    sys.stdout.write(SAVE_TITLE)
    sys.stdout.flush()
    try:
        app.run()
    finally:
        sys.stdout.write(RESTORE_TITLE)
        sys.stdout.flush()
    if app.failure:
        raise app.failure
