"""Many transcripts: one question, answered by local threads or by a distributed engine."""
