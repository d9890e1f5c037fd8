"""Write the generated parts of the core into a build's folder. setup.py runs this at every build.

tables.h has the pattern sets that are compiled into the core. Each set becomes a constant table, made by the same
compiler as a user's own sets (src/tailhook/patterns/automaton.py). The machines define the patterns, in
src/tailhook/machines/.
scan_columns.pxi has the columns of a scan's tables, from src/tailhook/fleet/typed_rows.py.
"""

import importlib
import json
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"


def load(name):
    """Import a module of the package. It must not import the core, which is not built yet."""
    sys.path.insert(0, str(SOURCE))
    try:
        return importlib.import_module(f"tailhook.{name}")
    finally:
        sys.path.remove(str(SOURCE))


def header():
    """Return the text of tables.h. Equal sets give equal text on machines of one byte order."""
    compiler, idle, ralph = load("patterns.automaton"), load("machines.idle"), load("machines.ralph")
    memory, profiles = load("machines.memory"), load("machines.keywords").tables()
    signals = list(dict.fromkeys(signal for mode in idle.SIGNALS.values() for signal in mode))
    names = ",\n    ".join(f'"{signal}"' for signal in signals)
    return (
        "/* Made by ext/tables.py. */\n\n#include <stdint.h>\n\n"
        + table("signals", compiler.compile_table(list(enumerate(signals)), ignore_case=False, word=False))
        + f"static const char *const tailhook_signals_names[] = {{\n    {names},\n}};\n\n"
        + table("promise_tags", compiler.compile_table(list(enumerate(ralph.TAGS)), ignore_case=False, word=False))
        + numbers("memory", memory.CORE_NUMBERS)
        + beginnings("host_written", memory.NOT_WORDS)
        + beginnings("app_written", memory.NOT_TYPED)
        + key_beginnings(load("machines.secret_rules").KEY_BEGINNINGS)
        + case_foldings()
        + "".join(
            table(f"keywords_{profile}", compiler.compile_table(keywords, ignore_case=True, word=True, thorough=True))
            for profile, keywords in profiles.items()
        )
    )


def table(name, data):
    """Return a compiled set as a constant of the header."""
    cells = memoryview(data).cast("I")
    words = ",\n    ".join(", ".join(map(hex, cells[at : at + 12])) for at in range(0, len(cells), 12))
    return f"static const uint32_t tailhook_{name}[] = {{\n    {words},\n}};\n\n"


def numbers(prefix, values):
    """Return constants as an enum of the header."""
    lines = "".join(f"    TAILHOOK_{prefix.upper()}_{name} = {value},\n" for name, value in values.items())
    return f"enum {{\n{lines}}};\n\n"


def beginnings(name, texts):
    """Return texts of ASCII as an array of the header, with their number and the length of the longest."""
    items = ", ".join(json.dumps(text.decode("ascii")) for text in texts)
    return (
        numbers(name, {"COUNT": len(texts), "MAX_BYTES": max(map(len, texts))})
        + f"static const char *const tailhook_{name}[] = {{{items}}};\n\n"
    )


def key_beginnings(rules):
    """Return the beginnings of keys, sorted, and the possible rest of each, as arrays of the header."""
    texts = sorted(rules, key=str.encode)
    signs = "".join(sorted({sign for _, allowed in rules.values() for sign in allowed}))
    bits = [sum(1 << signs.index(sign) for sign in rules[text][1]) for text in texts]
    arrays = {
        "const char *const tailhook_key_beginnings[]": [json.dumps(text) for text in texts],
        "const uint16_t tailhook_key_least[]": [str(rules[text][0]) for text in texts],
        "const uint16_t tailhook_key_signs[]": [str(number) for number in bits],
    }
    return (
        f"enum {{ TAILHOOK_KEY_BEGINNINGS = {len(texts)} }};\n"
        f"static const char *const tailhook_key_sign_letters = {json.dumps(signs)};\n"
        + "".join(f"static {name} = {{\n    {', '.join(items)},\n}};\n" for name, items in arrays.items())
        + "\n"
    )


def case_foldings():
    """Return the case folding of characters beyond ASCII, sorted, in UTF-8: only changed ones."""
    foldings = [
        (character, chr(character).casefold().encode())
        for character in range(0x80, sys.maxunicode + 1)
        if chr(character).casefold() != chr(character)
    ]
    growth = max(-(-len(folded) // len(chr(character).encode())) for character, folded in foldings)
    size = max(len(folded) for _, folded in foldings)
    items = ",\n    ".join(
        f"{{{character:#x}, {len(folded)}, {{{', '.join(map(str, folded))}}}}}" for character, folded in foldings
    )
    return (
        numbers("label", {"FOLDINGS": len(foldings), "MAX_GROWTH": growth})
        + f"typedef struct {{ uint32_t character, size; uint8_t folded[{size}]; }} tailhook_folding;\n"
        + f"static const tailhook_folding tailhook_foldings[] = {{\n    {items},\n}};\n\n"
    )


KINDS = {"Repeated": "NAME", "str": "TEXT", "int": "INT", "datetime": "TIME", "bool": "BOOL", "list[str]": "NAMES"}


def column_kinds():
    """Return the kind of each column by its number and name. A name has a column for each of its kinds."""
    rows = load("fleet.typed_rows")
    declared = [
        *(pair for row in (*rows.ROWS.values(), *rows.HALF_ROWS[:-1]) for pair in row.__annotations__.items()),
        *(
            (name, getattr(hint, "__forward_arg__", hint)[5:-1])
            for name, hint in rows.SessionColumns.__annotations__.items()
        ),
    ]
    found = {}
    for name, hint in declared:
        kind = KINDS[hint.removesuffix(" | None")]
        is_other = found.get((f"SCAN_{name.upper()}", name), kind) != kind
        found[f"SCAN_{name.upper()}_{kind}" if is_other else f"SCAN_{name.upper()}", name] = kind
    return found


def scan_columns():
    """Return the text of scan_columns.pxi."""
    kinds = column_kinds()
    names = "".join(f"    {number}\n" for number, _ in kinds)
    defined = "".join(
        f'    scan_define(&items[{number}], ARROW_{kind}, b"{name}")\n' for (number, name), kind in kinds.items()
    )
    return (
        "# Made by ext/tables.py of src/tailhook/fleet/typed_rows.py.\n\n"
        f"cdef enum:\n{names}    SCAN_FIELDS\n\n\n"
        f"cdef inline void scan_define_all(ArrowColumn* items) noexcept nogil:\n{defined}"
    )


def write(path, text):
    """Write a file if its text changes. Otherwise its age stays, and nothing is compiled again."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    write(Path(sys.argv[1], "tables.h"), header())
    write(Path(sys.argv[1], "scan_columns.pxi"), scan_columns())
