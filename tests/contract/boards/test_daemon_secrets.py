"""The daemon's secrets - the token of its port, a database's password - come from files and variables only."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.daemon import SERVE, answers, daemon_pid, refused, request, wait_until
from support.host import ENVIRONMENT, HANGS_S, tailhook

SECRET = "s3cr3t-of-mine"
PASSWORDS = [
    f"postgresql+psycopg://me:{SECRET}@127.0.0.1/plates",
    f"postgresql+psycopg://127.0.0.1/plates?user=me&password={SECRET}",
    f"postgresql+psycopg://127.0.0.1/plates?sslpassword={SECRET}",
    f"://me:{SECRET}@127.0.0.1",  # not a URL, and yet with a password
]


@pytest.fixture
def secret_file(own):
    """Write a secret into a file of the user. Returns its path."""

    def write(text, mode=0o600, name="secret"):
        path = own.home / name
        path.touch(mode=0o600)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return str(path)

    return write


def usage_error(own, *flags):
    """Return the output of a daemon with wrong arguments. It does not start."""
    done = tailhook("plates", "serve", *flags, env=own.env, cwd=own.home)
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


# ---- arguments -------------------------------------------------------------------


@pytest.mark.parametrize("flags", [("--token", SECRET), (f"--token={SECRET}",), ("--token", "")])
def test_a_token_among_the_arguments_is_refused(own, flags):
    said = usage_error(own, *flags)
    assert "every user can see" in said
    assert "--token-file FILE" in said
    assert "TAILHOOK_TOKEN" in said
    assert SECRET not in said


@pytest.mark.parametrize("url", PASSWORDS)
def test_a_password_among_the_arguments_is_refused(own, url):
    said = usage_error(own, "--db", url)
    assert "every user can see" in said
    assert "--db-file FILE" in said
    assert "TAILHOOK_DB" in said
    assert SECRET not in said


@pytest.mark.parametrize(
    "url", ["postgresql+psycopg://me@127.0.0.1:1/plates", "postgresql+psycopg:///plates?host=/gone"]
)
def test_a_database_without_a_password_may_stand_among_the_arguments(own, url):
    assert "the database cannot be opened" in refused(own, "--port", "0", "--db", url)


def test_one_database_is_named(own, secret_file):
    said = usage_error(own, "--db", "sqlite:///x.db", "--db-file", secret_file("sqlite:///y.db"))
    assert "not allowed with" in said


def test_the_help_names_the_ways_for_secrets(own):
    said = tailhook("plates", "serve", "--help", env=own.env, cwd=own.home).stdout
    for way in ("--token-file FILE", "--db-file FILE", "TAILHOOK_TOKEN", "TAILHOOK_DB"):
        assert way in said
    assert "--token TOKEN" not in said
    assert "--token " not in said


# ---- files and variables ---------------------------------------------------------


def lets_in(own, token):
    """Return whether a token opens the board."""
    return request("GET", f"{own.base}/plates", headers={"authorization": f"Bearer {token}"}).status_code == 200


def test_the_token_comes_from_a_file(own, secret_file):
    own.env["TAILHOOK_TOKEN"] = "another"
    own.start("--token-file", secret_file(f" {SECRET}\n"))
    assert lets_in(own, SECRET)
    assert not lets_in(own, "another")
    assert not (own.state / "token").exists()


def test_the_token_comes_from_a_variable(own):
    own.env["TAILHOOK_TOKEN"] = SECRET
    own.start()
    assert lets_in(own, SECRET)
    assert not (own.state / "token").exists()


def test_an_empty_variable_counts_as_none(own):
    own.finds_tables = False
    own.env |= {"TAILHOOK_TOKEN": "", "TAILHOOK_DB": ""}
    own.start().post("stop")
    assert lets_in(own, own.token)
    assert (own.state / "plates.db").exists()


def has_tables(path):
    return path.exists() and b"alembic_version" in path.read_bytes()


def test_the_database_comes_from_a_file_then_the_argument_then_the_variable(own, secret_file):
    paths = {way: own.home / f"{way}.db" for way in ("file", "argument", "variable")}
    urls = {way: f"sqlite:///{path}" for way, path in paths.items()}
    own.env["TAILHOOK_DB"] = urls["variable"]
    for flags, expected in (
        (("--db-file", secret_file(urls["file"] + "\n")), "file"),
        (("--db", urls["argument"]), "argument"),
        ((), "variable"),
    ):
        own.start(*flags).post("stop")
        own.stop()
        assert [way for way, path in paths.items() if path.exists()] == [expected]
        for path in own.home.glob("*.db*"):
            path.unlink()
    assert not (own.state / "plates.db").exists()


def belongs_to_another_user(path):
    os.chown(path, 65534, 65534)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


@pytest.mark.parametrize("flag", ["--token-file", "--db-file"])
@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda path: os.chmod(path, 0o640), "can be used by other users (mode 0640)"),
        (lambda path: os.chmod(path, 0o604), "can be used by other users (mode 0604)"),
        pytest.param(belongs_to_another_user, "belongs to another user (uid 65534)", marks=needs_root),
        (os.unlink, "No such file or directory"),
        (lambda path: (os.unlink(path), os.mkdir(path, 0o700)), "Is a directory"),
        (lambda path: Path(path).write_bytes(b"\xff"), "is not UTF-8"),
    ],
)
def test_a_file_that_cannot_hold_a_secret_is_refused_by_name(own, secret_file, flag, spoil, fault):
    path = secret_file(SECRET)
    spoil(path)
    said = refused(own, "--port", "0", flag, path)
    assert said.startswith(f"tailhook: {path}")
    assert fault in said
    assert SECRET not in said


@pytest.mark.parametrize("text", ["", f"://me:{SECRET}@", f"nothing://me:{SECRET}@127.0.0.1"])
def test_a_url_that_cannot_be_used_is_not_printed(own, secret_file, text):
    said = refused(own, "--port", "0", "--db-file", secret_file(text))
    assert "the database cannot be opened" in said
    assert SECRET not in said


def test_a_link_to_a_file_with_a_secret_is_followed(own, secret_file):
    """Secrets of containers are links."""
    (own.home / "link").symlink_to(secret_file(SECRET))
    own.start("--token-file", f"{own.home}/link")
    assert lets_in(own, SECRET)


def test_a_pipe_may_hold_a_secret(own):
    """As a shell makes it:  --token-file <(pass show board)"""
    reading, writing = os.pipe()
    os.write(writing, SECRET.encode())
    os.close(writing)
    argv = [*SERVE, "--port", "0", "--token-file", f"/dev/fd/{reading}"]
    process = subprocess.Popen(argv, env=own.env, stdout=subprocess.PIPE, text=True, pass_fds=[reading])
    try:
        own.link = process.stdout.readline().split()[-1]
        assert lets_in(own, SECRET)
    finally:
        os.close(reading)
        process.terminate()
        process.communicate(timeout=HANGS_S)


# ---- other processes -------------------------------------------------------------


@pytest.fixture
def server(postgres_url):
    """Return the URL of a PostgreSQL server, with a password that the server does not check."""
    return postgres_url.replace("tests@", f"tests:{SECRET}@")


@pytest.mark.parametrize("way", ["file", "variable"])
def test_the_daemon_that_hooks_start_has_no_secret_in_its_arguments(own, project, server, secret_file, way):
    own.env["TAILHOOK_TOKEN"] = f"token-{SECRET}"
    if way == "file":
        own.start("--db-file", secret_file(server))
    else:
        own.env["TAILHOOK_DB"] = server
        own.start()
        del own.env["TAILHOOK_DB"]
    own.post("stop", f"before-{way}")
    own.stop()
    project.argv = [*project.argv[:-1], "plates"]
    project.env = own.env
    project.hook(json.dumps(project.payload(session_id=f"by-hook-{way}")).encode(), read=False)
    wait_until(lambda: answers(own))
    wait_until(lambda: {f"before-{way}", f"by-hook-{way}"} <= own.plates().keys())
    pid = daemon_pid(own)
    try:
        for name in ("cmdline", "environ"):
            assert SECRET.encode() not in Path(f"/proc/{pid}/{name}").read_bytes()
    finally:
        os.kill(pid, 15)
        wait_until(lambda: not (own.runtime / "http").exists())


def test_a_hook_passes_the_database_on_to_the_first_daemon_and_not_the_token(own, project):
    """Nothing is kept yet, so the variable is all that names the database."""
    own.start().stop()
    for name in ("daemon-settings", "plates.db"):
        (own.state / name).unlink()
    project.argv = [*project.argv[:-1], "plates"]
    project.env = {**own.env, "TAILHOOK_DB": f"sqlite:///{own.home}/named.db", "TAILHOOK_TOKEN": SECRET}
    project.hook(json.dumps(project.payload()).encode(), read=False)
    wait_until(lambda: answers(own))
    wait_until(lambda: "mine" in own.plates())
    pid = daemon_pid(own)
    try:
        assert (own.home / "named.db").exists()
        assert SECRET.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
    finally:
        os.kill(pid, 15)
        wait_until(lambda: not (own.runtime / "http").exists())


def test_the_wrappers_command_has_no_secret_in_its_environment(own):
    own.env |= {"TAILHOOK_NO_AUTOSTART": "1", "TAILHOOK_TOKEN": SECRET, "TAILHOOK_DB": SECRET, "OTHER": "kept"}
    done = tailhook("run", "--", "env", env=own.env, cwd=own.home)
    assert SECRET not in done.stdout
    assert "OTHER=kept" in done.stdout
    assert "TAILHOOK_RUN_ID=" in done.stdout


def test_the_desktops_notifier_has_no_secret_in_its_environment(own, tmp_path):
    program = tmp_path / "bin" / "notify-send"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nenv > '{tmp_path}/seen.new'\nmv '{tmp_path}/seen.new' '{tmp_path}/seen'\n")
    program.chmod(0o755)
    code = (
        "import os, sys, time\n"
        "from tailhook.board.alerts import find_notification_program, run_detached\n"
        "run_detached(find_notification_program()[0])\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
    )
    env = {**ENVIRONMENT, "PATH": f"{program.parent}:/usr/bin:/bin", "TAILHOOK_TOKEN": SECRET, "TAILHOOK_DB": SECRET}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "seen")], env=env, check=True, timeout=HANGS_S)
    seen = (tmp_path / "seen").read_text()
    assert SECRET not in seen
    assert "PATH=" in seen


def test_no_child_of_the_daemon_could_have_a_secret(own):
    """Children of the daemon get `os.environ`."""
    code = (
        "import os, sys\n"
        "from tailhook.cli import plates\n"
        "plates.serve_with = lambda options, ready: print(options.token, options.db, sorted(os.environ))\n"
        "from tailhook.cli import main\n"
        "main(['plates', 'serve', '--port', '0'])\n"
    )
    env = {**own.env, "TAILHOOK_TOKEN": "a-token", "TAILHOOK_DB": "sqlite:///x.db"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=HANGS_S, check=True
    )
    assert done.stdout.startswith("a-token sqlite:///x.db ")
    assert "TAILHOOK_TOKEN" not in done.stdout
    assert "TAILHOOK_DB" not in done.stdout
