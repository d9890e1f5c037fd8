"""The plates machine's hook: it appends each event of a session to the spool, and then wakes the daemon.

It reports only facts for a board: what a tool works on, the first line of a prompt and of the last message, and the
number of to-dos.
"""

import posix

from tailhook._core import get_text, write_json
from tailhook.hook.payload import count_waking_tasks, environment, folder_of, working_folder
from tailhook.stores.atomic import SAFE
from tailhook.stores.processes import pid_namespace, process_start, uptime_ms, without_shell
from tailhook.stores.spool import RUN_ID_VARIABLE, append_record, wake_daemon

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tailhook.hook.event import HookEvent
    from tailhook.hook.payload import Payload

# Names of the host's events, and the short names that `--event` also accepts.
KINDS = {
    "SessionStart": "session_start",
    "UserPromptSubmit": "prompt_submit",
    "PreToolUse": "tool_start",
    "PostToolUse": "tool_call",
    "PostToolUseFailure": "tool_call",
    "PermissionRequest": "permission_asked",
    "PermissionDenied": "tool_call",
    "Elicitation": "input_asked",
    "ElicitationResult": "input_given",
    "SubagentStart": "subagent_start",
    "SubagentStop": "subagent_stop",
    "Stop": "stop",
    "StopFailure": "stop_failure",
    "Interrupt": "interrupted",  # of Codex
    "SessionEnd": "session_end",
    "session-start": "session_start",
    "prompt-submit": "prompt_submit",
    "pre-tool-use": "tool_start",
    "post-tool-use": "tool_call",
    "stop": "stop",
    "": "stop",
}
# Kinds that a sub-agent's event must not have: it would change its session.
OF_SESSIONS = ("session_start", "prompt_submit", "stop", "stop_failure", "interrupted", "session_end")
ENDS_OF_TURNS = "stop", "stop_paused"
LINE_MARKS = "#", "##", "###", "####", ">", "-", "*", "+"  # of Markdown, at the beginning of a line
# Types of the Notification event.
NOTIFICATIONS = {
    "permission_prompt": "permission_asked",
    "permission_given": "permission_given",  # of Kimi Code
    "permission_refused": "tool_call",
    "idle_prompt": "turn_ended",
    "elicitation_dialog": "input_asked",
    "elicitation_url_dialog": "input_asked",
    "elicitation_response": "input_given",
    "elicitation_complete": "input_given",
}
PERSONS_SOURCES = "user", "sdk"  # of a prompt; with any other source, Claude Code wrote it (2.1.332)
# Without a source: the beginnings of the prompts of Claude Code and of Copilot at the end of a background task.
HOSTS_PROMPTS = "<task-notification>", "<system_notification>"
MAX_REPORTED_CHARS = 200  # of a name, a file's path or a command
MAX_SEARCHED_CHARS = 1000  # of a text, for its first words
MAX_CHOICES = 10  # of a question
PATCH_START = "*** Begin Patch\n*** "  # of the tools of Codex and Copilot that edit files; then "Add File: PATH"
# What a tool works on, by the names in its input.
TOOL_SUBJECTS = "command", "question", "plan", "url", "pattern", "query", "description"
# Environment variables that together name the terminal, and the window or pane in it.
TERMINAL_VARIABLES = (
    *("TERM", "TERM_PROGRAM", "TMUX", "TMUX_PANE", "WEZTERM_PANE", "WEZTERM_UNIX_SOCKET"),
    *("KITTY_WINDOW_ID", "KITTY_LISTEN_ON", "ITERM_SESSION_ID", "VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_ASKPASS_MAIN"),
)
NAMES_TERMINAL = "session_start", "prompt_submit"  # kinds that report it: a session may go on in another one
MAX_GIT_FILE_BYTES = 1 << 13  # read from .git and .git/HEAD


def report(event: "HookEvent", blocked: bool = False) -> None:
    """Append an event of a session to the spool, wake the daemon, and start it if there is none.

    `tailhook.plates.schemas.Report` describes the fields of an event. Empty, zero and false fields are left out.

    blocked: a machine blocked the stop and sent the agent on.

    Raises OSError.
    """
    kind = event_type_of(event)
    if not kind or not event.session_id:
        return
    if blocked and kind == "stop":
        kind = "stop_blocked"
    elif (
        event.has_paused_loop
        and kind == "stop"
        and not (event.payload.get("error") or count_waking_tasks(event.payload))
    ):
        kind = "stop_paused"
    pid, is_guess = host_process(event)
    payload = event.payload
    folder = working_folder(payload)
    project = folder_of(b"CLAUDE_PROJECT_DIR") or folder
    fields = {
        "event_id": posix.urandom(16).hex(),
        "event_type": kind,
        "ts": int(event.now * 1000),
        "mono": uptime_ms(),
        "session_id": event.session_id,
        "project_path": project,
        "folder": folder if folder != project else "",
        "transcript_path": event.transcript_path(),
        "transcript_size": transcript_size(event.transcript_path()),
        "git_branch": git_branch(event.root),
        "title": session_title_of(payload),
        "prompt": prompt_of(payload) if kind == "prompt_submit" else "",
        "reply": reply_of(event) if kind in ENDS_OF_TURNS else "",
        "tool_name": tool_name(payload)[:MAX_REPORTED_CHARS],
        "tool_use_id": get_text(payload, "tool_use_id")[:MAX_REPORTED_CHARS],
        "agent_id": get_text(payload, "agent_id")[:MAX_REPORTED_CHARS],
        "tool_params": tool_params(payload),
        "error": error_of(payload),
        "source": get_text(payload, "source")[:MAX_REPORTED_CHARS] if kind == "session_start" else "",
        "by_host": kind == "prompt_submit" and is_hosts_prompt(payload),
        "background": count_waking_tasks(payload) if kind == "stop" else 0,
        "agent_program": event.agent_program,
        "terminal": session_terminal() if kind in NAMES_TERMINAL else None,
        "run_id": environment(RUN_ID_VARIABLE),
        "pid": pid,
        "pid_started": process_start(pid),
        "pid_is_guess": is_guess,
        "pid_namespace": pid_namespace(),
        "host": posix.uname().nodename,
    }
    append_record(write_json({name: value for name, value in fields.items() if value}) + b"\n")
    if not wake_daemon() and may_start(event):
        from tailhook.hook.launch import start_daemon

        start_daemon()


def event_type_of(event: "HookEvent") -> str:
    """Return the type of a reported event, or "" if the event is not reported."""
    if event.name == "Notification":
        return NOTIFICATIONS.get(get_text(event.payload, "notification_type"), "")
    if event.name == "PostCompact":  # in a turn, or a person asked for the compaction while the agent was idle
        return "turn_ended" if get_text(event.payload, "trigger") == "manual" else ""
    kind = KINDS.get(event.name, "")
    if kind in OF_SESSIONS and event.payload.get("agent_id"):
        return ""  # a sub-agent's
    return kind


def is_hosts_prompt(payload: "Payload") -> bool:
    """Return whether the host wrote the prompt, and not a person or a program."""
    source = get_text(payload, "source")
    return source not in PERSONS_SOURCES if source else get_text(payload, "prompt").startswith(HOSTS_PROMPTS)


def tool_name(payload: "Payload") -> str:
    """Return the event's tool, or the prefix of an MCP server's tools' names, or ""."""
    server = get_text(payload, "mcp_server_name")
    if not server:
        return get_text(payload, "tool_name")
    return "mcp__" + "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "_-") else "_" for letter in server
    )


def transcript_size(path: str) -> int:
    """Return the size of a file in bytes, or 0 if it is missing."""
    try:
        return posix.stat(path).st_size
    except (OSError, ValueError):
        return 0


def tool_params(payload: "Payload") -> "dict[str, Any] | None":
    """Return the shown part of a tool's input, or an MCP server's question, or None."""
    given = payload.get("tool_input")
    if isinstance(given, str):
        given = {"path": patched_file(given)}
    if not isinstance(given, dict):
        asked = first_words(get_text(payload, "message")) if get_text(payload, "mcp_server_name") else ""
        return {"question": asked} if asked else None
    if isinstance(todos := given.get("todos"), list):
        done = sum(isinstance(one, dict) and one.get("status") == "completed" for one in todos)
        return {"todos_done": done, "todos": len(todos)}
    paths = get_text(given, "file_path"), get_text(given, "notebook_path"), patched_file(get_text(given, "command"))
    for path in filter(None, paths):
        return {"file_path": path[-MAX_REPORTED_CHARS:]}
    question = first_question(given)
    for name in TOOL_SUBJECTS:
        text = get_text(question if name == "question" else given, name)
        if text:
            from tailhook.machines.quoting import plain_words

            if name == "plan":
                return {name: first_words(text)}
            about = {name: plain_words(text, MAX_REPORTED_CHARS)}
            return {**about, "choices": shown_choices(question)} if name == "question" else about
    path = get_text(given, "path")  # of the tools of Copilot that edit files; of a search, it is not the subject
    return {"file_path": path[-MAX_REPORTED_CHARS:]} if path else None


def patched_file(patch: str) -> str:
    """Return the first file of a patch, "" if the text is not a patch."""
    if not patch.startswith(PATCH_START):
        return ""
    return patch[len(PATCH_START) :].partition("\n")[0].partition(" File: ")[2].strip()


def first_question(given: "dict[str, Any]") -> "dict[str, Any]":
    """Return the first of the questions in a tool's input, or the input itself if it has no list of them."""
    questions = given.get("questions")
    first = questions[0] if isinstance(questions, list) and questions else None
    return first if isinstance(first, dict) else given


def shown_choices(question: "dict[str, Any]") -> list[str]:
    """Return the answers that a question offers."""
    from tailhook.machines.quoting import plain_words

    given = question.get("options") or question.get("choices")
    labels = [one.get("label") if isinstance(one, dict) else one for one in given] if isinstance(given, list) else []
    return [plain_words(one, MAX_REPORTED_CHARS) for one in labels[:MAX_CHOICES] if one and isinstance(one, str)]


def session_title_of(payload: "Payload") -> str:
    """Return the name that a person gave the session, or ""."""
    title = get_text(payload, "session_title")
    if not title:
        return ""
    from tailhook.machines.quoting import plain_words

    return plain_words(title, MAX_REPORTED_CHARS)


def prompt_of(payload: "Payload") -> str:
    """Return the first line of the prompt that a person typed; "" if the host wrote it."""
    return "" if is_hosts_prompt(payload) else first_words(get_text(payload, "prompt"))


def reply_of(event: "HookEvent") -> str:
    """Return the first line of the agent's last message; "" if the payload does not hold it."""
    return first_words(event.last_text_block()) if get_text(event.payload, "last_assistant_message") else ""


def first_words(text: str) -> str:
    """Return the first line of a Markdown text, without the marks of headings, lists and bold words, and secrets.

    >>> first_words("## **Done.** All tests pass.\\n\\nI left the rest.")
    'Done. All tests pass.'
    """
    from tailhook.machines.quoting import plain_words

    for line in text.lstrip()[:MAX_SEARCHED_CHARS].split("\n"):
        mark, _, rest = line.strip().partition(" ")
        words = plain_words((rest if mark in LINE_MARKS else line).replace("**", ""), MAX_REPORTED_CHARS)
        if any(map(str.isalnum, words)):
            return words
    return ""


def error_of(payload: "Payload") -> str:
    """Return the error that the payload reports, or ""."""
    error = payload.get("error")
    if error and isinstance(error, str):
        from tailhook.machines.quoting import plain_words

        return plain_words(error, MAX_REPORTED_CHARS) or "error"
    return "error" if error else ""


def session_terminal() -> dict[str, str]:
    """Return the variables that name the session's terminal, without missing ones."""
    found = {name: environment(name.encode()) for name in TERMINAL_VARIABLES}
    return {name: value for name, value in found.items() if 0 < len(value) <= MAX_REPORTED_CHARS}


def git_branch(root: str) -> str:
    """Return the checked-out branch at `root`.

    Without a branch, returns the first characters of the commit; outside of git, "".
    """
    try:
        try:
            head = read_git_file(f"{root}/.git/HEAD")
        except NotADirectoryError:  # of a worktree or a submodule, .git is a file with the folder's path
            gitdir = read_git_file(f"{root}/.git").partition(b"gitdir:")[2].strip().decode("utf-8", "surrogateescape")
            head = read_git_file(f"{gitdir if gitdir.startswith('/') else f'{root}/{gitdir}'}/HEAD")
    except (OSError, ValueError):
        return ""
    name = head.strip().decode("utf-8", "replace")
    return name[16:][:MAX_REPORTED_CHARS] if name.startswith("ref: refs/heads/") else name[:7]


def read_git_file(path: str) -> bytes:
    """Return the beginning of a file below .git: in a clone it may have any size. Raises OSError."""
    fd = posix.open(path, posix.O_RDONLY | SAFE)
    try:
        return posix.read(fd, MAX_GIT_FILE_BYTES)
    finally:
        posix.close(fd)


def host_process(event: "HookEvent") -> tuple[int, bool]:
    """Return the process id of the agent's host, and whether it is a guess.

    Claude Code names it. Another host in its shell has that variable, too. Its guess is the process that started the
    hook, or the one that started this shell: another program may stand between.
    """
    given = environment(b"CLAUDE_PID") if event.agent_program == "claude-code" else ""
    if given.isascii() and given.isdigit() and len(given) < 10:
        return int(given), False
    return without_shell(event.parent), True


def may_start(event: "HookEvent") -> bool:
    """Return whether the user allows a hook to start the daemon."""
    return environment(b"TAILHOOK_NO_AUTOSTART") != "1" and event.setting("plates", "autostart") is not False
