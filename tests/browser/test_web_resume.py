"""The command that resumes a session: the web board copies it, and shows it."""

import pytest
from playwright.sync_api import expect
from support.browser import row

COMMAND = "cd '/p/a shop' && claude --resume s"


@pytest.fixture
def shop(daemon, board):
    """Return the board with one session whose host is known, and an empty clipboard."""
    board.context.grant_permissions(["clipboard-read", "clipboard-write"])
    board.evaluate("navigator.clipboard.writeText('')")
    daemon.post("permission_asked", project_path="/p/a shop", agent_program="claude-code", tool_name="Bash")
    expect(row(board, "a shop")).to_be_visible()
    yield board
    board.context.clear_permissions()


def copied(page):
    """Return the text in the clipboard."""
    return page.evaluate("navigator.clipboard.readText()")


def test_a_row_copies_the_command_and_shows_it(daemon, shop):
    row(shop, "a shop").get_by_role("button", name="Copy command to resume a shop").click()
    expect(shop.locator("#copied")).to_have_text(f"Copied: {COMMAND} It is still open: end it there first.")
    assert copied(shop) == COMMAND
    daemon.post("session_end", project_path="/p/a shop")
    expect(row(shop, "a shop")).to_have_count(0)
    shop.keyboard.press("c")
    row(shop, "a shop").locator(".open").focus()
    shop.keyboard.press("y")
    expect(shop.locator("#copied")).to_have_text(f"Copied: {COMMAND}")


def test_the_details_copy_it_too(shop):
    row(shop, "a shop").locator(".open").click()
    expect(shop.locator("#details dl")).to_contain_text(COMMAND)
    in_row = row(shop, "a shop").locator(".resume").get_attribute("title")
    assert shop.locator("#details .resume").get_attribute("title") == in_row != ""
    shop.locator("#details .resume").click()
    expect(shop.locator("#details .copied")).to_contain_text(COMMAND)
    assert copied(shop) == COMMAND
    shop.evaluate("navigator.clipboard.writeText('')")
    shop.keyboard.press("y")
    shop.wait_for_function("(wanted) => navigator.clipboard.readText().then((text) => text === wanted)", arg=COMMAND)


def test_the_details_of_a_session_that_has_closed_meanwhile_copy_it_too(daemon, shop):
    row(shop, "a shop").locator(".open").click()
    daemon.post("session_end", project_path="/p/a shop")
    expect(shop.locator("#details .status .words")).to_have_text("closed")
    shop.locator("#details .resume").click()
    expect(shop.locator("#details .copied")).to_have_text(f"Copied: {COMMAND}")
    assert copied(shop) == COMMAND


def test_without_a_known_command_there_is_no_button(daemon, board):
    daemon.post("permission_asked", project_path="/p/shop", agent_program="cursor")
    row(board, "shop").locator(".open").click()
    expect(board.locator("#details dl")).to_contain_text("/p/shop")
    assert board.locator(".resume:visible").count() == 0


def test_if_the_browser_does_not_copy_the_command_is_shown(shop):
    shop.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('refused')); }")
    row(shop, "a shop").get_by_role("button", name="Copy command to resume a shop").click()
    expect(shop.locator("#copied")).to_contain_text(f"The browser did not copy it. Copy it by hand: {COMMAND}")
