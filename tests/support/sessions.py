"""Simulated sessions for the boards."""

import json
import os
import time
from pathlib import Path

MINUTE = 60_000

QUESTION = {"question": "Where should the theme be kept?", "choices": ["cookie", "localStorage", "profile"]}
# project, branch, what happened so many minutes ago: (minutes, event, tool, parameters)
SESSIONS = [
    (
        "/home/me/src/payments",
        "refund-races",
        [
            (46, "session_start", None, None),
            (45.5, "prompt_submit", None, None),
            (45, "tool_start", "Read", {"file_path": "src/refunds.py"}),
            (44, "tool_call", "Read", None),
            (43.5, "tool_start", "ExitPlanMode", None),
            (37, "tool_call", "ExitPlanMode", None),
            (36.5, "tool_start", "Edit", {"file_path": "src/refunds.py"}),
            (35, "tool_call", "Edit", None),
            (34, "tool_start", "Bash", {"command": "make test"}),
            (26, "tool_call", "Bash", None),
            (25, "tool_start", "TodoWrite", {"todos_done": 3, "todos": 7}),
            (24.9, "tool_call", "TodoWrite", None),
            (22, "tool_start", "AskUserQuestion", None),
            (17, "tool_call", "AskUserQuestion", None),
            (16, "tool_start", "Bash", {"command": "make test"}),
            (9, "tool_call", "Bash", None),
            (8, "tool_start", "TodoWrite", {"todos_done": 5, "todos": 7}),
            (7.9, "tool_call", "TodoWrite", None),
            (5, "tool_start", "Bash", {"command": "git push --force-with-lease"}),
            (4, "permission_asked", None, None),
        ],
    ),
    (
        "/home/me/src/website",
        "main",
        [(30, "prompt_submit", None, None), (2, "tool_start", "AskUserQuestion", QUESTION)],
    ),
    (
        "/home/me/work/etl",
        "nightly",
        [(80, "prompt_submit", None, None), (12, "stop_failure", None, "overloaded: try again later")],
    ),
    (
        "/home/me/src/parser",
        "fuzz-findings",
        [
            (19, "prompt_submit", None, None),
            (6, "tool_start", "TodoWrite", {"todos_done": 2, "todos": 9}),
            (0.4, "tool_start", "Bash", {"command": "cargo fuzz run lines"}),
        ],
    ),
    (
        "/home/me/src/tailhook",
        "docs",
        [(8, "prompt_submit", None, None), (0.1, "tool_start", "Edit", {"file_path": "docs/board.md"})],
    ),
    (
        "/home/me/infra/terraform",
        "eu-west",
        [(50, "prompt_submit", None, None), (0.8, "tool_start", "Grep", {"command": "module"})],
    ),
    (
        "/home/me/src/mobile",
        "release-4.2",
        [
            (90, "prompt_submit", None, None),
            (60, "tool_start", "TodoWrite", {"todos_done": 4, "todos": 4}),
            (35, "stop", None, None),
        ],
    ),
    ("/home/me/notes", None, [(240, "prompt_submit", None, None), (200, "stop", None, None)]),
    ("/home/me/src/old-api", "main", [(700, "prompt_submit", None, None), (600, "session_end", None, None)]),
]
# What two sub-agents of the first session did: (minutes ago, event, tool, parameters, sub-agent)
AGENTS_WORK = [
    (16, "subagent_start", None, None, "tests"),
    (15.8, "subagent_start", None, None, "docs"),
    (15, "tool_start", "Grep", {"pattern": "refund"}, "docs"),
    (14.5, "tool_start", "Write", {"file_path": "tests/test_refunds.py"}, "tests"),
    (13, "tool_call", "Grep", "no such folder: doc", "docs"),
    (12, "subagent_stop", None, None, "docs"),
    (9.5, "subagent_stop", None, None, "tests"),
]
# The first line of the last prompt, by project.
PROMPTS = {
    "/home/me/src/payments": "Fix the race in refunds: lock the row of the order",
    "/home/me/src/website": "Dark mode for the product page",
    "/home/me/work/etl": "Backfill July from the old warehouse",
    "/home/me/src/parser": "Find what the fuzzer finds, and mend it",
    "/home/me/src/tailhook": "A page about the board",
    "/home/me/infra/terraform": "Plan the new region",
    "/home/me/src/mobile": "Offline search on the phone",
    "/home/me/notes": "Sort my notes of June",
}
REPLIES = {
    "/home/me/src/mobile": "Search works without a network. The index takes 3 MB.",
    "/home/me/notes": "Sorted into five pages.",
}
LAST_WORDS = """**The race is fixed:** a refund now takes the row's lock before it reads the balance.

| case | before | now |
|-|-|-|
| two refunds at once | paid twice | `RefundConflict` |
| refund, then charge | 40 ms | 41 ms |

```python
with orders.lock(order_id):
    balance = orders.balance(order_id)
```

1. All 214 tests pass.
2. I would like to push the branch, rebased on `main`.
"""


def sessions(folder: Path) -> "list[dict]":
    """Return the events of all sessions in their order. Writes the first session's transcript into the folder."""
    now = time.time_ns() // 1_000_000
    transcript = folder / "transcript.jsonl"
    record = {"type": "assistant", "message": {"role": "assistant", "content": LAST_WORDS}}
    transcript.write_text(json.dumps(record) + "\n")
    os.utime(transcript, ns=((now - 5 * MINUTE) * 1_000_000,) * 2)  # the session waits: it did not go on since
    found = []
    for number, (project, branch, happened) in enumerate(SESSIONS):
        work = [] if number else AGENTS_WORK
        for minutes, event_type, tool, about, *agent in [*happened, *work]:
            fields = {"event_type": event_type, "tool_name": tool, "git_branch": branch, "project_path": project}
            fields["agent_program"] = "claude-code"
            fields["agent_id"] = agent[0] if agent else None
            fields["error" if isinstance(about, str) else "tool_params"] = about
            fields["prompt"] = PROMPTS.get(project) if event_type == "prompt_submit" else None
            fields["reply"] = REPLIES.get(project) if event_type == "stop" else None
            at = now - int(minutes * MINUTE)
            event_id = f"{number}-{at}-{agent}"
            kept = {name: value for name, value in fields.items() if value is not None}
            found.append({"event_id": event_id, "session_id": f"session-{number}", "ts": at, **kept})
    for event in found:
        if event["session_id"] == "session-0":
            event["transcript_path"] = str(transcript)
    return sorted(found, key=lambda event: event["ts"])


def post_statuses_of_hours(daemon) -> int:
    """Post two permissions that wait for hours, a long ended turn, and a late event of the first one.

    Returns the present in Unix milliseconds.
    """
    now = time.time_ns() // 1_000_000
    hour = 60 * MINUTE
    for session, kind, hours in (
        ("second", "permission_asked", 2),
        ("first", "permission_asked", 3),
        ("done", "stop", 5),
    ):
        daemon.post(kind, session, project_path=f"/p/{session}", ts=now - hours * hour)
    daemon.post("tool_call", "first", project_path="/p/first", git_branch="late", ts=now - 10 * hour)
    return now
