"""A secret in a tool's use, from the hook's payload and the transcript to every place where a person reads it."""

from support.board_user import sit
from support.host import tailhook, wait_until
from support.tool_secret import ask_to_run, shows_secret

START = "curl -u me:[secret]"


def test_a_secret_in_a_command_is_masked_on_the_board_in_its_details_and_in_the_lists(board_daemon, cold_argv):
    ask_to_run(board_daemon, [*cold_argv[:-1], "plates"])
    plate = wait_until(lambda: board_daemon.plates().get("secretive"))
    wait_until(lambda: board_daemon.plates()["secretive"]["status"] == "awaiting_approval")
    for words in ((), ("--json",), ("--waiting",), ("--waiting", "--json"), ("--short",), ("--short", "--json")):
        printed = tailhook("plates", "list", *words, env=board_daemon.env, cwd=board_daemon.home).stdout
        assert "[secret]" in printed or words in ((), ("--json",)), words
        assert not shows_secret(printed), words
    details = board_daemon.ask("GET", "/plates/secretive?events=1000").json()
    assert not shows_secret(str(details) + str(plate))
    assert details["asked"]["inputs"][0]["text"].endswith("\nmysql -u root -p[secret] shop")

    async def play(person):
        await person.sees(f"asks to run {START}")
        assert not shows_secret(person.seen)
        await person.press("enter")
        await person.sees(START, "mysql -u root -p[secret] shop", "denied: [secret]")
        assert not shows_secret(person.seen)
        await person.press("e")
        await person.until(lambda: person.seen.count("[secret]") > 4)
        assert not shows_secret(person.seen)

    sit(play, size=(160, 60))
    kept = b"".join(path.read_bytes() for path in board_daemon.state.iterdir() if path.is_file()).decode("latin-1")
    assert START in kept
    assert not shows_secret(kept)
