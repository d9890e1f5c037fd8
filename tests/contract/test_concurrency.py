"""Many hooks at once count every one of them, among other writers of the store."""

import json
import subprocess
import threading

import jwz
import pytest
from host import frame, looping

HOOKS = 64


def start_hook(project, session_id="mine"):
    """Start a hook whose payload is there from the beginning, however long its siblings take to start."""
    payload = project.home / f"{session_id}.json"
    if not payload.exists():
        payload.write_text(json.dumps(project.payload(session_id=session_id, last_assistant_message="Hm.")))
    with payload.open("rb") as stdin:
        return subprocess.Popen(
            project.argv,
            env=project.env,
            cwd=project.folder,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


def stop_all_at_once(project, count=HOOKS):
    """Run that many hooks side by side; returns their answers."""
    hooks = [start_hook(project) for _ in range(count)]
    outputs = [hook.communicate(timeout=60) for hook in hooks]
    assert [hook.returncode for hook in hooks] == [2] * count, outputs
    return [json.loads(out)["reason"].split("]")[0] for out, _ in outputs]


@pytest.mark.parametrize("store", ["jwz", "file"])
def test_64_hooks_at_once_count_64(project, store):
    if store == "jwz":
        project.loop(frame(max=1000))
    else:
        path = project.folder / ".claude" / "idle-loop.local.md"
        path.parent.mkdir()
        path.write_text("---\nactive: true\niteration: 1\nmax_iterations: 1000\n---\nThe prompt.\n")
    announced = stop_all_at_once(project)
    assert sorted(announced) == sorted(f"[ITERATION {count}/1000" for count in range(2, HOOKS + 2))
    if store == "jwz":
        assert jwz.newest(project.folder)["stack"][0]["iter"] == HOOKS + 1
        assert len(jwz.messages(project.folder)) == HOOKS + 1
    else:
        assert f"iteration: {HOOKS + 1}\n" in path.read_text()


def test_other_writers_of_the_store_lose_nothing_and_cost_nothing(project):
    project.loop(frame(max=1000))
    stop = threading.Event()
    posted = []

    def chatter():
        while not stop.is_set():
            posted.append(len(posted))
            jwz.post(project.folder, f"note {posted[-1]}", topic="notes")

    writer = threading.Thread(target=chatter)
    writer.start()
    try:
        stop_all_at_once(project)
    finally:
        stop.set()
        writer.join()
    assert jwz.newest(project.folder)["stack"][0]["iter"] == HOOKS + 1
    assert [record["body"] for record in jwz.messages(project.folder, "notes")] == [f"note {n}" for n in posted]


def test_the_first_of_two_sessions_claims_the_loop_and_the_other_is_let_go(project):
    jwz.post(project.folder, json.dumps(looping(frame(session_id="claim"))))
    hooks = [(name, start_hook(project, name)) for name in ("one", "two") * 4]
    codes = {}
    for name, hook in hooks:
        hook.communicate(timeout=60)
        codes.setdefault(name, set()).add(hook.returncode)
    owner = jwz.newest(project.folder)["stack"][0]["session_id"]
    other = "two" if owner == "one" else "one"
    assert codes == {owner: {2}, other: {0}}
    assert jwz.newest(project.folder)["stack"][0]["iter"] == 5
