"""Alerts when a session starts to need attention: the terminal's bell and desktop notifications."""

import shutil
import subprocess
import threading
from collections.abc import Callable
from html import escape

from textual.app import App

from tailhook.errors import TailhookError
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
    """Return an alert that shows a desktop notification through notify-send or osascript.

    Raises TailhookError if neither is installed.
    """
    argv, escape_body = find_notification_program()
    return lambda _, plate: run_detached(
        [*argv, "--", f"{plate['name']}: {plate['status_words']}", escape_body(plate["project_path"])]
    )


def find_notification_program() -> tuple[list[str], Callable[[str], str]]:
    """Return the program with its flags, and a function that escapes the text below the title.

    notify-send reads that text as HTML.
    """
    if program := shutil.which("notify-send"):
        return [program, "--app-name=tailhook"], escape
    if program := shutil.which("osascript"):
        return [program, *(word for line in SCRIPT for word in ("-e", line))], str
    raise TailhookError("neither notify-send nor osascript is installed. Leave out --notify, or use --bell.")


def run_detached(argv: list[str]) -> None:
    """Run a program without the daemon's secrets in its environment, and do not wait for it."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": False}
    environment = dict(environment_without(TOKEN_VARIABLE, DATABASE_VARIABLE))
    threading.Thread(target=subprocess.run, args=(argv,), kwargs={**quiet, "env": environment}, daemon=True).start()
