"""The tokens of one session, read piece by piece."""

import json
import os
from pathlib import Path

import pytest
from support.cases import in_one_test
from support.host import assistant
from support.usage_histories import HISTORIES

import tailhook
from tailhook.fleet.columns import TOKEN_COLUMNS
from tailhook.fleet.plan import HEAD_BYTES
from tailhook.plates import session_tokens
from tailhook.plates.session_tokens import (
    MAX_DECODED_LINE_BYTES,
    MAX_READ_LINE_BYTES,
    SessionTokens,
    session_of_rollout,
)
from tailhook.plates.transcript_ends import open_transcript

PIECE = 1 << 16
META = '{"type":"session_meta","timestamp":"2026-01-01T00:00:00Z","payload":{"id":"s"}}\n'


def response(number, tokens=10, **fields):
    """Return the line of a response with this many tokens of output and 5 of other kinds."""
    one = {**assistant("Done.", id=f"m{number}"), "sessionId": "s", "requestId": f"r{number}", **fields}
    counts = {"input_tokens": 2, "output_tokens": tokens, "cache_read_input_tokens": 2}
    one["message"] |= {"model": "sonnet", "usage": {**counts, "cache_creation_input_tokens": 1}}
    return json.dumps(one) + "\n"


def other(size):
    """Return the line of a record without tokens, of this many bytes."""
    return json.dumps({"type": "user", "sessionId": "s", "text": "x" * (size - 49)}) + "\n"


def total(session, most=PIECE):
    """Read a session to its end; return the sum of its tokens, None if it is not known."""
    session.read(most)
    while not session.is_whole:
        session.read(most)
    return session.total and sum(session.total[name] for name in TOKEN_COLUMNS)


@pytest.fixture
def path(tmp_path):
    """Return the path of a transcript with one response of 15 tokens."""
    found = tmp_path / "s.jsonl"
    found.write_text(response(1))
    return found


@pytest.fixture
def session(path):
    return SessionTokens("s", str(path))


def append(path, *lines):
    with path.open("a") as file:
        file.write("".join(lines))


def test_a_response_in_several_records_and_files_counts_once(path, session):
    assert total(session) == 15
    append(path, response(1, 30), response(1), response(2))
    agent = path.with_suffix("") / "subagents" / "agent-a.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_text(response(2) + response(3, 100, isSidechain=True, agentId="a"))
    assert total(session) == 35 + 15 + 105


def test_sub_agents_of_before_2_1_2_stand_among_those_of_other_sessions(path, tmp_path):
    path.write_text(response(1, version="2.1.1"))
    for number in range(7):
        session_id = "s" if number % 2 else "other"
        lines = response(number + 2, sessionId=session_id, isSidechain=True, agentId=str(number))
        (tmp_path / f"agent-{number}.jsonl").write_text(lines)
    assert total(SessionTokens("s", str(path))) == 15 * 4
    [*scan] = tailhook.scan(tmp_path, table="usage").rows()
    assert sum(getattr(row, name) or 0 for row in scan if row.session_id == "s" for name in TOKEN_COLUMNS) == 15 * 4
    path.write_text(response(1, version="2.1.2"))
    assert total(SessionTokens("s", str(path))) == 15


def test_a_sub_agent_of_before_2_1_2_counts_once_its_first_record_is_whole(path, tmp_path):
    path.write_text(response(1, version="1.0.128"))
    session = SessionTokens("s", str(path))
    agent = tmp_path / "agent-a.jsonl"
    agent.write_text(response(2, isSidechain=True, agentId="a")[:40])
    assert total(session) == 15
    agent.write_text(response(2, isSidechain=True, agentId="a"))
    assert total(session) == 30


def test_responses_of_another_session_do_not_count(path, session):
    append(path, response(2, sessionId="before"))
    assert total(session) == 15
    assert total(SessionTokens("unknown", str(path))) is None


def test_a_record_counts_as_soon_as_it_is_whole(path, session):
    line = response(2)
    assert total(session) == 15
    append(path, line[:90])
    assert total(session) == 15
    append(path, line[90:-1])
    assert total(session) == 30
    append(path, "\n", response(3))
    assert total(session) == 45


@in_one_test("name", HISTORIES)
def test_the_sessions_of_other_hosts_have_the_tokens_of_a_scan(name, tmp_path):
    for number, text in enumerate(HISTORIES[name]().files.values()):
        file = tmp_path / f"{name}-{number}.jsonl"
        file.write_text(text)
        expected = {}
        for row in tailhook.scan([file], "usage").rows():
            expected.setdefault(row.session_id, []).append([getattr(row, column) for column in TOKEN_COLUMNS])
        for session_id, rows in expected.items():
            found = total(SessionTokens(session_id, str(file)), 1000)
            is_known = all(None not in row[:2] for row in rows)
            assert found == (sum(map(sum, rows_of_numbers(rows))) if is_known else None)


@in_one_test("name", [name for name in HISTORIES if name.startswith("codex")])
def test_a_session_of_codex_has_the_tokens_of_its_other_rollouts(name, tmp_path):
    root = tmp_path / name
    days = [root / "2026" / "10" / "31", root / "2026" / "11" / "01"]
    files = []
    for number, (rollout, text) in enumerate(sorted(HISTORIES[name]().files.items())):
        files.append(days[number > 0] / rollout.rpartition("/")[2])
        files[-1].parent.mkdir(parents=True, exist_ok=True)
        files[-1].write_text(text)
    expected = {}
    for row in tailhook.scan([root], "usage").rows():
        tokens = sum(getattr(row, column) or 0 for column in TOKEN_COLUMNS)
        expected[row.session_id] = expected.get(row.session_id, 0) + tokens
    first = json.loads(files[0].read_text().partition("\n")[0])["payload"]
    session_id = first.get("session_id") or first["id"]
    session = SessionTokens(session_id, str(files[0]))
    assert total(session) == expected.get(session_id)


def test_unknown_rollouts_are_looked_at_a_few_at_a_time_and_once(tmp_path, monkeypatch):
    monkeypatch.setattr(session_tokens, "MAX_NEW_TRANSCRIPTS", 2)
    read = []

    def note(path):
        read.append(path)
        return session_of_rollout(path)

    monkeypatch.setattr(session_tokens, "session_of_rollout", note)
    files = [tmp_path / f"rollout-{number}.jsonl" for number in range(6)]
    for number, file in enumerate(files):
        file.write_text(META.replace('"s"', f'"s{number % 3}"') + counted(number + 1))
    (tmp_path / "rollout-torn.jsonl").write_text("")
    known = {}
    session = SessionTokens("s0", str(files[0]), known)
    steps = 0
    while not session.is_whole:
        session.read(PIECE)
        steps += 1
    assert steps == 3
    assert session.total["output_tokens"] == 1 + 4
    assert total(SessionTokens("s1", str(files[1]), known)) == 10 + 2 + 5
    assert sorted(set(read)) == [*map(str, files), str(tmp_path / "rollout-torn.jsonl")]
    assert len([path for path in read if "torn" not in path]) == 6
    (tmp_path / "rollout-torn.jsonl").write_text(META.replace('"s"', '"s0"') + counted(7))
    assert total(session) == 10 + 1 + 4 + 5 + 7
    files[3].unlink()
    assert total(session) == 10 + 1 + 7


def counted(output):
    """Return a line with a response of Codex with this many tokens of output and 5 of input."""
    usage = {"input_tokens": 5, "output_tokens": output, "total_tokens": 5 + output}
    return (
        json.dumps({"type": "event_msg", "payload": {"type": "token_count", "info": {"last_token_usage": usage}}})
        + "\n"
    )


def test_a_rollout_that_begins_long_ago_has_no_figure(tmp_path):
    file = tmp_path / "1999" / "12" / "31" / "rollout-a.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(META + counted(1))
    assert total(SessionTokens("s", str(file))) is None


def rows_of_numbers(rows):
    return [[count or 0 for count in row] for row in rows]


def test_a_transcript_that_was_truncated_replaced_or_written_again_is_read_from_its_beginning(path, session):
    assert total(session) == 15
    path.write_text("")
    assert total(session) is None
    append(path, response(5, 100))
    assert total(session) == 105
    path.write_text(response(6, 200) + response(7))
    assert total(session) == 220
    new = path.with_name("new")
    new.write_text(response(6, 200) + response(7) + response(8))
    new.rename(path)
    assert total(session) == 235
    path.write_text(other(5000) + response(9))
    assert total(session) == 15


def test_a_sub_agent_whose_transcript_is_gone_counts_no_more(path, session):
    agent = path.with_suffix("") / "subagents" / "agent-a.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_text(response(2))
    assert total(session) == 30
    agent.unlink()
    assert total(session) == 15


def test_a_transcript_that_cannot_be_read_has_no_tokens_until_it_can(path, session):
    assert total(session) == 15
    hidden = path.rename(path.with_name("hidden"))
    assert total(session) is None
    hidden.rename(path)
    assert total(session) == 15
    for bad in ("", "\0", str(path.parent), "/dev/zero"):
        assert total(SessionTokens("s", bad)) is None


def test_a_sub_agent_that_cannot_be_read_leaves_the_tokens_unknown(path, session, monkeypatch):
    agent = path.with_suffix("") / "subagents" / "agent-a.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_text(response(2))

    def refuse(name):
        if name == str(agent):
            raise PermissionError(13, "Permission denied", name)
        return open_transcript(name)

    monkeypatch.setattr(session_tokens, "open_transcript", refuse)
    assert total(session) is None
    monkeypatch.undo()
    assert total(session) == 30


def test_a_fifo_in_place_of_a_transcript_does_not_block(path, session):
    path.unlink()
    os.mkfifo(path)
    assert total(session) is None


def test_the_own_transcript_may_be_a_link_and_a_sub_agents_may_not(path, tmp_path):
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    agents = tmp_path / "link" / "subagents"
    agents.mkdir(parents=True)
    (agents / "agent-a.jsonl").symlink_to(path)
    session = SessionTokens("s", str(link))
    assert total(session) == 15
    assert list(session.readings) == [str(link)]


def test_a_session_without_responses_or_without_all_their_tokens_has_no_figure(path):
    path.write_text(other(100))
    assert total(SessionTokens("s", str(path))) is None
    one = json.loads(response(1))
    del one["message"]["usage"]["input_tokens"]
    path.write_text(json.dumps(one) + "\n" + response(2))
    assert total(SessionTokens("s", str(path))) is None


def test_a_large_transcript_is_read_once_in_bounded_steps(path, bytes_read):
    size = 40 * PIECE
    path.write_text("".join(response(number) + other(5000) for number in range(size // 5000)))
    session = SessionTokens("s", str(path))
    steps = []
    while not session.is_whole:
        before = bytes_read()
        session.read(PIECE)
        steps.append(bytes_read() - before)
        assert (session.total is None) is not session.is_whole
    assert len(steps) > 40
    assert steps[0] <= PIECE + 2000 + HEAD_BYTES  # the host and the session are found at the beginning
    assert max(steps[1:]) <= PIECE + 2000
    assert sum(steps) <= path.stat().st_size + HEAD_BYTES + 2000 * len(steps)
    assert session.total["output_tokens"] == 10 * (size // 5000)
    append(path, response("new"))
    before = bytes_read()
    assert total(session) == 15 * (size // 5000 + 1)
    assert bytes_read() - before <= 2000
    before = bytes_read()
    session.read(PIECE)
    assert bytes_read() - before <= 500


def test_a_hole_of_a_gigabyte_is_read_in_bounded_steps(path, bytes_read):
    with path.open("r+b") as file:
        file.truncate(1 << 30)
    session = SessionTokens("s", str(path))
    for _ in range(20):
        before = bytes_read()
        session.read(PIECE)
        assert bytes_read() - before <= MAX_READ_LINE_BYTES + PIECE + HEAD_BYTES + 2000
    assert session.total is None
    assert not session.is_whole


@pytest.fixture
def bytes_read():
    """Return a function that returns how many bytes this process has read so far, at each call some more."""
    counters = Path("/proc/self/io")
    if not counters.exists():
        pytest.skip("needs Linux's /proc")

    return lambda: int(counters.read_text().split()[1])


def test_a_line_that_is_too_long_is_skipped_as_in_a_scan(path, monkeypatch):
    monkeypatch.setattr(session_tokens, "MAX_READ_LINE_BYTES", 5000)
    long = response(2, text="x" * 20_000)
    path.write_text(response(1) + long)
    session = SessionTokens("s", str(path))
    assert total(session, 1000) == 15
    append(path, response(3))
    assert total(session, 1000) == 30
    path.write_text(response(1) + long[:-1])
    assert total(session, 1000) == 15
    append(path, "x" * 8000)
    assert total(session, 1000) == 15
    append(path, "\n", response(3))
    assert total(session, 1000) == 30


def test_a_scan_skips_the_same_long_lines(tmp_path):
    path = tmp_path / "s.jsonl"
    for more in (0, 1):
        line = response(2, text="")
        line = line.replace('"text": ""', '"text": "' + "x" * (MAX_READ_LINE_BYTES - 1 - len(line) + more - 1) + '"')
        path.write_text(response(1) + line + response(3))
        expected = sum(row.output_tokens for row in tailhook.scan([path], "usage").rows())
        session = SessionTokens("s", str(path))
        total(session, 1 << 22)
        assert session.total["output_tokens"] == expected


def test_the_tokens_in_a_long_line_of_another_host_are_not_known(path, monkeypatch):
    counted = {"last_token_usage": {"input_tokens": 5, "output_tokens": 5, "total_tokens": 10}}
    record = {"type": "event_msg", "payload": {"type": "token_count", "info": counted}}
    path.write_text(META + json.dumps(record) + "\n")
    assert total(SessionTokens("s", str(path))) == 10
    append(path, other(MAX_DECODED_LINE_BYTES + 1))
    session = SessionTokens("s", str(path))
    assert total(session, 1 << 22) == 10
    append(path, json.dumps({**record, "text": "x" * MAX_DECODED_LINE_BYTES}) + "\n")
    assert total(session, 1 << 22) is None
    assert session.responses == 0
    append(path, json.dumps(record) + "\n")
    assert session.read(PIECE) == 0


def test_a_session_with_too_many_sub_agents_has_no_figure(path, session, monkeypatch):
    monkeypatch.setattr(session_tokens, "MAX_AGENT_TRANSCRIPTS", 2)
    agents = path.with_suffix("") / "subagents"
    agents.mkdir(parents=True)
    for number in range(3):
        (agents / f"agent-{number}.jsonl").write_text(response(number + 2))
        assert total(session) == (15 * (number + 2) if number < 2 else None)


def test_the_session_is_found_in_the_first_records(path):
    """Its name is the file's until a record names it."""
    nameless = json.loads(response(1))
    del nameless["sessionId"]
    path.write_text(json.dumps(nameless) + "\n")
    other_name = path.rename(path.with_name("named.jsonl"))
    session = SessionTokens("s", str(other_name))
    assert total(session) is None
    append(other_name, response(2))
    assert total(session) == 30
