"""The web board's sound and notification, in a real browser."""

from playwright.sync_api import expect
from support.browser import at, row

WATCHED = """
window.heard = [];
window.Notification = class {
  static permission = "granted";
  static requestPermission = async () => "granted";
  constructor(words, options) {
    window.heard.push([words, options.body]);
    (window.tags ??= []).push(options.tag);
  }
  close() { window.heard.push("closed"); }
};
AudioContext.prototype.createOscillator = new Proxy(AudioContext.prototype.createOscillator, {
  apply(make, audio, given) { window.heard.push("tone"); return Reflect.apply(make, audio, given); },
});
"""


ON = "for (const name of ['sound', 'notify']) localStorage.setItem(`tailhook.${name}`, '1');"


def test_sound_and_notification_come_only_when_wanted_and_are_remembered(daemon, open_board):
    page = open_board(daemon, WATCHED)
    daemon.post("permission_asked", ts=at(1))
    expect(row(page, "p")).to_be_visible()
    assert page.evaluate("heard") == []
    page.keyboard.press("?")
    page.get_by_label("show a desktop notification").check()
    page.get_by_label("play a sound").check()
    page.reload()
    expect(row(page, "p")).to_be_visible()
    assert page.evaluate("heard") == []  # it waited before
    daemon.post("prompt_submit", ts=at(2))
    expect(row(page, "p").locator(".status")).to_have_text("running")
    daemon.post("stop", error="overloaded", ts=at(3))
    expect(row(page, "p").locator(".status")).to_have_text("error")
    assert page.evaluate("heard") == ["tone", "tone", ["p: error", "/p"]]
    page.keyboard.press("?")
    expect(page.get_by_label("show a desktop notification")).to_be_checked()
    page.get_by_label("show a desktop notification").uncheck()
    page.get_by_label("play a sound").uncheck()
    daemon.post("prompt_submit", ts=at(4))
    daemon.post("permission_asked", ts=at(5))
    expect(page.locator("#said")).to_have_text("p: awaiting approval")
    assert len(page.evaluate("heard")) == 3


def test_a_session_alerts_when_it_begins_to_wait_but_not_when_it_waited_before_or_asks_again(daemon, open_board):
    daemon.post("permission_asked", "waited", project_path="/waited", ts=at(1))
    page = open_board(daemon, WATCHED + ON)
    expect(row(page, "waited")).to_be_visible()
    for ts, event, words in (
        (2, {"event_type": "tool_start", "tool_name": "AskUserQuestion"}, "awaiting input"),
        (3, {"event_type": "stop", "error": "overloaded"}, "error"),
    ):
        daemon.post(session="waited", project_path="/waited", ts=at(ts), **event)
        expect(row(page, "waited").locator(".status")).to_have_text(words)
    assert page.evaluate("heard") == []
    daemon.post("prompt_submit", "busy", project_path="/busy", ts=at(2))
    daemon.post("permission_asked", "new", project_path="/new", ts=at(3))  # it appears in need of attention
    expect(row(page, "new")).to_be_visible()
    assert page.evaluate("heard") == ["tone", "tone", ["new: awaiting approval", "/new"]]


def test_each_wait_of_a_session_has_a_notification_of_its_own(daemon, open_board):
    """The browser shows one with a known tag in silence, in place of the old one."""
    page = open_board(daemon, WATCHED + ON)
    for ts in (1, 3):
        daemon.post("permission_asked", ts=at(ts))
        expect(row(page, "p").locator(".status")).to_have_text("awaiting approval")
        daemon.post("prompt_submit", ts=at(ts + 1))
        expect(row(page, "p").locator(".status")).to_have_text("running")
    first, second = page.evaluate("tags")
    assert first != second
    assert page.evaluate("heard").count("closed") == 1


def test_a_browser_without_notifications_of_pages_shows_the_row_all_the_same(daemon, open_board):
    refusing = (
        "window.Notification = class { static permission = 'granted'; constructor() { throw new TypeError(); } };"
    )
    page = open_board(daemon, refusing + ON)
    daemon.post("permission_asked", ts=at(1))
    expect(row(page, "p").locator(".status")).to_have_text("awaiting approval")
    page.keyboard.press("?")
    expect(page.get_by_text("The browser does not let this page show notifications.")).to_be_visible()


def test_without_the_browsers_leave_there_is_no_notification(daemon, board):
    board.evaluate("Notification.requestPermission = async () => 'denied'")
    board.keyboard.press("?")
    board.get_by_label("show a desktop notification").click()
    expect(board.get_by_text("The browser does not let this page show notifications.")).to_be_visible()
    expect(board.get_by_label("show a desktop notification")).not_to_be_checked()
