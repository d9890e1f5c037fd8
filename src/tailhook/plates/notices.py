"""Which changes of sessions give a notice, and its text. Pure: no I/O, no clock."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tailhook.machines.plates import STUCK_TIMEOUT
from tailhook.machines.quoting import plain_words
from tailhook.plates.display import activity_of, group_of
from tailhook.plates.fields import BoardGroup, activity_lines
from tailhook.plates.notice_settings import NOTICE_KINDS, NoticeKind, NoticeSettings
from tailhook.plates.tables import Plate

DELAY_S = 2.0  # from a change to its notice; a wait that ends in this time gives none
MAX_AGE_S = 60.0  # of a change; an older one gives no notice, for example after the daemon's start
MAX_AT_ONCE = 3  # notices; of more sessions, one notice has the names
MAX_A_MINUTE = 10  # notices; then the sessions that change are collected for the next one
MAX_NAMED_PROJECTS = 10  # in such a notice
MAX_NOTICE_LINE_CHARS = 300

KIND_WORDS: dict[NoticeKind, str] = {"waits": "waits for you", "finished": "has finished", "stuck": "may be stuck"}
COUNT_WORDS: dict[NoticeKind, str] = {"waits": "wait for you", "finished": "have finished", "stuck": "may be stuck"}


class PlateNotice(NamedTuple):
    """One notice.

    kind: of a notice about several sessions, the kind of the first one.
    text: one or more lines.
    session_id, project_path: "" if the notice is about several sessions.
    """

    kind: NoticeKind
    title: str
    text: str
    session_id: str = ""
    project_path: str = ""


class ChangedPlate(NamedTuple):
    """A session whose notice is not sent yet.

    at: when the daemon learned of the change, in seconds of a clock that is never set.
    """

    plate: Plate
    kind: NoticeKind
    at: float


class NoticeQueue:
    """Collects the changes of sessions until their notices are due.

    owner: the spool's id of this daemon. Only the sessions it looks after give notices: of several daemons on one
        database, only the one on the session's machine sends.
    stuck_timeout: see `tailhook.machines.plates.is_stuck`.
    """

    def __init__(self, owner: str, stuck_timeout: float = STUCK_TIMEOUT) -> None:
        self.owner = owner
        self.stuck_timeout = stuck_timeout
        self.groups: dict[str, BoardGroup] = {}  # by session
        self.waiting: dict[str, ChangedPlate] = {}  # by session
        self.sent: list[float] = []  # when the notices of the last minute were taken

    def load(self, plates: Iterable[Plate]) -> None:
        """Note the groups of sessions as they are at the daemon's start."""
        for plate in plates:
            self.groups.setdefault(plate["session_id"], shown_group(plate))

    def note(self, plate: Plate, now: float, at: float) -> None:
        """Note a changed plate. A session that leaves the group of its notice, or is hidden, loses the notice.

        now: Unix seconds.
        at: see ChangedPlate.
        """
        session_id = plate["session_id"]
        before = self.groups.get(session_id, "rest")
        if plate["owner"] != self.owner or plate["status"] == "closed":
            self.forget(session_id)
            return
        self.groups[session_id] = shown_group(plate)
        kind = kind_of_change(before, plate, now, self.stuck_timeout)
        before_it = self.waiting.pop(session_id, None)
        if kind:
            self.waiting[session_id] = ChangedPlate(plate, kind, at)
        elif before_it and before_it.kind == group_of(plate):
            self.waiting[session_id] = before_it._replace(plate=plate)

    def forget(self, session_id: str) -> None:
        """Forget a session that is gone."""
        self.groups.pop(session_id, None)
        self.waiting.pop(session_id, None)

    def take(
        self, settings: NoticeSettings, at: float, minute: int, name_of: Callable[[str], str]
    ) -> list[PlateNotice]:
        """Return the notices that are due, and forget them. In quiet hours they are forgotten without being returned.

        at: now, see ChangedPlate.
        minute: of the local day.
        name_of: returns the name of the project with a path.
        """
        self.sent = [one for one in self.sent if one > at - 60]
        room = MAX_A_MINUTE - len(self.sent)
        due = [one for one in self.waiting.values() if one.at + DELAY_S <= at]
        if not room:
            return []
        for one in due:
            del self.waiting[one.plate["session_id"]]
        wanted = [one for one in due if one.kind in settings.kinds and not settings.is_quiet(minute)]
        if len(wanted) <= min(MAX_AT_ONCE, room):
            notices = [write_notice(one, name_of(one.plate["project_path"])) for one in wanted]
        else:
            notices = [write_summary(wanted, name_of)]
        self.sent += [at] * len(notices)
        return notices


def kind_of_change(before: BoardGroup, plate: Plate, now: float, stuck_timeout: float) -> NoticeKind | None:
    """Return which notice a change gives, or None.

    before: the group in which the session stood, whether it was hidden or not.
    now: Unix seconds.
    stuck_timeout: see `tailhook.machines.plates.is_stuck`.
    """
    kind = group_of(plate)
    if kind == before or kind == "working" or kind == "rest":
        return None
    began = {
        "waits": plate["since"],
        "finished": plate["finished_at"] or 0,
        "stuck": (plate["quiet_since"] or 0) + stuck_timeout * 1000,
    }[kind]
    return kind if now - began / 1000 <= MAX_AGE_S else None


def shown_group(plate: Plate) -> BoardGroup:
    """Return the group in which a session stands, or would stand if it were not hidden."""
    return group_of({**plate, "hidden_at": None})


def write_notice(changed: ChangedPlate, name: str) -> PlateNotice:
    """Return the notice about one session: what it asks, did last or does, and its headline.

    name: of its project.
    """
    plate = changed.plate
    lines = (*activity_lines(activity_of(plate)), plate["title"] or plate["prompt"] or "")
    return PlateNotice(
        changed.kind,
        plain_words(f"{name} {KIND_WORDS[changed.kind]}", MAX_NOTICE_LINE_CHARS),
        write_lines(lines) or KIND_WORDS[changed.kind],
        plate["session_id"],
        plate["project_path"],
    )


def write_summary(several: list[ChangedPlate], name_of: Callable[[str], str]) -> PlateNotice:
    """Return one notice about several sessions: how many of each kind, and the first names."""
    lines: list[str] = []
    for kind in NOTICE_KINDS:
        names = [name_of(one.plate["project_path"]) for one in several if one.kind == kind]
        if names:
            rest = f", and {len(names) - MAX_NAMED_PROJECTS} more" if len(names) > MAX_NAMED_PROJECTS else ""
            words = COUNT_WORDS[kind] if len(names) > 1 else KIND_WORDS[kind]
            lines.append(f"{len(names)} {words}: {', '.join(names[:MAX_NAMED_PROJECTS])}{rest}")
    return PlateNotice(several[0].kind, f"tailhook: {len(several)} sessions", write_lines(lines))


def write_lines(lines: Iterable[str]) -> str:
    """Return texts of sessions, each on one line, without secrets and invisible characters."""
    return "\n".join(filter(None, (plain_words(line, MAX_NOTICE_LINE_CHARS) for line in lines)))
