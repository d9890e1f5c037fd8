"""Safety invariants of the idle machine, for any state, words and clock."""

from hypothesis import example, given
from hypothesis import strategies as st

from tailhook._core import iso_time
from tailhook.machines import whole_number
from tailhook.machines.idle import SIGNALS, STALE_AFTER_S, Facts, age_of, decide

NOW = 1_767_312_245

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
counts = st.integers(0, 12) | st.sampled_from(["3", "08", "", "x", -1, 1.0, True, None, 2**53, 2**60]) | json_values
sessions = st.sampled_from(["mine", "other", "", "claim", None]) | json_values
frames = st.fixed_dictionaries(
    {},
    optional={
        "id": json_values,
        "mode": st.sampled_from(["loop", "issue", "grind", "else", None]) | json_values,
        "iter": counts,
        "max": counts,
        "session_id": sessions,
        "worktree_path": json_values,
    },
)
stamps = st.integers(-9000, 9000).map(lambda age: iso_time(NOW - age)) | json_values
states = json_values | st.fixed_dictionaries(
    {},
    optional={
        "schema": st.just(1) | json_values,
        "event": st.sampled_from(["STATE", "DONE", "ABORT"]) | json_values,
        "updated_at": stamps,
        "session_id": sessions,
        "stack": st.lists(frames | json_values, max_size=3) | json_values,
        "mine": json_values,
    },
)
words = st.lists(st.sampled_from([signal for signals in SIGNALS.values() for signal in signals]), max_size=3)
facts = st.builds(
    lambda session_id, paused, said, unbound: Facts(session_id, paused, lambda: said, lambda path: path, unbound),
    st.sampled_from(["mine", ""]),
    st.booleans(),
    words,
    st.booleans(),
)


@given(states, facts)
@example({"schema": 1, "stack": [{"iter": 1, "max": 2}]}, Facts())
def test_a_verdict_blocks_only_when_actively_iterating(state, asked):
    verdict = decide(state, asked, NOW)
    assert verdict.outcome in ("allow", "block")
    if verdict.outcome == "allow":
        assert verdict.reason == ""
        return
    top = state["stack"][-1]
    count, limit = whole_number(top.get("iter")), whole_number(top.get("max"))
    assert count is not None
    assert limit is not None
    assert count < limit
    assert state.get("event") in ("STATE", None)
    assert age_of(state, NOW) <= STALE_AFTER_S
    assert not asked.paused
    assert verdict.change["stack"][-1]["iter"] == count + 1
    assert verdict.reason.startswith(f"[ITERATION {count + 1}/{limit}] Continue working on the task.")


@given(states, facts)
def test_a_loop_that_is_sent_on_ends_within_its_limit(state, asked):
    limit = None
    for step in range(15):
        verdict = decide(state, asked, NOW + step)
        if verdict.outcome == "allow":
            break
        state = verdict.change
        limit = whole_number(state["stack"][-1]["max"])
    else:
        assert limit is not None
        assert limit > 12


@given(states, facts)
def test_an_ended_loop_never_starts_again_by_itself(state, asked):
    verdict = decide(state, asked, NOW)
    if verdict.ended and not verdict.change["stack"]:
        assert verdict.change["event"] in ("DONE", "ABORT")
        again = decide(verdict.change, asked, NOW + 1)
        assert (again.outcome, again.change) == ("allow", None)


@given(states, facts)
def test_what_moves_keeps_the_fields_it_does_not_know(state, asked):
    verdict = decide(state, asked, NOW)
    if isinstance(state, dict) and verdict.change is not None:
        assert verdict.change.get("mine") == state.get("mine")
        assert [key for key in state if key in verdict.change] == list(state)
