"""What a hook reports of a session: the lines of the spool, and the body of `POST /events`."""

import math
import time
import uuid
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from tailhook.machines.plates import STARTED, Detail, Event, Kind
from tailhook.machines.secrets import MASK, is_secret_name, mask

Name = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00]*$")]  # PostgreSQL indexes 2,704 bytes
Word = Annotated[str, Field(max_length=100_000, pattern=r"^[^\x00]*$")]
LATEST = 8_640_000_000_000_000  # as far as a browser's clock goes (ECMA-262, 21.4.1)
Milliseconds = Annotated[int, Field(ge=0, le=LATEST)]
MAX_FILE_SIZE = 1 << 53  # bytes; larger whole numbers are not exact in every reader of JSON
MAX_AHEAD_MS = 86_400_000  # a clock that is further ahead than a day is wrong
MAX_DETAIL_CHARS = 200  # of what tells one use of a tool from another
MAX_UPTIME_MS = 100 * 366 * 86_400_000  # no machine has run for longer


def can_be_a_path(name: str) -> str:
    """The name of a session; ValueError where no URL can have it, since clients fold dots away (RFC 3986, 5.2.4)."""
    if any(part in (".", "..") for part in name.split("/")):
        raise ValueError("a path of dots is no name of a session")
    return name


DOT_SEGMENTS = r"(^|/)\.{1,2}(/|$)"  # `can_be_a_path` refuses it; OpenAPI clients read it here
SessionName = Annotated[
    Name, AfterValidator(can_be_a_path), Field(json_schema_extra={"not": {"pattern": DOT_SEGMENTS}})
]


def milliseconds() -> int:
    """Return the time in Unix milliseconds."""
    return time.time_ns() // 1_000_000


def possible_time(at: int) -> int:
    """Return a time in Unix milliseconds, or the present instead of one that is more than a day ahead.

    Otherwise one event with such a time would make all later events of its session old ones.
    """
    now = milliseconds()
    return at if at <= now + MAX_AHEAD_MS else now


def possible_uptime(mono: int | None) -> int | None:
    """Return milliseconds since a machine's start, or None instead of more than a machine can have run."""
    return mono if mono is None or mono <= MAX_UPTIME_MS else None


def possible_size(size: int | None) -> int | None:
    """Return the size of a file in bytes, or None if it is over MAX_FILE_SIZE."""
    return size if size is None or size <= MAX_FILE_SIZE else None


Timestamp = Annotated[Milliseconds, AfterValidator(possible_time)]
Uptime = Annotated[Milliseconds | None, AfterValidator(possible_uptime)]
DEEPEST = 100  # lists and objects in one another; what encodes JSON has a limit of its own


def scrubbed(value: Any, depth: int = DEEPEST) -> Any:
    """A JSON value that every database can keep: no NUL, no half of a surrogate pair, no infinite number.

    ValueError for one that is nested too deeply.
    """
    if not depth:
        raise ValueError(f"more than {DEEPEST} lists and objects in one another")
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [scrubbed(item, depth - 1) for item in value]
    if isinstance(value, dict):
        return {scrubbed(name, depth - 1): scrubbed(item, depth - 1) for name, item in value.items()}
    return value


def without_secrets(value: Any, name: str = "") -> Any:
    """Return a JSON value with every secret in its strings masked; whole, if the name of a value is a secret's."""
    if isinstance(value, str):
        return MASK if value and is_secret_name(name) else mask(value)
    if isinstance(value, list):
        return [without_secrets(item, name) for item in value]
    if isinstance(value, dict):
        return {key: without_secrets(item, key) for key, item in value.items()}
    return value


class RunEnd(BaseModel):
    """The end of a wrapper's command, in the spool.

    ts, mono: as in a Report.
    """

    run_id: Name
    ts: Timestamp = Field(default_factory=milliseconds)
    mono: Uptime = None


class Report(BaseModel):
    """One event of a session. Secrets in `error` and `tool_params` are masked.

    event_id: the same event is kept once.
    ts: Unix milliseconds by the hook's clock. A time that is more than a day ahead is replaced by the present.
    mono: milliseconds since the start of the hook's machine. They tell a late event from a clock that was set back.
    tool_use_id: the host's id of the tool's use.
    agent_id: the sub-agent that the event belongs to.
    source: of session_start: startup, resume, clear, compact or fork.
    by_host: of prompt_submit: the host wrote the prompt itself.
    transcript_size: bytes of the transcript at the event.
    pid_started: when the process started, in clock ticks since its machine's start, as Linux counts.
    pid_is_guess: the process may be a shell around the hook.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, ser_json_inf_nan="null")

    session_id: SessionName
    project_path: Annotated[Word, Field(min_length=1)]
    event_type: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00]*$")]
    event_id: Name = Field(default_factory=lambda: uuid.uuid4().hex)
    tool_name: Word | None = None
    tool_params: Annotated[dict[str, Any], BeforeValidator(scrubbed), AfterValidator(without_secrets)] | None = None
    transcript_path: Word | None = None
    git_branch: Word | None = None
    error: Annotated[Word, AfterValidator(mask)] | None = None
    tool_use_id: Name | None = None
    agent_id: Name | None = None
    source: Word | None = None
    by_host: bool = False
    transcript_size: Annotated[int | None, Field(ge=0), AfterValidator(possible_size)] = None
    ts: Timestamp = Field(default_factory=milliseconds)
    mono: Uptime = None
    run_id: Name | None = None
    pid: Annotated[int, Field(gt=0, le=1 << 31)] | None = None
    pid_started: Milliseconds | None = None
    pid_is_guess: bool = False
    host: Word | None = None
    user: Word | None = None

    def event(self) -> Event | None:
        """Return what happened, as the state machine knows it, or None if the machine does not know the type."""
        try:
            kind = Kind(self.event_type)
        except ValueError:
            return None
        if kind is Kind.TOOL_START:
            return Event(kind, tool=self.tool_name or "")
        return Event(kind, has_error=kind is Kind.STOP and bool(self.error))

    def detail(self) -> Detail:
        """Return what the host tells about the event besides its kind."""
        params = self.tool_params or {}
        return Detail(
            tool_use_id=self.tool_use_id or "",
            tool=(self.tool_name or "")[:MAX_DETAIL_CHARS],
            about=str(params.get("command") or params.get("file_path") or "")[:MAX_DETAIL_CHARS],
            agent_id=self.agent_id or "",
            is_hosts=self.by_host or self.source == "compact",
        )

    def leads_to_a_prompt(self) -> bool:
        """Return whether the session has only started, so that its first prompt is still to come."""
        return self.event_type == Kind.SESSION_START.value and self.source in STARTED

    def todo_progress(self) -> str | None:
        """Return how many of the things to do are done, such as "3/7", or None if the event does not say."""
        params = self.tool_params or {}
        done, todos = params.get("todos_done"), params.get("todos")
        return f"{done}/{todos}" if isinstance(done, int) and isinstance(todos, int) else None
