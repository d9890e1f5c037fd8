"""Passwords on command lines, recognised by the command: `mysql -pX`, `echo X | docker login …`.

Loaded only for a line with such a command: each cold hook is a new process.
"""

from tailhook.machines.secrets import AROUND, MIN_KEY_CHARS, QUOTES, command_in, is_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
JOINED_SIGNS = ";&<>)"  # of the shell, behind a word without blank space
SEPARATORS = frozenset(("|", "||", "&&", "&", ";", "then", "do", "else", "(", "{"))
# By command: the option with a password joined to it, and the options with a password as the next word.
JOINED = {
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlshow", "mariadb", "mariadb-dump"), "-p"),
    "7z": "-p", "7za": "-p", "sshpass": "-p", "redis-cli": "-a",
}  # fmt: skip
OPTIONS = {
    "sshpass": ("-p",),
    "redis-cli": ("-a", "--pass"),
    "mongo": ("-p",), "mongosh": ("-p",), "mongodump": ("-p",), "mongorestore": ("-p",),
    "unzip": ("-P",), "zip": ("-P",),
    "ldapsearch": ("-w",), "ldapadd": ("-w",), "ldapmodify": ("-w",),
    "ssh-keygen": ("-N", "-P"),
    "keytool": ("-storepass", "-keypass"),
    "openssl": ("-k", "-K"),
    "sqlcmd": ("-P",), "isql": ("-P",),
}  # fmt: skip
# Commands that take a password as an operand, and the words before it.
OPERANDS = {
    "vault": ("login",),
    "cargo": ("login",),
    "snyk": ("auth",),
    "ngrok": ("authtoken", "add-authtoken"),
    "rclone": ("obscure",),
    "ansible-vault": ("encrypt_string",),
}
VERB_PLACES = {"ngrok": 2}  # greatest distance of such a word from the command
SENTENCE_WORDS = frozenset(("login", "auth"))  # also in sentences: "vault login failed"
# The options of these commands with a value that is not a password.
VALUE_OPTIONS = frozenset((
    "-method", "-path", "-address", "-namespace", "--registry", "--config", "-n", "--name", "--stdin-name",
    "--vault-id", "--encrypt-vault-id", "--vault-password-file", "--vault-pass-file", "--output",
))  # fmt: skip
SAMBA = frozenset(("smbclient", "smbget", "smbcacls", "rpcclient"))  # `-U name%PASSWORD`
LOGINS_WITH_P = frozenset(("docker", "podman", "helm", "az", "oc", "cf", "npm"))  # `docker login -p PASSWORD`
# Readers of a password from a pipe: any command with such a word, and these two with their option.
READS_PASSWORD = frozenset(("--password-stdin", "--with-token", "--token-stdin", "chpasswd"))
READS_PASSWORD_WITH = {"sudo": "-S", "passwd": "--stdin"}


def given_passwords(words: "Sequence[str]") -> "dict[int, int]":
    """Return the words with a password, by their command, and where in the word the password begins."""
    found: dict[int, int] = {}
    command, start = "", 0  # the command at hand, and where its words begin
    is_login = reads_password = False
    operands = 0  # number of the command's words that are neither options nor values
    verb = 0  # the place of the word before a password as an operand
    said: range | None = None  # the words of the `echo` in the pipe before
    for place, word in enumerate([*words, ";"]):
        before = words[place - 1] if place > start else ""
        joined, pipe, rest = word.rpartition("|") if word not in SEPARATORS else ("", "", word)
        name = command_in(rest)
        is_end = word in SEPARATORS or place == len(words) or bool(pipe and command in ("echo", "printf"))
        is_other = is_command(name) and not verb
        if command == "htpasswd" and (is_end or is_other):
            found.update(htpasswd_password(words, start, place))
        if is_end:
            said = (
                range(start, place + bool(joined)) if (pipe or word == "|") and command in ("echo", "printf") else None
            )
            command, start, is_login, reads_password = name if is_command(name) else "", place + 1, False, False
            operands = verb = 0
        elif is_other:
            command, start, is_login = name, place + 1, False
            operands = verb = 0
        elif word.startswith("<<<"):
            if reads_password:
                found.update({place: 3} if len(word) > 3 else {place + 1: 0})
        elif command in JOINED and word.startswith(JOINED[command]) and len(word) > 2:
            found[place] = 2
        elif command in SAMBA and "%" in word and (before in ("-U", "--user") or word.startswith(("-U", "--user="))):
            found[place] = word.index("%") + 1
        elif command in OPERANDS and word[:1] != "-" and before not in VALUE_OPTIONS:
            if verb and not (words[verb] in SENTENCE_WORDS and is_plain_word(word)):
                found[place] = 0
            operands += 1
            verb = place if operands <= VERB_PLACES.get(command, 1) and word in OPERANDS[command] else verb
        elif before in OPTIONS.get(command, ()) or (before == "-p" and is_login and command in LOGINS_WITH_P):
            found[place] = 0
        is_login = is_login or word == "login"
        option = rest[: sign_at(rest)]
        with_option = READS_PASSWORD_WITH.get(command, "")
        if not READS_PASSWORD.isdisjoint((name, option)) or (with_option and with_option in (name, option)):
            found.update((one, 0) for one in said or () if words[one].lstrip(QUOTES)[:1] not in "-$%")
            said, reads_password = None, ";" not in word
            before_sign, sign, behind = word.partition("<<<")
            if sign:
                found.update({place: len(before_sign) + 3} if behind else {place + 1: 0})
    return found


def sign_at(word: str) -> int:
    """Return the place of the shell's first sign in a word; the word's length if there is none."""
    return next((at for at, letter in enumerate(word) if letter in JOINED_SIGNS), len(word))


def is_plain_word(word: str) -> bool:
    """Return whether a word looks like one of a sentence: short, and only letters except for marks around it."""
    bare = word.strip(AROUND + ":!?")
    return len(bare) < MIN_KEY_CHARS and (bare.isalpha() or not bare)


def htpasswd_password(words: "Sequence[str]", start: int, end: int) -> "Iterator[tuple[int, int]]":
    """Yield the last word of `htpasswd -b FILE USER PASSWORD`, or of `-n -b USER PASSWORD`."""
    options, given = "", []
    for place in range(start, end):
        word = words[place]
        if word.lstrip("&012")[:1] in ("<", ">"):
            break
        if word[0] == "-":
            options += word
        else:
            given.append(place)
        if word[-1] == ";":
            break
    if "b" in options and len(given) == (2 if "n" in options else 3):
        yield given[-1], 0
