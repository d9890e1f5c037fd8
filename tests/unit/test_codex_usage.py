"""The responses of Codex: which records of a rollout file are one response, and which lines repeat another thread's."""

import itertools
import json
from random import Random

import pytest
from support.oracles.scan import Question
from support.scans import scan_file, scan_rows
from support.written_records import lines

import tailhook
from tailhook.fleet.answer import Conditions
from tailhook.fleet.columns import MatchOptions
from tailhook.fleet.program import CompiledSets, make_program
from tailhook.fleet.reduce import USAGE_HALF

NAMES = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens")
FIRST, SECOND, THIRD = (1000, 200, 50, 10), (2000, 1000, 100, 0), (3000, 2500, 30, 5)


class Thread:
    """A rollout file that a test writes line by line."""

    def __init__(self, name, parent=None, ordinals=False, **meta):
        self.name, self.ordinals = name, ordinals
        self.records, self.totals, self.seconds = [], [0] * 5, itertools.count()
        forked = {} if parent is None else {"forked_from_id": parent.name}
        self.add("session_meta", id=name, cwd="/p", **forked, **meta)
        self.add("turn_context", cwd="/p", model="gpt-5.5")

    def add(self, kind, **payload):
        ordinal = {"ordinal": len(self.records)} if self.ordinals else {}
        stamp = f"2026-08-15T10:00:{next(self.seconds):02}.000Z"
        self.records.append({"timestamp": stamp, **ordinal, "type": kind, "payload": payload})

    def respond(self, tokens, response_id=None, count=True):
        """Write a response: its token_usage_record if it has an id, and its token_count."""
        last = [*tokens, tokens[0] + tokens[2]]
        self.totals = [sum(pair) for pair in zip(self.totals, last, strict=True)]
        if response_id is not None:
            usage = dict(zip(NAMES, last, strict=True))
            self.add("token_usage_record", thread_id=self.name, response_id=response_id, usage=usage)
        if count:
            self.count(last)
        return self

    def count(self, last, totals=None):
        info = {"total_token_usage": self.totals if totals is None else totals, "last_token_usage": last}
        info = {name: dict(zip(NAMES, counts, strict=True)) for name, counts in info.items()}
        self.add("event_msg", type="token_count", info=info)

    def repeat(self, other, *, meta=True, named=True):
        """Write the lines of another thread again, as a fork does.  named: with its token_usage_records."""
        for record in other.records[0 if meta else 1 :]:
            if named or record["type"] != "token_usage_record":
                self.add(record["type"], **record["payload"])
        self.totals = list(other.totals)
        return self


def counted(*threads, random=None):
    """Return (session, input without the cache, output, read from the cache) of each response, sorted."""
    files = [(f"/t/rollout-{thread.name}.jsonl", lines(*thread.records)) for thread in threads]
    names = ("session_id", "input_tokens", "output_tokens", "cache_read_tokens")
    return sorted(tuple(row[name] for name in names) for row in scan_rows("usage", files, Question(), random))


def row(session, tokens):
    return (session, tokens[0] - tokens[1], tokens[2], tokens[1])


@pytest.mark.parametrize("ordinals", [False, True])
@pytest.mark.parametrize("ids", [("r1", "r2"), (None, None), (None, "r2")], ids=["both", "counts only", "upgraded"])
def test_codex_writes_token_usage_records_with_or_without_ordinals(ordinals, ids):
    thread = Thread("a", ordinals=ordinals).respond(FIRST, ids[0]).respond(SECOND, ids[1])
    assert counted(thread) == sorted([row("a", FIRST), row("a", SECOND)])
    assert counted(thread, random=Random(1)) == counted(thread)


def test_each_message_of_the_library_has_the_tokens_of_one_response(tmp_path):
    path = tmp_path / "rollout.jsonl"
    thread = Thread("a").respond(FIRST).respond(SECOND, "r2")
    path.write_bytes(lines(*thread.records))
    with tailhook.open(path) as session:
        forwards = [record.usage.output for record in session if record.usage]
        backwards = [record.usage.output for record in session.reversed() if record.usage]
        assert [message.usage.output for message in session.messages() if message.usage] == forwards == [50, 100]
        assert backwards == [100, 50]


def test_a_response_whose_token_count_is_missing_counts():
    assert counted(Thread("a").respond(FIRST, "r1", count=False)) == [row("a", FIRST)]


def test_a_token_count_with_unchanged_totals_is_not_a_response():
    thread = Thread("a").respond(FIRST)
    thread.count([900, 0, 77, 0, 977])  # not billed
    thread.respond(SECOND)
    assert counted(thread) == sorted([row("a", FIRST), row("a", SECOND)])


def test_a_token_count_without_tokens_is_not_a_response():
    thread = Thread("a")
    thread.count([0, 0, 0, 0, 5000])  # an estimate, which a compaction leaves
    assert counted(thread.respond(FIRST)) == [row("a", FIRST)]


def test_a_token_count_that_is_written_again_when_a_session_is_resumed_is_not_a_response():
    thread = Thread("a").respond(FIRST)
    thread.add("event_msg", type="token_count", info=None)
    thread.count([*FIRST, 1050])
    assert counted(thread.respond(SECOND, "r2")) == sorted([row("a", FIRST), row("a", SECOND)])


def test_a_response_that_a_fork_repeats_belongs_to_its_parent_also_in_a_fork_of_a_fork():
    parent = Thread("a").respond(FIRST)
    child = Thread("b", parent).repeat(parent, meta=False).respond(SECOND)
    grandchild = Thread("c", child).repeat(child, meta=False).respond(THIRD)
    wanted = [row("a", FIRST), row("b", SECOND), row("c", THIRD)]
    assert counted(parent, child, grandchild) == counted(grandchild, child, parent) == wanted
    copied = Thread("c", child).repeat(Thread("b", parent).repeat(parent).respond(SECOND)).respond(THIRD)
    assert counted(parent, child, copied) == wanted


def test_a_response_that_a_sub_agent_repeats_belongs_to_its_parent_if_only_the_source_names_it():
    parent = Thread("a").respond(FIRST).respond(SECOND)
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "a", "depth": 1}}}
    child = Thread("b", source=source).repeat(parent, meta=False).respond(THIRD)
    assert counted(parent, child) == sorted([row("a", FIRST), row("a", SECOND), row("b", THIRD)])


def test_two_sub_agents_that_start_at_zero_are_two_even_if_their_totals_are_equal():
    parent = Thread("a", session_id="a").respond(FIRST)
    children = [
        Thread(name, parent, session_id="a", parent_thread_id="a").respond(SECOND).respond(THIRD) for name in "bc"
    ]
    assert counted(parent, *children) == sorted([row("a", FIRST), *[row("a", SECOND), row("a", THIRD)] * 2])


def test_two_forks_whose_own_responses_have_equal_tokens_are_two():
    parent = Thread("a").respond(FIRST)
    children = [Thread(name, parent).repeat(parent).respond(SECOND) for name in "bc"]
    assert counted(parent, *children) == sorted([row("a", FIRST), row("b", SECOND), row("c", SECOND)])


@pytest.mark.parametrize("named", [False, True])
def test_a_response_with_an_id_counts_once_if_a_sub_agent_repeats_its_token_count(named):
    parent = Thread("a").respond(FIRST, "r1").respond(SECOND, "r2")
    child = Thread("b", parent).repeat(parent, meta=False, named=named).respond(THIRD, "r3")
    grandchild = Thread("c", child).repeat(child, named=False).respond(FIRST, "r4")
    wanted = sorted([row("a", FIRST), row("a", SECOND), row("b", THIRD), row("c", FIRST)])
    assert counted(parent, child, grandchild) == wanted


def test_a_repeated_response_has_the_time_of_the_first_one():
    parent = Thread("a").respond(FIRST)
    child = Thread("b", parent)
    child.seconds = itertools.count(40)
    child.repeat(parent)
    files = [(f"/t/{thread.name}.jsonl", lines(*thread.records)) for thread in (child, parent)]
    (found,) = scan_rows("usage", files, Question())
    assert json.loads(lines(parent.records[-1]))["timestamp"].startswith(f"{found['timestamp']:%Y-%m-%dT%H:%M:%S}")


def test_all_records_of_a_response_are_in_one_bucket_of_an_engine():
    pyarrow = pytest.importorskip("pyarrow")
    from tailhook.fleet import engines

    parent = Thread("a").respond(FIRST, "r1").respond(SECOND)
    child = Thread("b", parent).repeat(parent, named=False)
    files = [(f"/t/{thread.name}.jsonl", lines(*thread.records)) for thread in (parent, child)]
    program = make_program("usage", USAGE_HALF, CompiledSets(), Conditions(), MatchOptions())
    halves = [pyarrow.table(batch) for path, data in files for batch in scan_file(program, path, data, None)]
    packed = engines.pack("usage", halves, 1 << 20).to_pylist()
    buckets = {}
    for one in packed:
        buckets.setdefault(one["bucket"], []).append(one["halves"])
    found = [engines.count_usage(engines.unpack(["usage"] * len(some), some)) for some in buckets.values()]
    assert sum(len(batch) for counter in found for batch in counter.rows(("session_id",))) == 2
    assert len(buckets) == 1
