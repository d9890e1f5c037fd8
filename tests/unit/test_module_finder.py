"""The finder of the hook's own modules: which files it takes from `__pycache__`, and which it leaves to Python."""

import importlib.util
import os
import py_compile
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import tailhook
from tailhook._core import ModuleFinder, preload

HEADER = struct.Struct("<4sIII")  # PEP 552: magic number, flags, the source's time and size


@pytest.fixture
def source(tmp_path):
    """Return the path of a module that Python has compiled."""
    path = tmp_path / "greeting.py"
    path.write_text("WORDS = 'Hello'\n")
    py_compile.compile(str(path))
    return path


def find(source):
    return ModuleFinder().find_spec(f"tailhook.{source.stem}", [str(source.parent)])


def compiled(source):
    return source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"


def change_header(source, place, value):
    """Set one of the four words of the compiled file's header."""
    data = compiled(source).read_bytes()
    words = list(HEADER.unpack_from(data))
    words[place] = value
    compiled(source).write_bytes(HEADER.pack(*words) + data[HEADER.size :])


def test_a_compiled_module_is_loaded_as_python_would_load_it(source):
    spec = find(source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    theirs = importlib.util.spec_from_file_location("tailhook.greeting", source)
    assert module.WORDS == "Hello"
    assert (module.__file__, module.__spec__.cached) == (str(source), importlib.util.cache_from_source(str(source)))
    assert (spec.origin, spec.has_location, spec.parent) == (theirs.origin, theirs.has_location, theirs.parent)


def test_a_package_is_found_with_its_folder(tmp_path):
    package = tmp_path / "inner"
    package.mkdir()
    (package / "__init__.py").write_text("")
    py_compile.compile(str(package / "__init__.py"))
    assert find(package).submodule_search_locations == [str(package)]


def test_a_folder_name_that_is_not_utf8_works(tmp_path):
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    os.mkdir(folder)
    path = f"{folder}/greeting.py"
    with open(path, "w") as file:
        file.write("WORDS = 'Hello'\n")
    py_compile.compile(path)
    assert ModuleFinder().find_spec("tailhook.greeting", [folder]).origin == path


def test_a_source_of_another_time_is_left_to_python(source):
    os.utime(source, (1, 1))
    assert find(source) is None


def test_a_source_of_another_size_is_left_to_python(source):
    facts = source.stat()
    source.write_text("WORDS = 'Good evening'\n")
    os.utime(source, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert find(source) is None


@pytest.mark.parametrize(("place", "value"), [(0, b"\0\0\r\n"), (1, 1), (1, 3)], ids=["magic", "hash", "checked hash"])
def test_a_file_of_another_python_or_kind_is_left_to_python(source, place, value):
    change_header(source, place, value)
    assert find(source) is None


@pytest.mark.parametrize("size", [0, 1, 15])
def test_a_torn_header_is_left_to_python(source, size):
    compiled(source).write_bytes(compiled(source).read_bytes()[:size])
    assert find(source) is None


def test_a_file_beyond_the_buffer_is_left_to_python(source):
    source.write_text(f"WORDS = {'x' * 70_000!r}\n")
    py_compile.compile(str(source))
    assert find(source) is None


def test_a_torn_body_is_an_error_as_it_is_to_python(source):
    compiled(source).write_bytes(compiled(source).read_bytes()[:20])
    with pytest.raises(EOFError):
        find(source)


def test_what_was_never_compiled_is_left_to_python(source):
    compiled(source).unlink()
    assert find(source) is None


def test_a_compiled_file_without_its_source_is_left_to_python(source):
    source.unlink()
    assert find(source) is None


@pytest.mark.parametrize("name", ["tailhook", "greeting", "other.greeting", "tailhooks.greeting"])
def test_modules_of_others_are_left_to_python(source, name):
    assert ModuleFinder().find_spec(name, [str(source.parent)]) is None


def test_a_module_without_a_search_path_is_left_to_python():
    assert ModuleFinder().find_spec("tailhook.hook", None) is None


# ---- modules loaded before their import ------------------------


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Make a package tailhook.room with two modules, of which `second` imports `first`; return its folder."""
    room = tmp_path / "room"
    room.mkdir()
    (room / "__init__.py").write_text("")
    (room / "first.py").write_text("WORD = 'one'\n")
    (room / "second.py").write_text("from tailhook.room.first import WORD\nWORDS = [WORD, 'two']\n")
    for path in room.iterdir():
        py_compile.compile(str(path))
    monkeypatch.setattr(tailhook, "__path__", [str(tmp_path)])
    yield room
    for name in [name for name in sys.modules if name.startswith("tailhook.room")]:
        del sys.modules[name]
    vars(tailhook).pop("room", None)


def test_a_module_that_is_loaded_first_is_as_if_it_were_imported(package):
    ModuleFinder().preload("room", "room.first", "room.second")
    room, second = sys.modules["tailhook.room"], sys.modules["tailhook.room.second"]
    assert second.WORDS == ["one", "two"]
    assert (second.__package__, second.__file__) == ("tailhook.room", str(package / "second.py"))
    assert (room.__package__, room.__path__) == ("tailhook.room", [str(package)])
    assert room.second is second
    assert tailhook.room is room
    assert second.__spec__.parent == "tailhook.room"


def test_a_module_whose_bytecode_is_outdated_is_left_to_its_import(package):
    (package / "first.py").write_text("WORD = 'changed'\n")
    ModuleFinder().preload("room", "room.first", "room.second")
    assert [name for name in sys.modules if name.startswith("tailhook.room")] == ["tailhook.room"]


def test_a_module_that_is_loaded_already_is_not_loaded_again(package):
    finder = ModuleFinder()
    finder.preload("room", "room.first")
    first = sys.modules["tailhook.room.first"]
    first.WORD = "changed"
    finder.preload("room", "room.first", "room.second")
    assert sys.modules["tailhook.room.first"] is first
    assert sys.modules["tailhook.room.second"].WORDS == ["changed", "two"]


def test_a_module_that_fails_is_not_left_behind(package):
    path = package / "second.py"
    path.write_text("1 / 0\n")
    py_compile.compile(str(path))
    with pytest.raises(ZeroDivisionError):
        ModuleFinder().preload("room", "room.second")
    assert "tailhook.room.second" not in sys.modules
    assert not hasattr(sys.modules["tailhook.room"], "second")


def test_modules_are_loaded_ahead_only_if_a_finder_is_there(package, monkeypatch):
    preload("room", "room.first")
    assert "tailhook.room" not in sys.modules
    monkeypatch.setattr(sys, "meta_path", [ModuleFinder(), *sys.meta_path])
    preload("room", "room.first")
    assert "tailhook.room.first" in sys.modules


@pytest.mark.parametrize(
    ("name", "is_enabled"), [("tailhook/hook/entry.py", False), ("hook/entry.py", True), ("tailhook/program.py", True)]
)
def test_only_a_cold_hooks_process_goes_without_looks_for_cycles(tmp_path, name, is_enabled):
    """It is known by its file, before the core has made as many objects as start a look."""
    program = tmp_path / name
    program.parent.mkdir(parents=True)
    package = str(Path(tailhook.__file__).parents[1])
    lines = ["import gc, sys", f"sys.path.insert(0, {package!r})", "import tailhook._core", "print(gc.isenabled())"]
    program.write_text("\n".join(lines))
    done = subprocess.run([sys.executable, "-I", program], capture_output=True, text=True, check=True)
    assert done.stdout == f"{is_enabled}\n"
