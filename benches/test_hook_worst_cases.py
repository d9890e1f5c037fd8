"""The whole hook process in the cases that are hardest for it, beside bare Python.

First the right answer, then the time: each case returns whether the hook must block.
"""

import pytest
from worst_cases import CASES, WorstStop

from tailhook.bench.processes import run_once
from tailhook.bench.rounds import bare_argv


@pytest.fixture(scope="module", params=[worst.about for worst in CASES])
def stop(request, tmp_path_factory):
    """Yield an agent that is about to stop."""
    worst = next(worst for worst in CASES if worst.about == request.param)
    stop = WorstStop(tmp_path_factory.mktemp("worst"), worst)
    stop.check()
    yield stop
    stop.remove()


@pytest.mark.parametrize("engine", ["tailhook", "bare python"])
def test_hook_worst_case(benchmark, stop, engine):
    argvs = {"tailhook": stop.hook, "bare python": bare_argv()}

    def others_turn():
        """Run the other engine first, so that other work on the computer slows both alike."""
        for other, argv in argvs.items():
            if other != engine:
                run_once(argv, stop.payload, stop.env)
        stop.reset()

    benchmark.pedantic(
        run_once, (argvs[engine], stop.payload, stop.env), setup=others_turn, rounds=21, warmup_rounds=1, iterations=1
    )
    benchmark.extra_info["case"] = stop.case.about
