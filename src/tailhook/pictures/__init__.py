"""Pictures of a transcript: a message with its code, signals and keywords, and the anatomy of a session's bytes."""
