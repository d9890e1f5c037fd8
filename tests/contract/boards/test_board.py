"""`tailhook board` on a running daemon: every key, pressed like by a person."""

import asyncio
import json
import re
import signal
import time

import pytest
from support.board_user import populate, sit
from support.sessions import post_statuses_of_hours
from textual import events
from textual.widgets._footer import FooterKey

from tailhook.board.plate_list import PlateList
from tailhook.board.screens import DetailsScreen, HelpScreen
from tailhook.errors import TailhookError
from tailhook.plates.client import AwayError

# httpcore leaves the socket of a connection that is refused to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


# ---- what is shown -----------------------------------------------------------


def test_waiting_sessions_come_first_then_the_finished_then_the_working_ones(board_daemon):
    populate(board_daemon)

    async def play(person):
        await person.sees("WAITS FOR YOU 2", "FINISHED, NOT LOOKED AT 1", "WORKING 1")
        places = [person.seen.index(word) for word in ("shop", "mail", "docs", "parser")]
        assert places == sorted(places)
        for word in (
            " ? shop",
            "coupons",
            " ✗ mail",
            "waits for you; the API refused: 529 overloaded",
            " ● parser",
            "thinking",
            " ✓ docs",
        ):
            assert word in person.seen
        assert "legacy" not in person.seen

    sit(play)


def test_age_and_order_go_by_when_the_status_changed(board_daemon):
    post_statuses_of_hours(board_daemon)

    async def play(person):
        await person.sees("late", "3h", "2h", "5h")
        places = [person.seen.index(word) for word in ("first", "3h", "second", "2h", "done", "5h")]
        assert places == sorted(places)

    sit(play)


def test_projects_with_the_same_folder_name_are_shown_with_their_parents(board_daemon):
    board_daemon.post("stop", "first", project_path="/first/web")

    async def play(person):
        await person.sees("web")
        await person.misses("first/web")
        board_daemon.post("stop", "second", project_path="/second/web")
        await person.sees("first/web", "second/web")
        board_daemon.ask("DELETE", "/plates/second")
        await person.misses("first/web", "second/web")

    sit(play)


def test_a_session_stays_in_the_project_where_it_began_and_two_of_one_branch_have_headlines(board_daemon):
    place = {"project_path": "/p/shop", "git_branch": "main"}
    for session, prompt in (("cart", "Empty the cart"), ("search", "Mend the search")):
        board_daemon.post("prompt_submit", session, prompt=prompt, **place)
    board_daemon.post("tool_start", "cart", tool_name="Read", folder="/p/shop/src/cart", **place)

    async def play(person):
        await person.sees("● shop", "Empty the cart", "Mend the search")
        assert person.seen.count("● shop ") == 2
        assert "/p/shop/src/cart" not in person.seen
        await person.until(lambda: person.chosen == "cart")
        await person.press("enter")
        await person.sees("project  /p/shop", "folder   /p/shop/src/cart")

    sit(play)


def test_a_change_is_seen_at_once_and_the_cursor_stays_on_its_session(board_daemon):
    populate(board_daemon)

    async def play(person):
        await person.sees("docs")
        await person.press("down", "down")
        assert person.chosen == "resting"
        board_daemon.post("tool_start", "resting", project_path="/home/ada/docs", tool_name="ExitPlanMode")
        await person.sees(" ! docs", "WAITS FOR YOU 3")
        assert person.chosen == "resting"
        board_daemon.post("tool_call", "new", project_path="/home/ada/new", tool_params={"todos": 4, "todos_done": 1})
        await person.sees("new", "1 of 4")

    sit(play)


def test_words_of_a_session_neither_style_nor_steer_the_terminal(board_daemon):
    board_daemon.post(
        "tool_start", "[bold]s\x1b[2J", project_path="/p/[red]x\x1b]0;o\x07", tool_name="[/]\u202e\x9b31m"
    )

    async def play(person):
        await person.sees("[red]x\\x1b]0;o\\x07", "[/]\\u202e\\x9b31m")
        await person.press("enter")
        await person.press("e")
        await person.sees("[bold]s\\x1b[2J", "tool start")
        assert not set(person.seen) & set("\x1b\x07\x9b\u202e")

    sit(play)


def test_without_a_session_it_explains_what_to_do(board_daemon):
    async def play(person):
        await person.sees("No sessions yet.", "tailhook install --with plates")
        await person.press("enter", "d", "down", "pagedown", "end")
        assert len(person.app.screen_stack) == 1

    sit(play)


def test_every_width_of_the_terminal_will_do(board_daemon):
    populate(board_daemon)

    async def play(person):
        await person.until(lambda: len(person.app.plates) == 4)
        for width in (1, 10, 20, 40, 71, 72, 300):
            await person.pilot.resize_terminal(width, 12)
            await person.press("c", "end", "enter")
            await person.until(lambda: person.app.screen.details)
            await person.press("escape", "question_mark", "escape", "slash", "a", "escape", "c")

    sit(play, size=(1, 12))


def test_the_footer_shortens_words_and_leaves_keys_out_on_the_right_but_keeps_help_and_quit(board_daemon):
    populate(board_daemon)
    lasting, last = "? help  q quit", "a all  c closed"
    shown_at = {
        10: "? help",
        16: "? help  q quit",
        30: f"⏎ view  {lasting}",
        40: f"⏎ view  o go there  {lasting}",
        60: f"⏎ view  o go there  y copy resume  d hide  {lasting}",
        80: f"⏎ view  o go there  y copy resume  d hide  g group  / filter  {lasting}",
        100: f"⏎ details  o go there  y copy resume  d hide  g group  / filter  {last}  {lasting}",
        110: "⏎ details  o go there  y copy resume  d hide  g projects  / filter  "
        f"{last.replace('all', 'show folded')}  {lasting}",
        120: "⏎ details  o go there  y copy command to resume  d hide  g projects  / filter  "
        f"{last.replace('all', 'show folded')}  {lasting}",
    }

    async def play(person):
        await person.until(lambda: len(person.app.plates) == 4)
        for width, shown in shown_at.items():
            await person.pilot.resize_terminal(width, 12)
            await person.until(lambda shown=shown: person.seen.splitlines()[-1].strip() == shown)

    sit(play, size=(10, 12))


def test_the_keys_in_the_footer_are_made_again_only_if_others_are_shown(board_daemon):
    async def play(person):
        await person.sees("? help")
        keys = list(person.app.query(FooterKey))
        person.app.screen.refresh_bindings()
        await person.rests()
        assert list(person.app.query(FooterKey)) == keys
        await person.press("slash")
        await person.sees("⏎ keep")
        await person.press("escape")
        await person.sees("⏎ details")

    sit(play)


def test_on_a_narrow_terminal_a_working_session_has_two_lines(board_daemon):
    populate(board_daemon)

    async def play(person):
        await person.sees("parser", "thinking")
        lines = person.seen.splitlines()
        (at,) = (number for number, line in enumerate(lines) if "parser" in line)
        assert lines[at + 1].split() == ["thinking", "on", "main"]
        await person.pilot.resize_terminal(100, 20)
        await person.until(lambda: any("parser" in line and "thinking" in line for line in person.seen.splitlines()))

    sit(play, size=(40, 20))


def test_a_column_that_is_empty_in_all_rows_leaves_its_room_to_the_headline(board_daemon):
    prompt = "Make the parser accept the long form of each option"
    board_daemon.post("prompt_submit", "first", project_path="/p/parser", prompt=prompt)
    board_daemon.post("stop", "finished", project_path="/p/docs", git_branch="main", tool_params={"todos": 2})

    def headline(person):
        [line] = (line for line in person.seen.splitlines() if "● parser" in line)
        return re.split("  +", line.strip())[1]

    async def play(person):
        await person.until(lambda: "● parser" in person.seen and headline(person) == f"{prompt} thinking")
        board_daemon.post("prompt_submit", "second", project_path="/p/api", git_branch="feat/an-api-for-all-parsers")
        await person.until(lambda: headline(person) == "Make the parser accept the long form… thinking")
        board_daemon.post("tool_call", "second", project_path="/p/api", tool_params={"todos": 4, "todos_done": 1})
        await person.until(lambda: headline(person) == "Make the parser acce… thinking")

    sit(play, size=(120, 24))


def test_a_list_that_is_longer_than_the_terminal_scrolls_with_the_cursor(board_daemon):
    for number in range(30):
        board_daemon.post("prompt_submit", f"s{number:02}", project_path=f"/p/project-{number:02}")

    async def play(person):
        await person.sees("30 working", "project-00")  # all have come
        await person.press("end")
        await person.sees("project-29")
        await person.misses("project-00")
        await person.press("home")
        await person.sees("WORKING 30", "project-00")
        await person.press("pagedown")
        await person.until(lambda: person.chosen > "s03")
        await person.press("pageup")
        await person.until(lambda: person.chosen == "s00")

    sit(play, size=(100, 12))


def test_the_last_line_is_seen_though_the_list_just_got_longer_than_the_terminal(board_daemon):
    for number in range(30):
        board_daemon.post("prompt_submit", f"s{number:02}", project_path=f"/p/project-{number:02}")

    async def play(person):
        await person.sees("30 working", "project-00")  # all have come
        board = person.app
        plates = board.list.plates

        def grow():
            board.list.show(plates, "")
            board.list.action_move(len(plates))

        board.list.show(plates[:3], "")
        await person.misses("project-03")
        await person.rests()
        board.call_next(grow)
        await person.sees("project-29")

    sit(play, size=(100, 12))


# ---- the keys ----------------------------------------------------------------


def test_the_arrows_choose_and_stop_at_the_ends(board_daemon):
    populate(board_daemon)

    async def play(person):
        await person.sees("docs")
        seen = []
        for key in ("up", "down", "down", "down", "down", "up"):
            await person.press(key)
            seen.append(person.chosen)
        assert seen == ["asking", "failing", "resting", "working", "working", "resting"]

    sit(play)


def test_a_click_chooses_and_two_open(board_daemon):
    populate(board_daemon)

    async def play(person):
        await person.sees("docs")
        line = next(number for number, line in enumerate(person.seen.splitlines()) if "parser" in line)
        await person.pilot.click(offset=(5, line))
        assert person.chosen == "working"
        await person.pilot.click(offset=(5, line), times=2)
        await person.until(lambda: isinstance(person.app.screen, DetailsScreen))

    sit(play)


def test_enter_shows_the_details_live_and_escape_returns(board_daemon, tmp_path):
    transcript = tmp_path / "t.jsonl"
    transcript.write_text(
        '{"type":"assistant","message":{"role":"assistant","content":"All [b]done[/b].\\u001b[2J"}}\n'
    )
    now = int(time.time() * 1000)
    fields = {"project_path": "/home/ada/docs", "transcript_path": str(transcript)}
    board_daemon.post("prompt_submit", "s", ts=now - 600_000, **fields)
    board_daemon.post(
        "tool_start", "s", ts=now - 400_000, tool_name="Bash", tool_params={"command": "make test"}, **fields
    )
    board_daemon.post("stop", "s", ts=now - 200_000, **fields)

    async def play(person):
        await person.sees("docs")
        await person.press("enter")
        await person.sees("/home/ada/docs", "All [b]done[/b].", "3m  Bash  make test", "Events 3 ▸")
        assert "prompt submit" not in person.seen
        await person.press("e")
        await person.sees("prompt submit", "tool starts  Bash  make test")
        await person.press("e")
        await person.misses("prompt submit")
        await person.sees("agent", "you", "idle 3m", "now", "● running 6m")
        board_daemon.post("prompt_submit", "s", **fields)
        await person.sees("● running")
        await person.press("escape")
        await person.sees("WORKING 1")

    sit(play)


def test_changes_do_not_end_a_slow_load_of_the_details(board_daemon, monkeypatch):
    looks, reload = [], DetailsScreen.reload
    monkeypatch.setattr(DetailsScreen, "reload", lambda screen: (reload(screen), looks.append(screen.stale)))
    board_daemon.post("prompt_submit", "s", project_path="/home/ada/docs")

    async def play(person):
        details, may_answer, loads = person.app.source.details, asyncio.Event(), []

        async def answer_late(session_id):
            loads.append("begun")
            found = await details(session_id)
            try:
                await may_answer.wait()
            except asyncio.CancelledError:
                loads.append("ended")
                raise
            return found

        person.app.source.details = answer_late
        await person.sees("docs")
        await person.press("enter")
        await person.until(lambda: loads)
        board_daemon.post("stop", "s", project_path="/home/ada/docs")
        await person.until(lambda: any(looks) or len(loads) > 1)
        assert loads == ["begun"]
        may_answer.set()
        await person.sees("Events 2")
        assert "ended" not in loads

    sit(play)


def test_the_details_of_a_session_that_is_deleted_show_that_and_stay(board_daemon):
    board_daemon.post("permission_asked", "s", project_path="/home/ada/docs", tool_name="Bash")

    async def play(person):
        await person.sees("docs")
        await person.press("enter")
        await person.sees("/home/ada/docs", "awaiting approval", "Events 1")
        board_daemon.ask("DELETE", "/plates/s")
        await person.sees("· not on the board any more; last: awaiting approval", "/home/ada/docs", "Events 1")
        person.app.screen.now = lambda: time.time() + 3600
        person.app.screen.show()
        assert "1h" not in person.seen
        await person.press("o")
        await person.sees("docs has ended")
        board_daemon.post("prompt_submit", "s", project_path="/home/ada/docs")
        await person.sees("● running")

    sit(play)


def test_the_details_show_that_a_session_has_closed_although_the_stream_has_only_the_open_ones(board_daemon):
    board_daemon.post("prompt_submit", "s", project_path="/home/ada/docs")

    async def play(person):
        await person.sees("docs")
        await person.press("enter")
        await person.sees("/home/ada/docs", "● running")
        app, handle, news = person.app, person.app.handle, []
        app.handle = lambda *change: news.append(change)  # as if the daemon were away
        board_daemon.post("session_end", "s")
        await person.until(lambda: news)
        handle("plates", [])
        handle("closed", {"sessions": 1})
        await person.sees("/home/ada/docs", "closed")

    sit(play)


def test_the_details_are_shown_although_the_daemon_cannot_store_that_a_person_has_seen_them(board_daemon):
    board_daemon.post("stop", "s", project_path="/home/ada/docs")

    async def play(person):
        async def fail(*_, **__):
            raise TailhookError("the disk is full")

        person.app.source.mark = fail
        await person.sees("✓ docs")
        await person.press("enter")
        await person.sees("/home/ada/docs", "Events 1", "docs: the disk is full")

    sit(play)


def test_enter_pressed_twice_at_once_opens_the_details_once(board_daemon):
    populate(board_daemon)

    async def play(person):
        await person.sees("shop", "docs")
        for _ in range(2):
            person.app.post_message(events.Key("enter", "\r"))
        await person.until(lambda: len(person.app.screen_stack) > 1)
        await person.rests()
        await person.press("escape")
        await person.rests()
        assert len(person.app.screen_stack) == 1

    sit(play)


@pytest.mark.parametrize("list_knows", [True, False])
def test_in_the_details_of_a_session_that_has_closed_the_keys_know_that_it_has_ended(board_daemon, list_knows):
    board_daemon.post("prompt_submit", "s", project_path="/home/ada/docs", agent_program="claude-code")

    async def play(person):
        await person.sees("docs")
        await person.press("enter")
        await person.sees("/home/ada/docs", "● running")
        if not list_knows:
            person.app.handle = lambda *_: None  # as if the stream were late
        board_daemon.post("session_end", "s")
        person.app.screen.stale = True
        await person.sees("· closed")
        await person.press("y")
        await person.sees("Copied", "claude --resume s")
        assert "still open" not in person.seen
        await person.press("o")
        await person.sees("docs has ended")

    sit(play)


def test_the_details_show_all_questions_with_their_choices_and_the_message_as_markdown(board_daemon, tmp_path):
    choices = [{"label": "[red]cookie[/red]", "description": "lost with\x1b[2J the browser"}, {"label": "profile"}]
    questions = [
        {"header": "Theme", "question": "Where is it kept?", "options": choices},
        {"question": "And the size?"},
    ]
    use = {"type": "tool_use", "id": "a", "name": "AskUserQuestion", "input": {"questions": questions}}
    content = [{"type": "text", "text": "# Two ways\n\n- **first** `a`\n\n| x | y |\n|-|-|\n| 1 | [b]2[/b] |"}, use]
    transcript = tmp_path / "asked.jsonl"
    transcript.write_text(
        json.dumps({"type": "assistant", "message": {"role": "assistant", "content": content}}) + "\n"
    )
    fields = {"tool_name": "AskUserQuestion", "tool_use_id": "a", "transcript_path": str(transcript)}
    board_daemon.post("tool_start", "asked", project_path="/home/ada/asked", **fields)

    async def play(person):
        await person.sees("asked")
        await person.press("enter")
        await person.sees("Theme  Where is it kept?", "1 [red]cookie[/red]", "lost with", "2 profile", "And the size?")
        await person.sees("Two ways", "• first a", "[b]2[/b]")

    sit(play, size=(110, 60))


def test_the_details_of_a_session_that_is_gone_show_that(own_daemon):
    populate(own_daemon)

    async def play(person):
        await person.sees("shop")
        own_daemon.stop(signal.SIGKILL)
        await person.press("enter")
        await person.until(lambda: isinstance(person.app.screen, DetailsScreen))
        await person.press("escape")
        await person.until(lambda: len(person.app.screen_stack) == 1)
        own_daemon.start()
        await person.until(lambda: person.app.connected)
        plate = person.app.plates["asking"]
        own_daemon.ask("DELETE", "/plates/asking")
        person.app.post_message(PlateList.Opened(plate))
        await person.sees("shop: no such plate")

    sit(play)


def test_a_filter_is_typed_kept_and_taken_back(board_daemon):
    populate(board_daemon)

    async def play(person):
        await person.sees("shop", "docs", "parser")
        await person.press("slash", *"ada")
        await person.press("space", *"AWAIT")
        await person.misses("docs", "parser")
        await person.sees("shop")
        await person.press("enter", "d")  # the keys are the list's again
        await person.sees("Nothing matches. Esc shows all.")
        await person.press("escape")
        await person.sees("docs", "parser")
        assert person.app.filter.value == ""
        await person.press("slash", "enter")
        assert person.app.focused is person.app.list

    sit(play)
    assert hidden(board_daemon) == {"asking"}


def test_letters_in_the_filter_are_not_keys(board_daemon):
    populate(board_daemon)

    async def play(person):
        await person.sees("shop")
        await person.press("slash", *"dcq?/")
        assert person.app.filter.value == "dcq?/"

    sit(play)
    assert len(board_daemon.plates()) == 5


def hidden(daemon):
    """Return the ids of the hidden sessions."""
    return {name for name, plate in daemon.plates().items() if plate["hidden"]}


def test_d_hides_the_chosen_session_and_u_shows_it_again(board_daemon):
    populate(board_daemon)
    before = board_daemon.plates()

    async def play(person):
        await person.sees("shop")
        await person.press("down", "d")
        await person.misses("529")
        await person.sees("Hidden: mail", "u: undo")
        assert person.chosen == "resting"
        assert hidden(board_daemon) == {"failing"}
        await person.press("u")
        await person.sees("529")
        await person.misses("u: undo")
        assert board_daemon.plates() == before
        await person.press("u")  # there is nothing more to undo

    sit(play)
    assert board_daemon.plates() == before


def test_u_shows_a_closed_session_again_though_closed_ones_are_not_shown_any_more(board_daemon):
    board_daemon.post("session_end", "over", project_path="/home/ada/legacy")

    async def play(person):
        await person.until(lambda: person.app.closed_count)
        await person.press("c")
        await person.sees("· legacy")
        await person.press("d")
        await person.sees("Hidden: legacy")
        await person.press("c")
        await person.misses("· legacy")
        await person.press("u")
        await person.until(lambda: hidden(board_daemon) == set())

    sit(play)


def test_u_means_the_last_one_though_the_daemon_has_not_answered_yet(board_daemon):
    populate(board_daemon)

    async def play(person):
        mark, may_answer = person.app.source.mark, asyncio.Event()

        async def answer_late(*args, **fields):
            await mark(*args, **fields)
            await may_answer.wait()

        await person.sees("shop")
        await person.press("down", "d")
        await person.sees("Hidden: mail")
        person.app.source.mark = answer_late
        last = person.chosen
        await person.press("d")
        await person.until(lambda: hidden(board_daemon) == {"failing", last})
        await person.press("u")
        may_answer.set()
        await person.until(lambda: hidden(board_daemon) == {"failing"})

    sit(play)


def test_a_hidden_session_cannot_be_shown_with_u_after_ten_seconds_but_with_c_and_d(board_daemon):
    populate(board_daemon)
    board_daemon.post("session_end", "working", ts=9)

    async def play(person):
        now = person.app.now()
        person.app.now = lambda: now
        await person.sees("shop")
        await person.press("down", "d")
        await person.misses("529")
        await person.until(lambda: hidden(board_daemon) == {"failing"})
        now += 10.5
        await person.press("u")
        await person.rests()
        assert hidden(board_daemon) == {"failing"}
        await person.sees("CLOSED 1 · HIDDEN 1 ▸")
        await person.press("c", "end")
        await person.sees("mail", "hidden")
        await person.until(lambda: "hidden" in person.seen)
        while person.chosen != "failing":
            await person.press("up")
        await person.press("d")
        await person.until(lambda: hidden(board_daemon) == set())

    sit(play)


def test_a_hidden_session_comes_back_with_its_next_prompt(board_daemon):
    populate(board_daemon)

    async def play(person):
        await person.sees("shop")
        await person.press("down", "d")
        await person.misses("529")
        board_daemon.post("prompt_submit", "failing", project_path="/home/ada/mail")
        await person.sees("WORKING 2")

    sit(play)


def test_the_row_under_the_pointer_when_it_was_pressed_is_the_one_that_is_selected(board_daemon):
    populate(board_daemon)

    async def play(person):
        await person.sees("shop", "mail")
        line = next(at for at, words in enumerate(person.seen.splitlines()) if "mail" in words)
        where = {"offset": (10, line)}
        await person.pilot.mouse_down(**where)
        board_daemon.post("prompt_submit", "asking", project_path="/home/ada/shop")
        await person.sees("WAITS FOR YOU 1")
        await person.pilot.mouse_up(**where)
        assert person.chosen == "failing"

    sit(play)


def test_a_dismissal_that_cannot_be_done_is_reported(own_daemon):
    populate(own_daemon)

    async def play(person):
        await person.sees("shop")
        own_daemon.stop(signal.SIGKILL)
        await person.press("d")
        await person.sees("shop stays: no")

    sit(play)


def test_the_chosen_session_stays_chosen_while_the_daemon_sends_all_again_in_pages(board_daemon):
    """As after a restart of the daemon: the board may be drawn between two pages."""
    for name in ("first", "second", "third"):
        board_daemon.post("prompt_submit", name, project_path=f"/home/ada/{name}")

    async def play(person):
        await person.sees("first", "second", "third")
        await person.press("down", "down")
        board, chosen = person.app, person.chosen
        pages = [[board_daemon.ask("GET", f"/plates/{name}").json()] for name in board.plates if name != chosen]
        board.handle("plates", pages[0])
        board.redraw()
        board.handle("more", [*pages[1], board_daemon.ask("GET", f"/plates/{chosen}").json()])
        board.redraw()
        board.handle("closed", {"sessions": 0})
        board.redraw()
        assert person.chosen == chosen
        board.handle("plates", pages[0])  # the others are gone
        board.handle("closed", {"sessions": 0})
        assert [*board.plates] == [pages[0][0]["session_id"]]

    sit(play)


def test_c_shows_the_closed_ones_and_hides_them(board_daemon):
    board_daemon.post("tool_start", "over", project_path="/home/ada/legacy", tool_name="Bash", ts=1)
    board_daemon.post("session_end", "over", project_path="/home/ada/legacy", ts=2)

    async def play(person):
        await person.sees("All sessions are closed or hidden. Press c to see them.")
        await person.press("c")
        await person.sees("· legacy", "closed", "closed too")
        assert "Bash" not in person.seen
        await person.press("c")
        await person.misses("legacy")

    sit(play)


def test_closed_ones_that_could_not_be_loaded_are_loaded_when_the_daemon_answers_again(board_daemon):
    board_daemon.post("session_end", "over", project_path="/home/ada/legacy")

    async def play(person):
        closed, answers = person.app.source.closed, [AwayError("no daemon answers")]

        async def fail_once(page):
            if answers:
                raise answers.pop()
            return await closed(page)

        person.app.source.closed = fail_once
        await person.sees("Press c to see them.")
        await person.press("c")
        await person.sees("Closed sessions are not shown", "All sessions are closed or hidden.")
        await person.misses("Press c to see them.")
        board_daemon.post("session_end", "later", project_path="/home/ada/later")
        await person.sees("· later", "· legacy")

    sit(play)


def test_of_many_closed_ones_the_newest_are_asked_for_page_by_page(board_daemon, monkeypatch):
    monkeypatch.setattr("tailhook.board.source.CLOSED_AT_ONCE", 3)
    for number in range(16):
        for event in ("session_start", "session_end"):
            board_daemon.post(event, f"s{number:02}", project_path=f"/p/project-{number:02}")

    async def play(person):
        await person.until(lambda: person.app.closed_count == 16)
        assert person.app.plates == {}
        await person.press("c")
        await person.sees("· project-15", "· project-01", "15 of 16 closed")
        assert "project-00" not in person.seen
        board_daemon.post("prompt_submit", "s00")
        await person.sees("project-00", "closed too")
        await person.press("c")
        await person.misses("project-15")
        assert person.app.plates.keys() == {"s00"}

    sit(play, size=(110, 45))


def test_an_answer_that_comes_late_shows_no_session_that_was_deleted_meanwhile(board_daemon):
    for session in ("kept", "gone"):
        board_daemon.post("session_end", session, project_path=f"/home/ada/{session}")

    async def play(person):
        closed, may_answer, found = person.app.source.closed, asyncio.Event(), []

        async def answer_late(page):
            found.append(await closed(page))
            await may_answer.wait()
            return found[-1]

        person.app.source.closed = answer_late
        await person.until(lambda: person.app.closed_count == 2)
        await person.press("c")
        await person.until(lambda: found)
        board_daemon.ask("DELETE", "/plates/gone")
        await person.until(lambda: person.app.closed_count == 1)
        may_answer.set()
        await person.sees("· kept")
        assert person.app.plates.keys() == {"kept"}

    sit(play)


def test_the_question_mark_explains_the_keys(board_daemon):
    async def play(person):
        await person.until(lambda: person.app.connected)
        await person.press("question_mark")
        await person.sees("choose a session", "hide the session", "awaiting approval")
        await person.press("question_mark")
        await person.until(lambda: not isinstance(person.app.screen, HelpScreen))

    sit(play)


def test_q_quits(board_daemon):
    async def play(person):
        await person.until(lambda: person.app.connected)
        await person.press("q")
        assert person.app.return_code == 0

    sit(play)
