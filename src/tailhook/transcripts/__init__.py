"""One transcript: its records and messages, from a file, an open file or a URL, and while it grows."""
