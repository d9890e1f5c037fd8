"""The oracle of the scan: other hosts' transcripts, generated trees whose bill is known, and real transcripts."""

import json
import re
from datetime import datetime
from itertools import pairwise
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from support.cases import in_one_test
from support.corpora import transcript_paths
from support.host_records import RECORDS
from support.long_runs import examples
from support.oracles.scan import COLUMNS, TOKENS, Question, rows
from support.scans import scan_rows
from support.transcript_trees import OTHER_SESSIONS, files, grow_tree, mixed_files, random_cuts, trees
from support.written_records import scanned

from tailhook.hosts import NAMES, find_host

# ---- other hosts ---------------------------------------------------------------


def test_every_host_whose_transcripts_a_scan_finds_has_a_session():
    assert {*OTHER_SESSIONS} == {name for name in NAMES[1:] if find_host(name).TRANSCRIPT_FOLDERS}


@pytest.mark.parametrize("host", OTHER_SESSIONS)
def test_the_messages_of_another_host_are_own_words(host):
    first, records = RECORDS[host]
    found = scanned("records", first, *(one for one, _ in records))[1:]
    spoken = [words.decode() for _, message in records if message for words in [message[1]] if words]
    is_words = {"user": lambda row: row["is_prompt"], "assistant": lambda row: row["text"].strip() != ""}
    assert [row["text"] for row in found if is_words.get(row["role"], lambda _: False)(row)] == spoken
    agents = {tool for _, message in records if message for tool in message[2]}
    assert {tool for row in found for tool in row["tools"]} == agents


def test_what_is_not_utf8_is_replaced_where_no_text_is_made_of_it():
    line = b'{"type":"x","sessionId":"a\xff","cwd":"\xe2\x82\xff","version":"\xed\xa0\x80"}\n'
    (row,) = rows("records", [("/t/s.jsonl", line)])
    replaced = ["a\ufffd", "\ufffd\ufffd", "\ufffd\ufffd\ufffd"]
    assert [row[name] for name in ("session_id", "project", "host_version")] == replaced
    assert scan_rows("records", [("/t/s.jsonl", line)], Question()) == [row]


def test_the_responses_of_gemini_are_its_messages():
    counts = {"input": 50, "output": 5, "cached": 20, "thoughts": 4, "total": 59}
    message = {"id": "2", "type": "gemini", "content": "x", "model": "gemini-3", "tokens": counts}
    (row,) = scanned("usage", RECORDS["gemini"][0], {**message, "tokens": None}, message, message)
    assert [row[name] for name in ("message_id", "model", *TOKENS)] == ["2", "gemini-3", 30, 9, 20, None]


def test_messages_that_gemini_repeats_are_records_if_they_are_new():
    asked = {"id": "1", "type": "user", "content": "TODO"}
    edited = {**asked, "content": "Do it."}
    changed = {"$set": {"messages": [asked, edited, edited, {"type": "user", "content": "No id."}]}}
    found = scanned("records", RECORDS["gemini"][0], asked, changed, changed)
    assert [row["text"] for row in found] == ["", "TODO", "", "Do it.", ""]
    assert found[2]["offset"] == found[3]["offset"]


def test_a_usage_record_of_codex_is_a_message_without_words():
    payload = {"response_id": "resp_1", "usage": {"input_tokens": 1}}
    *_, row = scanned("records", RECORDS["codex"][0], {"type": "token_usage_record", "payload": payload})
    assert [row[name] for name in ("type", "message_id", "text")] == ["assistant", "resp_1", ""]


def test_the_responses_of_copilot_are_its_usage_records():
    message = {"type": "assistant.message", "data": {"messageId": "m", "content": "x", "outputTokens": 5}}
    used = {"model": "g", "inputTokens": 10, "outputTokens": 5, "cacheReadTokens": 4, "cacheWriteTokens": 1}
    counted = {"type": "session.usage_record", "id": "u", "data": {"usage": used}}
    (row,) = scanned("usage", RECORDS["copilot"][0], message, counted, counted)
    assert [row[name] for name in ("message_id", "model", *TOKENS)] == [None, "g", 5, 5, 4, 1]


TRANSLATED = {
    "codex": ["session_meta", "response_item", *["user"] * 7, "assistant", "assistant", "user", "event_msg"],
    "gemini": [None, None, "user", "user", "assistant", "assistant", "user", None, "assistant"],
    "copilot": [
        "session.start",
        "hook.start",
        "user",
        "system.message",
        "assistant",
        "assistant.turn_end",
        "assistant",
    ],
    "qwen": ["user", "user", "system", "assistant", "user", "assistant"],
}


@pytest.mark.parametrize("host", OTHER_SESSIONS)
def test_a_record_of_another_host_has_claude_codes_type_where_it_is_translated(host):
    first, records = RECORDS[host]
    found = scanned("records", first, *(one for one, _ in records))
    assert [row["type"] for row in found][: len(TRANSLATED[host])] == TRANSLATED[host]


@pytest.mark.parametrize(
    "member", [b'"content":"a \xff b"', b'"content":"x","timestamp":"2026\xff"', b'"content":"x","model":"\xff"']
)
def test_a_damaged_message_that_gemini_states_again_is_a_record(member):
    head = b'{"sessionId":"g","projectHash":"76f3","kind":"main"}\n'
    line = b'{"$set":{"messages":[{"id":"m1","type":"gemini",%s}]}}\n' % member
    written = [("gemini/session.jsonl", head + line)]
    found = scan_rows("records", written, Question())
    assert [row["type"] for row in found] == [None, None, "assistant"]
    assert found == rows("records", written, Question())


def test_the_first_of_equal_records_of_a_response_of_another_host_counts():
    head = b'{"sessionId":"g","projectHash":"76f3","kind":"main"}\n'
    line = b'{"id":"m1","timestamp":"2026-11-01T12:0%d:00Z","type":"gemini","content":"x","tokens":{"output":2}}\n'
    named = [(f"{number}/session.jsonl", head + line % number) for number in range(2)]
    found = scan_rows("usage", named, Question())
    assert [row["timestamp"].minute for row in found] == [0]
    assert found == rows("usage", named, Question())


def test_a_compaction_is_a_system_record_whatever_the_host():
    for host, compacted in (("codex", {"type": "compacted"}), ("copilot", {"type": "session.compaction_complete"})):
        _, row = scanned("records", RECORDS[host][0], compacted)
        assert (row["type"], row["subtype"]) == ("system", "compact_boundary")


def test_codex_changes_model_and_folder_for_later_records_but_never_the_session():
    meta = {"type": "session_meta", "payload": {"session_id": "parent", "cwd": "/other"}}
    turn = {"type": "turn_context", "payload": {"cwd": "/q", "model": "m"}}
    found = scanned("records", RECORDS["codex"][0], meta, RECORDS["codex"][1][-1][0], turn, RECORDS["codex"][1][-1][0])
    assert [(row["project"], row["model"], row["session_id"]) for row in found] == [
        *[("/p", None, "s")] * 3, ("/q", None, "s"), ("/q", "m", "s"),
    ]  # fmt: skip


def test_a_codex_session_may_be_forked():
    meta = {"type": "session_meta", "payload": {"session_id": "s", "forked_from_id": "root"}}
    assert scanned("sessions", meta)[0]["parent"] == "root"


def test_the_first_file_of_a_patch_is_its_file():
    patch = "*** Begin Patch\n@@ *** Add File: no\n*** Update File: a b.py \t\r\n*** Add File: c.py"
    calls = [
        {"type": "custom_tool_call", "name": "apply_patch", "input": patch},
        {"type": "function_call", "name": "apply_patch", "arguments": json.dumps({"input": patch})},
        {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Add File: "},
    ]
    first, *_ = RECORDS["codex"]
    tools = scanned("tools", first, *({"type": "response_item", "payload": call} for call in calls))
    assert [row["file"] for row in tools] == ["a b.py", "a b.py", None]


@pytest.mark.parametrize("host", OTHER_SESSIONS)
def test_the_tools_of_another_host_have_results_and_commands(host):
    data = OTHER_SESSIONS[host](Random(3))
    tools = rows("tools", [("/t/x.jsonl", data)])
    assert {row["command"] or row["file"] or row["name"] for row in tools} <= {
        "ls",
        "make test",
        "src/ä b.py",
        "broken",
    }
    assert tools
    assert any(row["is_error"] is not None and row["ended"] for row in tools)


# ---- generated trees -----------------------------------------------------------

slow = settings(
    max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def joined(named):
    """Return the files as one, in the order of their paths; a file without a final newline gets one."""
    return b"".join(data if data.endswith(b"\n") else data + b"\n" for _, data in sorted(named))


def tokens_of(usage):
    return sorted(tuple(row[name] for name in TOKENS) for row in usage)


@in_one_test("seed", range(60))
def test_a_tree_is_billed_once_however_its_lines_are_repeated(seed):
    tree = grow_tree(Random(seed))
    assert tokens_of(rows("usage", tree.files)) == sorted(tree.billed.values())


@slow
@given(trees())
def test_the_order_of_files_does_not_matter(tree):
    for table in COLUMNS:
        assert rows(table, tree.files) == rows(table, tree.files[::-1])


@slow
@given(trees())
def test_usage_does_not_change_if_files_are_concatenated_in_the_order_of_their_paths(tree):
    assert rows("usage", [("all.jsonl", joined(tree.files))]) == rows("usage", tree.files)


@in_one_test("seed", range(20))
def test_usage_does_not_change_if_files_are_cut_between_lines(seed):
    random = Random(seed)
    tree = grow_tree(random)
    cut = []
    for path, data in tree.files:
        starts = {0, len(data), *(data.find(b"\n", at) + 1 for at, _ in random_cuts(random, len(data), 9000))}
        cut += [(f"{path}/{at:09}", data[at:end]) for at, end in pairwise(sorted(starts))]
    assert rows("usage", cut) == rows("usage", tree.files)


@in_one_test("seed", range(20))
def test_bytes_of_sessions_add_up_to_those_of_the_files(seed):
    every = mixed_files(Random(seed))
    lines = [line for _, data in every for line in re.findall(rb"[^\n]*\n|[^\n]+", data)]
    blank = sum(len(line) for line in lines if not line.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n"))
    assert sum(row["bytes"] for row in rows("sessions", every)) + blank == sum(len(data) for _, data in every)


@slow
@given(files())
def test_every_row_has_the_columns_and_types_of_its_table(every):
    question = Question(patterns={"t": "TODO"}, signals=True, categories=True, in_code=None, all_text=True)
    for table, columns in COLUMNS.items():
        for row in rows(table, every, question):
            assert list(row) == list(columns)
            for name, value in row.items():
                assert type(value) in TYPES.get(name, (str, type(None))), (table, name, value)
    for row in rows("matches", every, question):
        assert row["end"] > row["start"] >= 0


@pytest.mark.parametrize("table", COLUMNS)
def test_every_column_has_several_values_in_generated_files(table):
    """If a column has one value, a generator of transcript_trees.py lacks its member."""
    question = Question(patterns={"t": "TODO"}, signals=True, in_code=None, all_text=True)
    found = [row for seed in range(8) for row in rows(table, mixed_files(Random(seed)), question)]
    assert [name for name in COLUMNS[table] if len({str(row[name]) for row in found}) < 2] == []


INT, FLAG, TIME = (int,), (bool,), (datetime, type(None))
TYPES = {
    **dict.fromkeys(("offset", "start", "end", "line", "text_bytes", "bytes", "broken_lines", "errors"), INT),
    **dict.fromkeys(("prompts", "messages", "tool_calls", "sub_agents"), INT),
    **dict.fromkeys(("is_prompt", "is_sidechain", "is_meta", "in_code"), FLAG),
    **dict.fromkeys(("timestamp", "started", "ended"), TIME),
    **dict.fromkeys(("duration_ms", *TOKENS), (int, type(None))),
    **dict.fromkeys(("tools", "models"), (list,)),
    "is_error": (bool, type(None)),
    "start": (int, *TIME),
    "end": (int, *TIME),
}


# ---- real transcripts ----------------------------------------------------------


def test_real_transcripts_are_billed_once_for_each_message():
    named = [(str(path), path.read_bytes()) for path in transcript_paths()]
    messages = set()
    for _, data in named:
        for line in data.splitlines():
            one = json.loads(line)
            one = one["data"].get("message") or {} if one["type"] == "progress" else one
            if one.get("type") == "assistant" and one["message"]["model"] != "<synthetic>":
                messages.add(one["message"]["id"])
    usage = rows("usage", named)
    assert sorted(row["message_id"] for row in usage) == sorted(messages)
    assert rows("usage", [("all", joined(named))]) == usage
