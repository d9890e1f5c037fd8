"""Settings that a host does not accept; tests/endtoend/test_claude_settings.py asks the real program."""

import json

from support.cases import in_one_test
from support.claude_settings import CASES, DROPPED, READ

from tailhook.install import json_text
from tailhook.install.hooks_file import hooks_file_of, hooks_files
from tailhook.install.shape import CHECKS, find_faults, name_place

CLAUDE = hooks_file_of("claude-code")


@in_one_test("name", CASES)
def test_a_value_for_which_the_host_ignores_the_file_or_the_entry_is_found(name):
    values, outcome = CASES[name]
    found = list(find_faults(CLAUDE, values))
    assert [fault.drops_file for fault in found] == ([] if outcome == READ else [outcome == DROPPED])


def test_a_fault_is_named_with_its_line_and_its_place():
    text = json.dumps(
        {"model": "x", "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "timeout": 1}]}]}}, indent=1
    )
    (fault,) = find_faults(CLAUDE, json.loads(text))
    assert (name_place(text, fault.path), fault.complaint) == (
        "line 7: hooks.PreToolUse[0].hooks[0].command",
        "is missing",
    )
    changed = json_text.replace(text, ("model",), "7")
    (first, _) = find_faults(CLAUDE, json.loads(changed))
    assert f"{name_place(changed, first.path)} {first.complaint}" == "line 2: model is 7, not a string"


def test_every_type_in_a_description_can_be_checked():
    for file in hooks_files():
        wanted = {*file.setting_types.values(), *file.hook_member_types.values()}
        assert wanted | {kind for members in file.hook_types.values() for kind in members.values()} <= set(CHECKS)


def test_files_of_hosts_that_are_not_described_have_no_faults():
    values = {"permissions": {"allow": "x"}, "hooks": {"PreToolUse": [{"hooks": "x"}]}}
    described = ("claude-code", "codex", "kimi")
    faults = [list(find_faults(file, values)) for file in hooks_files() if file.name not in described]
    assert faults
    assert not any(faults)
