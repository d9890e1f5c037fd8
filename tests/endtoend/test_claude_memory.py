"""The memory machine in whole sessions of Claude Code."""

import json

from model import Model, bash
from support.host import wait_until

DECIDED = "We decided to use SQLite instead of a server because it needs no set-up.\nWe chose WAL over a lock file."


def test_what_was_decided_is_said_once_a_session(claude):
    claude.tailhook("install", "--yes", "--with", "memory")
    with Model("Hello.", DECIDED, "Saved.", "Nothing new.") as model:
        session = claude.run(model)
        claude.run(model, resume=session.id)
        claude.run(model, resume=session.id)
    assert ["items should be saved" in one.said for one in model.requests] == [False, False, True, False]
    assert "[DECISION] We decided to use SQLite" in model.requests[2].said


def test_it_is_not_asked_unless_it_is_named(installed):
    with Model(DECIDED) as model:
        installed.run(model)
    assert len(model.requests) == 1


def test_a_loop_comes_first_and_what_was_decided_is_said_at_its_end(claude):
    claude.tailhook("install", "--yes", "--with", "memory")

    def done(_):
        # The host writes its transcript behind time; a real model takes longer than that over an answer.
        wait_until(lambda: any("SQLite" in one.read_text() for one in claude.home.glob(".claude/projects/*/*.jsonl")))
        return "<loop-done>COMPLETE</loop-done>"

    with Model(bash("tailhook loop start Work."), DECIDED, done, "Saved.") as model:
        claude.run(model)
    assert ["items should be saved" in one.said for one in model.requests] == [False, False, False, True]
    assert json.loads(claude.tailhook("loop", "status", "--json"))["state"]["reason"] == "COMPLETE"
