"""Sums of usage, and their cost."""

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from support.cases import in_one_test

from tailhook._core import make_batch
from tailhook.cli.prices import HOUR_RATE, MAX_PRICE, PriceError, PriceList, Tokens, read_prices
from tailhook.cli.totals import add_up, total_columns, week_of
from tailhook.cli.usage import format_cost, table_lines, total_facts
from tailhook.fleet.columns import TOKEN_COLUMNS
from tailhook.pictures.terminal import count_cells

UTC = UTC
STEPS = [timedelta(0), timedelta(minutes=4, seconds=59, microseconds=999_999)]
NAMES = ("session_id", "agent_id", "project", "model", "timestamp", *TOKEN_COLUMNS)
CHEAP = {"input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06}
CACHED = {**CHEAP, "cache_read_input_token_cost": 1e-07, "cache_creation_input_token_cost": 1.25e-06}
TIERED = {
    **CACHED,
    "input_cost_per_token_above_200k_tokens": 2e-06,
    "output_cost_per_token_above_200k_tokens": 4e-06,
    "cache_read_input_token_cost_above_200k_tokens": 2e-07,
}


def row(model="m", time=None, session="s", agent=None, project="/p", tokens=(1, 2, 3, 4)):
    return (session, agent, project, model, time, *tokens)


def added(rows, by, prices=None, zone=UTC):
    """Add up rows from two batches."""
    batches = [make_batch("usage", NAMES, rows[:1]), make_batch("usage", NAMES, rows[1:])]
    return add_up([batch.select(total_columns(by)) for batch in batches], by, prices, zone)


@pytest.mark.parametrize(
    ("by", "name"),
    [
        ("day", "2027-01-03"),
        ("week", "2026-W53"),
        ("month", "2027-01"),
        ("model", "m"),
        ("project", "/p"),
        ("session", "s"),
        ("agent", None),
    ],
)
def test_a_group_has_the_name_of_what_its_rows_share(by, name):
    assert list(added([row(time=datetime(2027, 1, 3, 23, tzinfo=UTC))], by)[0]) == [name]


def test_a_response_without_a_time_belongs_to_no_day():
    assert [list(added([row()], by)[0]) for by in ("day", "week", "month")] == [[None]] * 3


ZONES = [timezone(timedelta(hours=hours, minutes=minutes)) for hours in (-10, 0, 5, 13) for minutes in (0, 30, 45)]


@in_one_test("zone", [*ZONES, timezone(timedelta(seconds=-2670)), ZoneInfo("Australia/Lord_Howe")], ids=str)
def test_a_day_begins_in_its_zone_even_within_an_hour_of_utc(zone):
    first = datetime(2026, 10, 2, tzinfo=UTC)
    times = [first + timedelta(minutes=minutes) + step for minutes in range(0, 3 * 1440, 5) for step in STEPS]
    for by, name in (("day", "{:%Y-%m-%d}".format), ("month", "{:%Y-%m}".format), ("week", week_of)):
        wanted = [name(time.astimezone(zone)) for time in times]
        found = {
            name: total.responses
            for name, total in added([row(time=time) for time in times], by, None, zone)[0].items()
        }
        assert found == {name: wanted.count(name) for name in sorted(set(wanted))}


@pytest.mark.parametrize("zone", [timezone(timedelta(hours=hours)) for hours in (-10, 0, 10)], ids=str)
def test_a_time_at_the_edge_of_the_calendar_counts_in_utc(zone):
    times = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]
    for by, names in (
        ("day", ["0001-01-01", "9999-12-31"]),
        ("week", ["0001-W01", "9999-W52"]),
        ("month", ["0001-01", "9999-12"]),
    ):
        assert list(added([row(time=time) for time in times], by, None, zone)[0]) == names


def test_groups_are_sorted_by_name_and_the_one_without_a_name_is_the_last():
    groups, whole, unpriced = added([row(agent=name) for name in ("b", None, "a", "b")], "agent")
    assert [(name, total.responses) for name, total in groups.items()] == [("a", 1), ("b", 2), (None, 1)]
    assert (whole.responses, whole.tokens, whole.unpriced) == (4, Tokens(4, 8, 12, 16), 0)
    assert unpriced == {}


def test_counts_that_are_missing_are_zero():
    (total,) = added([row(tokens=(None, 2, None, None))], "model")[0].values()
    assert total.tokens == Tokens(0, 2, 0, 0)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("by", ["day", "project"])
def test_a_table_of_totals_is_not_wider_than_the_terminal(by, width):
    project = "/home/me/プロジェクト/" + "long/" * 20 + "end"
    time = datetime(2026, 11, 22, tzinfo=UTC)
    prices = PriceList({"m": CACHED})
    groups, whole, _ = added([row(time=time, project=project, tokens=(10**9, 10**7, 10**10, 10**8))], by, prices)
    lines = table_lines(by, groups, whole, prices, width)
    assert max(map(count_cells, lines)) <= width
    notes = " ".join(lines[3:])
    assert lines[2].endswith("$2,145.00")
    for head in ("responses", "input", "output", "cache read", "cache creation", "all tokens"):
        assert (head in lines[0]) != (head in notes)
    assert lines[1].startswith("2026-11-22  " if by == "day" else "…")
    assert count_cells(table_lines(by, groups, whole, prices)[1]) > 90


MODELS = ["claude-sonnet-4-5-20250929", "claude-sonnet-4-20250514", "claude-sonnet-4-5-20250930", "claude-opus-4-1"]
FAR = "/home/me/" + "deep/" * 30


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("model", MODELS),
        ("session", [f"3f1c8d5e-7a61-4a52-9d6e-0000000000{number:02}" for number in range(20)]),
        ("project", ["/home/me/first/shop", "/home/me/other/shop", "/home/you/first/shop"]),
        ("project", [f"/home/{name}/{'deep/' * 30}end" for name in "ab"]),
        ("project", [f"{FAR}{name}/{'deep/' * 30}end" for name in "ab"]),
    ],
)
@pytest.mark.parametrize("is_priced", [False, True])
def test_no_two_names_look_the_same_on_a_usual_terminal(by, names, is_priced):
    place = {"model": "model", "session": "session", "project": "project"}[by]
    rows = [row(**{place: name, "tokens": (10**9, 10**7, 10**10, 10**8)}) for name in names]
    prices = PriceList(dict.fromkeys(["m", *MODELS], CACHED)) if is_priced else None
    groups, whole, _ = added(rows, by, prices)
    lines = table_lines(by, groups, whole, prices, 80)
    rows = lines[1 : len(names) + 1]
    assert len({line.split("  ")[0] for line in rows}) == len(names)
    assert all(len(line.split("  ")) > 1 for line in rows)
    if FAR not in names[0]:
        assert max(map(count_cells, lines)) <= 80


def test_a_cost_is_exact_in_any_order():
    prices = PriceList({"m": CACHED})
    rows = [row(tokens=(count, 1, 0, 0)) for count in (1, 10**9, 3)]
    assert added(rows, "model", prices)[1].cost == added(rows[::-1], "model", prices)[1].cost == Decimal("1000.00001")


@pytest.mark.parametrize(
    ("facts", "tokens", "cost"),
    [
        (CHEAP, Tokens(1000, 1000), "0.003"),
        (CHEAP, Tokens(0, 0, 1000, 1000), "0.002"),
        (CACHED, Tokens(0, 0, 1000, 1000), "0.00135"),
        (TIERED, Tokens(200_000, 1000), "0.202"),
        (TIERED, Tokens(200_001, 1000), "0.404002"),
        (TIERED, Tokens(1, 0, 200_000, 1000), "0.041252"),
        ({"input_cost_per_token": 1e-06}, Tokens(1, 0, 1), "0.000002"),
    ],
)
def test_each_kind_of_token_has_its_price(facts, tokens, cost):
    assert added([row(tokens=tokens)], "model", PriceList({"m": facts}))[1].cost == Decimal(cost)


@pytest.mark.parametrize(
    ("facts", "size", "cost"),
    [
        (CHEAP, 0, "0.001"),
        (CACHED, 0, "0.00125"),
        ({**CACHED, HOUR_RATE: 2e-06}, 0, "0.0014"),
        ({**CACHED, HOUR_RATE: 2e-06, "cache_creation_input_token_cost_above_200k_tokens": 1}, 200, "800.0004"),
        ({**CACHED, HOUR_RATE: 2e-06, f"{HOUR_RATE}_above_200k_tokens": 4e-06}, 200, "0.0018"),
    ],
)
def test_tokens_that_stay_in_a_cache_for_an_hour_have_their_own_price(facts, size, cost):
    prices = PriceList({"m": facts})
    assert prices.cost("m", Tokens(0, 0, 0, 1000), size, 200) == Decimal(cost)


def test_a_model_whose_price_for_an_hour_is_not_a_price_has_no_price():
    assert PriceList({"m": {**CACHED, HOUR_RATE: -1}}).facts("m") is None


def test_each_response_has_the_price_of_its_own_prompt():
    prices = PriceList({"m": TIERED, "other": CHEAP})
    rows = [row(model=model, tokens=(size, 1000, size, 1)) for size in (9, 120_000) for model in ("m", "other", "none")]
    _, whole, unpriced = added(rows * 3, "session", prices)
    apart = [added([one], "session", prices)[1].cost for one in rows]
    assert whole.cost == 3 * sum(apart)
    assert (whole.responses, whole.unpriced, unpriced["none"].responses) == (18, 6, 6)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["m", "anthropic/m"], "m"),
        (["openrouter/x/m", "anthropic/m"], "anthropic/m"),
        (["z/m", "a/m"], "a/m"),
        (["m-2", "my"], None),
    ],
)
def test_a_model_is_found_by_its_name_or_by_the_name_under_which_it_is_sold(names, found):
    prices = PriceList({name: {**CHEAP, "is": name} for name in names})
    facts = prices.facts("m")
    assert (facts and facts["is"]) == found


def test_the_cost_of_the_greatest_counts_is_a_number():
    prices = PriceList({"m": {"input_cost_per_token": MAX_PRICE, "output_cost_per_token": 1e-300}})
    whole = added([row(tokens=(2**63 - 1,) * 4)] * 100, "model", prices)[1]
    assert total_facts(whole, prices)["cost"] == pytest.approx(300e6 * 2**63)
    assert format_cost(whole).startswith("$2,767,011,611,056,43")


def test_a_list_is_read_from_a_file(tmp_path):
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"m": CHEAP, "image": {"output_cost_per_image": 1}, "note": "text"}))
    prices = read_prices(path)
    assert prices.cost("m", Tokens(3)) == Decimal("0.000003")
    assert prices.cost("image", Tokens(3)) is None
    assert prices.cost(None, Tokens(3)) is None
    path.write_bytes(b"\xff")
    with pytest.raises(PriceError, match="not valid JSON"):
        read_prices(path)
