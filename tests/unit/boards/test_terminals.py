"""By which command a session's terminal is shown, and by which its session goes on."""

import asyncio
import os
import posix
import shlex

import pytest
from support.cases import in_one_test
from support.plate_reports import report

from tailhook import hosts
from tailhook.board import terminals
from tailhook.board.terminals import TerminalPlace, find_place, show_place, show_terminal
from tailhook.errors import TailhookError
from tailhook.hook.event import HookEvent
from tailhook.hook.plates import TERMINAL_VARIABLES
from tailhook.plates.display import describe_plate

TMUX = {"TMUX": "/tmp/tmux-1000/default,3145,0", "TMUX_PANE": "%3"}
IN_TMUX = "tmux -S /tmp/tmux-1000/default switch-client -t %3"
KITTY = {"KITTY_WINDOW_ID": "7"}
WEZTERM = {"WEZTERM_PANE": "12"}
ITERM = {"ITERM_SESSION_ID": "w0t1p0:5B3D6A4E-0C3F-4B55-9B0A-3B6C2E0F1A2D"}
COMMANDS = [
    (TMUX, IN_TMUX),
    ({**TMUX, "TERM": "screen-256color", "TERM_PROGRAM": "tmux", **KITTY, **WEZTERM, **ITERM}, IN_TMUX),
    ({**TMUX, "TERM": "screen", **KITTY}, IN_TMUX),
    ({**TMUX, "TMUX_PANE": "%3;kill-server"}, None),
    ({**TMUX, "TMUX": "default"}, None),
    ({"TMUX_PANE": "%3"}, None),
    (KITTY, "kitty @ focus-window --match id:7"),
    ({**KITTY, "KITTY_LISTEN_ON": "unix:/tmp/kitty"}, "kitty @ --to unix:/tmp/kitty focus-window --match id:7"),
    ({**KITTY, "KITTY_LISTEN_ON": "tcp:example.org:1"}, "kitty @ focus-window --match id:7"),
    ({"KITTY_WINDOW_ID": "7 or all"}, None),
    (WEZTERM, "wezterm cli activate-pane --pane-id 12"),
    ({"WEZTERM_PANE": "-1"}, None),
    ({"ITERM_SESSION_ID": "5B3D6A4E"}, None),
    ({"TERM_PROGRAM": "vscode"}, "code '/p/a shop'"),
    ({"TERM_PROGRAM": "vscode", "VSCODE_GIT_ASKPASS_MAIN": "/Applications/Cursor.app/askpass"}, "cursor '/p/a shop'"),
    ({"TERM_PROGRAM": "ghostty"}, None),
    ({"TERM": "xterm-256color"}, None),
    ({}, None),
    # Another terminal that was started from a pane of tmux has its variables.
    ({**TMUX, "TERM": "xterm-kitty", "TERM_PROGRAM": "tmux", **KITTY}, "kitty @ focus-window --match id:7"),
    ({**TMUX, "TERM_PROGRAM": "vscode"}, "code '/p/a shop'"),
    ({**TMUX, "TERM_PROGRAM": "WezTerm", **WEZTERM}, "wezterm cli activate-pane --pane-id 12"),
    ({**TMUX, "TERM_PROGRAM": "ghostty"}, None),
]


@in_one_test(("terminal", "command"), COMMANDS)
def test_the_command_that_shows_a_terminal(terminal, command):
    place = find_place(terminal, "/p/a shop")
    assert (shlex.join(place.argv) if place else None) == command
    assert set(terminal) <= set(TERMINAL_VARIABLES)


def test_a_session_of_iterm_is_found_by_its_id():
    place = find_place({**ITERM, "TERM_PROGRAM": "iTerm.app"}, "/p")
    assert (place.argv[0], place.argv[-1]) == ("osascript", "5B3D6A4E-0C3F-4B55-9B0A-3B6C2E0F1A2D")


@in_one_test(
    ("name", "value", "expected"),
    [
        ("WEZTERM_UNIX_SOCKET", "/run/wezterm", {"WEZTERM_UNIX_SOCKET": "/run/wezterm"}),
        ("WEZTERM_UNIX_SOCKET", "host:1", {}),
        ("VSCODE_IPC_HOOK_CLI", "/run/vscode", {"VSCODE_IPC_HOOK_CLI": "/run/vscode"}),
        ("VSCODE_IPC_HOOK_CLI", "-x", {}),
    ],
)
def test_the_command_finds_the_terminal_by_its_socket(name, value, expected):
    program = {"WEZTERM_UNIX_SOCKET": "WezTerm", "VSCODE_IPC_HOOK_CLI": "vscode"}[name]
    assert find_place({**WEZTERM, "TERM_PROGRAM": program, name: value}, "/p").variables == expected


def refusal(place):
    """Return why a terminal is not shown."""
    with pytest.raises(TailhookError) as caught:
        asyncio.run(show_place(place))
    return str(caught.value)


@in_one_test(
    ("script", "words"),
    [
        ("echo no such pane >&2; exit 1", "pane 1: no such pane"),
        ("exit 3", "pane 1: /bin/sh exits 3"),
        ("printf '%0300d' 0 >&2; exit 1", f"pane 1: {'0' * 200}"),
        ("printf 'a\\033[2J' >&2; exit 1", "pane 1: a\\x1b[2J"),
    ],
)
def test_a_command_that_fails_gives_its_reason(script, words):
    assert refusal(TerminalPlace("pane 1", ["/bin/sh", "-c", script])) == words


def test_a_missing_or_hanging_command_is_named(monkeypatch, tmp_path):
    gone = str(tmp_path / "gone")
    assert refusal(TerminalPlace("pane 1", [gone, "a"])) == f"pane 1: {gone}: No such file or directory"
    assert terminals.COMMAND_TIMEOUT_S == 5
    monkeypatch.setattr(terminals, "COMMAND_TIMEOUT_S", 0)
    assert refusal(TerminalPlace("pane 1", ["/bin/sh", "-c", "exec sleep 1000"])) == "pane 1: /bin/sh does not answer"


def test_a_command_gets_the_terminals_variables_and_no_secret_of_the_daemon(monkeypatch, tmp_path):
    monkeypatch.setitem(posix.environ, b"TAILHOOK_TOKEN", b"secret")
    found = tmp_path / "found"
    asyncio.run(show_place(TerminalPlace("", ["/bin/sh", "-c", f"env > {found}"], {"WEZTERM_UNIX_SOCKET": "/run/w"})))
    assert "WEZTERM_UNIX_SOCKET=/run/w" in found.read_text().splitlines()
    assert "TAILHOOK_TOKEN" not in found.read_text()


@in_one_test(
    ("host", "terminal", "words"),
    [
        ("elsewhere", TMUX, "the session runs on elsewhere"),
        (None, None, "its terminal is unknown, or has no command that shows a session"),
        (os.uname().nodename, {"TERM_PROGRAM": "ghostty"}, "its terminal is unknown, or has no command"),
        (None, {"TMUX": "/gone/tmux,1,0", "TMUX_PANE": "%3"}, "tmux pane %3: "),
    ],
)
def test_a_session_whose_terminal_cannot_be_shown(host, terminal, words):
    with pytest.raises(TailhookError) as caught:
        asyncio.run(show_terminal({"host": host, "project_path": "/p"}, terminal or {}))
    assert str(caught.value).startswith(words)


# ---- what the daemon keeps ---------------------------------------------------


def terminal(database):
    return database.get("s")["terminal"]


def test_a_session_that_goes_on_in_another_terminal_forgets_the_first(database):
    database.record(report("session_start", terminal=TMUX))
    database.record(report("tool_start:Bash"))
    assert terminal(database) == TMUX
    database.record(report("prompt_submit", terminal=KITTY))
    assert terminal(database) == KITTY
    database.record(report("session_start", source="resume"))  # in a terminal without such variables
    assert terminal(database) is None


def test_late_events_and_those_of_sub_agents_change_no_terminal(database):
    early = report("prompt_submit", terminal=KITTY)
    database.record(report("prompt_submit", terminal=TMUX))
    database.record(early)
    database.record(report("prompt_submit", terminal=KITTY, agent_id="a"))
    assert terminal(database) == TMUX


@in_one_test(
    "given",
    [
        "tmux",
        [],
        {"TMUX_PANE": 3},
        {"TMUX_PANE": "%3\n"},
        {"TMUX_PANE": "\x1b[2J"},
        {"PATH": "/bin"},
        {"TERM": "x" * 201},
    ],
)
def test_other_values_name_no_terminal_and_lose_no_event(given):
    assert report("prompt_submit", terminal=given).terminal is None


# ---- the command that resumes a session --------------------------------------


def resumed_by(database, **fields):
    """Return the command that resumes a session."""
    database.delete(fields.get("session", "s"))
    database.record(report("prompt_submit", **fields))
    return describe_plate(database.get(fields.get("session", "s")), "p")["resume"]


@in_one_test(
    ("program", "command"),
    [
        ("claude-code", "claude --resume s"),
        ("codex", "codex resume s"),
        ("gemini", "gemini --resume s"),
        ("copilot", "copilot --resume s"),
        ("qwen", "qwen --resume s"),
    ],
)
def test_the_command_of_each_host(database, program, command):
    assert resumed_by(database, agent_program=program, project_path="/p/a shop") == f"cd '/p/a shop' && {command}"


@in_one_test(
    "fields",
    [
        {"agent_program": None},
        {"agent_program": "another"},
        {"agent_program": "cursor"},
        {"project_path": "/p/a\nrm -r ~"},
        {"project_path": "/p/\x1b[2J"},
        {"project_path": "p"},
        {"session": "-x"},
        {"session": "a;b"},
        {"session": "a b"},
        {"session": "$(a)"},
    ],
)
def test_what_a_shell_could_take_for_something_else_gives_no_command(database, fields):
    assert not resumed_by(database, **{"agent_program": "claude-code", **fields})


def test_an_event_names_its_host_as_the_hosts_are_named():
    assert HookEvent.agent_program == hosts.DEFAULT
