"""A state that changed is written as edits of the old text: the rest keeps its bytes."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tailhook._core import edit_json, parse_json
from tailhook.stores.loop import edits_between

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.text(max_size=4), values, max_size=5)


@given(objects, objects, st.sampled_from([None, 1]))
def test_edits_make_the_new_state_of_the_old_ones_text(old, new, indent):
    text = json.dumps(old, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    try:
        before = parse_json(text)
    except ValueError:
        return  # a lone surrogate, which no file holds
    after = parse_json(edit_json(text, list(edits_between(before, new))))
    assert repr(sorted(after)) == repr(sorted(new))
    assert after == new


@given(objects)
def test_without_a_change_there_is_nothing_to_edit(state):
    assert list(edits_between(state, json.loads(json.dumps(state)))) == []


@given(objects, st.integers(0, 99))
def test_a_changed_count_edits_that_count_alone(state, count):
    state = {**state, "stack": [{"mine": 1.5}, {"iter": 100}]}
    moved = {**state, "stack": [state["stack"][0], {**state["stack"][1], "iter": count}]}
    assert list(edits_between(state, moved)) == [(("stack", 1, "iter"), str(count).encode())]
