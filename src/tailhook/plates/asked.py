"""What a session waits for, whole: its questions with all choices, its plan, or the input of the tool that asks.

A hook reports only the beginning of it. The rest is read from the session's transcript while a person looks at the
details, so that it is stored nowhere else. Every text is masked.
"""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from tailhook._core import get_text, parse_json, reverse_lines, reverse_tool_uses
from tailhook.hook.event import MAX_TRANSCRIPT_BYTES
from tailhook.hook.payload import MAX_RECORD_BYTES
from tailhook.hook.plates import tool_params
from tailhook.machines.plates import HOST, MCP_SERVER, PLAN_TOOL, OpenTool, Status
from tailhook.machines.quoting import ELLIPSIS, plain_text
from tailhook.machines.secrets import MASK, is_secret_name
from tailhook.plates.changes import situation_of
from tailhook.plates.display import activity_of
from tailhook.plates.fields import AskedOut, ChoiceOut, QuestionOut
from tailhook.plates.markdown import read_markdown
from tailhook.plates.schemas import find_subject, mask_secrets, scrub
from tailhook.plates.signs import transcript_of_agent
from tailhook.plates.tables import Plate
from tailhook.plates.transcript_ends import find_host_records, open_transcript

MAX_SEARCHED_RECORDS = 500  # from the transcript's end: the call is one of the newest records, as its session waits
MAX_INPUT_BYTES = 1 << 20  # of a tool that is decoded
MAX_ASKED_CHARS = 20_000  # of each text
MAX_INPUTS = 20
MAX_QUESTIONS = 10
MAX_SHOWN_CHOICES = 50


def read_asked(plate: Plate, can_read: bool) -> AskedOut | None:
    """Return what a session waits for, or None if it waits for nothing.

    can_read: whether its transcript is on this computer. Otherwise only the reported beginning is returned.
    """
    if not (waits := situation_of(plate).waits):
        return None
    tool = waits[-1]
    path = plate["transcript_path"] or ""
    given = find_input(transcript_of_agent(path, tool.agent_id) if tool.agent_id else path, tool) if can_read else None
    activity = activity_of(plate)
    asked: AskedOut = {
        "words": activity["words"],
        "tool": activity["tool"],
        "questions": [],
        "inputs": [],
        "plan": [],
    }
    if tool.wait is Status.AWAITING_INPUT:
        asked["questions"] = questions_in(given or {}) or reported_questions(tool)
    elif tool.name == PLAN_TOOL:
        asked["plan"] = read_markdown(shown_text(get_text(given or {}, "plan") or tool.about))
    elif given:
        values = list(given.items())[:MAX_INPUTS]
        asked["inputs"] = [{"name": shown_text(name), "text": shown_value(name, value)} for name, value in values]
        if left_out := len(given) - len(values):
            asked["inputs"].append({"name": ELLIPSIS, "text": f"{left_out} more, not shown"})
    elif tool.about:
        asked["inputs"] = [{"name": "", "text": tool.about}]
    return asked


def find_input(path: str, tool: OpenTool) -> dict[str, Any] | None:
    """Return the whole input of an open tool, or None if the transcript does not show it."""
    if tool.agent_id == MCP_SERVER or tool.name == HOST or not path:
        return None
    try:
        for tool_use_id, data in read_tool_uses(path, tool.name):
            if tool.tool_use_id and tool_use_id != tool.tool_use_id:
                continue
            given = parse_json(data) if len(data) <= MAX_INPUT_BYTES else None
            if isinstance(given, dict) and (tool.tool_use_id or is_use(tool, given)):
                return scrub(given)  # type: ignore[no-any-return]
    except (OSError, ValueError):
        pass
    return None


def is_use(tool: OpenTool, given: dict[str, Any]) -> bool:
    """Return whether a tool with this input would be reported like an open tool."""
    return find_subject(tool_params({"tool_input": given}) or {}) == tool.about


def read_tool_uses(path: str, name: str) -> Iterator[tuple[str | None, bytes]]:
    """Yield the newest uses of a tool without a result in a transcript, newest first: id, and input as JSON.

    Raises OSError, and ValueError for a record that cannot be read.
    """
    with open_transcript(path) as file:
        records = find_host_records(file)
        start = max(0, file.seek(0, 2) - MAX_TRANSCRIPT_BYTES)
        if records is None:
            uses = reverse_tool_uses(file, {name}, start, None, MAX_RECORD_BYTES, MAX_SEARCHED_RECORDS)
            yield from ((use, given) for _, use, given, failed, _ in uses if failed is None)
            return
        for offset, line in islice(reverse_lines(file, start, None, MAX_INPUT_BYTES), MAX_SEARCHED_RECORDS):
            for record in reversed(records.records(line, offset)):
                yield from ((use.id, json.dumps(use.input).encode()) for use in record.tools)


def questions_in(given: dict[str, Any]) -> list[QuestionOut]:
    """Return the questions in a tool's input."""
    questions = given.get("questions")
    found = questions if isinstance(questions, list) else [given]
    return [
        {
            "header": shown_text(get_text(one, "header")),
            "text": shown_text(get_text(one, "question")),
            "takes_many": one.get("multiSelect") is True,
            "choices": choices_of(one),
        }
        for one in found[:MAX_QUESTIONS]
        if isinstance(one, dict) and get_text(one, "question")
    ]


def choices_of(question: dict[str, Any]) -> list[ChoiceOut]:
    """Return the choices of a question with their descriptions."""
    given = question.get("options") or question.get("choices")
    choices = [one if isinstance(one, dict) else {"label": one} for one in given] if isinstance(given, list) else []
    return [
        {"label": shown_text(label), "description": shown_text(get_text(one, "description"))}
        for one in choices[:MAX_SHOWN_CHOICES]
        if (label := get_text(one, "label"))
    ]


def reported_questions(tool: OpenTool) -> list[QuestionOut]:
    """Return the question that the hook reported."""
    choices: list[ChoiceOut] = [{"label": one, "description": ""} for one in tool.choices]
    return [{"header": "", "text": tool.about, "takes_many": False, "choices": choices}] if tool.about else []


def shown_value(name: str, value: Any) -> str:
    """Return a member of a tool's input for display.

    name: of the member. If it is the name of a secret, the value is masked.
    """
    if isinstance(value, str):
        return MASK if value and is_secret_name(name) else shown_text(value)
    return shown_text(json.dumps(mask_secrets(value, name), ensure_ascii=False, indent=2))


def shown_text(text: str) -> str:
    """Return the beginning of a text, masked and without control characters."""
    return plain_text(text, MAX_ASKED_CHARS)
