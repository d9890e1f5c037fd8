"""Slow and simple second versions of what the package does; they share no code with it."""
