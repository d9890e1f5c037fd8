"""The one thing pyproject.toml cannot say: how the compiled core is built.

Three switches, each an environment variable set to 1:
TAILHOOK_DEBUG (no optimisation, symbols kept), TAILHOOK_SANITIZE (AddressSanitizer and
UndefinedBehaviorSanitizer), TAILHOOK_COVERAGE (line coverage of the .pyx sources).
"""

import os
import subprocess
import sys

from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("TAILHOOK_DEBUG") == "1"
SANITIZE = os.environ.get("TAILHOOK_SANITIZE") == "1"
COVERAGE = os.environ.get("TAILHOOK_COVERAGE") == "1"

compile_args = ["-std=c11", "-fvisibility=hidden", "-Wall", "-Wextra"]
link_args = []
macros = [("CYTHON_CLINE_IN_TRACEBACK", "0")]

if SANITIZE:
    sanitizers = "-fsanitize=address,undefined"
    compile_args += ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-sanitize-recover=undefined", sanitizers]
    link_args += [sanitizers]
elif DEBUG:
    compile_args += ["-O0", "-g"]
else:
    # What the hook pays at every start is the size of the mapped core: no symbols, no dead sections.
    compile_args += ["-O3", "-g0", "-ffunction-sections"]
    if sys.platform == "linux":
        link_args += ["-Wl,--gc-sections", "-Wl,-s", "-Wl,-z,norelro"]
if COVERAGE:
    macros += [("CYTHON_TRACE_NOGIL", "1")]

# The pattern sets of the core itself, compiled anew when they change.
TABLES = os.path.join("build", "tables.h")
subprocess.run([sys.executable, os.path.join("ext", "tables.py"), TABLES], check=True)  # noqa: S603

core = Extension(
    "tailhook._core",
    sources=["ext/_core.pyx"],
    include_dirs=["ext", "build"],
    depends=[
        TABLES,
        *(os.path.join("ext", name) for name in sorted(os.listdir("ext")) if name.endswith((".pxi", ".pxd", ".h"))),
    ],
    define_macros=macros,
    extra_compile_args=compile_args,
    extra_link_args=link_args,
)

setup(
    ext_modules=cythonize(
        [core],
        build_dir="build",
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "binding": False,
            "embedsignature": False,
            "linetrace": COVERAGE,
        },
    )
)
