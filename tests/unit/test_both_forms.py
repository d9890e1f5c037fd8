"""Hooks run cold and warm, while the tests' shared pool ends."""

import signal
from pathlib import Path

import pytest
from support.both_forms import Forms
from support.host import SANITIZER, Project, short_folder
from support.pool import Pool

pytestmark = pytest.mark.skipif(bool(SANITIZER), reason="the client is started without a sanitizer's runtime")


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
