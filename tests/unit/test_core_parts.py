"""The parts of the compiled core (ext/) keep to their rules: one place for imports, declared names, prefixes."""

import re
import runpy
from functools import cache
from pathlib import Path

from support.cases import in_one_test

EXT = Path(__file__).parents[2] / "ext"
PARTS = {path.relative_to(EXT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(EXT.rglob("*.pxi"))}
PREFIXES = {
    "json": ("json_",),
    "markdown": ("md_",),
    "patterns": ("match_", "mem_", "key_"),
    "transcript": ("rec_", "win_"),
    "arrow": ("arrow_",),
    "scan": ("scan_",),
    "os": ("os_",),
    "text": ("utf8_", "text_", "iso_", "bytes_"),
    ".": ("tuple_", "array_"),
}
DEFINITION = re.compile(r"^(?:cdef|ctypedef) (?!enum|extern|class)(?:[^\n(=:]*[ *])?(\w+)(?:\(|:$)", re.MULTILINE)


def definitions(text):
    """Return the C functions and structs that a part defines."""
    return set(DEFINITION.findall(text))


ENUM = re.compile(r"^cdef enum:\n((?:    .*\n|\n)+)", re.MULTILINE)
CLASS = re.compile(r"^cdef class (\w+)|^def (\w+)", re.MULTILINE)


@cache
def names(text):
    """Return all names that a part defines: `definitions`, members of enums, classes, functions for Python."""
    members = {name for block in ENUM.findall(text) for name in re.findall(r"^    ([A-Z]\w+)", block, re.MULTILINE)}
    return definitions(text) | members | {one or other for one, other in CLASS.findall(text)}


def header(text):
    """Return the comment that a part begins with, as one line."""
    return " ".join(line.lstrip("# ") for line in re.match(r"(?:#.*\n)+", text)[0].splitlines())


@cache
def code(text):
    """Return a part without its comments and docstrings."""
    return re.sub(r"\"\"\"(?:.|\n)*?\"\"\"|#.*", "", text)


@cache
def words_of_code(text):
    """Return the words in a part's code."""
    return set(re.findall(r"\w+", code(text)))


def test_the_core_itself_is_a_list_of_all_parts():
    lines = (EXT / "_core.pyx").read_text(encoding="utf-8").splitlines()
    included = [line.split('"')[1] for line in lines if line.startswith("include ")]
    assert included[0] == "imports.pxi"
    assert sorted(included) == sorted([*PARTS, "scan_columns.pxi"])  # which ext/tables.py makes
    assert all(not line or line.startswith(("include ", "# ", '"""')) for line in lines)


def test_only_one_part_imports():
    for name, text in PARTS.items():
        if name != "imports.pxi":
            assert not re.search(r"^(?:from \S+ )?cimport |^cdef extern", text, re.MULTILINE), name


def test_a_part_lists_what_it_gives_and_needs():
    for name, text in PARTS.items():
        about = header(text)
        assert re.search(r"\. +Gives: .+\. .*Needs: .+\.", about), name
        given = about.partition("Gives: ")[2].partition("Needs: ")[0]
        patterns = [re.compile(word.replace("*", r"\w+")) for word in re.findall(r"[\w*]+", given) if word != "*"]
        for one in definitions(text):
            used = [other for other, more in PARTS.items() if other != name and one in words_of_code(more)]
            assert not used or any(pattern.fullmatch(one) for pattern in patterns), f"{name} gives {one} to {used}"


def words(about):
    """Return the names in a list as patterns: FIELD_* stands for several."""
    found = re.findall(r"[\w*]*_[\w*]+|[A-Z][a-z]+[A-Z]\w+", re.sub(r"[\w/]+\.(?:pxi|h|py)", "", about))
    return [re.compile(rf"\b{word.replace('*', chr(92) + 'w+')}\b") for word in found]


@in_one_test("name", sorted(set(PARTS) - {"imports.pxi"}))
def test_a_part_needs_what_it_lists_and_gives_what_is_used(name):
    others = {other: text for other, text in PARTS.items() if other not in (name, "imports.pxi")}
    given, _, needed = header(PARTS[name]).partition("Gives: ")[2].partition("Needs: ")
    needed = re.split(r"\.(?: |$)", re.sub(r"\.(pxi|h)", r"/\1", needed))[0]
    used = {other for other, text in others.items() if names(text) & words_of_code(PARTS[name])}
    assert {f"{one}.pxi" for one in re.findall(r"([\w/]+)/pxi", needed)} == used
    stale = [
        word.pattern for word in words(re.sub(r"[\w/]+/(?:pxi|h)", "", needed)) if not word.search(code(PARTS[name]))
    ]
    assert stale == [], "it needs no such name"
    unused = [
        pattern.pattern
        for pattern in words(given.partition("For Python")[0])
        if not any(pattern.search(code(text)) for text in others.values())
    ]
    assert unused == []


def test_c_names_begin_with_their_subject():
    for name, text in PARTS.items():
        if name != "imports.pxi":
            folder = Path(name).parent.as_posix()
            functions = {one for one in definitions(text) if one.islower()}
            assert not [one for one in functions if not one.startswith(PREFIXES[folder])], name


def test_only_start_and_end_of_a_scan_are_columns_of_two_kinds():
    kinds = {}
    for (_, name), kind in runpy.run_path(str(EXT / "tables.py"))["column_kinds"]().items():
        kinds.setdefault(name, set()).add(kind)
    assert len(kinds) > 50
    assert [name for name, found in kinds.items() if len(found) > 1] == ["start", "end"]


COUNTED = re.compile(r"""(?:"(?:[^"\\]|\\.)+"|b'(?:[^'\\]|\\.)+'), [1-9]\d*\b""")


@in_one_test("path", sorted([*EXT.rglob("*.pxi"), *EXT.rglob("*.h"), *EXT.rglob("*.c")]), ids=lambda path: path.name)
def test_the_compiler_counts_the_length_of_a_literal(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if COUNTED.search(line)] == [], "write LIT(...) of literal.h"


def test_a_literal_with_a_counted_length_is_found():
    counted = ['f(x, b"type", 4)', """g(b'"a', 2)""", r'memcmp(p, "\"uuid\"", 6)']
    assert [bool(COUNTED.search(line)) for line in [*counted, 'f(LIT(b"type"), 4)', 'f(b"", 0)']] == [True] * 3 + [
        False
    ] * 2
