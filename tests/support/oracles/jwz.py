"""A second jwz reader and writer, of only the record format; it shares no code with the package."""

import fcntl
import json
import time
import uuid
from pathlib import Path

TOPIC = "loop:current"


def records(project: Path) -> list[dict]:
    """Return every record of the project's store; fails on a line that is not a JSON object."""
    text = (project / ".jwz" / "messages.jsonl").read_bytes().decode("utf-8")
    assert text.endswith("\n")
    found = [json.loads(line) for line in text.splitlines()]
    assert all(isinstance(record, dict) for record in found)
    return found


def messages(project: Path, topic: str = TOPIC) -> list[dict]:
    """Return the topic's messages in the order of their lines; fails if two topics have its name."""
    if not (project / ".jwz" / "messages.jsonl").exists():
        return []
    found = records(project)
    ids = [record["id"] for record in found if record["type"] == "topic" and record["name"] == topic]
    assert len(ids) <= 1, "jwz drops the messages of a topic that is there twice"
    return [record for record in found if record["type"] == "message" and record["topic_id"] in ids]


def newest(project: Path, topic: str = TOPIC) -> dict | None:
    """Return the body of the newest message, decoded as JSON; None if there is no message."""
    found = messages(project, topic)
    if not found:
        return None
    return json.loads(max(enumerate(found), key=lambda pair: (pair[1]["created_at"], pair[0]))[1]["body"])


def post(project: Path, body: str, topic: str = TOPIC, created_at: int | None = None) -> None:
    """Append a message like jwz, under its lock."""
    folder = project / ".jwz"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = folder / "messages.jsonl"
        now = int(time.time() * 1000) if created_at is None else created_at
        lines = path.read_text().splitlines() if path.exists() else []
        topics = [json.loads(line) for line in lines if '"type":"topic"' in line]
        topic_id = next((record["id"] for record in topics if record["name"] == topic), None)
        with path.open("a") as out:
            if topic_id is None:
                topic_id = uuid.uuid4().hex.upper()[:26]
                topic_record = {"type": "topic", "id": topic_id, "name": topic, "description": "", "created_at": now}
                out.write(json.dumps(topic_record, separators=(",", ":")) + "\n")
            record = {
                "type": "message",
                "id": uuid.uuid4().hex.upper()[:26],
                "topic_id": topic_id,
                "parent_id": None,
                "body": body,
                "created_at": now,
                "sender": None,
                "git": None,
            }
            out.write(json.dumps(record, separators=(",", ":"), ensure_ascii=False) + "\n")
