"""The tokens of a loop are those that `tailhook usage` counts, and a stop reads only what is new."""

import json
import os
import random
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis.strategies import binary, integers, lists, none, one_of, text
from support.cases import in_one_test
from support.long_runs import examples

import tailhook
from tailhook._core import iso_time
from tailhook.hook import budgets
from tailhook.hook.budgets import read_spent
from tailhook.hook.session_files import FIRST_STRIDE
from tailhook.machines.budgets import parse_mark

BEGAN = 1_790_000_000


class Session:
    """A session that writes transcripts, and its loop.

    clock: Unix seconds.
    bill: the tokens of the responses since the loop began.
    """

    def __init__(self, folder):
        self.folder, self.path, self.clock, self.bill, self.number = folder, folder / "session.jsonl", BEGAN, 0, 0
        self.max_bytes = 64 << 20
        self.fields = {"began": iso_time(BEGAN)}

    def transcript_path(self):
        return str(self.path)

    @property
    def now(self):
        return self.clock

    def file(self, agent):
        if not agent:
            return self.path
        path = self.folder / "session" / "subagents" / f"agent-{agent}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def append(self, data, agent=""):
        with self.file(agent).open("ab") as out:
            out.write(data)
        os.utime(self.file(agent), (self.clock, self.clock))

    def record(self, name, output, given=10, written=5, at=None, **fields):
        """Return a record of a response as a line."""
        self.number += 1
        usage = {"input_tokens": given, "cache_creation_input_tokens": written, "cache_read_input_tokens": 10**6}
        message = {"id": f"msg_{name}", "role": "assistant", "content": [], "usage": {**usage, "output_tokens": output}}
        stamp = iso_time(self.clock if at is None else at, milliseconds=True)
        ids = {"requestId": f"req_{name}", "uuid": f"u{self.number}", "timestamp": stamp, "sessionId": "session"}
        return json.dumps({"type": "assistant", "message": message, **ids, **fields}).encode() + b"\n"

    def respond(self, name, output=100, agent="", parts=1):
        """Write a response of several records, whose number of output tokens grows; return them."""
        lines = []
        for part in range(1, parts + 1):
            self.clock += 1
            lines.append(self.record(name, output * part // parts, agentId=agent or None, isSidechain=bool(agent)))
        result = json.dumps({"type": "user", "message": {"content": "x" * 500}, "timestamp": iso_time(self.clock)})
        self.append(b"".join(lines) + result.encode() + b"\n", agent)
        self.bill += output + 15
        return lines

    def stop(self):
        """Return the tokens that the loop has used, and save the mark."""
        self.clock += 1
        mark = read_spent(self, self.fields, self.max_bytes)
        if mark:
            self.fields["spent"] = mark
        return parse_mark(mark).tokens if mark else None

    def scanned(self):
        """Return the tokens that a scan of all transcripts counts since the loop began."""
        since = datetime.fromtimestamp(BEGAN, UTC)
        columns = ("input_tokens", "cache_creation_tokens", "output_tokens")
        batches = tailhook.scan([str(self.folder)], table="usage", columns=columns, since=since)
        return sum(sum(column) for batch in batches for column in batch.columns())


@pytest.fixture
def session(tmp_path):
    return Session(tmp_path)


def test_input_cache_creation_and_output_count_and_cache_reads_do_not(session):
    session.append(session.record("a", output=3, given=20, written=100))
    assert session.stop() == 123


def test_only_responses_since_the_loop_began_count(session):
    session.append(b"".join(session.record(f"old{n}", 10**6, at=BEGAN - 5000 + n) for n in range(3000)))
    session.respond("a")
    assert session.stop() == session.bill == 115


def test_a_response_counts_once_whatever_stop_lies_between_its_records(session):
    lines = [session.record("a", output, at=BEGAN + output) for output in (1, 50, 50, 100)]
    counts = []
    for line in lines:
        session.append(line)
        session.clock += 30
        counts.append(session.stop())
    assert counts == [16, 65, 65, 115]


@pytest.mark.parametrize("seed", range(6))
def test_the_count_is_the_bill_and_what_usage_counts_at_any_stops(session, seed):
    chance = random.Random(seed)
    session.append(b"".join(session.record(f"old{n}", 9, at=BEGAN - 9000 + n) for n in range(chance.choice((0, 2000)))))
    for number in range(120):
        agent = chance.choice(("", "", "a", "b", f"n{number}"))
        session.respond(f"{seed}-{number}", chance.randrange(1, 9000), agent, chance.randrange(1, 4))
        session.clock += chance.randrange(90)
        if chance.random() < 0.2:
            assert session.stop() == session.bill
    assert session.stop() == session.bill == session.scanned()


def test_nothing_before_the_saved_place_is_read_again(session):
    for number in range(50):
        session.respond(f"a{number}")
    assert session.stop() == session.bill
    size = session.path.stat().st_size
    with session.path.open("r+b") as out:
        out.write((session.record("other", 10**6) * 1000)[: size - 1])
    session.respond("new")
    assert session.stop() == session.bill


def test_the_end_of_a_long_transcript_is_found_without_reading_it_all(session, monkeypatch):
    session.append(b"".join(session.record(f"o{n}", 1, at=BEGAN - 90_000 + n) for n in range(20_000)))
    session.respond("a")
    read = []
    real = budgets.scan_range
    monkeypatch.setattr(budgets, "scan_range", lambda fd, *part, **names: read.append(part) or real(fd, *part, **names))
    assert session.stop() == session.bill
    assert read[0][1] - read[0][0] <= FIRST_STRIDE


def test_what_is_over_the_limit_of_one_stop_is_counted_at_the_next_ones(session):
    session.respond("first")
    session.stop()
    for number in range(100):
        session.respond(f"a{number}")
        session.clock += 60
    session.max_bytes = 10_000
    counts = [session.stop() for _ in range(12)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1] == session.bill


def test_the_rest_of_sub_agents_that_have_ended_is_counted_at_the_next_stops(session):
    session.respond("first")
    session.stop()
    for number in range(40):
        session.respond(f"a{number}", agent=str(number % 4))
    session.clock += 3600
    session.max_bytes = 5000
    for _ in range(20):
        session.clock += 60
        last = session.stop()
    assert last == session.bill


@pytest.mark.parametrize("cut", [1, 40, 200])
def test_a_line_that_is_being_written_counts_when_it_is_whole(session, cut):
    session.respond("a")
    line = session.record("b", 100)
    session.append(line[:cut])
    assert session.stop() == 115
    session.append(line[cut:-1])
    assert session.stop() == 230
    session.append(b"\n")
    assert session.stop() == 230


def test_old_records_that_a_compaction_writes_again_do_not_count_twice(session):
    lines = []
    for number in range(60):
        lines += session.respond(f"a{number}")
        session.clock += 5
        if number % 20 == 0:
            session.stop()
    session.stop()
    session.append(b"".join(lines))
    assert session.stop() == session.bill
    session.respond("new")
    session.append(b"".join(lines))
    assert session.stop() == session.bill


def test_a_fork_under_a_new_id_goes_on_counting_where_the_old_session_stopped(session):
    for number in range(40):
        session.respond(f"a{number}")
    session.stop()
    session.respond("unseen")
    old = session.path.read_bytes()
    session.path = session.folder / "fork.jsonl"
    session.append(old)
    session.respond("new")
    assert session.stop() == session.bill


@pytest.mark.parametrize("replaces", [True, False], ids=["replaced", "truncated"])
def test_a_transcript_that_shrinks_or_is_replaced_holds_and_loses_nothing(session, replaces):
    for number in range(30):
        session.respond(f"a{number}")
    session.stop()
    kept = b"".join(session.path.read_bytes().splitlines(keepends=True)[-6:])
    if replaces:
        session.path.unlink()
    session.path.write_bytes(kept)
    assert session.stop() == session.bill
    session.respond("new")
    assert session.stop() == session.bill


def test_with_a_damaged_mark_everything_is_counted_again(session):
    session.respond("a")
    session.stop()
    session.respond("b")
    session.fields["spent"] = "9999999 x - -"
    assert session.stop() == session.bill


def test_a_path_without_a_transcript_leaves_the_count_alone(session):
    session.respond("a")
    session.stop()
    kept, real = session.fields["spent"], session.path
    os.mkfifo(session.folder / "fifo")
    for path in ("missing.jsonl", "", "fifo", "session", "no\0name", "x" * 5000):
        session.path = session.folder / path if path else session.folder
        assert session.stop() is None
        assert session.fields["spent"] == kept
    session.path = real
    assert session.stop() == session.bill


@in_one_test(
    "usage",
    [
        *({"input_tokens": value, "output_tokens": value} for value in ("5", -5, 1e300, 1.5, None, True, [], 2**63)),
        *([], "x", 5, None),
    ],
)
def test_other_values_than_counts_are_0(tmp_path, usage):
    session = Session(tmp_path)
    session.path.unlink(missing_ok=True)
    message = {"id": "m", "role": "assistant", "content": [], "usage": usage}
    line = {"type": "assistant", "message": message, "timestamp": iso_time(BEGAN + 1)}
    session.append(json.dumps(line).encode() + b"\n")
    session.respond("a")
    assert session.stop() == session.bill


def test_bytes_without_a_record_are_passed_over(session):
    chance = random.Random(1)
    session.append(chance.randbytes(300_000))
    session.append(b"\0" * 400_000 + b"\n")
    session.respond("a")
    session.append(b"[]\n{}\nnull\n" + chance.randbytes(1000) + b"\n")
    session.respond("b")
    assert session.stop() == session.bill


@settings(max_examples=examples(300))
@given(chunks=lists(one_of(binary(max_size=300), integers(0, 40), none()), max_size=12), mark=text(max_size=60))
def test_any_bytes_and_any_mark_give_a_count_and_no_error(tmp_path_factory, chunks, mark):
    session = Session(tmp_path_factory.mktemp("any"))
    session.fields["spent"] = mark
    before = 0
    for chunk in chunks:
        if chunk is None:
            session.path.unlink(missing_ok=True)
        elif isinstance(chunk, int):
            session.respond(f"r{chunk}", agent="a" * (chunk % 2))
        else:
            session.append(chunk)
        count = session.stop()
        assert count is None or count >= before
        before = count or before


def test_more_tokens_than_a_number_holds_stay_a_number(session):
    for number in range(4):
        session.append(session.record(f"a{number}", 2**62))
        session.clock += 1
    assert session.stop() == session.stop() == 2**53


@pytest.mark.parametrize("step", [-86_400, 86_400])
def test_a_clock_that_was_moved_neither_stops_the_count_nor_counts_again(session, step):
    session.respond("a")
    session.stop()
    session.clock += step
    session.respond("b")
    assert session.stop() == session.bill
    session.respond("c")
    assert session.stop() == session.bill


def test_many_sub_agents_at_work_at_once_count_exactly(session):
    for turn in range(4):
        for agent in range(100):
            session.respond(f"{turn}-{agent}", agent=f"a{agent}")
        assert session.stop() == session.bill == session.scanned()


def test_of_a_million_files_of_sub_agents_a_stop_looks_at_some_thousands(session, monkeypatch):
    monkeypatch.setattr(budgets, "MAX_AGENT_FILES", 50)
    session.respond("a")
    for number in range(80):
        session.file(str(number)).touch()
    assert session.stop() == 115


def test_sub_agents_of_workflows_and_no_links_are_followed(session):
    session.respond("a", agent="flow")
    folder = session.file("x").parent
    (folder / "workflows" / "w1").mkdir(parents=True)
    (folder / "agent-flow.jsonl").rename(folder / "workflows" / "w1" / "agent-flow.jsonl")
    (folder / "again").symlink_to(folder)
    assert session.stop() == session.bill


def test_a_session_without_a_beginning_counts_from_its_first_stop(session):
    session.fields["began"] = "soon"
    session.respond("a")
    assert session.stop() == 0
    session.clock += 60
    session.respond("b")
    assert session.stop() == 115
