"""How the command line refuses wrong arguments: with one line, and the word that was probably meant."""

import argparse
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NoReturn

MIN_SIMILARITY = 0.7  # least similarity of the word that was probably meant (difflib)
BEGINNING_BONUS = 0.1  # added to it if the given word begins with the other one: "gates" means "gate", not "plates"


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
            guess = similar_command(value, action.choices, is_exact=True)
            guess = guess or similar_word(value, [*action.choices, *self._flags()])
            guess = guess or similar_command(value, action.choices)
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
    """Return the question whether a flag was meant: a similar one, or one that is shorter by whole words."""
    return similar_word(word, flags) or similar_word(word, [flag for flag in flags if word.startswith(f"{flag}-")], 0)


def similar_command(word: str, commands: Mapping[str, argparse.ArgumentParser], is_exact: bool = False) -> str:
    """Return the question whether the command of a group was meant, "" if none is similar.

    commands: the parsers of commands and groups, by name.
    is_exact: whether only a command with exactly this name counts.
    """
    groups = {name: list(parser.commands) for name, parser in commands.items() if isinstance(parser, CommandParser)}
    found = closest_word(word, [inner for names in groups.values() for inner in names])
    if not found or (is_exact and found != word):
        return ""
    *others, last = [repr(f"{name} {found}") for name, names in groups.items() if found in names]
    return f". Did you mean {', '.join(others)} or {last}?" if others else f". Did you mean {last}?"


def similar_word(word: str, known: Iterable[str], min_similarity: float = MIN_SIMILARITY) -> str:
    """Return the question whether another word was meant, "" if no known word is similar."""
    return f". Did you mean {found!r}?" if (found := closest_word(word, known, min_similarity)) else ""


def closest_word(word: str, known: Iterable[str], min_similarity: float = MIN_SIMILARITY) -> str:
    """Return a known word that begins with the given one, otherwise the most similar one, "" if none is similar."""
    from difflib import SequenceMatcher  # only for a mistake: it is slow to import

    def similarity(one: str) -> float:
        if word.strip("-") and one.startswith(word):
            return 1 + len(word) / len(one)
        return SequenceMatcher(None, one, word).ratio() + BEGINNING_BONUS * word.startswith(one)

    best = max(known, key=similarity, default="")
    return best if best and similarity(best) >= min_similarity else ""


def describe_unknown(kind: str, unknown: Sequence[str], known: Collection[str]) -> str:
    """Return the message about unknown names, with one that was probably meant.  kind: what they name."""
    guess = next(filter(None, (similar_word(name, known) for name in unknown)), ".")
    return f"unknown {kind}: {', '.join(unknown)}{guess} The {kind}s are: {', '.join(known)}"
