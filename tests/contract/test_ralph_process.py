"""The ralph machine as the host meets it: the whole process, its state file, its log."""

import json
import os
import time

import pytest
from support.host import PROMPT, assistant, ralph_page

KEPT = "All done. <promise>TESTS GREEN</promise>"


# ---- going on ----------------------------------------------------------------


def test_the_prompt_is_fed_back_and_the_count_moves(project):
    path = project.ralph(iteration=1)
    for count in (2, 3, 4):
        stop = project.stop("Still red.")
        assert (stop.exit_code, stop.stderr) == (0, "")
        assert (stop.answer["decision"], stop.answer["reason"]) == ("block", PROMPT)
        assert f"iteration {count} of 10" in stop.answer["systemMessage"]
        assert "<promise>TESTS GREEN</promise>" in stop.answer["systemMessage"]
        assert path.read_text() == ralph_page(iteration=count)


def test_every_byte_but_the_counts_stays(project):
    text = (
        "---\r\n# by hand\r\nactive:   true\r\niteration:  '07'   # so far\r\nmax_iterations: 20\r\n"
        "note: iteration: 7\r\nsession_id: mine\r\n---\r\n\r\niteration: 7\r\n---\r\n\ttail \xe9\xff  \r\n"
    ).encode("latin-1")
    path = project.ralph()
    path.write_bytes(text)
    assert project.stop("Hm.").answer["reason"] == "iteration: 7\r\n---\r\n\ttail \ufffd\ufffd"
    assert path.read_bytes() == text.replace(b"'07'", b"8", 1)


@pytest.mark.parametrize(
    ("character", "count", "is_context"),
    [("x", 10_000, True), ("x", 10_001, False), ("\U0001f600", 5000, True), ("\U0001f600", 5001, False)],
)
def test_a_prompt_that_a_context_would_only_preview_comes_back_as_a_block(project, character, count, is_context):
    project.env["AI_AGENT"] = "claude-code_2-1-329_harness"  # its limit is 10,000 units of UTF-16
    project.ralph(prompt=character * count)
    answer = project.stop("Still red.").answer
    given = answer["hookSpecificOutput"]["additionalContext"] if is_context else answer["reason"]
    assert (given, "decision" in answer) == (character * count, not is_context)


@pytest.mark.parametrize("flags", [["--exit", "2"], ["--exit=2"]])
def test_exit_2_can_be_asked_for(project, flags):
    project.ralph()
    stop = project.stop("Hm.", *flags)
    assert (stop.exit_code, stop.stderr) == (2, f"{PROMPT}\n")
    assert stop.answer["reason"] == PROMPT


# ---- ending ------------------------------------------------------------------


def ended(stop, path, *words):
    """Check that the loop ended: the agent may stop, the file is removed, and stderr has the reason."""
    assert (stop.exit_code, stop.stdout) == (0, "")
    assert not path.exists()
    assert stop.stderr.count("\n") == 1
    assert str(path) in stop.stderr
    for word in words:
        assert word in stop.stderr
    return True


def test_a_file_without_front_matter_is_removed(project):
    for text in ("", "active: true\n", "---\nactive: true\n", " ---\niteration: 1\n---\n", "\0" * 50):
        path = project.ralph()
        path.write_text(text)
        assert ended(project.stop("Hm."), path, "front matter")


def test_a_broken_payload_leaves_a_loop_that_names_a_session(project):
    path = project.ralph(session_id="mine")
    assert project.hook(b"{").allowed
    assert path.read_text() == ralph_page(session_id="mine")


def test_a_promise_may_be_asked_for_on_its_own_line(project):
    path = project.ralph(promise_own_line="true")
    assert project.stop(KEPT).answer["reason"] == PROMPT
    assert ended(project.stop("All done.\n\n<promise>TESTS GREEN</promise>"), path, "promise is kept")


def test_words_beyond_what_is_read_back_leave_the_loop(project):
    project.write(assistant(KEPT))
    with project.transcript.open("ab") as out:
        out.truncate(65 << 20)
        out.seek(0, os.SEEK_END)
        out.write(b'\n{"type":"user"}\n')
    project.ralph()
    assert project.stop().answer["reason"] == PROMPT


def test_with_announce_the_end_is_reported_on_stdout(project):
    path = project.ralph()
    stop = project.stop(KEPT, "--announce")
    assert stop.answer == {"systemMessage": "tailhook: the ralph loop ended: the promise is kept: TESTS GREEN"}
    assert not path.exists()


# ---- fresh words -------------------------------------------------------------


def test_a_promise_kept_in_the_last_iteration_ends_the_loop_as_complete(project):
    project.argv = [*project.argv[:-1], "ralph"]
    words = ("--max-iterations", "2", "--completion-promise", "GREEN", PROMPT)
    assert project.as_agent("ralph", "start", *words, session="mine").returncode == 0
    assert project.stop("Hm.").answer["decision"] == "block"
    stop = project.stop("<promise>GREEN</promise>", "--announce")
    assert stop.answer == {"systemMessage": "tailhook: the ralph loop ended: the promise is kept: GREEN"}
    assert "ended: the promise is kept: GREEN (COMPLETE), at iteration 2," in project.as_agent("ralph", "status").stdout


def test_words_older_than_the_file_are_neither_a_promise_nor_an_error(project):
    project.write(assistant(KEPT, at=time.time() - 60))
    project.ralph()
    assert project.stop().answer["reason"] == PROMPT


def test_a_file_from_the_future_makes_all_words_fresh(project):
    project.write(assistant(KEPT, at=time.time() - 60))
    path = project.ralph()
    os.utime(path, (time.time() + 3600, time.time() + 3600))
    assert ended(project.stop(), path, "promise is kept")


# ---- the log -----------------------------------------------------------------


def test_the_log_has_a_line_per_decision_while_a_loop_runs(project):
    path = project.ralph(session_id="mine")
    log = path.parent / "ralph-debug.log"
    project.stop("Hm.")
    project.stop("Hm.", session_id="other")
    project.stop(KEPT)
    project.stop("Hm.")
    lines = [line.split("\t") for line in log.read_text().splitlines()]
    assert [line[1:3] for line in lines] == [["mine", "block"], ["other", "allow"], ["mine", "allow"]]
    assert [line[3] for line in lines[:2]] == ["iteration 2/10", "another session's loop"]
    assert log.stat().st_mode & 0o777 == 0o600


def test_no_session_id_makes_a_line_of_the_log(project):
    path = project.ralph()
    project.stop("Hm.", session_id="mine\n\x1b[31mforged")
    assert path.with_name("ralph-debug.log").read_text().splitlines()[0].split("\t")[1] == r"mine\n\x1b[31mforged"


def test_the_log_is_emptied_when_it_is_large_and_cuts_long_lines(project):
    path = project.ralph(completion_promise="x" * 5000)
    log = path.parent / "ralph-debug.log"
    log.write_bytes(b"x" * 1_000_001)
    project.stop("<promise>" + "x" * 5000 + "</promise>")
    assert log.stat().st_size < 600
    assert log.read_text().count("\n") == 1


def test_a_log_that_cannot_be_written_changes_nothing(project):
    path = project.ralph()
    (path.parent / "ralph-debug.log").mkdir()
    assert project.stop("Hm.").answer["reason"] == PROMPT


# ---- with the other machines -------------------------------------------------


def test_while_idle_blocks_ralph_is_not_asked(project):
    project.loop()
    path = project.ralph()
    project.argv = project.argv[:-1]
    assert project.stop("Hm.").answer["reason"].startswith("[ITERATION 2/10]")
    assert path.read_text() == ralph_page()


def test_when_idle_ends_ralph_is_asked_and_the_end_is_reported_beside_it(project):
    project.loop()
    project.ralph()
    project.argv = project.argv[:-1]
    stop = project.stop("<loop-done>COMPLETE</loop-done>", "--announce")
    assert stop.answer["reason"] == PROMPT
    assert "ended: COMPLETE" in stop.answer["systemMessage"]
    assert "iteration 2 of 10" in stop.answer["systemMessage"]


def test_after_a_compaction_the_loop_is_repeated(project):
    path = project.ralph()
    stop = project.stop(hook_event_name="SessionStart", source="compact")
    context = stop.answer["hookSpecificOutput"]["additionalContext"]
    for part in (PROMPT, "iteration 1 of 10", "<promise>TESTS GREEN</promise>"):
        assert part in context
    assert path.read_text() == ralph_page()
    assert project.stop(hook_event_name="SessionStart", source="startup").allowed


@pytest.mark.parametrize("values", [{"session_id": "other"}, {"active": "false"}, {"iteration": "x"}])
def test_after_a_compaction_a_loop_that_would_not_go_on_is_not_named(project, values):
    path = project.ralph(**values)
    for text in (path.read_text(), "no front matter"):
        path.write_text(text)
        stop = project.stop(hook_event_name="SessionStart", source="compact")
        assert (stop.exit_code, stop.stdout, stop.stderr) == (0, "", "")
        assert path.read_text() == text


@pytest.mark.parametrize("said", [None, 5, "", "\ud800", ["x"]])
@pytest.mark.parametrize("key", ["session_id", "cwd", "transcript_path", "background_tasks", "stop_hook_active"])
def test_no_value_of_a_field_breaks_the_hook(project, key, said):
    project.ralph()
    payload = {**project.payload(last_assistant_message="Hm."), key: said}
    stop = project.hook(json.dumps(payload).encode())
    assert stop.exit_code == 0
    assert "Error" not in stop.stderr


def test_a_front_matter_that_is_too_large_lets_the_agent_go_and_stays(project):
    path = project.ralph()
    path.write_text(path.read_text().replace("---\n", "---\n" + "key: value\n" * 2000, 1))
    before = path.read_bytes()
    stop = project.stop("Hm.")
    assert stop.allowed
    assert f"{path}: the front matter is larger than 16 KiB" in stop.stderr
    assert path.read_bytes() == before
