"""A second counter of token usage, from the hosts' own sources; it shares no code with the package.

Each rule names its source: the host's own code, or a real host's files in front of a model with a known bill. The
counter is slow and plain: it reads every file whole, with the json module.
"""

from pathlib import Path

from support.oracles.usage_codex import codex
from support.oracles.usage_copilot import copilot
from support.oracles.usage_gemini import gemini
from support.oracles.usage_qwen import qwen
from support.oracles.usage_rows import Response

HOSTS = {"codex": codex, "copilot": copilot, "gemini": gemini, "qwen": qwen}

__all__ = ["HOSTS", "Response", "responses"]


def responses(host: str, files: list[Path]) -> list[Response]:
    """Return each billed response of the files once.

    files: transcripts of a host. Originals, forks, sub-agents and resumed ones of one history belong together.
    """
    return HOSTS[host](files)
