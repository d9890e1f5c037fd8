"""The short forms of events that the table of the plates machine's page uses."""

from tailhook.machines.plates import Event, EventKind


def parse_event(text):
    """Return the event of a short form: the value of an EventKind, `tool_start:NAME` or `stop:error`."""
    word, _, rest = text.partition(":")
    if word == "tool_start":
        if not rest:
            raise ValueError(f"{text!r} names no tool")
        return Event(EventKind.TOOL_START, tool=rest)
    if text == "stop:error":
        return Event(EventKind.STOP, has_error=True)
    return Event(EventKind(text))
