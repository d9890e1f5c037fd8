"""Unauthorised requests are refused: one class for each kind of attacker that docs/promises.md names."""

import json
import os
import socket
import stat
import subprocess
from pathlib import Path

import pytest
from support.daemon import SERVE, answers, daemon_in, refused, request, wait_until
from support.host import Started, short_folder, tailhook

from tailhook.plates.guard import MAX_BODY_BYTES


def over_tcp(daemon, path="/plates", **headers):
    """Send a request to the port."""
    return request("GET", f"{daemon.base}{path}", headers=headers)


# Prints each path that it may read or write. To connect to a socket takes the right to write.
MAY_USE = ["sh", "-c", 'for path; do if test -r "$path" || test -w "$path"; then echo "$path"; fi; done', "sh"]
OTHER_USER = {"user": "nobody", "group": "nogroup", "extra_groups": ()}


class TestAnotherUser:
    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
    @pytest.mark.parametrize("folders_open", [False, True])
    def test_reaches_no_socket_and_no_file(self, folders_open):
        with short_folder() as home, daemon_in(Path(home)) as daemon:
            daemon.start()
            daemon.spool({})
            files = [daemon.runtime / name for name in ("http", "poke")]
            files += [daemon.state / name for name in ("token", "events", "plates.db", "daemon-argv")]
            assert all(path.exists() for path in files)
            if folders_open:  # each file's own mode stands, too
                for folder in (daemon.home, *daemon.runtime.parents):
                    if folder.is_relative_to(daemon.home):
                        folder.chmod(0o755)
                daemon.runtime.chmod(0o755)
            argv, options = [*MAY_USE, *map(str, files)], {"cwd": "/", "stdout": subprocess.PIPE, "text": True}
            assert subprocess.run(argv, **options, check=True).stdout.split() == argv[-len(files) :]
            assert subprocess.run(argv, **options, **OTHER_USER, check=True).stdout == ""

    def test_finds_sockets_token_and_database_closed(self, daemon):
        paths = [daemon.runtime / "http", daemon.runtime / "poke", daemon.state / "token", daemon.state / "plates.db"]
        assert {path: stat.S_IMODE(path.stat().st_mode) for path in paths} == dict.fromkeys(paths, 0o600)
        assert stat.S_IMODE(daemon.runtime.stat().st_mode) == 0o700

    def test_cannot_have_left_a_token_that_is_known(self, own):
        own.state.mkdir(parents=True, mode=0o700)
        (own.state / "token").write_text("known\n")
        (own.state / "token").chmod(0o644)
        assert "token can be used by other users (mode 0644). Remove it" in refused(own, "--port", "0")

    def test_cannot_enter_the_folder_of_the_sockets(self, own, tmp_path):
        (tmp_path / "run" / "tailhook").mkdir(parents=True)
        (tmp_path / "run" / "tailhook").chmod(0o755)
        own.env["XDG_RUNTIME_DIR"] = str(tmp_path / "run")
        assert "must be a folder that only you can access" in refused(own)


class TestAnotherOrigin:
    @pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", "http://127.0.0.1"])
    def test_is_refused_even_with_the_token(self, daemon, origin):
        answer = over_tcp(daemon, origin=origin, authorization=f"Bearer {daemon.token}")
        assert (answer.status_code, answer.json()) == (403, {"error": "the request comes from another page"})

    def test_the_boards_own_is_let_in(self, daemon):
        assert over_tcp(daemon, origin=daemon.base, authorization=f"Bearer {daemon.token}").status_code == 200


class TestARebindingHost:
    @pytest.mark.parametrize(
        "host", ["evil.example", "evil.example:7890", "127.0.0.1.evil.example", "", "[", "169.254.169.254"]
    )
    def test_is_refused_even_with_the_token(self, daemon, host):
        answer = over_tcp(daemon, host=host, authorization=f"Bearer {daemon.token}")
        assert answer.status_code in (400, 421)


class TestAllAddresses:
    def test_each_of_this_machine_is_let_in_by_itself(self, own):
        own.start("--host", "0.0.0.0")
        assert "0.0.0.0" not in own.link
        assert over_tcp(own, authorization=f"Bearer {own.token}").status_code == 200
        port = own.base.rpartition(":")[2]
        for host, code in (("127.0.0.2", 200), ("127.0.0.3", 421), ("evil.example", 421)):
            headers = {"host": f"{host}:{port}", "authorization": f"Bearer {own.token}"}
            assert request("GET", f"http://127.0.0.2:{port}/plates", headers=headers).status_code == code

    def test_of_ipv6_too(self, own):
        own.start("--host", "::")
        assert "//[::]" not in own.link
        assert over_tcp(own, authorization=f"Bearer {own.token}").status_code == 200

    def test_a_name_is_the_same_in_capitals(self, own):
        own.start("--host", "LocalHost")
        assert over_tcp(own, host="LOCALHOST", authorization=f"Bearer {own.token}").status_code == 200


def sign_in(daemon, code=None, **options):
    """Exchange the code of the daemon's link, or another one, like the web board."""
    code = daemon.link.partition("once=")[2] if code is None else code
    return request("POST", f"{daemon.base}/sign-in", headers={"authorization": f"Bearer {code}"}, **options)


class TestNoToken:
    def test_gets_the_health_and_the_files_of_the_board_and_nothing_else(self, daemon):
        for path in ("/health", "/", "/web/board.js", "/web/board.css"):
            assert over_tcp(daemon, path).status_code == 200, path
        for path in ("/plates", "/plates/s", "/status", "/stream", "/openapi.json", "/nothing", "/web", "/webs/x"):
            answer = over_tcp(daemon, path)
            assert (answer.status_code, set(answer.json())) == (401, {"error"}), path
        for method, path in (("POST", "/"), ("DELETE", "/web/board.js"), ("GET", "/sign-in"), ("DELETE", "/plates/s")):
            assert request(method, f"{daemon.base}{path}").status_code == 401, path

    def test_finds_nothing_of_a_session_in_the_files_of_the_board(self, own):
        own.start().post("stop", project_path="/src/secret-project")
        for path in ("/", "/web/board.js"):
            answer = over_tcp(own, path)
            assert "secret-project" not in answer.text
            assert own.token not in answer.text
            assert "set-cookie" not in answer.headers

    @pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
    def test_the_token_lets_in(self, daemon, scheme):
        assert over_tcp(daemon, authorization=f"{scheme} {daemon.token}").status_code == 200

    @pytest.mark.parametrize("given", ["Bearer", "Bearer x", "Basic {}", "{}", "Bearer {}x", "Bearer \xe9"])
    def test_another_word_does_not(self, daemon, given):
        headers = {"authorization": given.format(daemon.token).encode("latin-1")}
        assert request("GET", f"{daemon.base}/plates", headers=headers).status_code == 401

    def test_the_code_of_the_link_gives_a_secret_once(self, own):
        own.start()
        first = sign_in(own)
        assert (first.status_code, set(first.json()), "set-cookie" in first.headers) == (200, {"secret"}, False)
        assert over_tcp(own, authorization=f"Bearer {first.json()['secret']}").status_code == 200
        assert first.json()["secret"] not in (own.token, own.link.partition("once=")[2])
        again = sign_in(own)
        assert (again.status_code, set(again.json())) == (401, {"error"})

    def test_the_code_opens_nothing_by_itself(self, own):
        own.start()
        code = own.link.partition("once=")[2]
        assert over_tcp(own, authorization=f"Bearer {code}").status_code == 401
        assert over_tcp(own, f"/plates?once={code}").status_code == 401
        assert over_tcp(own, f"/?once={code}").headers.get("set-cookie") is None
        assert sign_in(own).status_code == 200  # and is not used up

    @pytest.mark.parametrize("given", ["Bearer", "Bearer x", "Bearer {}", "Bearer \xe9", "Basic {}"])
    def test_no_other_word_gives_a_secret(self, daemon, given):
        headers = {"authorization": given.format(daemon.token).encode("latin-1")}
        assert request("POST", f"{daemon.base}/sign-in", headers=headers).status_code == 401

    def test_a_secret_is_of_one_run(self, own):
        own.start()
        secret, token = own.secret, own.token
        own.stop()
        own.start()
        assert over_tcp(own, authorization=f"Bearer {secret}").status_code == 401
        assert over_tcp(own, authorization=f"Bearer {token}").status_code == 200

    def test_a_code_is_of_one_run(self, own):
        own.start()
        code = own.link.partition("once=")[2]
        own.stop()
        assert sign_in(own.start(), code).status_code == 401

    def test_another_page_cannot_use_a_code(self, own):
        own.start()
        headers = {"authorization": f"Bearer {own.link.partition('once=')[2]}", "origin": "http://127.0.0.1:1"}
        assert request("POST", f"{own.base}/sign-in", headers=headers).status_code == 403
        assert sign_in(own).status_code == 200

    @pytest.mark.parametrize("cookie", ["tailhook_token={}", "tailhook.secret={}", "{}"])
    def test_no_cookie_counts(self, daemon, cookie):
        for word in (daemon.token, daemon.secret):
            assert over_tcp(daemon, cookie=cookie.format(word)).status_code == 401

    @pytest.mark.parametrize("given", ["", " ", "geheim\xe4", "a b", "a;b"])
    @pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
    def test_none_or_one_that_cannot_be_sent_is_refused(self, own, given, host):
        (own.home / "token").touch(mode=0o600)
        (own.home / "token").write_text(given)
        assert "the token of the port must not be empty" in refused(
            own, "--host", host, "--port", "0", "--token-file", f"{own.home}/token"
        )

    def test_the_kept_one_is_looked_at_likewise(self, own):
        own.state.mkdir(parents=True, mode=0o700)
        (own.state / "token").touch(mode=0o600)
        (own.state / "token").write_text("geheim\xe4")
        assert "the token of the port must not be empty" in refused(own, "--port", "0")


class TestPathTraversalInIds:
    @pytest.mark.parametrize("method", ["GET", "DELETE"])
    @pytest.mark.parametrize(
        "path", ["../../etc/passwd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "..%5c..", "/etc/passwd", "%00", "a%00b"]
    )
    def test_is_not_a_plate(self, daemon, method, path):
        assert raw(daemon, method, f"/plates/{path}") == (404, {"error": "no such plate"})

    @pytest.mark.parametrize("path", ["../app.py", "%2e%2e/app.py", "..%2fapp.py", "%2fetc%2fpasswd", "//etc/passwd"])
    def test_leads_to_no_file(self, daemon, path):
        status, answer = raw(daemon, "GET", f"/web/{path}")
        assert (status, set(answer)) == (404, {"error"})

    def test_an_id_that_looks_like_a_path_is_a_name(self, daemon):
        daemon.post("stop", "/etc/passwd")
        assert raw(daemon, "GET", "/plates//etc/passwd")[1]["session_id"] == "/etc/passwd"
        assert raw(daemon, "DELETE", "/plates/%2fetc%2fpasswd")[0] == 200

    def test_an_id_that_clients_fold_away_is_refused(self, daemon):
        event = {"session_id": "../../etc/passwd", "project_path": "/", "event_type": "stop"}
        assert daemon.ask("POST", "/events", json=event).status_code == 422


def raw(daemon, method, path):
    """Return the answer to a request. The client does not normalise its path."""
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(str(daemon.runtime / "http"))
        one.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        head, _, body = b"".join(iter(lambda: one.recv(1 << 16), b"")).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


class TestSymbolicLinksInPlaceOfState:
    @pytest.fixture
    def theirs(self, tmp_path):
        """Return a file outside the daemon's folders. The daemon must not change it."""
        path = tmp_path / "theirs"
        path.write_text("known\n")
        path.chmod(0o600)
        return path

    def test_a_token_that_is_a_link_is_refused(self, own, theirs):
        own.state.mkdir(parents=True, mode=0o700)
        (own.state / "token").symlink_to(theirs)
        assert "token is a symbolic link. Remove it" in refused(own, "--port", "0")

    def test_a_folder_of_sockets_that_is_a_link_is_refused(self, own, tmp_path):
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "tailhook").symlink_to(tmp_path / "elsewhere")
        own.env["XDG_RUNTIME_DIR"] = str(tmp_path / "run")
        assert "must be a folder that only you can access" in refused(own)

    def test_a_lock_that_is_a_link_is_refused(self, own, theirs):
        own.state.mkdir(parents=True, mode=0o700)
        (own.state / "daemon-lock").symlink_to(theirs)
        assert "lock" in refused(own, "--no-port")
        assert theirs.read_text() == "known\n"

    def test_a_spool_that_is_a_link_is_not_read(self, own, theirs):
        event = {"event_id": "e", "event_type": "stop", "session_id": "s", "project_path": "/p", "ts": 1}
        theirs.write_text(json.dumps(event) + "\n")
        own.state.mkdir(parents=True, mode=0o700)
        (own.state / "events").symlink_to(theirs)
        own.start()
        own.post("stop", "another")
        assert set(own.plates()) == {"another"}

    def test_sockets_that_are_links_are_replaced(self, own, theirs):
        own.runtime.mkdir(parents=True, mode=0o700)
        for name in ("http", "poke"):
            (own.runtime / name).symlink_to(theirs)
        own.start()
        assert own.ask("GET", "/health").status_code == 200
        assert theirs.read_text() == "known\n"


class TestOversizedBodies:
    @pytest.mark.parametrize("with_length", [True, False])
    def test_over_8_mb_are_refused(self, daemon, with_length):
        body = b" " * (MAX_BODY_BYTES + 1)
        content = body if with_length else iter([body[: 1 << 20]] * 9)
        response = daemon.ask("POST", "/events", content=content)
        assert (response.status_code, set(response.json())) == (413, {"error"})
        assert daemon.ask("GET", "/health").status_code == 200

    def test_8_mb_are_read(self, daemon):
        event = {"session_id": "large", "project_path": "/p", "event_type": "stop"}
        body = json.dumps(event).encode().ljust(MAX_BODY_BYTES)
        headers = {"content-type": "application/json"}
        assert daemon.ask("POST", "/events", content=body, headers=headers).status_code == 200


class TestAHostileProjectsConfig:
    @pytest.fixture
    def hostile(self, project, own):
        """Return a cloned project with a configuration of its own; its hooks report to the user's own daemon."""
        project.argv = [*project.argv[:-1], "plates"]
        project.env = {**own.env, "TAILHOOK_NO_AUTOSTART": "1"}
        (project.folder / ".claude").mkdir()
        config = {
            "plates": {"autostart": True, "db": "sqlite:////tmp/theirs.db", "argv": ["/bin/false"], "port": 1},
            "hook": {"log": str(project.folder / "log"), "machines": []},
        }
        (project.folder / ".claude" / "tailhook.json").write_text(json.dumps(config))
        return project

    def test_starts_nothing_that_the_user_forbade(self, hostile, own):
        del hostile.env["TAILHOOK_NO_AUTOSTART"]
        own.state.mkdir(parents=True, mode=0o700)
        mark = own.home / "started"
        (own.state / "daemon-argv").write_text("\0".join(["/bin/sh", "-c", f"echo started > '{mark}'"]))
        config = own.home / ".config" / "tailhook" / "config.json"
        config.parent.mkdir(parents=True)
        config.write_text('{"plates": {"autostart": false}}')
        hostile.hook(json.dumps(hostile.payload()).encode(), read=False)
        done = tailhook("run", "--", "true", env=own.env, cwd=hostile.folder)
        assert done.returncode == 0
        assert not mark.exists()
        assert not (own.runtime / "started").exists()

    def test_changes_neither_where_events_go_nor_which_sessions_are_reported(self, hostile, own):
        own.start()
        hostile.hook(json.dumps(hostile.payload()).encode(), read=False)
        wait_until(lambda: "mine" in own.plates())
        assert not (hostile.folder / "log").exists()

    def test_and_a_daemon_started_in_its_folder_is_the_users_own(self, hostile, own):
        argv = [*SERVE, "--no-port"]
        with Started(argv, env=own.env, cwd=hostile.folder) as process:
            try:
                wait_until(lambda: (own.state / "plates.db").exists())
                wait_until(lambda: answers(own))
            finally:
                process.terminate()
