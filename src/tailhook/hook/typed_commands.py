"""Reads the shell commands that a person typed with `!`, in a transcript of Claude Code."""

from tailhook._core import forward_lines, get_text, parse_json, reverse_lines
from tailhook.hook.payload import MAX_RECORD_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

TYPED_COMMAND = "<bash-input>"  # the beginning of the message of a person's `!command`
TYPED_COMMAND_END = "</bash-input>"
TYPED_OUTPUT = b"<bash-stdout>"  # the beginning of the next message, with its output
TYPED_FAILURE = b"<bash-stdout></bash-stdout>"  # the output of one that failed is all in its stderr
MAX_OUTPUT_DISTANCE = 1 << 16  # bytes between a command and its output


def typed_commands(fd: int, start: int, end: int | None) -> "Iterator[tuple[int, str]]":
    """Yield a person's commands with `!` that did not fail, and their offsets, in a part of an open transcript.

    The newest is yielded first.

    end: of the part; None for the file's end.
    """
    for offset, line in reverse_lines(fd, start, end, MAX_RECORD_BYTES, TYPED_COMMAND.encode()):
        try:
            record = parse_json(line)
        except ValueError:
            continue
        message = record.get("message") if isinstance(record, dict) and record.get("type") == "user" else None
        content = message.get("content") if isinstance(message, dict) else None
        blocks = content if isinstance(content, list) else [{"text": content}]
        for block in blocks:
            text = get_text(block, "text") if isinstance(block, dict) else ""
            if text.startswith(TYPED_COMMAND) and not has_typed_failed(fd, offset, len(line)):
                yield offset, text[len(TYPED_COMMAND) :].partition(TYPED_COMMAND_END)[0]


def has_typed_failed(fd: int, offset: int, size: int) -> bool:
    """Return whether a person's command has failed. Its record has no exit code, but an output.

    Claude Code (2.1.163, 2.1.329) writes stdout and stderr of a command that succeeded into stdout, or a few words if
    there is none.

    offset, size: of the line of the command.
    """
    end = offset + size + MAX_OUTPUT_DISTANCE
    output = next(forward_lines(fd, offset, end, MAX_RECORD_BYTES, TYPED_OUTPUT), None)
    return output is not None and TYPED_FAILURE in output[1]
