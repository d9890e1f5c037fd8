"""Whether exit code 0 of a shell line means that a command ran and succeeded: labels by hand and by bash."""

import json
import shlex
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases import in_one_test
from support.shell_lines import BashOracle, make_line

from tailhook.machines.rules import MAX_STEPS
from tailhook.machines.shell_line import ShellLine
from tailhook.machines.shell_words import Budget


def outcome_of(line, wanted="pytest"):
    return ShellLine(line, Budget(MAX_STEPS)).outcome_of(shlex.split(wanted))


@in_one_test(
    "line",
    ["cd x && set -o pipefail && pytest | tail",
     "pytest", "pytest && echo ok", "cd x && pytest", "pytest -q 2>&1", "timeout 60 pytest", "(pytest)", "{ pytest; }",
     "set -o pipefail; pytest | tail", "set -euo pipefail\npytest | tee log\necho done", "x=$(pytest)",
     "git status; pytest", "pytest > log 2>&1", "(cd a; pytest) > log", "bash -c pytest",
     "bash -ec 'pytest; echo done'", "ls | xargs pytest", "bash -o pipefail -c 'pytest | tail'", "pytest || exit 1",
     "pytest || exit 1; echo done", "pytest || false", "pytest || { echo failed; exit 1; }", "pytest; exit $?",
     "pytest; code=$?; tail log; exit $code", "pytest; x=1 code=$?; tail log; exit $code",
     "set -o errexit; pytest; git status", "exec pytest", "for d in a b; do (cd $d && pytest) || exit 1; done",
     "if ! pytest; then exit 1; fi", "time pytest", "! ! pytest", "t() { pytest; }; t",
     "[ -x a/pytest ] && a/pytest || python -m pytest", "pytest || pytest --lf", "eval pytest",
     "script -qec pytest log", "case $x in *) pytest;; esac", "unknown --flag value pytest",
     "python -m cProfile -m pytest", "set -e; cd x; pytest; git status", "cat <<E > f && pytest\nx\nE",
     "if true; then pytest; fi", "true && pytest"],
)  # fmt: skip
def test_the_exit_code_of_this_line_is_that_of_the_command(line):
    assert outcome_of(line) == ("run", "")


HIDDEN = {
    "pytest | tail -20": "its exit code is that of `tail`, behind a pipe",
    "pytest 2>&1 | grep failed": "its exit code is that of `grep`, behind a pipe",
    "pytest |& tee log": "its exit code is that of `tee`, behind a pipe",
    "bash -c 'pytest | tail'": "its exit code is that of `tail`, behind a pipe",
    "x=$(pytest | tail)": "its exit code is that of `tail`, behind a pipe",
    "set -o pipefail; set +o pipefail; pytest | tail": "its exit code is that of `tail`, behind a pipe",
    "cd x && set -o pipefail; pytest | tail": "its exit code is that of `tail`, behind a pipe",
    "if cd x; then set -o pipefail; fi; pytest | tail": "its exit code is that of `tail`, behind a pipe",
    "pytest || true": "its exit code is that of `true`",
    "pytest || echo failed": "its exit code is that of `echo`",
    "pytest && echo ok || echo failed": "its exit code is that of `echo`",
    "pytest; echo done": "its exit code is that of `echo`",
    "pytest; echo $?": "its exit code is that of `echo`",
    "pytest\ngit status": "its exit code is that of `git`",
    "pytest; code=$?; tail log": "its exit code is that of another command",
    "pytest; exit $x": "its exit code is that of `exit`",
    "(exit $x) || pytest": "the line can succeed without it",
    "pytest -q a; pytest -q b": "its exit code is that of the last `pytest` in it",
    "set -e; pytest && echo ok; echo done": "its exit code is that of `echo`",
    "x=$(pytest); echo $x": "its exit code is that of `echo`",
    "echo $(pytest)": "its exit code is that of `echo`",
    "export x=$(pytest)": "its exit code is that of `export`",
    "pytest &": "it runs in the background",
    "pytest & wait": "it runs in the background",
    "pytest & wait $!": "it runs in the background",
    "coproc pytest": "it runs in the background",
    "if pytest; then echo ok; fi": "`if` takes its exit code",
    "while pytest; do sleep 1; done": "`while` takes its exit code",
    "until pytest; do sleep 1; done": "`until` takes its exit code",
    "! pytest": "`!` inverts its exit code",
    "time ! pytest": "`!` inverts its exit code",
    "[ -f x ] || pytest": "the line can succeed without it",
    "if [ -f x ]; then pytest; fi": "the line can succeed without it",
    "for i in $(ls); do pytest $i || exit 1; done": "the line can succeed without it",
    "case $x in a) pytest;; esac": "the line can succeed without it",
    "for i in a b; do pytest $i; done": "its exit code is that of the next turn of `for`",
    "find . -name 'test_*' -exec pytest {} \\;": "its exit code is that of `find`",
    "trap pytest EXIT": "its exit code is that of `trap`",
    "script -qc pytest log": "its exit code is that of `script`",
    "docker run -d image pytest": "its exit code is that of `docker`",
    "docker compose exec -d app pytest": "its exit code is that of `docker`",
    "sudo -b pytest": "its exit code is that of `sudo`",
    "tmux new-session -d 'pytest -q'": "its exit code is that of `tmux`",
    "git bisect run pytest": "its exit code is that of `git`",
    "pytest && grep x log": "the host reports no error if a line that ends with `grep` exits with 1",
    "pytest || exit 1; git diff": "the host reports no error if a line that ends with `git diff` exits with 1",
    "set -o pipefail; pytest | rg failed": "the host reports no error if a line that ends with `rg` exits with 1",
    "$RUNNER | tail": "its exit code is that of `tail`, behind a pipe",
}


@in_one_test("line", HIDDEN)
def test_a_run_whose_exit_code_is_not_the_lines_is_not_a_successful_one(line):
    line, why = line.replace("$RUNNER", "PYTEST=pytest; $PYTEST"), HIDDEN[line]
    assert outcome_of(line) == ("hidden", why)


@in_one_test(
    "line",
    ["echo pytest", "t() { pytest; }", "pytest() { ls; }; pytest", "false && pytest", "true || pytest",
     "exit 1; pytest", "rtk grep pytest src", "unknown echo pytest", "pip install pytest", "git commit -m pytest",
     "gh pr create -t pytest",
     "npm install pytest", "docker exec pytest ls", "notify-send pytest"],
)  # fmt: skip
def test_this_line_does_not_run_the_command(line):
    assert outcome_of(line) == ("absent", "")


@pytest.mark.parametrize("wanted", ["diff a b", "git diff --exit-code", "grep -c x y"])
def test_a_wanted_command_that_hosts_excuse_counts_all_the_same(wanted):
    assert outcome_of(f"cd x && {wanted}", wanted) == ("run", "")


@in_one_test(
    ("line", "wanted"),
    [
        ("podman run --rm image pytest", "pytest"),
        ("docker run --gpus all --cpus 2 --shm-size 1g --cap-add X image pytest", "pytest"),
        ("docker run --entrypoint pytest image", "pytest"),
        ("docker run --entrypoint=pytest image", "pytest"),
        ("docker container exec app pytest", "pytest"),
        ("kubectl exec pod -c app -- pytest", "pytest"),
        ("mamba run -n env pytest", "pytest"),
        ("micromamba run -n env pytest", "pytest"),
        ("mise x -- pytest", "pytest"),
        ("dotenv -- pytest", "pytest"),
        ("py -3 -m pytest", "pytest"),
        ("gtimeout 60 pytest", "pytest"),
        ("arch -arm64 npm test", "npm test"),
        ("uvx ruff@latest check", "ruff check"),
        (". ./run.sh", "./run.sh"),
        ("source ./run.sh", "./run.sh"),
        ("make lint V=1 check", "make check"),
        ("ssh host <<E\npytest\nE", "pytest"),
        ("ssh host bash -s <<E\npytest\nE", "pytest"),
        ("fish -c 'pytest -q'", "pytest"),
        ("srun -n 1 --mem 2G pytest", "pytest"),
        ("torchrun -m pytest", "pytest"),
        ("env - PATH=$PATH pytest", "pytest"),
        ("bash +e -c pytest", "pytest"),
        ("concurrently 'npm test' 'npm run lint'", "npm test"),
        ("git rebase --exec 'npm test' main", "npm test"),
        ("./in-container.sh npm test", "npm test"),
    ],
)
def test_an_unknown_program_in_front_of_the_command_runs_it(line, wanted):
    assert outcome_of(line, wanted) == ("run", "")


def test_a_script_that_is_only_checked_is_not_run():
    assert outcome_of("bash -n run.sh", "./run.sh") == ("absent", "")
    assert outcome_of("make -n check", "make check") == ("absent", "")


# ---- beside bash -----------------------------------------------------------------

SAMPLE = json.loads(Path(__file__).with_name("exits_beside_bash.json").read_text(encoding="utf-8"))


def test_a_line_that_may_hide_a_failure_in_bash_is_never_believed(report):
    """The labels are bash's: each line ran with every command failing and succeeding (tests/support/shell_lines.py)."""
    found = [(one["line"], one["bash"], outcome_of(one["line"], "check")[0]) for one in SAMPLE]
    assert [one for one in found if one[1] == "hidden" and one[2] != "hidden"] == []
    assert [one for one in found if one[1] == "run" and one[2] == "absent"] == []
    # A missed success is allowed: gate does not follow the values of variables and the words of a `case`.
    careful = [one for one in found if one[1] != one[2]]
    assert len(careful) < len(found) / 10
    report(f"exits: {len(found)} lines as bash has them, {len(careful)} more careful")


def test_the_labels_of_the_sample_are_those_of_bash(tmp_path):
    bash = BashOracle(tmp_path)
    for one in Random(1).sample(SAMPLE, 12):
        assert bash.label(one["line"]) == one["bash"], one["line"]


@given(st.randoms(use_true_random=False))
def test_any_line_of_the_shapes_is_judged(random):
    assert outcome_of(make_line(random, 3), "check")[0] in ("run", "hidden", "absent")
