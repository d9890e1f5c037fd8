"""The words of the project: what CONTRIBUTING asks for, as far as a search can see it.

The patterns are phrases that made readers stop. They hold for code, tests, documentation and the files around them. A
pattern in lower case is searched in any case, and in names too: an underscore counts as a space.
"""

import argparse
import ast
import re
from functools import cache
from pathlib import Path

import pytest
from support.cases import in_one_test

from tailhook.cli.output import CommandGroup
from tailhook.cli.parser import parser
from tailhook.hook.protocols import BriefingHook, DecidingMachine, LoopBriefing, MachineHook
from tailhook.hosts.protocols import Host, RecordedHost, TranslatedHost

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "ext", "tests", "benches", "contracts", "docs", "examples", "plugin", ".ci", ".github")
ENDINGS = (".py", ".pyi", ".pyx", ".pxi", ".h", ".c", ".md", ".js", ".css", ".html", ".yml", "")
SINGLE_FILES = (
    "Makefile",
    "pyproject.toml",
    "contracts/uses.toml",
    "setup.py",
    "docs/images/stop.svg",
    "plugin/.claude-plugin/plugin.json",
    "plugin/hooks/hooks.json",
    ".claude-plugin/marketplace.json",
)
# Folders of downloads, caches, and test inputs made by programs. No person writes or reads sentences in them.
NOT_TEXT = (
    "pool/tailhook-hook",
    "/node_modules/",
    ".egg-info/",
    "/__pycache__/",
    "tests/fuzz/corpus/",
    "tests/unit/__snapshots__/",
)

# A word before which "where" means "if". The word after it may also be a noun with the verb after that.
WHERE_IF = (
    r"\bwhere (?:nothing|something|none?|there (?:is|are|was|were)"
    r"|(?:it|they) (?:has|have|does|do|is not|are not|is missing|can|cannot|names?)"
    r"|(?:the|its|a|an|this|these|those)(?: [\w-]+){1,2}"
    r" (?:has|have|had|does not|do not|is missing|is not|can be|cannot))\b"
)
# A genitive without its noun: "a file of git's", "a folder of the user's own". "The user's own file" is fine.
GENITIVE = r"\bof (?:(?:the|an?|one|another) )?\w+'s(?: own)?\s*(?:$|[.,;:)\"|])"
PLAIN = {  # a phrase: what to write instead
    r"\bfarthest\b": "MAX_..., the last",
    r"\btold\b": "reported, printed, shown, repeated",
    r"\buntold\b": "without a length, unreported",
    r"(?<!\.)\btells?\b": "returns, prints, reports, distinguishes",  # but not `file.tell()`
    r"\bsay(s|ing)?\b": "returns, prints, reports, documents, contains",
    r"what is none|that is none": "otherwise None, a malformed ...",
    r"(?<!there )\bis (?-i:none)\b": "is not a ...",
    r"\bnone of ours\b": "is ignored",
    r"(?<!there )\b(is|are|was|were) no (?!longer\b|more\b)\w": "is not a ...",
    r"\b(has|have|had) not (this|that|these|those|the|its|their|an?|such|any|all|one|no)\b": "is missing, is unknown",
    r"\bno utf-8\b": "not valid UTF-8",
    r"(?<!person )(?<!people )(?<!user )(?<!users )\b(who|whom|whoever|somebody|someone)\b": "a process, the caller",
    r"(?<!user )\bnobody\b(?![`\"])": "no other user, no process",  # not the system's user `nobody`
    WHERE_IF: "if, when, otherwise, unless",
    r"\bdef test where\b": "if_..., without_...",
    r"\blent\b": "borrowed",
    r"\bof git's\b": "below .git",
    r"\bas the tokenizer sees\b": "which parts of a message are code",  # a tokenizer is a part of a model
    GENITIVE: "the user's file, a file that the host wrote",
    r"\bof (the )?(?!its )\w+s own (is|and|in|to|with)\b": "the user's file, a file that the host wrote",  # in names
    r"\bat the most\b": "at most",
    r"\banew\b": "again, from its beginning, overwritten",
    r"\breverse solid(us|i)\b": "backslash",
    r"\b(LONGEST|LARGEST|FARTHEST|FEWEST|MOST)(_[A-Z]+)*\b": "MAX_..., MIN_...",
    r"\b(PATIENCE|SWEEP|OUTLIVED|TAKING_OVER)(_[A-Z]+)*\b": "..._TIMEOUT_S, ..._INTERVAL_S",
}
AGENTS = "words that an agent, a person or a model writes, not words about the code"
INSTRUCTION = "an instruction to the agent: it speaks to the person"
TELL = "tell the user to run `pipx install .`"
PATTERNS = "src/tailhook/patterns/sets.py"
# A file, and the text in it that stays (None for the whole file): why.
EXCEPTIONS: dict[tuple[str, str | None], str] = {
    ("tests/unit/test_words.py", None): "the patterns themselves",
    ("tests/support/passages.txt", None): AGENTS,
    ("src/tailhook/machines/keywords.py", None): AGENTS,
    ("tests/support/keywords.py", None): AGENTS,
    ("tests/unit/test_memory_machine.py", "Nobody picked that."): AGENTS,
    ("src/tailhook/machines/secret_rules.py", "to permit persons to whom the Software is"): "a licence",
    **{(page, "Say `<loop-done>COMPLETE</loop-done>`"): AGENTS for page in ("README.md", "docs/library.md", PATTERNS)},
    (PATTERNS, "Say `hi`"): AGENTS,
    **{(f"plugin/commands/{name}.md", TELL): INSTRUCTION for name in ("loop", "memory", "ralph", "triage")},
    ("tests/contract/test_plugin.py", TELL): INSTRUCTION,
    ("tests/contract/test_idle_process.py", "I will say {DONE} later."): AGENTS,
    ("tests/contract/test_ralph_complaints.py", 'say "done"'): AGENTS,
    ("tests/endtoend/model.py", "There is nothing more to say."): AGENTS,
    ("tests/endtoend/test_claude_status.py", "There is nothing more to say."): AGENTS,
    ("tests/unit/test_patterns.py", "Say {DONE}"): AGENTS,
    ("src/tailhook/transcripts/urls.py", "def tell(self)"): "a method of Python's files, which callers of a file need",
}
# A name at the top of several modules, and why it is the same thing in all of them.
SHARED = {
    "main": "the entry points of the command and of the hook",
    "log": "a module's logger",
    "code_spans": "the library's function, which is the core's with its own result type",
    "upgrade": "a migration",
    "downgrade": "a migration",
    "revision": "a migration",
    "down_revision": "a migration",
}
# The interfaces that several modules of a folder implement on purpose.
INTERFACES = {
    CommandGroup: "cli",
    MachineHook: "hook",
    BriefingHook: "hook",
    Host: "hosts",
    TranslatedHost: "hosts",
    RecordedHost: "hosts",
    DecidingMachine: "machines",
    LoopBriefing: "machines",
}


@cache
def sources():
    """Return the files whose words count, each with its lines."""
    return [(path, path.read_text(encoding="utf-8").splitlines()) for path in source_files()]


def source_files():
    """Yield the files whose words count."""
    found = {path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in ENDINGS}
    for path in sorted({*found, *ROOT.glob("*.md"), *(ROOT / name for name in SINGLE_FILES)}):
        name = path.relative_to(ROOT).as_posix()
        if path.is_file() and not any(part in f"{name}/" for part in NOT_TEXT) and (name, None) not in EXCEPTIONS:
            yield path


def stays(path, line):
    """Return whether a line has a text that stays."""
    name = path.relative_to(ROOT).as_posix()
    return any(file == name and text is not None and text in line for file, text in EXCEPTIONS)


def test_every_exception_is_needed():
    patterns = [re.compile(phrase, re.IGNORECASE if phrase.islower() else 0) for phrase in PLAIN]
    for name, text in EXCEPTIONS:
        assert (ROOT / name).exists(), name
        if text is not None:
            lines = [line for line in (ROOT / name).read_text(encoding="utf-8").splitlines() if text in line]
            assert any(pattern.search(line) for line in lines for pattern in patterns), (name, text)


@pytest.mark.parametrize("phrase", PLAIN)
def test_a_phrase_that_stops_readers_is_not_used(phrase):
    in_names_too = phrase.islower()
    pattern = re.compile(phrase, re.IGNORECASE if in_names_too else 0)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:90]}"
        for path, lines in sources()
        for number, line in enumerate(lines, 1)
        if pattern.search(line.replace("_", " ") if in_names_too else line) and not stays(path, line)
    ]
    assert not found, f"write instead: {PLAIN[phrase]} (EXCEPTIONS: texts that stay)\n" + "\n".join(found)


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


def members_of(protocol):
    """Return the names that a protocol has, without those of the protocols that it extends."""
    return {name for name in (*vars(protocol), *protocol.__annotations__) if not name.startswith("_")}


def is_implementation(name, path):
    """Return whether a module implements an interface with this name."""
    folder = path.rpartition("/")[0]
    return any(folder == place and name in members_of(protocol) for protocol, place in INTERFACES.items())


def test_a_top_level_name_means_one_thing_in_the_package():
    """And every exception is needed. What a module imports from another one of the package is not its own."""
    modules: dict[str, list[str]] = {}
    for path in sorted([*(ROOT / "src" / "tailhook").rglob("*.py"), *(ROOT / "src" / "tailhook").rglob("*.pyi")]):
        for name in set(top_level_names(ast.parse(path.read_text(encoding="utf-8")).body)) - {"TYPE_CHECKING"}:
            if not name.startswith("__"):
                modules.setdefault(name, []).append(path.relative_to(ROOT / "src" / "tailhook").as_posix())
    shared = {
        name: paths
        for name, paths in modules.items()
        if len(paths) > 1 and not all(is_implementation(name, path) for path in paths)
    }
    assert {name: paths for name, paths in shared.items() if name not in SHARED} == {}
    assert set(SHARED) - set(shared) == set(), "these exceptions are not needed"


FOUND = [
    "the page tells how",
    "it says so",
    "what it says",
    "a file that is no object",
    "they are no lists",
    "it has not this",
    "whoever holds it",
    "a process who waits",
    "the first, where there is one",
    "None where it names none",
    "empty where the state does not name it",
    "where these files cannot be written",
    "a file of git's",
    "a folder of the user's own",
    "a record of Cursor's: one",
]
KEPT = [
    "there is no object",
    "it is no longer used",
    "file.tell()",
    "a person who types",
    "the user who owns it",
    "the place where a value begins",
    "where the two differ",
    "the status of the session's own agent",
    "whose file it is",
    "a folder of its own",
    "of the user's files",
    "it has not changed",
]


@in_one_test("line", [*FOUND, *KEPT])
def test_the_patterns_find_a_phrase_and_not_its_neighbours(line):
    assert any(re.search(phrase, line) for phrase in PLAIN) is (line in FOUND)


# ---- help texts ----------------------------------------------------------------------------------------------------

# With these words begins a text that lacks its verb, or the noun that it is about: "of the median", "only in code".
BEGINNINGS = {
    "of",
    "beside",
    "before",
    "after",
    "by",
    "in",
    "on",
    "at",
    "with",
    "not",
    "only",
    "both",
    "which",
    "default:",
}


def help_texts(command):
    """Yield the name and the help of each argument of a command and of the commands below it."""
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from help_texts(below)
        elif action.help != argparse.SUPPRESS:
            yield f"{command.prog} {'/'.join(action.option_strings) or action.dest}", action.help


def test_no_help_text_begins_without_its_noun_or_verb():
    found = {name: text for name, text in help_texts(parser()) if not text or text.split()[0] in BEGINNINGS}
    assert found == {}


# ---- relative clauses ----------------------------------------------------------------------------------------------

# A docstring, a comment or a string. A comment of several lines and strings beside each other are one piece.
PYTHON_PIECES = re.compile(
    r'"""(?:[^\\]|\\.)*?"""|[rf]{0,2}"(?:[^"\\\n]|\\.)*"(?:\s*[rf]{0,2}"(?:[^"\\\n]|\\.)*")*'
    r"|#[^\n]*(?:\n[ \t]*#[^\n]*)*"
)
C_PIECES = re.compile(
    r'/\*.*?\*/|"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*|(?<!:)//[^\n]*(?:\n[ \t]*//[^\n]*)*', re.DOTALL
)
CODE_BLOCKS = re.compile(r"^[ \t]*```.*?^[ \t]*```|^[ \t]*(?:>>>|\.\.\.) .*?$|\]\([^)\n]*\)", re.DOTALL | re.MULTILINE)
COMMENT_MARKS = re.compile(r'^[ \t]*(?:#|//|\*)|"\s*[rf]{0,2}"', re.MULTILINE)
# Where a sentence ends at the latest: at a blank line, a list item, a cell, or a line about a parameter.
PARTS = re.compile(r"\n\s*\n|\n[ \t]*[-*] |\n[ \t]*\d+\. |\||\n(?=[ \t]*\w[\w, ]*: )|\n(?=#)")
SENTENCE_END = re.compile(r"(?<=[.!?])[\"`)*]*\s+(?=[A-Z`\"'(\[*…])")
# After these words, "that" begins the content of a report or a purpose, or means a thing: "so that", "shows that".
NOT_RELATIVE = re.compile(
    r"(?:so|such|than|as|if|when|while|after|before|until|unless|without|like|about|into|over|under|behind"
    r"|between|during|except|beyond|beside|because|and|or|but|then|not|is|are|was|were|be|of|to|for|in|by|with"
    r"|from|at|on|through|only|both|all|also|even|just|does|do|did|has|have|had|show|shows|showed|note|notes"
    r"|mean|means|report|reports|check|checks|know|knows|ensure|ensures|require|requires|print|prints|warn"
    r"|warns|assert|asserts|see|sees|find|finds|prove|proves|confirm|confirms|expect|expects|imply|implies"
    r"|believe|allow|allows|returns|guess|add|adds|agree|decide|decides)\Z",
    re.IGNORECASE,
)
RELATIVE = re.compile(
    r"(?:,\s|\b(?:in|of|to|for|by|on|from|with|at|behind|after|without|through|under|above|below|over|into|before|among"
    r"|against)\s)(?:which|whom)\b"
    r"|\bwhose\b|\bwho\b|(?<!\bso\s)\b([\w`)'\"%*]+)\s+that\b(?!\s*(?:[.,;:)\]|]|$))"
)
# A further clause behind a relative one. Before these words, "that" is not a relative pronoun.
FURTHER = re.compile(r"\b(?:and|or) that\b(?!\s*(?:[.,;:)\]|]|$))(?! (?:of|its?|they)\b| \w+'s\b)")
MAYBE_RELATIVE = re.compile(r"\b(?:that|which|whom|whose|who)\b")


def relative_clauses(sentence):
    """Return how many relative clauses a sentence has, as far as a search can see it."""
    before = [match[1] for match in RELATIVE.finditer(sentence)]
    count = sum(word is None or not NOT_RELATIVE.match(word) for word in before)
    return count + len(FURTHER.findall(sentence)) if count else 0


def pieces(path, text):
    """Yield the offset and the words of each docstring, comment and string in a file; of a page, all of it."""
    if path.suffix == ".md":
        yield 0, text
        return
    for match in (C_PIECES if path.suffix in (".h", ".c", ".js", ".css") else PYTHON_PIECES).finditer(text):
        if len(MAYBE_RELATIVE.findall(match[0])) > 1:
            yield match.start(), COMMENT_MARKS.sub("", match[0])


def sentences(words):
    """Yield the sentences in the words of a piece, each on one line."""
    for part in PARTS.split(CODE_BLOCKS.sub("\n\n", words)):
        if len(MAYBE_RELATIVE.findall(part)) > 1:
            yield from SENTENCE_END.split(" ".join(part.split()))


def test_a_sentence_has_at_most_one_relative_clause():
    found = []
    for path, lines in sources():
        text = "\n".join(lines)
        for offset, words in pieces(path, text):
            line = text.count("\n", 0, offset) + 1
            crowded = [sentence for sentence in sentences(words) if relative_clauses(sentence) > 1]
            found += [f"{path.relative_to(ROOT)}:{line}: {sentence[:200]}" for sentence in crowded]
    assert not found, "make two sentences of one, or name the thing\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("sentence", "count"),
    [
        ("Return the facts of a stop of the session that the loop belongs to, in which nothing happens.", 2),
        ("A folder whose files have names that are not UTF-8.", 2),
        ("the file to which a program that is started appends a line", 2),
        ("`install` writes hooks that a launcher which the host starts runs, for a session that begins.", 2),
        ("Return the plates that are open and that the daemon looks after.", 2),
        ("A session that ends, or that waits.", 2),
        ("Report that the daemon runs, and that it is old.", 0),
        ("A program that runs, and that of its parent.", 1),
        ("Report that the daemon, which runs, is so old that it must end.", 1),
        ("Print that the file that is damaged was renamed, so that the next run works.", 1),
        ("If the host allows that, it waits for that folder.", 0),
    ],
)
def test_relative_clauses_are_counted(sentence, count):
    assert relative_clauses(sentence) == count
