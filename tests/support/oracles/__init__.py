"""Slow and simple second versions of parts of the package; they share no code with it."""
