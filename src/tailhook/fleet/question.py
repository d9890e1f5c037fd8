"""What is asked of transcripts, for any engine. It can be pickled."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timezone
from typing import Any, NamedTuple

from tailhook._core import ScanProgram
from tailhook.fleet import program as programs
from tailhook.fleet.answer import Conditions


class Question(NamedTuple):
    """What is asked of transcripts, wherever they are.

    options: of matches, as `make_program` takes them.
    """

    table: str
    columns: tuple[str, ...]
    searches: tuple[programs.Search, ...]
    conditions: Conditions
    options: Mapping[str, Any]

    def programs(self) -> dict[str, ScanProgram]:
        """Return the question as the core runs it: a program for each table of rows or halves that ranges give."""
        return {
            name: programs.make_program(
                name, self.columns, self.searches if name == "matches" else (), self.conditions, **self.options
            )
            for name in (self.table, *(["usage"] if self.table == "sessions" else []))
        }

    def described(self) -> dict[str, Any]:
        """Return the question as JSON has it. Two questions that can have different rows differ in it."""
        since, until = (
            None if time is None else time.astimezone(timezone.utc).isoformat()
            for time in (self.conditions.since, self.conditions.until)
        )
        return {
            "table": self.table,
            "columns": list(self.columns),
            "patterns": [
                [{name: list(texts) for name, texts in one.patterns.items()}, one.own_line, one.ignore_case, one.word]
                for one in self.searches
            ],
            "roles": list(self.conditions.roles),
            "since": since,
            "until": until,
            "project": self.conditions.project,
            "sessions": list(self.conditions.sessions),
            "options": dict(self.options) if self.table == "matches" else {},
        }
