"""A health check; a test sets its clock, transcripts and processes."""

from pathlib import Path

import sqlalchemy as sa

from support.databases import database_in
from tailhook.plates.db import Database
from tailhook.plates.health import Health
from tailhook.plates.schemas import Report
from tailhook.plates.tables import plates

OWNER = "this daemon"


class World:
    """A database, a health check, and the time, the transcripts and the processes that they see."""

    def __init__(self, folder):
        self.now = 1_000_000.0
        self.looks = {}
        self.processes = {}
        self.reporting = set()  # the process ids of hosts with a running hook
        self.hosts = {}  # the host's own word, by session
        self.written = {}  # when a transcript was last written, by session
        self.stopped = set()  # the process ids of stopped hosts
        self.commands = set()  # the process ids and the commands of hosts that run one
        self.database = Database(database_in(Path(folder)))
        self.set_forward = 0.0
        self.is_drained = lambda: True
        self.health = Health(
            self.database,
            OWNER,
            lambda: self.is_drained(),
            lambda: self.now + self.set_forward,
            lambda: self.now,
            lambda path, _: self.looks.get(path),
            self.processes.get,
            lambda pid, command, since: (pid, command) in self.commands and since.ts < self.now * 1000,
            lambda plate: self.hosts.get(plate["session_id"]),
            self.reporting.__contains__,
            lambda plate: self.written.get(plate["session_id"], 0.0),
            self.stopped.__contains__,
        )
        self.database.changed = self.health.note

    def event(self, session, kind, owner=OWNER, **fields):
        """Record an event of this moment.

        owner: the daemon that looks after its plate.
        """
        word, _, rest = kind.partition(":")
        common = {
            "session_id": session,
            "project_path": "/p",
            "event_type": word,
            "tool_name": rest or None,
            "transcript_path": session,
            "ts": int(self.now * 1000),
        }
        before = self.database.get(session)
        self.database.record(Report(**{**common, **fields}), owner=owner)
        after = self.database.get(session)
        if after and (before is None or after["version"] > before["version"]):
            received = sa.update(plates).where(plates.c.session_id == session).values(updated_at=int(self.now * 1000))
            with self.database.engine.begin() as tx:
                tx.execute(received)

    def status(self, session):
        return self.database.get(session)["status"]
