"""Tests of counting API responses once, beside the rule in plain Python."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailhook._core import ResponseCounter, make_batch
from tailhook.fleet.reduce import USAGE_HALF

START = datetime(2026, 1, 1, tzinfo=UTC)
NEVER = datetime.min.replace(tzinfo=UTC)
PATH, OFFSET, SESSION, TIME, MESSAGE, REQUEST, UUID, OUTPUT = map(
    USAGE_HALF.index,
    ("path", "offset", "session_id", "timestamp", "message_id", "request_id", "uuid", "output_tokens"),
)
FEW = st.sampled_from([None, "", "a", "b", "ab"])


def record(path, offset, seconds, message, request, uuid, output, advisor=0, copies=None):
    """Return a record of a response, with the columns of USAGE_HALF."""
    time = None if seconds is None else START + timedelta(seconds=seconds)
    session = f"session of {path}"
    ids = (message, request, uuid, advisor, copies)
    return (path, offset, session, None, "/p", "claude-code", "m", time, *ids, 1, output, None, None)


RECORDS = st.lists(
    st.tuples(
        st.sampled_from(["p", "q", "pq"]), st.integers(0, 5), st.none() | st.integers(0, 3), FEW, FEW, FEW,
        st.none() | st.integers(0, 3),
    ),
    max_size=30,
    unique_by=lambda values: values[:2],
)  # fmt: skip


def counted(records, names=USAGE_HALF):
    """Return the responses of records, added a few at a time."""
    counter = ResponseCounter(USAGE_HALF)
    for start in range(0, len(records), 7):
        counter.add(make_batch("usage", USAGE_HALF, records[start : start + 7]))
    return [row for batch in counter.rows(names) for row in zip(*batch.columns(), strict=True)]


def place(row):
    return (row[TIME] or NEVER, row[PATH], row[OFFSET])


def response_of(row, lacking):
    """Return the key of a record's response."""
    if row[MESSAGE]:
        return (0, row[MESSAGE], "" if row[MESSAGE] in lacking else row[REQUEST])
    if row[REQUEST]:
        return (1, row[REQUEST], "")
    return (2, row[UUID], "") if row[UUID] else (3, row[PATH], str(row[OFFSET]))


def expected(records):
    """Return the owner of each response and its counting record, by the rule."""
    lacking = {row[MESSAGE] for row in records if row[MESSAGE] and not row[REQUEST]}
    ordered = sorted(records, key=lambda row: response_of(row, lacking))
    for _, group in groupby(ordered, lambda row: response_of(row, lacking)):
        rows = list(group)
        best = max(rows, key=lambda row: (-1 if row[OUTPUT] is None else row[OUTPUT], place(row)))
        yield min(rows, key=place)[SESSION], best[PATH], best[OFFSET]


@given(RECORDS, st.randoms())
def test_each_response_counts_once_in_any_order(values, random):
    records = [record(*one) for one in values]
    random.shuffle(records)
    found = counted(records)
    assert sorted((row[SESSION], row[PATH], row[OFFSET]) for row in found) == sorted(expected(records))
    times = [row[TIME] or NEVER for row in found]
    assert times == sorted(times)


def test_records_that_cannot_count_are_forgotten():
    counter = ResponseCounter(USAGE_HALF)
    many = [record("p", offset, offset, f"message {offset % 10}", "r", None, offset) for offset in range(1000)]
    for _ in range(200):
        counter.add(make_batch("usage", USAGE_HALF, many))
    found = [batch.columns() for batch in counter.rows(("message_id", "output_tokens"))]
    assert found == [[[f"message {number}" for number in range(10)], list(range(990, 1000))]]


def test_many_responses_come_in_several_batches_in_one_order():
    records = [record("p", number, 200_000 - number, f"m{number}", "r", None, 1) for number in range(140_000)]
    counter = ResponseCounter(USAGE_HALF)
    counter.add(make_batch("usage", USAGE_HALF, records))
    batches = counter.rows(("offset",))
    assert [len(batch) for batch in batches] == [65_536, 65_536, 8_928]
    assert [offset for batch in batches for offset in batch.columns()[0]] == list(range(139_999, -1, -1))


def test_a_counter_without_records_gives_nothing():
    assert ResponseCounter(USAGE_HALF).rows(USAGE_HALF) == []
    assert counted([]) == []


def test_a_counter_can_be_asked_again_and_goes_on():
    counter = ResponseCounter(USAGE_HALF)
    for output in (1, 5, 3):
        counter.add(make_batch("usage", USAGE_HALF, [record("p", output, None, "m", None, None, output)]))
        assert len(counter.rows(("session_id",))[0]) == 1
    assert counter.rows(("output_tokens",))[0].columns() == [[5]]


def test_without_any_id_each_place_is_a_response():
    records = [record(path, offset, 1, None, None, None, 2) for path in "pq" for offset in range(150)]
    assert len(counted(records * 2)) == 300


def test_threads_take_turns_or_are_refused():
    counter = ResponseCounter(USAGE_HALF)
    batch = make_batch("usage", USAGE_HALF, [record("p", n, n, f"m{n}", "r", None, 1) for n in range(20_000)])
    refused = []

    def use(number):
        try:
            counter.rows(("offset",)) if number % 2 else counter.add(batch)
        except RuntimeError as error:
            refused.append(str(error))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(use, range(40)))
    assert set(refused) <= {"another thread uses this counter"}
    assert [len(rows) for rows in counter.rows(("offset",))] == [20_000]


def test_nulls_stay_nulls_behind_records_that_are_forgotten():
    counter = ResponseCounter(USAGE_HALF)
    many = [record("p", offset, offset, f"m{offset % 5}", "r", None, offset) for offset in range(70_000)]
    nulls = [("z", offset, "main", None, None, "h", None, None, f"n{offset}", *[None] * 8) for offset in range(8)]
    counter.add(make_batch("usage", USAGE_HALF, many))
    counter.add(make_batch("usage", USAGE_HALF, nulls))
    rows = [row for batch in counter.rows(USAGE_HALF) for row in zip(*batch.columns(), strict=True)]
    assert rows[:8] == nulls


def test_a_column_of_lists_is_refused():
    with pytest.raises(ValueError, match="no columns of lists"):
        ResponseCounter((*USAGE_HALF, "tools"))


@pytest.mark.parametrize(
    "names", [(), ("path",), tuple(name for name in USAGE_HALF if name != "uuid"), (*USAGE_HALF, "path")]
)
def test_columns_that_cannot_decide_are_refused(names):
    with pytest.raises(ValueError, match="do not show which records are of one response"):
        ResponseCounter(names)


def test_a_batch_and_rows_with_other_columns_are_refused():
    counter = ResponseCounter(USAGE_HALF)
    with pytest.raises(ValueError, match="other columns"):
        counter.add(make_batch("usage", USAGE_HALF[:-1], []))
    with pytest.raises(ValueError, match="lacks one of the columns"):
        counter.rows(("tool_use_id",))
    with pytest.raises(ValueError, match="no table has a column"):
        ResponseCounter((*USAGE_HALF, "unheard_of"))
    with pytest.raises(TypeError):
        counter.add(None)
