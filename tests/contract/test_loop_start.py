"""`tailhook loop start`, used by a person and an agent; the hook agrees with it."""

import json
import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from support.host import ENVIRONMENT, HANGS_S, frame, looping, tailhook
from support.install import write_hooks
from support.oracles import jwz

from tailhook.machines.idle import SIGNALS

CAP = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
FALLBACK = "---\nactive: true\niteration: 3\nmax_iterations: 10\n---\n\nThe prompt.\n"


def test_start_posts_a_state_that_the_hook_goes_on_from(project, loop):
    done = loop("start", "--max", "3", "Make", "it", "so.", session="mine")
    assert done.returncode == 0, done.stderr
    state = jwz.newest(project.folder)
    top = state["stack"][0]
    assert (state["schema"], state["event"], len(state["stack"])) == (1, "STATE", 1)
    assert (top["mode"], top["iter"], top["max"], top["session_id"]) == ("loop", 1, 3, "mine")
    assert project.stop("Hm.").answer["reason"].startswith("[ITERATION 2/3]")
    assert project.stop("Hm.").answer["reason"].startswith("[ITERATION 3/3]")
    assert project.stop("Hm.").state["reason"] == "MAX_ITERATIONS"


@pytest.mark.parametrize("mode", SIGNALS)
def test_start_gives_the_agent_the_goal_the_limit_and_the_exact_signals(loop, mode):
    done = loop("start", "--mode", mode, "Make it so.")
    assert "Make it so." in done.stdout
    assert ("at most 100" if mode == "grind" else "at most 10") in done.stdout
    for signal in SIGNALS[mode]:
        assert f"  {signal}\n" in done.stdout


def test_the_prompt_is_kept_privately_as_it_was(project, loop):
    prompt = "--- quotes \" ' $(x) `y`\n\nünïcödé\n" * 2000
    assert loop("start", "--prompt-file", "-", stdin=prompt).returncode == 0
    path = jwz.newest(project.folder)["stack"][0]["prompt_file"]
    kept = project.home / ".local/state/tailhook/prompts"
    assert path.startswith(str(kept))
    assert (kept / path.rpartition("/")[2]).read_text() == prompt.strip()
    assert (kept / path.rpartition("/")[2]).stat().st_mode & 0o777 == 0o600
    assert kept.stat().st_mode & 0o777 == 0o700
    assert not list(project.folder.rglob("*.md"))


def test_the_prompts_of_ended_loops_go_at_the_next_start_and_those_of_running_ones_stay(project, loop, tmp_path):
    kept = project.home / ".local/state/tailhook/prompts"
    another = tmp_path / "another"
    (another / ".git").mkdir(parents=True)
    tailhook("loop", "start", "Elsewhere.", env=project.env, cwd=another)
    loop("start", "Ended.")
    loop("cancel")
    loop("start", "Outer.")
    loop("start", "--push", "Inner.")
    assert sorted(path.read_text() for path in kept.iterdir()) == ["Elsewhere.", "Inner.", "Outer."]
    loop("start", "--replace", "New.")
    assert sorted(path.read_text() for path in kept.iterdir()) == ["Elsewhere.", "New."]


def test_the_prompt_can_come_from_a_file(project, loop):
    (project.folder / "p.txt").write_text("From a file.\n")
    assert "From a file." in loop("start", "--prompt-file", "p.txt").stdout


def test_a_byte_order_mark_in_a_file_with_a_prompt_is_not_of_the_prompt(project, loop):
    (project.folder / "p.txt").write_bytes("\ufeffGo on.\n".encode())
    assert "Goal: Go on.\n" in loop("start", "--prompt-file", "p.txt").stdout


def test_a_start_elsewhere_keeps_the_prompt_of_a_loop_that_is_paused_for_months(project, loop, tmp_path):
    loop("start", "Wait for me.")
    loop("pause")
    (prompt,) = (project.home / ".local/state/tailhook/prompts").iterdir()
    os.utime(prompt, (0, time.time() - 90 * 86400))
    another = tmp_path / "another"
    (another / ".git").mkdir(parents=True)
    tailhook("loop", "start", "Elsewhere.", env=project.env, cwd=another)
    assert "Wait for me." in loop("status").stdout


def test_a_start_where_a_moved_project_was_keeps_the_prompt_of_that_projects_loop(project, loop, tmp_path):
    loop("start", "Wait for me.")
    moved = shutil.move(project.folder, tmp_path / "moved")
    (project.folder / ".git").mkdir(parents=True)
    assert loop("start", "Elsewhere.").returncode == 0
    assert "Wait for me." in tailhook("loop", "status", env=project.env, cwd=Path(moved)).stdout


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_a_start_whose_state_folder_cannot_be_made_leaves_nothing_in_the_project(project, group):
    (project.home / ".local").touch()
    done = project.tailhook(group, "start", "Go.")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Not a directory" in done.stderr
    assert [path.name for path in project.folder.iterdir() if path.name != ".git"] == []


def test_an_old_prompt_that_cannot_be_removed_does_not_make_a_start_fail(project, loop):
    kept = project.home / ".local/state/tailhook/prompts"
    (kept / "old.md").mkdir(parents=True, mode=0o700)
    os.utime(kept / "old.md", (0, 0))
    done = loop("start", "Go.")
    assert done.returncode == 0, done.stderr
    assert "Go." in done.stdout


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_a_prompt_on_stdin_that_is_not_utf_8_is_read_like_one_in_a_file(project, group):
    (project.folder / "p.txt").write_bytes(b"Order a caf\xe9.")
    from_file = project.tailhook(group, "start", "--prompt-file", "p.txt").stdout
    project.tailhook(group, "cancel")
    from_stdin = subprocess.run(
        [sys.executable, "-m", "tailhook", group, "start", "--prompt-file", "-"],
        env={**ENVIRONMENT, **project.env, "PYTHONIOENCODING": "utf-8:strict"},  # as in the locale en_US.UTF-8
        cwd=project.folder,
        input=b"Order a caf\xe9.",
        capture_output=True,
        check=False,
        timeout=HANGS_S,
    )
    assert from_stdin.returncode == 0, from_stdin.stderr
    assert "Order a caf\ufffd." in from_stdin.stdout.decode() == from_file


def test_a_loop_without_a_session_is_claimed_by_the_first_that_stops(project, loop):
    loop("start", "Go.")
    assert jwz.newest(project.folder)["stack"][0]["session_id"] == "claim"
    assert project.stop("Hm.", session_id="first").state["stack"][0]["session_id"] == "first"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 2),
        (["  "], 2),
        (["--max", "0", "Go."], 2),
        (["--max", "-3", "Go."], 2),
        (["--max", "ten", "Go."], 2),
        (["--mode", "else", "Go."], 2),
        (["--mode", "issue"], 2),
        (["--mode", "issue", "--issue", ""], 2),
        (["--mode", "grind"], 2),
        (["--push", "--replace", "Go."], 2),
        (["--push", "Go."], 1),
        (["--worktree", "nowhere", "Go."], 1),
        (["--check", "", "Go."], 2),
        (["--check", "pytest", "--check", " ", "Go."], 2),
        (["--check", "pytest\u00a0-q", "Go."], 2),
        (["--nonsense", "Go."], 2),
        (["--prompt-file", "nowhere"], 1),
        (["--prompt-file", "nowhere", ""], 2),
        (["--prompt-file", "-", "Go."], 2),
    ],
)
def test_a_start_that_cannot_be_done_prints_the_reason_and_leaves_nothing(project, loop, words, code):
    done = loop("start", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.strip()
    assert [path.name for path in project.folder.iterdir()] == [".git"]


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_an_empty_check_is_named_and_a_repeated_one_counts_once(project, group):
    start = partial(project.as_agent, group, "start", *(["--completion-promise=G"] if group == "ralph" else []))
    assert "--check is empty. Give a command:  --check 'pytest -q'" in start("--check=", "Go.").stderr
    given = ["--check=pytest", "--check=ruff", "--check=pytest", "--check-files=*.py", "--check-files=*.py"]
    started = start(*given, "Go.").stdout
    assert [started.count(word) for word in ("  pytest\n", "  ruff\n", "*.py")] == [1, 1, 1], started


def test_a_live_loop_is_not_started_over(project, loop):
    loop("start", "First.")
    before = jwz.newest(project.folder)
    done = loop("start", "Second.")
    assert done.returncode == 1
    assert all(word in done.stderr for word in ("--push", "--replace", "cancel"))
    assert jwz.newest(project.folder) == before


@pytest.mark.parametrize(
    "state",
    [looping(event="DONE"), looping(event="ABORT"), looping(age=99999), looping(frame(iter="x")), looping(stack=[])],
)
def test_a_loop_that_has_ended_makes_way(project, loop, state):
    jwz.post(project.folder, json.dumps(state))
    assert loop("start", "Go.").returncode == 0
    assert project.stop("Hm.").exit_code == 2


def test_push_nests_and_the_outer_loop_goes_on_afterwards(project, loop):
    loop("start", "--mode", "grind", "Outer.", session="mine")
    project.stop("Hm.")
    outer = jwz.newest(project.folder)["stack"]
    assert loop("start", "--push", "--mode", "issue", "--issue", "T-7", "Inner.", session="mine").returncode == 0
    stack = jwz.newest(project.folder)["stack"]
    assert stack[:1] == outer
    assert (stack[1]["mode"], stack[1]["issue_id"]) == ("issue", "T-7")
    del outer[0]["briefed"]  # the outer loop's instructions are owed again
    assert project.stop("<issue-complete>DONE</issue-complete>").state["stack"] == outer
    assert project.stop("Hm.").answer["reason"].startswith("[ITERATION 3/100]")


def test_an_issue_is_named_in_the_orders_the_status_each_iteration_and_after_a_compaction(project, loop):
    started = loop("start", "--mode", "issue", "--issue", "auth-17", session="mine")
    assert "\nIssue: auth-17\n" in started.stdout
    assert "\nIssue: auth-17\n" in loop("status").stdout
    assert json.loads(loop("status", "--json").stdout)["state"]["stack"][0]["issue_id"] == "auth-17"
    assert project.stop("Hm.").answer["reason"].endswith("keep iterating.\n\nIssue: auth-17")
    again = project.stop(hook_event_name="SessionStart", source="compact")
    assert "\nIssue: auth-17\n" in again.answer["hookSpecificOutput"]["additionalContext"]


@pytest.mark.parametrize("where", ["user", "project"])
def test_a_grind_names_its_filter_and_the_command_that_lists_the_next_issues(project, loop, where):
    config = project.home / ".config/tailhook/config.json"
    config = config if where == "user" else project.folder / ".claude/tailhook.json"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(json.dumps({"idle": {"next_issue": "gh issue list --label bug"}}))
    orders = "\nIssues to take: label:bug\nTo list the next issues: gh issue list --label bug\n"
    assert orders in loop("start", "--mode", "grind", "--filter", "label:bug", session="mine").stdout
    assert orders in loop("status").stdout
    assert project.stop("Hm.").answer["reason"].endswith(orders.rstrip())
    again = project.stop(hook_event_name="SessionStart", source="compact")
    assert orders in again.answer["hookSpecificOutput"]["additionalContext"]
    assert loop("cancel").returncode == 0
    assert "list the next issues" not in loop("start", "Go.").stdout


def test_when_an_inner_loop_ends_the_announcement_names_the_one_that_waits(project, loop):
    loop("start", "--mode", "grind", "--filter", "label:bug", session="mine")
    project.stop("Hm.")
    loop("start", "--push", "Inner.", session="mine")
    stop = project.stop("<loop-done>COMPLETE</loop-done>", "--announce")
    assert stop.exit_code == 0
    assert stop.answer["systemMessage"] == (
        "tailhook: inner loop ended: COMPLETE. The outer loop (mode grind, label:bug) waits at iteration 2 of 100: "
        "send the agent a prompt to continue it, or end it with `tailhook loop cancel`"
    )
    assert project.stop("Next.").answer["reason"].startswith("[ITERATION 3/100]")


def test_when_a_loop_inside_a_paused_one_ends_the_announcement_has_the_command_that_continues_it(project, loop):
    loop("start", "Outer.", session="mine")
    loop("pause", session="mine")
    loop("start", "--push", "Inner.", session="mine")
    words = project.stop("<loop-done>COMPLETE</loop-done>", "--announce").answer["systemMessage"]
    assert words.endswith(
        "The outer loop (mode loop) is paused at iteration 1 of 10: continue it with `tailhook loop resume`, or end it "
        "with `tailhook loop cancel`"
    )
    assert project.stop("Next.").allowed
    loop("resume", session="mine")
    assert project.stop("Next.").answer["reason"].startswith("[ITERATION 2/10]")


@pytest.mark.parametrize("words", [(), ("--push",)])
def test_beside_another_sessions_loop_it_is_named_and_adopt_is_offered(project, loop, words):
    loop("start", "--max", "9", "Mine.", session="other")
    done = loop("start", *words, "Inner.", session="mine")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"tailhook: {project.folder}/.jwz: a loop of session other is running already (iteration 1 of 9; goal: Mine.). "
        "To continue it in this session, as after /clear:  tailhook loop adopt\n"
        "          To end it:  tailhook loop cancel\n"
    )
    assert len(jwz.messages(project.folder)) == 1


def test_ralph_names_another_sessions_loop_and_offers_adopt(project):
    project.as_agent("ralph", "start", "--max-iterations", "9", "Mine.", session="other")
    done = project.as_agent("ralph", "start", "Inner.", session="mine")
    assert (done.returncode, done.stdout) == (1, "")
    assert "a ralph loop of session other is running already (iteration 1 of 9; goal: Mine.). To cont" in done.stderr
    assert done.stderr.endswith(
        "this session, as after /clear:  tailhook ralph adopt\n          To end it:  tailhook ralph cancel\n"
    )


@pytest.mark.parametrize(("group", "flag"), [("loop", "--replace"), ("ralph", "--force")])
def test_what_a_new_loop_replaces_is_named(project, group, flag):
    project.argv = [*project.argv[:-1], "ralph" if group == "ralph" else "idle"]
    limit = "--max" if group == "loop" else "--max-iterations"
    project.as_agent(group, "start", limit, "9", "First.", session="other")
    assert not project.stop("Hm.", session_id="other").allowed
    printed = project.as_agent(group, "start", flag, "Second.", session="mine").stdout.splitlines()
    name = "loop" if group == "loop" else "ralph loop"
    assert printed[:2] == [f"The {name} of session other was replaced at iteration 2 of 9.", "Goal: First."]
    assert printed[2].lower().startswith(f"{name} started in ")


@pytest.mark.parametrize("action", [("start", "--replace", "New."), ("cancel",)])
def test_each_loop_that_a_command_ends_is_named(project, loop, action):
    loop("start", "--mode", "grind", "--max", "9", "Outer.", session="mine")
    assert not project.stop("Hm.").allowed
    loop("start", "--push", "--max", "3", "Inner.", session="mine")
    how = "cancelled" if action == ("cancel",) else "replaced"
    assert loop(*action).stdout.splitlines()[:4] == [
        f"The loop of session mine was {how} at iteration 1 of 3.",
        "Goal: Inner.",
        f"The outer loop of session mine was {how} at iteration 2 of 9, with the loop inside it.",
        "Goal: Outer.",
    ]


def test_replace_ends_the_old_loop_first(project, loop):
    loop("start", "First.")
    assert loop("start", "--replace", "Second.").returncode == 0
    _, ended, begun = (json.loads(record["body"]) for record in jwz.messages(project.folder))
    assert (ended["event"], ended["reason"], ended["stack"]) == ("ABORT", "REPLACED", [])
    assert (begun["event"], len(begun["stack"])) == ("STATE", 1)
    assert "reason" not in begun


@pytest.mark.parametrize("store", ["jwz", "file"])
def test_a_loop_is_not_ended_for_one_whose_prompt_cannot_be_kept(project, loop, store):
    if store == "jwz":
        project.loop()
    else:
        path = project.folder / ".claude" / "idle-loop.local.md"
        path.parent.mkdir()
        path.write_text(FALLBACK)
    prompts = project.home / ".local/state/tailhook/prompts"
    prompts.parent.mkdir(parents=True)
    prompts.write_text("in the way")
    done = loop("start", "--replace", "Go.")
    assert (done.returncode, str(prompts) in done.stderr) == (1, True)
    assert project.stop("Hm.").answer["decision"] == "block"


def test_replace_ends_a_loop_of_the_fallback_file_too(project, loop):
    path = project.folder / ".claude" / "idle-loop.local.md"
    path.parent.mkdir()
    path.write_text(FALLBACK)
    assert loop("start", "Go.").returncode == 1
    assert loop("start", "--replace", "Go.").returncode == 0
    assert not path.exists()
    assert project.stop("Hm.").answer["reason"].startswith("[ITERATION 2/10]")


def test_a_limit_over_the_hosts_cap_is_warned_of(project, loop):
    write_hooks(project)
    assert "Claude Code ends a turn after 8 blocks" in loop("start", "--max", "9", "Go.").stderr
    for env, limit in ((None, "8"), ("0", "100"), ("50", "50")):
        extra = {CAP: env} if env else {}
        assert loop("start", "--replace", "--max", limit, "Go.", **extra).stderr == ""


@pytest.mark.parametrize("set_to", ["0", "20"])
def test_no_warning_of_the_cap_is_printed_if_the_settings_set_it(project, loop, set_to):
    path = write_hooks(project)
    path.write_text(json.dumps({**json.loads(path.read_text()), "env": {CAP: set_to}}))
    assert loop("start", "--max", "20", "Go.").stderr == ""


def test_a_plugin_user_is_not_advised_to_install_hooks_beside_the_plugin(project, loop):
    (project.home / ".claude").mkdir()
    (project.home / ".claude/settings.json").write_text('{"enabledPlugins": {"tailhook@them": true}}')
    reported = loop("start", "--max", "9", "Go.").stderr
    assert f'add "env": {{"{CAP}": "0"}} to {project.home}/.claude/settings.json' in reported
    assert "tailhook install" not in reported


@pytest.mark.parametrize(
    ("env", "host", "advice"),
    [
        ("CODEX_SESSION_ID", "codex", ""),
        ("GEMINI_CLI", "gemini", ""),
        ("COPILOT_CLI", "copilot", "Copilot CLI ends a turn after 8 blocks"),
    ],
)
def test_the_cap_is_that_of_the_host_whose_agent_starts_the_loop(project, loop, env, host, advice):
    write_hooks(project, host)
    write_hooks(project)
    reported = loop("start", "--max", "9", "Go.", **{env: "1"}).stderr
    assert (advice in reported) if advice else (reported == "")
    assert CAP not in reported
    assert loop("start", "--replace", "--max", "8", "Go.", **{env: "1"}).stderr == ""
    claude_in_it = loop("start", "--replace", "--max", "9", "Go.", session="mine", **{env: "1"})
    assert "Claude Code ends a turn" in claude_in_it.stderr
