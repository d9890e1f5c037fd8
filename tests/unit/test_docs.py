"""Each command, flag, key, variable, goal, file and link of the pages exists. Samples match the real output."""

import argparse
import ast
import importlib
import inspect
import json
import math
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from fuzz.targets import TARGETS
from markdown_it import MarkdownIt
from markdown_it.token import Token
from support.cases import in_one_test
from support.host import short_folder, tailhook
from support.library_sample import write_sample

from tailhook.cli.parser import parser
from tailhook.fleet.columns import LARGE
from tailhook.fleet.redact import MASKED
from tailhook.fleet.scan import scan
from tailhook.hook.config import KEYS
from tailhook.hook.machines import MACHINES, machines_with
from tailhook.hosts import DEFAULT, NAMES, RECORDED, find_host
from tailhook.install.obstacles import TRUST, Obstacle
from tailhook.patterns.sets import PatternSet, code_spans
from tailhook.pictures.explanation import CODE_WORDS

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
COMMANDS = ROOT / "docs" / "commands.md"
CONFIGURATION = ROOT / "docs" / "configuration.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
SECURITY = ROOT / "SECURITY.md"
PROMISES = ROOT / "docs" / "promises.md"
RECIPES = ROOT / "docs" / "recipes.md"
INSTALLING = ROOT / "docs" / "installing.md"
DECIDES = ROOT / "docs" / "how-a-hook-decides.md"
TROUBLESHOOTING = ROOT / "docs" / "troubleshooting.md"
BENCHMARK = ROOT / "docs" / "benchmark.md"
BOARD = ROOT / "docs" / "board.md"
SCAN = ROOT / "docs" / "scan.md"
USAGE = ROOT / "docs" / "usage.md"
IDLE = ROOT / "docs" / "machines" / "idle.md"
RALPH = ROOT / "docs" / "machines" / "ralph.md"
PLATES = ROOT / "docs" / "machines" / "plates.md"
PAGES = [
    README,
    CONTRIBUTING,
    SECURITY,
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "plugin").rglob("*.md")),
]
CHANGELOG = ROOT / "CHANGELOG.md"
LINKED = [*PAGES, CHANGELOG, ROOT / "benches" / "results" / "README.md"]
HOST_PROPERTY = "src/tailhook/transcripts/transcript.py"  # its docstring lists the hosts
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
OWN_FOLDERS = ("src", "tests", "benches", "contracts", "docs", "ext", "plugin", "examples", ".ci")
# `tailhook run` sets the first for its command, the native client the second for the cold hook; no person does.
INTERNAL_VARIABLES = {"TAILHOOK_RUN_ID", "TAILHOOK_CLIENT"}

by_page = in_one_test("page", PAGES)


# ---- reading a page ----------------------------------------------------------


@cache
def tokens(page: Path) -> list[Token]:
    """Return the tokens of a page, also those inside inline tokens."""
    found = []
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text()):
        found += [token, *(token.children or ())]
    return found


def spans(page: Path) -> list[str]:
    """Return the code spans of a page."""
    return [token.content.replace("\\|", "|") for token in tokens(page) if token.type == "code_inline"]


def fences(page: Path) -> list[tuple[str, str]]:
    """Return the info string and the text of each fenced block of a page."""
    return [(token.info, token.content) for token in tokens(page) if token.type == "fence"]


def rows(page: Path) -> list[list[str]]:
    """Return the rows of all tables of a page, each as the Markdown texts of its cells."""
    found: list[list[str]] = []
    in_cell = False
    for token in tokens(page):
        if token.type == "tr_open":
            found.append([])
        elif token.type in ("td_open", "th_open"):
            in_cell = True
        elif token.type == "inline" and in_cell:
            found[-1].append(token.content)
            in_cell = False
    return found


def slugs(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    found = tokens(page)
    headings = [found[place + 1].content for place, token in enumerate(found) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# ---- commands ----------------------------------------------------------------


def children(command: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the commands of a group by name, {} for a command that has none."""
    groups = [action for action in command._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(groups[0].choices) if groups else {}


@cache
def whole() -> argparse.ArgumentParser:
    """Return the parser of the whole command."""
    return parser()


def resolve(words: list[str]) -> tuple[argparse.ArgumentParser, list[str]]:
    """Return the command that a command line starts with, and the words after its name."""
    command = whole()
    while words and words[0] in children(command):
        command, words = children(command)[words[0]], words[1:]
    return command, words


def flags(*commands: argparse.ArgumentParser) -> set[str]:
    """Return the flags that a page has to list: all but the common --help and --json."""
    found = set()
    for command in commands:
        for action in command._actions:
            if action.help != argparse.SUPPRESS:
                found |= {word for word in action.option_strings if word.startswith("--")}
    return found - {"--help", "--json", "--version"}


def command_lines(page: Path) -> Iterator[str]:
    """Yield the lines of a page's blocks that a person or a program runs, without prompt and redirection."""
    for info, content in fences(page):
        if info in ("console", "sh", "yaml"):
            for line in content.splitlines():
                shown = re.match(r"\s*(?:\$ |- run: |(?=tailhook ))(tailhook .*)", line)
                if shown:
                    yield shown[1]


def leaves(command: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the name of every command below a group."""
    below = children(command)
    if not below:
        yield words
    for name, child in below.items():
        yield from leaves(child, (*words, name))


@by_page
def test_every_command_line_of_a_page_parses(page, capsys):
    for line in command_lines(page):
        words = shlex.split(line, comments=True)[1:]
        redirection = next((place for place, word in enumerate(words) if word[0] in "<>"), len(words))
        try:
            whole().parse_args(words[:redirection])
        except SystemExit:
            pytest.fail(f"{line}\n{capsys.readouterr().err}")


def test_the_pages_have_command_lines_at_all():
    assert sum(1 for page in PAGES for _ in command_lines(page)) > 15


@by_page
def test_every_command_that_a_page_names_exists_and_has_its_flags(page):
    for span in spans(page):
        words = span.split()
        if words[:1] != ["tailhook"] or len(words) < 2 or words[1].startswith("-"):
            continue
        command, rest = resolve(words[1:])
        given = rest[: rest.index("--")] if "--" in rest else rest
        if children(command):
            assert command.prog != "tailhook", span
            assert set(given) <= {"…"}, span
        assert {word for word in given if word.startswith("--")} <= flags(command) | {"--json"}, span


def test_the_page_on_commands_lists_every_command_with_all_its_flags():
    missing = set(leaves(parser()))
    for cells in rows(COMMANDS):
        names = re.findall(r"`([^`]+)`", cells[0])
        if not names or not names[0].startswith("tailhook "):
            continue
        first = [word for word in names[0].split()[1:] if re.fullmatch("[a-z-]*[a-z]", word)]
        commands = [tuple(first), *((*first[:-1], name) for name in names[1:])]
        missing -= set(commands)
        listed = set(FLAG.findall(" ".join(cells)))
        assert listed == flags(*(resolve(list(name))[0] for name in commands)), cells[0]
    assert missing == set()


@pytest.mark.parametrize(
    ("page", "command"),
    [(INSTALLING, "install"), (BENCHMARK, "bench"), (BOARD, "board"), (SCAN, "scan"), (USAGE, "usage")],
)
def test_the_page_of_a_command_lists_all_its_flags(page, command):
    listed = [cells[0] for cells in rows(page) if cells[0].startswith("`--")]
    asked = resolve([command])[0]
    assert {flag for cell in listed for flag in FLAG.findall(cell)} - {"--json"} == flags(asked)
    short = {word for one in asked._actions for word in one.option_strings if not word.startswith("--")} - {"-h"}
    assert short == {word for cell in listed for word in re.findall(r"`(-\w)\b", cell)}


@pytest.mark.parametrize(
    ("page", "command"),
    [(IDLE, "loop start"), (RALPH, "ralph start"), (PLATES, "plates serve")],
)
def test_the_page_of_a_machine_lists_all_flags_of_its_command(page, command):
    usage = [content for info, content in fences(page) if not info and content.startswith(f"tailhook {command}")]
    usage += [" ".join(cells) for cells in rows(page) if cells[0] == f"`tailhook {command}`"]
    (text,) = usage
    assert set(FLAG.findall(text)) == flags(resolve(command.split())[0])


# ---- keys, variables, machines, goals ----------------------------------------


def test_the_page_on_configuration_lists_every_key_that_is_read_and_no_other():
    known = {f"{section}.{key}" for section, keys in KEYS.items() for key in keys}
    listed = {cells[0].strip("`") for cells in rows(CONFIGURATION) if re.fullmatch(r"`[a-z]+\.[a-z_.]+`", cells[0])}
    assert listed == known


def test_the_page_on_configuration_has_the_machines_that_are_asked_by_default():
    (default,) = [cells[1].strip("`") for cells in rows(CONFIGURATION) if cells[0] == "`hook.machines`"]
    assert tuple(json.loads(default)) == tuple(machines_with("default"))


@by_page
def test_every_key_that_a_page_names_is_read(page):
    for span in spans(page):
        named = re.fullmatch(rf"({'|'.join(KEYS)})\.([a-z_.]+)(: .*)?", span)
        if named and named[2] not in ("db", "md", "py"):
            assert named[2] in KEYS[named[1]], span


@by_page
def test_every_variable_that_a_page_names_is_read(page):
    assert set(re.findall(r"TAILHOOK_[A-Z_]+", page.read_text())) <= variables()


@cache
def variables() -> set[str]:
    """Return the variables that the code names."""
    sources = [ROOT / "setup.py", ROOT / "Makefile"]
    for folder in ("src", "tests", "benches"):
        sources += (ROOT / folder).rglob("*.py")
    return {name for path in sources for name in re.findall(r"TAILHOOK_[A-Z_]+", path.read_text())}


def test_the_page_on_configuration_lists_every_variable_that_tailhook_reads():
    read = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"[\"'](TAILHOOK_[A-Z_]+)[\"']", path.read_text())
    }
    listed = {name for cells in rows(CONFIGURATION) for name in re.findall(r"TAILHOOK_[A-Z_]+", cells[0])}
    assert listed == read - INTERNAL_VARIABLES


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_has_a_page_of_its_own_with_its_configuration(name):
    named = {span.partition(":")[0] for span in spans(ROOT / "docs" / "machines" / f"{name}.md")}
    assert {f"{name}.{key}" for key in KEYS.get(name, ())} <= named


@pytest.mark.parametrize("page", [README, DECIDES], ids=lambda page: page.stem)
def test_a_page_lists_every_machine_in_the_order_in_which_they_are_asked(page):
    links = [re.fullmatch(r"\[([a-z]+)\]\((?:docs/)?machines/[a-z]+\.md\)", cells[0]) for cells in rows(page)]
    assert [link[1] for link in links if link] == list(MACHINES)


def test_the_chart_of_a_stop_asks_the_machines_in_their_order():
    (chain,) = [line for line in DECIDES.read_text().splitlines() if line.count("-- allow -->") > 1]
    assert chain.split() == " -- allow --> ".join(name for name in MACHINES if name != "plates").split()


@in_one_test(
    ("page", "hosts"),
    [
        *[(page, NAMES) for page in ("docs/installing.md", "docs/commands.md")],
        *[(page, [DEFAULT, *RECORDED]) for page in ("docs/library.md", "docs/scan-rows.md", HOST_PROPERTY)],
    ],
)
def test_a_page_that_lists_the_hosts_names_each(page, hosts):
    text = (ROOT / page).read_text()
    assert [host for host in hosts if not re.search(rf"\b{host}\b", text)] == []


@in_one_test(
    ("page", "hosts"),
    [
        *[(page, NAMES) for page in ("README.md", "docs/glossary.md", "docs/hosts.md", "docs/installing.md")],
        ("docs/goal.md", [name for name in NAMES if name != "kimi"]),  # no loop works there
        *[(page, [DEFAULT, *RECORDED]) for page in ("docs/library.md", "docs/scan-rows.md")],
    ],
)
def test_a_page_that_lists_the_hosts_names_each_for_people(page, hosts):
    text = (ROOT / page).read_text()
    assert [host for host in hosts if find_host(host).TITLE.removesuffix(" CLI") not in text] == []


def test_each_table_of_hosts_has_all_of_them():
    reported, *_ = rows(ROOT / "docs" / "hosts.md")
    assert set(reported[1:]) == {find_host(name).TITLE for name in NAMES}
    (flag,) = [cells[1] for cells in rows(INSTALLING) if cells[0] == "`--host NAME`"]
    assert re.findall("`([a-z-]+)`", flag) == list(NAMES)


def test_the_page_on_the_board_names_each_host_whose_sessions_can_be_resumed():
    text = " ".join((ROOT / "docs" / "board.md").read_text().split())
    (named,) = re.findall(r"It is known for (.*?)\.", text)
    known = [host.TITLE.removesuffix(" CLI") for host in map(find_host, NAMES) if host.RESUME_COMMAND]
    assert [title for title in known if title not in named] == []


def test_the_idle_machines_page_lists_the_hosts_whose_prompts_bring_instructions():
    text = " ".join((ROOT / "docs" / "machines" / "idle.md").read_text().split())
    (listed,) = re.findall(r"passes a text on as it is \(([^)]+)\)", text)
    passing = [host for host in map(find_host, NAMES) if "prompt_event" in host.HOOKS_FILE]
    assert listed.split(", ") == [host.TITLE.removesuffix(" CLI") for host in passing]


def test_the_page_on_scans_names_each_host_whose_transcripts_are_found():
    found = [host for host in map(find_host, NAMES) if host.TRANSCRIPT_FOLDERS]
    assert [host.NAME for host in found if host.TITLE.removesuffix(" CLI") not in SCAN.read_text()] == []


def test_each_text_of_a_clone_that_an_agent_of_idle_reads_is_listed():
    listed = {name for cells in rows(SECURITY) for name in re.findall("`([^`]+)`", cells[0])}
    assert {f"idle.{key}" for key, kind in MACHINES["idle"]["keys"].items() if kind == "text"} - listed == set()


def test_every_kind_of_code_is_documented():
    (kinds,) = re.findall(r"^The kinds are .*", (ROOT / "docs" / "library.md").read_text(), re.MULTILINE)
    stub = (ROOT / "src/tailhook/_core.pyi").read_text().partition("def code_spans(")[2].partition(">>>")[0]
    for text in (kinds, code_spans.__doc__, stub):
        assert CODE_WORDS.keys() <= set(re.findall(r"\w+", text))
    (idle,) = re.findall(r"^allowed\. Code is: .*", IDLE.read_text(), re.MULTILINE)
    (outside,) = re.findall(r"    outside_code: (.*?\.)$", PatternSet.__doc__ or "", re.MULTILINE | re.DOTALL)
    for text in (idle, outside):
        assert {kind for kind in CODE_WORDS if kind not in text} == set()


def test_the_page_on_scans_lists_every_argument():
    listed = {name for cells in rows(SCAN) for name in re.findall(r"`(\w+)`", " ".join(cells[:2]))}
    assert inspect.signature(scan).parameters.keys() - listed == set()


@in_one_test(("flag", "names"), [("columns", set(LARGE)), ("redact", MASKED)])
def test_each_text_on_large_or_on_masked_columns_names_them_all(flag, names):
    (row,) = [" ".join(cells[1:]) for cells in rows(SCAN) if cells[0].startswith(f"`--{flag}")]
    (argument,) = re.findall(rf"^    {flag}: (.*?)(?=^    \w+: |^$)", scan.__doc__ or "", re.MULTILINE | re.DOTALL)
    (printed,) = [one.help for one in resolve(["scan"])[0]._actions if f"--{flag}" in one.option_strings]
    assert set(re.findall(r"`(\w+)`", row)) == set(re.findall(r"`(\w+)`", argument)) == names
    assert set(re.findall(r"\w+", printed or "")) >= names


def test_the_page_on_troubleshooting_lists_every_check_of_the_doctor():
    source = "".join(path.read_text() for path in (ROOT / "src" / "tailhook" / "doctor").glob("*.py"))
    listed = {cells[-1].strip("`") for cells in doctor_rows()}
    assert listed == {*re.findall(r'Finding\("([a-z]+)"', source), TRUST, Obstacle._field_defaults["check"]}


def test_the_page_on_troubleshooting_quotes_what_the_doctor_prints():
    printed = (ROOT / "ext" / "json" / "grammar.pxi").read_text()
    for path in (ROOT / "src" / "tailhook").rglob("*.py"):
        texts = [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
        printed += "\n".join(text for text in texts if isinstance(text, str))
    for words, *_ in doctor_rows():
        quoted = re.findall("`([^`]+)`", re.split("(?<=`): ", words)[0])
        assert [part for span in quoted for part in span.split("…") if part.strip() not in printed] == []


def doctor_rows() -> list[list[str]]:
    """Return the rows of the table of the doctor's messages: the words that it prints, what to do, the check."""
    found = [cells for cells in rows(TROUBLESHOOTING) if re.fullmatch("`[a-z]+`", cells[-1])]
    assert len(found) > 20
    return found


@in_one_test("page", [*PAGES, CHANGELOG])
def test_every_goal_that_a_page_names_is_in_the_makefile(page):
    """Also in a list: "`make demo`, `test`". What the changelog has of versions before is not checked."""
    goals = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = re.split(r"^## \[\d", page.read_text(), flags=re.MULTILINE)[0]
    lists = re.findall(r"`(make [a-z][^`]*`(?:,\s+`[a-z-]+`)*)", text)
    named = [name for found in lists for name in re.findall(r"(?:^make |, `|,\n +`)([a-z-]+)", found)]
    named += re.findall(r"^(?:\$ )?make ([a-z-]+)", text, re.MULTILINE)
    assert set(named) <= goals


def test_contributing_lists_every_goal_of_the_makefile():
    goals = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    listed = {cells[0].strip("`").removeprefix("make ") for cells in rows(CONTRIBUTING)}
    assert goals - listed == {"help"}


@by_page
def test_every_name_of_tailhook_in_a_program_of_a_page_exists(page):
    for info, content in fences(page):
        if info != "python" or content.startswith(">>>"):
            continue
        known: dict[str, object] = {}
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tailhook"):
                exec(ast.unparse(node), known)
            elif isinstance(node, ast.Import) and any(one.name == "tailhook" for one in node.names):
                known["tailhook"] = importlib.import_module("tailhook")
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
                assert hasattr(known[node.value.id], node.attr), ast.unparse(node)


def test_no_message_names_a_page_because_an_installed_package_has_none():
    for path in (ROOT / "src").rglob("*.py"):
        tree = ast.parse(path.read_text())
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                assert not re.search(r"docs/\S+\.md", node.value), f"{path}: {node.value}"


def test_every_function_and_setting_that_a_contributor_reads_of_is_in_the_code():
    endings = (".py", ".pyi", ".pyx", ".pxi", ".h", ".c")
    files = [path for folder in ("src", "ext", "tests", "benches") for path in (ROOT / folder).rglob("*")]
    words = {word for path in files if path.suffix in endings for word in re.findall(r"\w+", path.read_text())}
    for span in [*spans(CONTRIBUTING), *spans(RECIPES), *spans(PROMISES)]:
        if re.fullmatch(r"[\w.]*[a-z]_[a-z]\w*(\(.*\))?", span) and span != "callgrind_annotate":  # of valgrind
            name = span.partition("(")[0].rpartition(".")[2]
            assert name in words, span


def test_the_page_on_promises_has_the_number_of_fuzz_targets():
    assert re.findall(r"(\d+) fuzz targets", PROMISES.read_text()) == [str(len(TARGETS))]


def test_the_benchmark_of_the_library_that_a_page_shows_measures_it(tmp_path):
    (program,) = [content for info, content in fences(BENCHMARK) if info == "python"]
    known: dict[str, object] = {}
    exec(program, known)
    known["time"] = SimpleNamespace(perf_counter=time.thread_time)  # a busy computer does not change it

    def benchmark(run):
        began = time.thread_time()
        found = run()
        benchmark.stats.stats.median = time.thread_time() - began
        return found

    benchmark.stats = SimpleNamespace(stats=SimpleNamespace(median=math.inf))
    (test,) = [value for name, value in known.items() if name.startswith("test_")]
    test(benchmark, tmp_path)
    assert benchmark.stats.stats.median < math.inf


# ---- files, tests, links -----------------------------------------------------


@by_page
def test_every_file_that_a_page_names_exists(page):
    for span in spans(page):
        path = span.split()[0] if span.split() else ""
        if path.split("/")[0] in OWN_FOLDERS and "/" in path and "*" not in path:
            assert list(ROOT.glob(path.replace("NAME", "*"))), span  # NAME: of what a recipe adds


@by_page
def test_a_page_for_users_names_no_file_of_the_code(page):
    if page not in (CONTRIBUTING, RECIPES) and page.parent.name != "decisions":
        assert re.findall(r"(?:\]\(|`)(?:\.\./)*(?:src/tailhook|ext)/[^)`]*", page.read_text()) == []


def test_every_plot_of_the_benchmarks_is_on_a_page():
    plots = sorted((ROOT / "benches" / "results").glob("*.svg"))
    shown = "".join(page.read_text() for page in LINKED)
    assert [plot.name for plot in plots if f"benches/results/{plot.name}" not in shown] == []
    drawn = (ROOT / "benches" / "report.py").read_text().partition("PLOTTED = ")[2].partition("\n")[0]
    assert [plot.stem for plot in plots] == sorted(ast.literal_eval(drawn))


@by_page
def test_every_test_that_a_page_names_exists(page):
    sources = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    files = {path.name for folder in ("tests", "benches") for path in (ROOT / folder).rglob("test_*.py")}
    for span in spans(page):
        if re.fullmatch(r"test_\w+\.py", span):
            assert span in files
        elif re.fullmatch(r"test_\w+", span):
            assert f"def {span}(" in sources, span


@in_one_test("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page):
    targets = [token.attrGet("href") or token.attrGet("src") for token in tokens(page)]
    html = "".join(token.content for token in tokens(page) if token.type in ("html_block", "html_inline"))
    targets += re.findall(r'\b(?:href|src|srcset)="([^"]+)"', html)
    for target in filter(None, targets):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor:
            assert anchor in slugs(file), target


def test_every_section_of_a_page_that_the_code_names_exists():
    paths = [path for folder in ("src", "ext") for path in (ROOT / folder).rglob("*")]
    texts = [path.read_text() for path in paths if path.suffix in (".py", ".pyi", ".pyx", ".pxi", ".h", ".c")]
    named = [pair for text in texts for pair in re.findall(r'(docs/[a-z/-]+\.md), "([^"]+)"', text)]
    assert named
    assert [(page, title) for page, title in named if title.lower().replace(" ", "-") not in slugs(ROOT / page)] == []


def test_every_page_can_be_reached_from_the_readme():
    reached, waiting = set(), [README]
    while waiting:
        page = waiting.pop()
        if page.is_dir():
            waiting += page.glob("*.md")
        if page in reached or page.suffix != ".md" or not page.is_file():
            continue
        reached.add(page)
        targets = [token.attrGet("href") for token in tokens(page)]
        waiting += [(page.parent / target.split("#")[0]).resolve() for target in targets if target]
    assert set((ROOT / "docs").rglob("*.md")) - reached == set()


def test_the_tree_names_every_folder():
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("git does not know the files")
    listed = {name for cells in rows(CONTRIBUTING) for name in re.findall(r"`([\w./-]+/)`", cells[0])}
    paths = [path.split("/") for path in done.stdout.split()]
    folders = {f"{parts[0]}/" for parts in paths if len(parts) > 1} - {"src/"}
    folders |= {f"src/tailhook/{parts[2]}/" for parts in paths if parts[:2] == ["src", "tailhook"] and len(parts) > 3}
    assert folders - listed == set()


def test_the_readme_stays_short_and_goes_from_the_installation_to_the_pages():
    headings = re.findall(r"^## (.*)$", README.read_text(), re.MULTILINE)
    assert headings == [
        "Install",
        "The first loop",
        "The board",
        "The first look at transcripts",
        "How fast",
        "Where to go",
        "License",
    ]
    assert len(README.read_bytes()) <= 10_000


# ---- samples -----------------------------------------------------------------


@pytest.mark.parametrize("page", [README, SCAN, USAGE], ids=lambda page: page.stem)
def test_the_samples_of_scans_are_what_is_printed(tmp_path, page):
    folder = tmp_path / ".claude" / "projects"
    folder.mkdir(parents=True)
    write_sample(folder)
    shutil.copy(ROOT / "examples" / "prices.json", tmp_path)
    starts = ("$ tailhook scan ", "$ tailhook usage")
    samples = [content for info, content in fences(page) if info == "console" and content.startswith(starts)]
    assert len(samples) > 2
    for sample in samples:
        line, *shown = sample.splitlines()
        done = tailhook(*shlex.split(line)[2:], env={"HOME": str(tmp_path), "TZ": "UTC"}, cwd=tmp_path)
        assert (done.stdout.splitlines(), done.stderr) == (shown, ""), line


def test_the_sample_of_a_loop_that_is_started_is_what_is_printed(tmp_path):
    (sample,) = [content for info, content in fences(README) if content.startswith("$ tailhook loop start")]
    line, *shown = sample.splitlines()
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    tailhook("install", "--yes", "--cold", "--block-cap", "0", env={"HOME": str(tmp_path)}, cwd=folder)
    done = tailhook(*shlex.split(line)[2:], env={"HOME": str(tmp_path), "CLAUDE_CODE_SESSION_ID": "s"}, cwd=folder)
    printed = (done.stdout + done.stderr).replace(str(folder), "/home/me/project")
    assert printed.splitlines() == shown


def test_the_sample_of_an_inner_loops_end_is_what_is_announced(run_idle):
    (sample,) = [content for info, content in fences(IDLE) if content.startswith("tailhook: inner loop")]
    frame = {"mode": "grind", "iter": 2, "max": 100, "filter": "label:bug", "session_id": "s"}
    inner = {"mode": "issue", "iter": 1, "max": 10, "session_id": "s"}
    stack = [{"id": "outer", **frame}, {"id": "inner", **inner}]
    said = "<issue-complete>DONE</issue-complete>"
    state = {"schema": 1, "event": "STATE", "run_id": "outer", "updated_at": "2099-01-01T00:00:00Z", "stack": stack}
    stop = run_idle(said, "--announce", state=state, session_id="s")
    assert stop.answer["systemMessage"].split() == sample.split()


@pytest.fixture
def home() -> Iterator[Path]:
    """Yield an empty home in which the native client works."""
    with short_folder() as folder:
        yield Path(folder)


def test_the_sample_of_what_install_writes_is_what_it_prints(home):
    (sample,) = [json.loads(content) for info, content in fences(INSTALLING) if '"args"' in content]
    done = tailhook("install", "--print", "--block-cap", "0", env={"HOME": str(home)}, cwd=home)
    printed = json.loads(done.stdout)
    (shown,), (written,) = sample["hooks"]["Stop"][0]["hooks"], printed["hooks"]["Stop"][0]["hooks"]
    assert written["command"].endswith(shown["command"].split("…")[1])
    assert written["args"] == shown["args"]
    assert {**written, "args": 0, "command": 0} == {**shown, "args": 0, "command": 0}
    assert sample["hooks"]["SessionStart"][0]["matcher"] == printed["hooks"]["SessionStart"][0]["matcher"]
    assert list(sample["hooks"]) == list(printed["hooks"])
    assert sample["env"] == printed["env"]


@pytest.mark.parametrize("host", ["codex", "copilot"])
def test_the_sample_of_another_hosts_file_is_what_install_prints(home, host):
    (sample,) = [
        json.loads(content) for info, content in fences(INSTALLING) if f"--host {host} " in content and info == "json"
    ]
    printed = json.loads(tailhook("install", "--print", "--host", host, env={"HOME": str(home)}, cwd=home).stdout)

    def without_paths(entry: object) -> str:
        return re.sub(r'"/[^"]*/tailhook-hook', '"', json.dumps(entry, ensure_ascii=False))

    stop = next(iter(printed["hooks"]))
    assert without_paths(sample["hooks"][stop]) == without_paths(printed["hooks"][stop])
    assert list(sample) == list(printed)
    assert list(sample["hooks"]) == list(printed["hooks"])


def test_the_notice_of_a_built_package_names_whose_code_is_in_it():
    notice = (ROOT / "licenses" / "NOTICE.md").read_text()
    found = {
        line.strip("# ").removesuffix(",")
        for path in (ROOT / "src").rglob("*.py")
        for line in path.read_text().splitlines()
        if line.startswith("# Copyright")
    }
    assert found
    assert [line for line in found if line not in notice] == []
