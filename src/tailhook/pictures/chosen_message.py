"""The message to explain: the newest one of a transcript, one by its number, or one by its offset."""

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from tailhook._core import Record
from tailhook.errors import TailhookError
from tailhook.transcripts.transcript import Transcript, is_own_text


class MessageNotFoundError(TailhookError, ValueError):
    """A transcript does not have the requested message."""


class ChosenMessage(NamedTuple):
    """A message, or one record of it.

    title: words for it, such as "Message 3".
    offset: of its first record.  records: their number.
    tools, results: the names of its tools, and the number of its tools' results.
    excluded: why its words do not count, "" if they do.
    """

    title: str
    text: str
    role: str | None
    model: str | None
    time: datetime | None
    offset: int
    records: int
    tools: list[str]
    results: int
    excluded: str


def newest_message(transcript: Transcript) -> ChosenMessage:
    """Return the agent's newest message with text, as the hooks see it. Raises MessageNotFoundError."""
    text = transcript.last_message()
    if text is not None:
        for record in transcript.reversed(roles={"assistant"}):
            if is_own_text(record, transcript.is_of_sub_agent) and record.text.strip():
                return describe_records("The newest message", text, [record])
    if next(iter(transcript), None) is None:
        raise MessageNotFoundError("there is no record in it")
    raise MessageNotFoundError("no message of the agent has text. To explain another one, give its number: --message N")


def numbered_message(transcript: Transcript, number: int) -> ChosenMessage:
    """Return a whole message. Reads the transcript up to it. Raises MessageNotFoundError.

    number: from 1, in the order of first records. Tools' results and the host's texts are messages, too.
    """
    count = 0
    for message in islice(transcript.messages(), number):
        count += 1
        if count == number:
            return describe_records(f"Message {number}", message.text, message.records)
    raise MessageNotFoundError(f"there is no message {number}: it has {count}")


def record_message(transcript: Transcript, offset: int) -> ChosenMessage:
    """Return the message of one record.  offset: of its line.  Raises MessageNotFoundError."""
    try:
        record = transcript.at(offset)
    except ValueError:
        raise MessageNotFoundError(f"no record begins at byte {offset}") from None
    if record.role is None:
        raise MessageNotFoundError(f"the record at byte {offset} is not a message: its type is {record.type!r}")
    return describe_records("The record", record.text, [record])


def describe_records(title: str, text: str, records: Sequence[Record]) -> ChosenMessage:
    """Return a message for display.  text: of its records."""
    first = next((record for record in records if record.text.strip()), records[0])
    return ChosenMessage(
        title,
        text,
        first.role,
        first.model,
        first.time,
        records[0].offset,
        len(records),
        [tool.name or "?" for record in records for tool in record.tools],
        sum(len(record.tool_results) for record in records),
        find_exclusion(first) if text.strip() else "",
    )


def find_exclusion(record: Record) -> str:
    """Return why the words of a record do not count, "" if they are the agent's or a person's own."""
    if record.is_sidechain:
        return "a sub-agent's message"
    if record.is_api_error:
        return "an error of the API"
    if record.is_compact_summary:
        return "the summary of a compaction"
    if not record.has_own_words:
        return "written by the host"
    return ""


def name_author(chosen: ChosenMessage) -> str:
    """Return words for the author of a message."""
    if chosen.excluded:
        return chosen.excluded
    if chosen.role == "assistant":
        return "the agent's words"
    return "a person's words" if chosen.text.strip() else "no words"


def describe_content(chosen: ChosenMessage) -> str:
    """Return the contents of a message without text."""
    parts = []
    if chosen.tools:
        parts.append(f"it uses {join_names(chosen.tools)}")
    if chosen.results:
        parts.append(f"it has {count_of(chosen.results, 'result')} of tools")
    return f"This message has no text{': ' if parts else ''}{' and '.join(parts)}."


def join_names(names: list[str], max_names: int = 6) -> str:
    """Return names, each once, with its count.

    >>> join_names(["Bash", "Read", "Bash"])
    'Bash (2), Read'
    """
    counts = {name: names.count(name) for name in dict.fromkeys(names[:1000])}
    shown = [f"{name} ({count})" if count > 1 else name for name, count in counts.items()]
    more = [f"{len(shown) - max_names} more"] if len(shown) > max_names else []
    return ", ".join([*shown[:max_names], *more])


def count_of(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> count_of(1, "record"), count_of(1200, "record")
    ('1 record', '1,200 records')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def list_facts(chosen: ChosenMessage, host: str) -> list[str]:
    """Return the facts about a message, beside its text."""
    facts = [name_author(chosen)]
    if chosen.model:
        facts.append(chosen.model)
    if chosen.time:
        facts.append(f"{chosen.time:%Y-%m-%d %H:%M:%S} UTC")
    facts.append(host)
    if chosen.records > 1:
        facts.append(f"{chosen.records} records")
    facts.append(f"at byte {chosen.offset:,}")
    if chosen.tools:
        facts.append(f"uses {join_names(chosen.tools)}")
    return facts
