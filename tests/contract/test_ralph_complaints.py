"""Complaints of users of ralph loops, each a test through the whole process.  (docs/machines/ralph.md)"""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from support.host import HANGS_S, PROMPT, assistant, in_time, ralph_page
from support.pool import Pool, set_constants

KEPT = "<promise>TESTS GREEN</promise>"


def goes_on(stop):
    """Return whether the agent must continue with the prompt."""
    return stop.exit_code == 0 and stop.answer["reason"] == PROMPT


def is_kept(stop, path):
    """Return whether the loop ended because of its promise."""
    return stop.allowed and "the promise is kept" in stop.stderr and not path.exists()


@pytest.fixture
def ralph(project):
    """Run `tailhook ralph …`; `session` is the agent's that runs it."""

    return partial(project.as_agent, "ralph")


@pytest.mark.parametrize(
    ("owner", "session"), [("mine", "other"), ('""', "other"), ('""', ""), ("", ""), ("mine", ""), ("claim", "")]
)
def test_complaint_01_another_session_is_captured_even_when_ids_are_blank(project, owner, session):
    path = project.ralph(session_id=owner)
    stop = project.stop(KEPT, session_id=session)
    assert stop.allowed
    assert path.read_text() == ralph_page(session_id=owner)


def test_complaint_02_a_second_loop_overwrites_the_first(project, ralph):
    assert ralph("start", "One.").returncode == 0
    done = ralph("start", "Two.")
    assert done.returncode == 1
    assert "--force" in done.stderr
    assert "One." in (project.folder / ".claude/ralph-loop.local.md").read_text()
    assert ralph("start", "--force", "Two.").returncode == 0
    assert "Two." in (project.folder / ".claude/ralph-loop.local.md").read_text()


def test_complaint_02_of_several_loops_begun_at_once_the_first_stays(ralph):
    with ThreadPoolExecutor(4) as pool:
        begun = list(pool.map(lambda name: ralph("start", "--json", name), "ABCD"))
    (first,) = [json.loads(done.stdout)["prompt"] for done in begun if done.returncode == 0]
    assert json.loads(ralph("status", "--json").stdout)["prompt"] == first


def test_complaint_03_the_promise_is_missed_because_the_transcript_lags(project):
    project.write(assistant("Still working."))
    path = project.ralph()
    assert is_kept(project.stop(KEPT), path)


@pytest.mark.parametrize("kinds", [["thinking"], ["tool_use"], ["thinking", "tool_use"]])
def test_complaint_04_the_state_is_deleted_because_the_last_message_had_only_tool_calls_or_thinking(project, kinds):
    def think_and_call():
        for kind in kinds:
            block = {"type": kind, "thinking": KEPT, "name": "Bash", "input": {"command": KEPT}}
            project.write({"type": "assistant", "message": {"id": kind, "role": "assistant", "content": [block]}})

    project.write(assistant("Working."))
    think_and_call()
    path = project.ralph()
    assert goes_on(project.stop())
    assert path.read_text() == ralph_page(iteration=2)
    project.write(assistant(KEPT, id="later"))
    think_and_call()
    assert is_kept(project.stop(), path)


@pytest.mark.parametrize(
    "bad",
    [
        b'{"type":"assistant","message":{"con\n',
        b'{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"a \x01\x1b b"}]}}\n',
        b"\0" * 4096 + b"\n",
        b"\x01\x02\xff\n",
        b"}{\n",
    ],
)
def test_complaint_05_control_characters_or_one_bad_line_break_the_parse(project, bad):
    def write(said):
        project.write(assistant(f"a \x01 \x1b[31m \u2028 {said}"))
        with project.transcript.open("ab") as out:
            out.write(bad)

    path = project.ralph()
    write("Hm.")
    assert goes_on(project.stop())
    write(KEPT)
    assert is_kept(project.stop(), path)


@pytest.mark.parametrize("said", ["TESTS GREEN", "I will promise TESTS GREEN soon.", "promise: TESTS GREEN"])
def test_complaint_06_a_bare_mention_of_the_promise_ends_the_loop(project, said):
    project.ralph()
    assert goes_on(project.stop(said))


@pytest.mark.parametrize(
    "said",
    [
        f"```\n{KEPT}\n```",
        f"~~~~\n{KEPT}",
        f"Not `{KEPT}` yet.",
        f"Hm:\n\n    {KEPT}\n",
        f"    {KEPT}\n\nThat is what I would write.",
        f"\n\t{KEPT}",
    ],
)
def test_complaint_07_so_does_one_in_a_code_fence_or_in_backticks(project, said):
    project.ralph()
    assert goes_on(project.stop(said))


def test_complaint_08_only_the_first_of_several_tags_is_compared(project):
    path = project.ralph()
    said = f"Not <promise>A</promise>, not <promise>B</promise>, but {KEPT}, not <promise>C</promise>."
    assert is_kept(project.stop(said), path)


def test_complaint_09_white_space_in_the_stored_promise(project):
    path = project.ralph(completion_promise='"  TESTS\\n  GREEN "')
    assert is_kept(project.stop("<promise>\tTESTS GREEN\n</promise>"), path)


@pytest.mark.parametrize(
    "promise", ['say "done"', "back\\slash", "two\nlines", "it's: #done", "--- ${x} `y`", "日本 é"]
)
def test_complaint_10_quotes_backslashes_newlines_in_the_promise(project, ralph, promise):
    assert ralph("start", "--completion-promise", promise, PROMPT, session="mine").returncode == 0
    project.argv = [*project.argv[:-1], "ralph"]
    assert goes_on(project.stop("Hm."))
    stop = project.stop(f"<promise>{promise}</promise>")
    assert is_kept(stop, project.folder / ".claude/ralph-loop.local.md")


def test_complaint_11_rules_are_lost_from_the_prompt_and_iteration_in_it_is_rewritten(project):
    prompt = "Step one.\n---\niteration: 1\n---\nStep two."
    path = project.ralph(prompt)
    assert project.stop("Hm.").answer["reason"] == prompt
    assert path.read_text() == ralph_page(prompt, iteration=2)


def test_complaint_12_iteration_without_the_space_never_advances(project):
    path = project.ralph()
    path.write_text("---\niteration:1\nmax_iterations:10\n---\n" + PROMPT)
    assert "iteration 2 of 10" in project.stop("Hm.").answer["systemMessage"]
    assert "iteration 3 of 10" in project.stop("Hm.").answer["systemMessage"]
    assert path.read_text() == "---\niteration:3\nmax_iterations:10\n---\n" + PROMPT


def test_complaint_13_08_is_read_as_octal_or_as_no_number(project):
    project.ralph(iteration="08", max_iterations="010")
    for count in (9, 10):
        assert f"iteration {count} of 10" in project.stop("Hm.").answer["systemMessage"]
    assert "limit of 10" in project.stop("Hm.").stderr


@pytest.mark.parametrize(
    "words",
    [
        ["--max-iterations=3", "Make", "it", "so."],
        ["--max-iterations", "3", "Make it so."],
        ["Make", "it", "--max-iterations=3", "so."],
        ["Make", "it", "so.", "--max-iterations", "3"],
    ],
)
def test_complaint_14_a_flag_with_an_equals_sign_is_swallowed_into_the_prompt(ralph, words):
    facts = json.loads(ralph("start", "--json", *words).stdout)
    assert (facts["state"]["max_iterations"], facts["prompt"]) == ("3", "Make it so.")


def test_complaint_15_cd_or_a_worktree_loses_the_loop(project):
    project.ralph()
    below = project.folder / "src" / "deep"
    below.mkdir(parents=True)
    assert goes_on(project.stop("Hm.", cwd=str(below)))
    worktree = project.home / "worktree"
    worktree.mkdir()
    (worktree / ".git").write_text("gitdir: elsewhere")
    project.env["CLAUDE_PROJECT_DIR"] = str(project.folder)
    assert goes_on(project.stop("Hm.", cwd=str(worktree)))


@pytest.mark.parametrize("key", ["active", "iteration", "max_iterations", "completion_promise"])
def test_complaint_16_a_missing_key_means_a_silent_exit_1(project, key):
    project.ralph(**{key: None})
    assert goes_on(project.stop("Hm."))


def test_complaint_17_active_false_is_ignored(project):
    path = project.ralph(active="false")
    assert project.stop(KEPT).allowed
    assert path.read_text() == ralph_page(active="false")


@pytest.mark.one_form
def test_complaint_18_two_hooks_race_on_removal(project):
    for _ in range(5):
        path = project.ralph()
        with ThreadPoolExecutor(8) as pool:
            stops = list(pool.map(lambda _: project.stop(KEPT), range(8)))
        assert {(stop.exit_code, stop.stdout) for stop in stops} == {(0, "")}
        assert sum("promise is kept" in stop.stderr for stop in stops) == 1
        assert not path.exists()


@pytest.mark.one_form
def test_complaint_19_it_waits_on_stdin_at_every_ordinary_stop(project, form, home, site):
    path = project.ralph()

    def start(argv, folder):
        env = {**project.env, "CLAUDE_PROJECT_DIR": str(folder)}
        return subprocess.Popen(argv, stdin=subprocess.PIPE, env=env, cwd=folder)

    set_constants(site / "hook" / "payload.py", PAYLOAD_TIMEOUT_S=2 * HANGS_S)
    with Pool(home, package=site, starts=form == "warm") as pool:
        argv = [*(pool.argv if form == "warm" else pool.cold), "ralph"]
        with start(argv, project.folder) as of_a_loop, start(argv, project.home) as ordinary:
            assert ordinary.wait(HANGS_S) == 0
            assert of_a_loop.poll() is None, "it waits for its payload"
            of_a_loop.kill()
            of_a_loop.wait()  # before its stdin ends
    with start(project.argv, project.folder) as impatient:
        assert impatient.wait(HANGS_S) == 0
    assert path.read_text() == ralph_page(), "a payload that does not come is unknown"


def test_complaint_20_it_needs_programs_on_the_path(project):
    project.ralph()
    project.env["PATH"] = "/nowhere"
    assert goes_on(project.stop("Hm."))


def test_complaint_21_large_prompts_fail_after_the_counter_moved(project):
    prompt = "x" * (128 << 10) + "é" * (1 << 20)
    path = project.ralph(prompt)
    assert project.stop("Hm.").answer["reason"] == prompt
    assert path.read_text() == ralph_page(prompt, iteration=2)


def test_complaint_22_a_sub_agents_text_ends_the_loop(project):
    project.write(assistant("Working."), assistant(KEPT, isSidechain=True))
    path = project.ralph()
    assert goes_on(project.stop())
    assert project.stop(KEPT, agent_id="a1").allowed
    assert path.read_text() == ralph_page(iteration=2)


def test_complaint_23_it_fires_while_background_tasks_run(project):
    path = project.ralph()
    tasks = [{"id": "1", "type": "subagent", "status": "running"}]
    assert project.stop("Hm.", background_tasks=tasks).allowed
    assert project.stop(background_tasks=tasks).allowed
    assert path.read_text() == ralph_page()


@pytest.mark.parametrize("linked", ["ralph-loop.local.md", "."])
def test_complaint_24_symbolic_links_to_a_state_are_followed(project, ralph, linked):
    path = project.ralph()
    elsewhere = path.parent.rename(project.home / "elsewhere")
    if linked != ".":
        path.parent.mkdir()
    (path.parent / linked).symlink_to(elsewhere / linked)
    stop = project.stop(KEPT)
    assert stop.allowed
    link = path.parent if linked == "." else path
    assert f"{link}: a symbolic link, which is not followed" in stop.stderr
    assert ralph("start", "Go.").returncode == 1
    assert [entry.name for entry in elsewhere.iterdir()] == [path.name]
    assert (elsewhere / path.name).read_text() == ralph_page()


def test_complaint_24_a_symbolic_link_in_place_of_the_log_is_followed(project):
    path = project.ralph()
    target = project.home / "target"
    target.write_text("mine\n")
    path.with_name("ralph-debug.log").symlink_to(target)
    assert goes_on(project.stop("Hm."))
    assert target.read_text() == "mine\n"


EVIL = 'x"\nactive: false\nmax_iterations: 99\n---\n'


def test_complaint_24_injected_yaml_is_followed(project, ralph):
    assert ralph("start", "--completion-promise", EVIL, "Go.", session=EVIL).returncode == 0
    state = json.loads(ralph("status", "--json").stdout)["state"]
    assert (state["max_iterations"], state["active"], state["session_id"]) == ("0", "true", EVIL)


def test_complaint_24_yaml_injected_by_the_session_that_claims_the_loop_is_followed(project):
    path = project.ralph(session_id="claim")
    assert goes_on(project.stop("Hm.", session_id=EVIL))
    assert path.read_text() == ralph_page(iteration=2, session_id=json.dumps(EVIL))
    assert goes_on(project.stop("Hm.", session_id=EVIL))
    assert project.stop("Hm.", session_id="other").allowed


@pytest.mark.one_form
def test_complaint_25_hooks_at_once_all_announce_the_same_iteration(project):
    path = project.ralph(max_iterations=100)
    with ThreadPoolExecutor(16) as pool:
        stops = list(pool.map(lambda _: in_time(lambda: project.stop("Hm.")), range(64)))
    announced = {stop.answer["systemMessage"].partition(".")[0] for stop in stops}
    assert announced == {f"Ralph iteration {count} of 100" for count in range(2, 66)}
    assert path.read_text() == ralph_page(iteration=65, max_iterations=100)
