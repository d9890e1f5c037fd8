"""The gate machine in whole sessions of Claude Code: the host's report of a line, and gate's decision."""

import json

from interactive import ENTER, session
from model import Model, bash
from support.daemon import daemon_in
from support.host import wait_until

from tailhook.machines.exits import EXCUSED_ENDS
from tailhook.machines.rules import MAX_STEPS
from tailhook.machines.shell_line import ShellLine
from tailhook.machines.shell_words import Budget

# In each line, `false` fails.
LINES = [
    "false", "false && echo x", "cd / && false", "(false)", "x=$(false)", "set -o pipefail; false | tail -3",
    "false; exit $?", "bash -c 'false && grep x y'", "false | tail -3", "false; echo $?", "false || true", "false &",
    "! false", "if false; then echo; fi", "set -o pipefail; false | grep x", "false && git diff | grep x",
    "false && (grep x y)",
    *(f"false && {' '.join(end)} x" for end in EXCUSED_ENDS),
]  # fmt: skip

# What a person types behind `!`, and whether it fails.
TYPED = [
    ("true", False), ("echo x", False), ("echo x >&2", False), ("printf ' '", False),
    ("false", True), ("echo x; false", True), ("echo x >&2; false", True), ("cd /missing", True),
]  # fmt: skip


def test_a_line_that_the_host_does_not_report_as_failed_is_never_believed(claude):
    with Model(*map(bash, LINES), "Done.") as model:
        session = claude.run(model)
    blocks = [
        block
        for line in session.transcript.read_text().splitlines()
        for block in (json.loads(line).get("message") or {}).get("content") or ()
        if isinstance(block, dict)
    ]
    lines = {block["id"]: block["input"]["command"] for block in blocks if block.get("type") == "tool_use"}
    failed = {lines[block["tool_use_id"]]: block["is_error"] for block in blocks if block.get("type") == "tool_result"}
    assert set(failed) == set(LINES)
    believed = {line for line in LINES if ShellLine(line, Budget(MAX_STEPS)).outcome_of(["false"])[0] == "run"}
    assert {line for line in believed if not failed[line]} == set()
    assert {line for line in LINES if failed[line]} == believed


def test_only_a_failed_command_of_a_person_has_an_empty_stdout(claude):
    claude.env["TAILHOOK_NO_AUTOSTART"] = "1"
    claude.idle_notification_ms = 60_000
    claude.tailhook("install", "--yes", "--with", "plates")

    def outputs():
        files = claude.home.glob(".claude/projects/*/*.jsonl")
        records = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        said = [one["message"]["content"] for one in records if one["type"] == "user"]
        return [words for words in said if isinstance(words, str) and words.startswith("<bash-stdout>")]

    with daemon_in(claude.home) as daemon, Model() as model:
        daemon.start()
        with session(claude, daemon, model) as host:
            for number, (line, _) in enumerate(TYPED, 1):
                host.type("!", line, ENTER)
                wait_until(lambda number=number: len(outputs()) == number)
                host.comes_to("running", "idle")
    failed = [words.startswith("<bash-stdout></bash-stdout>") for words in outputs()]
    assert failed == [fails for _, fails in TYPED]


def test_a_run_in_a_pipe_is_asked_for_once(claude):
    claude.tailhook("install", "--yes", "--with", "gate")
    config = claude.project / ".claude" / "tailhook.json"
    config.parent.mkdir(exist_ok=True)
    config.write_text(json.dumps({"gate": {"rules": [{"edited": ["*.txt"], "ran": "true"}]}}))
    edit = [
        {"type": "tool_use", "name": "Write", "input": {"file_path": str(claude.project / "a.txt"), "content": "x"}}
    ]
    done, checked = claude.once_written(2, "Done."), claude.once_written(3, "Checked.")
    with Model(edit, bash("true | tail -3"), done, bash("true"), checked) as model:
        claude.run(model)
    said = [one.said for one in model.requests]
    assert ["its exit code is that of `tail`" in words for words in said].count(True) == 1
    assert len(said) == 5
