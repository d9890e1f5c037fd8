"""A second counter of Copilot CLI's token usage, from Copilot's own files.

Real sessions of 1.0.34, 1.0.45, 1.0.61, 1.0.64 to 1.0.70, 1.0.78 and 1.0.102, resumed, killed and mixed, in front of a
model whose bill was known; schemas/session-events.schema.json in the package; its changelog for 0.0.422.

session.usage_record (1.0.102; not 1.0.78): one for each call of the model, of sub-agents and compactions, too.
`accounting` numbers them in their session.

session.shutdown (since 0.0.422), `modelMetrics`: sums for each model, of all calls. Up to 1.0.65 they are those of the
run alone. Since 1.0.66 a run takes up the sums of the last session.shutdown (only that one) and those of the
usage_records behind it, so that its own sums have both. A version that does so writes `sessionLimits` into
session.resume (null without limits), the others do not. A run that was killed has no session.shutdown.

assistant.message, `outputTokens` (1.0.78 and before): all that is known of a call in a run without a shutdown.

`inputTokens` has what was read from the cache and what was written to it. Of a run without usage_records, single calls
are not known: a row is the sum of a run's calls of one model.
"""

from collections import Counter
from pathlib import Path

from support.oracles.usage_rows import Response, number, part, records_of

FIELDS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")


def copilot(files: list[Path]) -> list[Response]:
    """Return the billed responses of Copilot's sessions. An event in several files counts once."""
    found: list[Response] = []
    seen: set[object] = set()
    sessions = [records_of(path) for path in files]
    for events in sorted(sessions, key=lambda events: str(events[0].get("timestamp")) if events else ""):
        new = [event for event in session(events) if event[0] not in seen]
        seen.update(key for key, _ in new)
        found += [response for _, response in new if any(response[4:])]
    return found


def session(events: list[dict]) -> list[tuple[object, Response]]:
    """Return the responses of a file, each with its key."""
    found: list[tuple[object, Response]] = []
    session_id = model = None
    last: dict[str, tuple[int, ...]] = {}  # the sums of the last shutdown
    taken_up = True  # whether this run began with them
    recorded: Counter = Counter()  # what usage_records since then have, by model and field
    outputs: list[tuple[object, Response]] = []  # of the run's messages, until it is known whether it has a shutdown
    for event in events:
        data, at = part(event, "data"), event.get("timestamp")
        kind, key = event.get("type"), event.get("id")
        session_id = session_id or data.get("sessionId")
        model = data.get("newModel") or data.get("selectedModel") or model
        if kind == "session.resume":
            taken_up = "sessionLimits" in data
            found += outputs
            outputs = []
            if not taken_up:
                recorded.clear()
        elif kind == "session.usage_record":
            usage, accounting = part(data, "usage"), part(data, "usage", "accounting")
            source = accounting.get("sourceSessionId") or session_id
            sums = amounts(usage)
            recorded.update({(usage.get("model"), place): count for place, count in enumerate(sums)})
            key = (source, accounting["sequence"]) if "sequence" in accounting else key
            found.append((key, row(source, usage.get("model"), at, sums)))
        elif kind == "assistant.message" and number(data.get("outputTokens")):
            alone = (0, number(data.get("outputTokens")), 0, 0)
            outputs.append((key, row(session_id, data.get("model") or model, at, alone)))
        elif kind == "session.shutdown" and part(data, "modelMetrics"):
            sums = {name: amounts(part(each, "usage")) for name, each in part(data, "modelMetrics").items()}
            for name, total in sums.items():
                before = last.get(name, (0,) * len(FIELDS)) if taken_up else (0,) * len(FIELDS)
                known = [recorded[name, place] for place in range(len(FIELDS))]
                rest = tuple(max(0, a - b - c) for a, b, c in zip(total, before, known, strict=True))
                found.append(((key, name), row(session_id, name, at, rest)))
            last = sums
            recorded.clear()
            outputs = []
    return found + outputs


def amounts(usage: dict) -> tuple[int, ...]:
    """Return the tokens of a usage in the order of FIELDS."""
    return tuple(number(usage.get(name)) for name in FIELDS)


def row(session_id: object, model: object, timestamp: object, usage: tuple[int, ...]) -> Response:
    """Return a response, or a sum of several, as a row."""
    taken, given, cached, written = usage
    return Response("copilot", session_id, model, timestamp, max(0, taken - cached - written), given, cached, written)
