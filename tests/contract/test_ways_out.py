"""The table "How to get out" has a way out of each machine and host; here a person goes each of them."""

import json
import re
from pathlib import Path

import pytest
from support.host import MEMORABLE, assistant, frame
from support.host_payloads import BY_HOST, name_of_field
from support.install import install, uninstall
from support.triage import entry, pipeline

from tailhook.hook.machines import MACHINES
from tailhook.hosts import DEFAULT, find_host
from tailhook.install.hooks_file import hooks_file_of

HOSTS = [DEFAULT, *BY_HOST]
PAGE = Path(__file__).parents[2] / "docs" / "troubleshooting.md"


def ways_out():
    """Return the table: the ways out by the name of the machine, or by the title of the host."""
    table = PAGE.read_text().partition("\n## How to get out\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| (.+?) \| (.+) \|$", table, re.MULTILINE)
    return {re.sub(r"\[(\w+)\]\(.*\)", r"\1", name): way for name, way in lines[1:]}


def spans(line):
    """Return the commands, files and variables in a line of the table."""
    return re.findall("`([^`]+)`", line)


class Agent:
    """An agent of a host in a session of the project.

    transcript: its own. Records of Claude Code's form stand for those of any host.
    """

    def __init__(self, project, host, session):
        self.project, self.host, self.session = project, host, session
        self.transcript = project.home / ("host.jsonl" if session == "mine" else "other.jsonl")
        self.transcript.write_text('{"type": "unknown"}\n')

    def payload(self, said, **fields):
        """Return the payload of a stop."""
        if self.host == DEFAULT:
            theirs = self.project.payload(last_assistant_message=said)
        else:
            theirs = BY_HOST[self.host](self.project, said)
        ours = {"session_id": self.session, "transcript_path": str(self.transcript)}
        return {**theirs, **{name_of_field(self.host, name): value for name, value in ours.items()}, **fields}

    def is_blocked(self, machine, said="Hm.", **fields):
        """Let the agent stop; return whether it must continue."""
        self.project.argv = [*self.project.argv[:-1], machine]
        payload = json.dumps(self.payload(said, **fields)).encode()
        stop = self.project.hook(payload, "--host", self.host, "--exit", "0")
        assert stop.exit_code == 0
        return bool(stop.stdout)


def hold(project, machine, agent):
    """Let a machine have a reason to block the agent's next stop; return its last message for it."""
    if machine == "idle":
        project.loop(frame(session_id="mine"))
    elif machine == "ralph":
        project.ralph(session_id='"mine"')
    elif machine == "triage":
        project.triage(pipeline("triage", entry(status="pending"), session_id="mine"))
    elif machine == "gate":
        rules = {"gate": {"rules": [{"edited": ["*.py"], "ran": "pytest"}]}}
        (project.folder / ".claude").mkdir(exist_ok=True)
        (project.folder / ".claude" / "tailhook.json").write_text(json.dumps(rules))
        edit = {"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": str(project.folder / "a.py")}}
        result = {"type": "tool_result", "tool_use_id": "t1", "content": "…", "is_error": False}
        records = [assistant(), {"type": "user", "message": {"role": "user", "content": [result]}}]
        records[0]["message"]["content"] = [edit]
        agent.transcript.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return MEMORABLE if machine == "memory" else "Hm."


def walk(project, way):
    """Do what a way out of a machine asks for."""
    if way.startswith("."):
        (project.folder / way).touch()
        return
    done = project.tailhook(*way.split()[1:])
    assert done.returncode == 0
    if way == "tailhook triage status":
        (path,) = re.findall(r"\S+_triage\.json", done.stdout)
        Path(path).unlink()


def test_each_machine_and_each_host_has_its_line():
    assert list(ways_out()) == [*MACHINES, *(find_host(name).TITLE for name in HOSTS)]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("machine", MACHINES)
def test_a_person_gets_out_of_each_machine_in_each_host_and_no_other_session_is_held(project, machine, host):
    mine, other = (Agent(project, host, session) for session in ("mine", "other"))
    line = ways_out()[machine]
    for way in spans(line) or [line]:
        said = hold(project, machine, mine)
        assert mine.is_blocked(machine, said) is not MACHINES[machine].get("reports", False)
        assert not other.is_blocked(machine)
        if way == line:
            again = {"loop_count": 1} if host == "cursor" else {"stop_hook_active": True}
            assert not mine.is_blocked(machine, said, **again)
        else:
            walk(project, way)
            assert not mine.is_blocked(machine, said)


@pytest.mark.parametrize("host", HOSTS)
def test_a_person_gets_out_of_each_host(project, host):
    mine = Agent(project, host, "mine")
    *variables, command = spans(ways_out()[find_host(host).TITLE])
    for machine in ("idle", "ralph", "triage", "memory"):
        said = hold(project, machine, mine)
        assert mine.is_blocked(machine, said)
        if variables:
            name, value = variables[0].split()[0].split("=")
            project.env[name] = value
            assert not mine.is_blocked(machine, said)
            del project.env[name]
        else:
            assert not mine.is_blocked(machine, said, status="aborted")
    options = command.split()[2:]
    file = hooks_file_of(host)
    path = project.home / file.folder / file.paths["user"]
    assert install(project, "--host", host, "--cold").returncode == 0
    assert "hook" in path.read_text()
    assert command.split()[:2] == ["tailhook", "uninstall"]
    assert uninstall(project, *options).returncode == 0
    assert not path.exists()
