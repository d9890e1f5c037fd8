"""Each entry of the core, called again and again in a fresh process, on success and on failure, keeps nothing."""

import subprocess
import sys

import pytest
from support.host import HANGS_S, SANITIZER

LOOP = """
import gc, io, sys
from tailhook import PatternSet, code_spans
from tailhook._core import (
    Automaton, JsonFramer, edit_json, folder_fault, forward_lines, last_message, parse_json, reverse_lines,
    reverse_tool_uses, signals, write_json
)
from tailhook.patterns.automaton import compile_table
from tailhook.transcripts.transcript import Transcript

def attempt(function, *arguments):
    try:
        return function(*arguments)
    except (ValueError, KeyError, TypeError):
        return None

lines = b'{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"a \\\\u00e9 `b`"}]}}\\n{"torn\\n' * 20
tools = b"".join(b'{"message":{"content":[{"type":"tool_use","id":"%d","name":"Bash","input":{}}]}}\\n{"message":{"content":[{"type":"tool_result","tool_use_id":"%d"}]}}\\n' % (n, n) for n in range(200))
results = b'{"type":"user","timestamp":"2026-01-02T03:04:05Z","message":{"model":"m","usage":{"input_tokens":1},"content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}}\\n' * 20
text = "> - a `b` <!-- c -->\\n\\n    d\\n[e`]: /f\\n[g][e`] <loop-done>STUCK</loop-done>\\n" * 20
table = compile_table([(0, "a"), (1, "b c")], ignore_case=False, word=True)
patterns = PatternSet(["a", "ab", "<loop"], ignore_case=True, word=True)
CASES = {
    "json": lambda: [attempt(parse_json, data) for data in (b'{"a":[1,"x\\\\u00e9",1e5]}' * 1, b'{"a":', b"[[", b'{"a":"' + bytes([255]))],
    "write": lambda: [attempt(write_json, value) for value in ({"a": [1, "é", None, 2.5]}, {1: 2}, float("nan"), [object()])],
    "edit": lambda: [attempt(edit_json, b'{"a":{"b":[1,2]}}', [(path, b"5")]) for path in (("a", "b", -1), ("c",), ("a", "x", "y"), (5,))],
    "framer": lambda: JsonFramer().feed(b'{"a":"}"}'),
    "lines": lambda: [list(reverse_lines(io.BytesIO(lines))), next(forward_lines(io.BytesIO(lines))), attempt(reverse_lines, -1)],
    "records": lambda: [(r.text, r.tools, r.type, r.json()) for r in Transcript(io.BytesIO(lines)).reversed()],
    "results": lambda: [(r.usage, r.time, r.model, r.is_prompt, [one.text for one in r.tool_results]) for r in Transcript(io.BytesIO(results))],
    "last_message": lambda: last_message(io.BytesIO(lines)),
    "tool_uses": lambda: [list(reverse_tool_uses(io.BytesIO(tools), ("Bash",))), attempt(reverse_tool_uses, -1, ())],
    "code_spans": lambda: [code_spans(text), code_spans(text.encode()), attempt(code_spans, 5)],
    "patterns": lambda: [patterns.findall(text), attempt(patterns.findall, 5), signals(text)],
    "folders": lambda: [folder_fault(path) for path in (b"/tmp", b"/usr/lib", b"/proc/self/cwd", b"/none", b"../..", b"")],
    "compile": lambda: [compile_table([(0, "abc"), (1, "b")], ignore_case=False, word=True), attempt(PatternSet, ["", "a"]), PatternSet(["a pattern of 26 characters"])],
    "automaton": lambda: [Automaton(table, ("a", "b")).hits(b"b  c"), attempt(Automaton, table[:-4], ("a", "b"))],
}
case, rounds = CASES[sys.argv[1]], int(sys.argv[2])

def grown():
    for _ in range(rounds):
        case()
    gc.collect()
    with open("/proc/self/statm") as memory:
        return sys.getallocatedblocks(), int(memory.read().split()[1])

grown()
blocks, pages = grown()
after_blocks, after_pages = grown()
print(after_blocks - blocks, (after_pages - pages) * 4)
"""
NAMES = [
    "json",
    "write",
    "edit",
    "framer",
    "lines",
    "records",
    "results",
    "last_message",
    "tool_uses",
    "code_spans",
    "patterns",
    "folders",
    "compile",
    "automaton",
]


@pytest.mark.skipif(
    sys.platform != "linux" or bool(SANITIZER), reason="memory is read from /proc, without a sanitizer's own"
)
@pytest.mark.parametrize("name", NAMES)
def test_an_entry_keeps_nothing(name):
    rounds = 500
    done = subprocess.run(
        [sys.executable, "-c", LOOP, name, str(rounds)], capture_output=True, text=True, check=True, timeout=HANGS_S
    )
    blocks, kilobytes = map(int, done.stdout.split())
    assert blocks < rounds // 10
    assert kilobytes < 2 * rounds // 3
