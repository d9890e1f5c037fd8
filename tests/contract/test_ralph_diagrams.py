"""Every branch of the six sequence diagrams that the ralph machine was designed by: a row each, a whole process each.

Each row runs twice: as it is, and with a state file that can be neither replaced nor removed.
"""

import json
import os
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import pytest
from support.host import PROMPT, assistant, ralph_page

KEPT = "<promise>TESTS GREEN</promise>"
PAGE = ralph_page()

message = partial(assistant, at=4_000_000_000)  # fresh, whenever the file was written
USER = {"type": "user", "message": {"role": "user", "content": KEPT}}
TORN = json.dumps(message(KEPT, id="torn"))[:-9]


class Branch(NamedTuple):
    """A branch of a diagram: the state at a stop, and its result.

    words: a part of the message.
    file: the state file before, None if it is missing.
    after: the state file afterwards, None if it is removed.
    said: the payload's last message.
    transcript: its records; a str is a line as it is. None if the file is missing.
    fields: more fields of the payload.
    stdin: the input in place of the payload.
    reason: the reason of a block.
    """

    words: str
    file: str | None = PAGE
    after: str | None = None
    said: str | None = None
    transcript: tuple | None = (message("Working."),)
    fields: dict | None = None
    stdin: bytes | None = None
    reason: str = PROMPT

    def arrange(self, project):
        """Write its files into the project; return the state file's path and the hook's input."""
        path = project.ralph()
        path.unlink()
        if self.file is not None:
            path.write_bytes(self.file.encode())
        if self.transcript is not None:
            lines = [record if isinstance(record, str) else json.dumps(record) for record in self.transcript]
            project.transcript.write_text("".join(f"{line}\n" for line in lines))
        payload = project.payload(last_assistant_message=self.said, **(self.fields or {}))
        return path, json.dumps(payload).encode() if self.stdin is None else self.stdin


def ends(words, file=PAGE, **found):
    """Return a branch: the file is removed and the agent may stop."""
    return Branch(words, file, **found)


def goes_on(words, file=PAGE, after=None, **found):
    """Return a branch: the count is increased and the prompt is fed back."""
    return Branch(words, file, after or file.replace("iteration: 1", "iteration: 2", 1), **found)


WHOLE = {
    "there is no state file": Branch("", file=None, said=KEPT),
    "the limit is reached": ends("the limit of 10 iterations is reached", ralph_page(iteration=10), said=KEPT),
    "the limit is not reached": goes_on(
        "iteration 10 of 10", ralph_page(iteration=9), ralph_page(iteration=10), said="Hm."
    ),
    "there is no transcript": ends("its transcript cannot be read", transcript=None),
    "there is a transcript": goes_on("iteration 2 of 10"),
    "no assistant message": ends("has no assistant record", transcript=(USER,)),
    "the assistant message is broken": ends("has no assistant record", transcript=(TORN,)),
    "a promise is set and kept": ends("the promise is kept: TESTS GREEN", transcript=(message("Done.", KEPT),)),
    "a promise is set and not kept": goes_on("iteration 2 of 10", said="<promise>TESTS RED</promise>"),
    "no promise is set": goes_on("iteration 2 of 10", ralph_page(completion_promise=None), said=KEPT),
}
STATE_FILE = {
    "no front matter": ends("has no front matter", f"{PROMPT}\n"),
    "front matter that does not end": ends("has no front matter", "---\niteration: 1\n"),
    "front matter": goes_on("iteration 2 of 10", PAGE.replace("\n", "\r\n")),
    "an iteration": goes_on("iteration 6 of 10", ralph_page(iteration=5), ralph_page(iteration=6)),
    "no iteration": goes_on(
        "iteration 1 of 10",
        ralph_page(iteration=None),
        ralph_page(iteration=None).replace("---", "---\niteration: 1", 1),
    ),
    "a max_iterations": ends("the limit of 1 iteration", ralph_page(max_iterations=1)),
    "no max_iterations": goes_on("iteration 2. ", ralph_page(max_iterations=None)),
    "a completion_promise": ends(
        "is kept: OTHER", ralph_page(completion_promise="OTHER"), said="<promise>OTHER</promise>"
    ),
    "no completion_promise": goes_on("No promise is set", ralph_page(completion_promise=None), said=KEPT),
    "a line of none of them": goes_on("iteration 2 of 10", PAGE.replace("active: true", "# mine\nnotes\na: iteration")),
    "iteration < 0": ends('iteration is "-1", not a whole number (line 3)', ralph_page(iteration=-1)),
    "an iteration that is not a number": ends('iteration is "ten"', ralph_page(iteration="ten")),
    "max_iterations < 0": ends('max_iterations is "-1", not a whole number (line 4)', ralph_page(max_iterations=-1)),
    "iteration >= 0": goes_on("iteration 1 of 10", ralph_page(iteration=0), ralph_page(iteration=1)),
}
TRANSCRIPT = {
    "input that is not JSON": ends("the payload is invalid JSON: expected a member's name", stdin=b'{"a": 1,}'),
    "input that ends early": ends("the payload ends before it is complete", stdin=b'{"session_id": "mine"'),
    "input that is not an object": ends("the payload is not a JSON object", stdin=b"[]"),
    "no input": ends("the payload is empty", stdin=b""),
    "input that is JSON": goes_on("iteration 2 of 10"),
    "a file that is not there": ends("cannot be read: /nowhere", fields={"transcript_path": "/nowhere"}),
    "a folder instead of a file": ends("cannot be read: /tmp", fields={"transcript_path": "/tmp"}),
    "a file that is not named": ends("its transcript is not named", fields={"transcript_path": None}),
    "a file that is there": goes_on("iteration 2 of 10"),
    "an assistant's line": ends("promise is kept", transcript=(message("Hm."), USER, message(KEPT, id="b"))),
    "a line by a person": goes_on("iteration 2 of 10", transcript=(message("Hm."), USER)),
    "a later line by the assistant": goes_on("iteration 2 of 10", transcript=(message(KEPT), message("Hm.", id="b"))),
    "no line at all": ends("has no assistant record", transcript=()),
    "no line by the assistant": ends("has no assistant record", transcript=(USER, {"type": "system"})),
    "only a broken line by the assistant": ends("has no assistant record", transcript=(USER, TORN)),
    "a broken line after a whole one": goes_on("iteration 2 of 10", transcript=(message("Hm."), TORN)),
    "a broken line after a promise": ends("promise is kept", transcript=(message(KEPT), TORN)),
    "several blocks of text": ends("promise is kept", transcript=(message("<promise>TESTS", "GREEN</promise>"),)),
    "several lines of one message": ends("is kept", transcript=(message("<promise>TESTS"), message("GREEN</promise>"))),
    "a blank text": ends("has no assistant text", transcript=(message(" \n"),)),
    "no text": ends("has no assistant text", transcript=(message(),)),
    "a text": goes_on("iteration 2 of 10", transcript=(message("Hm."),)),
}
PROMISE = {
    "set, in a tag, the same": ends("the promise is kept: TESTS GREEN", said=f"Done. {KEPT}"),
    "set, in a tag, the same but for white space": ends("is kept", said="<promise>\n TESTS\t  GREEN </promise>"),
    "set, in a tag, another": goes_on("iteration 2 of 10", said="<promise>TESTS GREEN!</promise>"),
    "set, without a tag": goes_on("iteration 2 of 10", said="TESTS GREEN"),
    "set, in a tag that is not closed": goes_on("iteration 2 of 10", said="<promise>TESTS GREEN"),
    "set, in a tag in code": goes_on("iteration 2 of 10", said=f"`{KEPT}`"),
    "null": goes_on("No promise is set", ralph_page(completion_promise="null"), said="<promise>null</promise>"),
    "blank": goes_on("No promise is set", ralph_page(completion_promise='" "'), said="<promise> </promise>"),
}
LOOKALIKE = "One.\n---\niteration: 1\n---\nTwo."
GOING_ON = {
    "the message with a promise": goes_on("write <promise>TESTS GREEN</promise> outside code - only when it is true"),
    "the message without a promise": goes_on(
        "iteration 2. No promise is set, so no text ends the loop.",
        ralph_page(completion_promise="null", max_iterations=0),
    ),
    "the prompt is all behind the front matter": goes_on("iteration 2", ralph_page(LOOKALIKE), reason=LOOKALIKE),
    "the prompt is empty": ends("the prompt is empty", ralph_page(" \n")),
}
ERRORS = {
    "JSON that cannot be parsed": TRANSCRIPT["input that is not JSON"],
    "a file that is not there": TRANSCRIPT["a file that is not there"],
    "a damaged state file": STATE_FILE["no front matter"],
    "a transcript of another format": ends("has no assistant record", transcript=("Not a transcript.",)),
    "empty content": TRANSCRIPT["no text"],
    "none": TRANSCRIPT["a text"],
}
BRANCHES = {
    f"{diagram}: {name}": branch
    for diagram, branches in (
        ("1 the whole flow", WHOLE),
        ("2 the state file", STATE_FILE),
        ("3 the transcript", TRANSCRIPT),
        ("4 the promise", PROMISE),
        ("5 going on", GOING_ON),
        ("6 errors", ERRORS),
    )
    for name, branch in branches.items()
}


@pytest.mark.parametrize("branch", BRANCHES.values(), ids=BRANCHES)
def test_each_branch_leads_to_the_end_in_its_diagram(project, branch):
    path, stdin = branch.arrange(project)
    stop = project.hook(stdin)
    assert stop.exit_code == 0
    assert (path.read_bytes().decode() if path.exists() else None) == branch.after
    if branch.after:
        message = stop.answer["systemMessage"]
        answer = {"decision": "block", "reason": branch.reason, "systemMessage": message}
        assert stop.stdout == json.dumps(answer, separators=(",", ":")) + "\n"
        assert branch.words in message
        assert stop.stderr == ""
    else:
        assert stop.stdout == ""
        assert branch.words in stop.stderr
        assert stop.stderr.count(f"{path}: the ralph loop ended") == stop.stderr.count("\n") == bool(branch.file)
    log = path.with_name("ralph-debug.log")
    if branch.file is None:
        assert not log.exists()
    else:
        (line,) = log.read_text().splitlines()
        _, _, outcome, why = line.split("\t")
        assert outcome == ("block" if branch.after else "allow")
        assert branch.after or branch.words in why


@contextmanager
def fixed(folder):
    """Make a folder; until the end of the block, no file in it can be removed or replaced."""
    if os.geteuid() != 0:
        folder.chmod(0o500)
    elif os.system(f"chattr +a '{folder}' 2>/dev/null"):
        pytest.skip("this file system has no append-only folders, and root may write in every other")
    try:
        yield
    finally:
        folder.chmod(0o700) if os.geteuid() != 0 else os.system(f"chattr -a '{folder}'")


LOOPS = {name: branch for name, branch in BRANCHES.items() if branch.file is not None}


@pytest.mark.one_form
@pytest.mark.parametrize("branch", LOOPS.values(), ids=LOOPS)
def test_if_the_file_cannot_be_changed_an_end_fails_and_a_block_lets_the_agent_stop(project, branch):
    path, stdin = branch.arrange(project)
    with fixed(path.parent):
        stop = project.hook(stdin)
    assert path.read_bytes().decode() == branch.file
    assert stop.stdout == ""
    assert str(path) in stop.stderr
    assert stop.stderr.count("\n") == 1
    if branch.after:
        assert stop.exit_code == 0
        assert f"{path}: the state could not be saved (" in stop.stderr
    else:
        assert stop.exit_code == 1
        assert branch.words in stop.stderr
        assert "its file cannot be removed" in stop.stderr
