"""The values that the oracle of the scan reads from a file and from a record."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass
class Head:
    """The values for all of a file, from its first 1 MiB.

    session_id: the first one that a record there names, otherwise the file's name without .jsonl, .jsonl.gz or
    .jsonl.zst.
    host: decided by the first record; claude-code for a file without a record.
    others: of a Codex, Gemini or Copilot file, what its first record has for the session: values for records without
    their own.
    """

    stem: str
    session_id: str
    host: str = "claude-code"
    others: dict[str, str | None] = field(default_factory=dict)


@dataclass
class ToolUse:
    id: str | None
    name: str | None
    input: str | None
    """The JSON text as it stands in the line; None without an input."""
    file: str | None = None
    command: str | None = None


@dataclass
class ToolResult:
    tool_use_id: str | None
    is_error: bool
    time: datetime | None = None
    """Its own time, if the record has one for each result; otherwise the record's counts."""


@dataclass
class Usage:
    message_id: str | None
    request_id: str | None
    uuid: str | None
    agent_id: str | None
    model: str | None
    timestamp: datetime | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_creation_tokens: int | None


@dataclass
class Record:
    """A record's attributes. One that is missing, or has a value of another type, is None or False."""

    session_id: str | None = None
    host_version: str | None = None
    agent_id: str | None = None
    progress_agent_id: str | None = None
    parent: str | None = None
    project: str | None = None
    git_branch: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    type: str | None = None
    subtype: str | None = None
    role: str | None = None
    timestamp: datetime | None = None
    message_id: str | None = None
    request_id: str | None = None
    model: str | None = None
    has_own_words: bool = False
    is_prompt: bool = False
    is_sidechain: bool = False
    is_meta: bool = False
    is_host_made: bool = False
    """It is meta, an API error or a compact summary."""
    is_error: bool = False
    queue_step: str | None = None
    is_queued_by_person: bool = False
    is_queued_prompt: bool = False
    """It is a text of a person that may be a prompt, if the agent gets it."""
    text: str = ""
    tool_uses: list[ToolUse] = field(default_factory=list)
    tool_results: list[ToolResult] = field(default_factory=list)
    usages: list[Usage] = field(default_factory=list)
