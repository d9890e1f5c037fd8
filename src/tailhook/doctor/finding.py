"""The results of the doctor's checks."""

from typing import NamedTuple

OK, NOTE, WARNING, FAILURE = "ok", "note", "warning", "failure"


class Finding(NamedTuple):
    """One result of a check.

    check: the check's name.
    status: "ok", "note", "warning" or "failure". With a failure, `tailhook doctor` exits 1.
    what: the finding, and its place.
    advice: what to do, "" if nothing.
    figures: milliseconds and ratios, for programs.
    """

    check: str
    status: str
    what: str
    advice: str = ""
    figures: dict[str, float] = {}  # noqa: RUF012 - a NamedTuple's default
