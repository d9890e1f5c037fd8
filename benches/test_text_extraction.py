"""One message's text out of each line, from lines that are in memory."""

import msgspec
import orjson
import pytest
import simdjson

from tailhook._core import parse_record


def tailhook_text(line):
    record = parse_record(line)
    return record.text if record and record.role else ""  # a record of the host's own has text, too, but no message


class Block(msgspec.Struct):
    type: str = ""
    text: str = ""


class Message(msgspec.Struct):
    content: str | list[Block | str] = ""


class Line(msgspec.Struct):
    type: str = ""
    message: Message | None = None


decode_line = msgspec.json.Decoder(Line).decode


def msgspec_text(line):
    try:
        record = decode_line(line)
    except msgspec.MsgspecError:
        return ""
    if record.message is None:
        return ""
    content = record.message.content
    if type(content) is str:
        return content
    return "\n".join(
        [block.text for block in content if type(block) is Block and block.type == "text" and block.text.strip()]
    )


def orjson_text(line):
    try:
        message = orjson.loads(line).get("message")
    except ValueError:
        return ""
    if type(message) is not dict:
        return ""
    content = message.get("content", "")
    if type(content) is str:
        return content
    return "\n".join([block["text"] for block in content if block.get("type") == "text" and block["text"].strip()])


parser = simdjson.Parser()


def simdjson_text(line):
    try:
        message = parser.parse(line).get("message")
    except ValueError:
        return ""
    if message.__class__ is not simdjson.Object:
        return ""
    content = message.get("content")
    if content.__class__ is not simdjson.Array:
        return content or ""
    return "\n".join([block["text"] for block in content if block["type"] == "text" and block["text"].strip()])


def simdjson_parse(line):
    """Parse without extracting anything: any further step only adds to this time."""
    try:
        parser.parse(line)
    except ValueError:
        return


ENGINES = [tailhook_text, simdjson_text, orjson_text, msgspec_text]


@pytest.fixture(scope="session")
def lines(transcripts):
    with transcripts.open("rb") as file:
        return file.read().split(b"\n")[:-1]


def every(engine, lines):
    for line in lines:
        engine(line)


@pytest.mark.parametrize("engine", [*ENGINES, simdjson_parse], ids=lambda it: it.__name__)
def test_text_of_each_line(benchmark, engine, lines):
    if engine is not simdjson_parse:
        few = [line for line in lines[:5000] if b'"queued_command"' not in line]  # whose text is not in a message
        assert [engine(line) for line in few] == [tailhook_text(line) if b'"type":"' in line else "" for line in few]
    benchmark.extra_info["bytes"] = sum(map(len, lines))
    benchmark.pedantic(every, [engine, lines], rounds=5, warmup_rounds=1)
