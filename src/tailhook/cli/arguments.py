"""How the command line refuses wrong arguments: with one line, and the word that was probably meant."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

MIN_SIMILARITY = 0.7  # least similarity of the word that was probably meant (difflib)


class CommandParser(argparse.ArgumentParser):
    """A parser with error messages of one line, and with the word that was probably meant."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong in one line, and exit with 2."""
        end = "" if message.endswith(("?", ".")) else "."
        self.exit(2, f"{self.prog}: error: {message}{end} See `{self.prog} --help`.\n")

    def refuse_words(self, words: Sequence[str]) -> NoReturn:
        """Print the words that no argument takes, and exit with 2."""
        guess = next(filter(None, (similar_flag(word.partition("=")[0], self._flags()) for word in words)), "")
        self.error(f"unrecognized arguments: {' '.join(words)}{guess}")

    def _flags(self) -> list[str]:
        """Return the long flags."""
        return [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]

    @property
    def commands(self) -> Iterable[str]:
        """The names of the commands below this one."""
        return [name for action in self._actions if action.nargs == argparse.PARSER for name in action.choices or ()]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise ArgumentError if the value is not one of the choices of an argument."""
        if action.choices is None or value in action.choices:
            return
        if action.nargs == argparse.PARSER and isinstance(action.choices, dict):
            guess = similar_command(value, action.choices) or similar_word(value, [*action.choices, *self._flags()])
            guess = guess or similar_command(value, action.choices, MIN_SIMILARITY)
            raise argparse.ArgumentError(None, f"there is no command {value!r}{guess}")
        guess = similar_word(str(value), map(str, action.choices))
        choices = guess or f" (choose from {', '.join(map(repr, action.choices))})"
        raise argparse.ArgumentError(action, f"invalid choice: {value!r}{choices}")


class Once(argparse.Action):
    """Stores the one value of an option that chooses what a command is about, and refuses a second one."""

    def __call__(self, _parser: object, namespace: argparse.Namespace, values: Any, _flag: str | None = None) -> None:
        """Store the value. Raises ArgumentError if there is one."""
        if getattr(namespace, self.dest) is not self.default:
            raise argparse.ArgumentError(self, "it is given twice, and only one is possible")
        setattr(namespace, self.dest, values)


def similar_flag(word: str, flags: Sequence[str]) -> str:
    """Return the question whether a flag was meant: a similar one, or one that is longer or shorter by whole words."""
    if guess := similar_word(word, flags):
        return guess
    found = (flag for flag in flags if flag.startswith(f"{word}-") or word.startswith(f"{flag}-"))
    return f". Did you mean {flag!r}?" if (flag := next(found, "")) else ""


def similar_command(word: str, commands: Mapping[str, argparse.ArgumentParser], min_similarity: float = 1.0) -> str:
    """Return the question whether the command of a group was meant, "" if none is similar.

    commands: the parsers of commands and groups, by name.
    """
    from difflib import get_close_matches  # only for a mistake: it is slow to import

    groups = {name: list(parser.commands) for name, parser in commands.items() if isinstance(parser, CommandParser)}
    known = {inner for names in groups.values() for inner in names}
    found = get_close_matches(word, sorted(known), n=1, cutoff=min_similarity)
    if not found:
        return ""
    *others, last = [repr(f"{name} {found[0]}") for name, names in groups.items() if found[0] in names]
    return f". Did you mean {', '.join(others)} or {last}?" if others else f". Did you mean {last}?"


def similar_word(word: str, known: Iterable[str]) -> str:
    """Return the question whether another word was meant, "" if no known word is similar."""
    from difflib import get_close_matches  # only for a mistake: it is slow to import

    found = get_close_matches(word, list(known), n=1, cutoff=MIN_SIMILARITY)
    return f". Did you mean {found[0]!r}?" if found else ""
