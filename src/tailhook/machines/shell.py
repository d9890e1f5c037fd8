"""Takes a shell text apart into its simple commands, as bash does.

Pure. (POSIX.1-2024, shell command language, 2.2 to 2.10; Bash 5.3 manual, 3.1 to 3.6)
"""

from tailhook.machines import is_visible
from tailhook.machines.shell_words import COMMAND_WORDS, MAX_WANTED_CHARS, UNKNOWN, WORD_LETTERS, Budget, is_assignment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    Token: TypeAlias = "SimpleCommand | Subshell | str"  # noqa: S105 - it is a type

MAX_NESTING = 20  # of substitutions and groups in each other
# Costs, in steps of about a quarter of a microsecond (CPython 3.11, an EPYC of 2023):
TEXT_COST = 30  # to begin to read a text
PART_COST = 4  # for each part of a word, blank or operator
COMMAND_COST = 16  # for each simple command: to read its words and to find its place in the tree
LETTERS = 8  # passed over in one step
STATUS = f"{UNKNOWN}?"  # stands for $?
BLANKS = " \t\r\v\f"
QUOTED_LETTERS = frozenset('\\$`"}')  # with a meaning in double quotes or braces
CLOSING_WORDS = ("}", "done", "esac", "fi")
OPERATORS = {
    "\n": "\n",
    ";": ";",
    "&": "&",
    "|": "|",
    "|&": "|",
    "&&": "&&",
    "||": "||",
    ";;": ";;",
    ";&": ";;",
    ";;&": ";;",
}


class SimpleCommand:
    """A simple command, or the head of `for`, `select` or `case`.

    words: without quotes.
    stdin: the text of its here-document or here-string, or None.
    inner: the tokens of each of its substitutions, in running order.
    """

    __slots__ = ("inner", "stdin", "words")

    def __init__(self) -> None:
        self.words: list[str] = []
        self.stdin: str | None = None
        self.inner: list[list[Token]] = []


class Subshell:
    """Commands in parentheses. tokens: those between them."""

    __slots__ = ("tokens",)

    def __init__(self, tokens: "list[Token]") -> None:
        self.tokens = tokens


class HereDocument:
    """A here-document that begins after the line. name: its last line. is_quoted: whether it has no substitutions."""

    __slots__ = ("command", "is_quoted", "name", "strips_tabs")

    def __init__(self, command: SimpleCommand, name: str, is_quoted: bool, strips_tabs: bool) -> None:
        self.command = command
        self.name = name
        self.is_quoted = is_quoted
        self.strips_tabs = strips_tabs


class ShellReader:
    """Takes a shell text apart, in steps proportional to its length.

    tokens: the simple commands, subshells, operators and keywords, in order. Some need an explanation:
        "() NAME": the head of a function.
        ")": the end of a pattern of `case`.
        ") *": the end of a pattern of `case` for anything.
        ";;": the end of a branch of `case`.
    is_unknown: whether a part of the text could not be taken apart.
    is_plain: whether there are no redirections, comments, keywords, groups or functions.
    """

    def __init__(self, text: str, budget: Budget, at: int = 0, depth: int = 0, is_array: bool = False) -> None:
        """Prepare to read from an index.

        budget: shared with the readers of texts inside this one.
        depth: the number of readers around this one.
        is_array: whether the words are values of an array: its substitutions are the only commands.
        """
        self.text = text
        self.budget = budget
        self.at = at
        self.depth = depth
        self.is_array = is_array
        self.tokens: list[Token] = []
        self.is_unknown = depth > MAX_NESTING
        self.is_plain = True
        self.command = SimpleCommand()
        self.word: list[str] | None = None  # the parts of the current word
        self.target = ""  # the meaning of the next word: the "file" of a redirection, or a here-"text"
        self.is_redirected = False
        self.here: list[HereDocument] = []  # those that begin after this line
        self.in_test = False  # whether a [[ is open: operators have another meaning in it
        self.closings: dict[int, int | None] = {}  # the result of `matching_parentheses`; empty until it is needed
        self.pattern = ""  # the last word of one of a case
        self.in_pattern = False  # between "in" or ";;" of a case and the ")" of its next pattern

    def read(self, closer: str = "") -> None:
        """Read to the end of the text, or to the closer of a group or substitution: `at` is there then."""
        text = self.text
        while self.at < len(text) and not self.is_unknown:
            letter = text[self.at]
            if letter == closer and not self.in_pattern:
                break
            self.pay(PART_COST)
            if letter in WORD_LETTERS:
                start = self.at
                while self.at < len(text) and text[self.at] in WORD_LETTERS:
                    self.at += 1
                self.pay((self.at - start) // LETTERS)
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

    def pay(self, count: int) -> None:
        """Take steps from the budget. If there are not enough, the text cannot be taken apart."""
        self.is_unknown = not self.budget.spend(count) or self.is_unknown

    def add(self, part: str) -> None:
        """Add a part to the word; begin a word if there is none."""
        if self.word is None:
            self.word = []
        if part:
            self.word.append(part)

    def end_word(self) -> None:
        """End the current word, if there is one, and put it in its place."""
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
            self.pattern = word
            if not self.in_pattern:
                self.tokens.append(word)
        elif word in COMMAND_WORDS and (not words or is_timed(words) or self.is_coproc_name(words)):
            words.clear()
            self.tokens.append(word)
            self.is_plain = False
        else:
            if word in ("case", "for", "select") and is_timed(words):
                words.clear()
            words.append(word)
            self.in_test = word != "]]" if self.in_test else word == "[[" and len(words) == 1
            if len(words) == 2 and words[0] == "function":
                self.tokens.append(f"() {word}")
                words.clear()
            elif len(words) == 3 and words[0] == "case" and word == "in":
                self.tokens.append(self.command)
                self.command = SimpleCommand()
                words = self.command.words
                self.in_pattern = True
            self.is_plain = self.is_plain and bool(words)

    def is_behind_group(self) -> bool:
        """Return whether a redirection belongs to the command that ended before it."""
        return bool(self.tokens) and (isinstance(self.tokens[-1], Subshell) or self.tokens[-1] == "esac")

    def is_coproc_name(self, words: "Sequence[str]") -> bool:
        """Return whether the words are the name of a `coproc`."""
        return len(words) == 1 and self.tokens[-1:] == ["coproc"]

    def end_command(self) -> None:
        """Keep the current simple command, if there is one."""
        self.end_word()
        words = self.command.words
        if self.is_array:
            words.clear()
        if words and words[0] in CLOSING_WORDS:
            self.tokens.append(words[0])
            self.is_unknown = self.is_unknown or bool(self.command.inner)
        elif words or self.command.inner or (self.is_redirected and not self.is_behind_group()):
            self.pay(COMMAND_COST)
            self.tokens.append(self.command)
            self.is_unknown = self.is_unknown or self.in_test
        self.command, self.target, self.in_test, self.is_redirected = SimpleCommand(), "", False, False

    def reader_of(self, text: str) -> "ShellReader":
        """Return a reader of a text inside this one."""
        self.pay(TEXT_COST + len(text) // LETTERS)
        return ShellReader(text, self.budget, 0, self.depth + 1)

    def include(self, inner: "Sequence[list[Token]]", reader: "ShellReader", command: SimpleCommand) -> None:
        """Add the results of another reader to the substitutions of a command."""
        command.inner += inner
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
        if escapes:
            while at < len(self.text) and self.text[at] != quote:
                at += 2 if self.text[at] == "\\" else 1
            self.pay((at - start) // LETTERS)
        else:
            at = self.text.find(quote, start) % (len(self.text) + 1)
        string = self.text[start:at]
        self.add(string.replace("\\n", "\n").replace("\\", "") if escapes else string)
        self.is_unknown = self.is_unknown or at >= len(self.text)
        self.at = at + 1

    def read_double_quoted(self, closer: str) -> None:
        """Read to the closer and past it, "" for the end of the text. Substitutions count in it (2.2.3)."""
        text = self.text
        while self.at < len(text) and not self.is_unknown:
            letter = text[self.at]
            self.pay(PART_COST)
            if letter not in QUOTED_LETTERS:
                start = self.at
                while self.at < len(text) and text[self.at] not in QUOTED_LETTERS:
                    self.at += 1
                self.pay((self.at - start) // LETTERS)
                self.add(text[start : self.at])
            elif letter == closer:
                self.at += 1
                return
            elif letter == "\\" and closer != "}":
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
        """Read the substitution, if any, that begins with a dollar sign or a backtick (2.6)."""
        text, at = self.text, self.at
        following = text[at + 1 : at + 2]
        if letter == "`":
            end = at + 1
            while end < len(text) and text[end] != "`":
                end += 2 if text[end] == "\\" else 1
            self.pay((end - at) // LETTERS)
            inside = text[at + 1 : end].replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\")
            reader = self.reader_of(inside)
            reader.read()
            self.include([reader.tokens], reader, self.command)
            self.is_unknown = self.is_unknown or end >= len(text)
            self.at = end + 1
        elif following == "(":
            if not self.read_arithmetic(at + 1):
                self.command.inner.append(self.read_group(at + 2))
        elif following == "{":
            kept, self.word, self.at = self.word, None, at + 2
            self.depth += 1
            self.is_unknown = self.is_unknown or self.depth > MAX_NESTING
            self.read_double_quoted("}")
            self.depth -= 1
            self.word = kept
            name = text[at + 2 : self.at - 1]
            self.add(UNKNOWN + (name if name.isidentifier() else ""))
            return
        elif following.isalpha() or following == "_":
            self.at += 1
            while text[self.at : self.at + 1].isalnum() or text[self.at : self.at + 1] == "_":
                self.at += 1
            self.add(UNKNOWN + text[at + 1 : self.at])
            return
        elif following == "?":
            self.at += 2
            self.add(STATUS)
            return
        elif following and following in "@*#?$!-0123456789":
            self.at += 2
        else:
            self.add(letter)
            self.at += 1
            return
        self.add(UNKNOWN)

    def read_expansions(self, text: str, command: SimpleCommand) -> None:
        """Take the substitutions of a command from a here-document or arithmetic: quotes have no meaning there."""
        if "$" in text or "`" in text:
            reader = self.reader_of(text)
            reader.read_double_quoted("")
            self.include(reader.command.inner, reader, command)

    def read_group(self, start: int, is_array: bool = False) -> "list[Token]":
        """Read commands from an index to the closing parenthesis, and past it. Return their tokens."""
        reader = ShellReader(self.text, self.budget, start, self.depth + 1, is_array)
        reader.closings = self.closings
        reader.read(")")
        self.is_unknown = self.is_unknown or reader.is_unknown
        self.at = reader.at + 1
        return reader.tokens

    def read_arithmetic(self, at: int) -> bool:
        """Read past an arithmetic expression if one begins at `at`: ((…)). Returns whether one does."""
        if not self.text.startswith("((", at):
            return False
        if not self.closings:
            self.pay(len(self.text) // LETTERS)
            self.closings.update(matching_parentheses(self.text))
        end = self.closings[at]
        if end is None or self.text[end - 1] != ")":
            return False
        self.read_expansions(self.text[at + 2 : end - 1], self.command)
        self.at = end + 1
        return True

    # ---- operators ---------------------------------------------------------------

    def read_separator(self, letter: str) -> None:
        """Read an operator that ends a command, a parenthesis, or the end of a line."""
        text = self.text
        if self.in_pattern:
            self.end_word()
            if self.in_pattern:  # otherwise the word was "esac", and the letter is read again
                self.at += 1
                if letter == ")":
                    self.in_pattern = False
                    self.tokens.append(f"{letter} *" if self.pattern == "*" else letter)
            return
        if letter in "()":
            if letter == "(":
                self.read_parenthesis()
            else:
                self.is_unknown = True
            return
        self.end_word()
        if self.in_test:
            self.at += 1
            return
        self.end_command()
        if text.startswith((";;", ";&"), self.at):
            self.in_pattern = True
        start = self.at
        while letter != "\n" and self.at < len(text) and text[self.at] in ";&|" and not text.startswith("&>", self.at):
            self.at += 1
            self.is_plain = False
        if letter == "\n":
            self.at += 1
            self.read_here_documents()
        operator = text[start : self.at] if letter != "\n" else letter
        self.is_unknown = self.is_unknown or operator not in OPERATORS
        self.tokens.append(OPERATORS.get(operator, operator))

    def read_parenthesis(self) -> None:
        """Read a group, the values of an array, the head of a function, or a pattern, at an opening parenthesis."""
        words, text, at = self.command.words, self.text, self.at
        word = self.word
        last = word[-1][-1] if word else ""
        self.is_plain = False
        if self.in_test:
            self.read_pattern()
        elif word and last == "=" and is_assignment("".join(word)):
            for token in self.read_group(at + 1, is_array=True):
                if isinstance(token, SimpleCommand):
                    self.command.inner += token.inner
            self.end_word()
        elif word and last in "@!?*+":
            self.read_pattern()
        elif (word is not None or words) and text[at + 1 : at + 99].lstrip(BLANKS)[:1] == ")":
            self.tokens.append(f"() {''.join(word or words[-1:])}")  # the head of a function
            self.word = None
            words.clear()
            self.at = text.index(")", at) + 1
        elif word is None and words in ([], ["for"]) and self.read_arithmetic(at):
            words.append("((")
        elif word is None and (not words or is_timed(words)):
            words.clear()
            self.tokens.append(Subshell(self.read_group(at + 1)))
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
            self.command.inner.append([Subshell(self.read_group(self.at + 2)), "&"])
            self.add(UNKNOWN)
            return
        word = "".join(self.word or ())
        if word.isdigit() or (word[:1] == "{" and word[-1:] == "}"):
            self.word = None  # the number of a file
        self.end_word()
        self.is_redirected = True
        if self.in_test:
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
        self.pay(PART_COST + COMMAND_COST)
        self.here.append(HereDocument(self.command, "".join(parts), is_quoted, strips_tabs))

    def read_here_documents(self) -> None:
        """Read the here-documents that begin at this line."""
        for document in self.here:
            start, name = self.at, document.name
            while True:
                if self.at >= len(self.text):
                    self.is_unknown = True
                    return
                self.pay(1)
                end = line_end(self.text, self.at)
                line = self.text[self.at : end]
                if (line.lstrip("\t") if document.strips_tabs else line) == name:
                    break
                self.at = end + 1
            document.command.stdin = self.text[start : self.at]
            self.at = end
            if not document.is_quoted:
                self.read_expansions(document.command.stdin, document.command)
            if document is not self.here[-1]:
                self.at += 1
        self.here = []


def is_timed(words: "Sequence[str]") -> bool:
    """Return whether the words are `time` and its options, before a group or another keyword."""
    return words in (["time"], ["time", "-p"])


def line_end(text: str, at: int) -> int:
    """Return the index of the next newline, or the text's length."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def matching_parentheses(text: str) -> "dict[int, int | None]":
    """Return where each opening parenthesis is closed, None if it is not. Quotes do not count."""
    found: dict[int, int | None] = {}
    opened: list[int] = []
    for at, letter in enumerate(text):
        if letter == "(":
            found[at] = None
            opened.append(at)
        elif letter == ")" and opened:
            found[opened.pop()] = at
    return found


def read_simple_command(text: str) -> list[str]:
    """Return the words of a text that is one simple command.

    Raises ValueError with the reason if it is anything else.
    """
    if not all(map(is_visible, text)):
        raise ValueError("the command has control characters or more than one line")
    reader = ShellReader(text, Budget(MAX_WANTED_CHARS))
    reader.read()
    command = reader.tokens[0] if len(reader.tokens) == 1 else None
    words = command.words if isinstance(command, SimpleCommand) else []
    is_plain = reader.is_plain and not reader.is_unknown and not any(UNKNOWN in word for word in words)
    if not words or not is_plain or "`" in text:
        raise ValueError("it is not one simple command: no ; & | < > ( ) $ ` # or keywords of the shell outside quotes")
    return words
