"""What other daemons on the same PostgreSQL changed, told to this one's listeners."""

import asyncio
import logging

from sqlalchemy.exc import SQLAlchemyError

from tailhook.plates.app import Hub
from tailhook.plates.db import CHANNEL, Database

log = logging.getLogger("tailhook.plates")

AGAIN = 1.0  # seconds after a lost connection


async def hear(database: Database, hub: Hub) -> None:
    """Tell of every change that another daemon announces, for ever."""
    import psycopg  # there where the database is

    url = database.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
                await connection.execute(f"LISTEN {CHANNEL}")
                # Changes that were announced before are missed, so listeners have to begin again.
                hub.names.load(await asyncio.to_thread(database.project_paths))
                hub.put(None)
                async for note in connection.notifies():
                    await asyncio.to_thread(database.heard, note.payload)
        except Exception as error:
            is_foreseen = isinstance(error, (psycopg.Error, SQLAlchemyError, OSError))
            log.warning("the other daemons cannot be heard: %s", error, exc_info=None if is_foreseen else error)
            await asyncio.sleep(AGAIN)
