"""An agent learns its goal and its signals although a person started the loop in a terminal."""

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from support.oracles import jwz

GOAL = "Make the tests pass."
ENDS = {"loop": "<loop-done>COMPLETE</loop-done>", "ralph": "<promise>GREEN</promise>"}


@pytest.fixture(params=ENDS)
def group(request, project):
    """Return the group of commands; the hook asks its machine."""
    project.argv = [*project.argv[:-1], "ralph" if request.param == "ralph" else "idle"]
    return request.param


@pytest.fixture
def start(project, group):
    """Start a loop, with the id of the session if an agent does."""
    words = ("--completion-promise", "GREEN") if group == "ralph" else ()
    return partial(project.as_agent, group, "start", *words, GOAL)


def prompted(project, **fields):
    """Let a person send a prompt; return what the agent reads beside it."""
    given = answer_to_prompt(project, **fields).get("hookSpecificOutput")
    if given is None:
        return ""
    assert given["hookEventName"] == "UserPromptSubmit"
    return given["additionalContext"]


def noticed(project, **fields):
    """Let a person send a prompt; return what the person reads, and the agent does not."""
    answer = answer_to_prompt(project, **fields)
    assert set(answer) <= {"systemMessage"}
    return answer.get("systemMessage", "")


def answer_to_prompt(project, **fields):
    """Let a person send a prompt; return the hook's answer, {} if it has none."""
    stop = project.stop(hook_event_name="UserPromptSubmit", prompt="Go on.", **fields)
    assert (stop.exit_code, stop.stderr) == (0, "")
    return json.loads(stop.stdout) if stop.stdout else {}


def test_a_sub_agents_prompt_does_not_take_the_briefing_of_its_session(project, group, start):
    start()
    assert answer_to_prompt(project, agent_id="a") == {}
    assert GOAL in prompted(project)


def test_the_first_prompt_gives_the_goal_and_how_to_end_the_loop_once(project, group, start):
    start()
    given = prompted(project)
    assert GOAL in given
    assert ENDS[group] in given
    assert prompted(project) == ""
    assert prompted(project, session_id="another") == ""
    reason = project.stop("Hm.").answer["reason"]
    assert reason == GOAL if group == "ralph" else "\n" not in reason


def compacted(project):
    """Let the host compact the conversation; return what the agent reads."""
    stop = project.stop(hook_event_name="SessionStart", source="compact")
    return stop.answer["hookSpecificOutput"]["additionalContext"]


def test_a_compaction_in_the_last_iteration_repeats_them(project, group):
    words = ("--max-iterations", "2", "--completion-promise", "GREEN") if group == "ralph" else ("--max", "2")
    project.as_agent(group, "start", *words, GOAL).check_returncode()
    assert not project.stop("Hm.").allowed
    given = compacted(project)
    assert GOAL in given
    assert ENDS[group] in given
    assert project.stop("Hm.").allowed


@pytest.mark.parametrize("letter", ["x", "\x07", "\u202e", "\U000e0001"])
def test_a_long_goal_of_any_characters_hides_no_signal_from_the_agent(project, group, start, letter):
    goal = letter * 30_000
    words = ("--completion-promise", "GREEN") if group == "ralph" else ()
    again = "--force" if group == "ralph" else "--replace"

    def begin(*more):
        project.tailhook(group, "start", *words, *more, "--prompt-file", "-", stdin=goal).check_returncode()

    begin()
    given = [prompted(project), compacted(project)]
    begin(again)
    given.append(project.stop("Hm.").answer["reason"])
    for one in given:
        assert ENDS[group] in one
        assert len(one) < 10_000


def test_without_a_prompt_the_first_block_gives_them(project, group, start):
    start()
    reason = project.stop("Hm.").answer["reason"]
    assert GOAL in reason
    assert ENDS[group] in reason
    assert ENDS[group] not in project.stop("Hm.").answer["reason"]
    assert prompted(project) == ""


def test_a_person_reads_which_session_will_have_the_loop(start):
    assert "\nSession: the next one that gets a prompt or stops. Its agent gets this:\n" in start().stdout


def test_an_agent_that_starts_the_loop_itself_has_read_them(project, group, start):
    printed = start(session="mine").stdout
    assert (ENDS[group] in printed, "Session: " in printed) == (True, False)
    assert prompted(project) == ""
    assert ENDS[group] not in project.stop("Hm.").answer["reason"]


def test_a_session_that_adopts_the_loop_gets_them(project, group, start):
    start(session="mine")
    assert project.as_agent(group, "adopt", session="new").returncode == 0
    assert ENDS[group] in prompted(project, session_id="new")
    assert prompted(project, session_id="mine") == ""


def test_the_session_of_the_first_prompt_claims_the_loop(project, group, start):
    start()
    assert ENDS[group] in prompted(project, session_id="first")
    assert project.stop("Hm.", session_id="second").allowed
    assert not project.stop("Hm.", session_id="first").allowed


def test_of_several_sessions_that_get_a_prompt_at_once_one_claims_the_loop(project, group, start):
    start()
    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(lambda name: answer_to_prompt(project, session_id=name), [f"s{at}" for at in range(8)])]
    assert sum(ENDS[group] in json.dumps(answer) for answer in answers) == 1
    assert sum("systemMessage" in answer for answer in answers) == 7
    assert [project.stop("Hm.", session_id=f"s{at}").allowed for at in range(8)].count(False) == 1


def test_a_prompt_without_a_loop_changes_nothing(project, group):
    before = sorted(project.folder.rglob("*"))
    assert prompted(project) == ""
    assert sorted(project.folder.rglob("*")) == before


def test_a_nested_loop_is_explained_and_then_the_outer_one_again(project):
    loop = partial(project.as_agent, "loop")
    loop("start", "--mode", "grind", "Outer.")
    assert loop("start", "--push", "Inner.").returncode == 0
    given = prompted(project)
    assert ("Inner." in given, "Outer." in given) == (True, False)
    assert project.stop("<loop-done>COMPLETE</loop-done>").allowed
    given = prompted(project)
    assert ("Outer." in given, "<grind-done>NO_MORE_ISSUES</grind-done>" in given) == (True, True)
    state = jwz.newest(project.folder)
    assert state is not None
    assert [frame["iter"] for frame in state["stack"]] == [1]


@pytest.mark.parametrize("first", ["start", "adopt"])
def test_a_nested_loop_from_a_shell_belongs_with_its_outer_one_to_the_session_of_the_first_prompt(project, first):
    loop = partial(project.as_agent, "loop")
    loop("start", "Outer.", session="old" if first == "adopt" else "")
    if first == "adopt":
        loop("adopt", session="")
    assert loop("start", "--push", "Inner.", session="").returncode == 0
    assert "Inner." in prompted(project, session_id="first")
    assert project.stop("<loop-done>COMPLETE</loop-done>", session_id="first").allowed
    assert prompted(project, session_id="second") == ""
    assert project.stop("Hm.", session_id="second").allowed
    assert "Outer." in prompted(project, session_id="first")
    assert not project.stop("Hm.", session_id="first").allowed


def notices_of(project):
    """Return the file that keeps which notices were given."""
    return project.home / ".local" / "state" / "tailhook" / "notices"


def state_of(project):
    """Return the bytes of every file of the project."""
    return {path: path.read_bytes() for path in project.folder.rglob("*") if path.is_file()}


def test_another_session_names_the_loop_and_the_command_to_its_person_once_and_changes_nothing(project, group, start):
    start(session="old")
    before = state_of(project)
    notice = noticed(project, session_id="new")
    assert "\n" not in notice
    assert "session old" in notice
    assert notice.endswith(f"tailhook {group} adopt")
    assert [noticed(project, session_id="new") for _ in range(3)] == [""] * 3
    assert noticed(project, session_id="third") == notice
    assert state_of(project) == before
    assert project.stop("Hm.", session_id="new").allowed
    assert not project.stop("Hm.", session_id="old").allowed


def test_a_new_loop_is_named_again(project, group, start):
    start(session="old")
    assert noticed(project, session_id="new")
    assert project.as_agent(group, "cancel").returncode == 0
    assert noticed(project, session_id="new") == ""
    start(session="old")
    if group == "ralph":
        path = project.folder / ".claude" / "ralph-loop.local.md"
        path.write_text(path.read_text().replace("began: ", "began: 1"))  # another second
    assert noticed(project, session_id="new")


def test_the_command_of_the_notice_gives_the_loop_and_its_briefing_to_the_session(project, group, start):
    start(session="old")
    command = noticed(project, session_id="new").rpartition("tailhook ")[2].split()
    assert project.as_agent(*command, session="new").returncode == 0
    assert ENDS[group] in prompted(project, session_id="new")
    assert not project.stop("Hm.", session_id="new").allowed


def test_no_notice_names_a_paused_an_ended_or_an_unclaimed_loop(project, group, start):
    start(session="old")
    assert project.as_agent(group, "pause").returncode == 0
    assert noticed(project, session_id="new") == ""
    assert project.as_agent(group, "resume").returncode == 0
    assert project.as_agent(group, "cancel").returncode == 0
    assert noticed(project, session_id="new") == ""
    assert not notices_of(project).exists()


def test_a_notice_that_cannot_be_kept_is_not_given(project, group, start):
    start(session="old")
    notices_of(project).mkdir()
    assert noticed(project, session_id="new") == ""
    notices_of(project).rmdir()
    notices_of(project).symlink_to(project.home / "elsewhere")
    assert noticed(project, session_id="new") == ""
    assert not (project.home / "elsewhere").exists()


def test_a_torn_list_of_notices_costs_a_repetition_at_most(project, group, start):
    start(session="old")
    notices_of(project).write_bytes(b"\xff\x00torn")
    assert [bool(noticed(project, session_id="new")) for _ in range(2)] == [True, False]


def test_a_long_list_of_notices_loses_its_older_half(project, group, start):
    start(session="old")
    notices_of(project).write_bytes(b"\n0123456789abcdef" * 4000)
    assert [bool(noticed(project, session_id="new")) for _ in range(2)] == [True, False]
    assert notices_of(project).stat().st_size < 40_000


def test_hostile_words_of_a_loop_do_not_reach_the_terminal(project, group, start):
    start(session="\x1b[31mold\n" + "x" * 1000)
    notice = noticed(project, session_id="new")
    assert notice.isprintable()
    assert len(notice) < 250
