"""The whole hook process on the transcripts and messages that are hardest for it, beside bare Python.

First the right answer, then the time: each case says whether the hook must block.
"""

import json

import pytest

from tailhook.cli.bench import DONE, Case, Stop, idle_loop, memory_folder, ralph_loop, spawn, triage_pipeline
from tailhook.hosts.command import real_interpreter
from tailhook.machines import iso

NOT_YET = "Not yet."
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


def long_session(out):
    """The fifty messages that memory reads, among a megabyte of what tools said."""
    work = "- `parse` reads the *whole* line now, see `src/lines.py`; the test beside it says why.\n"
    why = "We decided on one pass, because it is faster.\n\n```sh\nmake test\n```\n\nAlways run it first.\n\n"
    for _ in range(50):
        out.write(TOOL_OUTPUT * 5 + said(why + work * 10))


def nothing_more(out):
    """The transcript as it is."""


def prompt_of_128_kib(folder):
    path = ralph_loop(folder)
    path.write_text(path.read_text() + "x" * (128 << 10))
    return path


def triage_state_of_2_mb(folder, pending=500):
    path = triage_pipeline(folder)
    result = {"is_true_positive": False, "group_id": "g", "root_cause": "c" * 100, "reasoning": "because " * 60}
    entry = {"name": "f", "signature": "s" * 120, "diagnosis": "d" * 80, "route": "llm-triage", "result": result}
    statuses = ["completed"] * (2000 - pending) + ["pending"] * pending
    entries = [{**entry, "name": f"f{n}", "status": status} for n, status in enumerate(statuses)]
    path.write_text(json.dumps({"phase": "triage", "batch_size": 5, "entries": entries}, indent=2))
    return path


def triage_state_that_moves(folder):
    return triage_state_of_2_mb(folder, pending=0)


def active(about, machine="idle", begin=None, blocks=True):
    return Case(machine, about, NOT_YET, blocks, begin or idle_loop(60))


ALL = "idle,ralph,triage,memory"
CASES = {
    case.about: (write, case, size)
    for write, case, size in (
        (line_of_1_gb, active("one line of 1 GB after the last text"), "10 KB"),
        (tool_output_of_1_gb, active("1 GB of tool output after the last text"), "10 KB"),
        (backticks, active("nothing but backticks, 4.5 MB", blocks=False), "10 KB"),
        (message_of_12_mb, active("a last message of 12 MB", blocks=False), "10 KB"),
        (tiny_records, active("100,000 tiny records", blocks=False), "10 KB"),
        (nothing_more, active("a prompt of 128 KiB, all machines", ALL, prompt_of_128_kib), "500 MB"),
        (nothing_more, active("a triage state of 2 MB, all machines", ALL, triage_state_of_2_mb), "500 MB"),
        (nothing_more, active("a triage state of 2 MB that moves on", "triage", triage_state_that_moves), "10 KB"),
        (long_session, active("memory, 50 long messages", "memory", memory_folder), "10 KB"),
        (nothing_more, active("a transcript of 500 MB, all machines", ALL, memory_folder, blocks=False), "500 MB"),
    )
}


@pytest.fixture(scope="module", params=CASES)
def stop(request, tmp_path_factory):
    """An agent about to stop."""
    write, case, size = CASES[request.param]
    stop = Stop(tmp_path_factory.mktemp("worst") / "project", case, size)
    with stop.transcript.open("a" if write is nothing_more else "w") as out:
        write(out)
    stop.check()
    return stop


@pytest.mark.parametrize("engine", ["tailhook", "bare python"])
def test_hook_worst_case(benchmark, stop, engine):
    argvs = {"tailhook": stop.hook, "bare python": [real_interpreter(), "-I", "-S", "-c", "pass"]}

    def others_turn():
        """Both take turns: what else the machine does slows the one as the other."""
        for other, argv in argvs.items():
            if other != engine:
                spawn(argv, stop)
        stop.reset()

    benchmark.pedantic(spawn, (argvs[engine], stop), setup=others_turn, rounds=41, warmup_rounds=1, iterations=1)
    benchmark.extra_info["case"] = stop.case.about
