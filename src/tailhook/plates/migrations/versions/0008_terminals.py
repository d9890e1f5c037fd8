"""Adds the agent host of a session, and the terminal in which it runs."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the columns."""
    op.add_column("plates", sa.Column("agent_program", sa.Text))
    op.add_column("plates", sa.Column("terminal", sa.JSON))


def downgrade() -> None:
    """Remove the columns."""
    for name in ("agent_program", "terminal"):
        op.drop_column("plates", name)
