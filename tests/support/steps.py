"""Counts the executed lines of an action: a measure of its cost that does not depend on how busy the machine is."""

import sys


def counted_lines(action, *modules):
    """Return how many lines of the modules an action executes."""
    files, count = {module.__file__ for module in modules}, 0

    def trace(frame, event, _):
        nonlocal count
        count += event == "line"
        return trace if frame.f_code.co_filename in files else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count
