"""One hook event, top to bottom: arguments, payload, machines, answer.

The exit code is 0 or 2 whatever happens: what cannot be understood lets the agent go. This is the cold path: a module
imported here is paid for at every stop of every agent, so each machine and its store are imported when they are asked.
"""

import posix
from time import perf_counter, time

from tailhook._core import last_message, signals
from tailhook.hook.answer import answer, plain_lines, put, warn
from tailhook.hook.payload import (
    environment,
    exists,
    is_paused,
    project_folders,
    project_root,
    read,
    text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from tailhook.hook.config import Config
    from tailhook.hook.payload import Payload
    from tailhook.machines.idle import Verdict
    from tailhook.stores.fallback import FileLoop
    from tailhook.stores.loop import JwzLoop

MACHINES = ("idle",)  # in the order in which they are asked; the first that blocks answers
CLOCK_SLACK = 2.0  # seconds by which a record may be older than the state and still count
FARTHEST = 64 << 20  # bytes from the transcript's end that are read back at the most
LONGEST_LINE = 16 << 20  # longer ones are passed over; what lies before them is unknown
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
    payload = read()
    if payload is None:
        return 0
    event = Event(payload, options.event)
    machines = [name for name in options.machines or event.machines() if name not in disabled]
    if event.name == "SessionStart" and text(payload, "source") == "compact":
        return tell_again(event, machines)
    if not event.is_stop():
        return 0
    for name in machines:
        verdict = ASK[name](event)
        event.log(name, verdict, started)
        if verdict is None:
            continue
        if verdict.warning:
            warn(verdict.warning)
        if verdict.outcome == "block":
            return block(verdict.reason, options.exit_code)
        if verdict.ended and options.announce:
            answer({"systemMessage": f"tailhook: {verdict.why}"})
            return 0
    return 0


def block(reason: str, exit_code: int) -> int:
    """Send the agent on. Older hosts read stderr at exit code 2, newer ones the JSON."""
    if exit_code == 2:
        warn_lines(reason)
    answer({"decision": "block", "reason": reason})
    return exit_code


def warn_lines(words: str) -> None:
    """Several lines on stderr."""
    put(2, f"{plain_lines(words)}\n".encode("utf-8", "backslashreplace"))


class Options:
    """The arguments of `tailhook hook`.

    machines: the names that were given and are known, in the order of asking; None when none were given.
    What is unknown is told on one line of stderr and left out: a usage error must not block a host.
    """

    def __init__(self, argv: "Sequence[str]") -> None:
        self.machines: list[str] | None = None
        self.event = ""
        self.exit_code = 0 if environment(b"TAILHOOK_EXIT") == "0" else 2
        self.announce = False
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
            elif name == "--host" and value == "claude-code":
                pass
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
    """One hook event: what the machines ask about it, each thing found out once, and only when asked."""

    def __init__(self, payload: "Payload", name: str) -> None:
        self.payload = payload
        self.name = text(payload, "hook_event_name") or name
        self.session_id = text(payload, "session_id")
        self.now = time()
        self.root = project_root(payload)
        self.folders = list(project_folders(payload))
        self.config = load_config(self.root)
        self.final_texts: dict[float | None, bytes] = {}

    def is_stop(self) -> bool:
        """Whether the Stop machines answer for it: an agent's own stop, not a sub-agent's."""
        return self.name in ("Stop", "") and not self.payload.get("agent_id")

    def machines(self) -> "Sequence[str]":
        """The configured machines, in the order of asking."""
        wanted = self.config.get("hook", {}).get("machines", MACHINES)
        return [name for name in MACHINES if name in wanted]

    def final_text(self, since: float | None) -> bytes:
        """What the agent said last, in UTF-8; nothing for words older than `since` (Unix seconds).

        The payload has the message's last text block only; where the transcript has that message already, it is whole
        there (Claude Code 2.1.329 writes it 35 to 70 ms after the hook's start).
        """
        if since not in self.final_texts:
            said = text(self.payload, "last_assistant_message").strip().encode("utf-8", "surrogatepass")
            written = self.transcript_text(since, NEAR_END if said else FARTHEST)
            whole = written.rstrip().endswith(said)
            self.final_texts[since] = written if whole else said
        return self.final_texts[since]

    def transcript_text(self, since: float | None, farthest: int) -> bytes:
        """The newest assistant text among the transcript's last `farthest` bytes; nothing when none is to be had."""
        path = text(self.payload, "transcript_path")
        if path.startswith("~/"):
            path = f"{environment(b'HOME')}{path[1:]}"
        try:
            fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
        except (OSError, ValueError):
            return b""
        try:
            return last_message(fd, since, farthest, LONGEST_LINE, True)[1] or b""
        except OSError:
            return b""
        finally:
            posix.close(fd)

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
        path = environment(b"TAILHOOK_LOG") or self.config.get("hook", {}).get("log", "")
        if path:
            from tailhook.hook.log import write

            write(path, self.now, machine, verdict, perf_counter() - started)


def load_config(root: str) -> "Config":
    """The configuration; the module that reads it is loaded only when there is a file."""
    base = environment(b"XDG_CONFIG_HOME") or f"{environment(b'HOME')}/.config"
    if exists(f"{base}/tailhook/config.json") or exists(f"{root}/.claude/tailhook.json"):
        from tailhook.hook.config import load

        return load(root)
    return {}


# ---- the machines ------------------------------------------------------------


def ask_idle(event: Event) -> "Verdict | None":
    """The idle machine's verdict, saved; None where it has nothing to decide."""
    from tailhook.stores import loop

    if exists(f"{event.root}/.idle-disabled"):
        return None
    home = loop.find(event.folders)
    if home is None:
        return None
    verdict = decide_idle(event, home)
    if verdict.state is not None:
        # Decided once without the lock, to read the transcript before it is taken; what counts is the second time.
        try:
            with home.lock():
                home.reload()
                verdict = decide_idle(event, home)
                if verdict.state is not None:
                    home.save(verdict.state, event.now)
        except OSError as error:
            warn(f"tailhook: {home.path}: {error}. The loop's state could not be saved; the agent may stop.")
            return None
    return verdict


def decide_idle(event: Event, home: "JwzLoop | FileLoop") -> "Verdict":
    """What the idle machine says of this event."""
    from tailhook.machines import idle

    state = home.state

    def words() -> "Sequence[str]":
        return signals(event.final_text(idle.words_since(state, event.now, CLOCK_SLACK)))

    facts = idle.Facts(
        session_id=event.session_id,
        paused=is_paused(event.payload),
        signals=words,
        folder=event.folder,
        unbound_acts=event.config.get("hook", {}).get("unbound") != "refuse",
    )
    stale_after = event.config.get("idle", {}).get("stale_after", idle.STALE_AFTER)
    return idle.decide(state, facts, event.now, stale_after)


ASK = {"idle": ask_idle}


def tell_again(event: Event, machines: "Sequence[str]") -> int:
    """Tell a live loop of this session to the agent again after a compaction, which would lose it."""
    from tailhook.stores import loop

    home = loop.find(event.folders) if "idle" in machines else None
    state = home.state if home else None
    if home is None or not isinstance(state, dict) or decide_idle(event, home).outcome != "block":
        return 0
    from tailhook.machines.idle import briefing

    context = f"A loop is running in this session.\n{plain_lines(briefing(state, home.goal))}"
    answer({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": context}})
    return 0
