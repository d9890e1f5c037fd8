"""The promises of the layout: the imports between rooms, the installed files, the cost of an import."""

import ast
import importlib
import importlib.metadata
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from tailhook.hook.machines import MACHINES, machine_hook, machines_with
from tailhook.hook.protocols import BriefingHook, DecidingMachine, LoopBriefing
from tailhook.hosts import DEFAULT, NAMES, RECORDED, find_host
from tailhook.hosts.protocols import HooksFileFields, Host, RecordedHost, RequiredHooksFileFields, TranslatedHost
from tailhook.install.hooks_file import HooksFile
from tailhook.stores import FALLBACK_FILE, RALPH_FILE, STORE_FOLDERS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "tailhook"
COLD_ROOMS = ("hook", "hosts", "machines", "stores")  # what a hook may load
COLD_MODULES = sorted(
    ".".join(("tailhook", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for room in COLD_ROOMS
    for path in (PACKAGE / room).rglob("*.py")
    if path.name not in ("entry.py", "protocols.py")  # it runs a hook; they are for type checkers
)


def test_only_what_belongs_to_no_room_stands_at_the_top():
    files = {path.name for path in PACKAGE.iterdir() if path.suffix in (".py", ".pyi")}
    assert files == {"__init__.py", "__main__.py", "_core.pyi", "errors.py", "exits.py"}


def test_the_arrows_between_the_rooms_point_one_way():
    if not (ROOT / "pyproject.toml").exists():
        pytest.skip("the contracts are in the source tree")
    code = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# A hook loads these modules only for a large store or a possible secret. They share names with their loader. A third
# module for the names would cost every such hook 0.2 to 0.5 % of its instructions.
CIRCLES = {
    ("machines.key_looks", "machines.secrets"),
    ("machines.passwords", "machines.secrets"),
    ("stores.jwz", "stores.jwz_index"),
}


def imports_of(path, modules):
    """Yield the modules of the package that a module imports, also in its functions, but not for type checkers."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = (node.module or "").removeprefix("tailhook.")
            names = [f"{module}.{one.name}" for one in node.names]
            yield from (name if name in modules else module for name in names)
        elif isinstance(node, ast.Import):
            yield from (one.name.removeprefix("tailhook.") for one in node.names)


def reached_from(name, imported):
    """Return the modules that the import of a module loads, with the imports in functions."""
    reached, waiting = set(), [name]
    while waiting:
        new = imported[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached


def test_no_modules_import_each_other_not_even_in_their_functions():
    files = {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
        for path in PACKAGE.rglob("*.py")
    }
    imported = {name: set(imports_of(path, files)) & set(files) for name, path in files.items()}
    circles = set()
    for name, names in imported.items():
        circles |= {tuple(sorted((name, one))) for one in names if name in reached_from(one, imported)}
    assert circles == CIRCLES


def test_the_base_install_needs_orjson_and_nothing_else():
    required = importlib.metadata.requires("tailhook") or []
    names = {word.split(">")[0].strip() for word in required if "extra ==" not in word}
    assert names == {"orjson"}


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import tailhook", "tailhook._core tailhook.patterns.sets tailhook.transcripts.transcript orjson re typing"),
        ("import tailhook; tailhook.code_spans('`a`')", "tailhook.patterns.automaton orjson"),
        ("import tailhook; tailhook.open", "orjson tailhook.patterns.automaton"),
        ("import tailhook.board.tui, tailhook.board.source, tailhook.board.alerts", "sqlalchemy alembic pydantic"),
        (
            "import tailhook.cli.plates, tailhook.plates.client, tailhook.board.view",
            "sqlalchemy alembic pydantic textual",
        ),
    ],
)
def test_an_import_loads_only_what_is_used(statement, unwanted):
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    bare = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    assert set(unwanted.split()) & (set(done.stdout.split()) - set(bare.stdout.split())) == set()


@pytest.mark.parametrize("module", COLD_MODULES)
def test_a_module_of_the_hook_can_be_imported_by_itself(module):
    """No module needs another to be imported before it, or any package but this one."""
    code = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); import {module}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_has_the_functions_that_its_row_promises(name):
    row, hook = MACHINES[name], machine_hook(name)
    promised = {"report" if row.get("reports") else "ask"}
    assert {word for word in ("ask", "report") if hasattr(hook, word)} == promised
    assert set(row.get("user_keys", ())) <= set(row.get("keys", ()))


def test_the_registry_and_the_stores_have_the_same_names_of_files():
    assert MACHINES["idle"]["marker_files"] == (*STORE_FOLDERS, f".claude/{FALLBACK_FILE}")
    assert MACHINES["ralph"]["marker_files"] == (f".claude/{RALPH_FILE}",)


def test_the_fields_of_a_hosts_file_are_those_of_its_type():
    promised = {**RequiredHooksFileFields.__annotations__, **HooksFileFields.__annotations__}
    assert sorted(promised) == sorted(set(HooksFile._fields) - {"host"})
    assert HooksFileFields.__required_keys__ == set(HooksFile._fields) - {"host"} - set(HooksFile._field_defaults)


def written(annotation):
    """Return an annotation as the source has it, without its parameters in brackets."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return text.strip("\"'").partition("[")[0]


@pytest.mark.parametrize("name", [name for name, machine in MACHINES.items() if not machine.get("reports")])
def test_the_module_of_a_machine_fulfils_its_protocol(name):
    """A machine that reports decides nothing: the daemon uses its module."""
    module = importlib.import_module(f"tailhook.machines.{name}")
    assert isinstance(module.Facts, type)
    assert "Facts" in [written(one.annotation) for one in inspect.signature(module.decide).parameters.values()]
    assert_fulfils(module, DecidingMachine)


def assert_fulfils(module, protocol):
    """Check that a module has a protocol's functions, with the same results."""
    functions = {word: function for word, function in vars(protocol).items() if not word.startswith("_")}
    promised = {word: written(inspect.signature(function).return_annotation) for word, function in functions.items()}
    found = {word: written(inspect.signature(getattr(module, word)).return_annotation) for word in functions}
    assert found == promised


@pytest.mark.parametrize("name", machines_with("repeats"))
def test_a_machine_that_repeats_its_loop_has_two_modules_for_its_briefing(name):
    assert_fulfils(importlib.import_module(f"tailhook.machines.{name}_briefing"), LoopBriefing)
    assert_fulfils(importlib.import_module(f"tailhook.hook.{name}_briefing"), BriefingHook)


@pytest.mark.parametrize("name", NAMES)
def test_a_host_has_the_members_of_its_protocol_and_no_other(name):
    host = find_host(name)
    members = {word for word in dir(host) if not word.startswith("_")} - {"TOOLS"}
    protocols = [Host, TranslatedHost, RecordedHost][: 1 if name == DEFAULT else 3 if name in RECORDED else 2]
    promised = {word for one in protocols for word in (*one.__annotations__, *vars(one)) if not word.startswith("_")}
    assert members - {"TYPE_CHECKING"} == promised
