"""Adds hidden sessions, an agent's folder, agents in the background, and the number of events by type."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the columns, the table and the index of the retention. A session began at the latest with its status."""
    op.add_column("plates", sa.Column("folder", sa.Text))
    op.add_column("plates", sa.Column("background", sa.BigInteger))
    op.add_column("plates", sa.Column("hidden_at", sa.BigInteger))
    op.execute("UPDATE plates SET created_at = since WHERE since BETWEEN 1 AND created_at")
    op.create_index("ix_events_received_at", "events", ["received_at"])
    op.create_table(
        "event_counts",
        sa.Column("event_type", sa.Text, primary_key=True),
        sa.Column("count", sa.BigInteger, nullable=False),
    )
    op.execute(
        "INSERT INTO event_counts (event_type, count) SELECT event_type, COUNT(*) FROM"
        " (SELECT event_type FROM events UNION ALL SELECT event_type FROM unknown_events) AS stored GROUP BY event_type"
    )


def downgrade() -> None:
    """Remove the columns, the table and the index."""
    op.drop_table("event_counts")
    op.drop_index("ix_events_received_at", "events")
    for name in ("hidden_at", "background", "folder"):
        op.drop_column("plates", name)
