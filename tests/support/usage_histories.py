"""Small histories as the hosts write them, each with its bill."""

from support import codex_histories

HISTORIES = {**codex_histories.HISTORIES}
