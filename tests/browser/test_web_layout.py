"""Where the web board puts things: what is on the first screen, and what is cut."""

import pytest
from playwright.sync_api import expect
from support.browser import at, row

PHONE, LAPTOP = {"width": 390, "height": 844}, {"width": 1440, "height": 900}
THEME = {
    "question": "Where should the choice of the theme be kept?",
    "choices": ["A cookie", "localStorage", "In the profile of the customer"],
}
# project: the last prompt, and what the session waits for
WAITS = {
    "checkout": (
        "Fix the race in refunds: lock per order id",
        "permission_asked",
        {"tool_name": "Bash", "tool_params": {"command": "git push --force-with-lease origin fix/race-in-refund"}},
    ),
    "shop": ("Dark mode for the product page", "tool_start", {"tool_name": "AskUserQuestion", "tool_params": THEME}),
    "billing": (
        "Move the invoices to the new schema",
        "tool_start",
        {"tool_name": "ExitPlanMode", "tool_params": {"plan": "1. Add the columns. 2. Copy in batches. 3. Compare."}},
    ),
    "docs": (
        "Mend the dead links in the handbook",
        "permission_asked",
        {"tool_name": "Write", "tool_params": {"file_path": "/p/docs/content/the-handbook/about/links.md"}},
    ),
    "search": (
        "Which store for the vectors?",
        "tool_start",
        {"tool_name": "AskUserQuestion", "tool_params": {"question": "May the index be built at night only?"}},
    ),
}


@pytest.fixture
def waiting(daemon, board):
    """Return the board with five sessions that wait."""
    for step, (project, (prompt, event, fields)) in enumerate(WAITS.items()):
        common = {"project_path": f"/p/{project}", "agent_program": "claude-code", "git_branch": "main"}
        daemon.post("prompt_submit", project, prompt=prompt, ts=at(2 * step), **common)
        daemon.post(event, project, ts=at(2 * step + 1), **fields, **common)
    expect(board.locator("#waits li")).to_have_count(len(WAITS))
    return board


def fail(daemon, project):
    """Let the API refuse a session's call."""
    error = 'API Error: 529 {"message":"Overloaded"}'
    daemon.post("stop_failure", project, error=error, project_path=f"/p/{project}", agent_program="claude-code")


def box(locator):
    """Return the edges of an element."""
    found = locator.bounding_box()
    return {**found, "right": found["x"] + found["width"], "bottom": found["y"] + found["height"]}


def is_cut(locator):
    """Return whether an element has more text than it shows."""
    return locator.evaluate("one => one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight")


def test_five_waits_and_what_they_ask_are_on_the_first_screen_of_a_phone(waiting):
    waiting.set_viewport_size(PHONE)
    for project in WAITS:
        asked = row(waiting, project).locator(".tool")
        assert box(asked)["bottom"] <= PHONE["height"], project
        assert not is_cut(asked), project
        age, headline = (box(row(waiting, project).locator(name)) for name in (".age", ".headline"))
        assert age["y"] == headline["y"], project


# Returns the words of an element that stand on more than one line.
BROKEN_WORDS = """(element) => {
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const broken = [];
  for (let text = texts.nextNode(); text; text = texts.nextNode())
    for (const { 0: word, index } of text.data.matchAll(/\\S+/g)) {
      const range = document.createRange();
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      if (new Set([...range.getClientRects()].map(({ top }) => top)).size > 1) broken.push(word);
    }
  return broken;
}"""


def test_a_command_breaks_between_its_words_on_a_phone_of_each_width(daemon, waiting):
    long = f"/p/{'deep-folder/' * 8}"
    command = {"tool_name": "Bash", "tool_params": {"command": f"rm --recursive --one-file-system {long}"}}
    daemon.post("permission_asked", "search", project_path="/p/search", **command)
    expect(row(waiting, "search").locator(".code")).to_contain_text(long)
    for width in range(320, 431, 10):
        waiting.set_viewport_size({**PHONE, "width": width})
        push, remove = (row(waiting, project).locator(".tool") for project in ("checkout", "search"))
        assert push.evaluate(BROKEN_WORDS) == [], width
        assert remove.evaluate(BROKEN_WORDS) == [long], width
        assert box(remove.locator(".code"))["right"] < box(row(waiting, "search"))["right"], width
    row(waiting, "checkout").locator(".open").click()
    waiting.locator("#details .resume").click()
    for width in range(320, 431, 10):
        waiting.set_viewport_size({**PHONE, "width": width})
        for shown in ("pre", "dd:has-text('--resume')", ".copied code"):
            assert waiting.locator("#details").locator(shown).evaluate(BROKEN_WORDS) == [], (width, shown)


def test_a_tool_and_its_file_stand_on_one_line_of_a_phone(waiting):
    waiting.set_viewport_size(PHONE)
    asked = row(waiting, "docs").locator(".tool")
    expect(asked).to_have_text("asks to use Write content/the-handbook/about/links.md")
    assert box(asked)["height"] < 40
    assert is_cut(asked.locator(".path"))  # on the left, see above


def test_the_filter_of_a_phone_opens_by_its_button_and_by_its_key(waiting):
    waiting.set_viewport_size(PHONE)
    find, filter_field = waiting.get_by_role("button", name="Filter and options"), waiting.locator("#filter")
    expect(filter_field).to_be_hidden()
    expect(waiting.locator("#help")).to_be_hidden()
    find.click()
    expect(find).to_have_attribute("aria-expanded", "true")
    expect(filter_field).to_be_focused()
    expect(waiting.locator("#help")).to_be_visible()
    waiting.get_by_role("button", name="Group by project").click()
    expect(waiting.locator("#board h2")).to_have_text([f"{project} 1" for project in WAITS])
    filter_field.focus()
    waiting.keyboard.type("billing")
    expect(waiting.locator("#board li")).to_have_count(1)
    find.click()
    expect(filter_field).to_be_hidden()
    expect(waiting.locator("#board li")).to_have_count(len(WAITS))
    waiting.keyboard.press("/")
    expect(filter_field).to_be_focused()
    waiting.keyboard.type("docs")
    expect(waiting.locator("#board li")).to_have_count(1)
    waiting.keyboard.press("Escape")
    expect(filter_field).to_be_hidden()
    expect(find).to_have_attribute("aria-expanded", "false")
    expect(waiting.locator("#board li")).to_have_count(len(WAITS))


def test_the_controls_of_the_head_are_in_reach_at_each_width_without_scrolling_sideways(daemon, waiting):
    fail(daemon, "checkout")
    daemon.post("stop", "done", project_path="/p/done")
    for width in (601, 700, 760, 761, 900, 901, 980):
        waiting.set_viewport_size({"width": width, "height": 600})
        for name in ("#filter", "#projects", "#help"):
            control = box(waiting.locator(name))
            assert 0 <= control["x"] < control["right"] <= width, (width, name)
        assert waiting.evaluate("document.documentElement.scrollWidth") == width
        waiting.get_by_role("button", name="Group by project").click()
        expect(waiting.get_by_role("region", name="checkout").locator("li")).to_have_count(1)
        waiting.get_by_role("button", name="Group by project").click()
        expect(waiting.locator("#waits h2")).to_have_text("Waits for you 5")


def test_a_choice_is_never_broken_and_a_long_one_is_cut(daemon, waiting):
    waiting.set_viewport_size(PHONE)
    choices = ["yes", "only if the customer has asked for it in the settings of the profile"]
    asked = {"tool_name": "AskUserQuestion", "tool_params": {"question": "Now?", "choices": choices}}
    daemon.post("tool_start", "long", project_path="/p/long", **asked)
    for project, cut in (("shop", [False, False, False]), ("long", [False, True])):
        pills = row(waiting, project).locator(".choice")
        expect(pills).to_have_count(len(cut))
        assert [box(pill)["height"] for pill in pills.all()] == [21] * len(cut)
        assert [is_cut(pill) for pill in pills.all()] == cut
        around = box(row(waiting, project).locator(".tool"))
        assert all(box(pill)["right"] <= around["right"] for pill in pills.all())
        tops = [box(pill)["y"] for pill in pills.all()]
        assert tops[-1] >= tops[0] + 21  # on a line of its own


def test_a_session_whose_call_was_refused_waits_like_the_others_with_a_mark_of_its_own(daemon, waiting):
    fail(daemon, "ranker")
    refused, other = row(waiting, "ranker"), row(waiting, "docs")
    expect(refused.locator(".tool")).to_have_text("waits for you; the API refused: Overloaded (529)")

    def colours(shown):
        found = "one => [getComputedStyle(one, '::before'), ...['.tool', '.sign'].map(name => "
        found += "getComputedStyle(one.querySelector(name)))].map(style => style.backgroundColor)"
        return shown.evaluate(found)

    assert colours(refused)[:2] == colours(other)[:2]
    assert colours(refused)[2] != colours(other)[2]


def test_a_laptop_shows_a_stuck_session_below_six_waits_and_three_finished_ones(daemon, waiting):
    waiting.set_viewport_size(LAPTOP)
    daemon.post("prompt_submit", "quiet", project_path="/p/quiet", agent_program="claude-code", prompt="Backfill July")
    expect(row(waiting, "quiet")).to_be_visible()
    daemon.make_older(700)
    fail(daemon, "ranker")  # it lets the daemon check all sessions soon
    for number in range(3):
        daemon.post("stop", f"done{number}", reply="All tests pass.", project_path=f"/p/done{number}")
    expect(waiting.locator("#finished li")).to_have_count(3)
    expect(waiting.locator("#stuck li")).to_have_count(1)
    assert box(waiting.locator("#stuck li"))["bottom"] <= LAPTOP["height"]
    assert box(row(waiting, "docs").locator(".tool"))["height"] < 33


def test_what_a_row_shows_ends_at_its_right_edge_and_nothing_covers_it(daemon, waiting):
    daemon.post("prompt_submit", "busy", project_path="/p/busy", agent_program="claude-code")
    todo = {"tool_name": "TodoWrite", "tool_params": {"todos_done": 2, "todos": 9}}
    for project in ("busy", "docs"):
        daemon.post("tool_call", project, project_path=f"/p/{project}", **todo)
        expect(row(waiting, project).locator(".todo")).to_be_visible()
    for size in (LAPTOP, {"width": 1080, "height": 640}):
        waiting.set_viewport_size(size)
        for project, last in (("docs", ".tool"), ("docs", ".resume"), ("busy", ".age")):
            whole = row(waiting, project)
            assert box(whole)["right"] - box(whole.locator(last))["right"] < 16, (size, project)
            whole.hover()
            hide, age, todo = (box(whole.locator(name)) for name in (".dismiss", ".age", ".todo"))
            assert todo["right"] <= hide["x"], (size, project)
            assert hide["right"] <= age["x"], (size, project)
        asks = row(waiting, "docs")
        assert box(asks.locator(".age"))["right"] <= box(asks.locator(".resume"))["x"]
        assert box(asks.locator(".resume"))["bottom"] <= box(asks.locator(".tool"))["y"]


def test_the_details_of_a_phone_have_their_title_on_one_line_and_number_the_choices(waiting):
    waiting.set_viewport_size(PHONE)
    row(waiting, "checkout").locator(".open").click()
    head = waiting.locator("#details > header")
    title, copy, close = (box(head.locator(name)) for name in ("h2", ".resume", ".close"))
    assert title["height"] < 40
    assert title["bottom"] <= copy["y"]
    assert close["right"] > PHONE["width"] - 20
    waiting.keyboard.press("Escape")
    row(waiting, "shop").locator(".open").click()
    choices = waiting.locator("#details .choices > li")
    expect(choices).to_have_count(3)
    style = "all => all.map(one => [getComputedStyle(one).display, getComputedStyle(one).listStyleType])"
    assert choices.evaluate_all(style) == [["list-item", "decimal"]] * 3
