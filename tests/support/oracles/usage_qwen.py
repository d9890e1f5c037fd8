"""A second counter of Qwen Code's token usage, from Qwen Code's own files.

The rules are those of @qwen-code/qwen-code 0.24.4, in its bundle: logApiResponse and UiTelemetryService
(packages/core/src/telemetry), forkSession (packages/core/src/services), and the converters of the providers.

logApiResponse writes a record "ui_telemetry" with the event `qwen-code.api_response` for each response, of sub-agents
too; replayUiTelemetryFromConversation computes the figures of a resumed session from these records alone. The
`usageMetadata` of a message is the same response once more. Suggestions and side queries leave no record.

`input_token_count` has the cached tokens; if it is 0, the cached ones are the input (calculateInputTokens). Gemini's
API gives the thoughts apart, and the total has them; the others' output has them already.

forkSession copies the records with their uuid, gives them the new session's id, and adds `forkedFrom` with the session
before and the uuid.
"""

from pathlib import Path

from support.oracles.usage_rows import Response, number, part, records_of


def qwen(files: list[Path]) -> list[Response]:
    """Return each billed response of Qwen Code's chats. A copy counts in the session that had it first."""
    found: dict[object, Response] = {}
    records = [record for path in files for record in records_of(path)]
    for record in sorted(records, key=lambda record: "forkedFrom" in record):
        event = part(record, "systemPayload", "uiEvent")
        if record.get("subtype") == "ui_telemetry" and event.get("event.name") == "qwen-code.api_response":
            found.setdefault(record.get("uuid"), qwen_response(record, event))
    return [response for response in found.values() if any(response[4:])]


def qwen_response(record: dict, event: dict) -> Response:
    """Return a response as a row."""
    names = "input", "output", "cached_content", "thoughts", "total"
    taken, given, cached, thoughts, total = (number(event.get(f"{name}_token_count")) for name in names)
    if taken + given < total == taken + given + thoughts:
        given += thoughts
    fresh = max(0, taken - cached)
    about = record.get("sessionId"), event.get("model"), record.get("timestamp")
    return Response("qwen", *about, fresh, given, cached, 0)
