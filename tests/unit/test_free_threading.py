"""On an interpreter without a global lock, threads use the core at once. (PEP 703)"""

import json
import sys
import sysconfig
from threading import Thread

import pytest

import tailhook
from tailhook._core import parse_json

pytestmark = pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this interpreter has a global lock"
)
THREADS = 8
PATTERNS = tailhook.PatternSet({"done": "Done", "fixed": "fixed"})


@pytest.fixture
def path(tmp_path):
    """Return a transcript of 3,000 messages."""
    file = tmp_path / "s.jsonl"
    lines = []
    for number in range(3000):
        said = {"id": f"m{number}", "role": "assistant", "content": f"Done `x` and fixed {number}"}
        lines.append(json.dumps({"type": "assistant", "uuid": str(number), "sessionId": "s", "message": said}))
    file.write_text("\n".join(lines) + "\n")
    return file


def run_at_once(work):
    """Run a function in many threads at once; return the results."""
    results = []
    threads = [Thread(target=lambda: results.append(work())) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_the_core_leaves_the_lock_off():
    assert not sys._is_gil_enabled()


def test_threads_get_what_one_thread_gets(path):
    def work():
        with tailhook.open(path) as transcript:
            records = [record.uuid for record in transcript.reversed()]
            found = sum(1 for _ in transcript.findall(PATTERNS))
        matches = [PATTERNS.findall(f"Done `Done` fixed {number}") for number in range(500)]
        spans = [tailhook.code_spans("Run `make`.\n\n```\nx\n```\n") for _ in range(500)]
        values = [parse_json(b'{"a": [1, 2, {"b": null}]}') for _ in range(500)]
        rows = sum(len(batch) for batch in tailhook.scan(path, "records", workers=2))
        return records, found, matches, spans, values, rows

    expected = work()
    assert run_at_once(work) == [expected] * THREADS
