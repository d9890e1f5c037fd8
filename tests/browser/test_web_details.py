"""The details of a session on the web board, in a real browser."""

import json
import os
import re

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from support.browser import answered, at, load, row, show
from support.daemon import wait_until
from support.host import assistant
from support.sessions import LAST_WORDS
from support.tool_secret import ask_to_run, shows_secret

HOSTILE = {
    "a tag": "<script>document.title='owned'</script>",
    "an image": "<img src=x onerror=document.title='owned'>",
    "a turned direction": "\u202egpj.exe\u2066",
    "a terminal's commands": "\x1b[31mred\x1b]0;owned\x07",
    "an entity": "&lt;b&gt;",
}
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


def test_the_details_show_what_a_session_asks(daemon, board):
    command = "terraform apply -auto-approve -var region=eu-central-1 -target module.network"
    daemon.post("tool_start", "one", tool_name="Bash", tool_params={"command": command}, tool_use_id="a")
    daemon.post("permission_asked", "one", tool_name="Bash", tool_params={"command": command})
    row(board, "p").locator(".open").click()
    expect(board.locator("#details .asked")).to_have_text(f"asks to run {command}")
    expect(board.locator(".message")).to_have_text("There is no message of the agent that can be read.")


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
    assert daemon.plates()["s"]["hidden"]


def test_text_of_a_session_stays_text(daemon, board, tmp_path):
    for text in HOSTILE.values():
        assert_text(daemon, board, text, tmp_path)
        board.keyboard.press("Escape")
        daemon.ask("DELETE", "/plates/s")
        expect(board.locator("#board li")).to_have_count(0)


def test_a_secret_in_a_command_that_a_hook_reports_is_masked_in_the_row_and_in_the_details(daemon, board, cold_argv):
    ask_to_run(daemon, [*cold_argv[:-1], "plates"])
    masked = "curl -u me:[secret] https://api.example.org/"
    shown = board.locator("#board li")
    expect(shown.locator(".tool")).to_contain_text(masked)
    shown.click()
    details = board.get_by_role("dialog")
    expect(details.locator(".asked")).to_contain_text("mysql -u root -p[secret] shop")
    expect(details.locator(".tools")).to_contain_text("denied: [secret]")
    expect(details.locator(".events li")).to_have_count(5)
    assert not shows_secret(board.content())


def test_the_details_show_the_folder_to_which_an_agent_went_beside_its_project(daemon, board):
    daemon.post("prompt_submit", project_path="/p/shop", prompt="Empty the cart")
    daemon.post("tool_start", project_path="/p/shop", folder="/p/shop/src/cart", tool_name="Read")
    row(board, "shop").locator(".open").click()
    facts = board.get_by_role("dialog").locator("dl > div")
    expect(facts.filter(has_text="Project")).to_have_text("Project/p/shop")
    expect(facts.filter(has_text="Folder")).to_have_text("Folder/p/shop/src/cart")


def test_details_that_come_late_do_not_replace_newer_ones(daemon, board):
    daemon.post("prompt_submit", "s", project_path="/p")
    expect(row(board, "p")).to_be_visible()
    held = []

    def hold(route):
        held.append((route, route.fetch()))

    board.route("**/plates/s?*", hold, times=1)
    row(board, "p").click()
    wait_until(lambda: board.evaluate("true") and held)  # a request is seen only while the page is asked
    daemon.post("tool_start", "s", project_path="/p", tool_name="Read", tool_params={"file_path": "/p/newer.py"})
    expect(board.locator("#details .events li")).to_have_count(2)
    ((route, answer),) = held
    with answered(board, "**/plates/s?*"):
        route.fulfill(response=answer)
    assert board.locator("#details .events li").count() == 2


def test_the_details_of_a_session_that_is_deleted_show_that_and_stay(daemon, open_board):
    board = open_board(daemon)
    daemon.post("permission_asked", project_path="/docs", agent_program="claude-code", tool_name="Bash")
    row(board, "docs").locator(".open").click()
    expect(board.locator("#details .asked")).to_be_visible()
    daemon.ask("DELETE", "/plates/s")
    gone = "not on the board any more; last: awaiting approval"
    expect(board.locator("#details .status .words")).to_have_text(gone)
    expect(board.locator("#details .asked")).to_be_hidden()
    expect(board.locator("#details .dismiss")).to_be_hidden()
    board.locator("#details .resume").click()
    expect(board.locator("#details .copied")).to_contain_text("claude --resume s")
    asked = []
    board.on("request", lambda request: asked.append(request.method))
    board.keyboard.press("d")
    daemon.post("prompt_submit", project_path="/docs")
    expect(board.locator("#details .status .words")).to_have_text("running")
    expect(board.locator("#details .dismiss")).to_be_visible()
    assert "PATCH" not in asked
    assert all("404 (Not Found)" in fault for fault in open_board.faults)
    open_board.faults.clear()


def test_the_details_show_that_a_session_closed_while_the_daemon_was_away(own, open_board):
    own.start().post("prompt_submit", project_path="/docs")
    board = open_board(own)
    row(board, "docs").locator(".open").click()
    expect(board.locator("#details .status .words")).to_have_text("running")
    own.stop()
    own.start("--port", own.base.rpartition(":")[2])
    expect(board.locator("#connection")).to_have_text("signed out")
    own.post("session_end", project_path="/docs")
    board.evaluate("link => { location.href = link; }", own.link)
    expect(board.locator("#details .status .words")).to_have_text("closed")
    board.close()
    assert all("401 (Unauthorized)" in fault for fault in open_board.faults)
    open_board.faults.clear()


def test_details_that_could_not_be_loaded_are_loaded_once_the_daemon_answers(daemon, board):
    daemon.post("stop", "s", project_path="/docs")
    expect(row(board, "docs")).to_be_visible()
    board.route("**/plates/s?*", lambda route: route.abort("connectionrefused"), times=1)
    row(board, "docs").locator(".open").click()
    expect(board.locator("#details .message")).to_contain_text("The details could not be loaded")
    expect(board.locator("#details .message")).to_have_text("There is no message of the agent that can be read.")
    expect(board.locator("#details .events li")).to_have_count(1)


def test_the_tokens_and_the_name_in_open_details_are_the_newest(daemon, board, tmp_path):
    transcript = tmp_path / "s.jsonl"
    transcript.write_text(response_line(1))
    daemon.post("stop", "s", project_path="/one/docs", transcript_path=str(transcript))
    row(board, "docs").locator(".open").click()
    facts = board.locator("#details dl")
    expect(facts).to_contain_text("Tokens12 tokens: 7 input; 5 output")
    with transcript.open("a") as file:
        file.write(response_line(2))  # the context is as full as before
    expect(facts).to_contain_text("Tokens24 tokens: 14 input; 10 output")
    daemon.post("stop", "other", project_path="/two/docs")
    expect(board.locator("#details-title")).to_have_text("one/docs")


def response_line(number):
    """Return a record of a response of Claude Code."""
    one = {**assistant("Done.", id=f"m{number}"), "sessionId": "s"}
    one["message"]["usage"] = {"input_tokens": 7, "output_tokens": 5}
    return json.dumps(one) + "\n"
