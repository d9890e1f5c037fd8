"""What a hook reports of a session, as it stands in the spool and in the body of `POST /events`."""

import math
import time
import uuid
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from tailhook.machines.plates import Event, Kind

Name = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00]*$")]  # PostgreSQL indexes 2,704 bytes
Word = Annotated[str, Field(max_length=100_000, pattern=r"^[^\x00]*$")]
LATEST = 8_640_000_000_000_000  # as far as a browser's clock goes (ECMA-262, 21.4.1)
Milliseconds = Annotated[int, Field(ge=0, le=LATEST)]


def can_be_a_path(name: str) -> str:
    """The name of a session; ValueError where no URL can have it, since clients fold dots away (RFC 3986, 5.2.4)."""
    if any(part in (".", "..") for part in name.split("/")):
        raise ValueError("a path of dots is no name of a session")
    return name


SessionName = Annotated[Name, AfterValidator(can_be_a_path)]
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


class RunEnd(BaseModel):
    """The end of a wrapper's command, in the spool.  ts, mono: as in a Report."""

    run_id: Name
    ts: Milliseconds = Field(default_factory=lambda: time.time_ns() // 1_000_000)
    mono: Milliseconds | None = None


class Report(BaseModel):
    """One event of a session.

    ts: Unix milliseconds by the clock of the hook; mono: milliseconds since its machine's start, which tell late events
    from a clock that was set back.  event_id: the same event is kept once.  pid_started: of the process, in
    clock ticks since its machine's start, as Linux tells it.  pid_is_guess: it may be a shell around the hook.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, ser_json_inf_nan="null")

    session_id: SessionName
    project_path: Annotated[Word, Field(min_length=1)]
    event_type: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00]*$")]
    event_id: Name = Field(default_factory=lambda: uuid.uuid4().hex)
    tool_name: Word | None = None
    tool_params: Annotated[dict[str, Any], BeforeValidator(scrubbed)] | None = None
    transcript_path: Word | None = None
    git_branch: Word | None = None
    error: Word | None = None
    ts: Milliseconds = Field(default_factory=lambda: time.time_ns() // 1_000_000)
    mono: Milliseconds | None = None
    run_id: Name | None = None
    pid: Annotated[int, Field(gt=0, le=1 << 31)] | None = None
    pid_started: Milliseconds | None = None
    pid_is_guess: bool = False
    host: Word | None = None
    user: Word | None = None

    def event(self) -> Event | None:
        """What happened, as the state machine knows it; None for a type that it does not know."""
        try:
            kind = Kind(self.event_type)
        except ValueError:
            return None
        if kind is Kind.TOOL_START:
            return Event(kind, tool=self.tool_name or "")
        return Event(kind, has_error=kind is Kind.STOP and bool(self.error))

    def todo_progress(self) -> str | None:
        """How many of the things to do are done, as "3/7"; None where the event says nothing of it."""
        params = self.tool_params or {}
        done, todos = params.get("todos_done"), params.get("todos")
        return f"{done}/{todos}" if isinstance(done, int) and isinstance(todos, int) else None
