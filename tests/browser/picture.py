"""Makes the pictures of the web board: `make pictures`, or `python tests/browser/picture.py FOLDER [NAME…]`."""

import sqlite3
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from playwright.sync_api import sync_playwright
from support.browser import launch
from support.daemon import daemon_in
from support.sessions import sessions

DESKTOP, PHONE = {"width": 1080, "height": 640}, {"width": 390, "height": 780}
# name: colours, size, whether details are open
PICTURES = {
    "board-web": ("light", DESKTOP, False),
    "board-web-dark": ("dark", DESKTOP, False),
    "board-web-details": ("light", DESKTOP, True),
    "board-web-details-dark": ("dark", DESKTOP, True),
    "phone": ("light", PHONE, False),
    "phone-dark": ("dark", PHONE, False),
    "phone-details": ("light", PHONE, True),
}


def main(folder: str, *names: str) -> None:
    """Make those pictures, all when none is named."""
    with tempfile.TemporaryDirectory() as home, daemon_in(Path(home)) as daemon, sync_playwright() as playwright:
        daemon.start()
        with daemon.client() as client:
            for event in sessions(Path(home)):
                client.post("/events", json=event).raise_for_status()
        with sqlite3.connect(daemon.state / "plates.db") as database:  # as if it had been there all the time
            first = "(SELECT min(ts) FROM events WHERE events.session_id = plates.session_id)"
            database.execute(f"UPDATE plates SET updated_at = event_ts, created_at = {first}")
        browser = launch(playwright)
        if isinstance(browser, str):
            sys.exit(browser)
        for name in names or PICTURES:
            colours, size, details = PICTURES[name]
            context = browser.new_context(viewport=size, color_scheme=colours, timezone_id="UTC", locale="en-GB")
            context.add_init_script(f"sessionStorage.setItem('tailhook.secret', '{daemon.secret}')")
            page = context.new_page()
            page.goto(daemon.base)
            page.get_by_text("payments").wait_for()
            if details:
                page.get_by_text("payments").click()
                page.locator("#details .tools li").first.wait_for()
                page.wait_for_timeout(300)
            page.screenshot(path=str(Path(folder) / f"{name}.png"))
            context.close()
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
