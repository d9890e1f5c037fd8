"""The web board in a real browser, against the running daemon."""

import re
import time

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from support.browser import answered, at, load, row, show
from support.daemon import request, spooled, wait_until
from support.host import HANGS_S
from support.sessions import post_statuses_of_hours

from tailhook.plates.display import FILTER_FIELDS

PHONE = {"width": 360, "height": 740}


def rows(page, section="board"):
    """Return the projects that are shown, from the top.

    By textContent: innerText is empty for a row that was just moved, because of its `content-visibility: auto`.
    """
    return page.locator(f"#{section} li .project").all_text_contents()


def focused(page):
    """Return the project whose row has the focus."""
    return page.evaluate("document.activeElement.closest('li')?.querySelector('.project').textContent ?? ''")


# ---- the answers -------------------------------------------------------------


def test_every_answer_restricts_the_browser(daemon):
    for path in ("/", "/web/board.js", "/web/board.css", "/plates", "/health", "/nothing", "/stream"):
        for headers in ({"authorization": f"Bearer {daemon.token}"}, {}):
            with httpx.stream("GET", f"{daemon.base}{path}", headers=headers, verify=False, timeout=HANGS_S) as answer:
                reported = answer.headers
            policy = reported["content-security-policy"]
            assert "default-src 'none'" in policy, (path, headers)
            assert "frame-ancestors 'none'" in policy, (path, headers)
            assert "unsafe" not in policy, (path, headers)
            assert (reported["x-content-type-options"], reported["x-frame-options"]) == ("nosniff", "DENY"), path
            assert (reported["referrer-policy"], reported["cache-control"]) == ("no-referrer", "no-store"), path


def test_the_boards_file_routes_serve_no_other_file(daemon):
    for headers, codes in (({"authorization": f"Bearer {daemon.token}"}, (404,)), ({}, (401, 404))):
        for path in ("/web/../app.py", "/web/%2e%2e/app.py", "/web/..%2fapp.py", "/web/", "/web/nothing"):
            answer = request("GET", f"{daemon.base}{path}", headers=headers)
            assert answer.status_code in codes, path
            assert set(answer.json()) == {"error"}


def test_the_page_asks_for_all_its_modules_at_once(board):
    """Otherwise it would ask for a module only when it has read the one that imports it."""
    modules = board.evaluate("performance.getEntriesByType('resource').map((one) => new URL(one.name).pathname)")
    found = board.evaluate(
        "[...document.querySelectorAll('[rel=modulepreload], script')].map((one) => one.href || one.src)"
    )
    assert {name for name in modules if name.endswith(".js")} == {httpx.URL(url).path for url in found}


# ---- what is shown -----------------------------------------------------------


def test_plates_appear_and_change_while_one_looks(daemon, board):
    expect(board.get_by_text("No sessions yet")).to_be_visible()
    daemon.post("prompt_submit", project_path="/home/me/src/parser", git_branch="fuzz", ts=at(1))
    shown = row(board, "parser")
    expect(shown.locator(".status")).to_have_text("running")
    expect(shown.locator(".branch")).to_have_text("fuzz")
    daemon.post(
        "tool_start", tool_name="TodoWrite", tool_params={"todos_done": 2, "todos": 9}, project_path="/parser", ts=at(2)
    )
    expect(shown.locator(".tool")).to_have_text("TodoWrite")
    expect(shown.locator(".todo")).to_have_text("2 of 9")
    daemon.post("tool_start", tool_name="AskUserQuestion", project_path="/parser", ts=at(3))
    expect(shown.locator(".status")).to_have_text("awaiting input")
    expect(board).to_have_title("(1) tailhook")
    assert rows(board, "waits") == ["parser"]
    daemon.post("stop", project_path="/parser", ts=at(4))
    expect(shown.locator(".status")).to_have_text("finished")
    expect(board).to_have_title("tailhook")
    daemon.ask("DELETE", "/plates/s")
    expect(shown).to_have_count(0)


def test_waits_come_first_then_what_has_finished_then_work_and_the_filter_takes_all_its_words(daemon, board, tmp_path):
    show(daemon, board, tmp_path)
    expect(row(board, "parser").locator(".todo")).to_have_text("2 of 9")
    assert set(rows(board, "waits")) == {"website", "payments", "etl"}
    assert rows(board, "finished") == ["mobile", "notes"]
    assert rows(board, "working") == ["parser", "tailhook", "terraform"]
    assert rows(board) == [*rows(board, "waits"), *rows(board, "finished"), *rows(board, "working")]
    assert board.locator("#board section:not([hidden]) h2").all_inner_texts() == [
        "Waits for you 3",
        "Finished, not looked at 2",
        "Working 3",
        "At rest 0",
    ]
    board.keyboard.press("/")
    board.keyboard.type("SRC run")
    expect(board.locator("#board li")).to_have_count(2)
    assert rows(board) == ["parser", "tailhook"]
    board.keyboard.type(" nothing")
    expect(board.get_by_text("No session matches “SRC run nothing”.")).to_be_visible()
    board.keyboard.press("Escape")
    expect(board.locator("#board li")).to_have_count(8)


def test_age_and_order_go_by_when_the_status_changed(daemon, board):
    now = post_statuses_of_hours(daemon)
    daemon.post("stop", "ahead", project_path="/p/ahead", ts=now + 7_200_000)  # by a clock that is ahead
    expect(row(board, "first").locator(".branch")).to_have_text("late")
    expect(row(board, "ahead")).to_be_visible()
    assert rows(board) == ["first", "second", "ahead", "done"]
    ages = {name: row(board, name).locator(".age").text_content() for name in rows(board)}
    assert re.fullmatch(r"\d+s", ages.pop("ahead"))
    assert ages == {"first": "3h", "second": "2h", "done": "5h"}


def test_each_status_has_its_words_and_its_symbol(daemon, board):
    shown = {
        "running": ({"event_type": "prompt_submit"}, "●"),
        "finished": ({"event_type": "stop"}, "✓"),
        "awaiting input": ({"event_type": "tool_start", "tool_name": "AskUserQuestion"}, "?"),
        "awaiting approval": ({"event_type": "permission_asked"}, "!"),
        "error": ({"event_type": "stop", "error": "overloaded"}, "✗"),
    }
    for words, (event, _) in shown.items():
        daemon.post(session=words, project_path=f"/src/{words}", **event)
    for words, (_, symbol) in shown.items():
        expect(row(board, words).locator(".status")).to_have_text(words)
        expect(row(board, words).locator(".sign")).to_have_text(symbol)
    board.keyboard.press("?")  # the help lists every symbol of the daemon
    expect(board.locator("#helping .signs dd")).to_have_count(9)
    expect(board.locator("#helping .signs")).to_contain_text("awaiting approval")
    expect(board.locator("#helping .keys")).to_contain_text(f"filter by {FILTER_FIELDS}")


def test_closed_ones_are_shown_when_asked_for(daemon, board):
    daemon.post("tool_start", project_path="/over", tool_name="Bash", ts=at(1))
    daemon.post("session_end", project_path="/over", ts=at(2))
    expect(board.get_by_role("button", name="1 closed")).to_have_attribute("aria-expanded", "false")
    expect(board.get_by_text("All sessions are closed or hidden.")).to_be_visible()
    board.get_by_role("button", name="1 closed").click()
    expect(board.get_by_role("button", name="1 closed")).to_have_attribute("aria-expanded", "true")
    expect(row(board, "over").locator(".status")).to_have_text("closed")
    expect(row(board, "over").locator(".tool")).to_have_text("")
    board.keyboard.press("c")
    expect(row(board, "over")).to_have_count(0)


def test_every_key_may_be_pressed_before_the_daemon_has_answered(daemon, new_context):
    daemon.post("session_end", project_path="/legacy")
    page, faults, held = new_context().new_page(), [], []
    page.add_init_script(f"sessionStorage.setItem('tailhook.secret', '{daemon.secret}')")
    page.add_init_script("delete globalThis.SharedWorker")
    page.on("pageerror", lambda error: faults.append(error))
    page.route("**/statuses", lambda route: held.append(route))
    with page.expect_request("**/statuses"):
        page.goto(daemon.base)
    for key in (*"cg/?dyuw", "ArrowDown", "ArrowUp", "Home", "End"):
        page.keyboard.press(key)
        page.keyboard.press("Escape")
    for route in held:
        route.continue_()
    expect(row(page, "legacy")).to_be_visible()
    assert faults == []


def test_an_answer_that_comes_late_shows_no_session_that_was_deleted_meanwhile(daemon, board):
    for session in ("kept", "gone"):
        daemon.post("session_end", session, project_path=f"/{session}")
    expect(board.get_by_role("button", name="2 closed")).to_be_visible()
    held = []
    board.route("**/plates?status=closed*", lambda route: held.append(route))
    board.keyboard.press("c")
    wait_until(lambda: board.title() and held)
    answer = daemon.ask("GET", "/plates?status=closed").json()
    assert len(answer) == 2
    daemon.ask("DELETE", "/plates/gone")
    expect(board.get_by_role("button", name="1 closed")).to_be_visible()

    def shows_the_other_one_only():
        while held:
            held.pop().fulfill(json=answer)
        return rows(board) == ["kept"]

    wait_until(shows_the_other_one_only)


def test_a_closed_session_that_was_deleted_while_the_daemon_was_away_is_not_shown_any_more(own, open_board):
    board = open_board(own.start())
    for session in ("kept", "gone"):
        own.post("session_end", session, project_path=f"/{session}")
    board.keyboard.press("c")
    wait_until(lambda: sorted(rows(board)) == ["gone", "kept"])
    own.stop()
    own.delete_stored("gone")
    own.start("--port", own.base.rpartition(":")[2])
    expect(board.locator("#connection")).to_have_text("signed out")
    board.evaluate("link => { location.href = link; }", own.link)
    wait_until(lambda: rows(board) == ["kept"])
    board.close()
    assert all("401 (Unauthorized)" in fault for fault in open_board.faults)
    open_board.faults.clear()


def test_closed_ones_that_could_not_be_loaded_are_loaded_when_the_daemon_answers_again(daemon, board):
    daemon.post("session_end", "over", project_path="/legacy")
    expect(board.get_by_role("button", name="1 closed")).to_be_visible()
    board.route("**/plates?status=closed*", lambda route: route.abort("connectionrefused"), times=1)
    board.keyboard.press("c")
    expect(board.locator("#copied")).to_contain_text("The closed sessions are not shown")
    daemon.post("session_end", "later", project_path="/later")
    expect(row(board, "legacy")).to_be_visible()
    assert sorted(rows(board)) == ["later", "legacy"]


def test_of_many_closed_ones_the_newest_are_asked_for(own, open_board):
    board = open_board(own.start())
    own.spool(
        *(
            spooled(f"{number}-{kind}", f"s{number:04}", event_type=kind, ts=at(number // 100), mono=None)
            for number in range(1003)
            for kind in ("session_start", "session_end")
        )
    )
    expect(board.get_by_role("button", name="1,003 closed")).to_be_visible()
    asked = []
    board.on("request", lambda request: asked.append(request.url) if "closed" in request.url else None)
    board.keyboard.press("c")
    expect(board.locator("#rest .count")).to_have_text("1000")
    assert len(asked) == 5
    expect(board.locator("#rest li")).to_have_count(10)
    board.get_by_role("button", name="990 more").click()
    expect(board.locator("#rest li")).to_have_count(200)  # that are drawn at once
    board.get_by_role("button", name="800 more").click()
    expect(board.locator("#rest li")).to_have_count(400)
    board.keyboard.press("c")
    expect(board.locator("li")).to_have_count(0)
    expect(board.get_by_role("button", name="more")).to_be_hidden()


def test_a_closed_session_stands_where_its_status_changed_as_in_the_terminal(daemon, board):
    now = time.time_ns() // 1_000_000
    for age, (project, event) in enumerate((("after", "stop"), ("closed", "session_end"), ("before", "stop"))):
        daemon.post(event, project, project_path=f"/p/{project}", ts=now - (age + 1) * 60_000)
    for name in ("after", "before"):
        daemon.ask("PATCH", f"/plates/{name}", json={"seen": True})
    board.keyboard.press("c")
    expect(board.locator("#rest li")).to_have_count(3)
    assert rows(board) == ["after", "closed", "before"]


def test_projects_with_the_same_folder_name_are_shown_with_their_parents(daemon, board):
    daemon.post("stop", "first", project_path="/first/web")
    expect(row(board, "web")).to_be_visible()
    daemon.post("stop", "second", project_path="/second/web")
    expect(row(board, "first/web")).to_be_visible()
    expect(row(board, "second/web")).to_be_visible()
    daemon.ask("DELETE", "/plates/second")
    expect(row(board, "web")).to_be_visible()


def test_a_placeholder_gives_way_to_its_session(daemon, board):
    daemon.ask("POST", "/plates/register", json={"project_path": "/run", "run_id": "r"})
    expect(row(board, "run").locator(".status")).to_have_text("starting")
    daemon.post("session_start", "real", project_path="/run", run_id="r")
    expect(row(board, "run").locator(".status")).to_have_text("running")
    assert rows(board) == ["run"]


# ---- what the person does ----------------------------------------------------


def hidden(daemon):
    """Return the ids of the hidden sessions."""
    return {name for name, plate in daemon.plates().items() if plate["hidden"]}


def test_a_plate_is_hidden_by_its_button_and_by_its_key_and_nothing_is_deleted(daemon, board):
    for name in ("one", "two"):
        daemon.post("stop", name, project_path=f"/{name}")
    expect(board.locator("#board li")).to_have_count(2)
    row(board, "one").hover()
    board.get_by_role("button", name="Hide one").click()
    expect(row(board, "one")).to_have_count(0)
    expect(board.locator("#undo")).to_contain_text("Hidden: one")
    row(board, "two").locator(".open").focus()
    board.keyboard.press("d")
    expect(row(board, "two")).to_have_count(0)
    assert hidden(daemon) == {"one", "two"}
    for name in ("one", "two"):
        assert [event["event_type"] for event in daemon.ask("GET", f"/plates/{name}?events=9").json()["events"]] == [
            "stop"
        ]


def test_what_was_hidden_last_is_shown_again_by_u_or_by_undo(daemon, board):
    for name in ("one", "two"):
        daemon.post("stop", name, project_path=f"/{name}")
        row(board, name).locator(".open").focus()
        board.keyboard.press("d")
        expect(row(board, name)).to_have_count(0)
    board.get_by_role("button", name="Undo").click()
    expect(row(board, "two")).to_be_visible()
    expect(board.locator("#undo")).to_contain_text("Hidden: one")
    board.keyboard.press("u")
    expect(row(board, "one")).to_be_visible()
    expect(board.locator("#undo")).to_be_hidden()
    assert hidden(daemon) == set()


def test_undo_means_the_last_one_though_the_daemon_has_not_answered_yet(daemon, board):
    for name in ("one", "two"):
        daemon.post("stop", name, project_path=f"/{name}")
        expect(row(board, name)).to_be_visible()
    row(board, "one").locator(".open").focus()
    board.keyboard.press("d")
    expect(board.locator("#undo")).to_contain_text("Hidden: one")
    held = []
    board.route("**/plates/two", lambda route: held.append((route, route.fetch())), times=1)
    row(board, "two").locator(".open").focus()
    board.keyboard.press("d")
    wait_until(lambda: row(board, "two").count() == 0 and held)  # the stream was faster
    board.keyboard.press("u")
    ((route, answer),) = held
    route.fulfill(response=answer)
    expect(row(board, "two")).to_be_visible()
    expect(board.locator("#undo")).to_contain_text("Hidden: one")
    assert hidden(daemon) == {"one"}


def test_an_answer_that_comes_late_does_not_undo_what_the_stream_has_sent_since(daemon, board):
    daemon.post("stop", "one", project_path="/one")
    row(board, "one").locator(".open").focus()
    held = []
    board.route("**/plates/one", lambda route: held.append((route, route.fetch(max_retries=9))), times=1)
    board.keyboard.press("d")
    wait_until(lambda: row(board, "one").count() == 0 and held)
    daemon.post("prompt_submit", "one", project_path="/one")
    expect(row(board, "one").locator(".status")).to_have_text("running")
    ((route, answer),) = held
    with answered(board, "**/plates/one"):
        route.fulfill(response=answer)
    expect(board.locator("#undo")).to_contain_text("Hidden: one")
    daemon.post("stop", "two", project_path="/two")
    expect(row(board, "two")).to_be_visible()
    expect(row(board, "one").locator(".status")).to_have_text("running")


def test_undo_is_offered_for_ten_seconds_and_a_hidden_plate_is_found_with_the_closed_ones(daemon, open_board):
    board = open_board(daemon)
    daemon.post("stop", "one", project_path="/one")
    expect(row(board, "one")).to_be_visible()
    board.clock.install(time="2026-01-01T00:00:00Z")
    board.clock.pause_at("2026-01-01T01:00:00Z")  # from here on, the page's time does not go on by itself
    row(board, "one").locator(".open").focus()
    with answered(board, "**/plates/one"):
        board.keyboard.press("d")
    expect(board.locator("#undo")).to_be_visible()
    board.clock.run_for(9_900)
    expect(board.locator("#undo")).to_be_visible()
    board.clock.run_for(200)
    expect(board.locator("#undo")).to_be_hidden()
    board.keyboard.press("u")
    expect(board.get_by_role("button", name="1 hidden")).to_be_visible()
    board.keyboard.press("c")
    board.clock.run_for(100)
    expect(row(board, "one").locator(".tool")).to_have_text("hidden")
    row(board, "one").locator(".open").focus()
    board.keyboard.press("d")
    wait_until(lambda: hidden(daemon) == set())


def test_a_session_without_a_sign_is_not_shown_as_running(daemon, board):
    daemon.post("prompt_submit", "one", project_path="/one")
    expect(row(board, "one").locator(".status")).to_have_text("running")
    daemon.make_older(400)
    daemon.post("stop", "two", project_path="/two")  # it lets the daemon check all sessions soon
    expect(row(board, "one").locator(".status")).to_have_text("no sign for 6m")
    expect(row(board, "one")).to_have_attribute("data-tone", "muted")
    row(board, "one").locator(".open").click()
    expect(board.locator("#details .status .words")).to_have_text("no sign for 6m")
    daemon.post("tool_call", "one", project_path="/one")
    expect(board.locator("#details .status .words")).to_have_text("running")
    expect(row(board, "one").locator(".status")).to_have_text("running")


def test_the_headline_of_a_row_is_the_title_otherwise_the_prompt(daemon, board):
    daemon.post("prompt_submit", "one", project_path="/work/one", title="<b>Fix</b> the race", prompt="Go on.")
    daemon.post("prompt_submit", "two", project_path="/work/two", prompt="Write the docs.")
    daemon.post("prompt_submit", "three", project_path="/work/three")
    expect(row(board, "one").locator(".headline")).to_have_text("<b>Fix</b> the race")
    expect(row(board, "two").locator(".headline")).to_have_text("Write the docs.")
    expect(row(board, "three").locator(".headline")).to_be_hidden()
    board.locator("#filter").fill("race")
    expect(row(board, "two")).to_have_count(0)
    row(board, "one").locator(".open").click()
    expect(board.locator("#details dl")).to_contain_text("Title<b>Fix</b> the race")


def test_a_hidden_plate_is_gone_from_every_board_until_its_next_prompt(daemon, board, open_board):
    first, second = board, open_board(daemon)
    daemon.post("permission_asked", "one", project_path="/one", tool_name="Bash")
    for page in (first, second):
        expect(row(page, "one")).to_be_visible()
    row(first, "one").locator(".open").focus()
    first.keyboard.press("d")
    for page in (first, second):
        expect(row(page, "one")).to_have_count(0)
        expect(page).to_have_title("tailhook")
    daemon.post("tool_call", "one", project_path="/one", tool_name="Bash")
    daemon.post("prompt_submit", "one", project_path="/one")
    for page in (first, second):
        expect(row(page, "one")).to_be_visible()


def test_enter_and_enter_opens_and_closes_the_details(daemon, board):
    daemon.post("stop", "one", project_path="/one")
    expect(row(board, "one")).to_be_visible()
    board.keyboard.press("ArrowDown")
    board.keyboard.press("Enter")
    expect(board.locator("#details")).to_be_visible()
    assert board.evaluate("document.activeElement.className") == "close"
    board.keyboard.press("Enter")
    expect(board.locator("#details")).to_be_hidden()
    assert not daemon.plates()["one"]["hidden"]


def test_a_click_acts_on_the_row_that_was_under_the_pointer_when_it_was_pressed(daemon, open_board):
    board = open_board(daemon)
    other = board.context.new_page()
    load(other, daemon)
    for step, name in enumerate(("first", "second", "third", "fourth"), 1):
        daemon.post("permission_asked", name, project_path=f"/{name}", tool_name="Bash", ts=at(step))

    def click(button, name, above):
        waiting = board.locator("#waits li").count()
        box = row(board, name).locator(button).bounding_box()
        board.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        board.mouse.down()
        daemon.post("prompt_submit", above, project_path=f"/{above}")  # the rows want to move up
        expect(other.locator("#waits li")).to_have_count(waiting - 1)
        board.evaluate("() => new Promise((done) => setTimeout(done, 200))")  # the board draws at most 50 ms later
        assert board.locator("#waits li").count() == waiting
        board.mouse.up()

    expect(board.locator("#waits li")).to_have_count(4)
    expect(board.locator("#said")).to_have_text("fourth: awaiting approval")
    click(".dismiss", "second", "first")
    expect(row(board, "second")).to_have_count(0)
    assert hidden(daemon) == {"second"}
    expect(board.locator("#working li")).to_have_count(1)
    expect(other.locator("#waits li")).to_have_count(2)
    click(".open", "fourth", "third")
    expect(board.locator("#details-title")).to_have_text("fourth")
    expect(board.locator("#working li")).to_have_count(2)
    expect(row(board, "fourth")).to_be_visible()
    assert hidden(daemon) == {"second"}


@pytest.mark.parametrize("how", ["session_end", "DELETE"])
def test_a_click_on_a_row_whose_session_has_gone_meanwhile_opens_its_details(daemon, open_board, how):
    board = open_board(daemon)
    daemon.post("prompt_submit", "going", project_path="/going")
    box = row(board, "going").locator(".open").bounding_box()
    board.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    board.mouse.down()  # no row moves
    if how == "DELETE":
        daemon.ask("DELETE", "/plates/going")
    else:
        daemon.post(how, "going", project_path="/going")
    daemon.post("permission_asked", "next", project_path="/next", tool_name="Bash")
    expect(board.locator("#said")).to_have_text("next: awaiting approval")  # the page knows of both changes
    board.mouse.up()
    expect(board.locator("#details-title")).to_have_text("going")
    words = "closed" if how == "session_end" else "not on the board any more; last: running"
    expect(board.locator("#details .status .words")).to_have_text(words)
    assert all("404 (Not Found)" in fault for fault in open_board.faults)
    open_board.faults.clear()


def test_a_click_on_a_row_that_is_not_drawn_again_yet_opens_its_details(daemon, board):
    daemon.post("permission_asked", project_path="/moved", tool_name="Bash")
    moved = row(board, "moved")
    expect(moved).to_be_visible()
    moved.evaluate("(row) => { row.style.contentVisibility = 'hidden'; }")  # as between its move and the next frame
    moved.click()
    expect(board.locator("#details-title")).to_have_text("moved")


def test_a_path_is_cut_on_the_left(daemon, board):
    """Its right end distinguishes files."""
    path = "/srv/a-very-long-name/of-a-folder/in-another-one/that-is-long/and-another-folder-that-is-longer/near/one.py"
    daemon.post("tool_start", "one", tool_name="Edit", tool_params={"file_path": path}, project_path="/one")
    cell = row(board, "one").locator(".path")
    expect(cell).to_have_text(path)
    ends = cell.evaluate(
        "cell => { const [whole, part] = [cell, cell.firstChild].map(one => one.getBoundingClientRect());"
        " return [whole.right - part.right, whole.left - part.left]; }"
    )
    assert abs(ends[0]) < 2 < ends[1]


# ---- many tabs, and a daemon that catches up ----------------------------------


def test_eight_tabs_show_all_rows_and_stay_live(daemon, board):
    daemon.post("stop", "one", project_path="/one")
    pages = [*(board.context.new_page() for _ in range(7)), board]
    for page in pages:
        page.goto(daemon.base)
    for page in pages:
        expect(page.locator("#connection")).to_have_text("live")
        expect(row(page, "one").locator(".status")).to_have_text("finished")
    daemon.post("prompt_submit", "one", project_path="/one")
    for page in pages:
        expect(row(page, "one").locator(".status")).to_have_text("running")
    wait_until(lambda: daemon.ask("GET", "/status").json()["listeners"] == 1)  # and those of earlier pages have ended
    row(pages[7], "one").locator(".open").focus()
    pages[7].keyboard.press("Enter")
    expect(pages[7].locator(".events li")).to_have_count(2)
    for page in pages[:7]:
        page.close()
    daemon.post("stop", "one", project_path="/one")
    expect(row(pages[7], "one").locator(".status")).to_have_text("idle")  # its details are open: it is seen at once


def test_tabs_with_secrets_of_their_own_share_a_stream_and_a_wrong_secret_gets_nothing(daemon, new_context):
    daemon.post("stop", "one", project_path="/one")
    context = new_context()
    pages = []
    for secret in (daemon.secret, daemon.token, "wrong"):
        page = context.new_page()
        page.add_init_script(f"sessionStorage.setItem('tailhook.secret', '{secret}')")
        page.goto(daemon.base)
        pages.append(page)
    for page in pages[:2]:
        expect(page.locator("#connection")).to_have_text("live")
        expect(row(page, "one")).to_be_visible()
    expect(pages[2].locator("#connection")).to_have_text("signed out")
    expect(pages[2].locator("#away")).to_contain_text("This tab is not signed in any more")
    assert pages[2].locator("#board li").count() == 0


def test_the_board_shows_how_many_events_the_daemon_has_still_to_store_and_stays_live_with_two_thousand_sessions(
    own, open_board
):
    page = open_board(own.start())
    page.evaluate(
        "window.said = []; new MutationObserver(() => said.push(document.querySelector('#connection').textContent))"
        ".observe(document.querySelector('#connection'), {childList: true, characterData: true, subtree: true})"
    )
    own.spool(
        *(spooled(number, f"s{number % 3}", project_path=f"/src/p{number % 3}") for number in range(1000)),
        *(spooled(1000, f"s{number}", project_path=f"/src/p{number}", event_type="stop") for number in range(2000)),
    )
    expect(page.locator("#connection")).to_have_text(re.compile("^catching up: [0-9],[0-9]{3} events$"))
    expect(page.locator("#connection")).to_have_text("live")
    counts = [int(re.sub("[^0-9]", "", words)) for words in page.evaluate("said") if words.startswith("catching up")]
    assert counts == sorted(counts, reverse=True)
    expect(page.locator("#finished h2 .count")).to_have_text("2000")
    load(page, own)
    expect(page.locator("#finished h2 .count")).to_have_text("2000")
    own.post("permission_asked", "s7", project_path="/src/p7", ts=at(2000))
    wait_until(lambda: rows(page, "waits") == ["p7"])
    page.keyboard.press("ArrowDown")
    assert focused(page) == "p7"


def test_a_plate_whose_name_is_not_a_path_is_hidden_too(daemon, board):
    name = "a/b?c=d#e %2F é"
    daemon.post("stop", name, project_path="/odd")
    row(board, "odd").locator(".open").focus()
    board.keyboard.press("d")
    expect(row(board, "odd")).to_have_count(0)
    assert hidden(daemon) == {name}


def test_it_is_used_by_keys_alone(daemon, board, tmp_path):
    show(daemon, board, tmp_path)
    names = rows(board)
    board.keyboard.press("ArrowDown")
    assert focused(board) == names[0]
    board.keyboard.press("ArrowDown")
    board.keyboard.press("ArrowDown")
    board.keyboard.press("ArrowUp")
    assert focused(board) == names[1]
    board.keyboard.press("Enter")
    expect(board.get_by_role("dialog")).to_be_visible()
    board.keyboard.press("Escape")
    expect(board.get_by_role("dialog")).to_have_count(0)
    assert focused(board) == names[1]
    board.keyboard.press("d")
    expect(board.locator("#board li")).to_have_count(7)
    assert focused(board) == names[2]
    board.keyboard.press("End")
    assert focused(board) == names[-1]
    board.keyboard.press("?")
    expect(board.get_by_role("dialog", name="Help and options")).to_be_visible()
    board.keyboard.press("Escape")
    expect(board.get_by_role("dialog")).to_have_count(0)


def test_the_focus_stays_with_a_row_that_moves(daemon, board):
    for name in ("one", "two"):
        daemon.post("prompt_submit", name, project_path=f"/{name}", ts=at(1))
    expect(row(board, "two")).to_be_visible()
    row(board, "two").locator(".open").focus()
    daemon.post("permission_asked", "two", project_path="/two", ts=at(2))
    expect(row(board, "two").locator(".status")).to_have_text("awaiting approval")
    assert rows(board) == ["two", "one"]
    assert focused(board) == "two"


# ---- how it looks, also to people with a disability --------------------------


def test_axe_finds_nothing_in_light_and_dark_colours_on_a_phone_and_on_a_desktop(daemon, board, tmp_path):
    board.emulate_media(reduced_motion="reduce")
    show(daemon, board, tmp_path)
    board.keyboard.press("c")
    expect(row(board, "old-api")).to_be_visible()
    board.keyboard.press("w")
    expect(board.locator("#history table")).to_be_visible()
    board.keyboard.press("/")  # on a phone it shows the filter and the options
    assert_accessible(board)
    board.keyboard.press("Escape")
    row(board, "payments").click()
    expect(board.locator("#details .events li")).to_have_count(27)
    assert_accessible(board)
    board.keyboard.press("Escape")
    expect(board.locator("#details")).to_be_hidden()
    board.keyboard.press("?")
    assert_accessible(board)


def assert_accessible(page):
    """Check that axe finds nothing on a page, in all sizes and colours."""
    for size in (PHONE, {"width": 1280, "height": 800}):
        page.set_viewport_size(size)
        for colours in ("light", "dark"):
            page.emulate_media(color_scheme=colours)
            found = Axe().run(page).response["violations"]
            faults = [(one["id"], node["html"], node["failureSummary"]) for one in found for node in one["nodes"]]
            assert faults == [], (size, colours)


def test_a_narrow_screen_needs_no_scrolling_sideways(daemon, board, tmp_path):
    show(daemon, board, tmp_path)
    daemon.post("prompt_submit", "long", project_path="/src/" + "x" * 200, git_branch="y" * 300)
    expect(board.locator("#working li")).to_have_count(4)
    daemon.post("permission_asked", "waits", project_path="/src/" + "z" * 200)
    expect(board.locator("#waits li")).to_have_count(4)
    board.keyboard.press("w")
    expect(board.locator("#history table")).to_be_visible()
    board.keyboard.press("/")  # on a phone it shows the filter and the options
    for width in (320, 360, 414, 600, 768):
        board.set_viewport_size({"width": width, "height": 700})
        assert_fits(board, width)


def assert_fits(page, width):
    """Check that neither the board nor the details of its last running session need scrolling sideways."""

    def is_wide():
        return page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")

    assert not is_wide()
    shown = page.locator("#board li .project, #board li .status, #board li .age")
    for box in shown.evaluate_all("all => all.map((one) => one.getBoundingClientRect().toJSON())"):
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    page.locator("#working li").last.locator(".open").click()
    page.locator("#details details").evaluate("one => (one.open = true)")
    expect(page.locator("#details .events li").first).to_be_visible()
    assert not is_wide()
    assert not page.evaluate("(e => e.scrollWidth > e.clientWidth)(document.querySelector('#details .scroll'))")
    page.keyboard.press("Escape")
    expect(page.locator("#details")).to_be_hidden()


def test_light_and_dark_follow_the_browser(board):
    def brightness(colours):
        board.emulate_media(color_scheme=colours)
        back = board.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", back)[:3]))

    assert brightness("light") > 600
    assert brightness("dark") < 150


def test_a_screen_reader_gets_the_attention_and_finds_names(daemon, board):
    daemon.post("prompt_submit", project_path="/src/parser", git_branch="fuzz", ts=at(1))
    expect(row(board, "parser")).to_be_visible()
    daemon.post("permission_asked", project_path="/src/parser", ts=at(2))
    said = board.locator("[aria-live=polite]")
    expect(said).to_have_text("parser: awaiting approval")
    name = re.compile("awaiting approval.*parser.*fuzz")
    expect(board.get_by_role("region", name="Waits for you").get_by_role("button", name=name)).to_be_visible()
    expect(board.get_by_role("searchbox", name="Filter the sessions")).to_be_visible()
    expect(board.get_by_role("status")).to_have_text("live")
