"""Makes pictures of a page: `python tests/browser/page_picture.py FILE.html LIGHT.png DARK.png`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from playwright.sync_api import sync_playwright
from support.browser import launch

SIZE = {"width": 1080, "height": 400}


def main(page_file: str, light: str, dark: str) -> None:
    """Make pictures of the whole page, in light and in dark colours."""
    with sync_playwright() as playwright:
        browser = launch(playwright)
        if isinstance(browser, str):
            sys.exit(browser)
        page = browser.new_page(viewport=SIZE)
        page.goto(Path(page_file).absolute().as_uri())
        for colours, picture in (("light", light), ("dark", dark)):
            page.emulate_media(color_scheme=colours)
            page.screenshot(path=picture, full_page=True)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
