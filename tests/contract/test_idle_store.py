"""Where the idle machine's loop lives, as whole processes: the store, the fallback file, and the folders looked in."""

import json
import os
import sys
import time

import pytest
from support.host import frame, looping
from support.oracles import jwz

DONE = "<loop-done>COMPLETE</loop-done>"


# ---- the store ---------------------------------------------------------------


def test_the_posts_of_a_loop_can_be_read_by_the_record_format_alone(project):
    project.loop()
    for count in range(2, 12):
        project.stop("Hm.")
        found = jwz.messages(project.folder)
        assert len(found) == count
        assert [record["created_at"] for record in found] == sorted(record["created_at"] for record in found)
    assert list(found[-1]) == ["type", "id", "topic_id", "parent_id", "body", "created_at", "sender", "git"]
    assert (found[-1]["parent_id"], found[-1]["sender"], found[-1]["git"]) == (None, None, None)
    assert len(found[-1]["id"]) == 26
    assert jwz.newest(project.folder)["reason"] == "MAX_ITERATIONS"


def test_what_a_state_holds_beyond_the_known_keeps_its_bytes(project):
    body = '{ "schema":1, "mine": 1.50,\n "stack": [{"iter": "08" , "max":10, "é": "\\u00e9"}], "z": 1e3 }'
    jwz.post(project.folder, body)
    project.stop("Hm.")
    posted = jwz.messages(project.folder)[-1]["body"]
    assert posted.replace('"iter": 9', '"iter": "08"').startswith(body[:-2])


def test_a_torn_last_line_is_mended_and_left_out(project):
    project.loop()
    with (project.folder / ".jwz" / "messages.jsonl").open("a") as out:
        out.write('{"type":"message","id":"01')
    stop = project.hook(json.dumps(project.payload(last_assistant_message="Hm.")).encode(), read=False)
    assert stop.exit_code == 2
    lines = (project.folder / ".jwz" / "messages.jsonl").read_text().splitlines()
    assert lines[-2] == '{"type":"message","id":"01'
    assert json.loads(json.loads(lines[-1])["body"])["stack"][0]["iter"] == 2


def test_the_older_name_of_the_store_is_read(project):
    project.loop()
    (project.folder / ".jwz").rename(project.folder / ".zawinski")
    assert project.stop("Hm.").exit_code == 2


def test_the_newest_message_is_the_latest_by_time_and_then_by_line(project):
    now = int(time.time() * 1000)
    jwz.post(project.folder, json.dumps(looping(frame(iter=5))), created_at=now)
    jwz.post(project.folder, json.dumps(looping(frame(iter=1))), created_at=now - 5000)
    assert project.stop("Hm.").answer["reason"].startswith("[ITERATION 6/10]")


def test_a_post_is_never_older_than_the_newest_message(project):
    future = int((time.time() + 10_000) * 1000)
    jwz.post(project.folder, json.dumps(looping()), created_at=future)
    project.stop("Hm.")
    assert jwz.messages(project.folder)[-1]["created_at"] == future
    assert project.stop("Hm.").answer["reason"].startswith("[ITERATION 3/10]")


def test_other_topics_are_ignored(project):
    jwz.post(project.folder, json.dumps(looping()), topic="notes")
    assert project.stop("Hm.").allowed
    jwz.post(project.folder, json.dumps({"about": "loop:current"}), topic="notes")
    assert project.stop("Hm.").allowed


def test_a_store_that_cannot_be_written_lets_the_agent_go(project):
    state = project.loop()
    lock = project.folder / ".jwz" / "lock"
    lock.unlink()
    lock.mkdir()
    stop = project.stop("Hm.")
    assert (stop.exit_code, stop.stdout, stop.state) == (0, "", state)
    assert "could not be saved" in stop.stderr


def test_a_loop_is_found_from_a_folder_inside_the_project(project, run_idle):
    inner = project.folder / "a" / "b"
    inner.mkdir(parents=True)
    assert run_idle("Hm.", state=looping(), cwd=str(inner)).exit_code == 2


def test_the_search_ends_at_the_first_repository(project, run_idle):
    inner = project.folder / "other"
    (inner / ".git").mkdir(parents=True)
    assert run_idle("Hm.", state=looping(), cwd=str(inner)).allowed


@pytest.mark.parametrize("slash", ["", "/"])
def test_the_search_ends_with_the_home_folder(project, tmp_path, slash):
    inner = project.home / "work"
    inner.mkdir()
    project.env["HOME"] += slash
    jwz.post(tmp_path, json.dumps(looping()))
    assert project.stop("Hm.", cwd=str(inner)).allowed
    jwz.post(project.home, json.dumps(looping()))
    assert project.stop("Hm.", cwd=str(inner)).exit_code == 2


def test_the_hosts_project_folder_is_looked_in_first(project, run_idle, tmp_path):
    project.env["CLAUDE_PROJECT_DIR"] = str(project.folder)
    assert run_idle("Hm.", state=looping(), cwd=str(tmp_path)).exit_code == 2


@pytest.mark.parametrize("linked", ["folder", "messages", "fallback", "claude"])
def test_no_state_is_read_through_a_symbolic_link(project, tmp_path, linked):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if linked in ("folder", "messages"):
        jwz.post(elsewhere, json.dumps(looping()))
        if linked == "folder":
            (project.folder / ".jwz").symlink_to(elsewhere / ".jwz")
        else:
            (project.folder / ".jwz").mkdir()
            (project.folder / ".jwz" / "messages.jsonl").symlink_to(elsewhere / ".jwz" / "messages.jsonl")
    else:
        (elsewhere / "idle-loop.local.md").write_text(FALLBACK)
        if linked == "claude":
            (project.folder / ".claude").symlink_to(elsewhere)
        else:
            (project.folder / ".claude").mkdir()
            (project.folder / ".claude" / "idle-loop.local.md").symlink_to(elsewhere / "idle-loop.local.md")
    stop = project.hook(json.dumps(project.payload(last_assistant_message="Hm.")).encode())
    assert (stop.exit_code, stop.stdout) == (0, "")
    link = {"folder": ".jwz", "messages": ".jwz/messages.jsonl", "fallback": ".claude/idle-loop.local.md"}
    place = project.folder / link.get(linked, ".claude")
    assert stop.stderr == (
        f"tailhook: idle: {place}: a symbolic link, which is not followed."
        " Its state was not changed; the agent may stop.\n"
    )


@pytest.mark.one_form
@pytest.mark.parametrize("descriptors", [4, 5, 6])
def test_a_store_that_cannot_be_opened_is_not_taken_for_no_store(project, descriptors):
    """The interpreter starts with 4 descriptors; with 6 the hook has all that it needs."""
    project.loop()
    limited = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]),) * 2); os.execv(sys.argv[2], sys.argv[2:])"  # noqa: E501
    project.argv = [sys.executable, "-I", "-S", "-c", limited, str(descriptors), *project.argv]
    stop = project.stop("Hm.")
    if stop.exit_code != 2:
        assert (stop.exit_code, stop.stdout) == (0, "")
        assert f"{project.folder}/.jwz" in stop.stderr
        assert "Too many open files" in stop.stderr
    assert (stop.exit_code == 2) is (descriptors == 6)


# ---- the fallback file -------------------------------------------------------

FALLBACK = (
    '---\nactive: true\nmode: "loop"\niteration: 3  # so far\nmax_iterations: 10\n---\n\nThe prompt.\niteration: 3\n'
)


@pytest.fixture
def fallback(project):
    """Return a function that writes the fallback file and returns its path."""

    def make(text: str = FALLBACK):
        path = project.folder / ".claude" / "idle-loop.local.md"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
        return path

    return make


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_fallback_files_count_alone_is_rewritten(project, fallback, newline):
    text = FALLBACK.replace("\n", newline)
    path = fallback(text)
    path.chmod(0o640)
    stop = project.stop("Hm.")
    assert stop.answer["reason"].startswith("[ITERATION 4/10]")
    assert path.read_bytes().decode() == text.replace("iteration: 3  #", "iteration: 4  #")
    assert path.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("text", "said", "warns"),
    [
        (FALLBACK, DONE, False),
        (FALLBACK.replace("iteration: 3 ", "iteration: 10"), "Hm.", False),
        (FALLBACK.replace("true", "false"), "Hm.", False),
        (FALLBACK.replace("active: true\n", ""), "Hm.", False),
        (FALLBACK.replace("iteration: 3 ", "iteration: x "), "Hm.", True),
        (FALLBACK.replace("max_iterations: 10\n", ""), "Hm.", True),
        ("no front matter", "Hm.", True),
        ("", "Hm.", True),
        ("---\n\xff\x00", "Hm.", True),
    ],
)
def test_the_fallback_file_of_an_ended_loop_is_removed(project, fallback, text, said, warns):
    path = fallback(text)
    stop = project.stop(said)
    assert (stop.exit_code, stop.stdout) == (0, "")
    assert bool(stop.stderr) is warns
    assert not path.exists()
    assert project.stop("Hm.").allowed


def test_the_fallback_files_clock_is_its_own_time(project, fallback):
    path = fallback()
    old = time.time() - 7300
    os.utime(path, (old, old))
    stop = project.stop("Hm.")
    assert "stale" in stop.stderr
    assert not path.exists()


def test_a_message_that_is_not_a_state_leaves_the_fallback_file_to_decide(project, fallback):
    fallback()
    jwz.post(project.folder, '{"note": "of another kind"}')
    assert project.stop("Hm.").answer["reason"].startswith("[ITERATION 4/10]")
    jwz.post(project.folder, '{"schema": null, "stack": [1]}')
    assert project.stop("Hm.").answer["reason"].startswith("[ITERATION 5/10]")


def test_a_state_in_the_store_comes_before_the_fallback_file(project, fallback):
    path = fallback()
    project.loop(frame(iter=8))
    assert project.stop("Hm.").answer["reason"].startswith("[ITERATION 9/10]")
    assert path.read_text() == FALLBACK
