"""Messages and followed files, over any records, any order of them and any way of writing them."""

import gzip
import io
import json
import threading
import time

from hypothesis import given, settings
from hypothesis import strategies as st
from support.host import HANGS_S
from support.long_runs import examples
from support.oracles import records as oracle

from tailhook.transcripts import following, transcript

IDS = st.sampled_from(["m1", "m2", "m3", None])
RECORDS = st.fixed_dictionaries(
    {"type": st.sampled_from(["assistant", "assistant", "user", "system"])},
    optional={
        "isSidechain": st.booleans(),
        "message": st.fixed_dictionaries(
            {"id": IDS, "content": st.sampled_from(["", " ", "words", "more words"])},
            optional={"usage": st.fixed_dictionaries({"output_tokens": st.integers(0, 9)}), "model": st.just("m")},
        ),
        "timestamp": st.sampled_from(["2026-01-02T03:04:05Z", "2026-01-02T03:04:04Z", "soon"]),
    },
)


def written(records):
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


@given(st.lists(RECORDS, max_size=12), st.booleans())
def test_messages_are_the_records_grouped_by_their_ids(records, compressed):
    data = gzip.compress(written(records)) if compressed else written(records)
    wanted: dict[object, list[dict]] = {}
    for number, record in enumerate(records):
        if oracle.role(record) is not None:
            name = oracle.message_id(record) if record["type"] == "assistant" else None
            wanted.setdefault(name or number, []).append(record)
    with transcript.open(io.BytesIO(data)) as session:
        found = list(session.messages())
    assert [[one.json() for one in message.records] for message in found] == list(wanted.values())
    for message, parts in zip(found, wanted.values(), strict=True):
        assert message.text == "\n".join(text for text in map(oracle.text, parts) if text.strip())
        times = [stamp for stamp in map(oracle.time, parts) if stamp is not None]
        assert (message.start, message.end) == (min(times, default=None), max(times, default=None))
        used = [counts for counts in map(oracle.usage, parts) if counts is not None]
        assert (message.usage or (0, 0))[1] == max((counts[1] for counts in used), default=0)


@given(st.lists(RECORDS, max_size=8), st.data())
@settings(max_examples=examples(150))
def test_a_file_that_is_written_in_any_pieces_is_followed_without_loss(tmp_path_factory, records, data):
    path = tmp_path_factory.mktemp("followed") / "session.jsonl"
    path.write_bytes(b"")
    whole = written(records)
    found = []
    session = transcript.open(path)
    before, following.FOLLOW_INTERVAL_S = following.FOLLOW_INTERVAL_S, 0.001
    follower = session.follow()
    thread = threading.Thread(target=lambda: found.extend(record.json() for record in follower))
    try:
        thread.start()
        at = 0
        while at < len(whole):
            size = data.draw(st.integers(1, len(whole)))
            with path.open("ab") as file:
                file.write(whole[at : at + size])
            at += size
            time.sleep(data.draw(st.sampled_from([0, 0.002])))
        end = time.monotonic() + HANGS_S
        while len(found) < len(records) and time.monotonic() < end:
            time.sleep(0.001)
    finally:
        session.close()
        thread.join()
        following.FOLLOW_INTERVAL_S = before
    assert found == records
