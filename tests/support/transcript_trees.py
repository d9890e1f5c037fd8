"""Generated transcripts: trees of resumed, forked and sub-agents' sessions, other hosts' sessions, and damage to them.

Everything comes from a `random.Random`, so a seed repeats it. `trees` and `files` are the strategies of hypothesis.
A tree knows which responses were billed: see `Tree.billed`.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from typing import Any

from hypothesis import strategies as st

START = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
VERSIONS = ("1.0.117", "2.0.5", "2.0.76", "2.1.12", "2.1.41", "2.1.81", "2.1.178", "2.1.222", "2.1.329")
MODELS = ("claude-opus-4-8", "claude-sonnet-5", "claude-haiku-4-5-20251001")
PROJECTS = ("/home/me/src/app", "/home/me/src/app/web", "/home/me/src/apple", "C:\\src\\app")
SENTENCES = (
    "We chose A because of B.",
    "The build failed: see `error.log`.",
    "Done.\n\n<loop-done>COMPLETE</loop-done>",
    "```\n<loop-done>COMPLETE</loop-done>\nTODO\n```\nNot yet.",
    "Write `<loop-done>STUCK</loop-done>` when you are stuck.",
    "> - <grind-done>NO_MORE_ISSUES</grind-done>",
    "Für später: TODO 😀\r\n\r\n    TODO in code\r\n",
    'A \u2028 line, a tab\tand "quotes" <b>, é, \ud83d.',
    "  \n",
    "always use tabs; from now on, never use spaces",
)
HOST_WORDS = (
    "<command-name>/context</command-name>\n<command-message>TODO</command-message>",
    "<local-command-stdout>error</local-command-stdout>",
    "<task-notification>\n<task-id>b1</task-id> TODO",
    "[Request interrupted by user for tool use]",
    "Stop hook feedback:\n[check]: TODO",
    "<system-reminder>TODO</system-reminder>",
)
Record = dict[str, Any]
TokenCounts = tuple[int, int, int, int]


@dataclass
class Transcript:
    """One file of a tree, while it is written."""

    path: str
    session: str
    project: str
    branch: str
    version: str
    agent: str | None = None
    records: list[Record] = field(default_factory=list)


@dataclass
class Tree:
    """Files, and the tokens of each billed response: input, output, cache read, cache creation.

    The keys are the message id, or whatever else identifies the response. No file is damaged.
    """

    files: list[tuple[str, bytes]]
    billed: dict[str, TokenCounts]


class Grower:
    """Writes the transcripts of a tree."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = START
        self.number = 0
        self.transcripts: list[Transcript] = []
        self.billed: dict[str, TokenCounts] = {}

    # ---- small things

    def id(self, prefix: str) -> str:
        self.number += 1
        return f"{prefix}{self.number:04d}"

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def tick(self) -> str:
        """Return the time of the next record: later, the same, or now and then earlier."""
        self.now += timedelta(milliseconds=self.random.choice((0, 0, 1, 250, 4000, 90_000, -1500)))
        if self.chance(0.1):
            return self.now.astimezone(timezone(timedelta(hours=5, minutes=30))).isoformat()
        return self.now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self.now.microsecond // 1000:03d}Z"

    def add(self, file: Transcript, kind: str, **members: Any) -> Record:
        """Write a record like Claude Code, with the members of every record of a conversation."""
        record = {
            "parentUuid": file.records[-1].get("uuid") if file.records else None,
            "isSidechain": file.agent is not None,
            "userType": "external",
            "cwd": file.project,
            "sessionId": file.session,
            "version": file.version,
            "gitBranch": file.branch,
            **({"agentId": file.agent} if file.agent else {}),
            "type": kind,
            **members,
            "uuid": self.id("u"),
            "timestamp": self.tick(),
        }
        file.records.append(record)
        return record

    # ---- a conversation

    def begin(self, path: str, session: str, agent: str | None = None) -> Transcript:
        branch = self.random.choice(("main", "fix", ""))
        version = self.random.choice(VERSIONS)
        file = Transcript(path, session, self.random.choice(PROJECTS), branch, version, agent)
        self.transcripts.append(file)
        return file

    def session(self) -> Transcript:
        session = self.id("session-")
        return self.begin(f"projects/p/{session}.jsonl", session)

    def prompt(self, file: Transcript) -> None:
        words = self.random.choice((*SENTENCES, *HOST_WORDS))
        content: Any = self.random.choice((words, [{"type": "text", "text": words}], [words]))
        extra = {"isMeta": True} if self.chance(0.1) else {"isCompactSummary": True} if self.chance(0.05) else {}
        if self.chance(0.15):
            self.add(file, "attachment", attachment=self.queued(content), **extra)
            return
        self.add(file, "user", message={"role": "user", "content": content}, **extra)

    def queued(self, content: Any) -> Record:
        """Return the attachment with a prompt that was typed while the agent worked, or with a notification."""
        origin = self.random.choice(({}, {"origin": {"kind": "human"}}, {"origin": {"kind": "other"}}))
        mode = self.random.choice(("prompt", "prompt", "task-notification"))
        return {"type": "queued_command", "prompt": content, "commandMode": mode, **origin}

    def respond(self, file: Transcript, nested_in: Transcript | None = None) -> None:
        """Write a response of the model: one record for each block. The output tokens never become fewer.

        nested_in: write it as progress records of this transcript instead.
        """
        random = self.random
        message_id, request_id = self.id("msg_"), self.id("req_")
        style = random.choice(("both", "both", "both", "no request", "some requests", "no message", "only uuid"))
        blocks = [self.block() for _ in range(1 if style == "only uuid" else random.randint(1, 4))]
        output = sorted(random.randint(0, 900) for _ in blocks)
        counts = (random.randint(0, 9), random.randint(0, 99_999), random.randint(0, 9999))
        model = random.choice(MODELS)
        uuid = ""
        for block, out in zip(blocks, output, strict=True):
            if self.chance(0.15):
                self.noise(nested_in or file)
            usage = {
                "input_tokens": counts[0],
                "cache_creation_input_tokens": counts[2],
                "cache_read_input_tokens": counts[1],
                "output_tokens": out,
            }
            message = {"model": model, "id": message_id, "type": "message", "role": "assistant", "content": [block]}
            if style in ("no message", "only uuid"):
                del message["id"]
            has_request = style in ("both", "no message") or (style == "some requests" and self.chance(0.5))
            request = {"requestId": request_id} if has_request else {}
            message["usage"] = usage
            if nested_in is None:
                uuid = self.add(file, "assistant", message=message, **request)["uuid"]
            else:
                uuid = self.id("u")
                inner = {"type": "assistant", "timestamp": self.tick(), "message": message, **request, "uuid": uuid}
                self.progress(nested_in, inner, file.agent)
            if block["type"] == "tool_use" and nested_in is None:
                self.result(file, block["id"])
        key = {"no message": request_id, "only uuid": uuid}.get(style, message_id)
        self.billed[key] = (counts[0], output[-1], counts[1], counts[2])

    def progress(self, file: Transcript, inner: Record, agent: str | None) -> None:
        data = {"message": inner, "normalizedMessages": [], "type": "agent_progress", "agentId": agent}
        self.add(file, "progress", data=data, toolUseID=self.id("agent_"), parentToolUseID="toolu_parent")

    def block(self) -> Record:
        random = self.random
        kind = random.choice(("text", "text", "thinking", "tool_use"))
        if kind != "tool_use":
            return {"type": kind, kind: random.choice(SENTENCES)}
        name, value = random.choice(
            [
                ("Bash", {"command": "make test", "description": "é"}),
                ("Edit", {"file_path": "/p/a.py", "old_string": "a", "new_string": "</b>"}),
                ("Read", {"file_path": "/p/a.py"}),
                ("NotebookEdit", {"notebook_path": "/p/a.ipynb"}),
            ]
        )
        return {"type": "tool_use", "id": self.id("toolu_"), "name": name, "input": value}

    def result(self, file: Transcript, use_id: str) -> None:
        if self.chance(0.15):
            return  # the session ended before
        error = self.random.choice(({}, {"is_error": False}, {"is_error": True}))
        block = {"type": "tool_result", "tool_use_id": use_id, "content": "TODO: an error", **error}
        used = {"agentId": "a0", "totalTokens": 14, "usage": {"input_tokens": 7, "output_tokens": 7}}  # a sub-agent's
        more = self.random.choice(({"stdout": "TODO"}, used))
        self.add(file, "user", message={"role": "user", "content": [block]}, toolUseResult=more)

    def noise(self, file: Transcript) -> None:
        """Write a record with words of neither a person nor the agent; none is billed."""
        usage = {"input_tokens": 7, "output_tokens": 7}
        synthetic = {"model": "<synthetic>", "role": "assistant", "id": self.id("syn_"), "usage": usage}
        synthetic["content"] = [{"type": "text", "text": "No response requested. TODO"}]
        kind = self.random.randrange(8)
        if kind == 0:
            file.records.append({"type": "file-history-snapshot", "messageId": "m", "snapshot": {}})
        elif kind == 1:
            self.add(file, "assistant", message=synthetic)
        elif kind == 2:
            error = {**synthetic, "model": self.random.choice(("<synthetic>", MODELS[0]))}
            self.add(file, "assistant", message=error, isApiErrorMessage=True)
        elif kind == 3:
            self.add(file, "system", subtype="api_error", content="TODO", level="error")
        elif kind == 4:
            inner = {"type": "assistant", "message": {"role": "assistant", "content": "TODO"}}  # without usage
            self.progress(file, inner, "a0")
        elif kind == 5:
            blob = {"role": "assistant", "id": self.id("msg_"), "usage": usage, "content": "TODO"}
            self.add(file, "api-request-blob", message=blob)
        elif kind == 6:
            self.queue(file)
        else:
            file.records.append({"type": "summary", "summary": "TODO", "leafUuid": "u"})

    def queue(self, file: Transcript) -> None:
        """Let texts wait while the agent works: some begin a turn, some reach it, some are taken back."""
        words = ("Also TODO", "Also TODO", "/mcp", "<task-notification>TODO", " ", None)
        for _ in range(self.random.randint(1, 6)):
            step, text = (
                self.random.choice(("enqueue", "enqueue", "dequeue", "remove", "popAll")),
                self.random.choice(words),
            )
            content = {} if text is None or (step != "enqueue" and self.chance(0.5)) else {"content": text}
            time = {"timestamp": self.tick()} if self.chance(0.9) else {}
            one = {"type": "queue-operation", "operation": step, **time, "sessionId": file.session, **content}
            file.records.append(one)
        if self.chance(0.2):
            given = {"type": "queued_command", "prompt": "Also TODO", "commandMode": "prompt"}
            self.add(file, "attachment", attachment=given)

    def sub_agent(self, file: Transcript) -> None:
        """Let a sub-agent respond: in a file of its own, in progress records only, or in both."""
        agent = self.id("a")
        own = Transcript("", file.session, file.project, file.branch, file.version, agent)
        where = self.random.choice(("file", "progress", "both"))
        if where != "progress":
            own.path = f"{file.path.removesuffix('.jsonl')}/subagents/agent-{agent}.jsonl"
            self.transcripts.append(own)
            self.prompt(own)
        for _ in range(self.random.randint(1, 3)):
            if where == "progress":
                self.respond(own, nested_in=file)
                continue
            before = len(own.records)
            self.respond(own)
            for record in own.records[before:] if where == "both" else ():
                if record["type"] == "assistant" and self.chance(0.7):  # the host does not repeat all of them
                    names = ("type", "timestamp", "message", "requestId", "uuid", "isApiErrorMessage")
                    self.progress(file, {name: record[name] for name in names if name in record}, agent)

    def talk(self, file: Transcript) -> None:
        for _ in range(self.random.randint(0, 3)):
            self.prompt(file)
            if self.chance(0.3):
                self.noise(file)
            for _ in range(self.random.randint(0, 2)):
                self.respond(file)
            if file.agent is None and self.chance(0.3):
                self.sub_agent(file)

    def copy_of(self, file: Transcript) -> Transcript:
        """Return a resumed or forked session that begins with lines of another one, with their old times."""
        way = self.random.choice(("fork", "renamed", "kept"))
        session = self.id(self.random.choice(("session-", "a-session-")))  # a path before or after the other one's
        found = self.begin(f"projects/p/{session}.jsonl", session)
        kept = len(file.records) if way != "fork" else self.random.randint(0, len(file.records))
        for record in copy.deepcopy(file.records[:kept]):
            if way != "kept" and "sessionId" in record:
                record["sessionId"] = session
            if way == "fork" and "uuid" in record:
                record["forkedFrom"] = {"sessionId": file.session, "messageUuid": record["uuid"]}
            found.records.append(record)
        return found


def grow_tree(random: Random) -> Tree:
    """Return a tree of one to three sessions, some of them resumed or forked."""
    grower = Grower(random)
    for _ in range(random.randint(1, 3)):
        grower.talk(grower.session())
    for _ in range(random.randint(0, 2)):
        mains = [file for file in grower.transcripts if file.agent is None]
        grower.talk(grower.copy_of(random.choice(mains)))
    files = [(file.path, encode(random, file.records)) for file in grower.transcripts]
    random.shuffle(files)
    return Tree(files, grower.billed)


def encode(random: Random, records: list[Record]) -> bytes:
    """Return the records as lines, mostly compact and in UTF-8, as the host writes them; some lines are repeated."""
    lines = []
    for record in records:
        if random.random() < 0.1:
            record = dict(random.sample(list(record.items()), len(record)))  # any order of keys
        style = random.random()
        if style < 0.8 and not holds_surrogate(record):
            text = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
        elif style < 0.9:
            text = json.dumps(record, separators=(",", ":")).replace("<", "\\u003c").replace("/", "\\/")
        elif style < 0.95:
            text = json.dumps(record)
        else:
            text = re.sub(r'"([a-z])([A-Za-z_]*)":', escaped_name, json.dumps(record))
        lines += [text.encode()] * (2 if random.random() < 0.05 else 1)
    end = b"\r\n" if random.random() < 0.1 else b"\n"
    return (b"\xef\xbb\xbf" if random.random() < 0.1 else b"") + b"".join(line + end for line in lines)


def escaped_name(name: re.Match[str]) -> str:
    """Return the name of a JSON member with an escape. No host writes it so."""
    return f'"\\u{ord(name[1]):04x}{name[2]}":'


def holds_surrogate(record: Record) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in json.dumps(record, ensure_ascii=False))


# ---- damage and cuts -----------------------------------------------------------


def damage(random: Random, data: bytes) -> bytes:
    """Return the lines of a file with some of them torn, joined, blank, not UTF-8, or filled with NULs.

    No line is torn behind a torn one: after two torn records, the beginning of the next one is not defined.
    """
    found: list[bytes] = []
    for line in data.splitlines(keepends=True):
        is_behind_torn = not found or not found[-1].endswith(b"\n")
        kind = 1.0 if is_behind_torn else random.random()
        if kind < 0.06:
            line = line[: random.randrange(len(line) + 1)]  # torn, the next record is on the same line
        elif kind < 0.1:
            line = line.rstrip(b"\r\n")  # }{
        elif kind < 0.13:
            line = line[: random.randrange(len(line) + 1)] + b"\0" * random.randint(1, 40) + b"\n"
        elif kind < 0.19:
            at = random.randrange(len(line) + 1)
            line = line[:at] + random.choice((b"\xff", b"\xe2\x82", b"\xc3", b"\xf0\x9f\x98")) + line[at:]
        elif kind < 0.22:
            line = random.choice((b"\n", b" \t\r\n", b"\0\0\n", b"[]\n", b"null\n", b'{"type":"new","x":1}\n')) + line
        found.append(line)
    whole = b"".join(found)
    return whole[: len(whole) - random.randint(0, min(len(whole), 300))] if random.random() < 0.3 else whole


def random_cuts(random: Random, size: int, max_step: int = 1 << 20) -> list[tuple[int, int]]:
    """Return ranges (start, end) that cover a file of `size` bytes, each from 1 to `max_step` bytes long."""
    found, start = [], 0
    while start < size:
        end = min(size, start + random.randint(1, random.randint(1, max_step)))
        found.append((start, end))
        start = end
    return found


# ---- other hosts ---------------------------------------------------------------


def codex_session(random: Random) -> bytes:
    """Return a session of Codex 0.169.0, with or without ordinals. It has no tokens: see codex_histories."""
    grower, records = Grower(random), []
    is_old = random.random() < 0.4

    def add(kind: str, **payload: Any) -> None:
        ordinal = {} if is_old else {"ordinal": len(records)}
        records.append({"timestamp": grower.tick(), **ordinal, "type": kind, "payload": payload})

    name = {"id" if is_old else "session_id": grower.id("codex-")}
    fork = {"forked_from_id": "codex-parent"} if random.random() < 0.3 else {}
    add("session_meta", **name, **fork, cwd="/home/me/src/app", cli_version="0.169.0", git={"branch": "main"})
    if fork:
        add("session_meta", session_id="codex-parent", cwd="/elsewhere")
    add("response_item", type="message", role="developer", content=[{"type": "input_text", "text": "TODO"}])
    for text in ("<environment_context>\n  <cwd>/p</cwd>", *random.choices(SENTENCES, k=random.randint(1, 4))):
        if random.random() < 0.5:
            add("turn_context", cwd=random.choice((*PROJECTS, None)), model=random.choice(("gpt-5-codex", "gpt-5")))
        add("response_item", type="message", role="user", content=[{"type": "input_text", "text": text}])
        add("response_item", type="reasoning", summary=[], encrypted_content="TODO")
        call = grower.id("call_")
        codex_call(random, add, call)
        code = random.randint(-1, 2)
        ended = f"Chunk ID: 1\nProcess exited with code {code}\nOutput:\nTODO"
        timed = f"Exit code: {code}\nWall time: 1.5 seconds\nOutput:\nTODO"
        packed = f'{{"output":"TODO","metadata":{{"exit_code":{code},"duration_seconds":0.1}}}}'
        output = random.choice(("TODO", ended, timed, packed, {"content": "TODO", "success": False}))
        add("response_item", type="function_call_output", call_id=call, output=output)
        words = [{"type": "output_text", "text": random.choice(SENTENCES)}]
        add("response_item", type="message", id=grower.id("msg_"), role="assistant", content=words)
        add("event_msg", type="token_count", info=None)
        if random.random() < 0.2:
            add(*random.choice(((("compacted",)), ("event_msg",))), type="stream_error", message="TODO")
    return encode(random, records)


def codex_call(random: Random, add: Any, call: str) -> None:
    """Write a call of a tool like Codex."""
    patch = "*** Begin Patch\n*** Update File: src/ä b.py \n@@\n-a\n+TODO\n*** End Patch"
    kind, members = random.choice(
        [
            ("function_call", {"name": "exec_command", "arguments": json.dumps({"cmd": "make test"})}),
            ("function_call", {"name": "shell", "arguments": json.dumps({"command": ["make", "test"]})}),
            ("function_call", {"name": "apply_patch", "arguments": json.dumps({"input": patch})}),
            ("function_call", {"name": "broken", "arguments": '{"cmd":'}),
            ("custom_tool_call", {"name": "apply_patch", "input": patch}),
            ("local_shell_call", {"status": "completed", "action": {"type": "exec", "command": ["make", "test"]}}),
        ]
    )
    add("response_item", type=kind, call_id=call, **members)


def gemini_session(random: Random) -> bytes:
    """Return a session of Gemini 0.61.0; a message is written again when it has more."""
    grower = Grower(random)
    records: list[Record] = [{"sessionId": grower.id("gemini-"), "projectHash": "76f3", "kind": "main"}]
    for text in ("<session_context>\nToday", *random.choices(SENTENCES, k=random.randint(1, 4))):
        records.append({"id": grower.id("m"), "timestamp": grower.tick(), "type": "user", "content": [{"text": text}]})
        words = {"id": grower.id("m"), "timestamp": grower.tick(), "type": "gemini", "model": "gemini-3-pro"}
        words["content"] = random.choice(SENTENCES)
        records.append(words)
        call = {"id": grower.id("call_"), "name": "run_shell_command", "args": {"command": "ls"}, "status": "success"}
        counts = {"input": 50, "output": random.randint(1, 9), "cached": 20, "thoughts": 4, "tool": 0, "total": 60}
        call["status"] = random.choice(("success", "error", "cancelled", "executing"))
        records.append({**words, "toolCalls": [{**call, "timestamp": grower.tick()}], "tokens": counts})
        if random.random() < 0.3:
            kind = random.choice(("info", "error", "warning"))
            records.append({"id": grower.id("m"), "timestamp": grower.tick(), "type": kind, "content": "TODO"})
        records.append({"$set": {"lastUpdated": grower.tick()}})
        if random.random() < 0.3:
            edited = {**words, "id": grower.id("m"), "content": random.choice(SENTENCES)}
            records.append({"$set": {"messages": [words, edited, {"type": "user", "content": "TODO"}]}})
    return encode(random, records)


def copilot_session(random: Random) -> bytes:
    """Return a session of Copilot 1.0.102."""
    grower, records = Grower(random), []

    def add(kind: str, agent: str | None = None, **data: Any) -> None:
        before = records[-1]["id"] if records else None
        record = {"type": kind, "data": data, "id": grower.id("e"), "timestamp": grower.tick(), "parentId": before}
        records.append(record | ({"agentId": agent} if agent else {}))

    context = {"cwd": "/home/me/src/app", "branch": "main"}
    session = grower.id("copilot-")
    add("session.start", sessionId=session, producer="copilot-agent", copilotVersion="1.0.102", context=context)
    for text in random.choices(SENTENCES, k=random.randint(1, 4)):
        if random.random() < 0.3:
            add("session.context_changed", cwd=random.choice(PROJECTS), branch=random.choice(("fix", "main")))
        add("user.message", content=text, **random.choice(({}, {}, {"isAutopilotContinuation": True})))
        call, agent = grower.id("call_"), random.choice((None, None, "agent-1"))
        requests = [{"toolCallId": call, "name": "bash", "arguments": {"command": "ls"}}]
        message, output = grower.id("msg_"), random.randint(1, 9)
        ids = {"apiCallId": grower.id("api_"), "requestId": grower.id("req_")} if random.random() < 0.5 else {}
        add("assistant.message", agent, messageId=message, content="", toolRequests=requests, **ids)
        done = random.random() < 0.5
        add("tool.execution_complete", agent, toolCallId=call, success=done, result={"content": "TODO"})
        add("assistant.message", agent, messageId=grower.id("msg_"), content=random.choice(SENTENCES), toolRequests=[])
        used = {"inputTokens": 90, "outputTokens": output, "cacheReadTokens": 20, "cacheWriteTokens": 3}
        add("session.usage_record", usage={"model": "gpt-5", **used})
        if random.random() < 0.2:
            add(random.choice(("session.error", "session.compaction_complete", "assistant.turn_end")))
    return encode(random, records)


def qwen_session(random: Random) -> bytes:
    """Return a session of Qwen Code 0.24.4."""
    grower, records = Grower(random), []
    session = grower.id("qwen-")
    is_fork = random.random() < 0.3

    def add(kind: str, **members: Any) -> None:
        before = records[-1]["uuid"] if records else None
        own = {
            "uuid": f"{random.getrandbits(64):016x}",
            "parentUuid": before,
            "sessionId": session,
            "timestamp": grower.tick(),
        }
        if is_fork:
            own["forkedFrom"] = {"sessionId": "qwen-0", "messageUuid": own["uuid"]}
        records.append({**own, "type": kind, "cwd": PROJECTS[0], "version": "0.24.4", **members})

    for text in random.choices(SENTENCES, k=random.randint(1, 5)):
        reminder = [{"text": "<system-reminder>\nTODO\n</system-reminder>"}] if random.random() < 0.3 else []
        add("user", message={"role": "user", "parts": [*reminder, {"text": text}]})
        if random.random() < 0.3:
            kind = random.choice(("notification", "cron", "mid_turn_user_message"))
            add("user", subtype=kind, message={"role": "user", "parts": [{"text": "TODO"}]})
        counts = {"input": random.randint(0, 60), "output": random.randint(0, 9), "cached_content": 20, "thoughts": 4}
        total = counts["input"] + counts["output"] + random.choice((0, 4))
        event = {f"{name}_token_count": count for name, count in {**counts, "total": total}.items()}
        event |= {
            "event.name": "qwen-code.api_response",
            "response_id": f"r{random.getrandbits(64):016x}",
            "model": "qwen3-coder",
        }
        add("system", subtype="ui_telemetry", systemPayload={"uiEvent": event})
        call = {"id": grower.id("call_"), "name": "run_shell_command", "args": {"command": "ls"}}
        parts = [{"text": "TODO", "thought": True}, {"text": random.choice(SENTENCES)}, {"functionCall": call}]
        add("assistant", model="qwen3-coder", message={"role": "model", "parts": parts}, usageMetadata={"total": 1})
        status = random.choice(("success", "error", "cancelled", None))
        response = {random.choice(("output", "error")): "TODO"}
        result = {"functionResponse": {"id": call["id"], "name": call["name"], "response": response}}
        about = {"toolCallResult": {"callId": call["id"], "status": status}} if status else {}
        add("tool_result", message={"role": "user", "parts": [result]}, **about)
        if random.random() < 0.3:
            subtype = random.choice(("chat_compression", "attribution_snapshot", "rewind"))
            add("system", subtype=subtype, systemPayload={})
    return encode(random, records)


OTHER_SESSIONS = {
    "codex": codex_session,
    "gemini": gemini_session,
    "copilot": copilot_session,
    "qwen": qwen_session,
}


# ---- strategies ----------------------------------------------------------------


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Trees of Claude Code sessions without damage."""
    return grow_tree(draw(st.randoms(use_true_random=False)))


@st.composite
def files(draw: st.DrawFn) -> list[tuple[str, bytes]]:
    """Trees with sessions of other hosts among them, some files damaged, some concatenated."""
    return mixed_files(draw(st.randoms(use_true_random=False)))


def host_files(random: Random) -> list[tuple[str, bytes]]:
    """Return sessions of other hosts, some damaged."""
    found = [(f"{host}/session.jsonl", session(random)) for host, session in OTHER_SESSIONS.items()]
    return [(path, damage(random, data) if random.random() < 0.4 else data) for path, data in found]


def mixed_files(random: Random) -> list[tuple[str, bytes]]:
    """Return the files of a tree and of other hosts, some damaged, some concatenated."""
    found = grow_tree(random).files
    for host, session in OTHER_SESSIONS.items():
        if random.random() < 0.4:
            found.append((f"{host}/session.jsonl", session(random)))
    found = [(path, damage(random, data) if random.random() < 0.4 else data) for path, data in found]
    if random.random() < 0.3:
        found.append(("archive/all.jsonl", b"".join(data for _, data in sorted(found))))
    return found
