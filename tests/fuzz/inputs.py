"""The inputs of the fuzz targets: kept ones and mutations of them."""

from pathlib import Path
from random import Random

CORPUS = Path(__file__).with_name("corpus")
TOKENS = [
    b'{"', b'":', b"}{", b"[[", b"]]", b"\\u00e9", b"\\ud83d", b"\\", b'"', b",", b"\n", b"\r\n", b"\r", b"\x00", b"\xff", b"\xef\xbb\xbf",
    b"1e5", b"-0", b"null", b"true", b"`", b"``", b"```\n", b"~~~", b"    ", b"\t", b"> ", b"- ", b"1. ", b"<!--", b"-->", b"<pre>",
    b"</pre>", b"[a](b", b"<loop-done>", b"COMPLETE</loop-done>", b"\n\n", "é".encode(), "\u0130".encode(), "\u212a".encode(),
    b'"type":"assistant"', b'"message":', b'"content":', b'"text"', b"---\n", b"iteration: ", b"T00:00:00Z", b"+05:30", b'"stack":[',
    b'"topic_id":"T"', b'"name":"t"', b'"created_at":', b"\x0b", b"\xc2\xa0", b"#", b"decided to", b" ",
]  # fmt: skip


def seeds(name):
    """Return the seed inputs of a target, in the order of their names."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


def mutated(chance: Random, inputs):
    """Return one of the inputs, or two joined, with a few random changes."""
    data = bytearray(chance.choice(inputs))
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        at = chance.randint(0, len(data))
        to = min(len(data), at + chance.choice((0, 1, 2, 8, 32)))
        match chance.randrange(6):
            case 0:
                data[at:to] = chance.choice(TOKENS)
            case 1:
                data[at:at] = chance.choice(TOKENS)
            case 2:
                del data[at:to]
            case 3:
                data[at:at] = data[at:to] * chance.choice((1, 2, 20))
            case 4:
                other = chance.choice(inputs)
                data[at:] = other[chance.randint(0, len(other)) :]
            case _:
                if at < len(data):
                    data[at] = chance.randrange(256)
    return bytes(data[:20_000])
