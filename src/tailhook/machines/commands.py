"""Does a shell command run a certain program? (docs/machines/gate.md)

Pure. What cannot be taken apart counts as a run if the program's name occurs in it.
"""

from tailhook.machines import is_visible
from tailhook.machines.shell import TEXT_COST, UNKNOWN, WORD_LETTERS, Budget, ShellReader, is_assignment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailhook.machines.shell import SimpleCommand

MAX_COMMAND_CHARS = 1 << 16  # a longer command is not taken apart
MAX_READ_CHARS = 1 << 21  # of all commands that are taken apart for one stop; it takes 2 s at most
COMMAND_COST = 4  # of looking at a simple command, in characters that are read in the same time
MAX_WANTED_CHARS = 200  # of a command to look for
MAX_SHELL_DEPTH = 5  # of shells that run shells: sh -c "sh -c '...'"
MAX_WRAPPERS = 30  # of commands that one simple command consists of: env timeout 5 nice make
NOT_PROGRAMS = ("[[", "}", "case", "done", "esac", "fi", "for", "function", "in", "select")
SHELLS = ("ash", "bash", "dash", "ksh", "mksh", "sh", "zsh")
INTERPRETERS = (*SHELLS, "bun", "deno", "node", "perl", "php", "ruby")  # that run a script
QUOTING = str.maketrans("", "", "\\'\"")

# Programs that run a command: how many arguments of their own come before it, the options whose value is the next
# word, and the options with which they run nothing.
WRAPPERS: "dict[str, tuple[int, str, str]]" = {
    "bundle exec": (0, "", ""),
    "bunx": (0, "-p --package", ""),
    "caffeinate": (0, "-t -w", ""),
    "catchsegv": (0, "", ""),
    "chronic": (0, "", ""),
    "command": (0, "", "-v -V"),
    "conda run": (0, "-n --name -p --prefix --cwd", ""),
    "cross-env": (0, "", ""),
    "dbus-run-session": (0, "--config-file", ""),
    "direnv exec": (1, "", ""),
    "doas": (0, "-C -u", ""),
    "docker compose exec": (1, "-e --env --index -u --user -w --workdir", ""),
    "docker compose run": (1, "-e --env --entrypoint --name -l --label -p --publish -u --user -v --volume -w", ""),
    "docker-compose exec": (1, "-e --env --index -u --user -w --workdir", ""),
    "docker-compose run": (1, "-e --env --entrypoint --name -l --label -p --publish -u --user -v --volume -w", ""),
    "docker exec": (1, "-e --env --env-file --detach-keys -u --user -w --workdir", ""),
    "docker run": (1, (
        "-e --env --env-file -h --hostname -l --label -m --memory --mount --name --network -p --publish --platform -u"
        " --user -v --volume -w --workdir"), ""),
    "dotenv run": (0, "-f --file", ""),
    "env": (0, "-u -C --unset --chdir", ""),
    "exec": (0, "-a", ""),
    "flock": (1, "-E -w --conflict-exit-code --timeout", ""),
    "git bisect run": (0, "", ""),
    "hatch run": (0, "", ""),
    "ionice": (0, "-c -n -p -P -u --class --classdata", "-p"),
    "kubectl exec": (1, "-c -n --container --namespace", ""),
    "ltrace": (0, "-e -o", ""),
    "mise exec": (0, "", ""),
    "nice": (0, "-n --adjustment", ""),
    "nohup": (0, "", ""),
    "npm exec": (0, "-p --package", ""),
    "npm x": (0, "-p --package", ""),
    "npx": (0, "-p --package", ""),
    "op run": (0, "--env-file", ""),
    "parallel": (0, "-j --jobs --joblog --results", ""),
    "pdm run": (0, "-p --project", ""),
    "perf stat": (0, "-e -o -r", ""),
    "pipenv run": (0, "", ""),
    "pixi run": (0, "-e --environment --manifest-path", ""),
    "pnpm dlx": (0, "--package", ""),
    "pnpm exec": (0, "", ""),
    "podman exec": (1, "-e --env -u --user -w --workdir", ""),
    "poetry run": (0, "", ""),
    "rye run": (0, "-p --pyproject", ""),
    "setarch": (1, "", ""),
    "setsid": (0, "", ""),
    "stdbuf": (0, "-i -o -e --input --output --error", ""),
    "strace": (0, "-e -o -p -s -u", ""),
    "sudo": (0, (
        "-C -D -g -h -p -R -r -T -t -U -u --chdir --chroot --close-from --command-timeout --group --host --prompt"
        " --role --type --user"), "-e -K -k -l -V -v --edit --list --validate"),
    "systemd-run": (0, "-E -p -u --property --setenv --slice --unit", ""),
    "taskset": (1, "", "-p"),
    "time": (0, "-f -o --format --output", ""),
    "timeout": (1, "-k -s --kill-after --signal", ""),
    "unbuffer": (0, "", ""),
    "uv run": (0, (
        "-p -w --allow-insecure-host --cache-dir --config-file --directory --env-file --extra --group --index"
        " --index-url --no-extra --no-group --only-group --package --project --python --with --with-editable"
        " --with-requirements"), ""),
    "uv tool run": (0, "-p -w --from --python --with", ""),
    "uvx": (0, "-p -w --from --python --with", ""),
    "valgrind": (0, "", ""),
    "xargs": (0, "-a -d -E -I -L -n -P -s --arg-file --delimiter --max-args --max-chars --max-lines --max-procs", ""),
    "xvfb-run": (0, "-e -f -n -p -s -w --server-args --server-num", ""),
    "yarn": (0, "--cwd", ""),
    "yarn dlx": (0, "-p --package", ""),
    "yarn exec": (0, "", ""),
    "yarn run": (0, "", ""),
}  # fmt: skip
# Programs whose subcommands are among them, with the options before the subcommand whose value is the next word.
SUBCOMMANDS = {
    "bundle": "",
    "conda": "",
    "direnv": "",
    "docker": "-c -H -l --config --context --host --log-level",
    "docker compose": "-f -p --env-file --file --profile --project-directory --project-name",
    "docker-compose": "-f -p --env-file --file --profile --project-directory --project-name",
    "dotenv": "-f --file",
    "git": "-C -c --git-dir --work-tree",
    "git bisect": "",
    "hatch": "-e --env -p --project",
    "kubectl": "-n --context --kubeconfig --namespace",
    "mise": "-C --cd",
    "npm": "-C -w --prefix --workspace",
    "op": "--account",
    "pdm": "-p --project",
    "perf": "",
    "pipenv": "",
    "pixi": "",
    "pnpm": "-C -F --dir --filter",
    "podman": "",
    "poetry": "-C -P --directory --project",
    "rye": "",
    "uv": "--cache-dir --config-file --directory --project",
    "uv tool": "",
    "yarn": "--cwd",
}
# Programs that give a text to a shell: the options whose value that is.
SHELL_OPTIONS = {
    "flock": "-c --command",
    "nix-shell": "--command --run",
    "runuser": "-c --command",
    "script": "-c --command",
    "su": "-c --command",
}


def parse_command(text: str) -> list[str]:
    """Return the words of a text that is one simple command, which `runs` looks for.

    Raises ValueError with the reason if it is anything else, or longer than MAX_WANTED_CHARS.

    >>> parse_command("npm run 'unit tests'")
    ['npm', 'run', 'unit tests']
    """
    if len(text) > MAX_WANTED_CHARS:
        raise ValueError(f"the command is longer than {MAX_WANTED_CHARS} characters")
    if not all(map(is_visible, text)):
        raise ValueError("the command has control characters or more than one line")
    reader = ShellReader(text, Budget(MAX_WANTED_CHARS))
    reader.read()
    words = [word for command in reader.commands for word in command.words]
    is_plain = reader.is_plain and not reader.is_unknown and not any(UNKNOWN in word for word in words)
    if len(reader.commands) != 1 or not is_plain or "`" in text:
        raise ValueError("it is not one simple command: no ; & | < > ( ) $ ` # or keywords of the shell outside quotes")
    if not words[0] or words[0] in NOT_PROGRAMS or is_assignment(words[0]):
        raise ValueError("the command does not begin with a program")
    return words


def runs(line: str, wanted: "Sequence[str]") -> bool:
    """Return whether a shell line runs a command that begins with the wanted words, whatever its options are.

    >>> runs("cd app && FORCE=1 .venv/bin/pytest -q  # all of them", ["pytest"]), runs("echo pytest", ["pytest"])
    (True, False)
    """
    return ShellLine(line, Budget(MAX_READ_CHARS)).runs(wanted)


class ShellLine:
    """A shell line. It is taken apart once, however many commands are looked for in it, and only if it names one.

    budget: for this line and others. Beyond it, a line runs every program that it names.
    """

    __slots__ = ("budget", "reader", "text")

    def __init__(self, text: str, budget: Budget) -> None:
        self.text = text
        self.budget = budget
        self.reader: ShellReader | None = None

    def runs(self, wanted: "Sequence[str]") -> bool:
        """Return whether it runs a command that begins with the wanted words, or could."""
        if not contains_name(self.text, program_name(wanted[0])):
            return False
        if self.reader is None:
            self.reader = take_apart(self.text, self.budget)
        return any_runs(self.reader, wanted, 0)


def program_name(program: str) -> str:
    """Return what every command that runs a program has in it, apart from quotes: Python's version may differ."""
    name = base_name(program)
    return "py" if is_python(name) else name


def contains_name(line: str, name: str) -> bool:
    """Return whether a line has a program's name in it, quotes left out. It is much faster than `runs`."""
    if name in line:
        return True
    return ("\\" in line or "'" in line or '"' in line) and name in line.replace("\\\n", "").translate(QUOTING)


def take_apart(text: str, budget: Budget) -> ShellReader:
    """Return a reader that has read a shell text. It has not if the text is too long or the budget is spent."""
    reader = ShellReader(text, budget)
    if len(text) > MAX_COMMAND_CHARS or not budget.spend(TEXT_COST + len(text)):
        reader.is_unknown = True
    else:
        reader.read()
    return reader


def any_runs(reader: ShellReader, wanted: "Sequence[str]", depth: int) -> bool:
    """Return whether a text that was read runs the wanted command, or could not be taken apart.

    depth: of shells around it.
    """
    return reader.is_unknown or any(command_runs(command, wanted, depth, reader.budget) for command in reader.commands)


def command_runs(command: "SimpleCommand", wanted: "Sequence[str]", depth: int, budget: Budget) -> bool:
    """Return whether a simple command, or a command in its arguments, is the wanted one, or could be."""
    todo: list[Sequence[str]] = [command.words]
    for _ in range(MAX_WRAPPERS):
        if not todo:
            return False
        words = todo.pop()
        if not words:
            continue
        if not budget.spend(COMMAND_COST + len(words)):
            return True
        if begins_with(words, wanted):
            return True
        if is_assignment(words[0]):
            todo.append(words[1:])
            continue
        if UNKNOWN in base_name(words[0]):
            return True
        for text in shell_texts(words, command.stdin):
            if text is None or depth == MAX_SHELL_DEPTH or any_runs(take_apart(text, budget), wanted, depth + 1):
                return True
        todo += inner_commands(words, "/" in wanted[0])
    return True


def begins_with(words: "Sequence[str]", wanted: "Sequence[str]") -> bool:
    """Return whether a simple command begins with the wanted words.

    Between them may be options, each with a value that is the next word, and +toolchains. A word that only the running
    shell knows may be any word.
    """
    if not is_program(words[0], wanted[0]):
        return False
    reached = {(1, False)}  # how many wanted words there were so far, and whether an option came last
    for word in words[1:]:
        following = set()
        for count, after_option in reached:
            if count == len(wanted):
                return True
            if path_of(word) == path_of(wanted[count]):
                following.add((count + 1, False))
            if word.startswith("-"):
                following.add((count, "=" not in word and word != "--"))
            elif word.startswith("+") or after_option:
                following.add((count, False))
            elif UNKNOWN in word:
                following.add((count + 1, False))
        if not following:
            return False
        reached = following
    return any(count == len(wanted) for count, _ in reached)


def is_program(word: str, wanted: str) -> bool:
    """Return whether a word names the wanted program.

    Without a slash, a wanted program is found in any folder, and Python in any version. With one, it is a path from the
    agent's folder; a path that begins elsewhere must end with it.
    """
    if "/" in wanted:
        path, end = path_of(word), path_of(wanted)
        begins_elsewhere = path.startswith(("/", "~", "../", UNKNOWN))
        return "/" in word and (path == end or (begins_elsewhere and path.endswith(f"/{end}")))
    name = base_name(word)
    return name == wanted or (is_python(name) and is_python(wanted))


def base_name(path: str) -> str:
    """Return what is after the last slash."""
    return path.rpartition("/")[2]


def path_of(word: str) -> str:
    """Return a word without "./" in front of it and without a slash at its end."""
    end = len(word) - (len(word) > 1 and word.endswith("/"))
    at = 0
    while word.startswith("./", at, end):
        at += 2
    return word[at:end]


def is_python(name: str) -> bool:
    """Return whether a program is a Python interpreter: python, python3.14, pypy3."""
    return not name.removeprefix("python").removeprefix("pypy").strip("0123456789.") and name[:2] == "py"


# ---- commands in the arguments of others --------------------------------------


def inner_commands(words: "Sequence[str]", wants_path: bool) -> "list[Sequence[str]]":
    """Return the commands that a program's arguments hold.

    wants_path: whether a script that an interpreter runs counts as a command.
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
        script = words[at] if at < len(words) else ""
        return [[script if "/" in script else f"./{script}", *words[at + 1 :]]] if script else []
    return wrapped_commands(words, name)


def wrapped_commands(words: "Sequence[str]", key: str) -> "list[Sequence[str]]":
    """Return the commands that run according to a row of WRAPPERS: one, or two if a subcommand could be a command."""
    found: list[Sequence[str]] = []
    at = 1
    while True:
        if key in WRAPPERS:
            own, valued, idle = WRAPPERS[key]
            end = skip_options(words, at, valued)
            if not any(has_option(word, idle) for word in words[at:end]):
                at_command = end + own + (words[end + own : end + own + 1] == ["--"])
                found.append(words[at_command:])
        if key not in SUBCOMMANDS:
            return found
        at = skip_options(words, at, SUBCOMMANDS[key])
        if at == len(words):
            return found
        key = f"{key} {words[at]}"
        at += 1


def skip_options(words: "Sequence[str]", at: int, valued: str) -> int:
    """Return the index of the first word from `at` on that is not an option or its value.

    valued: the options whose value is the next word.
    """
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        at += 1
        if words[at - 1] == "--":
            break
        if has_option(words[at - 1], valued, is_last=True):
            at += 1
    return min(at, len(words))


def has_option(word: str, options: str, is_last: bool = False) -> bool:
    """Return whether a word is one of the options, or a group of letters with one of them.

    is_last: whether no letter may follow it: that would be its value.
    """
    known = options.split()
    if word in known or word[:1] != "-" or word.startswith("--"):
        return word in known
    for at, letter in enumerate(word[1:], 2):
        if f"-{letter}" in known:
            return at == len(word) or not is_last
    return False


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


def shell_texts(words: "Sequence[str]", stdin: str | None) -> "Iterator[str | None]":
    """Yield the texts that a program gives to a shell; None for one that is unknown.

    stdin: the here-document or here-string of the command, None if it has none.
    """
    name, rest = base_name(words[0]), words[1:]
    if name in SHELLS:
        at = skip_options(words, 1, "-o -O --rcfile --init-file")
        options = words[1:at]
        if any(has_option(word, "-c") for word in options):
            yield words[at] if at < len(words) else ""
        elif at == len(words) or any(has_option(word, "-s") for word in options):
            yield stdin  # without a here-document, a pipe or a group around it
    elif name == "env":
        yield from split_strings(words)
    elif name == "eval":
        yield " ".join(rest)
    elif name == "trap":
        yield rest[0] if rest else ""
    elif name == "watch":
        yield " ".join(words[skip_options(words, 1, "-n --interval") :])
    elif name == "ssh":
        at = skip_options(words, 1, "-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w")
        yield " ".join(words[at + 1 :])
    for option in SHELL_OPTIONS.get(name, "").split():
        for at, word in enumerate(rest):
            is_group = not word.startswith("--") and word.startswith("-") and word.endswith(option[1:])
            if word == option or (len(option) == 2 and is_group):
                yield " ".join(rest[at + 1 : at + 2])
            elif word.startswith(f"{option}=" if option.startswith("--") else option):
                yield word[len(option) :].removeprefix("=")


def split_strings(words: "Sequence[str]") -> "Iterator[str]":
    """Yield the text of `env -S` as another `env`: its words stand in front of the other arguments, as options too."""
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
