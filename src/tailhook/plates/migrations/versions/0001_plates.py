"""Plates, their events, and how far the spool is read."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "plates",
        sa.Column("session_id", sa.Text, primary_key=True),
        sa.Column("project_path", sa.Text, nullable=False),
        sa.Column("transcript_path", sa.Text),
        sa.Column("git_branch", sa.Text),
        sa.Column("status", sa.Text, nullable=False, index=True),
        sa.Column("last_event_type", sa.Text),
        sa.Column("last_tool", sa.Text),
        sa.Column("todo_progress", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("run_id", sa.Text, index=True),
        sa.Column("pid", sa.BigInteger),
        sa.Column("pid_started", sa.Float),
        sa.Column("host", sa.Text),
        sa.Column("user", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False, index=True),
        sa.Column("event_ts", sa.BigInteger, nullable=False),
        sa.Column("event_mono", sa.BigInteger),
        sa.Column("version", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("event_id", sa.Text, nullable=False, unique=True),
        sa.Column(
            "session_id", sa.Text, sa.ForeignKey("plates.session_id", ondelete="CASCADE"), nullable=False, index=True
        ),
        sa.Column("event_type", sa.Text, nullable=False),
        sa.Column("tool_name", sa.Text),
        sa.Column("tool_params", sa.JSON),
        sa.Column("error", sa.Text),
        sa.Column("ts", sa.BigInteger, nullable=False),
        sa.Column("received_at", sa.BigInteger, nullable=False),
        sa.Column("status", sa.Text),
    )
    op.create_table(
        "spool",
        sa.Column("file", sa.Text, primary_key=True),
        sa.Column("offset", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    """Remove the tables."""
    for name in ("spool", "events", "plates"):
        op.drop_table(name)
