"""The plates machine: what a session is doing, derived from its hooks' reports.

Pure: a status and an event in, a status out. `tailhook.hook.plates` reports the events; `tailhook.plates` keeps and
shows the plates. `transition` is the table of statuses. `follow` decides which events reach that table, because only
what a session waits for may end its wait.
"""

from enum import Enum
from typing import NamedTuple

HEALTH_CHECK_INTERVAL = 10  # seconds between two looks at the transcripts, at most
STALENESS_THRESHOLD = 2  # seconds by which a transcript must be newer than the last event
SETTLING_TIME = 1  # seconds after a record or a start, in which a hook may still report more of the same step
MAX_RECOVERY_TIME = 12  # seconds, at most, from the transcript's advance to the recovery: the two together
SIGN_TIMEOUT = 60  # seconds without any sign of a session, after which nothing is known about its work
STUCK_TIMEOUT = 600  # seconds without an event or a write to a transcript, after which a running session may be stuck
MAX_OPEN_TOOLS = 50  # of one session; beyond that the oldest tool without a wait is forgotten


class Status(Enum):
    """What a session is doing."""

    STARTING = "starting"  # the wrapper registered it; its first event has not come
    RUNNING = "running"
    IDLE = "idle"  # the turn is over, and the next move is the person's
    AWAITING_INPUT = "awaiting_input"  # it asked the person something
    AWAITING_APPROVAL = "awaiting_approval"  # it wants a plan or a tool to be allowed
    ERROR = "error"
    CLOSED = "closed"  # its process is gone


class EventKind(Enum):
    """What happened to a session. Hooks report all kinds but `health_check_recovery`: the daemon finds that one itself.

    In transcripts, hosts' files and processes it also finds `tool_call`, `stop_failure`, `permission_given`,
    `input_asked`, `input_given`, `subagent_stop`, `session_end`, `turn_ended` and `interrupted`, if no hook has
    reported them.
    """

    SESSION_START = "session_start"
    PROMPT_SUBMIT = "prompt_submit"
    TOOL_START = "tool_start"
    TOOL_CALL = "tool_call"  # a tool has ended
    STOP = "stop"
    STOP_BLOCKED = "stop_blocked"  # a machine sent the agent on
    STOP_FAILURE = "stop_failure"  # the turn ended in an error of the API
    PERMISSION_ASKED = "permission_asked"
    PERMISSION_GIVEN = "permission_given"  # a tool that waited for approval runs
    INPUT_ASKED = "input_asked"  # an MCP server asks the person for something
    INPUT_GIVEN = "input_given"  # the person answered the MCP server
    SUBAGENT_START = "subagent_start"
    SUBAGENT_STOP = "subagent_stop"
    SESSION_END = "session_end"
    TURN_ENDED = "turn_ended"
    INTERRUPTED = "interrupted"
    HEALTH_CHECK_RECOVERY = "health_check_recovery"


class Event(NamedTuple):
    """Something that happened.

    tool: the tool's name, of TOOL_START alone.
    has_error: whether a STOP was caused by an error.
    """

    kind: EventKind
    tool: str = ""
    has_error: bool = False


# The hosts' tools for shell commands: of Claude Code, Codex and Kimi Code; of Copilot; of Gemini CLI and Qwen Code;
# of Cursor, Factory Droid, Devin and VS Code. The web board has the same (rows.js).
COMMAND_TOOLS = ("Bash", "bash", "powershell", "run_shell_command", "Shell", "Execute", "exec", "run_in_terminal")
PLAN_TOOL = "ExitPlanMode"
WAITING = {"AskUserQuestion": Status.AWAITING_INPUT, PLAN_TOOL: Status.AWAITING_APPROVAL}  # tools for the person
ATTENTION = (Status.AWAITING_INPUT, Status.AWAITING_APPROVAL, Status.ERROR)  # a person has to look
EXAMINED = (*ATTENTION, Status.RUNNING)  # a transcript cannot change the other statuses

# The status after an event, whatever it was before ...
AFTER = {
    EventKind.SESSION_START: Status.RUNNING,
    EventKind.PROMPT_SUBMIT: Status.RUNNING,
    EventKind.TOOL_CALL: Status.RUNNING,
    EventKind.STOP_BLOCKED: Status.RUNNING,
    EventKind.STOP_FAILURE: Status.ERROR,
    EventKind.PERMISSION_ASKED: Status.AWAITING_APPROVAL,
    EventKind.INPUT_ASKED: Status.AWAITING_INPUT,
    EventKind.SESSION_END: Status.CLOSED,
    EventKind.INTERRUPTED: Status.IDLE,
}
# ... and the events that change only some statuses.
LEAVING: dict[EventKind, dict[Status, Status]] = {
    EventKind.PERMISSION_GIVEN: {Status.AWAITING_APPROVAL: Status.RUNNING},
    EventKind.INPUT_GIVEN: {Status.AWAITING_INPUT: Status.RUNNING},
    EventKind.SUBAGENT_START: {},
    EventKind.SUBAGENT_STOP: {},
    EventKind.TURN_ENDED: {Status.RUNNING: Status.IDLE},
    EventKind.HEALTH_CHECK_RECOVERY: dict.fromkeys(ATTENTION, Status.IDLE),
}


def transition(status: Status, event: Event) -> Status:
    """Return the status after an event. Pure, and total.

    >>> transition(Status.RUNNING, Event(EventKind.TOOL_START, tool="AskUserQuestion"))
    <Status.AWAITING_INPUT: 'awaiting_input'>
    """
    if event.kind is EventKind.TOOL_START:
        return WAITING.get(event.tool, Status.RUNNING)
    if event.kind is EventKind.STOP:
        return Status.ERROR if event.has_error else Status.IDLE
    if event.kind in LEAVING:
        return LEAVING[event.kind].get(status, status)
    return AFTER[event.kind]


def admits(status: Status, event: Event) -> bool:
    """Return whether the event counts: only a start or a prompt opens a closed session again."""
    return status is not Status.CLOSED or event.kind in (EventKind.SESSION_START, EventKind.PROMPT_SUBMIT)


def precedes(at: int, mono: int | None, last_at: int, last_mono: int | None) -> bool:
    """Return whether an event happened before the newest known one, although it arrived later.

    Setting a clock back, or restarting a machine, makes no event an old one.

    at, last_at: milliseconds by the hooks' clock.
    mono, last_mono: milliseconds since their machine's start.
    """
    return at < last_at and (mono is None or last_mono is None or mono < last_mono)


# ---- which events reach the table --------------------------------------------

MCP_SERVER = "an MCP server"  # in place of a sub-agent's id, if a server or the host asks outside of any tool
HOST = "dialog"  # in place of an MCP server's prefix, if the host's own dialog asks
AGENT = "a sub-agent"  # in place of a tool's name, from the start of a sub-agent to its stop
UNTIL_STOP = "until its session stops"  # in place of its transcript: the stop lists the agents that still work
NAMELESS = "nameless "  # begins the ids of sub-agents without one
UNSURE = "its own or the session's"  # in place of a nameless sub-agent's transcript: whose stop was it?


class Detail(NamedTuple):
    """The facts about an event besides its kind. A field is "" if the host does not send it.

    tool_use_id: of the tool that the event is about.
    tool: the tool's name. Of INPUT_ASKED and INPUT_GIVEN it is what the names of the MCP server's tools begin with.
    about: what the tool works on, such as its command. It distinguishes two uses of one tool. Of SUBAGENT_START it is
        the path of the sub-agent's transcript, or UNTIL_STOP.
    agent_id: of the sub-agent that the event belongs to; "" for the session's own agent.
    is_hosts: the host wrote the prompt by itself, or restarted the session by itself after a compaction.
    choices: the answers that a question offers.
    """

    tool_use_id: str = ""
    tool: str = ""
    about: str = ""
    agent_id: str = ""
    is_hosts: bool = False
    choices: tuple[str, ...] = ()


class OpenTool(NamedTuple):
    """A tool or a sub-agent that has started and not ended, or a question to the person with an unknown tool.

    tool_use_id, name, about, agent_id, choices: as in a Detail.
    wait: AWAITING_INPUT or AWAITING_APPROVAL while the tool waits for the person; otherwise None.
    """

    tool_use_id: str
    name: str
    about: str = ""
    agent_id: str = ""
    wait: Status | None = None
    choices: tuple[str, ...] = ()

    def belongs_to(self, server: str) -> bool:
        """Return whether it is a tool or a question of the MCP server with this prefix of its tools' names."""
        return self.name == server or self.name.startswith(f"{server}__")


Tools = tuple[OpenTool, ...]


class Situation(NamedTuple):
    """The situation of a session.

    status: for the boards.
    tools: the open ones, oldest first.
    beneath: the status of the session's own agent while a sub-agent waits for the person, or works although the own
        agent is idle; otherwise None.
    """

    status: Status
    tools: Tools = ()
    beneath: Status | None = None

    @property
    def own(self) -> Status:
        """The status of the session's own agent."""
        return self.beneath or self.status

    @property
    def waits(self) -> Tools:
        """The tools that wait for the person."""
        return tuple(tool for tool in self.tools if tool.wait)

    @property
    def agents(self) -> Tools:
        """The sub-agents that work, also after their session's own agent has stopped."""
        return tuple(tool for tool in self.tools if tool.name == AGENT and tool.about != UNTIL_STOP)


def attribute(before: Situation, event: Event, detail: Detail) -> Detail:
    """Return the detail of an event with the sub-agent that it belongs to, if the host names none (Kimi Code).

    The nameless sub-agents are interchangeable: what counts is how many turns have not ended. Each turn has a start and
    one end: a stop, an error or an interruption. The session's own agent cannot stop while its tool is open, and has
    no tool while it is idle. An error is taken for a sub-agent's. Otherwise a stop is the session's own until
    SUBAGENT_STOP follows: it comes right after the stop of the sub-agent, and after no other.
    """
    nameless = [tool for tool in before.agents if tool.agent_id.startswith(NAMELESS)]
    if not nameless or detail.agent_id:
        return detail
    unsure = [tool for tool in nameless if tool.about == UNSURE]
    sure = [tool for tool in nameless if tool not in unsure]
    is_busy = before.own is not Status.IDLE
    owners: Tools = ()
    if event.kind is EventKind.SUBAGENT_STOP:
        owners = tuple(unsure)
    elif event.kind in TURN_ENDS:
        has_tool = any(not tool.agent_id for tool in before.tools)
        owners = (*sure, *unsure) if has_tool or not is_busy or event.kind is EventKind.STOP_FAILURE else ()
    elif event.kind in TOOL_EVENTS and event.kind is not EventKind.SUBAGENT_START:
        same = tuple(tool for tool in before.tools if detail.tool_use_id and tool.tool_use_id == detail.tool_use_id)
        owners = same or (() if is_busy else (*sure, *unsure))
    return detail._replace(agent_id=owners[0].agent_id) if owners else detail


def follow(before: Situation, event: Event, detail: Detail, is_late: bool = False) -> "tuple[Situation, bool]":
    """Return the situation of a session after an event, and whether the event reached the table of `transition`.

    A tool event of a sub-agent moves nothing. A wait ends with its tool, a prompt, a stop or an interruption; another
    tool does not end it. A sub-agent's wait ends with that agent's tool or stop, or with a person's prompt. Meanwhile
    the session's own agent may go on, or stop.

    is_late: whether the event is older than the newest one of the session. It then moves nothing, unless it is about a
    tool that is still open: no newer event can have ended it.
    """
    if event.kind in TOOL_EVENTS:
        tools, reaches = TOOL_EVENTS[event.kind](before, detail, is_late)
    elif detail.agent_id:
        return after_agents_event(before, event, detail), False
    elif is_late:
        return before, False
    else:
        tools, reaches = left_open(before, event, detail), True
    own_waits = [tool.wait for tool in tools if tool.wait and not tool.agent_id]
    if own_waits:  # the person sees the newest remaining wait next
        event = ASKED[own_waits[-1]]
    own = transition(before.own, event) if reaches else before.own
    return settle(own, tools), reaches


def after_agents_event(before: Situation, event: Event, detail: Detail) -> Situation:
    """Return the situation of a session after an event of a sub-agent that is not about a tool."""
    is_nameless = detail.agent_id.startswith(NAMELESS)
    is_stop = event.kind in (EventKind.STOP, EventKind.SUBAGENT_STOP)
    if not is_stop and not (is_nameless and event.kind in TURN_ENDS):
        return settle(before.own, before.tools)
    tools = tuple(tool for tool in before.tools if tool.agent_id != detail.agent_id)
    if is_nameless and event.kind is EventKind.SUBAGENT_STOP:  # so the stop before was not the session's own
        return settle(Status.RUNNING if before.own is Status.IDLE else before.own, tools)
    return settle(before.own, marked(tools, "") if is_nameless else tools)


def settle(own: Status, tools: Tools) -> Situation:
    """Return the situation of a session whose own agent has a status.

    If something waits while the own agent runs or is idle, a sub-agent waits. Then the status is the wait's, and the
    own agent's status is kept in `beneath`. The session is not idle while a sub-agent works.
    """
    waits = [tool.wait for tool in tools if tool.wait]
    if waits and own in (Status.RUNNING, Status.IDLE):
        return Situation(transition(own, ASKED[waits[-1]]), tools, own)
    after = Situation(own, tools)
    return after._replace(status=Status.RUNNING, beneath=own) if own is Status.IDLE and after.agents else after


def marked(tools: Tools, about: str) -> Tools:
    """Return the tools with the nameless sub-agents marked: all as sure (""), or the first as UNSURE."""
    marks = [tool.name == AGENT and tool.agent_id.startswith(NAMELESS) for tool in tools]
    first = marks.index(True) if about and True in marks else -1
    return tuple(
        tool._replace(about=about if i == first else "") if is_nameless and first in (-1, i) else tool
        for i, (tool, is_nameless) in enumerate(zip(tools, marks, strict=True))
    )


def left_open(before: Situation, event: Event, detail: Detail) -> Tools:
    """Return the tools that stay open after an event without a tool."""
    if event.kind is EventKind.SUBAGENT_STOP or (
        event.kind is EventKind.TURN_ENDED and before.own is not Status.RUNNING
    ):
        return before.tools
    goes_on = event.kind in (EventKind.STOP_BLOCKED, EventKind.PROMPT_SUBMIT) or detail.is_hosts
    gone = set() if goes_on else {tool.agent_id for tool in before.tools if tool.about == UNTIL_STOP}
    others = tuple(tool for tool in before.tools if tool.agent_id and (tool.wait or tool.agent_id not in gone))
    if event == Event(EventKind.STOP):
        others = marked(others, UNSURE)
    ends_turn = event.kind in (EventKind.STOP_BLOCKED, EventKind.TURN_ENDED) or event == Event(EventKind.STOP)
    if ends_turn or detail.is_hosts:
        return others
    if event.kind in (
        EventKind.PROMPT_SUBMIT,
        EventKind.INTERRUPTED,
    ):  # the person is there: no question is open any more
        return tuple(tool for tool in others if not tool.wait)
    if event.kind is EventKind.HEALTH_CHECK_RECOVERY:
        return tuple(tool for tool in before.tools if not tool.wait)
    return ()


def tool_start(before: Situation, detail: Detail, is_late: bool) -> "tuple[Tools, bool]":
    """Return the open tools after a tool's start, and whether the event reaches the table."""
    tool = OpenTool(detail.tool_use_id, detail.tool, detail.about, detail.agent_id, None, detail.choices)
    if tool.agent_id:
        is_asked_about = any(same_tool(one) == same_tool(tool) for one in before.waits)
        return (before.tools if is_asked_about else opened(before.tools, tool)), False
    if is_late:
        is_working = before.own in (Status.RUNNING, Status.AWAITING_INPUT, Status.AWAITING_APPROVAL)
        return (opened(before.tools, tool) if is_working else before.tools), False
    tool = tool._replace(wait=WAITING.get(tool.name))
    # If a host names no tool in its question, the start of a tool shows that it went on.
    tools = tuple(one for one in before.tools if one.agent_id or not one.wait or (one.name and tool.name))
    is_beside = tool.wait is None and any(one.wait and not one.agent_id for one in tools)
    return opened(tools, tool), not is_beside


def tool_call(before: Situation, detail: Detail, is_late: bool) -> "tuple[Tools, bool]":
    """Return the open tools after a tool's end, and whether the event reaches the table."""
    own_waits = [tool for tool in before.waits if not tool.agent_id]
    if not (detail.tool_use_id or detail.tool or detail.agent_id):  # the host names no tool: the event ends any
        return (before.tools, False) if is_late else (tuple(t for t in before.tools if t.agent_id), True)
    ended = ended_tool(before.tools, detail)
    tools = tuple(tool for tool in before.tools if tool is not ended)
    if detail.agent_id:
        return tools, False
    if not is_late:
        tools = tuple(tool for tool in tools if tool.agent_id or not tool.wait or tool.name)
    left = [tool for tool in tools if tool.wait and not tool.agent_id]
    return tools, len(left) < len(own_waits) or not (is_late or own_waits)


def ended_tool(tools: Tools, detail: Detail) -> OpenTool | None:
    """Return the open tool of an end event: by its id, otherwise by its name; a waiting tool comes first."""
    same = [tool for tool in tools if tool.agent_id == detail.agent_id]
    if detail.tool_use_id:
        for tool in same:
            if tool.tool_use_id == detail.tool_use_id:
                return tool
        same = [tool for tool in same if not tool.tool_use_id]
    named = [tool for tool in same if tool.name == detail.tool]
    return next((tool for tool in named if tool.wait), named[0] if named else None)


def permission_asked(before: Situation, detail: Detail, is_late: bool) -> "tuple[Tools, bool]":
    """Return the open tools after the host asked for a permission, and whether the event reaches the table.

    PermissionRequest of Claude Code 2.1.329 has the tool's name and input and no id; the notification, 6 s later, has
    neither. So the first one belongs to the newest such tool without a question yet. The second one repeats the first,
    or belongs to the newest tool that has not ended.
    """
    if detail.tool:
        same = [t for t in before.tools if (t.agent_id, t.name) == (detail.agent_id, detail.tool)]
        fresh = [tool for tool in same if not tool.wait]
        found = [tool for tool in fresh if tool.about == detail.about] or fresh
        if (same and not fresh) or (is_late and not found):
            return before.tools, False
    else:
        found = [tool for tool in before.tools if tool.name != AGENT]
        if is_late or before.waits:
            return before.tools, False
    asked = found[-1] if found else OpenTool("", detail.tool, detail.about, detail.agent_id, None, detail.choices)
    waiting = asked._replace(wait=WAITING.get(asked.name, Status.AWAITING_APPROVAL))
    return opened(tuple(tool for tool in before.tools if tool is not asked), waiting), not waiting.agent_id


def permission_given(before: Situation, detail: Detail, is_late: bool) -> "tuple[Tools, bool]":  # noqa: ARG001 - no matter
    """Return the open tools after a person allowed a tool that now runs, and whether the event reaches the table."""
    key = same_tool(OpenTool(detail.tool_use_id, detail.tool, detail.about, detail.agent_id))
    tools = tuple(tool._replace(wait=None) if same_tool(tool) == key else tool for tool in before.tools)
    return tools, tools != before.tools and not detail.agent_id


def input_asked(before: Situation, detail: Detail, is_late: bool) -> "tuple[Tools, bool]":
    """Return the open tools after an MCP server asked the person, and whether the event reaches the table."""
    server = detail.tool or "mcp"
    found = [tool for tool in before.tools if tool.belongs_to(server)]
    is_known = any(tool.wait is Status.AWAITING_INPUT for tool in found)
    if is_known or (is_late and not found):
        return before.tools, False
    asked = found[-1] if found else OpenTool("", server, "", MCP_SERVER)
    waiting = asked._replace(wait=Status.AWAITING_INPUT, about=detail.about or asked.about)
    return opened(tuple(tool for tool in before.tools if tool is not asked), waiting), not waiting.agent_id


def input_given(before: Situation, detail: Detail, is_late: bool) -> "tuple[Tools, bool]":  # noqa: ARG001 - no matter
    """Return the open tools after the person answered an MCP server, and whether the event reaches the table."""
    asked = [t for t in before.waits if t.wait is Status.AWAITING_INPUT and t.belongs_to(detail.tool or "mcp")]
    if not asked or (len(asked) > 1 and not detail.tool):  # the answering server is unknown
        return before.tools, False
    tools = tuple(
        tool._replace(wait=None) if tool in asked else tool
        for tool in before.tools
        if tool not in asked or tool.agent_id != MCP_SERVER
    )
    return tools, any(not tool.agent_id for tool in asked)


def subagent_start(before: Situation, detail: Detail, is_late: bool) -> "tuple[Tools, bool]":  # noqa: ARG001 - no matter
    """Return the open tools after the start of a sub-agent, and that the event does not reach the table."""
    if detail.about == UNTIL_STOP and before.own is Status.IDLE:
        return before.tools, False  # the stop has listed it, or it has ended
    taken = {tool.agent_id for tool in before.tools}
    free = (name for number in range(len(taken) + 1) if (name := f"{NAMELESS}{number}") not in taken)
    return opened(before.tools, OpenTool("", AGENT, detail.about, detail.agent_id or next(free))), False


def opened(tools: Tools, tool: OpenTool) -> Tools:
    """Return the tools with another one. It replaces the same tool. If there are too many, the oldest is forgotten."""
    key = same_tool(tool)
    kept = [one for one in tools if same_tool(one) != key]
    if len(kept) >= MAX_OPEN_TOOLS:
        kept.remove(next((one for one in kept if not one.wait), kept[0]))
    return (*kept, tool)


def same_tool(tool: OpenTool) -> tuple[str, ...]:
    """Return the key of a tool: its id, or without one its agent and name."""
    return (tool.tool_use_id,) if tool.tool_use_id else (tool.agent_id, tool.name)


TURN_ENDS = EventKind.STOP, EventKind.STOP_FAILURE, EventKind.INTERRUPTED
TOOL_EVENTS = {
    EventKind.TOOL_START: tool_start,
    EventKind.TOOL_CALL: tool_call,
    EventKind.PERMISSION_ASKED: permission_asked,
    EventKind.PERMISSION_GIVEN: permission_given,
    EventKind.INPUT_ASKED: input_asked,
    EventKind.INPUT_GIVEN: input_given,
    EventKind.SUBAGENT_START: subagent_start,
}
# The kinds of questions to the person, by the status that follows.
ASKED = {
    Status.AWAITING_INPUT: Event(EventKind.INPUT_ASKED),
    Status.AWAITING_APPROVAL: Event(EventKind.PERMISSION_ASKED),
}


# ---- what a transcript shows -------------------------------------------------

# Sources of a SessionStart after which a person is asked for a prompt; "new" is Copilot's.
STARTED = ("startup", "resume", "clear", "fork", "new")


def is_stale(transcript_changed: float, last_event: float) -> bool:
    """Return whether a transcript went on without an event. Both times are Unix seconds."""
    return transcript_changed > last_event + STALENESS_THRESHOLD


def is_silent(status: Status, last_sign: float, now: float) -> bool:
    """Return whether a session should work, but has shown no sign of it for too long. Both times are Unix seconds.

    A session that waits for a person, or is idle, needs no sign: nothing happens until the person acts.
    """
    return status in (Status.STARTING, Status.RUNNING) and now > last_sign + SIGN_TIMEOUT


def is_stuck(status: Status, last_growth: float, now: float, timeout: float = STUCK_TIMEOUT) -> bool:
    """Return whether a session runs, but nothing has come from it for too long. Both times are Unix seconds.

    last_growth: when its last event came, or the last write to one of its transcripts.
    timeout: seconds without either.
    """
    return status is Status.RUNNING and now > last_growth + timeout


class Look(NamedTuple):
    """The facts at the end of a transcript.

    changed: when it was last written, in Unix seconds.
    at: the time in its newest record that holds own words of the session, in Unix seconds; None if there is none.
    interrupted: whether that record reports an interruption by the person.
    turn_over: whether that record ends a turn.
    failed: whether that record ends a turn with an error of the API.
    newest: the newest time in any record that may belong to the awaited tools, in Unix seconds.
    has_grown: whether such a record without a time was written since the event.
    is_others: whether records were written since the event, all of sub-agents or other tools.
    pending: ids of the awaited tools with a call in the transcript, but without a sign of their end.
    ended: ids of the awaited tools that have ended.
    """

    changed: float
    at: float | None = None
    interrupted: bool = False
    turn_over: bool = False
    newest: float | None = None
    has_grown: bool = False
    is_others: bool = False
    pending: frozenset[str] = frozenset()
    ended: frozenset[str] = frozenset()
    failed: bool = False


def examine(
    status: Status,
    last_event: float,
    look: Look,
    now: float,
    first: Look | None = None,
    waits: frozenset[str] = frozenset(),
) -> Event | None:
    """Return an event in a transcript that no hook reported, or None.

    If a session waits for a tool, and the tool's call is in the transcript, the wait lasts until the transcript shows
    the tool's end. Any other wait for a person, or error, ends when the transcript went on: it was written more than
    two seconds after the event, or it has a newer record. If the clock was set back, the event lies in the future and
    times cannot be compared. Then the transcript went on if it differs from the first look since the event. Only an
    interruption counts at once: any other end of a wait may still be reported by a hook.

    last_event, now: Unix seconds.
    waits: the known ids of the tools that the session waits for.
    """
    if last_event > now:
        newer = went_on = first is not None and look != first
    else:
        newer = look.at is not None and look.at > last_event
        is_newest = newer or look.has_grown or (look.newest is not None and look.newest > last_event)
        went_on = is_newest or (is_stale(look.changed, last_event) and not look.is_others)
    if waits & look.pending:
        return None
    if status in ATTENTION and (went_on or (waits and waits <= look.ended)):
        if newer and look.interrupted:
            return Event(EventKind.INTERRUPTED)
        written = look.changed if look.newest is None else look.newest
        is_settled = not written <= now <= written + SETTLING_TIME
        return Event(EventKind.HEALTH_CHECK_RECOVERY) if is_settled else None
    if status is Status.RUNNING and newer and look.interrupted:
        return Event(EventKind.INTERRUPTED)
    if status is Status.RUNNING and newer and look.turn_over and now > look.changed + STALENESS_THRESHOLD:
        return Event(EventKind.STOP_FAILURE if look.failed else EventKind.TURN_ENDED)
    return None


class HostStatus(NamedTuple):
    """The host's own word about a session.

    word: of Claude Code 2.1.329: "busy", "waiting" (for an answer to its dialog) or "idle".
    since: when it changed, in Unix seconds.
    waits_for: the kind of the dialog: "permission prompt", "sandbox request", "worker request", "goal proposal",
        "input needed", or "dialog open" for all others. A menu that the person opens is one only while no turn runs.
    """

    word: str
    since: float
    waits_for: str = ""


def judge_host_status(situation: Situation, last_event: float, host: HostStatus, now: float) -> Event | None:
    """Return an event that only the host's own word about a session shows, or None.

    A turn that is interrupted before the first answer leaves no other sign. Hooks report all other ends of a turn,
    within SETTLING_TIME. They report most dialogs, too; those that they do not report begin and end here.

    last_event, now: Unix seconds.
    """
    if any(tool.name == HOST for tool in situation.waits):
        return None if host.word == "waiting" else Event(EventKind.INPUT_GIVEN)
    if host.word == "waiting" and situation.status is Status.RUNNING and host.since <= now:
        is_settled = now > max(host.since, last_event) + SETTLING_TIME
        return Event(EventKind.INPUT_ASKED) if is_settled else None
    if not last_event < host.since <= now:
        return None
    if host.word == "idle" and situation.status is Status.RUNNING and now > host.since + SETTLING_TIME:
        return Event(EventKind.TURN_ENDED)
    if host.word == "busy" and situation.status is Status.AWAITING_APPROVAL and len(situation.waits) == 1:
        return None if situation.waits[0].agent_id else Event(EventKind.PERMISSION_GIVEN)
    return None


def is_at_its_prompt(
    is_unprompted: bool, host: HostStatus | None, status: Status, last_event: float, now: float
) -> bool:
    """Return whether a started session got no prompt, and so waits for its first one.

    If a host is started with a prompt, it submits the prompt at once, and is not idle.
    """
    has_waited = not last_event <= now <= last_event + SETTLING_TIME
    is_idle = host is not None and host.word == "idle"
    return status is Status.RUNNING and is_unprompted and (is_idle or has_waited)
