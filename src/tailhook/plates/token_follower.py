"""Reads the tokens of the open sessions while a board is open: a piece of a transcript at a time."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tailhook.hook.answer import plain
from tailhook.plates.db import IS_OPEN, Database
from tailhook.plates.fields import TokensOut
from tailhook.plates.hub import Hub
from tailhook.plates.tables import plates

if TYPE_CHECKING:
    from tailhook.plates.session_tokens import SessionTokens

log = logging.getLogger("tailhook.plates")

LOOK_INTERVAL_S = 2.0  # between two looks at the transcripts
STEP_BYTES = 1 << 22  # read at a step; a longer line is read to its end
RESTS = 4  # so many times as long as a step took, before the next one
MIN_REST_S = 0.01
LINGER_S = 600.0
MAX_FOLLOWED = 200  # sessions: those that changed last
MAX_RESPONSES = 200_000  # records of them in memory, of all sessions: each takes up to 300 bytes
ALL_SESSIONS = "all sessions"
SELECT_TRANSCRIPTS = (
    sa.select(plates.c.session_id, plates.c.transcript_path)
    .where(IS_OPEN, plates.c.owner == sa.bindparam("owner"), plates.c.transcript_path.is_not(None))
    .order_by(plates.c.updated_at.desc())
    .limit(MAX_FOLLOWED)
)


class TokenFollower:
    """Publishes the tokens of the open sessions that this daemon looks after, while a board is open.

    A total is published when a session's transcripts were read to their ends, and stays until the next one. Nothing is
    stored: after a start of the daemon the transcripts are read again.

    owner: the id of the daemon's spool.
    linger: the seconds after which it forgets what it has read, when no board is open.
    sleep: waits for some seconds.
    clock: returns seconds.
    """

    def __init__(
        self,
        hub: Hub,
        database: Database,
        owner: str,
        linger: float = LINGER_S,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.hub = hub
        self.database = database
        self.owner = owner
        self.linger = linger
        self.sleep = sleep
        self.clock = clock
        self.sessions: dict[str, SessionTokens] = {}
        self.unread: deque[SessionTokens] = deque()  # those to read before the next look
        self.rollouts: dict[str, str] = {}  # see `SessionTokens`
        self.next_look = 0.0
        self.faults: dict[str, str] = {}  # the last logged failure of each session, and that of ALL_SESSIONS

    async def follow(self) -> None:
        """Read a piece of what is new, and publish the totals, while a board is open."""
        await self.hub.is_loaded.wait()
        while True:
            await self.wait_for_board()
            begun = self.clock()
            try:
                self.hub.publish_tokens(await asyncio.to_thread(self.step))
            except Exception as error:  # the database cannot be read; no count ends the daemon
                self.log_once(ALL_SESSIONS, error)
            now = self.clock()
            rest = max(MIN_REST_S, RESTS * (now - begun))
            await self.sleep(rest if self.unread else max(MIN_REST_S, self.next_look - now))

    async def wait_for_board(self) -> None:
        """Wait until a board is open. Meanwhile the tokens are not known; later what was read is forgotten."""
        if self.hub.is_watched.is_set():
            return
        self.hub.publish_tokens(dict.fromkeys(self.hub.tokens))
        try:
            async with asyncio.timeout(self.linger):
                await self.hub.is_watched.wait()
        except TimeoutError:
            self.sessions.clear()
            self.unread.clear()
            self.rollouts.clear()
            await self.hub.is_watched.wait()
        self.next_look = 0.0

    def step(self) -> dict[str, TokensOut | None]:
        """Read a piece of what is new. Returns the tokens of the sessions that were read, None if they are not known.

        Runs in a thread. Raises SQLAlchemyError.
        """
        found: dict[str, TokensOut | None] = {}
        if self.clock() >= self.next_look:
            found = self.look()
        left = STEP_BYTES
        for _ in range(len(self.unread)):
            if left <= 0:
                break
            session = self.unread.popleft()
            try:
                left -= session.read(left)
            except Exception as error:  # also MemoryError: the other sessions are read
                self.log_once(session.session_id, error)
                session.give_up()
            if sum(one.responses for one in self.sessions.values()) > MAX_RESPONSES:
                session.give_up()
            if not session.is_whole:
                self.unread.append(session)
            if session.is_whole or session.total is None:
                found[session.session_id] = session.total
        return found

    def look(self) -> dict[str, TokensOut | None]:
        """Find the open sessions, to read all of them. Returns None for each that is open no more.

        Raises SQLAlchemyError.
        """
        from tailhook.plates.session_tokens import SessionTokens  # only for boards: it takes memory

        self.next_look = self.clock() + LOOK_INTERVAL_S  # also if the database cannot be read
        with self.database.engine.connect() as tx:
            paths = {row[0]: row[1] for row in tx.execute(SELECT_TRANSCRIPTS, {"owner": self.owner})}
        for session_id, plate in self.hub.listed.copy().items():
            if plate["transcript_path"]:
                paths.setdefault(session_id, plate["transcript_path"])
        before = self.sessions
        self.sessions = {
            session_id: kept
            if (kept := before.get(session_id)) and kept.path == path
            else SessionTokens(session_id, path, self.rollouts)
            for session_id, path in paths.items()
        }
        self.unread = deque(self.sessions.values())
        self.faults = {name: fault for name, fault in self.faults.items() if name in self.sessions}
        return dict.fromkeys(before.keys() - self.sessions.keys())

    def log_once(self, session_id: str, error: Exception) -> None:
        """Log that tokens cannot be counted, unless the last failure of the session was the same."""
        fault = plain(repr(error))
        if self.faults.get(session_id) != fault:
            self.faults[session_id] = fault
            log.warning("the tokens of %s cannot be counted: %s", plain(session_id), fault)
