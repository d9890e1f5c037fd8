"""The stores of a loop's state: the jwz topic, the fallback file and ralph's file, without a hook around them."""

import json
import os
import posix
import stat

import pytest
from support.oracles import jwz

from tailhook._core import edit_json, iso_time
from tailhook.cli.loop_folders import folder_of_loop
from tailhook.stores import FALLBACK_FILE, atomic, loop
from tailhook.stores.fallback import FileLoop
from tailhook.stores.jwz import Store
from tailhook.stores.loop import JwzLoop
from tailhook.stores.ralph import MAX_LOG_BYTES, MAX_LOG_LINE_CHARS, RalphFile
from tailhook.stores.ralph import find_ralph as find_ralph

NOW = 1_767_312_245.0
STATE = {"schema": 1, "event": "STATE", "stack": [{"mode": "loop", "iter": 1, "max": 10}]}
PAGE = "---\nactive: true\nmode: loop\niteration: 3\nmax_iterations: 10\n---\n\nThe prompt.\n"


@pytest.fixture(autouse=True)
def state_home(tmp_path, monkeypatch):
    """Return the folder that holds the private state folder."""
    monkeypatch.setattr("posix.environ", {**posix.environ, b"XDG_STATE_HOME": os.fsencode(tmp_path / "state")})
    return tmp_path / "state"


@pytest.fixture
def project(tmp_path):
    """Return an empty project."""
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def write(project, text, name=f".claude/{FALLBACK_FILE}"):
    """Write a state file of the project."""
    path = project / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    os.utime(path, (NOW, NOW))
    return path


# ---- which store -------------------------------------------------------------


def test_a_project_without_a_store_and_a_file_has_no_loop(project, tmp_path):
    (tmp_path / "file").write_text("")
    assert loop.find_loop([str(project), str(tmp_path / "gone"), str(tmp_path / "file")]) is None


def test_a_state_in_the_store_comes_before_the_file(project):
    write(project, PAGE)
    jwz.post(project, json.dumps(STATE))
    found = loop.find_loop([str(project)])
    assert isinstance(found, JwzLoop)
    assert found.state == STATE
    assert found.path == f"{project}/.jwz"


@pytest.mark.parametrize("body", ['{"kind": "other"}', None])
def test_a_store_without_a_state_is_passed_over(project, body):
    write(project, PAGE)
    jwz.post(project, body or "x", topic=loop.TOPIC if body else "another topic")
    assert isinstance(loop.find_loop([str(project)]), FileLoop)


@pytest.mark.parametrize("body", ["not JSON", "null", "[]", '{"schema": 1}'])
def test_a_body_that_is_not_an_object_is_a_broken_state_and_found(project, body):
    jwz.post(project, body)
    assert isinstance(loop.find_loop([str(project)]), JwzLoop)


def test_the_first_folder_with_a_loop_counts(project, tmp_path):
    (tmp_path / "empty").mkdir()
    jwz.post(project, json.dumps(STATE))
    (tmp_path / "later").mkdir()
    jwz.post(tmp_path / "later", json.dumps({**STATE, "run_id": "later"}))
    found = loop.find_loop(iter([str(tmp_path / "empty"), str(project), str(tmp_path / "later")]))
    assert found.state == STATE
    write(tmp_path / "later", PAGE)
    found = loop.find_loop([str(tmp_path / "empty"), str(tmp_path / "later")])
    assert found.state["run_id"] == "later"


@pytest.mark.parametrize("end", [{"event": "DONE"}, {"event": "DONE", "stack": []}, {"event": "ABORT", "stack": []}])
def test_a_loop_that_has_ended_does_not_hide_one_in_a_later_folder(project, tmp_path, end):
    jwz.post(project, json.dumps({**STATE, **end}))
    later = tmp_path / "later"
    later.mkdir()
    write(later, PAGE)
    folders = [str(project), str(later)]
    assert loop.find_loop(folders).path == f"{project}/.jwz"  # a file counts only without a store
    jwz.post(later, json.dumps({**STATE, **end}))
    assert loop.find_loop(folders).path == f"{project}/.jwz"
    jwz.post(later, json.dumps(STATE))
    assert loop.find_loop(folders).path == f"{later}/.jwz"


def test_a_file_is_found_behind_folders_without_one(project, tmp_path):
    write(project, PAGE)
    assert loop.find_loop([str(tmp_path), str(project)]).path == f"{project}/.claude/{FALLBACK_FILE}"


def test_a_store_that_cannot_be_read_is_an_error_that_names_it(project):
    (project / ".jwz" / "messages.jsonl").mkdir(parents=True)
    (project / ".jwz" / "messages.jsonl").rmdir()
    (project / ".jwz" / "messages.jsonl").symlink_to("elsewhere")
    with pytest.raises(OSError, match="symbolic link") as caught:
        loop.find_loop([str(project)])
    assert caught.value.filename == f"{project}/.jwz/messages.jsonl"


# ---- the topic of a jwz store ------------------------------------------------


def test_a_loop_begins_and_moves_on_in_the_store(project):
    (project / ".jwz").mkdir()
    home = JwzLoop(loop.Store.find(str(project)), None)
    with home.lock():
        home.begin(STATE, NOW)
    assert home.state == jwz.newest(project) == STATE
    moved = {**STATE, "stack": [{**STATE["stack"][0], "iter": 2}]}
    with home.lock():
        home.reload()
        home.save(moved, NOW + 1)
    assert home.state == jwz.newest(project) == moved
    assert [message["created_at"] for message in jwz.messages(project)] == [NOW * 1000, (NOW + 1) * 1000]


def test_the_store_is_locked_from_reading_to_saving(project):
    jwz.post(project, json.dumps(STATE))
    home = loop.find_loop([str(project)])
    with home.lock(), pytest.raises(TimeoutError), atomic.Lock(f"{project}/.jwz/lock", seconds=0.01):
        pass


def test_what_did_not_change_keeps_its_bytes(project):
    jwz.post(project, '{"schema": 1,  "mine": 1.50, "stack": [ {"iter": 1} ]}')
    home = loop.find_loop([str(project)])
    home.save({**home.state, "stack": [{"iter": 2}]}, NOW)
    assert jwz.messages(project)[-1]["body"] == '{"schema": 1,  "mine": 1.50, "stack": [ {"iter": 2} ]}'


@pytest.mark.parametrize("body", ["not JSON", "[1]"])
def test_a_broken_state_is_replaced_whole(project, body):
    jwz.post(project, body)
    home = loop.find_loop([str(project)])
    home.save(STATE, NOW)
    assert jwz.newest(project) == STATE


def test_the_newest_message_is_parsed_once(project):
    jwz.post(project, json.dumps(STATE))
    home = loop.find_loop([str(project)])
    assert home.state is home.state
    first = home.state
    assert not home.reload()
    assert home.state is first
    jwz.post(project, json.dumps(STATE))
    assert home.reload()
    assert home.state is not first
    assert home.state == first


def test_a_store_that_lost_its_messages_has_no_state(project):
    jwz.post(project, json.dumps(STATE))
    home = loop.find_loop([str(project)])
    (project / ".jwz" / "messages.jsonl").unlink()
    home.reload()
    assert (home.state, home.goal) == (None, "")


# ---- the prompt of a loop ----------------------------------------------------


def stored_prompt(words="The goal."):
    """Store a prompt as `tailhook loop start` does; return its path."""
    os.makedirs(loop.prompt_folder(), mode=0o700)
    path = f"{loop.prompt_folder()}/p1"
    with open(path, "wb") as out:
        out.write(words if isinstance(words, bytes) else words.encode())
    return path


@pytest.mark.parametrize(("stored", "read"), [("The goal.", "The goal."), (b"a\xffb", "a\ufffdb")])
def test_the_goal_is_the_stored_prompt_of_the_top_frame(project, stored, read):
    frames = [{"prompt_file": "/elsewhere"}, {"prompt_file": stored_prompt(stored)}]
    jwz.post(project, json.dumps({**STATE, "stack": frames}))
    assert loop.find_loop([str(project)]).goal == read


@pytest.mark.parametrize("stack", [[], None, "x", [5], [{}], [{"prompt_file": 5}], {"a": 1}])
def test_without_a_prompt_there_is_no_goal(project, stack):
    jwz.post(project, json.dumps({**STATE, "stack": stack}))
    assert loop.find_loop([str(project)]).goal == ""


def test_a_broken_state_has_no_goal(project):
    jwz.post(project, "[1]")
    assert loop.find_loop([str(project)]).goal == ""


def test_a_state_that_came_with_a_clone_has_no_other_file_read_out(tmp_path):
    path = stored_prompt()
    folder = loop.prompt_folder()
    (tmp_path / "secret").write_text("secret")
    os.symlink(tmp_path / "secret", f"{folder}/link")
    assert loop.read_prompt(path) == "The goal."
    for other in (str(tmp_path / "secret"), f"{folder}/../prompts/p1", f"{folder}/", "", None, 5, f"{folder}/link"):
        assert loop.read_prompt(other) == ""
    for gone in (f"{folder}/gone", f"{folder}/a\0b"):
        assert loop.read_prompt(gone) == ""


# ---- the fallback file -------------------------------------------------------


def test_the_file_reads_as_a_state_of_one_frame(project):
    write(project, PAGE)
    home = FileLoop(str(project))
    assert home.state == {
        "schema": 1,
        "event": "STATE",
        "updated_at": iso_time(NOW),
        "stack": [{"mode": "loop", "iter": "3", "max": "10"}],
    }
    assert home.goal == "The prompt."


def test_the_files_owner_is_read(project):
    write(project, PAGE.replace("mode", 'session_id: "s 1"\nmode'))
    assert FileLoop(str(project)).state["stack"][0]["session_id"] == "s 1"


@pytest.mark.parametrize("active", ["false", "yes", ""])
def test_a_file_that_is_not_active_is_an_aborted_loop(project, active):
    write(project, PAGE.replace("true", active))
    assert FileLoop(str(project)).state["event"] == "ABORT"


def test_a_file_without_front_matter_is_a_broken_loop(project):
    write(project, "The prompt.")
    home = FileLoop(str(project))
    assert home.state == {"stack": [{}], "updated_at": iso_time(NOW)}
    assert home.goal == ""


def test_a_file_that_is_gone_is_not_a_loop(project):
    path = write(project, PAGE)
    home = FileLoop(str(project))
    path.unlink()
    home.reload()
    assert home.state == {"stack": []}
    home.save({"stack": []}, NOW)


def test_saving_rewrites_the_count_alone(project):
    path = write(project, PAGE)
    home = FileLoop(str(project))
    home.save({"stack": [{"iter": 4}]}, NOW)
    assert path.read_text() == PAGE.replace("iteration: 3", "iteration: 4")


def test_saving_a_claim_rewrites_the_owner_alone(project):
    path = write(project, PAGE.replace("mode", "session_id: claim\nmode"))
    home = FileLoop(str(project))
    home.save({"stack": [{"iter": "3", "session_id": "mine"}]}, NOW)
    assert path.read_text() == PAGE.replace("mode", 'session_id: "mine"\nmode')


@pytest.mark.parametrize(("text", "state"), [(PAGE, {"stack": []}), ("broken", {"stack": [{"iter": 4}]})])
def test_a_loop_that_ended_or_is_broken_is_removed(project, text, state):
    path = write(project, text)
    FileLoop(str(project)).save(state, NOW)
    assert not path.exists()


# ---- ralph's file ------------------------------------------------------------

RALPH = ".claude/ralph-loop.local.md"


def test_ralphs_file_is_that_of_the_first_folder_that_has_one(project, tmp_path):
    (tmp_path / "file").write_text("")
    assert find_ralph([str(project), str(tmp_path / "gone"), str(tmp_path / "file")]) is None
    (project / ".claude").mkdir()
    assert find_ralph([str(project)]) is None
    write(project, PAGE, RALPH)
    found = find_ralph([str(tmp_path / "file"), str(tmp_path), str(project)])
    assert found.path == f"{project}/{RALPH}"
    assert found.state == {"active": "true", "mode": "loop", "iteration": "3", "max_iterations": "10"}
    assert found.prompt == "The prompt."
    assert [found.line_of(key) for key in ("active", "max_iterations")] == [2, 5]


def test_ralphs_file_without_front_matter_has_neither_state_nor_prompt(project):
    write(project, "The prompt.", RALPH)
    found = RalphFile(str(project))
    assert (found.state, found.prompt, found.line_of("iteration")) == (None, "", 0)


@pytest.mark.parametrize(("body", "prompt"), [(b"caf\xc3\xa9", "café"), (b"a\xffb", "a\ufffdb")])
def test_bytes_of_the_prompt_that_are_not_utf_8_are_replaced(project, body, prompt):
    write(project, "", RALPH).write_bytes(b"---\na: 1\n---\n" + body)
    assert RalphFile(str(project)).prompt == prompt


def test_values_are_written_in_their_places_and_the_count_without_quotes(project):
    path = write(project, PAGE, RALPH)
    RalphFile(str(project)).write({"iteration": "4", "mode": 'a "b"'})
    assert path.read_text() == PAGE.replace("iteration: 3", "iteration: 4").replace("loop", '"a \\"b\\""')


def test_ralphs_log_grows_and_is_emptied_once_it_is_large(project):
    write(project, PAGE, RALPH)
    log, ralph = project / ".claude" / "ralph-debug.log", RalphFile(str(project))
    ralph.log("one")
    ralph.log("two\udcff")
    assert log.read_bytes() == b"one\ntwo\\udcff\n"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    ralph.log("x" * (MAX_LOG_LINE_CHARS + 1))
    assert log.read_text().splitlines()[-1] == "x" * MAX_LOG_LINE_CHARS
    os.truncate(log, MAX_LOG_BYTES)
    ralph.log("still there")
    assert log.stat().st_size == MAX_LOG_BYTES + len("still there\n")
    ralph.log("new")
    assert log.read_text() == "new\n"


def test_a_log_that_cannot_be_written_changes_nothing(project, monkeypatch):
    write(project, PAGE, RALPH)
    log, ralph = project / ".claude" / "ralph-debug.log", RalphFile(str(project))
    log.symlink_to(project / "elsewhere")
    ralph.log("one")
    assert not (project / "elsewhere").exists()
    log.unlink()
    os.mkfifo(log)
    ralph.log("one")
    log.unlink()
    monkeypatch.setattr("tailhook.stores.ralph.write_all", fail)
    before = os.listdir("/dev/fd")
    ralph.log("one")
    assert len(os.listdir("/dev/fd")) == len(before)


def fail(*_):
    """Fail as a full disk does."""
    raise OSError(28, "No space left on device")


# ---- edits -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("[ 1,  2, 3, 4 ]", [1], "[ 1 ]"),
        ("[ 1,  2, 3 ]", [1, 2], "[ 1,  2 ]"),
        ("[ 1,  2 ]", [], "[]"),
        ("[ 1 ]", [1, 2], "[1,2]"),
        ("[ [],  2 ]", [[], 3], "[ [],  3 ]"),
    ],
)
def test_an_array_that_became_shorter_keeps_the_bytes_of_what_is_left(old, new, text):
    edits = list(loop.edits_between({"stack": json.loads(old)}, {"stack": new}))
    assert edit_json(b'{"stack": %s}' % old.encode(), edits).decode() == f'{{"stack": {text}}}'


def test_an_array_that_was_emptied_is_one_edit():
    assert list(loop.edits_between({"stack": [1, 2]}, {"stack": []})) == [(("stack",), b"[]")]


# ---- in the root folder --------------------------------------------------------


def test_the_path_of_a_loop_in_the_root_folder_begins_with_one_slash(monkeypatch, project):
    for name in (".jwz", ".claude"):
        (project / name).mkdir()
    for module in ("jwz", "frontmatter"):
        monkeypatch.setattr(
            f"tailhook.stores.{module}.open_folder", lambda root, name: atomic.open_folder(f"{project}{root}", name)
        )
    paths = [Store.find("/").path, FileLoop("/").path]
    assert paths == ["/.jwz", f"/.claude/{FALLBACK_FILE}"]
    assert [folder_of_loop(path) for path in paths] == ["/", "/"]


@pytest.mark.parametrize("path", ["/a/.claude/ralph-loop.local.md", "/a/.jwz", "/a/.claude/.claude/x.md"])
def test_the_folder_of_a_loop_is_its_project(path):
    assert folder_of_loop(path) == ("/a/.claude" if path.endswith("x.md") else "/a")
