"""Small histories as the hosts write them, each with its bill."""

from support import codex_histories, copilot_histories, gemini_histories

HISTORIES = {**codex_histories.HISTORIES, **copilot_histories.HISTORIES, **gemini_histories.HISTORIES}

# Those that only the oracle follows: the package reads no .json file, gives a compaction the model of the turn before,
# and does not know that a `history_base` may name a file of a reverted thread.
NOT_FOLLOWED = {**codex_histories.NOT_FOLLOWED, **gemini_histories.NOT_FOLLOWED}
