"""Generated ends of loops: those with evidence count, and those without are refused, as each was built."""

import os
from collections import Counter
from random import Random

from support.checked_stops import KINDS, labelled_stop
from support.long_runs import examples

from tailhook.hook.event import HookEvent
from tailhook.hook.evidence import refuse_end

STOPS = max(400, examples(4000))


def test_of_hundreds_of_generated_ends_none_counts_without_evidence_and_none_is_refused_with_it(
    tmp_path, monkeypatch, report
):
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", "")
    kinds = Counter()
    for number in range(STOPS):
        folder = tmp_path / str(number)
        (folder / "project" / ".git").mkdir(parents=True)
        stop = labelled_stop(Random(number), folder, began=1_767_323_045)
        last = labelled_event(stop, folder)
        refusal, doubt = refuse_end(last, stop.frame | {"began": "2026-01-02T03:04:05Z"}, "COMPLETE", "signal")
        about = f"stop {number}, {stop.kind}: {refusal or 'the end counts'}"
        assert bool(refusal) is bool(stop.missing), about
        assert doubt == "", about
        if stop.missing:
            since = f"{os.path.basename(stop.since)} was edited at " if stop.since else "the loop began at "
            line = next((line for line in refusal.splitlines() if line.startswith(f"- `{stop.missing}`")), "")
            assert since in line, (about, since)
        kinds[stop.kind] += 1
    assert set(kinds) == set(KINDS)
    refused = sum(kinds[kind] for kind in kinds if not kind.startswith("proven") or kind.endswith("session"))
    report(f"checks: {STOPS} generated ends of loops as labelled, {refused} of them refused")


def labelled_event(stop, folder):
    """Return the event of a stop."""
    payload = {
        "session_id": "mine",
        "transcript_path": str(stop.transcript),
        "cwd": str(folder / "project"),
        "hook_event_name": "Stop",
        **stop.payload,
    }
    event = HookEvent(payload, "Stop")
    event.now = stop.now
    return event
