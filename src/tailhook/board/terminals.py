"""Shows a session's terminal by the command line of that terminal.

The hook reports the variables, see `tailhook.hook.plates.TERMINAL_VARIABLES`. A terminal hands its variables to each
program that it starts, even to another terminal. So TERM and TERM_PROGRAM decide first which terminal it is.
"""

import os
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tailhook.errors import TailhookError
from tailhook.hook.answer import plain
from tailhook.plates.fields import PlateOut
from tailhook.plates.programs import run_program

COMMAND_TIMEOUT_S = 5.0
MAX_ERROR_CHARS = 200
ITERM_SCRIPT = """function run([id]) {
  const app = Application("iTerm2");
  for (const frame of app.windows()) for (const tab of frame.tabs()) for (const session of tab.sessions())
    if (session.id() === id) {
      for (const one of [session, tab, frame]) one.select();
      return void app.activate();
    }
  throw new Error("no such session");
}"""
# Parts of the path of the git helper of an editor with VS Code's variables, and the editor's command.
EDITORS = {"cursor": "cursor", "windsurf": "windsurf", "codium": "codium", "insiders": "code-insiders"}


class TerminalPlace(NamedTuple):
    """A terminal that a command shows.

    words: its name for people.
    argv: the command.
    variables: further environment variables of the command.
    """

    words: str
    argv: list[str]
    variables: Mapping[str, str] = {}


def find_place(terminal: Mapping[str, str], folder: str) -> TerminalPlace | None:
    """Return the place of a session's terminal, or None if no command can show it.

    folder: the session's project.

    >>> find_place({"TMUX": "/tmp/tmux-1000/default,1,0", "TMUX_PANE": "%3"}, "/shop").argv
    ['tmux', '-S', '/tmp/tmux-1000/default', 'switch-client', '-t', '%3']
    """
    if terminal.get("TERM") == "xterm-kitty":
        return find_in_kitty(terminal, folder)
    if program := terminal.get("TERM_PROGRAM"):
        find = FINDERS.get(program)
        return find(terminal, folder) if find else None
    found = (find(terminal, folder) for find in (find_in_tmux, find_in_kitty, find_in_wezterm, find_in_iterm))
    return next(filter(None, found), None)


def find_in_tmux(terminal: Mapping[str, str], _: str) -> TerminalPlace | None:
    """Return a pane of tmux (3.3)."""
    socket, pane = terminal.get("TMUX", "").partition(",")[0], terminal.get("TMUX_PANE", "")
    if not socket.startswith("/") or not re.fullmatch(r"%[0-9]+", pane):
        return None
    return TerminalPlace(f"tmux pane {pane}", ["tmux", "-S", socket, "switch-client", "-t", pane])


def find_in_kitty(terminal: Mapping[str, str], _: str) -> TerminalPlace | None:
    """Return a window of kitty (0.26). The person must have allowed remote control, with a Unix socket."""
    window, address = terminal.get("KITTY_WINDOW_ID", ""), terminal.get("KITTY_LISTEN_ON", "")
    if not re.fullmatch(r"[0-9]+", window):
        return None
    to = ["--to", address] if address.startswith("unix:") else []
    return TerminalPlace(f"kitty window {window}", ["kitty", "@", *to, "focus-window", "--match", f"id:{window}"])


def find_in_wezterm(terminal: Mapping[str, str], _: str) -> TerminalPlace | None:
    """Return a pane of WezTerm (20230326 and later)."""
    pane, socket = terminal.get("WEZTERM_PANE", ""), terminal.get("WEZTERM_UNIX_SOCKET", "")
    if not re.fullmatch(r"[0-9]+", pane):
        return None
    argv = ["wezterm", "cli", "activate-pane", "--pane-id", pane]
    return TerminalPlace(
        f"WezTerm pane {pane}", argv, {"WEZTERM_UNIX_SOCKET": socket} if socket.startswith("/") else {}
    )


def find_in_iterm(terminal: Mapping[str, str], _: str) -> TerminalPlace | None:
    """Return a session of iTerm2. Its variable has the place in the window before the id."""
    found = re.fullmatch(r"w[0-9]+t[0-9]+p[0-9]+:([0-9A-F-]+)", terminal.get("ITERM_SESSION_ID", ""))
    return (
        TerminalPlace("an iTerm2 session", ["osascript", "-l", "JavaScript", "-e", ITERM_SCRIPT, found[1]])
        if found
        else None
    )


def find_in_editor(terminal: Mapping[str, str], folder: str) -> TerminalPlace | None:
    """Return the window of VS Code, or of an editor made from it, that has the session's project open."""
    helper, socket = terminal.get("VSCODE_GIT_ASKPASS_MAIN", "").lower(), terminal.get("VSCODE_IPC_HOOK_CLI", "")
    program = next((command for part, command in EDITORS.items() if part in helper), "code")
    if not folder.startswith("/"):
        return None
    variables = {"VSCODE_IPC_HOOK_CLI": socket} if socket.startswith("/") else {}
    return TerminalPlace(f"{program}'s window of {folder}", [program, folder], variables)


# By TERM_PROGRAM.
FINDERS: dict[str, Callable[[Mapping[str, str], str], TerminalPlace | None]] = {
    "tmux": find_in_tmux,
    "WezTerm": find_in_wezterm,
    "iTerm.app": find_in_iterm,
    "vscode": find_in_editor,
}


async def show_terminal(plate: PlateOut, terminal: Mapping[str, str]) -> str:
    """Show the terminal of a plate's session. Returns its name for people. Raises TailhookError if that fails.

    terminal: the variables that name it.
    """
    if plate["host"] not in (None, os.uname().nodename):
        raise TailhookError(f"the session runs on {plate['host']}")
    place = find_place(terminal, plate["project_path"])
    if place is None:
        raise TailhookError("its terminal is unknown, or has no command that shows a session")
    await show_place(place)
    return place.words


async def show_place(place: TerminalPlace) -> None:
    """Run a place's command. Raises TailhookError if it fails."""
    program = place.argv[0]
    try:
        end = await run_program(place.argv, place.variables, COMMAND_TIMEOUT_S, reads_errors=True)
    except TimeoutError:
        raise TailhookError(f"{place.words}: {program} does not answer") from None
    except OSError as error:
        raise TailhookError(f"{place.words}: {program}: {error.strerror}") from error
    if end.status:
        words = plain(end.errors.decode(errors="replace").strip())[:MAX_ERROR_CHARS]
        raise TailhookError(f"{place.words}: {words or f'{program} exits {end.status}'}")
