"""The type of a line in the spool. For type checkers only: a hook never imports this module."""

from typing import Any, TypedDict


class SpoolRecord(TypedDict, total=False):
    """One line of the spool. `plates.schemas.Report` says what the fields mean and checks them.

    A field that is empty, zero or false is left out.
    """

    event_id: str
    event_type: str
    ts: int
    mono: int
    session_id: str
    project_path: str
    transcript_path: str
    transcript_size: int
    git_branch: str
    tool_name: str
    tool_use_id: str
    agent_id: str
    tool_params: dict[str, Any] | None
    error: str
    source: str
    by_host: bool
    run_id: str
    pid: int
    pid_started: int
    pid_is_guess: bool
    pid_namespace: str
    host: str
