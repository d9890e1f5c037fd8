"""Token usage of whole sessions of the hosts, compared with the tokens that the model billed."""

import json

import pytest
from codex_agents import FirstTools, SecondTools, by_agent, result_of
from model import use
from model_openai import Billed
from other_hosts import Codex, Copilot, Gemini, Qwen
from run_hosts import host_path
from support import codex_writer
from support.oracles.host_usage import responses

import tailhook
from tailhook import scan


def at(tmp_path, kind):
    """Return a host with no hook installed."""
    if not host_path(kind.name).exists():
        pytest.skip(f"{kind.__doc__} is not installed: `make host` fetches it")
    return kind(tmp_path / "home", tmp_path / "project")


@pytest.fixture
def codex(tmp_path):
    """Return Codex CLI."""
    return at(tmp_path, Codex)


def rollouts(codex):
    """Return the files that it wrote."""
    return sorted((codex.home / ".codex").rglob("rollout-*.jsonl"))


def newest(codex):
    """Return the id of the newest session."""
    newest = max(rollouts(codex), key=lambda path: path.stat().st_mtime)
    return json.loads(newest.read_text().partition("\n")[0])["payload"]["id"]


COLUMNS = Billed._fields[1:]
TOKENS = COLUMNS[2:]


def in_columns(found):
    """Return responses as tuples of the columns of a bill, in order."""
    return sorted(tuple(getattr(one, name) for name in COLUMNS) for one in found)


def sums(found, name):
    """Return the sums of the responses' tokens by a column."""
    groups = {getattr(one, name) for one in found}
    return {
        group: [sum(getattr(one, column) for one in found if getattr(one, name) == group) for column in TOKENS]
        for group in groups
    }


def check_bill(codex, model, older=()):
    """Check that the oracle, the scan and the command count each response once. No record has other tokens.

    older: responses of sessions that a test wrote itself.
    """
    bill = [*model.bill, *older]
    assert in_columns(responses("codex", rollouts(codex))) == in_columns(bill)
    folder = codex.home / ".codex" / "sessions"
    question = scan(folder, "usage")
    assert in_columns(question.rows()) == in_columns(bill)
    assert question.report.unknown_types == {}
    sessions = scan(folder, "sessions").rows()
    assert {row.session_id: [getattr(row, name) for name in TOKENS] for row in sessions} == sums(bill, "session_id")
    groups = json.loads(codex.tailhook("usage", "--json", "--by", "model"))["groups"]
    assert {group["model"]: [group[name] for name in TOKENS] for group in groups} == sums(bill, "model")


def check_files(codex, model):
    """Check that each file alone has the responses of its own agent, in the library too."""
    for path in rollouts(codex):
        thread = json.loads(path.read_text().partition("\n")[0])["payload"]["id"]
        own = [one for one in model.bill if one.thread_id == thread]
        assert in_columns(scan(path, "usage").rows()) == in_columns(own)
        with tailhook.open(path) as transcript:
            usages = [message.usage for message in transcript.messages() if message.usage]
        read = [(one.input, one.output, one.cache_read, one.cache_creation) for one in usages]
        assert sorted(read) == sorted(one[3:] for one in own)


def found(folder):
    """Return how many responses a scan of a folder finds. No record has other tokens."""
    question = scan(folder, "usage")
    count = sum(map(len, question))
    assert question.report.unknown_types == {}
    return count


def test_each_response_counts_once_after_a_resume_a_fork_and_a_fork_of_a_fork(codex):
    with codex.model(codex.bash("echo hi"), "Done.") as model:
        codex.run(model)
        for word in ("resume", "fork", "fork"):
            codex.session = word, newest(codex)
            codex.run(model, "And on.")
    assert len(model.bill) == 5
    check_bill(codex, model)


def test_a_compaction_is_a_response(codex):
    codex.settings = "model_auto_compact_token_limit = 1000\n"
    with codex.model("Hm.", codex.bash("echo much"), "And on.", "Done.") as model:
        model.tokens = 101, 5000
        codex.run(model)
        codex.session = "resume", newest(codex)
        codex.run(model, "Go on.")
    assert len(model.bill) > 3
    check_bill(codex, model)


def old_session(codex):
    """Write a session of an old version. Return its writer, and its id."""
    old = codex_writer.Codex("0.44.0", turn_ids=False)
    thread = old.thread("0199a213-ffd4-7161-8d2d-1f5e0c1d2e3f").turn("gpt-5-codex")
    thread.respond(1000, 0, 50)
    thread.respond(2000, 0, 100)
    folder = codex.home / ".codex" / "sessions" / "2025" / "10" / "02"
    folder.mkdir(parents=True)
    ((name, text),) = old.history().files.items()
    (folder / name).write_text(text)
    return old, thread.id


def test_an_old_session_that_is_resumed_and_forked_counts_once(codex):
    old, session = old_session(codex)
    with codex.model("Hm.", "Hm.") as model:
        for word in ("resume", "fork"):
            codex.session = word, session
            codex.run(model, "Go on.")
    assert len(model.bill) == 2
    check_bill(codex, model, old.bill)


def spawned(tools, task, fork, result, **more):
    """Spawn a sub-agent, and wait for its result. Return what `spawn` returned to its parent."""
    request = yield tools.spawn(task, fork, **more)
    agent = result_of(request)
    yield from awaited(tools, agent, request, result)
    return agent


def awaited(tools, agent, request, result):
    """Wait until an agent's result is in the conversation of its parent."""
    while result not in request.prompted:
        request = yield tools.wait(agent)


AT_ZERO_OR_FORKED = pytest.mark.parametrize("fork", [False, True], ids=["at zero", "forked"])


@AT_ZERO_OR_FORKED
@pytest.mark.parametrize("tools", [FirstTools, SecondTools])
def test_each_response_of_a_sub_agent_counts_once_in_the_session_of_its_parent(codex, tools, fork):
    def parent(request):
        yield codex.bash("echo hi")
        agent = yield from spawned(tools, "Do a part.", fork, "The part is done.")
        request = yield tools.ask(agent, "Do another part.")
        yield from awaited(tools, agent, request, "The other part is done.")
        yield "All is done."

    def child(request):
        yield codex.bash("echo a part")
        yield "The part is done."
        yield codex.bash("echo another part")
        yield "The other part is done."

    codex.settings = tools.settings
    with codex.model(*by_agent(parent, child)) as model:
        codex.run(model)
        codex.session = "resume", model.bill[0].session_id
        codex.run(model, "And on.")
    session, child_thread = dict.fromkeys(one.thread_id for one in model.bill)
    assert [one.thread_id for one in model.bill].count(child_thread) == 4
    assert {one.session_id for one in model.bill} == {session}
    check_bill(codex, model)
    check_files(codex, model)


@AT_ZERO_OR_FORKED
@pytest.mark.parametrize(("tools", "model_name"), [(FirstTools, "none"), (SecondTools, "gpt-6-sol")])
def test_a_sub_agent_of_a_sub_agent_counts_once(codex, tools, model_name, fork):
    def parent(request):
        yield from spawned(tools, "Do a part.", fork, "The part is done.")
        yield "All is done."

    def child(request):
        yield from spawned(tools, "Do a small part.", fork, "The small part is done.")
        yield "The part is done."

    def grandchild(request):
        yield "The small part is done."

    codex.settings, codex.model_name = tools.settings, model_name
    with codex.model(*by_agent(parent, child, grandchild)) as model:
        codex.run(model)
        _, child_thread, _ = dict.fromkeys(one.thread_id for one in model.bill)
        codex.session = "fork", child_thread
        codex.run(model, "And on.")
    assert len({one.thread_id for one in model.bill}) == 4
    check_bill(codex, model)
    check_files(codex, model)


@AT_ZERO_OR_FORKED
def test_a_sub_agent_of_another_model_counts_for_its_own_model_also_when_it_is_resumed(codex, fork):
    def parent(request):
        yield from spawned(FirstTools, "Do a part.", fork, "The part is done.", model="gpt-6-luna")
        yield "All is done."

    def child(request):
        yield "The part is done."

    with codex.model(*by_agent(parent, child)) as model:
        codex.run(model)
        _, child_thread = dict.fromkeys(one.thread_id for one in model.bill)
        codex.session, codex.model_name = ("resume", child_thread), "gpt-6-luna"
        codex.run(model, "And on.")
    assert {(one.thread_id == child_thread, one.model) for one in model.bill} == {(False, "none"), (True, "gpt-6-luna")}
    check_bill(codex, model)
    check_files(codex, model)


@AT_ZERO_OR_FORKED
def test_a_sub_agent_of_an_old_session_counts_once(codex, fork):
    def parent(request):
        yield from spawned(FirstTools, "Do a part.", fork, "The part is done.")
        yield "All is done."

    def child(request):
        yield codex.bash("echo a part")
        yield "The part is done."

    old, session = old_session(codex)
    with codex.model(*by_agent(parent, child)) as model:
        codex.session = "resume", session
        codex.run(model, "Go on.")
    assert len({one.thread_id for one in model.bill}) == 2
    check_bill(codex, model, old.bill)


@AT_ZERO_OR_FORKED
def test_a_sub_agent_and_its_parent_that_are_compacted_count_once(codex, fork):
    def parent(request):
        yield codex.bash("echo much")
        yield from spawned(FirstTools, "Do a part.", fork, "The part is done.")
        yield "All is done."

    def child(request):
        yield codex.bash("echo much")
        yield "The part is done."

    codex.settings = "model_auto_compact_token_limit = 3000\n"
    with codex.model(*by_agent(parent, child)) as model:
        model.first_tokens = 5000
        codex.run(model)
    assert len(model.others) == 2
    check_bill(codex, model)
    check_files(codex, model)


def test_a_review_counts_once_in_its_session(codex):
    codex.session = ("review",)
    with codex.model(codex.bash("git status"), "{}") as model:
        codex.run(model)
    assert len(model.bill) == 2
    check_bill(codex, model)
    check_files(codex, model)


def test_the_reviewers_of_approvals_count_once_also_after_a_compaction(codex):
    outside = {"sandbox_permissions": "require_escalated", "justification": "It is needed."}

    def agent(request):
        for number in range(4):
            yield [use("exec_command", cmd=f"echo {number}", **outside)]
        yield "All is done."

    def reviewer(request):
        while True:
            yield '{"outcome": "allow", "risk_level": "low", "user_authorization": "high", "rationale": "Fine."}'

    codex.approval, codex.settings = "--approve-for-me", "model_auto_compact_token_limit = 3000\n"
    with codex.model(*by_agent(agent, reviewer, reviewer)) as model:
        model.tokens = 101, 102, 5000
        codex.run(model)
    assert len({one.thread_id for one in model.bill}) == 3
    assert len(model.others) == 1
    check_bill(codex, model)
    check_files(codex, model)


def test_a_compaction_that_a_change_of_the_model_causes_has_the_former_model(codex):
    codex.model_name = "gpt-5.5"
    with codex.model("Hm.") as model:
        codex.run(model)
        codex.session, codex.model_name = ("resume", newest(codex)), "gpt-6-luna"
        codex.run(model, "Go on.")
    assert [one.model for one in model.bill] == ["gpt-5.5", "gpt-5.5", "gpt-6-luna"]
    check_bill(codex, model)


def test_each_call_of_copilot_counts_once_after_a_resume(tmp_path):
    copilot = at(tmp_path, Copilot)
    with copilot.model(copilot.bash("echo hi"), "Done.", "Well.") as model:
        copilot.run(model)
        (path,) = (copilot.home / ".copilot").rglob("events.jsonl")
        copilot.session = (f"--resume={path.parent.name}",)
        copilot.run(model, "And on.")
    assert len(model.requests) == 3
    assert [row[4:] for row in responses("copilot", [path])] == [(1, 1, 0, 0)] * 3
    assert found(path) == 3


def test_each_answer_of_gemini_counts_once_after_a_resume(tmp_path):
    gemini = at(tmp_path, Gemini)
    gemini.prepare()
    with gemini.model(gemini.bash("echo hi"), "Done.", "Well.") as model:
        gemini.run(model)
        gemini.session = "--resume", "latest"
        gemini.run(model, "And on.")
    paths = list((gemini.home / ".gemini").rglob("chats/*.jsonl"))
    assert len(model.requests) == 3
    assert [row[4:] for row in responses("gemini", paths)] == [(1, 1, 0, 0)] * 3
    assert found(gemini.home / ".gemini") == 3


def test_each_answer_of_qwen_counts_once_after_a_resume_and_as_qwen_itself_counts_it(tmp_path):
    qwen = at(tmp_path, Qwen)
    qwen.prepare()
    agent = use("agent", description="look", prompt="Look around.", subagent_type="general-purpose")
    with qwen.model([agent], qwen.bash("echo hi"), "Seen.", "Done.", "Well.") as model:
        qwen.run(model)
        qwen.session = ("--continue",)
        qwen.run(model, "And on.")
    (path,) = (qwen.home / ".qwen").rglob("chats/*.jsonl")
    own = json.loads((qwen.home / ".qwen" / "usage_record.jsonl").read_text().splitlines()[-1])["models"]
    assert [counts["requests"] for counts in own.values()] == [len(model.requests)]
    assert [row[4:] for row in responses("qwen", [path])] == [(1, 1, 0, 0)] * len(model.requests)
    assert found(qwen.home / ".qwen" / "projects") == len(model.requests)
    assert json.loads(qwen.tailhook("usage", "--json"))["total"]["responses"] == len(model.requests)
