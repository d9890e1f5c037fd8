"""The tokens of a session while its transcripts grow are those of a scan of the same files."""

import tempfile
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from support.long_runs import examples
from support.transcript_trees import host_files, mixed_files, random_cuts

import tailhook
from tailhook.fleet.columns import TOKEN_COLUMNS
from tailhook.plates.session_tokens import SessionTokens


def scanned(path):
    """Return the tokens of each session in a file and in those of its sub-agents; None for unknown ones."""
    agents = sorted(path.with_suffix("").glob("subagents/**/agent-*.jsonl"))
    found = {}
    for row in tailhook.scan([path, *agents], "usage").rows():
        tokens = [getattr(row, name) for name in TOKEN_COLUMNS]
        sums = found.setdefault(row.session_id, [0, 0, 0, 0])
        if sums is None or None in tokens[:2]:
            found[row.session_id] = None
        else:
            found[row.session_id] = [one + (more or 0) for one, more in zip(sums, tokens, strict=True)]
    return found


def read_to_end(session, random):
    """Read a session's transcripts in pieces of any size; return its tokens."""
    session.is_whole = False
    while not session.is_whole:
        session.read(random.choice((1, 300, 5000, 1 << 20)))
    return session.total and [session.total[name] for name in TOKEN_COLUMNS]


@settings(max_examples=examples(300))
@given(st.integers(0, 1 << 32), st.sampled_from([host_files, mixed_files]))
def test_the_tokens_of_a_growing_session_are_those_of_a_scan(seed, make_files):
    random = Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        files = [(Path(folder, name), data) for name, data in make_files(random)]
        sessions = {}
        for path, data in files:
            path.parent.mkdir(parents=True, exist_ok=True)
            for start, end in random_cuts(random, len(data))[:4]:
                with path.open("ab") as file:
                    file.write(data[start:end])
                if path.name.startswith("agent-"):
                    continue  # no session's own transcript is a sub-agent's
                expected = scanned(path)
                for name in expected:
                    sessions.setdefault((name, path), SessionTokens(name, str(path)))
                for (name, of), session in sessions.items():
                    if of == path:
                        assert read_to_end(session, random) == expected.get(name)
        for (name, path), session in sessions.items():
            assert read_to_end(session, random) == scanned(path).get(name)
