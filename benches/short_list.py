"""How long a status bar waits for `tailhook plates list --waiting --short`, beside bare Python.

usage: short_list.py [ROUNDS]        exits 1 if the goal is missed
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.daemon import daemon_in

SIZES = (30, 1000)  # sessions
GOAL_MS = 150  # without the pool


def fill(daemon, count):
    """Let so many sessions be there; each tenth one waits."""
    asked = {"tool_name": "Bash", "tool_params": {"command": "make test"}}
    for number in range(count):
        kind, fields = ("permission_asked", asked) if number % 10 == 0 else ("prompt_submit", {})
        daemon.post(kind, f"s{number}", project_path=f"/p/project-{number}", **fields)


def time_once(argv, daemon):
    """Return the milliseconds that a command takes."""
    begun = time.perf_counter()
    subprocess.run(argv, env=daemon.env, cwd=daemon.home, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - begun) * 1000


def main():
    """Print the medians for each number of sessions, measured in turn."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    bare = [sys.executable, "-I", "-S", "-c", "pass"]
    line = [str(Path(sys.executable).with_name("tailhook")), "plates", "list", "--waiting", "--short"]
    is_met = True
    for count in SIZES:
        with tempfile.TemporaryDirectory() as folder, daemon_in(Path(folder)) as daemon:
            fill(daemon.start(), count)
            pairs = [(time_once(bare, daemon), time_once(line, daemon)) for _ in range(rounds)]
        first, second = (statistics.median(times) for times in zip(*pairs, strict=True))
        print(f"{count:5} sessions: {second:.1f} ms, {second / first:.2f} x bare Python ({first:.1f} ms)")
        is_met = is_met and second <= GOAL_MS
    sys.exit(0 if is_met else 1)


if __name__ == "__main__":
    main()
