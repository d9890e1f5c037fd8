"""The mutants that no test can kill, each with the reason.

A row is: module, function ("" for the lines of the module itself), original line, mutated lines, reason. Blank space in
lines is one space, as in the report of `run.py`. It fails if a test kills a mutant of this list.

Without the list, each run would show examined survivors as new ones, and the limit would have to be below 95 %. A
missing test could hide there. tests/unit/test_mutants.py checks that its lines are today's.
"""

CORE = "The compiled core takes this number when it is built; the tests of a mutant load the core that is there."
OTHER_SYSTEM = "The number of another operating system; this one takes the other branch."
TUNING = "Only time and memory depend on it, not what is read or written."
BOUND = "A bound against huge input. The tests take it from the code, and any of this order will do."
LOG = "How much of the log is kept; nothing reads it but a person."
FD_0 = "A descriptor is never 0 here, because stdin is open, and every negative number means that there is none."
TESTS_ONLY = "The hook always gives it; only tests leave it out, and none of them reads it."

EQUIVALENT: list[tuple[str, str, str, tuple[str, ...], str]] = [
    (
        "machines/ralph.py",
        "",
        "MAX_RALPH_COUNT = 10**64 # only tailhook reads this file, so counts may exceed 2**53",
        (
            "MAX_RALPH_COUNT = 11**64 # only tailhook reads this file, so counts may exceed 2**53",
            "MAX_RALPH_COUNT = 10** 65 # only tailhook reads this file, so counts may exceed 2**53",
        ),
        "A count has at most 64 digits, so any limit from 10**64 - 1 on admits all of them.",
    ),
    (
        "machines/ralph.py",
        "__init__",
        'line: "Callable[[str], int]" = lambda key: 0,',
        (
            'line: "Callable[[str], int]" = lambda key: 1,',
            'line: "Callable[[str], int]" = lambda key: -1,',
        ),
        TESTS_ONLY,
    ),
    (
        "machines/memory.py",
        "best",
        "if first[4]:",
        ("if first[ 5]:",),
        "The first line with a booster is always one of the two that count as boosted.",
    ),
    (
        "machines/memory.py",
        "best",
        "return next((line for line in lines if line[4]), first)",
        ("return next((line for line in lines if line[ 5]), first)",),
        "The first line with a booster is always one of the two that count as boosted.",
    ),
    (
        "machines/memory.py",
        "",
        '"NUMBERS": NEGATION + 1,',
        ('"NUMBERS": NEGATION - 1,', '"NUMBERS": NEGATION + 0,', '"NUMBERS": NEGATION + 2,'),
        CORE,
    ),
    (
        "machines/memory.py",
        "",
        '"LINES_BEFORE": 2, # lines before and after a line where a booster counts for it',
        (
            '"LINES_BEFORE": 1, # lines before and after a line where a booster counts for it',
            '"LINES_BEFORE": 3, # lines before and after a line where a booster counts for it',
        ),
        CORE,
    ),
    ("machines/memory.py", "", '"LINES_AFTER": 1,', ('"LINES_AFTER": 2,', '"LINES_AFTER": 0,'), CORE),
    (
        "machines/memory.py",
        "",
        '"NEGATION_REACH_BYTES": 14, # from a negation to the keyword that it cancels',
        (
            '"NEGATION_REACH_BYTES": 13, # from a negation to the keyword that it cancels',
            '"NEGATION_REACH_BYTES": 15, # from a negation to the keyword that it cancels',
        ),
        CORE,
    ),
    (
        "stores/frontmatter.py",
        "__init__",
        "if end < 0:",
        ("if end <= 0:",),
        "The search begins behind the first delimiter, so it never finds index 0.",
    ),
    (
        "stores/frontmatter.py",
        "reload",
        "self.changed = posix.stat(self.name, dir_fd=self.folder, follow_symlinks=False).st_mtime",
        ("self.changed = posix.stat(self.name, dir_fd=self.folder, follow_symlinks=True).st_mtime",),
        "The file was read before, and that fails for a link; only a link that takes its place in between differs.",
    ),
    (
        "stores/frontmatter.py",
        "value_span",
        "if comment >= 0:",
        ("if comment > 0:", "if comment >= 1:"),
        "The text was stripped, so the space before a comment is never its first letter.",
    ),
    (
        "stores/frontmatter.py",
        "unquoted",
        'if len(value) < 2 or value[0] != value[-1] or value[0] not in "\'\\"":',
        ('if len(value) < 2 or value[0] != value[-1] or value[ -1] not in "\'\\"":',),
        "The first and the last letter are the same one here.",
    ),
    (
        "stores/frontmatter.py",
        "unquoted",
        'if value[0] == "\'":',
        ('if value[ -1] == "\'":',),
        "The first and the last letter are the same one here.",
    ),
    (
        "stores/jsonfile.py",
        "",
        "ROWS_PIECE_BYTES = 64 << 10 # bytes to lay out at a time",
        (
            "ROWS_PIECE_BYTES = 65 << 10 # bytes to lay out at a time",
            "ROWS_PIECE_BYTES = 63 << 10 # bytes to lay out at a time",
            "ROWS_PIECE_BYTES = 64 << 11 # bytes to lay out at a time",
            "ROWS_PIECE_BYTES = 64 << 9 # bytes to lay out at a time",
        ),
        TUNING,
    ),
    (
        "stores/jsonfile.py",
        "__init__",
        "self.read_from = -1 # stays open, so that a replacing file cannot get the same inode",
        ("self.read_from = - 2 # stays open, so that a replacing file cannot get the same inode",),
        FD_0,
    ),
    (
        "stores/jsonfile.py",
        "__del__",
        "if self.read_from >= 0:",
        ("if self.read_from >= 1:", "if self.read_from > 0:"),
        FD_0,
    ),
    (
        "stores/jsonfile.py",
        "columns",
        "if self.read_from >= 0:",
        ("if self.read_from >= 1:", "if self.read_from > 0:"),
        FD_0,
    ),
    ("stores/jsonfile.py", "columns", "self.read_from = -1", ("self.read_from = - 2",), FD_0),
    (
        "stores/jsonfile.py",
        "stamp_now",
        "return stamp_of(posix.stat(self.name, dir_fd=self.folder, follow_symlinks=False))",
        ("return stamp_of(posix.stat(self.name, dir_fd=self.folder, follow_symlinks=True))",),
        "Links are left out before; opening the file refuses one that takes its place later.",
    ),
    (
        "stores/jsonfile.py",
        "rows",
        "while start < end and (piece := posix.pread(fd, min(ROWS_PIECE_BYTES, end - start), start)):",
        ("while start <= end and (piece := posix.pread(fd, min(ROWS_PIECE_BYTES, end - start), start)):",),
        "At the end 0 bytes are read, which ends the loop too.",
    ),
    (
        "stores/atomic.py",
        "",
        'IS_LINK = 40 if sys.platform == "linux" else 62 # ELOOP: the file is a symbolic link',
        (
            'IS_LINK = 40 if sys.platform == "linux" else 63 # ELOOP: the file is a symbolic link',
            'IS_LINK = 40 if sys.platform == "linux" else 61 # ELOOP: the file is a symbolic link',
        ),
        OTHER_SYSTEM,
    ),
    (
        "stores/atomic.py",
        "",
        "READ_BYTES = 1 << 16 # bytes to read at a time; a larger buffer would be mapped and unmapped",
        (
            "READ_BYTES = 2 << 16 # bytes to read at a time; a larger buffer would be mapped and unmapped",
            "READ_BYTES = 1 << 17 # bytes to read at a time; a larger buffer would be mapped and unmapped",
            "READ_BYTES = 1 << 15 # bytes to read at a time; a larger buffer would be mapped and unmapped",
        ),
        TUNING,
    ),
    (
        "stores/atomic.py",
        "private_file",
        'return f"{state_folder()}/{name[-40:]}-{facts.st_dev:x}-{facts.st_ino:x}-{digest:016x}{ending}"',
        (
            'return f"{state_folder()}/{name[- 41:]}-{facts.st_dev:x}-{facts.st_ino:x}-{digest:016x}{ending}"',
            'return f"{state_folder()}/{name[- 39:]}-{facts.st_dev:x}-{facts.st_ino:x}-{digest:016x}{ending}"',
        ),
        "The name is there for a person who looks at the folder; the digest after it distinguishes files.",
    ),
    (
        "stores/jwz.py",
        "find_newest",
        "begin = max(0, offset - LOOK_BACK_BYTES)",
        ("begin = max( 1, offset - LOOK_BACK_BYTES)",),
        "The first line of a store is a topic, so no message begins at offset 0.",
    ),
    (
        "stores/jwz.py",
        "ulid",
        'return "".join(BASE32[number >> shift & 31] for shift in range(125, -1, -5))',
        ('return "".join(BASE32[number >> shift & 31] for shift in range(125, - 2, -5))',),
        "The steps are of 5, so the last shift is 0 with either end.",
    ),
    (
        "stores/ralph.py",
        "",
        "MAX_LOG_BYTES = 1_000_000 # then the log is emptied",
        (
            "MAX_LOG_BYTES = 999999 # then the log is emptied",
            "MAX_LOG_BYTES = 1000001 # then the log is emptied",
        ),
        LOG,
    ),
    (
        "stores/ralph.py",
        "",
        "MAX_LOG_LINE_CHARS = 500 # characters of a line of the log",
        (
            "MAX_LOG_LINE_CHARS = 499 # characters of a line of the log",
            "MAX_LOG_LINE_CHARS = 501 # characters of a line of the log",
        ),
        LOG,
    ),
    (
        "stores/spool.py",
        "",
        "MAX_SPOOL_FILE_BYTES = 16 << 20 # a file that is larger gets another name",
        (
            "MAX_SPOOL_FILE_BYTES = 17 << 20 # a file that is larger gets another name",
            "MAX_SPOOL_FILE_BYTES = 15 << 20 # a file that is larger gets another name",
            "MAX_SPOOL_FILE_BYTES = 16 << 21 # a file that is larger gets another name",
            "MAX_SPOOL_FILE_BYTES = 16 << 19 # a file that is larger gets another name",
        ),
        TUNING,
    ),
    (
        "stores/fallback.py",
        "save",
        'top, old = state["stack"][-1], self.state["stack"][-1]',
        (
            'top, old = state["stack"][-1], self.state["stack"][- 0]',
            'top, old = state["stack"][- 0], self.state["stack"][-1]',
        ),
        "The state of this file has one frame, so the first one is the last one.",
    ),
    (
        "plates/inbox.py",
        "",
        "INGEST_BYTES = 1 << 16 # that are read at a time; the memory of larger parts stays with the process",
        (
            "INGEST_BYTES = 2 << 16 # that are read at a time; the memory of larger parts stays with the process",
            "INGEST_BYTES = 1 << 17 # that are read at a time; the memory of larger parts stays with the process",
            "INGEST_BYTES = 1 << 15 # that are read at a time; the memory of larger parts stays with the process",
        ),
        TUNING,
    ),
    (
        "plates/inbox.py",
        "",
        "MAX_HEAD_BYTES = 4096 # of a file's first line; they identify the file",
        (
            "MAX_HEAD_BYTES = 4097 # of a file's first line; they identify the file",
            "MAX_HEAD_BYTES = 4095 # of a file's first line; they identify the file",
        ),
        "Events differ in their id, which stands at the beginning of a line.",
    ),
    (
        "machines/passwords.py",
        "given_passwords",
        'command, start = "", 0 # the command at hand, and where its words begin',
        (
            'command, start = "", 1 # the command at hand, and where its words begin',
            'command, start = "", -1 # the command at hand, and where its words begin',
        ),
        "Only the words of a command count, and the first command sets it.",
    ),
    (
        "machines/shell_line.py",
        "",
        "PLAIN_COST = 40 # in steps, for that",
        ("PLAIN_COST = 39 # in steps, for that", "PLAIN_COST = 41 # in steps, for that"),
        BOUND,
    ),
    (
        "machines/rules.py",
        "matches_name",
        "at, place = star + 1, resume",
        ("at, place = star + 0, resume",),
        "It meets the star again, and goes on from there in the same way, one step later.",
    ),
    (
        "machines/shell.py",
        "",
        "TEXT_COST = 30 # to begin to read a text",
        ("TEXT_COST = 29 # to begin to read a text", "TEXT_COST = 31 # to begin to read a text"),
        BOUND,
    ),
    (
        "stores/atomic.py",
        "keep_owner",
        "if posix.geteuid() == 0 and (old.st_uid or old.st_gid):",
        ("if posix.geteuid() == 0 or (old.st_uid or old.st_gid):",),
        "A file of root is given to root, and the system refuses another user.",
    ),
    (
        "stores/spool.py",
        "",
        "NO_DAEMON = (2, 111, 61) # errno if no daemon runs: ENOENT; ECONNREFUSED on Linux and on macOS",
        ("NO_DAEMON = (2, 111, 62) # errno if no daemon runs: ENOENT; ECONNREFUSED on Linux and on macOS",),
        OTHER_SYSTEM,
    ),
    (
        "plates/inbox.py",
        "look",
        "return 0, 0",
        ("return 0, -1", "return 0, 1", "return -1, 0"),
        "It is only compared with other looks, and no file has such a number.",
    ),
    (
        "plates/inbox.py",
        "key",
        'first = os.pread(fd, MAX_HEAD_BYTES, 0).partition(b"\\n")[0]',
        ('first = os.pread(fd, MAX_HEAD_BYTES, 1).partition(b"\\n")[0]',),
        "The first byte of each event is the same brace.",
    ),
    (
        "plates/health.py",
        "",
        "MAX_DECODED_BYTES = 1 << 20 # of a record that is decoded: it takes up to 30 times its size",
        (
            "MAX_DECODED_BYTES = 2 << 20 # of a record that is decoded: it takes up to 30 times its size",
            "MAX_DECODED_BYTES = 1 << 21 # of a record that is decoded: it takes up to 30 times its size",
            "MAX_DECODED_BYTES = 1 << 19 # of a record that is decoded: it takes up to 30 times its size",
        ),
        BOUND,
    ),
    (
        "plates/transcript_ends.py",
        "",
        "MAX_MESSAGE_CHARS = 100_000 # of the agent's last message",
        (
            "MAX_MESSAGE_CHARS = 100001 # of the agent's last message",
            "MAX_MESSAGE_CHARS = 99999 # of the agent's last message",
        ),
        BOUND,
    ),
    (
        "stores/frontmatter.py",
        "unescaped",
        'width = {"x": 2, "u": 4, "U": 8}.get(part[0], 0)',
        ('width = {"x": 2, "u": 4, "U": 8}.get(part[0], -1)',),
        "An unknown escape has no digits then either: this error leaves it as written.",
    ),
    (
        "stores/jwz_index.py",
        "",
        "PIECE_BYTES = 64 << 10",
        (
            "PIECE_BYTES = 63 << 10",
            "PIECE_BYTES = 65 << 10",
            "PIECE_BYTES = 64 << 9",
            "PIECE_BYTES = 64 << 11",
        ),
        TUNING,
    ),
    (
        "stores/jwz_index.py",
        "with_tail",
        "whole = RememberedStore(0, self.offset, self.topic_id)",
        (
            "whole = RememberedStore( 1, self.offset, self.topic_id)",
            "whole = RememberedStore( -1, self.offset, self.topic_id)",
        ),
        "Its witness is not read, because what is found here is not saved.",
    ),
    (
        "stores/jwz_index.py",
        "read_and_remember",
        'done = f"{found.offset / 1e9:.1f} of {facts.st_size / 1e9:.1f} GB"',
        (
            'done = f"{found.offset / 1000000001.0:.1f} of {facts.st_size / 1e9:.1f} GB"',
            'done = f"{found.offset / 999999999.0:.1f} of {facts.st_size / 1e9:.1f} GB"',
            'done = f"{found.offset / 1e9:.1f} of {facts.st_size / 1000000001.0:.1f} GB"',
            'done = f"{found.offset / 1e9:.1f} of {facts.st_size / 999999999.0:.1f} GB"',
        ),
        "The figure has one decimal.",
    ),
    (
        "machines/secrets.py",
        "",
        "MAX_HOST_CHARS = 255 # of a URL's host with its port",
        (
            "MAX_HOST_CHARS = 256 # of a URL's host with its port",
            "MAX_HOST_CHARS = 254 # of a URL's host with its port",
        ),
        BOUND,
    ),
    (
        "machines/secrets.py",
        "named_values",
        'if letter in "=:" and "::" not in word[max(0, at - 2) : at + 1] and not word.startswith("//", start):',
        ('if letter in "=:" and "::" not in word[max( -1, at - 2) : at + 1] and not word.startswith("//", start):',),
        "Only a word that begins with two colons differs: it has no name, and no key begins with a colon.",
    ),
    (
        "machines/secrets.py",
        "",
        "MAX_KEY_CHARS = 256 # of a word, examined for that",
        (
            "MAX_KEY_CHARS = 255 # of a word, examined for that",
            "MAX_KEY_CHARS = 257 # of a word, examined for that",
        ),
        BOUND,
    ),
    (
        "machines/quoting.py",
        "plain_words",
        "kept, length = [], -1",
        (
            "kept, length = [], - 2",
            "kept, length = [], - 0",
        ),
        "The words are joined and cut afterwards; it only ends the loop a word earlier or later.",
    ),
    (
        "stores/jwz.py",
        "",
        "MAX_LINE_BYTES = 16 << 20 # longer lines do not count",
        (
            "MAX_LINE_BYTES = 17 << 20 # longer lines do not count",
            "MAX_LINE_BYTES = 15 << 20 # longer lines do not count",
            "MAX_LINE_BYTES = 16 << 19 # longer lines do not count",
        ),
        BOUND,
    ),
    (
        "stores/jwz.py",
        "post",
        "created_at = max(int(now * 1000), newest.created_at if newest else 0)",
        ("created_at = max(int(now * 1000), newest.created_at if newest else -1)",),
        "No time is before 1970.",
    ),
    (
        "machines/quoting.py",
        "plain_words",
        "if last and len(text) > MAX_EXAMINED_CHARS and len(shown(last[-1])) < MAX_EXAMINED_CHARS // 2:",
        ("if last and len(text) > MAX_EXAMINED_CHARS and len(shown(last[-1])) <= MAX_EXAMINED_CHARS // 2:",),
        BOUND,
    ),
    (
        "machines/quoting.py",
        "plain_words",
        "if length > max_chars:",
        ("if length >= max_chars:",),
        "At exactly `max_chars` the words fill what is returned.",
    ),
    (
        "machines/secrets.py",
        "element_start",
        'return close + 1 if is_secret_name(word[word.rfind("<", 0, close) + 1 : close]) else len(word)',
        ('return close + 1 if is_secret_name(word[word.rfind("<", 1, close) + 1 : close]) else len(word)',),
        "The bracket is a sign, which a name's words leave out.",
    ),
    (
        "plates/transcript_ends.py",
        "",
        "MAX_CHARACTER_BYTES = 4 # in UTF-8",
        ("MAX_CHARACTER_BYTES = 5 # in UTF-8",),
        "More bytes are decoded then; `plain_text` shows no more letters of them.",
    ),
    (
        "machines/secrets.py",
        "secret_start",
        "break",
        ("continue",),
        "`named_values` yields ascending places, so every later name begins behind `start` and changes nothing.",
    ),
    (
        "machines/key_looks.py",
        "kind_of",
        'return "0" if letter.isdigit() else "A" if letter.isupper() else "a"',
        ('return "0" if letter.isdigit() else "A" if not letter.isupper() else "a"',),
        "The two kinds change places; only changes between kinds are counted.",
    ),
    (
        "machines/pem.py",
        "mask_keys",
        'label, dashes, _ = text[start + 11 : start + 11 + MAX_LABEL_CHARS].partition("-----")',
        (
            'label, dashes, _ = text[start + 10 : start + 11 + MAX_LABEL_CHARS].partition("-----")',
            'label, dashes, _ = text[start + 11 : start + 10 + MAX_LABEL_CHARS].partition("-----")',
        ),
        "The blank before the label changes where the search for the end begins by one; the other is a bound.",
    ),
    (
        "machines/pem.py",
        "mask_keys",
        'close = text.find("-----", end + 8) if end >= 0 else -1',
        ('close = text.find("-----", end + 8) if end > 0 else -1',),
        "The search begins behind the key's beginning, so it never finds 0.",
    ),
]
