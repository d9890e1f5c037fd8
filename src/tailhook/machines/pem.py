"""Private keys in PEM (RFC 7468, RFC 1421), masked whole. Loaded only for a text that holds one's beginning."""

MAX_LABEL_CHARS = 64  # characters of a PEM block's label
MIN_LINE_CHARS = 16  # of base 64 on each line of a key except the last one
BLANK = " \t\r\n"


def mask_keys(text: str, mask: str) -> str:
    """Return a text with `mask` in place of each private key: up to -----END …-----, or as much as there is."""
    parts: list[str] = []
    done = at = 0
    has_end = True  # False after a failed search: the next one would take as long again
    while (start := text.find("-----BEGIN ", at)) >= 0:
        label, dashes, _ = text[start + 11 : start + 11 + MAX_LABEL_CHARS].partition("-----")
        at = body = start + 11 + len(label) + 5
        if not dashes or "KEY" not in label:
            at = start + 11
            continue
        end = text.find("-----END", body) if has_end else -1
        has_end = end >= 0
        close = text.find("-----", end + 8) if end >= 0 else -1
        at = close + 5 if close >= 0 else end_of_key(text, body)
        if at > body:
            parts += text[done:start], mask
            done = at
    return "".join((*parts, text[done:]))


def end_of_key(text: str, start: int) -> int:
    """Return the end of a key's lines in base 64; `start` if there are none. start: their beginning."""
    end = start
    while end < len(text):
        begin = end
        while text[begin : begin + 1] in BLANK and begin < len(text):
            begin += 1
        while text.startswith(("\\n", "\\r"), begin):
            begin += 2
        stop = begin
        while stop < len(text) and (text[stop].isalnum() or text[stop] in "+/="):
            stop += 1
        is_header = text[stop : stop + 1] in (":", "-", ",") and text.startswith(
            ("Proc", "DEK", "Comment", "Version"), begin
        )
        if is_header:
            stop = min(
                (found for found in (text.find("\n", stop), text.find("\\n", stop)) if found >= 0), default=len(text)
            )
        elif stop - begin < MIN_LINE_CHARS and (end == start or (stop < len(text) and text[stop - 1] != "=")):
            break
        end = stop
    return end
