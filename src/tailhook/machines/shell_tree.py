"""Makes a tree of a shell text's tokens: lists, pipelines, groups, branches and loops.

Pure. (POSIX.1-2024, shell command language, 2.9 and 2.10)
"""

from tailhook.machines.shell import SimpleCommand, Subshell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from tailhook.machines.shell import Token

    Tree: TypeAlias = "Node | SimpleCommand"

MAX_COMPOUND_DEPTH = 50  # of groups, branches and loops in each other
COMPOUND_HEADS = ("for", "select", "case")  # of compound commands; for the reader these are simple commands
CLOSERS = {"{": "}", "if": "fi", "while": "done", "until": "done"}


class Unclear(Exception):  # noqa: N818 - such a text is not an error
    """A shell text cannot be understood, or only with too many steps."""


class Node:
    """A part of a shell text, made of other parts.

    kind: one of those below.
    parts: what it is made of:
        "list", "|", "!", "&", "{", "(": commands.
        "()": the commands of a function.
        "&&": commands with && or || between them.
        "if": conditions and branches in turns, then the branch of `else`.
        "while", "until": the condition and the body.
        "for": its words and the body.
        "case": its words and the branches.
    name: of a function; "*" for a "case" with a branch for everything; otherwise empty.
    operators: of "&&": the operator in front of each command but the first.
    """

    __slots__ = ("kind", "name", "operators", "parts")

    def __init__(self, kind: str, parts: "list[Tree]", name: str = "", operators: "Sequence[str]" = ()) -> None:
        self.kind = kind
        self.parts = parts
        self.name = name
        self.operators = operators


def tree_of(tokens: "Sequence[Token]") -> Node:
    """Return the tree of a whole text. Raises Unclear."""
    parser = Parser(tokens)
    found = parser.read_list()
    if parser.at < len(tokens):
        raise Unclear
    return found


class Parser:
    """Reads tokens, in steps proportional to their number. at: the index of the next one."""

    def __init__(self, tokens: "Sequence[Token]", depth: int = 0) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = depth

    def peek(self) -> "Token | None":
        """Return the next token, None at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def accept(self, *words: str) -> str:
        """Pass over the next token if it is one of the words, and return it; otherwise return ""."""
        token = self.peek()
        if isinstance(token, str) and token in words:
            self.at += 1
            return token
        return ""

    def expect(self, word: str) -> None:
        """Pass over a word. Raises Unclear if another token is next."""
        if not self.accept(word):
            raise Unclear

    def read_list(self) -> Node:
        """Read commands until a token that cannot begin one."""
        parts: list[Tree] = []
        while True:
            while self.accept("\n"):
                pass
            token = self.peek()
            if token is None or (isinstance(token, str) and not self.begins_command(token)):
                return Node("list", parts)
            command = self.read_and_or()
            separator = self.accept(";", "\n", "&")
            parts.append(Node("&", [command]) if separator == "&" else command)
            if not separator:
                return Node("list", parts)

    def begins_command(self, word: str) -> bool:
        """Return whether a command can begin with an operator or keyword."""
        return word in CLOSERS or word in ("!", "coproc") or word.startswith("() ")

    def read_and_or(self) -> "Tree":
        """Read pipelines with && and || between them."""
        parts, operators = [self.read_pipeline()], []
        while operator := self.accept("&&", "||"):
            operators.append(operator)
            parts.append(self.read_pipeline())
        return Node("&&", parts, operators=operators) if operators else parts[0]

    def read_pipeline(self) -> "Tree":
        """Read commands with | between them, and ! in front."""
        while self.accept("\n"):
            pass
        is_negated = False
        while self.accept("!"):
            is_negated = not is_negated
        parts = [self.read_command()]
        while self.accept("|"):
            while self.accept("\n"):
                pass
            parts.append(self.read_command())
        found = parts[0] if len(parts) == 1 else Node("|", parts)
        return Node("!", [found]) if is_negated else found

    def read_command(self) -> "Tree":
        """Read a simple or a compound command. Raises Unclear if none is next, or if it is in too many others."""
        self.depth += 1
        if self.depth > MAX_COMPOUND_DEPTH:
            raise Unclear
        command = self.read_any()
        self.depth -= 1
        return command

    def read_any(self) -> "Tree":
        """Read the same as `read_command`."""
        first = self.peek()
        self.at += 1
        if isinstance(first, SimpleCommand):
            return self.read_compound(first) if first.words and first.words[0] in COMPOUND_HEADS else first
        if isinstance(first, Subshell):
            parser = Parser(first.tokens, self.depth)
            inside = parser.read_list()
            if parser.at < len(first.tokens):
                raise Unclear
            return Node("(", [inside])
        if first is None:
            raise Unclear
        if first == "coproc":
            return Node("&", [self.read_command()])
        if first.startswith("() "):
            return self.read_function(first[3:])
        if first not in CLOSERS:
            raise Unclear
        parts: list[Tree] = [self.read_list()]
        if first == "if":
            self.expect("then")
            parts.append(self.read_list())
            while self.accept("elif"):
                parts.append(self.read_list())
                self.expect("then")
                parts.append(self.read_list())
            if self.accept("else"):
                parts.append(self.read_list())
        elif first != "{":
            self.expect("do")
            parts.append(self.read_list())
        self.expect(CLOSERS[first])
        return Node(first, parts)

    def read_function(self, name: str) -> Node:
        """Read the body of a function."""
        while self.accept("\n"):
            pass
        token = self.peek()
        if isinstance(token, Subshell) and not token.tokens:  # function NAME ()
            self.at += 1
            while self.accept("\n"):
                pass
        return Node("()", [self.read_command()], name)

    def read_compound(self, head: SimpleCommand) -> Node:
        """Read the head of a `for`, `select` or `case`."""
        if head.words[0] == "case":
            branches: list[Tree] = [head]
            default = ""
            while pattern := self.accept(")", ") *"):
                default = default or pattern[2:]
                branches.append(self.read_list())
                self.accept(";;")
            self.expect("esac")
            return Node("case", branches, default)
        while self.accept(";", "\n"):
            pass
        self.expect("do")
        body = self.read_list()
        self.expect("done")
        return Node("for", [head, body])
