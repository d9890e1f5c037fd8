"""A small history of a host, with its bill: the common part of all builders of histories."""

from datetime import UTC, datetime, timedelta
from json import dumps
from typing import NamedTuple

from support.oracles.host_usage import Response

EPOCH = datetime(2026, 8, 15, 10, tzinfo=UTC)


class History(NamedTuple):
    """A host's files by name, and the billed responses, in no order."""

    host: str
    files: dict[str, str]
    bill: list[Response]


class Clock:
    """A clock that moves by a second at each look."""

    def __init__(self) -> None:
        self.seconds = 0

    def __call__(self) -> str:
        self.seconds += 1
        return (EPOCH + timedelta(seconds=self.seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def written(records: list[dict]) -> str:
    """Return records as the text of a file."""
    return "".join(dumps(record) + "\n" for record in records)
