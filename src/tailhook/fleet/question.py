"""A question about transcripts, for any engine. It can be pickled."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC
from typing import Any, NamedTuple

from tailhook._core import ArrowBatch, ScanProgram
from tailhook.fleet import program as programs
from tailhook.fleet.answer import Conditions
from tailhook.fleet.columns import MatchOptions
from tailhook.fleet.redact import EXAMINED_CHARS, needed_columns, redacted
from tailhook.fleet.reduce import HALVES, half_columns
from tailhook.patterns.sets import PatternSet


class Question(NamedTuple):
    """A question about transcripts in any place.

    table: one of TABLE_COLUMNS (columns.py).
    columns: of the rows, in their order.
    sets: of matches: what to find.
    compiled: the sets, compiled.
    conditions: of the rows.
    options: of matches.
    redact: whether secrets are masked.
    """

    table: str
    columns: tuple[str, ...]
    sets: tuple[PatternSet, ...]
    compiled: programs.CompiledSets
    conditions: Conditions
    options: MatchOptions
    redact: bool = False

    def programs(self) -> dict[str, ScanProgram]:
        """Return the question in the core's form: a program for each table of rows or halves."""
        return {
            table: programs.make_program(
                table,
                self.read_columns() if table == self.table else (),
                self.compiled,
                self.conditions,
                self.read_options(),
            )
            for table in (self.table, *(["usage"] if self.table == "sessions" else []))
        }

    def read_options(self) -> MatchOptions:
        """Return the options with the context to read in place of the given one."""
        return self.options._replace(context=self.options.context + EXAMINED_CHARS * self.redact)

    def read_columns(self) -> tuple[str, ...]:
        """Return the columns to read for the columns of the rows."""
        return needed_columns(self.columns) if self.redact else self.columns

    def task_columns(self, table: str) -> tuple[str, ...]:
        """Return the columns of a table's rows or halves after `masked`."""
        return half_columns(table, self.columns if table == self.table else ()) if table in HALVES else self.columns

    def masked(self, table: str, batches: Iterable[ArrowBatch], columns: tuple[str, ...]) -> Iterable[ArrowBatch]:
        """Return batches of a table without secrets, if the question asks for that.

        batches: rows with the read columns, or halves. columns: of the returned batches.
        """
        return redacted(batches, table, columns, self.options.context) if self.redact else batches

    def described(self) -> dict[str, Any]:
        """Return the question as a value for JSON. It differs if the rows of two questions can differ."""
        since, until = (
            None if time is None else time.astimezone(UTC).isoformat()
            for time in (self.conditions.since, self.conditions.until)
        )
        return {
            "table": self.table,
            "columns": list(self.columns),
            "patterns": [described_set(one) for one in self.sets],
            "roles": described_values(self.conditions.roles),
            "since": since,
            "until": until,
            "project": self.conditions.project,
            "sessions": described_values(self.conditions.sessions),
            "options": described_options(self.read_options()) if self.table == "matches" else {},
            "redact": self.redact,
        }


def described_values(values: tuple[str, ...] | None) -> list[str] | None:
    """Return a choice as a value for JSON: an empty list for all, None for none."""
    return [] if values is None else list(values) or None


def described_options(options: MatchOptions) -> dict[str, Any]:
    """Return options as a value for JSON: -1 if code does not matter, 0 for outside of it, 1 for in it."""
    values = options._asdict()
    in_code = values.pop("in_code")
    return {"code": -1 if in_code is None else int(in_code), **values}


def described_set(one: PatternSet) -> list[Any]:
    """Return a pattern set as a value for JSON."""
    return [{name: list(texts) for name, texts in one.patterns.items()}, one.own_line, one.ignore_case, one.word]
