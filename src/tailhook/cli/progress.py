"""A progress bar of a scan on stderr, if both outputs are a terminal and rich is installed."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import Any

from tailhook.fleet.report import Progress

DRAW_INTERVAL_S = 0.1


class ProgressBar:
    """Draws the progress of a scan: files, bytes, rate, and time left.

    No thread draws it, so rows can be written to the same terminal while it is hidden.
    """

    def __init__(self) -> None:
        """Raises ImportError without rich."""
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
        from rich.progress import Progress as RichProgress

        self.bar: Any = RichProgress(
            BarColumn(),
            TextColumn("{task.fields[files]:,} of {task.fields[all_files]:,} files"),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(file=sys.stderr),
            transient=True,
            auto_refresh=False,
        )
        self.task = self.bar.add_task("scan", total=None, files=0, all_files=0)
        self.drawn_at = time.monotonic()  # a scan of less than the interval shows no bar
        self.was_begun = False

    def __call__(self, progress: Progress) -> None:
        """Draw it, at most ten times a second."""
        self.bar.update(
            self.task,
            completed=progress.bytes,
            total=progress.all_bytes,
            files=progress.files,
            all_files=progress.all_files,
        )
        if progress.all_files and time.monotonic() - self.drawn_at >= DRAW_INTERVAL_S:
            self.was_begun = True
            self.bar.start()
            self.bar.refresh()
            self.drawn_at = time.monotonic()

    def hide(self) -> None:
        """Remove the bar from the terminal until it is drawn again."""
        self.bar.stop()

    def end(self) -> None:
        """Remove the bar from the terminal and show the cursor, even if a signal interrupts rich meanwhile."""
        with suppress(IndexError):  # rich's stop undoes steps that its start has not done yet
            self.bar.stop()
        if self.was_begun:
            self.bar.console.show_cursor(True)


class ProgressView:
    """Keeps the progress of a scan and whether it has rows, and draws a progress bar if there is one."""

    def __init__(self) -> None:
        self.newest = Progress(0, 0, 0, 0)
        self.has_rows = False
        self.bar = make_bar()

    def __call__(self, progress: Progress) -> None:
        """Keep it and draw it."""
        self.newest = progress
        if self.bar is not None:
            self.bar(progress)

    def hide(self) -> None:
        """Remove the bar from the terminal until it is drawn the next time."""
        if self.bar is not None:
            self.bar.hide()

    def end(self) -> None:
        """Remove the bar from the terminal, even if a signal comes meanwhile."""
        if self.bar is not None:
            self.bar.end()


def make_bar() -> ProgressBar | None:
    """Return a progress bar, or None if no terminal can draw it or rich is not installed.

    A terminal with TERM=dumb cannot. rich would write an empty line there each time the bar is hidden.
    """
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        return None
    try:
        found = ProgressBar()
    except ImportError:
        return None
    return found if found.bar.console.is_interactive else None
