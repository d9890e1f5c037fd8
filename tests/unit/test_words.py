"""The words of the project: what CONTRIBUTING asks for, as far as a search can see it.

The patterns are phrases that made readers stop. They hold for code, tests and documentation. A pattern in lower case is
searched in any case, and in names too: an underscore counts as a space. An exception names a file, and the text in it
that stays; None stands for the whole file.
"""

import ast
import re
from pathlib import Path

import pytest

from tailhook.hook import protocols

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "ext", "tests", "benches", "docs", "examples", "plugin")
ENDINGS = (".py", ".pyi", ".pyx", ".pxi", ".h", ".md", ".js", ".css", ".html")
PLAIN = {  # a phrase: what to write instead
    r"\bfarthest\b": "MAX_..., the last",
    r"\btold\b": "reported, printed, shown, repeated",
    r"\buntold\b": "without a length, unreported",
    r"what is none|that is none": "otherwise None, a malformed ...",
    r"where there is none": "if there is none",
    r"(?<!there )\bis (?-i:none)\b": "is not a ...",
    r"\bnone of ours\b": "is ignored",
    r"\b(is|are) no (object|string|array|list|number|folder|file|path|secret|table|whole|json)\b": "is not a ...",
    r"\bno utf-8\b": "not valid UTF-8",
    r"\bwhoever\b|\bsomebody\b|\bof whom\b": "a process, the caller, a user",
    r"(?<!user )\bnobody\b(?![`\"])": "no other user, no process",  # not the system's user `nobody`
    r"\bdef test (who|where)\b": "the thing that is tested, if_..., without_...",
    r"\blent\b": "borrowed",
    r"\bof git's\b": "below .git",
    r"\bat the most\b": "at most",
    r"\banew\b": "again, from its beginning, overwritten",
    r"\breverse solid(us|i)\b": "backslash",
    r"\b(LONGEST|LARGEST|FARTHEST|FEWEST|MOST)(_[A-Z]+)*\b": "MAX_..., MIN_...",
    r"\b(PATIENCE|SWEEP|OUTLIVED|TAKING_OVER)(_[A-Z]+)*\b": "..._TIMEOUT_S, ..._INTERVAL_S",
}
EXCEPTIONS = {
    ("tests/unit/test_words.py", None),  # the patterns themselves
    ("tests/support/passages.txt", None),
    ("src/tailhook/machines/keywords.py", None),  # words that agents write
    ("tests/support/keywords.py", None),
    ("tests/unit/test_memory_machine.py", "Nobody picked that."),
}
# A name at the top of several modules, and why it is the same thing in all of them.
SHARED = {
    "add": "CommandGroup",
    "decide": "every machine: its decision",
    "Facts": "every machine: what it decides on",
    "ask": "MachineHook",
    "repeat": "MachineHook",
    "main": "the entry points of the command and of the hook",
    "log": "a module's logger",
    "is_live": "idle and ralph: whether a state is a running loop",
    "briefing": "idle and ralph: what an agent in a loop must know",
    "code_spans": "the library's function, which is the core's with its own result type",
    "upgrade": "a migration",
    "downgrade": "a migration",
    "revision": "a migration",
    "down_revision": "a migration",
    **dict.fromkeys(
        (
            name
            for host in (protocols.Host, protocols.TranslatedHost)
            for name in (*vars(host), *host.__annotations__)
            if not name.startswith("_")
        ),
        "a host's module",
    ),
}


def sources():
    """Yield the files whose words count."""
    for path in [*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]:
        name = path.relative_to(ROOT).as_posix()
        generated = "docs/decisions/" in name or name == "CHANGELOG.md" or "/node_modules/" in name
        if path.suffix in ENDINGS and not generated and (name, None) not in EXCEPTIONS:
            yield path


def stays(path, line):
    """Return whether a line has a text that stays."""
    name = path.relative_to(ROOT).as_posix()
    return any(file == name and text is not None and text in line for file, text in EXCEPTIONS)


@pytest.mark.parametrize("phrase", PLAIN)
def test_a_phrase_that_stops_readers_is_not_used(phrase):
    in_names_too = phrase.islower()
    pattern = re.compile(phrase, re.IGNORECASE if in_names_too else 0)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:90]}"
        for path in sources()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line.replace("_", " ") if in_names_too else line) and not stays(path, line)
    ]
    assert not found, f"write instead: {PLAIN[phrase]}\n" + "\n".join(found)


def top_level_names(statements):
    """Yield the names that a module's statements define at its top level, also below `if`, `else` and `try`."""
    for node in statements:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))
        elif isinstance(node, ast.If | ast.Try):
            yield from top_level_names([*node.body, *node.orelse, *getattr(node, "finalbody", ())])


def test_a_top_level_name_means_one_thing_in_the_package():
    """And every exception is needed. What a module imports from another one of the package is not its own."""
    modules: dict[str, list[str]] = {}
    for path in sorted([*(ROOT / "src" / "tailhook").rglob("*.py"), *(ROOT / "src" / "tailhook").rglob("*.pyi")]):
        for name in set(top_level_names(ast.parse(path.read_text(encoding="utf-8")).body)) - {"TYPE_CHECKING"}:
            if not name.startswith("__"):
                modules.setdefault(name, []).append(path.relative_to(ROOT / "src" / "tailhook").as_posix())
    shared = {name: paths for name, paths in modules.items() if len(paths) > 1}
    assert {name: paths for name, paths in shared.items() if name not in SHARED} == {}
    assert set(SHARED) - set(shared) == set(), "these exceptions are not needed"
