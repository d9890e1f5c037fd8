"""What is asked of transcripts, for any engine. It can be pickled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC
from typing import Any, NamedTuple

from tailhook._core import ArrowBatch, ScanProgram
from tailhook.fleet import program as programs
from tailhook.fleet.answer import Conditions
from tailhook.fleet.redact import needed_columns, redacted
from tailhook.fleet.reduce import HALVES, half_columns


class Question(NamedTuple):
    """What is asked of transcripts, wherever they are.

    table: one of TABLE_COLUMNS (columns.py).
    columns: of the rows, in their order.
    searches: of matches: what to find.
    tables: the searches, compiled.
    conditions: which rows count.
    options: of matches, as `make_program` takes them.
    redacted_context: characters around a match if secrets are masked; None if they are not.
    """

    table: str
    columns: tuple[str, ...]
    searches: tuple[programs.Search, ...]
    tables: programs.SearchTables
    conditions: Conditions
    options: Mapping[str, Any]
    redacted_context: int | None = None

    def programs(self) -> dict[str, ScanProgram]:
        """Return the question as the core runs it: a program for each table of rows or halves that ranges give."""
        return {
            name: programs.make_program(
                name, self.read_columns() if name == self.table else (), self.tables, self.conditions, **self.options
            )
            for name in (self.table, *(["usage"] if self.table == "sessions" else []))
        }

    def read_columns(self) -> tuple[str, ...]:
        """Return the columns that must be read for the columns of the rows."""
        return self.columns if self.redacted_context is None else needed_columns(self.columns)

    def task_columns(self, table: str) -> tuple[str, ...]:
        """Return the columns of what tasks give for a table after `masked`: of its rows, or of their halves."""
        return half_columns(table, self.columns if table == self.table else ()) if table in HALVES else self.columns

    def masked(self, table: str, batches: Iterable[ArrowBatch], columns: tuple[str, ...]) -> Iterable[ArrowBatch]:
        """Return batches of a table without secrets, if the question asks for that.

        batches: rows with the columns that were read, or halves.  columns: of the batches that are returned.
        """
        if self.redacted_context is None:
            return batches
        return redacted(batches, table, columns, self.redacted_context)

    def described(self) -> dict[str, Any]:
        """Return the question as a value for JSON. It differs for two questions that can have different rows."""
        since, until = (
            None if time is None else time.astimezone(UTC).isoformat()
            for time in (self.conditions.since, self.conditions.until)
        )
        return {
            "table": self.table,
            "columns": list(self.columns),
            "patterns": [described_search(search) for search in self.searches],
            "roles": described_values(self.conditions.roles),
            "since": since,
            "until": until,
            "project": self.conditions.project,
            "sessions": described_values(self.conditions.sessions),
            "options": dict(self.options) if self.table == "matches" else {},
            "redact": self.redacted_context is not None,
        }


def described_values(values: tuple[str, ...] | None) -> list[str] | None:
    """Return what is chosen as a value for JSON: an empty list if all are, None if none is."""
    return [] if values is None else list(values) or None


def described_search(search: programs.Search) -> list[Any]:
    """Return a search as a value for JSON."""
    texts = {name: list(texts) for name, texts in search.patterns.items()}
    return [texts, search.own_line, search.ignore_case, search.word]
