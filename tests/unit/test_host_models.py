"""The models that the real hosts talk to: what happens if one of them cannot answer."""

import contextlib
import sys
import threading
from pathlib import Path

import httpx
import pytest
from support.host import HANGS_S

ENDTOEND = Path(__file__).parents[1] / "endtoend"
ASKS = {
    "model.Model": ("/v1/messages", {"messages": [], "tools": [{"name": "Bash"}]}),
    "model_openai.ResponsesModel": (
        "/v1/responses",
        {"model": "m", "input": [], "tools": [{"name": "exec_command", "type": "function"}]},
    ),
    "model_gemini.GeminiModel": ("/v1beta/models/x:streamGenerateContent", {"contents": [], "tools": [{}]}),
}
CODEX = {"thread-id": "a", "session-id": "a"}  # headers of its requests


@pytest.fixture(params=ASKS)
def asked(request, monkeypatch):
    """Return a kind of model, and a function that asks one."""
    monkeypatch.setattr(sys, "path", [str(ENDTOEND), *sys.path])
    module, _, name = request.param.partition(".")
    path, body = ASKS[request.param]
    return getattr(__import__(module), name), lambda model: httpx.post(
        f"{model.url}{path}", json=body, headers=CODEX, timeout=HANGS_S
    )


def cannot_answer(request):
    """Raise, as an answer that a test wrote for another request does."""
    return request.body["other"]


def in_thread(ask, model):
    """Ask a model in a thread. Return the thread, and the list that its answer comes to."""
    answers = []
    asking = threading.Thread(target=lambda: answers.append(ask(model)))
    asking.start()
    return asking, answers


def test_a_model_that_cannot_answer_ends_the_wait_of_its_test_with_the_reason(asked):
    kind, ask = asked

    def wait_for_ever():
        nonlocal asking, answers
        with kind(cannot_answer) as model:
            asking, answers = in_thread(ask, model)
            assert not threading.Event().wait(HANGS_S), "the test has waited to its end"

    asking, answers = None, None
    with pytest.raises(AssertionError, match=r"^the model failed at /v1.*: KeyError: 'other'$") as failure:
        wait_for_ever()
    asking.join()
    assert [(one.status_code, one.json()["error"]["message"]) for one in answers] == [(500, str(failure.value))]


def wait_for_failure(ask, models, asked):
    """Ask one of a test's models, and wait in the main thread until its failure ends the wait."""
    with contextlib.ExitStack() as stack:
        entered = [stack.enter_context(model) for model in models]
        asking, _ = in_thread(ask, entered[asked])
        try:
            assert not threading.Event().wait(HANGS_S), "the test has waited to its end"
        finally:
            asking.join()


def test_a_model_in_an_answer_of_another_model_answers(asked):
    kind, ask = asked

    def answer(request):
        with kind("Fine.") as inner:
            assert ask(inner).status_code == 200
        return "Fine, too."

    with kind(answer) as model:
        assert ask(model).status_code == 200


def test_what_a_model_in_an_answer_of_another_model_cannot_answer_ends_the_wait_of_the_test(asked):
    kind, ask = asked

    def answer(request):
        with kind(cannot_answer) as inner:
            assert ask(inner).status_code == 500
        return "It is not used."

    with pytest.raises(AssertionError, match="KeyError: 'other'"):
        wait_for_failure(ask, [kind(answer)], 0)


@pytest.mark.parametrize("failing", [0, 1])
def test_of_two_models_of_a_test_each_can_end_its_wait(asked, failing):
    kind, ask = asked
    with pytest.raises(AssertionError, match="KeyError: 'other'"):
        wait_for_failure(ask, [kind(cannot_answer), kind(cannot_answer)], failing)


def test_a_model_that_fails_after_its_test_harms_no_other(asked):
    kind, ask = asked
    begun, ended = threading.Event(), threading.Event()

    def late(request):
        begun.set()
        ended.wait()
        return cannot_answer(request)

    with kind(late) as model:
        asking, answers = in_thread(ask, model)
        begun.wait()
    ended.set()
    asking.join()
    assert answers[0].status_code == 500
