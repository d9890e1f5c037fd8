"""The idle machine as a host meets it: whole processes, by the argv of `tailhook hook-command idle`."""

import json
import os
import time

import pytest
from support.host import assistant, frame, looping
from support.oracles import jwz

DONE = "<loop-done>COMPLETE</loop-done>"
GO_ON = "Continue working on the task. Check your progress and either complete the task or keep iterating."


# ---- answers -----------------------------------------------------------------


def test_without_a_loop_the_agent_may_stop(run_idle):
    stop = run_idle(said="All done.")
    assert stop.allowed
    assert stop.stderr == ""


def test_a_live_loop_sends_the_agent_on_in_exactly_these_words(run_idle):
    stop = run_idle(said="Not yet.", state=looping(frame(iter=3)))
    assert stop.exit_code == 2
    assert stop.stdout == f'{{"decision": "block", "reason": "[ITERATION 4/10] {GO_ON}"}}\n'
    assert stop.stderr == f"[ITERATION 4/10] {GO_ON}\n"
    assert stop.state["stack"][-1]["iter"] == 4


@pytest.mark.parametrize("how", ["flag", "environment"])
def test_a_block_can_exit_0(project, run_idle, how):
    flags = ("--exit", "0") if how == "flag" else ()
    if how == "environment":
        project.env["TAILHOOK_EXIT"] = "0"
    stop = run_idle("Not yet.", *flags, state=looping())
    assert (stop.exit_code, stop.answer["decision"], stop.stderr) == (0, "block", "")


def test_completion_ends_the_loop_without_a_word(run_idle):
    stop = run_idle(said=f"All tests pass.\n\n{DONE}", state=looping(mine=1.50))
    assert stop.allowed
    assert (stop.state["event"], stop.state["reason"], stop.state["stack"]) == ("DONE", "COMPLETE", [])
    assert stop.state["mine"] == 1.5


def test_with_announce_the_end_of_a_loop_is_reported_to_the_user(run_idle):
    stop = run_idle(DONE, "--announce", state=looping())
    assert stop.exit_code == 0
    assert set(stop.answer) == {"systemMessage"}
    assert "COMPLETE" in stop.answer["systemMessage"]


def test_with_announce_an_ordinary_stop_stays_silent(run_idle):
    assert run_idle("Done.", "--announce").allowed


def test_at_the_limit_the_loop_is_over(run_idle):
    stop = run_idle(said="Still at it.", state=looping(frame(iter=10)))
    assert stop.allowed
    assert (stop.state["event"], stop.state["reason"]) == ("DONE", "MAX_ITERATIONS")


def test_a_stale_loop_is_ended_with_a_warning(run_idle):
    stop = run_idle(said="Hello again.", state=looping(age=73_000))
    assert (stop.exit_code, stop.stdout, stop.state["reason"]) == (0, "", "STALENESS")
    assert stop.stderr.startswith("Warning: Loop state is stale (73")
    assert stop.stderr.endswith(" seconds old), allowing exit\n")


@pytest.mark.parametrize("state", [looping(frame(iter="x")), looping(age=7300)], ids=["broken", "stale"])
def test_the_announced_end_of_a_broken_or_stale_loop_names_its_place_and_the_next_step(project, run_idle, state):
    said = run_idle("Done.", "--announce", state=state).answer["systemMessage"]
    assert said.startswith("tailhook: the loop ended: ")
    assert said.endswith(f" ({project.folder}/.jwz). To begin a new loop:  tailhook loop start")


def test_a_corrupted_count_aborts(run_idle):
    stop = run_idle(said="Hm.", state=looping(frame(iter="$(touch /tmp/x)")))
    assert (stop.exit_code, stop.stdout) == (0, "")
    assert (stop.state["event"], stop.state["reason"]) == ("ABORT", "CORRUPTED")


@pytest.mark.parametrize("body", ["not json", "[]", '"STATE"', "null", '{"schema": 1, "stack": [', ""])
def test_a_body_that_is_not_an_object_aborts_once(project, body):
    jwz.post(project.folder, body)
    first, second = project.stop("Hm."), project.stop("Hm.")
    assert (first.exit_code, first.stdout, first.state["event"]) == (0, "", "ABORT")
    assert "Warning" in first.stderr
    assert second.allowed
    assert second.stderr == ""
    assert len(jwz.messages(project.folder)) == 2


def test_a_worktree_is_named_in_the_reason(project, run_idle):
    tree = project.folder / "tree"
    tree.mkdir()
    stop = run_idle("Hm.", state=looping(frame(worktree_path=str(tree), branch="b1", issue_id="T-1")))
    assert stop.answer["reason"].startswith(f"[ITERATION 2/10] {GO_ON}\n\n")
    assert all(word in stop.answer["reason"] for word in (str(tree), "b1", "T-1"))


# ---- signals and code --------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        DONE,
        f"Done.\n{DONE}\nSee you.",
        f"- {DONE}",
        f"> {DONE}",
        f"1. > {DONE}  ",
        f"Done.\r\n{DONE}\r\n",
        f"<div>\n{DONE}\n</div>",
        f"{DONE}\n" + "and then much text. " * 20_000,
    ],
)
def test_a_signal_alone_on_its_line_ends_the_loop(run_idle, said):
    assert run_idle(said=said, state=looping()).state["event"] == "DONE"


@pytest.mark.parametrize(
    "said",
    [
        f"```\n{DONE}\n```",
        f"Example:\n```\n{DONE}",
        f"~~~xml\n{DONE}\n~~~",
        f"> ```\n> {DONE}\n> ```",
        f"- a\n\n      {DONE}",
        f"Text\n\n    {DONE}\n",
        f"    {DONE}\n\nThat is what I would write.",
        f"\n\n    {DONE}\n",
        f"\t{DONE}\n\nThat is what I would write.",
        f" \t{DONE}",
        f"`{DONE}`",
        f"`` \n{DONE}\n ``",
        f"<!--\n{DONE}\n-->",
        f"<pre>\n{DONE}\n</pre>",
        f"I will say {DONE} later.",
        f"{DONE}.",
        f"# {DONE}",
        "<loop-done>complete</loop-done>",
        "<loop-done> COMPLETE </loop-done>",
        "COMPLETE",
    ],
)
def test_a_signal_in_code_or_among_words_does_not(run_idle, said):
    stop = run_idle(said=said, state=looping())
    assert stop.exit_code == 2
    assert stop.state["stack"][0]["iter"] == 2


def test_an_inner_loop_that_completes_leaves_the_outer_one(project, run_idle):
    outer = frame(id="outer", iter=4, mode="grind", max=100)
    stop = run_idle(said=DONE, state=looping(outer, frame(id="inner")))
    assert stop.allowed
    assert (stop.state["event"], stop.state["stack"]) == ("STATE", [outer])
    resumed = project.stop("Next.")
    assert resumed.answer["reason"].startswith("[ITERATION 5/100]")


# ---- where the words come from -----------------------------------------------


def test_without_a_last_message_the_transcript_is_read(project, run_idle):
    project.write(assistant("All done.", DONE), {"type": "system", "subtype": "x"})
    assert run_idle(state=looping()).state["event"] == "DONE"


@pytest.mark.parametrize("blank", ["\u00a0", "\u3000", "\u2028", "\u0085", "\x1c", "\u00a0\n \u2003\n", " ", "\n", ""])
@pytest.mark.parametrize("end", ["bye", "byé", "再见", "👋"])
def test_a_message_that_ends_in_blank_space_of_any_kind_is_known_in_the_transcript(project, run_idle, end, blank):
    """Its first block has the signal; the payload has its last block, as it is or stripped."""
    for said in (end + blank, end):
        project.transcript.unlink(missing_ok=True)
        project.write(
            assistant(DONE, "x"), assistant("Hm."), assistant(DONE, id="new"), assistant(end + blank, id="new")
        )
        assert run_idle(said=said, state=looping()).state["event"] == "DONE"


def test_a_message_of_the_transcript_that_ends_otherwise_is_not_the_last_one(project, run_idle):
    project.write(assistant(DONE, id="old"), assistant("good bye\u00a0", id="old"))
    assert run_idle(said="bye\u00a0\u00a0.", state=looping()).exit_code == 2


def test_an_indented_block_at_the_beginning_of_the_transcripts_message_is_code(project, run_idle):
    project.write(assistant(f"    {DONE}\n\nThat is what I would write."))
    assert run_idle(state=looping()).exit_code == 2


def test_a_blank_last_message_counts_as_none(project, run_idle):
    project.write(assistant(DONE))
    assert run_idle(" \n", state=looping()).state["event"] == "DONE"


def test_the_payloads_message_is_believed_before_the_transcript_that_lags(project, run_idle):
    project.write(assistant(DONE, at=time.time() - 3, id="before"))
    assert run_idle("More to do.", state=looping()).exit_code == 2


def test_of_a_message_that_is_written_already_every_block_counts(project, run_idle):
    project.write(assistant(DONE, id="m"), assistant("That was all.", id="m"))
    assert run_idle("That was all.", state=looping()).state["event"] == "DONE"


def test_every_block_of_the_message_that_the_payload_names_counts_however_old(project, run_idle):
    project.write(assistant(DONE, id="m", at=time.time() - 60), assistant("That was all.", id="m"))
    assert run_idle("That was all.", state=looping(age=10)).state["event"] == "DONE"


def test_an_older_message_that_ends_like_the_payloads_is_another_one(project, run_idle):
    project.write(assistant(f"{DONE}\n\nAll is well.", at=time.time() - 30))
    assert run_idle("All is well.", state=looping(age=10)).exit_code == 2


def test_of_a_transcript_alone_only_the_fresh_part_of_a_message_counts(project, run_idle):
    project.write(assistant(DONE, id="m", at=time.time() - 60), assistant("More to do.", id="m"))
    assert run_idle(state=looping(age=10)).exit_code == 2


def test_a_signal_from_before_the_loop_does_not_end_it(project, run_idle):
    project.write(assistant(DONE, at=time.time() - 30))
    assert run_idle(state=looping(age=10)).exit_code == 2


def test_a_signal_of_another_voice_does_not_end_the_loop(project, run_idle):
    nested = {"type": "progress", "data": assistant(DONE), "timestamp": "2099-01-01T00:00:00Z"}
    others = [
        assistant(DONE, isSidechain=True),
        assistant(DONE, isApiErrorMessage=True),
        assistant(DONE, isMeta=True),
        {"type": "user", "message": {"role": "user", "content": DONE}},
        nested,
    ]
    project.write(assistant("Working on it."), *others)
    assert run_idle(state=looping()).exit_code == 2


@pytest.mark.parametrize("path", [None, "", "/nowhere/x.jsonl", "/dev/null", "/", 5, "a\x00b", ["x"]])
def test_a_transcript_that_cannot_be_read_is_ignored(run_idle, path):
    assert run_idle(state=looping(), transcript_path=path).exit_code == 2


def test_a_tilde_in_the_transcripts_path_is_the_home_folder(project, run_idle):
    project.write(assistant(DONE))
    assert run_idle(state=looping(), transcript_path="~/session.jsonl").state["event"] == "DONE"


def test_the_flat_shape_of_older_hosts_is_read(project, run_idle):
    project.write({"type": "human", "content": "go"}, {"type": "assistant", "content": f"Done.\n{DONE}"})
    assert run_idle(state=looping()).state["event"] == "DONE"


def test_a_transcript_of_10_gb_makes_no_difference(project, run_idle):
    project.transcript.touch()
    os.truncate(project.transcript, 10 << 30)
    with project.transcript.open("ab") as out:
        out.write(b"\n" + json.dumps(assistant(DONE)).encode() + b"\n")
    assert run_idle(state=looping()).state["event"] == "DONE"


# ---- sessions ----------------------------------------------------------------


def test_another_sessions_loop_is_left_alone(run_idle):
    state = looping(frame(session_id="other"))
    stop = run_idle(said=DONE, state=state)
    assert stop.allowed
    assert stop.state == state


def test_the_first_session_to_stop_claims_the_loop(project, run_idle):
    first = run_idle("Hm.", state=looping(frame(session_id="claim")))
    assert first.state["stack"][-1]["session_id"] == "mine"
    assert project.stop("Hm.", session_id="other").allowed
    assert project.stop("Hm.").state["stack"][-1]["iter"] == 3


def test_a_sub_agents_stop_is_ignored(run_idle):
    state = looping()
    stop = run_idle(said=DONE, state=state, agent_id="a1")
    assert stop.allowed
    assert stop.state == state


def test_an_unbound_loop_can_be_refused_by_the_configuration(project, run_idle):
    config = project.home / ".config" / "tailhook"
    config.mkdir(parents=True)
    (config / "config.json").write_text('{"hook": {"unbound": "refuse"}}')
    assert run_idle("Hm.", state=looping()).allowed


# ---- paused ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["subagent", "workflow", "teammate", "cloud_session", "remote-agent", "LocalAgent"])
def test_a_task_that_will_wake_the_agent_pauses_the_loop(run_idle, kind):
    state = looping()
    stop = run_idle(said=DONE, state=state, background_tasks=[{"type": kind, "status": "running"}])
    assert stop.allowed
    assert stop.state == state


@pytest.mark.parametrize(
    "tasks",
    [[], None, "x", [1], [{}], [{"type": "shell", "status": "running"}], [{"type": "subagent", "status": "completed"}]],
)
def test_a_task_that_will_not_wake_the_agent_does_not(run_idle, tasks):
    assert run_idle("Hm.", state=looping(), background_tasks=tasks).exit_code == 2


# ---- escape hatches ----------------------------------------------------------


@pytest.mark.parametrize("name", ["TAILHOOK_DISABLE", "IDLE_LOOP_DISABLE"])
def test_an_escape_hatch_lets_the_agent_go_before_stdin_is_read(project, run_idle, name):
    state = project.loop()
    project.env[name] = "1"
    stop = run_idle("Hm.")
    assert stop.allowed
    assert stop.state == state


def test_a_file_at_the_projects_root_disables_the_machine(project, run_idle):
    (project.folder / ".idle-disabled").touch()
    assert run_idle("Hm.", state=looping()).allowed


# ---- compaction --------------------------------------------------------------


def test_after_a_compaction_the_loop_is_repeated(project):
    done = project.tailhook("loop", "start", "--max", "7", "Make it so.", CLAUDE_CODE_SESSION_ID="mine")
    assert done.returncode == 0, done.stderr
    before = jwz.newest(project.folder)
    stop = project.stop(hook_event_name="SessionStart", source="compact")
    output = stop.answer["hookSpecificOutput"]
    assert (stop.exit_code, output["hookEventName"]) == (0, "SessionStart")
    assert all(word in output["additionalContext"] for word in ("Make it so.", "Iteration 1 of at most 7", DONE))
    assert stop.state == before


def test_after_a_compaction_a_disabled_machine_reports_nothing(project):
    project.tailhook("loop", "start", "Make it so.", CLAUDE_CODE_SESSION_ID="mine")
    (project.folder / ".idle-disabled").touch()
    assert project.stop(hook_event_name="SessionStart", source="compact").allowed


@pytest.mark.parametrize("fields", [{"source": "startup"}, {"source": "compact", "session_id": "other"}])
def test_no_other_start_of_a_session_gets_anything(project, fields):
    project.tailhook("loop", "start", "Make it so.", CLAUDE_CODE_SESSION_ID="mine")
    assert project.stop(hook_event_name="SessionStart", **fields).allowed


def test_the_fallback_file_goes_if_the_stores_loop_was_aborted(project):
    file = project.folder / ".claude/idle-loop.local.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text("---\nactive: true\nmode: loop\niteration: 1\nmax_iterations: 50\n---\nx\n")
    project.loop(event="ABORT")
    assert project.stop("Hm.").allowed
    assert not file.exists()


def test_a_loop_never_becomes_stale_if_stale_after_is_0(project):
    (project.folder / ".claude").mkdir()
    (project.folder / ".claude/tailhook.json").write_text('{"idle": {"stale_after": 0}}')
    project.loop(age=10**8)
    assert project.stop("Hm.").exit_code == 2


@pytest.mark.parametrize(
    ("agent", "exit_code", "is_context"),
    [
        ("claude-code_2-1-163_harness", "0", True),
        ("claude-code_2-10-0_harness", "0", True),
        ("claude-code_3-0_harness", "0", True),
        ("claude-code_2-1-162_harness", "0", False),
        ("claude-code_2-1-329_harness", "2", False),
        ("claude-code_2-1-329_agent", "0", False),
        ("claude-code_2-1-329-dev_harness", "0", False),
        ("claude-code__harness", "0", False),
        ("qwen-code_2-1-329_harness", "0", False),
        ("", "0", False),
    ],
)
def test_a_host_that_goes_on_after_a_context_gets_no_block(project, run_idle, agent, exit_code, is_context):
    project.env["AI_AGENT"] = agent
    stop = run_idle("Hm.", "--exit", exit_code, state=looping())
    words = "[ITERATION 2/10] Continue working"
    if is_context:
        assert set(stop.answer) == {"hookSpecificOutput"}
        given = stop.answer["hookSpecificOutput"]
        assert (given["hookEventName"], given["additionalContext"].startswith(words)) == ("Stop", True)
    else:
        assert (stop.answer["decision"], stop.answer["reason"].startswith(words)) == ("block", True)
    assert (stop.exit_code, stop.state["stack"][0]["iter"]) == (int(exit_code), 2)


def test_another_host_gets_its_own_block_in_any_environment(project, run_idle):
    project.env["AI_AGENT"] = "claude-code_2-1-329_harness"  # it runs in a shell of Claude Code's hook
    assert run_idle("Hm.", "--exit", "0", "--host", "qwen", state=looping()).answer["decision"] == "block"
