"""A transcript: the records of a session, one JSON object a line, read from either end.

>>> with open("session.jsonl") as transcript:
...     transcript.last_message()
...     [record.role for record in transcript.reversed(limit=2)]
'Done.'
['assistant', 'user']
"""

from __future__ import annotations

import os
from itertools import islice

from tailhook._core import Record, ToolUse, forward_lines, forward_records, last_message, parse_record, reverse_records
from tailhook.errors import SourceError
from tailhook.transcripts.arguments import check_strings, check_whole_number
from tailhook.transcripts.sources import open_source
from tailhook.transcripts.urls import is_url, without_credentials

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from types import TracebackType

    from tailhook.patterns.sets import PatternSet, RecordMatch
    from tailhook.transcripts.following import Follower
    from tailhook.transcripts.host_records import HostRecords
    from tailhook.transcripts.messages import TranscriptMessage
    from tailhook.transcripts.sources import OpenSource, SeekableFile, TranscriptSource

__all__ = ["Record", "ToolUse", "Transcript", "open"]

MAX_OFFSET = (1 << 63) - 1  # of a file


class Transcript:
    """A transcript: made by `open`, closed by `close` or at the end of a `with` block.

    Iteration gives its records, oldest first. Lines without a record are skipped; records of unknown types are given as
    they are. If Claude Code wrote a record twice, with the same uuid, it is given once: a compaction writes old records
    again. Each iteration reads the file up to its end at the beginning of the iteration. If the file is truncated or
    overwritten meanwhile, the iteration ends. A transcript of another host gives records with Claude Code's types
    and attributes; `Record.json` gives the host's own record.
    """

    def __init__(self, source: TranscriptSource) -> None:
        """source: as for `open`. It is opened at the first reading."""
        self._source = source
        self._opened: OpenSource | None = None
        self._closed = False
        self._host_records: HostRecords | None = None
        self._is_recognized = False
        self._is_of_sub_agent: bool | None = None  # None: not known yet
        self._version = 0  # of the content from which host and sub-agent were recognized
        self._followers: list[Follower] = []
        self._sub_agents: list[Transcript] = []

    def __enter__(self) -> Transcript:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        source = without_credentials(self._source) if isinstance(self._source, str) else self._source
        return f"Transcript({source!r})"

    @property
    def path(self) -> str | None:
        """The path or URL that was opened; None for a binary file."""
        return os.fspath(self._source) if isinstance(self._source, str | os.PathLike) else None

    def close(self) -> None:
        """End every `follow`, and close the transcripts of sub-agents and the file, unless the file is the caller's."""
        self._closed = True
        for follower in self._followers:
            follower.stop()
        if self._opened is not None:
            self._opened.close()
        for agent in self._sub_agents:
            agent.close()

    def _open(self) -> OpenSource:
        if self._closed:
            raise ValueError("the transcript is closed")
        if self._opened is None:
            self._opened = open_source(self._source)
        return self._opened

    @property
    def _file(self) -> SeekableFile:
        opened = self._open()
        if opened.version != self._version:  # a follower has found new content
            self._version, self._is_recognized, self._is_of_sub_agent = opened.version, False, None
        return opened.file

    def _translated(self) -> HostRecords | None:
        """Return the translator of another host's records; None for Claude Code's."""
        file = self._file
        if not self._is_recognized:
            from tailhook.transcripts.host_records import recognize

            self._host_records = recognize(file)
            self._is_recognized = self._host_records is not None or file.seek(0, os.SEEK_END) > 0
        return self._host_records

    @property
    def host(self) -> str:
        """The program that wrote it, by its first records.

        It is "claude-code", "codex", "gemini", "copilot", "qwen" or "cursor". An unknown transcript counts as Claude
        Code's.

        >>> with open("session.jsonl") as transcript:
        ...     transcript.host
        'claude-code'
        """
        from tailhook.transcripts.host_records import name_of_host

        return name_of_host(self._translated())

    @property
    def is_of_sub_agent(self) -> bool:
        """Whether it is a sub-agent's transcript: the first message is a sub-agent's (Claude Code, Qwen Code).

        `last_message`, `findall` and `find_last` leave out sub-agents in the transcript of a session, and take the
        sub-agent's own messages in such a transcript.
        """
        translated = self._translated()
        if self._is_of_sub_agent is None:
            from tailhook.transcripts.host_records import begins_with_sub_agent

            self._is_of_sub_agent = begins_with_sub_agent(self._file, translated)
        return self._is_of_sub_agent is True

    def __iter__(self) -> Iterator[Record]:
        translated = self._translated()
        return forward_records(self._file, once=True) if translated is None else translated.forward(self._file)

    def reversed(self, roles: Collection[str] | None = None, limit: int | None = None) -> Iterator[Record]:
        """Yield the records, newest first.

        roles: only records with one of these roles ("assistant", "user"; "human" in flat transcripts).
        limit: at most so many records.

        Raises TypeError for a single str as `roles`, and ValueError for a limit below 0.

        >>> with open("session.jsonl") as transcript:
        ...     [record.text for record in transcript.reversed(roles={"assistant"}, limit=1)]
        ['Done.']
        """
        wanted = None if roles is None else check_strings("roles", roles)
        most = None if limit is None else min(check_whole_number("limit", limit, 0), MAX_OFFSET)
        translated = self._translated()
        records = reverse_records(self._file, once=True) if translated is None else translated.reverse(self._file)
        return islice((record for record in records if wanted is None or record.role in wanted), most)

    def at(self, offset: int) -> Record:
        """Return the record whose line begins at an offset: bytes from the start, decompressed, as in `Record.offset`.

        Raises ValueError if no record begins there, and TypeError if it is not a whole number.

        >>> with open("session.jsonl") as transcript:
        ...     [transcript.at(record.offset).role for record in transcript]
        ['user', 'assistant']
        """
        offset = check_whole_number("offset", offset, 0)
        translated = self._translated()
        for found, line in forward_lines(self._file, offset, offset + 1) if offset < MAX_OFFSET else ():
            if found == offset:
                if translated is not None:
                    translated.read_changes(self._file, offset)
                record = parse_record(line, offset) if translated is None else translated.translate(line, offset)
                if record is not None:
                    return record
        raise ValueError(f"no record begins at byte {offset}")

    def messages(self) -> Iterator[TranscriptMessage]:
        """Yield the whole messages, oldest first: a host writes a record for each part of a message.

        A message has `id`, `role`, `model`, `text`, `tools`, `usage` (counted once), `start` and `end` (times) and
        `records`. Records of other types than messages are left out.

        >>> with open("session.jsonl") as transcript:
        ...     [(message.id, message.role, message.text) for message in transcript.messages()]
        [(None, 'user', 'Please.'), ('m', 'assistant', 'Done.')]
        """
        from tailhook.transcripts.messages import group_records

        translated = self._translated()
        return group_records(self, translated is not None and translated.host.RESTATES_MESSAGES)

    def follow(self) -> Iterator[Record]:
        """Yield all records, oldest first. Then wait for more, and yield them as they are written.

        Looks for more ten times a second. If the file is truncated, overwritten, or replaced by another one at its
        path, it continues with the records from the beginning of the new content. Then the transcript's other methods
        read the new content, too. Ends on `break`, or when `close` is called, also by another thread.

        Raises SourceError for a compressed file or a URL: no program is still writing it.

        >>> with open("session.jsonl") as transcript:
        ...     for record in transcript.follow():
        ...         if record.text == "Done.":
        ...             break
        """
        from tailhook.transcripts.following import Follower

        opened = self._open()
        if not opened.is_live:
            shown = without_credentials(opened.path) if opened.path else "the transcript"
            raise SourceError(f"{shown} cannot be followed: it is compressed, or at a URL")
        follower = Follower(opened)
        self._followers.append(follower)
        return iter(follower)

    def sub_agents(self) -> list[Transcript]:
        """Return the transcripts of this session's sub-agents, in the order of their paths.

        They are opened at their first reading, and closed with this one. In each, `last_message`, `findall` and
        `find_last` take the sub-agent's own messages. Claude Code (2.1.2 and later) keeps them in `SESSION/subagents/`
        beside `SESSION.jsonl`. Older versions keep all of a project's beside the sessions; each of them names its
        session. Qwen Code has the folder `subagents/SESSION/` beside that of its chats. Those of Codex are not found:
        each has a rollout file of its own. Other hosts write sub-agents into the session's own file, or nowhere.

        Raises ValueError if the transcript was not opened by the path of a file.

        >>> with open("session.jsonl") as transcript:
        ...     transcript.sub_agents()
        []
        """
        from tailhook.transcripts.host_records import sub_agent_files

        opened = self._open()
        if opened.path is None:
            raise ValueError("sub-agents are found beside a transcript's path, and this one has none")
        if is_url(opened.path):
            raise ValueError(
                f"sub-agents are found beside a transcript's file, and {without_credentials(opened.path)} is a URL"
            )
        paths = sub_agent_files(opened.path, self._translated(), next(iter(self), None))
        agents = [Transcript(path) for path in paths]
        self._sub_agents += agents
        return agents

    def last_message(self) -> str | None:
        """Return the newest text message of the assistant, as the hooks see it, or None.

        Its text blocks are joined by newlines. Sub-agents' messages, API errors and the host's texts do not count. In
        the transcript of a sub-agent, the sub-agent's messages count.

        >>> with open("session.jsonl") as transcript:
        ...     transcript.last_message()
        'Done.'
        """
        translated = self._translated()
        if translated is not None:
            return translated.last_message(self._file, sidechains=self.is_of_sub_agent)
        outcome, texts = last_message(self._file, sidechains=self.is_of_sub_agent, once=True)
        return b"\n".join(text for text, _ in texts).decode("utf-8", "surrogatepass") if outcome == "text" else None

    def find_last(self, patterns: PatternSet, roles: Collection[str] = ("assistant",)) -> RecordMatch | None:
        """Return the last match in the newest record with a match, or None. Arguments and errors as for `findall`."""
        check_patterns(patterns)
        for record in self.reversed(roles):
            if is_own_text(record, self.is_of_sub_agent) and (found := patterns.findall(record.text)):
                return found[-1].with_record(record)
        return None

    def findall(self, patterns: PatternSet, roles: Collection[str] = ("assistant",)) -> Iterator[RecordMatch]:
        """Yield every match in the texts of the records, oldest first.

        patterns: PatternSet.
        roles: of the searched records. API errors and the host's texts are left out, and sub-agents' records too,
            except in the transcript of a sub-agent.

        Raises TypeError if `patterns` is anything else, and for a single str as `roles`.
        """
        check_patterns(patterns)
        wanted, in_sub_agent = check_strings("roles", roles), self.is_of_sub_agent
        own = (record for record in self if record.role in wanted and is_own_text(record, in_sub_agent))
        return (found.with_record(record) for record in own for found in patterns.findall(record.text))


def measured_lines(transcript: Transcript) -> Iterator[tuple[int, int, bool, Record | None]]:
    """Yield every line: its offset, its bytes with the line end, whether it is blank, and its record or None.

    The bytes of all lines are the size of the file: a byte order mark belongs to the first line.
    """
    file, translated = transcript._file, transcript._translated()
    size = file.seek(0, os.SEEK_END)
    previous: tuple[int, bool, Record | None] | None = None
    for offset, line in forward_lines(file, 0, size):
        if previous is not None:
            yield previous[0], offset - previous[0], *previous[1:]
        record = parse_record(line, offset) if translated is None else translated.translate(line, offset)
        previous = (offset if previous is not None else 0, not line.strip(), record)
    if previous is not None:
        yield previous[0], size - previous[0], *previous[1:]


def check_patterns(patterns: PatternSet) -> None:
    """Raise TypeError for anything but a PatternSet."""
    from tailhook.patterns.sets import PatternSet

    if not isinstance(patterns, PatternSet):
        raise TypeError(f"patterns is {patterns!r}: give a PatternSet, as of PatternSet(['TODO'])")


def is_own_text(record: Record, in_sub_agent: bool = False) -> bool:
    """Return whether the agent or a person wrote this in the main conversation, not the host in their name.

    in_sub_agent: whether the record is in a sub-agent's transcript: the sub-agent's conversation is the main one there.
    """
    return record.has_own_words and (in_sub_agent or not record.is_sidechain)


def open(source: TranscriptSource) -> Transcript:  # noqa: A001 - the library's own verb
    """Open a transcript for reading.

    source: a path, a URL (https, s3, gs, ...; extra `[s3]`), or a seekable binary file. Such a file is not closed. It
        may be compressed with gzip or zstd (extra `[zstd]` before Python 3.14): then it is decompressed into a
        temporary file. If the file at a URL grows or is replaced after it was opened, reading the transcript raises
        SourceError.

    Raises TypeError for anything else, FileNotFoundError and the other errors of opening a file, SourceError for a
    pipe, a damaged compressed file or a URL that cannot be read, MissingExtraError if a library is not installed.

    >>> with open("session.jsonl") as transcript:
    ...     sum(1 for record in transcript)
    2
    """
    transcript = Transcript(source)
    transcript._open()
    return transcript
