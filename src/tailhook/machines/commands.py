"""Does a shell command run a certain program? (docs/machines/gate.md)

Pure. A command is taken apart as bash does (POSIX.1-2024, shell, 2.2 to 2.10; Bash 5.3 manual, 3.1 to 3.6). What cannot
be taken apart counts as a run if the program's name occurs in it.
"""

from tailhook.machines import is_visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_COMMAND_CHARS = 1 << 16  # a longer command is not taken apart
MAX_WANTED_CHARS = 200  # of a command to look for
MAX_NESTING = 20  # of substitutions and groups in each other
MAX_SHELL_DEPTH = 5  # of shells that run shells: sh -c "sh -c '...'"
MAX_WRAPPERS = 30  # of commands that one simple command consists of: env timeout 5 nice make
UNKNOWN = "\0"  # stands in a word for what only the running shell knows: $x, $(x), <(x)
BLANKS = " \t\r\v\f"
WORD_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+=@%~^*?[]")
COMMAND_WORDS = ("!", "{", "coproc", "do", "elif", "else", "if", "then", "until", "while")  # POSIX.1-2024, shell, 2.4
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
    "env": "-S --split-string",
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
    reader = ShellReader(text)
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
    return may_name(line, program_name(wanted[0])) and runs_in(line, wanted, 0)


def program_name(program: str) -> str:
    """Return what every command that runs a program has in it, apart from quotes: Python's version may differ."""
    name = base_name(program)
    return "py" if is_python(name) else name


def may_name(line: str, name: str) -> bool:
    """Return whether a line has a program's name in it, quotes left out. It is much faster than `runs`."""
    if name in line:
        return True
    return ("\\" in line or "'" in line or '"' in line) and name in line.replace("\\\n", "").translate(QUOTING)


def runs_in(text: str, wanted: "Sequence[str]", depth: int) -> bool:
    """Return whether a shell text runs the wanted command, or cannot be taken apart.

    depth: of shells around it.
    """
    if len(text) > MAX_COMMAND_CHARS or depth > MAX_SHELL_DEPTH:
        return True
    reader = ShellReader(text)
    reader.read()
    return reader.is_unknown or any(command_runs(command, wanted, depth) for command in reader.commands)


def command_runs(command: "SimpleCommand", wanted: "Sequence[str]", depth: int) -> bool:
    """Return whether a simple command, or a command in its arguments, is the wanted one, or could be."""
    todo: list[Sequence[str]] = [command.words]
    for _ in range(MAX_WRAPPERS):
        if not todo:
            return False
        words = todo.pop()
        if not words:
            continue
        if begins_with(words, wanted):
            return True
        if is_assignment(words[0]):
            todo.append(words[1:])
            continue
        if UNKNOWN in base_name(words[0]):
            return True
        for text in shell_texts(words, command.stdin):
            if text is None or runs_in(text, wanted, depth + 1):
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
            if without_dot(word) == without_dot(wanted[count]):
                following.add((count + 1, False))
            if word.startswith("-"):
                following.add((count, "=" not in word and word != "--"))
            elif word.startswith("+") or after_option:
                following.add((count, False))
            elif UNKNOWN in word:
                following.add((count + 1, False))
        reached = following
    return any(count == len(wanted) for count, _ in reached)


def is_program(word: str, wanted: str) -> bool:
    """Return whether a word names the wanted program.

    Without a slash, a wanted program is found in any folder, and Python in any version. With one, it is a path from the
    agent's folder; a path that begins elsewhere must end with it.
    """
    if "/" in wanted:
        path, end = without_dot(word), without_dot(wanted)
        begins_elsewhere = path.startswith(("/", "~", "../", UNKNOWN))
        return "/" in word and (path == end or (begins_elsewhere and path.endswith(f"/{end}")))
    name = base_name(word)
    return name == wanted or (is_python(name) and is_python(wanted))


def base_name(path: str) -> str:
    """Return what is after the last slash."""
    return path.rpartition("/")[2]


def without_dot(path: str) -> str:
    """Return a path without "./" in front of it."""
    while path.startswith("./"):
        path = path[2:]
    return path


def is_python(name: str) -> bool:
    """Return whether a program is a Python interpreter: python, python3.14, pypy3."""
    return not name.removeprefix("python").removeprefix("pypy").strip("0123456789.") and name[:2] == "py"


def is_assignment(word: str) -> bool:
    """Return whether a word sets a variable: NAME=VALUE, NAME+=VALUE, NAME[INDEX]=VALUE."""
    name, equals, _ = word.partition("=")
    name = name.removesuffix("+")
    if name.endswith("]"):
        name = name.partition("[")[0]
    return bool(equals) and name.isascii() and name.isidentifier()


# ---- commands in the arguments of others --------------------------------------


def inner_commands(words: "Sequence[str]", wants_path: bool) -> "list[Sequence[str]]":
    """Return the commands that a program's arguments hold.

    wants_path: whether a script that an interpreter runs counts as a command.
    """
    name = base_name(words[0])
    if name in ("find", "fd", "fdfind"):
        return list(executed_by_find(words))
    if name == "nix":
        return [words[at:] for at, word in enumerate(words, 1) if word in ("-c", "--command")][:1]
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
    """Return the commands that a row of WRAPPERS says are run: one, or two if a subcommand could be a command."""
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
                yield " ".join(rest[at + 1 :] if name == "env" else rest[at + 1 : at + 2])
            elif word.startswith(f"{option}=" if option.startswith("--") else option):
                yield " ".join([word[len(option) :].removeprefix("="), *(rest[at + 1 :] if name == "env" else ())])


# ---- the shell's language ------------------------------------------------------


class SimpleCommand:
    """A simple command. words: without quotes. stdin: the text of its here-document or here-string, or None."""

    __slots__ = ("stdin", "words")

    def __init__(self) -> None:
        self.words: list[str] = []
        self.stdin: str | None = None


class HereDocument:
    """A here-document that begins after the line. name: its last line. is_quoted: whether it has no substitutions."""

    __slots__ = ("command", "is_quoted", "name", "strips_tabs")

    def __init__(self, command: SimpleCommand, name: str, is_quoted: bool, strips_tabs: bool) -> None:
        self.command = command
        self.name = name
        self.is_quoted = is_quoted
        self.strips_tabs = strips_tabs


class ShellReader:
    """Takes a shell text apart.

    commands: the simple commands that it runs or may run, those in substitutions included.
    is_unknown: whether a part of the text could not be taken apart.
    is_plain: whether there are no redirections, comments, keywords, groups or functions.
    """

    def __init__(self, text: str, at: int = 0, depth: int = 0, is_array: bool = False) -> None:
        """Prepare to read from an index.

        depth: of readers around this one.
        is_array: whether the words are values of an array: its substitutions are the only commands.
        """
        self.text = text
        self.at = at
        self.depth = depth
        self.is_array = is_array
        self.commands: list[SimpleCommand] = []
        self.is_unknown = depth > MAX_NESTING
        self.is_plain = True
        self.command = SimpleCommand()
        self.word: list[str] | None = None  # the parts of a word that has begun
        self.target = ""  # what the next word is: the "file" of a redirection, or a here-"text"
        self.here: list[HereDocument] = []  # those that begin after this line
        self.in_pattern = False  # between "in" or ";;" of a case and the ")" of its next pattern

    def read(self, closer: str = "") -> None:
        """Read to the end of the text, or to the closer of a group or substitution, at which `at` is then."""
        text = self.text
        while self.at < len(text) and not self.is_unknown:
            letter = text[self.at]
            if letter == closer and not self.in_pattern:
                break
            if letter in WORD_LETTERS:
                start = self.at
                while self.at < len(text) and text[self.at] in WORD_LETTERS:
                    self.at += 1
                self.add(text[start : self.at])
            elif letter in BLANKS:
                self.end_word()
                self.at += 1
            elif letter == "#" and self.word is None:
                self.is_plain = False
                self.at = line_end(text, self.at)
            elif letter in "<>" or text.startswith("&>", self.at):
                self.read_redirection()
            elif letter in ";&|()\n":
                self.read_separator(letter)
            else:
                self.read_quoted(letter)
        else:
            self.is_unknown = self.is_unknown or bool(closer)
        self.end_command()
        self.is_unknown = self.is_unknown or bool(self.here)

    def add(self, part: str) -> None:
        """Add a part to the word, which begins if there is none."""
        if self.word is None:
            self.word = []
        self.word.append(part)

    def end_word(self) -> None:
        """Put the word, if one has begun, where it belongs."""
        if self.word is None:
            return
        word, self.word = "".join(self.word), None
        words = self.command.words
        if self.target:
            if self.target == "text":
                self.command.stdin = word
            self.target = ""
        elif self.in_pattern:
            self.in_pattern = word != "esac"
        elif not words and word in COMMAND_WORDS:
            self.is_plain = False
        else:
            words.append(word)
            if len(words) == 2 and words[0] == "function":
                words.clear()
            elif len(words) == 3 and words[0] == "case" and word == "in":
                words.clear()
                self.in_pattern = True
            self.is_plain = self.is_plain and bool(words)

    def end_command(self) -> None:
        """Keep the simple command, if one has begun."""
        self.end_word()
        words = self.command.words
        if words and not self.is_array:
            self.commands.append(self.command)
            self.is_unknown = self.is_unknown or self.is_in_test()
        self.command, self.target = SimpleCommand(), ""

    def is_in_test(self) -> bool:
        """Return whether the command is a [[ that is not closed yet: operators mean something else in it."""
        return self.command.words[:1] == ["[["] and "]]" not in self.command.words

    def include(self, reader: "ShellReader") -> None:
        """Add what another reader found."""
        self.commands += reader.commands
        self.is_unknown = self.is_unknown or reader.is_unknown

    # ---- quotes and substitutions ----------------------------------------------

    def read_quoted(self, letter: str) -> None:
        """Read a backslash, a quoted string or a substitution, or one other letter."""
        text, at = self.text, self.at
        if letter == "\\":
            if text[at + 1 : at + 2] != "\n":  # otherwise the line goes on
                self.add(text[at + 1 : at + 2])
            self.at += 2
        elif letter == "'":
            self.add("")
            self.pass_string("'", escapes=False)
        elif letter == '"':
            self.at += 1
            self.add("")
            self.read_double_quoted('"')
        elif letter == "$" and text.startswith("$'", at):
            self.at += 1
            self.pass_string("'", escapes=True)
        elif letter == "$" and text.startswith('$"', at):
            self.at += 1
        elif letter in "$`":
            self.read_substitution(letter)
        else:
            self.add(letter)
            self.at += 1

    def pass_string(self, quote: str, escapes: bool) -> None:
        """Add the string between this quote and the next one. escapes: whether a backslash escapes a letter."""
        start = at = self.at + 1
        while at < len(self.text) and self.text[at] != quote:
            at += 2 if escapes and self.text[at] == "\\" else 1
        string = self.text[start:at]
        self.add(string.replace("\\n", "\n").replace("\\", "") if escapes else string)
        self.is_unknown = self.is_unknown or at >= len(self.text)
        self.at = at + 1

    def read_double_quoted(self, closer: str) -> None:
        """Read to the closer and past it, "" for the end of the text. Substitutions count in it (2.2.3)."""
        text = self.text
        while self.at < len(text) and not self.is_unknown:
            letter = text[self.at]
            if letter == closer:
                self.at += 1
                return
            if letter == "\\" and closer != "}":
                following = text[self.at + 1 : self.at + 2]
                self.add("" if following == "\n" else following if following in '$`"\\' else letter + following)
                self.at += 2
            elif letter == "\\":
                self.at += 2
            elif letter in "$`":
                self.read_substitution(letter)
            elif letter == '"' and closer == "}":
                self.at += 1
                self.read_double_quoted('"')
            else:
                self.add(letter)
                self.at += 1
        self.is_unknown = self.is_unknown or bool(closer)

    def read_substitution(self, letter: str) -> None:
        """Read what begins with a dollar sign or a backtick, as far as it is a substitution (2.6)."""
        text, at = self.text, self.at
        following = text[at + 1 : at + 2]
        if letter == "`":
            end = at + 1
            while end < len(text) and text[end] != "`":
                end += 2 if text[end] == "\\" else 1
            inside = text[at + 1 : end].replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\")
            reader = ShellReader(inside, 0, self.depth + 1)
            reader.read()
            self.include(reader)
            self.is_unknown = self.is_unknown or end >= len(text)
            self.at = end + 1
        elif following == "(":
            if not self.read_arithmetic(at + 1):
                self.read_group(at + 2)
        elif following == "{":
            kept, self.word, self.at = self.word, None, at + 2
            self.read_double_quoted("}")
            self.word = kept
        elif following.isalpha() or following == "_":
            self.at += 1
            while text[self.at : self.at + 1].isalnum() or text[self.at : self.at + 1] == "_":
                self.at += 1
        elif following and following in "@*#?$!-0123456789":
            self.at += 2
        else:
            self.add(letter)
            self.at += 1
            return
        self.add(UNKNOWN)

    def read_expansions(self, text: str) -> None:
        """Take the commands from the substitutions in a text whose quotes do not count: a here-document, arithmetic."""
        if "$" in text or "`" in text:
            reader = ShellReader(text, 0, self.depth + 1)
            reader.read_double_quoted("")
            self.include(reader)

    def read_group(self, start: int, is_array: bool = False) -> None:
        """Read commands from an index to the closing parenthesis, and past it."""
        reader = ShellReader(self.text, start, self.depth + 1, is_array)
        reader.read(")")
        self.include(reader)
        self.at = reader.at + 1

    def read_arithmetic(self, at: int) -> bool:
        """Read past an arithmetic expression if one begins at `at`: ((…)). Returns whether one does."""
        if not self.text.startswith("((", at):
            return False
        depth, end = 2, at + 2
        while end < len(self.text) and depth:
            depth += (self.text[end] == "(") - (self.text[end] == ")")
            end += 1
        if depth or self.text[end - 2] != ")":
            return False
        self.read_expansions(self.text[at + 2 : end - 2])
        self.at = end
        return True

    # ---- operators ---------------------------------------------------------------

    def read_separator(self, letter: str) -> None:
        """Read an operator that ends a command, a parenthesis, or the end of a line."""
        text = self.text
        if self.in_pattern:
            self.end_word()
            self.in_pattern = self.in_pattern and letter != ")"
            self.at += 1
            return
        if letter in "()":
            if letter == "(":
                self.read_parenthesis()
            else:
                self.is_unknown = True
            return
        self.end_word()
        if self.is_in_test():
            self.at += 1
            return
        self.end_command()
        if text.startswith((";;", ";&"), self.at):
            self.in_pattern = True
        while letter != "\n" and self.at < len(text) and text[self.at] in ";&|" and not text.startswith("&>", self.at):
            self.at += 1
            self.is_plain = False
        if letter == "\n":
            self.at += 1
            self.read_here_documents()

    def read_parenthesis(self) -> None:
        """Read a group, the values of an array, the head of a function, or a pattern, at an opening parenthesis."""
        words, text, at = self.command.words, self.text, self.at
        word = "".join(self.word) if self.word is not None else None
        self.is_plain = False
        if self.is_in_test():
            self.read_pattern()
        elif word is not None and word.endswith("=") and is_assignment(word):
            self.read_group(at + 1, is_array=True)
        elif word is not None and word[-1:] in ("@", "!", "?", "*", "+"):
            self.read_pattern()
        elif (word is not None or words) and text[at + 1 : at + 99].lstrip(BLANKS)[:1] == ")":
            self.word = None  # the head of a function
            words.clear()
            self.at = text.index(")", at) + 1
        elif word is None and words in ([], ["for"]) and self.read_arithmetic(at):
            pass
        elif word is None and not words:
            self.read_group(at + 1)
        else:
            self.is_unknown = True

    def read_pattern(self) -> None:
        """Read past the parentheses of a pattern, which may be nested."""
        depth = 0
        while self.at < len(self.text):
            depth += (self.text[self.at] == "(") - (self.text[self.at] == ")")
            self.at += 1
            if not depth:
                break
        self.is_unknown = self.is_unknown or depth > 0
        self.add(UNKNOWN)

    def read_redirection(self) -> None:
        """Read the operator of a redirection (2.7), or a process substitution."""
        text = self.text
        self.is_plain = False
        if text.startswith(("<(", ">("), self.at):
            self.read_group(self.at + 2)
            self.add(UNKNOWN)
            return
        word = "".join(self.word or ())
        if word.isdigit() or (word[:1] == "{" and word[-1:] == "}"):
            self.word = None  # the number of a file
        self.end_word()
        if self.is_in_test():
            self.at += 1
        elif text.startswith("<<<", self.at):
            self.at += 3
            self.target = "text"
        elif text.startswith("<<", self.at):
            self.at += 2
            self.read_here_name()
        else:
            self.at += 2 if text[self.at : self.at + 2] in ("&>", ">>", ">&", "<&", "<>", ">|") else 1
            self.at += text.startswith("&>>", self.at - 2)
            self.target = "file"

    def read_here_name(self) -> None:
        """Read the name of a here-document, behind its operator."""
        text = self.text
        strips_tabs = text.startswith("-", self.at)
        self.at += strips_tabs
        while text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        parts, is_quoted, quote = [], False, ""
        while self.at < len(text):
            letter = text[self.at]
            if letter == quote:
                quote = ""
            elif quote:
                parts.append(letter)
            elif letter in "'\"\\":
                is_quoted = True
                quote = "" if letter == "\\" else letter
            elif letter.isspace() or letter in ";&|()<>":
                break
            else:
                parts.append(letter)
            self.at += 1
        self.here.append(HereDocument(self.command, "".join(parts), is_quoted, strips_tabs))

    def read_here_documents(self) -> None:
        """Read the here-documents that begin at this line."""
        for document in self.here:
            start, name = self.at, document.name
            while True:
                if self.at >= len(self.text):
                    self.is_unknown = True
                    return
                end = line_end(self.text, self.at)
                line = self.text[self.at : end]
                if (line.lstrip("\t") if document.strips_tabs else line) == name:
                    break
                self.at = end + 1
            document.command.stdin = self.text[start : self.at]
            self.at = end
            if not document.is_quoted:
                self.read_expansions(document.command.stdin)
            if document is not self.here[-1]:
                self.at += 1
        self.here = []


def line_end(text: str, at: int) -> int:
    """Return the index of the next newline, or the text's length."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end
