"""The ralph machine in whole sessions of Claude Code."""

from model import Model, bash

PROMPT = "Make the tests pass."


def start(*flags: str) -> list[dict]:
    """Return the agent's message that starts a loop."""
    return bash(f"tailhook ralph start {' '.join(flags)} '{PROMPT}'")


def test_the_prompt_comes_back_until_the_promise_is_kept(installed):
    answers = [
        start("--completion-promise", "'ALL GREEN'"),
        "Begun.",
        "In the end I write:\n\n```\n<promise>ALL GREEN</promise>\n```",
        "Not yet `<promise>ALL GREEN</promise>`.",
        bash("echo from the tool"),
        "Tested. <promise>SOMETHING ELSE</promise>",
        "Done. <promise>ALL GREEN</promise>",
    ]
    with Model(*answers) as model:
        session = installed.run(model)
    assert len(model.requests) == len(answers)
    assert all(PROMPT in model.requests[at].said for at in (2, 3, 4, 6))
    assert session.result["result"] == answers[-1]
    assert not (installed.project / ".claude" / "ralph-loop.local.md").exists()


def test_a_long_prompt_comes_back_whole(installed):
    prompt = " ".join(map(str, range(4000)))
    (installed.project / "PROMPT.md").write_text(prompt)
    installed.tailhook("ralph", "start", "--completion-promise", "OK", "--prompt-file", "PROMPT.md")
    with Model("One.", "<promise>OK</promise>") as model:
        installed.run(model)
    assert [prompt in request.said for request in model.requests] == [False, True]


def test_it_ends_at_its_last_iteration_and_reports_that(installed, stops):
    with Model(start("--max-iterations", "3"), "One.", "Two.", "Three.") as model:
        installed.run(model)
    assert [stop["last_assistant_message"] for stop in stops()] == ["One.", "Two.", "Three."]
    assert not (installed.project / ".claude" / "ralph-loop.local.md").exists()


def test_another_session_of_the_project_is_free_to_stop(installed):
    def meanwhile(_):
        with Model("I am another session.") as another:
            installed.run(another)
        assert len(another.requests) == 1
        return "Two."

    with Model(start("--completion-promise", "OK"), "One.", meanwhile, "<promise>OK</promise>") as model:
        installed.run(model)
    assert len(model.requests) == 4


def test_the_prompt_survives_a_compaction(installed):
    with Model(start("--max-iterations", "9"), "One.", bash("echo interrupted")) as model:
        session = installed.run(model, "--max-turns", "3")
    with Model() as model:
        installed.run(model, prompt="/compact", resume=session.id)
    with Model(bash("tailhook ralph cancel"), "Cancelled.") as model:
        installed.run(model, prompt="Go on.", resume=session.id)
    assert PROMPT in model.requests[0].prompted
    assert len(model.requests) == 2
