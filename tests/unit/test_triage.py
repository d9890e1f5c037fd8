"""The triage machine as a pure function: the tables of its design, row for row."""

import pytest
from support.cases import in_one_test
from support.opcodes import count_opcodes
from support.triage import entry, group, pipeline, planning

from tailhook._core import iso_time
from tailhook.machines import triage
from tailhook.machines.triage import ALL_COLUMNS, Entries, Facts, columns_for, decide, folder_name

PATH, PLANS = "/p/state/x_triage.json", "/p/state/fix_plans"


def column(rows, path):
    for step in path:
        rows = [row.get(step) if isinstance(row, dict) else None for row in rows]
    return rows


def verdict(state, **facts):
    entries = state.get("entries") if isinstance(state, dict) else None
    table = None
    if isinstance(entries, list):
        table = Entries(ALL_COLUMNS, [column(entries, path) for path in ALL_COLUMNS])
    rest = {key: value for key, value in state.items() if key != "entries"} if isinstance(state, dict) else state
    return decide(rest, table, Facts(PATH, PLANS, **facts))


FP = {"false_positive": True, "group_id": "a"}
OTHER_FP = {"false_positive": True, "group_id": "b"}
DONE, PENDING, FAILED = {"status": "completed"}, {"status": "pending"}, {"status": "failed"}
COMPLETE = [(("phase",), "complete")]


def in_group(**fields):
    return pipeline("fix-planning", fix_planning=planning(group("g", **fields)))


def sub_phase(to, of="g"):
    return (("fix_planning", "groups", of, "sub_phase"), to)


NEW_A = {**group("a"), "root_cause": "cause 0"}

# condition | state | decision | what the reason launches | what moves
TABLE = [
    # ---- phase: triage
    ("pending entries exist", pipeline("triage", entry(0, "pending")), "block", "triage-investigator", None),
    (
        "one of several is pending",
        pipeline("triage", entry(), entry(1, "pending")),
        "block",
        "triage-investigator",
        None,
    ),
    (
        "all completed",
        pipeline("triage", entry(), entry(1)),
        "block",
        "triage-aggregator",
        [(("phase",), "aggregation")],
    ),
    (
        "failed is not pending",
        pipeline("triage", entry(0, "failed")),
        "block",
        "triage-aggregator",
        [(("phase",), "aggregation")],
    ),
    ("no entries at all", pipeline("triage"), "block", "triage-aggregator", [(("phase",), "aggregation")]),
    (
        "an unknown status, one pending",
        pipeline("triage", entry(0, "new"), entry(1, "pending")),
        "block",
        "triage-investigator",
        None,
    ),
    ("an unknown status, none pending", pipeline("triage", entry(0, "new"), entry(1)), "allow", None, None),
    # ---- phase: aggregation
    ("aggregation null", pipeline("aggregation", entry()), "block", "triage-aggregator", None),
    ("aggregation pending", pipeline("aggregation", entry(), aggregation=PENDING), "block", "triage-aggregator", None),
    ("aggregation failed", pipeline("aggregation", entry(**FP), aggregation=FAILED), "allow", None, COMPLETE),
    (
        "completed, FP entries",
        pipeline("aggregation", entry(**FP), aggregation=DONE),
        "block",
        "triage-rule-reviewer",
        [(("phase",), "meta-review")],
    ),
    ("completed, no FP entries", pipeline("aggregation", entry(), aggregation=DONE), "allow", None, COMPLETE),
    (
        "a false positive of another route",
        pipeline("aggregation", entry(**FP, route="known-tp"), aggregation=DONE),
        "allow",
        None,
        COMPLETE,
    ),
    ("unknown aggregation", pipeline("aggregation", entry(**FP), aggregation={"status": "done"}), "allow", None, None),
    ("aggregation without a status", pipeline("aggregation", entry(**FP), aggregation={}), "allow", None, None),
    # ---- phase: meta-review
    ("meta-review null", pipeline("meta-review", entry(**FP)), "block", "triage-rule-reviewer", None),
    (
        "meta-review pending",
        pipeline("meta-review", entry(**FP), meta_review=PENDING),
        "block",
        "triage-rule-reviewer",
        None,
    ),
    ("meta-review failed", pipeline("meta-review", entry(**FP), meta_review=FAILED), "allow", None, COMPLETE),
    (
        "meta-review failed, a group of two",
        pipeline("meta-review", entry(**FP), entry(**FP), meta_review=FAILED),
        "allow",
        None,
        COMPLETE,
    ),
    (
        "completed, a group of two",
        pipeline("meta-review", entry(0, **FP), entry(1, **OTHER_FP), entry(2, **FP), meta_review=DONE),
        "block",
        "fix-planner",
        [(("fix_planning",), {"fix_plans_dir": PLANS, "groups": {"a": NEW_A}}), (("phase",), "fix-planning")],
    ),
    (
        "completed, groups of one",
        pipeline("meta-review", entry(**FP), entry(**OTHER_FP), meta_review=DONE),
        "allow",
        None,
        COMPLETE,
    ),
    ("completed, no groups", pipeline("meta-review", entry(), meta_review=DONE), "allow", None, COMPLETE),
    (
        "entries without a group",
        pipeline("meta-review", entry(false_positive=True), entry(false_positive=True), meta_review=DONE),
        "allow",
        None,
        COMPLETE,
    ),
    ("unknown meta-review", pipeline("meta-review", entry(**FP), meta_review={"status": 5}), "allow", None, None),
    # ---- phase: fix-planning, sub-phase: planning
    ("plans_written 0", in_group(), "block", "fix-planner", None),
    ("plans_written 4", in_group(plans_written=4), "block", "fix-planner", None),
    ("plans_written 5", in_group(plans_written=5), "block", "plan-synthesizer", [sub_phase("synthesis")]),
    ("plans_written 6", in_group(plans_written=6), "block", "plan-synthesizer", [sub_phase("synthesis")]),
    # ---- sub-phase: synthesis
    ("synthesis not written", in_group(sub_phase="synthesis"), "block", "plan-synthesizer", None),
    (
        "synthesis written",
        in_group(sub_phase="synthesis", synthesis_written=True),
        "block",
        "plan-reviewer",
        [sub_phase("review")],
    ),
    # ---- sub-phase: review
    ("reviews_written 3", in_group(sub_phase="review", reviews_written=3), "block", "plan-reviewer", None),
    (
        "reviews_written 4",
        in_group(sub_phase="review", reviews_written=4),
        "block",
        "task-writer",
        [sub_phase("task-writing")],
    ),
    # ---- sub-phase: task-writing
    ("task_file null", in_group(sub_phase="task-writing"), "block", "task-writer", None),
    ("task_file empty", in_group(sub_phase="task-writing", task_file=""), "block", "task-writer", None),
    (
        "task_file, the last group",
        in_group(sub_phase="task-writing", task_file="/t"),
        "allow",
        None,
        [sub_phase("complete"), *COMPLETE],
    ),
    (
        "task_file, the next group waits",
        pipeline(
            "fix-planning", fix_planning=planning(group("g", sub_phase="task-writing", task_file="/t"), group("h"))
        ),
        "block",
        "fix-planner",
        [sub_phase("complete")],
    ),
    (
        "task_file, the next group moves",
        pipeline(
            "fix-planning",
            fix_planning=planning(group("g", sub_phase="task-writing", task_file="/t"), group("h", plans_written=5)),
        ),
        "block",
        "plan-synthesizer",
        [sub_phase("complete"), sub_phase("synthesis", "h")],
    ),
    ("all groups complete", in_group(sub_phase="complete"), "allow", None, COMPLETE),
    ("no groups", pipeline("fix-planning", fix_planning=planning()), "allow", None, COMPLETE),
    # ---- edge cases
    ("phase complete", pipeline("complete"), "allow", None, None),
    ("unknown phase", pipeline("phase-of-the-moon"), "allow", None, None),
    ("phase null", pipeline(None), "allow", None, None),
    ("phase of a wrong type", pipeline(["triage"]), "allow", None, None),
    ("no phase", {"entries": []}, "allow", None, None),
    ("no object", [], "allow", None, None),
    ("entries null", pipeline("triage", entries=None), "allow", None, None),
    ("entries of a wrong type", pipeline("triage", entries={"0": entry()}), "allow", None, None),
    ("batch_size a string", pipeline("triage", entry(0, "pending"), batch_size="5"), "allow", None, None),
    ("batch_size true", pipeline("triage", entry(0, "pending"), batch_size=True), "allow", None, None),
    ("batch_size 0", pipeline("triage", entry(0, "pending"), batch_size=0), "allow", None, None),
    ("aggregation a string", pipeline("aggregation", entry(), aggregation="completed"), "allow", None, None),
    (
        "group_id a number",
        pipeline("meta-review", entry(false_positive=True, group_id=5), meta_review=DONE),
        "allow",
        None,
        None,
    ),
    ("fix_planning null", pipeline("fix-planning"), "allow", None, None),
    ("groups null", pipeline("fix-planning", fix_planning={"groups": None}), "allow", None, None),
    ("a group that is not an object", pipeline("fix-planning", fix_planning={"groups": {"g": 5}}), "allow", None, None),
    ("unknown sub-phase", in_group(sub_phase="thinking"), "allow", None, None),
    ("plans_written a string", in_group(plans_written="5"), "allow", None, None),
    ("plans_written true", in_group(plans_written=True), "allow", None, None),
    ("plans_written negative", in_group(plans_written=-1), "allow", None, None),
    ("synthesis_written null", in_group(sub_phase="synthesis", synthesis_written=None), "allow", None, None),
    ("reviews_written null", in_group(sub_phase="review", reviews_written=None), "allow", None, None),
    ("task_file a number", in_group(sub_phase="task-writing", task_file=5), "allow", None, None),
]


@in_one_test(("condition", "state", "decision", "agent", "moves"), TABLE, ids=[row[0] for row in TABLE])
def test_each_row(condition, state, decision, agent, moves):
    found = verdict(state)
    assert (found.outcome, found.change) == (decision, moves)
    if decision == "block":
        assert f"**{agent}**" in found.reason
        assert f"State file: {PATH}" in found.reason
        assert len(found.reason) < 10_000
    else:
        assert found.ended is (moves is not None)
        assert bool(found.warning) is (moves is None and state != pipeline("complete"))
        assert found.message == found.warning


@pytest.mark.parametrize("name", ["constructor", "__proto__", "toString", "hasOwnProperty", "", "\u202e\x1b[31m"])
def test_a_group_may_have_any_name(name):
    fields = {"false_positive": True, "group_id": name}
    found = verdict(pipeline("meta-review", entry(0, **fields), entry(1, **fields), meta_review=DONE))
    assert list(found.change[0][1]["groups"]) == [name]
    assert found.reason.isprintable() or "\x1b" not in found.reason
    moving = verdict(pipeline("fix-planning", fix_planning=planning(group(name, plans_written=5))))
    assert moving.change == [sub_phase("synthesis", name)]


@pytest.mark.parametrize(
    ("fields", "files"),
    [
        ({}, "write g/plan_1.md, g/plan_2.md, g/plan_3.md, g/plan_4.md, g/plan_5.md."),
        ({"plans_written": 3}, "write g/plan_4.md, g/plan_5.md."),
        (
            {"sub_phase": "synthesis"},
            "read g/plan_1.md, g/plan_2.md, g/plan_3.md, g/plan_4.md, g/plan_5.md; write g/synthesis.md.",
        ),
        ({"sub_phase": "review", "reviews_written": 2}, "read g/synthesis.md; write g/review_3.md, g/review_4.md."),
        (
            {"sub_phase": "task-writing"},
            "read g/synthesis.md, g/review_1.md, g/review_2.md, g/review_3.md, g/review_4.md; write g/task.md.",
        ),
    ],
)
def test_each_step_names_its_files_in_the_groups_own_folder(fields, files):
    found = verdict(pipeline("fix-planning", fix_planning=planning(group("g", **fields))))
    assert f"\nPlans folder: /plans\nFiles in it: {files}\n" in found.reason


@pytest.mark.parametrize(
    ("names", "folders"),
    [
        (["a", "b"], ["a", "b"]),
        (["dead-code_1.x"], ["dead-code_1.x"]),
        (["a/b", "a_b", "a b"], ["a_b", "a_b-2", "a_b-3"]),
        (["..", ".", "/", ""], ["group", "group-2", "_", "group-3"]),
        (["../../etc"], ["_.._etc"]),
        (["x" * 300, "x" * 301], ["x" * 60, "x" * 60 + "-2"]),
        (["é", "è"], ["_", "_-2"]),
        (["a-2", "a"], ["a-2", "a"]),
        (["a_b-2", "a/b", "a b"], ["a_b-2", "a_b", "a_b-3"]),
        (["con\n\x1b"], ["con__"]),
        (["az-AZ.09_~\x7f"], ["az-AZ.09___"]),
    ],
)
def test_each_group_has_a_folder_of_its_own_inside_the_plans_folder(names, folders):
    assert [folder_name(name, names) for name in names] == folders


def test_the_folder_of_the_last_of_ten_thousand_groups_with_like_names_is_found_in_linear_time():
    def work(count):
        names = [f"{'framework-' * 10}{number}" for number in range(count)]
        assert folder_name(names[-1], names) == f"{('framework-' * 10)[:60]}-{count}"
        return count_opcodes(folder_name, names[-1], names)

    assert work(10_000) < 11 * work(1_000)


def test_ten_thousand_groups_that_are_done_are_passed_in_one_call():
    done = [group(f"g{n}", sub_phase="task-writing", task_file="/t") for n in range(10_000)]
    assert verdict(pipeline("fix-planning", fix_planning=planning(*done))).ended


def test_groups_are_in_the_order_of_first_appearance_with_the_first_ones_root_cause():
    names = ["z", "a", "z", "m", "a", "z"]
    entries = [entry(n, false_positive=True, group_id=name) for n, name in enumerate(names)]
    groups = verdict(pipeline("meta-review", *entries, meta_review=DONE)).change[0][1]["groups"]
    assert [(name, one["entry_count"], one["root_cause"]) for name, one in groups.items()] == [
        ("z", 3, "cause 0"),
        ("a", 2, "cause 1"),
    ]


def test_the_reason_lists_what_is_done_and_what_to_launch():
    state = pipeline("triage", entry(0), *(entry(n, "pending") for n in range(1, 9)), batch_size=3)
    reason = verdict(state).reason
    assert "1 of 9 entries are done" in reason
    assert [f"entries[{n}]" in reason for n in range(1, 6)] == [True, True, True, False, False]
    assert '"function_1"' in reason
    assert "plans 3/5" in verdict(in_group(plans_written=3)).reason
    assert "2 **fix-planner** sub-agents" in verdict(in_group(plans_written=3)).reason
    assert "a **fix-planner** sub-agent " in verdict(in_group(plans_written=4)).reason
    assert "plans 5/5." in verdict(in_group(sub_phase="synthesis")).reason
    assert "plans 5/5, reviews 1/4." in verdict(in_group(sub_phase="review", reviews_written=1)).reason
    assert "plans 5/5, reviews 4/4." in verdict(in_group(sub_phase="task-writing")).reason
    assert "3 **plan-reviewer** sub-agents" in verdict(in_group(sub_phase="review", reviews_written=1)).reason
    assert "a **plan-synthesizer** sub-agent " in verdict(in_group(sub_phase="synthesis")).reason
    assert "a **task-writer** sub-agent " in verdict(in_group(sub_phase="task-writing")).reason
    for fields in ({}, {"sub_phase": "synthesis"}, {"sub_phase": "review"}, {"sub_phase": "task-writing"}):
        assert "Plans folder: /plans" in verdict(in_group(**fields)).reason


def test_the_reason_names_the_root_cause_if_there_is_one():
    assert "root cause: a cast. Done" in verdict(in_group(root_cause="a cast")).reason
    for nothing in (None, "", 5):
        assert "root cause" not in verdict(in_group(root_cause=nothing)).reason


def test_a_large_batch_is_cut_to_what_a_host_shows():
    state = pipeline("triage", *(entry(n, "pending", name="x" * 500) for n in range(2000)), batch_size=2000)
    assert len(verdict(state).reason) < 10_000


def test_the_reason_asks_for_one_entry_or_for_the_number_of_them():
    one, two = (pipeline("triage", *(entry(n, "pending") for n in range(number))) for number in (1, 2))
    assert "sub-agent for this entry:" in verdict(one).reason
    assert "sub-agent for these 2 entries:" in verdict(two).reason


def test_the_list_of_entries_is_cut_once_it_is_longer_than_the_limit(monkeypatch):
    state = pipeline("triage", *(entry(n, "pending") for n in range(3)))
    length = sum(len(line) for line in verdict(state).reason.split("\n") if line.startswith("- entries["))
    monkeypatch.setattr(triage, "MAX_LIST_CHARS", length)
    assert "that follow" not in verdict(state).reason
    monkeypatch.setattr(triage, "MAX_LIST_CHARS", length - 1)
    assert "that follow" in verdict(state).reason


def test_the_reason_counts_the_false_positives():
    entries = (entry(0, **FP), entry(1), entry(2, **FP))
    assert "false positives among the 3 entries: 2." in verdict(pipeline("meta-review", *entries)).reason


def test_the_log_reports_that_a_phase_is_left_or_goes_on():
    assert verdict(pipeline("triage", entry())).why == "on to aggregation"
    assert verdict(pipeline("triage", entry(0, "pending"))).why == "triage"


def test_a_false_positive_without_a_group_does_not_hide_the_next_ones_group():
    entries = [entry(0, **{**FP, "group_id": None}), entry(1, **FP)]
    table = Entries(ALL_COLUMNS, [column(entries, path) for path in ALL_COLUMNS])
    assert table.groups() == {"a": [1]}


def test_an_absent_batch_size_is_5():
    state = pipeline("triage", *(entry(n, "pending") for n in range(9)))
    del state["batch_size"]
    assert verdict(state).reason.count("- entries[") == 5


@pytest.mark.parametrize("fields", [{}, *({"fix_plans_dir": value} for value in (None, "", 5))])
def test_without_a_plans_folder_in_the_state_the_default_is_named(fields):
    state = pipeline("fix-planning", fix_planning={"groups": {"g": group()}, **fields})
    assert f"Plans folder: {PLANS}" in verdict(state).reason


# ---- facts -------------------------------------------------------------------


def test_a_turn_that_was_blocked_before_may_end():
    found = verdict(pipeline("triage", entry(0, "pending")), stop_hook_active=True)
    assert (found.outcome, found.change) == ("allow", None)


def test_while_active_a_turn_goes_on_as_long_as_the_state_moves():
    state = pipeline("triage", entry(0, "pending"))
    assert verdict(state, stop_hook_active=True, while_active=True, has_changed=lambda: True).outcome == "block"
    found = verdict(state, stop_hook_active=True, while_active=True, has_changed=lambda: False)
    assert (found.outcome, found.change) == ("allow", None)
    assert verdict(state, while_active=True, has_changed=lambda: False).outcome == "block"
    assert verdict(state, stop_hook_active=True, while_active=True).outcome == "block"


def test_a_paused_session_leaves_the_pipeline():
    found = verdict(pipeline("triage"), paused=True)
    assert (found.outcome, found.change) == ("allow", None)


def test_a_pipeline_that_names_a_session_is_that_sessions():
    state = pipeline("triage", entry(0, "pending"), session_id="mine")
    assert verdict(state, session_id="mine").outcome == "block"
    assert verdict(state, session_id="other").outcome == "allow"
    assert verdict(pipeline("triage", entry(0, "pending")), session_id="x", unbound_acts=False).outcome == "allow"


def test_each_phase_looks_at_the_columns_that_it_needs():
    assert columns_for({}) == ALL_COLUMNS
    assert columns_for({"phase": "fix-planning"}) == ()
    assert columns_for({"phase": ["x"]}) == ()
    for phase in ("triage", "aggregation", "meta-review"):
        assert ("status",) in columns_for({"phase": phase})


def test_times_have_milliseconds():
    assert iso_time(1_767_312_245.0071, milliseconds=True) == "2026-01-02T00:04:05.007Z"


@pytest.mark.parametrize(
    ("state", "member"),
    [
        ({"entries": []}, 'phase is missing: the first one is "triage"'),
        ({"phase": 5, "entries": []}, "unknown phase 5"),
        ({"phase": "triage"}, "entries is missing, or is not an array"),
        ({"phase": "triage", "entries": [{"name": "a"}]}, "entries[0].status is missing: it must be one of pending,"),
        (
            {"phase": "triage", "entries": [{"status": "new"}]},
            'entries[0].status is "new", which is unknown: it must be',
        ),
        (pipeline("aggregation", aggregation={"status": "done"}), 'aggregation.status is "done", which is unknown'),
        (pipeline("aggregation", aggregation={}), "aggregation.status is missing"),
        (
            pipeline("meta-review", entry(0, false_positive=True, group_id=7), meta_review=DONE),
            "entries[0].result.group_id is 7, not a string",
        ),
    ],
)
def test_a_message_names_the_member_that_is_missing_or_wrong(state, member):
    found = verdict(state)
    assert found.outcome == "allow"
    assert found.warning.startswith(f"tailhook: {PATH}: {member}")


def test_an_entry_without_a_name_is_called_so():
    reason = verdict({"phase": "triage", "entries": [{"id": 1, "status": "pending"}]}).reason
    assert "- entries[0]: it has no name" in reason
