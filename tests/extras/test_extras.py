"""The wheel with each extra, alone in an environment of its own: it answers a question. Run by `make extras`."""

import json
import os
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import pytest
from support.library_sample import write_sample
from support.range_server import bucket

import tailhook

pytestmark = pytest.mark.extras
PROJECT = Path(__file__).parents[2]
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
    """Return the oldest and the newest interpreter at hand: a wheel for each takes too long."""
    listed = subprocess.run([PROJECT / ".ci" / "interpreters"], check=True, capture_output=True, text=True)
    found = listed.stdout.split() or [sys.executable]
    return list(dict.fromkeys([found[0], found[-1]]))


@pytest.fixture(scope="module")
def wheel_for(tmp_path_factory):
    """Build the wheel for an interpreter, once, and return its path."""

    @cache
    def build(python):
        place = tmp_path_factory.mktemp("wheel")
        subprocess.run([python, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", place, PROJECT], check=True)
        return next(place.glob("*.whl"))

    return build


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


@pytest.mark.parametrize("python", interpreters())
def test_the_wheel_alone_gives_a_warm_hook(installed, wheel_for, python, tmp_path):
    with zipfile.ZipFile(wheel_for(python)) as archive:
        client = archive.getinfo("tailhook/pool/tailhook-hook")
    assert client.external_attr >> 16 & 0o111 == 0o111
    assert client.file_size < 1 << 20
    programs = installed("", python)
    done = run([programs / "python", PROJECT / "examples" / "wheel.py"], tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "The pool was stopped" in done.stdout


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


def test_the_source_distribution_builds_the_client(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "build"], check=True)
    subprocess.run([python, "-m", "build", "--sdist", "--outdir", tmp_path, PROJECT], check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    subprocess.run([python, "-m", "pip", "install", "--quiet", archive], check=True)
    done = run([python, PROJECT / "examples" / "wheel.py"], tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr


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
