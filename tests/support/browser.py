"""A headless Chromium: the computer's own, playwright's, or one that playwright fetches into its cache."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path

from playwright.sync_api import Browser, Error, Playwright, expect

from support.sessions import sessions

# The first has no windows, and takes a third less processor time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FETCHING = 600  # seconds that the download may take
# One process for all pages of a site, and no process for graphics: each costs half a second of processor time.
CHEAP = ("--process-per-site", "--renderer-process-limit=1", "--in-process-gpu", "--disable-gpu")
CRASHES = 2  # of Chromium at its start that are tried again: one of 80 starts ended with a segmentation fault
BROWSER_TIMEOUT_MS = 120_000  # a page that takes so long hangs, also on a busy machine


def launch(playwright: Playwright) -> "Browser | str":
    """Return a browser, or a text with the reason why there is none."""
    path = found(playwright.chromium.executable_path)
    if not path:
        return fetch_error()
    # Chromium's sandbox needs namespaces, and root in a container has none. The pages are the tests' own.
    sandbox = hasattr(os, "geteuid") and os.geteuid() != 0
    start = partial(playwright.chromium.launch, executable_path=path, chromium_sandbox=sandbox, args=CHEAP)
    for _ in range(CRASHES):
        with suppress(Error):
            return start()
    return start()


def found(own: str) -> str:
    """Return the path of a Chromium, or "".  own: where playwright's would be."""
    named = [os.environ.get("TAILHOOK_CHROMIUM", ""), *(shutil.which(name) or "" for name in NAMES), *shells(own)]
    there = [path for path in named if path and Path(path).exists()]
    if there or fetch_error():
        return there[0] if there else ""
    return next((path for path in shells(own) if Path(path).exists()), "")


def shells(own: str) -> list[str]:
    """Return where playwright puts its browser, and the smaller one without windows."""
    cached = Path(own).parents[2] if own else Path()
    return [own, *map(str, cached.glob("chromium_headless_shell-*/chrome-*/*headless*shell"))]


@cache
def fetch_error() -> str:
    """Fetch playwright's browser; return why that failed, or ""."""
    argv = [sys.executable, "-m", "playwright", "install", "--only-shell", "chromium"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=FETCHING, check=False)
    except subprocess.TimeoutExpired:
        return f"no Chromium here, and its download took over {FETCHING} s"
    reasons = [words for words in done.stderr.splitlines() if words.startswith("Error")]
    return f"no Chromium here, and playwright cannot fetch one ({(reasons or ['?'])[0]})" if done.returncode else ""


def at(step):
    """Return a time of the last two minutes, in Unix milliseconds: the later the step, the later the time."""
    return time.time_ns() // 1_000_000 - 120_000 + step


@contextmanager
def answered(page, path):
    """Wait at the block's end until the page has handled the daemon's answer to what it asks there."""
    with page.expect_response(path) as found:
        yield
    found.value.finished()
    page.evaluate("fetch('/health').then((answer) => answer.text())")  # handled after that one


def row(page, project):
    """Return the row of a project."""
    return page.locator("#board li").filter(has=page.locator(".project", has_text=re.compile(f"^{project}$")))


def load(page, daemon):
    """Load the board in a page, and wait until it is live."""
    page.goto(daemon.base)
    page.get_by_text("live", exact=True).wait_for()


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
