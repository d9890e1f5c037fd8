"""Prompts typed while the agent worked, in versions of Claude Code that record them only in the queue."""

import pytest
from support.oracles.scan import rows
from support.written_records import lines, queued, record, said, typed

import tailhook

TEXT = "And the tests, please."
NOTICE = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>"


def step(operation, text=None, seconds=0):
    more = {} if text is None else {"content": text}
    return {**record("queue-operation", seconds=seconds), "operation": operation, **more}


def counts(folder, *of_files):
    """Return (prompts, messages) of session s, by the scan and by the oracle.  of_files: lists of records."""
    files = []
    for number, records in enumerate(of_files):
        path = folder / f"{number}.jsonl"
        path.write_bytes(lines(*records))
        files.append((str(path), path.read_bytes()))
    (row,) = tailhook.scan([path for path, _ in files], "sessions").rows()
    (slow,) = rows("sessions", files)
    assert (row.prompts, row.messages) == (slow["prompts"], slow["messages"])
    return row.prompts, row.messages


def test_what_a_person_typed_while_the_agent_worked_counts_though_only_the_queue_has_it(tmp_path):
    records = [typed("Do it."), step("enqueue", TEXT, 1), said("Yes."), step("remove", seconds=2), said("Both done.")]
    assert counts(tmp_path, records) == (2, 4)


NOT_GIVEN = {
    "it waits still": [step("enqueue", TEXT)],
    "a turn began with it, and a record of its own": [step("enqueue", TEXT), step("dequeue"), typed(TEXT)],
    "the person took it back": [step("enqueue", TEXT), step("popAll", TEXT), step("remove")],
    "it is an attachment, too": [step("enqueue", TEXT), step("remove"), queued(TEXT)],
    "it is an attachment before it is removed": [step("enqueue", TEXT), queued(TEXT), step("remove", TEXT)],
    "the host wrote it": [step("enqueue", NOTICE), step("remove")],
    "an older version of the host wrote it": [step("enqueue", "<agent-notification>\n"), step("remove")],
    "it is a command": [step("enqueue", "/mcp"), step("remove")],
    "it has no text": [step("enqueue"), step("remove")],
    "another text was removed": [step("enqueue", TEXT), step("remove", "no such text")],
    "it was put there by no operation that is known": [step("peek", TEXT), step("remove")],
}


@pytest.mark.parametrize("case", NOT_GIVEN)
def test_a_text_in_the_queue_is_not_a_further_prompt_if(case, tmp_path):
    records = NOT_GIVEN[case]
    others = sum(one["type"] in ("user", "attachment") for one in records)
    assert counts(tmp_path, records) == (others, others)


@pytest.mark.parametrize(
    ("records", "prompts"),
    [
        ([step("enqueue", NOTICE), step("enqueue", TEXT), step("remove")], 1),  # notices wait until the turn ends
        ([step("enqueue", NOTICE), step("enqueue", TEXT), step("remove"), step("remove")], 1),
        ([step("enqueue", NOTICE), step("enqueue", TEXT), step("dequeue"), step("remove")], 0),
        ([step("enqueue", "a"), step("enqueue", "b", 1), step("popAll", "b"), step("remove")], 1),
        ([step("enqueue", "a"), step("enqueue", "b", 1), step("remove", "b"), step("dequeue", "a")], 1),
        ([step("enqueue", "a"), step("enqueue", "a", 1), step("remove"), step("remove")], 2),
        ([step("remove"), step("enqueue", "a")], 0),
    ],
)
def test_a_removal_without_a_text_takes_the_oldest_of_a_person_and_then_the_oldest(records, prompts, tmp_path):
    assert counts(tmp_path, records)[0] == prompts


def test_a_copy_of_a_file_has_no_further_queued_prompts_and_queues_are_those_of_a_file(tmp_path):
    records = [step("enqueue", TEXT), step("remove")]
    assert counts(tmp_path, records, records) == (1, 1)
    assert counts(tmp_path, records[:1], records[1:]) == (0, 0)


def test_no_record_of_the_queue_is_a_prompt_by_itself(tmp_path):
    (tmp_path / "s.jsonl").write_bytes(lines(step("enqueue", TEXT), step("remove")))
    found = tailhook.scan(tmp_path / "s.jsonl", "records", columns=["is_prompt", "role", "text"]).rows()
    assert [tuple(row) for row in found] == [(False, None, TEXT), (False, None, "")]
    with tailhook.open(tmp_path / "s.jsonl") as transcript:
        assert list(transcript.messages()) == []
    found = tailhook.scan(tmp_path / "s.jsonl", patterns={"tests": "tests"}, all_text=True).rows()
    assert [(row.role, row.context) for row in found] == [(None, TEXT)]
