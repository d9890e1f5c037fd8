"""Checks of an installation: the hooks, the loops, the daemon and its database."""
