"""`tailhook plates`: runs the daemon, and lists and hides its plates."""

import argparse
import io
import os
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from urllib.parse import quote, urlsplit

from tailhook.cli.output import (
    CommandError,
    Commands,
    UsageError,
    add_json,
    attempt,
    coloured,
    command,
    counted,
    group,
    import_fault,
    positive,
    print_json,
    print_lines,
)
from tailhook.cli.short_list import summary_json, summary_line
from tailhook.hook.answer import plain
from tailhook.machines import whole_number
from tailhook.stores.daemon import DATABASE_VARIABLE, TOKEN_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tailhook.plates.options import DaemonOptions

ANSI_COLOURS = {"attention": 33, "error": 31, "running": 32, "idle": 34, "muted": 90}  # by tone
WHITE, ON_BLACK = 97, 40  # of a QR code, whatever colours the terminal has
LIST_COLUMNS = ("STATUS", "AGE", "PROJECT", "BRANCH", "TO DO", "SESSION", "ACTIVITY")
MAX_RETENTION_DAYS = 36_500
MAX_WAIT_DAYS = 366
LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")
LOCAL_ADVICE = (
    "the daemon can be reached on this computer only, so a phone cannot open the link."
    " To listen on the network:  tailhook plates serve --host 0.0.0.0"
)


def add(commands: Commands) -> None:
    """Declare the commands."""
    actions = group(
        commands, "plates", "run the daemon of the boards; list and hide sessions; count waits", "tailhook plates list"
    )
    parser = command(actions, "serve", serve, "run the daemon and its web board", "tailhook plates serve --port 7890")
    parser.add_argument(
        "--port", type=parse_port, default=7890, metavar="N", help="the port of the web board (default: 7890)"
    )
    parser.add_argument(
        "--no-port", action="store_true", help="listen on the Unix socket only; there is no web board then"
    )
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="the address to listen on (default: 127.0.0.1)"
    )
    database = parser.add_mutually_exclusive_group()
    about = "an SQLAlchemy URL without a password (default: TAILHOOK_DB, otherwise your own SQLite file)"
    database.add_argument("--db", type=url_without_password, metavar="URL", help=about)
    about = "a file readable only by you (mode 0600) that holds the URL of the database, with or without a password"
    database.add_argument("--db-file", metavar="FILE", help=about)
    about = (
        "a file readable only by you (mode 0600) that holds the token of the port"
        " (default: TAILHOOK_TOKEN, otherwise the saved one)"
    )
    parser.add_argument("--token-file", metavar="FILE", help=about)
    parser.add_argument("--token", type=refuse_token, help=argparse.SUPPRESS)
    parser.add_argument(
        "--retention",
        type=parse_days,
        default=30,
        metavar="DAYS",
        help="remove sessions that have not changed for DAYS days (default: 30)",
    )

    parser = command(actions, "list", list_plates, "print every session's status", "tailhook plates list --waiting")
    parser.add_argument(
        "--waiting", action="store_true", help="print only the sessions that wait for you, longest first"
    )
    parser.add_argument(
        "--short",
        action="store_true",
        help="print one line for a status bar: what the waiting sessions ask",
    )
    add_json(parser)

    about = "print how long agents waited for you, by day and project"
    parser = command(actions, "waits", print_waits, about, "tailhook plates waits --days 30 --project shop")
    parser.add_argument(
        "--days",
        type=partial(parse_days, most=MAX_WAIT_DAYS),
        default=7,
        metavar="N",
        help="the last N days, with today (default: 7)",
    )
    about = "count only this project: its name on the board, or a folder, which selects those below it too"
    parser.add_argument("--project", metavar="P", help=about)
    add_json(parser)

    parser = command(
        actions,
        "dismiss",
        dismiss,
        "hide a session from the boards until its next prompt",
        "tailhook plates dismiss 0b9c",
    )
    parser.add_argument("session_id", metavar="SESSION", help="a session id, or its first characters")

    parser = command(
        actions,
        "link",
        make_link,
        "print a link to the web board, which signs one browser tab in, once",
        "tailhook plates link",
    )
    parser.add_argument("--qr", action="store_true", help="draw the link as a QR code, too: for a phone")
    about = "sign all browser tabs out, and end the links that are not used yet"
    command(actions, "sign-out", sign_out, about, "tailhook plates sign-out")

    parser = command(
        commands,
        "run",
        run_session,
        "run a command and report its start and end to the boards",
        "tailhook run -- claude --resume",
    )
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="the command; it runs in this terminal"
    )


def parse_port(word: str) -> int:
    """Parse an argument as a TCP port. 0 means any free port."""
    number = whole_number(word)
    if number is None or number > 65535:
        raise argparse.ArgumentTypeError(f"{word!r} is not a port, a number from 0 to 65535")
    return number


def parse_days(word: str, most: int = MAX_RETENTION_DAYS) -> int:
    """Parse an argument as a number of days. most: that are allowed."""
    number = positive(word)
    if number > most:
        raise argparse.ArgumentTypeError(f"{word!r} is more than {most} days")
    return number


def url_without_password(word: str) -> str:
    """Parse an argument as a database's URL, which must not have a password."""
    try:
        from tailhook.plates.options import has_password
    except ImportError:  # the command itself reports that
        return word
    if has_password(word):
        others = "Put the URL into a file (--db-file FILE) or into the variable TAILHOOK_DB"
        raise argparse.ArgumentTypeError(f"every user can see a password among the arguments. {others}")
    return word


def refuse_token(_: str) -> None:
    """Refuse an argument that is a token."""
    others = "Put it into a file (--token-file FILE) or into the variable TAILHOOK_TOKEN"
    raise argparse.ArgumentTypeError(f"every user can see a token among the arguments. {others}")


def run_session(arguments: argparse.Namespace) -> int:
    """Run a command in the foreground."""
    argv = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not argv:
        raise UsageError("the command is missing. Example:  tailhook run -- claude")
    from tailhook.plates.run import run_wrapped

    return run_wrapped(argv)


def serve(arguments: argparse.Namespace) -> None:
    """Serve until a signal comes."""
    try:
        from tailhook.plates import options
    except ImportError as error:
        raise import_fault("the daemon", "serve", error) from error
    db, token = options.pop_variable(DATABASE_VARIABLE), options.pop_variable(TOKEN_VARIABLE)
    if arguments.db_file:
        db = None
    if arguments.token_file:
        token = options.read_secret(arguments.token_file)
    wanted = options.DaemonOptions(
        None if arguments.no_port else arguments.port,
        arguments.host,
        arguments.db or db,
        arguments.db_file and str(Path(arguments.db_file).absolute()),
        token,
        arguments.retention,
    )
    serve_with(wanted, print_link)


def serve_with(options: "DaemonOptions", ready: "Callable[[str], None]") -> None:
    """Serve until a signal comes.

    ready: called with the board's link once the daemon answers requests.
    """
    try:
        from tailhook.plates import logs
        from tailhook.plates.serve import run_daemon
    except ImportError as error:
        raise import_fault("the daemon", "serve", error) from error
    logs.log_to_stderr()
    run_daemon(options, ready)


def serve_by_itself() -> None:
    """Run the daemon for a hook: change to /, and close all inherited descriptors except 0 to 2."""
    os.chdir("/")
    for fd in [int(path.name) for path in Path("/dev/fd").iterdir()]:
        if fd > 2:
            with suppress(OSError):  # the descriptor from which the list was read
                os.close(fd)
    sys.exit(attempt(serve_kept))


def serve_kept() -> None:
    """Serve with the options of the last start. Return at once if another daemon runs."""
    try:
        from tailhook.plates.options import load_options, pop_variable
        from tailhook.plates.serve import RunningError
    except ImportError as error:
        raise import_fault("the daemon", "serve", error) from error
    options = load_options()
    if not options.db_file:
        options = replace(options, db=options.db or pop_variable(DATABASE_VARIABLE))
    with suppress(RunningError):
        serve_with(options, lambda _: silence_stderr())


def silence_stderr() -> None:
    """Redirect stderr to /dev/null. Until now it was a file: hooks find the reason of a failed start in it."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    os.close(nothing)


def print_link(link: str) -> None:
    """Print the board's link."""
    from tailhook.plates.browsers import CODE_LIFETIME_MIN

    if link:
        limits = f"the link signs in one browser tab, once, within {CODE_LIFETIME_MIN} minutes"
        print_lines(f"Open the board ({limits}): {link}")
        sys.stdout.flush()


def list_plates(arguments: argparse.Namespace) -> None:
    """Print the plates: for a person in the boards' order, as JSON in the daemon's order."""
    if arguments.short:
        print_summary(arguments.json)
        return
    if arguments.waiting or not arguments.json:
        check_daemon_version()  # what another version answers may lack some fields
    plates = request_daemon("GET", "/plates")
    if arguments.waiting:
        plates = sorted((plate for plate in plates if plate["group"] == "waits"), key=itemgetter("rank"))
    if arguments.json:
        print_json({"plates": plates})
        return
    from tailhook.board.view import activity_words, plate_age, read_plate, select_plates, status_words
    from tailhook.pictures.terminal import count_cells

    if not plates:
        print_lines("No session waits for you." if arguments.waiting else "No sessions.")
    now = time.time()
    shown = select_plates(map(read_plate, plates), closed=True)
    rows = [
        (
            status_words(plate, now) if plate["silent_since"] else plate["status"].value,
            plate_age(plate, now),
            plate["project_path"],
            plate["git_branch"] or "",
            plate["todo_progress"] or "",
            plain(plate["session_id"]),
            activity_words(plate),
        )
        for plate in shown
    ]
    widths = [max(map(count_cells, column)) for column in zip(LIST_COLUMNS, *rows, strict=True)]
    for number, row in enumerate([LIST_COLUMNS, *rows] if rows else []):
        status, *others = (cell + " " * (width - count_cells(cell)) for cell, width in zip(row, widths, strict=True))
        colour = ANSI_COLOURS[shown[number - 1]["tone"] if number else "muted"]
        print_lines("  ".join([coloured(status, colour), *others]).rstrip())


def print_summary(as_json: bool) -> None:
    """Print how many sessions wait, and for what, in one line or as JSON. `print_short_list` does that faster."""
    summary = request_running_daemon("GET", "/summary")
    if as_json:
        print_json(summary_json(summary), indent=None)  # waybar 0.9.17 reads one line
    else:
        print_lines(summary_line(summary))


def print_waits(arguments: argparse.Namespace) -> None:
    """Print how long agents waited for the person."""
    from datetime import date

    from tailhook.cli.scan import project_argument
    from tailhook.cli.waits import day_edges, waits_facts, waits_lines

    wanted: dict[str, Any] = {"edge": day_edges(date.today(), arguments.days)}
    if arguments.project is not None:
        folder = os.path.abspath(Path(project_argument(arguments.project)).expanduser())  # noqa: PTH100 - no links
        wanted["project"] = [arguments.project, folder]
    answer = request_running_daemon("GET", "/waits", params=wanted)
    if arguments.json:
        print_json(waits_facts(answer))
    else:
        print_lines(*waits_lines(answer, arguments.days, arguments.project))


def dismiss(arguments: argparse.Namespace) -> None:
    """Hide one plate until its next prompt."""
    if not arguments.session_id:
        raise UsageError("the session is an empty name: give a session id, or its first characters")
    ids = [plate["session_id"] for plate in request_daemon("GET", "/plates")]
    wanted = arguments.session_id
    found = [name for name in ids if name == wanted] or [name for name in ids if name.startswith(wanted)]
    if len(found) != 1:
        count = f"{len(found)} session ids begin" if found else "no session id begins"
        advice = "Exactly one must. To see them:  tailhook plates list"
        raise CommandError(f"{count} with {plain(wanted)}. {advice}")
    request_daemon("PATCH", f"/plates/{quote(found[0])}", json={"hidden": True})
    print_lines(
        f"Hid {plain(found[0])} until its next prompt. Nothing is deleted.",
        "To see it on a board, press c. To show it again, press d there.",
    )


def check_daemon_version() -> None:
    """Raise VersionError if the daemon is of another version, and AwayError if no daemon answers."""
    try:
        from tailhook.plates.client import check_running_version
    except ImportError as error:
        raise import_fault("the daemon", "serve", error) from error
    check_running_version()


def make_link(arguments: argparse.Namespace) -> None:
    """Print a link that signs a tab in. The hints go to stderr, so that stdout is the link alone."""
    encode = load_qr_encoder() if arguments.qr else None
    found = request_running_daemon("POST", "/links")
    link = found["link"]
    if encode:
        drawn = io.StringIO()
        encode(link).terminal(drawn, compact=True)
        print_lines(*(coloured(coloured(line, WHITE), ON_BLACK) for line in drawn.getvalue().splitlines()))
        if urlsplit(link).hostname in LOCAL_HOSTS:
            sys.stderr.write(f"tailhook: {LOCAL_ADVICE}\n")
    print_lines(link)
    sys.stderr.write(f"It signs in one browser tab, once, within {found['minutes']} minutes.\n")


def load_qr_encoder() -> "Callable[..., Any]":
    """Return the function that encodes a text as a QR code."""
    try:
        from segno import make_qr
    except ImportError as error:
        raise import_fault("a QR code", "qr", error) from error
    return make_qr


def sign_out(_: argparse.Namespace) -> None:
    """Sign all tabs out."""
    count = request_running_daemon("POST", "/sign-out")["tabs"]
    print_lines(f"Signed out {counted(count, 'browser tabs')}. To sign in again:  tailhook plates link")


def request_running_daemon(method: str, path: str, **options: "Any") -> "Any":
    """Send a request to the daemon and return its answer. Raises VersionError if it is of another version."""
    check_daemon_version()
    return request_daemon(method, path, **options)


def request_daemon(method: str, path: str, **options: "Any") -> "Any":
    """Send a request to the daemon and return its answer."""
    try:
        from tailhook.plates.client import request
    except ImportError as error:
        raise import_fault("the daemon", "serve", error) from error
    return request(method, path, **options)
