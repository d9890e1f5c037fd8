"""The gate machine in whole sessions of Claude Code: the host's report of a line, and gate's decision."""

import json

from model import Model, bash
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


def test_a_run_in_a_pipe_is_asked_for_once(claude):
    claude.tailhook("install", "--yes", "--with", "gate")
    config = claude.project / ".claude" / "tailhook.json"
    config.parent.mkdir(exist_ok=True)
    config.write_text(json.dumps({"gate": {"rules": [{"edited": ["*.txt"], "ran": "true"}]}}))
    edit = [
        {"type": "tool_use", "name": "Write", "input": {"file_path": str(claude.project / "a.txt"), "content": "x"}}
    ]

    def after(results, words):
        """Answer when the host has written so many results: it writes some 70 ms late, and this model is quick."""

        def are_written():
            files = claude.home.glob(".claude/projects/*/*.jsonl")
            return sum(file.read_text().count('"type":"tool_result"') for file in files) >= results

        return lambda _: wait_until(are_written) and words

    with Model(edit, bash("true | tail -3"), after(2, "Done."), bash("true"), after(3, "Checked.")) as model:
        claude.run(model)
    said = [one.said for one in model.requests]
    assert ["its exit code is that of `tail`" in words for words in said].count(True) == 1
    assert len(said) == 5
