"""Every command prints its own usage, and names a removed current folder."""

import argparse
import re
import subprocess
import sys

import pytest
from support.host import ENVIRONMENT

from tailhook.cli.parser import COMMAND_MODULES, COMMANDS_BY_WISH, modules_of, parser, run_command


def leaves(top, words=()):
    """Yield the words of every command that has no commands below it."""
    groups = [action for action in top._actions if isinstance(action, argparse._SubParsersAction)]
    if not groups:
        yield words
    for group in groups:
        for name, below in group.choices.items():
            yield from leaves(below, (*words, name))


ALL = list(leaves(parser()))
LEAVES_BUT_HOOK = [words for words in ALL if words != ("hook",)]  # a hook ignores unknown arguments
NEEDED = {
    ("memory", "explain"): ["x"],
    ("explain",): ["x"],
    ("anatomy",): ["x", "-o", "x.svg"],
    ("plates", "dismiss"): ["x"],
    ("run",): [],
}


@pytest.mark.parametrize("module", COMMAND_MODULES)
def test_a_module_declares_the_commands_by_which_it_is_found(module):
    assert tuple({words[0]: None for words in leaves(parser([module]))}) == COMMAND_MODULES[module]


def test_a_command_needs_its_own_module_only():
    assert list(modules_of(["loop", "status"])) == ["loop"]
    assert list(modules_of(["hook-command"])) == ["hook"]
    assert list(modules_of(["--version"])) == []
    for words in ([], ["--help"], ["lop"]):
        assert list(modules_of(words)) == list(COMMAND_MODULES)


@pytest.mark.parametrize("words", LEAVES_BUT_HOOK, ids=" ".join)
def test_an_unknown_flag_is_refused_in_one_line_that_names_the_commands_help(capsys, words):
    with pytest.raises(SystemExit) as refused:
        run_command([*words, *NEEDED.get(words, []), "--bogus"])
    name = " ".join(("tailhook", *words))
    printed = capsys.readouterr()
    assert (refused.value.code, printed.out) == (2, "")
    assert printed.err == f"{name}: error: unrecognized arguments: --bogus. See `{name} --help`.\n"


STATUS = "'loop status', 'ralph status', 'triage status' or 'pool status'"


@pytest.mark.parametrize(
    ("line", "command", "message"),
    [
        ("scna", "tailhook", "there is no command 'scna'. Did you mean 'scan'?"),
        ("xyz", "tailhook", "there is no command 'xyz'."),
        ("help", "tailhook", "there is no command 'help'. Did you mean '--help'?"),
        ("help loop", "tailhook", "there is no command 'help'. Did you mean '--help'?"),
        ("version", "tailhook", "there is no command 'version'. Did you mean '--version'?"),
        ("loop help", "tailhook loop", "there is no command 'help'. Did you mean '--help'?"),
        ("--versoin", "tailhook", "unrecognized arguments: --versoin. Did you mean '--version'?"),
        ("--json", "tailhook", "unrecognized arguments: --json."),
        ("loop statsu --json", "tailhook loop", "there is no command 'statsu'. Did you mean 'status'?"),
        ("loop stat", "tailhook loop", "there is no command 'stat'. Did you mean 'status'?"),
        ("stat", "tailhook", f"there is no command 'stat'. Did you mean {STATUS}?"),
        ("hook-comand", "tailhook", "there is no command 'hook-comand'. Did you mean 'hook-command'?"),
        ("ex", "tailhook", "there is no command 'ex'. Did you mean 'explain'?"),
        ("install -", "tailhook install", "unrecognized arguments: -."),
        ("bench --max", "tailhook bench", "unrecognized arguments: --max. Did you mean '--max-ms'?"),
        ("loop --json", "tailhook loop", "unrecognized arguments: --json."),
        ("scan --patern=a=b", "tailhook scan", "unrecognized arguments: --patern=a=b. Did you mean '--pattern'?"),
        (
            "ralph start --max 3 x",
            "tailhook ralph start",
            "unrecognized arguments: --max. Did you mean '--max-iterations'?",
        ),
        (
            "loop start --max-iterations=3 x",
            "tailhook loop start",
            "unrecognized arguments: --max-iterations=3. Did you mean '--max'?",
        ),
        ("start", "tailhook", "there is no command 'start'. Did you mean 'loop start' or 'ralph start'?"),
        ("adopt", "tailhook", "there is no command 'adopt'. Did you mean 'loop adopt' or 'ralph adopt'?"),
        ("link --qr", "tailhook", "there is no command 'link'. Did you mean 'plates link'?"),
        *((word, "tailhook", f"there is no command '{word}'. Did you mean {STATUS}?") for word in ("status", "stauts")),
        ("scan --table tols", "tailhook scan", "argument --table: invalid choice: 'tols'. Did you mean 'tools'?"),
        (
            "scan --role x",
            "tailhook scan",
            "argument --role: invalid choice: 'x' (choose from 'user', 'assistant', 'human').",
        ),
    ],
)
def test_a_mistyped_word_is_answered_with_the_word_that_was_meant(capsys, line, command, message):
    with pytest.raises(SystemExit) as refused:
        run_command(line.split())
    printed = capsys.readouterr()
    assert (refused.value.code, printed.out) == (2, "")
    assert printed.err == f"{command}: error: {message} See `{command} --help`.\n"


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("install --host codx", "codex"),
        ("install --host qwen-code", "qwen"),
        ("install --with gates", "gate"),
        ("install --without idle,triag", "triage"),
        ("bench --hook true --event stop", "Stop"),
        ("hook-command plate", "plates"),
        ("install --with x", ""),
    ],
)
def test_an_unknown_name_is_answered_with_all_names_and_the_one_that_was_meant(capsys, line, meant):
    try:
        code = run_command(line.split())
    except SystemExit as refused:
        code = refused.code
    printed = capsys.readouterr()
    assert (code, printed.out) == (2, "")
    assert re.search(r"unknown (host|machine|event): .*The \1s are: ", printed.err)
    assert re.findall(r"Did you mean '(.*)'\?", printed.err) == [meant] * bool(meant)


@pytest.mark.parametrize("group", sorted({words[0] for words in ALL if len(words) > 1}))
def test_a_group_without_a_command_prints_its_commands(capsys, group):
    assert run_command([group]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert {(group, name) for name in re.findall(r"^    ([a-z-]+) ", printed.err, re.MULTILINE)} == {
        words for words in ALL if words[0] == group
    }


@pytest.mark.parametrize(
    "line",
    [
        "install --host codex --host gemini",
        "install --scope user --scope project",
        "uninstall --host codex --host gemini",
        "doctor --scope user --scope project",
        "scan --project shop --project notes",
        "usage --project shop --project notes",
        "bench --case idle* --case gate*",
        "bench --machine idle --machine gate",
        "bench --size 10KB --size 100MB",
    ],
)
def test_what_a_command_is_about_is_refused_if_it_is_given_twice_and_not_silently_halved(capsys, line):
    words = line.split()
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(words)
    expected = f"tailhook {words[0]}: error: argument {words[1]}: it is given twice, and only one is possible. "
    assert (ended.value.code, capsys.readouterr().err) == (2, f"{expected}See `tailhook {words[0]} --help`.\n")


def test_a_list_that_is_given_in_two_parts_is_one_list():
    install = parser().parse_args(
        ["install", "--with", "memory", "--with", "gate", "--without", "idle", "--without", "ralph"]
    )
    assert (install.added, install.left_out) == (["memory", "gate"], ["idle", "ralph"])
    bench = parser().parse_args(["bench", "--hook", "true", "--event", "Stop", "--event", "SubagentStop"])
    assert bench.event == ["Stop", "SubagentStop"]


def test_tailhook_alone_lists_every_command_under_what_a_person_wants(capsys):
    assert run_command([]) == 0
    printed = capsys.readouterr().out
    begins = [printed.index(f"\n{wish}:\n") for wish in COMMANDS_BY_WISH]
    assert begins == sorted(begins)
    for wish, begin, end in zip(COMMANDS_BY_WISH, begins, [*begins[1:], len(printed)], strict=True):
        listed = re.findall(r"^  ([a-z-]+)  ", printed[begin:end].partition("\noptions:")[0], re.MULTILINE)
        assert listed == [name for names in COMMANDS_BY_WISH[wish].values() for name in names]
    assert {words[0] for words in ALL} == set(re.findall(r"^  ([a-z][a-z-]+)  ", printed, re.MULTILINE))
    with pytest.raises(SystemExit):
        run_command(["--help"])
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
def test_what_commands_do_is_printed_as_wide_as_the_terminal_and_at_most_100_columns(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run_command([]) == 0
    widths = list(map(len, capsys.readouterr().out.splitlines()))
    assert min(columns, 100) - 15 < max(widths) <= min(columns, 100)
    with pytest.raises(SystemExit):
        run_command(["explain", "--help"])
    about = capsys.readouterr().out.split("\n\n")[1]
    assert max(map(len, about.splitlines())) <= min(columns, 100)


@pytest.mark.parametrize("words", [(), *ALL], ids=" ".join)
def test_every_command_has_help_with_an_example(capsys, words):
    with pytest.raises(SystemExit) as refused:
        run_command([*words, "--help"])
    printed = capsys.readouterr().out
    assert refused.value.code == 0
    assert printed.startswith(f"usage: {' '.join(('tailhook', *words))} [-h]")
    assert f"\nexample:\n  {' '.join(('tailhook', *words[:1]))}" in printed


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
