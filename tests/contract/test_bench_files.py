"""The files of `tailhook bench -o` and `--save`."""

import json
import os
import stat
import subprocess

import pytest
from support.bench_runs import TRUE
from support.host import SANITIZER, Started
from support.pool import STARTS

pytestmark = pytest.mark.skipif(bool(SANITIZER), reason="the command starts hooks without a sanitizer's runtime")


@pytest.fixture(params=["-o", "--save"])
def write_to(bench, request):
    """Measure /bin/true and write the figures to a path; returns the finished process."""
    return lambda path, *words: bench(*TRUE, request.param, str(path), *words)


@pytest.fixture
def full_device(tmp_path):
    """Make a device like /dev/full. If the code is wrong, the system's own one must not be replaced."""
    path = tmp_path / "full"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        path.open("wb").close()
    except OSError as error:
        pytest.skip(f"a device cannot be made or opened here: {error}")
    return path


def test_a_pipe_gets_the_figures_and_stays_a_pipe(write_to, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with Started(["timeout", str(STARTS), "cat", pipe], stdout=subprocess.PIPE) as reader:
        code = write_to(pipe).returncode
        assert "Stop" in reader.communicate()[0].decode()
    assert (code, pipe.is_fifo()) == (0, True)


def test_a_device_stays_a_device_and_the_figures_that_it_does_not_take_are_printed(write_to, full_device):
    done = write_to(full_device)
    assert (done.returncode, full_device.is_char_device()) == (1, True)
    assert "Stop" in done.stdout
    assert f"{full_device}: No space left on device" in done.stderr


def test_a_link_leads_to_the_file_that_is_written(write_to, tmp_path):
    (tmp_path / "folder").mkdir()
    link, target = tmp_path / "link", tmp_path / "folder" / "target"
    link.symlink_to("folder/target")
    for _ in range(2):  # the second time it exists
        assert write_to(link).returncode == 0
        assert link.is_symlink()
        assert "Stop" in target.read_text()
        target.write_text("")
    assert os.listdir(target.parent) == ["target"]


def test_a_new_file_has_the_mode_of_the_umask_and_an_old_one_keeps_its_own(write_to, tmp_path):
    path = tmp_path / "file"
    former = os.umask(0o027)
    try:
        assert write_to(path).returncode == 0
        assert path.stat().st_mode & 0o777 == 0o640
        path.chmod(0o604)
        assert write_to(path).returncode == 0
    finally:
        os.umask(former)
    assert path.stat().st_mode & 0o777 == 0o604


@pytest.mark.parametrize(
    ("path", "reason"), [("missing/file", "missing: No such file"), (".", "Is a directory"), ("x" * 300, "too long")]
)
def test_a_path_that_cannot_be_written_is_found_before_anything_is_measured(write_to, tmp_path, path, reason):
    seen = tmp_path / "seen"
    done = write_to(tmp_path / path, "--hook", f"echo >>{seen}")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert reason in done.stderr
    assert not seen.exists()


def test_figures_that_cannot_be_written_at_last_are_printed(write_to, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    done = write_to(folder / "file", "--hook", f"rm -rf {folder}", "--max-ms", "0.0001")
    assert done.returncode == 1
    assert "Stop" in done.stdout
    assert f"{folder}/file: No such file or directory" in done.stderr
    assert "the limit is 0.0001" in done.stderr


def test_the_figures_to_keep_are_printed_if_they_cannot_be_kept(bench, tmp_path, full_device):
    done = bench(*TRUE, "-o", str(tmp_path / "report"), "--save", str(full_device))
    assert (done.returncode, json.loads(done.stdout)["schema"]) == (1, 1)
    assert "Stop" in (tmp_path / "report").read_text()
