"""The C of the core and of the client, compiled by itself: code for other platforms, tables of bytes, warnings."""

import ctypes
import shutil
import subprocess
import sysconfig
from pathlib import Path
from random import Random

import pytest
from markdown_it import MarkdownIt

EXT = Path(__file__).parents[2] / "ext"
SOURCE = """
#include "json/strings.h"
#include "os/file.h"
#include "markdown/markdown.h"

long last_newline(const unsigned char *data, size_t size) {
    const unsigned char *found = tailhook_last_newline(data, size);
    return found ? (long)(found - data) : -1;
}

/* line_ends, specials: a bit for each of 64 bytes. */
void mark_64(const char *bytes, int portable, uint64_t *marks) {
    if (portable)
        tailhook_mark_blocks_portable(bytes, 1, marks);
    else
        tailhook_mark_blocks(bytes, 1, marks);
}

/* Return where a JSON string needs a look: by 0 for blocks of 32 bytes twice, 1 for blocks of 64. -1: not here. */
long string_stop(const unsigned char *data, size_t size, int is_wide) {
#if TAILHOOK_X86
    if (is_wide ? tailhook_has_avx512() : tailhook_has_avx2())
        return (long)((is_wide ? tailhook_string_avx512 : tailhook_string_avx2)(data, data + size) - data);
#endif
    (void)data, (void)size, (void)is_wide;
    return -1;
}

int is_line_end(int byte) { return tailhook_is_line_end((unsigned char)byte); }
int is_special(int byte) { return tailhook_is_special((unsigned char)byte); }
int may_start_block(int byte) { return tailhook_may_start_block((unsigned char)byte); }
"""


def compiler():
    """Return the compiler of this interpreter if it is there, otherwise the system's."""
    name = (sysconfig.get_config_var("CC") or "cc").split()[0]
    return name if shutil.which(name) else "cc"


def compiled(folder, *options):
    """Compile the source above with the options and load it."""
    (folder / "portable.c").write_text(SOURCE)
    command = [
        compiler(),
        "-std=gnu11",
        "-O2",
        "-Wall",
        "-Werror",
        "-Wno-unused-function",
        *options,
        "-D_GNU_SOURCE",
        f"-I{EXT}",
    ]
    subprocess.run([*command, "-shared", "-fPIC", "-o", folder / "core.so", folder / "portable.c"], check=True)
    library = ctypes.CDLL(str(folder / "core.so"))
    library.last_newline.restype = library.string_stop.restype = ctypes.c_long
    return library


@pytest.fixture(scope="module")
def portable(tmp_path_factory):
    """Return the code for processors without vector instructions and C libraries without memrchr."""
    return compiled(tmp_path_factory.mktemp("portable"), "-DTAILHOOK_PORTABLE")


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """Return the code for this computer."""
    return compiled(tmp_path_factory.mktemp("native"))


@pytest.fixture(scope="module")
def last_newline(portable):
    """Return the last newline of bytes, or -1, by the code for C libraries without memrchr."""
    return lambda data: portable.last_newline(data, ctypes.c_size_t(len(data)))


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


def test_markdown_bytes_are_marked_alike_on_every_processor(native, portable):
    marks = (ctypes.c_uint64 * 2)()
    chance = Random(20261122)
    blocks = [bytes([byte]) * 64 for byte in range(256)]
    blocks += [bytes(chance.choices(range(256), k=64)) for _ in range(500)]
    blocks += [bytes(chance.choices(b"\n\r`<[\\];\x0b\x1c \xdc\xe0", k=64)) for _ in range(500)]
    for block in blocks:
        line_ends = sum(1 << at for at, byte in enumerate(block) if byte in b"\n\r")
        specials = sum(1 << at for at, byte in enumerate(block) if byte in b"`<[\\]")
        for library, is_portable in ((native, False), (native, True), (portable, True)):
            library.mark_64(block, is_portable, marks)
            assert tuple(marks) == (line_ends, specials), block


@pytest.mark.parametrize("is_wide", [False, True])
def test_strings_are_skipped_alike_on_every_processor(native, is_wide):
    if native.string_stop(b"", ctypes.c_size_t(0), is_wide) < 0:
        pytest.skip("this processor has no such instructions")
    chance = Random(20261123)
    alphabets = (b"ab n", b"abcd\\n", b'\\\\"n', b'ab\\"/bfnrtu \x1f\x00\x7f\xc3\xa9', bytes(range(256)))
    for number in range(20_000):
        data = bytes(chance.choices(alphabets[number % 5], k=chance.randrange(300)))
        found = native.string_stop(data, ctypes.c_size_t(len(data)), is_wide)
        assert found == plain_string_stop(data), data


def plain_string_stop(data):
    """Return where a JSON string needs a look, found byte by byte; at most the end of the last whole block."""
    blocks_end = len(data) // 64 * 64
    at = 0
    while at < blocks_end:
        if data[at] == 0x5C and (at + 1 == blocks_end or data[at + 1] in b'"\\/bfnrt'):
            if at + 1 == blocks_end:
                return at
            at += 2
        elif data[at] in b'"\\' or data[at] < 0x20:
            return at
        else:
            at += 1
    return at


def test_bytes_are_recognised_one_by_one_as_they_are_in_blocks(native):
    assert bytes(filter(native.is_line_end, range(256))) == b"\n\r"
    assert bytes(filter(native.is_special, range(256))) == b"<[\\]`"


def test_the_bytes_that_may_start_a_block_are_those_of_the_reference_parser(native):
    markdown = MarkdownIt("commonmark")

    def starts_block(byte):
        letter = chr(byte)
        lines = (letter, letter * 3, f"{letter} x", f"{letter}. x", f"{letter}div>")
        return any(
            [token.type for token in markdown.parse(before + line) if token.level == 0]
            != ["paragraph_open", "paragraph_close"]
            for line in lines
            for before in ("", "text\n")
        )

    blank = b"\t\n\r "
    for byte in set(range(1, 128)) - set(blank):
        assert native.may_start_block(byte) == starts_block(byte), chr(byte)
    assert all(map(native.may_start_block, blank))
    assert not any(map(native.may_start_block, range(128, 256)))


def test_the_client_compiles_without_a_warning():
    options = ("pedantic", "all", "extra", "conversion", "sign-conversion", "shadow", "error")
    words = [compiler(), "-std=c11", *(f"-W{option}" for option in options), "-fsyntax-only", f"-I{EXT}"]
    done = subprocess.run([*words, EXT / "client.c"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
