"""Keys without a name or a known beginning, by their looks. Loaded only for a word as long as a key."""

from tailhook.machines.secrets import MAX_KEY_CHARS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_RUN_CHARS = 12  # of a key, between the signs that it may hold
KEY_SIGNS = "+/=_-"
APART = str.maketrans(KEY_SIGNS, " " * len(KEY_SIGNS))
DIGEST_CHARS = (32, 40, 56, 64, 96, 128)  # of MD5, SHA-1 (git's commits), SHA-2
# Identifiers of API objects, and digests in npm's form.
IDENTIFIERS = ("toolu_", "srvtoolu_", "msg_", "req_", "call_", "sha256-", "sha384-", "sha512-")


def is_key(word: str, is_named: bool) -> bool:
    """Return whether a long word looks like a key: its letters are more mixed than those of words and paths.

    is_named: whether it has the name of a key. Otherwise a digest is not a key: it names a commit or a file's contents.
    """
    runs = word.translate(APART).split()
    if word.startswith(IDENTIFIERS) or not all(map(str.isalnum, runs)):
        return False
    runs = without_uuids(runs)
    return is_mixed(runs if is_named else [run for run in runs if not is_digest(run)])


def without_uuids(runs: "Sequence[str]") -> "list[str]":
    """Return the parts of a word without those of UUIDs, which are identifiers (RFC 9562)."""
    rest: list[str] = []
    place = 0
    while place < len(runs):
        if is_uuid(runs[place : place + 5]):
            rest += runs[place][:-8], runs[place + 4][12:]
            place += 5
        else:
            rest.append(runs[place])
            place += 1
    return rest


def is_uuid(runs: "Sequence[str]") -> bool:
    """Return whether five parts of a word hold a UUID. It may have letters before and behind it."""
    return (
        [len(run) for run in runs[1:4]] == [4, 4, 4]
        and len(runs) == 5
        and len(runs[0]) >= 8
        and len(runs[4]) >= 12
        and is_hexadecimal("".join((runs[0][-8:], *runs[1:4], runs[4][:12])))
    )


def is_digest(run: str) -> bool:
    """Return whether a run of letters may be a digest in base 16, the name of a commit or a file's contents."""
    return len(run) in DIGEST_CHARS and is_hexadecimal(run)


def is_hexadecimal(word: str) -> bool:
    """Return whether a word is a number in base 16."""
    return not word.lower().strip("0123456789abcdef")


def kind_of(letter: str) -> str:
    """Return "0" for a digit, "A" for a capital and "a" for another letter."""
    return "0" if letter.isdigit() else "A" if letter.isupper() else "a"


def is_mixed(runs: "Sequence[str]") -> bool:
    """Return whether the kinds of letters (digits, capitals, small ones) change as often as in random keys.

    In a random key in base 64 they change three times in five letters; in names such as `MyClass2`, once in three or
    four.
    """
    changes = letters = 0
    kinds_seen = set()
    for run in runs:
        kinds = [kind_of(letter) for letter in run[:MAX_KEY_CHARS]]
        pairs = [(kinds[place - 1], kinds[place]) for place in range(1, len(kinds))]
        if len(run) >= MIN_RUN_CHARS and sum((before == "0") != (after == "0") for before, after in pairs) >= 4:
            return True
        changes += sum(before != after for before, after in pairs)
        letters += len(kinds)
        kinds_seen.update(kinds)
    return len(kinds_seen) == 3 and changes * 10 >= 3 * letters
