"""Builds the compiled core and the native client, which pyproject.toml cannot describe.

Three switches, each an environment variable set to 1:
TAILHOOK_DEBUG (no optimisation, symbols kept), TAILHOOK_SANITIZE (AddressSanitizer and
UndefinedBehaviorSanitizer; set to "thread": ThreadSanitizer), TAILHOOK_COVERAGE (gcov counters, with the lines of the
.pyx sources).
"""

import gzip
import os
import subprocess
import sys
import tarfile
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist
from setuptools.errors import CompileError, LinkError

DEBUG = os.environ.get("TAILHOOK_DEBUG") == "1"
SANITIZERS = {"1": "address,undefined", "thread": "thread"}.get(os.environ.get("TAILHOOK_SANITIZE", ""))
COVERAGE = os.environ.get("TAILHOOK_COVERAGE") == "1"

# Each kind of build has a folder of its own, so that objects never mix.
KIND = "coverage" if COVERAGE else "debug" if DEBUG else "release"
BUILD = Path("build", f"sanitize-{SANITIZERS}" if SANITIZERS else KIND)

compile_args = ["-std=c11", "-fvisibility=hidden", "-Wall", "-Wextra"]
link_args = []
macros = [("CYTHON_CLINE_IN_TRACEBACK", "0")]
if sys.version_info >= (3, 12):
    # What interpreters with a lock of their own need: nothing shared between them.
    macros += [("CYTHON_USE_MODULE_STATE", "1"), ("CYTHON_USE_TYPE_SPECS", "1")]

if SANITIZERS:
    sanitizers = f"-fsanitize={SANITIZERS}"
    compile_args += ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-sanitize-recover=undefined", sanitizers]
    link_args += [sanitizers]
elif COVERAGE:
    compile_args += ["-O0", "--coverage"]
    link_args += ["--coverage"]
elif DEBUG:
    compile_args += ["-O0", "-g"]
else:
    # What the hook pays at every start is the size of the mapped core: no symbols, no dead sections.
    compile_args += ["-O3", "-g0", "-ffunction-sections"]
    if sys.platform == "linux":
        link_args += ["-Wl,--gc-sections", "-Wl,-s", "-Wl,-z,norelro"]

# The pattern sets of the core itself and the columns of a scan. The core is compiled again when they change.
MADE = [BUILD / "tables.h", BUILD / "scan_columns.pxi"]
subprocess.run([sys.executable, "ext/tables.py", BUILD], check=True)  # noqa: S603

core = Extension(
    "tailhook._core",
    sources=["ext/_core.pyx"],
    include_dirs=["ext", str(BUILD)],
    depends=[
        *map(str, MADE),
        *(str(path) for path in sorted(Path("ext").rglob("*")) if path.suffix in {".pyx", ".pxi", ".h"}),
    ],
    define_macros=macros,
    extra_compile_args=compile_args,
    extra_link_args=link_args,
)

CLIENT = Path("tailhook", "pool", "tailhook-hook")


class BuildCoreAndClient(build_ext):
    """Builds the extension module, and then the client: a program of its own, which the package brings along."""

    def run(self):
        super().run()
        folder = Path("src") if self.inplace else Path(self.build_lib)
        try:
            self.build_client(folder / CLIENT)
        except (CompileError, LinkError) as error:
            self.announce(f"tailhook: the native client could not be built, so hooks start Python: {error}", 3)

    def build_client(self, target):
        flags = ["-std=c11", "-Wall", "-Wextra"]
        flags += ["-g", "-O1", f"-fsanitize={SANITIZERS}"] if SANITIZERS else ["-g0", "-O2"]
        objects = self.compiler.compile(
            ["ext/client.c"], output_dir=self.build_temp, include_dirs=["ext"], extra_postargs=flags
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        # A static program starts in three quarters of the time, as there is no library to look up and to map.
        kinds = [link_args]
        if sys.platform == "linux" and not SANITIZERS:
            kinds = [["-static", "-s"], ["-s"]]
        elif sys.platform == "darwin" and not SANITIZERS:
            # As `strip -x`, but done by the linker, which signs the program afterwards: arm64 runs none without that.
            kinds = [["-Wl,-x"]]
        for kind in kinds:
            try:
                self.compiler.link_executable(objects, str(target), extra_postargs=kind)
                break
            except LinkError:
                if kind is kinds[-1]:
                    raise
        target.chmod(0o755)


class ReproducibleSdist(sdist):
    """Makes the source distribution. With SOURCE_DATE_EPOCH, two of the same commit are equal."""

    def make_archive(self, base_name, kind, *places, base_dir=None, **owners):
        """Write the archive and return its path. With SOURCE_DATE_EPOCH, all files have that time and no owner."""
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if epoch is None or kind != "gztar":
            return super().make_archive(base_name, kind, *places, base_dir=base_dir, **owners)

        def anonymous(entry):
            entry.mtime = int(epoch)
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            return entry

        path = f"{base_name}.tar.gz"
        with (
            Path(path).open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=int(epoch)) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            archive.add(base_dir, filter=anonymous)
        return path


setup(
    cmdclass={"build_ext": BuildCoreAndClient, "sdist": ReproducibleSdist},
    options={"build": {"build_base": str(BUILD)}},
    ext_modules=cythonize(
        [core],
        build_dir=str(BUILD),
        include_path=[str(BUILD)],
        emit_linenums=COVERAGE,
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "binding": False,
            "embedsignature": False,
        },
    ),
)
