"""`tailhook loop`, used by a person and an agent; the hook agrees with it."""

import json
import os
import subprocess
import time
from functools import partial

import pytest
from support.host import frame, looping, tailhook
from support.install import write_hooks
from support.oracles import jwz

from tailhook.machines.idle import SIGNALS

CAP = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
FALLBACK = "---\nactive: true\niteration: 3\nmax_iterations: 10\n---\n\nThe prompt.\n"


@pytest.fixture
def loop(project):
    """Run `tailhook loop …`; `session` is the agent's that runs it."""

    return partial(project.as_agent, "loop")


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
        (["--push", "--replace", "Go."], 2),
        (["--push", "Go."], 1),
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
    assert jwz.newest(project.folder) is None


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


def git(folder, *words):
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def test_a_worktree_is_recorded_with_its_branch_and_the_one_it_comes_from(project, loop, tmp_path):
    repository, tree = tmp_path / "repository", tmp_path / "the tree"
    repository.mkdir()
    git(repository, "init")
    git(repository, "commit", "--allow-empty", "-m", "first")
    git(repository, "worktree", "add", "-b", "fix/auth-17", str(tree))
    started = loop("start", "--mode", "issue", "--issue", "auth-17", "--worktree", str(tree), session="mine")
    place = f"Work in the worktree {tree}, on branch fix/auth-17, based on main, for issue auth-17. Use absolute paths"
    assert place in started.stdout
    top = jwz.newest(project.folder)["stack"][0]
    assert (top["worktree_path"], top["branch"], top["base_ref"]) == (str(tree), "fix/auth-17", "main")
    assert place in loop("status").stdout
    assert place in project.stop("Hm.").answer["reason"]


def test_a_worktree_may_be_a_clone_or_any_folder_and_its_path_relative(project, loop):
    clone, folder = project.folder / "clone", project.folder / "folder"
    clone.mkdir()
    git(clone, "init")
    folder.mkdir()
    assert loop("start", "--worktree", "clone", "Go.").returncode == 0
    top = jwz.newest(project.folder)["stack"][0]
    assert (top["worktree_path"], top["branch"], top.get("base_ref")) == (str(clone), "main", None)
    assert loop("start", "--replace", "--worktree", "./folder", "Go.").returncode == 0
    top = jwz.newest(project.folder)["stack"][0]
    assert (top["worktree_path"], top.get("branch"), top.get("base_ref")) == (str(folder), None, None)


@pytest.mark.parametrize(
    "pointer", [b"gitdir: /worktrees/x", b"gitdir: ", b"", b"\xff\x00", b"gitdir: " + b"/x" * 9000]
)
def test_a_worktree_whose_pointer_leads_nowhere_has_no_base(project, loop, pointer):
    folder = project.folder / "odd"
    folder.mkdir()
    (folder / ".git").write_bytes(pointer)
    done = loop("start", "--worktree", "odd", "Go.")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert "base_ref" not in jwz.newest(project.folder)["stack"][0]


def test_a_worktrees_pointer_is_read_to_a_bound(project, loop):
    folder = project.folder / "odd"
    folder.mkdir()
    (folder / ".git").touch()
    os.truncate(folder / ".git", 1 << 40)
    assert loop("start", "--worktree", "odd", "Go.").returncode == 0


@pytest.mark.parametrize("name", ["a\nb", "a\x1bb", "a\udcffb", "\u202eb"])
def test_a_worktree_that_cannot_be_written_in_an_order_is_refused(project, loop, name):
    (project.folder / name).mkdir()
    done = loop("start", "--worktree", name, "Go.")
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot be put into a prompt" in done.stderr
    assert jwz.newest(project.folder) is None


@pytest.mark.parametrize("path", ["nowhere", "file", ""])
def test_a_worktree_that_is_not_a_folder_is_refused_with_its_path(project, loop, path):
    (project.folder / "file").write_text("")
    done = loop("start", "--worktree", path, "Go.")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"tailhook: {path}: not a folder. Make the worktree first:  git worktree add {path}\n"
    assert jwz.newest(project.folder) is None


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


def test_push_onto_another_sessions_loop_is_refused(project, loop):
    loop("start", "Outer.", session="other")
    done = loop("start", "--push", "Inner.", session="mine")
    assert done.returncode == 1
    assert "adopt" in done.stderr
    assert len(jwz.messages(project.folder)) == 1


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


# ---- whether a hook will continue it -----------------------------------------


NOTHING = "nothing will continue this loop: "


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_starting_a_loop_without_an_installed_hook_prints_in_one_line_that_nothing_continues_it(project, group):
    started = project.tailhook(group, "start", "Go.")
    assert started.returncode == 0
    assert started.stderr == (
        f"tailhook: {NOTHING}no hook is installed here. To install the hooks:  tailhook install\n"
    )
    assert project.tailhook(group, "status").stdout.endswith(
        "At the next stop nothing happens: no hook is installed here. To install the hooks:  tailhook install\n"
    )


@pytest.mark.parametrize("scope", ["user", "project", "local"])
def test_a_hook_in_the_settings_of_any_scope_continues_a_loop(project, loop, scope):
    text = write_hooks(project).read_text()
    (project.home / ".claude/settings.json").unlink()
    root = project.home if scope == "user" else project.folder
    (root / ".claude").mkdir(exist_ok=True)
    (root / ".claude" / f"settings{'.local' * (scope == 'local')}.json").write_text(text)
    assert NOTHING not in loop("start", "Go.").stderr
    assert "must continue" in loop("status").stdout


@pytest.mark.parametrize(("enabled", "continues"), [(True, True), (False, False)])
def test_an_enabled_plugin_continues_a_loop(project, loop, enabled, continues):
    (project.home / ".claude").mkdir()
    (project.home / ".claude/settings.json").write_text('{"enabledPlugins": {"tailhook@them": true}}')
    (project.folder / ".claude").mkdir()
    local = {"enabledPlugins": {"tailhook@them": enabled}}
    (project.folder / ".claude/settings.local.json").write_text(json.dumps(local))
    assert (NOTHING not in loop("start", "Go.").stderr) == continues


def test_a_hook_of_another_host_does_not_continue_a_loop_of_this_agent(project, loop):
    write_hooks(project, "codex")
    assert NOTHING not in loop("start", "Go.").stderr
    reported = loop("start", "--replace", "Go.", GEMINI_CLI="1").stderr
    assert reported.endswith("To install the hooks:  tailhook install --host gemini\n")


def test_hooks_that_do_not_ask_the_machine_do_not_continue_its_loop(project, loop):
    write_hooks(project, machines=["ralph"])
    assert loop("start", "Go.").stderr.endswith("asks idle. To add it:  tailhook install --with idle\n")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"disableAllHooks": True}, "disableAllHooks is true"),
        ({"permissions": {"allow": "Bash"}}, 'line 1: permissions.allow is "Bash", not a list'),
    ],
)
def test_hooks_that_the_host_does_not_run_do_not_continue_a_loop(project, loop, change, reason):
    path = write_hooks(project)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    reported = loop("start", "Go.").stderr
    assert reported.count("\n") == 1
    assert reported.startswith(f"tailhook: {NOTHING}no hook runs here: {path}")
    assert reason in reported
    assert "must continue: " not in loop("status").stdout


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ('{"hooks": {"Stop": [}}', "settings.json: invalid JSON: expected a value at line 1, column 21. Correct"),
        (
            '{"hooks": {"PreToolUse": [{"matcher": {}, "hooks": []}]}}',
            "line 1: hooks.PreToolUse[0].matcher is an object",
        ),
        ('{"disableAllHooks": true}', "settings.json: disableAllHooks is true"),
    ],
)
def test_the_advice_without_a_hook_names_what_would_keep_an_installed_hook_from_running(project, loop, settings, fault):
    (project.home / ".claude").mkdir()
    (project.home / ".claude/settings.json").write_text(settings)
    reported = loop("start", "Go.").stderr
    assert (reported.count("\n"), fault in reported) == (1, True), reported
    assert reported.endswith("Then:  tailhook install\n")


@pytest.mark.parametrize(
    ("env", "owner"), [({"CODEX_SESSION_ID": "codex"}, "codex"), ({"GEMINI_CLI": "1"}, "claim"), ({}, "claim")]
)
def test_a_loop_belongs_to_the_session_whose_agent_starts_it(project, loop, env, owner):
    loop("start", "Go.", **env)
    assert jwz.newest(project.folder)["stack"][0]["session_id"] == owner


# ---- status ------------------------------------------------------------------


def test_status_prints_what_the_next_stop_would_get(project, loop):
    write_hooks(project)
    loop("start", "Go.", session="mine")
    facts = json.loads(loop("status", "--json").stdout)
    assert facts["state"] == jwz.newest(project.folder)
    assert 0 <= facts["age"] < 60
    assert facts["verdict"]["decision"] == "block"
    assert facts["verdict"]["reason"] == project.stop("Hm.").answer["reason"]
    words = loop("status").stdout
    assert all(
        word in words
        for word in ("Go.", "Iteration 2 of at most 10", "must continue: iteration 3/10", "Session: mine.")
    )


def test_status_names_the_session_that_will_get_the_loop_and_the_nested_loops(loop):
    loop("start", "--mode", "grind", "Outer.")
    assert "Session: the next one that gets a prompt or stops.\n" in loop("status").stdout
    loop("start", "--push", "Inner.")
    assert "Nested loops: 2; this is the innermost one.\n" in loop("status").stdout


def test_status_without_a_loop_reports_that(loop):
    facts = json.loads(loop("status", "--json").stdout)
    assert facts == {
        "path": None,
        "state": None,
        "age": None,
        "verdict": {"decision": "allow", "why": "no loop", "reason": None},
    }
    assert loop("status").stdout == "No loop is running in this project.\n"


def test_status_of_a_stale_loop_reports_what_will_happen_to_it_and_changes_nothing(project, loop):
    state = project.loop(age=9000)
    facts = json.loads(loop("status", "--json").stdout)
    assert (facts["verdict"]["decision"], facts["verdict"]["why"]) == ("allow", "stale")
    assert facts["age"] >= 9000
    assert jwz.newest(project.folder) == state


@pytest.mark.parametrize("body", ["broken", "[]", '{"schema": 1, "stack": [5]}', '{"schema": 1, "stack": "x"}'])
def test_status_of_a_corrupted_loop_is_not_a_crash(project, loop, body):
    jwz.post(project.folder, body)
    for words in (["status"], ["status", "--json"], ["cancel"], ["adopt"]):
        assert "Traceback" not in loop(*words).stderr


def test_a_states_texts_reach_the_terminal_only_in_plain_characters(project, loop):
    project.loop(frame(session_id="\x1b[31m\u202eevil"))
    out = loop("status").stdout
    assert "evil" in out
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_a_prompt_reaches_the_terminal_only_in_plain_characters(loop):
    out = loop("start", "Line one.\nLine \x1b]0;two\x07").stdout + loop("status").stdout
    assert out.count("Line one.\n") == 2
    assert "\x1b" not in out
    assert "\x07" not in out


# ---- adopt, cancel -----------------------------------------------------------


def test_adopt_hands_the_loop_to_this_session(project, loop):
    loop("start", "Go.", session="before")
    assert project.stop("Hm.").allowed
    assert loop("adopt", session="mine").returncode == 0
    assert project.stop("Hm.").exit_code == 2
    assert project.stop("Hm.", session_id="before").allowed


def test_adopt_outside_a_session_leaves_the_loop_to_the_first_that_stops(project, loop):
    loop("start", "Go.", session="before")
    loop("adopt")
    assert project.stop("Hm.", session_id="new").exit_code == 2


def test_adopt_hands_over_every_frame_and_makes_the_loop_fresh(project, loop):
    state = project.loop(frame(session_id="a", mine=1), frame(session_id="a"), session_id="a", age=7000)
    loop("adopt", session="b")
    moved = jwz.newest(project.folder)
    assert [moved["session_id"], *(top["session_id"] for top in moved["stack"])] == ["b", "b", "b"]
    assert moved["updated_at"] > state["updated_at"]
    assert moved["stack"][0] == {**state["stack"][0], "session_id": "b"}


def test_cancel_ends_the_loop_and_prints_at_which_iteration(project, loop):
    loop("start", "Go.", session="mine")
    project.stop("Hm.")
    done = loop("cancel")
    assert "iteration 2 of 10" in done.stdout
    state = jwz.newest(project.folder)
    assert (state["event"], state["reason"], state["stack"]) == ("ABORT", "USER_CANCELLED", [])
    assert project.stop("Hm.").allowed


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_cancel_prints_the_goal_the_iteration_and_the_session_of_what_it_ends(project, group):
    project.argv = [*project.argv[:-1], "ralph" if group == "ralph" else "idle"]
    for words in ((), ("--json",)):
        project.as_agent(group, "start", "Make the tests pass.", session="mine")
        assert not project.stop("Hm.").allowed
        printed = project.as_agent(group, "cancel", *words).stdout
        if words:
            facts = json.loads(printed)
            assert [facts[key] for key in ("goal", "iteration", "session_id")] == ["Make the tests pass.", 2, "mine"]
        else:
            assert " of session mine was cancelled at iteration 2" in printed
            assert "\nGoal: Make the tests pass.\n" in printed


def test_cancel_works_from_any_session(project, loop):
    loop("start", "Go.", session="other")
    assert json.loads(loop("cancel", "--json", session="mine").stdout)["iteration"] == 1


@pytest.mark.parametrize("action", ["cancel", "adopt"])
def test_without_a_live_loop_there_is_nothing_to_change(project, loop, action):
    assert loop(action).returncode == 1
    project.loop(event="DONE")
    done = loop(action)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no loop is running in this project" in done.stderr
    assert len(jwz.messages(project.folder)) == 1


def test_the_commands_wait_for_the_hooks_lock(project, loop):
    import fcntl

    project.loop()
    with (project.folder / ".jwz" / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        started = time.monotonic()
        done = loop("cancel")
    assert done.returncode == 1
    assert "locked" in done.stderr
    assert time.monotonic() - started > 1.5
    assert len(jwz.messages(project.folder)) == 1


def test_a_hook_that_cannot_have_the_lock_lets_the_agent_go(project):
    import fcntl

    state = project.loop()
    with (project.folder / ".jwz" / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stop = project.stop("Hm.")
    assert (stop.exit_code, stop.stdout, stop.state) == (0, "", state)
    assert "locked" in stop.stderr


# ---- the command line --------------------------------------------------------


def test_a_wrong_command_is_a_usage_error(project):
    for words in (["nonsense"], ["loop"], ["loop", "nonsense"]):
        done = project.tailhook(*words)
        assert (done.returncode, done.stdout) == (2, "")


def test_status_of_a_finished_loop_shows_how_it_ended(project, loop):
    project.loop(frame(iter=3, session_id="mine"))
    project.stop("<loop-done>STUCK</loop-done>")
    facts = json.loads(loop("status", "--json").stdout)
    assert (facts["state"]["event"], facts["state"]["reason"]) == ("DONE", "STUCK")
    assert facts["verdict"]["decision"] == "allow"
    ended = f"The last one ended: STUCK, at iteration 3, at {facts['state']['updated_at']}, session mine."
    assert loop("status").stdout == f"No loop is running in this project.\n{ended}\n"
    assert facts["ended"] == {
        "reason": "STUCK",
        "iteration": 3,
        "at": facts["state"]["updated_at"],
        "session_id": "mine",
    }


def test_status_after_a_cancel_shows_how_the_loop_ended(project, loop):
    project.loop(frame(iter=2))
    assert loop("cancel").returncode == 0
    said = "The last one ended: it was cancelled (USER_CANCELLED), at iteration 2, at 20"
    assert said in loop("status").stdout


@pytest.mark.parametrize(
    ("said", "reason", "words"),
    [
        ("<loop-done>STUCK</loop-done>", "STUCK", "STUCK"),
        (None, "USER_CANCELLED", "it was cancelled (USER_CANCELLED)"),
    ],
)
def test_status_shows_how_a_loop_of_the_fallback_file_ended(project, loop, said, reason, words):
    path = project.folder / ".claude" / "idle-loop.local.md"
    path.parent.mkdir()
    path.write_text(FALLBACK)
    assert (project.stop(said).allowed if said else loop("cancel").returncode == 0) is True
    assert not path.exists()
    assert f"The last one ended: {words}, at iteration 3, at 20" in loop("status").stdout
    ended = json.loads(loop("status", "--json").stdout)["ended"]
    assert (ended["reason"], ended["iteration"]) == (reason, 3)


def test_the_newer_end_is_shown_of_a_store_and_a_fallback_file(project, loop):
    project.loop(frame(iter=5), age=3600)
    project.stop("<loop-done>COMPLETE</loop-done>")
    path = project.folder / ".claude" / "idle-loop.local.md"
    path.parent.mkdir()
    path.write_text(FALLBACK)
    (project.folder / ".jwz").rename(project.folder / "jwz")
    assert loop("cancel").returncode == 0
    (project.folder / "jwz").rename(project.folder / ".jwz")
    assert "USER_CANCELLED" in loop("status").stdout


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_a_loop_that_no_session_had_ended_without_a_session(project, group):
    assert project.as_agent(group, "start", "Go.").returncode == 0
    assert " that gets a prompt or stops" in project.as_agent(group, "status").stdout
    assert project.as_agent(group, "cancel").returncode == 0
    shown = project.as_agent(group, "status").stdout
    assert "USER_CANCELLED" in shown
    assert "claim" not in shown
    ended = json.loads(project.as_agent(group, "status", "--json").stdout)["ended"]
    assert (ended["iteration"], ended["session_id"]) == (1, None)


# ---- wherever the agent stands -----------------------------------------------


@pytest.fixture
def places(project, tmp_path):
    """Return folders around and beside a project with a loop; its agent may be in any of them."""
    main, tree, module = project.folder, tmp_path / "tree", project.folder / "module"
    (main / ".git").rmdir()
    git(main, "init")
    git(main, "commit", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-b", "other", str(tree))
    git(main, "-c", "protocol.file.allow=always", "submodule", "add", str(tree), "module")
    nested = main / "nested"
    nested.mkdir()
    git(nested, "init")
    done = main / "done"
    done.mkdir()
    jwz.post(done, json.dumps({**looping(), "event": "DONE", "stack": []}))
    return {"nested": nested, "worktree": tree, "submodule": module, "a nearer loop that ended": done}


PLACES = ("nested", "worktree", "submodule", "a nearer loop that ended")


@pytest.mark.parametrize("group", ["loop", "ralph"])
@pytest.mark.parametrize("place", PLACES)
def test_status_adopt_and_cancel_find_the_loop_from_wherever_the_agent_stands(project, places, group, place):
    root = project.folder
    if group == "ralph":
        project.ralph()
    else:
        project.loop()

    def run(action):
        return tailhook(group, action, env=project.env, cwd=places[place])

    named = "" if place == "a nearer loop that ended" else f" It is in {root}."  # that folder is in the project itself
    assert f"loop is running in {root}/." in run("status").stdout
    assert f"that gets a prompt or stops.{named}\n" in run("adopt").stdout
    project.env["CLAUDE_PROJECT_DIR"] = str(root)  # as the host starts the hook
    assert not project.stop("Hm.").allowed
    del project.env["CLAUDE_PROJECT_DIR"]
    cancelled = run("cancel").stdout
    assert " was cancelled at iteration " in cancelled
    assert f".{named}\n" in cancelled
    assert project.stop("Hm.").allowed
    assert run("cancel").returncode == 1
    ended = run("status").stdout.splitlines()[-1]
    assert ended.startswith("The last one ended: ")
    assert place == "a nearer loop that ended" or (
        "it was cancelled (USER_CANCELLED), at iteration 2, at 20" in ended and ended.endswith(f", in {root}.")
    )


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_the_commands_in_a_main_worktree_find_the_loop_of_a_linked_one(project, places, group):
    start = tailhook(group, "start", "Go.", env=project.env, cwd=places["worktree"])
    assert start.returncode == 0, start.stderr
    done = project.as_agent(group, "cancel")
    assert f"It is in {places['worktree']}." in done.stdout


def test_each_worktree_may_have_its_own_loop(project, places, loop):
    assert loop("start", "Go.", session="mine").returncode == 0
    other = {**project.env, "CLAUDE_CODE_SESSION_ID": "other"}
    assert tailhook("loop", "start", "Go.", env=other, cwd=places["worktree"]).returncode == 0


@pytest.mark.parametrize("group", ["loop", "ralph"])
@pytest.mark.parametrize("action", ["cancel", "adopt"])
def test_a_session_changes_no_loop_of_another_session_in_another_worktree(project, places, group, action):
    assert project.as_agent(group, "start", "Go.", session="theirs").returncode == 0
    mine = {**project.env, "CLAUDE_CODE_SESSION_ID": "mine"}
    assert tailhook(group, "start", "Go.", env=mine, cwd=places["worktree"]).returncode == 0
    own = tailhook(group, "cancel", env=mine, cwd=places["worktree"])
    assert (own.returncode, "It is in" in own.stdout) == (0, False)
    done = tailhook(group, action, env=mine, cwd=places["worktree"])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"tailhook: a loop of session theirs is in {project.folder}: to change it, run this there\n"
    assert "loop is running in" in project.as_agent(group, "status", session="theirs").stdout


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_a_sessions_own_loop_is_cancelled_before_another_ones_in_a_nearer_folder(project, places, group):
    assert project.as_agent(group, "start", "Go.", session="mine").returncode == 0
    theirs = {**project.env, "CLAUDE_CODE_SESSION_ID": "theirs"}
    assert tailhook(group, "start", "Go.", env=theirs, cwd=places["nested"]).returncode == 0
    mine = {**project.env, "CLAUDE_CODE_SESSION_ID": "mine"}
    done = tailhook(group, "cancel", env=mine, cwd=places["nested"])
    assert f"It is in {project.folder}." in done.stdout
    assert "running in" in tailhook(group, "status", env=theirs, cwd=places["nested"]).stdout


@pytest.mark.parametrize("group", ["loop", "ralph"])
def test_start_refuses_a_second_loop_of_the_session_whose_hook_would_find_the_first(project, places, group):
    assert project.as_agent(group, "start", "Go.", session="mine").returncode == 0
    mine = {**project.env, "CLAUDE_CODE_SESSION_ID": "mine"}
    done = tailhook(group, "start", "Go.", env=mine, cwd=places["nested"])
    assert done.returncode == 1
    assert f"{project.folder}/" in done.stderr


@pytest.mark.parametrize("switch", ["TAILHOOK_DISABLE", "IDLE_LOOP_DISABLE", ".idle-disabled"])
def test_a_switch_that_is_off_is_named_at_the_start_and_in_the_status(project, loop, switch):
    write_hooks(project)
    env = {} if switch.startswith(".") else {switch: "1"}
    path = project.folder / ".idle-disabled"
    if not env:
        path.touch()
    what = f"{switch} is 1 in the environment. To use loops again, unset it"
    what = what if env else f"{path} is there. To use loops again, remove it"
    assert f"nothing will continue this loop: {what}" in loop("start", "--max", "5", "Go.", **env).stderr
    status = loop("status", **env).stdout
    assert f"At the next stop nothing happens: {what}" in status
    assert "must continue: iteration" not in status
    path.unlink(missing_ok=True)
    assert "At the next stop the agent must continue" in loop("status").stdout
