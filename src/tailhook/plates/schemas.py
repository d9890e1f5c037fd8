"""The schemas of what hooks report: the lines of the spool, and the body of `POST /events`."""

import math
import time
import uuid
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from tailhook.hook.plates import MAX_CHOICES, MAX_REPORTED_CHARS, TERMINAL_VARIABLES, TOOL_SUBJECTS
from tailhook.hosts import DEFAULT
from tailhook.machines.plates import STARTED, UNTIL_STOP, Detail, Event, EventKind
from tailhook.machines.quoting import plain_words, shortened
from tailhook.machines.secrets import MASK, is_secret_name, mask

Name = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00]*$")]  # PostgreSQL indexes 2,704 bytes
Word = Annotated[str, Field(max_length=100_000, pattern=r"^[^\x00]*$")]
MAX_TIME_MS = 8_640_000_000_000_000  # the last time that a browser's clock knows (ECMA-262, 21.4.1)
Milliseconds = Annotated[int, Field(ge=0, le=MAX_TIME_MS)]
MAX_TRANSCRIPT_SIZE = 1 << 53  # of a transcript; not every reader of JSON reads larger whole numbers exactly
MAX_AHEAD_MS = 86_400_000  # a clock that is further ahead than a day is wrong
MAX_DETAIL_CHARS = 200  # of the text that distinguishes two uses of a tool
MAX_BACKGROUND = 1_000_000
MAX_UPTIME_MS = 100 * 366 * 86_400_000


def check_session_name(name: str) -> str:
    """Return the name. Raises ValueError if a URL cannot contain it: clients remove dot segments (RFC 3986, 5.2.4)."""
    if any(part in (".", "..") for part in name.split("/")):
        raise ValueError("a session's name must not have the path segments . and ..")
    return name


DOT_SEGMENTS = r"(^|/)\.{1,2}(/|$)"  # `check_session_name` refuses it; OpenAPI clients read it here
SessionName = Annotated[
    Name, AfterValidator(check_session_name), Field(json_schema_extra={"not": {"pattern": DOT_SEGMENTS}})
]


def unix_ms() -> int:
    """Return the time in Unix milliseconds."""
    return time.time_ns() // 1_000_000


def limit_time(at: int) -> int:
    """Return a time in Unix milliseconds; the present if the time is more than a day ahead.

    Otherwise all later events of the session would look older than such an event.
    """
    now = unix_ms()
    return at if at <= now + MAX_AHEAD_MS else now


def limit_uptime(mono: int | None) -> int | None:
    """Return milliseconds since a machine's start, or None if no machine can have run for so long."""
    return mono if mono is None or mono <= MAX_UPTIME_MS else None


def limit_size(size: int | None) -> int | None:
    """Return the size of a file in bytes, or None if it exceeds MAX_TRANSCRIPT_SIZE."""
    return size if size is None or size <= MAX_TRANSCRIPT_SIZE else None


Timestamp = Annotated[Milliseconds, AfterValidator(limit_time)]
Uptime = Annotated[Milliseconds | None, AfterValidator(limit_uptime)]
MAX_DEPTH = 100  # of nested lists and objects; JSON encoders have limits of their own


def scrub(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Return a JSON value that every database can store: without NUL, lone surrogates and infinite numbers.

    Raises ValueError if it is nested too deeply.
    """
    if not depth:
        raise ValueError(f"more than {MAX_DEPTH} nested lists and objects")
    if isinstance(value, str):
        if value.isascii() and "\0" not in value:
            return value
        return value.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [scrub(item, depth - 1) for item in value]
    if isinstance(value, dict):
        return {scrub(name, depth - 1): scrub(item, depth - 1) for name, item in value.items()}
    return value


def clean_words(words: str) -> str:
    """Return the beginning of a title, a prompt or a message on one line, without secrets and invisible characters."""
    return plain_words(words, MAX_REPORTED_CHARS)


Line = Annotated[Word, AfterValidator(clean_words)]


def clean_terminal(given: Any) -> dict[str, str] | None:
    """Return the known variables of a terminal with their values on one line, or None without any."""
    if not isinstance(given, dict):
        return None
    known = {name: given.get(name) for name in TERMINAL_VARIABLES}
    return {
        name: value
        for name, value in known.items()
        if isinstance(value, str) and value.isprintable() and 0 < len(value) <= MAX_REPORTED_CHARS
    } or None


def mask_secrets(value: Any, name: str = "") -> Any:
    """Return a JSON value with the secrets in its strings masked.

    name: the name of the value's member. If it is the name of a secret, the whole value is masked.
    """
    if isinstance(value, str):
        return MASK if value and is_secret_name(name) else mask(value)
    if isinstance(value, list):
        return [mask_secrets(item, name) for item in value]
    if isinstance(value, dict):
        return {key: mask_secrets(item, key) for key, item in value.items()}
    return value


STOP_PAUSED = "stop_paused"  # the type of a stop at which the session's loop is paused
LISTED = "listed"  # in place of an event's type: only the host's own list has the session, see `tailhook.plates.listed`


class RunEnd(BaseModel):
    """The end of a wrapper's command, in the spool.

    ts, mono: as in a Report.
    """

    run_id: Name
    ts: Timestamp = Field(default_factory=unix_ms)
    mono: Uptime = None


class Report(BaseModel):
    """One event of a session. Secrets in `error` and `tool_params` are masked.

    event_id: the same event is kept once.
    project_path: the project's folder, or the one in which the agent works if the host names no project.
    folder: the one in which the agent works, if it is not the project's.
    title: what the person or the host called the session.
    prompt: of prompt_submit: the first line of the prompt that a person typed.
    reply: of stop: the first line of the agent's last message.
    ts: Unix milliseconds by the hook's clock. A time that is more than a day ahead is replaced by the present.
    mono: milliseconds since the start of the hook's machine. They separate a late event from a clock that was set back.
    tool_use_id: the host's id of the tool's use.
    agent_id: the sub-agent that the event belongs to.
    source: of session_start: startup, new, resume, clear, compact or fork.
    by_host: of prompt_submit: whether the host wrote the prompt.
    background: of stop: how many agents work in the background. The turn goes on when one of them ends.
    transcript_size: bytes of the transcript at the event.
    agent_program: the session's agent host, as in `tailhook.hosts.NAMES`.
    terminal: of session_start and prompt_submit: the variables that name the session's terminal.
    pid_started: when the process started, in clock ticks since its machine's start, as Linux counts.
    pid_is_guess: the process may be a shell around the hook.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, ser_json_inf_nan="null")

    session_id: SessionName
    project_path: Annotated[Word, Field(min_length=1)]
    folder: Word | None = None
    title: Line | None = None
    prompt: Line | None = None
    reply: Line | None = None
    event_type: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00]*$")]
    event_id: Name = Field(default_factory=lambda: uuid.uuid4().hex)
    tool_name: Word | None = None
    tool_params: Annotated[dict[str, Any], BeforeValidator(scrub), AfterValidator(mask_secrets)] | None = None
    transcript_path: Word | None = None
    git_branch: Word | None = None
    error: Annotated[Word, AfterValidator(mask)] | None = None
    tool_use_id: Name | None = None
    agent_id: Name | None = None
    source: Word | None = None
    by_host: bool = False
    background: Annotated[int, Field(ge=0, le=MAX_BACKGROUND)] = 0
    transcript_size: Annotated[int | None, Field(ge=0), AfterValidator(limit_size)] = None
    ts: Timestamp = Field(default_factory=unix_ms)
    mono: Uptime = None
    agent_program: Word | None = None
    terminal: Annotated[dict[str, str] | None, BeforeValidator(clean_terminal)] = None
    run_id: Name | None = None
    pid: Annotated[int, Field(gt=0, le=1 << 31)] | None = None
    pid_started: Milliseconds | None = None
    pid_is_guess: bool = False
    host: Word | None = None
    user: Word | None = None

    def event(self) -> Event | None:
        """Return the event for the state machine, or None if the machine does not know its type."""
        try:
            kind = EventKind(self.event_type) if self.event_type != STOP_PAUSED else EventKind.STOP
        except ValueError:
            return None
        if kind is EventKind.TOOL_START:
            return Event(kind, tool=self.tool_name or "")
        if self.has_background_work():
            return Event(EventKind.STOP_BLOCKED)
        return Event(kind, has_error=kind is EventKind.STOP and bool(self.error))

    def detail(self) -> Detail:
        """Return the event's other facts, for the state machine."""
        params = self.tool_params or {}
        about = clip_subject(find_subject(params))
        if self.event_type == EventKind.SUBAGENT_START.value:
            about = UNTIL_STOP if self.agent_program == DEFAULT else self.transcript_path or ""
        return Detail(
            tool_use_id=self.tool_use_id or "",
            tool=(self.tool_name or "")[:MAX_DETAIL_CHARS],
            about=about,
            agent_id=self.agent_id or "",
            is_hosts=self.by_host or self.source == "compact",
            choices=choices_in(params),
        )

    def has_background_work(self) -> bool:
        """Return whether the event is a stop after which agents in the background will wake the session."""
        return self.event_type == EventKind.STOP.value and self.background > 0 and not self.error

    def leads_to_a_prompt(self) -> bool:
        """Return whether the session has only started, so that its first prompt is still to come."""
        return self.event_type == EventKind.SESSION_START.value and self.source in STARTED

    @property
    def todo_progress(self) -> str | None:
        """The progress of the to-do list, such as "3/7", or None if the event does not have it."""
        return todo_progress_of(self.tool_params or {})


def find_subject(params: dict[str, Any]) -> str:
    """Return what a tool works on, from its input, such as a command or a file; "" if it has nothing of that kind."""
    return str(next(filter(None, map(params.get, ("file_path", *TOOL_SUBJECTS))), ""))


def clip_subject(subject: str) -> str:
    """Return the beginning of what a tool works on. An ellipsis shows that it was cut."""
    return subject if len(subject) <= MAX_DETAIL_CHARS else shortened(subject, MAX_DETAIL_CHARS)


def choices_in(params: dict[str, Any]) -> tuple[str, ...]:
    """Return the answers that a question in a tool's input offers."""
    found = params.get("choices")
    return tuple(one for one in found if isinstance(one, str))[:MAX_CHOICES] if isinstance(found, list) else ()


def todo_progress_of(params: dict[str, Any]) -> str | None:
    """Return the progress of the to-do list in a tool's input, such as "3/7", or None if there is none."""
    done, todos = params.get("todos_done"), params.get("todos")
    return f"{done}/{todos}" if isinstance(done, int) and isinstance(todos, int) else None
