"""The pattern sets that are compiled into the core, and how they get there.

The build runs this (setup.py): each set becomes the constant table of a C header, made by the same compiler
as a user's own sets. To change a signal, change its line here and build.
"""

import importlib.util
import sys
from pathlib import Path

# Which loops it ends, the reason that is recorded, what the agent writes. (docs/machines/idle.md, "Signals")
SIGNALS = [
    ("loop issue", "COMPLETE", "<loop-done>COMPLETE</loop-done>"),
    ("loop issue", "MAX_ITERATIONS", "<loop-done>MAX_ITERATIONS</loop-done>"),
    ("loop issue", "STUCK", "<loop-done>STUCK</loop-done>"),
    ("issue", "COMPLETE", "<issue-complete>DONE</issue-complete>"),
    ("grind", "NO_MORE_ISSUES", "<grind-done>NO_MORE_ISSUES</grind-done>"),
    ("grind", "MAX_ISSUES", "<grind-done>MAX_ISSUES</grind-done>"),
]

COMPILER = Path(__file__).parents[1] / "src" / "tailhook" / "automaton.py"


def header():
    """The text of tables.h: the same for the same sets, whatever the machine's byte order allows."""
    spec = importlib.util.spec_from_file_location("tailhook_automaton", COMPILER)
    compiler = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(compiler)
    patterns = [(number, signal) for number, (_, _, signal) in enumerate(SIGNALS)]
    table = memoryview(compiler.compile_table(patterns, ignore_case=False, word=False)).cast("I")
    words = ",\n    ".join(", ".join(map(hex, table[at : at + 12])) for at in range(0, len(table), 12))
    names = ",\n    ".join(f'"{modes}:{reason}"' for modes, reason, _ in SIGNALS)
    return (
        "/* Made by ext/tables.py. */\n\n#include <stdint.h>\n\n"
        f"static const uint32_t tailhook_signals[] = {{\n    {words},\n}};\n\n"
        f"static const char *const tailhook_signals_names[] = {{\n    {names},\n}};\n"
    )


def write(path):
    """Write tables.h, unless it says the same already: its age decides what is built again."""
    text = header()
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
