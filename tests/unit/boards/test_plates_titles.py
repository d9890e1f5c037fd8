"""The title of a session, from its hooks and from its transcript, as the boards show it."""

import json
import re

import pytest
from support.cases import in_one_test
from support.plate_reports import report

from tailhook._core import parse_json
from tailhook.board.rows import draw_plate
from tailhook.board.view import read_plate
from tailhook.hook.plates import MAX_REPORTED_CHARS
from tailhook.plates.display import describe_plate, encode
from tailhook.plates.transcript_ends import TITLE_TAIL_BYTES, Title, read_title

HOSTS = {"type": "ai-title", "aiTitle": "Fix the race", "sessionId": "s"}
PERSONS = {"type": "custom-title", "customTitle": "Mine", "sessionId": "s"}
OTHER = {"type": "user", "message": {"role": "user", "content": "the custom-title is x"}}


def lines(*records):
    """Return records as a transcript."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


TRANSCRIPTS = [
    (lines(OTHER), None),
    (lines(HOSTS, OTHER), Title("Fix the race", False)),
    (lines(PERSONS, OTHER, HOSTS), Title("Mine", True)),
    (lines({**PERSONS, "customTitle": "Older"}, PERSONS), Title("Mine", True)),
    (lines(HOSTS, PERSONS, {**PERSONS, "customTitle": ""}), Title("Fix the race", False)),
    (lines(HOSTS, {**HOSTS, "aiTitle": 7}, {**PERSONS, "customTitle": None}), Title("Fix the race", False)),
    (lines(HOSTS) + b'{"type":"custom-title","customTitle":"cut', Title("Fix the race", False)),
    (b'["ai-title"]\n{"x-title": 1}\n\xff-title"\n', None),
    (lines(HOSTS, {"type": "x", "of": "y" * TITLE_TAIL_BYTES}), None),  # the host repeats it
    (lines({**HOSTS, "aiTitle": "a\x1b]0;x\x07\nb" + " c" * 500}), Title("a]0;x b" + " c" * 96 + "…", False)),
    (b"", None),
]


@in_one_test(("content", "expected"), TRANSCRIPTS)
def test_the_title_at_the_end_of_a_transcript(tmp_path, content, expected):
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)
    found = read_title(str(path))
    if found and len(found.words) > 20:
        assert (found.words[:5], found.is_persons, len(found.words) <= MAX_REPORTED_CHARS) == ("a]0;x", False, True)
    else:
        assert found == expected


def test_a_transcript_that_cannot_be_read_has_no_title(tmp_path):
    assert read_title(str(tmp_path)) is None
    assert read_title(str(tmp_path / "missing")) is None


def title(database):
    """Return the title of a session on the boards."""
    return describe_plate(database.get("s"), "p")["title"]


def test_the_newest_title_of_an_event_is_shown(database):
    database.record(report("session_start"))
    assert title(database) is None
    database.record(report("prompt_submit", title="First"))
    database.record(report("tool_call"))
    assert title(database) == "First"
    database.record(report("prompt_submit", title="Second"))
    database.record(report("prompt_submit", title="Late", ts=1, mono=1))
    assert title(database) == "Second"
    assert "second" in describe_plate(database.get("s"), "p")["search"].split("\n")


@pytest.mark.parametrize("words", ["a\nb\x1b[31m\u202e", "x" * 90_000, "deploy --token abcdefgh1234"])
def test_a_title_is_one_short_line_without_secrets(database, words):
    database.record(report("prompt_submit", title=words))
    found = title(database)
    assert len(found) <= MAX_REPORTED_CHARS
    assert found.isprintable()
    assert "abcdefgh1234" not in found


def test_a_transcripts_title_fills_an_empty_one_and_a_persons_replaces_it(world, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(lines(HOSTS))
    world.event("s", "stop", transcript_path=str(path))
    before = world.database.get("s")
    assert world.health.check() == 1
    after = world.database.get("s")
    assert after == {**before, "title": "Fix the race", "version": before["version"] + 1}
    assert world.health.check() == 0
    world.event("s", "prompt_submit", title="Named by an event", transcript_path=str(path))
    path.write_bytes(lines(HOSTS, OTHER))
    world.health.check()
    assert title(world.database) == "Named by an event"
    path.write_bytes(lines(HOSTS, PERSONS))
    world.health.check()
    assert title(world.database) == "Mine"


def test_a_title_of_the_transcript_gives_way_to_the_next_one_also_if_the_person_takes_a_name_away(world, tmp_path):
    path = tmp_path / "t.jsonl"
    taken_away, newer = {**PERSONS, "customTitle": ""}, {**HOSTS, "aiTitle": "Fix the lock"}
    found = []
    for records in ([HOSTS], [newer], [newer, PERSONS], [newer, PERSONS, taken_away]):
        path.write_bytes(lines(*records))
        world.event("s", "stop", transcript_path=str(path))
        world.health.check()
        found.append(title(world.database))
    assert found == ["Fix the race", "Fix the lock", "Mine", "Fix the lock"]


def test_a_title_that_changed_while_no_daemon_ran_is_shown(world, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(lines(HOSTS))
    world.event("s", "stop", transcript_path=str(path))
    world.health.check()
    path.write_bytes(lines({**HOSTS, "aiTitle": "Fix the lock"}))
    world.health.titles, world.health.read_stamps = {}, {}  # as in a new daemon
    world.health.check()
    assert title(world.database) == "Fix the lock"


def test_a_transcript_is_searched_once_for_each_change(world, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(lines(OTHER))
    world.event("s", "stop", transcript_path=str(path))
    read = []
    world.health.read_title = read.append
    for _ in range(3):
        world.health.check()
    assert read == [str(path)]
    path.write_bytes(lines(OTHER, OTHER))
    world.health.check()
    assert len(read) == 2


def test_a_transcript_elsewhere_is_not_searched(world, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(lines(HOSTS))
    world.event("s", "stop", owner=None, transcript_path=str(path))
    assert world.health.check() == 0
    assert title(world.database) is None


@pytest.mark.parametrize("width", [60, 110])
def test_a_row_shows_the_title_after_the_projects_name(database, width):
    database.record(report("stop", title="Fix [b]it[/b]", project_path="/home/ada/shop"))
    plate = read_plate(parse_json(encode(describe_plate(database.get("s"), "shop"))))
    [first, *_] = draw_plate(plate, 0, width)
    assert re.match(r" \S shop +Fix \[b\]it\[/b\] ", first.plain)
    [short, *_] = draw_plate({**plate, "name": "n" * 99}, 0, width)
    assert short.cell_len == first.cell_len
