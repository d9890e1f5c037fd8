"""Whole hooks at the end of a loop with checks."""

import json
import os
import re
import time

import pytest
from support.checked_sessions import Agent
from support.host import frame
from support.oracles import jwz

DONE = {"idle": "<loop-done>COMPLETE</loop-done>", "ralph": "<promise>GREEN</promise>"}
FIELDS = ("checks", "check_files")


@pytest.fixture(params=["idle", "ralph"])
def machine(request, project):
    project.argv = [*project.argv[:-1], f"{request.param},gate"]
    return request.param


@pytest.fixture
def start(project, machine):
    """Start a loop with checks; return a function that begins it."""

    def begin(*flags, group="loop" if machine == "idle" else "ralph"):
        words = ("--max", "9") if machine == "idle" else ("--completion-promise", "GREEN", "--max-iterations", "9")
        started = project.as_agent(group, "start", *words, *flags, "Work.", session="mine")
        assert started.returncode == 0, started.stderr
        return started.stdout

    return begin


@pytest.fixture
def agent(project):
    """Return the session's agent."""
    return Agent(project.transcript, project.folder)


@pytest.fixture
def end(project, machine, agent):
    """Let the agent claim that it is done; return the hook's reason, "" if the loop has ended."""

    def claim(word=None, *flags, **fields):
        said = f"All done.\n\n{word or DONE[machine]}"
        agent.write_words(said, time.time())
        stop = project.stop(said, *flags, **{"stop_hook_active": True, **fields})
        return stop.answer["reason"] if "reason" in stop.stdout else ""

    return claim


def now(seconds=0):
    return time.time() + seconds


def test_an_end_counts_only_after_the_check_has_run_after_the_newest_edit(start, agent, end):
    start("--check", "pytest -q")
    assert "`pytest -q`: it has not run successfully since the loop began at " in end()
    agent.edit("src/app.py", now(1))
    assert "since src/app.py was edited at " in end()
    agent.run("pytest -q", now(2), failed=True)
    assert "since src/app.py was edited at " in end()
    agent.run("pytest -q", now(3))
    agent.edit("src/app.py", now(4))
    assert end()
    agent.run("cd src && pytest -q -x", now(5))
    assert end() == ""


@pytest.mark.parametrize("path", ["README.md", "/elsewhere/a.txt"])
def test_edits_of_other_files_than_the_named_ones_need_no_check(start, agent, end, path):
    start("--check", "pytest", "--check-files", "*.py")
    agent.edit("src/app.py", now(1))
    agent.run("pytest", now(2))
    agent.edit(path, now(3))
    assert end() == ""


def test_every_check_is_needed(start, agent, end):
    start("--check", "pytest", "--check", "ruff check")
    agent.run("pytest", now(1))
    reason = end()
    assert "- `ruff check`" in reason
    assert "- `pytest`" not in reason
    agent.run("ruff check src", now(2))
    assert end() == ""


@pytest.mark.parametrize("folder", ["", "workflows/w1"])
def test_sub_agents_prove_and_edit_in_files_of_their_own(start, agent, end, folder):
    start("--check", "pytest")
    helper = agent.sub_agent("a1", folder)
    helper.run("pytest", now(1))
    agent.edit("src/app.py", now(2))
    assert "since src/app.py was edited" in end()
    helper.run("pytest", now(3))
    helper.edit("src/other.py", now(4))
    assert "since src/other.py was edited" in end()
    agent.run("pytest", now(5))
    assert end() == ""


def test_sub_agents_of_older_versions_are_beside_the_session_and_name_it(start, agent, end):
    start("--check", "pytest")
    agent.edit("src/app.py", now(1))
    another = Agent(agent.path.with_name("agent-b2.jsonl"), agent.folder, "another", "b2")
    another.run("pytest", now(2))
    assert end()
    Agent(agent.path.with_name("agent-c3.jsonl"), agent.folder, "mine", "c3").run("pytest", now(2))
    assert end() == ""


def test_what_happened_before_the_loop_began_is_not_evidence(start, agent, end):
    agent.edit("src/app.py", now(-20))
    agent.run("pytest", now(-10))
    agent.sub_agent("a1").run("pytest", now(-5))
    start("--check", "pytest")
    assert "since the loop began at " in end()
    agent.run("pytest", now(3))
    assert end() == ""


@pytest.mark.parametrize("program", ["tailhook", ".venv/bin/tailhook", "python -m tailhook", "uv run tailhook"])
def test_the_command_that_starts_the_loop_is_not_a_run_of_its_check(start, agent, end, program):
    start("--check", "pytest")
    agent.run(f"{program} loop start --max 5 --check pytest 'Make pytest pass.'", now(-1), takes=3)
    assert "since the loop began at " in end()


def test_a_run_that_began_before_the_loop_and_succeeded_in_it_is_evidence(start, agent, end):
    start("--check", "pytest")
    agent.run("pytest", now(-30), takes=60)
    assert end() == ""


@pytest.mark.parametrize(
    ("machine_word", "other"),
    [("<loop-done>MAX_ITERATIONS</loop-done>", "MAX_ITERATIONS"), ("<loop-done>STUCK</loop-done>", "STUCK")],
)
@pytest.mark.parametrize("machine", ["idle"], indirect=True)
def test_an_end_that_claims_no_success_needs_no_evidence(project, start, end, machine_word, other):
    start("--check", "pytest")
    assert end(machine_word) == ""
    assert ending(project)["reason"] == other


@pytest.mark.parametrize("machine", ["idle"], indirect=True)
@pytest.mark.parametrize(
    ("mode", "word"),
    [
        ("grind", "<grind-done>NO_MORE_ISSUES</grind-done>"),
        ("issue", "<issue-complete>DONE</issue-complete>"),
        ("issue", "<loop-done>COMPLETE</loop-done>"),
    ],
)
def test_in_each_mode_the_signals_of_success_need_evidence(start, agent, end, mode, word):
    start("--mode", mode, "--check", "pytest")
    assert end(word)
    agent.run("pytest", now(1))
    assert end(word) == ""


def test_the_limit_ends_a_loop_whose_checks_never_succeed(start, end):
    start("--check", "pytest", *(["--stuck-after", "0"]))
    reasons = [end() for _ in range(9)]
    assert all(reasons[:8])
    assert reasons[8] == ""


def test_claiming_again_and_again_without_work_stands_still(project, start, end):
    start("--check", "pytest", "--stuck-after", "2")
    assert [bool(end()) for _ in range(3)] == [True, True, False]


def ending(project):
    """Return the last state of idle's loop."""
    return json.loads(project.tailhook("loop", "status", "--json").stdout)["state"]


def test_times_are_those_of_the_hooks_zone(project, start, agent, end):
    start("--check", "pytest")
    at = now(1)
    agent.edit("src/app.py", at)
    for zone, hours in (("XYZ-9", 9), ("ABC3", -3)):
        project.env["TZ"] = zone
        assert time.strftime("edited at %H:%M.", time.gmtime(at + hours * 3600)) in end()


# ---- what cannot be read ---------------------------------------------------------


@pytest.mark.parametrize("path", [None, "/nowhere/t.jsonl", "/tmp", "/dev/null", "~/t.jsonl"])
def test_a_transcript_that_cannot_be_read_is_evidence_and_the_person_learns_of_it(project, start, end, machine, path):
    start("--check", "pytest")
    said = f"Done.\n\n{DONE[machine]}"
    stop = project.stop(said, "--announce", transcript_path=path)
    assert "its checks are unknown: " in stop.answer["systemMessage"] or path == "/dev/null"
    assert "Errno" not in stop.answer["systemMessage"]
    assert "reason" not in stop.answer
    if path != "/dev/null":
        group = "ralph" if machine == "ralph" else "loop"
        assert " (its checks are unknown: " in project.tailhook(group, "status").stdout
        ended = json.loads(project.tailhook(group, "status", "--json").stdout)["ended"]
        assert "(its checks are unknown: " in ended["why"]
        start()
        assert project.stop(said, "--announce").answer
        assert "unknown" not in project.tailhook(group, "status").stdout


@pytest.mark.parametrize("host", ["codex", "copilot"])
def test_in_a_host_whose_runs_are_unknown_start_reports_it_and_status_keeps_it(project, start, machine, host):
    project.tailhook("install", "--yes", "--host", host).check_returncode()
    group = "ralph" if machine == "ralph" else "loop"
    words = ("--completion-promise", "GREEN") if machine == "ralph" else ()
    started = project.as_agent(group, "start", *words, "--check", "pytest", "Work.")
    title = {"codex": "Codex CLI", "copilot": "Copilot CLI"}[host]
    unknown = f"tailhook: {title} does not show which commands succeeded, so --check has no effect there\n"
    assert unknown in started.stderr
    stop = project.stop(f"Done.\n\n{DONE[machine]}", "--host", host)
    assert stop.exit_code == 0
    assert " (its checks are unknown: " in project.tailhook(group, "status").stdout
    again = project.as_agent(group, "start", *words, "Work.")
    assert unknown not in again.stderr


def test_what_is_not_a_file_is_not_read_as_a_sub_agents_transcript(start, agent, end):
    start("--check", "pytest")
    agent.edit("src/app.py", now(1))
    helper = agent.sub_agent("a1")
    helper.write_words("Hm.", now(2))
    helper.path.unlink()
    os.mkfifo(helper.path)
    assert end()
    helper.path.unlink()
    helper.path.mkdir()
    assert end()
    helper.path.rmdir()
    helper.path.symlink_to("/nowhere")
    assert end()


def test_sub_agents_that_cannot_be_listed_are_evidence(start, agent, end):
    start("--check", "pytest")
    agent.edit("src/app.py", now(1))
    agent.path.with_suffix("").mkdir()
    folder = agent.path.with_suffix("") / "subagents"
    folder.symlink_to(folder)
    assert end() == ""


def test_broken_records_and_a_cut_last_line_hide_nothing(start, agent, end):
    start("--check", "pytest")
    agent.edit("src/app.py", now(1))
    agent.run("pytest", now(2))
    with agent.path.open("a") as out:
        out.write(
            '{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Edit"\n[]\n5\n\x00\n{"timestamp":5}\n'
        )
        out.write('{"type":"assistant","timestamp":"x","message":{"content":[{"type":"tool_u')
    assert end() == ""


def test_if_the_clock_was_set_back_earlier_runs_count(start, agent, end, project, machine):
    start("--check", "pytest")
    ahead = "2999-01-01T00:00:00Z"
    if machine == "ralph":
        path = project.folder / ".claude" / "ralph-loop.local.md"
        path.write_text(re.sub('began: "[^"]*"', f'began: "{ahead}"', path.read_text()))
    else:
        state = ending(project)
        state["stack"][-1]["began"] = ahead
        jwz.post(project.folder, json.dumps(state))
    assert end()
    agent.run("pytest", now(-5000))
    assert end() == ""


def test_after_a_compaction_repeated_records_stay_old(start, agent, end):
    agent.edit("src/app.py", now(-20))
    start("--check", "pytest")
    agent.edit("src/app.py", now(1))
    agent.run("pytest", now(2))
    agent.edit("src/app.py", now(3))
    agent.compact(now(4), again=6)
    assert end()
    agent.run("pytest", now(5))
    agent.compact(now(6), again=8)
    assert end() == ""


def test_records_of_bookkeeping_without_a_time_do_not_end_the_reading(start, agent, end):
    start("--check", "pytest")
    agent.run("pytest", now(1))
    agent.write(*({"type": "file-history-snapshot", "snapshot": "x" * 1000} for _ in range(2000)))
    assert end() == ""


# ---- the commands ----------------------------------------------------------------


@pytest.mark.parametrize("group", ["loop", "ralph"])
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--check", "pytest | tail"], "--check 'pytest | tail': it is not one simple command"),
        (["--check", 'pytest "'], "not one simple command"),
        (["--check", "pytest\nls"], "more than one line"),
        (["--check", "x" * 100_000], "longer than 200 characters"),
        (["--check", ""], "--check is empty"),
        (["--check", "pytest", "--check", "a;b"], "--check 'a;b'"),
        (["--check", "pytest", "--check-files", "!x"], "patterns that exclude"),
        (["--check", "pytest", "--check-files", ""], "empty"),
        (["--check-files", "*.py"], "needs a check"),
        ([f"--check=pytest {number}" for number in range(51)], "at most 50 checks"),
        (["--check", "pytest", "--check-files", "{a,b,c,d}" * 20], "patterns"),
    ],
)
def test_what_gate_cannot_parse_is_a_usage_error_and_starts_nothing(project, group, flags, words):
    started = project.as_agent(group, "start", *flags, "Work.")
    assert started.returncode == 2
    assert words in started.stderr
    assert len(started.stderr) < 500
    assert sorted(path.name for path in project.folder.iterdir()) == [".git"]


def test_the_fields_are_saved_beside_the_beginning(project, start, machine):
    start("--check", "pytest -k 'a #b'", "--check", 'make "x y"', "--check-files", "*.py", "--check-files", "src/**")
    expected = ["pytest -k 'a #b'", 'make "x y"'], ["*.py", "src/**"]
    state = json.loads(project.tailhook("loop" if machine == "idle" else "ralph", "status", "--json").stdout)["state"]
    top = state["stack"][-1] if machine == "idle" else {**state, **{key: json.loads(state[key]) for key in FIELDS}}
    assert tuple(top[key] for key in FIELDS) == expected
    assert top["began"]


TERMS = (
    "counts only if each of these commands has succeeded in this loop, and after the last edit of a file that matches "
    "`*.py`:\n  pytest -q\n  make 'a b'"
)
CHECKS = ("--check", "pytest -q", "--check", "make 'a b'", "--check-files", "*.py")


def test_start_and_status_print_the_checks(project, start, machine):
    assert TERMS in start(*CHECKS)
    assert TERMS in project.tailhook("loop" if machine == "idle" else "ralph", "status").stdout


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("UserPromptSubmit", {"prompt": "Go."}),
        ("SessionStart", {"source": "compact"}),
        ("Stop", {"said": "Not yet."}),
    ],
)
def test_the_briefing_of_the_agent_has_the_checks(project, machine, event, fields):
    words = ("--completion-promise", "GREEN") if machine == "ralph" else ()
    project.as_agent("loop" if machine == "idle" else "ralph", "start", *words, *CHECKS, "Work.").check_returncode()
    answer = project.stop(hook_event_name=event, **fields).answer
    assert TERMS in (answer.get("reason") or answer["hookSpecificOutput"]["additionalContext"])


@pytest.mark.parametrize("machine", ["idle"], indirect=True)
@pytest.mark.parametrize(
    ("mode", "words"), [("loop", "COMPLETE"), ("issue", "COMPLETE or DONE"), ("grind", "NO_MORE_ISSUES")]
)
def test_the_briefing_names_the_signals_that_need_the_checks(start, mode, words):
    assert f"\n{words} counts only if this command has succeeded" in start("--mode", mode, "--check", "pytest")


def test_without_checks_the_fields_are_not_there(project, start, machine):
    start()
    state = json.loads(project.tailhook("loop" if machine == "idle" else "ralph", "status", "--json").stdout)["state"]
    assert not set(FIELDS) & set(state["stack"][-1] if machine == "idle" else state)


# ---- gate in loops -----------------------------------------------------------------


@pytest.fixture
def gate(project):
    """Let the gate machine have a rule."""
    path = project.folder / ".claude" / "tailhook.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"gate": {"rules": [{"edited": ["*.py"], "ran": "mypy"}]}}))


def test_gate_judges_a_stop_that_would_end_a_loop_before_the_end_is_saved(project, gate, start, agent, end):
    start()
    agent.edit("src/app.py", now(1))
    reason = end()
    assert "`mypy`: it has not run successfully since src/app.py was edited" in reason
    assert "ITERATION 2/9" in reason or reason.startswith("Work.")
    assert end() == ""


def test_gate_does_not_judge_the_stops_that_continue_a_loop(gate, start, agent, end, project):
    start()
    agent.edit("src/app.py", now(1))
    agent.write_words("Not yet.", now(2))
    assert "mypy" not in project.stop("Not yet.").answer["reason"]
    assert "mypy" in end()


def test_gate_blocks_each_new_edit_in_a_loop_although_the_loop_blocked_the_stop_before(gate, start, agent, end):
    start()
    for second in range(3):
        agent.edit("src/app.py", now(second))
        assert "mypy" in end()
    agent.run("mypy", now(9))
    assert end() == ""


def test_gate_extends_no_loop_beyond_its_limit(gate, start, agent, end):
    start("--stuck-after", "0")
    blocked = 0
    for second in range(9):
        agent.edit("src/app.py", now(second))
        blocked += bool(end())
    assert blocked >= 8
    assert end() == ""


@pytest.mark.parametrize(("stuck_after", "blocks"), [("1", 1), ("0", 8)])
def test_gate_judges_the_stop_at_which_a_loop_ends_without_a_signal(project, gate, start, agent, stuck_after, blocks):
    start("--stuck-after", stuck_after)
    agent.edit("src/app.py", now(1))
    stops = []
    for _ in range(blocks + 2):
        agent.write_words("Hm.", now())
        stops.append(project.stop("Hm.", "--announce", stop_hook_active=True))
    assert ["mypy" in stop.stdout for stop in stops] == [False] * blocks + [True, False]
    assert [stop.allowed for stop in stops] == [False] * (blocks + 1) + [True]
    assert "tailhook: " in stops[-2].answer["systemMessage"]  # the loop has ended


def test_gate_lets_go_an_agent_whose_loop_of_another_tool_reached_its_limit(project, gate, agent, machine):
    if machine == "idle":
        project.loop(frame(iter=9, max=9, session_id="mine"))
    else:
        project.ralph(iteration=10)
        project.argv[-1] = "ralph,gate"
    agent.edit("src/app.py", now(1))
    assert project.stop("Hm.", stop_hook_active=True).allowed


def test_gate_and_the_checks_are_both_needed(gate, start, agent, end):
    start("--check", "pytest")
    agent.edit("src/app.py", now(1))
    assert "- `pytest`" in (reason := end())
    assert "mypy" not in reason
    agent.run("pytest", now(2))
    assert "- `mypy`" in end()
    agent.run("mypy", now(3))
    assert end() == ""


def test_a_rule_that_fails_does_not_hold_a_loop(project, gate, start, agent, end):
    (project.home / ".local/state/tailhook").mkdir(parents=True, exist_ok=True)
    start()
    agent.edit("src/app.py", now(1))
    for found in (project.home / ".local/state/tailhook").glob("*.gate*"):
        found.unlink()
    project.env["XDG_STATE_HOME"] = "/proc/nowhere"
    assert end() == ""


@pytest.mark.parametrize("machine", ["idle"], indirect=True)
def test_a_loop_of_another_tool_is_ended_by_its_signal_alone(project, gate, agent, machine):
    project.loop(frame(checks=["pytest"], session_id="mine"))
    agent.edit("src/app.py", now(1))
    agent.write_words(DONE["idle"], time.time())
    stop = project.stop(DONE["idle"], stop_hook_active=True)
    assert stop.allowed
    assert stop.state["event"] == "DONE"


def test_another_end_than_that_of_the_signal_names_the_signal_that_did_not_count(project, start, end, machine):
    signal = "signal" if machine == "idle" else "promise"
    note = f", and the agent's {signal} did not count: its checks have not succeeded"
    limit = "--max" if machine == "idle" else "--max-iterations"
    group = "loop" if machine == "idle" else "ralph"
    for flags in (("--stuck-after", "1"), (limit, "1")):
        start("--check", "pytest", *flags)
        assert "" in (end(), end())
        shown = project.as_agent(group, "status").stdout
        assert f"{note} (" in shown, shown
