"""The record walk against the json module, over objects of the transcript's shapes and over torn lines."""

import io
import json

from hypothesis import given
from hypothesis import strategies as st
from support.oracles import records as oracle

from tailhook._core import parse_record, reverse_records
from tailhook.transcripts.transcript import Transcript

STRINGS = st.text(max_size=20) | st.sampled_from(["", " \n", "assistant", "é😀", '{"type":"assistant"}', "x" * 300])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | STRINGS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(STRINGS, inner, max_size=3),
    max_leaves=8,
)
IDS = st.sampled_from(["m1", "m2", None, 5])
BLOCKS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["text", "text", "tool_use", "tool_result", "thinking", 5]),
        "tool_use_id": IDS,
        "is_error": st.booleans() | ANYTHING,
        "text": STRINGS | ANYTHING,
        "id": IDS,
        "name": st.sampled_from(["Bash", None]),
        "input": ANYTHING,
        "content": ANYTHING,
    },
)
CONTENTS = STRINGS | st.deferred(lambda: HOST_WRITTEN) | st.lists(BLOCKS | ANYTHING, max_size=4) | ANYTHING
FLAGS = st.sampled_from([True, False, None, "true"])
TIMES = st.datetimes().map(lambda time: time.isoformat() + "Z")
COUNTS = st.integers(-1, 2**64) | st.sampled_from([1.5, "5", None])
USAGES = st.dictionaries(st.sampled_from([*oracle.TOKENS, "service_tier"]), COUNTS) | ANYTHING
ROLES = STRINGS | st.sampled_from(["user", "user", "assistant", "human", None])
MESSAGES = st.fixed_dictionaries(
    {}, optional={"id": IDS, "role": ROLES, "content": CONTENTS, "model": STRINGS | ANYTHING, "usage": USAGES}
)
RESULT = st.just("tool_result")
MEMBERS = [name for name in oracle.STRINGS.values() if name not in ("type", "timestamp")]
HOST_WRITTEN = st.sampled_from(oracle.HOST_WRITTEN).map(lambda text: f" \n{text} more")
ORIGINS = st.fixed_dictionaries({}, optional={"kind": st.sampled_from(["human", "task-notification", 5])})
ATTACHMENTS = st.fixed_dictionaries(
    {"type": st.sampled_from(["queued_command", "queued_command", "file"]), "prompt": CONTENTS},
    optional={
        "commandMode": st.sampled_from(["prompt", "prompt", "prompt", "task-notification", None]),
        "origin": ORIGINS | ANYTHING,
        "isMeta": FLAGS,
    },
)
RECORDS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["assistant", "assistant", "user", "user", "human", "system", "attachment"]) | RESULT,
        "attachment": ATTACHMENTS | ANYTHING,
        "message": MESSAGES | ANYTHING,
        "content": CONTENTS,
        "timestamp": TIMES | ANYTHING,
        "origin": ORIGINS,
        **dict.fromkeys(MEMBERS, STRINGS | ANYTHING),
        "subtype": st.sampled_from(["api_error", "compact_boundary", 5]),
        "tool_use_id": IDS,
        "is_error": FLAGS,
        "isSidechain": FLAGS,
        "isMeta": FLAGS,
        "isApiErrorMessage": FLAGS,
        "isCompactSummary": FLAGS,
        "toolUseResult": ANYTHING,
    },
)
ORDERS = st.randoms(use_true_random=False)


def written(record, order, ascii_only=False):
    items = list(record.items())
    order.shuffle(items)
    return json.dumps(dict(items), ensure_ascii=ascii_only).encode()


@given(RECORDS, ORDERS, st.booleans())
def test_a_record_has_the_values_of_its_object(record, order, ascii_only):
    ours = parse_record(written(record, order, ascii_only))
    oracle.assert_same(ours, record)


@given(st.lists(RECORDS, max_size=6), ORDERS)
def test_records_and_last_message_of_a_file(records, order):
    file = io.BytesIO(b"".join(written(record, order) + b"\n" for record in records))
    assert [ours.json() for ours in reverse_records(file)] == records[::-1]
    transcript = Transcript(file)
    assert transcript.last_message() == oracle.last_message(records, transcript.is_of_sub_agent)


@given(RECORDS, ORDERS, st.lists(st.tuples(st.integers(0, 500), st.sampled_from(b'{}[]",:\\0 tx\x00\n')), min_size=1))
def test_a_mutated_line_is_good_exactly_when_the_json_module_reads_an_object(record, order, mutations):
    line = bytearray(written(record, order, ascii_only=True))
    for place, byte in mutations:
        line[place % len(line)] = byte
    ours = parse_record(bytes(line))
    if oracle.is_object(bytes(line)):
        oracle.assert_same(ours, json.loads(bytes(line)))
    elif ours is not None:
        assert ours.json() in oracle.candidates(bytes(line))


@given(RECORDS, RECORDS, ORDERS, st.data())
def test_of_a_torn_record_and_a_whole_one_the_whole_one_is_found(torn, whole, order, data):
    """Except if the torn record ends before a value: then the whole one may be that value."""
    first, second = written(torn, order), written(whole, order)
    cut = first[: data.draw(st.integers(1, len(first)))]
    ours = parse_record(cut + second)
    if awaits_a_value(cut):
        assert ours is None
    else:
        assert ours.json() == whole
    assert parse_record(second + cut).json() == (torn if cut == first else whole)


def awaits_a_value(prefix):
    """Return whether a value must follow the prefix of a JSON text."""
    closers, in_string, escaped = [], False, False
    for byte in prefix.decode("utf-8", "replace"):
        if in_string:
            escaped, in_string = byte == "\\" and not escaped, escaped or byte != '"'
        elif byte == '"':
            in_string = True
        elif byte in "{[":
            closers.append("}" if byte == "{" else "]")
        elif byte in "}]":
            closers.pop()
    text = prefix.decode("utf-8", "replace") + '""' + "".join(reversed(closers))
    return not in_string and bool(closers) and oracle.is_object(text) and prefix.rstrip()[-1:] in (b":", b"[", b",")
