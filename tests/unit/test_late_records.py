"""The end of a loop with checks while the host has not written all records yet."""

import time

import pytest
from support.checked_sessions import Agent

from tailhook.hook import evidence
from tailhook.hook.event import HookEvent

DONE = "<loop-done>COMPLETE</loop-done>"


@pytest.fixture
def session(tmp_path, monkeypatch):
    """A session in a loop with a check. What `late` lists is written while the hook waits, one at each look."""
    agent = Agent(tmp_path / "t.jsonl", tmp_path)
    begun = time.time() - 60
    agent.late = []
    agent.still = None
    agent.waits = 0

    def write_next(_):
        agent.waits += 1
        if agent.late:
            agent.late.pop(0)()

    def missing():
        agent.waits = 0
        payload = {"session_id": "mine", "cwd": str(tmp_path), "transcript_path": str(agent.path)}
        event = HookEvent({**payload, "last_assistant_message": DONE}, "Stop")
        frame = {
            "checks": ["pytest"],
            "still": agent.still,
            "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begun)),
        }
        return evidence.read_evidence(event, frame, "signal")[0]

    monkeypatch.setattr(evidence, "sleep", write_next)
    agent.missing, agent.begun = missing, begun
    return agent


def test_the_failed_result_of_the_newest_command_is_waited_for(session):
    use, result = session.records_of("Bash", session.begun + 5, failed=True, command="pytest")
    session.write(use)
    session.late = [lambda: session.write(result), lambda: session.write_words(DONE, session.begun + 6)]
    assert "`pytest`" in session.missing()
    assert session.waits == 2


def test_an_edit_that_is_written_late_is_waited_for(session):
    session.run("pytest", session.begun + 3)
    session.late = [
        lambda: session.edit("a.py", session.begun + 5),
        lambda: session.write_words(DONE, session.begun + 6),
    ]
    assert "a.py was edited" in session.missing()


def test_a_message_with_the_same_words_before_a_command_is_another_one(session):
    session.write_words(DONE, session.begun + 1)
    use, result = session.records_of("Bash", session.begun + 5, command="pytest")
    session.write(use)
    session.late = [lambda: session.write(result), lambda: session.write_words(DONE, session.begun + 6)]
    assert session.missing() == ""
    assert session.waits == 2


def test_a_message_with_the_same_words_from_the_stop_before_is_another_one(session):
    session.run("pytest", session.begun + 1)
    session.write_words(DONE, session.begun + 2)
    session.late = [
        lambda: session.edit("a.py", session.begun + 5),
        lambda: session.write_words(DONE, session.begun + 6),
    ]
    session.still = f"400@{session.begun + 3:.3f} 0 0 0 0"
    assert "a.py was edited" in session.missing()
    assert session.waits == 2


@pytest.mark.parametrize("still", ["", "x", "400@x 0", 5, "400"])
def test_without_the_time_of_the_stop_before_the_last_message_counts(session, still):
    session.run("pytest", session.begun + 1)
    session.write_words(DONE, session.begun + 2)
    session.still = still
    assert (session.missing(), session.waits) == ("", 0)


def test_a_transcript_with_the_last_message_is_read_at_once(session):
    session.run("pytest", session.begun + 5)
    session.write_words(DONE, session.begun + 6)
    session.write(
        {"type": "system", "subtype": "note"}, session.sub_agent("a").record("user", "Look.", session.begun + 7)
    )
    assert session.missing() == ""
    assert session.waits == 0


@pytest.mark.parametrize("text", ["", "no JSON\n", '{"type":"user"}\n', '{"type":"user","message":5}\n', None])
def test_a_message_that_never_comes_is_waited_for_a_second_at_most(session, monkeypatch, text):
    if text is not None:
        session.path.write_text(text)
    now = iter(number / 10 for number in range(1000))
    monkeypatch.setattr(evidence, "monotonic", lambda: next(now))
    session.missing()
    assert session.waits <= 10
