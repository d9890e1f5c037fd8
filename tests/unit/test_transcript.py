"""The transcript library."""

import io
import json

import pytest

from tailhook import scan
from tailhook.patterns.sets import PatternSet
from tailhook.transcripts import transcript


def record(kind, text, **members):
    return {"type": kind, "message": {"role": kind, "content": text}} | members


RECORDS = [
    record("user", "do it"),
    {"type": "summary", "summary": "s"},
    record("assistant", "first DONE then DONE"),
    record("assistant", "DONE", isSidechain=True),
    record("user", "DONE?"),
    record("user", "DONE", isMeta=True),
    record("assistant", "more"),
]
WRITTEN_BY_THE_HOST = (  # as a person's words
    "<command-name>/x DONE",
    "Stop hook feedback: DONE",
    "[Request interrupted by user] DONE",
    "<local-command-stdout>DONE</local-command-stdout>",
    [{"type": "text", "text": "<system-reminder>DONE"}],
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS) + "bad line\n")
    return path


@pytest.fixture
def session(path):
    with transcript.open(path) as session:
        yield session


def test_iteration_gives_every_record_from_either_end(session):
    assert [record.json() for record in session] == RECORDS
    assert [record.json() for record in session.reversed()] == RECORDS[::-1]
    assert [record.json() for record in session] == RECORDS


def test_an_offset_is_that_of_the_records_line(session, path):
    data = path.read_bytes()
    for one in session:
        assert json.loads(data[one.offset :].splitlines()[0]) == one.json()


@pytest.mark.parametrize("text", WRITTEN_BY_THE_HOST)
def test_what_the_host_writes_in_a_persons_name_has_no_match(tmp_path, text):
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(record("user", text)) + "\n")
    done = PatternSet(["DONE"])
    with transcript.open(path) as session:
        assert [one.has_own_words for one in session] == [False]
        assert list(session.findall(done, roles={"user"})) == []
        assert session.find_last(done, roles={"user"}) is None
    assert list(scan(path, patterns=done).rows()) == []
    path.write_text(json.dumps(record("assistant", text)) + "\n")
    with transcript.open(path) as session:
        assert [match.name for match in session.findall(done)] == ["DONE"]


def test_roles_and_limit_choose_among_the_newest(session):
    assert [record.text for record in session.reversed(roles={"assistant"}, limit=2)] == ["more", "DONE"]
    assert [record.text for record in session.reversed(roles={"user"})] == ["DONE", "DONE?", "do it"]
    assert list(session.reversed(limit=0)) == []
    assert len(list(session.reversed(limit=99))) == len(RECORDS)


def test_the_last_message_is_the_newest_text(session):
    assert session.last_message() == "more"


def test_without_a_message_there_is_none():
    assert transcript.open(io.BytesIO(b'{"type":"user"}')).last_message() is None


def test_the_last_message_has_no_bounds_but_the_file():
    data = json.dumps(record("assistant", "x" * 17_000_000)).encode() + b"\n" + b'{"type":"user"}\n' * 4_500_000
    assert len(transcript.open(io.BytesIO(data)).last_message()) == 17_000_000


def test_matches_come_with_their_records_from_the_assistants_own_words(session):
    matches = list(session.findall(PatternSet(["DONE"])))
    assert [(match.name, match.start, match.end, match.line, match.in_code) for match in matches] == [
        ("DONE", 6, 10, 1, False),
        ("DONE", 16, 20, 1, False),
    ]
    assert all(match.record.text[match.start : match.end] == "DONE" for match in matches)
    assert [match.record.text for match in session.findall(PatternSet(["DONE"]), roles={"user"})] == ["DONE?"]


def test_the_last_match_is_the_last_of_the_newest_record_that_has_one(session):
    match = session.find_last(PatternSet(["DONE"]))
    assert (match.start, match.record.text) == (16, "first DONE then DONE")
    assert session.find_last(PatternSet(["absent"])) is None
    assert repr(match.record).startswith("Record(type='assistant'")


def compacted_twice():
    """Return records, the first ones written again by a second compaction, and the numbers of the copies."""
    old = [record("user", "Try A.", uuid="u1"), record("assistant", "A is DONE", uuid="u2")]
    new = [record("user", "Try B.", uuid="u3"), record("assistant", "B is DONE", uuid="u4")]
    boundary = {"type": "system", "subtype": "compact_boundary"}
    return [*old, {**boundary, "uuid": "c1"}, *new, *old, {**boundary, "uuid": "c2"}], (5, 6)


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("after", [[], [record("user", "Thanks.", uuid="u5")]])
def test_whatever_reads_a_transcript_finds_a_record_that_stands_twice_once(tmp_path, in_memory, after):
    records, copies = compacted_twice()
    path = tmp_path / "session.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in [*records, *after]))
    once = [one["uuid"] for number, one in enumerate(records) if number not in copies] + [one["uuid"] for one in after]
    with transcript.open(io.BytesIO(path.read_bytes()) if in_memory else path) as session:
        assert [one.uuid for one in session] == once
        assert [one.uuid for one in session.reversed()] == once[::-1]
        assert [one.uuid for one in session.reversed({"assistant"}, 1)] == ["u4"]
        assert [one.offset for one in session.reversed()] == [one.offset for one in session][::-1]
        assert session.last_message() == "B is DONE"
        assert session.find_last(PatternSet(["DONE"])).record.text == "B is DONE"
        assert [match.record.text for match in session.findall(PatternSet(["DONE"]))] == ["A is DONE", "B is DONE"]
        assert [one.text for one in session.messages()][:4] == ["Try A.", "A is DONE", "Try B.", "B is DONE"]


def test_the_lines_of_a_record_that_stands_twice_are_all_there(tmp_path):
    """Each has an offset, and a search of files gives each line with a match, like other search programs."""
    records, _ = compacted_twice()
    path = tmp_path / "session.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in records))
    offsets = [row.offset for row in scan(path, "records").rows()]
    assert len(offsets) == len(records)
    with transcript.open(path) as session:
        assert [session.at(offset).json() for offset in offsets] == records


@pytest.mark.parametrize("uuid", [b"", b',"uuid":""', b',"uuid":5'])
def test_a_record_without_a_uuid_is_never_old(uuid):
    lines = b'{"type":"system","subtype":"compact_boundary"%s}\n', b'{"type":"user","message":{"content":"a"}%s}\n'
    data = b"".join(line % uuid * 2 for line in lines)
    for end in (b"", b'{"type":"system","subtype":"compact_boundary","uuid":"c"}\n'):
        session = transcript.open(io.BytesIO(data + end))
        assert len(list(session)) == len(list(session.reversed())) == 4 + bool(end)


def test_the_newest_records_are_read_without_a_look_at_the_rest_unless_a_compaction_is_passed():
    class File(io.BytesIO):
        least = 1 << 62

        def readinto(self, buffer):
            self.least = min(self.least, self.tell())
            return super().readinto(buffer)

    lines = [json.dumps(record("assistant", "x" * 1000, uuid=f"u{number}")).encode() for number in range(2000)]
    lines[1000] = b'{"type":"system","subtype":"compact_boundary","uuid":"c"}'
    data = b"\n".join(lines)
    file = File(data)
    session = transcript.open(file)
    assert (session.host, session.is_of_sub_agent) == ("claude-code", False)
    file.least = 1 << 62
    assert [one.uuid for one in session.reversed(limit=2)] == ["u1999", "u1998"]
    assert session.last_message() == "x" * 1000
    assert session.find_last(PatternSet(["x"])).record.uuid == "u1999"
    assert file.least > len(data) // 2


def test_a_file_of_the_callers_stays_open(path):
    with path.open("rb") as file:
        with transcript.open(file) as session:
            assert session.last_message() == "more"
        assert not file.closed


@pytest.mark.parametrize("is_recognized", [True, False])
@pytest.mark.parametrize(
    "read",
    [
        list,
        lambda session: session.host,
        lambda session: session.at(0),
        lambda session: session.follow(),
        lambda session: session.messages(),
        lambda session: session.reversed(),
        lambda session: session.sub_agents(),
        lambda session: session.last_message(),
        lambda session: list(session.findall(PatternSet(["DONE"]))),
        lambda session: session.find_last(PatternSet(["DONE"])),
    ],
)
def test_a_closed_transcript_is_not_read(path, read, is_recognized):
    session = transcript.open(str(path))
    if is_recognized:
        assert session.host == "claude-code"
    session.close()
    with pytest.raises(ValueError, match="the transcript is closed"):
        read(session)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda session: session.reversed(roles="user"), "roles is 'user': give a list of strings"),
        (lambda session: session.reversed(roles=5), "roles is 5: give a list of strings"),
        (lambda session: session.reversed(roles=[None]), "roles is .None.: give a list of strings"),
        (lambda session: session.reversed(limit="2"), "limit is '2': give a whole number"),
        (lambda session: session.findall(PatternSet(["DONE"]), roles="user"), "roles is 'user'"),
        (lambda session: session.find_last(PatternSet(["DONE"]), roles="user"), "roles is 'user'"),
        (lambda session: session.findall("DONE"), "patterns is 'DONE': give a PatternSet"),
        (lambda session: session.find_last(["DONE"]), "give a PatternSet"),
        (lambda session: session.at(None), "offset is None: give a whole number"),
        (lambda session: session.at(1.0), "offset is 1.0: give a whole number"),
    ],
)
def test_an_argument_of_a_wrong_type_is_refused_at_the_call(session, call, error):
    with pytest.raises(TypeError, match=error):
        call(session)


def test_a_limit_or_an_offset_that_no_file_has_is_refused_at_the_call(session):
    with pytest.raises(ValueError, match="limit is -1: give 0 or more"):
        session.reversed(limit=-1)
    with pytest.raises(ValueError, match="offset is -1: give 0 or more"):
        session.at(-1)
    for offset in (1, 10**6, 2**63 - 1, 2**63, 2**200):
        with pytest.raises(ValueError, match=f"no record begins at byte {offset}"):
            session.at(offset)


def test_a_missing_file_is_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        transcript.open(tmp_path / "none.jsonl")


def test_records_outlive_their_transcript(path):
    with transcript.open(path) as session:
        kept = list(session)
    assert [record.json() for record in kept] == RECORDS


@pytest.mark.parametrize("source", [None, b"session.jsonl", 5, [], io.StringIO("{}"), object()])
def test_what_is_neither_a_path_nor_a_binary_file_is_a_type_error_at_once(source):
    with pytest.raises(TypeError, match="not "):
        transcript.open(source)
