"""Compare readers of shell text: what each adds to the start of a process, and how many commands of agents it can read.

usage: shell_readers.py [ROUNDS]      prints the table of docs/decisions/shell-reader.md

Needs bashlex, tree-sitter and tree-sitter-bash.
"""

import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINE = "cd web && npm test 2>&1 | tail -5; echo done"
# For each reader, a program with a function `read(text)`. It raises an exception for an unreadable text.
READERS = {
    "nothing": "",
    "tailhook": """
from tailhook.machines.commands import take_apart
from tailhook.machines.shell import Budget
def read(text):
    take_apart(text, Budget(10**6))
""",
    "tree-sitter-bash": """
import tree_sitter, tree_sitter_bash
parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
def read(text):
    if parser.parse(text.encode("utf-8", "surrogatepass")).root_node.has_error:
        raise ValueError(text)
""",
    "bashlex": """
import bashlex
read = bashlex.parse
""",
}


def main() -> None:
    """Print a row for each reader."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    texts = [case["command"] for case in json.loads((ROOT / "tests/unit/commands_of_agents.json").read_text("utf-8"))]
    starts: dict[str, list[float]] = {name: [] for name in READERS}
    for _ in range(rounds):
        for name in READERS:
            starts[name].append(start_ms(name))
    bare = statistics.median(starts["nothing"])
    print(f"{len(texts)} commands of agents; bare Python takes {bare:.1f} ms")
    print("| reader | adds to the start, ms | reads of them | per command, median µs |\n|-|-:|-:|-:|")
    for name in list(READERS)[1:]:
        costs = [cost for cost in map(reader(name), texts) if cost is not None]
        added = statistics.median(starts[name]) - bare
        print(f"| {name} | {added:.1f} | {len(costs)} | {statistics.median(costs) * 1e6:.0f} |")


def start_ms(name: str) -> float:
    """Return the processor time of a new process that imports a reader and reads one line, in milliseconds."""
    code = f"import sys; sys.path[:] = {sys.path!r}\n{READERS[name]}"
    if name != "nothing":
        code += f"\nread({LINE!r})"
    before = spent_by_children()
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)
    return 1000 * (spent_by_children() - before)


def spent_by_children() -> float:
    """Return the processor time of the processes that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def reader(name: str):
    """Return a function that returns the seconds of a text, the least of three, or None if it cannot be read."""
    known: dict = {}
    exec(READERS[name], known)

    def seconds(text: str) -> float | None:
        costs = []
        for _ in range(3):
            began = time.process_time()
            try:
                known["read"](text)
            except Exception:
                return None
            costs.append(time.process_time() - began)
        return min(costs)

    return seconds


if __name__ == "__main__":
    main()
