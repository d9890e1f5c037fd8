"""The groups of the terminal board: what a person sees of a wait, an end and a quiet session, and what folds."""

import json
import time

from support.board_user import populate, sit
from support.daemon import spooled
from support.host import assistant

from tailhook.board import tui
from tailhook.board.view import parse_time

HOUR_MS = 3_600_000


def test_a_row_shows_what_its_session_asks_with_the_choices(board_daemon):
    asked = {"tool_name": "AskUserQuestion", "tool_params": {"question": "Which one?", "choices": ["red", "blue"]}}
    board_daemon.post("prompt_submit", "s", prompt="Paint the shed", project_path="/p/shed")
    board_daemon.post("tool_start", "s", **asked, project_path="/p/shed", git_branch="paint")

    async def play(person):
        await person.sees("? shed", "Paint the shed", "Which one?  1) red  2) blue", "paint")

    sit(play)


def test_a_row_shows_what_an_mcp_server_asks(board_daemon):
    asked = {"tool_name": "mcp__db", "tool_params": {"question": "Which table?"}}
    board_daemon.post("tool_start", "in a tool", tool_name="mcp__db__query", project_path="/p/shop")
    board_daemon.post("prompt_submit", "outside", project_path="/p/docs")
    for session, project in (("in a tool", "/p/shop"), ("outside", "/p/docs")):
        board_daemon.post("input_asked", session, project_path=project, **asked)

    async def play(person):
        await person.sees("? shop", "? docs", "   Which table?", "   db Which table?")
        await person.press("enter")
        await person.sees("asks", "Which table?", "Timeline")

    sit(play)


def test_a_row_shows_that_its_session_asks_for_a_permission_and_for_what(board_daemon):
    board_daemon.post("permission_asked", "run", tool_name="Bash", tool_params={"command": "git push"})
    board_daemon.post("permission_asked", "use", tool_name="Write", tool_params={"file_path": "/p/src/app.py"})
    board_daemon.post("permission_asked", "other")
    board_daemon.post("tool_start", "busy", tool_name="Bash", tool_params={"command": "make"})

    async def play(person):
        await person.sees(
            "   asks to run git push", "   asks to use Write src/app.py", "   asks for a permission", " Bash make"
        )

    sit(play)


def test_a_row_shows_how_many_tokens_its_session_has_used_and_the_details_show_which(board_daemon, tmp_path):
    transcript = tmp_path / "s.jsonl"
    transcript.write_text(response_line(1, cache_read_input_tokens=1_200_000))
    prompt = {"event_type": "prompt_submit", "ts": int(time.time() * 1000), "mono": None}
    board_daemon.spool(spooled(1, **prompt, transcript_path=str(transcript)))
    board_daemon.spool(spooled(2, "none", **prompt, project_path="/p/zero"))

    async def play(person):
        await person.sees("● p ", "thinking · 1.2M context  ", "    1.2M tokens ")
        assert person.seen.count("tokens") == 1
        with transcript.open("a") as file:
            file.write(response_line(2, cache_read_input_tokens=300_000, output_tokens=60_000))
        await person.sees("thinking · 360k context  ", "    1.5M tokens ")
        await person.pilot.resize_terminal(35, 24)
        await person.sees("thinking · 360k context  ")
        assert "tokens" not in person.seen
        await person.pilot.resize_terminal(110, 24)
        await person.press("enter")
        await person.sees("1.5M tokens: 1.5M input, 1.5M of it from a cache; 60k output")
        transcript.unlink()
        await person.press("escape")
        await person.misses("tokens")
        await person.sees("thinking")

    sit(play)


def test_the_tokens_in_open_details_are_the_newest(board_daemon, tmp_path):
    transcript = tmp_path / "s.jsonl"
    transcript.write_text(response_line(1))
    board_daemon.post("stop", "s", transcript_path=str(transcript))

    async def play(person):
        await person.sees("✓ p ", "12 tokens")
        await person.press("enter")
        await person.sees("12 tokens: 7 input; 5 output")
        with transcript.open("a") as file:
            file.write(response_line(2))  # the context is as full as before
        await person.sees("24 tokens: 14 input; 10 output")

    sit(play)


def response_line(number, **usage):
    """Return a record of a response of Claude Code."""
    one = {**assistant("Done.", id=f"m{number}"), "sessionId": "s"}
    one["message"]["usage"] = {"input_tokens": 7, "output_tokens": 5, **usage}
    return json.dumps(one) + "\n"


def test_the_choices_of_a_question_take_the_branchs_place_if_they_need_it(board_daemon):
    asked = {"question": "Where should it be kept?", "choices": ["cookie", "localStorage", "in the profile"]}
    place = {"project_path": "/p/shop", "git_branch": "feat/dark-mode"}
    board_daemon.post("prompt_submit", prompt="Dark mode", **place)
    board_daemon.post("tool_start", tool_name="AskUserQuestion", tool_params=asked, **place)
    question = "Where should it be kept?  1) cookie  2) localStorage  3) in the profile"

    async def play(person):
        await person.sees("Dark mode", question)
        assert "feat/dark-mode" not in person.seen
        await person.pilot.resize_terminal(110, 24)
        await person.sees(question, "  on feat/dark-mode")

    sit(play, size=(80, 24))


def test_what_a_session_asks_has_a_second_line_if_all_that_wait_fit_into_the_terminal(board_daemon):
    asked = {"question": "Where should the choice of the theme be kept?", "choices": ["Cookie", "storage"]}
    for number in range(3):
        where = {"project_path": f"/p/web-shop-{number}", "git_branch": "main", "ts": time.time_ns() // 10**6 + number}
        board_daemon.post("tool_start", f"s{number}", tool_name="AskUserQuestion", tool_params=asked, **where)
    all_three = [f"? web-shop-{number}" for number in range(3)]
    short = "   Where should the choice…  1) Cookie…"
    whole = ("   Where should the choice of the theme", "   be kept?  1) Cookie  2) storage")

    def asks(person):
        return [line[:39].rstrip() for line in person.seen.splitlines() if line.startswith("   ") and line.strip()]

    async def play(person):
        await person.until(lambda: asks(person) == [short] * 3)
        await person.pilot.resize_terminal(40, 9)
        await person.until(lambda: asks(person) == [*whole, short, short])
        await person.pilot.resize_terminal(40, 11)
        await person.until(lambda: asks(person) == [*whole] * 3)
        await person.sees(*all_three)

    sit(play, size=(40, 8))


def test_a_long_path_that_a_session_asks_about_shows_its_end(board_daemon):
    params = {"file_path": "/p/content/handbook/chapters/the-links-of-all-pages.md"}
    board_daemon.post("permission_asked", tool_name="Write", tool_params=params)

    async def play(person):
        await person.sees("asks to use Write", "links-of-all-pages.md")
        await person.pilot.resize_terminal(40, 4)
        await person.sees("asks to use Write …s-of-all-pages.md")

    sit(play, size=(40, 20))


def test_a_long_command_leaves_room_for_the_number_of_sub_agents(board_daemon):
    board_daemon.post("prompt_submit", prompt="Try all ways")
    for agent in ("first", "second"):
        board_daemon.post("subagent_start", agent_id=agent)
    board_daemon.post(
        "tool_start", tool_name="Bash", tool_params={"command": f"pytest -q {'tests/test_the_first_way.py ' * 3}"}
    )

    async def play(person):
        await person.sees("Bash", "… · 2 sub-agents")

    sit(play, size=(100, 24))


def test_a_stuck_session_shows_its_whole_command_and_since_when_it_is_quiet(board_daemon):
    board_daemon.post("prompt_submit", prompt="Fill the table", project_path="/p/etl")
    board_daemon.post(
        "tool_start", project_path="/p/etl", tool_name="Bash", tool_params={"command": "psql -f backfill-of-july.sql"}
    )
    board_daemon.make_older(700)

    async def play(person):
        await person.sees("STUCK 1", "▲ etl", "Fill the table")
        quiet = person.app.plates["s"]["quiet_since"]
        at = time.strftime("%H:%M", time.localtime(parse_time(quiet)))
        await person.sees(f"   quiet since {at} in Bash psql -f backfill-of-july.sql")

    sit(play, size=(80, 24))


def test_in_a_high_terminal_a_blank_line_stands_between_two_sections(board_daemon):
    populate(board_daemon)
    board_daemon.post("stop", "resting", project_path="/home/ada/docs", reply="Done.")

    def is_blank_above(person, heading):
        lines = person.seen.splitlines()
        (at,) = (number for number, line in enumerate(lines) if heading in line)
        return not lines[at - 1].strip()

    async def play(person):
        await person.sees("WORKING 1")
        assert is_blank_above(person, "FINISHED, NOT LOOKED AT 1")
        assert is_blank_above(person, "WORKING 1")
        await person.pilot.resize_terminal(100, 24)
        await person.until(lambda: not is_blank_above(person, "WORKING 1"))
        assert not is_blank_above(person, "FINISHED, NOT LOOKED AT 1")

    sit(play, size=(100, 40))


def test_the_first_line_leaves_out_the_counts_that_do_not_fit_and_cuts_none(board_daemon):
    populate(board_daemon)

    async def play(person):
        await person.until(lambda: person.seen.splitlines()[0].strip() == "2 wait for you")
        await person.pilot.resize_terminal(34, 24)
        await person.until(lambda: person.seen.splitlines()[0].strip() == "2 wait for you   1 finished")
        await person.pilot.resize_terminal(60, 24)
        await person.sees("2 wait for you   1 finished   0 stuck   1 working")

    sit(play, size=(24, 24))


def test_a_finished_session_is_unseen_until_its_details_are_opened(board_daemon):
    now = time.time_ns() // 1_000_000
    for kind, ago, words in (("prompt_submit", 1200, {"prompt": "Fix it"}), ("stop", 120, {"reply": "It works."})):
        board_daemon.post(kind, "s", ts=now - ago * 1000, project_path="/p/shop", **words)

    async def play(person):
        await person.sees("1 finished", "FINISHED, NOT LOOKED AT 1", "✓ shop", "Fix it", "worked 18m", "It works.")
        await person.press("enter")
        await person.sees("Timeline")
        await person.until(lambda: not board_daemon.plates()["s"]["unseen"])
        await person.press("escape")
        await person.sees("AT REST 1", "○ shop", "It works.")
        await person.misses("FINISHED")

    sit(play)


def test_waits_of_over_eight_hours_fold_into_a_line(board_daemon):
    now = time.time_ns() // 1_000_000
    for number, hours in enumerate((1, 9, 30)):
        board_daemon.post("permission_asked", f"s{number}", ts=now - hours * HOUR_MS, project_path=f"/p/p{number}")

    async def play(person):
        await person.sees("3 wait for you", "WAITS FOR YOU 1", "! p0", "2 older than 8 h ▸")
        assert "p1" not in person.seen
        await person.press("a")
        await person.sees("! p1", "! p2", "2 older than 8 h")
        assert person.chosen == "s0"
        await person.press("down")
        assert person.chosen == "s2"
        await person.press("a")
        await person.misses("p1")
        assert person.chosen == "s0"

    sit(play)


def test_sessions_at_rest_fold_into_their_heading_if_the_list_would_not_fit(board_daemon):
    for number in range(12):
        board_daemon.post("session_start", f"s{number}", source="startup", project_path=f"/p/idle-{number:02}")
        board_daemon.post("turn_ended", f"s{number}", project_path=f"/p/idle-{number:02}")
    board_daemon.post("prompt_submit", "busy", project_path="/p/busy")
    board_daemon.post("session_end", "over", project_path="/p/over")

    async def play(person):
        await person.sees("● busy", "AT REST 12 ▸   CLOSED 1 ▸")
        assert "idle-00" not in person.seen
        await person.pilot.resize_terminal(100, 30)
        await person.sees("idle-00", "idle-11", "AT REST 12   CLOSED 1 ▸")
        await person.pilot.resize_terminal(100, 12)
        await person.misses("idle-00")
        await person.press("a", "end")
        await person.sees("idle-00")
        await person.press("a")
        await person.sees("AT REST 12 ▸")

    sit(play, size=(100, 12))


def test_the_sessions_are_grouped_by_project_when_asked_for(board_daemon):
    populate(board_daemon)
    board_daemon.post("prompt_submit", "second", project_path="/home/ada/shop")

    async def play(person):
        await person.sees("WAITS FOR YOU 2")
        await person.press("g")
        await person.sees("SHOP 2", "MAIL 1", "DOCS 1", "PARSER 1")
        await person.misses("WAITS FOR YOU")
        places = [person.seen.index(word) for word in ("SHOP 2", "? shop", "● shop", "MAIL 1", "✗ mail")]
        assert places == sorted(places)
        await person.press("g")
        await person.sees("WAITS FOR YOU 2")

    sit(play)


def test_the_terminals_tab_shows_how_many_sessions_wait(board_daemon, monkeypatch):
    titles = []
    monkeypatch.setattr(tui.Board, "write_title", lambda app, title: titles.append(title))
    populate(board_daemon)

    async def play(person):
        await person.until(lambda: titles[-1:] == ["(2) tailhook"])
        for session, project in (("asking", "shop"), ("failing", "mail")):
            board_daemon.post("prompt_submit", session, project_path=f"/home/ada/{project}")
        await person.until(lambda: titles[-1] == "tailhook")

    sit(play)


def test_why_a_call_was_refused_has_a_second_line_on_a_narrow_terminal_with_room(board_daemon):
    error = 'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    for number in range(2):
        board_daemon.post("stop_failure", f"s{number}", project_path=f"/p/mail-{number}", error=error)
    whole = ["waits for you; the API refused:", "Overloaded (529)"]
    cut = "waits for you; the API refused: Ove…"

    def reasons(person):
        return [line.strip() for line in person.seen.splitlines() if line.startswith("   ") and line.strip()]

    async def play(person):
        await person.until(lambda: reasons(person) == [cut] * 2)
        await person.pilot.resize_terminal(40, 7)
        await person.until(lambda: reasons(person) == [*whole, cut])
        await person.pilot.resize_terminal(40, 8)
        await person.until(lambda: reasons(person) == whole * 2)

    sit(play, size=(40, 6))


def test_on_a_low_terminal_commands_and_choices_have_the_lines_of_the_heading_and_errors_one(board_daemon):
    now = time.time_ns() // 1_000_000
    tools = {
        "AskUserQuestion": {"question": "Which rate holds for books?", "choices": ["25 %", "0 %", "Ask accounting"]},
        "Write": {"file_path": "deploy/cluster/production.yaml"},
        "Bash": {"command": "psql -h prod-db -c 'delete from orders where year = 2024'"},
    }
    board_daemon.post("stop_failure", "old", ts=now - 90_000, error="rate limit reached: try again at 16:00")
    for number, (tool, params) in enumerate(tools.items()):
        board_daemon.post("tool_start", tool, ts=now - 50_000 + number, tool_name=tool, tool_params=params)
        if tool != "AskUserQuestion":
            board_daemon.post("permission_asked", tool, ts=now - 40_000 + number)
    command = ["   asks to run psql -h prod-db -c", "   'delete from orders where year =", "   2024'"]
    question = ["   Which rate holds for books?  1) 25 %", "   2) 0 %  3) Ask accounting"]
    file = ["   asks to use Write", "   deploy/cluster/production.yaml"]
    refused = ["   waits for you; the API refused: rate", "   limit reached: try again at 16:00"]
    cut = "   waits for you; the API refused: rat…"

    def shown(person):
        lines = [line[:39].rstrip() for line in person.seen.splitlines()[1:-1]]
        return [line if line.startswith("   ") else line.strip()[:1] for line in lines]

    async def play(person):
        await person.until(lambda: shown(person) == ["✗", cut, "?", *question, "!", *file, "!", *command])
        await person.pilot.resize_terminal(40, 15)
        whole = ["✗", *refused, "?", *question, "!", *file, "!", *command]
        await person.until(lambda: shown(person) == whole)
        await person.pilot.resize_terminal(40, 16)
        await person.until(lambda: shown(person) == ["W", *whole])
        await person.pilot.resize_terminal(40, 17)
        await person.until(lambda: shown(person) == ["", "W", *whole])
        await person.pilot.resize_terminal(40, 9)
        await person.until(lambda: shown(person)[:2] == ["W", "✗"])

    sit(play, size=(40, 14))


def test_the_first_line_shows_the_counts_of_groups_without_a_session(board_daemon):
    board_daemon.post("stop_failure", error="529 overloaded")

    async def play(person):
        await person.until(
            lambda: person.seen.splitlines()[0].strip() == "1 waits for you   0 finished   0 stuck   0 working"
        )
        await person.pilot.resize_terminal(42, 24)
        await person.until(lambda: person.seen.splitlines()[0].strip() == "1 waits for you   0 finished   0 stuck")

    sit(play)


def test_what_a_session_does_has_the_room_that_headlines_and_branches_do_not_need(board_daemon):
    command = "terraform apply -auto-approve -target=module.cluster"
    board_daemon.post("prompt_submit", prompt="Upgrade the cluster", git_branch="k8s")
    board_daemon.post("tool_start", git_branch="k8s", tool_name="Bash", tool_params={"command": command})

    async def play(person):
        await person.sees(f"Upgrade the cluster Bash {command} ", " on k8s ")

    sit(play, size=(120, 24))


def test_the_number_of_sub_agents_follows_no_separator_if_nothing_stands_before_it(board_daemon):
    board_daemon.post("subagent_start", agent_id="first", project_path="/p/shop")
    board_daemon.post("tool_start", agent_id="first", tool_name="Bash", tool_params={"command": "make"})
    board_daemon.post("turn_ended", project_path="/p/shop")

    async def play(person):
        await person.sees("shop", "1 sub-agent")
        [line] = (line for line in person.seen.splitlines() if "sub-agent" in line)
        assert "·" not in line, line

    sit(play)
