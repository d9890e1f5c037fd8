"""Does the exit code 0 of a shell line mean that a command ran and succeeded? (docs/machines/gate.md)

Pure. Follows all cases of a line: each command succeeds or fails. The line is evidence of a successful run if the
command ran and never failed in every case with the exit code 0.
"""

from tailhook.machines.commands import WantedCommand, find_run, take_apart
from tailhook.machines.shell import STATUS, SimpleCommand
from tailhook.machines.shell_tree import Node, Unclear, tree_of
from tailhook.machines.shell_words import ABSENT, HIDDEN, RUN, UNKNOWN, base_name, begins_with, is_assignment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    from tailhook.machines.shell_line import ShellLine
    from tailhook.machines.shell_tree import Tree

    # The possible states at one place of a line. The value: why the exit code of a failed run is lost there, "" if it
    # is not. The first number of a state is the last exit code (0 or 1), the second one is below, the third is the code
    # in a variable.
    States: TypeAlias = "dict[tuple[int, int, int], str]"

NOT_RUN, SUCCEEDED, FAILED, RETRIED = range(4)  # RETRIED: it failed, and only the commands behind || go on
MAX_LEVELS = 100  # of lists, pipelines, functions and shells in each other
RUN_COST = 24  # in steps, to follow a command
ONLY_SUCCEED = (":", "echo", "true")
NEED_NOT_RUN = "the line can succeed without it"
OTHER_COMMAND = "another command"
BEHIND_PIPE = ", behind a pipe"  # the end of a reason that `set -o pipefail` removes

# If the last command of a line begins with these, Claude Code (2.1.329) takes the exit code 1 for "nothing found" or
# "they differ" and reports no error, even if the code is from another command.
EXCUSED_ENDS = (
    ("[",), ("diff",), ("egrep",), ("fgrep",), ("find",), ("git", "diff"), ("git", "grep"), ("grep",), ("rg",),
    ("test",),
)  # fmt: skip


def judge_line(line: "ShellLine", wanted: "Sequence[str]") -> tuple[str, str]:
    """Return the result of `ShellLine.outcome_of` for a line that must be taken apart."""
    question = WantedCommand(wanted, line.budget)
    try:
        if line.tree is None:
            line.tree = take_apart(line.text, line.budget)
        outcome = Shell(question).judge(line.tree)
        if outcome[0] == ABSENT and question.met_unknown:
            question.guesses = True
            outcome = Shell(question).judge(line.tree)
    except Unclear:
        return RUN, ""
    return outcome


class Shell:
    """A shell that runs a line, with all possible states.

    exits_on_error, counts_pipes: its options errexit and pipefail.
    ended, left, returned: the states when it ended, left a loop and returned from a function.
    tested: how many conditions are around a command: errexit has no effect in them.
    saved: the variable with an exit code.
    """

    def __init__(self, question: WantedCommand, level: int = 0) -> None:
        self.question = question
        self.level = level
        self.exits_on_error = False
        self.counts_pipes = False
        self.functions: dict[str, Tree] = {}
        self.ended: States = {}
        self.left: States = {}
        self.returned: States = {}
        self.tested = 0
        self.saved = ""

    def judge(self, tree: "Tree") -> tuple[str, str]:
        """Return the result of `ShellLine.outcome_of`."""
        states = self.run_all(tree, {(0, NOT_RUN, 0): ""})
        if all(run == NOT_RUN for _, run, _ in states):
            return ABSENT, ""
        whys = [(run, why) for (code, run, _), why in states.items() if code == 0 and run != SUCCEEDED]
        if not whys:
            return self.judge_end(tree)
        failed = [why for run, why in whys if run != NOT_RUN]
        if not failed:
            return HIDDEN, NEED_NOT_RUN
        why = next(filter(None, failed), f"its exit code is that of {OTHER_COMMAND}")
        program = f"`{base_name(self.question.wanted[0])}`"
        return HIDDEN, why.replace(f"that of {program}", f"that of the last {program} in it")

    def judge_end(self, tree: "Tree") -> tuple[str, str]:
        """Return the outcome of a line with the command's exit code: a host may not report all its errors."""
        last = tree
        while not isinstance(last, SimpleCommand) and last.kind in ("list", "&&", "|"):
            last = last.parts[-1]
        words = last.words if isinstance(last, SimpleCommand) else []
        end = next((end for end in EXCUSED_ENDS if words[: len(end)] == [*end]), ())
        if not end or begins_with(words, self.question.wanted):
            return RUN, ""
        return HIDDEN, f"the host reports no error if a line that ends with `{' '.join(end)}` exits with 1"

    def run_all(self, tree: "Tree", states: "States") -> "States":
        """Return the possible states when the shell has ended."""
        return merged(self.run(tree, states), self.ended)

    def subshell(self) -> "Shell":
        """Return a copy of this shell. Raises Unclear if that takes too many steps."""
        if not self.question.budget.spend(len(self.functions)):
            raise Unclear
        shell = Shell(self.question, self.level)
        shell.exits_on_error, shell.counts_pipes = self.exits_on_error, self.counts_pipes
        shell.functions, shell.tested, shell.saved = dict(self.functions), self.tested, self.saved
        return shell

    # ---- lists, pipelines and compound commands ------------------------------------

    def run(self, tree: "Tree", states: "States") -> "States":
        """Return the possible states behind a part of the line. Raises Unclear if that takes too many steps."""
        if not states:
            return states
        if self.level == MAX_LEVELS or not self.question.budget.spend(RUN_COST):
            raise Unclear
        self.level += 1
        found = self.run_part(tree, states)
        self.level -= 1
        return found

    def run_part(self, tree: "Tree", states: "States") -> "States":
        """Return the result of `run`."""
        if isinstance(tree, SimpleCommand):
            return self.after_error(self.run_simple(tree, states))
        kind, parts = tree.kind, tree.parts
        if kind in ("list", "{"):
            for part in parts:
                states = self.run(part, states if is_assigning(part) else lost(states, part_name(part)))
            return states
        if kind == "&&":
            return self.run_and_or(tree, states)
        if kind == "!":
            found = self.run_tested(parts[0], states, "`!` inverts its exit code")
            return merged({(1 - code, run, saved): why for (code, run, saved), why in found.items()})
        if kind == "&":
            found = self.subshell().run_all(parts[0], states)
            return ended_with(found, (0,), "it runs in the background")
        if kind == "(":
            return self.after_error(self.subshell().run_all(parts[0], states))
        if kind == "|":
            return self.after_error(self.run_pipeline(parts, states))
        if kind == "()":
            self.functions[tree.name] = parts[0]
            return ended_with(states, (0,))
        options = self.exits_on_error, self.counts_pipes
        run_compound = {"if": self.run_if, "for": self.run_for, "case": self.run_case}.get(kind, self.run_while)
        found = run_compound(tree, states)
        self.keep_options(options)
        return found

    def after_error(self, states: "States") -> "States":
        """Return the states that go on behind a command: with errexit, a shell ends when a command fails."""
        if not self.exits_on_error or self.tested:
            return states
        self.ended = merged(self.ended, {state: why for state, why in states.items() if state[0]})
        return {state: why for state, why in states.items() if not state[0]}

    def run_tested(self, tree: "Tree", states: "States", why: str = "") -> "States":
        """Return the possible states behind a tested command. why: why the code of a failed run is lost."""
        self.tested += 1
        found = self.run(tree, states)
        self.tested -= 1
        return {state: (before or why if state[1] == FAILED else before) for state, before in found.items()}

    def run_and_or(self, node: Node, states: "States") -> "States":
        """Return the possible states behind commands with && or || between them."""
        found = self.run_tested(node.parts[0], states)
        options = self.exits_on_error, self.counts_pipes
        for at, operator in enumerate(node.operators, 1):
            right = node.parts[at]
            goes_on = 0 if operator == "&&" else 1
            entered = {state: why for state, why in found.items() if state[0] == goes_on}
            if operator == "||":
                why = f"its exit code is that of {part_name(right)}"
                entered = merged(
                    {
                        (code, RETRIED if run == FAILED else run, saved): before or (why if run == FAILED else "")
                        for (code, run, saved), before in entered.items()
                    }
                )
            is_last = at == len(node.operators)
            ran = self.run(right, entered) if is_last else self.run_tested(right, entered)
            if operator == "||":
                ran = merged({(code, min(run, FAILED), saved): before for (code, run, saved), before in ran.items()})
            found = merged({state: why for state, why in found.items() if state[0] != goes_on}, ran)
        self.keep_options(options)
        return found

    def keep_options(self, before: tuple[bool, bool]) -> None:
        """Set the options behind commands that may not have run: options unset before count as unset."""
        self.exits_on_error = self.exits_on_error and before[0]
        self.counts_pipes = self.counts_pipes and before[1]

    def run_pipeline(self, parts: "Sequence[Tree]", states: "States") -> "States":
        """Return the possible states behind a pipeline. Its commands run in shells of their own."""
        why = f"its exit code is that of {part_name(parts[-1])}{BEHIND_PIPE}"
        states = ended_with(states, (0,))
        for part in parts:
            ran: States = {}
            for (code, run, saved), before in states.items():
                if code and not self.counts_pipes:
                    before, code = before or (why if run == FAILED else ""), 0
                found = self.subshell().run_all(part, {(0, run, saved): before})
                ran = merged(ran, {(after[0] | code, after[1], after[2]): reason for after, reason in found.items()})
            states = ran
        return states

    def run_if(self, node: Node, states: "States") -> "States":
        """Return the possible states behind an `if`."""
        done: States = {}
        parts = node.parts
        for at in range(0, len(parts) - 1, 2):
            states = self.run_tested(parts[at], states, "`if` takes its exit code")
            branch = {state: why for state, why in states.items() if not state[0]}
            done = merged(done, self.run(parts[at + 1], branch))
            states = {state: why for state, why in states.items() if state[0]}
        if len(parts) % 2:
            return merged(done, self.run(parts[-1], states))
        return merged(done, ended_with(states, (0,)))

    def run_while(self, node: Node, states: "States") -> "States":
        """Return the possible states behind a `while` or `until`."""
        why = f"`{node.kind}` takes its exit code"
        goes_on = 0 if node.kind == "while" else 1
        outer, self.left = self.left, {}
        while True:
            tested = self.run_tested(node.parts[0], states, why)
            entered = {state: reason for state, reason in tested.items() if state[0] == goes_on}
            body = self.run(node.parts[1], entered)
            before, states = states, merged(states, lost(merged(body, self.left), f"`{node.kind}`"))
            if states.keys() == before.keys():
                break
        finished = {state: reason for state, reason in tested.items() if state[0] != goes_on}
        found = merged(ended_with(finished, (0, 1)), self.left)
        self.left = outer
        return found

    def run_for(self, node: Node, states: "States") -> "States":
        """Return the possible states behind a `for` or `select`."""
        head = node.parts[0]
        words = head.words if isinstance(head, SimpleCommand) else []
        states = self.run_inner(head, states)
        is_entered = "in" in words[2:3] and any(UNKNOWN not in word for word in words[3:])
        outer, self.left = self.left, {}
        done = {} if is_entered else ended_with(states, (0,))
        while True:
            body = merged(self.run(node.parts[1], states), self.left)
            done = merged(done, body)
            before, states = states, merged(states, lost(body, "the next turn of `for`"))
            if states.keys() == before.keys():
                break
        self.left = outer
        return done

    def run_case(self, node: Node, states: "States") -> "States":
        """Return the possible states behind a `case`."""
        states = self.run_inner(node.parts[0], states)
        done = {} if node.name else ended_with(states, (0,))
        for branch in node.parts[1:]:
            done = merged(done, self.run(branch, ended_with(states, (0,))))
        return done

    # ---- simple commands -----------------------------------------------------------

    def run_inner(self, command: "Tree", states: "States") -> "States":
        """Return the possible states behind the substitutions of a command. The exit code is the last one's."""
        for tokens in command.inner if isinstance(command, SimpleCommand) else ():
            states = self.subshell().run_all(tree_of(tokens), lost(states, "another substitution"))
        return states

    def run_simple(self, command: SimpleCommand, states: "States") -> "States":
        """Return the possible states behind a simple command."""
        words = command.words
        at = 0
        while at < len(words) and is_assignment(words[at]):
            at += 1
        entered = states
        if command.inner:
            states = self.run_inner(command, states)
        if at == len(words):
            return self.assign(words, states if command.inner else ended_with(states, (0,)), entered)
        words = words[at:]
        states = lost(states, part_name(command))
        name = words[0]
        if name in self.functions:
            return self.call(self.functions[name], states)
        if name == self.question.wanted[0]:
            return self.run_program(words, command.stdin, states)
        if name in ("exit", "return", "break", "continue"):
            return self.leave(name, words, entered if not command.inner else states)
        if name == "set":
            self.set_options(words[1:])
            return ended_with(states, (0,))
        if name in ONLY_SUCCEED:
            return ended_with(states, (0,))
        if name == "false":
            return ended_with(states, (1,))
        if name == "exec" and len(words) > 1:
            self.ended = merged(self.ended, self.run_program(words, command.stdin, states))
            return {}
        if name == "eval":
            return self.call(take_apart(" ".join(words[1:]), self.question.budget), states)
        return self.run_program(words, command.stdin, states)

    def assign(self, words: "Sequence[str]", states: "States", entered: "States") -> "States":
        """Return the possible states behind assignments without a command. `code=$?` keeps an exit code."""
        if not words or words[-1].partition("=")[2] != STATUS:
            return states
        self.saved = words[-1].partition("=")[0]
        return merged({(0, run, code): why for (code, run, _), why in entered.items()})

    def leave(self, name: str, words: "Sequence[str]", states: "States") -> "States":
        """End the shell, a function or a loop; return the states that go on: none."""
        word = words[1] if len(words) > 1 else STATUS
        if name in ("break", "continue"):
            self.left = merged(self.left, ended_with(states, (0,)))
            return {}
        if word == STATUS:
            found = states
        elif self.saved and word == f"{UNKNOWN}{self.saved}":
            found = merged({(saved, run, saved): why for (_, run, saved), why in states.items()})
        else:
            code = (0,) if not word.strip("0") else (1,) if word.isdigit() else (0, 1)
            found = ended_with(lost(states, f"`{name}`"), code)
        if name == "return":
            self.returned = merged(self.returned, found)
        else:
            self.ended = merged(self.ended, found)
        return {}

    def call(self, body: "Tree", states: "States") -> "States":
        """Return the possible states behind a call of a function."""
        outer, self.returned = self.returned, {}
        found = merged(self.run(body, states), self.returned)
        self.returned = outer
        return found

    def set_options(self, words: "Sequence[str]") -> None:
        """Set the shell's options, from the arguments of `set` or of a shell."""
        for at, word in enumerate(words):
            if word[:1] not in "-+" or word in ("-", "--"):
                continue
            is_on = word[0] == "-"
            if "e" in word and not word.startswith("--"):
                self.exits_on_error = is_on
            if word.endswith("o"):
                option = words[at + 1] if at + 1 < len(words) else ""
                if option == "errexit":
                    self.exits_on_error = is_on
                elif option == "pipefail":
                    self.counts_pipes = is_on

    def run_program(self, words: "Sequence[str]", stdin: str | None, states: "States") -> "States":
        """Return the possible states behind a program: it may be the wanted one, or run it."""
        found = find_run(words, stdin, self.question)
        if found is None:
            return ended_with(states, (0, 1))
        if not found.texts:
            ran = merged(
                {(0, FAILED if run == FAILED else SUCCEEDED, saved): why for (_, run, saved), why in states.items()},
                {(1, FAILED, saved): why if run == FAILED else "" for (_, run, saved), why in states.items()},
            )
        else:
            ran = ended_with(states, (0,))
            for options, text in found.texts:
                shell = Shell(self.question, self.level)
                shell.set_options(options)
                tree, before, ran = take_apart(text, self.question.budget), ran, {}
                for (code, run, saved), why in before.items():
                    after = shell.run_all(tree, {(0, run, saved): why})
                    ran = merged(ran, {(state[0] | code, *state[1:]): reason for state, reason in after.items()})
                    shell.ended = {}
            if all(run == NOT_RUN for _, run, _ in ran):
                return ended_with(states, (0, 1))
        if found.hidden_by:
            return ended_with(ran, (0, 1), f"its exit code is that of `{found.hidden_by}`")
        return ran


def merged(*many: "States") -> "States":
    """Return all states; of several reasons for a state, the first."""
    found: States = {}
    for states in many:
        for state, why in states.items():
            if not found.get(state):
                found[state] = why
    return found


def ended_with(states: "States", codes: "Iterable[int]", why: str = "") -> "States":
    """Return the states with other exit codes. why: why a failed run's code is lost, if it was not lost before."""
    return merged(
        {
            (code, run, saved): before or (why if run in (FAILED, RETRIED) else "")
            for (_, run, saved), before in states.items()
            for code in codes
        }
    )


def lost(states: "States", name: str) -> "States":
    """Return the states in front of a command: its exit code replaces that of a failed run."""
    why = f"its exit code is that of {name}"
    return {state: before or (why if state[0] and state[1] == FAILED else "") for state, before in states.items()}


def part_name(tree: "Tree") -> str:
    """Return the name of a part of a line in a reason."""
    if isinstance(tree, SimpleCommand):
        word = next((word for word in tree.words if not is_assignment(word)), UNKNOWN)
        return f"`{word.rpartition('/')[2]}`" if UNKNOWN not in word else OTHER_COMMAND
    if tree.kind in ("|", "&&"):
        return part_name(tree.parts[-1])
    if tree.kind in ("{", "("):
        return "the group behind it"
    return f"`{tree.kind}`" if tree.kind in ("if", "while", "until", "for", "case") else OTHER_COMMAND


def is_assigning(tree: "Tree") -> bool:
    """Return whether a part of a line has only assignments."""
    return isinstance(tree, SimpleCommand) and all(map(is_assignment, tree.words))
