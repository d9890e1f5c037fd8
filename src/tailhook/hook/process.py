"""One hook event, top to bottom: arguments, payload, machines, answer.

The exit code is 0 or 2 whatever happens: what cannot be understood lets the agent go. This is the cold path: a module
imported here is paid for at every stop of every agent, so each machine, in `tailhook.hook.<machine>` with its store, is
imported when it is asked, and only where the project holds something that it answers for.
"""

import posix
from time import perf_counter, time

from tailhook._core import last_message
from tailhook.hook.answer import SPACED, answer, describe, plain_lines, put, warn
from tailhook.hook.machines import MACHINES, machines_with
from tailhook.hook.payload import (
    SECONDS,
    environment,
    exists,
    project_folders,
    project_root,
    read,
    text,
    user_config,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, NoReturn

    from tailhook.hook.config import Config
    from tailhook.hook.payload import Payload
    from tailhook.machines import Verdict

    Say = Callable[[dict[str, Any], int], None]

HOSTS = ("claude-code", "codex", "gemini", "cursor", "copilot")
CLOCK_SLACK = 2.0  # seconds by which a record may be older than a state and still count
FARTHEST = 64 << 20  # bytes from the transcript's end that are read back at the most
LONGEST_LINE = 16 << 20  # longer ones are passed over; what lies before them is unknown
MAX_LINES = 250_000  # that are read back; 64 MiB of a real transcript have a quarter as many
NEAR_END = 1 << 20  # bytes from the transcript's end in which the message is looked for whose last block we have


def main(argv: "Sequence[str]") -> "NoReturn":
    """Answer one event and end the process; interpreter shutdown is time the host would wait for."""
    try:
        code = run(argv)
    except BaseException as error:  # a hook never fails
        warn(f"tailhook: {type(error).__name__}: {error}. The agent may stop.")
        code = 0
    posix._exit(code)


def run(argv: "Sequence[str]") -> int:
    """Answer one event: payload on stdin, answer on stdout; returns the exit code."""
    started = perf_counter()
    if environment(b"TAILHOOK_DISABLE") == "1":
        return 0
    options = Options(argv)
    disabled = ("idle",) if environment(b"IDLE_LOOP_DISABLE") == "1" else ()
    if options.machines is not None and not set(options.machines).difference(disabled):
        return 0
    try:
        payload, broken = read(first=patience(options.machines)), ""
    except ValueError as error:
        payload, broken = {}, str(error)
    if payload is None:
        return 0
    if options.host == "claude-code":
        event, say = Event(payload, options.event, broken), answer
    else:
        from tailhook.hook.hosts import OtherEvent

        event = other = OtherEvent(options.host, payload, options.event, broken)
        say = other.answer
        options.exit_code = other.exit_code(options.exit_code)
    machines = [name for name in options.machines or event.machines() if name not in disabled and event.concerns(name)]
    deciding = [name for name in machines if not MACHINES[name].get("reports")]
    exit_code, blocked = decide(event, deciding, options, say, started)
    for name in machines:
        if MACHINES[name].get("reports"):
            report(name, event, blocked)
    return exit_code


def decide(
    event: "Event", machines: "Sequence[str]", options: "Options", say: "Say", started: float
) -> tuple[int, bool]:
    """Ask the machines and answer; the exit code, and whether one of them blocked."""
    if event.name == "SessionStart" and text(event.payload, "source") == "compact":
        return tell_again(event, machines, say), False
    if not event.is_stop():
        return 0, False
    announced: list[str] = []
    exit_code = 0
    for name in machines:
        try:
            verdict = machine(name).ask(event)
        except Exception as error:  # it is this machine's alone: the others are asked all the same
            verdict = failed(name, error)
        event.log(name, verdict, started)
        if verdict is None:
            continue
        if verdict.warning:
            warn(verdict.warning)
        if verdict.outcome == "block":
            code = MACHINES[name].get("exit_code", 0) if options.exit_code is None else options.exit_code
            say(block(verdict, code, announced), MACHINES[name].get("style", SPACED))
            return code, True
        if verdict.outcome == "fail":
            exit_code = 1
        if options.announce and (verdict.ended or verdict.message):
            announced.append(verdict.message or f"tailhook: {verdict.why}")
    if announced:
        say({"systemMessage": "\n".join(announced)}, SPACED)
    return exit_code, False


def report(name: str, event: "Event", blocked: bool) -> None:
    """Report the event to the board. The answer has been given, so a failure only prints a warning."""
    try:
        machine(name).tell(event, blocked)
    except Exception as error:
        warn(f"tailhook: {name}: {describe(error)}. The board does not get this event.")


def machine(name: str) -> "Any":
    """Import and return the module of a machine's hook."""
    return __import__(f"tailhook.hook.{name}", None, None, ("ask",))


def failed(name: str, error: Exception) -> "Verdict":
    """Return the verdict of a machine that raised an exception: its state stays, and the person gets one line."""
    from tailhook.machines import Verdict

    what = describe(error)
    return Verdict("allow", what, warning=f"tailhook: {name}: {what}. Its state is left; the agent may stop.")


def patience(machines: "Sequence[str] | None") -> float:
    """Seconds to wait for the payload's first byte.

    Where ralph alone is asked and no loop is in the folders known without a payload, an ordinary stop waits for
    nothing: a host that names the project's folder starts the hook in the session's. What is there at once is read.
    """
    if (
        machines == ["ralph"]
        and environment(b"CLAUDE_PROJECT_DIR")
        and not has_marker_files("ralph", project_folders({}))
    ):
        return 0
    return SECONDS


def has_marker_files(name: str, folders: "Iterable[str]") -> bool:
    """Return whether one of the folders holds a marker file of the machine."""
    return any(exists(f"{folder}/{path}") for folder in folders for path in MACHINES[name].get("marker_files", ()))


def tell_again(event: "Event", machines: "Sequence[str]", say: "Say") -> int:
    """Repeat the live loops of this session to the agent after a compaction, which would lose them."""
    told = []
    for name in machines:
        if not MACHINES[name].get("repeats"):
            continue
        try:
            told.append(machine(name).tell_again(event))
        except Exception as error:
            warn(failed(name, error).warning)
    if any(told):
        context = plain_lines("\n\n".join(filter(None, told)))
        say({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": context}}, SPACED)
    return 0


def block(verdict: "Verdict", exit_code: int, announced: "Sequence[str]") -> "dict[str, Any]":
    """The answer that sends the agent on, and tells the person what ended.

    Older hosts read stderr at exit code 2, newer ones the JSON.
    """
    if exit_code == 2:
        warn_lines(verdict.reason)
    fields = {"decision": "block", "reason": verdict.reason}
    if messages := [*announced, *filter(None, [verdict.message])]:
        fields["systemMessage"] = "\n".join(messages)
    return fields


def warn_lines(words: str) -> None:
    """Several lines on stderr."""
    put(2, f"{plain_lines(words)}\n".encode("utf-8", "backslashreplace"))


class Options:
    """The arguments of `tailhook hook`.

    machines: the names that were given and are known, in the order of asking; None when none were given.
    exit_code: of a block; None where each machine has its own.  host: the agent host, of HOSTS.
    What is unknown is told on one line of stderr and left out: a usage error must not block a host.
    """

    def __init__(self, argv: "Sequence[str]") -> None:
        self.machines: list[str] | None = None
        self.event = ""
        self.exit_code: int | None = 0 if environment(b"TAILHOOK_EXIT") == "0" else None
        self.announce = False
        self.host = "claude-code"
        unknown = []
        words = iter(argv)
        for word in words:
            name, equals, value = word.partition("=")
            if name in ("--event", "--exit", "--host") and not equals:
                value = next(words, "")
                word = f"{name} {value}".rstrip()
            if name == "--event" and value:
                self.event = value
            elif name == "--exit" and value in ("0", "2"):
                self.exit_code = int(value)
            elif name == "--announce" and not equals:
                self.announce = True
            elif name == "--host" and value in HOSTS:
                self.host = value
            elif word.startswith("-"):
                unknown.append(word)
            else:
                asked = word.split(",")
                unknown += [machine for machine in asked if machine and machine not in MACHINES]
                self.machines = [
                    machine for machine in MACHINES if machine in asked or machine in (self.machines or ())
                ]
        if unknown:
            warn(f"tailhook: not known, left out: {', '.join(unknown)}")


class Event:
    """One hook event: what the machines ask about it, each thing found out once, and only when asked.

    broken: what is wrong with the payload, "" for nothing; ralph alone decides on a broken one.
    """

    def __init__(self, payload: "Payload", name: str, broken: str = "") -> None:
        self.payload = payload
        self.broken = broken
        self.name = text(payload, "hook_event_name") or name
        self.session_id = text(payload, "session_id")
        self.now = time()
        self.root = project_root(payload)
        self.folders = list(project_folders(payload))
        self.config = load_config(self.root)
        self.newest: tuple[str, list[tuple[bytes, float | None]]] | None = None
        self.reader: Callable[[int, int, int, int], tuple[str, list[tuple[bytes, float | None]]]] = last_message

    def is_stop(self) -> bool:
        """Whether the Stop machines answer for it: an agent's own stop, not a sub-agent's."""
        return self.name in ("Stop", "") and not self.payload.get("agent_id")

    def machines(self) -> "Sequence[str]":
        """The configured machines, in the order of asking."""
        wanted = self.setting("hook", "machines")
        return machines_with("default") if wanted is None else [name for name in MACHINES if name in wanted]

    def concerns(self, name: str) -> bool:
        """Whether the machine could have something to decide."""
        machine = MACHINES[name]
        if self.broken and not machine.get("takes_broken_payload"):
            return False
        if self.setting(name, machine.get("marker_setting", "")):
            return True
        return "marker_files" not in machine or has_marker_files(name, self.folders)

    def setting(self, section: str, key: str, default: "Any" = None) -> "Any":
        """A value of the configuration."""
        return self.config.get(section, {}).get(key, default)

    def unbound_acts(self) -> bool:
        """Whether a state that names no session is everyone's."""
        return bool(self.setting("hook", "unbound") != "refuse")

    def final_text(self, since: float | None = None) -> bytes:
        """Return what the agent said last, in UTF-8, as it was written: blank space at its beginning may make it code.

        The payload holds only the message's last text block. If the transcript's newest message ends with it, the whole
        message is returned (Claude Code 2.1.329 writes it 35 to 70 ms after the hook's start). Its time is checked, as
        an older message could end the same way.

        since: of a transcript's words, how old they may be (Unix seconds); None for any age.
        """

        def is_fresh(at: float | None) -> bool:
            return since is None or at is None or at >= since

        said = text(self.payload, "last_assistant_message")
        bare = said.strip()
        _, texts = self.newest_message(NEAR_END if bare else FARTHEST)
        if not bare:
            return b"\n".join(words for words, at in texts if is_fresh(at))
        written = b"\n".join(words for words, _ in texts)
        if ends_with(written, bare) and is_fresh(texts[-1][1]):
            return written
        return said.encode("utf-8", "surrogatepass")

    def newest_message(self, farthest: int = FARTHEST) -> "tuple[str, list[tuple[bytes, float | None]]]":
        """The newest assistant text among the transcript's last `farthest` bytes, as `last_message` gives it.

        Outcome "unreadable", without texts, where no transcript is to be had. Read once, as far as it is first asked.
        """
        if self.newest is None:
            self.newest = "unreadable", []
            try:
                fd = posix.open(self.transcript_path(), posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
            except (OSError, ValueError):
                return self.newest
            try:
                self.newest = self.reader(fd, farthest, LONGEST_LINE, MAX_LINES)
            except OSError:
                pass
            finally:
                posix.close(fd)
        return self.newest

    def transcript_path(self) -> str:
        """Where the payload says that the transcript is, "" when it does not say."""
        path = text(self.payload, "transcript_path")
        return f"{environment(b'HOME')}{path[1:]}" if path.startswith("~/") else path

    def folder(self, path: str) -> str | None:
        """The absolute form of `path` when it is a folder; relative ones are below the project's root."""
        path = path if path.startswith("/") else f"{self.root}/{path}"
        try:
            is_folder = posix.stat(path).st_mode & 0o170000 == 0o040000
        except (OSError, ValueError):
            return None
        return path if is_folder else None

    def log(self, machine: str, verdict: "Verdict | None", started: float) -> None:
        """One line to the log file, when there is one: time, machine, decision, why, milliseconds."""
        path = environment(b"TAILHOOK_LOG") or self.setting("hook", "log", "")
        if path:
            from tailhook.hook.log import write

            write(path, self.now, machine, verdict, perf_counter() - started)


def ends_with(written: bytes, bare: str) -> bool:
    """Return whether a message ends with words that have no blank space around them; blank space after them is ignored.

    written: UTF-8; a lone surrogate is three bytes.
    """
    end = written.rstrip()
    if end[-1:] >= b"\x80" or b"\x1c" <= end[-1:] <= b"\x1f":  # it may be blank space that bytes do not know
        return written.decode("utf-8", "surrogatepass").rstrip().endswith(bare)
    return end.endswith(bare.encode("utf-8", "surrogatepass"))


def load_config(root: str) -> "Config":
    """The configuration; the module that reads it is loaded only when there is a file."""
    if exists(user_config()) or exists(f"{root}/.claude/tailhook.json"):
        from tailhook.hook.config import load

        return load(root)
    return {}
