"""Builds the compiled core, which pyproject.toml cannot describe.

Three switches, each an environment variable set to 1:
TAILHOOK_DEBUG (no optimisation, symbols kept), TAILHOOK_SANITIZE (AddressSanitizer and
UndefinedBehaviorSanitizer; set to "thread": ThreadSanitizer), TAILHOOK_COVERAGE (gcov counters, with the lines of the
.pyx sources).
"""

import os
import subprocess
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

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

# The pattern sets of the core itself, compiled again when they change.
TABLES = BUILD / "tables.h"
subprocess.run([sys.executable, "ext/tables.py", TABLES], check=True)  # noqa: S603

core = Extension(
    "tailhook._core",
    sources=["ext/_core.pyx"],
    include_dirs=["ext", str(BUILD)],
    depends=[
        str(TABLES),
        *(str(path) for path in sorted(Path("ext").rglob("*")) if path.suffix in {".pyx", ".pxi", ".h"}),
    ],
    define_macros=macros,
    extra_compile_args=compile_args,
    extra_link_args=link_args,
)

setup(
    options={"build": {"build_base": str(BUILD)}},
    ext_modules=cythonize(
        [core],
        build_dir=str(BUILD),
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
