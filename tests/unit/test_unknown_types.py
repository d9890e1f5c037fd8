"""Records of unknown types: counted by the version of their host."""

import json
from random import Random

import pytest
from support.corpora import transcript_paths
from support.transcript_trees import OTHER_SESSIONS

import tailhook


def write_types(path, kinds, version="2.1.329"):
    path.write_text("".join(json.dumps({"type": kind, "version": version}) + "\n" for kind in kinds))


@pytest.mark.parametrize("table", ["records", "sessions"])
def test_records_of_unknown_types_are_counted_by_the_version_of_the_host(tmp_path, table):
    write_types(tmp_path / "a.jsonl", ["user", "new-kind", "new-kind", "Ä"])
    write_types(tmp_path / "b.jsonl", ["new-kind", "summary"], "3.0.0")
    (tmp_path / "c.jsonl").write_text('{"type":"\\u0075ser"}\n{"type":"n\\u0065w-kind"}\n{"type":7}\n{}\n')
    scan = tailhook.scan(tmp_path, table)
    list(scan)
    assert scan.report.unknown_types == {
        ("new-kind", "2.1.329"): 2,
        ("Ä", "2.1.329"): 1,
        ("new-kind", "3.0.0"): 1,
        ("new-kind", ""): 1,
    }


def test_a_type_of_one_host_is_unknown_in_a_transcript_of_another_one(tmp_path):
    codex = [{"type": "session_meta", "payload": {"cli_version": "9"}}, {"type": "session.start"}, {"type": "summary"}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in codex))
    write_types(tmp_path / "b.jsonl", ["user", "turn_context"])
    scan = tailhook.scan(tmp_path, "records")
    list(scan)
    assert scan.report.unknown_types == {
        ("session.start", "9"): 1,
        ("summary", "9"): 1,
        ("turn_context", "2.1.329"): 1,
    }


@pytest.mark.parametrize(
    ("table", "of_claude_code", "of_codex"), [("records", 1, 1), ("sessions", 1, 1), ("tools", 0, 1)]
)
def test_which_lines_are_decoded_depends_on_the_table_and_the_host(tmp_path, table, of_claude_code, of_codex):
    (tmp_path / "claude-code.jsonl").write_text('{"type":"new-kind"}\n')
    (tmp_path / "codex.jsonl").write_text('{"type":"session_meta","payload":{"id":"s"}}\n{"type":"new-kind"}\n')
    for name, count in (("claude-code", of_claude_code), ("codex", of_codex)):
        scan = tailhook.scan(tmp_path / f"{name}.jsonl", table)
        list(scan)
        assert sum(scan.report.unknown_types.values()) == count


def test_types_beyond_those_that_are_kept_are_counted_together(tmp_path):
    write_types(tmp_path / "a.jsonl", [f"kind-{number % 100}" for number in range(300)])
    scan = tailhook.scan(tmp_path, "records")
    assert sum(len(batch) for batch in scan) == 300
    found = scan.report.unknown_types
    assert len(found) == 65
    assert (found["kind-0", "2.1.329"], found["kind-63", "2.1.329"], found["others", ""]) == (3, 3, 3 * 36)


def test_only_decoded_records_are_counted_if_others_cannot_give_a_row(tmp_path):
    write_types(tmp_path / "a.jsonl", ["new-kind"] * 3)
    scan = tailhook.scan(tmp_path, patterns=["TODO"])
    assert list(scan) == []
    assert (scan.report.records, scan.report.unknown_types) == (0, {})


def test_no_record_of_the_real_transcripts_has_an_unknown_type():
    scan = tailhook.scan(transcript_paths(), "records", columns=["type"])
    list(scan)
    assert scan.report.unknown_types == {}
    assert scan.report.records > 4000


@pytest.mark.parametrize("host", OTHER_SESSIONS)
def test_no_record_of_another_host_has_an_unknown_type(tmp_path, host):
    for seed in range(5):
        (tmp_path / f"{seed}.jsonl").write_bytes(OTHER_SESSIONS[host](Random(seed)))
    scan = tailhook.scan(tmp_path, "records", columns=["type"])
    assert sum(len(batch) for batch in scan) > 5
    assert scan.report.unknown_types == {}
