"""Pictures of a transcript: a message as the tokenizer sees it, and the anatomy of a session's bytes."""
