"""The triage machine as the host meets it: the whole process, and the state file it leaves."""

import json
import os
import re
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest
from support.host import SANITIZER, run_on_payload
from support.install import write_hooks
from support.triage import Agent, entry, group, pipeline, planning

from tailhook.cli.output import CommandError
from tailhook.cli.triage import pipeline_facts
from tailhook.hook.triage import find_pipeline
from tailhook.stores.atomic import MAX_READ_FILE_BYTES

ROOT = Path(__file__).parents[2]
WAITING = pipeline("triage", entry(0, "pending"))
MOVING = pipeline("triage", entry(0))


def phase(path):
    return json.loads(path.read_text())["phase"]


def blocked_for(stop, agent):
    return stop.exit_code == 0 and stop.answer["decision"] == "block" and f"**{agent}**" in stop.answer["reason"]


def test_a_pipeline_runs_from_triage_to_complete_turn_by_turn(project):
    findings = {"false_positive": True, "group_id": "g"}
    path = project.triage(pipeline("triage", *(entry(n, "pending") for n in range(7)), batch_size=3))
    agent = Agent(lambda n: entry(n, **findings) if n != 3 else {"status": "failed", "error": "x"})
    phases, stop = [], project.stop("Hm.")
    while not stop.allowed:
        agent.obey(stop.answer["reason"])
        stop = project.stop("Hm.")
        phases.append(phase(path))
    assert list(dict.fromkeys(phases)) == ["triage", "aggregation", "meta-review", "fix-planning", "complete"]
    state = json.loads(path.read_text())
    assert state["fix_planning"]["groups"]["g"]["sub_phase"] == "complete"
    assert state["fix_planning"]["groups"]["g"]["entry_count"] == 6
    assert project.stop("Hm.").allowed


def test_the_sample_of_the_page_begins_a_pipeline_that_runs_to_its_end(project):
    sample = (ROOT / "examples" / "sample_triage.json").read_text()
    assert f"```json\n{sample}```\n" in (ROOT / "docs" / "machines" / "triage.md").read_text()
    path = project.triage(sample)
    write_hooks(project)
    status = project.tailhook("triage", "status").stdout
    assert re.search(r"phase +triage\n +total +3\n +pending +2\n +completed +1\n", status)
    assert "At the next stop the agent must continue: triage." in status
    stop = project.stop("Hm.")
    assert blocked_for(stop, "triage-investigator")
    assert '- entries[0]: "parse_header is never called"' in stop.answer["reason"]
    agent = Agent(lambda n: {"status": "completed", "result": {"is_true_positive": False, "group_id": "unused"}})
    while not stop.allowed:
        agent.obey(stop.answer["reason"])
        stop = project.stop("Hm.")
    assert phase(path) == "complete"


def test_a_session_runs_its_own_pipeline_beside_anothers(project):
    theirs = project.triage({**MOVING, "session_id": "theirs"}, name="a_triage.json")
    ours = project.triage({**MOVING, "session_id": "ours"}, name="b_triage.json")
    assert "b_triage.json" in project.as_agent("triage", "status", session="ours").stdout
    assert blocked_for(project.stop("Hm.", session_id="ours"), "triage-aggregator")
    assert (phase(theirs), phase(ours)) == ("triage", "aggregation")
    assert project.stop("Hm.", session_id="a third one").allowed
    status = project.as_agent("triage", "status", session="a third one").stdout
    assert "a_triage.json" in status
    assert "may stop: another session's pipeline" in status
    assert blocked_for(project.stop("Hm.", session_id="theirs"), "triage-aggregator")


def test_a_change_is_saved_before_the_answer_laid_out_and_with_its_time(project):
    state = {**MOVING, "note": {"kept": [1.0, None, {}]}, "updated_at": "before"}
    path = project.triage(json.dumps(state).replace("1.0,", "1.00,"))
    before = time.time()
    assert blocked_for(project.stop("Hm."), "triage-aggregator")
    text = path.read_text()
    saved = json.loads(text)
    assert text == json.dumps(saved, indent=2).replace("1.0,", "1.00,") + "\n"
    assert list(saved) == list(state)
    assert saved == {**state, "phase": "aggregation", "updated_at": saved["updated_at"]}
    written = datetime.fromisoformat(saved["updated_at"]).timestamp()
    assert int(before) <= written <= time.time()
    assert saved["updated_at"].endswith("Z")
    assert len(saved["updated_at"]) == 24


def test_waiting_changes_no_byte(project):
    path = project.triage(WAITING)
    before = path.read_bytes(), path.stat().st_mtime_ns
    assert blocked_for(project.stop("Hm."), "triage-investigator")
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_both_changes_of_one_call_are_saved(project):
    done = group("g", sub_phase="task-writing", task_file="/t")
    path = project.triage(pipeline("fix-planning", fix_planning=planning(done, group("h", plans_written=5))))
    assert blocked_for(project.stop("Hm."), "plan-synthesizer")
    groups = json.loads(path.read_text())["fix_planning"]["groups"]
    assert [one["sub_phase"] for one in groups.values()] == ["complete", "synthesis"]


def test_the_plans_folder_of_new_groups_is_beside_the_state(project):
    fields = {"false_positive": True, "group_id": "g"}
    meta_review = {"status": "completed"}
    path = project.triage(pipeline("meta-review", entry(0, **fields), entry(1, **fields), meta_review=meta_review))
    stop = project.stop("Hm.")
    plans = str(path.parent / "fix_plans")
    assert f"Plans folder: {plans}" in stop.answer["reason"]
    assert json.loads(path.read_text())["fix_planning"]["fix_plans_dir"] == plans


# ---- finding -----------------------------------------------------------------

FOLDERS = [
    ".claude/triage_state",
    "entrypoint-analysis/triage_state",
    ".claude/skills/self-repair-pipeline/triage_state",
    ".claude/self-repair-pipeline-state/triage_state",
]


@pytest.mark.parametrize("number", range(4))
def test_folders_are_searched_in_order(project, number):
    paths = [project.triage(MOVING, where) for where in FOLDERS[number:]]
    project.stop("Hm.")
    assert [phase(path) for path in paths] == ["aggregation"] + ["triage"] * (3 - number)


def test_of_a_folder_the_first_name_that_is_not_complete_counts(project):
    project.triage(pipeline("complete"), name="a_triage.json")
    project.triage(MOVING, name="A.json")
    later = project.triage(MOVING, name="é_triage.json")
    first = project.triage(MOVING, name="b_triage.json")
    project.stop("Hm.")
    assert (phase(first), phase(later)) == ("aggregation", "triage")


def test_the_configuration_can_name_the_folders(project):
    config = project.home / ".config/tailhook"
    config.mkdir(parents=True)
    elsewhere = project.home / "states"
    (config / "config.json").write_text(json.dumps({"triage": {"state_dirs": [str(elsewhere), "./my/states"]}}))
    default = project.triage(MOVING)
    mine = project.triage(MOVING, "my/states")
    project.stop("Hm.")
    assert (phase(default), phase(mine)) == ("triage", "aggregation")
    elsewhere.mkdir()
    (elsewhere / "x_triage.json").write_text(json.dumps(MOVING))
    project.stop("Hm.")
    assert phase(elsewhere / "x_triage.json") == "aggregation"


@pytest.mark.parametrize("where", ["/absolute", "../outside", "a/../../outside", 5])
def test_a_projects_configuration_leads_nowhere_outside(project, where):
    outside = project.folder.parent / "outside"
    outside.mkdir()
    (outside / "x_triage.json").write_text(json.dumps(MOVING))
    where = str(outside) if where == "/absolute" else where
    (project.folder / ".claude").mkdir()
    (project.folder / ".claude/tailhook.json").write_text(json.dumps({"triage": {"state_dirs": [where]}}))
    project.argv = [*project.argv[:-1], "triage"]
    assert project.stop("Hm.").allowed
    assert phase(outside / "x_triage.json") == "triage"


def test_a_symlinked_project_works_and_a_symlinked_state_does_not(project):
    path = project.triage(MOVING)
    link = project.home / "link"
    link.symlink_to(project.folder)
    assert blocked_for(project.stop("Hm.", cwd=str(link)), "triage-aggregator")
    path.write_text(json.dumps(MOVING))
    target = project.home / "target.json"
    path.rename(target)
    path.symlink_to(target)
    assert project.stop("Hm.").allowed
    assert phase(target) == "triage"


# ---- edge cases --------------------------------------------------------------


def test_without_a_state_file_the_agent_may_stop(project):
    project.triage(MOVING).unlink()
    assert project.stop("Hm.").allowed


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '"triage"', '{"phase": "triage"}', '{"phase": "triage", "entries": [5]}', "\0" * 10, "{}x"],
)
def test_a_broken_state_is_reported_and_left(project, text):
    path = project.triage(text)
    stop = project.stop("Hm.")
    assert (stop.exit_code, stop.stdout) == (0, "")
    assert str(path) in stop.stderr
    assert stop.stderr.count("\n") == 1
    assert path.read_text() == text


def test_with_announce_a_broken_state_is_announced_to_the_person(project):
    """Claude Code does not show the stderr of a hook that exits with 0."""
    path = project.triage({**WAITING, "phase": "thinking"})
    stop = project.stop("Hm.", "--announce")
    assert stop.exit_code == 0
    assert stop.answer == {
        "systemMessage": f'tailhook: {path}: unknown phase "thinking". '
        "The pipeline waits until its state is fixed; the agent may stop."
    }
    path.write_text("{")
    assert "invalid JSON" in project.stop("Hm.", "--announce").answer["systemMessage"]
    assert "invalid JSON" in project.stop("Hm.", "--announce", stop_hook_active=True).answer["systemMessage"]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_state_that_is_not_a_file_is_reported_with_its_path(project, make):
    path = project.triage(MOVING)
    path.unlink()
    make(path)
    stop = project.stop("Hm.")
    assert (stop.exit_code, stop.stdout, stop.stderr.count("\n")) == (0, "", 1)
    assert f"{path}: the file cannot be read" in stop.stderr
    assert project.tailhook("triage", "status").returncode == 0


def test_a_byte_order_mark_is_passed_over(project):
    path = project.triage("\ufeff" + json.dumps(MOVING))
    assert blocked_for(project.stop("Hm."), "triage-aggregator")
    assert phase(path) == "aggregation"


def test_lone_surrogates_and_odd_names_stay(project):
    state = pipeline("fix-planning", fix_planning=planning(group("__proto__", plans_written=5, root_cause="\ud800")))
    path = project.triage(state)
    assert blocked_for(project.stop("Hm."), "plan-synthesizer")
    saved = json.loads(path.read_text())
    assert saved["fix_planning"]["groups"]["__proto__"]["root_cause"] == "\ud800"
    assert saved["fix_planning"]["groups"]["__proto__"]["sub_phase"] == "synthesis"


def test_a_phase_behind_the_entries_or_said_twice_is_read(project):
    text = json.dumps(MOVING)
    late = '{"entries": ' + json.dumps(MOVING["entries"]) + ", " + text[1:].replace('"entries"', '"old"')
    for state in (late, '{"phase": "fix-planning", ' + late[1:]):
        path = project.triage(state)
        assert blocked_for(project.stop("Hm."), "triage-aggregator")
        assert phase(path) == "aggregation"


def test_stop_hook_active_lets_the_agent_go(project):
    path = project.triage(MOVING)
    assert project.stop("Hm.", stop_hook_active=True).allowed
    assert phase(path) == "triage"
    assert blocked_for(project.stop("Hm.", stop_hook_active="true"), "triage-aggregator")


def progress(project):
    """Configure `while_active`: a turn that was blocked before is blocked again as long as the state changes."""
    config = project.home / ".config/tailhook"
    config.mkdir(parents=True)
    (config / "config.json").write_text('{"triage": {"while_active": "progress"}}')


def test_while_active_if_nothing_can_be_saved_the_turn_ends(project):
    progress(project)
    project.triage(pipeline("triage", entry(0, "pending")))
    project.env["XDG_STATE_HOME"] = "/dev/null"
    assert blocked_for(project.stop("Hm."), "triage-investigator")
    stop = project.stop("Hm.", stop_hook_active=True)
    assert stop.allowed
    assert "x_triage.json: the state's hash could not be saved (" in stop.stderr


def test_while_active_a_pipeline_runs_in_one_turn_until_nothing_changes(project):
    progress(project)
    project.triage(pipeline("triage", *(entry(n, "pending") for n in range(3)), batch_size=1))
    agent = Agent(lambda n: entry(n))
    stop, active = project.stop("Hm."), 0
    for _ in range(3):
        agent.obey(stop.answer["reason"])
        stop = project.stop("Hm.", stop_hook_active=True)
        active += not stop.allowed
    assert active == 3
    assert blocked_for(stop, "triage-aggregator")
    assert project.stop("Hm.", stop_hook_active=True).allowed
    assert blocked_for(project.stop("Hm."), "triage-aggregator")


def test_while_active_the_block_of_another_session_does_not_end_this_sessions_turn(project):
    progress(project)
    path = project.triage(pipeline("triage", entry(0, "pending"), entry(1, "pending")))
    assert blocked_for(project.stop("Hm."), "triage-investigator")
    path.write_text(json.dumps(pipeline("triage", entry(0), entry(1, "pending"))))  # this session's agent went on
    assert blocked_for(project.stop("Hm.", session_id="other"), "triage-investigator")
    assert blocked_for(project.stop("Hm.", stop_hook_active=True), "triage-investigator")
    for session in ("mine", "other"):
        assert project.stop("Hm.", stop_hook_active=True, session_id=session).allowed


def test_while_active_a_state_of_17_mb_goes_on(project):
    progress(project)
    state = pipeline("triage", entry(0, "pending"), *(entry(n, reasoning="é" * 4500) for n in range(1, 2000)))
    path = project.triage(json.dumps(state, ensure_ascii=False))
    assert path.stat().st_size > MAX_READ_FILE_BYTES
    assert blocked_for(project.stop("Hm."), "triage-investigator")
    path.write_text(json.dumps({**state, "updated_at": "now"}, ensure_ascii=False))
    assert blocked_for(project.stop("Hm.", stop_hook_active=True), "triage-investigator")
    assert project.stop("Hm.", stop_hook_active=True).allowed


def test_a_large_state_is_moved_without_losing_anything(project):
    state = pipeline("triage", *(entry(n, reasoning="é" * 500) for n in range(2000)))
    path = project.triage(json.dumps(state, indent=1, ensure_ascii=False))
    assert blocked_for(project.stop("Hm."), "triage-aggregator")
    saved = json.loads(path.read_text())
    assert {**saved, "phase": "triage", "updated_at": state["updated_at"]} == state
    assert path.read_text() == json.dumps(saved, indent=2, ensure_ascii=False) + "\n"


def test_rows_whose_windows_edge_falls_in_the_blank_space_between_them_keep_their_groups(project):
    """Entries of 1,024 bytes with their groups in turn: entry 256 is the first one in the reader's second window."""
    false_positives = (0, 256)  # of two groups, so that no fix is planned
    entries = [entry(n, group_id=f"group-{n % 3:03}", false_positive=n in false_positives) for n in range(600)]
    rows = ",".join(json.dumps(one).ljust(1023) for one in entries)
    state = json.dumps(pipeline("meta-review", meta_review={"status": "completed"}))
    path = project.triage(state.replace('"entries": []', f'"entries": [{rows}]'))
    assert project.stop("Hm.").allowed
    saved = json.loads(path.read_text())
    assert (saved["phase"], saved["fix_planning"]) == ("complete", None)


@pytest.mark.one_form
@pytest.mark.skipif(bool(SANITIZER), reason="a sanitizer reserves terabytes of addresses")
def test_a_state_is_saved_in_little_memory(project):
    """Within 32 MB of addresses, like in a container or under `ulimit -v`."""
    path = project.triage(MOVING)
    limited = (
        "import os, resource, sys; resource.setrlimit(resource.RLIMIT_AS, (32 << 20, 32 << 20)); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    argv = [sys.executable, "-I", "-S", "-c", limited, *project.argv]
    done = run_on_payload(argv, json.dumps(project.payload()).encode(), env=project.env)
    assert (done.returncode, done.stderr) == (0, b"")
    assert phase(path) == "aggregation"


def test_a_state_of_over_64_mb_is_left_and_named(project):
    path = project.triage(MOVING)
    os.truncate(path, (64 << 20) + 1)
    stop = project.stop("Hm.")
    assert (stop.exit_code, stop.stdout) == (0, "")
    assert f"{path}: the file cannot be read: the file is larger than 64 MiB" in stop.stderr


def test_a_paused_session_and_a_sub_agent_leave_the_pipeline(project):
    path = project.triage(MOVING)
    assert project.stop("Hm.", background_tasks=[{"type": "subagent", "status": "running"}]).allowed
    assert project.stop("Hm.", agent_id="a").allowed
    assert phase(path) == "triage"


# ---- status ------------------------------------------------------------------


def test_the_state_that_status_shows_as_a_sample_begins_a_pipeline(project):
    advice = project.tailhook("triage", "status").stdout.splitlines()[1]
    place, sample = advice.removeprefix("To begin one, save a state as ").split(", such as ")
    folder, _, name = place.rpartition("/")
    path = project.triage(sample, folder, name)
    assert "NAME" in project.stop("Hm.").answer["reason"]
    assert phase(path) == "triage"


def test_status_shows_phase_counts_and_groups(project):
    none = project.tailhook("triage", "status")
    assert none.stdout.startswith("No triage pipeline is running in this project.\nTo begin one, save a state as ")
    fields = {"false_positive": True, "group_id": "g"}
    entries = [entry(0, **fields), entry(1, **fields), entry(2), entry(3, "failed")]
    groups = planning(group("g\x1b[31m", plans_written=3))
    path = project.triage(pipeline("fix-planning", *entries, fix_planning=groups))
    assert "nothing happens: no hook is installed here" in project.tailhook("triage", "status").stdout
    write_hooks(project)
    out = project.tailhook("triage", "status").stdout
    for part in (str(path), "fix-planning", "completed", "3/5", "0/4", "At the next stop the agent must continue: "):
        assert part in out
    assert "\x1b" not in out
    facts = json.loads(project.tailhook("triage", "status", "--json").stdout)
    assert facts["entries"] == {"total": 4, "completed": 3, "failed": 1, "false_positives": 2}
    assert facts["groups"] == list(groups["groups"].values())
    assert facts["verdict"]["decision"] == "block"


def test_the_place_of_a_new_state_is_a_configured_folder(project):
    path = project.folder / ".claude" / "tailhook.json"
    path.parent.mkdir()
    path.write_text('{"triage": {"state_dirs": ["work/states/"]}}')
    out = project.tailhook("triage", "status").stdout
    assert "To begin one, save a state as work/states/NAME_triage.json, such as" in out
    place = project.folder / "work" / "states"
    place.mkdir(parents=True)
    (place / "NAME_triage.json").write_text(json.dumps(MOVING))
    assert str(place / "NAME_triage.json") in project.tailhook("triage", "status").stdout


def test_status_of_a_state_that_is_not_json_names_line_and_column(project):
    project.triage('{"phase": "triage",\n "entries": [}')
    out = project.tailhook("triage", "status").stdout
    assert "phase " not in out
    assert "may stop: a row is not an object at line 2, column 14" in out


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"phase": 5, "entries": 5, "fix_planning": {"groups": [1]}}', '{"phase": "\\ud800", "entries": []}'],
)
def test_status_of_a_broken_state_is_not_a_crash(project, text):
    project.triage(text)
    for words in ([], ["--json"]):
        done = project.tailhook("triage", "status", *words, PYTHONIOENCODING="utf-8:strict")
        assert (done.returncode, done.stderr) == (0, "")


def test_status_of_a_state_that_is_written_meanwhile_is_not_a_crash(project):
    path = project.triage(pipeline("triage", entry(0)))
    found = find_pipeline([str(project.folder)], None)
    path.write_text("{")
    with pytest.raises(CommandError, match=r"x_triage\.json: .* Run the command again\."):
        pipeline_facts({}, found)
