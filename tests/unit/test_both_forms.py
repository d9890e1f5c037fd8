"""Hooks run cold and warm, while the tests' shared pool ends."""

import json
import signal
import subprocess
from pathlib import Path

import pytest
from support.both_forms import Forms, outcome
from support.host import SANITIZER, Project, Started, run_on_payload, short_folder
from support.idle_states import NOW, looping
from support.pool import Pool

from tailhook._core import iso_time
from tailhook.machines.budgets import describe_spent, measure
from tailhook.machines.idle import Facts, decide

pytestmark = pytest.mark.skipif(bool(SANITIZER), reason="the client is started without a sanitizer's runtime")


def test_a_start_of_the_cold_hook_is_seen_also_if_the_test_reads_no_stderr(tmp_path):
    with short_folder() as home, Pool(Path(home)) as pool:
        forms = Forms(pool)
        project = Project(tmp_path / "project", tmp_path / "home", [*forms.warm, "idle"], forms=forms)
        project.loop()
        payload = json.dumps(project.payload(last_assistant_message="Hm.")).encode()

        def run(argv):
            done = run_on_payload(argv, payload, env=project.env, cwd=project.folder)
            return subprocess.CompletedProcess(argv, done.returncode, done.stdout, b"")

        pool.process.send_signal(signal.SIGKILL)
        pool.process.wait()
        with pytest.warns(UserWarning, match="the pool has ended"):
            assert project.run(project.argv, run).returncode == 2


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_if_the_pool_of_the_tests_ends_its_end_is_shown_and_another_one_answers(tmp_path, how):
    with short_folder() as home, Pool(Path(home)) as pool:
        forms = Forms(pool)
        project = Project(tmp_path / "project", tmp_path / "home", [*forms.warm, "idle"], forms=forms)
        assert project.stop("Hm.").allowed
        first = pool.process
        first.send_signal(how)
        first.wait()
        with pytest.warns(UserWarning, match=f"the pool has ended with {first.returncode}"):
            assert project.stop("Hm.").allowed
        assert pool.process is not first


def test_a_pool_that_a_client_started_answers_in_place_of_one_that_has_ended(tmp_path):
    with short_folder() as home, Pool(Path(home)) as pool:
        forms = Forms(pool)
        project = Project(tmp_path / "project", tmp_path / "home", [*forms.warm, "idle"], forms=forms)
        pool.process.kill()
        assert pool.process.wait() == -signal.SIGKILL
        with Started([*pool.serve_argv(), "--asked"], env=pool.env, stdout=subprocess.PIPE) as other:
            assert other.stdout.readline()
            forms.cold_start.touch()  # as if no worker had been ready in time
            assert project.stop("Hm.").allowed
            assert pool.process.returncode == -signal.SIGKILL
            other.terminate()


def ended_as_stale(now):
    verdict = decide(looping(age=99999), Facts(), now)
    return f"{verdict.why}\n{verdict.warning}"


def spent_in_minutes(now):
    return describe_spent(measure({"began": iso_time(NOW - 3600), "minutes": 5}, now), "minutes")


@pytest.mark.parametrize("words", [ended_as_stale, spent_in_minutes])
def test_the_second_form_may_name_another_age(words):
    first, later = (subprocess.CompletedProcess([], 0, words(now).encode(), b"") for now in (NOW, NOW + 1000))
    assert first.stdout != later.stdout
    assert outcome(first) == outcome(later)
