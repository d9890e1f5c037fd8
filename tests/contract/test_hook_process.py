"""The hook process itself: its input and its output."""

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.host import MEMORABLE, Started, assistant, frame, is_read, looping, run_on_payload, wait_until
from support.oracles import jwz

from tailhook.hook.payload import PAYLOAD_TIMEOUT_S

# ---- the argv ----------------------------------------------------------------


def test_the_cold_argv_is_the_real_interpreter_isolated_and_an_entry_file(cold_argv):
    interpreter, isolated, no_site, entry, machines = cold_argv
    assert os.path.realpath(interpreter) == interpreter
    assert (isolated, no_site, machines) == ("-I", "-S", "idle")
    assert Path(entry).is_absolute()


@pytest.mark.cold_form
def test_without_machines_the_argv_asks_the_configured_ones(project):
    argv = json.loads(project.tailhook("hook-command", "--cold").stdout)
    assert argv == project.argv[:-1]
    project.argv = argv
    project.loop()
    assert project.stop("Hm.").exit_code == 2


def test_no_argv_is_printed_for_an_unknown_machine(project):
    done = project.tailhook("hook-command", "idle,nonsense")
    assert (done.returncode, done.stdout) == (2, "")
    assert "nonsense" in done.stderr


def test_the_command_itself_answers_too(project):
    project.loop()
    payload = json.dumps(project.payload(last_assistant_message="Hm."))
    done = project.tailhook("hook", "idle", stdin=payload)
    assert (done.returncode, json.loads(done.stdout)["decision"]) == (2, "block")


# ---- stdout ------------------------------------------------------------------


def run_with_full_pipe(argv, env, cwd, stdin):
    """Run a program with a non-blocking pipe as stdout, read only once it is full; return code and output."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with Started(argv, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=writer, stderr=subprocess.DEVNULL) as process:
        process.stdin.write(stdin)
        process.stdin.close()
        while select.select([], [writer], [], 0.01)[1] and process.poll() is None:
            time.sleep(0.002)
        os.close(writer)
        with open(reader, "rb") as out:
            return out.read(), process.wait()


def test_an_answer_on_a_full_pipe_that_does_not_block_is_whole(project):
    prompt = "Make the tests pass. " * 15_000
    project.ralph(prompt=prompt)
    payload = json.dumps(project.payload(last_assistant_message="Hm.")).encode()

    def run(argv):
        out, code = run_with_full_pipe(argv, project.env, project.folder, payload)
        return subprocess.CompletedProcess(argv, code, out, b"")

    done = project.run([*project.argv[:-1], "ralph"], run)
    assert (done.returncode, json.loads(done.stdout)["reason"]) == (0, prompt.strip())


@pytest.mark.cold_form
def test_what_a_command_prints_on_a_full_pipe_that_does_not_block_is_whole(project):
    project.loop(frame(), about="x" * 300_000)
    argv = [sys.executable, "-m", "tailhook", "loop", "status", "--json"]
    out, code = run_with_full_pipe(argv, project.env, project.folder, b"")
    assert (code, json.loads(out)["state"]["about"]) == (0, "x" * 300_000)


# ---- stdin -------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" \n\t",
        b"null",
        b"[]",
        b'"Stop"',
        b"12",
        b"{",
        b'{"cwd": ',
        b"}{",
        b"not json",
        b"\x00\xff\xfe",
        b"\xef\xbb\xbf",
        b'{"a": "\xff"}',
        b'{"a": 1,}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"{" + b'"a": 1, ' * 1_000_000,
    ],
)
def test_input_that_is_not_an_object_lets_the_agent_go(project, data):
    state = project.loop()
    stop = project.hook(data)
    assert stop.allowed
    assert stop.state == state


@pytest.mark.parametrize(
    "around", [(b"\xef\xbb\xbf", b""), (b" \r\n", b"\n"), (b"", b'{"second": 1}'), (b"", b"\x00garbage")]
)
def test_the_first_object_counts_whatever_stands_around_it(project, around):
    project.loop()
    payload = json.dumps(project.payload(last_assistant_message="Hm.")).encode()
    assert project.hook(around[0] + payload + around[1]).exit_code == 2


def run_with_open_stdin(project, pieces):
    """Run the hook with input in pieces that is never closed; return its exit code and the seconds it took.

    The next piece comes once the hook has read the last one. If the hook read the last one only after its two seconds,
    they are sent to another hook.
    """
    seconds = []

    def run(argv):
        started = time.monotonic()
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with Started(argv, env=project.env, cwd=project.folder, **pipes) as process:
            with contextlib.suppress(BrokenPipeError):  # a client without a worker has ended
                for piece in pieces:
                    process.stdin.write(piece)
                    process.stdin.flush()
                    wait_until(lambda: is_read(process.stdin) or process.poll() is not None)
            is_late = time.monotonic() - started > PAYLOAD_TIMEOUT_S
            outputs = process.stdout.read(), process.stderr.read()
            process.wait()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        seconds.append(time.monotonic() - started)
        if is_late and process.returncode == 0:
            return run(argv)
        return subprocess.CompletedProcess(argv, process.returncode, *outputs)

    return project.run(project.argv, run).returncode, seconds[-1]


@pytest.mark.one_form
def test_an_open_stdin_is_not_waited_for_once_the_object_is_there(project):
    project.loop()
    payload = json.dumps(project.payload(last_assistant_message="Hm.")).encode()
    code, _ = run_with_open_stdin(project, [payload])
    assert code == 2  # after the time limit it would be 0


def test_input_in_small_pieces_is_put_together(project):
    project.loop()
    payload = json.dumps(project.payload(last_assistant_message="é{}" * 10)).encode()
    code, _ = run_with_open_stdin(project, [payload[at : at + 40] for at in range(0, len(payload), 40)])
    assert code == 2


def test_a_byte_order_mark_in_pieces_is_passed_over(project):
    project.loop()
    payload = json.dumps(project.payload(last_assistant_message="Hm.")).encode()
    code, _ = run_with_open_stdin(project, [b"\xef", b"\xbb", b"\xbf" + payload])
    assert code == 2


@pytest.mark.one_form
@pytest.mark.parametrize("pieces", [[], [b'{"session_id": "mine", ']])
def test_a_stdin_that_never_ends_is_given_2_seconds(project, pieces):
    state = project.loop()
    code, seconds = run_with_open_stdin(project, pieces)
    assert code == 0
    assert seconds > 1.5
    assert jwz.newest(project.folder) == state


@pytest.mark.one_form  # with a closed stream the client always starts the cold hook
def test_a_closed_stdin_lets_the_agent_go(project):
    project.loop()
    script = f"exec {' '.join(project.argv)} <&-"
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=project.env, cwd=project.folder, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.one_form  # as above
def test_a_closed_stdout_still_blocks_by_the_exit_code(project):
    project.loop()
    payload = json.dumps(project.payload(last_assistant_message="Hm.")).encode()
    script = f"exec {' '.join(project.argv)} >&-"
    done = run_on_payload(["/bin/sh", "-c", script], payload, env=project.env, cwd=project.folder)
    assert done.returncode == 2


def test_a_payload_of_10_mb_is_answered(project):
    project.loop()
    said = ("word " * 2_000_000) + "\n<loop-done>COMPLETE</loop-done>"
    file = project.home.with_name("payload")  # a busy test might not write so much into a pipe within two seconds
    file.write_text(json.dumps(project.payload(last_assistant_message=said)))

    def run(argv):
        with file.open("rb") as payload:
            return subprocess.run(argv, stdin=payload, env=project.env, cwd=project.folder, capture_output=True)

    assert project.run(project.argv, run).returncode == 0
    assert jwz.newest(project.folder)["event"] == "DONE"


@pytest.mark.parametrize(
    "key", ["session_id", "transcript_path", "cwd", "hook_event_name", "agent_id", "background_tasks"]
)
@pytest.mark.parametrize("value", [None, 5, True, [], {}, "", "\ud800", "x" * 10_000, "a\x00b"])
def test_no_value_of_a_field_breaks_the_hook(project, key, value):
    payload = {**project.payload(last_assistant_message="Hm."), key: value}
    project.loop()
    stop = project.hook(json.dumps(payload).encode())
    assert stop.exit_code in (0, 2)
    assert (stop.exit_code == 2) is bool(stop.stdout)


@pytest.mark.parametrize("said", [5, None, [], {"text": "x"}, "\ud83d alone", "\x00\x1b[31m"])
def test_no_last_message_breaks_the_hook(project, said):
    project.loop()
    assert project.hook(json.dumps({**project.payload(), "last_assistant_message": said}).encode()).exit_code == 2


# ---- which event -------------------------------------------------------------


@pytest.mark.parametrize("name", ["SubagentStop", "PreToolUse", "SessionStart", "Notification", "NoSuchEvent"])
def test_other_events_are_allowed_and_change_nothing(project, name):
    state = project.loop()
    stop = project.stop("<loop-done>COMPLETE</loop-done>", hook_event_name=name)
    assert stop.allowed
    assert stop.state == state


def test_a_payload_without_an_event_is_a_stop(project):
    project.loop()
    assert project.stop("Hm.", hook_event_name=None).exit_code == 2


def test_the_event_can_be_named_by_a_flag(project):
    project.loop()
    assert project.stop("Hm.", "--event", "PreToolUse", hook_event_name=None).allowed
    assert project.stop("Hm.", "--event=Stop", hook_event_name=None).exit_code == 2
    assert project.stop("Hm.", "--event", "PreToolUse").exit_code == 2


# ---- arguments ---------------------------------------------------------------


@pytest.mark.parametrize(
    "words", [["--nonsense"], ["--exit", "7"], ["--exit"], ["--host", "nobody"], ["nonsense"], ["--announce=yes"]]
)
def test_what_is_unknown_among_the_arguments_is_one_line_and_the_rest_is_done(project, words):
    project.loop()
    stop = project.stop("Hm.", *words)
    assert stop.exit_code == 2
    complaint, reason = stop.stderr.splitlines()
    assert words[0] in complaint
    assert reason.startswith("[ITERATION 2/10]")


def test_a_hook_of_unknown_machines_alone_does_nothing(project):
    project.loop()
    project.argv = [*project.argv[:-1], "nonsense"]
    stop = project.stop("Hm.")
    assert (stop.exit_code, stop.stdout) == (0, "")
    assert stop.stderr.count("\n") == 1


# ---- configuration and log ---------------------------------------------------


@pytest.fixture
def configure(project):
    """Write the user's configuration, or the project's."""

    def write(text: str, where: str = "user"):
        folder = project.home / ".config/tailhook" if where == "user" else project.folder / ".claude"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ("config.json" if where == "user" else "tailhook.json")).write_text(text)

    return write


def test_the_projects_configuration_is_over_the_users(project, configure):
    configure('{"idle": {"stale_after": 10}}')
    configure('{"idle": {"stale_after": 1000}}', "project")
    project.loop(age=500)
    assert project.stop("Hm.").exit_code == 2


@pytest.mark.parametrize("machine", ["idle", "ralph"])
@pytest.mark.parametrize(("request_id", "ends"), [("r1", True), ("r2", False)])
def test_a_signal_of_another_response_with_the_same_message_id_does_not_end_a_loop(project, machine, request_id, ends):
    """Under load, a host gives two responses one message id (Claude Code 2.1.332)."""
    if machine == "ralph":
        project.ralph(completion_promise="DONE")
        words = "<promise>DONE</promise>"
    else:
        project.loop()
        words = "<loop-done>COMPLETE</loop-done>"
    project.write(
        assistant(words, requestId="r1"),
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "rejected"}]}},
        assistant("Not finished.", requestId=request_id),
    )
    assert (not project.stop("Not finished.").stdout) is ends


@pytest.mark.one_form
@pytest.mark.parametrize(
    ("machine", "path", "code", "words"),
    [
        ("idle", ".claude/tailhook.json", 0, "larger than 256 KiB. The defaults are used"),
        ("idle", ".claude/idle-loop.local.md", 0, "larger than 4 MiB"),
        ("ralph", ".claude/ralph-loop.local.md", 0, "larger than 4 MiB"),
        ("memory", ".claude/memory/memory-config.json", 2, "[DECISION] We chose A"),
        ("memory", ".claude/.stop_hook_active", 2, "[DECISION] We chose A"),
    ],
)
def test_a_file_without_an_end_in_a_project_is_not_read(project, machine, path, code, words):
    project.argv = [*project.argv[:-1], machine]
    file = project.folder / path
    file.parent.mkdir(parents=True)
    file.write_text("---\nactive: true\niteration: 1\nmax_iterations: 9\n---\n")
    os.truncate(file, 8 << 30)  # bytes; the disk has a few of them
    project.argv = ["sh", "-c", 'ulimit -v 1000000; exec "$@"', "sh", *project.argv]  # KB
    project.write(assistant(MEMORABLE))
    stop = project.stop(MEMORABLE)
    assert (stop.exit_code, bool(stop.stderr), words in stop.stderr) == (code, bool(words), True), stop


def test_a_relative_xdg_folder_counts_as_none(project, configure):
    configure('{"hook": {"machines": []}}')
    project.env["XDG_CONFIG_HOME"] = "config"
    project.argv = project.argv[:-1]
    project.loop()
    assert project.stop("Hm.").allowed


def test_machines_can_be_chosen_by_the_configuration(project, configure):
    configure('{"hook": {"machines": []}}')
    project.argv = project.argv[:-1]
    project.loop()
    assert project.stop("Hm.").allowed


@pytest.mark.parametrize(
    "text", ["{", "[]", "", '{"idle": 5}', '{"idle": {"stale_after": "soon"}}', '{"new": {}}', "\xff"]
)
@pytest.mark.parametrize("where", ["user", "project"])
def test_a_broken_configuration_means_the_defaults(project, configure, text, where):
    configure(text, where)
    project.loop(age=7000)
    stop = project.stop("Hm.")
    assert stop.exit_code == 2
    assert ("defaults" in stop.stderr) is (text in ("{", "[]", "", "\xff"))


def test_the_log_has_a_line_per_machine_that_was_asked(project):
    log = project.home / "log"
    project.env["TAILHOOK_LOG"] = str(log)
    project.loop()
    project.stop("Hm.")
    project.stop("<loop-done>STUCK</loop-done>")
    first, second = (line.split("\t") for line in log.read_text().splitlines())
    assert first[1:4] == ["idle", "block", "iteration 2/10"]
    assert second[1:4] == ["idle", "allow", "the loop ended: STUCK"]
    assert float(second[4]) > 0
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("path", ["/nowhere/log", "/", "", "a\x01b/c"])
def test_a_log_that_cannot_be_written_changes_nothing(project, path):
    project.env["TAILHOOK_LOG"] = path
    project.loop()
    assert project.stop("Hm.").exit_code == 2


def test_a_log_is_not_written_through_a_link(project):
    (project.home / "log").symlink_to(project.home / "target")
    project.env["TAILHOOK_LOG"] = str(project.home / "log")
    project.loop()
    assert project.stop("Hm.").exit_code == 2
    assert not (project.home / "target").exists()


def test_a_project_cannot_choose_where_the_log_goes(project, configure):
    configure(json.dumps({"hook": {"log": str(project.home / "log")}}), "project")
    project.loop()
    assert project.stop("Hm.").exit_code == 2
    assert not (project.home / "log").exists()
    configure(json.dumps({"hook": {"log": str(project.home / "log")}}))
    project.stop("Hm.")
    assert (project.home / "log").exists()


# ---- hostile surroundings ----------------------------------------------------


def test_a_state_cannot_have_a_file_read_out(project):
    secret = project.home / "secret"
    secret.write_text("hunter2")
    state = looping()
    state["stack"][0] |= {"prompt_file": str(secret), "session_id": "mine"}
    jwz.post(project.folder, json.dumps(state))
    stop = project.stop(hook_event_name="SessionStart", source="compact")
    assert "hunter2" not in stop.stdout
    assert "Iteration" in stop.stdout


def test_modules_of_the_project_are_not_imported(project):
    for name in ("posix.py", "time.py", "tailhook.py", "sitecustomize.py"):
        (project.folder / name).write_text("raise SystemExit(9)")
    project.env |= {"PYTHONPATH": str(project.folder), "PYTHONSTARTUP": str(project.folder / "time.py")}
    project.loop()
    assert project.stop("Hm.").exit_code == 2


def test_without_a_home_folder_the_hook_still_answers(project):
    del project.env["HOME"]
    project.loop()
    assert project.stop("Hm.").exit_code == 2


def test_a_hook_whose_own_folder_is_gone_acts_on_the_project(project):
    project.loop()
    gone = project.home / "gone"
    payload = json.dumps(project.payload(last_assistant_message="Hm.", cwd=None)).encode()
    script = f"rmdir {gone}; exec {' '.join(project.argv)}"
    env = {**project.env, "CLAUDE_PROJECT_DIR": str(project.folder)}

    def run(argv):
        gone.mkdir()
        return run_on_payload(argv, payload, env=env, cwd=gone)

    done = project.run(["/bin/sh", "-c", script], run)
    assert (done.returncode, b"[ITERATION 2/10]" in done.stdout) == (2, True)


@pytest.mark.parametrize("has_cwd", [True, False])
def test_a_folder_that_is_too_deep_for_a_path_has_the_loop_above_it(project, has_cwd):
    project.loop()
    name = "d" * 100
    deep = str(project.folder) + f"/{name}" * 50
    payload = json.dumps(project.payload(last_assistant_message="Hm.", cwd=deep if has_cwd else None)).encode()
    env = {name: value for name, value in project.env.items() if name != "CLAUDE_PROJECT_DIR"}
    go_down = f'for i in {{1..50}}; do mkdir {name}; cd {name}; done; exec "$@"'

    def run(argv):
        try:
            return run_on_payload(argv, payload, env=env, cwd=project.folder)
        finally:
            shutil.rmtree(project.folder / name)

    done = project.run(["/bin/bash", "-c", go_down, "bash", *project.argv], run)
    assert (done.returncode, b"[ITERATION 2/10]" in done.stdout) == (2, True)


def test_a_read_only_project_lets_the_agent_go(project):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    project.loop()
    store = project.folder / ".jwz"
    (store / "messages.jsonl").chmod(0o400)
    stop = project.stop("Hm.")
    assert (stop.exit_code, stop.stdout) == (0, "")


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_FSIZE is tried as Linux has it")
def test_each_machines_answer_has_the_layout_of_its_page(project):
    project.loop()
    assert project.stop("Hm.").stdout.startswith('{"decision": "block", "reason": "[ITERATION')
    project.ralph()
    stop = project.stop("Hm.")
    assert stop.stdout == json.dumps(stop.answer, separators=(",", ":")) + "\n"
    project.triage({"phase": "triage", "entries": [{"status": "pending", "name": "x"}]})
    stop = project.stop("Hm.")
    assert stop.stdout == json.dumps(stop.answer, separators=(",", ":")) + "\n"


@pytest.mark.parametrize("path", [".jwz/messages.jsonl", ".claude/ralph-loop.local.md"])
def test_a_state_that_cannot_be_read_is_reported_with_its_path_and_the_next_machine_asked(project, path):
    pipeline = project.triage({"phase": "triage", "entries": [{"status": "pending", "name": "x"}]})
    project.argv = project.argv[:-1]
    (project.folder / path).mkdir(parents=True)
    stop = project.hook(json.dumps(project.payload(last_assistant_message="Hm.")).encode(), read=False)
    assert str(pipeline) in stop.answer["reason"]
    assert f"{project.folder / path}: Is a directory" in stop.stderr
    assert stop.stderr.count("\n") == 1


@pytest.mark.one_form
def test_a_full_disk_lets_the_agent_go_and_loses_nothing(project):
    project.loop()
    before = (project.folder / ".jwz" / "messages.jsonl").read_bytes()
    limit = len(before) + 100
    script = f"trap '' XFSZ; exec prlimit --fsize={limit} {' '.join(project.argv)}"
    payload = json.dumps(project.payload(last_assistant_message="Hm.")).encode()
    done = run_on_payload(["/bin/sh", "-c", script], payload, env=project.env, cwd=project.folder)
    assert (done.returncode, done.stdout) == (0, b"")
    assert (project.folder / ".jwz" / "messages.jsonl").read_bytes() == before
    assert project.stop("Hm.").answer["reason"].startswith("[ITERATION 2/10]")
