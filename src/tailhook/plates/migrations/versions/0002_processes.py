"""Which process of a plate is a guess."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column."""
    op.add_column("plates", sa.Column("pid_is_guess", sa.Boolean))


def downgrade() -> None:
    """Remove it."""
    op.drop_column("plates", "pid_is_guess")
