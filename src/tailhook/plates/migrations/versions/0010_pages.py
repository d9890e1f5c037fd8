"""Adds the index of the pages of plates in one status, newest change first."""

from alembic import op

revision = "0010"
down_revision = "0009"
INDEX = "ix_plates_status_updated_at"


def upgrade() -> None:
    """Put it in place of the index of the statuses alone."""
    op.create_index(INDEX, "plates", ["status", "updated_at", "session_id"])
    op.drop_index("ix_plates_status", "plates")


def downgrade() -> None:
    """Put the old one back."""
    op.create_index("ix_plates_status", "plates", ["status"])
    op.drop_index(INDEX, "plates")
