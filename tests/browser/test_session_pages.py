"""The pages of `tailhook explain` and `tailhook anatomy` in a real browser: light and dark, wide and narrow."""

import json
import runpy
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from support.host import tailhook

EXAMPLE = Path(__file__).parents[2] / "examples" / "session.py"
HOSTILE = "</style></svg><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
WIDTHS = {"wide": 1280, "middle": 900, "narrow": 360}
COLOURS = {"light": "rgb(246, 247, 248)", "dark": "rgb(16, 19, 23)"}
# a page has the same colours at each width
LOOKS = [*((width, "light") for width in WIDTHS), ("narrow", "dark")]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the pages of the made-up session with hostile words, by the command's name."""
    folder = tmp_path_factory.mktemp("pages")
    transcript = folder / "session.jsonl"
    lines = list(runpy.run_path(str(EXAMPLE))["make_session"]())
    last = json.loads(lines[-1])
    last["message"]["content"][0]["text"] += f"\n{HOSTILE} {'x' * 500}\n\n`{HOSTILE}`\n"
    hostile = {"type": HOSTILE, "timestamp": "2026-03-02T11:00:00Z"}
    transcript.write_text("".join([*lines, *(f"{json.dumps(record)}\n" for record in (last, hostile))]))
    for words in (("explain", "--html"), ("anatomy", "-o")):
        done = tailhook(words[0], str(transcript), words[1], str(folder / f"{words[0]}.html"), env={}, cwd=folder)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def page_and_faults(browser):
    """Yield a page that the module's tests share, and the list of its log lines and of its requests."""
    context = browser.new_context(viewport={"width": WIDTHS["wide"], "height": 800}, color_scheme="light")
    page, faults = context.new_page(), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text))
    page.on("request", lambda request: faults.append(request.url) if not request.url.startswith("file:") else None)
    yield page, faults
    context.close()


@pytest.fixture
def open_page(page_and_faults, pages):
    """Call it with a page's name: the open page. A log line or a request fails the test."""
    page, faults = page_and_faults
    faults.clear()

    def open_one(name):
        page.goto((pages / f"{name}.html").as_uri())
        return page

    yield open_one
    assert faults == []


@pytest.mark.parametrize("name", ["explain", "anatomy"])
def test_a_page_fits_its_screen_and_has_no_fault_of_accessibility(open_page, name):
    page = open_page(name)
    assert page.title() in ("The newest message of session.jsonl", "The anatomy of session.jsonl")
    for width, colours in LOOKS:
        look(page, width, colours)
        assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width], width
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == COLOURS[colours]
        found = Axe().run(page)
        assert found.violations_count == 0, (width, colours, found.generate_report())
    assert page.title() in ("The newest message of session.jsonl", "The anatomy of session.jsonl")


def look(page, width, colours="light"):
    """Show a page at a width and in colours."""
    page.set_viewport_size({"width": WIDTHS[width], "height": 800})
    page.emulate_media(color_scheme=colours)


def test_one_picture_is_seen_and_none_of_its_labels_overlap(open_page):
    page = open_page("anatomy")
    for width in WIDTHS:
        look(page, width)
        assert_one_picture(page, width)


def assert_one_picture(page, width):
    """Check that the picture for a width is seen, and no other, and that its labels do not overlap."""
    seen = [one.get_attribute("class") for one in page.locator("svg").all() if one.is_visible()]
    assert seen == [f"anatomy {width}"]
    boxes = page.evaluate(
        """name => [...document.querySelectorAll(`svg.${name} text`)].map(one => {
            const box = one.getBoundingClientRect();
            return [one.textContent, box.left, box.top, box.right, box.bottom];
        })""",
        width,
    )
    overlapping = [
        (one[0], other[0])
        for place, one in enumerate(boxes)
        for other in boxes[:place]
        if one[1] < other[3] - 0.5 and other[1] < one[3] - 0.5 and one[2] < other[4] - 3 and other[2] < one[4] - 3
    ]
    assert overlapping == []


def test_a_mark_leads_to_its_reason(open_page):
    page = open_page("explain")
    mark = page.locator("mark.counts", has_text="<loop-done>").first
    note = page.locator(f"#{mark.get_attribute('aria-describedby')}")
    assert "signal COMPLETE counts: alone on its line, outside of code" in note.inner_text()
    assert page.locator("code mark, mark code").count() >= 2
