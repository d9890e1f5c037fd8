"""How a person is told that a session began to wait for them: a bell, a notification of the desktop."""

import shutil
import subprocess
import threading
from collections.abc import Callable
from html import escape

from textual.app import App

from tailhook.board.view import Plate, status_words
from tailhook.errors import TailhookError
from tailhook.stores.daemon import DATABASE_VARIABLE, TOKEN_VARIABLE, environment_without

Alert = Callable[[App[None], Plate], None]
SCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)


def bell(app: App[None], _: Plate) -> None:
    """Ring the terminal's bell."""
    app.bell()


def notifier() -> Alert:
    """What tells it by the desktop's own program.  Raises TailhookError where there is none."""
    argv, written = notification_program()
    return lambda _, plate: tell([*argv, "--", f"{plate.name}: {status_words(plate.status)}", written(plate.path)])


def notification_program() -> tuple[list[str], Callable[[str], str]]:
    """The program with its flags, and how it wants the words that come behind the title: notify-send reads HTML."""
    if program := shutil.which("notify-send"):
        return [program, "--app-name=tailhook"], escape
    if program := shutil.which("osascript"):
        return [program, *(word for line in SCRIPT for word in ("-e", line))], str
    raise TailhookError("this desktop has no notify-send and no osascript. Leave out --notify, or use --bell")


def tell(argv: list[str]) -> None:
    """Run the program without the daemon's secrets, and do not wait for it."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": False}
    environment = dict(environment_without(TOKEN_VARIABLE, DATABASE_VARIABLE))
    threading.Thread(target=subprocess.run, args=(argv,), kwargs={**quiet, "env": environment}, daemon=True).start()
