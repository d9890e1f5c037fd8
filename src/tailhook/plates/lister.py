"""Asks Claude Code for its own list of sessions while a board is open."""

import asyncio
import contextlib
import logging
import os
import shutil
from collections.abc import Awaitable, Callable, Collection, Iterable
from pathlib import Path

import psutil

from tailhook import hosts
from tailhook.errors import TailhookError
from tailhook.hook.answer import describe, plain
from tailhook.hook.plates import MAX_REPORTED_CHARS
from tailhook.plates import paths
from tailhook.plates.host_status import read_status
from tailhook.plates.hub import Hub
from tailhook.plates.listed import STATUS_WORDS, ListedSession, ListError, make_plates, parse_list
from tailhook.plates.programs import run_program
from tailhook.plates.rows import empty_plate
from tailhook.plates.schemas import unix_ms
from tailhook.plates.tables import Plate

log = logging.getLogger("tailhook.plates")

LIST_INTERVAL_S = 10.0  # from the end of one run to the start of the next
LIST_TIMEOUT_S = 10.0  # of a run; the host takes 0.3 s (2.1.329)
MAX_LIST_BYTES = 1 << 20
MAX_RETRY_DELAY_S = 3600.0  # after failures in a row; a release that has no such list fails each time
RETRY_FACTOR = 6
INSTALL_FOLDERS = "~/.local/bin", "~/.claude/local"  # of the host's own installers; a hook's PATH may lack them
# The host then looks for no update and sends no figures.
QUIET_VARIABLES = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}


async def run_list() -> list[ListedSession]:
    """Return the host's list; an empty one if the host is not installed.

    The host runs in the user's home folder, so it reads no project's settings.

    Raises ListError and OSError.
    """
    program = find_claude()
    if program is None:
        return []
    argv = [program, "agents", "--json"]
    try:
        end = await run_program(
            argv,
            QUIET_VARIABLES,
            LIST_TIMEOUT_S,
            folder=Path.home(),
            max_output_bytes=MAX_LIST_BYTES,
            reads_errors=True,
        )
    except TimeoutError:
        raise ListError(f"it took longer than {LIST_TIMEOUT_S:.0f} seconds, and was killed") from None
    if end.status:
        words = plain(end.errors.decode(errors="replace").strip())[:MAX_REPORTED_CHARS]
        raise ListError(f"exit status {end.status}: {words}")
    if len(end.output) == MAX_LIST_BYTES:
        raise ListError(f"it printed more than {MAX_LIST_BYTES} bytes")
    return parse_list(end.output)


def read_files_of(one: ListedSession, transcript: str | None) -> ListedSession:
    """Return a session with what the host's files add to its list. What cannot be read stays unknown.

    transcript: its path, if it is known already.
    """
    with contextlib.suppress(OSError):
        transcript = transcript or find_transcript(one.session_id)
    plate = empty_plate(one.session_id, one.folder, 0)
    plate["pid"], plate["transcript_path"] = one.pid, transcript
    host = read_status(plate)
    is_same = host is not None and STATUS_WORDS.get(host.word) is one.status
    return one._replace(transcript_path=transcript, since=int(host.since * 1000) if host and is_same else None)


def find_transcript(session_id: str) -> str | None:
    """Return the path of a session's transcript, or None if there is none. Raises OSError."""
    fields = hosts.find_host(hosts.DEFAULT).HOOKS_FILE
    named = os.environ.get(fields.get("folder_variable", ""))
    folder = Path(named) if named else Path.home() / fields["folder"]
    return next(map(str, folder.glob(f"projects/*/{session_id}.jsonl")), None)


def find_processes(listed: Iterable[ListedSession]) -> set[int]:
    """Return the ids of the sessions' processes and of their ancestors: npx, for example, stays the host's parent."""
    found = {one.pid for one in listed if one.pid}
    for pid in tuple(found):
        with contextlib.suppress(psutil.Error):
            found.update(parent.pid for parent in psutil.Process(pid).parents())
    return found


def find_claude() -> str | None:
    """Return the absolute path of the host's program, or None if there is none.

    Relative folders in PATH are ignored: they may be a project's.
    """
    named = os.environ.get("PATH", "").split(os.pathsep)
    folders = [*named, *map(os.path.expanduser, INSTALL_FOLDERS)]
    return shutil.which("claude", path=os.pathsep.join(filter(os.path.isabs, folders)))


class Lister:
    """Publishes, while a board is open, the sessions in Claude Code's list that no hook has reported.

    All methods run in the event loop's thread.

    owner: the id of the daemon's spool.
    remove_placeholders: removes those of `tailhook run` that started one of these processes. Runs in a thread.
    ask: returns the host's list. Raises TailhookError or OSError.
    sleep: waits for some seconds.
    """

    def __init__(
        self,
        hub: Hub,
        owner: str,
        remove_placeholders: Callable[[Collection[int]], None],
        ask: Callable[[], Awaitable[list[ListedSession]]] = run_list,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.hub = hub
        self.facts = {**paths.local_identity(), "owner": owner}
        self.remove_placeholders = remove_placeholders
        self.ask = ask
        self.sleep = sleep
        self.before: dict[str, Plate] = {}  # the last plate of each session, also after the boards were closed

    async def follow(self) -> None:
        """Ask for the list at an interval while a board is open.

        If that fails, wait longer each time, but not after another board was opened.
        """
        await self.hub.is_loaded.wait()
        delay = LIST_INTERVAL_S
        while True:
            await self.hub.is_watched.wait()
            try:
                await self.publish(await self.ask())
            except Exception as error:  # no list ends the daemon
                self.note_failure(str(error) if isinstance(error, TailhookError) else describe(error))
                delay = min(delay * RETRY_FACTOR, MAX_RETRY_DELAY_S)
            else:
                self.hub.list_failure = ""
                delay = LIST_INTERVAL_S
            if await self.rest(delay):
                delay = LIST_INTERVAL_S

    async def rest(self, seconds: float) -> bool:
        """Wait for some seconds; return early, with True, if no board is open or another one was opened."""
        opened = self.hub.opened
        for _ in range(round(seconds / LIST_INTERVAL_S)):
            await self.sleep(LIST_INTERVAL_S)
            if not self.hub.is_watched.is_set():
                self.clear()
                return True
            if self.hub.opened != opened:
                return True
        return False

    async def publish(self, listed: list[ListedSession]) -> None:
        """Publish the sessions that no hook has reported, in place of what `tailhook run` reported of them."""
        unknown = [one for one in listed if not self.hub.is_reported(one.session_id)]
        known = {session_id: plate["transcript_path"] for session_id, plate in self.before.items()}
        completed = await asyncio.to_thread(lambda: [read_files_of(one, known.get(one.session_id)) for one in unknown])
        rest = [one for one in completed if not self.hub.is_reported(one.session_id)]
        self.before = make_plates(rest, {**self.before, **self.hub.listed}, self.facts, unix_ms())
        self.hub.publish_list(self.before)
        try:
            await asyncio.to_thread(lambda: self.remove_placeholders(find_processes(listed)))
        except Exception as error:  # the database's, not the host's: the next answer brings another try
            log.warning(
                "the rows of `tailhook run` that Claude Code's list replaces were not removed: %s", describe(error)
            )

    def note_failure(self, words: str) -> None:
        """Publish that no session is known. Log the reason, if it is another one than at the last failure."""
        if self.hub.list_failure != words:
            self.hub.list_failure = words
            log.warning("claude agents --json failed, so sessions without hooks are not shown: %s", words)
        self.clear()

    def clear(self) -> None:
        """Publish that no session is listed. What a person hid is remembered."""
        self.before |= self.hub.listed
        self.hub.publish_list({})
