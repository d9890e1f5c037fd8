"""Transcripts of other hosts, read by the library as if Claude Code had written them."""

import io
import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases import in_one_test
from support.host_records import RECORDS, TIME, codex_item, codex_text
from support.oracles.records import everything
from support.oracles.scan import Question
from support.scans import scan_rows

from tailhook import scan
from tailhook.hosts import RECORDED
from tailhook.patterns.sets import PatternSet
from tailhook.transcripts import transcript
from tailhook.transcripts.records import Usage


def written(*records):
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def opened(*records):
    return transcript.open(io.BytesIO(written(*records)))


def records_of(name):
    first, records = RECORDS[name]
    return [first, *(record for record, _ in records)]


def has_types(name):
    """Return whether the host's records have a type."""
    return any("type" in record for record in records_of(name))


@pytest.mark.parametrize("name", RECORDED)
def test_the_host_is_recognized_and_its_words_are_read(name):
    with opened(*records_of(name)) as session:
        assert session.host == name
        assert session.last_message().strip() == "Done."
        said = [(record.role, record.text.strip()) for record in session if record.text.strip() and not record.is_meta]
        assert said[-2:] == [("user", "Do the work."), ("assistant", "Done.")]
        prompts = ["Do the work."] * (2 if name in ("cursor", "qwen") else 1)
        assert [record.text for record in session if record.is_prompt] == prompts
        assert [match.record.text.strip() for match in session.findall(PatternSet(["Done"]))] == ["Done."]
        assert session.find_last(PatternSet(["work"]), roles={"user"}).record.is_prompt


@pytest.mark.parametrize("name", RECORDED)
def test_records_are_the_same_from_both_ends_and_by_their_offsets(name):
    originals = records_of(name)
    with opened(*originals) as session:
        forward = list(session)
        assert [record.json() for record in forward] == originals
        known = [everything(record) for record in forward]
        assert [everything(record) for record in session.reversed()] == known[::-1]
    for record in forward:
        with opened(*originals) as session:
            assert everything(session.at(record.offset)) == everything(record)
            assert [one.offset for one in session.reversed(limit=1)] == [forward[-1].offset]


def test_a_host_is_recognized_behind_blank_and_torn_lines():
    first, records = RECORDS["codex"]
    data = b"\n\xff\n" + written(first)[:40] + b"\n" + written(first, records[-1][0])
    assert transcript.open(io.BytesIO(data)).host == "codex"


def test_a_chat_of_qwen_may_begin_with_a_record_of_the_host(tmp_path):
    own = {"uuid": "u", "sessionId": "s", "type": "system", "subtype": "session_source"}
    (tmp_path / "qwen.jsonl").write_bytes(written({**own, "systemPayload": {}}, RECORDS["qwen"][0]))
    (tmp_path / "claude.jsonl").write_bytes(written({**own, "content": "", "message": {}}))
    assert [row.host for row in scan(tmp_path, "records").rows()] == ["claude-code", "qwen", "qwen"]


@pytest.mark.parametrize("data", [b"", b"\n", b"[]\n", b"{}\n", b"\xff\n", written({"type": "summary"}), b"{" * 9999])
def test_what_is_not_recognized_counts_as_claude_codes(data):
    assert transcript.open(io.BytesIO(data)).host == "claude-code"


# ---- Codex -------------------------------------------------------------------

CODEX_META = {
    "timestamp": TIME,
    "type": "session_meta",
    "payload": {"id": "s-1", "cwd": "/p", "cli_version": "0.1", "git": {"branch": "main"}},
}


def turn(model, cwd="/p"):
    return {"timestamp": TIME, "type": "turn_context", "payload": {"model": model, "cwd": cwd}}


def test_codex_writes_session_folder_and_model_once_and_every_later_record_has_them():
    said = codex_text("assistant", "output_text", "Hi.")
    with opened(CODEX_META, said, turn("m-1"), said, said, turn("m-2", "/q"), said) as session:
        found = [record for record in session if record.role]
        assert [(one.model, one.cwd) for one in found] == [(None, "/p"), ("m-1", "/p"), ("m-1", "/p"), ("m-2", "/q")]
        assert {(one.session_id, one.git_branch, one.host_version) for one in found} == {("s-1", "main", "0.1")}
        assert [one.model for one in session.reversed(roles={"assistant"})] == ["m-2", "m-1", "m-1", None]


# Lines as Codex 0.29.0 wrote them, and the first ones of 0.8.0 and 0.20.0.
OLD_META = {"id": "s-1", "timestamp": TIME, "instructions": None, "git": {"branch": "main"}}
OLD_META_0_8 = {"id": "s-1", "timestamp": TIME, "instructions": None}
OLD_META_0_20 = {"id": "s-1", "timestamp": TIME, "instructions": "Be brief.", "git": {}}


def bare(role, kind, text):
    return {"type": "message", "id": None, "role": role, "content": [{"type": kind, "text": text}]}


OLD_CODEX = [
    OLD_META,
    {"record_type": "state"},
    bare("user", "input_text", "<environment_context>\n  <cwd>/p</cwd>\n</environment_context>"),
    bare("user", "input_text", "Do the work."),
    {"type": "reasoning", "summary": [], "content": None, "encrypted_content": "x"},
    {"type": "function_call", "id": "fc_1", "name": "shell", "arguments": '{"command": ["ls"]}', "call_id": "c1"},
    {
        "type": "function_call_output",
        "call_id": "c1",
        "output": '{"output":"no","metadata":{"exit_code":1,"duration_seconds":0.0}}',
    },
    bare("assistant", "output_text", "Done: TODO."),
]


@pytest.mark.parametrize("first", [OLD_META, OLD_META_0_8, OLD_META_0_20])
def test_a_rollout_of_codex_from_before_september_2025_is_read(first):
    with opened(first, *OLD_CODEX[1:]) as session:
        found = list(session)
        assert session.host == "codex"
        assert session.last_message() == "Done: TODO."
        assert [one.text for one in found if one.is_prompt] == ["Do the work."]
        assert [tool.input for one in found for tool in one.tools] == [{"command": ["ls"]}]
        assert [one.is_error for record in found for one in record.tool_results] == [True]
        assert {one.session_id for one in found} == {"s-1"}
        assert [one.cwd for one in found] == [None, None, *["/p"] * 6]
        assert [one.git_branch for one in found][-1] == first.get("git", {}).get("branch")
        assert [everything(one) for one in session.reversed()] == [everything(one) for one in found][::-1]


def test_a_scan_finds_what_is_in_a_rollout_of_codex_from_before_september_2025(tmp_path):
    (tmp_path / "rollout-2025-08-01.jsonl").write_bytes(written(*OLD_CODEX))
    result = scan(tmp_path, "matches", patterns={"todo": "TODO"})
    assert [(row.session_id, row.context) for row in result.rows()] == [("s-1", "Done: TODO.")]
    [session] = scan(tmp_path, "sessions").rows()
    assert (session.project, session.prompts) == ("/p", 1)
    [tool] = scan(tmp_path, "tools").rows()
    assert (tool.name, tool.command, tool.is_error) == ("shell", "ls", True)
    assert list(scan(tmp_path, "usage").rows()) == []
    records = scan(tmp_path, "records")
    assert {row.host for row in records.rows()} == {"codex"}
    assert records.report.unknown_types == {}


def test_codex_tools_have_their_arguments_and_results():
    with opened(
        CODEX_META,
        codex_item(type="function_call", name="exec_command", arguments='{"cmd": "ls"}', call_id="c1"),
        codex_item(type="function_call_output", call_id="c1", output="Chunk\nProcess exited with code 2\nOutput:\nno"),
        codex_item(type="custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="c2"),
        codex_item(type="custom_tool_call_output", call_id="c2", output={"content": "ok", "success": False}),
        codex_item(type="function_call", name="broken", arguments="{", call_id="c3"),
        codex_item(type="function_call_output", call_id="c3", output="Process exited with code 0"),
    ) as session:
        tools = [(tool.id, tool.name, tool.input) for record in session for tool in record.tools]
        assert tools == [
            ("c1", "exec_command", {"cmd": "ls"}),
            ("c2", "apply_patch", "*** Begin Patch"),
            ("c3", "broken", "{"),
        ]
        results = [(one.tool_use_id, one.is_error, one.text[:5]) for record in session for one in record.tool_results]
        assert results == [("c1", True, "Chunk"), ("c2", True, "ok"), ("c3", False, "Proce")]
        assert [record.is_error for record in session] == [False, False, True, False, True, False, False]


@in_one_test(
    ("output", "is_error"),
    [
        ("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\nno", True),
        ("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nno", False),
        ("Chunk ID: 1\nProcess running with session ID 7\nOutput:\nProcess exited with code 1", False),
        ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nno", True),
        ("Exit code: -1\nWall time: 0 seconds\nTotal output lines: 9\nOutput:\n", True),
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nExit code: 1", False),
        ("Exit code: 1 is what make returned", False),
        ("It wrote: Process exited with code 1", False),
        ('{"output":"no \\"a\\"","metadata":{"exit_code":127,"duration_seconds":0.1}}', True),
        ('{"output":"ok","metadata":{"exit_code":0,"duration_seconds":12.5}}', False),
        ('{"output":"\\"metadata\\":{\\"exit_code\\":1","metadata":{"exit_code":0,"duration_seconds":0.0}}', False),
        ('{"output":', False),
        ("", False),
    ],
)
def test_a_codex_command_with_another_exit_code_than_0_is_an_error(output, is_error):
    with opened(CODEX_META, codex_item(type="function_call_output", call_id="c", output=output)) as session:
        assert [one.is_error for record in session for one in record.tool_results] == [is_error]


USED = {"input_tokens": 100, "cached_input_tokens": 70, "output_tokens": 9, "reasoning_output_tokens": 4}


def token_count(total, **members):
    info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": USED}
    return {"timestamp": TIME, "type": "event_msg", "payload": {"type": "token_count", "info": info}, **members}


def test_codex_tokens_are_counted_once_in_old_and_new_versions():
    wanted = Usage(input=30, output=9, cache_read=70, cache_creation=0)
    record = {"type": "token_usage_record", "ordinal": 4, "payload": {"response_id": "r-1", "usage": USED}}
    with opened(CODEX_META, turn("m-1"), record, token_count(109, ordinal=5)) as session:
        assert [(one.id, one.model, one.usage) for one in session.messages()] == [("r-1", "m-1", wanted)]
    nothing = {"timestamp": TIME, "type": "event_msg", "payload": {"type": "token_count", "info": None}}
    with opened(CODEX_META, nothing, token_count(109), token_count(109), token_count(218)) as session:
        assert [one.usage for one in session.messages()] == [wanted, wanted]


def test_codex_compactions_and_errors_differ():
    error = {"timestamp": TIME, "type": "event_msg", "payload": {"type": "stream_error", "message": "x"}}
    with opened(CODEX_META, {"timestamp": TIME, "type": "compacted", "payload": {}}, error) as session:
        assert [(one.type, one.subtype, one.is_error) for one in session][1:] == [
            ("system", "compact_boundary", False),
            ("event_msg", "stream_error", True),
        ]


# ---- Gemini and Copilot ------------------------------------------------------


def test_a_gemini_message_that_stands_there_twice_is_one_message_with_its_tools_once():
    first, _ = RECORDS["gemini"]
    tokens = {"input": 100, "output": 5, "cached": 60, "thoughts": 7, "tool": 2, "total": 114}
    call = {"id": "c", "name": "run", "args": {"n": 1}, "status": "error", "resultDisplay": "no"}
    said = {"id": "2", "timestamp": TIME, "type": "gemini", "content": "Trying.", "tokens": tokens, "model": "g"}
    with opened(first, said, {**said, "toolCalls": [call]}) as session:
        (message,) = session.messages()
        assert (message.text, message.model, len(message.records)) == ("Trying.", "g", 2)
        assert [(tool.id, tool.input) for tool in message.tools] == [("c", {"n": 1})]
        assert message.usage == Usage(input=42, output=12, cache_read=60, cache_creation=0)
        (result,) = message.records[1].tool_results
        assert (result.tool_use_id, result.is_error, result.text) == ("c", True, "no")
        assert session.last_message() == "Trying."
        assert {record.session_id for record in session} == {"s"}


def event(kind, data, **members):
    return {"type": kind, "data": data, "id": f"id-{kind}", "timestamp": TIME, "parentId": "p", **members}


def test_copilot_tools_agents_models_and_folders():
    start = event(
        "session.start",
        {"sessionId": "s", "copilotVersion": "1.0", "selectedModel": "m", "context": {"cwd": "/p", "branch": "b"}},
    )
    calls = [{"toolCallId": "t", "name": "bash", "arguments": {"command": "ls"}}]
    used = {"model": "m-2", "inputTokens": 10, "outputTokens": 3, "cacheReadTokens": 4, "cacheWriteTokens": 1}
    with opened(
        start,
        event("user.message", {"content": "go", "isAutopilotContinuation": True}),
        event("assistant.message", {"content": "", "toolRequests": calls, "apiCallId": "a"}, agentId="sub"),
        event("tool.execution_complete", {"toolCallId": "t", "success": False, "error": {"message": "denied"}}),
        event("session.context_changed", {"cwd": "/q", "branch": "c"}),
        event("session.usage_record", {"usage": used}),
        event("session.compaction_complete", {}),
        event("session.error", {"message": "x"}),
    ) as session:
        _, hosts, called, result, _, usage, compaction, error = session
        assert (hosts.is_prompt, hosts.is_meta, hosts.uuid, hosts.parent_uuid) == (False, True, "id-user.message", "p")
        assert (called.agent_id, called.is_sidechain, called.message_id) == ("sub", True, "a")
        assert [(tool.id, tool.input) for tool in called.tools] == [("t", {"command": "ls"})]
        assert [(one.is_error, one.text) for one in result.tool_results] == [(True, "denied")]
        assert (called.cwd, called.git_branch, usage.cwd, usage.git_branch) == ("/p", "b", "/q", "c")
        assert (usage.model, usage.usage) == ("m-2", Usage(input=5, output=3, cache_read=4, cache_creation=1))
        assert compaction.subtype == "compact_boundary"
        assert error.is_error


def test_the_end_of_a_run_adds_no_response_if_all_its_tokens_have_records():
    used = {"inputTokens": 10, "outputTokens": 3, "cacheReadTokens": 4, "cacheWriteTokens": 1}
    with opened(
        event("session.start", {"sessionId": "s", "copilotVersion": "1.0.102"}),
        event("session.usage_record", {"usage": {"model": "m", **used}}),
        event("session.shutdown", {"modelMetrics": {"m": {"usage": used}}}),
    ) as session:
        assert [record.type for record in session] == ["session.start", "assistant", "session.shutdown"]


# ---- hostile content ---------------------------------------------------------

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)


@st.composite
def damaged(draw, name):
    """Return records of a host; some values, at any depth, have another type or are missing."""
    originals = json.loads(json.dumps(records_of(name)))
    for record in originals[1:]:
        for _ in range(draw(st.integers(0, 2))):
            holder = record
            while True:
                keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
                if not keys:
                    break
                key = draw(st.sampled_from(keys))
                if isinstance(holder[key], dict | list) and holder[key] and draw(st.booleans()):
                    holder = holder[key]
                    continue
                holder[key] = draw(VALUES)
                break
    return originals


@pytest.mark.parametrize("name", RECORDED)
@given(st.data())
def test_values_of_wrong_types_raise_nothing(name, data):
    originals = data.draw(damaged(name))
    with opened(*originals) as session:
        forward = list(session)
        assert len(forward) == len(originals)
        assert [everything(record) for record in session.reversed()] == [everything(one) for one in forward[::-1]]
        for message in session.messages():
            assert (type(message.text), type(message.tools)) == (str, list)
            assert message.usage is None or all(count >= 0 for count in message.usage)
        session.last_message()


@in_one_test("name", filter(has_types, RECORDED))
@in_one_test("kind", ["brand-new", "", "é", "response_item", "session.unheard_of"])
def test_an_unknown_record_type_is_a_record_with_its_type(name, kind):
    first, _ = RECORDS[name]
    with opened(first, {"type": kind, "timestamp": TIME, "id": "x", "more": [1]}) as session:
        record = list(session)[1]
        assert (record.type, record.timestamp, record.text, record.usage) == (kind, TIME, "", None)
        assert record.json()["more"] == [1]


def test_what_json_can_hold_but_a_translation_cannot_leaves_the_type():
    first, _ = RECORDS["codex"]
    data = written(first) + b'{"type":"response_item","payload":{"type":"function_call","arguments":"[1e999]"}}\n'
    (_, record) = transcript.open(io.BytesIO(data))
    assert record.type == "assistant"
    deep = b"[" * 1022 + b"]" * 1022
    data = written(first) + b'{"type":"deep","payload":{"type":"message","role":"user","content":' + deep + b"}}\n"
    assert [record.type for record in transcript.open(io.BytesIO(data))] == ["session_meta", "deep"]


@pytest.mark.parametrize("name", [*RECORDED, None])
def test_a_number_of_thousands_of_digits_costs_no_other_record(name):
    first = written(RECORDS[name][0]) if name else b""
    odd = b'{"type":"new","n":' + b"9" * 5000 + b"}\n"
    with transcript.open(io.BytesIO(first + odd + written({"type": "last"}))) as session:
        assert [record.type for record in session][-2:] == (
            ["new", "last"] if name is None or has_types(name) else [None] * 2
        )
        assert session.host == (name or "claude-code")


def test_invalid_utf8_and_lone_surrogates_are_survived():
    first, _ = RECORDS["copilot"]
    data = written(first) + b'{"type":"user.message","data":{"content":"a\xff\\ud800"}}\n'
    (_, record) = transcript.open(io.BytesIO(data))
    assert record.text == "a\ufffd\ud800"
    assert record.json()["data"]["content"] == "a\ufffd\ud800"


# ---- messages written again -------------------------------------------


def gemini_message(number, kind="gemini", **members):
    return {"id": str(number), "timestamp": TIME, "type": kind, "content": f"Message {number}.", **members}


GEMINI_TOKENS = {"input": 100, "output": 5, "cached": 60, "thoughts": 7, "tool": 0, "total": 112}


def test_a_gemini_message_that_stands_only_in_a_set_record_counts_and_one_that_is_repeated_there_does_not():
    first, _ = RECORDS["gemini"]
    asked, said = gemini_message(1, "user"), gemini_message(2, tokens=GEMINI_TOKENS)
    more = [gemini_message(3, "user"), gemini_message(4, tokens=GEMINI_TOKENS)]
    changed = {"$set": {"messages": [asked, said, *more]}}
    with opened(first, asked, said, changed, changed, more[1], gemini_message(5)) as session:
        forwards = [(record.message_id or record.uuid, record.text) for record in session if record.role]
        assert forwards == [(str(number), f"Message {number}.") for number in (1, 2, 3, 4, 4, 5)]
        backwards = [(record.message_id or record.uuid, record.text) for record in session.reversed() if record.role]
        assert backwards == forwards[::-1]
        assert [message.usage.output for message in session.messages() if message.usage] == [12, 12]
        assert [record.text for record in session if record.is_prompt] == ["Message 1.", "Message 3."]
        assert [record.json()["id"] for record in session if record.is_prompt] == ["1", "3"]
        assert session.last_message() == "Message 5."
        whole = list(session)[3]
        assert session.at(whole.offset).json() == changed


def test_a_gemini_message_that_a_set_record_changes_has_its_tokens_once():
    first, _ = RECORDS["gemini"]
    changed = {"$set": {"messages": [gemini_message(2, tokens=GEMINI_TOKENS)]}}
    with opened(first, gemini_message(2), changed) as session:
        (message,) = session.messages()
        assert (message.usage.output, message.text) == (12, "Message 2.")


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_a_gemini_message_in_a_set_record_counts_once_in_every_table_however_the_file_is_cut(seed):
    first, _ = RECORDS["gemini"]
    said = [gemini_message(1, "user"), gemini_message(2, tokens=GEMINI_TOKENS), gemini_message(3, "user")]
    changed = {"$set": {"messages": [*said, gemini_message(4, tokens=GEMINI_TOKENS)]}}
    data = written(first, *said[:2], changed, {"$set": {"messages": said[::-1]}}, changed)
    files, cuts = [("/t/s.jsonl", data)], None if seed is None else Random(seed)
    (row,) = scan_rows("sessions", files, Question(), cuts)
    assert (row["prompts"], row["messages"], row["output_tokens"], row["bytes"]) == (2, 4, 24, len(data))
    assert row["broken_lines"] == 0
    assert [row["message_id"] for row in scan_rows("usage", files, Question(), cuts)] == ["2", "4"]
    matches = scan_rows("matches", files, Question(patterns={"word": "Message"}), cuts)
    assert [row["offset"] for row in matches] == [
        data.index(b'"1"') - 7,
        data.index(b'"2"') - 7,
        *[data.index(b'{"$')] * 2,
    ]
    assert [row["role"] for row in scan_rows("records", files, Question(), cuts) if row["role"]] == [
        *("user", "assistant", "user", "assistant")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<recommended_plugins>\nx",
        " <user_action>\n<context>User initiated a review",
        '<codex_internal_context source="goal">\nx',
        "<goal_context>\nx",
        "<external_editor>x</external_editor>",
        "Warning: The maximum number of unified exec processes you can keep open is 60",
        "Warning: apply_patch was requested via exec_command. Use the apply_patch tool instead of exec_command.",
        "Warning: Your account was flagged for potentially high-risk cyber activity",
    ],
)
def test_what_codex_writes_in_a_persons_name_is_not_a_prompt(text):
    with opened(
        CODEX_META, codex_text("user", "input_text", text), codex_text("user", "input_text", "Do the work.")
    ) as session:
        assert [record.text for record in session if record.is_prompt] == ["Do the work."]


@pytest.mark.parametrize(
    "source", [{"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}, {"subagent": {"other": "guardian"}}]
)
def test_what_a_sub_agent_of_codex_is_asked_is_not_a_prompt_of_a_person(source):
    meta = {**CODEX_META, "payload": {**CODEX_META["payload"], "source": source}}
    asked = codex_text("user", "input_text", "Review the work.")
    with opened(meta, asked) as session:
        records = [record for record in session if record.role == "user"]
        assert [(record.text, record.is_prompt, record.has_own_words) for record in records] == [
            ("Review the work.", False, True)
        ]
    with opened(CODEX_META, asked) as session:
        assert [record.is_prompt for record in session if record.role == "user"] == [True]
