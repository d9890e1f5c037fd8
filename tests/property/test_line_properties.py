"""Both directions of the line reader against bytes.split."""

import io

from hypothesis import given
from hypothesis import strategies as st

from tailhook._core import forward_lines, reverse_lines

LINES = st.lists(
    st.sampled_from([b"", b"a", b"\r", b"a\r", b"\xef\xbb\xbf", b"\0"])
    | st.binary(max_size=80)
    | st.sampled_from([63, 64, 65, 65535, 65536, 131072, 200_000]).map(lambda size: b"x" * size),
    max_size=8,
)
BOUNDS = st.none() | st.integers(0, 300) | st.sampled_from([65536, 131072])


@given(LINES, st.booleans(), st.integers(0, 300), BOUNDS, BOUNDS)
def test_newest_first_is_forward_reversed_is_split(lines, final_newline, start, end, max_line):
    data = b"\n".join(lines) + b"\n" * final_newline
    file = io.BytesIO(data)
    forward = list(forward_lines(file, start, end, max_line))
    assert forward == expected(data, start, end, max_line)
    assert list(reverse_lines(file, start, end, max_line)) == forward[::-1]


def expected(data, start, end, max_line):
    lines, offset = [], 0
    pieces = data.split(b"\n")
    if not pieces[-1]:
        pieces.pop()
    for piece in pieces:
        within = start <= offset and (end is None or offset < end)
        if within and (max_line is None or len(piece) <= max_line):
            line = piece[:-1] if piece.endswith(b"\r") else piece
            lines.append((offset, line.removeprefix(b"\xef\xbb\xbf") if offset == 0 else line))
        offset += len(piece) + 1
    return lines
