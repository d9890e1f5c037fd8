"""The oracle of the scan: each rule of docs/scan-rows.md on records written by hand, with the rows worked out by hand.

The last section compares it with what generated trees were billed, and checks what must not change the rows.
"""

import json
import re
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from support.corpora import transcript_paths
from support.host_records import RECORDS
from support.long_runs import examples
from support.oracles.scan import COLUMNS, TOKENS, Question, rows
from support.oracles.scan_records import object_in, parse_time
from support.scans import scan_rows
from support.transcript_trees import OTHER_SESSIONS, files, grow_tree, mixed_files, random_cuts, trees

PAGE = Path(__file__).parents[2] / "docs" / "scan-rows.md"
NOON = datetime(2026, 11, 1, 12, 0, tzinfo=timezone.utc)
FENCED = "```\nTODO\n```\n"


def at(seconds=0):
    return NOON + timedelta(seconds=seconds)


def lines(*records, end=b"\n"):
    """Return the lines of records; bytes stay as they are."""
    return b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + end for one in records)


def record(kind, content=None, seconds=0, message=None, **members):
    """Return a record of session s; seconds: its time after noon."""
    body = {} if content is None and message is None else {"message": {"role": kind, "content": content}}
    if message:
        body["message"] |= message
    stamp = at(seconds).isoformat().replace("+00:00", "Z")
    return {"type": kind, "sessionId": "s", "cwd": "/p", "timestamp": stamp, **body, **members}


def said(text, seconds=0, **members):
    return record("assistant", [{"type": "text", "text": text}], seconds, **members)


def typed(text, seconds=0, **members):
    return record("user", text, seconds, **members)


def queued(prompt, **members):
    attachment = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt", **members}
    return record("attachment", attachment=attachment)


def response(message_id, output, seconds=0, request=None, **members):
    message = {"usage": {"input_tokens": 1, "output_tokens": output}, "model": "m"}
    message |= {} if message_id is None else {"id": message_id}
    more = {"requestId": request} if request else {}
    return record("assistant", [], seconds, message=message, **more, **members)


def nested(inner, agent="a1", **members):
    return record("progress", data={"message": inner, "agentId": agent}, **members)


def scanned(table, *records, **question):
    """Return the rows of one file, /t/s.jsonl."""
    return rows(table, [("/t/s.jsonl", lines(*records))], Question(**question))


def found(*records, **question):
    """Return the matches of the pattern TODO as (start, end, line, in_code)."""
    matches = scanned("matches", *records, **{"patterns": {"todo": "TODO"}, **question})
    return [(row["start"], row["end"], row["line"], row["in_code"]) for row in matches]


def billed(*of_files, **question):
    """Return (message id, output tokens, session) of each response; of_files: lists of records."""
    named = [(f"/t/{number}.jsonl", lines(*records)) for number, records in enumerate(of_files)]
    usage = rows("usage", named, Question(**question))
    return [(row["message_id"], row["output_tokens"], row["session_id"]) for row in usage]


# ---- all tables ----------------------------------------------------------------


@pytest.mark.parametrize("table", COLUMNS)
def test_the_page_lists_the_columns_in_their_order(table):
    section = PAGE.read_text().split(f"## {table}\n", 1)[1].split("\n## ", 1)[0]
    named = [
        name for cell in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)
    ]
    assert named == list(COLUMNS[table])


def test_offsets_are_those_of_the_lines():
    data = b"\n" + lines(typed("a")) + b" \t\r\n" + lines(typed("b"), end=b"\r\n") + lines(typed("c"), end=b"")
    records = rows("records", [("/t/s.jsonl", data)])
    assert [data[row["offset"] :].split(b"\n")[0].rstrip() for row in records] == [
        lines(typed(text), end=b"") for text in "abc"
    ]


def test_a_record_has_every_column():
    written = said(
        "é",
        1.5,
        uuid="u",
        parentUuid="v",
        version="2.1.9",
        gitBranch="main",
        agentId="a",
        isSidechain=True,
        requestId="r",
        message={"id": "m", "model": "claude"},
    )
    assert scanned("records", written) == [
        {
            "path": "/t/s.jsonl",
            "offset": 0,
            "host": "claude-code",
            "host_version": "2.1.9",
            "session_id": "s",
            "agent_id": "a",
            "project": "/p",
            "git_branch": "main",
            "uuid": "u",
            "parent_uuid": "v",
            "type": "assistant",
            "subtype": None,
            "role": "assistant",
            "timestamp": at(1.5),
            "message_id": "m",
            "request_id": "r",
            "model": "claude",
            "is_prompt": False,
            "is_sidechain": True,
            "is_meta": False,
            "is_error": False,
            "tools": [],
            "text_bytes": 2,
            "text": "é",
        }
    ]


def test_a_value_that_is_missing_or_of_another_type_is_null():
    empty, wrong = scanned(
        "records", {"type": "new"}, {"type": "user", "cwd": 5, "message": [], "isMeta": 1, "uuid": {}}
    )
    assert empty == {**dict.fromkeys(COLUMNS["records"]), **SAME_IN_EMPTY, "offset": 0, "type": "new"}
    assert wrong == {**dict.fromkeys(COLUMNS["records"]), **SAME_IN_EMPTY, "offset": 16, "type": "user", "role": "user"}


SAME_IN_EMPTY = {
    "path": "/t/s.jsonl",
    "host": "claude-code",
    "session_id": "s",
    **dict.fromkeys(("is_prompt", "is_sidechain", "is_meta", "is_error"), False),
    "tools": [],
    "text_bytes": 0,
    "text": "",
}


def test_the_last_of_equal_names_counts():
    (row,) = scanned("records", b'{"type":"user","cwd":"/a","cwd":"/b","message":5,"message":{"content":"x"}}')
    assert (row["project"], row["text"]) == ("/b", "x")


def test_a_lone_surrogate_becomes_one_replacement_character():
    (row,) = scanned("matches", said("a\ud83d TODO"), patterns={"t": "TODO"})
    assert (row["start"], row["context"]) == (3, "a\ufffd TODO")


@pytest.mark.parametrize(
    ("line", "has_record", "is_broken"),
    [
        (b'{"type":"x"}', True, False),
        (b' {"type":"x"} \r', True, False),
        (b'\xef\xbb\xbf{"type":"x"}', True, False),
        (b'{"type":"x"}{"type":"y"', True, True),
        (b'\0\0{"type":"x"}', True, True),
        (b'{"type":"x","y":NaN}', False, True),
        (b'{"type":"x"', False, True),
        (b"\0\0", False, True),
        (b"[]", False, True),
        (b'{"type":"\xff"}', False, True),
        (b'{"type":"x","toolUseResult":"\xff"}', True, False),
    ],
)
def test_a_broken_line_may_have_a_record_all_the_same(line, has_record, is_broken):
    assert len(scanned("records", line)) == has_record
    assert scanned("sessions", line)[0]["broken_lines"] == is_broken


@pytest.mark.parametrize("line", [b"", b" \t\r", b"\xef\xbb\xbf", b"\xef\xbb\xbf \r"])
def test_a_line_without_anything_but_blank_space_and_a_byte_order_mark_at_its_beginning_does_not_count(line):
    assert scanned("sessions", line + b"\n") == []


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (b'{"a":1}{"b":2}', '{"b":2}'),
        (b'{"a":1}\0\0{"b":', '{"a":1}'),
        (b'{"torn":"abc{"a":1}', '{"a":1}'),
        (b'log: {"a":1}', '{"a":1}'),
        (b'{"torn":{"a":1}', None),
        (b'{"torn":[{},{"a":1}', None),
        (b'sage":{"a":1}', None),
        (b'x{"a":1}x', None),
    ],
)
def test_the_record_of_a_broken_line_is_its_last_object_that_is_not_nested(line, wanted):
    assert object_in(line) == (wanted, True)


@pytest.mark.parametrize(
    ("stamp", "time"),
    [
        ("2026-11-01T12:00:00Z", at()),
        ("2026-11-01T12:00:00", at()),
        ("2026-11-01T17:30:00+05:30", at()),
        ("2026-11-01t12:00:01.2345678z", at(1.234567)),
        ("20261101T120000,5Z", at(0.5)),
        ("2026-11-01", at(-12 * 3600)),
        ("2026-W44-7T12:00Z", at()),
        ("2026-10-31T23:59:60Z", at(-12 * 3600)),
        ("0001-01-01T00:00:00+01:00", None),
        ("2026-02-30T00:00:00Z", None),
        ("yesterday", None),
        ("", None),
        (1793534400, None),
        (None, None),
    ],
)
def test_a_time_is_iso_8601_in_utc_at_microseconds(stamp, time):
    assert parse_time(stamp) == time


# ---- conditions ----------------------------------------------------------------


def test_since_is_inclusive_and_until_exclusive():
    records = [typed("a", 0), typed("b", 1), typed("c", 2), {"type": "summary"}]
    between = scanned("records", *records, since=at(1), until=at(2))
    assert [row["text"] for row in between] == ["b"]
    assert len(scanned("records", *records)) == 4


@pytest.mark.parametrize(
    ("project", "wanted"),
    [
        ("/p", ["/p", "/p/web", "/p/"]),
        ("/p/", ["/p", "/p/web", "/p/"]),
        ("/p/web", ["/p/web"]),
        ("C:\\a", ["C:\\a\\b"]),
    ],
)
def test_a_project_is_a_folder_and_those_below_it(project, wanted):
    records = [typed("x", cwd=folder) for folder in ("/p", "/p/web", "/p/", "/pp", "/", "C:\\a\\b")]
    assert [row["project"] for row in scanned("records", *records, {"type": "mode"}, project=project)] == wanted


def test_sessions_and_roles_are_compared_as_they_are():
    records = [typed("a"), said("b", sessionId="t"), typed("c", sessionId="t"), {"type": "mode"}]
    assert [row["text"] for row in scanned("records", *records, sessions=("t",), roles=("user",))] == ["c"]
    assert [row["type"] for row in scanned("records", *records, sessions=("s",))] == ["user", "mode"]


# ---- the file's own session and host -------------------------------------------


def test_a_record_without_a_session_belongs_to_the_first_one_of_the_file():
    records = scanned("records", {"type": "summary"}, typed("a", sessionId=""), typed("b", sessionId="t"), typed("c"))
    assert [row["session_id"] for row in records] == ["t", "t", "t", "s"]


def test_a_session_that_is_named_after_the_first_mebibyte_is_not_the_files_own():
    padding = {"type": "summary", "summary": "x" * (1 << 20)}
    before = scanned("records", {"type": "mode"}, padding, typed("a", sessionId="t"))
    assert [row["session_id"] for row in before] == ["s", "s", "t"]


@pytest.mark.parametrize("path", ["/t/own.jsonl", "own.jsonl.gz", "C:\\t\\own.jsonl.zst", "s3://b/own"])
def test_otherwise_the_files_own_session_is_its_name(path):
    assert rows("records", [(path, b"{}")])[0]["session_id"] == "own"


@pytest.mark.parametrize("host", ["codex", "gemini", "copilot"])
def test_another_hosts_first_record_names_host_and_session(host):
    first, records = RECORDS[host]
    found = scanned("records", b"torn", first, *(one for one, _ in records))
    assert {(row["host"], row["session_id"]) for row in found} == {(host, "s")}


# ---- own words -----------------------------------------------------------------

NOT_OWN = {
    "a tool's result": record("user", [{"type": "tool_result", "content": "TODO"}]),
    "thinking": record("assistant", [{"type": "thinking", "thinking": "TODO"}]),
    "a system record": {"type": "system", "content": "TODO"},
    "a progress record": nested(said("TODO")),
    "an attachment": record("attachment", attachment={"prompt": "TODO"}),
    "a task's notification in the queue": queued("TODO", commandMode="task-notification"),
}
ONLY_WITH_ALL_TEXT = {
    "meta": typed("TODO", isMeta=True),
    "an API error": said("TODO", isApiErrorMessage=True),
    "a compact summary": typed("TODO", isCompactSummary=True),
    "hook feedback": typed("Stop hook feedback:\nTODO"),
    "an interruption": record("user", [{"type": "text", "text": "[Request interrupted by user] TODO"}]),
    "a command": typed("<command-name>/x</command-name> TODO"),
    "a command's output": typed("\n<local-command-stdout>TODO"),
    "a task's notification": typed("<task-notification>TODO"),
    "a request as a blob": record("api-request-blob", "TODO"),
}


@pytest.mark.parametrize("case", NOT_OWN)
def test_what_is_not_a_records_text_has_no_match(case):
    assert found(NOT_OWN[case]) == found(NOT_OWN[case], all_text=True, sidechains=True) == []


@pytest.mark.parametrize("case", ONLY_WITH_ALL_TEXT)
def test_text_that_is_not_own_words_matches_with_all_text_only(case):
    assert found(ONLY_WITH_ALL_TEXT[case], sidechains=True) == []
    assert len(found(ONLY_WITH_ALL_TEXT[case], all_text=True)) == 1


def test_a_sub_agents_words_match_with_sidechains_or_all_text():
    agents = [said("TODO", isSidechain=True, agentId="a"), typed("TODO", isSidechain=True, isMeta=True)]
    assert [len(found(*agents, **more)) for more in ({}, {"sidechains": True}, {"all_text": True})] == [0, 1, 2]


def test_words_of_the_host_are_words_if_the_agent_writes_them():
    assert len(found(said("<command-name> TODO"), said("Stop hook feedback: TODO"))) == 2


def test_the_flat_shape_and_a_string_as_content_are_words():
    assert (
        len(found({"type": "human", "content": "TODO"}, {"type": "assistant", "content": "TODO"}, typed("TODO"))) == 3
    )


def test_a_bare_string_in_a_list_of_blocks_is_words():
    assert found(record("assistant", ["TODO", {"type": "text", "text": "TODO"}])) == [
        (0, 4, 1, False),
        (5, 9, 2, False),
    ]


def test_text_beside_a_tools_result_is_words_but_not_a_prompt():
    both = record("user", [{"type": "tool_result", "content": "TODO"}, {"type": "text", "text": "TODO"}])
    assert found(both) == [(0, 4, 1, False)]
    assert [row["is_prompt"] for row in scanned("records", both)] == [False]


def test_a_prompt_that_was_queued_while_the_agent_worked_is_a_persons_own_words():
    written = queued("Then: TODO") | {"uuid": "u"}
    assert found(written) == found(written, roles=("user",)) == [(6, 10, 1, False)]
    (row,) = scanned("records", written)
    assert (row["type"], row["role"], row["is_prompt"], row["text"]) == ("attachment", "user", True, "Then: TODO")
    (row,) = scanned("sessions", typed("a", uuid="v"), said("b"), written, written)
    assert (row["prompts"], row["messages"]) == (2, 3)


def test_a_prompt_is_a_persons_own_words():
    records = [
        typed("a"),
        typed("<command-name>/x"),
        typed("m", isMeta=True),
        typed("agent", isSidechain=True),
        said("b"),
        record("user", [{"type": "tool_result", "content": "c"}]),
        typed("d", message={"role": "assistant"}),
        typed("e", origin={"kind": "task-notification"}),
    ]
    assert [row["is_prompt"] for row in scanned("records", *records)] == [True] + [False] * 7


# ---- matches -------------------------------------------------------------------


def test_a_match_has_every_column():
    (row,) = scanned("matches", said("a\nTODO b", 1, message={"id": "m"}), patterns={"t": "TODO"}, context=2)
    assert row == {
        "path": "/t/s.jsonl",
        "offset": 0,
        "session_id": "s",
        "agent_id": None,
        "project": "/p",
        "role": "assistant",
        "timestamp": at(1),
        "message_id": "m",
        "name": "t",
        "start": 2,
        "end": 6,
        "line": 2,
        "in_code": False,
        "context": "a\nTODO b",
    }


def test_overlapping_matches_all_count_in_order_of_start_end_and_name():
    found = scanned(
        "matches", said("ushers aaa"), patterns={"z": "he", "s": "she", "h": "hers", "twin": "he", "a": "aa"}
    )
    assert [(row["name"], row["start"], row["end"]) for row in found] == [
        ("s", 1, 4), ("z", 2, 4), ("twin", 2, 4), ("h", 2, 6), ("a", 7, 9), ("a", 8, 10)
    ]  # fmt: skip


def test_positions_count_characters_of_the_text_of_all_blocks():
    blocks = [{"type": "text", "text": text} for text in ("😀 TODO", " \n", "é\r\nTODO\rTODO")]
    assert found(record("assistant", blocks)) == [(2, 6, 1, False), (10, 14, 3, False), (15, 19, 4, False)]


@pytest.mark.parametrize(
    ("in_code", "wanted"),
    [(False, [(13, 17)]), (True, [(4, 8), (19, 23)]), (None, [(4, 8), (13, 17), (19, 23)])],
)
def test_matches_outside_code_inside_code_or_both(in_code, wanted):
    assert [hit[:2] for hit in found(said(FENCED + "TODO `TODO`"), in_code=in_code)] == wanted


def test_a_match_that_is_partly_in_code_is_in_code():
    assert [row["in_code"] for row in scanned("matches", said("a `b`"), patterns={"x": "a `"}, in_code=None)] == [True]


def test_a_signal_is_alone_on_its_line_and_named_as_it_is_written():
    done, stuck = "<loop-done>COMPLETE</loop-done>", "<loop-done>STUCK</loop-done>"
    text = f"> - {done} \n# {stuck}\n{stuck}.\n```\n{stuck}\n```"
    named = [(row["name"], row["line"]) for row in scanned("matches", said(text), signals=True)]
    assert named == [(done, 1)]
    in_code = scanned("matches", said(text), signals=True, in_code=True)
    assert [(row["name"], row["line"]) for row in in_code] == [(stuck, 5)]


def test_a_category_matches_at_each_of_its_keywords_but_not_at_boosters():
    text = "We CHOSE it because of the api\n limit; TODOs, chosen"
    matches = scanned("matches", said(text), categories=True)
    assert [(row["name"], text[row["start"] : row["end"]]) for row in matches] == [
        ("DECISION", "CHOSE"), ("CONSTRAINT", "api\n limit")
    ]  # fmt: skip


# ---- records -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "is_error"),
    [
        (said("x", isApiErrorMessage=True), True),
        (record("system", subtype="api_error"), True),
        (record("user", [{"type": "tool_result", "is_error": True}]), True),
        (record("user", [{"type": "tool_result", "is_error": "true"}]), False),
        (record("system", subtype="turn_duration", level="error"), False),
    ],
)
def test_an_error_is_an_api_error_or_a_tools(written, is_error):
    assert scanned("records", written)[0]["is_error"] is is_error


def test_tools_are_the_names_of_the_uses_in_order():
    uses = [{"type": "tool_use", "name": "B"}, {"type": "tool_use"}, {"type": "tool_use", "name": "A"}]
    assert scanned("records", record("assistant", uses))[0]["tools"] == ["B", "A"]
    assert scanned("records", {"type": "tool_use", "name": "Flat"})[0]["tools"] == ["Flat"]


# ---- tools ---------------------------------------------------------------------


def use(use_id, seconds=0, name="Bash", **members):
    block = {"type": "tool_use", "id": use_id, "name": name, "input": {"command": "ls"}}
    return record("assistant", [block], seconds, **members)


def result(use_id, seconds=0, **members):
    return record("user", [{"type": "tool_result", "tool_use_id": use_id, "content": "x", **members}], seconds)


def test_a_tool_has_every_column():
    assert scanned("tools", use("t", 1, agentId="a"), result("t", 2.5)) == [
        {
            "path": "/t/s.jsonl",
            "offset": 0,
            "session_id": "s",
            "agent_id": "a",
            "tool_use_id": "t",
            "name": "Bash",
            "started": at(1),
            "ended": at(2.5),
            "duration_ms": 1500,
            "is_error": False,
            "input": '{"command": "ls"}',
            "file": None,
            "command": "ls",
        }
    ]


def durations(*records):
    return [(row["tool_use_id"], row["duration_ms"], row["is_error"]) for row in scanned("tools", *records)]


def test_a_use_without_a_result_is_a_row_and_a_result_without_a_use_is_not():
    assert durations(use("a"), result("b")) == [("a", None, None)]


def test_the_first_use_and_the_first_result_of_an_id_count():
    records = [result("a", 3, is_error=True), use("a", 1), use("a", 2), result("a", 9)]
    assert durations(*records) == [("a", 2000, True)]


def test_a_use_without_an_id_has_no_result():
    assert durations(use(None, 1), use(None, 2), result(None, 3)) == [(None, None, None)] * 2


def test_a_duration_is_rounded_down_and_may_be_negative():
    assert durations(use("a", 1), result("a", 1.0019), use("b", 1), result("b", 0.9999)) == [
        ("a", 1, False), ("b", -1, False)
    ]  # fmt: skip


def test_uses_are_paired_inside_a_file_only():
    named = [("/t/1.jsonl", lines(use("a", 1))), ("/t/2.jsonl", lines(use("a", 1), result("a", 2)))]
    assert [(row["path"], row["duration_ms"]) for row in rows("tools", named)] == [
        ("/t/1.jsonl", None), ("/t/2.jsonl", 1000)
    ]  # fmt: skip


def test_uses_inside_of_progress_records_do_not_count():
    assert scanned("tools", nested(use("a"))) == []


def test_the_input_is_the_text_of_the_line():
    block = b'{"type":"tool_use","input":{"b": 1e2,"a":"\\u00e9"},"input":[1, 2]}'
    line = b'{"type":"assistant","message":{"content":[' + block + b"]}}"
    assert scanned("tools", line)[0]["input"] == "[1, 2]"
    assert scanned("tools", line.replace(b',"input":[1, 2]', b""))[0]["input"] == '{"b": 1e2,"a":"\\u00e9"}'


@pytest.mark.parametrize(
    ("name", "value", "file", "command"),
    [
        ("Edit", {"file_path": "/a"}, "/a", None),
        ("Write", {"file_path": "/a"}, "/a", None),
        ("MultiEdit", {"file_path": "/a"}, "/a", None),
        ("NotebookEdit", {"notebook_path": "/a", "file_path": "/b"}, "/a", None),
        ("Read", {"file_path": "/a"}, None, None),
        ("Edit", {"file_path": 5}, None, None),
        ("Bash", {"command": "ls", "file_path": "/a"}, None, "ls"),
        ("PowerShell", {"command": "dir"}, None, "dir"),
        ("BashOutput", {"command": "ls"}, None, None),
        ("shell", {"command": ["bash", "-lc", "ls"]}, None, "bash -lc ls"),
        ("exec_command", {"cmd": "ls"}, None, "ls"),
        ("apply_patch", "*** Begin Patch\n*** Update File: a b.py\n*** Add File: c", "a b.py", None),
        (None, {"command": "ls"}, None, None),
    ],
)
def test_the_file_of_an_edit_and_the_command_of_a_shell(name, value, file, command):
    block = {"type": "tool_use", "id": "t", "name": name, "input": value}
    (row,) = scanned("tools", record("assistant", [block]))
    assert (row["file"], row["command"]) == (file, command)


# ---- usage ---------------------------------------------------------------------


def test_a_response_has_every_column():
    counts = {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4}
    written = record("assistant", [], 1, message={"id": "m", "usage": counts, "model": "x"}, requestId="r", agentId="a")
    assert scanned("usage", written) == [
        {
            "session_id": "s",
            "agent_id": "a",
            "project": "/p",
            "host": "claude-code",
            "model": "x",
            "timestamp": at(1),
            "message_id": "m",
            "request_id": "r",
            "input_tokens": 1,
            "output_tokens": 2,
            "cache_read_tokens": 3,
            "cache_creation_tokens": 4,
        }
    ]


def test_of_streaming_records_the_one_with_the_most_output_tokens_counts():
    assert billed([response("m", 1, 0, "r"), response("m", 9, 1, "r"), response("m", 5, 2, "r")]) == [("m", 9, "s")]


def test_of_equal_output_tokens_the_latest_record_counts():
    first, last = response("m", 5, 0, "r"), response("m", 5, 1, "r")
    last["message"]["usage"]["input_tokens"] = 7
    for order in ([first, last], [last, first]):
        (row,) = scanned("usage", *order)
        assert (row["input_tokens"], row["timestamp"]) == (7, at(1))


def test_of_equal_times_the_later_place_counts():
    one = response("m", 5, 0, "r", cwd="/t/1.jsonl")
    other = response("m", 5, 0, "r", cwd="/t/2.jsonl")
    other["message"]["model"] = "later"
    (row,) = rows("usage", [("/t/1.jsonl", lines(one)), ("/t/2.jsonl", lines(other))])
    assert (row["model"], row["project"]) == ("later", "/t/1.jsonl")


def test_a_response_belongs_to_the_session_and_agent_of_its_first_record():
    copied = [response("m", 5, 0, "r", sessionId="fork", agentId=None), response("m", 9, 1, "r", sessionId="fork")]
    first = [response("m", 5, 0, "r", agentId="a")]
    (row,) = rows("usage", [("/t/2.jsonl", lines(*copied)), ("/t/1.jsonl", lines(*first))])
    assert (row["session_id"], row["agent_id"], row["output_tokens"]) == ("s", "a", 9)


def test_one_message_id_with_two_request_ids_is_two_responses():
    assert billed([response("m", 1, 0, "r1"), response("m", 2, 1, "r2")]) == [("m", 1, "s"), ("m", 2, "s")]


def test_without_request_ids_the_message_id_is_the_response():
    assert billed([response("m", 1), response("m", 2, 1), response("n", 3, 2)]) == [("m", 2, "s"), ("n", 3, "s")]


def test_a_message_id_with_and_without_request_ids_is_one_response():
    assert billed([response("m", 1, 0, "r1"), response("m", 2, 1)]) == [("m", 2, "s")]
    assert billed([response("m", 1, 0, "r1")], [response("m", 2, 1)], [response("m", 3, 1, "r2")]) == [("m", 3, "s")]


def test_without_a_message_id_the_request_id_is_the_response():
    assert billed([response(None, 1, 0, "r"), response(None, 2, 1, "r"), response("", 3, 2, "q")]) == [
        (None, 2, "s"), ("", 3, "s")
    ]  # fmt: skip


def test_without_both_ids_the_uuid_is_the_response():
    records = [response(None, 1, uuid="u"), response(None, 2, 1, uuid="u"), response(None, 3, 2), response(None, 3, 3)]
    assert billed(records, records[:2]) == [(None, 2, "s"), (None, 3, "s"), (None, 3, "s")]


def test_a_response_inside_of_progress_records_counts_once_and_is_the_sub_agents():
    inner = response("m", 5, 1, "r", uuid="u")
    assert billed([nested(inner), nested({**inner, "timestamp": None}, seconds=2)]) == [("m", 5, "s")]
    (row,) = scanned("usage", nested(inner))
    assert (row["agent_id"], row["timestamp"]) == ("a1", at(1))


def test_a_response_in_a_progress_record_does_not_count_if_its_id_is_not_utf8():
    whole = lines(nested(response("m", 5)))
    for damaged, count in ((whole, 1), (whole.replace(b'"id": "m"', b'"id": "m\xff"'), 0)):
        files = [("/t/s.jsonl", damaged)]
        assert len(rows("usage", files)) == len(scan_rows("usage", files, Question())) == count
        assert len(rows("records", files)) == len(scan_rows("records", files, Question())) == 1


def test_a_response_in_progress_records_and_in_the_sub_agents_file_counts_once():
    own = response("m", 9, 2, "r", agentId="a1", isSidechain=True)
    assert billed([nested(response("m", 5, 1, "r"))], [own]) == [("m", 9, "s")]


@pytest.mark.parametrize(
    "written",
    [
        record("assistant", [], message={"model": "<synthetic>", "id": "m", "usage": {"output_tokens": 5}}),
        response("m", 5, isApiErrorMessage=True),
        nested(response("m", 5, isApiErrorMessage=True)),
        record("assistant", [], message={"id": "m"}),
        record("user", [], message={"id": "m", "usage": {"output_tokens": 5}}),
        record("api-request-blob", [], message={"id": "m", "usage": {"output_tokens": 5}}),
        nested(nested(response("m", 5))),
        record("user", [], toolUseResult={"usage": {"output_tokens": 5}}),
    ],
)
def test_other_records_are_not_billed(written):
    assert scanned("usage", written) == []


@pytest.mark.parametrize("value", [None, "5", 5.0, True, -1, 1 << 63])
def test_tokens_that_are_not_a_whole_number_are_null_and_less_than_0(value):
    odd = response("m", value, 5, "r")
    assert scanned("usage", odd)[0]["output_tokens"] is None
    assert billed([response("m", 0, 0, "r"), odd]) == [("m", 0, "s")]


def test_conditions_hold_after_usage_was_counted_once():
    records = [response("m", 1, 0, "r"), response("m", 5, 10, "r")]
    assert billed(records, until=at(5)) == []
    assert billed(records, since=at(5)) == [("m", 5, "s")]
    assert billed(records, [response("m", 9, 20, "r", sessionId="t")], sessions=("t",)) == []


# ---- sessions ------------------------------------------------------------------


def test_a_session_has_every_column():
    counted = response("m", 5, 4, "r")
    records = [
        {"type": "summary"},
        typed("Do it.", 1, uuid="u1", version="1", gitBranch="", cwd="/p"),
        typed("Do it.", 1, uuid="u1", version="1", gitBranch="", cwd="/p"),
        said("Yes.", 2, uuid="u2", version="2", gitBranch="main", cwd="/p/web", message={"id": "m"}),
        said("Yes!", 2, uuid="u3", message={"id": "m"}, forkedFrom={"sessionId": "root"}),
        {**counted, "uuid": "u4"},
        use("t", 5),
        result("t", 6, is_error=True),
        nested(response("n", 7, 7, "q"), agent="a1", seconds=8),
        said("From a sub-agent.", 3, isSidechain=True, agentId="a2"),
        b'{"torn":',
    ]
    data = lines(*records)
    assert rows("sessions", [("/t/x.jsonl", data + b"\n \n")]) == [
        {
            "host": "claude-code",
            "session_id": "s",
            "parent": "root",
            "path": "/t/x.jsonl",
            "project": "/p",
            "git_branch": "main",
            "models": ["m"],
            "host_version": "2",
            "start": at(1),
            "end": at(8),
            "prompts": 1,
            "messages": 2,
            "tool_calls": 1,
            "input_tokens": 2,
            "output_tokens": 12,
            "cache_read_tokens": 0,
            "cache_creation_tokens": 0,
            "errors": 1,
            "sub_agents": 2,
            "bytes": len(data),
            "broken_lines": 1,
        }
    ]


def test_the_path_of_a_session_is_the_file_with_its_name():
    main, other = lines(typed("a")), lines(typed("b"))
    assert rows("sessions", [("/a/copy.jsonl", other), ("/t/s.jsonl", main)])[0]["path"] == "/t/s.jsonl"
    agents = lines(typed("a", isSidechain=True, agentId="x"))
    assert rows("sessions", [("/a/agent-x.jsonl", agents), ("/b/b.jsonl", other)])[0]["path"] == "/b/b.jsonl"
    assert (
        rows("sessions", [("/b/agent-x.jsonl", agents), ("/a/agent-y.jsonl", agents)])[0]["path"] == "/a/agent-y.jsonl"
    )


def test_sessions_are_those_that_go_on_in_the_time_asked_for():
    named = [(f"/t/{name}.jsonl", lines(typed("x", start, sessionId=name), typed("y", start + 10, sessionId=name)))
             for name, start in (("a", 0), ("b", 20), ("c", 40))]  # fmt: skip
    names = [row["session_id"] for row in rows("sessions", named, Question(since=at(25), until=at(40)))]
    assert names == ["b"]
    assert [row["messages"] for row in rows("sessions", named, Question(since=at(5), until=at(6)))] == [2]


def test_a_file_without_records_is_a_session_and_an_empty_file_is_not():
    (row,) = rows("sessions", [("/t/x.jsonl", b"torn\n"), ("/t/y.jsonl", b""), ("/t/z.jsonl", b"\n\r\n")])
    assert (row["session_id"], row["start"], row["bytes"], row["broken_lines"]) == ("x", None, 5, 1)


# ---- other hosts ---------------------------------------------------------------


@pytest.mark.parametrize("host", OTHER_SESSIONS)
def test_the_messages_of_another_host_are_own_words(host):
    first, records = RECORDS[host]
    found = scanned("records", first, *(one for one, _ in records))[1:]
    spoken = [words.decode() for _, message in records if message for words in [message[1]] if words]
    is_words = {"user": lambda row: row["is_prompt"], "assistant": lambda row: row["text"].strip() != ""}
    assert [row["text"] for row in found if is_words.get(row["role"], lambda _: False)(row)] == spoken
    agents = {tool for _, message in records if message for tool in message[2]}
    assert {tool for row in found for tool in row["tools"]} == agents


CODEX_TOKENS = {"input_tokens": 90, "cached_input_tokens": 20, "output_tokens": 5, "reasoning_output_tokens": 3}


def test_the_responses_of_codex_are_token_counts_with_new_totals():
    def counted(total):
        info = {"last_token_usage": CODEX_TOKENS, "total_token_usage": {"total_tokens": total}}
        return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}

    usage = scanned("usage", RECORDS["codex"][0], counted(95), counted(95), counted(190), {**counted(1), "payload": {}})
    assert [[row[name] for name in TOKENS] for row in usage] == [[70, 5, 20, None]] * 2


def test_a_response_of_an_old_codex_counts_once_if_forks_repeat_it_at_another_time():
    def meta(session, parent=None):
        return {"type": "session_meta", "payload": {"id": session, "forked_from_id": parent, "cwd": "/p"}}

    def counted(total, output=5):
        totals = {"input_tokens": total - output, "output_tokens": output, "total_tokens": total}
        info = {"last_token_usage": CODEX_TOKENS, "total_token_usage": totals}
        return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}

    first = [meta("a"), counted(95), counted(190), counted(285)]
    fork = [meta("b", "a"), meta("a"), counted(95), counted(190), counted(285, output=6)]
    fork_of_fork = [meta("c", "b"), *fork, counted(380)]
    named = [
        (f"/t/{name}.jsonl", lines(*({**one, "timestamp": f"2026-11-01T12:00:0{time}Z"} for one in records)))
        for time, (name, records) in enumerate([("a", first), ("b", fork), ("c", fork_of_fork)])
    ]
    usage = rows("usage", named)
    assert sorted(row["session_id"] for row in usage) == ["a", "a", "a", "b", "c"]
    assert scan_rows("usage", named, Question()) == usage


def test_codex_names_its_responses_since_its_records_have_an_ordinal():
    info = {"last_token_usage": CODEX_TOKENS, "total_token_usage": {"total_tokens": 95}}
    counted = {"ordinal": 9, "type": "event_msg", "payload": {"type": "token_count", "info": info}}
    named = {"ordinal": 8, "type": "token_usage_record", "payload": {"response_id": "r", "usage": CODEX_TOKENS}}
    (row,) = scanned("usage", RECORDS["codex"][0], named, counted)
    assert [row[name] for name in ("message_id", *TOKENS)] == ["r", 70, 5, 20, None]


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
}


@pytest.mark.parametrize("host", OTHER_SESSIONS)
def test_a_record_of_another_host_has_claude_codes_type_where_it_is_translated(host):
    first, records = RECORDS[host]
    found = scanned("records", first, *(one for one, _ in records))
    assert [row["type"] for row in found][: len(TRANSLATED[host])] == TRANSLATED[host]


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


@pytest.mark.parametrize("seed", range(60))
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


@pytest.mark.parametrize("seed", range(20))
def test_usage_does_not_change_if_files_are_cut_between_lines(seed):
    random = Random(seed)
    tree = grow_tree(random)
    cut = []
    for path, data in tree.files:
        starts = {0, len(data), *(data.find(b"\n", at) + 1 for at, _ in random_cuts(random, len(data), 9000))}
        cut += [(f"{path}/{at:09}", data[at:end]) for at, end in pairwise(sorted(starts))]
    assert rows("usage", cut) == rows("usage", tree.files)


@pytest.mark.parametrize("seed", range(20))
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
