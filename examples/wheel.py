"""Tries an installed wheel in an empty home: a hook answers cold and warm, and the pool can be stopped.

usage: python examples/wheel.py
"""

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

TIMEOUT_S = 30.0
SHORT_FOLDER = "/tmp" if sys.platform == "darwin" else None
PAYLOAD = {"hook_event_name": "Stop", "session_id": "s", "last_assistant_message": "Hm."}
LOOP = "---\nactive: true\nmode: loop\niteration: 1\nmax_iterations: 1000\n---\n\nTry the hook.\n"


def main() -> None:
    """Run a cold hook, then warm ones until a worker answers one. If no worker answers, exit with a message."""
    with tempfile.TemporaryDirectory(prefix="tailhook-", dir=SHORT_FOLDER) as folder:
        project = Path(folder, "project")
        (project / ".git").mkdir(parents=True)
        (project / ".claude").mkdir()
        (project / ".claude" / "idle-loop.local.md").write_text(LOOP, encoding="utf-8")
        environment = {**os.environ, "HOME": folder, "XDG_RUNTIME_DIR": "", "XDG_STATE_HOME": ""}

        def tailhook(*words: str) -> str:
            argv = [Path(sysconfig.get_path("scripts"), "tailhook"), *words]
            return subprocess.run(argv, cwd=project, env=environment, check=True, capture_output=True, text=True).stdout

        def run_hook(argv: list[str]) -> None:
            payload = json.dumps(PAYLOAD).encode()
            done = subprocess.run(argv, cwd=project, env=environment, input=payload, capture_output=True, check=False)
            if done.returncode != 2 or b'"block"' not in done.stdout:
                sys.exit(f"the hook did not block: exit code {done.returncode}, {done.stderr!r}")

        run_hook(json.loads(tailhook("hook-command", "--cold", "idle")))
        argv = json.loads(tailhook("hook-command", "--warm", "idle"))
        deadline = time.monotonic() + TIMEOUT_S
        try:
            while b"w" not in last_ways(Path(argv[0]).parent / "times" / "Stop"):
                run_hook(argv)
                if time.monotonic() > deadline:
                    sys.exit(f"no worker answered: {tailhook('pool', 'status')}")
        finally:
            sys.stdout.write(tailhook("pool", "status"))
            sys.stdout.write(tailhook("pool", "stop"))


def last_ways(times: Path) -> bytes:
    """Return the way of each of the last hooks, warm or cold, from `tailhook.stores.hook_times`."""
    return times.read_bytes()[15::16] if times.exists() else b""


if __name__ == "__main__":
    main()
