"""Does a shell command run a certain program? (docs/machines/gate.md)

Pure. A line that cannot be taken apart counts as a run if it has the program's name in it.
"""

from tailhook.machines.shell import LETTERS, TEXT_COST, ShellReader
from tailhook.machines.shell_tree import Unclear, tree_of
from tailhook.machines.shell_words import (
    UNKNOWN,
    WORD_LETTERS,
    Budget,
    base_name,
    begins_with,
    contains_name,
    has_option,
    is_assignment,
    is_program,
    is_python,
    program_name,
    runs_nothing,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailhook.machines.shell_tree import Node

MAX_COMMAND_CHARS = 1 << 16  # a longer command is not taken apart
LOOK_COST = 20  # in steps, to look at a simple command
MAX_SHELL_DEPTH = 5  # of shells in shells: sh -c "sh -c '...'"
MAX_WRAPPERS = 30  # of commands in one simple command: env timeout 5 nice make
SHELLS = ("ash", "bash", "dash", "ksh", "mksh", "sh", "zsh")
INTERPRETERS = (*SHELLS, ".", "bun", "deno", "node", "perl", "php", "ruby", "source")  # that run a script
SYNTAX_OPTIONS = {"node": "-c --check", "perl": "-c", "php": "-l", "ruby": "-c"}  # options to only read it

# Programs that run a command: the number of their own arguments before it, their options with a value as the next word,
# and their options to run nothing.
WRAPPERS: "dict[str, tuple[int, str, str]]" = {
    "bun": (0, "--cwd", ""),
    "bun run": (0, "--cwd", ""),
    "bun x": (0, "-p --package", ""),
    "bundle exec": (0, "", ""),
    "command": (0, "", "-v -V"),
    "conda run": (0, "-n --name -p --prefix --cwd", ""),
    "docker compose exec": (1, "-e --env --index -u --user -w --workdir", ""),
    "docker compose run": (1, "-e --env --entrypoint --name -l --label -p --publish -u --user -v --volume -w", ""),
    "docker-compose exec": (1, "-e --env --index -u --user -w --workdir", ""),
    "docker-compose run": (1, "-e --env --entrypoint --name -l --label -p --publish -u --user -v --volume -w", ""),
    "docker exec": (1, "-e --env --env-file --detach-keys -u --user -w --workdir", ""),
    "docker run": (1, (
        "-e --env --env-file -h --hostname -l --label -m --memory --mount --name --network -p --publish --platform -u"
        " --user -v --volume -w --workdir"), ""),
    "env": (0, "-u -C --unset --chdir", ""),
    "exec": (0, "-a", ""),
    "flock": (1, "-E -w --conflict-exit-code --timeout", ""),
    "git bisect run": (0, "", ""),
    "git submodule foreach": (0, "", ""),
    "hatch run": (0, "", ""),
    "kubectl exec": (1, "-c -n --container --namespace", ""),
    "nice": (0, "-n --adjustment", ""),
    "nohup": (0, "", ""),
    "npm exec": (0, "-p --package", ""),
    "npm x": (0, "-p --package", ""),
    "npx": (0, "-p --package", ""),
    "pdm run": (0, "-p --project", ""),
    "pipenv run": (0, "", ""),
    "pnpm": (0, "-C -F --dir --filter", ""),
    "pnpm dlx": (0, "--package", ""),
    "pnpm exec": (0, "", ""),
    "perf record": (0, "-e -o -F", ""),
    "perf stat": (0, "-e -o -r", ""),
    "poetry run": (0, "", ""),
    "runuser": (0, "-g -G -s -u --group --shell --user", ""),
    "rye run": (0, "-p --pyproject", ""),
    "setsid": (0, "", ""),
    "sudo": (0, (
        "-C -D -g -h -p -R -r -T -t -U -u --chdir --chroot --close-from --command-timeout --group --host --prompt"
        " --role --type --user"), "-e -K -k -l -V -v --edit --list --validate"),
    "time": (0, "-f -o --format --output", ""),
    "timeout": (1, "-k -s --kill-after --signal", ""),
    "uv run": (0, (
        "-p -w --allow-insecure-host --cache-dir --config-file --directory --env-file --extra --group --index"
        " --index-url --no-extra --no-group --only-group --package --project --python --with --with-editable"
        " --with-requirements"), ""),
    "uv tool run": (0, "-p -w --from --python --with", ""),
    "uvx": (0, "-p -w --from --python --with", ""),
    "xargs": (0, "-a -d -E -I -L -n -P -s --arg-file --delimiter --max-args --max-chars --max-lines --max-procs", ""),
    "yarn": (0, "--cwd", ""),
    "yarn dlx": (0, "-p --package", ""),
    "yarn exec": (0, "", ""),
    "yarn run": (0, "", ""),
}  # fmt: skip
# Programs with subcommands among the above. The value: options before the subcommand that take the next word.
SUBCOMMANDS = {
    "bun": "--cwd",
    "bundle": "",
    "conda": "",
    "docker": "-c -H -l --config --context --host --log-level",
    "docker compose": "-f -p --env-file --file --profile --project-directory --project-name",
    "docker-compose": "-f -p --env-file --file --profile --project-directory --project-name",
    "git": "-C -c --git-dir --work-tree",
    "git bisect": "",
    "git submodule": "",
    "hatch": "-e --env -p --project",
    "kubectl": "-n --context --kubeconfig --namespace",
    "npm": "-C -w --prefix --workspace",
    "pdm": "-p --project",
    "perf": "",
    "pipenv": "",
    "pnpm": "-C -F --dir --filter",
    "poetry": "-C -P --directory --project",
    "rye": "",
    "uv": "--cache-dir --config-file --directory --project",
    "uv tool": "",
    "yarn": "--cwd",
}
# Programs that take the same arguments as another one.
ALIASES = {
    "docker container": "docker",
    "gtimeout": "timeout",
    "mamba": "conda",
    "micromamba": "conda",
    "nerdctl": "docker",
    "podman": "docker",
    "podman-compose": "docker-compose",
}
# Programs that give a text to a shell, and the options with that text.
SHELL_OPTIONS = {
    "docker": "--entrypoint",
    "flock": "-c --command",
    "git": "-x --exec",
    "nix-shell": "--command --run",
    "podman": "--entrypoint",
    "runuser": "-c --command",
    "script": "-c --command",
    "su": "-c --command",
    "vagrant": "-c --command",
}
# Programs that hide the exit code of their command: always, or with one of the options. Behind "!": unless they have
# one of the options.
HIDE_EXIT = {
    "at": "",
    "batch": "",
    "docker compose exec": "-d --detach",
    "docker compose run": "-d --detach",
    "docker-compose exec": "-d --detach",
    "docker-compose run": "-d --detach",
    "docker exec": "-d --detach",
    "docker run": "-d --detach",
    "fd": "",
    "fdfind": "",
    "find": "",
    "git bisect run": "",
    "screen": "",
    "script": "! -e --return",
    "sudo": "-b --background",
    "systemd-run": "! -P -t --pipe --pty --scope --wait",
    "tmux": "",
    "trap": "",
    "watch": "",
}
# Programs that run nothing of their arguments; in the last two rows, subcommands of package managers. A program that is
# in no table may run its arguments.
RUNS_NOTHING_TEXT = """
(( [ [[ ack ag alias apk apropos apt apt-cache apt-get ast autopep8 awk bandit base64 basename bat bc bg biome
black brew builtin bzip2 cargo cat cd chgrp chmod chown cksum clang-format clang-tidy clear cloc cmp code
codespell column comm compileall cp ctags curl cut date dd declare delta df diff dig dirname dirs dis dnf
dos2unix dpkg du echo egrep emacs eslint exa export eza false fg fgrep file flake8 fold free gawk gem getconf
gh git glab go gofmt gofumpt golangci-lint grep groups gunzip gzip hadolint hash head help hexdump hg history
host hostname id info install isort jobs join journalctl jq jshint json.tool kill killall less let ln local
locate logger ls lsof man mapfile markdownlint md5sum mkdir mkfifo mktemp more mv mypy nano nl notify-send od
open oxlint pacman paste patch pgrep ping pip pip3 pipx pkill popd port prettier printenv printf ps pushd pwd
py_compile pycodestyle pydoc pydocstyle pyflakes pylint pyright pyupgrade radon read readarray readlink
readonly realpath rg rm rmdir rpm rsync rubocop ruff rustfmt scp sed seq set sftp sha1sum sha256sum shasum
shellcheck shfmt shift shopt shuf sleep snap sort split stat strings stylelint sum svn sync systemctl tabnanny
tac tail tailhook tar tee test tldr tokei tokenize touch tr tree true truncate tsc ty type typeset ulimit umask unalias
uname uniq unset unzip uptime vi vim vulture wait wc wget whatis whereis which whoami xdg-open xmllint xxd
yamllint yapf yes yq yum zcat zip zypper
a add approve-builds audit cache config create i init install-test it link list outdated pack publish rebuild remove
un uninstall unlink up update upgrade view why
"""
RUNS_NOTHING = frozenset(RUNS_NOTHING_TEXT.split())
# Programs without a row above that run their arguments or a text.
OTHER_RUNNERS = ("coverage", "eval", "fd", "fdfind", "find", "nix", "ssh", "trap", "watch")
BUILTINS = ("command", "eval", "exec", "trap")  # builtins of shells: other programs cannot run them
TEXT_RUNNERS = ("concurrently", "hyperfine", "parallel", "screen", "tmux", "watchexec")  # of arguments with blanks
RUNNERS = frozenset(
    [*SHELLS, *OTHER_RUNNERS, *ALIASES, *SHELL_OPTIONS, *SUBCOMMANDS, *(key for key in WRAPPERS if " " not in key)]
)
# Programs that run PROGRAM@VERSION.
VERSIONED = ("bun x", "bunx", "npm exec", "npm x", "npx", "pnpm dlx", "uv tool run", "uvx", "yarn dlx")


def take_apart(text: str, budget: Budget) -> "Node":
    """Return the tree of a shell text. Raises Unclear if it cannot be taken apart or takes too many steps."""
    reader = ShellReader(text, budget)
    if len(text) > MAX_COMMAND_CHARS or not budget.spend(TEXT_COST + len(text) // LETTERS):
        raise Unclear
    reader.read()
    if reader.is_unknown:
        raise Unclear
    return tree_of(reader.tokens)


class FoundRun:
    """How a simple command runs the wanted one.

    texts: shell texts that it runs, each with the words before it (the shell's options); empty if it is the
        wanted command, or runs it without a shell.
    hidden_by: the program that hides the exit code, "" if there is none.
    """

    __slots__ = ("hidden_by", "texts")

    def __init__(self, texts: "Sequence[tuple[Sequence[str], str]]", hidden_by: str) -> None:
        self.texts = texts
        self.hidden_by = hidden_by


class WantedCommand:
    """The command to look for in a shell line, and the budget for it.

    guesses: whether an unknown program or text (one that only the running shell knows) counts as the wanted one.
    met_unknown: whether there was an unknown one that did not count.
    """

    __slots__ = ("budget", "guesses", "met_unknown", "name", "wanted")

    def __init__(self, wanted: "Sequence[str]", budget: Budget) -> None:
        self.wanted = wanted
        self.name = program_name(wanted[0])
        self.budget = budget
        self.guesses = False
        self.met_unknown = False


def find_run(words: "Sequence[str]", stdin: str | None, question: WantedCommand) -> FoundRun | None:
    """Return how a simple command, or a command in its arguments, runs the wanted one; None if it does not.

    A shell text is not taken apart here: it may turn out to run nothing.

    Raises Unclear if that takes too many steps.
    """
    wanted = question.wanted
    if stdin is None and not any(question.name in word or UNKNOWN in word or word.endswith("sh") for word in words):
        return None  # not the name, and not a shell (all shells' names end so) that may read a text from a pipe
    todo: list[tuple[Sequence[str], str]] = [(words, "")]
    for _ in range(MAX_WRAPPERS):
        if not todo:
            return None
        inner, hidden_by = todo.pop()
        if not inner:
            continue
        if not question.budget.spend(LOOK_COST + len(inner)):
            raise Unclear
        if begins_with(inner, wanted):
            return FoundRun((), hidden_by)
        if is_assignment(inner[0]):
            todo.append((inner[1:], hidden_by))
            continue
        is_guess = UNKNOWN in base_name(inner[0])
        hidden_by = hidden_by or hides_exit(inner)
        texts = list(shell_texts(inner, stdin)) if inner is words or " " not in inner[0] else [((), " ".join(inner))]
        named = [(options, text) for options, text in texts if text and contains_name(text, question.name)]
        if named:
            return FoundRun(named, hidden_by)
        if is_guess or any(text is None or UNKNOWN in text for _, text in texts):
            if question.guesses:
                return FoundRun((), hidden_by)
            question.met_unknown = True
        todo += [(found, hidden_by) for found in inner_commands(inner, "/" in wanted[0])]
        if (is_guess or not is_known(inner)) and not runs_nothing(inner, wanted):
            todo.append((later_command(inner, wanted), hidden_by))
    raise Unclear


# ---- commands in the arguments of others --------------------------------------


def inner_commands(words: "Sequence[str]", wants_path: bool) -> "list[Sequence[str]]":
    """Return the commands that a program's arguments hold.

    wants_path: whether an interpreter's script counts as a command.
    """
    name = base_name(words[0])
    if name in ("find", "fd", "fdfind"):
        return list(executed_by_find(words))
    if name == "nix":
        at = next((at for at, word in enumerate(words, 1) if word in ("-c", "--command")), len(words))
        return [words[at:]]
    if is_python(name) and (module := python_module(words)):
        return [module]
    if name == "coverage" and "-m" in words:
        return [words[words.index("-m") + 1 :]]
    if wants_path and (is_python(name) or name in INTERPRETERS):
        at = skip_options(words, 1, "-o -O -W -X --rcfile --init-file")
        checks = SYNTAX_OPTIONS.get(name, "-n" if name in SHELLS else "")
        is_read = any(has_option(word, checks) for word in words[1:at])  # and not run
        script = words[at] if at < len(words) and not is_read else ""
        return [[script if "/" in script else f"./{script}", *words[at + 1 :]]] if script else []
    return wrapped_commands(words, name)


def wrapped_commands(words: "Sequence[str]", key: str) -> "list[Sequence[str]]":
    """Return the commands by a row of WRAPPERS: one, or two if a subcommand could be a command."""
    found: list[Sequence[str]] = []
    key = ALIASES.get(key, key)
    at = 1
    while True:
        if key in WRAPPERS:
            own, valued, idle = WRAPPERS[key]
            end = skip_options(words, at, valued)
            if not any(has_option(word, idle) for word in words[at:end]):
                if words[end : end + 1] == ["-"]:  # env -
                    end += 1
                at_command = end + own + (words[end + own : end + own + 1] == ["--"])
                found.append(without_environment(key, words[at_command:]))
        if key not in SUBCOMMANDS:
            return found
        at = skip_options(words, at, SUBCOMMANDS[key])
        if at == len(words):
            return found
        key = f"{key} {words[at]}"
        key = ALIASES.get(key, key)
        at += 1


def without_environment(key: str, words: "Sequence[str]") -> "Sequence[str]":
    """Return the words of a command without its program's version or environment: `ruff@latest`."""
    if not words:
        return words
    if key in VERSIONED:
        return [words[0][:1] + words[0][1:].partition("@")[0], *words[1:]]
    return [words[0].rpartition(":")[2], *words[1:]] if key == "hatch run" else words


def is_known(words: "Sequence[str]") -> bool:
    """Return whether the tables have a program."""
    name = base_name(words[0])
    return name in RUNNERS or name in RUNS_NOTHING or name in INTERPRETERS or is_python(name)


def later_command(words: "Sequence[str]", wanted: "Sequence[str]") -> "Sequence[str]":
    """Return the arguments of an unknown program, from the first one that is the wanted program or runs one.

    Returns [] if there is none, or if a program that runs nothing comes before it.
    """
    for at in range(1, len(words)):
        name = base_name(words[at])
        if is_program(words[at], wanted[0]) or (name in RUNNERS and name not in BUILTINS):
            return words[at:]
        if is_python(name) and words[at + 1 : at + 2] != ["--"]:  # otherwise an environment: tox -e py -- pytest
            return words[at:]
        if name in RUNS_NOTHING:
            break
    return ()


def hides_exit(words: "Sequence[str]") -> str:
    """Return the program's name if it hides the exit code of its command, otherwise ""."""
    name = base_name(words[0])
    key = ALIASES.get(name, name)
    at = 1
    while key in SUBCOMMANDS and key not in HIDE_EXIT and at < len(words):
        at = skip_options(words, at, SUBCOMMANDS[key])
        key = f"{key} {words[at]}" if at < len(words) else ""
        key = ALIASES.get(key, key)
        at += 1
    options = HIDE_EXIT.get(key)
    if options is None:
        return ""
    is_set = any(has_option(word, options) for word in words[at : skip_options(words, at, "")])
    return name if not options or is_set is not options.startswith("!") else ""


def skip_options(words: "Sequence[str]", at: int, valued: str, signs: str = "-") -> int:
    """Return the index of the first word from `at` on that is not an option or its value.

    valued: the options with the next word as their value.
    signs: the first letters of options.
    """
    while at < len(words) and words[at][:1] in signs and words[at] not in ("", "-"):
        at += 1
        if words[at - 1] == "--":
            break
        if has_option(words[at - 1], valued, is_last=True):
            at += 1
    return min(at, len(words))


def python_module(words: "Sequence[str]") -> "Sequence[str]":
    """Return the module that `python -m` runs, with its arguments, as a command; empty if it runs anything else."""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        at += 1
        for place, letter in enumerate("" if word.startswith("--") else word[1:], 2):
            if letter == "m":
                return [*filter(None, [word[place:]]), *words[at:]]
            if letter == "c":
                return ()
            if letter in "WX":
                at += place == len(word)
                break
    return ()


def executed_by_find(words: "Sequence[str]") -> "Iterator[Sequence[str]]":
    """Yield the commands of `find -exec`, `fd --exec` and their like."""
    start = 0
    for at, word in enumerate([*words, ";"]):
        if start and word in (";", "+"):
            yield words[start:at]
            start = 0
        elif not start and word in ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"):
            start = at + 1


def shell_texts(words: "Sequence[str]", stdin: str | None) -> "Iterator[tuple[Sequence[str], str | None]]":
    """Yield the texts that a program gives to a shell, each with the words before it: the shell's options.

    A text is None if it is unknown.

    stdin: the here-document or here-string of the command, None if it has none.
    """
    name, rest = base_name(words[0]), words[1:]
    if name in SHELLS:
        at = skip_options(words, 1, "-o -O --rcfile --init-file", signs="-+")
        options = words[:at]
        if any(has_option(word, "-c") for word in options):
            yield options, words[at] if at < len(words) else ""
        elif at == len(words) or any(has_option(word, "-s") for word in options):
            yield options, stdin  # without a here-document, a pipe or a group around it
    elif name == "env":
        for text in split_strings(words):
            yield (), text
    elif name == "eval":
        yield (), " ".join(rest)
    elif name == "trap":
        yield (), rest[0] if rest else ""
    elif name == "watch":
        yield (), " ".join(words[skip_options(words, 1, "-n --interval") :])
    elif name == "ssh":
        at = skip_options(words, 1, "-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w")
        yield (), " ".join(words[at + 1 :])
        if at + 1 >= len(words) or base_name(words[at + 1]) in SHELLS:
            yield (), stdin or ""
    elif name in TEXT_RUNNERS:
        for word in rest:
            if " " in word:
                yield (), word
    elif not is_known(words):
        for option, word in zip(rest, words[2:], strict=False):
            if " " in word and option in ("-c", "-Command", "--command"):
                yield (), word
    for option in SHELL_OPTIONS.get(name, "").split():
        for at, word in enumerate(rest):
            is_group = not word.startswith("--") and word.startswith("-") and word.endswith(option[1:])
            if word == option or (len(option) == 2 and is_group):
                yield (), " ".join(rest[at + 1 : at + 2])
            elif word.startswith(f"{option}=" if option.startswith("--") else option):
                yield (), word[len(option) :].removeprefix("=")


def split_strings(words: "Sequence[str]") -> "Iterator[str]":
    """Yield the text of `env -S` as another `env`: its words come before the other arguments, even options."""
    for at in range(1, skip_options(words, 1, "-C -S -u --chdir --split-string --unset")):
        letters, option, text = words[at].partition("S")
        rest = words[at + 1 :]
        if words[at].startswith("--split-string="):
            text = words[at].partition("=")[2]
        elif words[at] == "--split-string" or (option and not text and is_flags(letters)):
            text, rest = "".join(rest[:1]), rest[1:]
        elif not option or not is_flags(letters):
            continue
        yield " ".join(["env", text, *map(quote, rest)])
        return


def quote(word: str) -> str:
    """Return a word as a shell text."""
    if word and WORD_LETTERS.issuperset(word):
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def is_flags(word: str) -> bool:
    """Return whether a word is a dash and options of `env` without values."""
    return word.startswith("-") and not word[1:].strip("0iv")
