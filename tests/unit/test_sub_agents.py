"""Where the transcripts of sub-agents are found."""

import gzip
import io
import json
import os
from random import Random

import pytest
from support.host_records import RECORDS
from support.range_server import served

from tailhook.patterns.sets import PatternSet
from tailhook.transcripts import transcript


def write(path, *records, session="s-1", agent=None, compress=bytes):
    lines = [
        {"type": "assistant", "sessionId": session, "message": {"content": text}}
        | ({"agentId": agent, "isSidechain": True} if agent else {})
        for text in records
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(compress(b"".join(json.dumps(line).encode() + b"\n" for line in lines)))


def names(session):
    return [os.path.basename(agent.path) for agent in session.sub_agents()]


def test_the_sub_agents_of_a_session_are_in_its_folder(tmp_path):
    write(tmp_path / "s-1.jsonl", "main")
    write(tmp_path / "s-1" / "subagents" / "agent-a.jsonl", "a", agent="a")
    write(tmp_path / "s-1" / "subagents" / "deep" / "agent-b.jsonl.gz", "b", agent="b", compress=gzip.compress)
    write(tmp_path / "s-2" / "subagents" / "agent-c.jsonl", "c", session="s-2", agent="c")
    (tmp_path / "s-1" / "subagents" / "agent-a.meta.json").write_text("{}")
    (tmp_path / "s-1" / "subagents" / "agent-a.jsonl.lock").write_text("")
    (tmp_path / "s-1" / "subagents" / "agent-d.jsonl").mkdir()
    (tmp_path / "s-1" / "subagents" / "agent-e.jsonl").symlink_to("agent-a.jsonl")
    with transcript.open(tmp_path / "s-1.jsonl") as session:
        assert [agent.last_message() for agent in session.sub_agents()] == ["a", "b"]
        assert (session.last_message(), session.is_of_sub_agent) == ("main", False)
        assert [[record.text for record in agent] for agent in session.sub_agents()] == [["a"], ["b"]]
        assert [[record.agent_id for record in agent] for agent in session.sub_agents()] == [["a"], ["b"]]


def test_what_a_sub_agent_said_is_its_own_in_its_transcript(tmp_path):
    write(tmp_path / "agent-a.jsonl", "first DONE", "DONE or not", agent="a")
    with transcript.open(tmp_path / "agent-a.jsonl") as agent:
        assert agent.is_of_sub_agent
        assert agent.last_message() == "DONE or not"
        assert [match.start for match in agent.findall(PatternSet(["DONE"]))] == [6, 0]
        assert agent.find_last(PatternSet(["DONE"])).record.text == "DONE or not"
        assert [(message.role, message.text) for message in agent.messages()][1:] == [("assistant", "DONE or not")]


@pytest.mark.parametrize("agent", [{"isSidechain": True}, {"agentId": "a"}])
def test_a_session_that_begins_with_a_sub_agents_record_of_an_older_version_is_not_a_sub_agents(agent):
    inner = {"type": "assistant", "message": {"content": "inner"}} | agent
    said = {"type": "assistant", "message": {"content": "DONE"}}
    lines = [json.dumps(line).encode() + b"\n" for line in (inner, said, inner | {"isSidechain": True})]
    with transcript.open(io.BytesIO(b"".join(lines))) as session:
        assert not session.is_of_sub_agent
        assert session.last_message() == "DONE"


def test_an_api_error_and_what_the_host_wrote_are_not_a_sub_agents_last_message(tmp_path):
    write(tmp_path / "agent-a.jsonl", "DONE", agent="a")
    lines = (tmp_path / "agent-a.jsonl").read_bytes()
    for flag in ("isApiErrorMessage", "isMeta"):
        lines += json.dumps(json.loads(lines.split(b"\n")[0]) | {flag: True, "content": "no"}).encode() + b"\n"
    assert transcript.open(io.BytesIO(lines)).last_message() == "DONE"


def test_older_versions_keep_them_beside_the_session_and_each_names_it(tmp_path):
    write(tmp_path / "s-1.jsonl", "main")
    write(tmp_path / "agent-a.jsonl", "a", agent="a")
    write(tmp_path / "agent-b.jsonl", "b", agent="b", session="s-2")
    (tmp_path / "agent-c.jsonl").write_text("")
    (tmp_path / "agent-d.jsonl").write_bytes(Random(1).randbytes(100))
    os.mkfifo(tmp_path / "agent-e.jsonl")
    (tmp_path / "agent-f.jsonl").symlink_to("missing")
    with transcript.open(tmp_path / "s-1.jsonl") as session:
        assert names(session) == ["agent-a.jsonl"]
    with transcript.open(tmp_path / "agent-a.jsonl") as agent:
        assert names(agent) == []


def test_a_transcript_under_another_name_is_known_by_the_session_in_its_records(tmp_path):
    write(tmp_path / "full.jsonl", "main")
    write(tmp_path / "agent-a.jsonl", "a", agent="a")
    with transcript.open(tmp_path / "full.jsonl") as session:
        assert names(session) == ["agent-a.jsonl"]


def test_they_are_opened_when_they_are_read_and_closed_with_the_session(tmp_path):
    write(tmp_path / "s-1.jsonl", "main")
    write(tmp_path / "s-1" / "subagents" / "agent-a.jsonl", "a", agent="a")
    write(tmp_path / "s-1" / "subagents" / "agent-b.jsonl", "b", agent="b")
    with transcript.open(tmp_path / "s-1.jsonl") as session:
        first, second = session.sub_agents()
        (tmp_path / "s-1" / "subagents" / "agent-b.jsonl").unlink()
        assert len(list(first)) == 1
        with pytest.raises(FileNotFoundError):
            list(second)
    for agent in (first, second):
        with pytest.raises(ValueError, match="closed"):
            list(agent)


def test_folders_that_are_links_are_not_entered(tmp_path):
    write(tmp_path / "s-1.jsonl", "main")
    write(tmp_path / "s-1" / "subagents" / "agent-a.jsonl", "a", agent="a")
    for name in ("one", "two"):
        (tmp_path / "s-1" / "subagents" / name).symlink_to(".")
    with transcript.open(tmp_path / "s-1.jsonl") as session:
        assert names(session) == ["agent-a.jsonl"]


def test_a_session_whose_name_looks_like_a_pattern_finds_its_own(tmp_path):
    write(tmp_path / "[s]*.jsonl", "main", session="[s]*")
    write(tmp_path / "[s]*" / "subagents" / "agent-a.jsonl", "a", agent="a")
    write(tmp_path / "s-2" / "subagents" / "agent-b.jsonl", "b", agent="b")
    with transcript.open(tmp_path / "[s]*.jsonl") as session:
        assert names(session) == ["agent-a.jsonl"]


def test_a_relative_path_works(tmp_path, monkeypatch):
    write(tmp_path / "s-1.jsonl", "main")
    write(tmp_path / "s-1" / "subagents" / "agent-a.jsonl", "a", agent="a")
    monkeypatch.chdir(tmp_path)
    with transcript.open("s-1.jsonl") as session:
        assert names(session) == ["agent-a.jsonl"]


def test_other_hosts_have_none_of_their_own(tmp_path):
    first, _ = RECORDS["codex"]
    (tmp_path / "s-1.jsonl").write_text(json.dumps(first) + "\n")
    write(tmp_path / "s-1" / "subagents" / "agent-a.jsonl", "a", agent="a")
    with transcript.open(tmp_path / "s-1.jsonl") as session:
        assert names(session) == []


def test_qwen_keeps_them_in_a_folder_beside_that_of_its_chats(tmp_path):
    def said(text, session, **more):
        named = {"uuid": "u", "sessionId": session, "type": "assistant", **more}
        return json.dumps({**named, "message": {"role": "model", "parts": [{"text": text}]}}) + "\n"

    for session in ("s-1", "s-2"):
        agents = tmp_path / "subagents" / session
        agents.mkdir(parents=True)
        agent = {"agentId": f"a-{session}", "isSidechain": True}
        (agents / f"agent-a-{session}.jsonl").write_text(said(f"inner {session}", session, **agent))
        (agents / f"agent-a-{session}.meta.json").write_text("{}")
    (tmp_path / "chats").mkdir()
    (tmp_path / "chats" / "s-1.jsonl").write_text(said("outer", "s-1"))
    with transcript.open(tmp_path / "chats" / "s-1.jsonl") as session:
        assert [(agent.path, agent.last_message()) for agent in session.sub_agents()] == [
            (str(tmp_path / "subagents" / "s-1" / "agent-a-s-1.jsonl"), "inner s-1")
        ]
        assert (session.host, session.last_message()) == ("qwen", "outer")
    with transcript.open(tmp_path / "subagents" / "s-1" / "agent-a-s-1.jsonl") as agent:
        assert (agent.is_of_sub_agent, agent.sub_agents()) == (True, [])


def test_without_a_path_they_cannot_be_found():
    with pytest.raises(ValueError, match="path"):
        transcript.open(io.BytesIO(b"")).sub_agents()
    with served({"/s.jsonl": b""}) as (address, _):
        session = transcript.open(f"{address}/s.jsonl")
        with pytest.raises(ValueError, match=f"{address}/s.jsonl is a URL"):
            session.sub_agents()
