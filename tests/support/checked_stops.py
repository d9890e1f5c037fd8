"""Generated sessions that claim to be done. Each has a label, from the way in which it was built."""

from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from support.checked_sessions import Agent

# For each check: lines with proof of its success, then lines without.
CHECKS = {
    "pytest -q": (
        ["pytest -q", "cd src && pytest -q -x", ".venv/bin/pytest -q", "set -o pipefail; pytest -q | tail -3",
         "uv run pytest -q tests", "(pytest -q)", "timeout 60 pytest -q", "pytest -q > log 2>&1"],
        ["pytest -q | tail -3", "pytest -q || true", "pytest -q; echo done", "echo pytest -q", "pytest -q --version",
         "pip install pytest -q", "pytest", "if pytest -q; then echo ok; fi"],
    ),
    "npm test": (
        ["npm test", "npm run test", "npm --prefix web test", "cd web && npm test", "npm test && echo ok"],
        ["npm test | tee log", "npm install test", "npm test; true", "npm run tests", "grep 'npm test' README.md"],
    ),
    "make check": (
        ["make check", "make -j4 lint check", "make -C src check"],
        ["make -n check", "make check || echo failed", "make", "# make check"],
    ),
}  # fmt: skip
NOISE = ["git status", "ls -la", "sed -i s/a/b/ src/app.py", "cat src/app.py"]
EDITING = ["Edit", "Write", "MultiEdit", "NotebookEdit"]
MATCHING = ["src/app.py", "tests/test_app.py", "/elsewhere/shared.py"]
OTHERS = ["README.md", "web/app.js", "/elsewhere/notes.txt"]
STEP_S = 3  # seconds between two things that happen


@dataclass
class CheckedStop:
    """A stop at which the agent writes its signal.

    frame: the fields of its loop.  payload: more fields of the stop.
    missing: the check that the reason must name, "" if the end counts.
    since: what the reason must name as the newest edit; "" for the loop's beginning.
    kind: how it was built.
    """

    transcript: Path
    frame: dict
    kind: str
    missing: str = ""
    since: str = ""
    payload: dict = field(default_factory=dict)
    now: float = 0


class Story:
    """A session in which one thing happens after the other, before and after a loop's beginning."""

    def __init__(self, random: Random, folder: Path, began: float) -> None:
        self.random = random
        self.at = began - 600
        self.began = began
        self.main = Agent(folder / "home" / "mine.jsonl", folder / "project")
        helpers = [self.main.sub_agent("a1"), self.main.sub_agent("b2"), self.main.sub_agent("c3", "workflows/w1")]
        self.agents = [self.main, *random.sample(helpers, random.randrange(4))]
        self.checks = random.sample(list(CHECKS), random.randint(1, 3))
        self.files = random.choice([[], ["*.py"]])
        self.main.write_words("I begin.", self.at)

    def step(self) -> float:
        """Let time pass; return the time."""
        self.at += STEP_S
        return self.at

    def agent(self) -> Agent:
        """Return one of the agents."""
        return self.random.choice(self.agents)

    def edit(self, paths: list[str] | None = None, agent: Agent | None = None, **more) -> str:
        """Edit a file that needs the checks again; return its path."""
        path = self.random.choice(paths or (MATCHING if self.files else MATCHING + OTHERS))
        (agent or self.agent()).edit(path, self.step(), self.random.choice(EDITING), **more)
        return path

    def succeed(self, check: str, agent: Agent | None = None) -> None:
        """Run a check with success: in the line, in the background, or typed by the person."""
        agent = agent or self.agent()
        line = self.random.choice(CHECKS[check][0])
        way = self.random.randrange(8)
        if way == 0 and agent is self.main:
            agent.type_command(line, self.step())
        elif way == 1:
            task = f"b{self.random.randrange(10**9)}"
            use_id = agent.begin(line, self.step(), task)
            agent.notice(use_id, self.step(), task, 0)
        else:
            agent.run(line, self.step())

    def fail(self, check: str) -> None:
        """Run a check without evidence of success."""
        good, bad = CHECKS[check]
        agent, way = self.agent(), self.random.randrange(3)
        if way == 0:
            agent.run(self.random.choice(good), self.step(), failed=True)
        elif way == 1:
            agent.run(self.random.choice(bad), self.step())
        else:
            task = f"b{self.random.randrange(10**9)}"
            use_id = agent.begin(self.random.choice(good), self.step(), task)
            agent.notice(use_id, self.step(), task, 1)

    def idle_about(self) -> None:
        """Do what has nothing to do with the checks."""
        agent, way = self.agent(), self.random.randrange(5)
        if way == 0:
            agent.run(self.random.choice(NOISE), self.step())
        elif way == 1:
            agent.use("Read", self.step(), file_path="src/app.py")
        elif way == 2:
            agent.write_words("`pytest -q`, `npm test` and `make check` pass.", self.step())
        elif way == 3:
            self.edit(failed=True)
        elif self.files:
            agent.edit(self.random.choice(OTHERS), self.step())

    def mix(self, checks: list[str]) -> None:
        """Do anything; of the checks, only some of these succeed."""
        for _ in range(self.random.randrange(8)):
            way = self.random.randrange(5)
            if way == 0:
                self.edit()
            elif way == 1 and checks:
                self.succeed(self.random.choice(checks))
            elif way == 2:
                self.fail(self.random.choice(self.checks))
            elif way == 3 and self.random.random() < 0.2:
                self.main.compact(self.step(), self.random.randrange(30))
            else:
                self.idle_about()

    def rest(self) -> None:
        """Do what changes nothing about the checks, and fail some."""
        for _ in range(self.random.randrange(4)):
            self.random.choice([self.idle_about, lambda: self.fail(self.random.choice(self.checks))])()

    def prove(self) -> None:
        """Run each check with success, in any order."""
        for check in self.random.sample(self.checks, len(self.checks)):
            self.succeed(check)
            self.rest()


def labelled_stop(random: Random, folder: Path, began: float) -> CheckedStop:
    """Write a session, and return its last stop."""
    story = Story(random, folder, began)
    story.mix(story.checks)
    if random.random() < 0.5:
        story.prove()
    story.at = began + 1
    kind = random.choice([*PROVEN, *REFUSED])
    missing, since, payload = KINDS[kind](story)
    frame = {"checks": story.checks, **({"check_files": story.files} if story.files else {})}
    return CheckedStop(story.main.path, frame, kind, missing, since, payload, story.at + 60)


def proven(story: Story) -> tuple[str, str, dict]:
    """Prove all checks behind anything."""
    story.mix(story.checks)
    story.prove()
    return "", "", {}


def proven_between(story: Story) -> tuple[str, str, dict]:
    """Prove all, and go on with what is not an edit of a file that matters; a compaction repeats old edits."""
    story.mix(story.checks)
    story.prove()
    story.rest()
    story.main.compact(story.step(), 20)
    story.rest()
    return "", "", {}


def proven_by_sub_agents(story: Story) -> tuple[str, str, dict]:
    """Let another agent prove what the agent has edited."""
    helper = story.main.sub_agent("d4")
    story.mix(story.checks)
    story.edit(agent=story.main)
    for check in story.checks:
        story.succeed(check, helper)
    return "", "", {}


def never_ran(story: Story) -> tuple[str, str, dict]:
    """Prove all but one check, without an edit since the loop began."""
    left_out = story.random.choice(story.checks)
    for check in story.checks:
        if check != left_out:
            story.succeed(check)
    story.rest()
    return left_out, "", {}


def not_since_the_edit(story: Story) -> tuple[str, str, dict]:
    """Prove all, edit, and prove all but one again."""
    left_out = story.random.choice(story.checks)
    story.mix(story.checks)
    story.prove()
    path = story.edit()
    for check in story.checks:
        if check != left_out:
            story.succeed(check)
    story.rest()
    return left_out, path, {}


def edited_by_a_sub_agent(story: Story) -> tuple[str, str, dict]:
    """Prove all; then a sub-agent that has begun before edits."""
    helper = story.main.sub_agent("d4")
    story.edit(agent=helper)
    story.prove()
    return story.checks[0], story.edit(agent=helper), {}


def edited_meanwhile(story: Story) -> tuple[str, str, dict]:
    """Let a sub-agent edit while the checks run."""
    helper = story.main.sub_agent("d4")
    story.mix(story.checks)
    begun = story.step()
    path = story.edit(agent=helper)
    story.main.run(CHECKS[story.checks[0]][0][0], begun, takes=30)
    return story.checks[0], path, {}


def still_runs(story: Story) -> tuple[str, str, dict]:
    """Begin a check in the background, and stop before its end."""
    path = story.edit()
    story.main.begin(CHECKS[story.checks[0]][0][0], story.step(), "b777")
    task = {"id": "b777", "type": "shell", "status": "running", "command": story.checks[0]}
    return story.checks[0], path, {"background_tasks": [task]}


def proven_in_another_session(story: Story) -> tuple[str, str, dict]:
    """Let an agent of another session run the checks."""
    path = story.edit()
    other = Agent(story.main.path.with_name("other.jsonl"), story.main.folder, "other")
    for check in story.checks:
        story.succeed(check, story.random.choice([other, other.sub_agent("e5")]))
    return story.random.choice(story.checks), path, {}


PROVEN = ["proven", "proven_between", "proven_by_sub_agents"] * 2
REFUSED = [
    *("never_ran", "not_since_the_edit", "edited_by_a_sub_agent", "edited_meanwhile", "still_runs"),
    "proven_in_another_session",
]
KINDS = {name: globals()[name] for name in {*PROVEN, *REFUSED}}
