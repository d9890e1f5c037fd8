"""Does a shell command run a certain program? (docs/machines/gate.md)

Pure. What cannot be taken apart counts as a run if the program's name occurs in it.
"""

from tailhook.machines.shell import (
    LETTERS,
    TEXT_COST,
    UNKNOWN,
    WORD_LETTERS,
    Budget,
    ShellReader,
    is_assignment,
)
from tailhook.machines.shell_tree import Unclear, tree_of
from tailhook.machines.wanted_command import base_name, contains_name, is_python, program_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tailhook.machines.shell_tree import Node

MAX_COMMAND_CHARS = 1 << 16  # a longer command is not taken apart
LOOK_COST = 20  # of looking at a simple command, in steps
MAX_SHELL_DEPTH = 5  # of shells that run shells: sh -c "sh -c '...'"
MAX_WRAPPERS = 30  # of commands that one simple command consists of: env timeout 5 nice make
SHELLS = ("ash", "bash", "dash", "ksh", "mksh", "sh", "zsh")
INTERPRETERS = (*SHELLS, ".", "bun", "deno", "node", "perl", "php", "ruby", "source")  # that run a script

# Programs that run a command: how many arguments of their own come before it, the options whose value is the next
# word, and the options with which they run nothing.
WRAPPERS: "dict[str, tuple[int, str, str]]" = {
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
# Programs whose subcommands are among them, with the options before the subcommand whose value is the next word.
SUBCOMMANDS = {
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
# Programs that give a text to a shell: the options whose value that is.
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
# Programs whose exit code does not depend on that of what they run, or not if they have one of the options, or only if
# they have none: those behind "!".
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
# Programs that do not run what is among their arguments; in the last row, subcommands of package managers. Any other
# program that is not in these tables does.
RUNS_NOTHING_TEXT = """
(( [ [[ ag alias ack apk apropos apt apt-cache apt-get awk base64 basename bat bc bg brew builtin bzip2 cargo
cat cd chgrp chmod chown cksum clear cmp column comm cp curl cut date dd declare delta df diff dig dirname dirs
dnf du echo egrep emacs exa export eza false fg fgrep file fold free gawk gem getconf gh git glab go grep groups
gunzip gzip hash head help hexdump history host hostname id info install jobs join jq kill killall less let ln
local locate logger ls lsof man mapfile md5sum mkdir mkfifo mktemp more mv nano nl notify-send od open pacman
paste patch pgrep ping pip pip3 pipx pkill popd port printenv printf ps pushd pwd read readarray readlink
readonly realpath rg rm rmdir rsync scp sed seq set sftp sha1sum sha256sum shasum shift shopt shuf sleep snap
sort split stat strings sum sync tac tail tar tee test touch tr tree true truncate type typeset ulimit umask
unalias uname uniq unset unzip uptime vi vim wait wc wget whatis whereis which whoami xxd yes yq yum zcat zip
zypper
add audit cache config create init link list outdated pack publish remove uninstall unlink up upgrade why
"""
RUNS_NOTHING = frozenset(RUNS_NOTHING_TEXT.split())
# Programs without a row above that run what is among their arguments, or a text.
OTHER_RUNNERS = ("coverage", "eval", "fd", "fdfind", "find", "nix", "ssh", "trap", "watch")
BUILTINS = ("command", "eval", "exec", "trap")  # of shells: another program cannot run them
TEXT_RUNNERS = ("concurrently", "hyperfine", "parallel", "screen", "tmux", "watchexec")  # of arguments with blanks
RUNNERS = frozenset(
    [*SHELLS, *OTHER_RUNNERS, *ALIASES, *SHELL_OPTIONS, *SUBCOMMANDS, *(key for key in WRAPPERS if " " not in key)]
)
VERSIONED = ("bunx", "npm exec", "npm x", "npx", "pnpm dlx", "uv tool run", "uvx", "yarn dlx")  # run PROGRAM@VERSION
MAKES = ("gmake", "make")  # whose arguments are targets in any order
MAKE_DRY_OPTIONS = "-n -q -t --dry-run --just-print --question --recon --touch"


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

    texts: shell texts that it runs, each behind the arguments that set the shell's options; none if it is the wanted
        command, or runs it without a shell.
    hidden_by: the program whose exit code does not depend on that of what it runs, "" if there is none.
    """

    __slots__ = ("hidden_by", "texts")

    def __init__(self, texts: "Sequence[tuple[Sequence[str], str]]", hidden_by: str) -> None:
        self.texts = texts
        self.hidden_by = hidden_by


class WantedCommand:
    """Which command is looked for in a shell line, and what the answer may cost.

    guesses: whether a program, or a text for a shell, that only the running shell knows is the wanted one.
    met_unknown: whether there was one that was not taken for it.
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
        return None  # no name, and no shell (all their names end so) whose text may be in a pipe
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
        if is_guess or not is_known(inner):
            todo.append((later_command(inner, wanted), hidden_by))
    raise Unclear


def begins_with(words: "Sequence[str]", wanted: "Sequence[str]") -> bool:
    """Return whether a simple command begins with the wanted words.

    Between them may be options, each with a value that is the next word, and +toolchains. A word that only the running
    shell knows may be any word.
    """
    if not is_program(words[0], wanted[0]):
        return False
    takes_targets = wanted[0] in MAKES
    if takes_targets and any(has_option(word, MAKE_DRY_OPTIONS) for word in words):
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
            elif takes_targets:
                following.add((count, False))
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


def path_of(word: str) -> str:
    """Return a word without "./" in front of it and without a slash at its end."""
    end = len(word) - (len(word) > 1 and word.endswith("/"))
    at = 0
    while word.startswith("./", at, end):
        at += 2
    return word[at:end]


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
        is_read = name in SHELLS and any(has_option(word, "-n") for word in words[1:at])  # and not run
        script = words[at] if at < len(words) and not is_read else ""
        return [[script if "/" in script else f"./{script}", *words[at + 1 :]]] if script else []
    return wrapped_commands(words, name)


def wrapped_commands(words: "Sequence[str]", key: str) -> "list[Sequence[str]]":
    """Return the commands that run according to a row of WRAPPERS: one, or two if a subcommand could be a command."""
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
    """Return the words of a command without what names the version or environment of its program: `ruff@latest`."""
    if not words:
        return words
    if key in VERSIONED:
        return [words[0][:1] + words[0][1:].partition("@")[0], *words[1:]]
    return [words[0].rpartition(":")[2], *words[1:]] if key == "hatch run" else words


def is_known(words: "Sequence[str]") -> bool:
    """Return whether the tables know what a program does with its arguments."""
    name = base_name(words[0])
    return name in RUNNERS or name in RUNS_NOTHING or name in INTERPRETERS or is_python(name)


def later_command(words: "Sequence[str]", wanted: "Sequence[str]") -> "Sequence[str]":
    """Return the arguments of an unknown program from the first one on that is the wanted program or runs one.

    Returns none if there is none, or if a program that runs nothing comes before it.
    """
    for at in range(1, len(words)):
        name = base_name(words[at])
        if is_program(words[at], wanted[0]) or (name in RUNNERS and name not in BUILTINS) or is_python(name):
            return words[at:]
        if name in RUNS_NOTHING:
            break
    return ()


def hides_exit(words: "Sequence[str]") -> str:
    """Return the program's name if its exit code does not depend on that of what it runs, otherwise ""."""
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

    valued: the options whose value is the next word.
    signs: what an option may begin with.
    """
    while at < len(words) and words[at][:1] in signs and words[at] not in ("", "-"):
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


def shell_texts(words: "Sequence[str]", stdin: str | None) -> "Iterator[tuple[Sequence[str], str | None]]":
    """Yield the texts that a program gives to a shell, each behind the arguments that set the shell's options.

    A text is None if it is unknown.

    stdin: the here-document or here-string of the command, None if it has none.
    """
    name, rest = base_name(words[0]), words[1:]
    if name in SHELLS:
        at = skip_options(words, 1, "-o -O --rcfile --init-file", signs="-+")
        options = words[1:at]
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
        for at, word in enumerate(rest):
            if " " in word and rest[at - 1] in ("-c", "-Command", "--command"):
                yield (), word
    for option in SHELL_OPTIONS.get(name, "").split():
        for at, word in enumerate(rest):
            is_group = not word.startswith("--") and word.startswith("-") and word.endswith(option[1:])
            if word == option or (len(option) == 2 and is_group):
                yield (), " ".join(rest[at + 1 : at + 2])
            elif word.startswith(f"{option}=" if option.startswith("--") else option):
                yield (), word[len(option) :].removeprefix("=")


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
