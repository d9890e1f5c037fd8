"""`tailhook plates list --waiting` and `--short`: what the waiting sessions ask, for a person and for a status bar."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.host import tailhook, wait_until
from support.tmux import needs_tmux, tmux_in

PAGE = (Path(__file__).parents[3] / "docs" / "board.md").read_text()
ASKED = {"question": "Which database?", "choices": ["PostgreSQL", "SQLite"]}
LINE = '2 wait: shop "Which database?", api Bash rm -r build · 1 done · 1 run'


def listed(daemon, *flags):
    """Return what the list prints."""
    done = tailhook("plates", "list", *flags, env=daemon.env, cwd=daemon.home)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def fill(daemon):
    """Let two sessions wait, one finish, and one work."""
    daemon.post("tool_start", "a", tool_name="AskUserQuestion", tool_params=ASKED, project_path="/p/shop", ts=1000)
    asked = {"tool_name": "Bash", "tool_params": {"command": "rm -r build"}}
    daemon.post("permission_asked", "b", **asked, project_path="/p/api", ts=2000)
    daemon.post("prompt_submit", "c", project_path="/p/c")
    daemon.post("stop", "c", project_path="/p/c")
    daemon.post("prompt_submit", "d", project_path="/p/d")


@needs_tmux
def test_the_recipe_of_the_docs_shows_the_line_in_tmux(board_daemon, tmp_path):
    fill(board_daemon)
    [recipe] = re.findall(r"^\| tmux \| `(.+?)` and `(.+?)` in", PAGE, re.MULTILINE)
    config = tmp_path / "tmux.conf"
    config.write_text("\n".join(recipe))
    env = {**board_daemon.env, "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    with tmux_in(tmp_path, env, config) as tmux:
        client = tmux.attach()
        tmux("set", "-g", "status-interval", "1")
        wait_until(lambda: '2 wait: shop "Which database?", api Bash rm -r build' in client.seen)


def run_like_a_bar(daemon, command):
    """Return the output of a recipe's command, run as the bars do: by `sh -c`, with `tailhook` on the PATH."""
    env = {**daemon.env, "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    done = subprocess.run(["sh", "-c", command], env=env, cwd="/", capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def test_the_command_of_the_docs_for_starship_prints_the_line(board_daemon):
    fill(board_daemon)
    [(table, *keys)] = re.findall(r"^\| starship \| `(.+?)` with `(.+?)`, `(.+?)` and `(.+?)` in", PAGE, re.MULTILINE)
    recipe = tomllib.loads("\n".join((table, *keys)))["custom"]["tailhook"]
    assert (recipe["when"], recipe["format"]) == (True, "[$output]($style) ")
    assert run_like_a_bar(board_daemon, recipe["command"]).strip() == LINE


def test_the_command_of_the_docs_for_waybar_prints_a_line_of_json_with_what_waybar_reads(board_daemon):
    fill(board_daemon)
    [(module, style)] = re.findall(
        r"^\| waybar \| `(.+?)` in its configuration, and `(.+?)` in its", PAGE, re.MULTILINE
    )
    [(name, recipe)] = json.loads(f"{{{module}}}").items()
    assert (recipe["return-type"], recipe["escape"]) == ("json", True)
    [line] = run_like_a_bar(board_daemon, recipe["exec"]).splitlines()
    shown = json.loads(line)
    assert shown["text"] == LINE
    assert style.startswith(f"#{name.replace('/', '-')}.{shown['class']} ")


@pytest.mark.parametrize("flags", [("--waiting", "--short"), ("--short", "--waiting"), ("--short",)])
def test_the_line_for_a_status_bar(board_daemon, flags):
    assert listed(board_daemon, *flags) == "\n"
    fill(board_daemon)
    assert listed(board_daemon, *flags) == f"{LINE}\n"


def test_the_line_names_three_and_shortens_what_they_ask(board_daemon):
    for number in range(5):
        params = {"question": f"{number} #[fg=red]#(rm) \x1b" + "long " * 20}
        tool = {"tool_name": "AskUserQuestion", "tool_params": params}
        board_daemon.post("tool_start", f"s{number}", **tool, project_path=f"/p/{number}", ts=1000 + number)
    line = listed(board_daemon, "--waiting", "--short")
    start = '5 wait: 0 "0 # [fg=red]#(rm) \\x1blong long long lon…", 1 "1'
    assert (line.startswith(start), line.endswith('…", …\n'), line.count("long")) == (True, True, 9), line


def test_the_json_for_a_status_bar_has_the_names_that_waybar_reads(board_daemon):
    fill(board_daemon)
    found = json.loads(listed(board_daemon, "--waiting", "--short", "--json"))
    assert found["text"] == LINE
    assert found["tooltip"] == "shop: asks Which database? 1) PostgreSQL 2) SQLite\napi: asks to run rm -r build"
    assert found["class"] == "waits"
    assert found["counts"] == {"waits": 2, "finished": 1, "stuck": 0, "working": 1, "rest": 0}
    assert [plate["session_id"] for plate in found["waiting"]] == ["a", "b"]


def test_the_list_of_the_waiting_sessions(board_daemon):
    assert listed(board_daemon, "--waiting") == "No session waits for you.\n"
    fill(board_daemon)
    head, first, second = listed(board_daemon, "--waiting").splitlines()
    assert head.split()[-1] == "ACTIVITY"
    assert first.endswith("  asks Which database?  1) PostgreSQL  2) SQLite")
    assert second.endswith("  asks to run rm -r build")
    assert [plate["session_id"] for plate in json.loads(listed(board_daemon, "--waiting", "--json"))["plates"]] == [
        "a",
        "b",
    ]


def test_without_a_daemon_a_bar_shows_nothing_and_stderr_has_the_reason(own):
    done = tailhook("plates", "list", "--waiting", "--short", env=own.env, cwd=own.home)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tailhook: no daemon answers. Start one:  tailhook plates serve\n"


@pytest.mark.parametrize("flags", [(), ("--short",), ("--waiting", "--short")])
def test_a_socket_in_a_folder_that_other_users_can_change_is_not_asked(board_daemon, flags):
    fill(board_daemon)
    board_daemon.runtime.chmod(0o777)
    done = tailhook("plates", "list", *flags, env=board_daemon.env, cwd=board_daemon.home)
    board_daemon.runtime.chmod(0o700)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"tailhook: {board_daemon.runtime} can be written by other users")
    assert done.stderr.count("\n") == 1


def test_a_status_bar_loads_little(board_daemon):
    code = (
        "import sys; from tailhook.cli import main; main(['plates', 'list', '--waiting', '--short']);"
        " print(*sys.modules, file=sys.stderr)"
    )
    argv = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]
    done = subprocess.run(argv, env=board_daemon.env, cwd=board_daemon.home, capture_output=True, text=True, check=True)
    loaded = {name for name in done.stderr.split() if name.startswith("tailhook")}
    assert done.stdout == "\n"
    assert not {"argparse", "json", "socket", "re", "httpx"} & set(done.stderr.split())
    assert len(loaded) < 15, loaded
