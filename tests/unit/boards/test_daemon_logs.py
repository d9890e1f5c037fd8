"""Which of the daemon's messages reach stderr."""

import logging

import pytest

from tailhook.plates.logs import MAX_REMEMBERED_MESSAGES, REPEAT_INTERVAL_S, OnceAMinute


@pytest.fixture
def logged():
    """Log with a clock that the test sets. Returns the messages that passed, and the clock."""
    now, passed = [1000.0], []

    class Handler(logging.Handler):
        def emit(self, record):
            passed.append((record.getMessage(), record.exc_info is not None))

    log = logging.Logger("test")
    handler = Handler()
    handler.addFilter(OnceAMinute(lambda: now[0]))
    log.addHandler(handler)
    return log, passed, now


def test_a_message_passes_once_a_minute_with_the_number_of_its_repeats(logged):
    log, passed, now = logged
    for _ in range(500):
        log.warning("no %s", "files")
    assert passed == [("no files", False)]
    now[0] += REPEAT_INTERVAL_S - 0.1
    log.warning("no files")
    assert len(passed) == 1
    now[0] += 0.1
    log.warning("no %s", "files")
    assert passed[1:] == [("no files (and 500 more)", False)]
    log.warning("no files")
    assert len(passed) == 2
    now[0] += REPEAT_INTERVAL_S
    log.warning("no files")
    assert passed[2:] == [("no files (and 1 more)", False)]
    now[0] += REPEAT_INTERVAL_S
    log.warning("no files")
    assert passed[3:] == [("no files", False)]


def test_different_messages_do_not_hold_each_other_back(logged):
    log, passed, _ = logged
    log.warning("one")
    log.warning("two")
    log.warning("%s", "three")
    assert [words for words, _ in passed] == ["one", "two", "three"]


def test_a_percent_sign_in_a_message_stays(logged):
    log, passed, now = logged
    log.warning("100%s", "% full %d")
    log.warning("100% full %d")
    now[0] += REPEAT_INTERVAL_S
    log.warning("100% full %d")
    assert [words for words, _ in passed] == ["100% full %d", "100% full %d (and 1 more)"]


def test_a_traceback_is_logged_the_first_time(logged):
    log, passed, now = logged
    for _ in range(3):
        log.warning("odd", exc_info=ValueError())
    now[0] += REPEAT_INTERVAL_S
    log.warning("odd", exc_info=ValueError())
    assert passed == [("odd", True), ("odd (and 2 more)", False)]


def test_what_is_remembered_is_bounded(logged):
    log, passed, _ = logged
    for number in range(3 * MAX_REMEMBERED_MESSAGES):
        log.warning("message %d", number)
    assert len(passed) == 3 * MAX_REMEMBERED_MESSAGES
    (handler,) = log.handlers
    assert len(handler.filters[0].passed) == MAX_REMEMBERED_MESSAGES
    log.warning("message %d", 3 * MAX_REMEMBERED_MESSAGES - 1)
    assert len(passed) == 3 * MAX_REMEMBERED_MESSAGES
