"""What `tailhook.scan` refuses before it reads anything."""

from datetime import datetime

import pytest

import tailhook


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ({"table": "lines"}, "there is no table 'lines'"),
        ({"table": "matches"}, "nothing to find"),
        ({"table": "usage", "columns": ["cost"]}, "has no column cost"),
        ({"table": "tools", "roles": ["user"]}, "rows of the table tools have no role"),
        ({"table": "records", "columns": ["type"], "resume": "folder"}, "resume needs the column path"),
    ],
)
def test_arguments_that_do_not_fit_together_are_refused(question, reason):
    with pytest.raises(ValueError, match=reason):
        tailhook.scan("sessions", **question)


@pytest.mark.parametrize("table", ["records", "tools", "usage", "sessions"])
@pytest.mark.parametrize("name", ["since", "until"])
def test_a_time_without_a_zone_is_refused(table, name):
    with pytest.raises(TypeError, match=f"{name} has no time zone"):
        tailhook.scan("sessions", table, **{name: datetime(2026, 11, 1)})
