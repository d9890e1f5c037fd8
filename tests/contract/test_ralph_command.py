"""`tailhook ralph`, used by a person and an agent; the hook agrees with it."""

import json
import shutil
from functools import partial

import pytest
from support.host import PROMPT, ralph_page, tailhook
from support.install import write_hooks


@pytest.fixture
def ralph(project):
    """Run `tailhook ralph …`; `session` is the agent's that runs it."""

    return partial(project.as_agent, "ralph")


@pytest.fixture
def path(project):
    """Return the path of the state file."""
    project.argv = [*project.argv[:-1], "ralph"]
    return project.folder / ".claude/ralph-loop.local.md"


def test_start_writes_a_file_that_the_hook_goes_on_from(project, ralph, path):
    done = ralph("start", "--max-iterations", "3", "--completion-promise", "GREEN", PROMPT, session="mine")
    assert done.returncode == 0, done.stderr
    for part in (PROMPT, "iteration 1 of 3", "<promise>GREEN</promise>"):
        assert part in done.stdout
    assert path.stat().st_mode & 0o777 == 0o600
    assert project.stop("Hm.").answer["reason"] == PROMPT
    assert project.stop("Hm.", session_id="other").allowed
    assert project.stop("<promise>GREEN</promise>").exit_code == 0
    assert not path.exists()


def test_outside_a_session_the_first_to_stop_claims_the_loop(project, ralph, path):
    ralph("start", PROMPT)
    assert project.stop("Hm.", session_id="").allowed
    assert project.stop("Hm.", session_id="first").answer["reason"].startswith(PROMPT)
    assert project.stop("Hm.", session_id="second").allowed
    assert 'session_id: "first"' in path.read_text()


def test_the_prompt_comes_from_the_arguments_a_file_or_stdin_as_it_is(project, ralph, path):
    prompt = "\"quotes\" 'and' $(x) `y` \\ --- \n---\niteration: 5\nünï"
    (project.folder / "p.txt").write_text(prompt)
    for words, stdin in (
        ([prompt], None),
        (["--prompt-file", "p.txt"], None),
        (["--prompt-file", "-"], prompt),
        ([], prompt),
    ):
        done = ralph("start", "--force", "--json", *words, stdin=stdin, session="mine")
        assert json.loads(done.stdout)["prompt"] == prompt
        assert project.stop("Hm.").answer["reason"] == prompt


@pytest.mark.parametrize(
    "words",
    [
        [],
        [" "],
        ["--max-iterations", "-1", "Go."],
        ["--max-iterations=-1", "Go."],
        ["--max-iterations", "1.5", "Go."],
        ["--max-iterations", "0x3", "Go."],
        ["--max-iterations", "ten", "Go."],
        ["--max-iterations", "", "Go."],
        ["--max-iterations"],
        ["--max", "3", "Go."],
        ["--nonsense", "Go."],
        ["Go.", "--nonsense"],
        ["--prompt-file", "-", "Go."],
        ["--completion-promise", "a</promise>b", "Go."],
        ["--completion-promise", "a <promise> b", "Go."],
        ["--completion-promise", "copied\u200bfrom a page", "Go."],
        ["--completion-promise", "soft\u00adhyphen", "Go."],
        ["--completion-promise", "not UTF-8: \udce9", "Go."],
    ],
)
def test_a_start_that_asks_for_nothing_that_could_be_done_is_refused(ralph, path, words):
    done = ralph("start", *words, stdin="")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip()
    assert not path.exists()


def test_a_promise_is_shown_as_it_can_be_kept(project, ralph, path):
    promise = "naïve  `x` *ok* \U0001f469\u200d\U0001f467 & <b>\tz"
    shown = ralph("start", "--completion-promise", promise, "Go.").stdout
    kept = shown[shown.index("<promise>") : shown.index("</promise>")]
    assert project.stop(f"{kept}</promise>").allowed
    assert not path.exists()


def test_a_prompt_that_no_host_shows_is_refused(project, ralph, path):
    for tail, code in (("", 0), ("x", 1)):
        (project.folder / "prompt").write_text("\0" * 999_999 + "x" + tail)
        done = ralph("start", "--force", "--prompt-file", "prompt")
        assert (done.returncode, "1,000,001 characters" in done.stderr) == (code, bool(code)), done.stderr
        assert project.stop("Go on.").answer["reason"].startswith("\0")


def test_a_start_through_a_link_is_refused_with_its_path(project, ralph):
    (project.folder / ".claude").symlink_to(project.home)
    done = ralph("start", "Go.")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{project.folder}/.claude: a symbolic link, which is not followed" in done.stderr


@pytest.mark.parametrize("number", ["0", "08", "20"])
def test_a_number_of_iterations_is_decimal(ralph, number):
    done = ralph("start", "--json", f"--max-iterations={number}", "Go.")
    assert json.loads(done.stdout)["state"]["max_iterations"] == str(int(number))


def test_words_after_two_dashes_are_the_prompts(ralph):
    assert json.loads(ralph("start", "--json", "--", "--fix", "it").stdout)["prompt"] == "--fix it"


@pytest.mark.parametrize("values", [{"session_id": "other"}, {"active": "false"}])
def test_a_live_or_paused_loop_is_not_overwritten_but_a_broken_one_is(project, ralph, path, values):
    project.ralph(**values)
    done = ralph("start", "Go.")
    assert done.returncode == 1
    assert "iteration 1" in done.stderr
    assert path.read_text() == ralph_page(**values)
    project.ralph(iteration="x")
    assert ralph("start", "Go.").returncode == 0


def test_without_a_promise_and_a_limit_it_explains_what_ends_the_loop(ralph):
    first = ralph("start", "Go.").stdout
    assert "No promise is set, so no text ends the loop." in first
    assert "It ends if the agent stands still (--stuck-after 4), or with:  tailhook ralph cancel" in first
    only = ralph("start", "--force", "--stuck-after", "0", "Go.").stdout
    assert "Only this command ends it:  tailhook ralph cancel" in only
    limited = ralph("start", "--force", "--max-iterations", "3", "Go.").stdout
    assert "only the limit" not in limited
    assert "Only this command" not in ralph("start", "--force", "--max-iterations", "3", "Go.").stdout


def test_a_check_without_a_promise_is_refused_because_it_would_have_no_effect(ralph, path):
    refused = ralph("start", "--check", "pytest", "Go.")
    assert (refused.returncode, path.exists()) == (2, False)
    assert "there is no promise. Give one:  --completion-promise 'TESTS GREEN'" in refused.stderr


def test_it_warns_of_a_long_prompt_and_of_the_hosts_cap(project, ralph):
    write_hooks(project)
    assert "10,001 characters" in ralph("start", "--max-iterations", "3", "x" * 10_001).stderr
    assert ralph("start", "--force", "--max-iterations", "3", "x").stderr == ""
    assert "8 blocks" in ralph("start", "--force", "--max-iterations", "9", "x").stderr
    assert "8 blocks" in ralph("start", "--force", "x").stderr
    assert ralph("start", "--force", "x", CLAUDE_CODE_STOP_HOOK_BLOCK_CAP="0").stderr == ""


def test_start_in_a_folder_below_goes_to_the_projects_root(project, ralph, path):
    below = project.folder / "src"
    below.mkdir()
    project_folder, project.folder = project.folder, below
    assert ralph("start", "Go.").returncode == 0
    project.folder = project_folder
    assert path.exists()


def test_status_shows_every_value_for_a_person(project, ralph):
    assert ralph("status").stdout == "No ralph loop is running in this project.\n"
    assert json.loads(ralph("status", "--json").stdout)["active"] is False
    project.ralph(session_id="mine", note="\x1b[31mred")
    out = ralph("status").stdout
    for part in ("iteration: 1", "max_iterations: 10", "TESTS GREEN", "session_id: mine", PROMPT):
        assert part in out
    assert "\x1b" not in out
    facts = json.loads(ralph("status", "--json").stdout)
    assert (facts["active"], facts["state"]["iteration"], facts["prompt"]) == (True, "1", PROMPT)


def test_status_leaves_out_what_hooks_note_for_the_next_stop(project, ralph):
    notes = {"briefed": "mine", "still": "9@1.000 0 0 0 0", "waits": "9@1.000 b1", "spent": "5 9@1.000"}
    project.ralph(session_id="mine", began="2026-01-02T03:04:05Z", **notes)
    out = ralph("status").stdout
    assert [name for name in notes if f"  {name}:" in out] == []
    assert "  began: 2026-01-02T03:04:05Z" in out
    assert json.loads(ralph("status", "--json").stdout)["state"]["still"] == notes["still"]


def test_status_of_bytes_that_are_not_utf_8_is_valid_json(project, ralph, path):
    project.ralph()
    path.write_bytes(path.read_bytes().replace(b"TESTS GREEN", b"\xff"))
    facts = json.loads(ralph("status", "--json", PYTHONIOENCODING="utf-8:strict").stdout)
    assert facts["state"]["completion_promise"] == "\udcff"


def test_cancel_prints_at_which_iteration_and_removes_the_file(project, ralph, path):
    project.ralph(iteration=7)
    stays = f"What it has saved stays: {path.parent}, an empty folder\n"
    what = "The ralph loop was cancelled at iteration 7 of 10.\nGoal: Make the tests pass.\n"
    assert ralph("cancel").stdout == f"{what}{stays}"
    assert not path.exists()
    done = ralph("cancel")
    assert (done.returncode, done.stderr) == (1, "tailhook: no ralph loop is running in this project\n")


@pytest.mark.parametrize("kept", [None, "settings.json"])
def test_cancel_names_the_folder_that_stays_without_a_file(ralph, path, kept):
    path.parent.mkdir(exist_ok=True)
    if kept:
        (path.parent / kept).write_text("{}")
    assert ralph("start", "Go.").returncode == 0
    assert (f"stays: {path.parent}, an empty folder\n" in ralph("cancel").stdout) == (kept is None)
    assert "USER_CANCELLED" in ralph("status").stdout


def test_a_start_that_fails_leaves_no_folder(project, ralph, path):
    (project.home / ".local").write_text("not a folder")
    assert ralph("start", "Go.").returncode == 1
    assert not path.parent.exists()


def test_cancel_removes_a_broken_file_too(project, ralph, path):
    project.ralph()
    path.write_text("garbage")
    assert ralph("cancel").stdout.startswith("The ralph loop was cancelled at an unknown iteration.\n")
    assert not path.exists()


def test_adopt_hands_the_loop_to_this_session(project, ralph, path):
    project.ralph(session_id="before")
    assert project.stop("Hm.").allowed
    assert ralph("adopt", session="mine").returncode == 0
    assert project.stop("Hm.").answer["reason"] == PROMPT
    ralph("adopt")
    assert 'session_id: "claim"' in path.read_text()
    path.unlink()
    assert ralph("adopt").returncode == 1


def test_a_promise_that_the_state_file_cannot_keep_is_refused(project):
    done = project.tailhook("ralph", "start", "--completion-promise", "x" * 20_000, "Go.")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the promise is too long" in done.stderr
    assert not (project.folder / ".claude").exists()


@pytest.mark.parametrize(
    ("said", "values", "reason"),
    [
        ("<promise>TESTS GREEN</promise>", {}, "the promise is kept: TESTS GREEN (COMPLETE)"),
        ("Hm.", {"max_iterations": 4}, "the limit of 4 iterations is reached (MAX_ITERATIONS)"),
        ("Hm.", {"max_iterations": 1}, "the limit of 1 iteration is reached (MAX_ITERATIONS)"),
        ("Hm.", {"iteration": "x"}, 'iteration is "x", not a whole number (line 3) (CORRUPTED)'),
        (None, {}, "it was cancelled (USER_CANCELLED)"),
    ],
)
def test_status_shows_how_the_last_loop_ended(project, ralph, said, values, reason):
    values = {"iteration": 4, "session_id": "mine", **values}
    project.ralph(**values)
    assert (project.stop(said).allowed if said else ralph("cancel").returncode == 0) is True
    at = f"The last one ended: {reason}, at iteration {values['iteration']}, at 20"
    shown = ralph("status").stdout
    assert shown.startswith("No ralph loop is running in this project.\n")
    assert at in shown
    assert shown.endswith(", session mine.\n")
    ended = json.loads(ralph("status", "--json").stdout)["ended"]
    assert (ended["iteration"], ended["session_id"]) == (values["iteration"], "mine")
    assert ended["reason"] in reason


def test_a_loop_whose_file_a_person_removed_has_not_ended_like_the_loop_before(ralph, path):
    ralph("start", "First.")
    ralph("cancel")
    ralph("start", "Second.")
    path.unlink()
    assert ralph("status").stdout == "No ralph loop is running in this project.\n"


def test_the_end_of_a_loop_is_not_shown_in_another_project_whose_folder_has_the_same_number(project, ralph, tmp_path):
    ralph("start", "First.")
    ralph("cancel")
    assert "The last one ended" in ralph("status").stdout
    another = tmp_path / "another"
    (another / ".git").mkdir(parents=True)
    shutil.move(project.folder / ".claude", another)  # as if it was removed, and a new folder got its number
    shown = tailhook("ralph", "status", env=project.env, cwd=another).stdout
    assert shown == "No ralph loop is running in this project.\n"


def test_the_end_of_a_loop_is_shown_in_a_project_behind_a_link(project, ralph, tmp_path):
    ralph("start", "First.")
    ralph("cancel")
    (tmp_path / "link").symlink_to(project.folder)
    shown = tailhook("ralph", "status", env={**project.env, "CLAUDE_PROJECT_DIR": str(tmp_path / "link")}, cwd=tmp_path)
    assert "The last one ended: it was cancelled" in shown.stdout
