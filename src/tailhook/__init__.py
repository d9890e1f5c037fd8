"""tailhook answers coding-agent hooks in milliseconds, however huge the transcript."""

__version__ = "0.1.0"
__all__ = [
    "Match",
    "MissingExtraError",
    "PatternSet",
    "Record",
    "ResumeError",
    "Scan",
    "SourceError",
    "Span",
    "TailhookError",
    "ToolResult",
    "ToolUse",
    "Transcript",
    "TranscriptMessage",
    "Usage",
    "code_spans",
    "open",
    "scan",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tailhook._core import Record, ToolUse
    from tailhook.errors import MissingExtraError, ResumeError, SourceError, TailhookError
    from tailhook.fleet.scan import Scan, scan
    from tailhook.patterns.sets import Match, PatternSet, Span, code_spans
    from tailhook.transcripts.messages import TranscriptMessage
    from tailhook.transcripts.records import ToolResult, Usage
    from tailhook.transcripts.transcript import Transcript, open  # noqa: A004

_HOMES = {
    "MissingExtraError": "errors",
    "ResumeError": "errors",
    "SourceError": "errors",
    "TailhookError": "errors",
    "Scan": "fleet.scan",
    "scan": "fleet.scan",
    "TranscriptMessage": "transcripts.messages",
    "Match": "patterns.sets",
    "PatternSet": "patterns.sets",
    "Span": "patterns.sets",
    "code_spans": "patterns.sets",
    "ToolResult": "transcripts.records",
    "Usage": "transcripts.records",
    "Record": "transcripts.transcript",
    "ToolUse": "transcripts.transcript",
    "Transcript": "transcripts.transcript",
    "open": "transcripts.transcript",
}


def __dir__() -> list[str]:
    """Return all names, even before they are loaded: an editor completes them."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    """Load a public name when it is first used: the hook imports this package and none of them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
