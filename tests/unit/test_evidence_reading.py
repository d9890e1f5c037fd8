"""How far the evidence for the end of a loop is looked for, and what counts if it is not all read."""

import posix
import time
from pathlib import Path

import pytest
from support.checked_sessions import Agent

from tailhook._core import unix_time
from tailhook.hook import evidence
from tailhook.hook.event import HookEvent
from tailhook.hook.evidence import clock_time, read_evidence
from tailhook.hook.session_files import FIRST_STRIDE
from tailhook.hook.translated import TranslatedEvent
from tailhook.hosts import find_translated_host

BEGAN = "2026-01-02T03:04:05Z"
START = unix_time(BEGAN)


@pytest.fixture
def agent(tmp_path):
    return Agent(tmp_path / "t.jsonl", tmp_path)


def read(agent, *files, event=HookEvent, **more):
    payload = {"session_id": "mine", "transcript_path": str(agent.path), "cwd": str(agent.folder), **more}
    one = event(payload, "Stop")
    one.now = START + 86400
    return read_evidence(one, {"began": BEGAN, "checks": ["pytest"], "check_files": list(files)}, "signal")


def reason(agent, *files):
    """Return what the agent reads about its evidence."""
    return read(agent, *files)[0]


def doubt(agent, *files):
    """Return what the person reads about an agent's evidence."""
    return read(agent, *files)[1]


def bytes_read_by(ask):
    """Return what a function returns, and how many bytes this process has read meanwhile."""

    def count():
        return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])

    before = count()
    found = ask()
    return found, count() - before


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="Linux counts what a process reads")
@pytest.mark.parametrize("since", [-9000, 0], ids=["before the loop began", "since the loop began"])
def test_of_a_check_near_the_end_only_the_end_is_read(agent, since):
    agent.write(*[agent.record("user", "x" * 1500, START + since + number) for number in range(8000)])
    agent.run("pytest", START + 9001)
    agent.write_words("Done.", START + 9002)
    (missing, _), count = bytes_read_by(lambda: read(agent))
    assert missing == ""
    assert count < 8 << 16 < 12_000_000 < agent.path.stat().st_size


@pytest.mark.parametrize("size", [FIRST_STRIDE - 2000, FIRST_STRIDE, 30 * FIRST_STRIDE])
def test_a_check_far_from_the_end_counts_until_a_file_is_edited(agent, size):
    agent.write(*[agent.record("user", "x" * 1500, START - 9000 + number) for number in range(8000)])
    agent.edit("a.py", START + 1)
    agent.run("pytest", START + 2)
    agent.write(*[agent.record("user", "x" * 1500, START + 3 + number) for number in range(size // 1500)])
    (missing, _), count = bytes_read_by(lambda: read(agent))
    assert missing == ""
    assert count < 12 * (size + FIRST_STRIDE) < agent.path.stat().st_size * 4
    agent.edit("b.py", START + 9001)
    assert "b.py was edited" in reason(agent)


@pytest.mark.parametrize("failed", [False, True])
def test_a_run_that_began_before_the_last_part_and_ended_in_it_counts_if_it_succeeded(agent, failed):
    agent.edit("a.py", START + 1)
    use, result = agent.records_of("Bash", START + 2, failed=failed, command="pytest")
    agent.write(use)
    agent.write(*[agent.record("user", "x" * 1500, START + 2) for _ in range(60)])
    agent.write(result)
    assert ("a.py was edited" in reason(agent)) is failed


@pytest.mark.parametrize("is_one_message", [True, False])
def test_an_edit_that_ended_late_is_newer_than_a_sub_agents_run_even_if_another_command_was_begun_beside_it(
    agent, is_one_message
):
    use, result = agent.records_of("Edit", START + 1, takes=40, file_path=str(agent.folder / "a.py"), new_string="x")
    began = START + (1.1 if is_one_message else 42)
    beside, printed = agent.records_of("Bash", began, command="pytest --version")
    if is_one_message:
        beside["message"]["id"] = use["message"]["id"]
        with agent.path.open("a") as out:
            out.write('{"assistant"\n')  # torn
        agent.write(use, {"type": "attachment"}, *agent.records_of("Read", START + 1)[1:], beside, printed, result)
    else:  # the agent's next message comes after all results
        agent.write(use, result, beside, printed)
    agent.sub_agent("one").run("pytest", START + 20)
    missing, unknown = read(agent)
    assert ("a.py was edited" in missing, unknown) == (True, "")
    agent.sub_agent("one").run("pytest", START + 50)
    assert reason(agent) == ""


def test_a_persons_command_a_long_way_back_counts(agent, monkeypatch):
    monkeypatch.setattr(evidence, "FIRST_STRIDE", 1000)
    agent.edit("a.py", START + 1)
    agent.type_command("pytest", START + 2)
    for number in range(50):
        agent.write(agent.record("user", "x" * 500, START + 3 + number))
    assert reason(agent) == ""
    agent.edit("b.py", START + 60)
    assert "b.py was edited" in reason(agent)
    agent.write(*[agent.record("user", "x" * 500, START + 61 + number) for number in range(50)])
    assert "b.py was edited" in reason(agent)


def test_a_persons_command_counts_behind_records_that_a_compaction_wrote_again(agent, monkeypatch):
    monkeypatch.setattr(evidence, "FIRST_STRIDE", 300)
    agent.edit("a.py", START + 1)
    agent.write_words("Hm.", START + 2)
    agent.type_command("pytest", START + 3)
    agent.compact(START + 4, again=2)
    agent.write(*[agent.record("user", "x" * 500, START + 5 + number) for number in range(9)])
    assert reason(agent) == ""


def test_behind_the_bound_of_bytes_anything_may_have_run(agent, monkeypatch):
    agent.run("pytest", START + 1)
    agent.write(agent.record("user", "x" * 5000, START + 2))
    agent.write(agent.record("user", "Go on.", START + 3))
    monkeypatch.setattr(evidence, "MAX_TRANSCRIPT_BYTES", 2000)
    missing, unknown = read(agent)
    assert (missing, bool(unknown)) == ("", True)
    agent.edit("a.py", START + 4)
    assert "a.py was edited" in reason(agent)


def test_behind_a_thousand_edits_that_could_match_anything_may_have_run(agent, monkeypatch):
    monkeypatch.setattr("tailhook.hook.edits_and_commands.MAX_EDITS", 3)
    agent.edit("a.py", START + 1)
    for number in range(3):
        assert "a.py was edited" in reason(agent, "*.py")
        agent.edit(f"{number}.txt", START + 2 + number, note="like a.py")
    assert "a.py was edited" not in reason(agent, "*.py")
    assert "edits" in doubt(agent, "*.py")


def test_of_many_sub_agents_those_that_wrote_last_are_read(agent, monkeypatch):
    monkeypatch.setattr(evidence, "MAX_SUB_AGENTS", 1)
    agent.write_words("Hm.", START)
    agent.sub_agent("old").run("pytest", START + 1)
    agent.sub_agent("new").run("ls", START + 100)
    assert doubt(agent) == "over 1 sub-agents"
    agent.sub_agent("new").edit("a.py", START + 101)
    assert "a.py was edited" in reason(agent)
    agent.sub_agent("new").run("pytest", START + 102)
    assert (reason(agent), doubt(agent)) == ("", "")


def test_sub_agents_that_wrote_nothing_since_the_loop_began_are_not_opened(agent, monkeypatch):
    agent.run("ls", START + 1)
    agent.sub_agent("old").run("ls", START - 100)
    opened = []
    really_open = posix.open
    monkeypatch.setattr(posix, "open", lambda path, *flags: opened.append(str(path)) or really_open(path, *flags))
    assert reason(agent)
    assert any(path == str(agent.path) for path in opened)
    assert not any("agent-old" in path for path in opened)


def test_on_another_host_it_is_unknown_which_tools_ran(agent):
    def codex(payload, name):
        return TranslatedEvent(find_translated_host("codex"), payload, name, "", 0)

    agent.edit("a.py", START + 1)
    missing, unknown = read(agent, event=codex)
    assert missing == ""
    assert "this host's transcripts" in unknown


@pytest.mark.parametrize("began", [None, 5, "x", "2999-01-01T00:00:00Z"])
def test_a_beginning_that_cannot_be_read_lets_the_whole_session_count(agent, began):
    one = HookEvent({"session_id": "mine", "transcript_path": str(agent.path), "cwd": str(agent.folder)}, "Stop")
    agent.edit("a.py", START - 500)
    assert read_evidence(one, {"began": began, "checks": ["pytest"]}, "signal")[0]
    agent.run("pytest", START - 400)
    assert read_evidence(one, {"began": began, "checks": ["pytest"]}, "signal")[0] == ""


def test_records_without_times_count_by_their_order(agent):
    def strip(path):
        path.write_text(path.read_text().replace('"timestamp"', '"stamp"'))

    agent.edit("a.py", START + 1)
    strip(agent.path)
    assert "since a.py was edited." in reason(agent)
    agent.run("pytest", START + 2)
    strip(agent.path)
    assert reason(agent) == ""


@pytest.mark.parametrize("at", [None, 1e300, -1e300, float("nan"), float("inf")])
def test_a_time_that_no_calendar_has_is_not_named(at):
    assert clock_time(at) == ""


def test_a_time_is_named_in_hours_and_minutes():
    assert clock_time(START) == time.strftime("%H:%M", time.localtime(START))
