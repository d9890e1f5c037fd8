"""Small histories in the hosts' forms, each with its bill."""

from support import codex_histories, copilot_histories, gemini_histories, qwen_histories

HISTORIES = {
    **codex_histories.HISTORIES,
    **copilot_histories.HISTORIES,
    **gemini_histories.HISTORIES,
    **qwen_histories.HISTORIES,
}

# Only the oracle follows these: the package reads no .json file, and gives a compaction the model of the turn before.
# `tailhook usage` reports what it does not count.
NOT_FOLLOWED = {**codex_histories.NOT_FOLLOWED, **gemini_histories.NOT_FOLLOWED}
