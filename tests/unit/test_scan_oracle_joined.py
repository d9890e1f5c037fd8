"""The oracle of the scan: the rules of docs/scan-rows.md for tools, usage and sessions, on records written by hand."""

import pytest
from support.cases import in_one_test
from support.oracles.scan import Question, rows
from support.scans import scan_rows
from support.written_records import at, billed, lines, nested, record, response, said, scanned, typed

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


@in_one_test(
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
