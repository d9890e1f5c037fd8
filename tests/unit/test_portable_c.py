"""What the core has in place of the C library's own where that lacks it: compiled and compared on any platform."""

import ctypes
import shutil
import subprocess
import sysconfig
from pathlib import Path
from random import Random

import pytest

EXT = Path(__file__).parents[2] / "ext"
SOURCE = """
#include "os/file.h"

long last_newline(const unsigned char *data, size_t size) {
    const unsigned char *found = tailhook_last_newline(data, size);
    return found ? (long)(found - data) : -1;
}
"""


@pytest.fixture(scope="module")
def last_newline(tmp_path_factory):
    """The last newline of bytes, -1 for none, by the code for C libraries without memrchr."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    compiler = compiler if shutil.which(compiler) else "cc"
    folder = tmp_path_factory.mktemp("portable")
    (folder / "portable.c").write_text(SOURCE)
    command = [
        compiler,
        "-std=gnu11",
        "-O2",
        "-Wall",
        "-Werror",
        "-Wno-unused-function",
        "-DTAILHOOK_PORTABLE",
        f"-I{EXT}",
    ]
    subprocess.run([*command, "-shared", "-fPIC", "-o", folder / "portable.so", folder / "portable.c"], check=True)
    function = ctypes.CDLL(str(folder / "portable.so")).last_newline
    function.restype = ctypes.c_long
    return lambda data: function(data, ctypes.c_size_t(len(data)))


def test_the_last_newline_is_found_in_blocks_of_every_size(last_newline):
    for size in range(1600):
        assert last_newline(b"x" * size) == -1
        for at in {0, size // 2, size - 513, size - 512, size - 511, size - 1}:
            if 0 <= at < size:
                assert last_newline(b"x" * at + b"\n" + b"x" * (size - at - 1)) == at


def test_the_last_of_many_newlines_is_found(last_newline):
    chance = Random(20261121)
    for _ in range(2000):
        data = bytes(chance.choice(b"abc\n") for _ in range(chance.randrange(2000)))
        assert last_newline(data) == data.rfind(b"\n")
