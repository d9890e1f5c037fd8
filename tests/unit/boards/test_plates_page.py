"""The files of the web board are those of the running daemon."""

import asyncio
import shutil

import httpx
import pytest

from tailhook import __version__
from tailhook.plates import app
from tailhook.plates.inbox import Inbox


@pytest.fixture
def served(database, tmp_path, monkeypatch):
    """Return a daemon's application whose files were removed after its start."""
    monkeypatch.setattr(app, "WEB", shutil.copytree(app.WEB, tmp_path / "web"))
    made = app.make_app(database, Inbox(tmp_path, database), app.Hub())
    shutil.rmtree(tmp_path / "web")
    return made


def get(served, path):
    """Return the answer of an application."""

    async def ask():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url="http://localhost") as client:
            return await client.get(path)

    return asyncio.run(ask())


def test_an_upgrade_or_a_removed_environment_changes_no_file_of_a_running_daemon(served):
    page = get(served, "/")
    assert f'<html lang="en" data-version="{__version__}">' in page.text
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for name in ("board.js", "board.css", "icon.svg"):
        answer = get(served, f"/web/{name}")
        assert answer.status_code == 200
        assert answer.content
    assert get(served, "/web/nothing").json() == {"error": "no such file"}
