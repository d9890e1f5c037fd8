"""Whether another user could change a folder."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tailhook._core import folder_fault
from tailhook.stores import atomic, links

USER = 12345
# Asks as the user with these numbers. If the last argument is "namespace": in a user namespace with only that user.
ASK_AS = """
import ctypes, json, os, sys
from tailhook._core import folder_fault

folder, uid, gid = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.setgroups([])
os.setgid(gid)
os.setuid(uid)
if sys.argv[-1] == "namespace":
    ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE: or /proc/self/uid_map belongs to root
    if ctypes.CDLL(None).unshare(0x10000000):  # CLONE_NEWUSER
        sys.exit("no user namespace")
    for name, words in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(words)
print(json.dumps(folder_fault(os.fsencode(folder))))
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@pytest.fixture
def shared():
    """Yield a folder like /tmp, and in it: every user can reach it, and no user could have made those above it."""
    with tempfile.TemporaryDirectory(prefix="tailhook-", dir="/tmp") as folder:
        os.chmod(folder, 0o1777)
        yield Path(folder)


def found(folder):
    """Ask the core about a folder."""
    return folder_fault(os.fsencode(folder))


def found_as(uid, gid, folder, *more):
    """Ask the core about a folder as another user."""
    argv = [sys.executable, "-c", ASK_AS, str(folder), str(uid), str(gid), *more]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if "no user namespace" in done.stderr:
        pytest.skip("no user namespace can be made here")
    assert done.returncode == 0, done.stderr
    return tuple(json.loads(done.stdout))


def test_a_missing_folder_is_neither_there_nor_unsafe(shared):
    assert found(shared / "none" / "below") == (False, "")
    (shared / "dangling").symlink_to("nowhere")
    assert found(shared / "dangling") == (False, "")
    (shared / "file").touch()
    assert found(shared / "file" / "below") == (False, "")


@pytest.mark.parametrize(("mode", "is_safe"), [(0o700, True), (0o755, True), (0o720, False), (0o702, False)])
def test_other_users_may_read_the_folder_and_not_write_to_it(shared, mode, is_safe):
    folder = shared / "state"
    folder.mkdir()
    folder.chmod(mode)
    assert found(folder) == (True, "" if is_safe else f"{folder} can be written by other users")


def test_a_sticky_folder_is_safe_above_and_not_by_itself(shared):
    assert found(shared) == (True, f"{shared} can be written by other users")
    (shared / "state").mkdir(0o700)
    assert found(shared / "state") == (True, "")


def test_links_in_a_circle_come_to_an_end(shared):
    (shared / "a").symlink_to("b")
    (shared / "b").symlink_to("a")
    exists, fault = found(shared / "a" / "state")
    assert (exists, "too many symbolic links" in fault) == (True, True)


def test_a_chain_of_links_is_followed_as_far_as_the_system_follows_it(shared):
    (shared / "0").mkdir(0o700)
    for number in range(1, 42):
        (shared / str(number)).symlink_to(str(number - 1))
    assert found(shared / "40") == (True, "")
    assert (shared / "40").is_dir()
    assert "too many" in found(shared / "41")[1]
    with pytest.raises(OSError, match="symbolic links"):
        os.stat(shared / "41")


def test_the_faults_text_can_hold_any_path(shared):
    folder = shared / os.fsdecode(b"\xff\n")
    folder.mkdir()
    folder.chmod(0o777)
    assert found(folder) == (True, f"{folder} can be written by other users")


@needs_root
def test_a_user_trusts_root_and_itself_and_no_other_user(shared):
    folder = shared / "home" / "state"
    folder.mkdir(parents=True)
    shared.joinpath("home").chmod(0o755)
    os.chown(folder, USER, USER)
    assert found_as(USER, USER, folder) == (True, "")
    assert found_as(USER + 1, USER + 1, folder) == (True, f"{folder} belongs to another user (uid {USER})")
    assert found(folder) == (True, f"{folder} belongs to another user (uid {USER})")
    os.chown(folder, 0, 0)
    assert found_as(USER, USER, folder) == (True, f"{folder} belongs to another user (uid 0)")


@needs_root
@pytest.mark.parametrize(
    ("owner", "group", "gid", "is_safe"),
    [
        (USER, USER, USER, True),  # a group for each user, umask 002
        (USER, 100, 100, False),  # one group for all users
        (USER, USER, 100, False),
        (USER, 0, USER, False),
        (0, USER, USER, True),
        (0, 0, 0, False),
    ],
)
def test_a_group_may_write_above_the_folder_if_it_is_the_users_own(shared, owner, group, gid, is_safe):
    home = shared / "home"
    (home / "state").mkdir(parents=True)
    os.chown(home / "state", USER, USER)
    os.chown(home, owner, group)
    home.chmod(0o775)
    assert found_as(USER, gid, home / "state") == (True, "" if is_safe else f"{home} can be written by other users")


@needs_root
def test_roots_own_group_may_not_write_above_the_folder(shared):
    home = shared / "home"
    (home / "state").mkdir(parents=True, mode=0o700)
    home.chmod(0o775)
    assert found(home / "state") == (True, f"{home} can be written by other users")


# ---- in a user namespace: it shows all unknown users, root among them, as one ----


@needs_root
def test_a_user_namespace_hides_that_a_folder_above_belongs_to_root(shared):
    """/ and /tmp do."""
    (shared / "state").mkdir()
    for folder in (shared, shared / "state"):
        os.chown(folder, USER, USER)
    assert found_as(USER, USER, shared / "state", "namespace") == (True, "")


@needs_root
def test_in_a_user_namespace_too_the_folder_must_be_the_users_own(shared):
    shared.chmod(0o755)
    (shared / "state").mkdir()
    os.chown(shared, USER, USER)
    fault = f"{shared}/state belongs to another user (uid 65534)"
    assert found_as(USER, USER, shared / "state", "namespace") == (True, fault)


@needs_root
@pytest.mark.parametrize("maker", [0, USER + 1])
def test_in_a_user_namespace_what_others_could_have_made_is_not_taken_for_roots(shared, maker):
    """Every user can make a folder in /tmp, so it may not be root's."""
    (shared / "made" / "state").mkdir(parents=True)
    os.chown(shared, USER, USER)
    os.chown(shared / "made", maker, maker)
    os.chown(shared / "made" / "state", USER, USER)
    exists, fault = found_as(USER, USER, shared / "made" / "state", "namespace")
    assert (exists, fault) == (True, f"{shared}/made belongs to another user (uid 65534)")


@needs_root
def test_outside_of_a_user_namespace_the_user_nobody_is_a_user(shared):
    (shared / "made" / "state").mkdir(parents=True)
    shared.chmod(0o755)
    os.chown(shared / "made", 65534, 65534)
    os.chown(shared / "made" / "state", USER, USER)
    assert found_as(USER, USER, shared / "made" / "state") == (
        True,
        f"{shared}/made belongs to another user (uid 65534)",
    )


# ---- the state folder ------------------------------------------------------------


@pytest.fixture
def environment(shared, monkeypatch):
    """Return the environment of a user whose state folder is below `shared`."""
    import posix

    monkeypatch.setattr(atomic, "checked", "")
    monkeypatch.setitem(posix.environ, b"XDG_STATE_HOME", os.fsencode(shared))


@needs_root
def test_a_folder_that_another_user_makes_at_that_moment_is_refused(shared, environment, monkeypatch):
    def another_is_faster(folder):
        os.mkdir(folder)
        os.chown(folder, USER, USER)

    monkeypatch.setattr(atomic, "make_folders", another_is_faster)
    with pytest.raises(OSError, match="belongs to another user"):
        atomic.state_folder()


def test_the_folder_is_checked_once_in_a_process(shared, environment, monkeypatch):
    asked = []
    monkeypatch.setattr(atomic, "folder_fault", lambda folder: asked.append(folder) or folder_fault(folder))
    for _ in range(3):
        atomic.state_folder_path()
    assert len(asked) == 3  # it is not there yet
    atomic.state_folder()
    atomic.state_folder()
    asked.clear()
    atomic.state_folder()
    atomic.state_folder_path()
    assert asked == []


def test_links_that_lead_to_each_other_are_a_circle(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.symlink_to(two)
    two.symlink_to(one)
    assert links.is_circle(str(one))


def test_what_is_missing_or_there_is_not_a_circle(tmp_path):
    assert not links.is_circle(str(tmp_path / "missing"))
    assert not links.is_circle(str(tmp_path))
    (tmp_path / "link").symlink_to(tmp_path / "missing")
    assert not links.is_circle(str(tmp_path / "link"))
