"""The configuration: the valid values, and the keys that a project's own file may set."""

import json
import os

import pytest
from support.cases import in_one_test

from tailhook.hook.config import KEYS, MAX_MEMBERS, MAX_SECONDS, load, stays_below, usable_values
from tailhook.hook.machines import configured_machines


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Return a function that writes the user's and the project's file (None: no file) and loads them."""
    home, project = tmp_path / "home", tmp_path / "project"
    monkeypatch.setattr("posix.environ", {b"HOME": os.fsencode(home)})

    def load_both(user=None, own=None):
        paths = (home / ".config" / "tailhook" / "config.json", project / ".claude" / "tailhook.json")
        for path, content in zip(paths, (user, own), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is not None:
                path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return load(str(project))

    load_both.home, load_both.project = home, project
    return load_both


EMPTY = {section: {} for section in KEYS}


def test_without_files_every_section_is_empty(config, capfd):
    assert config() == EMPTY
    assert load("/nowhere") == EMPTY
    assert capfd.readouterr().err == ""


def test_the_projects_value_takes_the_place_of_the_users(config):
    user = {"idle": {"stale_after": 1, "next_issue": "user"}, "triage": {"while_active": "user"}}
    found = config(user, {"idle": {"stale_after": 2}, "hook": {"machines": ["idle"]}})
    assert found["idle"] == {"stale_after": 2, "next_issue": "user"}
    assert found["triage"] == {"while_active": "user"}
    assert found["hook"] == {"machines": ["idle"]}


def test_unknown_sections_and_keys_are_left_out(config):
    assert config({"idle": {"other": 1}, "other": {"stale_after": 1}, "schema": 1}) == EMPTY


# ---- what only the user may set ----------------------------------------------


def test_a_project_cannot_set_what_is_the_users(config):
    values = {"hook": {"log": "/tmp/log", "unbound": "refuse"}, "plates": {"autostart": False}}
    assert config(None, values) == {**EMPTY, "hook": {"unbound": "refuse"}}
    assert config(values) == {**EMPTY, **values}
    mine = {"hook": {"log": "/mine"}, "plates": {"autostart": True}}
    assert config(mine, values) == {**EMPTY, "hook": {"log": "/mine", "unbound": "refuse"}, "plates": mine["plates"]}


DEFAULTS = ["idle", "ralph", "triage"]


@pytest.mark.parametrize(
    ("user", "project", "asked"),
    [
        (None, ["gate", "memory", "plates"], []),
        (None, ["triage", "gate", "idle"], ["idle", "triage"]),
        (None, [], []),
        (None, None, DEFAULTS),
        (["idle", "gate"], ["gate", "plates"], ["gate"]),
        (["gate", "memory"], DEFAULTS, []),
        (["memory", "gate"], None, ["gate", "memory"]),
        ([], ["idle"], []),
        (DEFAULTS, "gate", DEFAULTS),
    ],
)
def test_a_clone_cannot_switch_a_machine_on_that_its_user_did_not_enable(config, user, project, asked):
    files = [None if names is None else {"hook": {"machines": names}} for names in (user, project)]
    assert configured_machines(config(*files)) == asked


@pytest.mark.parametrize(("user", "project", "used"), [("refuse", "act", "refuse"), ("act", "refuse", "refuse")])
def test_a_clone_cannot_let_sessions_act_on_loops_that_its_user_refuses(config, user, project, used):
    assert config({"hook": {"unbound": user}}, {"hook": {"unbound": project}})["hook"] == {"unbound": used}
    assert config({}, {"hook": {"unbound": "act"}}) == EMPTY


def test_of_a_list_only_the_first_members_count(config):
    many = {"triage": {"state_dirs": [f"d{number}" for number in range(5000)]}, "gate": {"rules": [{}] * 5000}}
    found = config(None, many)
    assert found["triage"]["state_dirs"] == [f"d{number}" for number in range(MAX_MEMBERS)]
    assert found["gate"]["rules"] == [{}] * MAX_MEMBERS


def test_a_project_names_only_folders_inside_it(config):
    folders = ["state", "/etc", "a/../../b", "..", "../b", "a..b", "./c", ""]
    assert config(None, {"triage": {"state_dirs": folders}})["triage"]["state_dirs"] == ["state", "a..b", "./c", ""]
    assert config({"triage": {"state_dirs": folders}}, {})["triage"]["state_dirs"] == folders


@pytest.mark.parametrize(("path", "expected"), [("a/b", True), ("...", True), ("/a", False), ("a/..", False)])
def test_whether_a_path_stays_inside_the_project(path, expected):
    assert stays_below(path) is expected


# ---- broken files ------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"text"', b"null", b"1", b"\xff", b'{"hook": NaN}', b"{}{}"])
def test_a_broken_file_counts_as_empty_and_is_reported(config, capfd, content):
    assert config(content, {"idle": {"stale_after": 1}}) == {**EMPTY, "idle": {"stale_after": 1}}
    printed = capfd.readouterr().err
    assert printed.startswith(f"tailhook: {config.home}/.config/tailhook/config.json: ")
    assert printed.endswith(". The defaults are used.\n")
    assert printed.count("\n") == 1
    assert config({"idle": {"stale_after": 1}}, content) == {**EMPTY, "idle": {"stale_after": 1}}
    assert f"tailhook: {config.project}/.claude/tailhook.json: " in capfd.readouterr().err


def test_a_file_that_is_too_large_is_reported(config, capfd):
    config(b"{}")
    path = config.home / ".config" / "tailhook" / "config.json"
    os.truncate(path, 1 << 30)
    assert load(str(config.project)) == EMPTY
    assert f"{path}: " in capfd.readouterr().err


@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_a_projects_file_that_is_not_a_file_of_its_own_is_ignored(config, capfd, tmp_path, kind):
    config()
    path = config.project / ".claude" / "tailhook.json"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        (tmp_path / "elsewhere").write_text('{"idle": {"stale_after": 1}}')
        path.symlink_to(tmp_path / "elsewhere")
    assert load(str(config.project)) == EMPTY
    assert ("The defaults are used" in capfd.readouterr().err) is (kind == "pipe")  # it is read, and is empty


def test_the_users_file_may_be_a_link(config, tmp_path):
    config()
    (tmp_path / "dotfiles.json").write_text('{"idle": {"stale_after": 1}}')
    (config.home / ".config" / "tailhook" / "config.json").symlink_to(tmp_path / "dotfiles.json")
    assert load(str(config.project))["idle"] == {"stale_after": 1}


# ---- one section -------------------------------------------------------------

KINDS = {"t": "text", "f": "flag", "s": "seconds", "ts": "texts", "ps": "paths", "os": "objects"}


@pytest.mark.parametrize("values", [None, [], "text", 1, True, {}, {"other": 1}])
def test_a_section_that_is_not_an_object_has_no_values(values):
    assert usable_values(values, KINDS) == {}


@in_one_test(
    ("key", "value"),
    [
        *[("t", value) for value in ("", "text", "é", "\udc80")],
        *[("f", value) for value in (True, False)],
        *[("s", value) for value in (0, 0.0, 1, 2.5, MAX_SECONDS)],
        *[("ts", value) for value in ([], ["a", ""])],
        *[("ps", value) for value in ([], ["/a", "../b"])],
        *[("os", value) for value in ([], [{}, {"a": 1}])],
    ],
)
def test_a_value_of_its_keys_kind_counts(key, value):
    assert usable_values({key: value}, KINDS) == {key: value}


@in_one_test(
    ("key", "value"),
    [
        *[("t", value) for value in (None, 1, True, ["a"], {}, "a\0b", "\ud800")],
        *[("f", value) for value in (None, 0, 1, "true", [], {})],
        *[("s", value) for value in (None, True, False, "1", -1, -0.5, MAX_SECONDS + 1, 1e300, [1], 10**400)],
        *[("s", float(value)) for value in ("inf", "-inf", "nan")],
        *[(key, value) for key in ("ts", "ps", "os") for value in (None, "a", 1, True, {"a": 1})],
    ],
)
def test_a_value_of_another_kind_counts_as_missing(key, value):
    assert usable_values({key: value}, KINDS) == {}


def test_members_of_a_list_that_have_another_kind_are_left_out():
    mixed = ["a", None, 1, True, ["b"], {"c": 1}, "d\0", "\ud800", "e"]
    assert usable_values({"ts": mixed, "ps": mixed, "os": mixed}, KINDS) == {
        "ts": ["a", "e"],
        "ps": ["a", "e"],
        "os": [{"c": 1}],
    }
