"""The bytes of a transcript by kind, against sums made by hand, and the axis of their picture."""

import io
import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from support.corpora import transcript_paths
from support.host_records import RECORDS

import tailhook
from tailhook.hosts import RECORDED
from tailhook.pictures.anatomy import (
    MAX_BUCKETS,
    MAX_COUNTED_NAMES,
    RECORD_KINDS,
    Buckets,
    NameCounter,
    measure_transcript,
)
from tailhook.pictures.anatomy_svg import anatomy_file, clip_words, draw_anatomy, wrap_facts
from tailhook.pictures.axis import DAY_S, TIME_STEPS_S, format_bytes, make_axis, place_ticks
from tailhook.pictures.markup import DARK_COLOURS, LIGHT_COLOURS

BEGIN = 1_793_610_840  # 2026-11-02 09:14:00 UTC
DONE = "<loop-done>COMPLETE</loop-done>"


def stamp(seconds):
    return f"2026-11-02T09:{14 + seconds // 60:02}:{seconds % 60:02}Z"


def line(kind, seconds, content, **fields):
    record = {
        "type": kind,
        "timestamp": stamp(seconds),
        "sessionId": "s",
        "message": {"role": kind, "content": content},
    }
    return f"{json.dumps({**record, **fields})}\n".encode()


SESSION = [
    ("person", line("user", 0, "Please.")),
    ("call", line("assistant", 5, [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}] * 2)),
    ("result", line("user", 9, [{"type": "tool_result", "tool_use_id": "t", "content": "x" * 500}])),
    ("thinking", line("assistant", 12, [{"type": "thinking", "thinking": "hm"}])),
    ("agent", line("assistant", 20, f"Done.\n\n{DONE}")),
    ("sidechain", line("assistant", 21, DONE, isSidechain=True)),
    ("host", line("user", 22, "Stop hook feedback: go on")),
    ("summary", line("user", 60, "So far ...", isCompactSummary=True)),
    ("other", b'{"type":"system","subtype":"compact_boundary","timestamp":"2026-11-02T09:15:00Z"}\n'),
    ("other", b'{"type":"new-thing"}\n'),
    ("broken", b'{"type": "user", "mess\n'),
    ("blank", b" \n"),
]


def measure(data):
    with tailhook.open(io.BytesIO(data)) as transcript:
        return measure_transcript(transcript)


def test_every_byte_belongs_to_one_kind():
    anatomy = measure(b"".join(data for _, data in SESSION))
    sizes = Counter()
    for kind, data in SESSION:
        sizes[kind] += len(data)
    assert anatomy.bytes_by_kind == sizes
    assert list(anatomy.bytes_by_kind) == [kind for kind, _ in sizes.most_common()]
    assert anatomy.records_by_kind == {**Counter(kind for kind, _ in SESSION), "blank": 0}
    assert (anatomy.size, anatomy.records) == (sum(sizes.values()), 11)
    assert anatomy.events == {"prompts": 1, "tools": 2, "compactions": 1, "signals": 1}
    assert anatomy.tools == {"Bash": 2}
    assert set(anatomy.types) == {"system", "new-thing"}
    assert (anatomy.host, anatomy.session_id) == ("claude-code", "s")
    assert f"{anatomy.start:%H:%M:%S} {anatomy.end:%H:%M:%S}" == "09:14:00 09:15:00"
    assert anatomy.largest[0] == (len(SESSION[2][1]), len(SESSION[0][1]) + len(SESSION[1][1]), "result")


def test_a_record_that_stands_twice_has_the_bytes_of_both_lines_and_happened_once():
    prompt = b'{"type":"user","uuid":"u1","message":{"role":"user","content":"Fix it."}}\n'
    call = b'{"type":"assistant","uuid":"u2","message":{"content":[{"type":"tool_use","name":"Bash"}]}}\n'
    compaction = b'{"type":"system","subtype":"compact_boundary","uuid":"c%d"}\n'
    anatomy = measure(prompt + call + compaction % 1 + prompt + call + compaction % 2)
    assert (anatomy.bytes_by_kind["person"], anatomy.bytes_by_kind["call"]) == (2 * len(prompt), 2 * len(call))
    assert (anatomy.events["prompts"], anatomy.events["tools"], anatomy.events["compactions"]) == (1, 1, 2)
    assert anatomy.tools == {"Bash": 1}


def test_a_progress_record_with_a_message_is_a_sub_agents():
    nested = {"type": "agent_progress", "agentId": "a", "message": {"type": "assistant", "message": {}}}
    lines = [
        json.dumps({"type": "progress", "data": data}).encode() + b"\n"
        for data in (nested, {"type": "hook_progress"}, {"message": "x"}, None)
    ]
    assert measure(b"".join(lines)).records_by_kind == {"sidechain": 1, "other": 3}


def test_a_sub_agents_own_transcript_has_all_kinds():
    own = [
        ("host", line("user", 0, "Look into it.", isSidechain=True, agentId="a")),
        ("agent", line("assistant", 1, f"Found.\n\n{DONE}", isSidechain=True, agentId="a")),
        (
            "call",
            line("assistant", 2, [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}], isSidechain=True),
        ),
    ]
    anatomy = measure(b"".join(data for _, data in own))
    assert anatomy.bytes_by_kind == {kind: len(data) for kind, data in own}
    assert anatomy.events == {"prompts": 0, "tools": 1, "compactions": 0, "signals": 1}


def test_tokens_of_a_response_are_not_thinking_and_reasoning_is():
    counts = {"total_token_usage": {"input_tokens": 1}, "last_token_usage": {"input_tokens": 1}}
    records = [
        {"type": "session_meta", "payload": {"id": "s"}},
        {"type": "response_item", "payload": {"type": "reasoning", "encrypted_content": "x" * 100}},
        {"type": "event_msg", "payload": {"type": "token_count", "info": counts}},
        {"type": "token_usage_record", "payload": {"response_id": "r", "usage": {"input_tokens": 1}}},
        {"type": "compacted", "payload": {}},
    ]
    anatomy = measure(b"".join(json.dumps(record).encode() + b"\n" for record in records))
    assert anatomy.records_by_kind == {"thinking": 1, "other": 4}
    assert set(anatomy.types) == {"session_meta", "event_msg", "token_usage_record", "compacted"}
    assert anatomy.events["compactions"] == 1


def test_a_subtype_of_claude_code_that_is_called_reasoning_is_not_thinking():
    assert measure(b'{"type":"system","subtype":"reasoning"}\n').records_by_kind == {"other": 1}


def test_broken_lines_are_not_called_records():
    root = ET.fromstring(anatomy_file(measure(SESSION[0][1] + b"{\n[\n"), "a.jsonl"))
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any(" in 1 record · 2 broken lines · " in one for one in words)
    assert "2 lines" in words


def test_a_symbol_for_several_events_has_their_number():
    prompts = [line("user", seconds, "Please.") for seconds in (0, 0, 0, 20, 40)]
    data = [*prompts, line("assistant", 3000, "x" * 100)]
    for width in (350, 960):
        root = ET.fromstring(draw_anatomy(measure(b"".join(data)), "n", width, "p", False))
        symbols = [one for one in root if one.get("class") == "prompts" and len(one)]
        counts = [int(one[0].text.rpartition(" ")[2]) for one in symbols]
        assert sum(counts) == 5
        shown = [one.text for one in root if "over" in one.get("class", "") and one.text.isdigit()]
        assert shown == [str(count) for count in counts if count > 1] != []


def test_the_buckets_of_time_hold_every_byte_at_the_time_of_its_record():
    anatomy = measure(b"".join(data for _, data in SESSION))
    times = dict(anatomy.times.sorted())
    assert times[BEGIN] == {"bytes person": len(SESSION[0][1]), "prompts": 1}
    last = times[BEGIN + 60]  # a record without a time belongs to the one before it
    assert last["bytes other"] == len(SESSION[8][1]) + len(SESSION[9][1])
    assert (last["bytes broken"], last["bytes blank"], last["compactions"]) == (len(SESSION[10][1]), 2, 1)
    for buckets in (anatomy.times, anatomy.offsets):
        assert sum(
            sum(counts[f"bytes {kind}"] for kind in anatomy.bytes_by_kind) for _, counts in buckets.sorted()
        ) == (anatomy.size)


def test_what_stands_before_the_first_time_belongs_to_it():
    anatomy = measure(b'{"type":"summary"}\n' + SESSION[0][1])
    assert [place for place, _ in anatomy.times.sorted()] == [BEGIN]


@pytest.mark.parametrize(
    "data", [b"\xef\xbb\xbf" + SESSION[0][1], SESSION[0][1].rstrip(), SESSION[0][1][:-1] + b"\r\n"]
)
def test_a_mark_at_the_beginning_and_any_line_end_count(data):
    assert measure(data).bytes_by_kind == {"person": len(data)}


@pytest.mark.parametrize("host", RECORDED)
def test_every_hosts_records_have_their_kinds(host):
    first, others = RECORDS[host]
    data = b"".join(json.dumps(record).encode() + b"\n" for record in (first, *(record for record, _ in others)))
    anatomy = measure(data)
    assert anatomy.host == host
    assert sum(anatomy.bytes_by_kind.values()) == len(data)
    assert anatomy.events["prompts"] >= 1
    assert {"agent", "call"} & set(anatomy.bytes_by_kind)


@pytest.mark.parametrize("number", range(12))
def test_real_transcripts_add_up(number):
    paths = transcript_paths()
    if number >= len(paths):
        pytest.skip("fewer transcripts")
    with tailhook.open(paths[number]) as transcript:
        anatomy = measure_transcript(transcript)
    assert sum(anatomy.bytes_by_kind.values()) == anatomy.size == paths[number].stat().st_size
    ET.fromstring(anatomy_file(anatomy, paths[number].name))


# ---- bounds ------------------------------------------------------------------


def test_buckets_become_wider_instead_of_more():
    buckets = Buckets(max_buckets=4)
    for place in (0, 1, 2, 3, 9, 100):
        buckets.add(place, {"n": 1})
    assert buckets.width == 2
    assert buckets.sorted() == [(0, {"n": 2}), (2, {"n": 2}), (8, {"n": 1}), (100, {"n": 1})]


def test_hostile_names_and_times_stay_bounded():
    counter = NameCounter()
    for number in range(10 * MAX_COUNTED_NAMES):
        counter.add(f"{number}{'x' * 1000}", 1)
    assert len(counter.counts) == MAX_COUNTED_NAMES + 1
    assert max(map(len, counter.counts)) <= 40
    buckets = Buckets()
    for number in range(20_000):
        buckets.add(number * 86_400, {"n": 1})
    assert len(buckets.counts) <= MAX_BUCKETS
    assert sum(counts["n"] for _, counts in buckets.sorted()) == 20_000


# ---- the axis ----------------------------------------------------------------


def filled(*places):
    buckets = Buckets()
    for place in places:
        buckets.add(place, {"n": 1})
    return buckets


def test_steps_are_as_small_as_there_is_room_for():
    axis = make_axis(filled(*range(BEGIN, BEGIN + 600, 2)), True, 100, 600)
    assert (axis.step, axis.x(axis.stretches[0].first)) == (5, 100)
    assert sum(counts["n"] for counts in axis.cells.values()) == 300


def test_a_long_pause_is_cut_out_and_a_short_one_is_not():
    first, second = range(BEGIN, BEGIN + 1800, 10), range(BEGIN + 90_000, BEGIN + 91_800, 10)
    axis = make_axis(filled(*first, *second), True, 0, 700)
    assert len(axis.stretches) == 2
    ((_, end, after),) = axis.pauses()
    assert abs((after - end) * axis.step - (90_000 - 1790)) <= 2 * axis.step
    assert len(make_axis(filled(*first, BEGIN + 2300), True, 0, 700).stretches) == 1


@pytest.mark.parametrize(("width", "count"), [(320, 1), (320, 100_000), (600, 2), (600, 10), (780, 1000)])
@pytest.mark.parametrize("apart", [1, 60, 5000, 200_000])
def test_the_axis_keeps_its_width_and_labels_do_not_overlap(count, apart, width):
    buckets = filled(*(BEGIN + number * apart for number in range(0, count, max(count // 3000, 1))))
    axis = make_axis(buckets, True, 50, width)
    last = axis.stretches[-1]
    assert last.left + last.steps * axis.width <= 50 + width + 0.01
    assert axis.width >= 5
    places = [tick.x - 74 if tick.is_left else tick.x for tick in place_ticks(axis, 50 + width, 74)]
    assert places
    assert all(after - before >= 74 for before, after in pairwise(places))
    assert places[-1] + 74 <= 50 + width + 0.01 or len(places) == 1


def test_ticks_are_at_round_times_and_the_stretch_after_a_pause_has_one():
    axis = make_axis(filled(*range(BEGIN, BEGIN + 9000, 60)), True, 0, 500)
    labels = [tick.label for tick in place_ticks(axis, 500, 74)]
    assert labels == ["09:30", "10:00", "10:30", "11:00"]
    axis = make_axis(filled(*range(BEGIN, BEGIN + 9000, 60), BEGIN + 90_000), True, 0, 500)
    last = place_ticks(axis, 500, 74)[-1]
    assert (last.label, last.date, last.is_left) == ("10:14", "2026-11-03", True)


def test_times_of_ten_thousand_years_have_an_axis():
    axis = make_axis(filled(-62_135_596_800, BEGIN, 253_402_300_799), True, 0, 320)
    assert [tick.date for tick in place_ticks(axis, 320, 74)] == ["9999-12-31"]
    assert TIME_STEPS_S[-1] > 100 * DAY_S


def test_sizes_have_three_digits():
    sizes = [0, 999, 1000, 9_994, 9_996, 99_960, 999_400, 999_600, 10**12, 10**16]
    assert [format_bytes(size) for size in sizes] == [
        *("0 B", "999 B", "1 kB", "9.99 kB", "10 kB", "100 kB", "999 kB", "1 MB", "1 TB", "10,000 TB"),
    ]


# ---- the picture -------------------------------------------------------------


def test_the_picture_has_a_title_and_describes_itself():
    root = ET.fromstring(anatomy_file(measure(b"".join(data for _, data in SESSION)), "a<b>&.jsonl"))
    space = "{http://www.w3.org/2000/svg}"
    names = {element.get("id"): element.text for element in root if element.get("id")}
    title, description = root.get("aria-labelledby").split()
    assert names[title] == "The anatomy of a<b>&.jsonl"
    assert "prompts 1, tool calls 2, compactions 1, signals 1" in names[description]
    assert root.get("role") == "img"
    titles = [element.text for element in root.iter(f"{space}title")]
    assert any("2026-11-02 09:14:00 UTC, 1 s" in words and "prompts 1" in words for words in titles)


@pytest.mark.parametrize("width", [350, 720, 960])
def test_no_label_is_outside_of_the_picture(width):
    root = ET.fromstring(draw_anatomy(measure(b"".join(data for _, data in SESSION)), "n" * 300, width, "p", True))
    for element in root.iter("{http://www.w3.org/2000/svg}text"):
        room = 6.6 * len(element.text) if "title" not in element.get("class") else 9.6 * len(element.text)
        x = float(element.get("x"))
        left, right = (x - room, x) if "end" in element.get("class") else (x, x + room)
        assert left >= 0, element.text
        assert right <= width, element.text


def test_long_words_are_cut_and_facts_are_wrapped():
    assert clip_words("abcdef", 6.6 * 4) == "abc…"
    assert list(wrap_facts(["aaaa", "bbbb", "cc"], 11)) == ["aaaa · bbbb", "cc"]


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("path", sorted(ROOT.glob("docs/**/*.svg")) + sorted(ROOT.glob("benches/**/*.svg")), ids=str)
def test_a_picture_needs_no_program_that_knows_css_variables(path):
    assert "var(" not in path.read_text()


def test_the_colours_of_the_picture_are_right_without_variables_and_on_a_dark_screen():
    root = ET.fromstring(anatomy_file(measure(b"".join(data for _, data in SESSION)), "s.jsonl"))
    space = "{http://www.w3.org/2000/svg}"
    style = root.find(f"{space}style").text
    light, _, dark = style.partition("@media (prefers-color-scheme:dark){")
    assert "var(" not in style
    drawn = {name for element in root.iter() for name in element.get("class", "").split()}
    for rules, colours in ((light, LIGHT_COLOURS), (dark, DARK_COLOURS)):
        fills = dict(re.findall(r"\.anatomy \.([a-z]+)\{(?:fill|stroke):(#[0-9a-f]{6});", rules))
        assert fills["back"] == colours["card"]
        assert {kind: fills[kind] for kind in RECORD_KINDS} == {kind: colours[kind] for kind in RECORD_KINDS}
        assert f".anatomy text{{fill:{colours['ink']};}}" in rules
        assert drawn - {*fills, "anatomy", "picture", "small", "title", "head", "end", "hit", "over"} == set()
    assert "transparent" not in style  # some programs draw it black
    back = next(root.iter(f"{space}rect"))
    assert (back.get("class"), back.get("width"), back.get("height")) == ("back", "100%", "100%")


@pytest.mark.parametrize("width", [350, 960])
def test_the_highest_bar_ends_at_or_below_a_line_with_a_label(width):
    picture = draw_anatomy(measure(b"".join(data for _, data in SESSION)), "s.jsonl", width, "p", True)
    lines = [float(y) for y in re.findall(r'y1="([0-9.]+)" x2="[0-9.]+" y2="[0-9.]+" class="grid"', picture)]
    bars = [
        float(y)
        for kind in RECORD_KINDS
        for y in re.findall(
            r"M[0-9.]+ ([0-9.]+)h", "".join(re.findall(rf'<path class="{kind}" d="([^"]*)"', picture)[:1])
        )
    ]
    assert min(lines) <= min(bars) + 0.1


def test_other_records_are_broken_down_into_their_types():
    sizes = {"attachment": 50, "queue-operation": 40, "file-history-snapshot": 30, "system": 20, "mode": 10, "tag": 5}
    lines = b"".join(json.dumps({"type": kind, "x": "x" * size * 100}).encode() + b"\n" for kind, size in sizes.items())
    picture = draw_anatomy(measure(lines), "s.jsonl", 960, "p", True)
    words = [element.text for element in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    at = words.index("attachment")
    assert words[at::2][:5] == ["attachment", "queue-operation", "file-history-snapshot", "system", "2 more types"]
    assert words[at + 1].endswith(", 32 %")
