"""The daemon under the load of a large team: from a hook's clock to the board, and what a kill costs.

usage: plates_load.py [SECONDS] [--sessions N] [--rate N] [--kill]        plates_load.py --spool N
    2,000 sessions send 500 events a second in all, as their hooks do: one write into the spool, and a wake-up. A board
    listens; meanwhile real hooks are timed beside bare Python. --kill: the daemon is killed in the middle and started
    again. --spool: the spool has N events before the daemon starts, and the daemon is killed while it takes them. Exits
    1 if an event is lost or doubled, or a goal is missed.
"""

import argparse
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.daemon import daemon_in, spooled, wait_until

from tailhook._core import iso_time, send_wake_up
from tailhook.install.command import hook_command
from tailhook.pool.installation import real_interpreter
from tailhook.stores.processes import process_start

KINDS = ("prompt_submit", "tool_start", "tool_call", "tool_start", "tool_call", "stop")
MESSAGE = {"role": "assistant", "content": "word " * 150}
GOAL = 200  # milliseconds, p99 from a hook's clock to the board
RATIO = 1.35  # of a hook's time to bare Python's


class Board:
    """Listens to /stream and keeps the delay of each change; reconnects."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.lags = []
        self.leaving = False
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        """Read the stream; connect again if the daemon does not answer."""
        while not self.leaving:
            try:
                with self.daemon.client() as client, client.stream("GET", "/stream", timeout=5) as response:
                    self.ingest(response)
            except Exception:  # it was killed
                time.sleep(0.05)

    def ingest(self, response):
        """Keep the delay of each change; the plate's branch holds the time of its event."""
        for line in response.iter_lines():
            if line.startswith('data: {"session_id": "s'):  # not the real hooks' session
                made = float(json.loads(line[6:])["git_branch"])
                self.lags.append(time.time() * 1000 - made)


def send(daemon, sessions, rate, seconds):
    """Send events at that rate; return how many.  Every session has a transcript that goes on, and a process."""
    transcripts = daemon.home / "transcripts"
    transcripts.mkdir()
    pid, started = os.getpid(), process_start(os.getpid())
    fd = os.open(daemon.state / "events", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    path = str(daemon.runtime / "poke").encode()
    begun, count = time.monotonic(), 0
    while (elapsed := time.monotonic() - begun) < seconds:
        while count < elapsed * rate:
            now = time.time() * 1000
            event = {
                "event_id": f"e{count}",
                "event_type": KINDS[count // sessions % len(KINDS)],
                "ts": int(now),
                "mono": int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000),
                "session_id": f"s{count % sessions}",
                "project_path": f"/p{count % 40}",
                "git_branch": str(now),
                "tool_name": "Bash",
                "transcript_path": f"{transcripts}/{count % sessions}.jsonl",
                "pid": pid,
                "pid_started": started,
            }
            said = {"type": "assistant", "timestamp": iso_time(now / 1000), "message": MESSAGE}
            with open(event["transcript_path"], "a") as transcript:
                transcript.write(json.dumps(said) + "\n")
            os.write(fd, json.dumps(event, separators=(",", ":")).encode() + b"\n")
            send_wake_up(path)
            count += 1
        time.sleep(0.001)
    os.close(fd)
    return count


def time_hooks(daemon, folder, leaving, times):
    """Time real hooks and bare Python in turns."""
    payload = folder / "payload.json"
    payload.write_text(json.dumps({"session_id": "real", "cwd": str(folder), "hook_event_name": "Stop"}))
    commands = {"bare": [real_interpreter(), "-I", "-S", "-c", "pass"], "hook": hook_command("plates")}
    while not leaving.is_set():
        for name, argv in commands.items():
            actions = [(os.POSIX_SPAWN_OPEN, 0, str(payload), os.O_RDONLY, 0)]
            started = time.perf_counter()
            os.waitpid(os.posix_spawn(argv[0], argv, daemon.env, file_actions=actions), 0)
            times[name].append((time.perf_counter() - started) * 1000)
        time.sleep(0.1)


def take_spool(count, sessions):
    """Let a daemon read `count` events, killing it twice; return 1 if an event is lost, doubled or out of order."""
    with tempfile.TemporaryDirectory(prefix="tailhook-load-") as folder, daemon_in(Path(folder) / "home") as daemon:
        for begin in range(0, count, 1000):
            daemon.spool(*(spooled(number, f"s{number % sessions}") for number in range(begin, begin + 1000)))
        begun = time.monotonic()
        for _ in range(2):
            daemon.start()
            time.sleep(3)
            daemon.stop(9)
        daemon.start()
        wait_until(lambda: figures(daemon)["spool_bytes"] == 0, seconds=600)
        took, arrived = time.monotonic() - begun, sum(figures(daemon)["events"].values())
        with sqlite3.connect(daemon.state / "plates.db") as database:
            found = database.execute("SELECT session_id, ts FROM events ORDER BY id").fetchall()
    order = {}
    for session, number in found:
        order.setdefault(session, []).append(number)
    in_order = all(numbers == sorted(numbers) for numbers in order.values())
    print(f"{count:,} events in the spool, the daemon killed twice")
    print(f"  arrived: {arrived:,}; lost or doubled: {abs(count - arrived)}; in order: {in_order}; {took:.0f} s")
    return int(arrived != count or not in_order)


def main():
    """Run the load and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", type=float, nargs="?", default=30)
    parser.add_argument("--sessions", type=int, default=2000)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--spool", type=int)
    options = parser.parse_args()
    if options.spool:
        return take_spool(options.spool, options.sessions)
    with tempfile.TemporaryDirectory(prefix="tailhook-load-") as folder, daemon_in(Path(folder) / "home") as daemon:
        daemon.env["TAILHOOK_NO_AUTOSTART"] = "1"
        daemon.start()
        board, leaving, times = Board(daemon), threading.Event(), {"bare": [], "hook": []}
        timing = threading.Thread(target=time_hooks, args=(daemon, Path(folder), leaving, times))
        timing.start()
        if options.kill:
            threading.Timer(options.seconds / 2, lambda: (daemon.stop(9), daemon.start())).start()
        sent = send(daemon, options.sessions, options.rate, options.seconds)
        leaving.set()
        timing.join()
        wait_until(lambda: figures(daemon)["spool_bytes"] == 0)
        time.sleep(0.5)
        board.leaving = True
        counts = figures(daemon)["events"]
        arrived = sum(counts.values()) - len(times["hook"])
    lags = sorted(board.lags)
    p99, ratio = lags[len(lags) * 99 // 100], statistics.median(times["hook"]) / statistics.median(times["bare"])
    killed = ", the daemon killed once" if options.kill else ""
    print(f"{sent:,} events of {options.sessions:,} sessions at {options.rate} a second{killed}")
    print(f"  arrived: {arrived:,}; lost or doubled: {abs(sent - arrived)}")
    print(f"  from a hook's clock to the board: median {statistics.median(lags):.0f} ms, p99 {p99:.0f} ms")
    print(f"  a hook meanwhile: {statistics.median(times['hook']):.1f} ms, {ratio:.2f} times bare Python")
    return int(arrived != sent or (not options.kill and p99 > GOAL) or ratio > RATIO)


def figures(daemon):
    """Return the daemon's own figures."""
    return daemon.ask("GET", "/status").json()


if __name__ == "__main__":
    sys.exit(main())
