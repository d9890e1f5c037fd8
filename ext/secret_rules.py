"""Take over the beginnings of keys and tokens from CredSweeper's rules (https://github.com/Samsung/CredSweeper, MIT).

usage: secret_rules.py [--check]      --check: fail if the module in the tree differs from the rules

Writes src/tailhook/machines/secret_rules.py: for each beginning of keys, the least number of following characters, and
the signs among them. A rule is a regular expression whose group `value` is the key. Rules without a fixed beginning are
left out: their keys are recognised by their looks. Needs pip and the package index; the release is pinned, so that each
run gives the same module.
"""

import io
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from re import _constants as sre
from re import _parser as parser

RELEASE = "credsweeper==1.19.5"
TARGET = Path(__file__).parents[1] / "src" / "tailhook" / "machines" / "secret_rules.py"
MIN_REST = 8  # characters; fewer are found in ordinary words
MAX_BEGINNINGS = 40  # of one rule; a rule with more has no fixed beginning
SIGNS = "_-.=+/%~$:"  # possible in a key, beside letters and digits


def main() -> int:
    """Write the module, or compare it."""
    with tempfile.TemporaryDirectory() as folder:
        rules, licence = download(Path(folder))
    text = module(prefixes(rules), licence)
    if "--check" in sys.argv:
        return 0 if TARGET.read_text(encoding="utf-8") == text else 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


def download(folder: Path) -> tuple[list[dict], str]:
    """Return the rules of the pinned release, and its licence."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    for command in (["download", "--no-deps", "--dest", folder, RELEASE], ["install", "--target", folder, "pyyaml"]):
        subprocess.run([*pip, *command], check=True)  # noqa: S603 - our own argv
    sys.path.insert(0, str(folder))
    import yaml

    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        rules = yaml.safe_load(io.BytesIO(archive.read("credsweeper/rules/config.yaml")))
        (licence,) = [name for name in archive.namelist() if name.endswith("LICENSE")]
        return rules, archive.read(licence).decode("utf-8")


# ---- from a regular expression to its beginnings --------------------------------


def prefixes(rules: list[dict]) -> dict[str, tuple[int, str]]:
    """Return the beginnings of keys, each with the least number of following characters and their signs."""
    found: dict[str, tuple[int, str]] = {}
    for rule in rules:
        if rule["type"] not in ("pattern", "multi") or rule["confidence"] == "weak":
            continue
        for pattern in rule["values"]:
            tree = parser.parse(pattern)
            for items in value_of(tree, tree.state.groupdict.get("value")):
                known = list(beginnings(list(items)))
                for text, rest in known if len(known) <= MAX_BEGINNINGS else ():
                    length = sum(map(least, rest))
                    if is_distinctive(text) and length >= MIN_REST:
                        shortest, signs = found.get(text, (length, ""))
                        found[text] = min(length, shortest), "".join(sorted({*signs, *signs_in(rest)}))
    return {text: rest for text, rest in sorted(found.items()) if not is_covered(text, rest, found)}


def is_distinctive(text: str) -> bool:
    """Return whether few ordinary words begin so."""
    return len(text) > 3 or (len(text) == 3 and not (text.isalpha() and text.islower()))


def is_covered(text: str, rest: tuple[int, str], found: dict[str, tuple[int, str]]) -> bool:
    """Return whether a rule with a shorter beginning finds every key of this rule."""
    for short, (length, signs) in found.items():
        more = text[len(short) :]
        if more and text.startswith(short) and length <= rest[0] + len(more) and {*rest[1]} <= {*signs}:
            return all(letter.isalnum() or letter in signs for letter in more)
    return False


def signs_in(items) -> set[str]:
    """Return the possible signs in the texts that items match."""
    found: set[str] = set()
    for operation, argument in items:
        if operation is sre.LITERAL:
            found.add(chr(argument))
        elif operation is sre.IN:
            for kind, value in argument:
                if kind is sre.LITERAL:
                    found.add(chr(value))
                elif kind is sre.RANGE:
                    found.update(map(chr, range(value[0], value[1] + 1)))
        elif operation is sre.SUBPATTERN:
            found |= signs_in(argument[3])
        elif operation is sre.BRANCH:
            found |= set().union(*map(signs_in, argument[1]))
        elif operation is sre.MAX_REPEAT:
            found |= signs_in(argument[2])
    return {letter for letter in found if letter in SIGNS}


def value_of(items, number):
    """Yield the items of the group that is the key."""
    for operation, argument in items:
        if operation is sre.SUBPATTERN:
            if argument[0] == number:
                yield argument[3]
            else:
                yield from value_of(argument[3], number)


def beginnings(items: list, text: str = ""):
    """Yield each possible literal text at the beginning of items, behind `text`, and the items after it."""
    if not items:
        yield text, []
        return
    (operation, argument), *rest = items
    if operation is sre.LITERAL:
        yield from beginnings(rest, text + chr(argument))
    elif operation is sre.SUBPATTERN:
        yield from beginnings([*argument[3], *rest], text)
    elif operation is sre.BRANCH:
        for alternative in argument[1]:
            yield from beginnings([*alternative, *rest], text)
    elif operation is sre.MAX_REPEAT and argument[1] == 1:
        if argument[0] == 0:
            yield from beginnings(rest, text)
        yield from beginnings([*argument[2], *rest], text)
    elif operation in (sre.AT, sre.ASSERT, sre.ASSERT_NOT):
        yield from beginnings(rest, text)
    elif operation is sre.IN and len(text) < 4 and (letters := letters_of(argument)):
        for letter in letters:
            yield from beginnings(rest, text + letter)
    else:
        yield text, items


def letters_of(ranges) -> list[str]:
    """Return the letters of a small character class; an empty list for a large or a negated class."""
    letters = []
    for kind, value in ranges:
        if kind is sre.LITERAL:
            letters.append(chr(value))
        elif kind is sre.RANGE:
            letters += map(chr, range(value[0], value[1] + 1))
        else:
            return []
    return letters if len(letters) <= 26 else []


def least(item) -> int:
    """Return the least number of characters that an item matches."""
    return int(parser.SubPattern(parser.State(), [item]).getwidth()[0])


# ---- the module ----------------------------------------------------------------


def module(found: dict[str, tuple[int, str]], licence: str) -> str:
    """Return the text of the module."""
    rows = "".join(f"    {json.dumps(text)}: ({rest}, {json.dumps(signs)}),\n" for text, (rest, signs) in found.items())
    notice = "".join(f"# {line}".rstrip() + "\n" for line in licence.strip().splitlines())
    return (
        '"""How keys begin, how many characters follow at least, and which signs may be among them.\n\n'
        f"Made by ext/secret_rules.py from the rules of {RELEASE}, https://github.com/Samsung/CredSweeper, under\n"
        'this licence. Do not edit.\n"""\n\n'
        f"{notice}\n"
        f"KEY_BEGINNINGS = {{\n{rows}}}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
