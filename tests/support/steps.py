"""Counts the executed lines of an action. This measure of its cost is the same on a busy machine."""

import sys


def counted_lines(action, *modules):
    """Return the number of lines of the modules that an action executes."""
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
