"""Adds the waits for a person that have ended."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the table, with the waits in the stored events: each lasts until the next event that changed the session."""
    op.create_table(
        "waits",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column(
            "session_id", sa.Text, sa.ForeignKey("plates.session_id", ondelete="CASCADE"), nullable=False, index=True
        ),
        sa.Column("begun_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger, nullable=False, index=True),
    )
    op.execute(
        """
        INSERT INTO waits (session_id, begun_at, ended_at)
        SELECT session_id, ts, next_ts FROM (
            SELECT session_id, status, ts, LEAD(ts) OVER (PARTITION BY session_id ORDER BY id) AS next_ts
            FROM events WHERE status IS NOT NULL
        ) AS steps
        WHERE status IN ('awaiting_input', 'awaiting_approval') AND next_ts > ts
        """
    )


def downgrade() -> None:
    """Remove the table."""
    op.drop_table("waits")
