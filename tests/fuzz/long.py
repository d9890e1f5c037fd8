"""Fuzz each target, or only the named ones, for FUZZ_SECONDS (60).

With atheris, the coverage of the Python modules guides the inputs. So does the coverage of the core, if clang built it
with libFuzzer's counters and AddressSanitizer. Without atheris, our own mutator runs. New and failing inputs are
written to build/fuzz. To repeat a failure, give its file to the target: `long.py --file TARGET FILE`.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

SECONDS = int(os.environ.get("FUZZ_SECONDS", "60"))
FOUND = Path("build") / "fuzz"


def main() -> int:
    """Run each target in a process of its own; return 1 if one failed."""
    if sys.argv[1:2] == ["--one"]:
        return guided(sys.argv[2])
    from fuzz.targets import TARGETS

    if sys.argv[1:2] == ["--file"]:
        TARGETS[sys.argv[2]](Path(sys.argv[3]).read_bytes())
        return 0
    failed = []
    for name in sys.argv[1:] or TARGETS:
        done = subprocess.run([sys.executable, __file__, "--one", name], check=False)
        if done.returncode:
            failed.append(name)
    for script in (["markdown_long.py", "--documents", "200000"], ["keywords_long.py", "--lines", "200000"]):
        if (
            len(sys.argv) == 1
            and subprocess.run([sys.executable, Path(__file__).with_name(script[0]), *script[1:]]).returncode
        ):
            failed.append(script[0])
    sys.stdout.write(f"fuzz: {'failed: ' + ', '.join(failed) if failed else 'nothing failed'}\n")
    return 1 if failed else 0


def guided(name: str) -> int:
    """Run one target under atheris, or with random changes if atheris is not installed."""
    folder = FOUND / name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        import atheris
    except ImportError:
        return mutating(name, folder)
    with atheris.instrument_imports(include=["tailhook"]):
        from fuzz.inputs import CORPUS
        from fuzz.targets import TARGETS
    sys.stdout.write(f"fuzz: {name}, guided by coverage, {SECONDS} s\n")
    sys.stdout.flush()
    arguments = [
        sys.argv[0],
        f"-max_total_time={SECONDS}",
        "-max_len=20000",
        "-print_final_stats=1",
        f"-artifact_prefix={folder}/failed-",
        str(folder),
        str(CORPUS / name),
    ]
    atheris.Setup(arguments, TARGETS[name])
    atheris.Fuzz()
    return 0


def mutating(name: str, folder: Path) -> int:
    """Run one target with random changes of its seeds."""
    from fuzz.inputs import mutated, seeds
    from fuzz.targets import TARGETS

    inputs, chance, deadline, done = seeds(name), Random(time.time_ns()), time.monotonic() + SECONDS, 0
    while time.monotonic() < deadline:
        data = mutated(chance, inputs)
        try:
            TARGETS[name](data)
        except Exception:
            path = folder / f"failed-{time.time_ns()}"
            path.write_bytes(data)
            sys.stdout.write(f"fuzz: {name} failed on {path}\n")
            raise
        done += 1
    sys.stdout.write(f"fuzz: {name}, not guided, {done:,} inputs in {SECONDS} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
