"""The plates machine's hook as a process: its report of each event. It never waits."""

import json
import os
import shlex
import socket
import subprocess
import time
from collections import Counter

import pytest
from support.cases import in_one_test
from support.host import HANGS_S, Started, frame
from support.usual_secrets import SECRETS, is_shown, written

from tailhook.hook.plates import MAX_REPORTED_CHARS
from tailhook.plates.db import Database
from tailhook.plates.display import describe_plate
from tailhook.plates.health import Health
from tailhook.plates.inbox import Inbox
from tailhook.stores.processes import process_start

DONE = "<loop-done>COMPLETE</loop-done>"
MANY = {"choices": [str(number) for number in range(10)]}


@pytest.fixture
def plates(project):
    """Return a project with a hook that reports events; a daemon is only started if a test needs one."""
    project.argv = [*project.argv[:-1], "plates"]
    return project


def spool(project):
    return project.home / ".local" / "state" / "tailhook" / "events"


def reported(project):
    """Return the events in the spool, oldest first."""
    return [json.loads(line) for line in spool(project).read_text().splitlines()] if spool(project).exists() else []


def send(project, *flags, **fields):
    """Run the hook for one event; return the event that it reported, or None."""
    before = len(reported(project))
    stop = project.hook(json.dumps(project.payload(**fields)).encode(), *flags, read=False)
    assert (stop.exit_code, stop.stdout, stop.stderr) == (0, "", "")
    found = reported(project)[before:]
    assert len(found) <= 1
    return found[0] if found else None


# ---- which events ------------------------------------------------------------

EVENTS = [
    ("SessionStart", {"source": "startup"}, "session_start"),
    ("SessionStart", {"source": "compact"}, "session_start"),
    ("UserPromptSubmit", {"prompt": "Do it."}, "prompt_submit"),
    ("UserPromptSubmit", {"prompt": "Look around.", "agent_id": "a"}, None),
    ("PreToolUse", {"tool_name": "Read"}, "tool_start"),
    ("PreToolUse", {"tool_name": "Read", "agent_id": "a"}, "tool_start"),
    ("PostToolUse", {"tool_name": "Read"}, "tool_call"),
    ("PostToolUseFailure", {"tool_name": "Read", "error": "no such file"}, "tool_call"),
    ("PermissionRequest", {"tool_name": "Bash"}, "permission_asked"),
    ("PermissionRequest", {"tool_name": "Bash", "agent_id": "a"}, "permission_asked"),
    ("PermissionDenied", {"tool_name": "Bash"}, "tool_call"),
    ("Elicitation", {"mcp_server_name": "db"}, "input_asked"),
    ("ElicitationResult", {"mcp_server_name": "db", "action": "accept"}, "input_given"),
    ("Notification", {"notification_type": "permission_prompt"}, "permission_asked"),
    ("Notification", {"notification_type": "idle_prompt"}, "turn_ended"),
    ("Notification", {"notification_type": "elicitation_dialog"}, "input_asked"),
    ("Notification", {"notification_type": "elicitation_url_dialog"}, "input_asked"),
    ("Notification", {"notification_type": "elicitation_response"}, "input_given"),
    ("Notification", {"notification_type": "elicitation_complete"}, "input_given"),
    ("Notification", {"notification_type": "auth_success"}, None),
    ("Notification", {"notification_type": 3}, None),
    ("Notification", {}, None),
    ("Stop", {}, "stop"),
    ("Stop", {"agent_id": "a"}, None),
    ("StopFailure", {"error": "rate_limit"}, "stop_failure"),
    ("Interrupt", {"turn_id": "t"}, "interrupted"),
    ("SessionEnd", {"reason": "logout"}, "session_end"),
    ("SubagentStop", {"agent_id": "a"}, "subagent_stop"),
    ("SubagentStart", {"agent_id": "a"}, "subagent_start"),
    ("PreCompact", {}, None),
    ("PostCompact", {"trigger": "manual"}, "turn_ended"),
    ("PostCompact", {"trigger": "auto"}, None),
    ("PostCompact", {}, None),
    ("SomethingNew", {}, None),
]


@pytest.mark.parametrize(("name", "fields", "kind"), EVENTS)
def test_each_event_of_the_host_is_reported_as_what_it_is(plates, name, fields, kind):
    event = send(plates, hook_event_name=name, **fields)
    assert (event and event["event_type"]) == kind


def test_a_stop_reports_how_many_agents_work_in_the_background(plates):
    tasks = [
        {"type": "subagent", "status": "running"},
        {"type": "local_agent", "status": "pending"},
        {"type": "workflow"},
        {"type": "subagent", "status": "completed"},
        {"type": "shell", "status": "running"},
    ]
    assert send(plates, hook_event_name="Stop", background_tasks=tasks)["background"] == 3
    assert "background" not in send(plates, hook_event_name="UserPromptSubmit", background_tasks=tasks)
    assert "background" not in send(plates, hook_event_name="Stop", background_tasks=tasks[3:])


def test_the_project_is_the_hosts_and_the_agents_folder_is_another_field(plates):
    plates.env["CLAUDE_PROJECT_DIR"] = "/work/project/"
    event = send(plates, hook_event_name="PostToolUse", tool_name="Bash", cwd="/work/project/deep/sub")
    assert (event["project_path"], event["folder"]) == ("/work/project", "/work/project/deep/sub")
    event = send(plates, hook_event_name="PostToolUse", tool_name="Bash", cwd="/work/project")
    assert (event["project_path"], event.get("folder")) == ("/work/project", None)
    del plates.env["CLAUDE_PROJECT_DIR"]
    event = send(plates, hook_event_name="PostToolUse", tool_name="Bash", cwd="/work/project/deep")
    assert (event["project_path"], event.get("folder")) == ("/work/project/deep", None)


SEED_NAMES = {
    "session-start": "session_start",
    "prompt-submit": "prompt_submit",
    "pre-tool-use": "tool_start",
    "post-tool-use": "tool_call",
    "stop": "stop",
}


@pytest.mark.parametrize(("name", "kind"), SEED_NAMES.items())
def test_a_payload_without_a_name_has_the_one_of_the_argv(plates, name, kind):
    assert send(plates, "--event", name, hook_event_name=None)["event_type"] == kind


def test_a_stop_with_an_error_reports_the_error(plates):
    event = send(plates, "--event", "stop", hook_event_name=None, error="overloaded")
    assert (event["event_type"], event["error"]) == ("stop", "overloaded")


def test_no_secret_of_an_error_or_a_command_reaches_the_spool(plates):
    for name in SECRETS:
        _, text = written(name)
        event = send(
            plates,
            hook_event_name="PostToolUseFailure",
            tool_name="Bash",
            tool_input={"command": text},
            error=f"Command failed: {text}\n  at x.js:12 " + "x" * 500,
        )
        assert event["error"].startswith("Command failed: ")
        assert len(event["error"]) <= MAX_REPORTED_CHARS
        line = spool(plates).read_text().splitlines()[-1]
        assert not is_shown(name, line), line


@pytest.mark.parametrize("name", ["GitHub", "AWS secret", "JWT", "URL", "password variable", "signed URL"])
def test_no_secret_of_a_prompt_a_title_or_a_reply_reaches_the_spool(plates, name):
    _, text = written(name)
    begun = send(plates, hook_event_name="UserPromptSubmit", prompt=f"Run {text}", session_title=f"The {text}")
    ended = send(plates, hook_event_name="Stop", last_assistant_message=f"I ran {text}")
    assert [begun["prompt"][:4], begun["title"][:4], ended["reply"][:6]] == ["Run ", "The ", "I ran "]
    assert not is_shown(name, spool(plates).read_text())


def test_an_error_is_one_line_of_its_first_words(plates):
    event = send(plates, hook_event_name="PostToolUseFailure", error="No `x`:\n\tline 2\x1b[31m\u00a0" + "a b " * 100)
    assert event["error"] == f"No `x`: line 2[31m {'a b ' * 100}"[: MAX_REPORTED_CHARS - 1].rstrip() + "…"


def test_a_session_without_an_id_has_no_plate(plates):
    assert send(plates, session_id=None) is None
    assert send(plates, session_id="") is None


def test_what_it_gets_of_every_event(plates):
    (plates.folder / ".git" / "HEAD").write_text("ref: refs/heads/feature/one\n")
    plates.env |= {"CLAUDE_PID": str(os.getpid()), "TAILHOOK_RUN_ID": "run"}
    before = time.time() * 1000
    event = send(plates, hook_event_name="PreToolUse", tool_name="Bash", tool_input={"command": "make test"})
    assert before - 1 <= event.pop("ts") <= time.time() * 1000
    assert abs(event.pop("mono") - time.clock_gettime(time.CLOCK_BOOTTIME) * 1000) < 30_000
    assert len(event.pop("event_id")) == 32
    assert event == {
        "event_type": "tool_start",
        "session_id": "mine",
        "project_path": str(plates.folder),
        "transcript_path": str(plates.transcript),
        "git_branch": "feature/one",
        "tool_name": "Bash",
        "tool_params": {"command": "make test"},
        "agent_program": "claude-code",
        "run_id": "run",
        "pid": os.getpid(),
        "pid_started": process_start(os.getpid()),
        "pid_namespace": os.readlink("/proc/self/ns/pid"),
        "host": os.uname().nodename,
    }


def test_a_prompt_and_a_start_name_the_sessions_terminal(plates):
    names = {"TERM": "screen", "TMUX": "/tmp/tmux-0/default,1,0", "TMUX_PANE": "%3"}
    plates.env |= {**names, "KITTY_LISTEN_ON": "", "ITERM_SESSION_ID": "i" * 201}
    for event_name in ("UserPromptSubmit", "SessionStart"):
        assert send(plates, hook_event_name=event_name)["terminal"] == names
    assert "terminal" not in send(plates, hook_event_name="PreToolUse", tool_name="Bash")


def test_without_the_hosts_variable_its_process_may_be_the_hooks_parent(plates):
    assert (event := send(plates))["pid"] == os.getpid()
    assert event["pid_started"] == process_start(os.getpid())
    assert event["pid_is_guess"]


@pytest.mark.parametrize("shell", ["sh -c", "bash -c", "bash -lc"])
def test_a_shell_around_the_hook_is_not_the_hosts_process(plates, shell):
    plates.argv = [*shell.split(), f"{shlex.join(plates.argv)}; exit $?"]  # so that no shell becomes the hook
    assert (event := send(plates))["pid"] == os.getpid()
    assert event["pid_started"] == process_start(os.getpid())


def test_an_event_names_the_tools_use_and_the_subagent(plates):
    fields = {"tool_name": "Bash", "tool_use_id": "toolu_1", "agent_id": "a1"}
    event = send(plates, hook_event_name="PostToolUse", **fields)
    assert {name: event[name] for name in fields} == fields
    event = send(plates, hook_event_name="PostToolUse", tool_use_id="i" * 300, agent_id="a" * 300, tool_name=3)
    assert (event["tool_use_id"], event["agent_id"], event.get("tool_name")) == ("i" * 200, "a" * 200, None)
    event = send(plates, hook_event_name="Stop", tool_use_id=5)
    assert not {"tool_use_id", "agent_id", "tool_name", "source", "by_host"} & event.keys()


def test_an_elicitation_has_its_question_and_names_what_the_servers_tools_begin_with(plates):
    event = send(plates, hook_event_name="Elicitation", mcp_server_name="My db.v2_x-\u00e9", message="Password?")
    assert (event["event_type"], event["tool_name"]) == ("input_asked", "mcp__My_db_v2_x-_")
    assert event["tool_params"] == {"question": "Password?"}


def test_a_start_names_its_source_and_no_other_event_does(plates):
    assert send(plates, hook_event_name="SessionStart", source="resume")["source"] == "resume"
    assert "source" not in send(plates, hook_event_name="SessionStart", source=3)
    assert "source" not in send(plates, hook_event_name="UserPromptSubmit", source="resume")


@pytest.mark.parametrize(
    ("prompt", "fields", "is_hosts"),
    [
        ("<task-notification>\n<task-id>a</task-id>", {}, True),
        ("<task-notification>\n<task-id>a</task-id>", {"source": 3}, True),
        ("<system_notification>\nA task has ended.\n</system_notification>", {}, True),
        (" <task-notification>", {}, False),
        ("", {}, False),
        ("<task-notification>", {"source": "user"}, False),  # a person has pasted it
        ("Go on.", {"source": "sdk"}, False),
        ("Go on.", {"source": "loop_wakeup"}, True),
        ("Go on.", {"source": "system"}, True),
        ("Go on.", {"source": "a new one"}, True),
    ],
)
def test_a_prompt_that_the_host_wrote_is_distinguished_from_a_persons_and_is_not_kept(plates, prompt, fields, is_hosts):
    event = send(plates, hook_event_name="UserPromptSubmit", prompt=prompt, **fields)
    assert event.get("by_host", False) is is_hosts
    assert event.get("prompt", "") == ("" if is_hosts else prompt.strip())


FIRST_LINES = [
    ("Fix the race.\n\nIt is in refunds.py.", "Fix the race."),
    ("\n\n  ## **Done.** All tests pass. \n- a", "Done. All tests pass."),
    ("---\n- one\n- two", "one"),
    ("#42 fails", "#42 fails"),
    ("```\nx = 1\n```", "x = 1"),
    ("2 * 3", "2 * 3"),
    ("export TOKEN=abcdefgh1234\nnow", "export TOKEN=[secret]"),
    ("a\x1b[31m\u202eb\tc", "a[31mb c"),
    ("x" * 5000, "x" * 199 + "…"),
    ("***\n\n", None),
    ("", None),
    (["x"], None),
]


@in_one_test(("text", "expected"), FIRST_LINES)
def test_of_a_prompt_and_of_the_last_message_the_first_line_is_kept(plates, text, expected):
    event = send(plates, hook_event_name="UserPromptSubmit", prompt=text)
    assert (event.get("prompt"), event.get("reply")) == (expected, None)
    event = send(plates, hook_event_name="Stop", last_assistant_message=text)
    assert (event.get("prompt"), event.get("reply")) == (None, expected)


@pytest.mark.parametrize(
    ("title", "expected"), [("Fix the race", "Fix the race"), ("x" * 5000, "x" * 199 + "…"), ("", None), (["x"], None)]
)
def test_a_start_and_a_prompt_have_the_sessions_title(plates, title, expected):
    for name in ("SessionStart", "UserPromptSubmit"):
        assert send(plates, hook_event_name=name, session_title=title).get("title") == expected


def test_an_event_has_the_transcripts_size(plates):
    assert "transcript_size" not in send(plates)  # it is missing
    plates.transcript.write_text("x" * 77)
    assert send(plates)["transcript_size"] == 77
    assert "transcript_size" not in send(plates, transcript_path="\0")


def judged(project, tmp_path):
    """Return the status and the process of the plate, after the spool is read and the processes are checked."""
    database = Database(f"sqlite:///{tmp_path}/plates.db")
    try:
        inbox = Inbox(spool(project).parent, database)
        inbox.ingest()
        Health(database, inbox.id, inbox.is_drained).check()
        plate = describe_plate(database.get("mine"), "")
        return plate["status"].value, plate["pid"]
    finally:
        database.close()


@pytest.mark.one_form
def test_a_script_around_the_hook_is_not_the_host_however_old_it_is(plates, tmp_path):
    (plates.folder / "script").write_text(f"sleep 1.1; {shlex.join(plates.argv)}; true")
    plates.argv = ["/bin/sh", str(plates.folder / "script")]
    for name in ("SessionStart", "UserPromptSubmit", "UserPromptSubmit"):
        send(plates, hook_event_name=name)
        assert judged(plates, tmp_path) == ("running", None)


@pytest.mark.one_form
def test_a_parent_that_two_events_name_is_the_host(plates, tmp_path):
    hook = f"{shlex.join(plates.argv)} < payload.json; "
    (plates.folder / "payload.json").write_text(json.dumps(plates.payload(hook_event_name="UserPromptSubmit")))
    (plates.folder / "script").write_text(f"{hook * 2} echo ready; read line")
    host = ["/bin/sh", str(plates.folder / "script")]
    with Started(
        host, env=plates.env, cwd=plates.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        assert judged(plates, tmp_path) == ("running", process.pid)
        process.communicate("\n")
    assert judged(plates, tmp_path) == ("closed", process.pid)


@pytest.mark.parametrize("given", ["", "x", "-1", "4194305", "99999999999999999999", "\u0664"])
def test_a_variable_that_names_no_process_has_no_start(plates, given):
    plates.env["CLAUDE_PID"] = given
    event = send(plates)
    assert (event["pid"], "pid_started" in event) == ((4194305, False) if given == "4194305" else (os.getpid(), True))


@pytest.mark.one_form
def test_the_variable_of_claude_code_is_not_the_process_of_another_host_in_its_shell(plates):
    plates.env["CLAUDE_PID"] = "1"
    event = send(plates, "--host", "codex")
    assert (event["pid"], event["pid_is_guess"]) == (os.getpid(), True)


# ---- what of a tool's input --------------------------------------------------


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"file_path": "/a/b.py", "content": "secret"}, {"file_path": "/a/b.py"}),
        ({"file_path": "/" + "a" * 300}, {"file_path": "a" * 200}),
        ({"notebook_path": "/a.ipynb"}, {"file_path": "/a.ipynb"}),
        ({"command": "x" * 300}, {"command": "x" * 199 + "…"}),
        (
            {"command": "curl -H 'Authorization: Bearer abc' a"},
            {"command": "curl -H 'Authorization: Bearer [secret] a"},
        ),
        ({"command": "curl -u me:abc a"}, {"command": "curl -u me:[secret] a"}),
        ({"command": "a\n\x1b[31mb\u202e"}, {"command": "a [31mb"}),
        ({"todos": [{"status": "completed"}, {"status": "pending"}, 3]}, {"todos_done": 1, "todos": 3}),
        (
            {
                "questions": [
                    {"question": "Which\ncolour?", "options": [{"label": "red\x1b"}, 3]},
                    {"question": "Size?"},
                ]
            },
            {"question": "Which colour?", "choices": ["red"]},
        ),
        ({"question": "Which?", "choices": ["a", "b"]}, {"question": "Which?", "choices": ["a", "b"]}),
        ({"question": "Which?", "options": [{"label": f"{n}"} for n in range(99)]}, {**MANY, "question": "Which?"}),
        ({"question": "Which?", "choices": "all"}, {"question": "Which?", "choices": []}),
        ({"questions": ["Which colour?"]}, None),
        ({"questions": []}, None),
        ({"plan": "\n# Move the keys\n\n1. Write a test.\n"}, {"plan": "Move the keys"}),
        ({"pattern": "x", "path": "/a"}, {"pattern": "x"}),
        ({"path": "/a/b.py", "old_str": "x"}, {"file_path": "/a/b.py"}),
        ("*** Begin Patch\n*** Add File: a b.md\n+yo\n*** End Patch\n", {"file_path": "a b.md"}),
        ({"command": "*** Begin Patch\n*** Update File: src/a.py\n@@\n"}, {"file_path": "src/a.py"}),
        ({"command": "*** Begin Patch\n*** a"}, {"command": "*** Begin Patch *** a"}),
        ("*** Begin Patch\n*** a", None),
        ({"url": "https://host/?token=abcdefgh1234"}, {"url": "https://host/?token=[secret]"}),
        ({"description": "Look at it", "prompt": "You are an agent."}, {"description": "Look at it"}),
        ({"command": "make", "description": "Builds"}, {"command": "make"}),
        ({"text": "x"}, None),
        ({"command": 3, "file_path": None}, None),
        ("text", None),
        (None, None),
    ],
)
def test_of_a_tools_input_only_what_a_board_needs(plates, given, shown):
    event = send(plates, hook_event_name="PreToolUse", tool_name="T", tool_input=given)
    assert event.get("tool_params") == shown


# ---- the branch --------------------------------------------------------------


def test_the_branch_of_a_worktree_is_found_where_its_git_file_points(plates, tmp_path):
    git = plates.folder / ".git"
    git.rmdir()
    (tmp_path / "gitdir").mkdir()
    (tmp_path / "gitdir" / "HEAD").write_text("ref: refs/heads/side\n")
    git.write_text(f"gitdir: {tmp_path}/gitdir\n")
    assert send(plates)["git_branch"] == "side"
    git.write_text("gitdir: ../gitdir\n")
    assert send(plates)["git_branch"] == "side"


@pytest.mark.parametrize("git", ["", "gitdir:", "gitdir: /nowhere", "\0", "gitdir: \0\n"])
def test_a_git_file_that_leads_nowhere_means_no_branch(plates, git):
    (plates.folder / ".git").rmdir()
    (plates.folder / ".git").write_text(git)
    assert "git_branch" not in send(plates)


def test_a_detached_head_is_shown_by_its_commit(plates):
    (plates.folder / ".git" / "HEAD").write_text("0123456789abcdef0123456789abcdef01234567\n")
    assert send(plates)["git_branch"] == "0123456"


def test_names_that_never_end_are_cut(plates):
    (plates.folder / ".git" / "HEAD").write_text("ref: refs/heads/" + "b" * 200_000)
    event = send(plates, hook_event_name="PreToolUse", tool_name="T" * 200_000)
    assert (event["git_branch"], event["tool_name"]) == ("b" * 200, "T" * 200)


@pytest.mark.parametrize("name", ["HEAD", "gitdir"])
def test_of_a_git_file_without_an_end_only_its_beginning_is_read(plates, tmp_path, name):
    head = plates.folder / ".git" / "HEAD"
    if name == "gitdir":
        head.parent.rmdir()
        head.parent.write_text(f"gitdir: {tmp_path}\n")
        head = tmp_path / "HEAD"
    head.write_text("ref: refs/heads/" + "b" * 300)
    os.truncate(head, 8 << 30)  # bytes; the disk has a few of them
    assert send(plates)["git_branch"] == "b" * 200


def test_a_git_file_of_a_worktree_without_an_end_leads_nowhere(plates):
    (plates.folder / ".git").rmdir()
    (plates.folder / ".git").write_text("gitdir: /nowhere")
    os.truncate(plates.folder / ".git", 8 << 30)
    assert "git_branch" not in send(plates)


# ---- the verdict of the others -----------------------------------------------


def test_a_stop_that_a_machine_blocked_is_not_a_stop(plates):
    plates.loop(frame(max=5))
    plates.argv = [*plates.argv[:-1], "idle,plates"]
    stop = plates.stop("Hm.")
    assert stop.exit_code == 2
    assert stop.answer["decision"] == "block"
    assert plates.stop(DONE).allowed
    assert [event["event_type"] for event in reported(plates)] == ["stop_blocked", "stop"]


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_a_stop_with_a_paused_loop_is_reported_as_one(plates, group):
    plates.argv = [*plates.argv[:-1], "idle,ralph,plates"]
    plates.as_agent(group, "start", "Work.", session="mine").check_returncode()
    plates.as_agent(group, "pause").check_returncode()
    working = {"background_tasks": [{"id": "a", "type": "subagent", "status": "running"}]}
    for fields in ({}, {"session_id": "another"}, working, {"error": "overloaded"}):
        assert plates.stop("Hm.", **fields).allowed
    plates.as_agent(group, "resume").check_returncode()
    assert not plates.stop("Hm.").allowed
    kinds = ["stop_paused", "stop", "stop", "stop", "stop_blocked"]
    assert [event["event_type"] for event in reported(plates)] == kinds


def test_a_disabled_hook_reports_nothing(plates):
    plates.env["TAILHOOK_DISABLE"] = "1"
    assert send(plates) is None


def test_if_nothing_can_be_written_the_answer_is_the_same_and_an_error_is_printed(plates):
    plates.loop(frame(max=5))
    plates.argv = [*plates.argv[:-1], "idle,plates"]
    plates.env["XDG_STATE_HOME"] = "/proc/nowhere"
    stop = plates.stop("Hm.")
    assert (stop.exit_code, stop.answer["decision"]) == (2, "block")
    assert stop.stderr.splitlines()[-1].startswith("tailhook: plates: ")


# ---- the spool ---------------------------------------------------------------


def test_the_spool_is_the_users_alone(plates):
    send(plates)
    assert spool(plates).stat().st_mode & 0o777 == 0o600
    assert spool(plates).parent.stat().st_mode & 0o777 == 0o700


def test_a_spool_that_is_a_link_is_not_written_to(plates, tmp_path):
    spool(plates).parent.mkdir(parents=True)
    target = tmp_path / "target"
    target.write_text("")
    spool(plates).symlink_to(target)
    stop = plates.hook(json.dumps(plates.payload()).encode(), read=False)
    assert (stop.exit_code, stop.stdout, target.read_text()) == (0, "", "")
    assert stop.stderr.startswith("tailhook: plates: ")


@pytest.mark.one_form
def test_64_hooks_at_once_report_64_whole_events(plates):
    payload = plates.home / "payload.json"
    payload.write_text(json.dumps(plates.payload(hook_event_name="PostToolUse", tool_name="T")))
    hooks = []
    for _ in range(64):
        with payload.open("rb") as stdin:
            hooks.append(subprocess.Popen(plates.argv, env=plates.env, cwd=plates.folder, stdin=stdin))
    assert [hook.wait(HANGS_S) for hook in hooks] == [0] * 64
    assert len({event["event_id"] for event in reported(plates)}) == 64


@pytest.mark.one_form
def test_a_full_spool_gets_another_name_and_loses_nothing(plates):
    send(plates)
    with spool(plates).open("a") as out:
        out.write(" " * (16 << 20) + "\n")
    plates.hook(json.dumps(plates.payload()).encode(), read=False)
    [aside] = spool(plates).parent.glob("events.*")
    assert not spool(plates).exists()
    assert send(plates)["event_type"] == "stop"
    assert Counter(aside.read_text().split()).total() == 2


@pytest.mark.one_form
def test_a_spool_that_is_full_after_the_clock_was_set_back_comes_behind_those_before(plates):
    send(plates)
    in_an_hour = time.time_ns() + 3600 * 10**9
    for name in (f"events.{in_an_hour}", "events.5", "events.tmp", "events-id"):
        (spool(plates).parent / name).write_text("")
    with spool(plates).open("a") as out:
        out.write(" " * (16 << 20) + "\n")
    plates.hook(json.dumps(plates.payload()).encode(), read=False)
    aside = sorted(spool(plates).parent.glob("events.*[0-9]"), key=lambda path: int(path.suffix[1:]))
    assert [path.stat().st_size > 16 << 20 for path in aside] == [False, False, True]


# ---- the daemon --------------------------------------------------------------


@pytest.fixture
def runtime(plates, tmp_path):
    """Return the folder of the daemon's sockets, short enough for a socket's address."""
    folder = tmp_path / "run"
    (folder / "tailhook").mkdir(parents=True)
    plates.env["XDG_RUNTIME_DIR"] = str(folder)
    return folder / "tailhook"


def test_the_daemon_is_woken_after_the_event_is_in_the_spool(plates, runtime):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        daemon.bind(str(runtime / "poke"))
        daemon.settimeout(10)
        assert send(plates)
        assert daemon.recv(10) == b"!"


def test_a_daemon_that_hangs_keeps_no_hook_waiting(plates, runtime):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        daemon.bind(str(runtime / "poke"))
        for _ in range(30):  # more than the system keeps for a process that does not read
            assert send(plates)
    assert len(reported(plates)) == 30
