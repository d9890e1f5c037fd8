"""The whole hook process on the transcripts and messages that are hardest for it, beside bare Python.

First the right answer, then the time: each case names the exit code that the hook must give.
"""

import json

import pytest

from tailhook.cli.bench import DONE, Case, Stop, spawn
from tailhook.hosts.command import hook_command, real_interpreter
from tailhook.machines import iso

NOT_YET, GOES_ON, ENDS = "Not yet.", 2, 0
TOOL_OUTPUT = (
    json.dumps({"type": "user", "message": {"content": [{"type": "tool_result", "content": "x" * 4000}]}}) + "\n"
)


def said(words):
    message = {"id": "m", "role": "assistant", "content": [{"type": "text", "text": words}]}
    return json.dumps({"type": "assistant", "message": message, "timestamp": iso(2e9)}) + "\n"


def line_of_1_gb(out):
    out.write(said(DONE))
    out.write('{"type":"user","message":{"content":"')
    for _ in range(1024):
        out.write("x" * (1 << 20))
    out.write('"}}\n')


def tool_output_of_1_gb(out):
    out.write(said(DONE))
    block = TOOL_OUTPUT * 1000
    for _ in range((1 << 30) // len(block) + 1):
        out.write(block)


def backticks(out):
    runs = "".join("`" * length + " " for length in range(1, 3000))
    out.write(said(f"{runs}\n\n{DONE}"))


def message_of_12_mb(out):
    out.write(said("word `code` word\n" * 700_000 + f"\n{DONE}"))


def tiny_records(out):
    out.write(said(DONE))
    out.write('{"type":"mode"}\n' * 100_000)


CASES = {
    "one line of 1 GB after the last text": (line_of_1_gb, GOES_ON),
    "1 GB of tool output after the last text": (tool_output_of_1_gb, GOES_ON),
    "nothing but backticks, 4.5 MB": (backticks, ENDS),
    "a last message of 12 MB": (message_of_12_mb, ENDS),
    "100,000 tiny records": (tiny_records, ENDS),
}


@pytest.fixture(scope="module", params=CASES)
def stop(request, tmp_path_factory):
    """An active loop on that transcript."""
    write, code = CASES[request.param]
    stop = Stop(tmp_path_factory.mktemp("worst") / "project", Case(request.param, 60, NOT_YET, code), "10 KB")
    with (stop.folder / "transcript.jsonl").open("w") as out:
        write(out)
    return stop


@pytest.mark.parametrize("engine", ["tailhook", "bare python"])
def test_hook_worst_case(benchmark, stop, engine):
    hook, bare = hook_command("idle"), [real_interpreter(), "-I", "-S", "-c", "pass"]
    if engine == "tailhook":
        benchmark.pedantic(
            spawn, (hook, stop, stop.case.exit_code), setup=stop.reset, rounds=21, warmup_rounds=1, iterations=1
        )
    else:
        benchmark.pedantic(spawn, (bare, stop), rounds=21, warmup_rounds=1)
    benchmark.extra_info["case"] = stop.case.name
