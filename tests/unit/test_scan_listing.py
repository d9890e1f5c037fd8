"""Where the hosts keep their transcripts."""

import os

import pytest

from tailhook.fleet.listing import default_folders, find_source_files
from tailhook.hook.hosts import NAMES, find_host

FOLDERS = {
    "claude-code": ("CLAUDE_CONFIG_DIR", ".claude/projects", "projects"),
    "codex": ("CODEX_HOME", ".codex/sessions", "sessions"),
    "gemini": ("GEMINI_CLI_HOME", ".gemini/tmp", ".gemini/tmp"),
    "copilot": ("COPILOT_HOME", ".copilot/session-state", "session-state"),
}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Return a home folder without hosts."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable, _, _ in FOLDERS.values():
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def test_a_file_whose_path_is_not_utf8_is_a_problem_and_never_a_row_with_another_path(home):
    for name in (b"\xff.jsonl", b"\xfe.jsonl", "é.jsonl".encode()):
        (home / os.fsdecode(name)).write_bytes(b"{}\n")
    problems = []
    assert [file.path for file in find_source_files([home], problems)] == [str(home / "é.jsonl")]
    assert [os.fsencode(problem.path)[-7:] for problem in problems] == [b"\xfe.jsonl", b"\xff.jsonl"]
    assert {problem.reason for problem in problems} == {"its path is not UTF-8, so no row can name it: rename it"}


def test_the_folders_of_all_installed_hosts_are_found(home):
    assert default_folders() == []
    for _, folder, _ in FOLDERS.values():
        (home / folder).mkdir(parents=True)
    assert sorted(default_folders()) == sorted(str(home / folder) for _, folder, _ in FOLDERS.values())


@pytest.mark.parametrize("host", FOLDERS)
def test_a_variable_moves_a_hosts_folder(home, monkeypatch, host):
    variable, folder, moved = FOLDERS[host]
    (home / folder).mkdir(parents=True)
    (home / "elsewhere" / moved).mkdir(parents=True)
    monkeypatch.setenv(variable, str(home / "elsewhere"))
    assert default_folders() == [str(home / "elsewhere" / moved)]


def test_a_host_whose_transcripts_are_not_known_has_none(home):
    assert {name for name in NAMES if not find_host(name).TRANSCRIPT_FOLDER} == {"cursor"}
    (home / ".cursor").mkdir()
    assert default_folders() == []
