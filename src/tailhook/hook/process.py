"""One hook event, top to bottom: arguments, payload, machines, answer.

The exit code is 0 or 2, and 1 only if ralph cannot remove its state file. Unreadable input lets the agent stop.
Importing a module here costs time at every stop of every agent. So each machine (`tailhook.hook.<machine>`, with its
store) is imported only when it is asked and the project has a file for it.
"""

import posix
from time import perf_counter

from tailhook._core import get_text, preload
from tailhook.hook.answer import SPACED, describe, plain_lines, send_answer, warn, write_output
from tailhook.hook.event import HookEvent, has_marker_files
from tailhook.hook.machines import MACHINES, machine_hook
from tailhook.hook.payload import PAYLOAD_TIMEOUT_S, environment, project_folders, read_payload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

    from tailhook.machines import Verdict

    Answer = Callable[[dict[str, Any], int], None]


# Variables that other hosts set for hooks. These hosts also run the hooks of Claude Code's settings, beside a hook of
# their own: a stop would count twice.
OTHER_HOSTS = b"COPILOT_PROJECT_DIR", b"CURSOR_PROJECT_DIR", b"DEVIN_PROJECT_DIR"
NOTICES_SINCE = [2, 1, 141]  # the first Claude Code that writes an answer's `terminalSequence` to the terminal
CONTEXT_SINCE = [2, 1, 163]  # the first Claude Code whose agent goes on if a stop is answered with a context
MAX_CONTEXT_UNITS = 10_000  # of UTF-16; the agent gets only a preview of a longer context, but the whole of a block


def main(argv: "Sequence[str]") -> "NoReturn":
    """Answer one event and end the process at once: the host would wait for the interpreter's shutdown."""
    code, event, _ = run_hook(argv, posix.getppid())
    mark = environment(b"TAILHOOK_CLIENT")
    if mark and event is not None and event.setting("pool", "stats") is not False:
        from tailhook.stores.hook_times import record_cold

        record_cold(mark, event.name)
    posix._exit(code)


def run_hook(argv: "Sequence[str]", parent: int) -> "tuple[int, HookEvent | None, BaseException | None]":
    """Answer one event, even after an error.

    parent: the process that started the hook.

    Returns the exit code, the event if its payload was read, and an unexpected exception.
    """
    try:
        return *answer_event(argv, parent), None
    except BaseException as error:  # a hook never fails
        is_interrupted = isinstance(error, KeyboardInterrupt)
        what = "the hook was interrupted" if is_interrupted else f"{type(error).__name__}: {error}"
        warn(f"tailhook: {what}. The agent may stop.")
        return 0, None, error


def answer_event(argv: "Sequence[str]", parent: int) -> "tuple[int, HookEvent | None]":
    """Read the payload from stdin, ask the machines, write the answer to stdout.

    Returns the exit code, and the event if its payload was read.
    """
    started = perf_counter()
    if environment(b"TAILHOOK_DISABLE") == "1":
        return 0, None
    asked, event_name, block_code, announce, other_host = read_arguments(argv)
    if not other_host and any(map(environment, OTHER_HOSTS)) and not host_version():
        return 0, None
    disabled = [name for name, row in MACHINES.items() if "off_switch" in row and environment(row["off_switch"]) == "1"]
    if asked is not None and not set(asked).difference(disabled):
        return 0, None
    try:
        payload, broken = read_payload(first_byte_timeout=first_byte_timeout(asked)), ""
    except ValueError as error:
        payload, broken = {}, str(error)
    if payload is None:
        return 0, None
    event: HookEvent
    send: Answer = send_answer
    if other_host:
        from tailhook.hook.translated import TranslatedEvent
        from tailhook.hosts import find_translated_host

        host = find_translated_host(other_host)
        event = translated = TranslatedEvent(host, payload, event_name, broken, parent)
        send = translated.answer
        block_code = translated.exit_code(block_code)
    else:
        event = HookEvent(payload, event_name, broken, parent)
    machines = [name for name in asked or event.machines() if name not in disabled and event.concerns(name)]
    event.asked = deciding = [name for name in machines if not MACHINES[name].get("reports")]
    notices = None
    wanted = event.setting("plates", "notify.terminal") if "plates" in machines else None
    if wanted and not other_host and host_version() >= NOTICES_SINCE:
        from tailhook.hook.terminal_notices import NoticeSender

        notices = NoticeSender(send, wanted)
        send = notices.keep
    exit_code, blocked = ask_machines(event, deciding, send, block_code, announce, started)
    if notices:
        notices.finish(event, blocked)
    for name in machines:
        if MACHINES[name].get("reports"):
            report_event(name, event, blocked)
    return exit_code, event


def ask_machines(
    event: HookEvent, machines: "Sequence[str]", send: "Answer", block_code: int | None, announce: bool, started: float
) -> tuple[int, bool]:
    """Ask the machines until one blocks, and send the answer; return the exit code, and whether one blocked.

    block_code: the exit code of a block; None if each machine has its own.
    announce: whether to notify the person when a loop ends.
    started: when the hook was started, by `perf_counter`.
    """
    is_compacted = event.name == "SessionStart" and get_text(event.payload, "source") == "compact"
    is_prompted = event.name == "UserPromptSubmit" and event.gives_texts and not event.payload.get("agent_id")
    if is_compacted or is_prompted:
        if not machines:
            return 0, False
        preload("hook.briefings")
        from tailhook.hook.briefings import give_loops

        return give_loops(event, machines, send), False
    if not event.is_stop():
        return 0, False
    announced: list[str] = []
    exit_code = 0
    for name in machines:
        try:
            verdict = machine_hook(name).ask(event)
        except Exception as error:  # only this machine fails: the others are still asked
            from tailhook.hook.failures import failed

            verdict = failed(name, error)
        write_log(event, name, verdict, started)
        if verdict is None:
            continue
        if verdict.warning:
            warn(verdict.warning)
        if verdict.ended:
            event.has_ended_loop = True
        if verdict.outcome == "block":
            code = MACHINES[name].get("exit_code", 0) if block_code is None else block_code
            takes_context = code == 0 and type(event) is HookEvent and fits_context(verdict.reason)
            send(block_answer(verdict, code, announced, takes_context), MACHINES[name].get("style", SPACED))
            return code, True
        if verdict.outcome == "fail":
            exit_code = 1
        if announce and (verdict.ended or verdict.message):
            announced.append(verdict.message or f"tailhook: {verdict.why}")
    if announced:
        send({"systemMessage": "\n".join(announced)}, SPACED)
    return exit_code, False


def report_event(name: str, event: HookEvent, blocked: bool) -> None:
    """Report the event to the board. The answer is sent already, so a failure only prints a warning."""
    try:
        machine_hook(name).report(event, blocked)
    except Exception as error:
        warn(f"tailhook: {name}: {describe(error)}. The board does not get this event.")


def write_log(event: HookEvent, machine: str, verdict: "Verdict[Any] | None", started: float) -> None:
    """Write one line to the log file, if the user wants one: time, machine, decision, why, milliseconds."""
    path = environment(b"TAILHOOK_LOG") or event.setting("hook", "log", "")
    if path:
        from tailhook.hook.log import write_log_line

        write_log_line(path, event.now, machine, verdict, perf_counter() - started)


def first_byte_timeout(machines: "Sequence[str] | None") -> float:
    """Return the seconds to wait for the payload's first byte.

    If no asked machine needs a payload, and the folders known without one have no marker file, do not wait: read only
    the buffered bytes. (A host that sets CLAUDE_PROJECT_DIR starts the hook in the session's folder.)
    """
    if not machines or not environment(b"CLAUDE_PROJECT_DIR"):
        return PAYLOAD_TIMEOUT_S
    for name in machines:
        if not MACHINES[name].get("takes_broken_payload") or has_marker_files(name, project_folders({})):
            return PAYLOAD_TIMEOUT_S
    return 0


def host_version() -> "list[int]":
    """Return the version of the Claude Code that runs this hook, [] if it is unknown.

    Claude Code 2.1.329 sets AI_AGENT to claude-code_2-1-329_harness for its hooks. In the agent's shell it has another
    ending.
    """
    name, _, rest = environment(b"AI_AGENT").partition("_")
    version, _, runner = rest.partition("_")
    numbers = version.split("-")
    is_known = name == "claude-code" and runner == "harness" and all(map(str.isdecimal, numbers))
    return [int(number) for number in numbers] if is_known else []


def fits_context(reason: str) -> bool:
    """Return whether the agent reads a whole reason, and goes on, if the host gets it as a context."""
    if len(reason) > MAX_CONTEXT_UNITS or host_version() < CONTEXT_SINCE:
        return False
    return len(reason.encode("utf-16", "surrogatepass")) // 2 <= MAX_CONTEXT_UNITS + 1  # with a mark of the byte order


def block_answer(
    verdict: "Verdict[Any]", exit_code: int, announced: "Sequence[str]", takes_context: bool
) -> "dict[str, Any]":
    """Return the answer that makes the agent continue and notifies the person about ended loops.

    Prints the reason on stderr at exit code 2: older hosts read it there, newer ones read the JSON.

    takes_context: whether the agent also goes on after a context. A block is an error to Claude Code: it shows "Stop
    hook reported a problem", and gives the agent the reason twice.
    """
    if exit_code == 2:
        write_output(2, f"{plain_lines(verdict.reason)}\n".encode("utf-8", "backslashreplace"))
    fields: dict[str, Any] = {"decision": "block", "reason": verdict.reason}
    if takes_context:
        fields = {"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": verdict.reason}}
    if messages := [*announced, *filter(None, [verdict.message])]:
        fields["systemMessage"] = "\n".join(messages)
    return fields


def read_arguments(argv: "Sequence[str]") -> "tuple[list[str] | None, str, int | None, bool, str]":
    """Return the arguments of `tailhook hook`.

    Prints unknown ones on stderr and ignores them: a usage error must not block a host.

    Returns: the known machines of the given names, in the order of asking, None if no names were given; the event's
    name if the payload does not name it; the exit code of a block, None if each machine has its own; whether to notify
    the person when a loop ends; the agent host, "" for Claude Code.
    """
    machines: list[str] | None = None
    event = other_host = ""
    exit_code = 0 if environment(b"TAILHOOK_EXIT") == "0" else None
    announce = False
    unknown = []
    words = iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        if name in ("--event", "--exit", "--host") and not equals:
            value = next(words, "")
            word = f"{name} {value}".rstrip()
        if name == "--event" and value:
            event = value
        elif name == "--exit" and value in ("0", "2"):
            exit_code = int(value)
        elif name == "--announce" and not equals:
            announce = True
        elif name == "--host" and (host := find_other_host(value)) is not None:
            other_host = host
        elif word.startswith("-"):
            unknown.append(word)
        else:
            asked = word.split(",")
            unknown += [machine for machine in asked if machine and machine not in MACHINES]
            machines = [machine for machine in MACHINES if machine in asked or machine in (machines or ())]
    if unknown:
        warn(f"tailhook: unknown arguments ignored: {', '.join(unknown)}")
    return machines, event, exit_code, announce, other_host


def find_other_host(name: str) -> str | None:
    """Return a host's name, "" for Claude Code's, None for an unknown name."""
    from tailhook.hosts import DEFAULT, NAMES

    if name not in NAMES:
        return None
    return "" if name == DEFAULT else name
