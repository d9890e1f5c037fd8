"""Adds how full a session's context is."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add the column."""
    op.add_column("plates", sa.Column("context_used", sa.Text))


def downgrade() -> None:
    """Remove the column."""
    op.drop_column("plates", "context_used")
