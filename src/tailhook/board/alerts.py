"""Alerts when a session starts to need attention: the terminal's bell and desktop notifications."""

import shutil
import subprocess
import threading
from collections.abc import Callable
from functools import partial
from html import escape

from textual.app import App

from tailhook.board.terminals import MAX_ERROR_CHARS
from tailhook.errors import TailhookError
from tailhook.hook.answer import plain
from tailhook.plates.fields import PlateOut
from tailhook.stores.daemon import DATABASE_VARIABLE, TOKEN_VARIABLE, environment_without

Alert = Callable[[App[None], PlateOut], None]
SCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)


def ring_bell(app: App[None], _: PlateOut) -> None:
    """Ring the terminal's bell."""
    app.bell()


def make_notifier() -> Alert:
    """Return an alert that shows a desktop notification through notify-send or osascript. The board shows a failure.

    Raises TailhookError if neither is installed.
    """
    argv, escape_body = find_notification_program()

    def show_notification(app: App[None], plate: PlateOut) -> None:
        title = f"{plate['name']}: {plate['status_words']}"
        failed = partial(app.notify, title="No desktop notification", severity="warning", markup=False)
        run_detached([*argv, "--", title, escape_body(plate["project_path"])], failed)

    return show_notification


def find_notification_program() -> tuple[list[str], Callable[[str], str]]:
    """Return the program with its flags, and a function that escapes the text below the title.

    notify-send reads that text as HTML.
    """
    if program := shutil.which("notify-send"):
        return [program, "--app-name=tailhook"], escape
    if program := shutil.which("osascript"):
        return [program, *(word for line in SCRIPT for word in ("-e", line))], str
    raise TailhookError("neither notify-send nor osascript is installed. Leave out --notify, or use --bell.")


def run_detached(argv: list[str], failed: Callable[[str], object] = lambda words: None) -> None:
    """Run a program without the daemon's secrets in its environment, and do not wait for it.

    failed: called in another thread with the reason if the program fails.
    """
    environment = dict(environment_without(TOKEN_VARIABLE, DATABASE_VARIABLE))

    def run() -> None:
        try:
            end = subprocess.run(  # noqa: S603 - a program of the desktop
                argv,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                check=False,
            )
        except OSError as error:
            failed(f"{argv[0]}: {error.strerror}")
            return
        if end.returncode:
            words = plain(end.stderr.decode(errors="replace").strip())[:MAX_ERROR_CHARS]
            failed(words or f"{argv[0]} exits {end.returncode}")

    threading.Thread(target=run, daemon=True).start()
