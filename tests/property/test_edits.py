"""A changed state is written as edits of the old text: the rest keeps its bytes."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tailhook._core import edit_json, parse_json, write_json
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


STEPS = st.sampled_from(["a", "b", "c", "added", 0, 1, -1])
TEXTS_WITH_LAYOUT = st.recursive(
    st.sampled_from(["1", "2.0", "null", '"x"']),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda values: f"[{', '.join(values)} ]"),
        st.lists(
            st.tuples(st.sampled_from(['"a":', '"b" : ', '\n "\\u0061":', '"c":']), inner).map("".join), max_size=4
        ).map(lambda members: f"{{{' ,'.join(members)}\n}}"),
    ),
    max_leaves=12,
)


@given(
    TEXTS_WITH_LAYOUT,
    st.lists(st.tuples(st.lists(STEPS, max_size=3).map(tuple), st.none() | TEXTS_WITH_LAYOUT), max_size=6),
)
def test_edits_that_are_made_together_give_what_they_give_one_by_one(text, edits):
    """Unknown members, the order of members and their layout survive, also if edits depend on one another."""
    one_by_one, done = text.encode(), []
    for path, value in edits:
        edit = (path, value and value.encode())
        try:
            one_by_one = edit_json(one_by_one, [edit])
        except KeyError:
            continue
        done.append(edit)
    assert edit_json(text.encode(), done) == one_by_one


def test_of_many_members_each_gets_its_own_value():
    names = [f"n{number}" for number in range(100)]
    text = write_json({**dict.fromkeys(names, 0), "other": {"rest": 1.5}, "list": [0] * 100}, 2)
    edits = [((name,), str(number).encode()) for number, name in enumerate(names)]
    edits += [(("list", number), str(number).encode()) for number in reversed(range(100))]
    edits += [(("new",), b"1"), (("newer",), b"2")]
    expected = {name: number for number, name in enumerate(names)}
    expected |= {"other": {"rest": 1.5}, "list": list(range(100)), "new": 1, "newer": 2}
    assert edit_json(text, edits) == write_json(expected, 2)
    assert edit_json(text.replace(b'"n7"', b'"\\u006e7"'), edits) == write_json(expected, 2).replace(
        b'"n7"', b'"\\u006e7"'
    )


def test_all_members_of_a_name_are_removed_in_one_pass():
    text = b"{ " + b'"a": 1 , ' * 50_000 + b'"b" : 2, "a": 3 }'
    assert edit_json(text, [(("a",), None)]) == b'{ "b" : 2 }'
    assert edit_json(b"{ " + b'"a": 1 , ' * 50_000 + b'"a": 3 }', [(("a",), None)]) == b"{ }"
