from datetime import UTC, datetime

import pytest

from patra_ingest.expr.places import MAX_CHARS
from patra_ingest.expr.value import compile_value
from patra_ingest.expr.xml_tree import read_xml

WORK = {
    "source": "MED",
    "id": "ABC",
    "DOI": "https://doi.org/10.1/AbC",
    "title": ["One", "Two"],
    "empty": "",
    "none": None,
    "nothing": [],
    "author": [{"family": " Ada "}, {"family": None}, {"given": "x"}, {"family": "Bo"}],
    "pages": [[1, 2]],
    "ids": "one",
    "year": 2024,
    "open": {"is_oa": True},
    "updated": "2024-01-02T03:04:05",
    "issued": {"date-parts": [[2013, 7]]},
    "flags": ["Y", None, "N"],
    "x|y": "bar",
}
(ARTICLE,) = read_xml(
    b"""<Article Version="2"><PMID>12</PMID><Title>H<sub>2</sub>O\n and more</Title><Empty/>
      <Authors><Author><Name>Ada</Name></Author><Author><Name>Bo</Name></Author></Authors>
      <One><Name>Solo</Name></One><Blank> </Blank>
      <PubDate><Year>1998</Year><Season>Fall</Season></PubDate>
      <Date Status="entrez"><Year>2024</Year><Month>7</Month><Day>1</Day><Hour>6</Hour></Date>
      <Date Status="revised"><Year>2025</Year><Month>Feb</Month></Date></Article>""",
    {},
).children


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("$.id", "ABC"),
        ("$.title[1]", "Two"),
        ("$.title", ["One", "Two"]),
        ("$.title[*]", "One"),
        ("$.year", 2024),
        ("$.open", {"is_oa": True}),
        ("$.none", None),
        ("$.none|lower|int", None),
        ("$.missing|upper", None),
        ("$.missing|default('x')|upper", "X"),
        ("$.empty", ""),
        ("$.DOI|after('https://doi.org/')|lower", "10.1/abc"),
        ("$.DOI | lower | after( 'https://doi.org/' )", "10.1/abc"),
        ("$.id|nullIf('ABC')|lower", None),
        ("$['x|y']|upper", "BAR"),
        ("$.author[?(@.family == 'Bo' || @.given)].family|list", ["Bo"]),
        ("$.issued.date-parts|dateParts", "2013-07"),
        ("$.updated|time('UTC')", datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("$|count", 1),
    ],
)
def test_a_value_is_found_in_an_item(said, value):
    assert compile_value(said).find(WORK) == value


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("$.title|list", ["One", "Two"]),
        ("$.ids|list", ["one"]),
        ("$.missing|list", None),
        ("$.none|list", None),
        ("$.nothing|list", None),
        ("$.pages|list", [[1, 2]]),
        ("$.pages[*]|list", [[1, 2]]),
        ("$.author[*].family|list", [" Ada ", None, "Bo"]),
        ("$.author[*].family|trim|join('; ')", "Ada; Bo"),
        ("$.author[*].family|count", 2),
        ("$.missing|count", 0),
        ("$.missing|join(',')", None),
        ("$.title|join(' / ')", "One / Two"),
        ("$.title|first", "One"),
        ("$.ids|first", "one"),
        ("$.title|lower", ["one", "two"]),
        ("$.title|list|lower", ["one", "two"]),
        ("$.flags|yesNo", [True, None, False]),
        ("$.title|join(',')|split(',')|upper", ["ONE", "TWO"]),
    ],
)
def test_a_conversion_may_take_all_values_or_each_of_a_list(said, value):
    assert compile_value(said).find(WORK) == value


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("${$.source}:${$.id|lower}", "MED:abc"),
        ("${$.source}:${$.missing}", None),
        ("${$.source}:${$.missing?}", "MED:"),
        ("${$.source}:${$.missing?|upper}", "MED:"),
        ("${$.source}:${$.missing|default('?')}", "MED:?"),
        ("${$.year}-${$.open.is_oa}", "2024-true"),
        ("${$.id}", "ABC"),
        ("$${${$.id}}", "${ABC}"),
        ("v${ $['x|y'] | upper }", "vBAR"),
    ],
)
def test_a_template_over_paths_is_null_when_a_place_is(said, value):
    assert compile_value(said).find(WORK) == value


@pytest.mark.parametrize(
    ("said", "value"),
    [
        (["$.missing", "$.none", "$.id", "$.source"], "ABC"),
        (["$.missing", "${$.none}x"], None),
        (["$.empty", "$.id"], ""),
        (["$.id|nullIf('ABC')", "$.source"], "MED"),
        (("$.id",), "ABC"),
    ],
)
def test_of_a_list_the_first_that_is_there_is_taken(said, value):
    assert compile_value(said).find(WORK) == value


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("$.PMID", "12"),
        ("$.PMID|int", 12),
        ("$.@Version", "2"),
        ("${$.PMID}.${$.@Version}", "12.2"),
        ("$.Title|collapse", "H2O and more"),
        ("$.Empty", None),
        ("$.Blank", None),
        (["$.Empty", "$.PMID"], "12"),
        ("$.Authors.Author.Name|list", ["Ada", "Bo"]),
        ("$.One.Name|list", ["Solo"]),
        ("$.Authors.Author|count", 2),
        ("$.PubDate|ymd", "1998"),
        ("$.PubDate.Year|ymd", "1998"),
        ("$.Empty|ymd", None),
        ("$.Empty|ymdTime('UTC')", None),
        ("$.Date|ymd|list", ["2024-07-01", "2025-02"]),
        (
            "$.Date[?(@.@Status == 'entrez')]|ymdTime('America/New_York')",
            datetime(2024, 7, 1, 10, tzinfo=UTC),
        ),
    ],
)
def test_a_value_is_found_in_xml_the_same_way(said, value):
    assert compile_value(said).find(ARTICLE) == value


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("$.id|int", "int: 'ABC' is not a whole number"),
        ("$.year|lower", "lower: 2024 is not text"),
        ("$.title|time('UTC')", "time: .* is not text"),
        ("x${$.title}", "use join"),
        ("$.author[0]|text", "use join or name a part"),
        ("$.updated|time", "time: .*has no time zone"),
        ("$.author[0:1]|count|regex('(a)')", "regex: 1 is not text"),
    ],
)
def test_a_conversion_that_does_not_fit_names_itself_and_the_value(said, reason):
    with pytest.raises(ValueError, match=reason) as caught:
        compile_value(said).find(WORK)
    assert str(caught.value).startswith(f"{said}: ")


def test_a_long_value_is_shortened_in_its_error():
    with pytest.raises(ValueError, match="not a whole number") as caught:
        compile_value("$.a|int").find({"a": "x" * 10_000})
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("", "begins with a path"),
        ("id", "begins with a path"),
        ("plain text", "begins with a path"),
        ("$.a[", r"at 0: the path '\$.a\[' cannot be read at 4"),
        ("$.a?", "cannot be read"),
        ("x${$.a.}", "at 3: the path"),
        ("${id}", "a path such as .* is missing at 2"),
        ("${}", "missing at 2"),
        ("${$.a", "at 0 has no end"),
        ("$.a|", r"cannot read '\|' at 3"),
        ("$.a|eval('1')", r"no function eval \(at 3\)"),
        ("$.a|coalesce(b)", "no function coalesce"),
        ("$.a|after", "after takes 1 arguments, not 0"),
        ("$.a|regex('(a+)+')", r"regex: .* \(at 3\)"),
        ("$.a|time('Mars')", r"no time zone 'Mars' \(at 3\)"),
        ("$.a" + "|trim" * 9, "9 functions"),
        ("$.a|after('" + "x" * MAX_CHARS + "')", "longer than"),
        (["$.a"] * 9, "9 alternatives"),
        ([], "neither"),
        ([1], "neither"),
        (["$.a", None], "neither"),
    ],
)
def test_a_value_expression_that_cannot_be_read_is_refused(said, reason):
    with pytest.raises(ValueError, match=reason):
        compile_value(said)


def test_an_expression_knows_its_paths_and_its_text():
    value = compile_value(["$.a|lower", "${$.b}:${$.a}", "$.c[?(@.d == 'e|f')]|list"])

    assert value.paths == ("$.a", "$.b", "$.c[?(@.d == 'e|f')]")
    assert value.text == "$.a|lower or ${$.b}:${$.a} or $.c[?(@.d == 'e|f')]|list"
    assert compile_value("$.a") is compile_value("$.a")
    assert compile_value("$.a") == compile_value(["$.a"])
    assert compile_value("$.a") != compile_value("$.b")


AUTHORS = {
    "authors": [
        {"family": "Lovelace", "given": "Ada"},
        {"family": "Plato"},
        {"name": "WHO"},
        None,
        {},
    ],
    "one": {"family": "Bo"},
    "none": None,
}
NAMES = "each('${$.family}, ${$.given}', '$.family', '$.name')"


@pytest.mark.parametrize(
    ("said", "value"),
    [
        (f"$.authors|{NAMES}", ["Lovelace, Ada", "Plato", "WHO"]),
        (f"$.authors[*]|{NAMES}|join('; ')", "Lovelace, Ada; Plato; WHO"),
        (f"$.one|{NAMES}", ["Bo"]),
        (f"$.none|{NAMES}", None),
        (f"$.absent|{NAMES}", None),
        ("$.authors|each('$.absent')", None),
        ("$.authors|each('${$.family|upper}')|first", "LOVELACE"),
    ],
)
def test_each_is_an_expression_over_every_value(said, value):
    assert compile_value(said).find(AUTHORS) == value


def test_each_reads_elements_as_it_reads_objects():
    assert compile_value("$.Authors.Author|each('<${$.Name}>')").find(ARTICLE) == ["<Ada>", "<Bo>"]


def test_each_refuses_an_expression_it_cannot_read():
    with pytest.raises(ValueError, match=r"each: .*no function nope"):
        compile_value("$.authors|each('${$.family|nope}')")


@pytest.mark.parametrize(
    ("item", "value"),
    [
        ({}, False),
        ({"a": None}, False),
        ({"a": ""}, False),
        ({"a": []}, False),
        ({"a": "x"}, True),
        ({"a": 0}, True),
        ({"a": ["", "x"]}, True),
    ],
)
def test_exists_tells_whether_there_is_something(item, value):
    assert compile_value("$.a|exists").find(item) is value


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("10.1000/AbC", "10.1000/abc"),
        ("https://doi.org/10.1000/AbC", "10.1000/abc"),
        ("http://dx.doi.org/10.1000/AbC", "10.1000/abc"),
        (" doi: 10.1000/AbC ", "10.1000/abc"),
        ("DOI:10.1000/(SICI)1", "10.1000/(sici)1"),
        ("https://example.org/10.1000/AbC", None),
        ("10.1000/a b", None),
        ("hdl:10.1/x", None),
    ],
)
def test_a_doi_is_written_in_one_way_or_is_none(said, value):
    assert compile_value("$.a|doi").find({"a": said}) == value
