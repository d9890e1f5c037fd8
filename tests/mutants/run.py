"""Change the code in one place at a time, and list the changes that no test notices.

    python tests/mutants/run.py [--mutants N|all] [MODULE ...]

Mutants come from cosmic-ray, without those of annotations and of code that only type checkers read. Each worker changes
its own copy of the tree under build/mutants. Results are kept there until the module or its tests change, so a stopped
run goes on where it was.

Exits with 1 if the tests kill fewer than 95 % of the mutants (the equivalent ones do not count), or if a reason in
equivalent.py is wrong. Exits with 2 if the tests fail without any mutant.
"""

import argparse
import ast
import hashlib
import multiprocessing
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.commands.init import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.testing import run_tests
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkItem, WorkResult
from equivalent import EQUIVALENT
from targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "mutants"
WORKERS = os.cpu_count() or 1
SEED = 20250727  # of the sample; any number, as long as it stays
MIN_KILLED = 0.95
MIN_TIMEOUT_S = 20
TIMEOUT_FACTOR = 5  # times the run without a mutant: then a run counts as hanging

TEST_FILE = r"(?<!\S)(?:unit|property)/\w+\.py"
PYTEST = f"{sys.executable} -m pytest -x -q -p no:cacheprovider -p few_examples"

# One replacement for an arithmetic operator; for a comparison, its other limit and its opposite. The same tests notice
# the other replacements.
OPERATORS = re.compile(
    r"core/(AddNot|Replace(TrueWithFalse|FalseWithTrue|AndWithOr|OrWithAnd|BreakWithContinue|ContinueWithBreak)"
    r"|ExceptionReplacer|NumberReplacer|RemoveDecorator|ZeroIterationForLoop"
    r"|ReplaceUnaryOperator_Delete_(USub|Not|Invert)"
    r"|ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_FloorDiv|FloorDiv_Mul|Div_Mul|Mod_FloorDiv|Pow_Mul"
    r"|LShift_RShift|RShift_LShift|BitOr_BitAnd|BitAnd_BitOr)"
    r"|ReplaceComparisonOperator_(Eq_NotEq|NotEq_Eq|Lt_LtE|Lt_Gt|LtE_Lt|LtE_GtE|Gt_GtE|Gt_Lt|GtE_Gt|GtE_LtE"
    r"|Is_IsNot|IsNot_Is))"
)


class Mutant(NamedTuple):
    """One change, and its result in the tests."""

    module: str
    function: str
    line: int
    diff: str
    outcome: str  # "killed", "hung" or "survived"

    def change(self) -> tuple[str, str, str, str]:
        """Return the module, the function, the original line and the mutated one, as equivalent.py has them."""
        lines = [line for line in self.diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        before, after = (" ".join(" ".join(line[1:] for line in lines if line[0] == sign).split()) for sign in "-+")
        return self.module, self.function, before, after


# ---- which mutants ------------------------------------------------------------


def ranges_for_type_checkers(source: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield the begin and the end (line, column) of code for type checkers only."""
    for node in ast.walk(ast.parse(source)):
        annotations: list[ast.AST | None] = []
        if isinstance(node, ast.arg | ast.AnnAssign):
            annotations = [node.annotation]
        elif isinstance(node, ast.FunctionDef):
            annotations = [node.returns]
        elif isinstance(node, ast.Assign | ast.If) and "TYPE_CHECKING" in ast.unparse(node).splitlines()[0]:
            annotations = [node]
        for found in annotations:
            if found is not None:
                yield (found.lineno, found.col_offset), (found.end_lineno, found.end_col_offset)  # type: ignore[attr-defined]


def wanted(items: list[WorkItem], source: str, sample: int | None) -> list[WorkItem]:
    """Return the mutants to run: all, or a sample of so many. A larger sample contains each smaller one."""
    skipped = list(ranges_for_type_checkers(source))

    def is_wanted(spec: MutationSpec) -> bool:
        is_read = not any(begin <= tuple(spec.start_pos) < end for begin, end in skipped)
        return is_read and OPERATORS.fullmatch(spec.operator_name) is not None

    chosen = [item for item in items if is_wanted(item.mutations[0])]
    chosen.sort(key=lambda item: (item.mutations[0].operator_name, item.mutations[0].occurrence))
    random.Random(SEED).shuffle(chosen)
    return chosen[:sample]


# ---- the workers --------------------------------------------------------------


def copy_tree(folder: Path) -> None:
    """Copy the files for the tests to `folder`, where no byte code of the code under test is kept."""
    shutil.rmtree(folder, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", ".*", "build", "dist", "*.egg-info")
    shutil.copytree(ROOT, folder, ignore=ignored)
    for package in sorted((folder / "src").rglob("__init__.py")):
        (package.parent / "__pycache__").touch()  # a file: an interpreter with -I writes byte code despite the variable


def enter(folders: "multiprocessing.Queue[Path]") -> None:
    """Make one of the copies the working directory of this worker."""
    folder = folders.get()
    os.chdir(folder)
    os.environ["PYTHONPATH"] = f"{folder / 'src'}{os.pathsep}{folder / 'tests' / 'mutants'}"
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"


def command_of(module: str) -> str:
    """Return the command that tests a module."""
    return " ".join((PYTEST, re.sub(TEST_FILE, r"tests/\g<0>", TARGETS[module])))


def baseline(module: str) -> tuple[str, float]:
    """Run a module's tests without a mutant, then with a module that cannot be imported.

    Returns the error, "" for none, and the seconds of the tests.
    """
    started = time.monotonic()
    outcome, output = run_tests(command_of(module), timeout=600)
    seconds = time.monotonic() - started
    if outcome is not TestOutcome.SURVIVED:
        return f"{module}: its tests fail without any mutant\n{output}", seconds
    path = Path("src", "tailhook", module)
    source = path.read_text("utf-8")
    try:
        path.write_text("raise AssertionError('the mutated module is imported')\n", "utf-8")
        # Both streams: an error in conftest.py is on stderr, which run_tests drops.
        done = subprocess.run(shlex.split(command_of(module)), capture_output=True, text=True, timeout=600, check=False)
        output = done.stdout + done.stderr
    finally:
        path.write_text(source, "utf-8")
    if not done.returncode or "the mutated module is imported" not in output:
        return f"{module}: its tests do not import the copy that is changed\n{output}", seconds
    return "", seconds


def examine(job: tuple[str, WorkItem, float]) -> tuple[str, str, WorkResult]:
    """Run the tests with one mutant. It has hung if it takes too long twice."""
    module, item, timeout = job
    os.environ["MUTANT_SECONDS"] = str(timeout + 5)  # the tests end then, also if this process was stopped before
    result = mutate_and_test(item.mutations, command_of(module), timeout)
    if result.output == "timeout":
        result = mutate_and_test(item.mutations, command_of(module), timeout)
    return module, item.job_id, result


# ---- the run ------------------------------------------------------------------


def session_of(module: str) -> WorkDB:
    """Return the kept results for a module and its tests, unless one of them has changed."""
    texts = [ROOT / "src" / "tailhook" / module]
    texts += [ROOT / "tests" / test for test in re.findall(TEST_FILE, TARGETS[module])]
    digest = hashlib.sha256(b"".join(text.read_bytes() for text in texts)).hexdigest()[:16]
    path = BUILD / f"{module.replace('/', '-')}-{digest}.sqlite"
    is_new = not path.exists()
    database = WorkDB(path, WorkDB.Mode.create)
    if is_new:
        init([Path("src", "tailhook", module)], database, {})
    return database


def mutants_of(module: str, items: list[WorkItem], results: dict[str, WorkResult]) -> Iterator[Mutant]:
    """Yield a module's mutants with their results."""
    for item in items:
        spec, result = item.mutations[0], results[item.job_id]
        has_survived = result.test_outcome is TestOutcome.SURVIVED
        outcome = "survived" if has_survived else "hung" if result.output == "timeout" else "killed"
        yield Mutant(module, spec.definition_name or "", spec.start_pos[0], result.diff or "", outcome)


def main() -> int:
    """Run the mutants, print the table and the survivors, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--mutants", default="all", metavar="N|all", help="how many of each module; default: all")
    parser.add_argument("modules", nargs="*", default=list(TARGETS), metavar="MODULE", help="such as machines/idle.py")
    asked = parser.parse_args()
    sample = None if asked.mutants == "all" else int(asked.mutants)
    BUILD.mkdir(parents=True, exist_ok=True)
    os.chdir(ROOT)
    folders: multiprocessing.Queue[Path] = multiprocessing.Queue()
    for number in range(WORKERS):
        copy_tree(BUILD / f"tree-{number}")
        folders.put(BUILD / f"tree-{number}")
    sessions = {module: session_of(module) for module in asked.modules}
    chosen = {
        module: wanted(list(session.work_items), Path("src", "tailhook", module).read_text("utf-8"), sample)
        for module, session in sessions.items()
    }
    with multiprocessing.Pool(WORKERS, enter, (folders,)) as pool:
        checked = dict(zip(asked.modules, pool.map(baseline, asked.modules, chunksize=1), strict=True))
        wrong = [text for text, _ in checked.values() if text]
        if wrong:
            print(*wrong, sep="\n", file=sys.stderr)
            return 2
        jobs = []
        for module, items in chosen.items():
            done = {job_id for job_id, _ in sessions[module].results}
            timeout = max(MIN_TIMEOUT_S, TIMEOUT_FACTOR * checked[module][1])
            jobs += [(module, item, timeout) for item in items if item.job_id not in done]
        for count, (module, job_id, result) in enumerate(pool.imap_unordered(examine, jobs), 1):
            sessions[module].set_result(job_id, result)
            print(f"\r{count} of {len(jobs)} ", end="", file=sys.stderr, flush=True)
    mutants: list[Mutant] = []
    for module, items in chosen.items():
        mutants += mutants_of(module, items, dict(sessions[module].results))
    return report(asked.modules, mutants)


def lines_of(module: str) -> set[str]:
    """Return the lines of a module in the form of equivalent.py: with one space in place of any blank space."""
    return {" ".join(line.split()) for line in Path("src", "tailhook", module).read_text("utf-8").splitlines()}


def report(modules: list[str], mutants: list[Mutant]) -> int:
    """Print a row for each module and every survivor. Return the exit code."""
    excused = {(module, where, line, after) for module, where, line, changed, _ in EQUIVALENT for after in changed}
    survivors = [one for one in mutants if one.outcome == "survived" and one.change() not in excused]
    wrong = [one for one in mutants if one.outcome != "survived" and one.change() in excused]
    stale = [row for row in EQUIVALENT if row[2] not in lines_of(row[0])]
    print(f"\n{'module':24} mutants  killed  hung  equivalent  survived")
    for module in [*modules, "all"]:
        here = [one for one in mutants if module in (one.module, "all")]
        killed = sum(one.outcome == "killed" for one in here)
        hung = sum(one.outcome == "hung" for one in here)
        survived = sum(one in survivors for one in here)
        equivalent = len(here) - killed - hung - survived
        print(f"{module:24} {len(here):7} {killed:7} {hung:5} {equivalent:11} {survived:9}")
    for title, found in (("survived", survivors), ("was killed, although equivalent.py lists it", wrong)):
        for one in found:
            _, function, before, after = one.change()
            print(f"\nsrc/tailhook/{one.module}:{one.line}: {title}, in {function or 'the module'}")
            print(f"- {before}\n+ {after}")
    for module, where, line, *_ in stale:
        print(f"\nequivalent.py: src/tailhook/{module} has no such line any more, in {where or 'the module'}\n- {line}")
    killed = sum(one.outcome != "survived" for one in mutants)
    share = killed / (killed + len(survivors) or 1)
    print(f"\n{share:.1%} of the mutants that are not equivalent were killed; at least {MIN_KILLED:.0%} must be")
    return 1 if share < MIN_KILLED or wrong or stale else 0


if __name__ == "__main__":
    sys.exit(main())
