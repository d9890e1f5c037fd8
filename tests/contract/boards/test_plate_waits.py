"""`tailhook plates waits`: how long agents waited for the person, with a real daemon."""

import json
from datetime import date, datetime, timedelta, timezone

import pytest
from support.host import tailhook

HOUR_MS = 3_600_000
ZONE = timezone(timedelta(hours=13))  # far from that of the daemon
TZ = "XXX-13"


def local_ms(day, hour, minute=0):
    """Return a local time of the person in Unix milliseconds."""
    return int(datetime(day.year, day.month, day.day, hour, minute, tzinfo=ZONE).timestamp() * 1000)


def asked(daemon, *flags):
    """Return what the command prints."""
    done = tailhook("plates", "waits", *flags, env={**daemon.env, "TZ": TZ}, cwd=daemon.home)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def let_wait(daemon, session, start, end=None, project="/src/shop"):
    """Let a session ask for a permission, and answer it unless there is no end."""
    daemon.post("permission_asked", session, project_path=project, ts=start)
    if end:
        daemon.post("prompt_submit", session, project_path=project, ts=end)


@pytest.fixture
def days():
    """Return three days of the person, the last of which is yesterday."""
    today = datetime.now(ZONE).date()
    return [today - timedelta(days=back) for back in (3, 2, 1)]


def fill(daemon, days):
    """Let sessions wait on two of the days, one of them over midnight."""
    first, _, last = days
    let_wait(daemon, "a", local_ms(first, 9), local_ms(first, 9, 30))
    let_wait(daemon, "b", local_ms(first, 9), local_ms(first, 10), "/src/api")
    let_wait(daemon, "c", local_ms(first, 23), local_ms(first + timedelta(days=1), 1), "/src/api")
    let_wait(daemon, "d", local_ms(last, 12), local_ms(last, 12, 1))


def test_the_table_has_the_days_of_the_person_and_their_projects(board_daemon, days):
    fill(board_daemon, days)
    lines = asked(board_daemon, "--days", "5").splitlines()
    first, second, last = (f"{day:%a %d %b}" for day in days)
    assert [line.split("  ", 1)[0] for line in lines[:7]] == ["DAY", first, "", "", second, last, lines[6][:10]]
    assert [" ".join(line[10:].split()) for line in lines[:7]] == [
        "PROJECT WAITED WAITS MEDIAN MAX",
        "api 2 h 2 1 h 1 h",
        "shop 30 min 1 30 min 30 min",
        "all 2 h 30 min 3 1 h 1 h",
        "api 1 h 1 1 h 1 h",
        "shop 1 min 1 1 min 1 min",
        "- - - - -",  # today
    ]
    *table, blank, what_it_is, _, note = lines
    assert [" ".join(line[10:].split()) for line in table[-3:]] == [
        "api 3 h 2 1 h 30 min 2 h",
        "shop 31 min 2 15 min 30 s 30 min",
        "all 3 h 31 min 4 45 min 2 h",
    ]
    assert len({len(line) for line in table if line}) == 1  # the figures stand below each other
    assert blank == ""
    assert what_it_is.endswith("Agents that wait at the same time add up.")
    assert note == f"No event before {first} is stored."


def test_a_project_is_chosen_by_its_name_or_its_folder(board_daemon, days):
    fill(board_daemon, days)
    for wanted in ("shop", "/src/shop", "/src/shop/"):
        [*rows, total] = json.loads(asked(board_daemon, "--project", wanted, "--json"))["days"][:-1] or [None]
        assert {project["name"] for row in [*rows, total] for project in row["projects"]} == {"shop"}
    assert json.loads(asked(board_daemon, "--project", "/src", "--json"))["total"]["waits"] == 4
    words = asked(board_daemon, "--project", "/sr").strip()
    assert words == f"No session of /sr has waited for you since {days[0]:%a %d %b}."


def test_json_has_the_date_of_each_day(board_daemon, days):
    fill(board_daemon, days)
    found = json.loads(asked(board_daemon, "--json"))
    assert [row["day"] for row in found["days"]][:3] == [day.isoformat() for day in days]
    first = found["days"][0]
    assert (first["waited_ms"], first["waits"], first["longest_ms"]) == (2.5 * HOUR_MS, 3, HOUR_MS)
    assert [(one["project_path"], one["waited_ms"]) for one in first["projects"]] == [
        ("/src/api", 2 * HOUR_MS),
        ("/src/shop", HOUR_MS / 2),
    ]
    assert found["total"]["waited_ms"] == sum(row["waited_ms"] for row in found["days"])
    assert found["total"]["waits"] == 4


def test_a_wait_that_lasts_is_counted_until_now(board_daemon, days):
    let_wait(board_daemon, "a", local_ms(days[2], 20))
    before, after = (json.loads(asked(board_daemon, "--json"))["total"] for _ in range(2))
    assert 4 * HOUR_MS <= before["waited_ms"] <= after["waited_ms"]
    board_daemon.post("session_end", "a", project_path="/src/shop", ts=local_ms(days[2], 21))
    assert json.loads(asked(board_daemon, "--json"))["total"]["waited_ms"] == HOUR_MS


def test_a_year_can_be_asked_for(board_daemon, days):
    let_wait(board_daemon, "a", local_ms(days[2] - timedelta(days=300), 12), local_ms(days[2], 12))
    found = json.loads(asked(board_daemon, "--days", "366", "--json"))["days"]
    assert [row["waited_ms"] for row in found[:301]] == [12 * HOUR_MS, *[24 * HOUR_MS] * 299, 12 * HOUR_MS]


def test_without_any_event_and_without_any_wait_it_prints_why_there_is_no_table(own, board_daemon):
    own.start()
    assert asked(own).startswith("Nothing is known yet, because no event is stored.")
    assert json.loads(asked(own, "--json")) == {"days": [], "total": None}
    own.post("prompt_submit")
    today = datetime.now(ZONE).date()
    words = asked(own).strip()
    assert words in {f"No session has waited for you since {day:%a %d %b}." for day in (today, next_day(today))}


def next_day(day: date) -> date:
    """Return the day after a day: midnight may pass during a test."""
    return day + timedelta(days=1)


def test_the_name_of_a_project_has_no_effect_on_the_terminal(board_daemon, days):
    let_wait(board_daemon, "a", local_ms(days[2], 12), local_ms(days[2], 13), "/src/\x1b[31mred\u202e")
    words = asked(board_daemon)
    assert "\x1b" not in words
    assert "\\x1b[31mred" in words


def test_without_a_daemon_it_prints_how_to_start_one(own):
    done = tailhook("plates", "waits", env=own.env, cwd=own.home)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tailhook: no daemon answers. Start one:  tailhook plates serve\n"


@pytest.mark.parametrize("flags", [("--days", "0"), ("--days", "367"), ("--days", "x"), ("--project", "")])
def test_values_that_are_not_valid_are_refused(own, flags):
    done = tailhook("plates", "waits", *flags, env=own.env, cwd=own.home)
    assert (done.returncode, done.stdout) == (2, "")
    assert flags[0] in done.stderr
