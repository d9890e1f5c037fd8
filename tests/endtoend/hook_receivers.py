"""Resident programs that take a hook's payload without a process for each event, and note it: over HTTP, and over MCP.

usage: hook_receivers.py http LOG    prints its port
       hook_receivers.py mcp LOG     speaks the Model Context Protocol (2025-06-18) on stdin and stdout

LOG: gets a line of JSON for each event.
"""

import asyncio
import json
import os
import re
import sys

TOOL = {
    "name": "report",
    "description": "takes an event",
    "inputSchema": {"type": "object", "properties": {}, "additionalProperties": True},
}


def note(log: int, event: dict) -> None:
    """Append an event to the log."""
    os.write(log, json.dumps(event).encode() + b"\n")


def write_line(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def serve_http(log: int) -> None:
    """Answer each POST with {}, and keep the connection."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
                note(log, json.loads(await reader.readexactly(int(length[1]))))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
        except asyncio.IncompleteReadError:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    write_line(str(server.sockets[0].getsockname()[1]))
    await server.serve_forever()


def serve_mcp(log: int) -> None:
    """Answer the requests of a client of the Model Context Protocol."""
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result: dict = {}
        if request["method"] == "initialize":
            version = request["params"]["protocolVersion"]
            server = {"name": "reports", "version": "1"}
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        elif request["method"] == "tools/list":
            result = {"tools": [TOOL]}
        elif request["method"] == "tools/call":
            note(log, request["params"]["arguments"])
            result = {"content": [{"type": "text", "text": "{}"}]}
        write_line(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}))


def main() -> None:
    """Serve until the client or the test ends."""
    kind, path = sys.argv[1:]
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    if kind == "http":
        asyncio.run(serve_http(log))
    else:
        serve_mcp(log)


if __name__ == "__main__":
    main()
