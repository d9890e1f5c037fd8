"""`tailhook plates link` and `sign-out`, with a running daemon."""

import os
import sys
import threading

import httpx
import pytest
from support.daemon import answers, daemon_in, request, sse, wait_until
from support.host import HANGS_S, tailhook

NEXT_STEP = "To sign in, open the link that this command prints:  tailhook plates link"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """Yield a running daemon."""
    with daemon_in(tmp_path_factory.mktemp("links")) as one:
        yield one.start()


def plates_command(daemon, *words):
    """Run a command of plates that has to succeed. Returns its stdout."""
    done = tailhook("plates", *words, env=daemon.env, cwd=daemon.home)
    assert done.returncode == 0, done.stderr
    return done.stdout


def sign_in(link):
    """Return the answer to a link's code."""
    base, _, code = link.partition("/#once=")
    return request("POST", f"{base}/sign-in", headers={"authorization": f"Bearer {code}"})


def get_plates(daemon, secret):
    return request("GET", f"{daemon.base}/plates", headers={"authorization": f"Bearer {secret}"})


def test_each_call_prints_another_link_that_signs_a_tab_in_once(daemon):
    done = tailhook("plates", "link", env=daemon.env, cwd=daemon.home)
    assert done.stderr == "It signs in one browser tab, once, within 10 minutes.\n"
    links = [done.stdout, *(plates_command(daemon, "link") for _ in range(3))]
    assert len(set(links)) == 4
    for link in links:
        assert link == f"{link.strip()}\n"
        assert link.startswith(f"{daemon.base}/#once=")
        answer = sign_in(link.strip())
        assert get_plates(daemon, answer.json()["secret"]).status_code == 200
        again = sign_in(link.strip())
        assert again.status_code == 401
        assert again.json() == {"error": f"the link was used before. {NEXT_STEP}"}


def test_a_sign_out_ends_sessions_links_and_running_streams_of_browsers_only(daemon):
    secret = sign_in(plates_command(daemon, "link").strip()).json()["secret"]
    unused = plates_command(daemon, "link").strip()
    found = {secret: [], daemon.token: []}

    def follow(bearer):
        headers = {"authorization": f"Bearer {bearer}"}
        try:
            with httpx.stream("GET", f"{daemon.base}/stream", headers=headers, timeout=HANGS_S, verify=False) as answer:
                for name, data in sse(answer):
                    found[bearer].append((name, data))
                    if name == "removed":
                        return
        except httpx.TransportError:
            found[bearer].append(("cut", None))

    threads = [threading.Thread(target=follow, args=(bearer,)) for bearer in found]
    for thread in threads:
        thread.start()
    wait_until(lambda: all(found.values()))
    assert plates_command(daemon, "sign-out").startswith("Signed out ")
    wait_until(lambda: ("cut", None) in found[secret])
    for refused in (get_plates(daemon, secret), sign_in(unused)):
        assert refused.status_code == 401
        assert refused.json() == {"error": f"`tailhook plates sign-out` signed all tabs out. {NEXT_STEP}"}
    daemon.post("stop", "late")
    wait_until(lambda: "plate" in [name for name, _ in found[daemon.token]])
    daemon.remove_plates()  # ends the other stream
    for thread in threads:
        thread.join()
    assert plates_command(daemon, "sign-out") == (
        "Signed out 0 browser tabs. To sign in again:  tailhook plates link\n"
    )
    assert sign_in(plates_command(daemon, "link").strip()).status_code == 200


@pytest.mark.parametrize(("method", "path"), [("POST", "/links"), ("POST", "/sign-out"), ("GET", "/terminals/s")])
def test_what_only_the_users_own_programs_may_do(daemon, method, path):
    daemon.post("prompt_submit")
    secret = sign_in(plates_command(daemon, "link").strip()).json()["secret"]
    refused = request(method, f"{daemon.base}{path}", headers={"authorization": f"Bearer {secret}"})
    assert refused.status_code == 403
    assert refused.json() == {"error": "this is not for browsers, only for the user's own programs"}
    assert get_plates(daemon, secret).status_code == 200
    for stranger in ({}, {"authorization": "Bearer else"}):
        assert request(method, f"{daemon.base}{path}", headers=stranger).status_code == 401
    allowed = request(method, f"{daemon.base}{path}", headers={"authorization": f"Bearer {daemon.token}"})
    assert allowed.status_code == 200
    assert daemon.ask(method, path).status_code == 200


def test_the_name_of_a_sessions_terminal_is_in_no_answer_for_a_browser(daemon):
    terminal = {"TMUX": "/run/tmux-of-a-test,1,0", "TMUX_PANE": "%0"}
    daemon.post("prompt_submit", "of-tmux", terminal=terminal)
    assert daemon.ask("GET", "/terminals/of-tmux").json() == {"status": "ok", "terminal": terminal}
    assert daemon.ask("GET", "/terminals/missing").status_code == 404
    for path in ("/plates", "/plates/of-tmux?events=9", "/summary"):
        assert "of-a-test" not in daemon.ask("GET", path).text
    with daemon.client() as client, client.stream("GET", "/stream") as answer:
        name, plates = next(sse(answer))
    assert (name, "of-tmux" in str(plates), "of-a-test" in str(plates)) == ("plates", True, False)


@pytest.mark.parametrize("command", ["link", "sign-out"])
def test_without_a_daemon_the_next_step_is_printed(own, command):
    own.env["TAILHOOK_NO_AUTOSTART"] = "1"
    done = tailhook("plates", command, env=own.env, cwd=own.home)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tailhook: no daemon answers. Start one:  tailhook plates serve\n"


def test_a_daemon_without_a_port_has_no_link(own):
    own.is_forked = False
    argv = [sys.executable, "-m", "tailhook", "plates", "serve", "--no-port"]
    pid = os.posix_spawn(sys.executable, argv, own.env)
    try:
        wait_until(lambda: answers(own))
        done = tailhook("plates", "link", env=own.env, cwd=own.home)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            "tailhook: the daemon has no port, so there is no web board."
            " To start one with a port:  tailhook plates serve\n"
        )
        assert plates_command(own, "sign-out").startswith("Signed out 0 browser tabs.")
    finally:
        os.kill(pid, 15)
        os.waitpid(pid, 0)


# ---- as a QR code ------------------------------------------------------------------


def test_a_qr_code_holds_the_printed_link(daemon):
    segno = pytest.importorskip("segno")
    done = tailhook("plates", "link", "--qr", env=daemon.env, cwd=daemon.home)
    *drawn, link = done.stdout.splitlines()
    assert done.returncode == 0
    assert modules_of(drawn) == [list(row) for row in segno.make_qr(link).matrix_iter(border=4)]
    assert sign_in(link).status_code == 200
    assert "a phone cannot open the link" in done.stderr
    assert "tailhook plates serve --host 0.0.0.0" in done.stderr


def modules_of(lines):
    """Return the modules of a QR code that is drawn with half blocks: 1 is dark, and nothing is drawn there."""
    halves = {"█": (0, 0), "▀": (0, 1), "▄": (1, 0), " ": (1, 1)}
    pairs = [[halves[letter] for letter in line] for line in lines]
    rows = [[pair[half] for pair in line] for line in pairs for half in (0, 1)]
    return rows[: len(rows[0])]  # the last line of an odd number of rows has a lower half too many


def test_without_the_package_for_qr_codes_the_command_to_install_it_is_printed(daemon, tmp_path):
    (tmp_path / "segno.py").write_text("raise ModuleNotFoundError(\"No module named 'segno'\")")
    done = tailhook("plates", "link", "--qr", env={**daemon.env, "PYTHONPATH": str(tmp_path)}, cwd=daemon.home)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "pip install 'tailhook[qr]'" in done.stderr
