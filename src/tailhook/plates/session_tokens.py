"""The tokens of one session, counted like `tailhook usage`, while its transcripts grow.

A transcript is read once, in pieces: each reading goes on where the one before ended.
"""

import io
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import date, timedelta
from itertools import compress, islice
from pathlib import Path

from tailhook._core import ArrowBatch, RangeScan, ResponseCounter
from tailhook.fleet.answer import Conditions
from tailhook.fleet.columns import TOKEN_COLUMNS, MatchOptions
from tailhook.fleet.local import MAX_SCANNED_LINE_BYTES, feed_translated, find_origin
from tailhook.fleet.plan import HEAD_BYTES
from tailhook.fleet.program import CompiledSets, make_program
from tailhook.fleet.reduce import half_columns
from tailhook.hook.session_files import agent_transcripts, listed_transcripts, session_of
from tailhook.hosts import codex
from tailhook.hosts.reading import MAX_FIRST_RECORD_BYTES
from tailhook.plates.context import describe_tokens
from tailhook.plates.fields import TokensOut
from tailhook.plates.transcript_ends import find_host_records, open_transcript
from tailhook.stores.atomic import stamp_of
from tailhook.transcripts.host_records import HostRecords, name_of_host
from tailhook.transcripts.urls import name_of

USAGE_PROGRAM = make_program("usage", (), CompiledSets(), Conditions(), MatchOptions())
COUNTED_COLUMNS = half_columns("usage", ())
MAX_READ_LINE_BYTES = MAX_SCANNED_LINE_BYTES + 2  # with its line end; a scan skips longer ones, too
MAX_DECODED_LINE_BYTES = 1 << 22  # of a line of another host that Python decodes: that takes many times as much
READ_WITNESS_BYTES = 64  # before the place of a reading: if they change, the file was written again
MAX_AGENT_TRANSCRIPTS = 1000  # of a session
MAX_NEW_TRANSCRIPTS = 4  # whose first record is read at a step: up to 1 MiB of each
VERSION = re.compile(rb'"version": ?"(\d+)\.(\d+)\.(\d+)')
MAX_VERSION_BYTES = 1 << 16  # where a transcript names its version
OWN_FOLDER_VERSION = 2, 1, 2  # of Claude Code: a session's sub-agents have a folder of their own
MAX_ROLLOUT_DAYS = 1000  # since the beginning of a session


class RewrittenError(Exception):
    """A transcript was truncated, replaced or written again, or another one of the session is gone."""


class UncountableError(Exception):
    """The tokens of a session cannot be known: it has too many sub-agents, or too long a line."""


class TranscriptReading:
    """How far a transcript was read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.place = 0  # here the first unread line begins
        self.is_in_long_line = False  # or a line that is too long goes on here
        self.witness = b""  # the bytes before the place
        self.size = 0  # of the file at the last reading
        self.inode = 0
        self.stamp: tuple[int, int, int] | None = None  # of the file when it was read to its end
        self.records: HostRecords | None = None  # the translator of another host's records
        self.session = ""  # of records without one; "" while no record names it
        self.has_mixed_folder = False  # whether all sessions' sub-agents are in its folder: Claude Code before 2.1.2

    def read(self, counter: ResponseCounter, most: int) -> tuple[int, int]:
        """Count the responses in the next lines. Return how many bytes were read, and how many responses were found.

        A last line without a line end counts if it is a whole record. It is read again when the file has grown.

        most: bytes to read; a longer line is read to its end.

        Raises OSError if the file cannot be read, RewrittenError and UncountableError.
        """
        if stamp_of(Path(self.path).stat()) == self.stamp:
            return 0, 0
        with open_transcript(self.path) as file:
            facts = os.fstat(file.fileno())
            if self.is_another(file, facts):
                raise RewrittenError
            if not self.session and self.place <= HEAD_BYTES:
                self.find_origin(file)
            self.size, self.inode = facts.st_size, facts.st_ino
            data = self.next_bytes(file, most)
            is_at_end = self.place + len(data) == self.size
            found = self.count(data, is_at_end, counter)
            start = max(0, self.place - READ_WITNESS_BYTES)
            self.witness = os.pread(file.fileno(), self.place - start, start)
            self.stamp = stamp_of(facts) if is_at_end else None
        return len(data), found

    def is_another(self, file: io.FileIO, facts: os.stat_result) -> bool:
        """Return whether the file is another one than before, or was truncated or written again."""
        if not self.size:
            return False
        witness = os.pread(file.fileno(), len(self.witness), self.place - len(self.witness))
        return facts.st_ino != self.inode or facts.st_size < self.size or witness != self.witness

    def find_origin(self, file: io.FileIO) -> None:
        """Find the host and the session. Raises RewrittenError if a part was read as another's."""
        records, session = find_origin(file, "")
        if (name_of_host(records), session) == (name_of_host(self.records), self.session) and self.size:
            return
        if self.size:
            raise RewrittenError
        self.records, self.session = records, session
        version = VERSION.search(os.pread(file.fileno(), MAX_VERSION_BYTES, 0)) if records is None else None
        self.has_mixed_folder = version is not None and tuple(map(int, version.groups())) < OWN_FOLDER_VERSION

    def next_bytes(self, file: io.FileIO, most: int) -> bytes:
        """Return the next bytes: whole lines and a part of the next one, or a part of a line that is too long."""
        left = self.size - self.place
        data = os.pread(file.fileno(), min(most, left), self.place)
        if len(data) < left and b"\n" not in data and not self.is_in_long_line:
            data = os.pread(file.fileno(), min(MAX_READ_LINE_BYTES, left), self.place)
        return data

    def count(self, data: bytes, is_at_end: bool, counter: ResponseCounter) -> int:
        """Count the responses in the next bytes, and go on to the first line without an end. Return how many."""
        if self.is_in_long_line:
            rest = data.find(b"\n") + 1
            self.is_in_long_line = not rest
            self.place += rest or len(data)
            data = data[rest or len(data) :]
        end = data.rfind(b"\n") + 1
        if not end and len(data) >= MAX_READ_LINE_BYTES:
            self.is_in_long_line, self.place = True, self.place + len(data)
            return 0
        found = 0
        for batch in self.scan(data if is_at_end else data[:end]):
            counter.add(batch)
            found += len(batch)
        self.place += end
        return found

    def scan(self, data: bytes) -> list[ArrowBatch]:
        """Return the rows of the lines at the place."""
        scan = RangeScan(USAGE_PROGRAM)
        scan.begin(self.path, self.session or name_of(self.path), name_of_host(self.records), self.place)
        if self.records is None:
            scan.feed(b"\n" + data if self.place else data)
        else:
            feed_translated(scan, self.records, lines_to_decode(scan, data, self.place))
        scan.end_file()
        return scan.finish()


def other_rollouts(path: str) -> Iterator[str]:
    """Yield the rollouts of Codex in the folder of a rollout's day and of the later days. Raises UncountableError."""
    folder = Path(path).parent
    folders = [folder]
    try:
        first = date(*map(int, folder.parts[-3:]))
    except (ValueError, TypeError):
        pass  # it is somewhere else
    else:
        days = (date.today() - first).days + 2  # Codex names the folders by the local day
        if days > MAX_ROLLOUT_DAYS:
            raise UncountableError
        root = folder.parents[2]
        folders += [root / f"{first + timedelta(number):%Y/%m/%d}" for number in range(1, days)]
    for one in folders:
        with suppress(FileNotFoundError), os.scandir(one) as entries:
            for entry in entries:
                is_rollout = entry.name.startswith("rollout-") and entry.name.endswith(".jsonl")
                if is_rollout and entry.path != path and entry.is_file(follow_symlinks=False):
                    yield entry.path


def session_of_rollout(path: str) -> str | None:
    """Return the session of a rollout, "" if it names none, None if its first record is not whole yet.

    Raises OSError.
    """
    with open_transcript(path) as file:
        records = find_host_records(file)
        if records is None and b"\n" not in (head := os.pread(file.fileno(), MAX_FIRST_RECORD_BYTES, 0)):
            return "" if len(head) == MAX_FIRST_RECORD_BYTES else None
    return (records and records.session_id) or ""


def lines_to_decode(scan: RangeScan, data: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    """Yield lines of another host, each with its offset, without long ones that have no tokens.

    offset: of the first line.

    Raises UncountableError for a long line that may have tokens.
    """
    for line in io.BytesIO(data):
        if len(line) <= MAX_DECODED_LINE_BYTES:
            yield offset, line
        elif scan.line_gate is None or scan.line_gate.has_hit(line):
            raise UncountableError
        offset += len(line)


def session_of_agent(path: str) -> str | None:
    """Return the session of a sub-agent of Claude Code before 2.1.2, None if no whole record names it."""
    return session_of(path) or None


class SessionTokens:
    """The tokens of a session: of its own transcript and of its sub-agents'.

    path: of its own transcript.
    rollouts: the sessions of transcripts that stand among those of other sessions, by path; new ones are added. All
        sessions may share it.
    is_whole: whether the last reading reached the ends of all transcripts.
    responses: how many records of responses are held in memory, about.
    total: of the responses, each counted once. None while the transcripts are not read to their ends, if one of them
        cannot be read, if there is no response, or if a response lacks its input or its output.
    """

    def __init__(self, session_id: str, path: str, rollouts: dict[str, str] | None = None) -> None:
        self.session_id = session_id
        self.path = path
        self.rollouts = {} if rollouts is None else rollouts
        self.is_countable = True
        self.restart()

    def restart(self) -> None:
        """Forget what was read."""
        self.counter = ResponseCounter(COUNTED_COLUMNS)
        self.readings: dict[str, TranscriptReading] = {}
        self.responses = 0
        self.is_whole = False
        self.has_news = False  # whether responses were found that are not in the total
        self.total: TokensOut | None = None

    def give_up(self) -> None:
        """Leave the tokens of this session unknown."""
        self.restart()
        self.is_countable, self.is_whole = False, True

    def read(self, most: int) -> int:
        """Read on, and compute the total at the ends of all transcripts. Return how many bytes were read.

        most: bytes to read; a longer line is read to its end.
        """
        if not self.is_countable:
            return 0
        size = 0
        try:
            self.is_whole = True
            for path in self.paths():
                if size >= most:
                    self.is_whole = False
                    break
                reading = self.readings.setdefault(path, TranscriptReading(path))
                read, found = reading.read(self.counter, most - size)
                size += read
                self.responses += found
                self.has_news |= found > 0
                self.is_whole &= reading.stamp is not None
        except RewrittenError:
            self.restart()
        except UncountableError:
            self.give_up()
        except (OSError, ValueError):
            self.is_whole, self.has_news, self.total = True, True, None
        else:
            if self.is_whole and self.has_news:
                self.total, self.has_news = self.add_up(), False
        return size

    def paths(self) -> Iterator[str]:
        """Yield the paths of the session's transcripts, its own one first: it has to be read before the next one.

        Raises OSError, RewrittenError and UncountableError.
        """
        yield self.path
        agents = [path for _, path in islice(agent_transcripts(self.path), MAX_AGENT_TRANSCRIPTS + 1)]
        own = self.readings[self.path]
        if name_of_host(own.records) == codex.NAME:
            agents += self.own_ones(other_rollouts(self.path), session_of_rollout)
        elif own.has_mixed_folder:
            mixed = listed_transcripts(str(Path(self.path).parent), 0)
            agents += self.own_ones((path for _, path in mixed), session_of_agent)
        if len(agents) > MAX_AGENT_TRANSCRIPTS:
            raise UncountableError
        if not self.readings.keys() <= {self.path, *agents}:
            raise RewrittenError
        yield from sorted(agents)

    def own_ones(self, paths: Iterable[str], find_session: Callable[[str], str | None]) -> Iterator[str]:
        """Yield those paths of transcripts that belong to the session: its sub-agents' and its reviewers'.

        A few of the unknown ones are read each time. While others are left, the session is not whole.

        find_session: returns the session of a transcript, None if its first record is not whole yet.

        Raises what `paths` and `find_session` raise.
        """
        unread = MAX_NEW_TRANSCRIPTS
        for path in paths:
            if path not in self.rollouts:
                if not unread:
                    self.is_whole = False
                    continue
                session = find_session(path)
                if session is None:
                    continue
                self.rollouts[path] = session
                unread -= 1
            if self.rollouts[path] == self.session_id:
                yield path

    def add_up(self) -> TokensOut | None:
        """Return the tokens of all responses, each counted once, or None if they are not known."""
        sums = dict.fromkeys(TOKEN_COLUMNS, 0)
        count = 0
        for batch in self.counter.rows(("session_id", *TOKEN_COLUMNS)):
            sessions, *columns = batch.columns()
            are_own = [session_id == self.session_id for session_id in sessions]
            count += sum(are_own)
            for name, column in zip(TOKEN_COLUMNS, columns, strict=True):
                tokens = list(compress(column, are_own))
                if name in ("input_tokens", "output_tokens") and None in tokens:
                    return None
                sums[name] += sum(filter(None, tokens))
        return describe_tokens(**sums) if count else None
