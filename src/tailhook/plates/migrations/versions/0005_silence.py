"""Adds since when a session shows no sign of what its status claims."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the column."""
    op.add_column("plates", sa.Column("silent_since", sa.BigInteger))


def downgrade() -> None:
    """Remove the column."""
    op.drop_column("plates", "silent_since")
