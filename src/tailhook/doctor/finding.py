"""What a check of the doctor reports."""

from typing import NamedTuple

OK, NOTE, WARNING, FAILURE = "ok", "note", "warning", "failure"


class Finding(NamedTuple):
    """One result of a check.

    check: the check's name.
    status: "ok", "note", "warning", or "failure", which makes `tailhook doctor` exit 1.
    what: what was found, and where.
    advice: what to do, "" if nothing.
    figures: milliseconds and ratios, for programs.
    """

    check: str
    status: str
    what: str
    advice: str = ""
    figures: dict[str, float] = {}  # noqa: RUF012 - a NamedTuple's default
