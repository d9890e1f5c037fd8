"""The gate machine on real transcripts: each place where the agent speaks is a stop, labelled by a second reader.

The second reader goes forwards with the json module, and takes commands apart with shlex.
"""

import json
import shlex

import pytest
from support.corpora import transcript_paths

from tailhook.hook.event import HookEvent
from tailhook.hook.gate import EDITING_TOOLS, happened
from tailhook.machines.gate import Facts, Rule, decide

MIN_STOPS = 200
RULES = [
    ("*.go", "go test"),
    ("*.ts", "npm run"),
    ("*.md", "git status"),
    ("*", "gofmt"),
    ("*.nix", "nix"),
    ("*", "ls"),
]


def commands_of(line):
    """Yield the words of each simple command; nothing for a line that shlex cannot read or that has a here-document."""
    lexer = shlex.shlex(line.replace("\\\n", "").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = []
    for word in [*lexer, ";"]:
        if word and set(word) <= set("();<>|&"):
            if words:
                yield words
            words = []
        else:
            words.append(word)


def ran(line, wanted):
    """Return whether the second reader finds the command in a line; None if that is unknown."""
    if "<<" in line or "$(" in line or "`" in line or "#" in line:
        return None
    try:
        found = list(commands_of(line))
    except ValueError:
        return None
    for words in found:
        plain = [word for word in words[1:] if not word.startswith("-")]
        if words[0].rpartition("/")[2] == wanted[0] and plain[: len(wanted) - 1] == wanted[1:]:
            return True
        if words[0] in ("bash", "sh", "timeout", "env", "sudo", "xargs", "command", "time") or "=" in words[0]:
            return None
    return False


def label_of(lines, rule):
    """Return whether an edit is unchecked after these lines; None if that is unknown."""
    suffix, wanted = rule[0].removeprefix("*"), rule[1].split()
    found = [block for line in lines for block in blocks(line)]
    failed = {one.get("tool_use_id"): one.get("is_error") is True for one in found if one.get("type") == "tool_result"}
    label = False
    for block in found:
        if block.get("type") != "tool_use" or not isinstance(block.get("input"), dict):
            continue
        file = block["input"].get("file_path") or block["input"].get("notebook_path") or ""
        if block.get("name") in EDITING_TOOLS and failed.get(block["id"]) is False and file.endswith(suffix):
            label = True
        elif block.get("name") == "Bash" and not failed.get(block["id"], False) and label is not False:
            seen = ran(block["input"].get("command") or "", wanted)
            label = None if seen is None else label and not seen
    return label


def blocks(line):
    try:
        message = json.loads(line).get("message")
    except (ValueError, AttributeError):
        return []
    content = message.get("content") if isinstance(message, dict) else None
    return [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []


def test_real_stops_are_decided_as_labelled(tmp_path, monkeypatch, report):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    counts = {True: 0, False: 0}
    cut = tmp_path / "t.jsonl"
    for path in transcript_paths():
        lines = path.read_bytes().splitlines(keepends=True)
        ends = [number for number, line in enumerate(lines, 1) if b'"tool_result"' in line]
        for end in ends[:: max(1, len(ends) // 12)]:
            cut.write_bytes(b"".join(lines[:end]))
            for pattern, command in RULES:
                label = label_of(lines[:end], (pattern, command))
                if label is None:
                    continue
                event = HookEvent({"transcript_path": str(cut)}, "Stop")
                verdict = decide(Facts([Rule([pattern], command)], happened(event)))
                assert (verdict.outcome == "block") is label, (path.name, pattern, command, end)
                counts[label] += 1
    if sum(counts.values()) < MIN_STOPS:
        pytest.skip("too few transcripts are at hand")
    report(
        f"gate: {sum(counts.values())} stops of real transcripts decided as labelled, {counts[True]} of them blocked"
    )
