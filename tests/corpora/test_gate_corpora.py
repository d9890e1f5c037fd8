"""The gate machine on real transcripts: each place where the agent speaks is a stop, labelled by a second reader.

The second reader is written from docs/machines/gate.md and uses nothing of the product. It goes forwards with the json
module. It takes simple commands apart with shlex; commands with substitutions, here-documents and the like have no
label: tests/unit/test_commands.py has such commands of real agents, labelled by hand.
"""

import json
import re
import shlex

import pytest
from support.corpora import transcript_paths

from tailhook.hook.event import HookEvent
from tailhook.hook.gate import happened
from tailhook.machines.gate import Facts, decide
from tailhook.machines.rules import Rule

MIN_STOPS = 200
EDITING = {"Edit", "MultiEdit", "Write", "NotebookEdit"}
RULES = [
    ("*.go", "go test"),
    ("*.ts", "npm run"),
    ("*.md", "git status"),
    ("*", "gofmt"),
    ("*.nix", "nix"),
    ("*", "ls"),
]
HARD = re.compile(
    r"<<|\$\(|`|#|[<>]\(|\$\{?\w|\bcase\b|\bfunction\b|\(\)|\[\[|\b(env|bash|sh|eval|xargs|find|sudo|timeout)\b"
    r"|\b(if|while|until|for|set|exit|true|false|return|break|exec|trap)\b|[(){}!]"
)
OPERATORS = re.compile(r"[();<>|&]+")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def simple_commands(line):
    """Return the words of each simple command of a line that HARD does not match, and the operator behind it.

    Raises ValueError.
    """
    lexer = shlex.shlex(line.replace("\\\n", "").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    found, words, is_target = [], [], False
    for word in [*lexer, ";"]:
        if OPERATORS.fullmatch(word):
            is_target = set(word) & set("<>")
            if is_target and words and words[-1].isdigit():
                words.pop()  # the number of a file
            if not is_target and words:
                found.append((words, word))
                words = []
        elif is_target:
            is_target = False
        else:
            words.append(word)
    return found


def counts_by_the_page(line, wanted):
    """Return whether a line is a successful run of the wanted words by the rules of the page; None if unknown."""
    if HARD.search(line):
        return None
    try:
        found = simple_commands(line)
    except ValueError:
        return None
    operators = [operator for _, operator in found]
    operators[-1:] = [""] if operators and operators[-1] == ";" else operators[-1:]
    runs = []
    for at, (given, _) in enumerate(found):
        words = given
        while words and ASSIGNMENT.match(words[0]):
            words = words[1:]
        if words and words[0].rpartition("/")[2] == wanted[0] and follows(words[1:], wanted[1:], may_skip=False):
            runs.append(at)
        elif any(wanted[0] in word for word in words[1:]):
            return None  # in front of it may be a program that runs it
    return bool(runs) and all(is_the_lines_exit(operators, at) for at in runs)


def is_the_lines_exit(operators, at):
    """Return whether the line fails if the command at an index fails, and cannot succeed without it."""
    first = at
    while first and operators[first - 1] in ("|", "|&"):
        first -= 1
    if first and operators[first - 1] == "||":
        return False
    behind = operators[at:]
    return behind[0] not in ("|", "|&") and not {*behind} - {"&&", "|", "|&", ""}


def follows(words, wanted, may_skip):
    """Return whether the wanted words come, with options between them, each with at most one value."""
    if not wanted:
        return True
    if not words:
        return False
    first, rest = words[0], words[1:]
    return (
        (first == wanted[0] and follows(rest, wanted[1:], may_skip=False))
        or (first.startswith("-") and follows(rest, wanted, may_skip="=" not in first and first != "--"))
        or (first.startswith("+") and follows(rest, wanted, may_skip=False))
        or (may_skip and follows(rest, wanted, may_skip=False))
    )


def blocks(line):
    try:
        message = json.loads(line).get("message")
    except (ValueError, AttributeError):
        return []
    content = message.get("content") if isinstance(message, dict) else None
    return [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []


def label_of(found, rule, ended_badly):
    """Return whether an edit is unchecked after these blocks; None if that is unknown."""
    suffix, wanted = rule[0].removeprefix("*"), rule[1].split()
    failed = {one.get("tool_use_id"): one.get("is_error") is True for one in found if one.get("type") == "tool_result"}
    label = False
    for block in found:
        if block.get("type") != "tool_use" or not isinstance(block.get("input"), dict):
            continue
        file = block["input"].get("file_path") or block["input"].get("notebook_path") or ""
        if block.get("name") in EDITING and failed.get(block["id"]) is False and file and file.endswith(suffix):
            label = True
        elif block.get("name") == "Bash" and not failed.get(block["id"], False) and label is not False:
            seen = (
                None if block["id"] in ended_badly else counts_by_the_page(block["input"].get("command") or "", wanted)
            )
            label = None if seen is None else label and not seen
    return label


def test_real_stops_are_decided_as_labelled(tmp_path, monkeypatch, report):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    counts = {True: 0, False: 0}
    cut = tmp_path / "t.jsonl"
    for path in transcript_paths():
        lines = path.read_bytes().splitlines(keepends=True)
        ended_badly = set(re.findall(r"<tool-use-id>(\w+)</tool-use-id>", b"".join(lines).decode(errors="replace")))
        ends = [number for number, line in enumerate(lines, 1) if b'"tool_result"' in line]
        for end in ends[:: max(1, len(ends) // 12)]:
            cut.write_bytes(b"".join(lines[:end]))
            found = [block for line in lines[:end] for block in blocks(line)]
            for pattern, command in RULES:
                label = label_of(found, (pattern, command), ended_badly)
                if label is None:
                    continue
                event = HookEvent({"transcript_path": str(cut)}, "Stop")
                rules = [Rule([pattern], command)]
                verdict = decide(Facts(rules, happened(event, rules)))
                assert (verdict.outcome == "block") is label, (path.name, pattern, command, end)
                counts[label] += 1
    if sum(counts.values()) < MIN_STOPS:
        pytest.skip("too few transcripts are at hand")
    report(
        f"gate: {sum(counts.values())} stops of real transcripts decided as labelled, {counts[True]} of them blocked"
    )
