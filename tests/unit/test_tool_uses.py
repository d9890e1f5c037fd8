"""The uses of tools in a transcript, against a reader with the json module."""

import io
import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailhook._core import reverse_tool_uses

TOOLS = ("Bash", "Edit")
IDS = st.sampled_from(["a", "b", "c", "toolu_é", ""])


def use(name="Bash", use_id="a", **given):
    return {"type": "tool_use", "id": use_id, "name": name, "input": given}


def result(use_id="a", is_error=False):
    return {"type": "tool_result", "tool_use_id": use_id, "content": "…", "is_error": is_error}


def transcript(*contents):
    """Return the bytes of a transcript with one record for each list of blocks."""
    return b"".join(json.dumps({"message": {"content": blocks}}).encode() + b"\n" for blocks in contents)


def read(data, tools=TOOLS, **options):
    return list(reverse_tool_uses(io.BytesIO(data), tools, **options))


def reference(data, tools=TOOLS):
    """Return the right result of `reverse_tool_uses`, without the offsets."""
    found, failed = [], {}
    for line in reversed(data.splitlines()):
        content = json.loads(line)["message"]["content"]
        uses = []
        for block in content if isinstance(content, list) else ():
            if not isinstance(block, dict):
                continue
            if block.get("type") == "tool_result" and isinstance(block.get("tool_use_id"), str):
                failed[block["tool_use_id"]] = block.get("is_error") is True
            elif block.get("type") == "tool_use" and block.get("name") in tools and "input" in block:
                use_id = block.get("id") if isinstance(block.get("id"), str) else None
                uses.append((block["name"], use_id, block["input"], failed.get(use_id)))
        found += reversed(uses)
    return found


BLOCKS = st.one_of(
    st.builds(use, st.sampled_from(["Bash", "Edit", "Read"]), IDS, command=st.text(max_size=9)),
    st.builds(result, IDS, st.booleans()),
    st.sampled_from([{"type": "tool_use"}, {"type": "tool_result"}, {"type": "text", "text": "Hm"}, "text", 5, [], {}]),
    st.sampled_from(
        [use(use_id=5), {**use(), "name": ["Bash"]}, {**result(), "is_error": "true"}, {**use(), "id": {}}]
    ),
)


@given(st.lists(st.lists(BLOCKS, max_size=5), max_size=8))
def test_the_uses_are_those_that_another_reader_finds(contents):
    data = transcript(*contents)
    found = [(name, use_id, json.loads(given), failed) for name, use_id, given, failed, _ in read(data)]
    assert found == reference(data)


def test_many_results_are_kept():
    uses = [[use("Edit", f"id{number}")] for number in range(3000)]
    results = [[result(f"id{number}", number % 3 == 0)] for number in range(0, 3000, 2)]
    found = {use_id: failed for _, use_id, _, failed, _ in read(transcript(*uses, *results))}
    assert found == {f"id{n}": n % 3 == 0 if n % 2 == 0 else None for n in range(3000)}


def test_the_input_is_returned_as_it_is_written_with_the_offset_of_its_line():
    line = b'{"message":{"content":[{"input": {"a" : [1]} ,"name":"Bash","type":"tool_use"}]}}'
    assert read(b"{}\n" + line + b"\n") == [("Bash", None, b'{"a" : [1]}', None, 3)]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b'"tool_use"',
        b'{"message":{"content":[{"type":"tool_use"',
        b'{"message":{"content":{"type":"tool_use"}}}',
        b'{"message":[{"type":"tool_use","name":"Bash","input":{}}]}',
        b'{"message":{"content":[{"type":"tool_use","name":"Ba\xffsh","input":{}}]}}',
        b'{"message":{"content":[{"type":"tool_result","tool_use_id":"\xff"}]}}',
        b'{"message":{"content":"tool_use \\"tool_use"}}',
    ],
)
def test_other_lines_are_passed_over(line):

    assert [name for name, *_ in read(line + b"\n" + transcript([use()]))] == ["Bash"]


def test_a_range_and_limits_are_kept():
    data = transcript([use(use_id="1")], [use(use_id="2")], [use(use_id="3")])
    size = len(data) // 3
    assert [one[1] for one in read(data, start=size, end=2 * size)] == ["2"]
    assert [one[1] for one in read(data, max_lines=1)] == ["3"]
    assert read(data, max_line=size - 2) == []
    with pytest.raises(ValueError, match="negative"):
        read(data, max_lines=-1)


def test_two_threads_cannot_read_at_once():
    uses = reverse_tool_uses(io.BytesIO(transcript(*([use()] for _ in range(100)))), TOOLS)
    errors = []

    def take():
        try:
            list(uses)
        except RuntimeError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(errors) <= {"the lines are being read by another thread"}


def test_names_that_fail_fail_the_iteration():
    class Names:
        def __contains__(self, name):
            raise KeyError(name)

    with pytest.raises(KeyError):
        read(transcript([use()]), Names())
