"""Reports of events to the daemon's database, each newer than the last one."""

from itertools import count

from tailhook.plates.schemas import Report

numbers = count(1)


def report(kind, session="s", **fields):
    """Return a report.

    kind: the short form of an event.
    """
    word, _, rest = kind.partition(":")
    extra = {"tool_name": rest} if word == "tool_start" else {"error": rest} if rest else {}
    number = next(numbers)
    common = {"session_id": session, "project_path": "/p", "event_type": word, "ts": number, "mono": number}
    return Report(**{**common, "event_id": f"e{number}", **extra, **fields})


def asked(tool_use_id, **fields):
    """Return a report of a question to the person."""
    return report("tool_start:AskUserQuestion", tool_use_id=tool_use_id, **fields)


def ended(name, tool_use_id, **fields):
    """Return a report of a tool's end."""
    return report("tool_call", tool_name=name, tool_use_id=tool_use_id, **fields)


def status(database, session="s"):
    """Return the status on a session's plate."""
    return database.get(session)["status"]
