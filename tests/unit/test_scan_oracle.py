"""The oracle of the scan: each rule of docs/scan-rows.md on records written by hand, with the rows worked out by hand.

Here are the rules of all tables, and those of matches and records.
"""

import re
from pathlib import Path

import pytest
from support.cases import in_one_test
from support.host_records import RECORDS
from support.oracles.scan import COLUMNS, rows
from support.oracles.scan_lines import object_in
from support.oracles.scan_values import parse_time
from support.written_records import at, found, lines, nested, queued, record, said, scanned, typed

PAGE = Path(__file__).parents[2] / "docs" / "scan-rows.md"
FENCED = "```\nTODO\n```\n"


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


@in_one_test(
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


@pytest.mark.parametrize("host", ["codex", "gemini", "copilot", "qwen"])
def test_another_hosts_first_record_names_host_and_session(host):
    first, records = RECORDS[host]
    found = scanned("records", b"torn", first, *(one for one, _ in records))
    assert {(row["host"], row["session_id"]) for row in found} == {(host, "s")}


# ---- own words -----------------------------------------------------------------

NOT_OWN = {
    "a tool's result": record("user", [{"type": "tool_result", "content": "TODO"}]),
    "thinking": record("assistant", [{"type": "thinking", "thinking": "TODO"}]),
    "a tool's result by itself": {"type": "tool_result", "tool_use_id": "t", "content": "TODO"},
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
    "a system record": {"type": "system", "subtype": "local_command", "content": "TODO"},
    "a system record of a flat transcript": {"type": "system", "content": ["TODO"]},
    "what waits for the agent": {"type": "queue-operation", "operation": "enqueue", "content": "TODO"},
}


@pytest.mark.parametrize("case", NOT_OWN)
def test_what_is_not_a_records_text_has_no_match(case):
    assert found(NOT_OWN[case]) == found(NOT_OWN[case], all_text=True, sidechains=True) == []


@in_one_test("case", ONLY_WITH_ALL_TEXT)
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
