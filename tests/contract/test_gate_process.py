"""The gate machine as a whole process: it reads edits and runs from a transcript, and blocks once for each edit."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.host import assistant

from tailhook.hook.edits_and_commands import MAX_EDITS

RULES = [{"edited": ["*.py"], "ran": "pytest"}]
uses = iter(range(10**6))


@pytest.fixture
def gate(project):
    """Return a project with a rule and a hook for the gate."""
    project.argv = [*project.argv[:-1], "gate"]
    configure(project, RULES)
    return project


def configure(project, rules):
    path = project.folder / ".claude" / "tailhook.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"gate": {"rules": rules}}))


def use(project, name, is_error=False, has_result=True, is_sub_agents=False, **given):
    """Append a use of a tool and its result to the transcript."""
    number = f"toolu_{next(uses)}"
    block = {"type": "tool_use", "id": number, "name": name, "input": given}
    about = {"isSidechain": is_sub_agents}
    project.write({"type": "assistant", "message": {"role": "assistant", "id": number, "content": [block]}, **about})
    if has_result:
        result = {"type": "tool_result", "tool_use_id": number, "content": "…", "is_error": is_error}
        project.write({"type": "user", "message": {"role": "user", "content": [result]}, **about})


def edit(project, path="src/app.py", name="Edit", **fields):
    key = "notebook_path" if name == "NotebookEdit" else "file_path"
    use(project, name, **{key: str(project.folder / path)}, **fields)


def run(project, command="pytest -q", **fields):
    use(project, "Bash", command=command, **fields)


def blocked(stop):
    assert stop.exit_code == 0
    assert stop.allowed or stop.answer["decision"] == "block"
    return not stop.allowed


def test_an_edit_without_a_run_is_blocked_once(gate):
    edit(gate)
    stop = gate.stop("Done.")
    assert blocked(stop)
    assert "`pytest`: it has not run successfully since src/app.py was edited." in stop.answer["reason"]
    assert gate.stop("Done.").allowed
    edit(gate)
    assert blocked(gate.stop("Done."))


def test_a_successful_run_after_the_edit_opens_the_gate(gate):
    edit(gate)
    run(gate)
    assert gate.stop("Done.").allowed
    edit(gate)
    assert blocked(gate.stop("Done."))


def compact(project, again=0):
    """Give the records uuids, write the first ones again, as a second compaction does, and then its own record."""
    lines = [
        {**json.loads(line), "uuid": f"u{n}"} for n, line in enumerate(project.transcript.read_text().splitlines())
    ]
    project.transcript.write_text("")
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": f"c{len(lines)}"}
    project.write(*lines, *lines[:again], boundary, assistant("Ready.", id="ready"))


def type_command(project, command="pytest"):
    project.write({"type": "user", "message": {"role": "user", "content": f"<bash-input>{command}</bash-input>"}})


@pytest.mark.parametrize("again", [0, 2], ids=["once", "twice"])
@pytest.mark.parametrize(
    ("steps", "blocks"),
    [((edit, run), False), ((run, edit), True), ((type_command, edit), True), ((edit, type_command), False)],
    ids=["checked", "not checked", "typed before", "typed after"],
)
def test_what_a_second_compaction_wrote_again_happened_before(gate, steps, blocks, again):
    for step in steps:
        step(gate)
    compact(gate, again)
    assert blocked(gate.stop("Ready.")) is blocks
    edit(gate)
    assert blocked(gate.stop("Done."))


@pytest.mark.parametrize("name", ["Edit", "MultiEdit", "Write", "NotebookEdit"])
def test_each_tool_that_edits_counts(gate, name):
    edit(gate, name=name)
    assert blocked(gate.stop("Done."))


@pytest.mark.parametrize(
    "prepare",
    [
        lambda project: edit(project, is_error=True),
        lambda project: edit(project, has_result=False),
        lambda project: edit(project, "README.md"),
        lambda project: use(project, "Read", file_path=str(project.folder / "app.py")),
        lambda project: project.write(assistant("I edited app.py.")),
        lambda project: None,
    ],
    ids=["failed", "without a result", "another file", "only read", "only said", "nothing"],
)
def test_what_is_not_an_edit_blocks_nothing(gate, prepare):
    run(gate)
    prepare(gate)
    assert gate.stop("Done.").allowed


def test_a_run_that_failed_does_not_count(gate):
    edit(gate)
    run(gate, is_error=True)
    assert blocked(gate.stop("Done."))


@pytest.mark.parametrize(
    "command",
    ["pytest | tail -20", "pytest || true", "pytest; echo done", "pytest 2>&1 | grep fail", "pytest & wait",
     "if pytest; then echo ok; fi", "! pytest", "pytest; echo $?", "bash -c 'pytest | tail'"],
)  # fmt: skip
def test_a_run_whose_exit_code_is_masked_is_asked_for_once(gate, command):
    edit(gate)
    run(gate, command)
    stop = gate.stop("Done.")
    assert blocked(stop)
    assert f"`{command}` does not count: " in stop.answer["reason"]
    assert ". Run `pytest` in a tool call of its own" in stop.answer["reason"]
    assert gate.stop("Done.", stop_hook_active=True).allowed
    run(gate, command)
    assert gate.stop("Done.").allowed


@pytest.mark.parametrize(
    "command",
    [
        "pytest && echo ok",
        "set -o pipefail; pytest | tail",
        "cd x && pytest",
        "pytest -q 2>&1",
        "podman run image pytest",
    ],
)
def test_a_run_whose_exit_code_is_the_lines_opens_the_gate(gate, command):
    edit(gate)
    run(gate, command)
    assert gate.stop("Done.").allowed


def test_a_run_without_a_result_counts(gate):
    edit(gate)
    run(gate, has_result=False)
    assert gate.stop("Done.").allowed


def test_a_turn_that_was_blocked_before_is_let_go(gate):
    edit(gate)
    assert gate.stop("Done.", stop_hook_active=True).allowed


def test_without_rules_or_without_its_name_it_is_not_asked(gate):
    edit(gate)
    for rules in ([], [{"edited": ["*.py"]}], "x"):
        configure(gate, rules)
        assert gate.stop("Done.").allowed
    configure(gate, RULES)
    gate.argv = [*gate.argv[:-1], "idle,ralph,triage"]
    assert gate.stop("Done.").allowed


def test_it_is_not_a_default_machine(gate):
    gate.argv = gate.argv[:-1]
    edit(gate)
    assert gate.stop("Done.").allowed


@pytest.mark.parametrize("is_enabled", [False, True])
def test_a_clone_does_not_switch_the_gate_on_but_its_user_does(gate, is_enabled):
    gate.argv = [*gate.argv[:-1], "--exit", "0", "--announce"]  # as `tailhook install` writes it
    machines = {"hook": {"machines": ["idle", "gate"]}}
    (gate.folder / ".claude" / "tailhook.json").write_text(json.dumps({**machines, "gate": {"rules": RULES}}))
    if is_enabled:
        path = gate.home / ".config" / "tailhook" / "config.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(machines))
    edit(gate)
    assert blocked(gate.stop("Done.")) is is_enabled


@pytest.mark.parametrize("path", ["/nowhere/t.jsonl", "/tmp", "/dev/null", ""])
def test_a_transcript_that_cannot_be_read_blocks_nothing(gate, path):
    edit(gate)
    stop = gate.stop("Done.", transcript_path=path)
    assert stop.allowed
    assert stop.stderr == ""


def test_broken_lines_and_odd_records_are_passed_over(gate):
    edit(gate)
    for line in ('{"type":"assistant","message":{"content":[{"type":"tool_use"', '{"message":[{"type":"tool_use"}]}'):
        with gate.transcript.open("a") as out:
            out.write(f"{line}\n")
    for content in ([{"type": "tool_use", "input": 5}], [{"type": "tool_use", "name": [], "id": {}, "input": {}}], [5]):
        gate.write({"type": "assistant", "message": {"content": content}})
    assert blocked(gate.stop("Done."))


def test_a_forked_or_resumed_session_is_not_blocked_again_for_the_same_edits(gate):
    edit(gate)
    assert blocked(gate.stop("Done.", session_id="one"))
    assert gate.stop("Done.", session_id="fork").allowed
    edit(gate)
    assert blocked(gate.stop("Done.", session_id="fork"))


def forget(state):
    """Leave the state as a thousand newer blocks of other sessions do."""
    state.write_text(json.dumps([f"{number:016x}" for number in range(1000)]))


def replace_by_folder(state):
    state.unlink()
    state.mkdir()


@pytest.mark.parametrize("change", [forget, lambda state: state.write_text("{"), replace_by_folder, os.unlink])
def test_whatever_other_sessions_leave_in_the_projects_state_a_turn_is_blocked_once(gate, change):
    edit(gate)
    assert blocked(gate.stop("Done.", stop_hook_active=False))
    (state,) = (gate.home / ".local/state/tailhook").glob("*.gate")
    change(state)
    assert gate.stop("Done.", stop_hook_active=True).allowed


def test_two_sessions_that_take_turns_in_a_project_are_each_blocked_once(gate):
    """A host may not send whether it was blocked in this turn."""
    blocks = []
    for session in ("a", "b", "a", "b"):
        gate.transcript = gate.home / f"{session}.jsonl"
        if len(blocks) < 2:
            edit(gate)
        stop = gate.stop("Done.", session_id=session, transcript_path=str(gate.transcript), stop_hook_active=None)
        blocks.append(blocked(stop))
    assert blocks == [True, True, False, False]


def test_two_projects_have_states_of_their_own_and_old_ones_are_removed(gate):
    folder = gate.home / ".local/state/tailhook"
    folder.mkdir(parents=True, mode=0o700)
    old, new, other = folder / "1.gate", folder / "2.gate", folder / "3.memory"
    for path in (old, new, other):
        path.write_text('["e"]')
    for path in (old, other):
        os.utime(path, (1e9, 1e9))
    edit(gate)
    assert blocked(gate.stop("Done."))
    assert (old.exists(), new.exists(), other.exists()) == (False, True, True)
    assert len(list(folder.glob("*.gate"))) == 2


def test_rules_that_a_block_does_not_name_are_asked_for_by_a_later_one(gate):
    configure(gate, [{"edited": ["*.py"], "ran": f"check{number}"} for number in range(7)])
    edit(gate)
    reason = gate.stop("Done.").answer["reason"]
    assert "`check4`" in reason
    assert reason.endswith("- and 2 more, which a later stop names")
    assert gate.stop("Done.", stop_hook_active=True).allowed
    reason = gate.stop("Done.").answer["reason"]
    assert "`check5`" in reason
    assert "`check6`" in reason
    assert gate.stop("Done.").allowed


def test_a_state_of_an_older_version_is_read(gate):
    edit(gate)
    assert blocked(gate.stop("Done."))
    (state,) = (gate.home / ".local/state/tailhook").glob("*.gate")
    records = map(json.loads, gate.transcript.read_text().splitlines())
    state.write_text(json.dumps([record["message"]["id"] for record in records if record["type"] == "assistant"]))
    assert gate.stop("Done.").allowed


# ---- commands in the background, as Claude Code 2.1.222 writes them ---------------


def notify(project, status, summary):
    """Write the notification that the last command has ended."""
    records = [json.loads(line) for line in project.transcript.read_text().splitlines()]
    use_id = next(r["message"]["id"] for r in reversed(records) if r["type"] == "assistant")
    text = (
        f"<task-notification>\n<task-id>b0xt7qndq</task-id>\n<tool-use-id>{use_id}</tool-use-id>\n"
        f"<status>{status}</status>\n<summary>{summary}</summary>\n</task-notification>"
    )
    project.write({"type": "queue-operation", "operation": "enqueue", "content": text})


@pytest.mark.parametrize(
    ("status", "summary", "is_blocked"),
    [
        ("completed", 'Background command "pytest" completed (exit code 0)', False),
        ("completed", 'Background command "pytest (exit code 1)" completed (exit code 0)', False),
        ("completed", 'Background command "pytest" completed (exit code 1)', True),
        ("failed", 'Background command "pytest" failed with exit code 1', True),
        ("killed", 'Background command "pytest" was stopped', True),
        ("", "?", False),
    ],
)
def test_a_command_in_the_background_counts_until_it_is_known_to_have_failed(gate, status, summary, is_blocked):
    edit(gate)
    run(gate, run_in_background=True)
    notify(gate, status, summary)
    assert blocked(gate.stop("Done.")) is is_blocked


def test_a_command_in_the_background_that_has_not_ended_counts(gate):
    edit(gate)
    run(gate, run_in_background=True)
    assert gate.stop("Done.").allowed


# ---- commands that a person runs, as Claude Code 2.1.329 writes them ---------------


def run_by_person(project, command="pytest", as_blocks=False, stdout="1 passed", stderr=""):
    """Write what a person's `!command` leaves: the command and its output are messages of the user."""
    for text in (
        f"<bash-input>{command}</bash-input>",
        f"<bash-stdout>{stdout}</bash-stdout><bash-stderr>{stderr}</bash-stderr>",
    ):
        content = [{"type": "text", "text": text}] if as_blocks else text
        project.write({"type": "user", "message": {"role": "user", "content": content}})


@pytest.mark.parametrize("as_blocks", [False, True])
def test_a_command_of_a_person_counts(gate, as_blocks):
    edit(gate)
    edit(gate, "README.md")
    run_by_person(gate, as_blocks=as_blocks)
    edit(gate, "README.md")
    assert gate.stop("Done.").allowed
    edit(gate)
    assert blocked(gate.stop("Done."))


@pytest.mark.parametrize("stderr", ["", "1 failed\n"])
def test_a_command_of_a_person_that_failed_does_not_count(gate, stderr):
    edit(gate)
    run_by_person(gate, stdout="", stderr=stderr)
    run_by_person(gate, "ls")
    assert blocked(gate.stop("Done."))


def test_only_the_output_behind_a_command_of_a_person_shows_whether_it_failed(gate):
    edit(gate)
    run_by_person(gate, stdout="", stderr="1 failed\n")
    run_by_person(gate)
    run_by_person(gate, "ls x", stdout="", stderr="no such file\n")
    assert gate.stop("Done.").allowed


@pytest.mark.parametrize("command", ["ls", "echo pytest", "pytest</bash-input> no", ""])
def test_another_command_of_a_person_does_not_count(gate, command):
    edit(gate)
    run_by_person(gate, command)
    assert blocked(gate.stop("Done.")) is ("<" not in command)


def test_each_edit_is_compared_with_the_commands_after_it(gate):
    configure(gate, [{"edited": ["*.py"], "ran": "pytest"}, {"edited": ["*.js"], "ran": "npm test"}])
    edit(gate, "a.js")
    run_by_person(gate, "npm test")
    edit(gate, "a.py")
    run_by_person(gate, "npm run x")
    stop = gate.stop("Done.")
    assert blocked(stop)
    assert "npm test" not in stop.answer["reason"]


def test_words_that_look_like_a_person_s_command_do_not_count(gate):
    edit(gate)
    text = "<bash-input>pytest</bash-input>"
    gate.write(assistant(text))
    use(gate, "Read", file_path=text)
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": text}]}
    for record in (
        {"type": "user", "message": {"role": "user", "content": [result, 5]}},
        {"type": "user", "message": {"role": "user", "content": f"I typed {text}"}},
        {"type": "user", "message": text},
        {"type": "queue-operation", "operation": "enqueue", "content": text},
        [text],
    ):
        gate.write(record)
    with gate.transcript.open("a") as out:
        out.write(f'{{"type":"user","message":{{"content":"{text}"\n')
    assert blocked(gate.stop("Done."))


# ---- sub-agents ------------------------------------------------------------------


def test_what_a_sub_agent_does_counts_if_it_is_in_the_transcript(gate):
    """Older versions of Claude Code write a sub-agent's records there, newer ones into files of their own."""
    edit(gate, is_sub_agents=True)
    assert blocked(gate.stop("Done."))
    edit(gate)
    run(gate, is_sub_agents=True)
    assert gate.stop("Done.").allowed


# ---- folders ---------------------------------------------------------------------


@pytest.fixture
def in_folders(gate):
    """The gate with a rule for a pattern with a folder."""
    configure(gate, [{"edited": ["src/**"], "ran": "pytest"}])
    return gate


def edit_at(project, path):
    use(project, "Edit", file_path=str(path))


def test_a_project_that_is_reached_through_a_link_is_the_same(in_folders):
    link = in_folders.home / "link"
    link.symlink_to(in_folders.folder)
    (in_folders.folder / "src").mkdir()
    edit_at(in_folders, link / "src/app.py")
    stop = in_folders.stop("Done.")
    assert blocked(stop)
    assert "`pytest`: it has not run successfully since src/app.py was edited." in stop.answer["reason"]
    edit_at(in_folders, in_folders.folder / "src/app.py")
    assert blocked(in_folders.stop("Done.", cwd=str(link)))


def test_a_worktree_outside_the_project_is_the_project(in_folders):
    tree = in_folders.home / "tree"
    (tree / "lib" / "deep").mkdir(parents=True)
    (tree / ".git").write_text("gitdir: elsewhere")
    in_folders.env["CLAUDE_PROJECT_DIR"] = str(in_folders.folder)
    edit_at(in_folders, tree / "src/app.py")
    assert blocked(in_folders.stop("Done.", cwd=str(tree / "lib" / "deep")))


@pytest.mark.parametrize("path", ["src/../src/./a.py", "./src/a.py"])
def test_dots_in_a_path_are_read(in_folders, path):
    edit_at(in_folders, f"{in_folders.folder}/{path}")
    assert blocked(in_folders.stop("Done."))


@pytest.mark.parametrize("path", ["lib/src/a.py", "src/../a.py", "../src/a.py"])
def test_another_folder_is_not_the_pattern_s(in_folders, path):
    edit_at(in_folders, f"{in_folders.folder}/{path}")
    assert in_folders.stop("Done.").allowed


def test_an_absolute_pattern_matches_files_outside_the_project(gate):
    configure(gate, [{"edited": [f"{gate.home}/shared/"], "ran": "pytest"}])
    edit_at(gate, gate.home / "shared/a/b.py")
    assert blocked(gate.stop("Done."))


# ---- the state -------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "{}", "[5]", '["', "\x00"])
def test_a_broken_state_counts_as_none_and_is_replaced(gate, text):
    edit(gate)
    assert blocked(gate.stop("Done."))
    (state,) = (gate.home / ".local/state/tailhook").glob("*.gate")
    state.write_text(text)
    assert blocked(gate.stop("Done."))
    assert gate.stop("Done.").allowed


def test_a_state_that_cannot_be_saved_lets_the_agent_stop(gate):
    edit(gate)
    assert blocked(gate.stop("Done."))
    (state,) = (gate.home / ".local/state/tailhook").glob("*.gate")
    state.unlink()
    state.mkdir()
    stop = gate.stop("Done.")
    assert stop.allowed
    assert "the state could not be saved (" in stop.stderr


@pytest.mark.one_form
def test_of_many_hooks_at_once_one_blocks(gate):
    edit(gate)
    with ThreadPoolExecutor(16) as pool:
        stops = list(pool.map(lambda _: gate.stop("Done."), range(16)))
    assert sum(map(blocked, stops)) == 1


def test_sub_agents_and_other_events_are_not_asked(gate):
    edit(gate)
    assert gate.stop("Done.", agent_id="a").allowed
    assert gate.stop("Done.", hook_event_name="PreToolUse").allowed


def test_a_large_transcript_is_read_from_its_end(gate):
    edit(gate)
    with gate.transcript.open("r+b") as out:
        os.truncate(out.fileno(), 0)
        out.seek(5 << 30)
        out.write(b"\n")
    edit(gate)
    assert blocked(gate.stop("Done."))


@pytest.mark.parametrize(("newer", "is_blocked"), [(MAX_EDITS - 1, True), (MAX_EDITS, False)])
def test_an_unchecked_edit_counts_if_it_is_among_the_newest_thousand_that_could_match(gate, newer, is_blocked):
    """Beyond them the agent may stop, and the log does not claim that everything was checked."""
    edit(gate)
    for number in range(newer):
        edit(gate, f"notes/{number}.md", new_string='Run "app.py".')
    gate.env["TAILHOOK_LOG"] = str(gate.home / "log")
    assert blocked(gate.stop("Done.")) is is_blocked
    log = (gate.home / "log").read_text()
    assert ("not run since an edit" if is_blocked else "no unchecked edit was found") in log


def test_an_edit_that_cannot_match_is_not_one_of_the_thousand(gate):
    edit(gate)
    for number in range(MAX_EDITS):
        edit(gate, f"notes/{number}.md", new_string="a")
    assert blocked(gate.stop("Done."))
