"""What all tests share."""

import pytest

LINES = pytest.StashKey[list]()


def pytest_configure(config):
    config.stash[LINES] = []


@pytest.fixture
def report(request):
    """Add a line to what the run says at its end: report("markdown: 652 documents compared, 0 differ")."""
    return request.config.stash[LINES].append


def pytest_terminal_summary(terminalreporter, config):
    if config.stash[LINES]:
        terminalreporter.section("what was compared")
        for line in config.stash[LINES]:
            terminalreporter.write_line(line)
