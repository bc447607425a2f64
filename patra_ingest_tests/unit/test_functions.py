from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from zoneinfo import ZoneInfo

import pytest

from patra_ingest.expr.functions import FUNCTIONS, Bound, to_text
from patra_ingest.model.codes import Operation

NOON = datetime(2026, 3, 9, 12, 30, 45, 678901, tzinfo=UTC)
# In New York, 8 March 2026 has 23 hours: this is the midnight after it.
MIDNIGHT = datetime(2026, 3, 9, 4, tzinfo=UTC)


class Two(IntEnum):
    TWO = 2


def call(chain, value):
    """Apply `name:argument^argument` steps the way a template does."""
    for step in chain.split(" > "):
        name, _, listed = step.partition(":")
        value = FUNCTIONS[name].make(*(listed.split("^") if listed else []))(value)
    return value


@pytest.mark.parametrize(
    ("chain", "value", "expected"),
    [
        ("iso", NOON, "2026-03-09T12:30:45Z"),
        ("iso", "2026-03-09T13:30:45+01:00", "2026-03-09T12:30:45Z"),
        ("iso", "2026-03-09", "2026-03-09T00:00:00Z"),
        ("isoSeconds", NOON, "2026-03-09T12:30:45"),
        ("date", NOON, "2026-03-09"),
        ("format:yyyy/MM/dd", NOON, "2026/03/09"),
        ("format:yyyyMMddHHmm", NOON, "202603091230"),
        ("format:yyyy-MM-ddTHH:mm:ssZ", NOON, "2026-03-09T12:30:45Z"),
        ("format:dd. MM., (HH)", NOON, "09. 03., (12)"),
        ("minus:1d > iso", NOON, "2026-03-08T12:30:45Z"),
        ("plus:PT90M > iso", NOON, "2026-03-09T14:00:45Z"),
        ("minus:100ms > iso", datetime(2026, 1, 1, tzinfo=UTC), "2025-12-31T23:59:59Z"),
        ("zone:America/New_York > format:yyyy-MM-dd HH", MIDNIGHT, "2026-03-09 00"),
        ("zone:America/New_York > minus:1d > format:yyyy-MM-dd HH", MIDNIGHT, "2026-03-08 00"),
        ("zone:America/New_York > minus:1s > date", MIDNIGHT, "2026-03-08"),
        ("zone:America/New_York > plus:24h > iso", MIDNIGHT, "2026-03-10T04:00:00Z"),
        ("zone:America/New_York > iso", MIDNIGHT, "2026-03-09T04:00:00Z"),
        ("lower", "DOI", "doi"),
        ("upper", "doi", "DOI"),
        ("trim", "  a b \n", "a b"),
        ("join", [1, "a", True], "1,a,true"),
        ("join: OR ", ["a", "b"], "a OR b"),
        ("join", [], ""),
        ("quote", 'say "a\\b"', '"say \\"a\\\\b\\""'),
        ("default:*", None, "*"),
        ("default:*", "", ""),
        ("default:*", 0, 0),
        ("formatDateTime:yyyy/MM/dd", NOON, "2026/03/09"),
        ("format:HH:mm:ss.SSS", NOON, "12:30:45.678"),
        ("format:ss.SSSSSS", NOON, "45.678901"),
        ("lucene", 'a:b "c" (d) \\', 'a\\:b \\"c\\" \\(d\\) \\\\'),
        ("lucene", "+-&|!{}[]^~*?/<>=", "".join("\\" + c for c in "+-&|!{}[]^~*?/<>=")),
        ("lucene", "x AND NOT y", "x \\AND \\NOT y"),
        ("lucene", "BRAND android", "BRAND android"),
        ("lucene", ["a:b", "c"], ["a\\:b", "c"]),
        ("quote > join: OR ", ["a", "b"], '"a" OR "b"'),
        ("wrap:doi:^;", "10.1/a", "doi:10.1/a;"),
        ("wrap:(^)", ["a", 2], ["(a)", "(2)"]),
        ("prefix:doi: > join", ["a", "b"], "doi:a,doi:b"),
        ("suffix:[PMID]", 12, "12[PMID]"),
        ("escape:,:", "a,b:c", "a\\,b\\:c"),
        ('without:,"', 'a,"b"', "ab"),
        ("without:,", ["a,b", "c"], ["ab", "c"]),
        (r"rewrite:([A-Z]+)_(.+)^(\2 AND \1)", "MED_12", "(12 AND MED)"),
        (r"rewrite:oai_(.+)^\1 > join", ["oai_1", "oai_2"], "1,2"),
        (r"rewrite:a(b)?^<\1>", "a", "<>"),
        ("segment", "10.1/a b?#", "10.1%2Fa%20b%3F%23"),
        ("segment", "größe", "gr%C3%B6%C3%9Fe"),
        ("segment", 12, "12"),
        ("nullIf:NA", "NA", None),
        ("nullIf:NA^0", 0, None),
        ("nullIf:NA", "na", "na"),
        ("int", " 12 ", 12),
        ("int", 3.0, 3),
        ("int", ["7", 8], [7, 8]),
        ("jsonPath:$.a.b[1]", {"a": {"b": [1, 2]}}, 2),
        ("jsonPath:$[?(@.t == 'x')].v", [{"t": "x", "v": 1}], 1),
        ("jsonPath:$.none", {}, None),
    ],
)
def test_a_function_turns_a_value_into_another(chain, value, expected):
    assert call(chain, value) == expected


def test_coalesce_takes_the_first_value_that_is_there():
    assert FUNCTIONS["coalesce"].make(None, "b", "c")(None) == "b"
    assert FUNCTIONS["coalesce"].make("b")("a") == "a"
    assert FUNCTIONS["coalesce"].make(None)(None) is None


def test_concat_joins_what_is_there_and_is_null_without_a_part():
    assert FUNCTIONS["concat"].make("b", 3)("a") == "ab3"
    assert FUNCTIONS["concat"].make("b", None)("a") is None


# New York is four hours behind in July.
EVENING = Bound(
    datetime(2026, 7, 1, 20, 5, tzinfo=ZoneInfo("America/New_York")), "yyyy/MM/dd HH:mm"
)


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        ("date", "2026-07-01"),
        ("isoSeconds", "2026-07-01T20:05:00"),
        ("format:HH", "20"),
        ("iso", "2026-07-02T00:05:00Z"),
        ("zone:UTC > date", "2026-07-02"),
        ("minus:1d > date", "2026-06-30"),
    ],
)
def test_a_bound_shows_its_own_clock(chain, expected):
    assert call(chain, EVENING) == expected


def test_a_bound_is_written_as_its_source_wants_it():
    assert to_text(EVENING) == "2026/07/01 20:05"
    assert to_text(Bound(EVENING.at)) == "2026-07-02T00:05:00.000000Z"
    assert to_text(call("minus:1d", EVENING)) == "2026/06/30 20:05"
    assert to_text(call("zone:UTC", EVENING)) == "2026/07/02 00:05"
    tokyo = datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=9)))
    assert to_text(call("plus:1h", Bound(tokyo, "dd HH"))) == "01 01"


def test_a_bound_that_cannot_be_written_is_refused_at_once():
    with pytest.raises(ValueError, match="no part of a time"):
        Bound(NOON, "YYYY")
    with pytest.raises(ValueError, match="no time zone"):
        Bound(NOON.replace(tzinfo=None))


@pytest.mark.parametrize(
    ("name", "argument", "reason"),
    [
        pytest.param("format", "YYYY-MM-dd", "'Y' at 0", id="another language's year"),
        pytest.param("format", "yyyy-MM-DD", "'D' at 8", id="another language's day"),
        pytest.param("format", "%Y", "'Y' at 1", id="strftime"),
        pytest.param("zone", "Mars/Olympus", "no time zone 'Mars/Olympus'", id="no such zone"),
        pytest.param("zone", "../../etc/passwd", "no time zone", id="a path is no zone"),
        pytest.param("zone", "/etc/localtime", "no time zone", id="nor an absolute one"),
        pytest.param("zone", "America", "no time zone", id="a folder of zones"),
        pytest.param("zone", "", "no time zone", id="no name"),
        pytest.param("minus", "1 month", "not a duration", id="no fixed length"),
        pytest.param("plus", "-1d", "not a duration", id="a sign"),
        pytest.param("jsonPath", "$.a[", "at 4", id="half a path"),
    ],
)
def test_a_wrong_argument_is_found_before_any_value_is_seen(name, argument, reason):
    with pytest.raises(ValueError, match=reason):
        FUNCTIONS[name].make(argument)


@pytest.mark.parametrize(
    ("chain", "value"),
    [
        ("iso", 20260309),
        ("iso", NOON.replace(tzinfo=None)),
        ("date", "yesterday"),
        ("date", ["2026-03-09"]),
        ("lower", 5),
        ("trim", NOON),
        ("quote", None),
        ("join", "abc"),
        ("join", {"a": 1}),
        ("join", [["nested"]]),
        ("join", [None]),
        ("int", "4002.e26"),
        ("int", "12a"),
        ("int", True),
        ("int", 1.5),
        ("lucene", 5),
        ("wrap:a^b", {"a": 1}),
        (r"rewrite:oai_(.+)^\1", "ari_1"),
        (r"rewrite:oai_(.)^\1", "oai_12"),
        (r"rewrite:(a+)^\1", "a" * 2_000_000),
        ("segment", ""),
        ("segment", ".."),
        ("segment", ["a"]),
        ("jsonPath:$.a", "text"),
        ("jsonPath:$.a", NOON),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(chain, value):
    with pytest.raises(ValueError, match=r"\w"):
        call(chain, value)


@pytest.mark.parametrize("listed", [("a", r"\1"), ("(a)", "b"), ("(a)", r"\2"), ("(a+)+", r"\1")])
def test_what_cannot_be_rewritten_is_refused_before_there_is_a_value(listed):
    with pytest.raises(ValueError, match="group"):
        FUNCTIONS["rewrite"].make(*listed)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "a"),
        (Operation.HARVEST, "HARVEST"),
        (True, "true"),
        (12, "12"),
        (Two.TWO, "2"),
        (0.5, "0.5"),
        (Decimal("1E+3"), "1000"),
        (NOON, "2026-03-09T12:30:45.678901Z"),
    ],
)
def test_a_single_value_is_written_as_a_request_carries_it(value, text):
    assert to_text(value) == text


@pytest.mark.parametrize("value", [[], {}, None, b"a", object(), float("nan"), float("inf")])
def test_what_is_not_a_single_value_is_not_written(value):
    with pytest.raises(ValueError, match="not one value"):
        to_text(value)
