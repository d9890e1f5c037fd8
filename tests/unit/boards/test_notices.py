"""Which changes of sessions give a notice, when, and with which text."""

import pytest

from tailhook.machines.plates import STUCK_TIMEOUT
from tailhook.plates.notice_settings import NoticeSettings, check_settings, parse_settings
from tailhook.plates.notices import DELAY_S, MAX_A_MINUTE, MAX_AGE_S, MAX_AT_ONCE, NoticeQueue
from tailhook.plates.rows import empty_plate

NOW = 1_800_000_000
MS = NOW * 1000
RUNS = {"status": "running"}
WAITS = {"status": "awaiting_input", "since": MS, "tools": [["t", "Q", "Which one?", "", "awaiting_input", "a", "b"]]}
ERROR = {"status": "error", "since": MS, "error": "529"}
FINISHED = {"status": "idle", "finished_at": MS, "reply": "Done."}
STUCK = {"status": "running", "quiet_since": MS - STUCK_TIMEOUT * 1000}
CLOSED = {"status": "closed"}
HIDDEN = {"hidden_at": MS}
ALL = NoticeSettings()


def plate_with(session_id="s", **fields):
    return {**empty_plate(session_id, "/p/shop", MS), "owner": "me", **fields}


def name_of(path):
    return path.rpartition("/")[2]


def noted(*states, start=None, settings=ALL, minute=0, now=NOW):
    """Return the kinds of the notices after some states of one session, noted at one moment."""
    queue = NoticeQueue("me")
    queue.load([plate_with(**start)] if start else [])
    for state in states:
        queue.note(plate_with(**state), now, 0)
    return [notice.kind for notice in queue.take(settings, DELAY_S, minute, name_of)]


@pytest.mark.parametrize(
    ("states", "kinds"),
    [
        ([WAITS], ["waits"]),
        ([RUNS, WAITS], ["waits"]),
        ([RUNS, ERROR], ["waits"]),
        ([RUNS, FINISHED], ["finished"]),
        ([RUNS, STUCK], ["stuck"]),
        ([RUNS], []),
        ([RUNS, WAITS, WAITS], ["waits"]),
        ([RUNS, WAITS, WAITS | {"status": "awaiting_approval"}], ["waits"]),
        ([WAITS, RUNS], []),
        ([WAITS, FINISHED], ["finished"]),
        ([FINISHED, FINISHED | {"seen_at": MS}], []),
        ([STUCK, RUNS], []),
        ([WAITS, CLOSED], []),
        ([WAITS, WAITS | HIDDEN], []),
        ([RUNS | HIDDEN, WAITS | HIDDEN], []),
        ([RUNS | HIDDEN, WAITS | HIDDEN, WAITS], []),
        ([WAITS | {"owner": "another"}], []),
        ([WAITS | {"owner": None}], []),
        ([WAITS, WAITS | {"owner": "another"}], []),
    ],
)
def test_which_changes_give_a_notice(states, kinds):
    assert noted(*states) == kinds


@pytest.mark.parametrize("state", [WAITS, ERROR, FINISHED, STUCK])
def test_a_change_gives_one_notice_and_an_old_one_or_one_before_the_start_none(state):
    assert len(noted(state, now=NOW + MAX_AGE_S)) == 1
    assert noted(state, now=NOW + MAX_AGE_S + 1) == []
    assert noted(state, start=state) == []
    assert len(noted(RUNS, state, start=state)) == 1
    queue = NoticeQueue("me")
    for at in (0, 10):
        queue.note(plate_with(**state), NOW, at)
        assert len(queue.take(NoticeSettings(), at + DELAY_S, 0, name_of)) == (at == 0)


@pytest.mark.parametrize("timeout", [60, 1800, 0.5])
def test_a_long_time_until_a_session_is_called_stuck_does_not_make_its_change_old(timeout):
    for age, number in ((0, 1), (MAX_AGE_S + 1, 0)):
        queue = NoticeQueue("me", timeout)
        queue.note(plate_with(status="running", quiet_since=int(MS - (timeout + age) * 1000)), NOW, 0)
        assert len(queue.waiting) == number


def test_a_notice_waits_for_its_delay():
    queue = NoticeQueue("me")
    queue.note(plate_with(**WAITS), NOW, 5.0)
    assert queue.take(NoticeSettings(), 6.9, 0, name_of) == []
    assert len(queue.take(NoticeSettings(), 7.0, 0, name_of)) == 1
    assert queue.waiting == {}


def test_a_removed_session_gives_no_notice_and_is_forgotten():
    queue = NoticeQueue("me")
    queue.note(plate_with(**WAITS), NOW, 0)
    queue.forget("s")
    assert (queue.waiting, queue.groups) == ({}, {})
    assert queue.take(NoticeSettings(), DELAY_S, 0, name_of) == []


def test_only_the_wanted_kinds_are_sent():
    assert noted(WAITS, settings=NoticeSettings(kinds=("finished", "stuck"))) == []
    assert noted(RUNS, FINISHED, settings=NoticeSettings(kinds=("finished",))) == ["finished"]


@pytest.mark.parametrize(
    ("quiet", "minute", "is_quiet"),
    [
        ("22:00-07:00", 22 * 60, True),
        ("22:00-07:00", 0, True),
        ("22:00-07:00", 7 * 60 - 1, True),
        ("22:00-07:00", 7 * 60, False),
        ("22:00-07:00", 22 * 60 - 1, False),
        ("12:30-13:00", 12 * 60 + 30, True),
        ("12:30-13:00", 13 * 60, False),
        ("12:30-13:00", 12 * 60 + 29, False),
        ("12:30-12:30", 12 * 60 + 30, False),
        ("24:00-07:00", 0, False),
        ("nine", 0, False),
    ],
)
def test_in_quiet_hours_there_is_none_also_not_later(quiet, minute, is_quiet):
    settings = parse_settings({"notify.quiet": quiet})
    assert settings.is_quiet(minute) is is_quiet
    queue = NoticeQueue("me")
    queue.note(plate_with(**WAITS), NOW, 0)
    assert len(queue.take(settings, DELAY_S, minute, name_of)) == (not is_quiet)
    assert queue.take(NoticeSettings(), DELAY_S, minute, name_of) == []


def test_the_text_has_the_question_its_choices_and_the_headline_without_secrets():
    queue = NoticeQueue("me")
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "abcdef"
    asked = [["t", "Q", f"Use {secret}\x1b?", "", "awaiting_input", "a", "b"]]
    queue.note(plate_with(**WAITS | {"tools": asked, "prompt": f"deploy\n{secret}"}), NOW, 0)
    [notice] = queue.take(NoticeSettings(), DELAY_S, 0, name_of)
    assert notice == ("waits", "shop waits for you", "asks Use [secret]\n1) a\n2) b\ndeploy [secret]", "s", "/p/shop")


def test_a_line_has_at_most_300_characters():
    queue = NoticeQueue("me")
    queue.note(plate_with(**FINISHED | {"reply": "y" * 301, "title": "x" * 400}), NOW, 0)
    [notice] = queue.take(NoticeSettings(), DELAY_S, 0, name_of)
    assert list(map(len, notice.text.split("\n"))) == [300, 300]


def test_a_text_is_never_empty():
    queue = NoticeQueue("me")
    queue.note(plate_with(status="idle", finished_at=MS), NOW, 0)
    assert [notice.text for notice in queue.take(NoticeSettings(), DELAY_S, 0, name_of)] == ["has finished"]


def test_a_session_whose_question_changes_before_the_notice_shows_the_newest():
    queue = NoticeQueue("me")
    queue.note(plate_with(**WAITS), NOW, 0)
    queue.note(plate_with(**WAITS | {"tools": [["u", "Q", "Which two?", "", "awaiting_input"]]}), NOW, 1)
    assert [notice.text for notice in queue.take(NoticeSettings(), DELAY_S, 0, name_of)] == ["asks Which two?"]


def test_many_sessions_at_once_give_one_notice_with_their_names():
    queue = NoticeQueue("me")
    for number in range(30):
        queue.note(plate_with(f"s{number}", **WAITS, project_path=f"/p/n{number}"), NOW, 0)
    queue.note(plate_with("f", **FINISHED), NOW, 0)
    [notice] = queue.take(NoticeSettings(), DELAY_S, 0, name_of)
    names = ", ".join(f"n{number}" for number in range(10))
    assert notice.title == "tailhook: 31 sessions"
    assert notice.text == f"30 wait for you: {names}, and 20 more\n1 has finished: shop"


def test_up_to_a_few_sessions_at_once_have_a_notice_each():
    queue = NoticeQueue("me")
    for number in range(MAX_AT_ONCE):
        queue.note(plate_with(f"s{number}", **WAITS), NOW, 0)
    assert len(queue.take(NoticeSettings(), DELAY_S, 0, name_of)) == MAX_AT_ONCE


def test_a_minute_has_a_bounded_number_of_notices_and_what_follows_comes_together():
    queue = NoticeQueue("me")
    sent = []
    for number in range(20):
        queue.note(plate_with(f"s{number}", **WAITS), NOW, number)
        sent += queue.take(NoticeSettings(), number + DELAY_S, 0, name_of)
    assert len(sent) == MAX_A_MINUTE
    queue.note(plate_with("s19", **RUNS), NOW, 30)
    [last] = queue.take(NoticeSettings(), 60 + DELAY_S, 0, name_of)
    assert last.title == "tailhook: 9 sessions"
    assert queue.waiting == {}


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"notify.webhook": "https://:token@ntfy.sh/mine"}, ""),
        ({"notify.webhook": "ntfy.sh/secret"}, "plates.notify.webhook is not a URL"),
        ({"notify.webhook": "file:///etc/passwd"}, "plates.notify.webhook is not a URL"),
        ({"notify.webhook": "http://a:99999/"}, "plates.notify.webhook is not a URL"),
        ({"notify.webhook": "http://a:1/"}, ""),
        ({"notify.webhook": "http://a:0/"}, "plates.notify.webhook is not a URL"),
        ({"notify.format": "slack"}, ""),
        ({"notify.format": "xml"}, "plates.notify.format is 'xml'"),
        ({"notify.on": ["waits", "bell"]}, "plates.notify.on has unknown kinds: bell"),
        ({"notify.quiet": "22:00-07:00"}, ""),
        ({"notify.quiet": "22-7"}, "plates.notify.quiet is '22-7'"),
    ],
)
def test_a_value_that_cannot_be_used_is_reported_and_ignored(values, complaint):
    found = list(check_settings(values))
    assert bool(found) == bool(complaint)
    assert all(one.startswith(complaint) and "secret" not in one for one in found)
    if found:
        expected = NoticeSettings(kinds=("waits",)) if "notify.on" in values else NoticeSettings()
        assert parse_settings(values) == expected


def test_a_session_that_is_stuck_after_the_chosen_time_gives_a_notice():
    for timeout in (60, 3600):
        queue = NoticeQueue("me", timeout)
        queue.note(plate_with(**RUNS), NOW, 0)
        queue.note(plate_with(**RUNS, quiet_since=MS - timeout * 1000), NOW, 0)
        assert [notice.kind for notice in queue.take(ALL, DELAY_S, 0, name_of)] == ["stuck"], timeout
