"""The web board in a real browser, against the running daemon."""

import json
import os
import re
import time
from collections import Counter

import httpx
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from support.browser import at, load, row
from support.daemon import request, spooled, wait_until
from support.sessions import LAST_WORDS, post_statuses_of_hours, sessions

from tailhook.plates.display import FILTER_FIELDS

PHONE = {"width": 360, "height": 740}
HOSTILE = {
    "a tag": "<script>document.title='owned'</script>",
    "an image": "<img src=x onerror=document.title='owned'>",
    "a turned direction": "\u202egpj.exe\u2066",
    "a terminal's commands": "\x1b[31mred\x1b]0;owned\x07",
    "an entity": "&lt;b&gt;",
}


def rows(page, section="board"):
    """Return the projects that are shown, from the top.

    By textContent: innerText is empty for a row that was just moved, because of its `content-visibility: auto`.
    """
    return page.locator(f"#{section} li .project").all_text_contents()


def fill(daemon, folder):
    """Post the simulated sessions; again if the daemon checked one before all of its events were there.

    Such a check finds a session whose last event is minutes ago, and adds an event of its own.
    """
    with daemon.client() as client:
        while True:
            posted = sessions(folder)
            for event in posted:
                client.post("/events", json=event).raise_for_status()
            counts = Counter(event["session_id"] for event in posted)
            if all(len(client.get(f"/plates/{one}?events=99").json()["events"]) == counts[one] for one in counts):
                break
            for one in counts:
                client.delete(f"/plates/{one}").raise_for_status()


def show(daemon, board, folder):
    """Post the simulated sessions, and wait until the board has them all: a row that moves may miss a click."""
    fill(daemon, folder)
    expect(row(board, "tailhook").locator(".tool")).to_have_text("Edit docs/board.md")


def focused(page):
    """Return the project whose row has the focus."""
    return page.evaluate("document.activeElement.closest('li')?.querySelector('.project').textContent ?? ''")


# ---- the answers -------------------------------------------------------------


def test_every_answer_restricts_the_browser(daemon):
    for path in ("/", "/web/board.js", "/web/board.css", "/plates", "/health", "/nothing", "/stream"):
        for headers in ({"authorization": f"Bearer {daemon.token}"}, {}):
            with httpx.stream("GET", f"{daemon.base}{path}", headers=headers, verify=False) as answer:
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


def test_undo_is_offered_for_ten_seconds_and_a_hidden_plate_is_found_with_the_closed_ones(daemon, open_board):
    board = open_board(daemon)
    daemon.post("stop", "one", project_path="/one")
    expect(row(board, "one")).to_be_visible()
    board.clock.install(time="2026-01-01T00:00:00Z")
    board.clock.pause_at("2026-01-01T01:00:00Z")  # from here on, the page's time does not go on by itself
    row(board, "one").locator(".open").focus()
    board.keyboard.press("d")
    expect(board.locator("#undo")).to_be_visible()
    board.clock.run_for(9_900)
    expect(board.locator("#undo")).to_be_visible()
    board.clock.run_for(200)
    expect(board.locator("#undo")).to_be_hidden()
    board.keyboard.press("u")
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


def test_the_details_show_what_a_session_asks(daemon, board):
    command = "terraform apply -auto-approve -var region=eu-central-1 -target module.network"
    daemon.post("tool_start", "one", tool_name="Bash", tool_params={"command": command}, tool_use_id="a")
    daemon.post("permission_asked", "one", tool_name="Bash", tool_params={"command": command})
    row(board, "p").locator(".open").click()
    expect(board.locator("#details .asked")).to_have_text(f"asks to run Bash{command}")
    expect(board.locator(".message")).to_have_text("There is no message of the agent that can be read.")


HOSTILE_MARKDOWN = """# <img src=x onerror=document.title='owned'>

[run](javascript:document.title='owned') ![a](https://example.com/a.png) <https://example.com>

- **<script>document.title='owned'</script>**

| <b>a</b> | `</td><script>` |
|-|-|
| <svg onload=document.title='owned'> | \x1b[31m\u202e |

```"><img src=x>
</code></pre><script>document.title='owned'</script>
```

<style>body { display: none }</style>
"""


def test_the_whole_question_and_the_markdown_of_a_session_stay_text(daemon, board, tmp_path):
    asked = {
        "questions": [
            {
                "header": "<b>Store</b>",
                "question": HOSTILE["an image"],
                "multiSelect": True,
                "options": [{"label": one, "description": one} for one in HOSTILE.values()],
            },
            {"question": "And which second one?", "options": [{"label": "none"}]},
        ]
    }
    transcript = tmp_path / "t.jsonl"
    use = {"type": "tool_use", "id": "a", "name": "AskUserQuestion", "input": asked}
    blocks = [{"type": "text", "text": HOSTILE_MARKDOWN}, use]
    record = {"type": "assistant", "message": {"role": "assistant", "content": blocks}}
    transcript.write_text(json.dumps(record) + "\n")
    fields = {"tool_name": "AskUserQuestion", "tool_use_id": "a", "transcript_path": str(transcript)}
    daemon.post("tool_start", tool_params={"question": "cut"}, **fields)
    requested = []
    board.on("request", lambda request: requested.append(request.url))
    row(board, "p").click()
    expect(board.locator(".asked .question")).to_have_count(2)
    expect(board.locator(".asked .choices li")).to_have_count(6)
    expect(board.locator(".asked .question").first).to_contain_text("several may be chosen")
    expect(board.locator(".asked .label").first).to_have_text(HOSTILE["a tag"])
    expect(board.locator(".message h4")).to_have_text("<img src=x onerror=document.title='owned'>")
    expect(board.locator(".message li")).to_have_text("•<script>document.title='owned'</script>")
    expect(board.locator(".message")).to_contain_text(["run ", "javascript:document.title='owned')"][0])
    made = board.locator(
        "#details :is(img, script, svg:not(figure svg), b, a, style, iframe, [style], [onerror], [href])"
    )
    assert made.count() == 0
    assert board.title() == "(1) tailhook"
    assert [url for url in requested if not url.startswith(f"{daemon.base}/")] == []
    for colours in ("light", "dark"):
        board.emulate_media(color_scheme=colours)
        found = Axe().run(board)
        assert found.violations_count == 0, found.generate_report()


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


# ---- details -----------------------------------------------------------------


def test_details_show_events_last_words_and_the_timeline_and_nothing_comes_from_elsewhere(daemon, board, tmp_path):
    asked = []

    def keep(request):
        asked.append(request.url)

    board.on("request", keep)
    load(board, daemon)
    show(daemon, board, tmp_path)
    row(board, "payments").click()
    details = board.get_by_role("dialog", name="payments")
    expect(details.locator(".message p")).to_have_text(LAST_WORDS.partition("\n")[0].replace("**", ""))
    expect(details.locator(".message :is(th, td)")).to_have_count(9)
    expect(details.locator(".message pre code")).to_have_text(re.compile(r"^with orders.lock"))
    expect(details.locator(".message li")).to_have_text(["1.All 214 tests pass.", re.compile("^2.I would like")])
    events = details.locator(".events li")
    expect(events).to_have_count(27)
    expect(events.nth(1)).to_contain_text("git push --force-with-lease")
    expect(events.first).to_be_hidden()  # folded
    details.get_by_text("Events 27").click()
    expect(events.first).to_be_visible()
    assert events.first.inner_text().split("\n")[2] == "permission asked"
    tools = details.locator(".tools li")
    expect(tools).to_have_count(11)
    expect(tools.first).to_have_text(re.compile(r"●\d\d:\d\d:\d\d5m( \d+s)?Bashgit push --force-with-lease"))
    expect(tools.filter(has_text="Grep").locator(".error")).to_have_text("no such folder: doc")
    expect(tools.filter(has_text="Grep")).to_contain_text("2m")
    picture = details.get_by_role("img", name=re.compile("^The agent worked 30m 30s, waited for an answer 5m, "))
    expect(picture).to_be_visible()
    assert picture.locator(".bar.awaiting_approval").count() == 2
    assert picture.locator(".bar.awaiting_input").count() == 1
    lanes = picture.locator(".name").all_text_contents()
    assert lanes == ["agent", "sub-agents", "", "you"]
    assert picture.locator(".bar.sub.tool title").first.text_content().startswith(("Grep, 2m", "Write, 5m"))
    assert picture.locator(".bar.tool title").first.text_content().startswith("Read, 1m from ")
    expect(details.locator("figcaption")).to_contain_text("waited for approval 10m")
    assert_bars(board)
    board.remove_listener("request", keep)
    assert len(asked) > 5
    assert [url for url in asked if not url.startswith(f"{daemon.base}/")] == []


def assert_bars(board):
    """Check that the timeline's bars stand where they belong."""
    # All of it at one moment: the picture is drawn again as time goes on.
    places = board.evaluate(
        """() => {
            const svg = document.querySelector("#details svg");
            const place = one => one.getBoundingClientRect().toJSON();
            const all = name => [name, [...(name ? svg.querySelectorAll(name) : [svg])].map(place)];
            return Object.fromEntries(["", ".bar rect", ".bar.running rect", ".bar.awaiting_input rect"].map(all));
        }"""
    )
    (whole,), bars = places[""], places[".bar rect"]
    assert all(bar["x"] >= whole["x"] and bar["x"] + bar["width"] <= whole["x"] + whole["width"] + 1 for bar in bars)
    agent, waiting = places[".bar.running rect"], places[".bar.awaiting_input rect"]
    assert agent[0]["y"] < waiting[0]["y"]
    left, right = waiting[0]["x"], waiting[0]["x"] + waiting[0]["width"]
    before = max((bar for bar in agent if bar["x"] < left), key=lambda bar: bar["x"])
    after = min((bar for bar in agent if bar["x"] > left), key=lambda bar: bar["x"])
    assert abs(before["x"] + before["width"] - left) < 2
    assert abs(after["x"] - right) < 2
    assert len({bar["y"] for bar in bars}) == 4  # the agent's lane, those of two sub-agents, and the person's


def test_open_details_follow_the_session(daemon, board):
    daemon.post("prompt_submit", ts=at(1))
    row(board, "p").click()
    details = board.get_by_role("dialog")
    expect(details.locator(".events li")).to_have_count(1)
    daemon.post("permission_asked", ts=at(2))
    expect(details.locator(".status .words")).to_have_text("awaiting approval")
    expect(details.locator(".events li")).to_have_count(2)
    details.get_by_role("button", name="Hide").click()
    expect(board.get_by_role("dialog")).to_have_count(0)
    assert hidden(daemon) == {"s"}


def test_text_of_a_session_stays_text(daemon, board, tmp_path):
    for text in HOSTILE.values():
        assert_text(daemon, board, text, tmp_path)
        board.keyboard.press("Escape")
        daemon.ask("DELETE", "/plates/s")
        expect(board.locator("#board li")).to_have_count(0)


def assert_text(daemon, board, text, tmp_path):
    """Check that the board shows this text of a session, and that it acts on nothing."""
    transcript = tmp_path / "t.jsonl"
    record = {"type": "assistant", "message": {"role": "assistant", "content": text}}
    transcript.write_text(json.dumps(record) + "\n")
    os.utime(transcript, (0, 0))  # else it goes on after the stop, and the health check ends the error
    daemon.post(
        "tool_start",
        tool_name=text,
        git_branch=text,
        project_path=f"/src/{text.replace('/', '')}",
        tool_params={"command": text},
        transcript_path=str(transcript),
        ts=at(1),
    )
    daemon.post("stop", error=text, project_path=f"/src/{text.replace('/', '')}", ts=at(2))
    shown = board.locator("#board li").first
    expect(shown.locator(".status")).to_have_text("error")
    shown.click()
    details = board.get_by_role("dialog")
    expect(details.locator(".events li")).to_have_count(2)
    kept = re.sub(r"[\x00-\x1f\u2028-\u202e\u2066-\u2069]", "\ufffd", text)
    expect(shown.locator(".branch")).to_have_text(kept)
    expect(details.locator(".message")).to_have_text(kept)
    expect(details.locator(".events .tool").last).to_have_text(kept)
    whole = board.locator("body").text_content()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", whole)
    assert board.title() == "(1) tailhook"
    assert board.locator("img, #board script, #details script, #board b").count() == 0


# ---- how it looks, also to people with a disability --------------------------


def test_axe_finds_nothing_in_light_and_dark_colours_on_a_phone_and_on_a_desktop(daemon, board, tmp_path):
    board.emulate_media(reduced_motion="reduce")
    show(daemon, board, tmp_path)
    board.keyboard.press("c")
    expect(row(board, "old-api")).to_be_visible()
    assert_accessible(board)
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
