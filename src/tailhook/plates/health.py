"""The health check finds unreported changes: sessions that went on, and ended processes."""

import logging
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import psutil
from sqlalchemy.exc import SQLAlchemyError

from tailhook.hook.answer import plain
from tailhook.hook.plates import first_words
from tailhook.machines.plates import (
    COMMAND_TOOLS,
    EXAMINED,
    HEALTH_CHECK_INTERVAL,
    HOST,
    STALENESS_THRESHOLD,
    STUCK_TIMEOUT,
    Event,
    EventKind,
    HostStatus,
    Look,
    OpenTool,
    Status,
    Tools,
    examine,
    is_at_its_prompt,
    is_silent,
    is_stuck,
    judge_host_status,
)
from tailhook.plates.changes import situation_of
from tailhook.plates.context import context_used
from tailhook.plates.db import Database, Moment
from tailhook.plates.host_children import has_begun, is_reporting
from tailhook.plates.host_status import read_status, status_file
from tailhook.plates.looks import MAX_WATCHED, OF_AGENT, LookCache, Since, Stamp, stamp_of_path
from tailhook.plates.signs import is_suspended, is_working, last_write, transcript_of_agent
from tailhook.plates.tables import Plate, is_row_error
from tailhook.plates.transcript_ends import Title, last_words, read_title
from tailhook.stores import processes
from tailhook.stores.processes import CLOCK_BOOTTIME

log = logging.getLogger("tailhook.plates")

MIN_SLEEP_S = 30  # between two checks: then the machine has slept
WAKE_DELAY_S = 10  # after sleep, in which transcripts and hooks catch up
RESTLESS_S = STALENESS_THRESHOLD + 2  # of extra checks after a change: they may find what has settled meanwhile
MAX_SHARE = 0.05  # of the time: extra checks, beside those at the interval, may take so much
HOOK_EXIT_S = 5  # after an event: then its hook and any wrapper shell have exited
MAX_CHECKS = 3  # of one plate in a row, if events change it meanwhile

OF_DIALOGS = Event(EventKind.INPUT_ASKED), Event(EventKind.INPUT_GIVEN)
TURN_OVER = Event(EventKind.TURN_ENDED), Event(EventKind.STOP_FAILURE)
UNREPORTED = (*TURN_OVER, Event(EventKind.HEALTH_CHECK_RECOVERY), Event(EventKind.INPUT_ASKED))  # unless a hook is late


class Health:
    """Checks every open plate that this daemon looks after: every 10 s, and soon after a change.

    A change is an event, a write to a transcript or to a host's file, the start of an awaited command, or a host's end.

    owner: the spool's id of this daemon.
    is_drained: returns whether every event in the spool is stored.
    clock: returns Unix seconds.
    uptime: returns seconds since the machine's start; a user cannot set it.
    look: returns what a transcript shows since an event, or None if there is no transcript.
    started: returns when a process started, or None if it is gone.
    has_begun: see `host_children.has_begun`.
    host_status: see `host_status.read_status`.
    is_reporting: see `host_children.is_reporting`.
    last_write, is_suspended: see `tailhook.plates.signs`.
    read_title: returns the title in a transcript, or None; called once after each change of the transcript.
    read_reply: returns the agent's last message in a transcript, or None; called once after each change of the
        transcript of a session that has finished without reporting its last message.
    stuck_timeout: see `tailhook.machines.plates.is_stuck`.
    """

    def __init__(
        self,
        database: Database,
        owner: str,
        is_drained: Callable[[], bool],
        clock: Callable[[], float] = time.time,
        uptime: Callable[[], float] = lambda: time.clock_gettime(CLOCK_BOOTTIME),
        look: "Callable[[str, Since], Look | None] | None" = None,
        started: "Callable[[int], float | None] | None" = None,
        has_begun: Callable[[int, str, Moment], bool] = has_begun,
        host_status: Callable[[Plate], HostStatus | None] = read_status,
        is_reporting: Callable[[int], bool] = is_reporting,
        last_write: Callable[[Plate], float] = last_write,
        is_suspended: Callable[[int], bool] = is_suspended,
        read_title: Callable[[str], Title | None] = read_title,
        read_reply: Callable[[str], str | None] = last_words,
        stuck_timeout: float = STUCK_TIMEOUT,
    ) -> None:
        self.database = database
        self.owner = owner
        self.is_drained = is_drained
        self.has_read_all = False  # whether every event in the spool was stored when the check began
        self.clock = clock
        self.uptime = uptime
        self.looks = LookCache()
        self.look = look or self.looks
        self.started = started or find_process_start
        self.has_begun = has_begun
        self.host_status = host_status
        self.is_reporting = is_reporting
        self.last_write = last_write
        self.is_suspended = is_suspended
        self.read_title = read_title
        self.read_reply = read_reply
        self.stuck_timeout = stuck_timeout
        self.read_stamps: dict[tuple[str, int | None], Stamp | None] = {}  # of read transcripts, see `note_stamp`
        self.titles: dict[str, str] = {}  # the one that was last read in each transcript
        self.last = uptime()
        self.first: dict[tuple[object, ...], Look] = {}  # the first look after the newest event, by `key_of`
        self.resting = 0.0  # the uptime until which nothing is checked
        self.has_news = False  # whether an event changed a plate since the last call of `take_news`
        self.restless = 0.0  # the uptime until which a change may lead to another one
        self.duration = 0.0  # seconds that the last check took
        self.processes: dict[int, float | None] = {}  # the starts of the watched processes at the last check
        self.asked: list[AskedCommand] = []  # at the last check
        self.host_files: dict[str, Stamp | None] = {}  # the hosts' files about sessions, at the last check
        self.faults: dict[str, str] = {}  # the last logged failure of each session

    def note(self, plate: Plate) -> None:  # noqa: ARG002 - which one it was is read from the database
        """Take note that an event changed a plate."""
        self.has_news = True

    def take_news(self) -> bool:
        """Note whether something has happened since the last call. Return whether a check may find something.

        Reads no database and no transcript: it is called each second.
        """
        now = self.uptime()
        if self.has_news or self.looks.have_changed() or self.have_hosts_changed():
            self.has_news = False
            self.restless = now + RESTLESS_S
        waited = now - self.last
        return waited >= HEALTH_CHECK_INTERVAL or (now < self.restless and waited * MAX_SHARE >= self.duration)

    def have_hosts_changed(self) -> bool:
        """Return whether a host has ended since the last check, began an awaited command or rewrote its file."""
        has_ended = any(self.started(pid) != started for pid, started in self.processes.items())
        has_begun = has_ended or any(self.has_begun(*asked.process) for asked in self.asked)
        return has_begun or any(stamp_of_path(path) != stamp for path, stamp in self.host_files.items())

    def check(self) -> int:
        """Check every plate once. Returns how many of them changed."""
        now = self.uptime()
        if now - self.last > MIN_SLEEP_S:
            self.resting = now + WAKE_DELAY_S
        self.last = now
        if now < self.resting:
            return 0
        changed = 0
        self.has_read_all = self.is_drained()
        kept = self.database.open_plates(self.owner)
        self.watch(kept)
        self.first = {key: self.first[key] for plate in kept if (key := key_of(plate)) in self.first}
        strangers = self.database.open_plates(None)
        self.faults = {one["session_id"]: self.faults.get(one["session_id"], "") for one in (*kept, *strangers)}
        for plate in [*kept, *strangers]:
            try:
                changed += self.check_plate(plate) if plate["owner"] else self.amend(plate)
            except SQLAlchemyError as error:
                if not is_row_error(error):
                    raise
                self.log_once(plate, error)
            except Exception as error:  # also MemoryError and RecursionError: check the other sessions
                self.log_once(plate, error)
        self.looks.forget_others()
        wanted = {(plate["transcript_path"], at) for plate in kept for at in (None, plate["finished_at"])}
        self.read_stamps = {key: stamp for key, stamp in self.read_stamps.items() if key in wanted}
        self.titles = {path: words for path, words in self.titles.items() if (path, None) in wanted}
        self.duration = self.uptime() - now
        return changed

    def watch(self, kept: list[Plate]) -> None:
        """Take note of the processes and the hosts' files of some plates, so that `take_news` sees what changes."""
        pids = [plate["pid"] for plate in kept if plate["pid"] is not None]
        self.processes = {pid: self.started(pid) for pid in pids[-MAX_WATCHED:]}
        self.asked = [asked for plate in kept for asked in commands_of(plate)][-MAX_WATCHED:]
        files = [status_file(plate) for plate in kept if Status(plate["status"]) in EXAMINED]
        self.host_files = {str(path): stamp_of_path(str(path)) for path in files[-MAX_WATCHED:] if path}

    def check_plate(self, plate: Plate | None) -> bool:
        """Check one plate. Returns whether that changed it.

        If an event changes the plate meanwhile, it is checked again.
        """
        for _ in range(MAX_CHECKS):
            if plate is None or plate["status"] == Status.CLOSED.value:
                return False
            at = Moment(int(self.clock() * 1000), int(self.uptime() * 1000))  # events after this are newer
            event, tool = self.event_of(plate, self.clock())
            if event is None:
                return self.amend(plate)
            if self.database.apply(plate, event, at, tool):
                return True
            plate = self.database.get(plate["session_id"])
        return False

    def amend(self, plate: Plate) -> bool:
        """Store since when a session that should work is silent or quiet, its title and its last message.

        Returns whether that changed its plate.
        """
        now = self.clock()
        status = Status(plate["status"])
        last, growth = self.last_sign(plate, now), self.last_growth(plate, now)
        new = plate.copy()
        new["silent_since"] = int(last * 1000) if is_silent(status, last, now) else None
        new["quiet_since"] = int(growth * 1000) if is_stuck(status, growth, now, self.stuck_timeout) else None
        path = plate["transcript_path"]
        if path and plate["owner"] == self.owner:
            self.add_words(new, path)
        return new != plate and self.database.amend(new)

    def add_words(self, plate: Plate, path: str) -> None:
        """Store the title of a session, how full its context is, and its last message unless its hook reported that.

        path: of the transcript.
        """
        if self.note_stamp(path):
            title = self.read_title(path)
            if title:
                known = self.titles.get(path)  # None: another daemon may have stored the plate's title
                if title.is_persons or not plate["title"] or known in (None, plate["title"]):
                    plate["title"] = title.words
                self.titles[path] = title.words
            plate["context_used"] = context_used(path)
        finished_at = plate["finished_at"]
        if finished_at is not None and plate["reply"] is None and self.note_stamp(path, finished_at):
            plate["reply"] = first_words(self.read_reply(path) or "") or None

    def note_stamp(self, path: str, finished_at: int | None = None) -> bool:
        """Note when a transcript was changed. Return whether it has changed since the last call, and can be read.

        finished_at: of the turn whose last message is wanted; None if the title is.
        """
        stamp = stamp_of_path(path)
        is_same = self.read_stamps.get((path, finished_at)) == stamp
        self.read_stamps[path, finished_at] = stamp
        return stamp is not None and not is_same

    def last_event(self, plate: Plate) -> float:
        """Return when the newest event of a session happened, in Unix seconds.

        If newer ones still wait in the spool, or no hook on this computer has timed it, the time when it came counts.
        """
        came = plate["updated_at"]
        is_timed_here = plate["owner"] == self.owner and plate["event_mono"] is not None and self.has_read_all
        return (min(came, plate["event_ts"]) if is_timed_here else came) / 1000

    def last_growth(self, plate: Plate, now: float) -> float:
        """Return when the last event of a session happened or a transcript of it was written, in Unix seconds.

        Looks at the transcripts only if no event is fresh.
        """
        last_event = self.last_event(plate)
        status = Status(plate["status"])
        if plate["owner"] != self.owner or not is_stuck(status, last_event, now, self.stuck_timeout):
            return last_event
        return max(last_event, self.last_write(plate))

    def last_sign(self, plate: Plate, now: float) -> float:
        """Return when the last sign of a session came, in Unix seconds. Looks at its host only if no event is fresh."""
        last_event = self.last_event(plate)
        if plate["owner"] != self.owner or not is_silent(Status(plate["status"]), last_event, now):
            return last_event
        if is_working(plate, self.host_status(plate), self.has_begun, self.is_suspended):
            return now
        return max(last_event, self.last_write(plate))

    def log_once(self, plate: Plate, error: Exception) -> None:
        """Log that a plate cannot be checked, unless its last failure was the same."""
        fault = plain(repr(error))
        if self.faults[plate["session_id"]] != fault:
            self.faults[plate["session_id"]] = fault
            log.warning("the session %s cannot be checked: %s", plain(plate["session_id"]), fault)

    def event_of(self, plate: Plate, now: float) -> tuple[Event | None, OpenTool | None]:
        """Return the event that the check of a plate finds, and its tool; None for none."""
        if self.look_for_exit(plate) and self.is_drained():  # otherwise the session may have reported another process
            return Event(EventKind.SESSION_END), None
        status = Status(plate["status"])
        last_event = plate["event_ts"] / 1000
        host = self.host_status(plate) if status in EXAMINED else None
        if is_at_its_prompt(bool(plate["unprompted"]), host, status, last_event, now):
            return Event(EventKind.TURN_ENDED), None
        for asked in commands_of(plate):
            if self.has_begun(*asked.process):
                return Event(EventKind.PERMISSION_GIVEN), asked.tool
        situation = situation_of(plate)
        for agent in situation.agents:
            look = self.look(agent.about, OF_AGENT)
            if look is not None and look.turn_over:
                return Event(EventKind.SUBAGENT_STOP), agent
        if status not in EXAMINED or not plate["transcript_path"]:
            return None, None
        has_dialog = host is not None and any(tool.name == HOST for tool in situation.waits)
        event, tool = None, None
        if not has_dialog:  # otherwise only the host knows when it ends
            event, tool = self.event_in_transcript(plate["transcript_path"], plate, situation.waits, now)
        if event is None and host:
            event = judge_host_status(situation, last_event, host, now)
            tool = next(iter(situation.waits), None)
            if event in OF_DIALOGS:
                tool = OpenTool("", HOST, host.waits_for)
        if plate["background"] and event == Event(EventKind.TURN_ENDED):
            return None, None  # the turn goes on when an agent in the background ends
        if situation.own is Status.IDLE and event in TURN_OVER:
            return None, None  # a turn of Codex ends right after its stop, and its sub-agents work on
        if event in UNREPORTED and not self.has_reported(plate):
            return None, None  # the hook's event is the better one
        return event, tool

    def has_reported(self, plate: Plate) -> bool:
        """Return whether all events of a plate have come. A hook may take longer than SETTLING_TIME."""
        return self.is_drained() and not (plate["pid"] is not None and self.is_reporting(plate["pid"]))

    def event_in_transcript(
        self, path: str, plate: Plate, waits: Tools, now: float
    ) -> tuple[Event | None, OpenTool | None]:
        """Return the event that a plate's transcript shows, and its tool; None for none."""
        last_event = plate["event_ts"] / 1000
        calls = frozenset(tool.tool_use_id for tool in waits if tool.tool_use_id)
        look = self.look(path, Since(last_event, plate["transcript_size"], calls))
        for tool in waits:
            if tool.agent_id and tool.tool_use_id:
                look = self.look_at_agent(path, tool, look)
        if look is None:
            return None, None
        over = next((tool for tool in waits if tool.tool_use_id in look.ended), None)
        if over and calls & look.pending:  # the person answered one of several questions
            return Event(EventKind.TOOL_CALL), over
        first = self.first.setdefault(key_of(plate), look)
        return examine(Status(plate["status"]), last_event, look, now, first, calls), None

    def look_at_agent(self, path: str, tool: OpenTool, look: Look | None) -> Look | None:
        """Return the look at the session's transcript, with what the sub-agent's own transcript shows of its tool.

        Only the sub-agent's own transcript has records of its tool.
        """
        since = Since(calls=frozenset((tool.tool_use_id,)), is_agents=True)
        theirs = self.look(transcript_of_agent(path, tool.agent_id), since)
        if look is None:
            return None
        is_over = theirs is not None and tool.tool_use_id in theirs.ended
        if is_over:
            return look._replace(ended=look.ended | {tool.tool_use_id})
        return look._replace(pending=look.pending | {tool.tool_use_id})

    def look_for_exit(self, plate: Plate) -> bool:
        """Return whether the plate's process has ended, or its id belongs to another process now.

        Saves that it was seen running.

        A process that is guessed, or has an unknown start, must be seen running first. A guessed one must be seen after
        its hook has exited.
        """
        if plate["pid"] is None:
            return False
        started = self.started(plate["pid"])
        if plate["pid_is_guess"] and self.clock() - plate["event_ts"] / 1000 < HOOK_EXIT_S:
            return False
        is_another = plate["pid_started"] not in (None, started)
        if not is_another and started is not None and (plate["pid_is_guess"] or plate["pid_started"] is None):
            self.database.confirm_process(plate, started)
        return is_another and not plate["pid_is_guess"]


class AskedCommand(NamedTuple):
    """A command that waits for approval.

    process: the arguments of `has_begun`.
    """

    tool: OpenTool
    process: tuple[int, str, Moment]


def commands_of(plate: Plate) -> list[AskedCommand]:
    """Return the commands of a plate that wait for approval, if its process is known."""
    pid = plate["pid"]
    if pid is None or Status(plate["status"]) is not Status.AWAITING_APPROVAL:
        return []
    since = Moment(plate["event_ts"], plate["event_mono"])
    waits = [tool for tool in situation_of(plate).waits if tool.wait is Status.AWAITING_APPROVAL]
    return [AskedCommand(tool, (pid, tool.about, since)) for tool in waits if tool.about and tool.name in COMMAND_TOOLS]


def key_of(plate: Plate) -> tuple[object, ...]:
    """Return what identifies a plate's state until the next event of the session itself."""
    return plate["session_id"], plate["event_ts"], plate["event_mono"], plate["status"]


def find_process_start(pid: int) -> float | None:
    """Return when a process started, or None if it has ended.

    On Linux the unit is clock ticks since the machine's start, as in the hooks' events; elsewhere it is Unix seconds.
    psutil is not used: it computes Linux's times from the wall clock, so its results differ from run to run.
    """
    if sys.platform == "linux":
        return processes.process_start(pid) or None
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None
