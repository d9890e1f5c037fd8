"""Adds whether a plate's process is a guess, and the daemon that looks after the plate."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the columns."""
    op.add_column("plates", sa.Column("pid_is_guess", sa.Boolean))
    op.add_column("plates", sa.Column("keeper", sa.Text))


def downgrade() -> None:
    """Remove the columns."""
    op.drop_column("plates", "keeper")
    op.drop_column("plates", "pid_is_guess")
