"""Alembic's entry point: the connection comes from `tailhook.plates.tables.migrate`."""

from alembic import context

from tailhook.plates.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=connection.dialect.name == "sqlite")
with context.begin_transaction():
    context.run_migrations()
