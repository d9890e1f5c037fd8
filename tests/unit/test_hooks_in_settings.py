"""The hooks in the text of a settings file."""

import json
import posix
import shlex

import pytest
from support.cases import in_one_test

from tailhook.hook.translated import translate_payload
from tailhook.hosts import claude_code
from tailhook.install.command import argv_of, hook_command, is_ours, is_tailhook, machines_of
from tailhook.install.hooks import SettingsError, find_ours, values_of, with_hooks, without_hooks
from tailhook.install.hooks_file import SCOPES, hooks_file_of, hooks_files

CLAUDE = hooks_file_of("claude-code")
CAP = claude_code.BLOCK_CAP_VARIABLE
LOOPS = {"Stop", "UserPromptSubmit", "SessionStart"}
OTHER = {"type": "command", "command": "make stop"}
LAYOUTS = [
    "{}",
    "{ }\n",
    "\ufeff{\r\n}\r\n",
    '{"a":1}',
    '{"a": 1, "hooks": {}}\n',
    '{\n\t"hooks": {\n\t\t"Stop": []\n\t}\n}\n',
    '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"make stop"}]}]},"z":"ü\\u00fc"}',
    '{\n    "env": {\n        "A": "b"\n    },\n    "hooks": {"SessionStart": [ ]}\n}',
    f'{{"env": {{"{CAP}": "3"}}}}',
    '{"env": { }}',
]


@in_one_test("text", LAYOUTS)
@in_one_test("form", ["exec", "shell"])
def test_putting_in_and_taking_out_leaves_every_byte(text, form):
    installed = with_hooks(CLAUDE, text, ["idle", "memory"], form, 0)
    assert {hook.event for hook in find_ours(CLAUDE, installed)} == LOOPS
    assert values_of(CLAUDE, installed)["env"][CAP] == "0"
    assert with_hooks(CLAUDE, installed, ["idle", "memory"], form, 0) == installed
    assert without_hooks(CLAUDE, installed, text, 0) == text


@pytest.mark.parametrize("text", LAYOUTS)
def test_everything_else_keeps_its_values(text):
    before, after = values_of(CLAUDE, text), values_of(CLAUDE, with_hooks(CLAUDE, text, None, "exec"))
    assert {name: value for name, value in after.items() if name != "hooks"} == {
        name: value for name, value in before.items() if name != "hooks"
    }
    for event, groups in before.get("hooks", {}).items():
        assert after["hooks"][event][: len(groups)] == groups


def test_the_entries_are_as_the_host_reads_them():
    values = values_of(CLAUDE, with_hooks(CLAUDE, "{}", ["ralph"], "exec"))
    (stop,) = values["hooks"]["Stop"]
    (compacted,) = values["hooks"]["SessionStart"]
    assert "matcher" not in stop
    assert compacted["matcher"] == "compact"
    for group in (stop, compacted):
        (hook,) = group["hooks"]
        assert hook["type"] == "command"
        assert [hook["command"], *hook["args"]] == [*hook_command("ralph"), "--exit", "0", "--announce"]
        assert hook["timeout"] == 10
        assert hook["statusMessage"].startswith("tailhook")


def test_machines_without_loops_do_not_get_compactions():
    text = with_hooks(CLAUDE, "{}", ["triage", "memory"], "exec")
    assert [hook.event for hook in find_ours(CLAUDE, text)] == ["Stop"]
    assert with_hooks(CLAUDE, with_hooks(CLAUDE, "{}", None, "exec"), ["memory"], "exec") == text.replace("triage,", "")


TOOLS = {"PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest", "PermissionDenied"}
MATCHERS = {**dict.fromkeys(TOOLS, "*"), "PostCompact": "manual"}
WAITS = {"Elicitation", "ElicitationResult", "Notification", "SubagentStart", "SubagentStop", "PostCompact"}
PLATES = TOOLS | WAITS | {"StopFailure", "SessionEnd"}


def test_plates_gets_every_event_and_loops_only_theirs():
    values = values_of(CLAUDE, with_hooks(CLAUDE, "{}", ["idle", "plates"], "exec"))["hooks"]
    assert set(values) == LOOPS | PLATES
    for event, groups in values.items():
        ((group,), machines) = groups, ["idle", "plates"] if event in LOOPS else ["plates"]
        assert machines_of(argv_of(group["hooks"][0])) == machines
        assert group.get("matcher") == MATCHERS.get(event)


def test_plates_among_the_configured_machines_gets_every_event():
    text = with_hooks(CLAUDE, "{}", None, "exec", reports=True)
    assert {hook.event for hook in find_ours(CLAUDE, text)} == LOOPS | PLATES
    assert with_hooks(CLAUDE, text, None, "exec", reports=True) == text


@pytest.mark.parametrize("text", LAYOUTS)
def test_plates_comes_and_goes_and_leaves_every_byte(text):
    without = with_hooks(CLAUDE, text, ["idle"], "exec")
    with_plates = with_hooks(CLAUDE, without, ["idle", "plates"], "exec", None, text)
    assert with_hooks(CLAUDE, with_plates, ["idle"], "exec", None, text) == without
    assert without_hooks(CLAUDE, with_plates, text) == text


def test_the_form_and_the_machines_change_in_place_and_what_a_person_set_stays():
    text = with_hooks(CLAUDE, "{}", None, "exec").replace('"timeout": 10', '"timeout": 60')
    changed = with_hooks(CLAUDE, text, ["idle"], "shell")
    (stop, *_) = find_ours(CLAUDE, changed)
    assert "args" not in stop.fields
    assert shlex.split(stop.fields["command"]) == [*hook_command("idle"), "--exit", "0", "--announce"]
    assert stop.fields["timeout"] == 60
    assert values_of(CLAUDE, with_hooks(CLAUDE, changed, None, "exec")) == values_of(CLAUDE, text)


def test_a_second_hook_of_ours_goes_and_another_tools_beside_it_stays():
    (first, *_) = find_ours(CLAUDE, with_hooks(CLAUDE, "{}", None, "exec"))
    text = json.dumps({"hooks": {"Stop": [{"hooks": [OTHER, first.fields]}, {"hooks": [first.fields]}]}})
    merged = values_of(CLAUDE, with_hooks(CLAUDE, text, None, "exec"))["hooks"]["Stop"]
    assert merged == [{"hooks": [OTHER, first.fields]}]
    assert values_of(CLAUDE, without_hooks(CLAUDE, text)) == {"hooks": {"Stop": [{"hooks": [OTHER]}]}}


def test_containers_that_we_made_go_with_us_and_those_of_others_stay():
    before = '{"hooks": {"Stop": []}, "env": {}}'
    installed = with_hooks(CLAUDE, before, None, "exec", 5)
    assert without_hooks(CLAUDE, installed, before, 5) == before
    assert values_of(CLAUDE, without_hooks(CLAUDE, installed)) == {"env": {CAP: "5"}}


def test_the_limit_that_was_there_before_comes_back():
    before = f'{{"env": {{"{CAP}": "12"}}}}'
    assert without_hooks(CLAUDE, with_hooks(CLAUDE, before, None, "exec", 0), before, 0) == before
    edited = with_hooks(CLAUDE, before, None, "exec", 0).replace('"0"', '"30"')
    assert values_of(CLAUDE, without_hooks(CLAUDE, edited, before, 0))["env"][CAP] == "30"


@pytest.mark.parametrize(
    "text", ["[]", "5", '{"hooks": []}', '{"hooks": null}', '{"env": "A"}', '{"hooks": {"Stop": {}}}']
)
def test_settings_of_another_shape_are_refused(text):
    with pytest.raises(SettingsError):
        with_hooks(CLAUDE, text, None, "exec", 0)


@pytest.mark.parametrize(
    "groups", [[None], [5, "x"], [{}], [{"hooks": None}], [{"hooks": [None, 5, {}]}], [{"hooks": [{"command": 5}]}]]
)
def test_what_is_not_a_hook_is_left_alone(groups):
    text = json.dumps({"hooks": {"Stop": groups, "Other": 5}})
    installed = with_hooks(CLAUDE, text, None, "exec")
    assert values_of(CLAUDE, installed)["hooks"]["Stop"][:-1] == groups
    assert without_hooks(CLAUDE, installed, text) == text


def test_ours_are_known_by_the_entry_file_in_either_form():
    argv = hook_command("idle")
    assert is_ours(argv_of({"command": argv[0], "args": argv[1:]}))
    assert is_ours(argv_of({"command": shlex.join(["/with space/python", *argv[1:]])}))
    assert not is_ours(["tailhook", "hook", "idle"])
    assert is_tailhook(["/opt/bin/tailhook", "hook", "idle"])
    assert is_tailhook(["python3", "-m", "tailhook", "hook"])
    assert not is_tailhook(["tailhook", "bench"])
    for fields in ({}, None, [], {"command": None}, {"command": "an 'open quotation"}, {"args": ["x"]}):
        assert argv_of(fields) == []
    assert machines_of([*argv[:-1], "memory,idle", "--exit", "0"]) == ["idle", "memory"]
    assert machines_of(argv[:-1]) is None


# ---- other hosts -------------------------------------------------------------

OTHERS = [file for file in hooks_files() if file.name != "claude-code"]
EACH = pytest.mark.parametrize("file", OTHERS, ids=lambda file: file.name)


@EACH
def test_another_hosts_hook_names_the_host_and_is_one_shell_command(file):
    (stop, *_) = find_ours(file, with_hooks(file, file.new_text, ["ralph"], "shell"))
    assert stop.event == file.stop_event
    event = [] if file.names_events else ["--event", file.stop_event]
    assert stop.argv == [*hook_command("ralph"), "--host", file.name, *event, "--exit", "0", "--announce"]
    assert "args" not in stop.fields


def test_the_timeout_is_in_the_hosts_own_unit():
    def members(name: str, event: str) -> dict:
        file = hooks_file_of(name)
        found = find_ours(file, with_hooks(file, "{}", ["plates"], "shell"))
        (fields,) = (hook.fields for hook in found if hook.event == event)
        return {key: value for key, value in fields.items() if key not in ("type", "command", "bash")}

    assert members("codex", "PreToolUse") == {"timeout": 10}
    assert members("codex", "SessionEnd") == {"timeout": 3}
    assert members("gemini", "BeforeTool") == {"name": "tailhook", "timeout": 10_000}
    assert members("cursor", "preToolUse") == {}
    assert members("copilot", "preToolUse") == {"timeoutSec": 10}
    assert members("droid", "PreToolUse") == {"timeout": 10}
    assert members("antigravity", "PreInvocation") == {"timeout": 10}
    assert members("qwen", "PreToolUse") == {"name": "tailhook", "timeout": 10_000}


def test_a_hook_of_copilot_is_found_in_every_shape_that_copilot_reads():
    copilot = hooks_file_of("copilot")
    command = shlex.join([*hook_command("idle"), "--host", "copilot"])
    shapes = [{"bash": command}, {"command": command}, {"hooks": [{"type": "command", "command": command}]}]
    text = json.dumps({"version": 1, "hooks": {"agentStop": [OTHER, *shapes]}})
    assert [hook.argv[-1] for hook in find_ours(copilot, text)] == ["copilot"] * 3
    assert values_of(copilot, without_hooks(copilot, text)) == {"version": 1, "hooks": {"agentStop": [OTHER]}}
    (kept,) = find_ours(copilot, with_hooks(copilot, text, ["idle"], "shell"))
    assert (kept.path, kept.argv[-3:]) == (("hooks", "agentStop", 1), ["--exit", "0", "--announce"])


def test_a_version_is_added_only_if_it_is_missing():
    cursor = hooks_file_of("cursor")
    for before, version in (("{}", 1), ('{"version": 2}', 2)):
        installed = with_hooks(cursor, before, ["idle"], "shell")
        assert values_of(cursor, installed)["version"] == version
        assert without_hooks(cursor, installed, before) == before


def test_a_matcher_that_a_person_set_on_a_hook_without_a_group_stays():
    cursor = hooks_file_of("cursor")
    text = with_hooks(cursor, "{}", ["idle"], "shell").replace('"command"', '"matcher": "x", "command"')
    assert with_hooks(cursor, text, ["idle"], "shell") == text


@EACH
def test_the_payload_of_the_doctor_has_the_fields_that_the_host_sends(file, monkeypatch):
    for name in file.project_variables:
        monkeypatch.setitem(posix.environ, name.encode(), b"{folder}")
    payload = json.loads(json.dumps(dict(file.payload)))
    translated = translate_payload(file.host, payload)
    assert translated["session_id"] == "doctor"
    assert translated["cwd"] == "{folder}"
    assert ("hook_event_name" in payload) is file.names_events


def test_the_description_of_every_host_can_be_read():
    for file in hooks_files():
        assert set(file.paths) <= set(SCOPES)
        assert file.stop_event in file.events
        assert file.can_set_cap is (file.name in ("claude-code", "cursor", "qwen"))
