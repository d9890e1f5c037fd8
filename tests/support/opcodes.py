"""How much work a function of Python does: a busy machine changes nothing."""

import sys
from collections.abc import Callable
from typing import Any


def count_opcodes(function: Callable[..., object], *arguments: Any, **options: Any) -> int:
    """Return how many of Python's instructions a call executes."""
    count = 0

    def note(frame, event, _argument):
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return note

    tracer = sys.gettrace()
    sys.settrace(note)
    try:
        function(*arguments, **options)
    finally:
        sys.settrace(tracer)
    return count
