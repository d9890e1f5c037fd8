"""Write the contract of each agent host: what its newest release on npm sends to hooks and takes from them.

usage: python -m contracts [--check] [HOST[@VERSION]...]      VERSION: of the package

  --check   write nothing; exit 1 if a fact differs from the contracts here. A new release with the same facts exits 0.

Prints what is new, changed or gone since the release whose contract is here. Exits 2 if a package cannot be fetched or
read; the other hosts are done all the same.

A contract has facts only: names, types and fixed values of what the host itself ships, none of its texts. Members that
all events have stand under "*"; "fields" or "answers" is null if the package does not declare them. "?" at the end of a
type: the member may be missing. Needs npm, and runs the programs of Codex and Copilot with an empty home.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contracts.readers import PLATFORM, SOURCES, Reading, Source
from contracts.shapes import Shape, rows

HERE = Path(__file__).parent
FETCH_TIMEOUT_S = 600  # of a package: the largest have 170 MB
PARTS = ("fields", "answers")
MAX_NAMED = 6  # of the events with the same change

Contract = dict[str, Any]
Part = dict[str, str] | None
NEVER_READ: Contract = {"version": "none", "events": {}, "handlers": {}}


def main() -> int:
    """Write or check the contracts of the named hosts, by default of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("hosts", nargs="*", metavar="HOST[@VERSION]", default=list(SOURCES))
    given = parser.parse_args()
    code = 0
    for word in given.hosts:
        name, _, version = word.partition("@")
        if name not in SOURCES:
            parser.error(f"unknown host: {name} (the hosts: {', '.join(SOURCES)})")
        try:
            now = read_release(name, version)
        except (OSError, ValueError, LookupError, StopIteration, AssertionError, subprocess.SubprocessError) as error:
            print(f"{name}: the release cannot be read: {type(error).__name__}: {error}")
            code = 2
            continue
        path = HERE / f"{name}.json"
        before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else NEVER_READ
        found = differences(before, now)
        print(f"{name} {now['version']} (before: {before['version']}): {len(found) or 'no'} differences")
        for fact, places in found.items():
            print(f"  {fact} ({', '.join(places[:MAX_NAMED])}{' ...' * (len(places) > MAX_NAMED)})")
        if given.check:
            code = max(code, bool(found))
        else:
            path.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return code


def read_release(name: str, version: str) -> Contract:
    """Return the contract of a release.

    version: "" for the newest.
    """
    source = SOURCES[name]
    with tempfile.TemporaryDirectory() as folder:
        reading = source.read(fetch(source, version, Path(folder)))
    if not reading.events:
        raise ValueError("the package names no events")
    return contract(source, reading)


def fetch(source: Source, version: str, folder: Path) -> Path:
    """Return the unpacked package of a release.

    The version is always named: for "latest", npm takes an older release if the newest wants a newer Node.
    """
    release = version or npm("view", source.package, "version")
    name = f"{source.package}@{release}"
    if source.platform:
        name = source.package + source.platform.format(version=release, platform=PLATFORM)
    archive = npm("pack", name, "--silent", "--pack-destination", str(folder)).splitlines()[-1]
    subprocess.run(["tar", "-xzf", folder / archive, "-C", folder], timeout=FETCH_TIMEOUT_S, check=True)
    return folder / "package"


def npm(*words: str) -> str:
    """Return what npm prints."""
    done = subprocess.run(["npm", *words], capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    if done.returncode:
        raise OSError(f"npm {' '.join(words)}: {done.stderr.strip().partition(chr(10))[0]}")
    return done.stdout.strip()


# ---- the file ---------------------------------------------------------------------


def contract(source: Source, reading: Reading) -> Contract:
    """Return a contract as its file has it."""
    events = {
        name: dict(zip(PARTS, map(members, event, (1, 2)), strict=True)) for name, event in reading.events.items()
    }
    handlers = {kind: {"fields": members(shape, 1)} for kind, shape in reading.handlers.items()}
    return {
        "version": reading.version,
        "package": source.package,
        "read": source.how,
        "events": shorten(events, PARTS),
        "handlers": shorten(handlers, PARTS[:1]),
    }


def members(shape: Shape | None, depth: int) -> Part:
    """Return the rows of a payload, an answer or a handler. The event's own name in them is a string like others."""
    if shape is None:
        return None
    found = rows(shape, depth)
    if "hook_event_name" in found:
        found["hook_event_name"] = "string"
    return {name: kind for name, kind in found.items() if not name.endswith(".hookEventName")}


def shorten(entries: dict[str, dict[str, Part]], parts: tuple[str, ...]) -> dict[str, dict[str, Part]]:
    """Return entries with the members that all of them have under "*"."""
    shared: dict[str, Part] = {}
    for part in parts:
        declared = [set(found.items()) for entry in entries.values() if (found := entry[part]) is not None]
        shared[part] = dict(sorted(set.intersection(*declared))) if len(declared) > 1 else {}
    short: dict[str, dict[str, Part]] = {"*": shared}
    for name, entry in sorted(entries.items()):
        short[name] = {
            part: None
            if found is None
            else {key: kind for key, kind in found.items() if key not in (shared[part] or {})}
            for part, found in entry.items()
        }
    return short


def expand(entries: dict[str, dict[str, Part]]) -> dict[str, dict[str, Part]]:
    """Return entries with all members of each."""
    shared = entries.get("*", {})
    return {
        name: {part: None if found is None else {**(shared[part] or {}), **found} for part, found in entry.items()}
        for name, entry in entries.items()
        if name != "*"
    }


# ---- what is new ------------------------------------------------------------------


def differences(before: Contract, now: Contract) -> dict[str, list[str]]:
    """Return the facts that are new, changed or gone; for each, where: events, and kinds of handlers."""
    found: dict[str, list[str]] = {}
    for kind, place in (("events", ""), ("handlers", "handler ")):
        old, new = expand(before[kind]), expand(now[kind])
        for name in sorted({*old, *new}):
            facts = [f"{'new' if name in new else 'gone'} {kind[:-1]}"]
            if name in old and name in new:
                facts = [fact for part in new[name] for fact in changes(part[:-1], old[name][part], new[name][part])]
            for fact in facts:
                found.setdefault(fact, []).append(place + name)
    return found


def changes(what: str, old: Part, new: Part) -> Iterator[str]:
    """Yield each member that is new, changed or gone."""
    if (old is None) != (new is None):
        yield f"{what}s are declared now" if old is None else f"{what}s are declared no more"
    was, now = old or {}, new or {}
    for name in sorted({**was, **now}):
        if name not in was or name not in now:
            yield f"{'new' if name in now else 'gone'} {what} {name}: {now.get(name) or was[name]}"
        elif was[name] != now[name]:
            yield f"changed {what} {name}: {now[name]} (before: {was[name]})"


if __name__ == "__main__":
    sys.exit(main())
