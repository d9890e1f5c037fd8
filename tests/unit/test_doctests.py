"""Every example in a docstring runs, those of the core's stub and of the pages on the library too."""

import ast
import doctest
import importlib
import json
import pkgutil
import re
from pathlib import Path

import pytest
from support.library_sample import write_sample

import tailhook
from tailhook.errors import MissingExtraError

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "library.md"
ENGINES_PAGE = ROOT / "docs" / "engines.md"
SCAN_PAGE = ROOT / "docs" / "scan.md"
STUB = Path(tailhook.__file__).with_name("_core.pyi")
MODULES = [
    module.name
    for module in pkgutil.walk_packages(tailhook.__path__, "tailhook.")
    if module.name not in ("tailhook._core", "tailhook.__main__", "tailhook.hook.entry", "tailhook.pool.entry")
]


def run(examples, name, names):
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    test = doctest.DocTestParser().get_doctest(examples, names, name, None, 0)
    runner.run(test)
    return runner.summarize(verbose=False)


@pytest.fixture(autouse=True)
def session(tmp_path, monkeypatch):
    """Write the transcript that the examples open."""
    message = {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "Done."}]}
    lines = [
        {"type": "user", "message": {"role": "user", "content": "Please."}},
        {"type": "assistant", "message": message},
    ]
    (tmp_path / "session.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    write_sample(tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name):
    try:
        module = importlib.import_module(name)
    except MissingExtraError as error:
        pytest.skip(str(error))
    assert doctest.testmod(module).failed == 0


def documented():
    """Yield the docstrings with an example of the stub's functions, classes and methods."""
    for node in ast.walk(ast.parse(STUB.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ">>>" in (ast.get_docstring(node) or ""):
            yield pytest.param(ast.get_docstring(node), id=node.name)


@pytest.mark.parametrize("docstring", list(documented()))
def test_the_examples_of_the_stub_run(docstring):
    core = importlib.import_module("tailhook._core")
    assert run(docstring, "_core.pyi", {**vars(core)}).failed == 0


def test_the_examples_of_the_page_on_the_library_run():
    result = run(PAGE.read_text(), "library.md", {})
    assert result.attempted > 5
    assert result.failed == 0


def test_the_examples_of_the_page_on_scans_run():
    result = run(SCAN_PAGE.read_text(), "scan.md", {})
    assert result.attempted > 5
    assert result.failed == 0


def test_the_example_of_a_folder_that_is_kept_up_to_date_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    folder = tmp_path / ".claude" / "projects"
    folder.mkdir(parents=True)
    write_sample(folder)
    blocks = [one.split("```")[0] for one in ENGINES_PAGE.read_text().split("```python\n")]
    (code,) = [block for block in blocks if "resume=" in block]
    names: dict[str, object] = {}
    exec(code, names)
    assert [path.as_posix() for path in names["paths"]] == ["usage-folder/rows.parquet"]


def test_the_example_of_the_readme_runs_and_gives_what_its_comments_show():
    code = (ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0]
    names: dict[str, object] = {}
    exec(code, names)
    shown = re.findall(r"^(\S.*)\n# (.*)$", code, re.MULTILINE)
    assert len(shown) == 1
    for expression, value in shown:
        assert repr(eval(expression, names)) == value


def test_the_page_on_the_library_shows_the_transcript_that_its_examples_read():
    shown = PAGE.read_text().split("```json\n")[1].split("```")[0]
    assert shown == Path("session.jsonl").read_text()


def test_the_library_has_examples_at_all():
    found = [
        len(doctest.DocTestFinder().find(importlib.import_module(f"tailhook.{name}")))
        for name in ("patterns.sets", "transcripts.transcript")
    ]
    assert min(found) > 3


def test_every_public_name_is_there_and_documented():
    for name in tailhook.__all__:
        value = getattr(tailhook, name)
        assert value.__doc__ or f"class {name}:" in STUB.read_text(), name
    with pytest.raises(AttributeError, match="nonsense"):
        tailhook.nonsense  # noqa: B018
