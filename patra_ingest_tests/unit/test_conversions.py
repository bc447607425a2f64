from datetime import UTC, datetime

import pytest

from patra_ingest.expr.conversions import CONVERSIONS
from patra_ingest.expr.safe_regex import MAX_PATTERN, safe_regex


def convert(name, *arguments):
    return CONVERSIONS[name].make(*arguments)


def utc(*parts):
    return datetime(*parts, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "arguments", "value", "expected"),
    [
        ("text", [], 12, "12"),
        ("text", [], True, "true"),
        ("collapse", [], " a\n  b\tc ", "a b c"),
        ("stripTags", [], "<p>P<0.001 (n=3)</p>", "P<0.001 (n=3)"),
        ("stripTags", [], "1.73 m<sup>2</sup>", "1.73 m2"),
        ("stripTags", [], "<jats:p>One.</jats:p><jats:p id='a'>Two</jats:p>", "One.  Two"),
        ("stripTags", [], "<jats:italic>in</jats:italic>put <br/>x", "input  x"),
        ("stripTags", [], "a<b and c>d", "a<b and c>d"),
        ("stripTags", [], "3 < 4 > 2", "3 < 4 > 2"),
        ("unescape", [], "P &lt; 0.05 &#945; &amp;amp; AT&T", "P < 0.05 α &amp; AT&T"),
        ("lower", [], "10.1/ABC", "10.1/abc"),
        ("upper", [], "abc", "ABC"),
        ("trim", [], " a ", "a"),
        ("after", ["https://doi.org/"], "https://doi.org/10.1/a", "10.1/a"),
        ("after", ["https://doi.org/"], "10.1/a", "10.1/a"),
        ("before", ["v"], "2101.00001v2", "2101.00001"),
        ("before", ["v"], "2101.00001", "2101.00001"),
        ("regex", [r"/(W\d+)$"], "https://openalex.org/W12", "W12"),
        ("regex", [r"/(W\d+)$"], "A12", None),
        ("regex", ["a(b)?"], "a", None),
        ("split", [";"], "Ada, A.; Bo, B.;", ["Ada, A.", "Bo, B."]),
        ("split", [";"], " ; ", []),
        ("join", ["; "], ["a", None, 1], "a; 1"),
        ("join", [], [None], None),
        ("list", [], ["a", None], ["a", None]),
        ("list", [], [None, None], None),
        ("unique", [], ["b", None, "a", "b"], ["b", "a"]),
        ("unique", [], [None], None),
        ("count", [], ["a", None], 1),
        ("first", [], [None, "b", "c"], "b"),
        ("int", [], "0012", 12),
        ("number", [], "1.50", 1.5),
        ("number", [], " 7 ", 7),
        ("number", [], 2.5, 2.5),
        ("number", [], "1e3", 1000.0),
        ("yesNo", [], "Y", True),
        ("yesNo", [], "n", False),
        ("yesNo", [], "False", False),
        ("yesNo", [], True, True),
        ("nullIf", ["NA", "deprecated"], "deprecated", None),
        ("nullIf", ["NA"], ["NA"], ["NA"]),
        ("default", ["x"], None, "x"),
        ("base64", [], "w6k=", "é"),
        ("base64", [], "w6k", "é"),
        ("base64", [], "Pz8_", "???"),
        ("invertedIndex", [], {"b": [1, 3], "a": [0], "c": [2]}, "a b c b"),
        ("invertedIndex", [], {}, None),
    ],
)
def test_a_value_becomes_another(name, arguments, value, expected):
    assert convert(name, *arguments)(value) == expected


@pytest.mark.parametrize(
    ("name", "arguments", "value", "expected"),
    [
        ("time", [], "2024-03-10T02:30:00+02:00", utc(2024, 3, 10, 0, 30)),
        ("time", [], "2024-03-10", utc(2024, 3, 10)),
        ("time", ["UTC"], "2024-03-10T02:30:00.123456789", utc(2024, 3, 10, 2, 30, 0, 123456)),
        ("time", ["America/New_York"], "2024-07-01 02:30", utc(2024, 7, 1, 6, 30)),
        ("time", ["America/New_York"], "2024-07-01", utc(2024, 7, 1, 4)),
        ("time", ["America/New_York"], "2024-07-01T02:30Z", utc(2024, 7, 1, 2, 30)),
        ("time", ["America/New_York", "yyyy/MM/dd HH:mm"], "2024/01/05 06:00", utc(2024, 1, 5, 11)),
        ("time", ["UTC", "yyyy/MM/dd HH:mm"], "2024/1/5 6:00", utc(2024, 1, 5, 6)),
        ("time", ["UTC", "yyyyMMdd"], "20240105", utc(2024, 1, 5)),
        ("time", ["UTC", "dd.MM.yyyy"], "5.1.2024", utc(2024, 1, 5)),
        ("time", ["UTC", "yyyyMMddHHmmssSSS"], "20240105060708009", utc(2024, 1, 5, 6, 7, 8, 9000)),
        ("time", ["UTC", "yyyy"], "2024", utc(2024, 1, 1)),
        ("epoch", [], 1700000000, utc(2023, 11, 14, 22, 13, 20)),
        ("epoch", [], "1700000000.5", utc(2023, 11, 14, 22, 13, 20, 500000)),
        ("epoch", [], -1, utc(1969, 12, 31, 23, 59, 59)),
        ("epochMillis", [], 1700000000123, utc(2023, 11, 14, 22, 13, 20, 123000)),
        ("ymdTime", ["UTC"], {"Year": "2024", "Month": "Jan", "Day": 5}, utc(2024, 1, 5)),
        (
            "ymdTime",
            ["Asia/Tokyo"],
            {"Year": "2024", "Month": "1", "Day": "5", "Hour": "6", "Minute": "7"},
            utc(2024, 1, 4, 21, 7),
        ),
        ("ymdTime", ["UTC"], {}, None),
    ],
)
def test_a_time_becomes_an_instant(name, arguments, value, expected):
    converted = convert(name, *arguments)(value)

    assert converted == expected
    assert converted is None or converted.tzinfo is UTC


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("dateParts", [[2013, 7, 31]], "2013-07-31"),
        ("dateParts", [[2013, 7]], "2013-07"),
        ("dateParts", [["2013"]], "2013"),
        ("dateParts", [[2013, None, None]], "2013"),
        ("dateParts", [[None]], None),
        ("dateParts", [], None),
        ("dateParts", [2013, 7], "2013-07"),
        ("ymd", {"Year": "2013", "Month": "07", "Day": "1"}, "2013-07-01"),
        ("ymd", {"Year": "2013", "Month": "Jul"}, "2013-07"),
        ("ymd", {"Year": "2013", "Month": "sept."}, "2013-09"),
        ("ymd", {"Year": "2013", "Month": "Spring"}, "2013"),
        ("ymd", {"Year": "2013", "Season": "Fall"}, "2013"),
        ("ymd", {"Year": "2013", "Day": "5"}, "2013"),
        ("ymd", {"MedlineDate": "1998 Dec-1999 Jan"}, "1998"),
        ("ymd", {"MedlineDate": "Winter"}, None),
        ("ymd", {"year": {"value": "2013"}, "month": {"value": "02"}, "day": None}, "2013-02"),
        ("ymd", {}, None),
        ("ymd", "2013 Jul 31", "2013-07-31"),
        ("ymd", "2020 Nov-Dec", "2020"),
        ("ymd", "no year", None),
        ("ymd", 2013, "2013"),
    ],
)
def test_a_date_in_pieces_stays_as_partial_as_it_was(name, value, expected):
    assert convert(name)(value) == expected


@pytest.mark.parametrize(
    ("name", "arguments", "value"),
    [
        ("lower", [], 5),
        ("int", [], "4002.e26"),
        ("int", [], "1.0"),
        ("number", [], "4002.e26"),
        ("number", [], "1e999"),
        ("number", [], "NaN"),
        ("number", [], True),
        ("yesNo", [], "maybe"),
        ("yesNo", [], ["Y"]),
        ("base64", [], "%%%"),
        ("base64", [], "/w=="),
        ("split", [";"], ["a;b"]),
        ("join", [], [{"a": 1}]),
        ("unique", [], [{"a": 1}]),
        ("invertedIndex", [], ["a"]),
        ("invertedIndex", [], {"a": ["x"]}),
        ("time", [], "2024-03-10T02:30:00"),
        ("time", ["UTC"], "yesterday"),
        ("time", ["UTC"], "2024-02-30"),
        ("time", ["UTC"], "2024-13"),
        ("time", ["UTC"], "0001-01-01"),
        ("time", ["UTC"], 2024),
        ("time", ["UTC", "yyyyMMdd"], "2024-01-05"),
        ("time", ["UTC", "yyyyMMdd"], "20240230"),
        ("time", ["UTC", "yyyyMMdd"], "2024105"),
        ("time", ["UTC", "yyyyMMdd"], "2024１105"),
        ("epoch", [], "soon"),
        ("epoch", [], 10**40),
        ("epochMillis", [], True),
        ("dateParts", [], [[2013, 13]]),
        ("dateParts", [], [[2013, 0]]),
        ("dateParts", [], "2013"),
        ("dateParts", [], [[2013, 1, 2, 3]]),
        ("ymd", [], {"Year": "2013", "Month": "2", "Day": "30"}),
        ("ymd", [], ["2013"]),
        ("ymdTime", ["UTC"], {"Year": "2013"}),
        ("ymdTime", ["UTC"], {"Year": "2013", "Month": "2", "Day": "30"}),
        ("ymdTime", ["UTC"], "2013-01-01"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(name, arguments, value):
    with pytest.raises(ValueError, match=r"\w"):
        convert(name, *arguments)(value)


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("time", ["Mars/Olympus"], "no time zone"),
        ("time", ["UTC", "YYYY"], "no part of a time"),
        ("time", ["UTC", "MM-dd"], "needs yyyy"),
        ("time", ["UTC", "yyyy MM MM"], "each part once"),
        ("ymdTime", ["../etc"], "no time zone"),
        ("split", [""], "split at something"),
        ("regex", ["("], "not a regular expression"),
        ("regex", ["abc"], r"no \(group\)"),
        ("regex", ["(a)" * MAX_PATTERN], "longer than"),
        ("regex", ["(a+)+b"], "without end"),
        ("regex", ["((a|b))*"], "without end"),
        ("regex", ["(a?){30}"], "without end"),
        ("regex", [r"(?:\d*){2,}(x)"], "without end"),
        ("regex", [r"(a)\1"], "reference"),
        ("regex", [r"(?P<n>a)(?P=n)"], "reference"),
        ("regex", ["(a*b*c*d*)"], "too many"),
        ("regex", ["a?" * 30 + "(a)"], "too many"),
    ],
)
def test_a_wrong_argument_is_found_before_any_item_is_seen(name, arguments, reason):
    with pytest.raises(ValueError, match=reason):
        convert(name, *arguments)


def test_a_pattern_is_only_tried_on_a_text_it_can_finish():
    assert safe_regex("(NCT[0-9]{8})").first_group("x" * 100_000 + "NCT12345678") == "NCT12345678"
    assert safe_regex(r"^(?:https?://)?[^/]+/(.+)").first_group("https://a/b") == "b"
    assert safe_regex(r"([\[(|*+?{]+)").first_group("a(*b") == "(*"
    with pytest.raises(ValueError, match="may be tried on"):
        safe_regex("(.*),.*;").first_group("x" * 1_001)
