"""tailhook answers coding-agent hooks in milliseconds, however huge the transcript."""

__version__ = "0.1.0"
