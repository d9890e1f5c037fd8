"""Pictures of a transcript: a message as the tokenizer sees it, and where a session's bytes are."""
