"""The tokens that `tailhook usage` does not count: it reports them, and no others."""

import json

import pytest
from support.host import tailhook
from support.usage_histories import HISTORIES

from tailhook import scan

USED = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
FIRST = {
    "claude-code": {"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "content": "Hm."}},
    "codex": {"type": "session_meta", "payload": {"id": "s", "cli_version": "0.190.0"}},
    "copilot": {"type": "session.start", "id": "e", "data": {"sessionId": "s", "copilotVersion": "2.0.0"}},
    "gemini": {"sessionId": "s", "projectHash": "h"},
}


def warnings(folder, *flags):
    """Return the lines on stderr of `tailhook usage`, without the program's name."""
    done = tailhook("usage", folder, *flags, env={"HOME": str(folder)}, cwd=folder)
    assert done.returncode == 0
    return [line.removeprefix("tailhook: ") for line in done.stderr.splitlines()]


def write(path, host, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in (FIRST[host], *records)))


def event(kind, **payload):
    return {"type": "event_msg", "payload": {"type": kind, **payload}}


def assistant(**members):
    message = {"role": "assistant", "content": [{"type": "text", "text": 'the "tokens": 7 of usage": 8'}]}
    return {"type": "assistant", "version": "3.0.0", "message": message, **members}


@pytest.mark.parametrize(
    ("host", "record", "kind"),
    [
        ("claude-code", {"type": "turn-usage", "version": "3.0.0", "tokens": {"in": 0, "out": 7}}, "turn-usage"),
        ("claude-code", assistant(billing={"outputTokens": 7}), "assistant"),
        ("codex", event("turn_usage", usage=USED), "turn_usage"),
        ("codex", {"type": "response_usage", "payload": USED}, "response_usage"),
        ("codex", event("token_count", info={"usage": {"in_tokens": 4}}), "tokens of an unknown form"),
        (
            "codex",
            {"type": "token_usage_record", "payload": {"usage": {"in_tokens": 4}}},
            "tokens of an unknown form",
        ),
        ("copilot", {"type": "session.tokens", "data": {"outputTokens": 3}}, "session.tokens"),
        ("gemini", {"type": "gemini", "id": "m", "usage": {"candidatesTokenCount": 3}}, "assistant"),
    ],
)
def test_tokens_in_a_record_that_nothing_reads_are_reported(tmp_path, host, record, kind):
    write(tmp_path / "s.jsonl", host, record, record)
    none, line = warnings(tmp_path)
    assert none == "no response with tokens in 1 file"
    version = {"claude-code": " of version 3.0.0", "codex": " of version 0.190.0", "copilot": " of version 2.0.0"}
    assert line == f"records with tokens that are not counted: {kind}{version.get(host, '')} (2)"


@pytest.mark.parametrize(
    ("host", "record"),
    [
        ("claude-code", assistant()),
        ("claude-code", {"type": "user", "toolUseResult": {"totalTokens": 9, "usage": USED}}),
        ("claude-code", {"type": "system", "subtype": "compact_boundary", "compactMetadata": {"preTokens": 9}}),
        ("claude-code", {"type": "result", "usage": USED}),
        ("claude-code", {"type": "new", "tokens": 0, "tokenLimit": None, "token": "5"}),
        (
            "claude-code",
            {"type": "assistant", "message": {"content": [{"type": "tool_use", "input": {"max_tokens": 5}}]}},
        ),
        ("codex", event("token_count", info={"last_token_usage": None, "total_token_usage": USED})),
        ("codex", event("token_count", info={})),
        ("codex", event("token_count", info=None, rate_limits={"tokens": 4})),
        ("codex", event("mcp_tool_call_end", result={"Ok": {"structured_content": {"tokens": 4}}})),
        ("codex", event("thread_goal_updated", goal={"tokens_used": 4})),
        (
            "codex",
            {
                "type": "token_usage_record",
                "payload": {"usage": {"input_tokens": 0, "output_tokens": 0}, "thread_token_usage": USED},
            },
        ),
        ("copilot", {"type": "session.compaction_complete", "data": {"compactionTokensUsed": {"input": 3}}}),
        ("gemini", {"type": "gemini", "id": "m", "toolCalls": [{"name": "t", "args": {"max_tokens": 3}}]}),
    ],
)
def test_tokens_of_other_records_or_of_no_response_are_not_reported(tmp_path, host, record):
    write(tmp_path / "s.jsonl", host, record)
    assert warnings(tmp_path) == ["no response with tokens in 1 file"]


@pytest.mark.parametrize("name", HISTORIES)
def test_no_history_that_is_counted_has_tokens_that_are_reported(tmp_path, name):
    history = HISTORIES[name]()
    for path, text in history.files.items():
        (tmp_path / path).write_text(text)
    question = scan(tmp_path, "usage")
    assert sum(map(len, question)) > 0, "no line with tokens has one of the texts at usage in HALVES (fleet/reduce.py)"
    assert question.report.unknown_types == {}


def test_an_old_chat_of_gemini_that_is_not_read_is_reported_unless_a_newer_file_has_it(tmp_path):
    chats = tmp_path / "project" / "chats"
    chats.mkdir(parents=True)
    write(chats / "session-1.jsonl", "gemini", {"type": "gemini", "id": "m", "tokens": {"input": 3, "output": 4}})
    (chats / "session-1.json").write_text("{}")
    assert warnings(tmp_path) == []
    (chats / "session-2.json").write_text("{}")
    line = "1 chat of older versions of Gemini CLI (.json) is not counted"
    for source in (tmp_path, chats.parent, chats):
        assert warnings(source) == warnings(source, "--json") == [line]


@pytest.mark.parametrize("source", [".", "tmp/*", "tmp/p/chats/session-2.json", "tmp/*/chats/*-2.json"])
def test_an_old_chat_of_gemini_is_reported_by_any_name_of_its_source(tmp_path, source):
    chats = tmp_path / "tmp" / "p" / "chats"
    chats.mkdir(parents=True)
    write(chats / "session-1.jsonl", "gemini", {"type": "gemini", "id": "m", "tokens": {"input": 3, "output": 4}})
    (chats / "session-2.json").write_text("{}")
    done = tailhook("usage", source, env={"HOME": str(tmp_path)}, cwd=tmp_path)
    assert done.returncode == 0
    assert "tailhook: 1 chat of older versions of Gemini CLI (.json) is not counted" in done.stderr.splitlines()
