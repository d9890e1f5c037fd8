"""Token usage of whole sessions of the hosts, compared with the tokens that the model billed."""

import json

import pytest
from other_hosts import Codex, Copilot, Gemini
from run_hosts import host_path
from support import codex_writer
from support.oracles.host_usage import responses

from tailhook import scan


def at(tmp_path, kind):
    """Return a host with no hook installed."""
    if not host_path(kind.name).exists():
        pytest.skip(f"{kind.__doc__} is not installed: `make host` fetches it")
    return kind(tmp_path / "home", tmp_path / "project")


@pytest.fixture
def codex(tmp_path):
    """Return Codex CLI."""
    return at(tmp_path, Codex)


def rollouts(codex):
    """Return the files that it wrote."""
    return sorted((codex.home / ".codex").rglob("rollout-*.jsonl"))


def newest(codex):
    """Return the id of the newest session."""
    newest = max(rollouts(codex), key=lambda path: path.stat().st_mtime)
    return json.loads(newest.read_text().partition("\n")[0])["payload"]["id"]


def oracle(codex):
    """Return the input tokens of each response by the oracle and by a scan. No record has other tokens."""
    counted = sorted(row.input_tokens for row in responses("codex", rollouts(codex)))
    question = scan(codex.home / ".codex", "usage")
    assert sorted(row.input_tokens for row in question.rows()) == counted
    assert question.report.unknown_types == {}
    return counted


def found(folder):
    """Return how many responses a scan of a folder finds. No record has other tokens."""
    question = scan(folder, "usage")
    count = sum(map(len, question))
    assert question.report.unknown_types == {}
    return count


def test_each_response_counts_once_after_a_resume_a_fork_and_a_fork_of_a_fork(codex):
    with codex.model(codex.bash("echo hi"), "Done.") as model:
        model.tokens = 101, 102, 103, 104, 105
        codex.run(model)
        for word in ("resume", "fork", "fork"):
            codex.session = word, newest(codex)
            codex.run(model, "And on.")
    assert model.billed == [101, 102, 103, 104, 105]
    assert oracle(codex) == model.billed


def test_a_compaction_is_a_response(codex):
    codex.settings = "model_auto_compact_token_limit = 1000\n"
    with codex.model("Hm.", codex.bash("echo much"), "And on.", "Done.") as model:
        model.tokens = 101, 5000, 103, 104
        codex.run(model)
        codex.session = "resume", newest(codex)
        codex.run(model, "Go on.")
    assert len(model.billed) > 3
    assert oracle(codex) == sorted(model.billed)


def test_an_old_session_that_is_resumed_and_forked_counts_once(codex):
    old = codex_writer.Codex("0.44.0", turn_ids=False)
    thread = old.thread("0199a213-ffd4-7161-8d2d-1f5e0c1d2e3f").turn("gpt-5-codex")
    thread.respond(1000, 0, 50)
    thread.respond(2000, 0, 100)
    folder = codex.home / ".codex" / "sessions" / "2025" / "10" / "02"
    folder.mkdir(parents=True)
    ((name, text),) = old.history().files.items()
    (folder / name).write_text(text)
    with codex.model("Hm.", "Hm.") as model:
        model.tokens = 101, 102
        for word in ("resume", "fork"):
            codex.session = word, thread.id
            codex.run(model, "Go on.")
    assert model.billed == [101, 102]
    assert oracle(codex) == [101, 102, 1000, 2000]


def test_each_call_of_copilot_counts_once_after_a_resume(tmp_path):
    copilot = at(tmp_path, Copilot)
    with copilot.model(copilot.bash("echo hi"), "Done.", "Well.") as model:
        copilot.run(model)
        (path,) = (copilot.home / ".copilot").rglob("events.jsonl")
        copilot.session = f"--resume={path.parent.name}"
        copilot.run(model, "And on.")
    assert len(model.requests) == 3
    assert [row[4:] for row in responses("copilot", [path])] == [(1, 1, 0, 0)] * 3
    assert found(path) == 3


def test_each_answer_of_gemini_counts_once_after_a_resume(tmp_path):
    gemini = at(tmp_path, Gemini)
    gemini.prepare()
    with gemini.model(gemini.bash("echo hi"), "Done.", "Well.") as model:
        gemini.run(model)
        gemini.session = "--resume", "latest"
        gemini.run(model, "And on.")
    paths = list((gemini.home / ".gemini").rglob("chats/*.jsonl"))
    assert len(model.requests) == 3
    assert [row[4:] for row in responses("gemini", paths)] == [(1, 1, 0, 0)] * 3
    assert found(gemini.home / ".gemini") == 3
