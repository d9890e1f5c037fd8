"""The wheel for each interpreter, and with each extra, in an environment of its own; the rules for secrets.

Run by `make extras`: these tests ask the package index.
"""

import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from support.library_sample import write_sample
from support.range_server import bucket

import tailhook

pytestmark = pytest.mark.extras
PROJECT = Path(__file__).parents[2]
NOT_IN_A_CLONE = shutil.ignore_patterns(".git", ".venv*", "__pycache__", "build", "*.egg-info", "*.so")
QUESTION = "tailhook.scan({sources!r}, 'usage')"
ENGINES = {
    "scan": "import pyarrow; rows = pyarrow.table({question}).to_pylist()",
    "s3": "rows = [row._asdict() for row in {question}.rows()]",
    "daft": "rows = {question}.to_daft().to_pylist()",
    "ray": (
        "import ray; ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False);"
        "rows = {question}.to_ray().take_all()"
    ),
}


def run(words, folder, **options):
    """Run a program without this one's modules. Its outputs are text."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(words, cwd=folder, env=env, text=True, check=False, **options)


def interpreters():
    """Return the interpreters at hand, one for each version, and this one for its own version."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    listed = subprocess.run([PROJECT / ".ci" / "interpreters", own], check=True, capture_output=True, text=True)
    return [*listed.stdout.split(), sys.executable]


PYTHONS = interpreters()


@pytest.fixture(scope="session")
def wheel_for(tmp_path_factory, worker_id):
    """Build the wheel for an interpreter, and return its path. All workers of this run share it.

    The wheel for this interpreter is built from the source distribution, those for the others from the clone. Each
    build has a copy of the clone, because it writes into its working folder.
    """
    own_folder = tmp_path_factory.getbasetemp()
    shared_folder = own_folder if worker_id == "master" else own_folder.parent

    def build(python):
        place = shared_folder / f"wheel-{PYTHONS.index(python)}"
        place.mkdir(exist_ok=True)
        with open(place / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not list(place.glob("*.whl")):
                clone = shutil.copytree(PROJECT, tmp_path_factory.mktemp("clone") / "tailhook", ignore=NOT_IN_A_CLONE)
                words = ["pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", place, clone]
                if python == sys.executable:
                    words = ["build", "--outdir", place, clone]
                subprocess.run([python, "-m", *words], check=True)
        (wheel,) = place.glob("*.whl")
        return wheel

    return build


def files_of_git():
    """Return what git lists. Without a clone there is nothing to compare."""
    listed = subprocess.run(["git", "ls-files"], cwd=PROJECT, check=False, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not in a clone")
    return listed.stdout.split()


def test_the_source_distribution_has_all_files_of_the_project_and_is_the_same_each_time(tmp_path):
    archives = []
    for number in range(2):
        clone = tmp_path / f"{number}" / "tailhook"
        for name in files_of_git():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(PROJECT / name, clone / name)  # with another time
        words = [sys.executable, "-m", "build", "--sdist", "--outdir", clone.parent, clone]
        subprocess.run(words, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "1764028800"})
        archives += clone.parent.glob("*.tar.gz")
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with tarfile.open(archives[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert [name for name in files_of_git() if name not in names] == []


def test_a_wheel_has_the_licenses_of_all_that_is_in_it(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (archive.read(name).decode() for name in names if name.endswith(".dist-info/METADATA"))
    assert "License-Expression: MIT AND LGPL-2.1-or-later\n" in metadata
    found = {name.partition(".dist-info/licenses/")[2] for name in names if ".dist-info/licenses/" in name}
    assert found == {"LICENSE", "licenses/LGPL-2.1.txt", "licenses/NOTICE.md"}


@pytest.fixture
def wheel(wheel_for):
    """Return the path of the wheel for this interpreter."""
    return wheel_for(sys.executable)


@pytest.fixture
def installed(tmp_path, wheel_for):
    """Install the wheel in a new environment, and return the folder of its programs.  extra: as in "[scan]"."""

    def install(extra, python=sys.executable):
        wheel = wheel_for(python)
        subprocess.run([python, "-m", "venv", tmp_path / "env"], check=True)
        programs = tmp_path / "env" / "bin"
        subprocess.run([programs / "python", "-m", "pip", "install", "--quiet", f"{wheel}{extra}"], check=True)
        return programs

    return install


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "transcripts"
    found.mkdir()
    write_sample(found)
    return found


SYMBOLS, INTERPRETER = 2, 3  # SHT_SYMTAB and PT_INTERP (elf(5)): a static program needs no interpreter


def elf_types(program):
    """Return the types of the segments and of the sections of a program for 64 bits."""
    assert program[:5] == b"\x7fELF\x02"
    order = "<" if program[5] == 1 else ">"
    starts = struct.unpack_from(f"{order}2Q", program, 32)
    sizes = struct.unpack_from(f"{order}4H", program, 54)  # of a segment, how many; of a section, how many

    def types(start, size, count, at):
        return [struct.unpack_from(f"{order}I", program, start + size * number + at)[0] for number in range(count)]

    return types(starts[0], *sizes[:2], 0), types(starts[1], *sizes[2:], 4)


@pytest.mark.parametrize("python", PYTHONS)
def test_the_wheel_alone_gives_a_cold_and_a_warm_hook(installed, wheel_for, python, tmp_path):
    with zipfile.ZipFile(wheel_for(python)) as archive:
        client = archive.getinfo("tailhook/pool/tailhook-hook")
        program = archive.read(client)
    assert client.external_attr >> 16 & 0o111 == 0o111
    assert client.file_size < 1 << 20
    if sys.platform == "linux":
        segments, sections = elf_types(program)
        assert SYMBOLS not in sections, "it is not stripped"
        is_static = INTERPRETER not in segments
        assert is_static or client.file_size < 100_000
    programs = installed("", python)
    (client,) = tmp_path.glob("env/lib/python*/site-packages/tailhook/pool/tailhook-hook")
    assert os.access(client, os.X_OK)
    done = run([programs / "python", PROJECT / "examples" / "wheel.py"], tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "The pool was stopped" in done.stdout


def sorted_rows(rows):
    """Return rows, {column: value} each, as sorted texts."""
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)


@pytest.mark.parametrize("extra", ENGINES)
def test_an_extra_is_enough_for_what_it_is_for(extra, installed, folder, tmp_path):
    programs = installed(f"[{extra}]")
    wanted = sorted_rows(row._asdict() for row in tailhook.scan(folder, "usage").rows())
    assert len(wanted) == 5
    files = {path.name: path.read_bytes() for path in folder.rglob("*.jsonl")}
    with bucket(files):
        question = QUESTION.format(sources="s3://bucket" if extra == "s3" else str(folder))
        program = (
            f"import json, pathlib, tailhook; {ENGINES[extra].format(question=question)};"
            "pathlib.Path('rows').write_text(json.dumps(rows, default=str))"
        )
        asked = run([programs / "python", "-c", program], tmp_path, stderr=subprocess.PIPE)
    assert asked.returncode == 0, asked.stderr
    assert sorted_rows(json.loads((tmp_path / "rows").read_text())) == wanted
    if extra == "scan":
        for words in (["-o", "rows.parquet"], ["--resume", "kept"]):
            done = run([programs / "tailhook", "scan", folder, "--table", "usage", *words], tmp_path)
            assert done.returncode == 0
        assert (tmp_path / "rows.parquet").exists()
        assert (tmp_path / "kept" / "rows.parquet").exists()
        assert run([programs / "python", "-c", "import rich.progress"], tmp_path).returncode == 0


def test_installers_keep_the_permission_to_run_the_client(installed, wheel, tmp_path):
    python = installed("").joinpath("python")
    find = "import tailhook.pool.installation as one; print(one.built_client())"

    def client():
        return Path(run([python, "-c", find], tmp_path, stdout=subprocess.PIPE).stdout.strip())

    assert os.access(client(), os.X_OK)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "uv"], check=True)
    client().unlink()
    uv = [python, "-m", "uv", "pip", "install", "--quiet", "--python", python, "--reinstall", "--no-deps", "--no-index"]
    subprocess.run([*uv, wheel], check=True)
    assert os.access(client(), os.X_OK)


def test_without_an_extra_the_message_names_the_one_that_is_missing(installed, folder, tmp_path):
    programs = installed("")
    done = run([programs / "tailhook", "scan", folder, "--table", "usage"], tmp_path, stdout=subprocess.PIPE)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 5)
    for words, extra in (
        ([folder, "-o", "rows.parquet"], "scan"),
        ([folder, "-o", "rows.arrow"], "scan"),
        ([folder, "--resume", "kept"], "scan"),
        (["s3://bucket/transcripts"], "s3"),
        (["https://127.0.0.1/s.jsonl"], "s3"),
    ):
        done = run([programs / "tailhook", "scan", "--table", "usage", *words], tmp_path, stderr=subprocess.PIPE)
        assert (done.returncode, f"pip install 'tailhook[{extra}]'" in done.stderr) == (1, True), done.stderr
        assert "Traceback" not in done.stderr
    for extra in ("daft", "ray"):
        program = f"import tailhook; tailhook.scan({str(folder)!r}, 'usage').to_{extra}()"
        done = run([programs / "python", "-c", program], tmp_path, stderr=subprocess.PIPE)
        last = done.stderr.splitlines()[-1]
        assert last.startswith("tailhook.errors.MissingExtraError: ")
        assert last.endswith(f"pip install 'tailhook[{extra}]'")
    assert {path.name for path in tmp_path.iterdir()} == {"env", "transcripts"}


def test_the_rules_for_secrets_are_those_of_the_release_that_they_name():
    done = run([sys.executable, "ext/secret_rules.py", "--check"], PROJECT, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
