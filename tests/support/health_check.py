"""A health check; a test sets its clock, transcripts and processes."""

from pathlib import Path

from support.databases import database_in
from tailhook.plates.db import Database
from tailhook.plates.health import Health
from tailhook.plates.schemas import Report

OWNER = "this daemon"


class World:
    """A database, a health check, and the time, the transcripts and the processes that they see."""

    def __init__(self, folder):
        self.now = 1_000_000.0
        self.looks = {}
        self.processes = {}
        self.reporting = set()  # the process ids of hosts with a running hook
        self.hosts = {}  # the host's own word, by session
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
        self.database.record(Report(**{**common, **fields}), owner=owner)

    def status(self, session):
        return self.database.get(session)["status"]
