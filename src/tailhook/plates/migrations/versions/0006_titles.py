"""Adds the title that the host gave a session."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the column."""
    op.add_column("plates", sa.Column("title", sa.Text))


def downgrade() -> None:
    """Remove the column."""
    op.drop_column("plates", "title")
