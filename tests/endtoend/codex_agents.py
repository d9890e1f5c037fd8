"""What the model for Codex calls to work with sub-agents, in the two forms that Codex 0.169 has."""

import json

from model import use


class FirstTools:
    """The tools of Codex for sub-agents, in the form that it offers to most models."""

    settings = "[agents]\nmax_depth = 2\n"

    @staticmethod
    def spawn(task, fork, **more):
        """Spawn a sub-agent.  fork: whether it has its parent's history."""
        return [use("spawn_agent", message=task, fork_context=fork, **more)]

    @staticmethod
    def wait(agent):
        """Wait for an agent.  agent: the result of `spawn`."""
        return [use("wait_agent", targets=[json.loads(agent)["agent_id"]], timeout_ms=60_000)]

    @staticmethod
    def ask(agent, task):
        """Give an agent another task."""
        return [use("send_input", target=json.loads(agent)["agent_id"], message=task)]

    @staticmethod
    def kill(agent):
        """End an agent while it works."""
        return [use("close_agent", target=json.loads(agent)["agent_id"])]


class SecondTools:
    """The tools of Codex for sub-agents with names (multi_agent_v2)."""

    settings = "[features]\nmulti_agent_v2 = true\n"

    @staticmethod
    def spawn(task, fork, **more):
        """Spawn a sub-agent.  fork: whether it has its parent's history."""
        turns = "all" if fork else "none"
        return [use("spawn_agent", task_name="helper", message=task, fork_turns=turns, **more)]

    @staticmethod
    def wait(agent):
        """Wait for any agent."""
        return [use("wait_agent", timeout_ms=60_000)]

    @staticmethod
    def ask(agent, task):
        """Give an agent another task.  agent: the result of `spawn`."""
        return [use("followup_task", target=json.loads(agent)["task_name"], message=task)]

    @staticmethod
    def kill(agent):
        """End an agent while it works."""
        return [use("interrupt_agent", target=json.loads(agent)["task_name"])]


def by_agent(*scripts):
    """Return answers to several agents. The n-th agent that asks gets those of the n-th script.

    scripts: generator functions. They take the agent's first request, yield answers, and get the further requests.
    """
    running, waiting = {}, iter(scripts)

    def answer(request):
        agent = request.body["thread_id"]
        try:
            if agent in running:
                return running[agent].send(request)
            running[agent] = next(waiting)(request)  # 0.150.1 has an agent of its own for a title
            return next(running[agent])
        except StopIteration:
            return "There is nothing more to do."

    return [answer] * 100


def result_of(request):
    """Return what the newest tool returned."""
    return [one["output"] for one in request.messages if one.get("type") == "function_call_output"][-1]
