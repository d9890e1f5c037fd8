"""States of the idle machine at a fixed time."""

from tailhook._core import iso_time

NOW = 1_767_312_245  # 2026-01-02T00:04:05Z
DONE = "<loop-done>COMPLETE</loop-done>"


def frame(**fields):
    return {"id": "f", "mode": "loop", "iter": 1, "max": 10, **fields}


def looping(*frames, age=60, **fields):
    """Return a live state of one frame, or of the given frames, outer ones first."""
    stack = list(frames) or [frame()]
    return {"schema": 1, "event": "STATE", "run_id": "r", "updated_at": iso_time(NOW - age), "stack": stack, **fields}
