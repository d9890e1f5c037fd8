"""What the boards cost with many sessions and many listeners: a table for docs/performance.md.

usage: boards_load.py [--plates N] [--browsers N] [--events N]

    10,000 open sessions; the web board in Chromium; 200 listeners of the stream, as many as browsers would be, which
    all connect at one time; a spool of a million events of 1,000 sessions, 30 at a time; and the daemon at rest. Exits
    1 if a goal is missed.
"""

import argparse
import asyncio
import os
import re
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import httpx
from playwright.sync_api import sync_playwright
from support.browser import launch
from support.daemon import daemon_in, wait_until

KINDS = ("prompt_submit", "tool_start", "tool_call", "tool_start", "tool_call", "stop")
ACTIVE = 30  # sessions that send events at one time
FILTER_KEYS = "project-99"
REST_S = 20
# In the page, before its own scripts: the time of the first row, in milliseconds since the address was opened.
FIRST_ROW = """
new MutationObserver((_, observer) => {
  if (!document.querySelector("#board li")) return;
  window.firstRow = performance.now();
  observer.disconnect();
}).observe(document, { childList: true, subtree: true });
"""
# Returns how many sessions the page knows.
SHOWN = """() => [...document.querySelectorAll("#counts b, #rest .count")].reduce(
  (sum, one) => sum + Number(one.textContent), 0)"""
# Types into the filter, and returns how long each key took until the rows were laid out, in milliseconds.
TYPE = """(keys) => [...keys].map((key) => {
  const filter = document.querySelector("#filter");
  const begun = performance.now();
  filter.value += key;
  filter.dispatchEvent(new Event("input"));
  document.querySelector("#board").getBoundingClientRect();
  return performance.now() - begun;
})"""


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plates", type=int, default=10_000)
    parser.add_argument("--browsers", type=int, default=200)
    parser.add_argument("--events", type=int, default=1_000_000)
    options = parser.parse_args()
    rows: list[tuple[str, str, str, bool]] = []

    def add(what: str, figure: float, unit: str, goal: float) -> None:
        rows.append((what, f"{figure:,.1f} {unit}", f"{goal:g} {unit}", figure <= goal))
        print(f"{what}: {figure:,.1f} {unit} (goal {goal:g})", flush=True)

    with tempfile.TemporaryDirectory(prefix="tailhook-load-") as folder:
        with daemon_in(Path(folder) / "many") as daemon:
            daemon.is_forked = False  # its memory is its own
            daemon.env["TAILHOOK_NO_AUTOSTART"] = "1"
            now = time.time_ns() // 1_000_000
            write_spool(daemon, options.plates, 1, now)
            daemon.start()
            wait_until(lambda: daemon.ask("GET", "/status").json()["spool_bytes"] == 0)
            pid = daemon.process.pid
            add(f"memory with {options.plates:,} open sessions", memory_mb(pid), "MB", 300)
            for name, figure, goal in see_board(daemon, options.plates):
                add(name, figure, "ms", goal)
            most, sent = asyncio.run(listen(daemon, options.browsers))
            add(f"memory while {options.browsers} listeners get them", most, "MB", 300)
            add(f"an event until the last of {options.browsers} listeners has it", sent, "ms", 1000)
        with daemon_in(Path(folder) / "rest") as daemon:
            daemon.is_forked = False
            daemon.start()
            wait_until(lambda: daemon.ask("GET", "/status").json()["spool_bytes"] == 0)
            add("wake-ups a second at rest", rate_of_wake_ups(daemon.process.pid), "/s", 2)
            add("memory at rest", memory_mb(daemon.process.pid), "MB", 60)
        with daemon_in(Path(folder) / "backlog") as daemon:
            daemon.is_forked = False
            write_spool(daemon, options.events, options.events // 1000, time.time_ns() // 1_000_000)
            begun = time.monotonic()
            daemon.start()
            wait_until(lambda: daemon.ask("GET", "/status").json()["spool_bytes"] == 0, seconds=3600)
            add(f"{options.events:,} events that waited", time.monotonic() - begun, "s", 300)
            arrived = sum(daemon.ask("GET", "/status").json()["events"].values())
    print(
        "\n| | figure | goal |\n|-|-|-|\n"
        + "\n".join(f"| {what} | {figure} | {goal} |" for what, figure, goal, _ in rows)
    )
    if arrived != options.events:
        print(f"{options.events - arrived} events are lost")
    return int(arrived != options.events or not all(is_met for *_, is_met in rows))


def write_spool(daemon, count: int, each: int, now: int) -> None:
    """Put events into the spool, as hooks write them: the last of them happened now, in Unix milliseconds.

    each: events of a session. So many sessions run at one time as in a team: ACTIVE.
    """
    daemon.state.mkdir(parents=True, mode=0o700)
    with open(daemon.state / "events", "w") as spool:
        os.fchmod(spool.fileno(), 0o600)
        for number in range(count):
            turn, place = divmod(number, ACTIVE * each)
            step, session = divmod(place, ACTIVE)
            session += turn * ACTIVE
            kind = KINDS[(step + session) % len(KINDS)]
            tool = f',"tool_name":"Bash","tool_use_id":"t{step // 2}","tool_params":{{"command":"make test"}}'
            spool.write(
                f'{{"event_id":"e{number}","event_type":"{kind}","ts":{now - count + number},"mono":{number},'
                f'"session_id":"s{session:06}","project_path":"/me/src/project-{session % 500}","git_branch":"main",'
                f'"prompt":"Mend the test of part {session}"{tool if "tool" in kind else ""}}}\n'
            )


def see_board(daemon, plates: int):
    """Yield the figures of the web board: name, milliseconds, goal."""
    with sync_playwright() as playwright:
        browser = launch(playwright)
        if isinstance(browser, str):
            sys.exit(browser)
        context = browser.new_context()
        context.add_init_script(f"sessionStorage.setItem('tailhook.secret', '{daemon.secret}');{FIRST_ROW}")
        firsts = []
        for _ in range(5):
            page = context.new_page()
            page.goto(daemon.base)
            page.locator("#board li").first.wait_for()
            firsts.append(page.evaluate("firstRow"))
            wait_until(lambda: page.evaluate(SHOWN) >= plates)  # noqa: B023
            took = page.evaluate(TYPE, FILTER_KEYS)
            page.close()  # with it the worker ends, so the next page begins from nothing
        yield f"the first row of {plates:,} in Chromium", sorted(firsts)[2], 300
        yield "a key of the filter, the slowest", max(took), 50
        browser.close()


async def listen(daemon, count: int) -> tuple[float, float]:
    """Return the daemon's largest memory in MB while so many listeners connect, and the milliseconds of an event."""
    pid, most, ready, seen = daemon.process.pid, 0.0, [], []
    all_ready, all_seen = asyncio.Event(), asyncio.Event()
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(verify=False, limits=limits, timeout=None, base_url=daemon.base) as client:

        async def follow():
            """Read the stream; like a browser, connect again if the daemon takes no more at this moment."""
            while True:
                try:
                    return await read()
                except httpx.TransportError:
                    await asyncio.sleep(0.5)

        async def read():
            async with client.stream("GET", "/stream", headers={"authorization": f"Bearer {daemon.token}"}) as answer:
                async for line in answer.aiter_lines():
                    if line == "event: closed" and len(ready) < count:
                        ready.append(1)
                        if len(ready) == count:
                            all_ready.set()
                    elif line.startswith('data: {"session_id": "load"'):
                        seen.append(time.monotonic())
                        if len(seen) == count:
                            all_seen.set()
                        return

        tasks = [asyncio.create_task(follow()) for _ in range(count)]
        while not all_ready.is_set():
            most = max(most, memory_mb(pid))
            await asyncio.sleep(0.05)
        begun = time.monotonic()
        event = {"session_id": "load", "project_path": "/p", "event_type": "prompt_submit"}
        await asyncio.to_thread(lambda: daemon.ask("POST", "/events", json=event))
        await all_seen.wait()
        await asyncio.gather(*tasks)
    return max(most, memory_mb(pid)), (max(seen) - begun) * 1000


def memory_mb(pid: int) -> float:
    """Return the memory of a process, with its part of what it shares, in MB."""
    found = re.search(r"^Pss: +(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 / 1e6


def rate_of_wake_ups(pid: int) -> float:
    """Return how many times a second the threads of a process wake up."""

    def count() -> int:
        states = [(thread / "status").read_text() for thread in Path(f"/proc/{pid}/task").iterdir()]
        return sum(int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", state, re.MULTILINE)[1]) for state in states)

    time.sleep(REST_S / 2)  # until the start is over
    before = count()
    time.sleep(REST_S)
    return (count() - before) / REST_S


if __name__ == "__main__":
    sys.exit(main())
