"""The idle and the ralph machine in whole sessions of Codex, Gemini and Copilot CLI and Qwen Code."""

import html
import json
from datetime import datetime
from random import Random

import pytest
from model import use
from other_hosts import Codex, Copilot, Gemini, Qwen
from run_hosts import host_path
from support import host_payloads
from support.host import Project, tailhook, wait_until
from support.oracles.host_usage import responses
from support.oracles.scan import COLUMNS, TOKENS, Question, rows
from support.oracles.scan_records import head_of
from support.scans import scan_rows

from tailhook.install.hooks_file import hooks_file_of
from tailhook.transcripts import transcript

DONE = "<loop-done>COMPLETE</loop-done>"
BRIEFED = "codex", "qwen"  # Gemini changes the text of a prompt's hook, Copilot leaves it out


def at(tmp_path, kind):
    """Return a host with no hook installed."""
    if not host_path(kind.name).exists():
        pytest.skip(f"{kind.__doc__} is not installed: `make host` fetches it")
    return kind(tmp_path / "home", tmp_path / "project")


@pytest.fixture(params=[Codex, Gemini, Copilot, Qwen], ids=lambda kind: kind.name)
def host(request, tmp_path):
    """Return each host in turn."""
    return at(tmp_path, request.param)


@pytest.fixture
def codex(tmp_path):
    """Return Codex CLI."""
    return at(tmp_path, Codex)


@pytest.fixture
def gemini(tmp_path):
    """Return Gemini CLI."""
    return at(tmp_path, Gemini)


@pytest.fixture
def copilot(tmp_path):
    """Return Copilot CLI."""
    return at(tmp_path, Copilot)


@pytest.fixture
def qwen(tmp_path):
    """Return Qwen Code."""
    return at(tmp_path, Qwen)


def test_a_loop_ends_at_the_signal_and_not_at_one_in_code(host):
    host.install()
    answers = [
        host.bash("tailhook loop start --max 20 'Make the tests pass.'"),
        "Begun.",
        f"I shall write:\n\n```\n{DONE}\n```\n",
        f"Not yet `{DONE}`.",
        host.bash("echo from the tool"),
        "Tested.",
        f"All pass.\n\n{DONE}",
    ]
    with host.model(*answers) as model:
        host.run(model)
    assert len(model.requests) == len(answers)
    assert "Loop started" in model.requests[1].said
    assert "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP" not in model.requests[1].said
    assert [f"[ITERATION {number}/20]" in model.requests[at].said for number, at in ((2, 2), (3, 3), (4, 4), (5, 6))]
    assert "No loop" in host.tailhook("loop", "status")


def test_a_fence_that_stays_open_hides_its_own_answer_alone(host):
    host.install()
    host.tailhook("loop", "start", "Make the tests pass.")
    with host.model(f"```\n{DONE}", DONE) as model:
        host.run(model)
    assert len(model.requests) == 2
    assert "No loop" in host.tailhook("loop", "status")


def test_a_ralph_loop_ends_when_its_promise_is_kept(host):
    host.install("idle,ralph")
    host.tailhook("ralph", "start", "--completion-promise", "TESTS GREEN", "Make the tests pass.")
    with host.model("Hm.", "Not `<promise>TESTS GREEN</promise>` yet.", "<promise>TESTS GREEN</promise>") as model:
        host.run(model)
    assert ["Make the tests pass." in one.prompted for one in model.requests] == [host.name in BRIEFED, True, True]
    assert "No ralph loop" in host.tailhook("ralph", "status")


@pytest.mark.parametrize(
    ("group", "signal"), [("loop", DONE), ("ralph", "<promise>TESTS GREEN</promise>")], ids=["loop", "ralph"]
)
def test_an_agent_learns_the_goal_and_the_signal_of_a_loop_that_a_person_started(host, group, signal):
    host.install("idle,ralph")
    words = ("--completion-promise", "TESTS GREEN") if group == "ralph" else ()
    host.tailhook(group, "start", *words, "Make the tests pass.")
    with host.model("First.", "Second.", signal) as model:
        host.run(model)
    assert len(model.requests) == 3
    first = 0 if host.name in BRIEFED else 1
    assert ["Make the tests pass." in model.requests[at].prompted for at in (0, 1)] == [first == 0, True]
    assert learnt(model, signal)[:2] == [first == 0, True]


def learnt(model, *words):
    """Return, for each request, whether the agent has read all of the words by then.

    In the reason of a block, Codex writes entities in place of angle brackets, and so does Qwen Code in the texts at a
    prompt; then the agent must have read that too.
    """

    def is_read(word, text):
        return word in text or ("Write tags with real angle brackets" in text and word in html.unescape(text))

    return [all(is_read(word, one.prompted) for word in words) for one in model.requests]


def test_an_agent_that_starts_its_loop_learns_them_from_the_command(host):
    host.install()
    with host.model(host.bash("tailhook loop start 'Make the tests pass.'"), "First.", DONE) as model:
        host.run(model)
    assert learnt(model, "Make the tests pass.", DONE) == [False, True, True]


@pytest.mark.parametrize("kind", [Codex, Copilot, Qwen], ids=lambda kind: kind.name)
def test_a_loop_that_an_agent_starts_belongs_to_its_session_at_once(tmp_path, kind):
    host = at(tmp_path, kind)
    host.install()
    with host.model(host.bash("tailhook loop start 'Make the tests pass.'"), "First.", DONE) as model:
        host.run(model)
    assert [one.prompted.count("Goal: Make the tests pass.") for one in model.requests] == [0, 1, 1]
    assert "[ITERATION 2/10]" in model.requests[2].prompted


@pytest.mark.parametrize("words", [("resume", "--last"), ("fork",)], ids=["resume", "fork"])
def test_the_shells_of_codex_name_the_session_of_the_payloads(codex, words):
    codex.install()
    with codex.model("First.") as model:
        codex.run(model)
    codex.session = words if words[0] == "resume" else (*words, codex.sent()[0]["session_id"])
    with codex.model(codex.bash("echo $CODEX_SESSION_ID."), "Second.") as model:
        codex.run(model)
    assert f"{codex.sent()[-1]['session_id']}." in model.requests[1].said


def test_an_agent_that_stands_still_is_let_go(host):
    def once_written(_):  # the transcript may get the use of a tool after the stop, and a model takes longer
        wait_until(lambda: any("echo work" in path.read_text() for path in host.home.rglob("*.jsonl")))
        return "Holding."

    host.install()
    start = host.bash("tailhook loop start --max 20 'Make the tests pass.'")
    with host.model(start, "Holding.", host.bash("echo work"), once_written, *["Holding."] * 8) as model:
        host.run(model)
    assert len(model.requests) == 8  # the stop with work does not count, and four without work do
    assert "STUCK" in host.tailhook("loop", "status")


def test_a_paused_loop_lets_the_agent_stop_until_it_is_resumed(host):
    host.install()
    start, pause = host.bash("tailhook loop start --max 20 'Work.'"), host.bash("tailhook loop pause")
    with host.model(start, "First.", pause, "Paused.") as model:
        host.run(model)
    assert len(model.requests) == 4
    host.tailhook("loop", "resume")
    host.tailhook("loop", "adopt")  # the next run is another session
    with host.model("Second.", DONE) as model:
        host.run(model)
    assert "[ITERATION 3/20]" in model.requests[1].said


def test_an_agent_that_adopts_a_loop_learns_them_at_its_first_block(host):
    host.install()
    host.tailhook("loop", "start", "Make the tests pass.", CLAUDE_CODE_SESSION_ID="another")
    with host.model(host.bash("tailhook loop adopt"), "First.", DONE) as model:
        host.run(model)
    at_the_result = host.name == "qwen"  # it reports a tool's result as a prompt, too
    assert learnt(model, "Make the tests pass.", DONE) == [False, at_the_result, True]


def test_an_agent_in_the_shell_of_claude_code_has_a_loop_of_its_own(host):
    host.env["CLAUDE_CODE_SESSION_ID"] = "outer"
    host.install()
    with host.model(host.bash("tailhook loop start 'Make the tests pass.'"), "First.", DONE) as model:
        host.run(model)
    assert "the agent reported COMPLETE, at iteration 2," in host.tailhook("loop", "status")


def test_an_agent_learns_the_inner_loop_and_then_the_outer_one(host):
    host.install()
    host.tailhook("loop", "start", "--mode", "grind", "Take each issue.")
    host.tailhook("loop", "start", "--push", "Make the tests pass.")
    outer = "<grind-done>NO_MORE_ISSUES</grind-done>"
    with host.model("First.", DONE) as model:
        host.run(model)
    assert learnt(model, "Make the tests pass.", DONE) == [host.name in BRIEFED, True]
    assert learnt(model, "Take each issue.") == [False, False]
    with host.model(host.bash("tailhook loop adopt"), "Second.", outer) as model:  # the first session has both loops
        host.run(model)
    at_the_result = host.name == "qwen"  # as above
    assert learnt(model, "Take each issue.", outer) == [False, at_the_result, True]


def test_after_a_compaction_codex_gives_the_agent_its_loop_again(codex):
    codex.settings = "model_auto_compact_token_limit = 1000\n"
    codex.install()
    codex.tailhook("loop", "start", "Make the tests pass.")
    with codex.model("First.", codex.bash("echo hi"), DONE) as model:
        model.tokens = 101, 5000
        codex.run(model)
    assert [sent["source"] for sent in codex.sent() if sent["hook_event_name"] == "SessionStart"][1:] == ["compact"]
    assert "First." not in model.requests[2].prompted
    assert learnt(model, "Iteration 2 of at most 10", "Make the tests pass.", DONE) == [False, False, True]


def test_after_a_compaction_qwen_gives_the_agent_its_loop_again(qwen):
    """The text is a part of the instructions to the model. Qwen Code goes on while the hook makes it."""
    qwen.install()
    qwen.tailhook("loop", "start", "Make the tests pass.")
    said = iter(["First. " + "lorem ipsum " * 8000, qwen.bash("echo much"), "And on.", "More.", DONE])

    def starts():
        return [sent["source"] for sent in qwen.sent() if sent["hook_event_name"] == "SessionStart"]

    def answer(request):
        if "state_snapshot" in request.said:
            return "<state_snapshot>It works.</state_snapshot>"
        words = next(said)
        if words in ("And on.", "More."):
            wait_until(lambda: "compact" in starts())
        return words

    with qwen.model(*[answer] * 6) as model:
        model.tokens = 1, 174_000
        qwen.run(model)
    assert starts() == ["startup", "compact"]
    last = model.requests[-1]
    assert "lorem ipsum" not in last.prompted
    assert "A loop is running in this session." in json.dumps(last.body["system"])
    assert "No loop" in qwen.tailhook("loop", "status")


def test_codex_takes_the_notice_about_another_sessions_loop_and_does_not_give_it_to_the_agent(codex):
    codex.install()
    codex.tailhook("loop", "start", "Make the tests pass.", CLAUDE_CODE_SESSION_ID="another")
    with codex.model("Hm.") as model:
        done = codex.run(model)
    assert "hook: UserPromptSubmit Failed" not in done.stderr
    assert (codex.home / ".local" / "state" / "tailhook" / "notices").exists()
    assert learnt(model, "tailhook loop adopt") == [False]


def test_another_sessions_loop_is_left_alone(host):
    host.install()
    host.tailhook("loop", "start", "Make the tests pass.", CLAUDE_CODE_SESSION_ID="another")
    with host.model("Hm.") as model:
        host.run(model)
    assert len(model.requests) == 1
    assert "Iteration 1 of" in host.tailhook("loop", "status")


def test_the_payload_is_the_one_of_the_contract_tests(host, tmp_path):
    host.install()
    with host.model("Hm.") as model:
        host.run(model)
    ours = getattr(host_payloads, host.name)(Project(tmp_path / "another", tmp_path / "other", []), "Hm.")
    assert {key: type(value) for key, value in host.sent()[-1].items()} == {
        key: str if value is None else type(value) for key, value in ours.items()
    }


def test_the_hooks_of_a_project_are_run(host):
    host.install(scope="project")
    host.tailhook("loop", "start", "Make the tests pass.")
    with host.model("Hm.", DONE) as model:
        host.run(model)
    assert len(model.requests) == 2
    assert "No loop" in host.tailhook("loop", "status")


def test_the_board_gets_every_step_of_a_session(host):
    host.install("idle,plates")
    with host.model(host.bash("echo from the tool"), "Done.") as model:
        host.run(model)
    steps = ["session_start", "prompt_submit", "tool_start", "tool_call", "stop", "session_end"]
    if host.name == "qwen":
        steps.pop()  # without a terminal it reports no end
    found = [event["event_type"] for event in host.spooled() if not event.get("by_host")]
    if found[:2] == [steps[1], steps[0]]:  # Copilot before 1.0.102 sends a prompt before the start
        assert "source" not in host.spooled()[1]  # or the session would be idle until its first tool
        found[:2] = steps[:2]
    assert [step for step in found if step in (*steps, "session_end")] == steps
    (called,) = [line for line in host.spooled() if line["event_type"] == "tool_call"]
    assert (called["tool_name"] != "", called["tool_params"]) == (True, {"command": "echo from the tool"})


def test_a_sub_agent_of_copilot_is_not_a_session_of_its_own(copilot):
    copilot.install("idle,plates")
    copilot.tailhook("loop", "start", "Make the tests pass.")
    task = use("task", description="look", prompt="Look around.", agent_type="general-purpose", name="looker")
    sub_agents = [copilot.bash("echo from the sub-agent"), f"Seen.\n{DONE}"]
    with copilot.model([task], *sub_agents, "Hm.", DONE) as model:
        copilot.run(model)
    assert len(model.requests) == 5
    assert "[ITERATION 2/" in model.requests[4].said
    assert "No loop" in copilot.tailhook("loop", "status")
    assert len({event["session_id"] for event in copilot.spooled()}) == 1
    (stopped,) = [event for event in copilot.spooled() if event["event_type"] == "subagent_stop"]
    of_the_agent = [event["event_type"] for event in copilot.spooled() if event.get("agent_id") == stopped["agent_id"]]
    assert of_the_agent == ["tool_start", "tool_call", "subagent_stop"]


def test_a_background_agent_of_qwen_pauses_the_loop_and_then_wakes_the_agent(qwen):
    qwen.install("idle,plates")
    qwen.tailhook("loop", "start", "Make the tests pass.")
    task = use(
        "agent", description="look", prompt="Look around.", subagent_type="general-purpose", run_in_background=True
    )
    said = iter([[task], "Waiting.", "It has looked.", DONE])

    def answer(request):
        if "Look around." not in request.first:
            return next(said)
        wait_until(lambda: "stop" in qwen.events())
        return "Seen."

    with qwen.model(*[answer] * 5) as model:
        qwen.run(model)
    stops = [event for event in qwen.spooled() if event["event_type"] in ("stop", "stop_blocked")]
    assert [(stop["event_type"], stop.get("background", 0)) for stop in stops] == [
        ("stop", 1),
        ("stop_blocked", 0),
        ("stop", 0),
    ]
    assert "at iteration 2" in qwen.tailhook("loop", "status")
    [chat] = qwen.home.glob(".qwen/projects/*/chats/*.jsonl")
    with transcript.open(chat) as session:
        assert [(agent.is_of_sub_agent, agent.last_message()) for agent in session.sub_agents()] == [(True, "Seen.")]


def test_the_doctor_finds_the_installed_hooks_well(host):
    host.install("idle,plates")
    findings = json.loads(host.tailhook("doctor", "--json"))["findings"]
    hooks = [finding for finding in findings if finding["check"] == "hook"]
    assert len(hooks) == len(hooks_file_of(host.name).events)
    assert {finding["status"] for finding in hooks} <= {"ok", "warning"}  # a busy machine is slow


@pytest.mark.parametrize("kind", [Codex, Gemini, Copilot], ids=lambda kind: kind.name)
def test_the_scan_of_what_the_host_writes_gives_the_rows_of_the_reference(tmp_path, kind, report):
    host = at(tmp_path, kind)
    host.prepare()
    with host.model(host.bash("echo TODO"), "All TODO pass.") as model:
        host.run(model)
    paths = [path for path in sorted(host.home.rglob("*.jsonl")) if path.parent.name != "node_modules"]
    paths = [path for path in paths if head_of(path.name, path.read_bytes()).host == host.name]
    found = [(path.name, path.read_bytes()) for path in paths]
    billed = responses(host.name, paths)
    assert len(billed) == len(model.requests)
    question = Question(patterns={"todo": "TODO"}, in_code=None)
    counts = []
    for table in COLUMNS:
        wanted = reference(table, found, question, billed)
        assert wanted
        assert compared(table, scan_rows(table, found, question)) == wanted
        assert compared(table, scan_rows(table, found, question, Random(1))) == wanted
        counts.append(f"{len(wanted)} {table}")
    report(f"scan of {host.name}: {', '.join(counts)}")


BILLED = ("host", "session_id", "model", "timestamp", *TOKENS)  # what the counter of usage knows of a response


def reference(table, files, question, billed):
    """Return the rows of a table, with the tokens of these responses."""
    if table == "usage":
        return [one._asdict() | {"timestamp": datetime.fromisoformat(one.timestamp)} for one in billed]
    found = rows(table, files, question)
    for row in found if table == "sessions" else ():
        own = [one for one in billed if one.session_id == row["session_id"]]
        row["models"] = sorted({one.model for one in own})
        row.update({name: sum(getattr(one, name) for one in own) for name in TOKENS})
    return found


def compared(table, found):
    """Return rows with only the reference's columns."""
    if table != "usage":
        return found
    return [{name: row[name] or 0 if name in TOKENS else row[name] for name in BILLED} for row in found]


@pytest.mark.parametrize("kind", [Codex, Gemini, Qwen], ids=lambda kind: kind.name)
def test_decisions_in_the_payload_are_reported(tmp_path, kind):
    host = at(tmp_path, kind)
    host.install("memory")
    with host.model("We chose A because of B.\nWe picked C over D.", "Saved.") as model:
        host.run(model)
    assert len(model.requests) == 2
    assert "- [DECISION] We chose A because of B. (score: 0.53)" in model.requests[1].said


@pytest.mark.parametrize("kind", [Codex, Gemini], ids=lambda kind: kind.name)
@pytest.mark.parametrize("exit_code", ["2", "0"])
def test_twelve_blocks_in_a_row_are_obeyed_at_either_exit_code(tmp_path, kind, exit_code):
    host = at(tmp_path, kind)
    host.install(exit_code=exit_code)
    host.tailhook("loop", "start", "--max", "13", "Make the tests pass.")
    with host.model(*(f"Answer {letter}." for letter in "abcdefghijklmnopqrst")) as model:
        host.run(model)
    assert len(model.requests) == 13
    assert all(f"[ITERATION {number}/13]" in one.said for number, one in enumerate(model.requests[1:], 2))


def test_copilot_ignores_the_ninth_block_and_the_next_prompt_goes_on(copilot):
    copilot.install()
    copilot.tailhook("loop", "start", "--max", "13", "Make the tests pass.")
    answers = (
        answer for number in range(9) for answer in (copilot.bash("echo tool use does not matter"), f"{number}.")
    )
    with copilot.model(*answers, "Going on.", DONE) as model:
        copilot.run(model)
        assert len(model.requests) == 18
        copilot.session = (f"--resume={copilot.sent()[0]['sessionId']}",)
        copilot.run(model, "Go on.")
    assert "[ITERATION 11/13]" in model.requests[19].said
    assert "No loop" in copilot.tailhook("loop", "status")


@pytest.mark.parametrize("exit_code", ["2", "0"])
def test_qwen_ignores_the_eighth_block_and_the_next_prompt_goes_on(qwen, exit_code):
    qwen.install(exit_code=exit_code)
    qwen.tailhook("loop", "start", "--max", "13", "Make the tests pass.")
    answers = (answer for number in range(8) for answer in (qwen.bash("echo tool use does not matter"), f"{number}."))
    with qwen.model(*answers, "Going on.", DONE) as model:
        qwen.run(model)
        assert len(model.requests) == 16
        qwen.session = ("--resume", qwen.sent()[0]["session_id"])
        qwen.run(model, "Go on.")
    assert "[ITERATION 10/13]" in model.requests[17].said
    assert "No loop" in qwen.tailhook("loop", "status")


def test_qwen_obeys_as_many_blocks_as_the_installer_sets(qwen):
    qwen.install("idle", "--block-cap", "100")
    qwen.tailhook("loop", "start", "--max", "13", "Make the tests pass.")
    with qwen.model(*(f"Answer {letter}." for letter in "abcdefghijklmnopqrst")) as model:
        qwen.run(model)
    assert len(model.requests) == 13


def test_copilot_can_be_asked_for_claude_codes_names(copilot, tmp_path):
    copilot.install()
    copilot.edit_hooks("user", lambda hooks: hooks.update(Stop=hooks.pop("agentStop")))
    copilot.tailhook("loop", "start", "Make the tests pass.")
    with copilot.model(f"Not yet `{DONE}`.", DONE) as model:
        copilot.run(model)
    assert len(model.requests) == 2
    ours = host_payloads.copilot_in_pascal_case(Project(tmp_path / "another", tmp_path / "other", []), "Hm.")
    assert set(copilot.sent()[0]) == set(ours)


@pytest.mark.parametrize("form", ["exec", "shell"])
def test_copilot_counts_a_stop_once_with_the_hooks_of_claude_code_beside_its_own(copilot, form):
    copilot.install()
    copilot.tailhook("install", "--yes", "--scope", "project", "--form", form)
    copilot.tailhook("loop", "start", "--max", "3", "Make the tests pass.")
    with copilot.model("Answer one.", "Answer two.", "Answer three.", "Answer four.") as model:
        copilot.run(model)
    assert len(model.requests) == 3


def test_codex_gets_the_loop_again_after_a_compaction(codex):
    codex.settings = "model_auto_compact_token_limit = 1000\n"
    codex.install()
    codex.tailhook("loop", "start", "--max", "20", "Make the tests pass.")
    with codex.model("Hm.", codex.bash("echo much"), "And on.", DONE) as model:
        model.tokens = 1, 5000
        codex.run(model)
    assert [one["source"] for one in codex.sent() if one["hook_event_name"] == "SessionStart"] == ["startup", "compact"]
    assert "A loop is running in this session." in model.requests[2].said
    assert "Iteration 2 of at most 20" in model.requests[2].said
    assert "No loop" in codex.tailhook("loop", "status")


def test_codex_takes_no_answer_for_a_failure(codex):
    codex.install()
    codex.tailhook("loop", "start", "Make the tests pass.")
    with codex.model("Hm.", DONE) as model:
        done = codex.run(model)
    assert "hook: Stop Blocked" in done.stderr
    assert "hook: Stop Completed" in done.stderr
    assert "Failed" not in done.stderr


def test_gemini_shows_the_announcement(gemini):
    gemini.install()
    gemini.tailhook("loop", "start", "Make the tests pass.")
    with gemini.model(DONE) as model:
        done = gemini.run(model)
    assert "tailhook: the loop ended: COMPLETE" in done.stderr


def test_what_was_decided_is_said_once_a_session(host):
    host.install("memory")
    decided = "We decided to use SQLite instead of a server because it needs no set-up.\nWe chose WAL over a lock file."
    before_the_tool = [{"type": "text", "text": decided}, *host.bash("echo from the tool")]
    with host.model(before_the_tool, "Nothing else.", "Saved.") as model:
        host.run(model)
    assert ["items should be saved" in one.said for one in model.requests] == [False, False, True]
    assert "[DECISION] We decided to use SQLite" in model.requests[2].said


@pytest.mark.parametrize(
    ("settings", "runs"),
    [
        ("hooks = false", False),
        ("codex_hooks = false", False),
        ("hooks = true\ncodex_hooks = false", True),
    ],
)
def test_the_doctor_knows_the_feature_that_switches_the_hooks_of_codex_off(codex, settings, runs):
    codex.settings = f"[features]\n{settings}\n"
    codex.install()
    with codex.model("Hm.") as model:
        codex.run(model)
    assert codex.payloads.exists() == runs
    done = tailhook("doctor", env=codex.env, cwd=codex.project)
    assert ("the feature hooks is false, so the host runs no hook" in done.stdout) == (not runs)
