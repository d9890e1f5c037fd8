"""Adds when a status began, what a session waits for, and events of unknown types that begin no plate."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the columns and the table. The last change of a plate is the best guess of when its status began."""
    op.add_column("plates", sa.Column("since", sa.BigInteger, nullable=False, server_default="0"))
    op.execute("UPDATE plates SET since = updated_at")
    op.add_column("plates", sa.Column("transcript_size", sa.BigInteger))
    op.add_column("plates", sa.Column("tools", sa.JSON))
    op.add_column("plates", sa.Column("beneath", sa.Text))
    op.add_column("plates", sa.Column("unprompted", sa.Boolean))
    op.add_column("events", sa.Column("tool_use_id", sa.Text))
    op.add_column("events", sa.Column("agent_id", sa.Text))
    op.create_table(
        "unknown_events",
        sa.Column("event_id", sa.Text, primary_key=True),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("event_type", sa.Text, nullable=False),
        sa.Column("ts", sa.BigInteger, nullable=False),
        sa.Column("received_at", sa.BigInteger, nullable=False, index=True),
    )


def downgrade() -> None:
    """Remove the columns and the table."""
    op.drop_table("unknown_events")
    for name in ("agent_id", "tool_use_id"):
        op.drop_column("events", name)
    for name in ("unprompted", "beneath", "tools", "transcript_size", "since"):
        op.drop_column("plates", name)
