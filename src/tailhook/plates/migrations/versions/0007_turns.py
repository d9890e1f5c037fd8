"""Adds what a session was asked and answered, when its turn began and ended, and when a person saw that."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

TEXT_COLUMNS = "prompt", "reply"
TIME_COLUMNS = "prompted_at", "finished_at", "seen_at", "quiet_since"


def upgrade() -> None:
    """Add the columns."""
    for name in TEXT_COLUMNS:
        op.add_column("plates", sa.Column(name, sa.Text))
    for name in TIME_COLUMNS:
        op.add_column("plates", sa.Column(name, sa.BigInteger))


def downgrade() -> None:
    """Remove the columns."""
    for name in (*TEXT_COLUMNS, *TIME_COLUMNS):
        op.drop_column("plates", name)
