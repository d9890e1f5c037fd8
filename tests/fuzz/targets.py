"""What is fuzzed: each target takes any bytes and fails if the code differs from its oracle."""

import atexit
import datetime
import io
import json
import os
import re
import tempfile
import zlib
from itertools import pairwise
from pathlib import Path
from random import Random

from support.every_value import PLACES, Surroundings, check
from support.keywords import KEYWORDS, found_by_re, regexes
from support.oracles import records as oracle
from support.oracles.markdown import Oracle
from support.oracles.memory_lines import Scorer
from support.oracles.scan import utf8

from tailhook import _core
from tailhook.errors import RecordError
from tailhook.fleet import program as programs
from tailhook.fleet.answer import Conditions
from tailhook.fleet.columns import TABLE_COLUMNS
from tailhook.hook import payload
from tailhook.hook.config import KEYS, read_sections
from tailhook.machines import idle, memory, ralph, triage, whole_number
from tailhook.machines.secret_rules import KEY_BEGINNINGS
from tailhook.machines.secrets import mask
from tailhook.patterns import PatternSet, code_spans
from tailhook.stores.frontmatter import FrontMatter
from tailhook.stores.jsonfile import find_files
from tailhook.stores.jwz import Store
from tailhook.transcript import Transcript

NOW = 1_767_312_245
LITERALS = ["a", "ab", "bab", "abab", "éa", "<loop-done>", "done>"]
SETS = {fold: PatternSet(LITERALS, ignore_case=fold, outside_code=False) for fold in (False, True)}
WORDS = PatternSet(KEYWORDS, ignore_case=True, word=True, outside_code=False)
ORACLE = Oracle()
SCORERS = {False: Scorer("seed"), True: Scorer("tuned")}


def no_constant(word):
    raise ValueError(f"{word} is not JSON")


def standard(data):
    """Return the value of a JSON text by the standard library, held to RFC 8259. Raises ValueError."""
    text = data.decode("utf-8").removeprefix("\ufeff")
    if text.startswith("\ufeff"):
        raise ValueError("two byte order marks")
    try:
        return json.loads(text, parse_constant=no_constant)
    except RecursionError:
        raise ValueError("too deep") from None


def result_of(function, *arguments):
    """Return what the function returns, or ValueError if it raises that."""
    try:
        return function(*arguments)
    except ValueError:
        return ValueError


def json_text(data):
    ours, theirs = result_of(_core.parse_json, data), result_of(standard, data)
    assert repr(ours) == repr(theirs)
    if ours is ValueError:
        return
    for style in (0, 1, 2):
        written = result_of(_core.write_json, ours, style)
        assert written is ValueError or repr(_core.parse_json(written)) == repr(ours)


def json_framer(data):
    whole = _core.JsonFramer().feed(data)
    framer, end = _core.JsonFramer(), -1
    for at in range(0, len(data), 7):
        if end < 0:
            end = framer.feed(data[at : at + 7])
    assert end == whole
    value = result_of(standard, data)
    if isinstance(value, dict):
        assert _core.parse_json(data[:whole]) == value


def json_edit(data):
    value = result_of(_core.parse_json, data)
    if not isinstance(value, dict) or not value or "Infinity" in repr(value) or "inf" in repr(value):
        return
    key = sorted(value)[len(data) % len(value)]
    edited = _core.edit_json(data, [((key,), b'{"new":[1]}')])
    assert _core.parse_json(edited) == {**value, key: {"new": [1]}}
    removed = _core.edit_json(data, [((key,), None)])
    assert _core.parse_json(removed) == {name: member for name, member in value.items() if name != key}
    added = _core.edit_json(data, [((f"{key} new",), b"1")])
    assert _core.parse_json(added) == {**value, f"{key} new": 1}


def json_columns(data):
    """Compare read_json_columns with json. The first byte is the size of the reader's window; the rest is the file."""
    window_bytes, data = 4 + (data[0] if data else 0), data[1:]
    paths = (("a",), ("b",), ("a", "b"))
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        ours = result_of(_core.read_json_columns, file.fileno(), "rows", lambda top: paths, window_bytes)
        default = result_of(_core.read_json_columns, file.fileno(), "rows", lambda top: paths)
    assert repr(ours) == repr(default)
    value = result_of(standard, data)
    if ours is not ValueError:
        rows = value.pop("rows", None) if ours[1] is not None else None
        assert repr(ours[0]) == repr(value)
        if rows is not None:
            nested = [row.get("a") for row in rows]
            columns = [nested, [row.get("b") for row in rows]]
            columns.append([one.get("b") if isinstance(one, dict) else None for one in nested])
            assert repr(ours[1]) == repr(columns)
    elif isinstance(value, dict) and data.count(b"rows") <= 1 and b"\\" not in data:
        rows = value.get("rows")
        assert isinstance(rows, list)
        assert not all(isinstance(row, dict) for row in rows)


def plain_lines(data):
    """Return the lines, found with `bytes.split`."""
    pieces = data.split(b"\n")
    if pieces[-1] == b"":
        pieces.pop()
    lines = [piece.removesuffix(b"\r") if b"\n" in data else piece for piece in pieces]
    if pieces and not data.endswith(b"\n"):
        lines[-1] = pieces[-1].removesuffix(b"\r")
    if lines:
        lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
    return lines


def lines(data):
    expected = plain_lines(data)
    assert [line for _, line in _core.forward_lines(io.BytesIO(data))] == expected
    assert [line for _, line in _core.reverse_lines(io.BytesIO(data))] == expected[::-1]
    start = len(data) // 3
    forward = list(_core.forward_lines(io.BytesIO(data), start, 2 * start))
    assert list(_core.reverse_lines(io.BytesIO(data), start, 2 * start)) == forward[::-1]


def records(data):
    for line in data.split(b"\n"):
        found = _core.parse_record(line)
        value = result_of(standard, line)
        # orjson, which gives `json()`, reads these otherwise: integers over 64 bits, lone surrogates.
        if isinstance(value, dict) and not re.search(r"\\ud|inf|\d{19}", repr(value)):
            oracle.assert_same(found, value)
        elif found is not None:
            try:
                assert oracle.everything(found)
                assert isinstance(found.json(), dict)
            except RecordError:
                continue  # invalid UTF-8 in a tool's input, or in a member that a Record does not show


def host_records(data):
    """Read a transcript of another host from both ends, and its messages."""
    with Transcript(io.BytesIO(data)) as transcript:
        forward = list(transcript)
        if transcript.host == "claude-code":
            return
        known = [repr(oracle.everything(record)) for record in forward]
        assert [repr(oracle.everything(record)) for record in transcript.reversed()] == known[::-1]
        assert [repr(oracle.everything(transcript.at(record.offset))) for record in forward] == known
        parts = sorted(record.offset for message in transcript.messages() for record in message.records)
        assert parts == [record.offset for record in forward if record.role is not None]
        assert isinstance(transcript.last_message(), str | None)


def scan_range(data):
    """Scan a file whole, cut at random places, and without its gate: the rows are the same. Compare with the reader."""
    chance = Random(zlib.crc32(data))
    for program, ungated in SCANS:
        found = rows_of_ranges(program, data, [0, None], len(data) + 1)
        edges = sorted(chance.randint(0, len(data)) for _ in range(4))
        assert rows_of_ranges(program, data, [0, *edges, None], chance.choice((1, 7, 64, 4096))) == found
        assert rows_of_ranges(ungated, data, [0, None], len(data) + 1) == found
    if b"\xef\xbb\xbf" in data or result_of(data.decode, "utf-8") is ValueError:
        return  # the scan ignores a mark on every line; a Record raises for a value that is not UTF-8
    rows = rows_of_ranges(SCANS[0][0], data, [0, None], len(data) + 1)
    assert [row[2:] for row in rows] == [
        (
            record.offset,
            *map(utf8, (record.type, record.uuid, record.model, record.text)),
            record.is_prompt,
            record.is_error,
        )
        for record in _core.forward_records(io.BytesIO(data))
    ]


def rows_of_ranges(program, data, edges, step):
    """Return the rows of a file that is cut at the edges, and is fed `step` bytes at a time."""
    scan = _core.RangeScan(program)
    for start, end in pairwise(edges):
        scan.begin("t.jsonl", "s", "claude-code", start, end)
        at = max(start - 1, 0)
        while at < len(data) and not scan.is_done:
            scan.feed(data[at : at + step])
            at += step
        scan.end_file()
    return [row for batch in scan.finish() for row in zip(*batch.columns(), strict=True)]


def scan_programs():
    """Return (a question for each table, the same without its gate)."""
    searches = [programs.signal_search(), programs.category_search(), programs.Search({"e": ["é"], "word": ["TODO"]})]
    columns = TABLE_COLUMNS | {
        "records": ("path", "host", "offset", "type", "uuid", "model", "text", "is_prompt", "is_error")
    }
    found = []
    for table in ("records", "matches", "tools", "usage", "sessions"):
        options = {"code": -1, "context": 5, "all_text": True} if table == "matches" else {}
        program = programs.make_program(table, columns[table], searches, Conditions(), **options)
        _, (arguments,) = program.__reduce__()
        found.append((program, _core.ScanProgram(**{**arguments, "gate": None})))
    return found


SCANS = scan_programs()


def last_message(data):
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        outcome, texts = _core.last_message(file.fileno())
    assert (outcome == "text") is bool(texts)
    text = b"\n".join(text for text, _ in texts).decode("utf-8", "surrogatepass") if texts else None
    values = [
        result_of(standard, line.strip(b"\r"))
        for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        if line.strip()
    ]
    if all(isinstance(value, dict) for value in values):
        assert text == oracle.last_message(values)


def code_map(data):
    text = data.decode("utf-8", "replace")
    assert [tuple(span) for span in code_spans(text)] == ORACLE.spans(text)
    for kind, start, end in code_spans(data):
        assert kind in ("fence", "indented", "span", "comment", "raw")
        assert 0 <= start < end <= len(data)


def literals(data):
    text = data.decode("utf-8", "replace")
    expected = sorted(
        (at, at + len(literal), LITERALS.index(literal), literal)
        for literal in LITERALS
        for at in range(len(text))
        if text.startswith(literal, at)
    )
    found = SETS[False].findall(text)
    assert [(match.start, match.end, match.name) for match in found] == [(a, b, name) for a, b, _, name in expected]
    folded = {(match.start, match.end, match.name) for match in SETS[True].findall(text)}
    assert folded >= {(a, b, name) for a, b, _, name in expected}
    for match in SETS[True].findall(data):
        assert 0 <= match.start < match.end <= len(data)


def keywords(data):
    line = " ".join(data.decode("utf-8", "replace").splitlines())
    found = sorted((match.name, match.start, match.end) for match in WORDS.findall(line))
    assert found == found_by_re(COMPILED, line)


COMPILED = list(regexes(KEYWORDS))
MARKERS = tuple(" \t>-+*.)0123456789")


def signals(data):
    text = data.decode("utf-8", "replace")
    known = {signal for mode in idle.SIGNALS.values() for signal in mode}
    found = _core.signals(text)
    assert set(found) <= known
    code = [text[start:end] for _, start, end in code_spans(text)]
    assert len(found) <= sum(text.count(signal) - sum(part.count(signal) for part in code) for signal in known)


def front_matter(data):
    text = data.decode("utf-8", "surrogateescape")
    page = result_of(FrontMatter, text)
    if page is ValueError:
        return
    for key in list(page.spans)[:4]:
        changed = FrontMatter(page.set(key, "5"))
        assert changed[key] == "5"
        assert changed.body == page.body
        assert {name: changed[name] for name in changed.spans if name != key} == {
            name: page[name] for name in page.spans if name != key
        }


def iso_time(data):
    text = data.decode("utf-8", "replace")
    ours = _core.unix_time(text)
    try:
        theirs = datetime.datetime.fromisoformat(text)
    except ValueError:
        return
    if ours is not None and "," not in text and not re.search(r"T\d\d(:?\d\d)?\.|24", text):
        if theirs.tzinfo is None:
            theirs = theirs.replace(tzinfo=datetime.timezone.utc)
        assert abs(theirs.timestamp() - ours) < 1e-3


def idle_state(data):
    state = result_of(_core.parse_json, data)
    state = None if state is ValueError else state
    verdict = idle.decide(state, idle.Facts("mine"), NOW)
    assert verdict.outcome in ("allow", "block")
    if verdict.outcome == "block":
        top = state["stack"][-1]
        assert whole_number(top["iter"]) < whole_number(top["max"])
        assert idle.age_of(state, NOW) <= idle.STALE_AFTER_S
    idle.is_live(state, NOW)


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


PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]{0,40}KEY-----[ \t\r\n]*[A-Za-z0-9+/=]{16}")


def masked_text(data):
    text = data.decode("utf-8", "surrogatepass" if data.isascii() else "replace")
    shown = mask(text)
    assert shown.count("\n") <= text.count("\n")
    assert not PRIVATE_KEY.search(shown), shown
    reached = 0
    for start, end in _core.find_keys(text):
        assert reached <= start < end <= len(text)
        assert text[start:end].isascii()
        assert text.startswith(tuple(KEY_BEGINNINGS), start)
        assert text[start:end] not in shown or text.count(text[start:end]) > 1
        reached = end


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


SURROUNDINGS = Surroundings()
atexit.register(SURROUNDINGS.remove)


def hook(data):
    """Run a hook with all machines. The first byte chooses the file, or the payload, that the rest replaces."""
    check(SURROUNDINGS, PLACES[(data[0] if data else 0) % len(PLACES)], data[1:])


TARGETS = {
    target.__name__: target
    for target in (
        json_text, json_framer, json_edit, json_columns, lines, records, host_records, scan_range, last_message, code_map, literals, keywords, signals,
        front_matter, iso_time, idle_state, jwz_store, payload_bytes, config,
        ralph_state, triage_state, memory_lines, masked_text, hook,
    )
}  # fmt: skip


# ---- inputs ------------------------------------------------------------------

CORPUS = Path(__file__).with_name("corpus")
TOKENS = [
    b'{"', b'":', b"}{", b"[[", b"]]", b"\\u00e9", b"\\ud83d", b"\\", b'"', b",", b"\n", b"\r\n", b"\r", b"\x00", b"\xff", b"\xef\xbb\xbf",
    b"1e5", b"-0", b"null", b"true", b"`", b"``", b"```\n", b"~~~", b"    ", b"\t", b"> ", b"- ", b"1. ", b"<!--", b"-->", b"<pre>",
    b"</pre>", b"[a](b", b"<loop-done>", b"COMPLETE</loop-done>", b"\n\n", "é".encode(), "\u0130".encode(), "\u212a".encode(),
    b'"type":"assistant"', b'"message":', b'"content":', b'"text"', b"---\n", b"iteration: ", b"T00:00:00Z", b"+05:30", b'"stack":[',
    b'"topic_id":"T"', b'"name":"t"', b'"created_at":', b"\x0b", b"\xc2\xa0", b"#", b"decided to", b" ",
]  # fmt: skip


def seeds(name):
    """Return the seed inputs of a target, in the order of their names."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


def mutated(chance: Random, inputs):
    """Return one of the inputs, or two joined, with a few random changes."""
    data = bytearray(chance.choice(inputs))
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        at = chance.randint(0, len(data))
        to = min(len(data), at + chance.choice((0, 1, 2, 8, 32)))
        match chance.randrange(6):
            case 0:
                data[at:to] = chance.choice(TOKENS)
            case 1:
                data[at:at] = chance.choice(TOKENS)
            case 2:
                del data[at:to]
            case 3:
                data[at:at] = data[at:to] * chance.choice((1, 2, 20))
            case 4:
                other = chance.choice(inputs)
                data[at:] = other[chance.randint(0, len(other)) :]
            case _:
                if at < len(data):
                    data[at] = chance.randrange(256)
    return bytes(data[:20_000])
