"""Whole hooks and commands of a loop with a budget of tokens or minutes."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from support.host import assistant, in_time

from tailhook._core import iso_time
from tailhook.hosts import NAMES, find_host
from tailhook.machines.budgets import parse_mark

END = {"loop": "<loop-done>COMPLETE</loop-done>", "ralph": "<promise>GREEN</promise>"}
HOUR_S = 3600


class BudgetLoop:
    """A loop of this session and its agent.

    group: "loop" or "ralph".
    """

    def __init__(self, project, group):
        self.project, self.group, self.number = project, group, 0
        project.argv = [*project.argv[:-1], "idle" if group == "loop" else "ralph"]

    def start(self, *flags):
        """Start the loop as its agent does."""
        words = ("--completion-promise", "GREEN") if self.group == "ralph" else ()
        done = self.project.as_agent(self.group, "start", *words, *flags, "Work.", session="mine")
        assert done.returncode == 0, done.stderr
        return done

    def respond(self, output, agent="", at=None):
        """Write a response into the transcript of the session, or of a sub-agent. It costs 10 tokens more."""
        self.number += 1
        record = assistant(f"Turn {self.number}.", id=f"msg_{self.number}", requestId=f"r{self.number}", at=at)
        usage = {"input_tokens": 4, "cache_creation_input_tokens": 6, "cache_read_input_tokens": 9000}
        record["message"]["usage"] = {**usage, "output_tokens": output}
        if not agent:
            self.project.write(record)
            return
        path = self.project.transcript.with_suffix("") / "subagents" / f"agent-{agent}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as out:
            out.write(json.dumps({**record, "isSidechain": True, "agentId": agent}) + "\n")

    def stop(self, said="Turn.", **fields):
        return self.project.stop(said, "--announce", **fields)

    def status(self):
        return json.loads(self.project.tailhook(self.group, "status", "--json").stdout)

    def lines(self):
        return self.project.tailhook(self.group, "status").stdout

    def ending(self):
        found = self.status()
        return found["ended"]["reason"] if self.group == "ralph" else found["state"]["reason"]

    def fields(self):
        """Return the loop's fields as they are saved."""
        state = self.status()["state"]
        return state if self.group == "ralph" else state["stack"][-1]

    def begin(self, age):
        """Let the loop have begun so many seconds ago. In the future, no minute is spent."""
        self.set(began=iso_time(time.time() - age))

    def set(self, **fields):
        """Change fields of the saved loop, as a person or another program does."""
        if self.group == "loop":
            state = self.status()["state"]
            state["stack"][-1].update(fields)
            self.project.loop(*state["stack"], **{key: state[key] for key in state if key != "stack"})
            return
        path = self.project.folder / ".claude" / "ralph-loop.local.md"
        lines = [line for line in path.read_text().splitlines() if line.partition(":")[0] not in fields]
        path.write_text("\n".join([lines[0], *(f"{key}: {value}" for key, value in fields.items()), *lines[1:], ""]))


@pytest.fixture(params=["loop", "ralph"])
def loop(request, project):
    return BudgetLoop(project, request.param)


def test_a_loop_of_1000_tokens_counts_its_sub_agent_and_ends_after_one_turn_to_wrap_up(loop):
    loop.start("--tokens", "1000")
    loop.respond(400)
    assert "last turn" not in loop.stop().answer["reason"]
    loop.respond(290)
    loop.respond(280, agent="a")
    first, _, rest = loop.stop().answer["reason"].partition("\n\n")
    assert first.startswith(("[ITERATION 3/10]", "Work."))
    assert "This is the last turn of the loop, because its budget is spent: 1,000 of 1,000 tokens." in rest
    loop.respond(100)
    ended = loop.stop()
    assert ended.exit_code == 0
    assert "its budget is spent: 1,110 of 1,000 tokens" in ended.answer["systemMessage"]
    assert loop.ending() == "TOKEN_LIMIT"
    assert loop.stop().allowed


def test_a_loop_of_minutes_ends_in_the_same_way_and_reads_no_transcript(loop):
    loop.start("--minutes", "1")
    loop.begin(-HOUR_S)
    assert "last turn" not in loop.stop("A.").answer["reason"]
    loop.begin(HOUR_S)
    assert re.search(r"its budget is spent: 6\d of 1 minute", loop.stop("B.").answer["reason"])
    assert re.search(r"its budget is spent: 6\d of 1 minute", loop.stop("C.").answer["systemMessage"])
    assert loop.ending() == "TIME_LIMIT"


def test_a_signal_in_the_turn_to_wrap_up_is_the_reason_of_the_end(loop):
    loop.start("--tokens", "1000", "--minutes", "90")
    loop.respond(2000)
    assert "last turn" in loop.stop().answer["reason"]
    loop.stop(f"All is done.\n\n{END[loop.group]}")
    assert loop.ending() == "COMPLETE"


def test_status_shows_what_is_spent_and_what_is_left(loop):
    assert (
        "Budget: 1,000 tokens (input, cache creation and output) and 90 minutes"
        in loop.start("--tokens", "1000", "--minutes", "90").stdout
    )
    loop.respond(390)
    loop.stop()
    loop.begin(-HOUR_S)
    assert "Budget of tokens: 400 of 1,000 spent, 600 left (counted at the last stop)." in loop.lines()
    assert "Budget of minutes: 0 of 90 spent, 90 left." in loop.lines()
    assert loop.status()["budgets"] == {
        "tokens": {"spent": 400, "limit": 1000, "left": 600},
        "minutes": {"spent": 0, "limit": 90, "left": 90},
    }


def test_pause_resume_and_adopt_keep_the_budget_and_the_count_and_the_pause_costs_time(loop):
    loop.start("--tokens", "1000", "--minutes", "90")
    loop.respond(390)
    loop.stop()
    before = loop.fields()
    command = loop.project.as_agent
    for action in ("pause", "resume"):
        assert command(loop.group, action).returncode == 0
    assert command(loop.group, "adopt", session="other").returncode == 0
    kept = ("began", "tokens", "minutes", "spent")
    assert {key: loop.fields()[key] for key in kept} == {key: before[key] for key in kept}
    loop.begin(2 * HOUR_S)
    assert re.search(r"12\d of 90 minutes", loop.stop(session_id="other").answer["reason"])


def test_after_adopt_the_transcript_of_the_new_session_is_counted_from_there(loop):
    loop.start("--tokens", "100000")
    loop.respond(390)
    loop.stop()
    loop.project.as_agent(loop.group, "adopt", session="other").check_returncode()
    copied = loop.project.transcript.read_text()
    loop.project.transcript = loop.project.home / "other.jsonl"
    loop.project.transcript.write_text(copied)
    loop.respond(90)
    loop.stop(session_id="other")
    assert parse_mark(loop.fields()["spent"]).tokens == 500


@pytest.mark.parametrize("flag", ["--tokens", "--minutes"])
@pytest.mark.parametrize("word", ["0", "-1", "x", "1.5", "1e300", "", "9" * 30])
def test_another_value_than_a_whole_number_above_0_is_refused(loop, flag, word):
    done = loop.project.as_agent(loop.group, "start", f"{flag}={word}", "Work.")
    assert done.returncode == 2
    assert flag in done.stderr
    assert not (loop.project.folder / ".claude").exists()
    assert not (loop.project.folder / ".jwz").exists()


def test_without_budgets_no_field_is_written_and_no_module_loaded(loop):
    loop.start()
    loop.respond(500)
    loop.stop()
    assert not {"tokens", "minutes", "spent", "wrap_up"} & set(loop.fields())


@pytest.mark.parametrize("content", [None, b"", b"\0" * 5000, b"\xff\xfe{]", b'{"type":"assistant"', b"[1]\n" * 50])
def test_a_transcript_that_is_missing_or_damaged_holds_nothing_and_ends_nothing(loop, content):
    loop.start("--tokens", "1000", "--stuck-after", "0")
    if content is not None:
        loop.project.transcript.write_bytes(content)
    for _ in range(3):
        found = loop.stop()
        assert "reason" in found.answer
        assert "last turn" not in found.answer["reason"]
        assert found.stderr.count("\n") <= 1
        assert "tailhook:" not in found.stderr


@pytest.mark.parametrize("value", ['"many"', "-5", "1e300", "null", "[]", '"0"'])
def test_a_budget_that_was_damaged_later_ends_nothing(loop, value):
    loop.start("--tokens", "1000")
    loop.respond(5000)
    loop.set(tokens=json.loads(value) if loop.group == "loop" else value)
    assert "last turn" not in loop.stop().answer["reason"]


@pytest.mark.parametrize("host", [name for name in NAMES[1:] if not find_host(name).HOOKS_FILE.get("machines")])
def test_in_a_host_whose_tokens_are_not_counted_only_minutes_end_a_loop(project, host):
    loop = BudgetLoop(project, "loop")
    loop.start("--tokens", "1", "--minutes", "1", "--stuck-after", "0")
    loop.begin(-HOUR_S)
    loop.respond(5000)
    payload = json.dumps(project.payload(last_assistant_message="Hm.", prompt_response="Hm.")).encode()
    assert "last turn" not in project.hook(payload, "--host", host).stdout
    assert loop.fields()["iter"] == 2
    loop.begin(HOUR_S)
    assert re.search(r"its budget is spent: 6\d of 1 minute", project.hook(payload, "--host", host).stdout)


def test_start_reports_the_hosts_whose_tokens_are_not_counted(loop):
    loop.project.tailhook("install", "--yes", "--host", "copilot").check_returncode()
    words = "tailhook: tokens of Copilot CLI are not counted, so --tokens ends no loop there\n"
    first = loop.project.tailhook(loop.group, "start", "--tokens", "1000", "Work.")
    assert words in first.stderr
    flag = "--replace" if loop.group == "loop" else "--force"
    assert words not in loop.project.tailhook(loop.group, "start", "--minutes", "10", flag, "Work.").stderr


def test_an_inner_loops_budget_ends_that_loop_alone_and_the_outer_one_has_counted_all(project):
    loop = BudgetLoop(project, "loop")
    loop.start("--tokens", "5000")
    loop.begin(60)
    loop.respond(500, at=time.time() - 10)
    loop.stop()
    loop.start("--push", "--tokens", "100")
    loop.respond(200)
    assert "210 of 100 tokens" in loop.stop().answer["reason"]
    loop.respond(30)
    ended = loop.stop()
    assert "inner loop ended: its budget is spent: 250 of 100 tokens. The outer loop" in ended.answer["systemMessage"]
    loop.respond(40)
    assert "This is the last turn" not in loop.stop().answer["reason"]
    assert loop.status()["budgets"]["tokens"]["spent"] == 810


def test_another_sessions_stop_counts_nothing(loop):
    loop.start("--tokens", "10")
    loop.respond(5000)
    before = loop.fields()
    assert loop.stop(session_id="other").allowed
    assert loop.fields() == before


def test_a_compaction_in_the_last_turn_repeats_the_goal_and_that_it_is_the_last_one(loop):
    loop.start("--tokens", "1000")
    loop.respond(2000)
    loop.stop()
    found = loop.stop(None, hook_event_name="SessionStart", source="compact")
    context = found.answer["hookSpecificOutput"]["additionalContext"]
    assert "Work." in context
    assert "This is the last turn of the loop" in context
    loop.stop("C.")
    assert loop.ending() == "TOKEN_LIMIT"
    assert loop.stop(None, hook_event_name="SessionStart", source="compact").allowed


def test_of_many_stops_at_once_each_counts_an_iteration_and_none_counts_a_response_twice(loop):
    loop.start("--tokens", "100000", "--stuck-after", "0")
    for _ in range(30):
        loop.respond(90)
    with ThreadPoolExecutor(8) as pool:
        stops = [pool.submit(in_time, partial(loop.project.stop, f"Turn {number}.")) for number in range(8)]
    assert all("block" in one.result().stdout for one in stops)
    fields = loop.fields()
    assert int(fields.get("iter") or fields["iteration"]) == 9
    assert parse_mark(fields["spent"]).tokens == 3000
