"""The groups of the web board: counters, folded rows, seen sessions, and rows in their places."""

import json
import re
import time

import pytest
from playwright.sync_api import expect
from support.browser import answered, at, row
from support.daemon import spooled, wait_until
from support.host import assistant

HOUR_MS = 3_600_000
ASKED = {"tool_name": "AskUserQuestion", "tool_params": {"question": "Which one?", "choices": ["red", "blue"]}}


def shown(page):
    """Return the projects that are shown, from the top."""
    return page.locator("#board li .project").all_text_contents()


def test_a_row_shows_what_its_session_asks_and_has_done(daemon, board):
    daemon.post("tool_start", "asks", **ASKED, project_path="/p/asks")
    daemon.post(
        "permission_asked", "runs", tool_name="Bash", tool_params={"command": "make all"}, project_path="/p/runs"
    )
    daemon.post(
        "tool_start", "plan", tool_name="ExitPlanMode", tool_params={"plan": "Two steps"}, project_path="/p/plan"
    )
    daemon.post("stop_failure", "fails", error='API Error: 529 {"message":"Overloaded"}', project_path="/p/fails")
    daemon.post("prompt_submit", "done", project_path="/p/done", ts=at(1000))
    daemon.post("stop", "done", reply="All tests pass.", project_path="/p/done", ts=at(61_000))
    daemon.post("prompt_submit", "busy", project_path="/p/busy")
    daemon.post(
        "tool_start", "busy", tool_name="Edit", tool_params={"file_path": "/p/busy/a.py"}, project_path="/p/busy"
    )
    daemon.post("subagent_start", "busy", agent_id="a", project_path="/p/busy", transcript_path="/t")
    for project, words in {
        "asks": "Which one? 1 red 2 blue",
        "runs": "asks to run make all",
        "plan": "shows a plan Two steps",
        "fails": "waits for you; the API refused: Overloaded (529)",
        "done": "All tests pass.",
        "busy": "Edit a.py",
    }.items():
        expect(row(board, project).locator(".tool")).to_have_text(words)
    expect(row(board, "asks").locator(".choice kbd")).to_have_text(["1", "2"])
    expect(row(board, "done").locator(".worked")).to_have_text("worked 1m")
    expect(row(board, "done").locator(".age")).to_have_text(re.compile(r"^\d+[smhd] ago$"))
    expect(row(board, "busy").locator(".agents")).to_have_text("1 sub-agent")


def test_a_row_shows_how_full_the_context_is(daemon, board, tmp_path):
    transcript = tmp_path / "t.jsonl"
    info = {"last_token_usage": {"total_tokens": 129_200}, "model_context_window": 258_400}
    counted = {"type": "event_msg", "payload": {"type": "token_count", "info": info}}
    meta = {"type": "session_meta", "payload": {"id": "s"}}
    transcript.write_text("".join(f"{json.dumps(record)}\n" for record in (meta, counted)))
    daemon.spool(spooled(1, event_type="prompt_submit", ts=at(0), mono=None, transcript_path=str(transcript)))
    expect(row(board, "p").locator(".context")).to_have_text("50 % context")


def test_a_row_shows_how_many_tokens_the_session_has_used(daemon, board, tmp_path):
    transcript = tmp_path / "t.jsonl"

    def respond(number, read):
        one = {**assistant("Done.", id=f"m{number}"), "sessionId": "s"}
        one["message"]["usage"] = {"input_tokens": 7, "output_tokens": 5000, "cache_read_input_tokens": read}
        with transcript.open("a") as file:
            file.write(json.dumps(one) + "\n")

    respond(1, 1_200_000)
    daemon.spool(spooled(1, event_type="prompt_submit", ts=at(0), mono=None, transcript_path=str(transcript)))
    tokens = row(board, "p").locator(".tokens")
    expect(tokens).to_have_text("1.2M tokens")
    respond(2, 300_000)
    expect(tokens).to_have_text("1.5M tokens")
    board.set_viewport_size({"width": 1000, "height": 700})
    expect(tokens).to_be_hidden()
    row(board, "p").click()
    words = "1.5M tokens: 1.5M input, 1.5M of it from a cache; 10k output"
    expect(board.locator("#details dl")).to_contain_text(words)


def test_the_counters_show_how_many_there_are_and_choose_what_is_shown(daemon, board):
    daemon.post("permission_asked", "waits", project_path="/p/waits")
    for number in range(2):
        daemon.post("stop", f"done{number}", project_path=f"/p/done{number}")
    daemon.post("prompt_submit", "busy", project_path="/p/busy")
    counters = board.locator("#counts button")
    expect(counters).to_have_text(["1 waits for you", "2 finished", "0 stuck", "1 working"])
    counters.nth(1).click()
    expect(board.locator("#board li")).to_have_count(2)
    assert set(shown(board)) == {"done0", "done1"}
    expect(counters.nth(1)).to_have_attribute("aria-pressed", "true")
    counters.nth(2).click()
    counters.nth(1).click()
    expect(board.get_by_text("No session is in the chosen groups.")).to_be_visible()
    counters.nth(2).click()
    expect(board.locator("#board li")).to_have_count(4)


def test_the_icon_and_the_title_show_how_many_wait(daemon, board):
    icon = board.locator("link[rel=icon]")
    for number in range(11):
        daemon.post("permission_asked", f"s{number}", project_path=f"/p/{number}")
    expect(board).to_have_title("(11) tailhook")
    expect(icon).to_have_attribute("href", re.compile("^data:image/png"))
    for number in range(11):
        daemon.post("prompt_submit", f"s{number}", project_path=f"/p/{number}")
    expect(board).to_have_title("tailhook")
    expect(icon).to_have_attribute("href", "/web/icon.svg")


def test_long_waits_and_the_eleventh_session_at_rest_fold_into_their_headings(daemon, board):
    now = time.time_ns() // 1_000_000
    daemon.post("permission_asked", "new", project_path="/p/new")
    daemon.post("permission_asked", "old", project_path="/p/old", ts=now - 9 * HOUR_MS)
    for number in range(12):
        daemon.post("session_start", f"s{number}", source="startup", project_path=f"/p/s{number}")
        daemon.post("turn_ended", f"s{number}", project_path=f"/p/s{number}")
    expect(board.locator("#rest li")).to_have_count(10)
    expect(board.locator("#rest h2 .count")).to_have_text("12")
    expect(board.locator("#waits li")).to_have_count(1)
    expect(board.locator("#counts button").first).to_have_text("2 wait for you")
    board.get_by_role("button", name="1 older than 8 h").click()
    expect(board.locator("#waits li")).to_have_count(2)
    more = board.get_by_role("button", name="2 more")
    expect(more).to_have_attribute("aria-expanded", "false")
    more.focus()
    board.keyboard.press("Enter")
    expect(board.locator("#rest li")).to_have_count(12)
    expect(more).to_be_focused()
    expect(more).to_have_attribute("aria-expanded", "true")
    board.keyboard.press("Enter")
    expect(board.locator("#rest li")).to_have_count(10)


def test_the_sessions_are_grouped_by_project_when_asked_for(daemon, board):
    daemon.post("permission_asked", "one", project_path="/p/shop")
    daemon.post("prompt_submit", "two", project_path="/p/docs")
    daemon.post("prompt_submit", "three", project_path="/p/shop")
    expect(board.locator("#board li")).to_have_count(3)
    board.keyboard.press("g")
    expect(board.locator("#board h2")).to_have_text(["shop 2", "docs 1"])
    assert shown(board) == ["shop", "shop", "docs"]
    daemon.post("prompt_submit", "four", project_path="/p/テスト")
    daemon.post("prompt_submit", "five", project_path="/p/ドキュ")
    for name in ("テスト", "ドキュ"):  # each heading names its own section
        expect(board.get_by_role("region", name=name).locator("li")).to_have_count(1)
    expect(board.locator("#projects")).to_have_attribute("aria-pressed", "true")
    board.locator("#projects").click()
    expect(board.locator("#working h2")).to_have_text("Working 4")


def test_opening_the_details_marks_a_finished_session_as_seen_on_all_boards(daemon, board, open_board):
    other = open_board(daemon)
    daemon.post("stop", "one", project_path="/p/one")
    for page in (board, other):
        expect(page.locator("#finished li")).to_have_count(1)
    row(board, "one").locator(".open").click()
    for page in (board, other):
        expect(page.locator("#finished li")).to_have_count(0)
        expect(page.locator("#rest li")).to_have_count(1)
    assert not daemon.plates()["one"]["unseen"]


def test_rows_keep_still_while_the_pointer_moves_over_them(daemon, open_board):
    board = open_board(daemon)
    daemon.post("permission_asked", "first", project_path="/p/first", ts=at(1000))
    daemon.post("permission_asked", "second", project_path="/p/second", ts=at(2000))
    expect(board.locator("#board li")).to_have_count(2)
    box = row(board, "second").bounding_box()
    board.clock.install(time="2026-01-01T00:00:00Z")
    board.clock.pause_at("2026-01-01T01:00:00Z")  # from here on, the page's time does not go on by itself
    board.mouse.move(box["x"] + 50, box["y"] + 10)
    board.mouse.move(box["x"] + 60, box["y"] + 10)
    daemon.post("permission_asked", "third", project_path="/p/third", ts=at(-60_000))
    expect(board.locator("#said")).to_have_text("third: awaiting approval")
    board.clock.run_for(100)
    expect(board.locator("#news")).to_have_text("1 new ↑")
    assert shown(board) == ["first", "second"]
    assert row(board, "second").bounding_box() == box
    board.clock.run_for(1600)
    wait_until(lambda: shown(board) == ["third", "first", "second"])
    expect(board.locator("#news")).to_be_hidden()


@pytest.mark.parametrize("width", [360, 1280])
def test_rows_keep_still_under_the_pointer_although_the_daemon_goes_away(own, open_board, width):
    own.start().post("permission_asked", "first", project_path="/p/first")
    board = open_board(own, viewport={"width": width, "height": 500})
    box = row(board, "first").bounding_box()
    board.clock.install(time="2026-01-01T00:00:00Z")
    board.clock.pause_at("2026-01-01T01:00:00Z")
    board.mouse.move(box["x"] + 50, box["y"] + 10)
    board.mouse.move(box["x"] + 60, box["y"] + 10)
    own.stop()
    expect(board.locator("#connection")).to_have_text("away")
    board.clock.run_for(100)
    assert row(board, "first").bounding_box() == box
    expect(board.locator("#away")).to_be_hidden()
    board.clock.run_for(1600)
    expect(board.locator("#away")).to_be_visible()
    assert row(board, "first").bounding_box()["y"] > box["y"]


def test_a_row_that_is_hidden_by_a_click_shows_that_at_once_and_the_others_keep_still(daemon, open_board):
    board = open_board(daemon)
    for step, name in enumerate(("first", "second", "third")):
        daemon.post("permission_asked", name, project_path=f"/p/{name}", ts=at(step))
    expect(board.locator("#board li")).to_have_count(3)
    board.clock.install(time="2026-01-01T00:00:00Z")
    board.clock.pause_at("2026-01-01T01:00:00Z")
    row(board, "first").hover()
    before = row(board, "second").bounding_box()
    with answered(board, "**/plates/first"):
        board.get_by_role("button", name="Hide first").click()
    expect(board.locator("#undo")).to_contain_text("Hidden: first")
    board.clock.run_for(100)
    expect(row(board, "first").locator(".tool")).to_have_text("hidden")
    assert row(board, "second").bounding_box() == before
    board.clock.run_for(1600)
    expect(row(board, "first")).to_have_count(0)


def test_what_is_new_is_shown_at_once_when_asked_for(daemon, open_board):
    board = open_board(daemon)
    daemon.post("permission_asked", "first", project_path="/p/first", ts=at(1000))
    expect(board.locator("#board li")).to_have_count(1)
    box = row(board, "first").bounding_box()
    board.clock.install(time="2026-01-01T00:00:00Z")
    board.clock.pause_at("2026-01-01T01:00:00Z")
    board.mouse.move(box["x"] + 50, box["y"] + 10)
    board.mouse.move(box["x"] + 60, box["y"] + 10)
    daemon.post("permission_asked", "second", project_path="/p/second", ts=at(-60_000))
    expect(board.locator("#said")).to_have_text("second: awaiting approval")
    board.clock.run_for(100)
    board.locator("#news").click()
    assert shown(board) == ["second", "first"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_a_person_must_do_has_a_high_contrast(daemon, board, scheme):
    daemon.post("permission_asked", "runs", tool_name="Bash", tool_params={"command": "make"}, project_path="/p/runs")
    daemon.post("stop_failure", "fails", error="529 overloaded", project_path="/p/fails")
    board.emulate_media(color_scheme=scheme)
    for project in ("runs", "fails"):
        key = row(board, project).locator(".tool .key")
        expect(key).to_be_visible()
        colours = key.evaluate(
            "e => [e, e.parentElement].map((one, at) => getComputedStyle(one)[at ? 'backgroundColor' : 'color'])"
        )
        light, dark = sorted(map(luminance, colours), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 7, colours


def luminance(colour):
    """Return the relative luminance of WCAG 2 of a colour as CSS computes it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_page_that_stays_open_has_the_heading_of_the_daemons_next_start(own, open_board):
    config = own.home / ".config/tailhook/config.json"
    config.parent.mkdir(parents=True)
    config.write_text('{"plates": {"stuck_after": 1}}')
    own.start().post("prompt_submit", project_path="/quiet")
    board = open_board(own)
    expect(board.locator("#stuck .note")).to_have_text("nothing happened for 1 s")
    own.stop()
    config.write_text('{"plates": {"stuck_after": 2}}')
    own.start("--port", own.base.rpartition(":")[2])
    expect(board.locator("#connection")).to_have_text("signed out")
    board.evaluate("link => { location.href = link; }", own.link)
    expect(board.locator("#stuck .note")).to_have_text("nothing happened for 2 s")
    board.close()
    assert all("401 (Unauthorized)" in fault for fault in open_board.faults)
    open_board.faults.clear()
