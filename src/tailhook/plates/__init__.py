"""The plates daemon: keeps the status of every session, and shows it."""
