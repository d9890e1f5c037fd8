"""`tailhook plates`: the daemon, and what it knows."""

import argparse
import os
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from tailhook.cli.output import (
    CommandError,
    Commands,
    UsageError,
    add_json,
    attempt,
    coloured,
    command,
    group,
    positive,
    print_json,
    say,
)
from tailhook.hook.answer import plain
from tailhook.machines import whole_number
from tailhook.stores.daemon import DATABASE_VARIABLE, TOKEN_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tailhook.plates.options import Options

COLOURS = {"awaiting_input": 33, "awaiting_approval": 33, "error": 31, "running": 32, "closed": 90}
LONGEST = 36_500  # days that sessions may be kept
EXTRA = "the daemon needs more packages. Install them with:  pip install 'tailhook[serve]'"


def add(commands: Commands) -> None:
    """Declare the commands."""
    actions = group(commands, "plates", "every session's status", "tailhook plates list")
    parser = command(actions, "serve", serve, "run the daemon and its web board", "tailhook plates serve --port 7890")
    parser.add_argument("--port", type=port, default=7890, metavar="N", help="the port of the web board (7890)")
    parser.add_argument("--no-port", action="store_true", help="the Unix socket alone")
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="the address of the port (127.0.0.1)")
    database = parser.add_mutually_exclusive_group()
    about = "an SQLAlchemy URL without a password (TAILHOOK_DB, or the user's own SQLite file)"
    database.add_argument("--db", type=url_without_password, metavar="URL", help=about)
    about = "a file of yours alone (mode 0600) that holds the database's URL, perhaps with a password"
    database.add_argument("--db-file", metavar="FILE", help=about)
    about = "a file of yours alone (mode 0600) that holds the port's token (TAILHOOK_TOKEN, or a token that is kept)"
    parser.add_argument("--token-file", metavar="FILE", help=about)
    parser.add_argument("--token", type=refuse_token, help=argparse.SUPPRESS)
    parser.add_argument(
        "--retention", type=days, default=30, metavar="DAYS", help="forget a session after so many days (30)"
    )

    parser = command(actions, "list", list_plates, "print every plate", "tailhook plates list --json")
    add_json(parser)

    parser = command(actions, "dismiss", dismiss, "remove a plate", "tailhook plates dismiss 0b9c…")
    parser.add_argument("session_id", metavar="SESSION", help="its session id, or the beginning of it")

    parser = command(commands, "run", run_command, "run a command and see its end", "tailhook run -- claude --resume")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what is run, in this terminal")


def port(word: str) -> int:
    """A TCP port, as an argument's type; 0 for any that is free."""
    number = whole_number(word)
    if number is None or number > 65535:
        raise argparse.ArgumentTypeError(f"{word!r} is not a port: 0 to 65535")
    return number


def days(word: str) -> int:
    """A number of days, as an argument's type: as many as there are dates for."""
    number = positive(word)
    if number > LONGEST:
        raise argparse.ArgumentTypeError(f"{word!r} days are more than {LONGEST}")
    return number


def url_without_password(word: str) -> str:
    """Return a database's URL, as an argument's type."""
    try:
        from tailhook.plates.options import has_password
    except ImportError:  # the command itself says so
        return word
    if has_password(word):
        others = "Put the URL into a file:  --db-file FILE, or into the variable TAILHOOK_DB"
        raise argparse.ArgumentTypeError(f"every user can see a password among the arguments. {others}")
    return word


def refuse_token(_: str) -> None:
    """Refuse a token, as an argument's type."""
    others = "Put it into a file:  --token-file FILE, or into the variable TAILHOOK_TOKEN"
    raise argparse.ArgumentTypeError(f"every user can see a token among the arguments. {others}")


def run_command(arguments: argparse.Namespace) -> int:
    """Run a command in the foreground."""
    argv = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not argv:
        raise UsageError("no command is given. Like this:  tailhook run -- claude")
    from tailhook.plates.run import run

    return run(argv)


def serve(arguments: argparse.Namespace) -> None:
    """Serve until a signal comes."""
    try:
        from tailhook.plates import options
    except ImportError as error:
        raise CommandError(f"{EXTRA} ({error})") from error
    db, token = options.taken_from_environment(DATABASE_VARIABLE), options.taken_from_environment(TOKEN_VARIABLE)
    if arguments.db_file:
        db = None
    if arguments.token_file:
        token = options.read_secret(arguments.token_file)
    wanted = options.Options(
        None if arguments.no_port else arguments.port,
        arguments.host,
        arguments.db or db,
        arguments.db_file and str(Path(arguments.db_file).absolute()),
        token,
        arguments.retention,
    )
    serve_with(wanted, tell_link)


def serve_with(options: "Options", ready: "Callable[[str], None]") -> None:
    """Serve until a signal comes.  ready: called with the board's link once the daemon takes requests."""
    try:
        from tailhook.plates import logs
        from tailhook.plates.serve import serve as run
    except ImportError as error:
        raise CommandError(f"{EXTRA} ({error})") from error
    logs.to_stderr()
    run(options, ready)


def serve_by_itself() -> None:
    """Serve as hooks start the daemon: keep nothing of the folder and the open files of the process that started it."""
    os.chdir("/")
    for fd in [int(path.name) for path in Path("/dev/fd").iterdir()]:
        if fd > 2:
            with suppress(OSError):  # the one that the list was read from
                os.close(fd)
    sys.exit(attempt(serve_kept))


def serve_kept() -> None:
    """Serve with what the daemon was last started with; leave at once if another daemon runs."""
    try:
        from tailhook.plates.options import kept_options, taken_from_environment
        from tailhook.plates.serve import RunningError
    except ImportError as error:
        raise CommandError(f"{EXTRA} ({error})") from error
    options = kept_options()
    if not options.db_file:
        options = replace(options, db=options.db or taken_from_environment(DATABASE_VARIABLE))
    with suppress(RunningError):
        serve_with(options, lambda _: say_nothing_more())


def say_nothing_more() -> None:
    """Redirect stderr to /dev/null. Until here it was the file in which hooks look for the reason of a failed start."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    os.close(nothing)


def tell_link(link: str) -> None:
    """Say where the board is, once it is there."""
    if link:
        say(f"The board, for one browser: {link}")
        sys.stdout.flush()


def list_plates(arguments: argparse.Namespace) -> None:
    """Print the plates: in the boards' order for a person, as the daemon gives them for a program."""
    plates = ask("GET", "/plates")
    if arguments.json:
        print_json({"plates": plates})
        return
    if not plates:
        say("No sessions.")
    from tailhook.board.view import format_age, read_plate, select_plates

    now = time.time()
    for plate in select_plates(map(read_plate, plates), closed=True):
        status = coloured(f"{plate.status.value:<18}", COLOURS.get(plate.status.value, 0))
        what = " ".join(filter(None, (plate.branch, plate.tool, plate.todo)))
        say(f"{status}{format_age(now - plate.since):>4}  {plate.path}  {what}  {plain(plate.session_id)}")


def dismiss(arguments: argparse.Namespace) -> None:
    """Remove one plate."""
    ids = [plate["session_id"] for plate in ask("GET", "/plates")]
    wanted = arguments.session_id
    found = [name for name in ids if name == wanted] or [name for name in ids if name.startswith(wanted)]
    if len(found) != 1:
        raise CommandError(f"{len(found) or 'no'} plates are named {plain(wanted)}…. See:  tailhook plates list")
    ask("DELETE", f"/plates/{quote(found[0])}")
    say(f"Dismissed {plain(found[0])}.")


def ask(method: str, path: str) -> "list[dict[str, str]]":
    """The daemon's answer."""
    try:
        from tailhook.plates.client import request
    except ImportError as error:
        raise CommandError(f"{EXTRA} ({error})") from error
    answer: list[dict[str, str]] = request(method, path)
    return answer
