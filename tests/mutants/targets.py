"""The modules that `make mutants` changes, and the tests for each.

The values are arguments of pytest. Quick files come first, because the first failing test ends the run of a mutant.
Tests of whole processes are not among them: their processes run the installed package, not the changed copy.
"""

HEALTH = " ".join(
    f"unit/boards/test_plates_{subject}.py"
    for subject in (
        *("judgement", "last_words", "unprompted", "clocks", "host_processes", "turns"),
        *("looks", "look_limits", "health", "due"),
    )
)
WAITS = " ".join(
    f"unit/boards/test_plates_{subject}.py"
    for subject in ("waits", "turn_ends", "sub_agents", "nameless_agents", "mcp_servers", "few_fields", "late_events")
)
DATABASE = " ".join(
    f"unit/boards/test_plates_{subject}.py"
    for subject in ("database", "database_waits", "database_times", "database_reading", "placeholders")
)
SIGNS = " ".join(
    f"unit/boards/test_plates_{subject}.py"
    for subject in ("approvals", "background", "host_status", "silence", "turns", "working_agents")
)
SHOWN = " ".join(f"unit/boards/test_{subject}.py" for subject in ("plates_turns", "plates_activity", "terminals"))
LINES = "unit/test_commands.py unit/test_exits_of_lines.py"
FACTS = " ".join(f"unit/boards/test_plates_{subject}.py" for subject in ("background", "hidden", "projects", "turns"))
LONG_SPOOL = "test_a_long_spool_arrives_once_and_in_order"  # takes longer than all the others
INBOX = f"unit/boards/test_plates_inbox.py --deselect tests/unit/boards/test_plates_inbox.py::{LONG_SPOOL}"

TARGETS: dict[str, str] = {
    "machines/__init__.py": "unit/test_machines.py unit/test_idle.py unit/test_ralph.py unit/test_triage.py",
    "machines/commands.py": LINES,
    "machines/evidence.py": "unit/test_evidence.py unit/test_evidence_reading.py",
    "machines/exits.py": LINES,
    "machines/gate.py": "unit/test_gate.py",
    "machines/missing_runs.py": "unit/test_evidence.py unit/test_gate.py",
    "machines/path_patterns.py": "unit/test_gate.py unit/test_rules.py",
    "machines/rules.py": "unit/test_gate.py unit/test_rules.py",
    "machines/idle.py": "unit/test_idle.py unit/test_idle_briefing.py property/test_idle_invariants.py",
    "machines/keywords.py": "unit/test_memory_machine.py",
    "machines/memory.py": "unit/test_memory_machine.py unit/test_memory_passages.py",
    "machines/key_looks.py": "unit/test_secrets.py unit/test_quoting.py",
    "machines/passwords.py": "unit/test_secrets.py unit/test_quoting.py",
    "machines/pem.py": "unit/test_secrets.py unit/test_quoting.py",
    "machines/plates.py": " ".join(
        (WAITS, "unit/boards/test_plates_machine.py", "property/test_plates_invariants.py", SIGNS, HEALTH)
    ),
    "machines/quoting.py": "unit/test_quoting.py unit/test_secrets.py",
    "machines/ralph.py": "unit/test_ralph.py property/test_ralph_invariants.py",
    "machines/secrets.py": "unit/test_secrets.py unit/test_quoting.py",
    "machines/triage.py": "unit/test_triage.py property/test_triage_pipelines.py",
    "machines/shell.py": LINES,
    "machines/shell_tree.py": LINES,
    "machines/shell_line.py": LINES,
    "machines/shell_words.py": LINES,
    "stores/atomic.py": "unit/test_atomic.py unit/test_folders.py unit/test_frontmatter.py unit/test_jsonfile.py",
    "stores/fallback.py": "unit/test_loop_stores.py",
    "stores/frontmatter.py": "unit/test_frontmatter.py unit/test_loop_stores.py property/test_ralph_invariants.py",
    "stores/jsonfile.py": "unit/test_jsonfile.py property/test_triage_pipelines.py",
    "stores/jwz.py": "unit/test_jwz.py unit/test_jwz_index.py",
    "stores/jwz_index.py": "unit/test_jwz_index.py",
    "stores/loop.py": "unit/test_loop_stores.py property/test_edits.py",
    "stores/ralph.py": "unit/test_loop_stores.py",
    "stores/spool.py": f"unit/test_spool.py {INBOX}",
    "board/terminals.py": "unit/boards/test_terminals.py -k 'not postgresql'",
    "plates/browsers.py": "unit/boards/test_plates_browsers.py",
    "plates/changes.py": f"{DATABASE} {FACTS} unit/boards/test_terminals.py -k 'not postgresql'",
    "plates/display.py": f"unit/boards/test_board_view.py {SHOWN} -k 'not postgresql'",
    "plates/health.py": HEALTH,
    "plates/hub.py": "unit/boards/test_plates_hub.py unit/boards/test_plates_listed.py -k 'not postgresql'",
    "plates/inbox.py": INBOX,
    "plates/looks.py": HEALTH,
    "plates/listed.py": "unit/boards/test_plates_listed.py -k 'not postgresql'",
    "plates/lister.py": "unit/boards/test_plates_lister.py",
    "plates/notice_settings.py": "unit/boards/test_notices.py",
    "plates/notices.py": "unit/boards/test_notices.py",
    "plates/timeline.py": "unit/boards/test_board_view.py unit/boards/test_plates_work.py",
    "plates/waits.py": "unit/boards/test_plates_wait_history.py -k 'not postgresql'",
}
