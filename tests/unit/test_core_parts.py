"""The parts of the compiled core (ext/) keep to their rules: one place for imports, declared names, prefixes."""

import re
from pathlib import Path

EXT = Path(__file__).parents[2] / "ext"
PARTS = {path.relative_to(EXT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(EXT.rglob("*.pxi"))}
PREFIXES = {
    "json": ("json_",),
    "markdown": ("md_",),
    "patterns": ("match_", "mem_", "key_"),
    "transcript": ("rec_", "win_", "json_decode_utf8", "bytes_"),
    "os": ("os_",),
    "text": ("utf8_", "text_", "iso_", "bytes_"),
    ".": ("tuple_", "array_"),
}
DEFINITION = re.compile(r"^(?:cdef|ctypedef) (?!enum|extern|class)(?:[^\n(=:]*[ *])?(\w+)(?:\(|:$)", re.MULTILINE)


def definitions(text):
    """Return the C functions and structs that a part defines."""
    return set(DEFINITION.findall(text))


def header(text):
    """Return the comment that a part begins with, as one line."""
    return " ".join(line.lstrip("# ") for line in re.match(r"(?:#.*\n)+", text)[0].splitlines())


def code(text):
    """Return a part without its comments and docstrings."""
    return re.sub(r"\"\"\"(?:.|\n)*?\"\"\"|#.*", "", text)


def test_the_core_itself_is_a_list_of_all_parts():
    lines = (EXT / "_core.pyx").read_text(encoding="utf-8").splitlines()
    included = [line.split('"')[1] for line in lines if line.startswith("include ")]
    assert included[0] == "imports.pxi"
    assert sorted(included) == sorted(PARTS)
    assert all(not line or line.startswith(("include ", "# ", '"""')) for line in lines)


def test_only_one_part_imports():
    for name, text in PARTS.items():
        if name != "imports.pxi":
            assert not re.search(r"^(?:from \S+ )?cimport |^cdef extern", text, re.MULTILINE), name


def test_a_part_says_what_it_gives_and_needs():
    for name, text in PARTS.items():
        about = header(text)
        assert re.search(r"\. +Gives: .+\. .*Needs: .+\.", about), name
        given = about.partition("Gives: ")[2].partition("Needs: ")[0]
        patterns = [re.compile(word.replace("*", r"\w+")) for word in re.findall(r"[\w*]+", given) if word != "*"]
        for one in definitions(text):
            used = [other for other, more in PARTS.items() if other != name and re.search(rf"\b{one}\b", code(more))]
            assert not used or any(pattern.fullmatch(one) for pattern in patterns), f"{name} gives {one} to {used}"


def test_c_names_begin_with_their_subject():
    for name, text in PARTS.items():
        if name != "imports.pxi":
            folder = Path(name).parent.as_posix()
            functions = {one for one in definitions(text) if one.islower()}
            assert not [one for one in functions if not one.startswith(PREFIXES[folder])], name
