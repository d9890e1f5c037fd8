"""The fields of plates, and of the daemon's answers about them.

PlateFields are columns of the table `plates` and fields of the answers. The other columns are in
`tailhook.plates.tables.Plate`: only the daemon needs them, or an answer has them in another form. The daemon answers
with the other classes, and the terminal board reads them by the same names. This module imports no SQLAlchemy and no
pydantic, so that the board does not load them.
"""

from typing import Annotated, Any, Literal

from typing_extensions import TypedDict  # pydantic does not accept the one of `typing` before Python 3.12

from tailhook.machines.plates import Status

BoardGroup = Literal["waits", "finished", "stuck", "working", "rest"]
Tone = Literal["attention", "error", "running", "idle", "muted"]  # what a status looks like; each screen maps it
RUN_WORDS = "asks to run"  # of an activity: a shell command follows
Lane = Literal["agent", "sub-agent", "you"]
TextKind = Literal["text", "code", "strong", "emphasis"]
BlockKind = Literal["paragraph", "heading", "item", "quote", "code", "table", "rule"]
IS_FACT = "fact"
Fact = Annotated[str | None, IS_FACT]  # a column that an event sets if its report has the field of the same name


class PlateFields(TypedDict):
    """What the database and the boards know about a session.

    project_path: the folder in which the session began.
    folder: the one in which the agent works now, if it is another.
    title: what the person or the host called the session, on one line.
    prompt: the first line of the last prompt that a person typed.
    agent_program: its agent host, as in `tailhook.hosts.NAMES`.
    context_used: how full its context is: in percent if its host records the window, otherwise in tokens.
    run_id: of the wrapper that runs it.
    pid: of the host's process. Answers leave it out while it is a guess.
    """

    session_id: Annotated[str, {"primary_key": True}]
    project_path: str
    folder: str | None
    title: Fact
    prompt: Fact
    transcript_path: Fact
    git_branch: Fact
    last_event_type: str | None
    last_tool: str | None
    todo_progress: Fact
    error: str | None
    context_used: str | None
    agent_program: Fact
    run_id: Annotated[Fact, {"index": True}]
    pid: int | None
    host: Fact
    user: Fact


class ActivityOut(TypedDict):
    """What a session asks, does or did last, in parts that a board sets apart.

    words: such as "asks to run", "shows a plan", "thinking", "loop paused"; "" if the rest speaks for itself.
    tool: its name, such as "Bash"; "" if none is meant, or if the words name it already ("asks to run").
    text: a question, a command, a file below the project, an error, the first line of a message; "" if not known.
    choices: the answers that a question offers.
    is_code: whether the text is a command or a path.
    """

    words: str
    tool: str
    text: str
    choices: list[str]
    is_code: bool


def activity_lines(activity: ActivityOut) -> list[str]:
    """Return an activity in words, then each choice that it offers.

    >>> activity_lines({"words": "asks", "tool": "", "text": "Which?", "choices": ["a", "b"], "is_code": False})
    ['asks Which?', '1) a', '2) b']
    """
    said = " ".join(filter(None, (activity["words"], activity["tool"], activity["text"])))
    return [said, *(f"{number}) {choice}" for number, choice in enumerate(activity["choices"], 1))]


class PlateOut(PlateFields):
    """A session. Times are in ISO 8601.

    since: the time of the last event that changed the status, by its host's clock. The session's age counts from here.
    created_at: when the first event happened.
    name: the name of the project's folder; with its parent's if another project has the same name.
    headline: its title, otherwise its last prompt; "" if it has neither.
    group: its group on the board.
    rank: sort the sessions by it, as text. It is ASCII.
    symbol, status_words, tone: how the status is shown.
    activity: what it asks, does or did last.
    agents: how many of its sub-agents work.
    turn_since, turn_until: when a person's last prompt came, and when the turn ended by itself; null if it did not.
    unseen: whether it has finished, and no person has looked at it since.
    quiet_since: since when nothing has come from a running session; null unless it may be stuck.
    silent_since: when the last sign came, if the session should work but has given none for too long; otherwise null.
        The boards then show "no sign for 4m" (status_words and this time) in place of the status.
    resume: the shell's command that continues it in another terminal; "" if none is known.
    hidden: whether a person hid it from the boards. It is shown again with its next prompt.
    tokens_used: how many tokens it and its sub-agents have used, in short; null while that is not known.
    search: the text that a filter searches, in small letters. Every word of the filter must occur in it.
    """

    status: Status
    created_at: str
    updated_at: str
    since: str
    name: str
    headline: str
    group: BoardGroup
    rank: str
    symbol: str
    status_words: str
    tone: Tone
    silent_since: str | None
    activity: ActivityOut
    agents: int
    turn_since: str | None
    turn_until: str | None
    unseen: bool
    quiet_since: str | None
    resume: str
    hidden: bool
    tokens_used: str | None
    search: str


class EventOut(TypedDict):
    """An event of a session.

    agent_id: the sub-agent that it belongs to, or null.
    ts: Unix milliseconds by the hook's clock.
    status: the session's status after it; null if the event changed nothing.
    symbol, status_words, tone: how that status is shown; "", "" and "muted" without a status.
    words: what happened.
    about: the error, or what the tool works on, or the progress of the to-do list; "" if there is none.
    """

    event_type: str
    tool_name: str | None
    agent_id: str | None
    tool_params: dict[str, Any] | None
    error: str | None
    ts: int
    status: Status | None
    symbol: str
    status_words: str
    tone: Tone
    words: str
    about: str


class PeriodOut(TypedDict):
    """A time in which a session did one thing. Each period begins at the end of the previous one.

    start, end: Unix milliseconds. end: null if it lasts.
    lane: "agent" if the agent works, "sub-agent" if one of its sub-agents does, "you" if it waits for the person.
    tool: the tool that ran, or "".
    label: what the session did, or what the person has to do.
    tone: how the status is shown.
    """

    start: int
    end: int | None
    lane: Lane
    status: Status
    tool: str
    label: str
    tone: Tone


class ToolOut(TypedDict):
    """A use of a tool.

    about: what it worked on, or "".
    agent_id: the sub-agent that used it, or null.
    start, end: Unix milliseconds. end: null if it runs.
    error: why it failed; "" if it did not.
    """

    name: str
    about: str
    agent_id: str | None
    start: int
    end: int | None
    error: str


class TextOut(TypedDict):
    """A part of a block, and how it is shown."""

    kind: TextKind
    text: str


class BlockOut(TypedDict):
    """A block of Markdown.

    level: of a heading, from 1; of an item, from 0.
    mark: of an item, such as "•" or "2."; the language of code; otherwise "".
    texts: empty in a table and in a rule.
    rows: of a table: the texts of each cell. The first row is the head.
    """

    kind: BlockKind
    level: int
    mark: str
    texts: list[TextOut]
    rows: list[list[list[TextOut]]]


class ChoiceOut(TypedDict):
    """An answer that a question offers."""

    label: str
    description: str


class QuestionOut(TypedDict):
    """One of the questions that a session asks at once.

    header: a word for it, or "".
    takes_many: whether several choices may be taken.
    """

    header: str
    text: str
    takes_many: bool
    choices: list[ChoiceOut]


class InputOut(TypedDict):
    """A member of the input of a tool. Its text may have lines."""

    name: str
    text: str


class ContextOut(TypedDict):
    """How full a session's context is.

    tokens: of the newest response.
    window: how many tokens fit; null if the host's records do not have it.
    words: both for people.
    """

    tokens: int
    window: int | None
    words: str


class TokensOut(TypedDict):
    """The tokens of a session and its sub-agents, of each response once.

    used: all of them, in short.
    words: for people.
    """

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_creation_tokens: int
    used: str
    words: str


class AskedOut(TypedDict):
    """What a session waits for: the whole of it if this computer has the session's transcript.

    words, tool: as in the activity.
    inputs: of the tool that asks for an approval.
    plan: the plan that is to be approved.
    """

    words: str
    tool: str
    questions: list[QuestionOut]
    inputs: list[InputOut]
    plan: list[BlockOut]


class DetailsOut(PlateOut):
    """A session, its last events (oldest first), its timeline, and the agent's last message.

    asked: what it waits for; null if it waits for nothing.
    context: null if the end of the transcript does not have it.
    tokens: null while they are not known.
    agent_lanes: the work of its sub-agents in lanes with gaps. Sub-agents that work one after another share a lane.
    more_agents: how many sub-agents have no lane, because too many worked at the same time.
    tools: the newest uses of tools, newest first.
    message: the blocks of the last message.
    no_message: the text that the boards show if the last message is null.
    """

    asked: AskedOut | None
    context: ContextOut | None
    tokens: TokensOut | None
    events: list[EventOut]
    periods: list[PeriodOut]
    agent_lanes: list[list[PeriodOut]]
    more_agents: int
    tools: list[ToolOut]
    last_message: str | None
    message: list[BlockOut]
    no_message: str


class SummaryOut(TypedDict):
    """The sessions in short: how many stand in each group of the boards, and those that wait, longest first."""

    version: str
    counts: dict[BoardGroup, int]
    waiting: list[PlateOut]


class WaitFigures(TypedDict):
    """How long sessions waited for a person. Sessions that wait at the same time add up.

    waits: how many waits there were. A question that follows an approval without a gap is the same wait.
    median_ms, longest_ms: of the lengths of these waits.
    """

    waited_ms: int
    waits: int
    median_ms: int
    longest_ms: int


class ProjectWaitsOut(WaitFigures):
    """How long the sessions of a project waited."""

    project_path: str
    name: str


class IntervalWaitsOut(WaitFigures):
    """How long sessions waited in an interval: the parts of waits that lie in it.

    start, end: Unix milliseconds.
    projects: the one that waited longest comes first.
    """

    start: int
    end: int
    projects: list[ProjectWaitsOut]


class WaitsOut(TypedDict):
    """How long sessions waited in several intervals.

    intervals: without those before the oldest stored event or wait, about which nothing is known.
    total: of all intervals together; null without any. A wait over several intervals is one wait in it.
    """

    intervals: list[IntervalWaitsOut]
    total: IntervalWaitsOut | None


class GroupOut(TypedDict):
    """A group of the board.

    summary, summary_of_one: what follows the number of its sessions, such as "wait for you" and "waits for you".
    note: the order of its sessions, or what they have in common; "" if that is plain.
    tone: how its title is shown.
    """

    id: BoardGroup
    title: str
    note: str
    summary: str
    summary_of_one: str
    tone: Tone


class StatusOut(TypedDict):
    """How a status is shown, and the group in which its sessions stand."""

    status: Status
    symbol: str
    words: str
    group: BoardGroup
    tone: Tone


class StatusesOut(TypedDict):
    """The groups in the boards' order, the signs in the order of the boards' help, and what a filter searches.

    marks: how a session is shown if it is not in the group of its status.
    long_wait_hours: longer waits stand in one line, until a person asks for them.
    """

    groups: list[GroupOut]
    statuses: list[StatusOut]
    marks: list[StatusOut]
    filter_fields: str
    long_wait_hours: int
