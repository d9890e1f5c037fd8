"""The scan of ranges gives the rows of the slow reference, however the files are cut."""

import gzip
import os
from contextlib import nullcontext
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.corpora import transcript_paths
from support.long_runs import examples, sample
from support.oracles import scan_records
from support.oracles.scan import COLUMNS, Question, rows
from support.oracles.scan_records import head_of
from support.range_server import bucket
from support.scans import scan_rows
from support.transcript_trees import grow_tree, host_files, mixed_files

import tailhook
from tailhook.fleet import local, objects
from tailhook.fleet.objects import ObjectFile
from tailhook.fleet.plan import FileRange
from tailhook.transcripts.host_records import recognize
from tailhook.transcripts.sources import OpenSource, import_zstd
from tailhook.transcripts.urls import UrlVersion, name_of

PATTERNS = {
    "word": "TODO",
    "common": "the ",
    "quotes": '"quotes" <b>',
    "emoji": "\U0001f600",
    "lines": "Done.\n\n",
    "umlaut": "ü",
    "slash": "/loop",
}
NOON = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
TABLES = pytest.mark.parametrize("table", COLUMNS)
TIMES = st.sampled_from([None, *(datetime(2026, 11, 1, 12, minute, 30, tzinfo=UTC) for minute in range(0, 5, 2))])


@st.composite
def questions(draw):
    """Draw a question. Roles are only for matches and records."""
    return Question(
        patterns={name: PATTERNS[name] for name in draw(st.sets(st.sampled_from(sorted(PATTERNS)), min_size=1))},
        signals=draw(st.booleans()),
        categories=draw(st.booleans()),
        roles=draw(st.sampled_from([None, ("user",), ("assistant", "user")])),
        since=draw(TIMES),
        until=draw(TIMES),
        project=draw(st.sampled_from([None, "/home/me/src", "/home/me/src/app", "C:\\src"])),
        sessions=draw(st.sampled_from([None, ("session-0001", "session-0002")])),
        all_text=draw(st.booleans()),
        sidechains=draw(st.booleans()),
        in_code=draw(st.sampled_from([None, True, False])),
        context=draw(st.sampled_from([0, 1, 80])),
    )


def of_claude_code(found):
    return [(path, data) for path, data in found if head_of(path, data).host == "claude-code"]


@TABLES
@settings(max_examples=examples(30), suppress_health_check=list(HealthCheck))
@given(question=questions(), seed=st.integers(0, 1 << 32))
def test_mixed_and_damaged_files_give_the_rows_of_the_reference(table, question, seed):
    found = mixed_files(Random(seed))
    wanted = rows(table, found, question)
    assert scan_rows(table, found, question) == wanted
    assert scan_rows(table, found, question, Random(seed)) == wanted


@TABLES
@settings(max_examples=examples(20), suppress_health_check=list(HealthCheck))
@given(question=questions(), seed=st.integers(0, 1 << 32))
def test_other_hosts_transcripts_give_the_rows_of_the_reference(table, question, seed):
    found = host_files(Random(seed))
    wanted = rows(table, found, question)
    assert scan_rows(table, found, question) == wanted
    assert scan_rows(table, found, question, Random(seed)) == wanted


@TABLES
@settings(max_examples=examples(20), suppress_health_check=list(HealthCheck))
@given(question=questions(), seed=st.integers(0, 1 << 32))
def test_resumed_forked_and_sub_agents_sessions_give_the_rows_of_the_reference(table, question, seed):
    tree = grow_tree(Random(seed))
    wanted = rows(table, tree.files, question)
    assert scan_rows(table, tree.files, question, Random(seed)) == wanted


def pack(folder, found, random):
    """Write files below a folder, some of them compressed; return their paths and bytes."""
    written = []
    for number, (path, data) in enumerate(found):
        ending, packed = random.choice([("", data), (".gz", gzip.compress(data)), (".zst", compressed(data))])
        file = folder / str(number) / f"{path}{ending}"
        file.parent.mkdir(parents=True)
        file.write_bytes(packed)
        written.append((str(file), data))
    return written


def compressed(data):
    """Return a file of several zstd frames, one of them empty."""
    return b"".join(import_zstd("zst").compress(part) for part in (data[:1000], b"", data[1000:]))


NAMING = b'{"type":"user","sessionId":"named","uuid":"u","image":"%b","message":{"content":"TODO"}}'
UNNAMED = b'{"type":"user","image":"%b"}\n'
HEAD = UNNAMED % (b"x" * (local.HEAD_BYTES - len(UNNAMED % b"")))  # of a file, in which its session is looked for
OWN_SESSION_FILES = {
    "no line feed at the end": UNNAMED % b"" + NAMING % b"",
    "a first line that ends behind the first mebibyte": NAMING % (b"x" * local.HEAD_BYTES) + b"\n" + UNNAMED % b"",
    "a last line that does so": UNNAMED % b"" + NAMING % (b"x" * local.HEAD_BYTES),
    "a line that begins behind it": HEAD + NAMING % b"",
    "a line that begins with its last byte": HEAD.replace(b"x", b"", 1) + NAMING % b"",
}


@TABLES
@pytest.mark.parametrize("data", OWN_SESSION_FILES.values(), ids=OWN_SESSION_FILES)
@pytest.mark.parametrize("place", ["files", "objects"])
def test_a_files_own_session_is_named_by_a_line_that_begins_in_the_first_mebibyte(tmp_path, table, data, place):
    asked = {"patterns": PATTERNS, "all_text": True, "in_code": None} if table == "matches" else {}
    if place == "files":
        path, served = str(tmp_path / "t.jsonl"), nullcontext()
        Path(path).write_bytes(data)
    else:
        path, served = "s3://bucket/t.jsonl", bucket({"t.jsonl": data})
    with served:
        found = [row._asdict() for row in tailhook.scan(path, table, columns=COLUMNS[table], **asked).rows()]
    assert found == rows(table, [(path, data)], Question(patterns=PATTERNS, all_text=True, in_code=None))


@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 1 << 32), head_bytes=st.integers(1, 2000))
def test_a_files_own_session_is_that_of_the_reference(seed, head_bytes):
    random = Random(seed)
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(local, "HEAD_BYTES", head_bytes)
        patches.setattr(scan_records, "HEAD_BYTES", head_bytes)
        for path, whole in mixed_files(random):
            data = whole[: random.randint(0, min(len(whole), 4000))]
            if recognize(BytesIO(data)) is None:
                own = local.find_session(BytesIO(data)) or name_of(path)
                assert own == head_of(path, data).session_id
                part = FileRange(path, 0, len(data), len(data), UrlVersion(len(data), 0, ""), url=path)
                head = data[: head_bytes + random.randint(0, 100)]
                with patches.context() as more:
                    more.setattr(
                        objects,
                        "open_source",
                        lambda path, version, data=data: OpenSource(BytesIO(data), True, path, False),
                    )
                    with ObjectFile(part, head) as file:
                        assert (local.find_session(file) or name_of(path)) == own


@pytest.mark.parametrize("seed", range(3))
def test_files_on_disk_give_the_rows_of_the_reference_and_each_row_finds_its_record(tmp_path, seed):
    random = Random(seed)
    found = pack(tmp_path, [*host_files(random), *mixed_files(random)], random)
    question = Question(patterns=PATTERNS, all_text=True, in_code=None)
    opened = {path: tailhook.open(path) for path, _ in found}
    standing = {path: records_by_offset(transcript) for path, transcript in opened.items()}
    for table in COLUMNS:
        asked = {"patterns": PATTERNS, "all_text": True, "in_code": None} if table == "matches" else {}
        scan = tailhook.scan(tmp_path, table, columns=COLUMNS[table], workers=2, **asked)
        got = [row._asdict() for row in scan.rows()]
        assert sorted(got, key=str) == sorted(rows(table, found, question), key=str)
        for row in got if "offset" in COLUMNS[table] else ():
            record = opened[row["path"]].at(row["offset"])
            records = standing[row["path"]].get(row["offset"], [record])
            assert (record.type, record.uuid, record.text) == (records[0].type, records[0].uuid, records[0].text)
            if table == "records":
                assert (row["type"], row["uuid"], row["session_id"], len(row["text"])) in [
                    (one.type, one.uuid, one.session_id or row["session_id"], len(one.text)) for one in records
                ]
            elif table == "matches":
                texts = [one.text[row["start"] : row["end"]] for one in records]
                assert PATTERNS[row["name"]] in texts
            else:
                assert row["tool_use_id"] in [use.id for one in records for use in one.tools]
    for transcript in opened.values():
        transcript.close()


def records_by_offset(transcript):
    """Return the records of a transcript by the offsets of their lines; a line of Gemini's may have several."""
    found = {}
    for record in transcript:
        found.setdefault(record.offset, []).append(record)
    return found


@TABLES
@settings(max_examples=examples(8), suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 1 << 32))
def test_files_that_were_last_modified_long_before_a_time_have_no_row_in_it(table, seed):
    """The sessions of a tree are days apart; a file is modified when its last record is written, or later."""
    random = Random(seed)
    spread = [
        (path, data.replace(b"2026-11-01T", b"2026-%02d-%02dT" % (random.choice((10, 11)), random.randint(1, 28))))
        for path, data in grow_tree(random).files
    ]
    times = sorted(row["timestamp"] for row in rows("records", spread) if row["timestamp"])
    question = Question(
        patterns=PATTERNS, in_code=None, since=random.choice(times or [NOON]), until=random.choice([None, *times[-3:]])
    )
    with TemporaryDirectory() as folder:
        found = pack(Path(folder), spread, random)
        for path, data in found:
            own = [row["timestamp"] for row in rows("records", [(path, data)]) if row["timestamp"]]
            written = max(own, default=NOON).timestamp() + random.choice((0, 0, 3600, -3600, 10**6))
            os.utime(path, (written, written))
        asked = {"patterns": PATTERNS, "in_code": None} if table == "matches" else {}
        times = {"since": question.since, "until": question.until}
        scan = tailhook.scan(folder, table, columns=COLUMNS[table], workers=1, **asked, **times)
        got = [row._asdict() for row in scan.rows()]
        assert sorted(got, key=str) == sorted(rows(table, found, question), key=str)
        assert scan.report.files + scan.report.older_files == len(found)


def real_files():
    """Return the shared transcripts of Claude Code."""
    return of_claude_code((path.name, path.read_bytes()) for path in transcript_paths())


EVERYTHING = Question(patterns=PATTERNS, signals=True, categories=True, in_code=None)


def test_real_transcripts_give_the_rows_of_the_reference(report):
    found = real_files()
    for table in COLUMNS:
        wanted = rows(table, found, EVERYTHING)
        assert wanted, table
        assert scan_rows(table, found, EVERYTHING, Random(1)) == wanted, table
        report(f"scan: {len(wanted):,} rows of the table {table} as by the reference")


def concatenated(found, random):
    """Return pairs of files as one, with or without the newline between two records."""
    pairs = zip(found, random.sample(found, len(found)), strict=True)
    return [(path, data.rstrip(b"\n") + random.choice((b"", b"\n")) + more) for (path, data), (_, more) in pairs]


def torn(found, random):
    """Return files without their beginning, their end, or a part in the middle."""
    edges = [(path, data, sorted(random.randrange(len(data)) for _ in range(2))) for path, data in found]
    parts = [(path, (data[start:], data[:end], data[:start] + data[end:])) for path, data, (start, end) in edges]
    return [(path, random.choice(three)) for path, three in parts]


@pytest.mark.parametrize("seed", sample(range(8), 8))
@pytest.mark.parametrize("damage", [concatenated, torn])
def test_real_transcripts_that_are_joined_or_torn_give_the_rows_of_the_reference(damage, seed):
    random = Random(seed)
    found = damage(sample(real_files(), 3), random)
    for table in COLUMNS:
        assert scan_rows(table, found, EVERYTHING, random) == rows(table, found, EVERYTHING), table


def test_real_transcripts_that_are_compressed_give_the_rows_of_the_reference():
    asked = {"patterns": PATTERNS, "signals": True, "categories": True, "in_code": None}
    with TemporaryDirectory() as folder:
        found = pack(Path(folder), sample(real_files(), 3), Random(1))
        for table in COLUMNS:
            scan = tailhook.scan(folder, table, columns=COLUMNS[table], **(asked if table == "matches" else {}))
            got = [row._asdict() for row in scan.rows()]
            assert sorted(got, key=str) == sorted(rows(table, found, EVERYTHING), key=str), table


@TABLES
@pytest.mark.parametrize("letter", ["n", "\\u00e9", "\\n"])
@pytest.mark.parametrize("more", [0, 1])
def test_names_and_ids_that_are_too_long_count_as_missing(table, letter, more):
    letter_bytes = len(letter.encode().decode("unicode_escape").encode())
    name = letter * (4096 // letter_bytes + more)
    use = f'{{"type":"tool_use","id":"{name}","name":"{name}","input":{{"command":"{name}","file_path":"{name}"}}}}'
    result = f'{{"type":"tool_result","tool_use_id":"{name}","content":"ok"}}'
    members = ("sessionId", "cwd", "uuid", "parentUuid", "agentId", "gitBranch", "version", "requestId", "subtype")
    named = ",".join(f'"{member}":"{name}"' for member in members)
    message = f'"id":"{name}","model":"{name}","usage":{{"output_tokens":3}}'
    data = "\n".join(
        [
            f'{{"type":"assistant",{named},"message":{{{message},"content":[{{"type":"text","text":"TODO"}},{use}]}}}}',
            f'{{"type":"user",{named},"message":{{"content":[{result}]}}}}',
            f'{{"type":"progress",{named},"data":{{"agentId":"{name}"}}}}',
            '{"type":"user","sessionId":"short","uuid":"u","message":{"content":"TODO"}}',
        ]
    ).encode()
    files = [("/t/s.jsonl", data)]
    question = Question(patterns={"todo": "TODO"}, sidechains=True)
    assert scan_rows(table, files, question) == rows(table, files, question)
