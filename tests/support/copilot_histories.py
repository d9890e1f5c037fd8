"""Small histories in Copilot CLI's form, each with its bill, by a little model of its writer."""

from collections.abc import Callable

from support.oracles.host_usage import Response
from support.usage_history import Clock, History, written

FIELDS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")


class Copilot:
    """A session of Copilot, run by run.

    The bill has a row for each call with a record of its own. The other calls have one row for each run and model, at
    the shutdown. Of a killed run, only the outputs are known.
    """

    def __init__(self, session_id: str = "s"):
        self.now, self.session_id = Clock(), session_id
        self.events: list[dict] = []
        self.bill: list[Response] = []
        self.sums: dict[str, list[int]] = {}  # of the last shutdown
        self.unsaved: dict[str, list[int]] = {}  # of the records since then
        self.sequence = 0

    def write(self, kind: str, data: dict) -> str:
        """Append an event; return its time."""
        event = {"type": kind, "data": data, "id": f"{self.session_id}-{len(self.events)}", "timestamp": self.now()}
        self.events.append(event)
        return event["timestamp"]

    def run(self, version: str, *, takes_up: bool, records: bool, named: bool = True) -> "Copilot":
        """Start the session, or resume it.

        takes_up: whether the sums go on from the last shutdown (since 1.0.66).
        records: whether each call has a session.usage_record.
        named: whether messages have their model.
        """
        self.records, self.named = records, named
        self.spent: dict[str, list[int]] = {}
        self.messages: list[Response] = []
        if takes_up:
            self.spent = {model: list(sums) for model, sums in self.sums.items()}
            for model, sums in self.unsaved.items():
                self.add(self.spent, model, sums)
        if self.events:
            limits = {"sessionLimits": None} if takes_up else {}
            self.write("session.resume", {"resumeTime": "", "selectedModel": "gpt-5", **limits})
        else:
            about = {"sessionId": self.session_id, "copilotVersion": version, "selectedModel": "gpt-5"}
            self.write("session.start", {**about, "version": 1, "producer": "copilot-agent"})
        return self

    @staticmethod
    def add(sums: dict[str, list[int]], model: str, usage: list[int]) -> None:
        """Add a usage to the sums of a model."""
        sums[model] = [one + other for one, other in zip(sums.get(model, [0] * 4), usage, strict=True)]

    def call(self, taken: int, cached: int, written_to_it: int, given: int, model: str = "gpt-5") -> None:
        """Write the records of a call of the model. `taken` includes the tokens read from and written to the cache."""
        usage = [taken, given, cached, written_to_it]
        self.add(self.spent, model, usage)
        data: dict = {"messageId": f"m{len(self.events)}", "content": "", "toolRequests": []}
        if self.records:
            self.sequence += 1
            self.add(self.unsaved, model, usage)
            identity = {"sourceSessionId": self.session_id, "sequence": self.sequence, "usageId": f"u{self.sequence}"}
            record = {"model": model, **dict(zip(FIELDS, usage, strict=True)), "accounting": identity}
            self.bill.append(self.row(model, self.write("session.usage_record", {"usage": record}), usage))
        else:
            data["outputTokens"] = given
        if self.named:
            data["model"] = model
        at = self.write("assistant.message", data)
        self.messages.append(self.row(model, at, [0, given, 0, 0]))

    def row(self, model: str, at: str, usage: list[int]) -> Response:
        """Return a row of the bill."""
        taken, given, cached, written_to_it = usage
        return Response(
            "copilot", self.session_id, model, at, taken - cached - written_to_it, given, cached, written_to_it
        )

    def end(self) -> None:
        """Shut down."""
        metrics = {
            model: {"requests": {"count": 1, "cost": 0}, "usage": dict(zip(FIELDS, sums, strict=True))}
            for model, sums in self.spent.items()
        }
        at = self.write("session.shutdown", {"shutdownType": "routine", "modelMetrics": metrics})
        if not self.records:
            before = self.sums if self.takes_up() else {}
            for model, sums in self.spent.items():
                rest = [one - other for one, other in zip(sums, before.get(model, [0] * 4), strict=True)]
                if any(rest):
                    self.bill.append(self.row(model, at, rest))
        self.sums, self.unsaved = self.spent, {}

    def takes_up(self) -> bool:
        """Return whether the run took up the sums of the last shutdown."""
        resumes = [event for event in self.events if event["type"] == "session.resume"]
        return bool(resumes) and "sessionLimits" in resumes[-1]["data"]

    def kill(self) -> None:
        """End the run without a shutdown."""
        if not self.records:
            self.bill += self.messages

    def history(self) -> History:
        """Return the file and the bill."""
        return History("copilot", {"events.jsonl": written(self.events)}, self.bill)


def copilot_shutdown_only() -> History:
    """Return a run of two models without records."""
    copilot = Copilot().run("1.0.34", takes_up=False, records=False, named=False)
    copilot.call(1230, 200, 0, 50)
    copilot.call(1231, 200, 0, 51)
    copilot.call(5000, 100, 0, 9, model="haiku")
    copilot.end()
    return copilot.history()


def copilot_resumed(*, takes_up: bool) -> History:
    """Return three runs with a shutdown each; the third is larger than the first two together."""
    copilot = Copilot()
    for size in (1000, 2000, 9000):
        copilot.run("1.0.78" if takes_up else "1.0.61", takes_up=takes_up, records=False)
        copilot.call(size, 200, 30, size // 10)
        copilot.call(size + 1, 200, 30, size // 10, model=f"model-{size > 1000}")
        copilot.end()
    return copilot.history()


def copilot_upgraded(*, records: bool) -> History:
    """Return two runs of 1.0.61, and two of a later version. It takes up only the sums of the second."""
    copilot = Copilot()
    for size in (1000, 2000):
        copilot.run("1.0.61", takes_up=False, records=False).call(size, 200, 30, 50)
        copilot.end()
    for size in (3000, 100):
        copilot.run("1.0.61", takes_up=True, records=records).call(size, 50, 3, 60)
        copilot.end()
    return copilot.history()


def copilot_killed(*, records: bool) -> History:
    """Return a killed run, one with its shutdown, and an unfinished one."""
    copilot = Copilot().run("1.0.78", takes_up=False, records=records)
    copilot.call(1230, 200, 30, 50)
    copilot.kill()
    copilot.run("1.0.78", takes_up=True, records=records).call(1232, 200, 30, 52)
    copilot.end()
    copilot.run("1.0.78", takes_up=True, records=records).call(1500, 200, 30, 53)
    copilot.kill()
    return copilot.history()


def copilot_records() -> History:
    """Return two runs with a session.usage_record for each call."""
    copilot = Copilot()
    for size in (1000, 2000):
        copilot.run("1.0.102", takes_up=True, records=True).call(size, 200, 30, 50)
        copilot.call(size, 200, 30, 50)
        copilot.end()
    return copilot.history()


def copilot_back_to_an_older_version() -> History:
    """Return a run with records, and one of a version without them; the latter takes up the sums of the former."""
    copilot = Copilot()
    for size, records in ((1000, True), (2000, False), (3000, True)):
        copilot.run("1.0.102", takes_up=True, records=records).call(size, 200, 30, 50)
        copilot.end()
    return copilot.history()


def copilot_killed_and_resumed_by_an_older_version() -> History:
    """Return a killed run with records, and one of 1.0.61 without any earlier sums."""
    copilot = Copilot().run("1.0.102", takes_up=False, records=True)
    copilot.call(1230, 200, 30, 50)
    copilot.kill()
    copilot.unsaved = {}
    copilot.run("1.0.102", takes_up=False, records=False).call(1232, 200, 30, 52)
    copilot.end()
    copilot.run("1.0.102", takes_up=True, records=True).call(1233, 200, 30, 53)
    copilot.end()
    return copilot.history()


def copilot_killed_without_names() -> History:
    """Return a killed run of 1.0.34: its messages have no model, only session.model_change has."""
    copilot = Copilot().run("1.0.34", takes_up=False, records=False, named=False)
    copilot.write("session.model_change", {"newModel": "gpt-6"})
    copilot.call(1230, 200, 0, 50, model="gpt-6")
    copilot.kill()
    return copilot.history()


HISTORIES: dict[str, Callable[[], History]] = {
    "copilot, shutdown only": copilot_shutdown_only,
    "copilot, sums of each run": lambda: copilot_resumed(takes_up=False),
    "copilot, sums that go on": lambda: copilot_resumed(takes_up=True),
    "copilot, upgraded": lambda: copilot_upgraded(records=False),
    "copilot, upgraded, with records": lambda: copilot_upgraded(records=True),
    "copilot, killed": lambda: copilot_killed(records=False),
    "copilot, killed, with records": lambda: copilot_killed(records=True),
    "copilot, records": copilot_records,
    "copilot, back to an older version": copilot_back_to_an_older_version,
    "copilot, killed, resumed by an older version": copilot_killed_and_resumed_by_an_older_version,
    "copilot, killed, without names": copilot_killed_without_names,
}
