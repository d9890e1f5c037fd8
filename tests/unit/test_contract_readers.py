"""The program that writes the hosts' contracts, with made-up packages and an npm of its own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter_typescript", reason="the extra `contracts` is not installed")

CONTRACTS = Path(__file__).parents[2] / "contracts"
SDK = "@anthropic-ai/claude-agent-sdk"
NPM = """#!{python}
import os, sys, tarfile
words, place = sys.argv[1:], os.environ["PACKAGES"]
if words[0] == "view":
    print(open(place + "/version").read())
else:
    name = words[1].replace("/", "_")
    if not os.path.isdir(place + "/" + name):
        sys.exit("npm error code E404")
    with tarfile.open(words[4] + "/" + name + ".tgz", "w:gz") as packed:
        packed.add(place + "/" + name, "package")
    print("a notice", name + ".tgz", sep="\\n")
"""
GEMINI = """
export declare enum HookEventName { AfterAgent = "AfterAgent", SessionEnd = "SessionEnd" }
export declare enum Reason { Exit = "exit", Clear = "clear" }
export declare enum HookType { Command = "command" }
export interface CommandHookConfig { type: HookType.Command; command: string;
    action?: never; env?: Record<string, string>; }
export type HookConfig = CommandHookConfig;
export interface HookInput { session_id: string; hook_event_name: string; }
export interface HookOutput { decision?: 'deny' | 'allow' | undefined; }
/** A sentence that stays in the package. */
export interface AfterAgentInput extends HookInput { prompt: string; }
export interface AfterAgentOutput extends HookOutput {
    hookSpecificOutput?: { hookEventName: 'AfterAgent'; clearContext?: boolean; };
}
export interface SessionEndInput extends HookInput { reason: Reason; }
"""
CLAUDE = """
export declare type Task = { id: string; next?: Task; };
export declare type BaseHookInput = { session_id: string; };
export declare type StopHookInput = BaseHookInput & { hook_event_name: 'Stop'; tasks?: Task[]; };
export declare type SwitchHookInput = (BaseHookInput & { hook_event_name: 'Switch'; }) & { model: string | null; };
export declare type HookInput = StopHookInput | SwitchHookInput;
export declare type HookEvent = 'Stop' | 'Switch';
export declare type StopHookSpecificOutput = { hookEventName: 'Stop'; additionalContext?: string; };
export declare type SyncHookJSONOutput = { decision?: 'block'; hookSpecificOutput?: StopHookSpecificOutput | Other; };
export declare type Other = { hookEventName: 'Other'; };
export declare interface Settings {
    other?: { hooks?: string; };
    hooks?: { [k: string]: { matcher?: string; hooks: ({ type: 'command'; command: string; } | { type: 'mcp_tool'; })[];
    }[]; };
}
"""
STOP_SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "definitions": {"Text": {"type": ["string", "null"]}},
    "properties": {"hook_event_name": {"const": "Stop"}, "said": {"$ref": "#/definitions/Text"}, "given": True},
    "required": ["said"],
    "title": "stop.command.input",
    "type": "object",
}
CODEX_API = {
    "ManagedHooksRequirements": {
        "properties": {
            "Stop": {"items": {"$ref": "#/definitions/ConfiguredHookMatcherGroup"}},
            "Interrupt": {"items": {"$ref": "#/definitions/ConfiguredHookMatcherGroup"}},
            "managedDir": {"type": "string"},
        }
    },
    "ConfiguredHookHandler": {
        "oneOf": [{"properties": {"type": {"enum": ["command"]}, "async": {"type": "boolean"}}, "type": "object"}]
    },
}
COPILOT_TYPES = """
export interface BaseHookInput { sessionId: string; timestamp: Date; workingDirectory: string; }
export interface AgentStopHookInput extends BaseHookInput { stopHookActive?: boolean; }
export type AgentStopHookOutput = { decision: "block"; reason: string; } | { decision?: "allow"; reason?: never; };
"""
COPILOT_SDK = """
function deserializeHookInput(raw) {
  const { cwd, stop_hook_active, ...rest } = raw;
  return { ...rest, timestamp: new Date(raw.timestamp), workingDirectory: cwd,
    ...stop_hook_active === void 0 ? {} : { stopHookActive: stop_hook_active } };
}
"""
QWEN = """
var HookEventName = ((HookEventName2) => { HookEventName2["Stop"] = "Stop"; HookEventName2["Quiet"] = "Quiet"; })({});
var DefaultHookOutput = class { decision; hookSpecificOutput;
  text() { return this.hookSpecificOutput["additionalContext"]; } };
var StopHookOutput = class extends DefaultHookOutput { stopReason; };
function buildUsage(size) { if (!size) { return void 0; } return { used: size }; }
class Handler {
  createBaseInput(eventName) { const id = 1; return { session_id: this.id, kind: "x", ...id ? { agent_id: id } : {} }; }
  getTasks() { try { return this.all().map((one) => ({ id: one.id, on: true })); } catch { return []; } }
  async fireStopEvent(usage) { const input = { ...this.createBaseInput("Stop" /* Stop */), said, ...usage,
    tasks: this.getTasks(),
    ...id && { call: { id: 1 } } }; }
}
var HOOK_DEFINITION_ITEMS = { type: "object", properties: { hooks: { type: "array", items: {
  type: "object", properties: {
  type: { type: "string", enum: ["command", "http"] }, timeout: { type: "number" } } } } } };
"""


class Program:
    """A copy of the program, with packages of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(CONTRACTS, folder / "contracts", ignore=shutil.ignore_patterns("*.json", "__pycache__"))
        self.packages = folder / "packages"
        self.packages.mkdir()
        (folder / "bin").mkdir()
        npm = folder / "bin" / "npm"
        npm.write_text(NPM.format(python=sys.executable))
        npm.chmod(0o755)
        self.release("1.0.0")

    def release(self, version: str) -> None:
        """Set the newest version of every package."""
        (self.packages / "version").write_text(version)

    def add(self, package: str, **files: object) -> None:
        """Add a package. files: by path, with "__" for "/" and "_dot_" for "."; an object becomes JSON."""
        for name, content in files.items():
            path = self.packages / package.replace("/", "_") / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content))
            path.chmod(0o755)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the program."""
        env = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "PACKAGES": str(self.packages)}
        argv = [sys.executable, "-m", "contracts", *words]
        return subprocess.run(argv, cwd=self.folder, env=env, capture_output=True, text=True, check=False)

    def platform(self) -> str:
        """Return the platform in the names of packages."""
        code = "from contracts.readers import PLATFORM; print(PLATFORM, end='')"
        return subprocess.check_output([sys.executable, "-c", code], cwd=self.folder, text=True)

    def contract(self, host: str) -> dict:
        """Return the contract of a host after a run."""
        done = self.run(host)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        return json.loads((self.folder / "contracts" / f"{host}.json").read_text())


@pytest.fixture
def program(tmp_path):
    """Return the program."""
    return Program(tmp_path)


def add_gemini(program, types=GEMINI, version="1.0.0"):
    name = f"@google/gemini-cli-core@{version}"
    places = {"dist__src__hooks__types_dot_d_dot_ts": types, "dist__src__hooks__hookTranslator_dot_d_dot_ts": ""}
    program.add(name, package_dot_json={"version": version}, **places)


def test_types_of_gemini_become_rows_without_its_texts(program):
    add_gemini(program)
    found = program.contract("gemini")
    assert (found["version"], found["package"]) == ("1.0.0", "@google/gemini-cli-core")
    assert found["events"] == {
        "*": {
            "fields": {"hook_event_name": "string", "session_id": "string"},
            "answers": {"decision": "'allow' | 'deny'?"},
        },
        "AfterAgent": {
            "fields": {"prompt": "string"},
            "answers": {"hookSpecificOutput": "object?", "hookSpecificOutput.clearContext": "boolean?"},
        },
        "SessionEnd": {"fields": {"reason": "'clear' | 'exit'"}, "answers": {}},
    }
    assert found["handlers"]["command"] == {"fields": {"command": "string", "env": "object?"}}
    assert "sentence" not in json.dumps(found)


def test_types_of_claude_code_become_rows(program):
    program.add(f"{SDK}@1.0.0", package_dot_json={"claudeCodeVersion": "2.1"}, sdk_dot_d_dot_ts=CLAUDE)
    found = program.contract("claude-code")
    assert found["version"] == "2.1"
    assert found["events"]["Stop"] == {
        "fields": {"tasks": "object[]?", "tasks[].id": "string", "tasks[].next": "object?"},
        "answers": {"hookSpecificOutput": "object?", "hookSpecificOutput.additionalContext": "string?"},
    }
    assert found["events"]["Switch"] == {"fields": {"model": "null | string"}, "answers": {}}
    assert found["handlers"] == {
        "*": {"fields": {}},
        "command": {"fields": {"command": "string"}},
        "mcp_tool": {"fields": {}},
    }


def test_schemas_of_codex_become_rows(program):
    written = json.dumps({"definitions": CODEX_API})
    code = f"mkdir $4; echo '{written}' > $4/codex_app_server_protocol.v2.schemas.json; exit\n{json.dumps(STOP_SCHEMA)}"
    version = f"1.0.0-{program.platform()}"
    files = {"package_dot_json": {"version": version}, "vendor__any__bin__codex": f"#!/bin/sh\n{code}"}
    program.add(f"@openai/codex@{version}", **files)
    found = program.contract("codex")
    assert found["version"] == "1.0.0"
    assert found["events"] == {
        "*": {"fields": {}, "answers": {}},
        "Interrupt": {"fields": None, "answers": None},
        "Stop": {"fields": {"given": "any?", "hook_event_name": "string", "said": "null | string"}, "answers": None},
    }
    assert found["handlers"]["command"] == {"fields": {"async": "boolean?"}}


def test_types_of_copilot_get_the_names_that_a_hook_gets(program):
    schema = json.dumps({"definitions": {"HookType": {"enum": ["agentStop", "notification"]}}})
    made = {
        "schemas/api.schema.json": schema,
        "copilot-sdk/types.d.ts": COPILOT_TYPES,
        "copilot-sdk/index.js": COPILOT_SDK,
    }
    code = "mkdir -p cache/copilot/pkg/any/1; cd cache/copilot/pkg/any/1; mkdir schemas copilot-sdk"
    for path, text in made.items():
        code += f"\ncat > {path} <<'END'\n{text}\nEND"
    files = {"package_dot_json": {"version": "1.0.0"}, "copilot": f"#!/bin/sh\n{code}"}
    program.add(f"@github/copilot-{program.platform()}@1.0.0", **files)
    found = program.contract("copilot")
    assert found["events"] == {
        "*": {"fields": {}, "answers": {}},
        "agentStop": {
            "fields": {"cwd": "string", "sessionId": "string", "stop_hook_active": "boolean?", "timestamp": "number"},
            "answers": {"decision": "'allow' | 'block'?", "reason": "string?"},
        },
        "notification": {"fields": None, "answers": None},
    }


def test_code_of_qwen_becomes_rows(program):
    program.add("@qwen-code/qwen-code@1.0.0", package_dot_json={"version": "1.0.0"}, chunks__a_dot_js=QWEN)
    found = program.contract("qwen")
    assert found["events"]["Quiet"]["fields"] is None
    assert found["events"]["Stop"]["fields"] == {
        "agent_id": "any?",
        "kind": "string",
        "said": "any",
        "session_id": "any",
        "used": "any?",
        "call": "object?",
        "call.id": "number",
        "tasks": "object[]",
        "tasks[].id": "any",
        "tasks[].on": "boolean",
    }
    assert found["events"]["Stop"]["answers"] == {"stopReason": "any?"}
    assert found["events"]["*"]["answers"] == {
        "decision": "any?",
        "hookSpecificOutput": "object?",
        "hookSpecificOutput.additionalContext": "any?",
    }
    assert found["handlers"]["*"] == {"fields": {"timeout": "number?"}}


KIMI = """
unrelated = { clientType: 1 };
//#region ../features/externalHooks/all.ts
HOOK_EVENT_TYPES = ["Stop", "PermissionRequest", "PostToolUse", "PostToolUseFailure", "SessionEnd"];
HookDefSchema = object({ event: _enum(HOOK_EVENT_TYPES), command: string(), timeout: number() }).strict();
HookSpecificOutputSchema = preprocess((value) => value, looseObject({ permissionDecision: unknown() }).optional());
HookJsonOutputSchema = looseObject({ message: string(), hookSpecificOutput: HookSpecificOutputSchema });
async function runAll(event, args) { toHookInputData({ hookEventName: event, sessionId: args.id, ...args.inputData }); }
class Runner { run(event, args) { runAll(event, { ...args, inputData: { clientType: kind, ...args.inputData } }); } }
class Hooks {
  withSessionFacts(inputData) { return { sessionTitle: this.title, ...inputData }; }
  stop() { this.runner.triggerBlock("Stop", { signal, inputData: this.withSessionFacts({ stopHookActive: false }) }); }
  ask(e) { const { type, ...inputData } = e; this.fireAndForget("PermissionRequest", inputData, e.toolName); }
  post(failed) { this.fireAndForget(failed ? "PostToolUseFailure" : "PostToolUse", { toolCallId: 1 }, name); }
  end() { this.runner.trigger("SessionEnd", { matcherValue: why, inputData: { reason: why } }); }
}
//#endregion
"""


def test_code_of_kimi_becomes_rows(program):
    package = {"package_dot_json": {"version": "1.0.0"}, "dist__main_dot_mjs": KIMI}
    program.add("@moonshot-ai/kimi-code@1.0.0", **package)
    found = program.contract("kimi")
    own = {name: event["fields"] for name, event in found["events"].items()}
    assert own == {
        "*": {"client_type": "any", "hook_event_name": "string", "session_id": "any", "session_title": "any"},
        "Stop": {"stop_hook_active": "boolean"},
        "PermissionRequest": None,
        "PostToolUse": {"tool_call_id": "number"},
        "PostToolUseFailure": {"tool_call_id": "number"},
        "SessionEnd": {"reason": "any"},
    }
    assert found["events"]["*"]["answers"] == {
        "hookSpecificOutput": "object?",
        "hookSpecificOutput.permissionDecision": "any?",
        "message": "any?",
    }
    assert found["handlers"]["command"]["fields"] == {"command": "any", "event": "any", "timeout": "any"}


DROID = """
\0unrelated=1;await run("Stop",{session_id:a,hook_event_name:"Stop",stop_hook_active:!1,mode:f({deep:1})},b);
start(e){run("SessionStart",{...this.buildSessionHookInput({eventName:"SessionStart",id:c}),source:e},e)}
buildSessionHookInput(e){return{session_id:e.id,hook_event_name:e.eventName,cwd:d()}}
A=n({command:H(),preserveRiskLevel:E().optional(),type:f("command")}),use({...A,preserveRiskLevel:!0});
B=n({hookEventName:q.optional(),permissionDecisionReason:H().optional()}),copy={permissionDecisionReason:B.why};
C=n({stopReason:H().optional(),decision:x(["block"]),hookSpecificOutput:B.optional()});stop({stopReason:"end"});
\xff"""


def test_code_in_the_program_of_droid_becomes_rows(program):
    program.add("@factory/cli-linux-x64@1.0.0", package_dot_json={"version": "1.0.0"}, bin__droid=DROID)
    found = program.contract("droid")
    own = {name: event["fields"] for name, event in found["events"].items()}
    assert own == {
        "*": {"hook_event_name": "string", "session_id": "any"},
        "SessionStart": {"cwd": "any", "source": "any"},
        "Stop": {"mode": "any", "stop_hook_active": "any"},
    }
    assert found["events"]["*"]["answers"] == {
        "decision": "any",
        "hookSpecificOutput": "object?",
        "hookSpecificOutput.permissionDecisionReason": "any?",
        "stopReason": "any?",
    }
    assert found["handlers"]["command"]["fields"] == {"command": "any", "preserveRiskLevel": "any?"}


# ---- differences -----------------------------------------------------------------

CHANGED = (
    GEMINI.replace("prompt: string", "prompt?: string; zeal: number")
    .replace("clearContext?: boolean;", "")
    .replace('SessionEnd = "SessionEnd"', 'Brand = "Brand"')
    .replace("command: string;", "command: string; async?: boolean;")
    + "export interface BrandInput extends HookInput { }"
)


def test_what_is_new_changed_and_gone_is_printed_and_a_check_fails_and_writes_nothing(program):
    add_gemini(program)
    before = program.contract("gemini")
    program.release("1.1.0")
    add_gemini(program, CHANGED, "1.1.0")
    done = program.run("--check", "gemini")
    lines = [
        "gemini 1.1.0 (before: 1.0.0): 7 differences",
        "  changed field prompt: string? (before: string) (AfterAgent)",
        "  new field zeal: number (AfterAgent)",
        "  gone answer hookSpecificOutput.clearContext: boolean? (AfterAgent)",
        "  new event (Brand)",
        "  gone event (SessionEnd)",
        "  new field async: boolean? (handler command)",
    ]
    assert (done.returncode, done.stderr) == (1, "")
    assert sorted(lines[1:]) == sorted(done.stdout.splitlines()[1:]), done.stdout
    assert json.loads((program.folder / "contracts" / "gemini.json").read_text()) == before
    assert program.contract("gemini")["events"]["Brand"] == {"fields": {}, "answers": {}}
    assert program.run("--check", "gemini").returncode == 0


def test_a_new_release_with_the_same_facts_is_named_and_passes(program):
    add_gemini(program)
    program.contract("gemini")
    program.release("1.1.0")
    add_gemini(program, version="1.1.0")
    done = program.run("--check", "gemini")
    assert (done.returncode, done.stdout) == (0, "gemini 1.1.0 (before: 1.0.0): no differences\n")


def test_a_named_version_is_read_in_place_of_the_newest(program):
    add_gemini(program, version="0.9.0")
    assert program.run("gemini@0.9.0").stdout.startswith("gemini 0.9.0 (before: none)")


def test_a_package_that_cannot_be_had_or_read_is_named_and_the_others_are_read(program):
    program.add(f"{SDK}@1.0.0", package_dot_json={}, sdk_dot_d_dot_ts="export declare type A = 1;")
    add_gemini(program)
    done = program.run("claude-code", "qwen", "gemini")
    assert done.returncode == 2
    assert [line.partition(":")[0] for line in done.stdout.splitlines() if line[0] != " "] == [
        "claude-code",
        "qwen",
        "gemini 1.0.0 (before",
    ]
    assert "E404" in done.stdout
    assert done.stderr == ""


def test_a_package_without_events_is_not_a_contract(program):
    add_gemini(program, GEMINI.replace('AfterAgent = "AfterAgent", SessionEnd = "SessionEnd"', ""))
    done = program.run("gemini")
    assert (done.returncode, "names no events" in done.stdout) == (2, True)


def test_an_unknown_host_is_a_usage_error(program):
    assert program.run("cursor").returncode == 2
