"""Fuzz targets of transcripts: lines, records of each host, the last message."""

import io
import re
import tempfile

from fuzz.json_targets import result_of, standard
from support.oracles import records as oracle

from tailhook import _core
from tailhook.errors import RecordError
from tailhook.transcripts.transcript import Transcript


def plain_lines(data):
    """Return the lines, found with `bytes.split`."""
    pieces = data.split(b"\n")
    if pieces[-1] == b"":
        pieces.pop()
    lines = [piece.removesuffix(b"\r") if b"\n" in data else piece for piece in pieces]
    if pieces and not data.endswith(b"\n"):
        lines[-1] = pieces[-1].removesuffix(b"\r")
    if lines:
        lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
    return lines


def lines(data):
    expected = plain_lines(data)
    assert [line for _, line in _core.forward_lines(io.BytesIO(data))] == expected
    assert [line for _, line in _core.reverse_lines(io.BytesIO(data))] == expected[::-1]
    start = len(data) // 3
    forward = list(_core.forward_lines(io.BytesIO(data), start, 2 * start))
    assert list(_core.reverse_lines(io.BytesIO(data), start, 2 * start)) == forward[::-1]


def records(data):
    for line in data.split(b"\n"):
        found = _core.parse_record(line)
        value = result_of(standard, line)
        # orjson, which gives `json()`, reads these otherwise: integers over 64 bits, lone surrogates.
        if isinstance(value, dict) and not re.search(r"\\ud|inf|\d{19}", repr(value)):
            oracle.assert_same(found, value)
        elif found is not None:
            try:
                assert oracle.everything(found)
                assert isinstance(found.json(), dict)
            except RecordError:
                continue  # invalid UTF-8 in a tool's input, or in a member that a Record does not show


def host_records(data):
    """Read a transcript of another host from both ends, and its messages."""
    with Transcript(io.BytesIO(data)) as transcript:
        forward = list(transcript)
        if transcript.host == "claude-code":
            return
        known = [repr(oracle.everything(record)) for record in forward]
        assert [repr(oracle.everything(record)) for record in transcript.reversed()] == known[::-1]
        assert [repr(oracle.everything(transcript.at(record.offset))) for record in forward] == known
        parts = sorted(record.offset for message in transcript.messages() for record in message.records)
        assert parts == [record.offset for record in parts_of_messages(forward, transcript.host)]
        assert isinstance(transcript.last_message(), str | None)


def parts_of_messages(records, host):
    """Return the records of messages: a uuid's first one, and all of Gemini, because Gemini restates messages."""
    seen, found = set(), []
    for record in records:
        if record.role is not None and (host == "gemini" or record.uuid is None or record.uuid not in seen):
            seen.add(record.uuid)
            found.append(record)
    return found


def last_message(data):
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        outcome, texts = _core.last_message(file.fileno())
    assert (outcome == "text") is bool(texts)
    text = b"\n".join(text for text, _ in texts).decode("utf-8", "surrogatepass") if texts else None
    values = [
        result_of(standard, line.strip(b"\r"))
        for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        if line.strip()
    ]
    if all(isinstance(value, dict) for value in values):
        assert text == oracle.last_message(values)
