"""`tailhook usage` as a whole process: totals by everything, prices, and failures."""

import json
import os
import shlex
import subprocess
import sys
from random import Random

import pytest
from support.host import HANGS_S, tailhook
from support.library_sample import said, text, write_sample
from support.oracles.scan import Question, rows
from support.transcript_trees import grow_tree

from tailhook import scan
from tailhook.cli import totals
from tailhook.fleet.columns import TOKEN_COLUMNS, USAGE_GROUPINGS

SONNET = {"input_cost_per_token": 3e-06, "output_cost_per_token": 15e-06, "cache_read_input_token_cost": 3e-07}


@pytest.fixture
def usage(tmp_path):
    """Run `tailhook usage` on the folder `transcripts`; write the sample there if it is missing."""

    def run(*words, sources=("transcripts",), exit_code=0, **env):
        folder = tmp_path / "transcripts"
        if not folder.exists():
            folder.mkdir()
            write_sample(folder)
        done = tailhook("usage", *words, *sources, env={"HOME": str(tmp_path), "TZ": "UTC", **env}, cwd=tmp_path)
        assert done.returncode == exit_code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


def facts(done):
    return json.loads(done.stdout)


def test_every_grouping_is_one_of_time_or_of_a_column():
    assert (*totals.TIME_KEYS, *totals.GROUP_COLUMNS) == USAGE_GROUPINGS


@pytest.mark.parametrize("by", USAGE_GROUPINGS)
def test_the_totals_are_those_of_the_reference(usage, tmp_path, by):
    for seed in range(3):
        tree = grow_tree(Random(seed))
        folder = tmp_path / "transcripts" / str(seed)
        for name, data in tree.files:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        responses = rows("usage", tree.files, Question())
        wanted = {}
        for response in responses:
            total = wanted.setdefault(key_of(by, response), [0] * 5)
            for place, count in enumerate((1, *(response[name] or 0 for name in TOKEN_COLUMNS))):
                total[place] += count
        found = facts(usage("--by", by, "--json", sources=[str(folder)]))
        assert {
            group[by]: [group["responses"], *(group[name] for name in TOKEN_COLUMNS)] for group in found["groups"]
        } == wanted
        assert found["total"]["responses"] == len(responses)


def key_of(by, response):
    time = response["timestamp"]
    if by in ("day", "week", "month") and time is None:
        return None
    if by == "week":
        return "{}-W{:02}".format(*time.isocalendar()[:2])
    if by in ("day", "month"):
        return f"{time:%Y-%m-%d}" if by == "day" else f"{time:%Y-%m}"
    return response[{"session": "session_id", "agent": "agent_id"}.get(by, by)] or None


def test_the_table_has_a_line_for_each_day_and_the_total(usage):
    assert usage().stdout.splitlines() == [
        "day         responses  input  output  cache read  cache creation  all tokens",
        "2026-11-22          5     20     183     300,000               0     300,203",
        "total               5     20     183     300,000               0     300,203",
    ]


def test_responses_of_the_main_conversation_have_no_agent(usage):
    lines = usage("--by", "agent").stdout.splitlines()
    assert [line.split("  ")[0] for line in lines[1:3]] == ["a-1", "main conversation"]


def test_a_day_is_one_of_this_computers_time_zone(usage):
    assert facts(usage("--json", TZ="XXX+10"))["groups"][0]["day"] == "2026-11-21"


def test_responses_can_be_chosen_by_time_project_and_session(usage):
    assert facts(usage("--json", "--since", "2026-11-22T09:00:04Z"))["total"]["responses"] == 3
    assert facts(usage("--json", "--until", "2026-11-22T09:00:04Z"))["total"]["responses"] == 2
    assert facts(usage("--json", "--project", "/home/me/notes"))["total"]["output_tokens"] == 5
    assert facts(usage("--json", "--session", "s-2", "--workers", "1"))["total"]["output_tokens"] == 5
    assert usage("--since", "1h").stdout == ""


# ---- prices --------------------------------------------------------------------


def test_prices_add_a_cost(usage, tmp_path):
    (tmp_path / "prices.json").write_text(json.dumps({"sample_spec": {}, "anthropic/sonnet": SONNET}))
    lines = usage("--prices", "prices.json").stdout.splitlines()
    cost = 20 * 3e-06 + 183 * 15e-06 + 300_000 * 3e-07
    assert lines[0].endswith("  cost")
    assert lines[-1].endswith(f"${cost:.2f}")
    found = facts(usage("--prices", "prices.json", "--json", "--by", "model"))
    assert found["groups"][0]["cost"] == found["total"]["cost"] == round(cost, 6)
    assert found["unpriced_models"] == []


@pytest.mark.parametrize(
    "prices",
    [
        {"opus": SONNET},
        {"sonnet": {"input_cost_per_token": 3e-06}},
        {"sonnet": {**SONNET, "output_cost_per_token": None}},
    ],
)
def test_a_model_without_a_price_is_named(usage, tmp_path, prices):
    (tmp_path / "prices.json").write_text(json.dumps(prices))
    lines = usage("--prices", "prices.json").stdout.splitlines()
    assert lines[-1] == "No price for sonnet: 5 responses without a cost."
    assert [line.split()[-1] for line in lines[1:-1]] == ["\N{EN DASH}", "\N{EN DASH}"]
    found = facts(usage("--prices", "prices.json", "--json"))
    assert found["unpriced_models"] == [{"model": "sonnet", "responses": 5}]
    assert (found["total"]["cost"], found["total"]["unpriced_responses"]) == (None, 5)


def test_a_total_with_responses_without_a_price_is_at_least_so_much(usage, tmp_path):
    records = [said(1, "m", text("x"), 3), said(2, "n", text("x"), 3)]
    records[1]["message"]["model"] = "opus"
    (tmp_path / "transcripts").mkdir()
    (tmp_path / "transcripts" / "s.jsonl").write_text("\n".join(map(json.dumps, records)))
    (tmp_path / "prices.json").write_text(json.dumps({"opus": {**SONNET, "output_cost_per_token": 2}}))
    lines = usage("--prices", "prices.json", "--by", "model").stdout.splitlines()
    assert [line.split("  ")[-1].strip() for line in lines[1:4]] == ["$6.02", "\N{EN DASH}", "≥ $6.02"]
    found = facts(usage("--prices", "prices.json", "--json", "--by", "model"))
    assert [(group["cost"], group["unpriced_responses"]) for group in found["groups"]] == [(6.018012, 0), (None, 1)]


@pytest.mark.parametrize("flags", [(), ("--session", "s-1"), ("--workers", "2", "--by", "session")])
def test_tokens_that_stay_in_a_cache_for_an_hour_have_their_own_price(usage, tmp_path, flags):
    parts = [(300, 700), (300, 700), (1000, 0), (0, 5000)]  # the last one has more for an hour than it has in all
    records = [said(second, f"m{second // 2}", text("x"), second) for second in range(4)]
    for record, (for_minutes, for_an_hour) in zip(records, parts, strict=True):
        record["message"]["usage"] |= {
            "cache_creation_input_tokens": 1000,
            "cache_creation": {"ephemeral_5m_input_tokens": for_minutes, "ephemeral_1h_input_tokens": for_an_hour},
        }
    (tmp_path / "transcripts").mkdir()
    (tmp_path / "transcripts" / "s.jsonl").write_text("\n".join(map(json.dumps, records)))
    rates = dict.fromkeys(SONNET, 0) | {"cache_creation_input_token_cost": 1, "output_cost_per_token": 0}
    priced = {"sonnet": {**rates, "cache_creation_input_token_cost_above_1hr": 10}}
    (tmp_path / "prices.json").write_text(json.dumps(priced))
    total = facts(usage("--prices", "prices.json", "--json", *flags))["total"]
    assert (total["responses"], total["cache_creation_tokens"]) == (2, 2000)
    assert total["cost"] == 300 + 700 * 10 + 1000 * 10
    (tmp_path / "prices.json").write_text(json.dumps({"sonnet": rates}))
    assert facts(usage("--prices", "prices.json", "--json", *flags))["total"]["cost"] == 2000


@pytest.mark.parametrize(
    ("mode", "factor"),
    [
        ({"speed": "standard", "inference_geo": "global"}, 1),
        ({"speed": "fast"}, 2),
        ({"speed": "standard", "inference_geo": "us"}, 1.1),
        ({"speed": "fast", "inference_geo": "US"}, 2.2),
        ({"speed": "fast", "inference_geo": "not_available"}, 2),
        ({"speed": "unheard-of", "inference_geo": "eu"}, 1),
    ],
)
def test_all_tokens_of_a_fast_response_or_one_of_a_dearer_region_cost_more_also_those_of_a_cache(
    usage, tmp_path, mode, factor
):
    record = said(1, "m", text("x"), 5)
    cached = {"cache_read_input_tokens": 40, "cache_creation_input_tokens": 7}
    cached["cache_creation"] = {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 3}
    record["message"]["usage"] |= {"input_tokens": 1000, **cached, **mode}
    (tmp_path / "transcripts").mkdir()
    (tmp_path / "transcripts" / "s.jsonl").write_text(json.dumps(record))
    rates = {"input_cost_per_token": 1, "output_cost_per_token": 100, "cache_read_input_token_cost": 10}
    rates |= {"cache_creation_input_token_cost": 20, "cache_creation_input_token_cost_above_1hr": 30}
    priced = {"anthropic/sonnet": {**rates, "provider_specific_entry": {"fast": 2.0, "us": 1.1}}}
    (tmp_path / "prices.json").write_text(json.dumps(priced))
    cost = facts(usage("--prices", "prices.json", "--json"))["total"]["cost"]
    usual = 1000 * 1 + 5 * 100 + 40 * 10 + 4 * 20 + 3 * 30
    assert cost == pytest.approx(usual * factor)
    for entry in ({"fast": "2"}, {"fast": -2, "us": None}, [], None, 7):
        priced["anthropic/sonnet"]["provider_specific_entry"] = entry
        (tmp_path / "prices.json").write_text(json.dumps(priced))
        assert facts(usage("--prices", "prices.json", "--json"))["total"]["cost"] == usual


def test_usage_reports_tokens_that_the_transcripts_lack(usage, tmp_path):
    start = {"type": "session.start", "id": "e0", "data": {"sessionId": "s", "selectedModel": "gpt-5"}}
    answer = {"type": "assistant.message", "id": "e1", "timestamp": "2026-11-01T12:00:00Z"}
    answer["data"] = {"messageId": "m", "content": "Done.", "outputTokens": 9}
    (tmp_path / "transcripts").mkdir()
    path = tmp_path / "transcripts" / "events.jsonl"
    path.write_text("\n".join(map(json.dumps, [start, answer])))
    done = usage()
    assert done.stderr == "tailhook: the input tokens of 1 response are not counted: the transcripts lack them\n"
    found = facts(usage("--json"))
    assert (found["total"]["output_tokens"], found["responses_without_input"]) == (9, 1)
    sums = {"gpt-5": {"usage": {"inputTokens": 100, "outputTokens": 9}}}
    shutdown = {"type": "session.shutdown", "id": "e2", "timestamp": "2026-11-01T12:00:01Z"}
    path.write_text("\n".join(map(json.dumps, [start, answer, {**shutdown, "data": {"modelMetrics": sums}}])))
    assert usage().stderr == ""
    found = facts(usage("--json"))
    assert (found["total"]["input_tokens"], found["total"]["output_tokens"]) == (100, 9)
    assert found["responses_without_input"] == 0


def test_what_an_advisor_used_is_a_response_of_its_own_model_with_its_own_cost(usage, tmp_path):
    record = said(1, "m", text("x"), 491)
    record["requestId"] = "r"
    advised = {"type": "advisor_message", "model": "opus", "input_tokens": 159_419, "output_tokens": 7805}
    own = {"type": "message", "input_tokens": 1, "output_tokens": 45}
    record["message"]["usage"] |= {"input_tokens": 2, "iterations": [own, advised, own, advised]}
    unfinished = json.loads(json.dumps(record))
    unfinished["message"]["usage"]["iterations"][1]["output_tokens"] = 1
    (tmp_path / "transcripts").mkdir()
    for name in ("s.jsonl", "resumed.jsonl"):
        (tmp_path / "transcripts" / name).write_text("\n".join(map(json.dumps, [unfinished, record, record])))
    (tmp_path / "prices.json").write_text(
        json.dumps({"sonnet": SONNET, "opus": {**SONNET, "output_cost_per_token": 1}})
    )
    groups = facts(usage("--by", "model", "--prices", "prices.json", "--json"))["groups"]
    found = [[group[name] for name in ("model", "responses", "input_tokens", "output_tokens")] for group in groups]
    assert found == [["opus", 2, 2 * 159_419, 2 * 7805], ["sonnet", 1, 2, 491]]
    assert groups[0]["cost"] == pytest.approx(2 * (159_419 * 3e-06 + 7805))
    (session,) = scan(tmp_path / "transcripts", "sessions").rows()
    assert (session.models, session.output_tokens) == (["opus", "sonnet"], 491 + 2 * 7805)


@pytest.mark.parametrize("iterations", [None, 7, {}, [], [1, [], "x", {}], [{"type": "advisor_message"}]])
def test_iterations_of_other_shapes_do_not_count_as_advisors(usage, tmp_path, iterations):
    record = said(1, "m", text("x"), 5)
    record["message"]["usage"]["iterations"] = iterations
    (tmp_path / "transcripts").mkdir()
    (tmp_path / "transcripts" / "s.jsonl").write_text(json.dumps(record))
    total = facts(usage("--json"))["total"]
    assert (total["responses"], total["output_tokens"]) == (1 + (iterations == [{"type": "advisor_message"}]), 5)


def test_the_table_usage_has_no_column_for_tokens_that_stay_for_an_hour(tmp_path):
    done = tailhook("scan", "--table", "usage", "--columns", "cache_creation_1h_tokens", ".", env={}, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("value", ['"3e-06"', "true", "NaN", "Infinity", "-Infinity", "-3e-06", "[]"])
@pytest.mark.parametrize("name", ["input_cost_per_token", "cache_read_input_token_cost_above_200k_tokens"])
def test_a_model_with_what_is_not_a_price_has_no_price(usage, tmp_path, name, value):
    (tmp_path / "prices.json").write_text(
        json.dumps({"sonnet": {**SONNET, name: 0}}).replace(f'"{name}": 0', f'"{name}": {value}')
    )
    assert (
        usage("--prices", "prices.json").stdout.splitlines()[-1] == "No price for sonnet: 5 responses without a cost."
    )
    done = usage("--prices", "prices.json", "--json")
    found = json.loads(done.stdout, parse_constant=pytest.fail)
    assert found["unpriced_models"] == [{"model": "sonnet", "responses": 5}]
    assert found["total"]["cost"] is None


def test_a_response_without_a_model_has_no_price(usage, tmp_path):
    record = said(1, "m", text("x"), 3)
    del record["message"]["model"]
    (tmp_path / "transcripts").mkdir()
    (tmp_path / "transcripts" / "s.jsonl").write_text(json.dumps(record))
    (tmp_path / "prices.json").write_text(json.dumps({"opus": SONNET}))
    last = usage("--prices", "prices.json").stdout.splitlines()[-1]
    assert last == "No price for a response without a model: 1 response without a cost."
    assert "unknown" in usage("--by", "model").stdout


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("{", "prices.json is not valid JSON: "),
        ("[]", "prices.json is not a price list: it has no prices of tokens. Give LiteLLM's model_prices_and_context"),
        ('{"sonnet": {}}', "prices.json is not a price list: it has no prices of tokens. "),
        pytest.param(
            "[" * 100_000, "prices.json is not a price list: its JSON is nested too deeply\n", id="deep arrays"
        ),
        (
            '{"sonnet": {"input_cost_per_token": 1e999999999}}',
            "prices.json is not a price list: sonnet costs more than $1,000,000 a token\n",
        ),
        pytest.param(
            '{"sonnet": {"input_cost_per_token": 0, "output_cost_per_token": 1' + "0" * 400 + "}}",
            "prices.json is not a price list: sonnet costs more than $1,000,000 a token\n",
            id="a huge number",
        ),
        (None, "prices.json: No such file or directory"),
    ],
)
def test_a_file_that_is_not_a_price_list_is_refused(usage, tmp_path, data, message):
    if data is not None:
        (tmp_path / "prices.json").write_text(data)
    done = usage("--prices", "prices.json", exit_code=1)
    assert done.stdout == ""
    assert done.stderr.startswith(f"tailhook: {message}")


def test_an_output_that_is_not_utf8_gets_escapes(usage, tmp_path):
    (tmp_path / "prices.json").write_text(json.dumps({"opus": SONNET}))
    done = usage("--prices", "prices.json", LANG="", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.stdout.splitlines()[-2].endswith("  \\u2013")


# ---- what can fail -------------------------------------------------------------


def test_a_missing_source_is_reported_and_the_others_count(usage):
    done = usage("--json", sources=["absent", "transcripts"], exit_code=1)
    assert done.stderr == "tailhook: absent: No such file or directory\n"
    assert facts(done)["total"]["responses"] == 5
    assert facts(done)["skipped"] == [{"path": "absent", "reason": "No such file or directory"}]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--by", "hour"], "invalid choice: 'hour'"),
        (["--since", "soon"], "'soon' is not a time"),
        (["--workers", "none"], "'none' is not a whole number"),
        ([""], "a source is an empty name: give a file, a folder, a glob or a URL"),
        (["--prices", ""], "--prices is an empty name: give a file"),
    ],
)
def test_an_argument_that_is_not_valid_is_refused(usage, words, message):
    assert message in usage(*words, exit_code=2).stderr


def test_a_price_that_is_null_is_missing(usage, tmp_path):
    nulls = {"cache_read_input_token_cost": None, "output_cost_per_token_above_200k_tokens": None}
    (tmp_path / "prices.json").write_text(json.dumps({"sonnet": {**SONNET, **nulls}}))
    total = facts(usage("--prices", "prices.json", "--json"))["total"]
    assert total["cost"] == round(300_020 * 3e-06 + 183 * 15e-06, 6)
    (tmp_path / "prices.json").write_text(json.dumps({"opus": SONNET, "sonnet": {"input_cost_per_token": None}}))
    assert usage("--prices", "prices.json").stdout.splitlines()[-1].startswith("No price for sonnet")


@pytest.mark.parametrize("command", ["usage", "scan --table records", "scan --signals --count"])
def test_a_closed_stdout_is_reported(tmp_path, command):
    write_sample(tmp_path)
    words = f"{shlex.quote(sys.executable)} -m tailhook {command} s-1.jsonl"
    for redirection, exit_code in ((">&-", 1), (">/dev/null", 0)):
        done = subprocess.run(
            ["sh", "-c", f"{words} {redirection}"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=HANGS_S,
            check=False,
        )
        assert done.returncode == exit_code
        assert done.stderr.startswith("tailhook: standard output is closed") == (exit_code == 1)
        assert done.stderr.count("\n") == exit_code


def test_files_that_are_too_old_for_since_are_mentioned(tmp_path):
    write_sample(tmp_path)
    for name in ("s-1.jsonl", "s-2.jsonl"):
        os.utime(tmp_path / name, (1_700_000_000, 1_700_000_000))
    (tmp_path / "s-3.jsonl").write_text(json.dumps(said(1, "m", text("x"), 3)))
    words = ("scan", "--table", "records", "--json", "--since", "2026-11-20T00:00Z")
    line = "tailhook: 2 files that were last written more than a day before --since were not read\n"
    for sources, note in ((("s-1.jsonl", "s-2.jsonl", "s-3.jsonl"), line), (("s-3.jsonl",), "")):
        done = tailhook(*words, *sources, env={}, cwd=tmp_path)
        assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (0, 1, note)
    done = tailhook(*words, "s-1.jsonl", env={}, cwd=tmp_path)
    assert (done.stdout, done.stderr) == (
        "",
        line.replace("2 files that were", "1 file that was").replace("were", "was"),
    )
    assert tailhook("usage", "--since", "2026-11-20", "s-1.jsonl", env={}, cwd=tmp_path).stderr == ""


def test_a_file_is_written_though_stdout_is_closed(tmp_path):
    write_sample(tmp_path)
    words = f"{shlex.quote(sys.executable)} -m tailhook scan --table records -o rows.csv s-1.jsonl >&-"
    assert subprocess.run(["sh", "-c", words], cwd=tmp_path, timeout=HANGS_S, check=False).returncode == 0
    assert (tmp_path / "rows.csv").stat().st_size


def test_a_folder_without_a_response_is_reported_and_not_passed_over_in_silence(usage, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "s.jsonl").write_text('{"type":"user","message":{"role":"user","content":"Hi."}}\n')
    done = usage(sources=("empty",))
    assert (done.stdout, done.stderr) == ("", "tailhook: no response with tokens in 1 file\n")


@pytest.mark.parametrize(
    ("words", "fits"),
    [
        (["--since", "2030-01-01"], "--since"),
        (["--until", "2000-01-01"], "--until"),
        (["--since", "2000-01-01", "--until", "2000-01-02"], "--since and --until"),
    ],
)
def test_the_files_are_not_called_empty_if_only_the_times_leave_nothing(usage, words, fits):
    done = usage(*words, sources=("transcripts",))
    assert (done.stdout, done.stderr) == ("", f"tailhook: no response with tokens in 3 files fits {fits}\n")


def test_a_source_with_a_too_long_name_hides_neither_another_source_nor_the_models_without_a_price(usage, tmp_path):
    (tmp_path / "others.json").write_text('{"other": {"input_cost_per_token": 1e-6}}')
    long = "x" * 300
    done = usage("--prices", "others.json", sources=("transcripts", "gone", long), exit_code=1)
    assert done.stdout.splitlines()[-1].startswith("No price for ")
    assert done.stderr == f"tailhook: gone: No such file or directory\ntailhook: {long}: File name too long\n"


def test_a_session_that_is_not_there_is_named_and_the_files_are_not_called_empty(usage):
    done = usage("--session", "s-")
    expected = "tailhook: no row fits --session s-: write whole ids, as in the column session_id\n"
    assert (done.stdout, done.stderr) == ("", expected)
