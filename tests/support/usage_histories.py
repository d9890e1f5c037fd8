"""Small histories as the hosts write them, each with its bill."""

from support import codex_histories, copilot_histories, gemini_histories

HISTORIES = {**codex_histories.HISTORIES, **copilot_histories.HISTORIES, **gemini_histories.HISTORIES}

# Those that only the oracle follows: the package reads no .json file, and gives a compaction the model of the turn
# before. What `tailhook usage` does not count, it reports.
NOT_FOLLOWED = {**codex_histories.NOT_FOLLOWED, **gemini_histories.NOT_FOLLOWED}
