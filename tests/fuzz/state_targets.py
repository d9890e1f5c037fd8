"""Fuzz targets of states, stores, payloads and settings."""

import os
import tempfile
from pathlib import Path

from fuzz.json_targets import result_of, standard
from fuzz.transcript_targets import plain_lines
from support.oracles.memory_lines import Scorer

from tailhook import _core
from tailhook.hook import payload
from tailhook.hook.config import KEYS, read_sections
from tailhook.machines import idle, idle_briefing, memory, ralph, triage, whole_number
from tailhook.stores.frontmatter import FrontMatter
from tailhook.stores.jsonfile import find_files
from tailhook.stores.jwz import Store

NOW = 1_767_312_245
SCORERS = {False: Scorer("seed"), True: Scorer("tuned")}


def idle_state(data):
    state = result_of(_core.parse_json, data)
    state = None if state is ValueError else state
    verdict = idle.decide(state, idle.Facts("mine"), NOW)
    assert verdict.outcome in ("allow", "block")
    if verdict.outcome == "block":
        top = state["stack"][-1]
        assert whole_number(top["iter"]) < whole_number(top["max"])
        assert idle.age_of(state, NOW) <= idle.STALE_AFTER_S
    idle_briefing.is_live(state, NOW)


def ralph_state(data):
    """Decide on a state file; the text after its first NUL is the agent's message."""
    text, _, said = data.partition(b"\0")
    page = result_of(FrontMatter, text.decode("utf-8", "surrogateescape"))
    state = None if page is ValueError else page.values()
    verdict = ralph.decide(state, "go", ralph.Facts("mine", promises=lambda own_line: _core.promises(said, own_line)))
    assert verdict.outcome in ("allow", "block")
    assert verdict.ended is (verdict.outcome == "allow" and verdict.why.startswith("the ralph loop ended"))
    if verdict.outcome == "block":
        assert (
            FrontMatter(page.set("iteration", verdict.change["iteration"]))["iteration"] == verdict.change["iteration"]
        )


def triage_state(data):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/x_triage.json"
        with open(path, "wb") as out:
            out.write(data)
        (file,) = find_files(folder, [], "_triage.json")
        try:
            state, columns = file.columns("entries", lambda state: triage.ALL_COLUMNS)
        except ValueError:
            return
        assert isinstance(standard(data), dict)
        entries = None if columns is None else triage.Entries(triage.ALL_COLUMNS, columns)
        verdict = triage.decide(state, entries, triage.Facts(path, folder))
        assert len(verdict.reason) < 10_000
        if verdict.change is not None:
            file.edit(verdict.change)
            with open(path, "rb") as saved:
                assert standard(saved.read())["phase"] in ("aggregation", "meta-review", "fix-planning", "complete")


def memory_lines(data):
    """Score messages, which are separated by NUL, and compare with the oracle."""
    messages = data.decode("utf-8", "replace").split("\0")[:8]
    for tuned in (False, True):
        found = _core.score_lines([message.encode() for message in messages], tuned)
        verdict = memory.decide(memory.Facts(found))
        assert verdict.reason.replace("\n", "").isprintable()
        if len(data) < 2000 and "\x01" not in data.decode("utf-8", "replace"):
            expected = SCORERS[tuned].score(messages)
            decoded = [(*one[:2], *(part.decode() for part in one[2:5]), one[5]) for one in found]
            assert sorted(decoded) == sorted(expected)
    assert len(memory.quote_line(messages[0])) <= 5 * memory.MAX_LINE_CHARS


def jwz_store(data):
    with tempfile.TemporaryDirectory() as project:
        folder = Path(project, ".jwz")
        folder.mkdir()
        (folder / "messages.jsonl").write_bytes(data)
        found = Store.find(project).newest("t")
        values = [result_of(_core.parse_json, line) for line in plain_lines(data)]
        values = [value for value in values if isinstance(value, dict)]
        topics = [
            value["id"]
            for value in values
            if value.get("type") == "topic" and value.get("name") == "t" and isinstance(value.get("id"), str)
        ]
        if found is not None and b"\\" not in data:
            assert found.topic_id == topics[0]
        store = Store.find(project)
        if found is None or found.created_at < 2**62:
            with store.lock():
                store.post("t", "new", NOW)
            assert store.newest("t").body == "new"
        assert (folder / "messages.jsonl").read_bytes().startswith(data)


def payload_bytes(data):
    reader, writer = os.pipe()
    try:
        os.write(writer, data[:60_000])
        os.close(writer)
        found = result_of(payload.read_payload, reader)
    finally:
        os.close(reader)
    value = result_of(standard, data[:60_000])
    if isinstance(value, dict):
        assert found == value
    if isinstance(found, dict):
        payload.is_paused(found)
        payload.get_text(found, "cwd")


def config(data):
    stderr = os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        found = read_sections("config.json", lambda path: data)
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(null)
    assert set(found) == set(KEYS)
