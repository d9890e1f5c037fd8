"""Run the end-to-end tests: the real agent hosts, fetched from npm into a cache outside the tree, without a model.

usage: run_hosts.py [PYTEST'S ARGUMENTS]

Fetches the versions that package.json names and runs the tests in a network namespace of their own. A host that cannot
be fetched or run here is skipped, with the reason.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailhook" / "hosts"
NAMESPACE = ["unshare", "--map-root-user", "--net"]


def host_path(name: str) -> Path:
    """Return the program of a host: "claude", "codex", "gemini", "copilot", "qwen" or "kimi". It may be missing."""
    return FOLDER / "node_modules" / ".bin" / name


def fetch() -> str:
    """Install the hosts with npm; return why that failed, or ""."""
    if shutil.which("npm") is None:
        return "there is no npm here"
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted, there = (HERE / "package.json").read_bytes(), FOLDER / "package.json"
    if there.exists() and there.read_bytes() == wanted and host_path("claude").exists():
        return ""
    there.write_bytes(wanted)
    try:
        npm("install", folder=FOLDER)
    except OSError as error:
        return str(error)
    return ""


def npm(*words: str, folder: Path) -> str:
    """Return what npm prints, run in a folder. Raises OSError if it fails."""
    argv = ["npm", *words, "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(done.stderr.strip().partition("\n")[0])
    return done.stdout.strip()


def namespace() -> list[str]:
    """Return the argv prefix that leaves a program only loopback, or []."""
    try:
        done = subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return []
    return [] if done.returncode else NAMESPACE


if __name__ == "__main__":
    if error := fetch():
        sys.stderr.write(f"the agent hosts cannot be installed: {error}\n")
    argv = [*namespace(), sys.executable, "-m", "pytest", str(HERE), *sys.argv[1:]]
    os.execvp(argv[0], argv)
