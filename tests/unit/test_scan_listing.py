"""Which files a scan reads, and where the hosts keep their transcripts."""

import glob
import multiprocessing
import os
import random
import stat
import warnings
from pathlib import Path

import pytest
from support.host import short_folder

import tailhook
from tailhook.fleet.listing import default_folders, find_source_files, is_read, matches_of
from tailhook.hosts import NAMES, find_host
from tailhook.transcripts.urls import name_of

# A variable ("" for none), the folder of transcripts, and its name below the folder that the variable names.
FOLDERS = {
    "claude-code": ("CLAUDE_CONFIG_DIR", ".claude/projects", "projects"),
    "codex": ("CODEX_HOME", ".codex/sessions", "sessions"),
    "gemini": ("GEMINI_CLI_HOME", ".gemini/tmp", ".gemini/tmp"),
    "copilot": ("COPILOT_HOME", ".copilot/session-state", "session-state"),
    "qwen": ("QWEN_HOME", ".qwen/projects", "projects"),
}
MOVED = [host for host, (variable, _, _) in FOLDERS.items() if variable]


@pytest.fixture
def tmp_path():
    """Yield a folder that every user may enter; other runs of pytest close pytest's own to other users."""
    with short_folder() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder).resolve()


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Return a home folder without hosts."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for host in MOVED:
        monkeypatch.delenv(FOLDERS[host][0], raising=False)
    return tmp_path


def test_a_file_whose_path_is_not_utf8_is_a_problem_and_never_a_row_with_another_path(home):
    for name in (b"\xff.jsonl", b"\xfe.jsonl", "é.jsonl".encode()):
        (home / os.fsdecode(name)).write_bytes(b"{}\n")
    problems = []
    assert [file.path for file in find_source_files([home], problems)] == [str(home / "é.jsonl")]
    assert [os.fsencode(problem.path)[-7:] for problem in problems] == [b"\xfe.jsonl", b"\xff.jsonl"]
    assert {problem.reason for problem in problems} == {"its path is not UTF-8, so no row can name it: rename it"}


def test_the_folders_of_all_installed_hosts_are_found(home):
    assert set(FOLDERS) == {name for name in NAMES if find_host(name).TRANSCRIPT_FOLDERS}
    (home / ".cursor").mkdir()  # its transcripts are not known
    assert default_folders([]) == []
    for _, folder, _ in FOLDERS.values():
        (home / folder).mkdir(parents=True)
    assert sorted(default_folders([])) == sorted(str(home / folder) for _, folder, _ in FOLDERS.values())


@pytest.mark.parametrize("host", MOVED)
def test_a_variable_moves_a_hosts_folder(home, monkeypatch, host):
    variable, folder, moved = FOLDERS[host]
    (home / folder).mkdir(parents=True)
    (home / "elsewhere" / moved).mkdir(parents=True)
    monkeypatch.setenv(variable, str(home / "elsewhere"))
    assert default_folders([]) == [str(home / "elsewhere" / moved)]


def test_a_host_may_keep_transcripts_in_several_folders(home, monkeypatch):
    folders = [home / ".claude/projects", home / ".config/claude/projects"]
    folders += [home / ".codex/sessions", home / ".codex/archived_sessions"]
    for number, folder in enumerate(folders):
        folder.mkdir(parents=True)
        (folder / f"rollout-{number}.jsonl").write_text(LINE)
    assert default_folders([]) == [str(folder) for folder in folders]
    assert scanned() == (4, [])
    assert is_read(str(folders[3] / "rollout-3.jsonl"), None)
    monkeypatch.setenv("CODEX_HOME", str(home / "moved"))
    (home / "moved" / "archived_sessions").mkdir(parents=True)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / ".claude"))
    assert default_folders([]) == [str(folders[0]), str(home / "moved" / "archived_sessions")]


@pytest.mark.parametrize("link", [".claude", ".claude/projects"])
def test_a_hosts_folder_that_is_a_link_to_a_missing_one_is_reported(home, link):
    (home / link).parent.mkdir(exist_ok=True)
    (home / link).symlink_to(home / "unmounted")
    files, problems = scanned()
    assert (files, problems) == (0, [(str(home / link), f"it is a link to {home / 'unmounted'}, which does not exist")])
    (home / "unmounted" / "projects").mkdir(parents=True)
    assert scanned() == (0, [])


def test_a_folder_that_is_also_reached_by_a_link_is_read_once(home):
    (home / ".claude" / "projects").mkdir(parents=True)
    (home / ".claude" / "projects" / "s.jsonl").write_text(LINE)
    (home / ".config").mkdir()
    (home / ".config" / "claude").symlink_to(home / ".claude")
    assert scanned() == (1, [])


LINE = '{"type":"user","sessionId":"s","message":{"role":"user","content":"hello"}}\n'
OTHER_USER = 65_534
needs_users = pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")


def scanned(*sources):
    """Return the number of records that a scan finds, and the skipped files with the reasons."""
    scan = tailhook.scan(sources or None, "records")
    return sum(1 for _ in scan.rows()), [tuple(problem) for problem in scan.report.skipped]


def scanned_as_a_user(*sources):
    """Return the result of `scanned` in a process without root's rights."""
    context = multiprocessing.get_context("fork")
    answers, answer = context.Pipe(duplex=False)

    def ask():
        if os.getuid() == 0:
            os.setuid(OTHER_USER)
        answer.send(scanned(*sources))

    process = context.Process(target=ask)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the threads of the test runner do nothing in the child
        process.start()
    process.join()
    assert answers.poll(), "the process has failed"
    return answers.recv()


@pytest.fixture
def transcript(tmp_path):
    """Return a transcript with one record; every user may read it."""
    path = tmp_path / "s.jsonl"
    path.write_text(LINE)
    return str(path)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("n" * 300, "File name too long"),
        ("a\0b", "no file has a null character in its name"),
        ("a\0b/*.jsonl", "no file has a null character in its name"),
        ("n" * 300 + "/*.jsonl", "no file matches"),
    ],
)
def test_a_name_that_no_file_can_have_leaves_the_rows_of_the_other_sources(transcript, source, reason):
    assert scanned(source, transcript) == (1, [(source, reason)])


@needs_users
def test_a_source_below_a_folder_without_permission_leaves_the_rows_of_the_others(tmp_path, transcript):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0)
    below = str(locked / "folder")
    assert scanned_as_a_user(below, transcript) == (1, [(below, "Permission denied")])
    assert scanned_as_a_user(str(tmp_path)) == (1, [(str(locked), "Permission denied")])


@needs_users
@pytest.mark.parametrize("pattern", ["**/*.jsonl", "*/*.jsonl", "*/none.jsonl", "l*/**/*.jsonl", "**/**/n*/*.jsonl"])
def test_a_folder_without_permission_that_a_glob_leads_to_is_reported(tmp_path, transcript, pattern):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0)
    path = str(locked / "none.jsonl") if pattern == "*/none.jsonl" else str(locked)
    assert scanned_as_a_user(str(tmp_path / pattern), transcript) == (1, [(path, "Permission denied")])


@needs_users
def test_a_glob_in_a_folder_without_permission_has_the_permission_as_its_reason(tmp_path, transcript):
    (tmp_path / "locked" / "below").mkdir(parents=True)
    (tmp_path / "locked").chmod(0)
    for pattern, path in (("locked/*.jsonl", "locked"), ("locked/below/*.jsonl", "locked/below")):
        found = scanned_as_a_user(str(tmp_path / pattern), transcript)
        assert found == (1, [(str(tmp_path / path), "Permission denied")])
    (tmp_path / "locked").chmod(0o700)


def test_a_folder_that_two_sources_lead_to_is_reported_once(tmp_path, transcript):
    (tmp_path / "self.jsonl").symlink_to("self.jsonl")
    source = str(tmp_path / "self.jsonl")
    assert scanned(source, source) == (0, [(source, "Too many levels of symbolic links")])


def test_a_file_is_not_looked_for_at_a_url(transcript):
    assert not is_read(transcript, ["s3://none/s.jsonl"])
    assert is_read(transcript, ["s3://none/s.jsonl", transcript])
    assert not is_read(f"{transcript}.new", [transcript])


GLOBS = [
    "*",
    "*.jsonl",
    "?",
    "[ab]",
    "a*/b*",
    "./a/*",
    "a//*",
    "*/",
    "a/*/",
    "*/b",
    ".*",
    "*/.h",
    "a/b/../*",
    "none/*",
    "[[]x]",
    "*x*",
    "a/[b]/*",
]


@pytest.mark.parametrize("pattern", GLOBS)
def test_a_glob_matches_what_the_glob_module_matches(tmp_path, monkeypatch, pattern):
    for name in ("a/b/c.jsonl", "a/.h/d.jsonl", "b", "[x]", ".h/e.jsonl", "a/x.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dangling").symlink_to("nowhere")
    problems = []
    for one in (pattern, str(tmp_path / pattern) + "/" * pattern.endswith("/")):
        wanted = {str(Path(path)) for path in glob.glob(one)}
        assert matches_of(one, problems) == wanted
    assert problems == []


@pytest.mark.parametrize("pattern", ["**/*.jsonl", "./**/*.jsonl", "**/**/*.jsonl", "**", "**/"])
def test_a_file_has_one_path_whether_a_glob_a_folder_or_its_name_leads_to_it(tmp_path, monkeypatch, pattern):
    names = {"a.jsonl", "b/c.jsonl"}
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    for sources in ([pattern], [pattern, "."], [pattern, "a.jsonl", "*.jsonl"]):
        problems = []
        assert [file.path for file in find_source_files(sources, problems)] == sorted(names)
        assert problems == []


@needs_users
def test_a_hosts_folder_without_permission_leaves_the_rows_of_the_other_hosts(home, transcript):
    folder = home / ".claude" / "projects"
    folder.mkdir(parents=True)
    os.replace(transcript, folder / "s.jsonl")
    (home / ".codex").mkdir(mode=0)
    assert scanned_as_a_user() == (1, [(str(home / ".codex" / "sessions"), "Permission denied")])


@pytest.mark.parametrize("host", MOVED)
@pytest.mark.parametrize(
    ("name", "reason"),
    [("none", "No such file or directory"), ("n" * 300, "File name too long"), ("file", "Not a directory")],
)
def test_a_folder_that_a_variable_names_and_that_is_not_there_is_reported(home, monkeypatch, host, name, reason):
    variable = FOLDERS[host][0]
    (home / "file").touch()
    monkeypatch.setenv(variable, str(home / name))
    assert scanned() == (0, [(str(home / name), f"{reason}; {variable} names it")])


@pytest.mark.parametrize("host", MOVED)
def test_a_folder_that_a_variable_names_may_have_no_transcripts_yet(home, monkeypatch, host):
    monkeypatch.setenv(FOLDERS[host][0], str(home))
    assert scanned() == (0, [])


def test_a_folder_has_every_transcript_whose_name_goes_on_behind_jsonl(home):
    names = ["a.jsonl", "b.JSONL", "c.jsonl.001", "d.jsonl.1", "e.jsonl.gz", "f.Jsonl.ZST", "g.jsonl.1.gz"]
    for name in [*names, "json", "h.json", "i.txt"]:
        (home / name).write_bytes(b"")
    assert [Path(file.path).name for file in find_source_files([home], [])] == names


@pytest.mark.parametrize("name", ["0a.jsonl", "0a.JSONL", "0a.jsonl.001", "0a.jsonl.gz", "0a.jsonl.1.zst", "0a"])
def test_a_session_without_an_id_is_named_after_the_file_without_its_ending(name):
    assert name_of(f"/p/{name}") == "0a"


def walked(folder):
    """Return the transcripts by `os.walk`: path, size and time of each file, and the paths of other things."""
    files, others = [], []
    for parent, _, names in os.walk(folder):
        for path in [os.path.join(parent, name) for name in names if ".jsonl" in name.lower()]:
            facts = os.lstat(path)
            if stat.S_ISREG(facts.st_mode) and path.isprintable():
                files.append((path, facts.st_size, facts.st_mtime))
            elif not stat.S_ISLNK(facts.st_mode):
                others.append(path)
    return sorted(files), sorted(others)


def test_a_folder_has_what_os_walk_finds_in_the_order_of_the_paths(home):
    chance = random.Random(5)
    names = ["a.jsonl", "a", "a-b.jsonl", "a.jsonl.d", "é.jsonl", "\ufffd.jsonl", "\U0001f600.JSONL", ".h.jsonl"]
    names += [".jsonl", "x" * 240 + ".jsonl", "\udcff.jsonl", "jsonl", "z.txt"]
    folders = [home]
    for number in range(150):
        path = chance.choice(folders) / chance.choice(names)
        if os.path.lexists(path):
            continue
        kind = chance.choice(["file", "file", "folder", "pipe", "link"])
        if kind == "folder":
            path.mkdir()
            folders.append(path)
        elif kind == "file":
            path.write_bytes(b"x" * number)
            os.utime(path, ns=(0, chance.randrange(2 * 10**18)))
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to(chance.choice(["a.jsonl", "a", "nowhere"]))
    problems = []
    found = [tuple(file[:3]) for file in find_source_files([home, home / "a"], problems)]
    files, others = walked(home)
    assert found == files
    assert sorted(problem.path for problem in problems) == others
    assert len(files) > 20
    assert len(others) > 10
