"""Small histories as the hosts write them, each with its bill."""

from support import codex_histories, copilot_histories, gemini_histories

HISTORIES = {**codex_histories.HISTORIES, **copilot_histories.HISTORIES, **gemini_histories.HISTORIES}
