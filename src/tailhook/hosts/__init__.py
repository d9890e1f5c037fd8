"""Agent hosts: their settings files, the hooks in them, and whether these work."""
