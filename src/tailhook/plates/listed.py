"""The sessions in Claude Code's own list, `claude agents --json` (2.1.163 and later; read here: 2.1.329).

Pure: no I/O, no clock. The list has interactive sessions and those in the background. A plate is made only for those
that no hook has reported. It is never stored, so the history has only what hooks reported.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tailhook import hosts
from tailhook._core import get_text, parse_json
from tailhook.errors import TailhookError
from tailhook.machines.plates import HOST, Status
from tailhook.plates.display import SHELL_SAFE_ID
from tailhook.plates.rows import empty_plate
from tailhook.plates.schemas import LISTED, MAX_TIME_MS, clean_words, scrub
from tailhook.plates.tables import Plate

MAX_LISTED = 1000  # sessions; further ones are left out
MAX_ID_CHARS = 500
MAX_CWD_CHARS = 4096
MAX_PID = 1 << 31
STATUS_WORDS = {"busy": Status.RUNNING, "waiting": Status.AWAITING_INPUT, "idle": Status.IDLE}  # of a process
# Of a session in the background; counts only if no process of it has a status.
STATE_WORDS = {
    "blocked": Status.AWAITING_INPUT,
    "failed": Status.ERROR,
    "done": Status.IDLE,
    "stopped": Status.CLOSED,
}


class ListError(TailhookError):
    """The host's list cannot be used."""


class ListedSession(NamedTuple):
    """A session in the host's list.

    name: what the host or the person called it; "" without a name.
    waits_for: the kind of the dialog that it shows, such as "permission prompt"; "" if it shows none.
    started_at: Unix milliseconds; None if the list does not have it.
    transcript_path, since: what the list never has: its transcript, and when its status changed, in Unix milliseconds.
    """

    session_id: str
    folder: str
    name: str
    status: Status
    waits_for: str
    pid: int | None
    started_at: int | None
    transcript_path: str | None = None
    since: int | None = None


def parse_list(output: bytes) -> list[ListedSession]:
    """Return the sessions in the host's list. Entries that cannot be used are left out.

    Raises ListError if the output is not a JSON array.
    """
    try:
        found: Any = scrub(parse_json(output))
    except ValueError as error:
        raise ListError(f"its output is not JSON: {error}") from error
    if not isinstance(found, list):
        raise ListError("its output is not a JSON array")
    sessions = (parse_entry(entry) for entry in found if isinstance(entry, dict))
    return [session for session in sessions if session][:MAX_LISTED]


def parse_entry(entry: dict[str, Any]) -> ListedSession | None:
    """Return one session of the host's list, or None if its id or its folder cannot be used."""
    session_id, folder = get_text(entry, "sessionId"), get_text(entry, "cwd")
    if len(session_id) > MAX_ID_CHARS or not SHELL_SAFE_ID.fullmatch(session_id):
        return None
    if len(folder) > MAX_CWD_CHARS or not folder.startswith("/"):
        return None
    word, state = get_text(entry, "status"), get_text(entry, "state")
    status = STATUS_WORDS.get(word) or STATE_WORDS.get(state) or Status.STARTING
    return ListedSession(
        session_id,
        folder,
        clean_words(get_text(entry, "name")),
        status,
        clean_words(get_text(entry, "waitingFor")),
        find_whole_number(entry.get("pid"), 1, MAX_PID),
        find_whole_number(entry.get("startedAt"), 0, MAX_TIME_MS),
    )


def find_whole_number(value: object, least: int, greatest: int) -> int | None:
    """Return a JSON value if it is a whole number within limits, otherwise None."""
    return value if isinstance(value, int) and value is not True and least <= value <= greatest else None


def make_plates(
    listed: Iterable[ListedSession], before: Mapping[str, Plate], facts: Mapping[str, str | None], now: int
) -> dict[str, Plate]:
    """Return the plates of listed sessions, by session.

    before: the plates that were made of the list before. A plate that stays the same is equal to its former one.
    facts: columns that all of them have.
    now: Unix milliseconds.
    """
    return {one.session_id: make_plate(one, before.get(one.session_id), facts, now) for one in listed}


def make_plate(one: ListedSession, before: Plate | None, facts: Mapping[str, str | None], now: int) -> Plate:
    """Return the plate of a listed session, see `make_plates`. A hidden session that begins to work is shown again."""
    begins = before is None or before["status"] != one.status.value
    seen = now if before is None or begins else before["since"]
    is_waiting = one.status is Status.AWAITING_INPUT
    values = {
        **empty_plate(one.session_id, one.folder, before["created_at"] if before else min(one.started_at or now, now)),
        **facts,
        "status": one.status.value,
        "since": one.since if one.since is not None and 0 < one.since <= now else seen,
        "updated_at": now if before is None else before["updated_at"],
        "last_event_type": LISTED,
        "title": one.name or None,
        "transcript_path": one.transcript_path,
        "agent_program": hosts.DEFAULT,
        "pid": one.pid,
        "tools": [["", HOST, one.waits_for, "", one.status.value]] if is_waiting else None,
        "hidden_at": None if before is None or (begins and one.status is Status.RUNNING) else before["hidden_at"],
    }
    plate: Plate = values  # type: ignore[assignment]
    return plate if plate == before else {**plate, "updated_at": now}
