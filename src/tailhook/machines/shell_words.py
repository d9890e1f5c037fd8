"""The meaning of a shell command's words: the program's name, the options. (docs/machines/gate.md) Pure."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_WANTED_CHARS = 200  # of a command to look for
WORD_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+=@%~^*?[]")
UNKNOWN = "\0"  # in a word, text that only the running shell knows: $(x), <(x); and in front of the name in $x
COMMAND_WORDS = ("!", "{", "coproc", "do", "elif", "else", "if", "then", "until", "while")  # POSIX.1-2024, shell, 2.4
QUOTING = str.maketrans("", "", "\\'\"")
# Options with which a checking program only prints something, or always succeeds:
NO_RUN_OPTIONS = (
    "--co", "--collect-only", "--dry-run", "--exit-zero", "--fixtures", "--help", "--list", "--list-tests",
    "--listTests", "--markers", "--no-run", "--notest", "--setup-only", "--setup-plan", "--show-files",
    "--show-settings", "--show-only", "--version", "-DskipTests", "-Dmaven.test.skip", "-h", "-list",
)  # fmt: skip
VALUED_OPTIONS = (  # with the next word as their value
    "-C -f -I -o -p -w -W --cwd --deselect --dir --directory --exclude --file --ignore --makefile --manifest-path"
    " --package --prefix --rootdir --workspace"
)
# Programs with targets as arguments, in any order. Of each: the options with which it runs nothing or always succeeds,
# and those with the next word as their value.
MAKE = "-i -n -q -t --dry-run --ignore-errors --just-print --question --recon --touch", VALUED_OPTIONS
GRADLE = "-m --dry-run", "-b -c -g -I -p -x --exclude-task --include-build --init-script --project-dir"
MAVEN = "-fn --fail-never", "-f -pl -rf --file --projects --resume-from"
TARGET_PROGRAMS = {"gmake": MAKE, "gradle": GRADLE, "gradlew": GRADLE, "make": MAKE, "mvn": MAVEN, "mvnw": MAVEN}
EXCLUDING_OPTIONS = ("-x", "--exclude-task")  # of Gradle: it does not run the next word's target
NODE_MANAGERS = ("npm", "pnpm", "yarn")  # `run test` is `test` for them

# The meaning of a shell line for a command:
RUN, HIDDEN, ABSENT = "run", "hidden", "absent"


class Budget:
    """The number of steps left. All readers of one stop share it."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, count: int) -> bool:
        """Take steps from it; return whether there were enough."""
        self.left -= count
        return self.left >= 0


def begins_with(words: "Sequence[str]", wanted: "Sequence[str]") -> bool:
    """Return whether a simple command begins with the wanted words.

    Between them may be options, each with the next word as its value, and +toolchains. A word that only the running
    shell knows may be any word.
    """
    if not is_program(words[0], wanted[0]):
        return False
    if runs_nothing(words, wanted):
        return False
    targets = TARGET_PROGRAMS.get(base_name(wanted[0]))
    valued = targets[1] if targets else VALUED_OPTIONS
    runs_scripts = wanted[0] in NODE_MANAGERS
    if runs_scripts and wanted[1:3] == ["run", "test"]:
        wanted = [wanted[0], *wanted[2:]]
    reached = {(1, "")}  # number of wanted words so far, and the option that came last, if any
    for word in words[1:]:
        following = set()
        for count, option in reached:
            if count == len(wanted):
                return True
            if option and has_option(option, valued, is_last=True):
                following.add((count, ""))
                continue
            if path_of(word) == path_of(wanted[count]):
                following.add((count + 1, ""))
            if word.startswith("-"):
                following.add((count, word if "=" not in word and word != "--" else ""))
            elif word.startswith("+") or option or (runs_scripts and word == "run" and wanted[count] == "test"):
                following.add((count, ""))
            elif UNKNOWN in word:
                following.add((count + 1, ""))
            elif targets:
                following.add((count, ""))
        if not following:
            return False
        reached = following
    return any(count == len(wanted) for count, _ in reached)


def runs_nothing(words: "Sequence[str]", wanted: "Sequence[str]") -> bool:
    """Return whether a simple command has an unwanted option with which programs run nothing."""
    targets = TARGET_PROGRAMS.get(base_name(words[0]))
    if targets and any(has_option(word, targets[0]) for word in words):
        return True
    if targets is GRADLE:
        excluded = {words[at] for at, option in enumerate(words[:-1], 1) if option in EXCLUDING_OPTIONS}
        if not excluded.isdisjoint(wanted):
            return True
    return any(word.removesuffix("=true") in NO_RUN_OPTIONS and word not in wanted for word in words)


def is_program(word: str, wanted: str) -> bool:
    """Return whether a word names the wanted program.

    Without a slash, a wanted program is found in any folder, and Python in any version. With a slash, it is a path from
    the agent's folder; a path that begins elsewhere must end with it.
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


def has_option(word: str, options: str, is_last: bool = False) -> bool:
    """Return whether a word is one of the options, or a group of letters with one of them.

    -D and -P define something: the letters behind them are a name.

    is_last: whether no letter may follow it: following letters would be its value.
    """
    known = options.split()
    if word in known or word[:1] != "-" or word.startswith(("--", "-D", "-P")):
        return word in known
    for at, letter in enumerate(word[1:], 2):
        if f"-{letter}" in known:
            return at == len(word) or not is_last
    return False


def is_assignment(word: str) -> bool:
    """Return whether a word sets a variable: NAME=VALUE, NAME+=VALUE, NAME[INDEX]=VALUE."""
    name, equals, _ = word.partition("=")
    name = name.removesuffix("+")
    if name.endswith("]"):
        name = name.partition("[")[0]
    return bool(equals) and name.isascii() and name.isidentifier()


def program_name(program: str) -> str:
    """Return the text that is in every command with a program, apart from quotes: Python's version may differ."""
    name = base_name(program)
    return "py" if is_python(name) else name


def contains_name(line: str, name: str) -> bool:
    """Return whether a line has a program's name in it, quotes left out. It is much faster than `runs`."""
    if name in line:
        return True
    return ("\\" in line or "'" in line or '"' in line) and name in line.replace("\\\n", "").translate(QUOTING)


def base_name(path: str) -> str:
    """Return the text after the last slash."""
    return path.rpartition("/")[2]


def is_python(name: str) -> bool:
    """Return whether a program is a Python interpreter: python, python3.14, pypy3."""
    version = name.removeprefix("python").removeprefix("pypy")
    return name == "py" or (name[:2] == "py" and not version.strip("0123456789."))
