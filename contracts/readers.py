"""Reads what a host ships about its hooks: one function for each host, from the folder of its unpacked npm package.

Each returns the host's version, its events and its kinds of handlers. An event has two shapes: the members of its
payload, and those of the answers that the host takes; None if the package declares none.
"""

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tree_sitter import Node

from contracts.json_schema import read_schema
from contracts.shapes import Shape, both, either
from contracts.typescript import Declarations, parse, read_literal, read_object, text_of, walk

Event = tuple[Shape | None, Shape | None]
PLATFORM = f"{sys.platform}-{ {'x86_64': 'x64', 'aarch64': 'arm64'}.get(platform.machine(), platform.machine()) }"
TIMEOUT_S = 120  # of a host's own program


class Reading(NamedTuple):
    """What a package has about hooks."""

    version: str
    events: dict[str, Event]
    handlers: dict[str, Shape]


class Source(NamedTuple):
    """Where a host's contract comes from.

    package: on npm.
    platform: follows `package` in the name of the package with the host's program, "" if that is the package itself.
    how: the parts that are read, for people.
    """

    package: str
    platform: str
    how: str
    read: Callable[[Path], Reading]


def run_in(home: Path, *argv: str | Path) -> None:
    """Run a host's own program with an empty home."""
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(home / "cache")}
    subprocess.run(argv, cwd=home, env=env, check=True, capture_output=True, timeout=TIMEOUT_S)


def version_of(folder: Path, key: str = "version") -> str:
    """Return a member of the package's description."""
    return str(json.loads((folder / "package.json").read_text(encoding="utf-8"))[key])


def by_type(shapes: list[Shape]) -> dict[str, Shape]:
    """Return the shapes of handlers by their fixed member `type`."""
    found = {}
    for shape in shapes:
        members = dict(shape.members or {})
        found[members.pop("type")[0].fixed()] = Shape(members=members)
    return found


# ---- Claude Code: the types of its Agent SDK -------------------------------------


def read_claude_code(folder: Path) -> Reading:
    """Read HookInput, SyncHookJSONOutput and Settings of sdk.d.ts."""
    types = Declarations((folder / "sdk.d.ts").read_bytes())
    specials: dict[str, Shape] = {}
    for part in types.alternatives(type_of(types.nodes["SyncHookJSONOutput"], "hookSpecificOutput")):
        shape = types.read(part)
        specials[(shape.members or {})["hookEventName"][0].fixed()] = shape
    general = dict(types.shape("SyncHookJSONOutput").members or {})
    del general["hookSpecificOutput"]
    events: dict[str, Event] = {}
    for part in types.alternatives(types.nodes["HookInput"].child_by_field_name("value")):
        given = types.read(part)
        name = (given.members or {})["hook_event_name"][0].fixed()
        own = {"hookSpecificOutput": (specials[name], True)} if name in specials else {}
        events[name] = given, Shape(members={**general, **own})
    listed = {name.strip("'") for name in types.shape("HookEvent").names}
    if odd := listed ^ events.keys():
        raise ValueError(f"HookInput and HookEvent differ in {', '.join(sorted(odd))}")
    hooks = type_of(types.nodes["Settings"], "hooks", "'mcp_tool'")
    union = next(node for node in walk(hooks, "union_type") if any(walk(node, "object_type")))
    handlers = by_type([types.read(part) for part in types.alternatives(union)])
    return Reading(version_of(folder, "claudeCodeVersion"), events, handlers)


def type_of(declaration: Node, name: str, text: str = "") -> Node:
    """Return the type of the first member of this name in a declaration.  text: a part of the type."""
    for node in walk(declaration, "property_signature"):
        annotation = node.child_by_field_name("type")
        if text_of(node.child_by_field_name("name")) == name and annotation is not None and text in text_of(annotation):
            return annotation.named_children[0]
    raise ValueError(f"there is no member {name}")


# ---- Codex: JSON schemas ----------------------------------------------------------


def read_codex(folder: Path) -> Reading:
    """Read the schemas in the program, one for each payload and answer, and those that the program writes."""
    (program,) = folder.glob("vendor/*/bin/codex")
    data, decoder = program.read_bytes(), json.JSONDecoder()
    schemas: dict[str, Shape] = {}
    for match in re.finditer(rb'\{\s*"\$schema": "http://json-schema.org/draft-07/schema#"', data):
        text = data[match.start() : match.start() + 100_000].decode("utf-8", "replace")
        schema = decoder.raw_decode(text)[0]
        schemas[schema["title"]] = read_schema(schema, schema.get("definitions", {}))
    written = folder / "schemas"
    run_in(folder, program, "app-server", "generate-json-schema", "--out", written)
    api = json.loads((written / "codex_app_server_protocol.v2.schemas.json").read_text(encoding="utf-8"))["definitions"]
    groups = api["ManagedHooksRequirements"]["properties"]
    events: dict[str, Event] = {}
    for name, schema in groups.items():
        if schema.get("items", {}).get("$ref", "").endswith("ConfiguredHookMatcherGroup"):
            title = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
            events[name] = schemas.pop(f"{title}.command.input", None), schemas.pop(f"{title}.command.output", None)
    if left := [title for title in schemas if ".command." in title]:
        raise ValueError(f"events without a setting: {', '.join(sorted(left))}")
    kinds = api["ConfiguredHookHandler"]["oneOf"]
    handlers = by_type([read_schema(schema, api) for schema in kinds])
    return Reading(version_of(folder).partition("-")[0], events, handlers)


# ---- Gemini CLI: the types of its core -----------------------------------------------


def read_gemini(folder: Path) -> Reading:
    """Read HookEventName and the types EVENTInput, EVENTOutput and HookConfig."""
    types = Declarations(
        *((folder / "dist/src/hooks" / name).read_bytes() for name in ("types.d.ts", "hookTranslator.d.ts"))
    )
    names = [name.strip("'") for name in types.shape("HookEventName").names]
    events: dict[str, Event] = {}
    for name in names:
        answer = f"{name}Output" if f"{name}Output" in types.nodes else "HookOutput"
        events[name] = types.shape(f"{name}Input"), types.shape(answer)
    kinds = types.alternatives(types.nodes["HookConfig"].child_by_field_name("value"))
    return Reading(version_of(folder), events, by_type([types.read(kind) for kind in kinds]))


# ---- Copilot CLI: a schema and the types that its program unpacks -----------------------


def read_copilot(folder: Path) -> Reading:
    """Read HookType of the API's schema, and the types EVENTHookInput and EVENTHookOutput of the SDK.

    The SDK renames some members of a payload: a hook in a file gets the names that `deserializeHookInput` takes.
    """
    run_in(folder, folder / "copilot", "--version")
    (schema,) = folder.glob("cache/copilot/pkg/*/*/schemas/api.schema.json")
    sdk = schema.parents[1] / "copilot-sdk"
    definitions = json.loads(schema.read_text(encoding="utf-8"))["definitions"]
    types = Declarations((sdk / "types.d.ts").read_bytes())
    names = sent_names((sdk / "index.js").read_bytes())
    events: dict[str, Event] = {}
    for name in definitions["HookType"]["enum"]:
        type_name = f"{name[0].upper()}{name[1:]}Hook"
        given = types.shape(f"{type_name}Input") if f"{type_name}Input" in types.nodes else None
        taken = types.shape(f"{type_name}Output") if f"{type_name}Output" in types.nodes else None
        if given is not None:
            members = {names.get(own, own): member for own, member in (given.members or {}).items()}
            given = Shape(members={**members, "timestamp": (Shape({"number"}), False)})
        events[name] = given, taken
    return Reading(version_of(folder), events, {})


def sent_names(source: bytes) -> dict[str, str]:
    """Return the names of a payload's members by the SDK's names."""
    function = function_called("deserializeHookInput", parse(source))
    pairs = [pair for pair in walk(function, "pair") if pair.named_children[1].type == "identifier"]
    if not pairs:
        raise ValueError("deserializeHookInput renames nothing")
    return {text_of(pair.named_children[0]): text_of(pair.named_children[1]) for pair in pairs}


def function_called(name: str, tree: Node) -> Node:
    """Return a function's declaration."""
    for node in walk(tree, "function_declaration"):
        if text_of(node.child_by_field_name("name")) == name:
            return node
    raise ValueError(f"there is no function {name}")


# ---- Qwen Code: JavaScript ----------------------------------------------------------


def read_qwen(folder: Path) -> Reading:
    """Read the enumeration HookEventName, the objects that become payloads, the classes of answers and the settings."""
    chunks = [path.read_bytes() for path in sorted(folder.glob("chunks/*.js"))]

    def tree_with(text: bytes) -> Node:
        return parse(next(chunk for chunk in chunks if text in chunk))

    answers = tree_with(b"var HookEventName = ")
    names = re.findall(r'HookEventName\w*\["\w+"\] = "(\w+)"', text_of(declared(answers, "HookEventName")))
    payloads = tree_with(b"createBaseInput(eventName)")
    base = Shape(members=returned(method_called("createBaseInput", payloads)))
    given: dict[str, Shape] = {}
    for literal in walk(payloads, "object"):
        if match := re.match(r'\{\s*\.\.\.this\.createBaseInput\(\s*"(\w+)"', text_of(literal)):
            shape = both(base, read_object(literal))
            for part in literal.named_children:
                if part.type == "spread_element" and part.named_children[0].type == "identifier":
                    word = text_of(part.named_children[0])
                    added = returned(function_called(f"build{word[0].upper()}{word[1:]}", payloads))
                    shape = both(shape, Shape(members={name: (one, True) for name, (one, _) in added.items()}))
            given[match[1]] = both(shape, Shape(members=dict(snapshots(literal, payloads))))
    classes = {text_of(node.child_by_field_name("name")): node for node in walk(answers, "variable_declarator")}
    general = answer_class(classes["DefaultHookOutput"])
    events: dict[str, Event] = {}
    for name in names:
        own = classes.get("StopHookOutput" if name == "SubagentStop" else f"{name}HookOutput")
        events[name] = given.get(name), general if own is None else either(general, answer_class(own))
    properties = literal_at(tree_with(b"var HOOK_DEFINITION_ITEMS = "), "HOOK_DEFINITION_ITEMS")["properties"]
    members = properties["hooks"]["items"]["properties"]
    kinds = members.pop("type")["enum"]
    shared = Shape(members={name: (read_schema(schema, {}), True) for name, schema in members.items()})
    return Reading(version_of(folder), events, dict.fromkeys(kinds, shared))


def snapshots(literal: Node, tree: Node) -> Iterator[tuple[str, tuple[Shape, bool]]]:
    """Yield the members of an object that a method fills with a list of objects: `NAME: this.METHOD()`."""
    for pair in (part for part in literal.named_children if part.type == "pair"):
        if match := re.fullmatch(r"this\.(\w+)\(\)", text_of(pair.named_children[-1])):
            for arrow in walk(method_called(match[1], tree), "arrow_function"):
                body = arrow.named_children[-1]
                if body.type == "parenthesized_expression" and body.named_children[0].type == "object":
                    items = read_object(body.named_children[0])
                    yield text_of(pair.named_children[0]), (Shape(items=items), False)


def declared(tree: Node, name: str) -> Node:
    """Return the declaration of a variable."""
    return next(one for one in walk(tree, "variable_declarator") if text_of(one.child_by_field_name("name")) == name)


def literal_at(tree: Node, name: str) -> dict[str, Any]:
    """Return a variable's value, which is an object's literal."""
    value = read_literal(declared(tree, name).named_children[-1])
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not an object")
    return value


def method_called(name: str, tree: Node) -> Node:
    """Return a method's definition."""
    for node in walk(tree, "method_definition"):
        if text_of(node.child_by_field_name("name")) == name:
            return node
    raise ValueError(f"there is no method {name}")


def returned(function: Node) -> dict[str, tuple[Shape, bool]]:
    """Return the members of the object that a function returns at its end."""
    last = [node for node in walk(function, "return_statement") if node.named_children][-1]
    return read_object(last.named_children[0]).members or {}


def answer_class(node: Node) -> Shape:
    """Return the shape of the answers that a class reads.

    Its fields are their members. Its code has the names of the members of `hookSpecificOutput`.
    """
    fields = [text_of(one.child_by_field_name("name")) for one in walk(node, "public_field_definition")]
    inner = re.findall(r'hookSpecificOutput\??\.?\["(\w+)"\]', text_of(node))
    members = {name: (Shape({"any"}), True) for name in fields if name != "hookSpecificOutput"}
    special = Shape(members={name: (Shape({"any"}), True) for name in inner})
    return Shape(members={**members, "hookSpecificOutput": (special, True)})


# ---- Kimi Code: JavaScript ----------------------------------------------------------


def read_kimi(folder: Path) -> Reading:
    """Read the list HOOK_EVENT_TYPES, the schemas of an entry and of an answer, and the objects that become payloads.

    The members have other names there: `toHookInputData` writes each capital letter as "_" and the small one.
    """
    source = (folder / "dist/main.mjs").read_bytes()
    parts = re.findall(rb"//#region \S+/externalHooks/\S+\n(.*?)//#endregion", source, re.DOTALL)
    tree = parse(b"".join(parts))
    names = read_literal(assigned(tree, "HOOK_EVENT_TYPES"))
    if not isinstance(names, list):
        raise ValueError("HOOK_EVENT_TYPES is not a list")
    base = both(object_with("hookEventName: event", tree), object_with("clientType: ", tree))
    base = both(base, Shape(members=returned(method_called("withSessionFacts", tree))))
    given: dict[str, Shape] = {}
    for call in walk(tree, "call_expression"):
        callee, arguments = (text_of(call.child_by_field_name(name)) for name in ("function", "arguments"))
        inner = next(walk(call, "object"), None)  # without one the members are those of an object without a type
        if inner and callee.rpartition(".")[2] in ("trigger", "triggerBlock", "fireAndForget", "fireAndForgetTrigger"):
            own = next((value for value in map(input_data, walk(inner, "pair")) if value), inner)
            for name in re.findall(r'"(\w+)"', arguments.partition(", {")[0]):
                given[name] = both(base, read_object(own))
    special = optional_members(schema_of(tree, "HookSpecificOutputSchema"))
    answer = both(
        optional_members(schema_of(tree, "HookJsonOutputSchema")),
        Shape(members={"hookSpecificOutput": (special, True)}),
    )
    handler = read_object(schema_of(tree, "HookDefSchema"))
    events: dict[str, Event] = {name: (sent_shape(given[name]) if name in given else None, answer) for name in names}
    return Reading(version_of(folder), events, {"command": handler})


def assigned(tree: Node, name: str) -> Node:
    """Return the value that is assigned to a variable."""
    for node in walk(tree, "assignment_expression"):
        if text_of(node.child_by_field_name("left")) == name and (value := node.child_by_field_name("right")):
            return value
    raise ValueError(f"{name} gets no value")


def schema_of(tree: Node, name: str) -> Node:
    """Return the object with the members of a schema."""
    return next(walk(assigned(tree, name), "object"))


def optional_members(node: Node) -> Shape:
    """Return the shape of an object with a schema for each member. Each may be missing."""
    return Shape(members=dict.fromkeys(read_object(node).members or {}, (Shape({"any"}), True)))


def object_with(text: str, tree: Node) -> Shape:
    """Return the shape of the innermost object with a text."""
    found = [node for node in walk(tree, "object") if text in text_of(node)]
    return read_object(min(found, key=lambda node: node.end_byte - node.start_byte))


def input_data(pair: Node) -> Node | None:
    """Return the object of a member `inputData`, None for another member."""
    key, value = pair.named_children[0], pair.named_children[-1]
    return next(walk(value, "object"), value) if text_of(key) == "inputData" else None


def sent_shape(shape: Shape) -> Shape:
    """Return a payload's shape with the names that a hook gets."""
    members = {
        re.sub("[A-Z]", lambda at: f"_{at[0].lower()}", name): one for name, one in (shape.members or {}).items()
    }
    return Shape(members=members)


# ---- Factory Droid: JavaScript in its program ---------------------------------------


def read_droid(folder: Path) -> Reading:
    """Read the objects that become payloads, and the schemas of an entry and of an answer.

    The payloads of some events are made of what `buildSessionHookInput` returns for the event's name, and of more.
    """
    program = (folder / "bin/droid").read_bytes()
    payloads, shared = {}, Shape(members={})
    for node in objects_with(b"hook_event_name:", program):
        if match := re.search(r'hook_event_name:"(\w+)"', text_of(node)):
            payloads[match[1]] = read_object(node)
        else:
            shared = read_object(node)
    for node in objects_with(b"...this.buildSessionHookInput(", program):
        if match := re.search(r'eventName:"(\w+)"', text_of(node)):
            payloads[match[1]] = both(shared, read_object(node))
    special = described(b"permissionDecisionReason:", "hookEventName:", program)
    answer = described(b"stopReason:", "hookSpecificOutput:", program)
    answer = both(answer, Shape(members={"hookSpecificOutput": (special, True)}))
    entry = described(b"preserveRiskLevel:", "command:", program)
    handler = Shape(members={name: member for name, member in (entry.members or {}).items() if name != "type"})
    return Reading(version_of(folder), {name: (one, answer) for name, one in payloads.items()}, {"command": handler})


def objects_with(mark: bytes, program: bytes) -> Iterator[Node]:
    """Yield the innermost object of JavaScript around each place of a text in a program."""
    for found in re.finditer(re.escape(mark), program):
        start, depth = found.start(), 1
        while depth:
            start -= 1
            depth += {ord("}"): 1, ord("{"): -1}.get(program[start], 0)
        end, depth = found.start(), 1
        while depth:
            depth += {ord("{"): 1, ord("}"): -1}.get(program[end], 0)
            end += 1
        yield next(walk(parse(b"(%s)" % program[start:end]), "object"))


def described(mark: bytes, other: str, program: bytes) -> Shape:
    """Return the shape that a schema describes: the first object with two texts.

    other: the second one, which may be anywhere in the object.
    """
    node = next(one for one in objects_with(mark, program) if other in text_of(one))
    members = (part.named_children for part in node.named_children if part.type == "pair")
    return Shape(
        members={text_of(name): (Shape({"any"}), text_of(value).endswith(".optional()")) for name, value in members}
    )


SOURCES = {
    "claude-code": Source("@anthropic-ai/claude-agent-sdk", "", "types in sdk.d.ts", read_claude_code),
    "codex": Source(
        "@openai/codex",
        "@{version}-{platform}",
        "schemas in the program, `codex app-server generate-json-schema`",
        read_codex,
    ),
    "gemini": Source("@google/gemini-cli-core", "", "types in dist/src/hooks", read_gemini),
    "copilot": Source(
        "@github/copilot",
        "-{platform}@{version}",
        "schemas/api.schema.json and copilot-sdk of the program",
        read_copilot,
    ),
    "qwen": Source("@qwen-code/qwen-code", "", "JavaScript in chunks: names, few types", read_qwen),
    "droid": Source("@factory/cli-linux-x64", "", "JavaScript in the program: names, few types", read_droid),
    "kimi": Source("@moonshot-ai/kimi-code", "", "JavaScript of dist/main.mjs: names, few types", read_kimi),
}
