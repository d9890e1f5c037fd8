"""The board in the terminal."""
