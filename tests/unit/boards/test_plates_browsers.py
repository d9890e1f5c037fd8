"""How long links and sign-ins of browser tabs last, by a simulated clock."""

import re

import pytest

from tailhook.plates.browsers import Browsers

MINUTE, DAY = 60, 86_400
MAX_CODES, MAX_SECRETS, MAX_ENDED = 20, 100, 1000


class Clock:
    """A clock that the test sets."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def browsers(clock):
    return Browsers(clock)


def new_code(browsers):
    return browsers.new_link().partition("once=")[2]


def new_tab(browsers):
    """Return the secret of a tab that signs in now."""
    return browsers.sign_in(new_code(browsers))


def test_a_link_is_valid_for_ten_minutes(browsers, clock):
    codes = [new_code(browsers) for _ in range(2)]
    clock.now += 10 * MINUTE
    assert browsers.sign_in(codes[0])
    clock.now += 1
    assert browsers.sign_in(codes[1]) is None
    assert browsers.why_no_code(codes[1]).startswith("the link has expired: it was valid for 10 minutes. ")


def test_the_reason_of_each_refusal_ends_with_the_next_step(browsers):
    used = new_code(browsers)
    browsers.sign_in(used)
    assert browsers.sign_in(used) is None
    reasons = [
        (browsers.why_no_code(used), "the link was used before"),
        (browsers.why_no_code("else"), "the link is not complete, or the daemon was started again since"),
        (browsers.why_no_secret("tab-of-an-earlier-run"), "the daemon was started again"),
        (
            browsers.why_no_secret("else"),
            "a valid token (Authorization: Bearer …) or a signed-in browser tab is needed",
        ),
    ]
    for words, reason in reasons:
        assert words == f"{reason}. To sign in, open the link that this command prints:  tailhook plates link"


def test_a_code_has_128_random_bits_and_a_secret_256(browsers):
    code = new_code(browsers)
    assert len(code) == 22  # base64, without padding
    assert re.fullmatch("tab-[A-Za-z0-9_-]{43}", browsers.sign_in(code))


def test_of_too_many_links_the_oldest_ends(browsers):
    codes = [new_code(browsers) for _ in range(MAX_CODES + 2)]
    assert len(browsers.codes) == MAX_CODES
    assert [browsers.sign_in(code) is None for code in codes] == [True, True, *[False] * MAX_CODES]
    assert browsers.why_no_code(codes[0]).startswith(f"the link has expired: {MAX_CODES} newer ones were made. ")


def test_a_tab_that_is_used_stays_signed_in_and_one_that_is_not_seen_for_seven_days_does_not(browsers, clock):
    used, forgotten = new_tab(browsers), new_tab(browsers)
    for _ in range(7):
        clock.now += DAY
        with browsers.answering(browsers.find(used), print):
            pass
    assert browsers.find(forgotten)
    clock.now += 1
    assert browsers.find(used)
    assert browsers.find(forgotten) is None
    assert browsers.why_no_secret(forgotten).startswith("the tab was not used for 7 days. ")


def test_a_tab_with_an_open_stream_is_seen_until_the_stream_ends(browsers, clock):
    secret = new_tab(browsers)
    with browsers.answering(browsers.find(secret), print):
        clock.now += 30 * DAY
        assert browsers.find(secret)
    clock.now += 7 * DAY
    assert browsers.find(secret)
    clock.now += 1
    assert browsers.find(secret) is None


def test_of_too_many_tabs_the_one_that_was_seen_the_longest_time_ago_ends(browsers, clock):
    tabs = []
    for _ in range(MAX_SECRETS):
        clock.now += 1
        tabs.append(new_tab(browsers))
    clock.now += 1
    with browsers.answering(browsers.find(tabs[0]), print):
        pass
    with browsers.answering(browsers.find(tabs[1]), print):
        clock.now += 1
        tabs += [new_tab(browsers), new_tab(browsers)]
        assert len(browsers.sign_ins) == MAX_SECRETS
        assert [number for number, secret in enumerate(tabs) if browsers.find(secret) is None] == [2, 3]
    assert browsers.why_no_secret(tabs[2]).startswith(f"more than {MAX_SECRETS} tabs were signed in")


def test_a_sign_out_ends_all_tabs_and_links_and_closes_what_is_open(browsers):
    tabs, code, closed = [new_tab(browsers), new_tab(browsers)], new_code(browsers), []
    with browsers.answering(browsers.find(tabs[0]), lambda: closed.append("first")):
        assert browsers.sign_out() == 2
        assert closed == ["first"]
    assert [browsers.find(secret) for secret in tabs] == [None, None]
    assert browsers.sign_in(code) is None
    for words in (*map(browsers.why_no_secret, tabs), browsers.why_no_code(code)):
        assert words.startswith("`tailhook plates sign-out` signed all tabs out. To sign in, ")
    assert browsers.sign_out() == 0
    assert browsers.find(new_tab(browsers))


def test_the_memory_of_what_has_ended_is_limited(browsers):
    first = new_tab(browsers)
    browsers.sign_out()
    for _ in range(MAX_ENDED):
        new_tab(browsers)
    assert len(browsers.ended) == MAX_ENDED
    assert browsers.why_no_secret(first).startswith("the daemon was started again. ")
