"""Which shell lines count as a run of a command.

The labels are by hand, for short commands and for 56 real ones with here-documents, substitutions and the like, or by
bash, for generated commands.
"""

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases import in_one_test
from support.host import HANGS_S
from support.steps import counted_lines

from tailhook.machines import commands, exits, shell, shell_line, shell_tree, shell_words
from tailhook.machines.commands import MAX_COMMAND_CHARS, WRAPPERS
from tailhook.machines.exits import judge_line
from tailhook.machines.rules import MAX_STEPS
from tailhook.machines.shell import MAX_NESTING, ShellReader, SimpleCommand
from tailhook.machines.shell_line import ShellLine, parse_command, plain_commands, runs_plainly
from tailhook.machines.shell_words import ABSENT, Budget
from tailhook.machines.shell_words import RUN as IS_RUN

TAKING_APART = (commands, exits, shell, shell_line, shell_tree, shell_words)
# Each command, labelled by hand; one is written as a list of lines.
RUN = [
    "pytest", "pytest -q tests", "cd a && pytest", "A=1 B=2 pytest", ".venv/bin/pytest -x", "/usr/bin/pytest",
    "timeout 60 pytest", "timeout -k 5 60 pytest", "env -i A=1 pytest", "sudo -u me pytest", "time pytest",
    "nice -n 5 pytest", "xargs pytest", "! pytest", "(pytest)", "{ pytest; }", "a;pytest", "a||pytest", "a | pytest",
    "pytest &", "if true; then pytest; fi", "for i in 1 2; do pytest; done", "pytest 2>&1 | tail -3", "ls 2>&1; pytest",
    "pytest>out.txt", ">out pytest", "'pytest' -q", "py\\test", '"pytest" a', "pytest # all", "nohup pytest",
    "'py'test", '"py\\\ntest"', "2>f pytest", "{fd}>f pytest",
    "command pytest", "exec pytest", "ls\npytest", "ls &>f; pytest", "ls 3<a {fd}>b; pytest", "pytest |& tee x",
    # shells
    "bash -c 'cd x; pytest -q'", 'sh -c "pytest"', "bash -c \"sh -c 'pytest'\"", "bash -lc 'pytest'", "bash -ec pytest",
    "bash -xc 'pytest'", 'bash -euo pipefail -c "pytest"', "bash --norc -c pytest", "bash -c -e pytest",
    "zsh -ic pytest", "bash -cx pytest", "ssh host pytest", "sandbox -c 'cd x; pytest'",
    "eval pytest", 'eval "pytest -q"', "trap pytest EXIT", "su me -c pytest", "script -qc pytest /dev/null",
    "ssh -p 22 host 'cd x && pytest'", "watch -n 2 pytest",
    # wrappers and their options
    "stdbuf -oL pytest", "setsid pytest", "ionice -c2 pytest", "ionice -c 2 -n 3 pytest", "doas -u me pytest",
    "unbuffer pytest", "caffeinate -i pytest", "timeout --signal KILL 60 pytest", "timeout --kill-after 5 60 pytest",
    "timeout --kill-after=5 60 pytest", "env --unset A pytest", "sudo --user me pytest", "sudo -Eu me pytest",
    "env -S 'pytest -q'", "env -S'pytest -q'", "env -S '-i A=1 pytest'", "env -u A -vS 'nice' -n 5 pytest",
    "env -S 'bash -c' 'cd x; pytest'", "env --split-string='pytest -q'", "env -iS 'pytest -q'",
    "A[0]=1 pytest", "A+=1 pytest", "time -p pytest", "nice -5 pytest", "xargs -I{} pytest {}", "sudo -- pytest",
    "find . -name 't_*' -exec pytest {} \\;", "find . -exec ls {} \\; -exec pytest {} +", "coproc pytest",
    # programs that run programs
    "uv run pytest", "uv run --with x pytest", "uv run -m pytest", "uv run --frozen -- pytest", "poetry run pytest",
    "poetry -C app run pytest", "pdm run pytest", "rye run pytest", "pipenv run pytest", "hatch run pytest",
    "npx pytest", "npx -y pytest", "pnpm exec pytest", "yarn pytest", "yarn run pytest", "bunx pytest",
    "pnpm pytest", "pnpm --filter web pytest -q", "bun pytest", "bun x pytest@8", "bun --cwd web run pytest",
    "npm exec -- pytest", "docker-compose exec web pytest",
    "python -m pytest", "python3.12 -m pytest", "python -Bm pytest", "python -X dev -m pytest",
    "uv run python -m pytest",
    "coverage run -m pytest", "python -m coverage run --source a -m pytest", "docker compose exec web pytest",
    "docker compose -f a.yml exec -T web pytest -q", "docker compose run --rm -e A=1 web pytest",
    "docker run --rm -v a:b image pytest", "docker exec -it web pytest", "kubectl exec pod -- pytest",
    "nix develop -c pytest", "direnv exec . pytest", "git bisect run pytest",
    # substitutions
    'out="$(pytest)"', "out=`pytest`", "echo `echo \\`pytest\\``",
    'echo "`pytest`"', "diff <(pytest) x", "ls > >(pytest)", "echo ${x:-$(pytest)}",
    'echo "a $(echo "b $(pytest)")"', 'echo "${x:-"$(pytest)"}"', 'echo "}$(pytest)"',
    "function t () { pytest; }; t", "echo $(( $(pytest) + 1 ))", "((i<<2)); pytest", "echo $((1<<2)); pytest",
    "echo $'it\\'s'; pytest", "a=($(pytest))", 'git commit -m "$(cat <<\'E\'\nit\'s\nE\n)" && pytest',
    # here-documents
    "cat <<E > f\nx\nE\npytest", "cat <<E>f\nx\nE\npytest", "cat <<-E\n\tx\n\tE\npytest", "cat <<A <<B\nA\nB\npytest",
    "cat <<E\n$(pytest)\nE", "bash <<E\ncd x\npytest\nE", "sh -s <<'E'\npytest\nE", "bash <<< pytest",
    # the shell's language
    "case $x in a) pytest;; esac", "case x in\n a|b) ls;;\n *) pytest -q;;\nesac", "[[ -f x ]] > f; pytest",
    "if [[ a == b && c ]]; then pytest; fi", "function t { pytest; }; t", "t() { pytest; }; t",
    "time t () { pytest; }; t", "cd a &&\npytest", "cd a ||\n\npytest", "ls |\npytest", "t()\n{\npytest; }; t",
    "function t ()\n{ pytest; }; t", "if a; then ls; elif b; then pytest; fi", "time for i in 1; do pytest; done",
    "[[ a < b ]] && pytest", 'pytest "$@"', "a=(x\n$(pytest))", "cat << E\nx\nE\npytest", "sandbox python -m pytest",
    "command eval 'cd a; pytest'",
    "while a; do pytest; done",
    "for ((i=0;i<3;i++)); do pytest; done", "ls \\\n && pytest", "[[ $x =~ ^(a|b)$ ]] && pytest", "echo @(a|b); pytest",
    "[[ a &&\n$(pytest) ]]", "(cd x && (pytest))", "{ pytest; } 2>&1 | tee log", "until pytest; do sleep 1; done",
]  # fmt: skip
NOT_RUN = [
    "echo pytest", "# pytest", "ls # pytest", "echo 'x; pytest'", 'git commit -m "pytest && done"', "pytest-watch",
    "grep pytest setup.cfg", "ls > pytest", "sudo -E echo pytest", "xargs -n1 echo pytest", "which pytest",
    "pip install pytest", "cat pytest", "'pytest -q'", "bash pytest", "bash -c 'echo pytest'", "pytest.ini", "A=pytest",
    "A=1 echo pytest", 'echo $"pytest"', "npm --prefix pytest", "sandbox 'a; pytest' -c",
    "timeout pytest", "ls \\\n pytest", "cat <<< pytest", "python x.py -m pytest", "python -c 'import pytest'",
    "command -v pytest", "command -V pytest", "sudo -l pytest", "type pytest", "test -f pytest", "man pytest",
    "pytest() { ls; }", "pytest () { ls; }", "function pytest { ls; }", "function pytest () { ls; }",
    "function pytest () { ls; }; pytest",
    "case x in pytest) ls;; esac",
    "case x in a) ls;; b|pytest) ls;; esac", "[[ a == b || pytest == c ]]", "[[ $x =~ ^(pytest|b)$ ]]", "a=(pytest x)",
    'echo "$(echo pytest)"', "echo '$(pytest)'", 'echo "\\$(pytest)"', "echo \\$\\(pytest\\)", "ls # $(pytest)",
    "for x in pytest a; do echo $x; done", "find . -name pytest", "git log --grep pytest", "rg pytest | head",
    "cat <<E\npytest\nE", "cat <<E>f\npytest\nE", "cat <<'E F' > f\npytest\nE F\nls", "cat <<'E'\n$(pytest)\nE",
    "cat <<A <<B\npytest\nA\npytest\nB", "cat <<A; echo b\npytest\nA", "cat <<-E\n\tpytest\n\tE", "((pytest<<2))",
    "echo $((pytest<<2))", "echo $'it\\'s pytest'", "sudo -u pytest ls", "env pytest=1 ls", "docker compose up pytest",
    "docker exec pytest ls", "export PATH=pytest", "kill $(pgrep pytest)", "uv pip install pytest", "uv add pytest",
    "env sort -S pytest", "env -S echo 'a; pytest'", "env -S echo \"it's\" '; pytest'", "env -S echo '' ';' pytest",
    "env -S echo -S pytest", "a=(x) echo pytest",
    "timeout 5 echo pytest", "git commit -m \"$(cat <<'E'\nrun `pytest`, it's\nE\n)\"", "echo {pytest,x}",
    "npm run pytest", "yarn add pytest", "pnpm i -D pytest", "pnpm update pytest", "bun a pytest", "bun i pytest",
    "ls >& pytest", "ls >| pytest", "ls <& pytest", "ls &> pytest",
    "echo `echo \\`echo pytest\\``", "echo ${} pytest", "echo ${x:-\\}; pytest}", "[[ a > pytest ]]", "echo $1 pytest",
    "cat << E\npytest\nE", "if a; then ls; elif b; then echo pytest; fi", "t()\n{ pytest; }",
]  # fmt: skip
# A line that cannot be taken apart counts as a run if, and only if, the name is in it.
UNKNOWN = [
    "$RUN pytest", '"$PY" -m {}', "P={}; $P", 'a=({} -q); "${{a[@]}}"', "cat <<E | bash\n{}\nE", "echo {} | sh",
    "bash < {}", "echo @({}", "then {}", "{} &&", "ls && ; {}", "(ls; fi; {})", "if {}; fi",
    "cat <<E\n{}", "echo '{}", 'echo "{}', "echo `{}", "(echo {}", "echo $(echo {}", "fi) {}", "echo ${{x {}",
    "cat {} <<E", "echo ({})", "echo $(({} a)b", "$(which {}) -q", 'eval "$x {}"', 'bash -c "$x {}"',
]  # fmt: skip


def runs(line, wanted, budget=None):
    """Return whether a shell line runs a command that begins with the wanted words, whatever its exit code means."""
    return ShellLine(line, budget or Budget(MAX_STEPS)).outcome_of(wanted)[0] != ABSENT


@in_one_test("command", RUN)
def test_this_runs_the_command(command):
    assert runs(command, ["pytest"])


@in_one_test("command", NOT_RUN)
def test_this_does_not_run_the_command(command):
    assert not runs(command, ["pytest"])


@in_one_test("command", UNKNOWN)
def test_what_cannot_be_taken_apart_counts_if_it_names_the_program(command):
    assert runs(command.format("pytest"), ["pytest"])
    assert not runs(command.format("other"), ["make"])


@in_one_test(
    ("command", "ran", "is_run"),
    [
        ("npm test", "npm test", True),
        ("npm --silent test -- -u", "npm test", True),
        ("npm --prefix web test", "npm test", True),
        ("npm --prefix run run test", "npm run test", True),
        ("npm run test", "npm test", True),
        ("npm --prefix=web run test", "npm test", True),
        ("npm test", "npm run test", True),
        ("npm ci", "npm run ci", False),
        ("npm run run test", "npm run build", False),
        ("python scripts/check.py fast", "scripts/check.py fast", True),
        ("pytest tests/", "pytest tests", True),
        ("pytest ./tests/", "pytest tests", True),
        ("pytest tests", "pytest ./tests/", True),
        ("pytest ./", "pytest .", True),
        ("pytest tests/unit", "pytest tests", False),
        ("ls /", "ls ''", False),
        ("npm -s run test", "npm run test", True),
        ("pnpm --filter a test", "pnpm test", True),
        ("python -B -m pytest a", "python -m pytest", True),
        ("python3.12 -m pytest a", "python -m pytest", True),
        ("python x.py -m pytest", "python -m pytest", False),
        ("pythonic -m pytest", "python -m pytest", False),
        ("make -j4 test", "make test", True),
        ("make -C sub test", "make test", True),
        ("make clean test", "make test", True),
        ("make test-all", "make test", False),
        ("make $TARGETS", "make test", True),
        ("make", "make test", False),
        ("./gradlew clean test", "./gradlew test", True),
        ("./gradlew testClasses lint", "./gradlew test", False),
        ("/a/b/gradlew --console plain lint test", "./gradlew test", True),
        ("mvn -B -T 4 clean test", "mvn test", True),
        ("./mvnw -f app/pom.xml clean verify", "./mvnw verify", True),
        ("mvn clean package", "mvn test", False),
        ("git -C d diff", "git diff", True),
        ("git -C d status", "git diff", False),
        ("git -C $d status", "git diff", False),
        ("go -C x test ./...", "go test", True),
        ("cargo +nightly test", "cargo test", True),
        ("timeout 5 make", "timeout 5 make", True),
        ("./check.sh --fast", "./check.sh", True),
        ("bash -e ./check.sh", "./check.sh", True),
        ("bash check.sh", "./check.sh", True),
        ("/home/me/app/check.sh", "./check.sh", True),
        ("$ROOT/check.sh", "./check.sh", True),
        ("python scripts/check.py", "scripts/check.py", True),
        ("python ./scripts/check.py", "python scripts/check.py", True),
        ("check.sh", "./check.sh", False),
        ("other/check.sh", "./check.sh", False),
        ("cat ./check.sh", "./check.sh", False),
        ("npx tsc --noEmit", "tsc", True),
        ("uv run --frozen python -m mypy src", "mypy", True),
        ("docker compose run --rm web npm test", "npm test", True),
    ],
)
def test_a_command_of_several_words(command, ran, is_run):
    assert runs(command, parse_command(ran)) is is_run


@in_one_test(
    ("command", "ran"),
    [
        ("pytest --version", "pytest"),
        ("python -m pytest --help", "pytest"),
        ("pytest -h", "pytest"),
        ("pytest tests --collect-only -q", "pytest"),
        ("cd a && pytest --co 2>&1", "pytest"),
        ("cd a && pytest --co > log", "pytest"),
        ("make -n pytest", "pytest"),
        ("gmake --dry-run pytest", "pytest"),
        ("make -n test", "make test"),
        ("make -nk test", "make test"),
        ("make -i test", "make test"),
        ("npm test -- --help", "npm test"),
        ("cargo test --no-run", "cargo test"),
        ("cargo test -- --list", "cargo test"),
        ("go test -list . ./...", "go test"),
        ("mvn -DskipTests test", "mvn test"),
        ("mvn clean test -DskipTests=true", "mvn test"),
        ("./mvnw -Dmaven.test.skip=true clean test", "./mvnw test"),
        ("mvn -fn clean test", "mvn test"),
        ("./gradlew -m test", "./gradlew test"),
        ("./gradlew clean test --dry-run", "./gradlew test"),
        ("./in-container.sh pytest --version", "pytest"),
        ("uvx ruff check --exit-zero .", "ruff check"),
        ("ruff check --show-files", "ruff check"),
        ("pytest --setup-only", "pytest"),
    ],
)
def test_an_option_with_which_a_program_checks_nothing_makes_it_no_run(command, ran):
    assert not runs(command, parse_command(ran))


@pytest.mark.parametrize(
    ("command", "ran"),
    [
        ("ls --version", "ls --version"),
        ("black --check .", "black"),
        ("make -k -s test", "make test"),
        ("mvn -o test", "mvn test"),
        ("./gradlew -i -Dmode=fast -Pmain test", "./gradlew test"),
    ],
)
def test_an_option_that_is_wanted_or_checks_all_the_same_changes_nothing(command, ran):
    assert runs(command, parse_command(ran))


@pytest.mark.parametrize(
    ("command", "ran"),
    [
        ("make -C test", "make test"),
        ("make -sC test lint", "make test"),
        ("make -f test", "make test"),
        ("npm --prefix test run build", "npm test"),
        ("cargo --manifest-path test build", "cargo test"),
        ("pytest --ignore tests src", "pytest tests"),
        ("pytest -q --deselect tests", "pytest tests"),
        ("ruff check --exclude src .", "ruff check src"),
        ("./gradlew --exclude-task test build", "./gradlew test"),
        ("./gradlew -x test build", "./gradlew test"),
        ("gradle test -x test", "gradle test"),
        ("mvn -pl test package", "mvn test"),
    ],
)
def test_a_folder_or_an_excluded_part_that_is_named_as_the_target_is_not_the_target(command, ran):
    assert not runs(command, parse_command(ran))


@in_one_test(
    "command",
    [
        "ruff check tests/run.py", "uvx ruff@latest check tests/run.py", "python -m ruff check tests/run.py",
        "mypy tests/run.py", "uv run black tests/run.py", "npx prettier --check tests/run.py",
        "shellcheck tests/run.py", "python -m py_compile tests/run.py", "python -m json.tool tests/run.py",
        "node --check tests/run.py", "ruby -c tests/run.py", "php -l tests/run.py", "bash -n tests/run.py",
    ],
)  # fmt: skip
def test_a_program_that_reads_a_script_does_not_run_it(command):
    assert not runs(command, ["tests/run.py"])


def test_an_environment_whose_name_is_that_of_python_is_not_the_program():
    assert runs("tox -e py -- pytest -q", ["pytest"])
    assert not runs("tox -e py", ["pytest"])


@in_one_test("line", ["pytest -q", "cd a && pytest && cd b", "A=1 B[0]=2 pytest 2>&1", "echo a && ls", "a pytes"])
def test_a_line_of_plain_words_is_judged_without_taking_it_apart(line):
    shell_line = ShellLine(line, Budget(MAX_STEPS))
    assert shell_line.outcome_of(["pytest"]) == ((IS_RUN if "pytest" in line else ABSENT), "")
    assert shell_line.tree is None


PLAIN_WORDS = (
    "cd", "a", "pytest", "test", "-q", "--co", "--version", "A=1", "&&", "&&", "2>&1", "make", "-C", "./",
    ".venv/bin/pytest", "npm", "run", "exit", "set", "-e", "time", "if", "then", "fi", "grep", "echo", "py", "py3",
    "for", "do", "done", "{", "}", "!", "&", ">", "[", "]", "*", "~", "+x", "false",
)  # fmt: skip


@given(st.lists(st.sampled_from(PLAIN_WORDS), max_size=8).map(" ".join))
def test_a_line_of_plain_words_is_judged_as_if_it_were_taken_apart(line):
    for wanted in (["pytest"], ["make", "test"], ["npm", "test"]):
        plain = plain_commands(line)
        if plain and runs_plainly(plain, wanted):
            assert judge_line(ShellLine(line, Budget(MAX_STEPS)), wanted) == (IS_RUN, "")


@given(st.lists(st.sampled_from(PLAIN_WORDS), max_size=5).map(" ".join))
def test_plain_words_are_wanted_as_the_shell_reads_them(text):
    def words_or_fault(parse):
        try:
            return parse(text)
        except ValueError as error:
            return type(error)

    found = words_or_fault(parse_command)
    if found is not ValueError:
        assert found == words_or_fault(shell.read_simple_command)


def test_a_command_that_is_too_long_or_too_deep_counts_if_it_names_the_program():
    long = "echo " + "x" * MAX_COMMAND_CHARS
    assert not runs(long, ["pytest"])
    assert runs(f"{long} pytest", ["pytest"])
    for deep in (
        "$(" * MAX_NESTING * 2,
        "(" * 5000,
        "eval " * 5000,
        "env " * 5000,
        "find -exec " * 5000,
        "$((" * 5000,
        "${" * 5000,
        '"${' * 5000,
        "${" * 30 + "x" + "}" * 30,
    ):
        assert runs(f"{deep} echo pytest", ["pytest"])
        assert not runs(f"{deep} echo pytest", ["make"])


# ---- how much is read ------------------------------------------------------------


LONG = {
    "env -S": ("env", " -S a", " pytest"),
    "what looks like arithmetic": ("echo pytest", " $(( '(' ) )", ""),
    "a test": ("[[ pytest", " a\n", ""),
    "patterns": ("echo pytest ", "@()", ""),
    "arrays": ("pytest= ", "a=()", ""),
    "one array behind another": ("pytest= a", "=()", ""),
    "double quotes": ('echo pytest "', "a", '"'),
    "parameters": ("echo pytest ", "${x:-", ""),
    "backticks": ("echo pytest ", "`a`", ""),
    "backticks in double quotes": ('echo pytest "', "`a`", '"'),
    "here-documents": ("cat pytest", " <<a", "\n" + "a\n" * 2000),
    "a here-document": ("cat pytest <<a\n", "$(a)\n", "a"),
    "dots in a path": ("pytest ", "./", ""),
    "groups": ("", "(a);", " echo pytest"),
    "options": ("nice ", "-n a ", " echo pytest"),
    "nix -c": ("nix ", "-c ", " pytest"),
    "find -exec": ("find ", "-exec a ; ", " pytest"),
    "flock -c": ("flock ", "-c a ", " pytest"),
}


@pytest.mark.parametrize("name", LONG)
def test_a_command_that_is_twice_as_long_takes_twice_as_many_steps(name):
    head, part, tail = LONG[name]

    def steps(count):
        return counted_lines(lambda: runs(f"{head}{part * count}{tail}", ["pytest", "."]), *TAKING_APART)

    assert steps(2000) < 2.5 * steps(1000)


def test_the_words_of_a_test_are_not_searched_again(monkeypatch):
    """A search from each separator would be quadratic."""

    class Words(list):
        def __contains__(self, word):
            raise AssertionError(f"searched for {word}")

    def begin(self):
        self.words, self.stdin, self.inner = Words(), None, []

    monkeypatch.setattr(SimpleCommand, "__init__", begin)
    reader = ShellReader("[[ a\n b && c ]]; [[ d\n e", Budget(100))
    reader.read()
    found = [token.words for token in reader.tokens if isinstance(token, SimpleCommand)]
    assert found == [["[[", "a", "b", "c", "]]"], ["[[", "d", "e"]]
    assert reader.is_unknown


def test_the_parts_of_a_word_are_joined_once():
    """Joining the words at each parenthesis would be quadratic."""
    joined = 0

    def profile(frame, event, function):
        nonlocal joined
        if event == "c_call" and function.__name__ == "join":
            joined += len(getattr(frame.f_locals.get("self"), "word", None) or ())

    reader = ShellReader("@()" * 1000, Budget(10_000))
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        reader.read()
    finally:
        sys.setprofile(before)
    assert len(reader.tokens) == 1
    assert joined < 5000


def test_programs_that_run_a_command_have_at_most_one_argument_of_their_own():
    assert {key for key, (own, _, _) in WRAPPERS.items() if own} == {
        "docker compose exec", "docker compose run", "docker-compose exec", "docker-compose run",
        "docker exec", "docker run", "flock", "kubectl exec", "timeout",
    }  # fmt: skip
    assert {own for own, _, _ in WRAPPERS.values()} == {0, 1}


def test_a_budget_is_spent_when_nothing_is_left():
    budget = Budget(5)
    assert [budget.spend(3), budget.spend(2), budget.spend(0), budget.spend(1)] == [True, True, True, False]


def test_beyond_the_budget_a_command_counts_if_it_names_the_program():
    budget = Budget(300)
    line = ShellLine("echo pytest", budget)
    first = line.outcome_of(["pytest"]), budget.left
    assert line.outcome_of(["pytest"]) == first[0] == (ABSENT, "")
    assert 300 - first[1] > 50 + first[1] - budget.left  # it is taken apart once
    long = ShellLine(f"echo pytest {'x' * 1000}", budget)
    assert long.outcome_of(["pytest"]) == ("run", "")
    assert long.outcome_of(["make"]) == (ABSENT, "")
    assert ShellLine("echo pytest", budget).outcome_of(["pytest"]) == ("run", "")


@pytest.mark.parametrize("text", ["bash -c 'echo pytest {}'", "echo `echo pytest {}`", "cat <<E\n$pytest {}\nE"])
def test_a_text_in_a_text_costs_its_length_again(text):
    text = text.format("x" * 10_000)
    assert not runs(text, ["pytest"], Budget(5500))
    assert runs(text, ["pytest"], Budget(3500))


def test_the_arguments_behind_env_s_are_hardly_longer_than_before():
    line = f"env -S echo {'b ' * 3000} pytest"
    assert not runs(line, ["pytest"])


def test_beginning_to_read_a_text_costs_something():
    line = f"su {'-c echo.pytest ' * 100}"
    assert runs(line, ["pytest"], Budget(5000))
    assert not runs(line, ["pytest"], Budget(40_000))


def test_a_simple_command_costs_something():
    line = f"{'ls;' * 1000} echo pytest"
    assert runs(line, ["pytest"], Budget(40_000))
    assert not runs(line, ["pytest"], Budget(60_000))


def test_the_words_of_wrapped_commands_cost_something():
    line = f"{'nice ' * 20}echo pytest {'x ' * 1000}"
    assert runs(line, ["pytest"], Budget(20_000))
    assert not runs(line, ["pytest"], Budget(40_000))


@given(st.text("pytest ;&|<>(){}[]'\"\\#$`\n=-\t!*e", max_size=80))
def test_any_line_is_taken_apart(line):
    runs(line, ["pytest"])


@in_one_test(
    "text",
    ["a;b", "a|b", "a && b", "a & b", "a > b", "a < b", "a # b", "! a", "if a", "(a)", "{ a; }", "a() { b; }", "case a",
     "", "$(a)", "`a`", "echo $x", "'`a`'", "A=1 a", "A=1", "A[0]=1 a", "a\nb", "a\x1b", "a\u202eb", "a 'b",
     "a" * 201],
)  # fmt: skip
def test_only_one_simple_command_can_be_looked_for(text):
    with pytest.raises(ValueError, match=r"command|program"):
        parse_command(text)


def test_the_words_to_look_for_are_those_of_a_shell():
    assert parse_command("a" * 200) == ["a" * 200]
    assert parse_command('a "b\\"c\\$d\\\\e\\nf"') == ["a", 'b"c$d\\e\\nf']
    assert parse_command(" npm  test ") == ["npm", "test"]
    assert parse_command("pytest -k 'a b' \"c\" d\\ e") == ["pytest", "-k", "a b", "c", "d e"]
    assert runs("pytest -k 'a b'", parse_command("pytest -k 'a b'"))


# ---- real commands ---------------------------------------------------------------

REAL = json.loads(Path(__file__).with_name("commands_of_agents.json").read_text(encoding="utf-8"))


@in_one_test("number", range(len(REAL)))
def test_a_real_command_runs_what_a_person_reads_in_it(number):
    """The commands are those of shared transcripts; names of people are left out."""
    command = REAL[number]["command"]
    assert [words for words in REAL[number]["runs"] if not runs(command, words.split())] == []
    assert [words for words in REAL[number]["not"] if runs(command, words.split())] == []


# ---- bash as the second reader -------------------------------------------------

PROGRAMS = ("check", "other")
STUB = '#!/bin/sh\necho "$0" >>"$LOG"\n'


@pytest.fixture
def executed_by_bash(tmp_path):
    """Return a function that runs a line in bash and returns which of the stub programs ran."""
    programs, folder, log = tmp_path / "bin", tmp_path / "folder", tmp_path / "log"
    programs.mkdir()
    folder.mkdir()
    for name in PROGRAMS:
        (programs / name).write_text(STUB)
        (programs / name).chmod(0o755)
    for name in ("cat", "env", "find", "sh", "bash", "nice", "timeout", "xargs", "true", "false", "diff", "nohup"):
        (programs / name).symlink_to(f"/usr/bin/{name}")

    def run(line):
        log.write_text("")
        done = subprocess.run(
            [programs / "bash", "-c", line],
            cwd=folder,
            env={"PATH": str(programs), "LOG": str(log)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=HANGS_S,
            check=False,
        )
        assert b"syntax error" not in done.stderr, line
        return {path.rpartition("/")[2] for path in log.read_text().splitlines()}

    return run


PLAIN = [
    "PROGRAM", "PROGRAM -q a", "A=1 PROGRAM", "'PROGRAM' x", "echo PROGRAM", "echo 'PROGRAM; x'", "true # PROGRAM",
    "x=PROGRAM", "command -v PROGRAM", "echo \\; PROGRAM", 'echo "a; PROGRAM"', "case x in PROGRAM) true;; esac",
    "PROGRAM() { true; }", "[[ a == PROGRAM || b ]]", "a=(PROGRAM b)", "for x in PROGRAM; do true; done",
    "echo $((PROGRAM<<2))", "cat <<< PROGRAM", "echo $'it\\'s PROGRAM'", "env PROGRAM=1 true", '""PROGRAM',
]  # fmt: skip


def one_command(random, depth):
    """Return a line that runs something; every part in the place of a command is reached."""
    program = random.choice(PROGRAMS)
    if depth == 0:
        return random.choice(PLAIN).replace("PROGRAM", program)
    inner = one_command(random, depth - 1)
    return random.choice(
        [
            f"true && {{ {inner}\n}}",
            f"false || ({inner}\n)",
            f"if true; then {inner}\nfi",
            f'echo "$({inner}\n)" >/dev/null',
            f"cat <<'E' >/dev/null\n{inner}\nE",
            f"bash <<'EOF{depth}'\n{inner}\nEOF{depth}",
            f"for i in 1; do {inner}\ndone",
            f"case a in b) true;; a) {inner}\n;; esac",
            f"cat <({inner}\n) >/dev/null",
            f"{inner}\n{one_command(random, depth - 1)}",
            f"{inner} >/dev/null 2>&1" if "\n" not in inner and "#" not in inner else inner,
            f"t() {{ {inner}\n}}; t",
        ]
    )


def simple_wrapper(random, line):
    """Return a line behind a program that runs it."""
    wrapper = random.choice(
        ["env -u B A=2", "timeout -k 5 9", "nice -n 1", "nohup", "command", "env -S", "bash -ec", "eval"]
    )
    return f"{wrapper} {line}" if wrapper not in ("env -S", "bash -ec", "eval") else f"{wrapper} '{line}'"


def test_what_bash_runs_counts_and_nothing_else(executed_by_bash, report):
    random, counts = Random(20261122), {True: 0, False: 0}
    for number in range(400):
        if number % 4:
            line = one_command(random, random.randrange(4))
        else:
            line = simple_wrapper(random, random.choice(["check -q", "echo check", "cat check", "check"]))
        executed = executed_by_bash(line)
        for name in PROGRAMS:
            assert runs(line, [name]) is (name in executed), line
            counts[name in executed] += 1
    assert min(counts.values()) > 100
    report(f"commands: {sum(counts.values())} labels of bash on generated lines agreed, {counts[True]} of them runs")
