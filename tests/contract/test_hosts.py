"""Other agent hosts: their payloads as they document them, and answers that they obey."""

import json
import threading
import time

import pytest
from support.host import MEMORABLE, frame
from support.host_payloads import (
    BY_HOST,
    antigravity,
    antigravity_record,
    codex,
    copilot,
    copilot_in_pascal_case,
    devin,
    droid_record,
    gemini,
    gemini_sent_on,
    name_of_field,
    qwen,
    qwen_record,
    stamp,
    vs_code,
    write,
)
from support.host_records import RECORDS
from support.oracles import jwz

from tailhook.hook.translated import LATE_TRANSCRIPT_TIMEOUT_S
from tailhook.hosts import CLAUDE_LIKE, NAMES, RECORDED, find_translated_host
from tailhook.install.hooks_file import hooks_file_of

DONE = "<loop-done>COMPLETE</loop-done>"
REASON = "[ITERATION 2/10]"
SPOKEN = {"codex", "gemini", *CLAUDE_LIKE} - {"devin"}  # an answer may be for the person, and exit code 2 is a block
PAYLOADS = [*BY_HOST.items(), ("gemini", gemini_sent_on), ("copilot", copilot_in_pascal_case), ("copilot", vs_code)]
EACH = pytest.mark.parametrize(("name", "payload"), PAYLOADS, ids=[payload.__name__ for _, payload in PAYLOADS])


def test_every_host_is_tested():
    assert BY_HOST.keys() == {name for name in NAMES[1:] if not hooks_file_of(name).machines}


@pytest.fixture
def stop(project):
    """Run the hook for another host; two of them set Claude Code's variable too."""

    def run(name, payload, *flags):
        if name in ("gemini", "copilot"):
            project.env["CLAUDE_PROJECT_DIR"] = str(project.folder)
        return project.hook(json.dumps(payload).encode(), "--host", name, *flags)

    return run


def blocked(name, ended):
    """Return the reason of a block, in the host's words."""
    if name in ("codex", *CLAUDE_LIKE):
        assert set(ended.answer) <= {"decision", "reason", "systemMessage"}  # any other key fails the hook
        assert ended.answer["decision"] == "block"
        return ended.answer["reason"]
    if name == "gemini":
        assert ended.answer["decision"] == "deny"
        return ended.answer["reason"]
    if name == "cursor":
        assert set(ended.answer) == {"followup_message"}
        return ended.answer["followup_message"]
    answer = dict(ended.answer)
    special = answer.pop("hookSpecificOutput", None)
    assert special == ({"hookEventName": "Stop", **answer} if name == "copilot" else None)
    assert set(answer) == {"decision", "reason"}
    assert answer["decision"] == ("continue" if name == "antigravity" else "block")
    return answer["reason"]


@EACH
def test_a_loop_goes_on(project, stop, name, payload):
    project.loop(frame(session_id="mine"))
    ended = stop(name, payload(project, f"Not yet: `{DONE}`"))
    assert blocked(name, ended).startswith(REASON)
    assert ended.state["stack"][0]["iter"] == 2


@EACH
def test_a_loop_ends_by_its_signal(project, stop, name, payload):
    project.loop(frame(session_id="mine"))
    ended = stop(name, payload(project, f"All done.\n\n{DONE}"))
    assert ended.allowed
    assert (ended.state["event"], ended.state["reason"]) == ("DONE", "COMPLETE")


@EACH
def test_the_end_is_announced_if_the_host_has_a_word_for_it(project, stop, name, payload):
    project.loop()
    ended = stop(name, payload(project, DONE), "--announce")
    assert ended.exit_code == 0
    if name in SPOKEN:
        assert set(ended.answer) == {"systemMessage"}
    else:
        assert ended.stdout == ""


@EACH
def test_the_exit_code_is_one_that_the_host_obeys(project, stop, name, payload):
    project.loop(frame(max=100))
    for flags in ((), ("--exit", "2"), ("--exit", "0")):
        ended = stop(name, payload(project, "Hm."), *flags)
        obeys_2 = name in SPOKEN and flags != ("--exit", "0")
        assert ended.exit_code == (2 if obeys_2 else 0)
        assert bool(ended.stderr.strip()) is obeys_2  # at 2 it is the prompt, and must not be empty


@EACH
def test_another_sessions_loop_is_left_alone(project, stop, name, payload):
    state = project.loop(frame(session_id="theirs"))
    ended = stop(name, payload(project, DONE))
    assert ended.allowed
    assert ended.state == state


@EACH
def test_no_loop_costs_no_word(project, stop, name, payload):
    assert stop(name, payload(project, DONE), "--announce").allowed


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("codex", {"hook_event_name": "SubagentStop", "agent_id": "a", "agent_type": "t"}),
        ("gemini", {"hook_event_name": "AfterTool"}),
        ("gemini", {"hook_event_name": "SessionEnd"}),
        ("cursor", {"hook_event_name": "subagentStop"}),
        ("cursor", {"hook_event_name": "afterAgentResponse"}),
        ("cursor", {"status": "aborted"}),
        ("cursor", {"status": "error"}),
        ("antigravity", {"terminationReason": "TERMINATION_REASON_USER_CANCELED"}),
        ("antigravity", {"terminationReason": "EXECUTOR_TERMINATION_REASON_MAX_FORCED_INVOCATIONS"}),
        ("antigravity", {"terminationReason": "error"}),
        ("antigravity", {"error": "quota"}),
        ("copilot", {"agentName": "explore"}),
    ],
)
def test_what_is_not_the_agents_own_stop_moves_nothing(project, stop, name, fields):
    state = project.loop()
    payload = BY_HOST[name](project, DONE)
    ended = stop(name, {**payload, **fields})
    assert ended.allowed
    assert ended.state == state


def test_the_event_can_be_named_in_the_hosts_words(project, stop):
    project.loop()
    payload = copilot(project, "Hm.")
    assert stop("copilot", payload, "--event", "preToolUse").allowed
    assert stop("copilot", payload, "--event", "agentStop").answer["decision"] == "block"


def test_codex_reports_a_compaction(project, stop):
    project.loop()
    payload = {**codex(project, None), "hook_event_name": "SessionStart", "source": "compact"}
    reported = stop("codex", payload).answer["hookSpecificOutput"]
    assert set(reported) == {"hookEventName", "additionalContext"}


def test_devin_reports_a_compaction_by_its_own_name(project, stop):
    project.loop()
    reported = stop("devin", {**devin(project, ""), "hook_event_name": "PostCompaction", "summary": None}).answer
    assert reported["hookSpecificOutput"]["hookEventName"] == "PostCompaction"
    assert "A loop is running" in reported["hookSpecificOutput"]["additionalContext"]


def test_devin_works_in_the_folder_that_its_variable_names(project, stop, tmp_path):
    project.loop(frame(session_id="mine"))
    project.env["DEVIN_PROJECT_DIR"] = str(project.folder)
    payload = devin(project, "Hm.")
    assert blocked("devin", stop("devin", payload)).startswith(REASON)
    project.env["DEVIN_PROJECT_DIR"] = str(tmp_path)
    assert stop("devin", payload).allowed


def test_a_stop_of_devin_without_the_agents_words_moves_nothing(project, stop):
    project.loop()
    payload = devin(project, "")
    assert stop("devin", payload).answer["decision"] == "block"
    state = project.loop()
    del payload["last_assistant_message"]
    ended = stop("devin", payload)
    assert (ended.allowed, ended.state) == (True, state)


def test_codex_without_a_last_message_has_it_in_its_transcript(project, stop):
    project.loop()
    content = [{"type": "output_text", "text": DONE}]
    for role, blocks in (("assistant", content), ("user", [{"type": "input_text", "text": "assistant?"}])):
        message = {"type": "message", "role": role, "content": blocks}
        write(project, {"timestamp": stamp(), "type": "response_item", "payload": message})
    payload = {**codex(project, None), "transcript_path": str(project.home / "host.jsonl")}
    assert stop("codex", payload).state["event"] == "DONE"


def test_gemini_is_not_taken_at_an_earlier_answers_word(project, stop):
    project.loop()
    write(project, {"type": "gemini", "content": "Not yet.", "timestamp": stamp()})
    assert stop("gemini", gemini(project, f"{DONE}\nNot yet.")).answer["decision"] == "deny"


def test_gemini_is_taken_at_the_payloads_word_if_its_transcript_has_another(project, stop):
    project.loop()
    write(project, {"type": "gemini", "content": "Not yet.", "timestamp": stamp()})
    assert stop("gemini", gemini(project, f"Not yet.\n{DONE}")).state["event"] == "DONE"


def with_a_late_message(project, words, stop):
    """Run `stop`; Copilot writes its last message a moment later. Return the result.

    Again if the message came too late for any hook: the machine was busy.
    """
    written = []

    def write_message():
        write(project, {"type": "assistant.message", "data": {"content": words}, "timestamp": stamp()})
        write(project, {"type": "hook.start", "data": {"hookType": "agentStop"}, "timestamp": stamp(age=-10)})
        written.append(time.monotonic())

    while True:
        began = time.monotonic()
        late = threading.Timer(LATE_TRANSCRIPT_TIMEOUT_S / 3, write_message)
        late.start()
        done = stop()
        late.join()
        if written[-1] - began < LATE_TRANSCRIPT_TIMEOUT_S:
            return done


@pytest.mark.one_form
@pytest.mark.parametrize(
    ("payload", "timestamp"),
    [(copilot, lambda: int(time.time() * 1000) + 5000), (copilot_in_pascal_case, lambda: stamp(age=-5))],
)
def test_copilots_transcript_is_waited_for(project, stop, payload, timestamp):

    def stop_now():
        project.loop()
        return stop("copilot", {**payload(project, "Not yet."), "timestamp": timestamp()})

    assert with_a_late_message(project, DONE, stop_now).state["event"] == "DONE"


def test_copilots_message_is_found_before_megabytes_of_a_tools_output(project, stop):
    project.loop()
    payload = copilot(project, DONE)
    for _ in range(3):
        write(project, {"type": "tool.execution_complete", "data": {"content": "x" * 700_000}, "timestamp": stamp(-1)})
    assert stop("copilot", payload).state["event"] == "DONE"


@pytest.mark.one_form
def test_memory_waits_for_copilots_transcript(project, stop):

    def stop_now():
        payload = copilot(project, "")
        (project.home / "host.jsonl").unlink()
        return stop("copilot", payload, "memory")

    assert "[DECISION]" in with_a_late_message(project, MEMORABLE, stop_now).stdout


def test_what_copilots_transcript_never_has_is_not_waited_for_long(project, stop):
    project.loop()
    payload = {**copilot(project, DONE), "timestamp": int(time.time() * 1000) + 3_600_000}
    assert stop("copilot", payload).state["event"] == "DONE"


def test_a_ralph_loop_goes_on_if_copilot_has_no_transcript_yet(project, stop):
    path = project.ralph()
    payload = copilot(project, "Hm.")
    (project.home / "host.jsonl").unlink()
    assert stop("copilot", payload).answer["reason"] == "Make the tests pass."
    assert "iteration: 2" in path.read_text()


def test_words_of_a_transcript_that_are_older_than_the_loop_do_not_count(project, stop):
    project.loop()
    record = {"type": "assistant.message", "data": {"content": DONE}, "timestamp": stamp(age=600)}
    payload = copilot(project, "")
    write(project, record)
    assert stop("copilot", payload).answer["decision"] == "block"


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [""],
        ["not json, assistant"],
        ['"assistant"', "[]", "{}"],
        ['{"role": "assistant"}', '{"role": "assistant", "message": 5}'],
        ['{"role": "assistant", "message": {"content": [5, {"text": 5}, {"text": " "}]}}'],
        ['{"type": "assistant.message", "data": "x"}', '{"type": "response_item", "payload": ["assistant"]}'],
        ['{"type": "assistant.message", "data": {"content": {}}, "timestamp": {}}'],
        ['{"type": "gemini", "content": ""}', '{"type": "gemini", "content": {}}', '{"type": "gemini"}'],
        ['{"$set": {"messages": [{"type": "gemini", "content": "assistant"}]}}'],
    ],
)
@pytest.mark.parametrize("name", ["cursor", "copilot", "gemini"])
def test_a_transcript_without_words_ends_no_loop(project, stop, name, lines):
    project.loop()
    payload = {**BY_HOST[name](project, ""), "timestamp": 0}  # nothing to wait for
    (project.home / "host.jsonl").write_text("".join(f"{line}\n" for line in lines))
    assert blocked(name, stop(name, payload)).startswith(REASON)


@pytest.mark.parametrize(
    "key",
    [
        "session_id",
        "conversation_id",
        "workspace_roots",
        "loop_count",
        "status",
        "prompt_response",
        "timestamp",
        "terminationReason",
    ],
)
@pytest.mark.parametrize("value", [None, 5, 10**400, True, [], [5], {}, "", "\ud800", "a\x00b"])
def test_no_value_of_a_field_breaks_the_hook(project, stop, key, value):
    project.loop(frame(max=100))
    for name, payload in BY_HOST.items():
        ended = stop(name, {**payload(project, "Hm."), key: value})
        assert ended.exit_code in (0, 2)
        assert "Error" not in ended.stderr


def test_claude_code_is_the_host_unless_another_is_named(project):
    project.loop(frame(max=100))
    for flags in ((), ("--host", "claude-code"), ("--host=claude-code",)):
        assert project.stop("Hm.", *flags).answer["decision"] == "block"
    assert jwz.newest(project.folder)["stack"][0]["iter"] == 4


@pytest.mark.parametrize("variable", ["COPILOT_PROJECT_DIR", "CURSOR_PROJECT_DIR", "DEVIN_PROJECT_DIR"])
def test_a_hook_of_claude_codes_settings_leaves_the_events_of_another_host_to_that_hosts_own_hook(project, variable):
    """These hosts read Claude Code's settings, too: a stop would count twice."""
    project.env |= {variable: str(project.folder), "TAILHOOK_NO_AUTOSTART": "1"}
    state = project.loop()
    for name in ("Stop", "UserPromptSubmit", "PreToolUse"):
        payload = {**project.payload(last_assistant_message=DONE), "hook_event_name": name}
        for flags in ((), ("--host", "claude-code"), ("plates",)):
            ended = project.hook(json.dumps(payload).encode(), *flags, read=False)
            assert (ended.allowed, ended.stderr) == (True, "")
    assert jwz.newest(project.folder) == state
    assert not (project.home / ".local" / "state" / "tailhook" / "events").exists()
    host = variable.partition("_")[0].lower()
    payload = BY_HOST[host](project, DONE)
    assert project.hook(json.dumps(payload).encode(), "--host", host).state["event"] == "DONE"


@pytest.mark.parametrize(
    ("agent", "blocks"), [("claude-code_2-1-329_harness", True), ("claude-code_2-1-329_agent", False)]
)
def test_claude_code_that_another_host_has_started_keeps_its_hooks(project, agent, blocks):
    """In its hooks AI_AGENT ends with "harness", in its agent's shell with "agent"."""
    project.env |= {"DEVIN_PROJECT_DIR": str(project.folder), "AI_AGENT": agent}
    project.loop()
    assert bool(project.stop("Hm.").stdout) is blocks


def write_decisions(project, name):
    """Write a transcript: the agent took two decisions, two messages ago, and then used a tool."""
    decided, later = [{"type": "text", "text": MEMORABLE}], [{"type": "text", "text": "Nothing else."}]
    if name == "codex":
        item = {"type": "message", "role": "assistant"}
        records = [{"type": "response_item", "payload": {**item, "content": text}} for text in (decided, later)]
        records.insert(1, {"type": "response_item", "payload": {"type": "function_call", "name": "exec_command"}})
    elif name == "gemini":
        records = [{"id": f"g{n}", "type": "gemini", "content": text} for n, text in enumerate((decided, later))]
    elif name == "copilot":
        texts = MEMORABLE, "Nothing else."
        records = [{"type": "assistant.message", "data": {"content": text}, "timestamp": stamp()} for text in texts]
    elif name == "qwen":
        records = [qwen_record("assistant", *text) for text in (decided, later)]
    elif name in ("droid", "devin"):  # Devin names no transcript
        records = [droid_record("assistant", *text) for text in (decided, later)]
    elif name == "antigravity":
        records = [antigravity_record("PLANNER_RESPONSE", text) for text in (MEMORABLE, "Nothing else.")]
    else:
        records = [{"role": "assistant", "message": {"content": text}} for text in (decided, later)]
    for record in records:
        write(project, record)


@pytest.mark.parametrize("name", BY_HOST)
def test_memory_reads_the_hosts_transcript(project, stop, name):
    write_decisions(project, name)
    path = str(project.home / "host.jsonl")
    payload = {**BY_HOST[name](project, "Nothing else."), name_of_field(name, "transcript_path"): path}
    assert "[DECISION]" in stop(name, payload, "memory").stdout
    assert stop(name, payload, "memory").stdout == ""  # once


@pytest.mark.parametrize("name", [*RECORDED, "droid", "antigravity"])
def test_memory_explain_reads_the_hosts_transcript(project, name):
    write(project, RECORDS[name][0])
    write_decisions(project, name)
    done = project.tailhook("memory", "explain", str(project.home / "host.jsonl"))
    assert "threshold 0.40: reported" in done.stdout, done.stderr


def test_memory_takes_the_last_of_several_answers_from_the_transcript(project, stop):
    """Gemini gives several answers after a block. Memory reports then if a loop blocked, and ends at this stop."""
    project.loop(frame(session_id="mine"))
    payload = gemini_sent_on(project, f"{MEMORABLE}\n\n{DONE}")
    ended = stop("gemini", payload, "idle,memory")
    assert ended.stdout.count("We chose A") == 1
    assert ended.state["stack"] == []


@pytest.mark.parametrize("name", BY_HOST)
@pytest.mark.parametrize("transcript", ["readable", "empty", "missing", None])
def test_memory_reports_the_words_of_a_payload_that_names_a_readable_transcript(project, stop, name, transcript):
    path = project.home / "another.jsonl"
    if transcript in ("readable", "empty"):
        path.write_text('{"type": "unknown"}\n' if transcript == "readable" else "")
    payload = {**BY_HOST[name](project, MEMORABLE), name_of_field(name, "transcript_path"): transcript and str(path)}
    reports = name in ("codex", "gemini", "qwen", "devin") and transcript == "readable"
    assert ("[DECISION]" in stop(name, payload, "memory").stdout) is reports


def test_the_words_in_a_payload_of_qwen_count_if_its_transcript_lacks_them_yet(project, stop):
    project.loop(frame(session_id="mine"))
    before = qwen(project, f"```\nan open fence\n{DONE}")
    assert stop("qwen", {**before, "last_assistant_message": DONE}).state["event"] == "DONE"


def test_an_agent_of_antigravity_that_is_not_idle_yet_pauses_its_loop(project, stop):
    project.loop(frame(session_id="mine"))
    paused = stop("antigravity", {**antigravity(project, "Hm."), "fullyIdle": False})
    assert paused.allowed
    assert paused.state["stack"][0]["iter"] == 1


def test_codex_gets_a_line_about_angle_brackets_with_a_tag_and_no_other_change():
    host = find_translated_host("codex")
    plain = {"decision": "block", "reason": "[ITERATION 2/10] 1 < 2"}
    assert host.answer(plain) == plain
    given = host.answer({"decision": "block", "reason": "<loop-done>COMPLETE</loop-done>"})
    first, _, last = given["reason"].split("\n")
    assert first == "<loop-done>COMPLETE</loop-done>"
    assert "real angle brackets" in last
    assert "<" not in last
