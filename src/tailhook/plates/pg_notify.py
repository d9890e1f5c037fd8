"""Receives the changes that other daemons make in the same PostgreSQL database."""

import asyncio
import logging
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from tailhook.plates.db import CHANNEL, Database
from tailhook.plates.hub import Hub
from tailhook.plates.tables import server_options

log = logging.getLogger("tailhook.plates")

RELISTEN_DELAY_S = 1.0  # after a lost connection


async def listen(database: Database, hub: Hub) -> None:
    """Publish every change that another daemon announces, for ever."""
    import psycopg  # only installed if PostgreSQL is used

    url = database.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    options: Any = server_options(database.engine.url)
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(url, autocommit=True, **options) as connection:
                await connection.execute(f"LISTEN {CHANNEL}")
                # Changes announced before this are missed, so listeners have to begin again.
                await hub.load(lambda: asyncio.to_thread(database.session_projects))
                hub.restart()
                async for note in connection.notifies():
                    await asyncio.to_thread(database.on_notify, note.payload)
        except Exception as error:
            is_foreseen = isinstance(error, (psycopg.Error, SQLAlchemyError, OSError))
            log.warning("cannot listen to the other daemons: %s", error, exc_info=None if is_foreseen else error)
            await asyncio.sleep(RELISTEN_DELAY_S)
