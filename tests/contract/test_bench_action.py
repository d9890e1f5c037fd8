"""The action for GitHub: the shell code of its step."""

import subprocess
import sys
from pathlib import Path

import pytest


def test_the_action_runs_the_words_that_it_is_given(tmp_path):
    """The step's shell code, with what GitHub sets; `tailhook` notes its words."""
    action = Path(__file__).parents[2] / "action.yml"
    if not action.exists():
        pytest.skip("the action is in the source tree")
    lines = action.read_text().splitlines()
    begin = lines.index("      run: |", next(at for at, line in enumerate(lines) if "id: bench" in line)) + 1
    end = next(at for at in range(begin, len(lines)) if lines[at].startswith("      shell"))
    script = "\n".join(line[8:] for line in lines[begin:end])
    stub = tmp_path / "tailhook"
    output = 'for word; do case $before in -o | --save) echo table >"$word";; esac; before=$word; done'
    fails = f'if [ -e "{tmp_path}/fails" ]; then echo "no luck" >&2; exit 1; fi'
    notes = f'printf "%s\\n" "$@" >"{tmp_path}/words"; {fails}; {output}'
    stub.write_text(f"#!/bin/sh\n{notes}\nexit 3\n")
    (tmp_path / "python").symlink_to(sys.executable)
    stub.chmod(0o755)
    names = ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
    env = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "RUNNER_TEMP": str(tmp_path),
        "ARGUMENTS": """--hook "python3 my hook.py" --event Stop; touch hacked""",
        **{name: str(tmp_path / name) for name in names},
    }

    def run():
        return subprocess.run(["bash", "-e", "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True)

    assert [run().returncode for _ in range(2)] == [3, 3]
    reports = set((tmp_path / "GITHUB_OUTPUT").read_text().splitlines())
    assert len(reports) == 2  # a job may use the action more than once
    assert (tmp_path / "GITHUB_STEP_SUMMARY").read_text() == "table\n" * 2
    words = (tmp_path / "words").read_text().splitlines()
    assert words[0:2] == ["bench", "--format"]
    assert words[-5:] == ["python3 my hook.py", "--event", "Stop;", "touch", "hacked"]
    assert not (tmp_path / "hacked").exists()
    (tmp_path / "fails").touch()
    done = run()
    assert (done.returncode, done.stderr) == (1, "no luck\n")
    env["ARGUMENTS"] = '--hook "python3'
    done = run()
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the arguments cannot be split into words: No closing quotation" in done.stderr
    assert (tmp_path / "GITHUB_STEP_SUMMARY").read_text() == f"table\ntable\n    no luck\n    {done.stderr}"
    assert set((tmp_path / "GITHUB_OUTPUT").read_text().splitlines()) == reports
