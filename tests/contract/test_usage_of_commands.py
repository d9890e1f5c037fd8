"""Every command prints its own usage, and what it needs that is not there."""

import argparse
import subprocess
import sys

import pytest
from support.host import ENVIRONMENT

from tailhook.cli.parser import COMMAND_MODULES, modules_of, parser


def leaves(top, words=()):
    """Yield the words of every command that has no commands below it."""
    groups = [action for action in top._actions if isinstance(action, argparse._SubParsersAction)]
    if not groups:
        yield words
    for group in groups:
        for name, below in group.choices.items():
            yield from leaves(below, (*words, name))


ALL = list(leaves(parser()))
COMMANDS = [words for words in ALL if words != ("hook",)]  # a hook leaves out what it does not know
NEEDED = {
    ("memory", "explain"): ["x"],
    ("explain",): ["x"],
    ("anatomy",): ["x", "-o", "x.svg"],
    ("plates", "dismiss"): ["x"],
    ("run",): [],
}


def test_every_group_of_commands_is_there():
    assert {words[0] for words in COMMANDS} >= {"loop", "ralph", "triage", "memory", "plates", "board", "install"}


@pytest.mark.parametrize("module", COMMAND_MODULES)
def test_a_module_declares_the_commands_by_which_it_is_found(module):
    assert tuple({words[0]: None for words in leaves(parser([module]))}) == COMMAND_MODULES[module]


def test_a_command_needs_its_own_module_only():
    assert list(modules_of(["loop", "status"])) == ["loop"]
    assert list(modules_of(["uninstall"])) == ["install"]
    for words in ([], ["--help"], ["lop"]):
        assert list(modules_of(words)) == list(COMMAND_MODULES)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_unknown_flag_prints_the_commands_own_usage(project, words):
    done = project.tailhook(*words, *NEEDED.get(words, []), "--bogus", stdin="")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"usage: tailhook {' '.join(words)} [-h]")
    assert f"tailhook {' '.join(words)}: error: " in done.stderr
    assert "--bogus" in done.stderr


@pytest.mark.parametrize("words", [(), *ALL], ids=" ".join)
def test_every_command_has_help_with_an_example(project, words):
    done = project.tailhook(*words, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: {' '.join(('tailhook', *words))} [-h]")
    assert f"\nexample:\n  {' '.join(('tailhook', *words[:1]))}" in done.stdout


@pytest.mark.parametrize(
    ("words", "has_failed"),
    [
        ("loop status", True),
        ("memory explain {transcript}", True),
        ("scan {transcript} --table records --project .", True),
        ("scan {transcript} --table records", False),
        ("explain {transcript} --message 1", False),
    ],
)
def test_a_removed_current_folder_is_named_if_the_command_needs_it(tmp_path, words, has_failed):
    transcript = tmp_path / "s.jsonl"
    transcript.write_text('{"type":"user","message":{"role":"user","content":"Hello."}}\n')
    (tmp_path / "gone").mkdir()
    command = f'rmdir ../gone; exec "$0" -m tailhook {words.format(transcript=transcript)}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable],
        env={**ENVIRONMENT, "HOME": str(tmp_path)},
        cwd=tmp_path / "gone",
        capture_output=True,
        text=True,
        check=False,
    )
    message = "tailhook: the current folder was removed: change to another one\n"
    assert (done.returncode, done.stderr) == ((1, message) if has_failed else (0, ""))
