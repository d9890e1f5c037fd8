"""A session that should work and shows no sign of it, as `tailhook plates list` and the terminal board show it."""

import json

from support.board_user import sit
from support.daemon import wait_until
from support.host import tailhook


def fall_silent(daemon, seconds):
    """Let the daemon find no sign of the session "s" for some seconds."""
    daemon.post("prompt_submit", project_path="/home/ada/parser", git_branch="main")
    daemon.make_older(seconds)
    daemon.post("stop", "other", project_path="/home/ada/docs")  # it lets the daemon check all sessions soon
    wait_until(lambda: daemon.plates()["s"]["silent_since"])


def test_the_list_shows_for_how_long_there_was_no_sign_of_a_session(daemon):
    fall_silent(daemon, 7300)

    def listed(*flags):
        return tailhook("plates", "list", *flags, env=daemon.env, cwd=daemon.home).stdout

    line = next(line for line in listed().splitlines() if "/home/ada/parser" in line)
    assert line.startswith("no sign for 2h  ")
    plates = {plate["session_id"]: plate for plate in json.loads(listed("--json"))["plates"]}
    assert plates["s"]["status"] == "running"
    assert plates["s"]["silent_since"] < plates["s"]["since"]
    assert plates["other"]["silent_since"] is None


def test_the_board_shows_for_how_long_there_was_no_sign_until_the_next_event(board_daemon):
    board_daemon.post("prompt_submit", project_path="/home/ada/parser", git_branch="main")

    async def play(person):
        await person.sees("● parser", "thinking")
        fall_silent(board_daemon, 400)
        await person.sees("no sign for 6m", "parser")
        await person.press("enter")
        await person.sees("● no sign for 6m", "/home/ada/parser")
        await person.press("escape")
        board_daemon.post("tool_call", project_path="/home/ada/parser")
        await person.sees("● parser", "thinking")
        await person.misses("no sign")

    sit(play)
