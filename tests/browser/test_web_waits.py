"""How long agents waited for the person, in the web board: by day of the browser's time zone, with bars of projects."""

from datetime import datetime, timedelta, timezone

import pytest
from playwright.sync_api import expect

ZONE = timezone(timedelta(hours=9))  # far from that of the daemon; it has no daylight saving time
ZONE_NAME = "Asia/Tokyo"
HOUR_MS = 3_600_000


@pytest.fixture
def morning():
    """Return 9 o'clock of yesterday in the browser's time zone, in Unix milliseconds."""
    at = datetime.now(ZONE).replace(hour=9, minute=0, second=0, microsecond=0) - timedelta(days=1)
    return int(at.timestamp() * 1000)


def let_wait(daemon, session, start, hours, path):
    """Let a session wait for so many hours."""
    daemon.post("permission_asked", session, project_path=path, ts=start)
    daemon.post("prompt_submit", session, project_path=path, ts=int(start + hours * HOUR_MS))


def open_waits(daemon, open_board):
    """Return a board with the waits, in a browser of the time zone."""
    page = open_board(daemon, timezone_id=ZONE_NAME, locale="en-GB")
    page.locator("#history summary").click()
    return page


def day_words(ms):
    """Return a day as the table has it."""
    at = datetime.fromtimestamp(ms / 1000, ZONE)
    return f"{at:%a} {at.day} {at:%b}"


def row_of(page, ms):
    """Return the row of a day."""
    return page.locator("#history tbody tr").filter(has=page.get_by_role("rowheader", name=day_words(ms)))


def test_a_day_has_a_bar_of_its_projects_and_the_figures_as_text(daemon, open_board, morning):
    let_wait(daemon, "a", morning, 2, "/src/shop")
    let_wait(daemon, "b", morning, 1, "/src/api")
    let_wait(daemon, "c", morning - 12 * HOUR_MS, 4, "/src/api")  # from 21 to 1 o'clock
    page = open_waits(daemon, open_board)
    before, day = row_of(page, morning - 24 * HOUR_MS), row_of(page, morning)
    expect(before.locator("td")).to_have_text(["api 3h", "3h", "1", "3h", "3h"])
    expect(day.locator("td")).to_have_text(["api 2h, shop 2h", "4h", "3", "1h", "2h"])
    expect(page.locator("#history li")).to_have_text(["api 5h", "shop 2h"])
    expect(page.locator("#history tfoot td").nth(1)).to_have_text("7h")
    widths = day.locator(".bar span").evaluate_all("all => all.map((one) => one.getBoundingClientRect().width)")
    assert widths[0] == pytest.approx(widths[1], abs=1)
    [shorter] = before.locator(".bar span").evaluate_all("all => all.map((one) => one.getBoundingClientRect().width)")
    assert shorter == pytest.approx(1.5 * widths[0], abs=1)
    colours = page.locator("#history :is(i, .bar span)").evaluate_all(
        "all => all.map((one) => [one.dataset.colour, getComputedStyle(one).backgroundColor])"
    )
    assert len({colour for _, colour in colours}) == len({number for number, _ in colours}) == 2


def test_projects_after_the_fourth_share_a_colour(daemon, open_board, morning):
    for number in range(6):
        let_wait(daemon, f"s{number}", morning, 6 - number, f"/src/p{number}")
    page = open_waits(daemon, open_board)
    expect(page.locator("#history li")).to_have_text(["p0 6h", "p1 5h", "p2 4h", "p3 3h", "2 more 3h"])
    bars = row_of(page, morning).locator(".bar span")
    assert bars.evaluate_all("all => all.map((one) => one.dataset.colour)") == ["1", "2", "3", "4", "0", "0"]


def test_it_is_folded_below_the_sessions_and_a_key_shows_it(daemon, open_board, morning):
    let_wait(daemon, "a", morning, 2, "/src/shop")
    page = open_board(daemon, timezone_id=ZONE_NAME, locale="en-GB")
    table = page.locator("#history table")
    expect(table).to_have_count(0)
    page.keyboard.press("w")
    expect(table).to_be_visible()
    assert page.evaluate("document.activeElement.matches('#history summary')")
    assert page.evaluate(
        "board.getBoundingClientRect().bottom <= document.getElementById('history').getBoundingClientRect().top"
    )
    page.keyboard.press("Enter")
    expect(table).to_be_hidden()
    page.keyboard.press("?")
    expect(page.locator("#helping .keys")).to_contain_text("how long agents waited")


def test_it_is_loaded_again_each_minute_and_the_page_stays_where_it_is(daemon, open_board, morning):
    script = """
        const start = setInterval;
        window.setInterval = (act, ms) => {
            if (ms === 60_000) window.passMinute = act;
            return start(act, ms);
        };
    """
    let_wait(daemon, "a", morning, 2, "/src/shop")
    options = {"timezone_id": ZONE_NAME, "viewport": {"width": 800, "height": 200}}
    page = open_board(daemon, script, **options)
    page.keyboard.press("w")
    projects = page.locator("#history li")
    expect(projects).to_have_text(["shop 2h"])
    page.wait_for_function("scrollY > 0")  # it was scrolled to
    page.evaluate("scrollTo(0, 0)")
    let_wait(daemon, "b", morning, 1, "/src/api")
    page.evaluate("passMinute()")
    expect(projects).to_have_text(["shop 2h", "api 1h"])
    assert page.evaluate("scrollY") == 0
    page.locator("#history summary").evaluate("one => one.click()")
    with daemon.client() as client:
        client.delete("/plates/b")
    page.evaluate("passMinute()")
    expect(projects).to_have_text(["shop 2h", "api 1h"])  # nothing is asked for while it is folded


def test_the_name_of_a_project_is_text(daemon, open_board, morning):
    let_wait(daemon, "a", morning, 2, "/src/<img src=x onerror=alert(1)>\u202eevil\x1b")
    page = open_waits(daemon, open_board)
    words = "<img src=x onerror=alert(1)>\ufffdevil\ufffd 2h"
    expect(page.locator("#history li")).to_have_text([words])
    expect(row_of(page, morning).locator("td").first).to_have_text(words)
    expect(page.locator("#history img")).to_have_count(0)


def test_without_events_and_without_waits_it_shows_why_there_is_no_table(daemon, own, open_board):
    own.finds_tables = True
    own.start()
    page = open_waits(own, open_board)
    expect(page.locator("#history p")).to_have_text("Nothing is known yet, because no event is stored.")
    own.post("prompt_submit")
    page.keyboard.press("Escape")
    for _ in range(2):
        page.keyboard.press("w")  # the new row may move the history away from a click
    expect(page.locator("#history p")).to_contain_text("No session has waited for you since ")


def test_a_request_that_fails_is_shown(daemon, open_board):
    page = open_board(daemon)
    page.route("**/waits?*", lambda route: route.fulfill(status=500, body='{"error": "the disk is <full>"}'))
    page.keyboard.press("w")
    expect(page.locator("#history p")).to_have_text("The waits could not be loaded: the disk is <full>")
    open_board.faults.clear()  # the browser logs the answer
