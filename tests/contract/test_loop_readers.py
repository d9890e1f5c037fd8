"""A loop that a sub-agent starts: the main agent has not read the goal, so a hook still gives it."""

import json

import pytest

CALL = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "cd x && tailhook {} start Go."}}
OTHER = {"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {"command": "npm start"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}


def transcript(*blocks):
    """Return a sub-agent's transcript with one record for each content block."""
    kinds = ("user" if block is RESULT else "assistant" for block in blocks)
    records = [{"type": kind, "message": {"content": [block]}} for kind, block in zip(kinds, blocks, strict=True)]
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.mark.parametrize("group", ["loop", "ralph"])
@pytest.mark.parametrize(
    ("blocks", "is_owed"),
    [
        ([CALL], True),
        ([CALL, OTHER], True),
        ([CALL, RESULT], False),
        ([OTHER], False),
        ([], False),
        ([{"type": "text", "text": "tailhook loop start"}], False),
    ],
)
def test_the_main_agent_reads_the_goal_at_its_first_block_if_a_sub_agent_started_the_loop(
    project, group, blocks, is_owed
):
    folder = project.home / ".claude/projects/-p/mine/subagents"
    folder.mkdir(parents=True)
    (folder / "agent-1.jsonl").write_text(transcript(*blocks).replace("{}", group))
    start = ["start", "--completion-promise=G"] if group == "ralph" else ["start"]
    assert project.as_agent(group, *start, "Go.", session="mine").returncode == 0
    project.argv = [*project.argv[:-1], "ralph" if group == "ralph" else "idle"]
    reason = project.stop("Hm.").answer["reason"]
    assert ("To end the loop, write" in reason) is is_owed, reason


@pytest.mark.parametrize(("thread", "is_owed"), [("mine", False), ("sub", True), (None, False)])
def test_a_sub_agent_of_codex_is_known_by_its_thread(project, thread, is_owed):
    env = {"CODEX_SESSION_ID": "mine", **({"CODEX_THREAD_ID": thread} if thread else {})}
    assert project.tailhook("loop", "start", "Go.", **env).returncode == 0
    reason = project.stop("Hm.").answer["reason"]
    assert ("Goal: Go." in reason) is is_owed
