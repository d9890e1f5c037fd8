"""Takes a shell text apart into its simple commands, as bash does.

Pure. (POSIX.1-2024, shell command language, 2.2 to 2.10; Bash 5.3 manual, 3.1 to 3.6)
"""

MAX_NESTING = 20  # of substitutions and groups in each other
TEXT_COST = 30  # of beginning to read a text, in characters that are read in the same time
UNKNOWN = "\0"  # stands in a word for what only the running shell knows: $x, $(x), <(x)
BLANKS = " \t\r\v\f"
WORD_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+=@%~^*?[]")
QUOTED_LETTERS = frozenset('\\$`"}')  # that may mean something in double quotes or braces
COMMAND_WORDS = ("!", "{", "coproc", "do", "elif", "else", "if", "then", "until", "while")  # POSIX.1-2024, shell, 2.4


class Budget:
    """How many characters, or as costly steps, may still be read. All readers of one stop share it."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, count: int) -> bool:
        """Take characters from it; return whether there were as many."""
        self.left -= count
        return self.left >= 0


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
    """Takes a shell text apart, in steps that are proportional to its length.

    commands: the simple commands that it runs or may run, those in substitutions included.
    is_unknown: whether a part of the text could not be taken apart.
    is_plain: whether there are no redirections, comments, keywords, groups or functions.
    """

    def __init__(self, text: str, budget: Budget, at: int = 0, depth: int = 0, is_array: bool = False) -> None:
        """Prepare to read from an index.

        budget: for the texts that are taken out of this one and read too.
        depth: of readers around this one.
        is_array: whether the words are values of an array: its substitutions are the only commands.
        """
        self.text = text
        self.budget = budget
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
        self.in_test = False  # behind a [[ that is not closed yet: operators mean something else in it
        self.closings: dict[int, int | None] = {}  # what `matching_parentheses` returns; empty until it is needed
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
        if part:
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
            self.in_test = word != "]]" if self.in_test else word == "[[" and len(words) == 1
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
            self.is_unknown = self.is_unknown or self.in_test
        self.command, self.target, self.in_test = SimpleCommand(), "", False

    def reader_of(self, text: str) -> "ShellReader":
        """Return a reader of a text that was taken out of this one."""
        reader = ShellReader(text, self.budget, 0, self.depth + 1)
        reader.is_unknown = reader.is_unknown or not self.budget.spend(TEXT_COST + len(text))
        return reader

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
            if letter not in QUOTED_LETTERS:
                start = self.at
                while self.at < len(text) and text[self.at] not in QUOTED_LETTERS:
                    self.at += 1
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
        """Read what begins with a dollar sign or a backtick, as far as it is a substitution (2.6)."""
        text, at = self.text, self.at
        following = text[at + 1 : at + 2]
        if letter == "`":
            end = at + 1
            while end < len(text) and text[end] != "`":
                end += 2 if text[end] == "\\" else 1
            inside = text[at + 1 : end].replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\")
            reader = self.reader_of(inside)
            reader.read()
            self.include(reader)
            self.is_unknown = self.is_unknown or end >= len(text)
            self.at = end + 1
        elif following == "(":
            if not self.read_arithmetic(at + 1):
                self.read_group(at + 2)
        elif following == "{":
            kept, self.word, self.at = self.word, None, at + 2
            self.depth += 1
            self.is_unknown = self.is_unknown or self.depth > MAX_NESTING
            self.read_double_quoted("}")
            self.depth -= 1
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
            reader = self.reader_of(text)
            reader.read_double_quoted("")
            self.include(reader)

    def read_group(self, start: int, is_array: bool = False) -> None:
        """Read commands from an index to the closing parenthesis, and past it."""
        reader = ShellReader(self.text, self.budget, start, self.depth + 1, is_array)
        reader.closings = self.closings
        reader.read(")")
        self.include(reader)
        self.at = reader.at + 1

    def read_arithmetic(self, at: int) -> bool:
        """Read past an arithmetic expression if one begins at `at`: ((…)). Returns whether one does."""
        if not self.text.startswith("((", at):
            return False
        if not self.closings:
            self.closings.update(matching_parentheses(self.text))
        end = self.closings[at]
        if end is None or self.text[end - 1] != ")":
            return False
        self.read_expansions(self.text[at + 2 : end - 1])
        self.at = end + 1
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
        if self.in_test:
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
        word = self.word
        last = word[-1][-1] if word else ""
        self.is_plain = False
        if self.in_test:
            self.read_pattern()
        elif word and last == "=" and is_assignment("".join(word)):
            self.read_group(at + 1, is_array=True)
            self.end_word()
        elif word and last in "@!?*+":
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


def is_assignment(word: str) -> bool:
    """Return whether a word sets a variable: NAME=VALUE, NAME+=VALUE, NAME[INDEX]=VALUE."""
    name, equals, _ = word.partition("=")
    name = name.removesuffix("+")
    if name.endswith("]"):
        name = name.partition("[")[0]
    return bool(equals) and name.isascii() and name.isidentifier()
