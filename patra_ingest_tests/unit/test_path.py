import pytest

from patra_ingest.expr.path import MAX_CHARS, compile_path
from patra_ingest.expr.xml_tree import XmlNode, read_xml

CROSSREF = {
    "status": "ok",
    "message": {
        "next-cursor": "AoJ+",
        "total-results": 2,
        "items": [
            {"DOI": "10.1/a", "title": ["A"], "indexed": {"date-time": "2026-01-01T00:00:00Z"}},
            {"DOI": "10.1/b", "title": [], "container-title": ["J", "K"]},
        ],
    },
}
ODD = {
    "where": 1,
    "510k": 2,
    "dc:title": 3,
    "größe": 4,
    "@type": 5,
    "it's": 6,
    "a.b": 7,
    "null": 8,
    "0": 9,
    "1": {"5": 13},
    "-": 10,
    "x y": 11,
    "true": 12,
}
SUMMARY = {
    "articleids": [
        {"idtype": "pubmed", "value": "1", "n": 2},
        {"idtype": "doi", "value": "10.1/a"},
    ],
    "history": {"last": {"id": 1}, "first": {"id": 2}},
}

ARTICLES = read_xml(
    b"""<Set xmlns:x="urn:x">
      <Article Version="1"><Id>11</Id><Title>H<sub>2</sub>O</Title>
        <Authors><Name>Ada</Name><Name>Bo</Name></Authors>
        <Date Status="received"><Year>2001</Year></Date>
        <Date Status="entrez"><Year>2002</Year></Date></Article>
      <Article Version="2"><Id>9</Id><Authors><Name>Cy</Name></Authors><x:note>n</x:note>
        <Date Status="entrez"><Year>2010</Year><Year>2011</Year></Date></Article>
      <Deleted><Id>7</Id></Deleted>
    </Set>""",
    {"n": "urn:x"},
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("$", [CROSSREF]),
        ("$.status", ["ok"]),
        ("status", ["ok"]),
        ("$.message.next-cursor", ["AoJ+"]),
        ("$.message['next-cursor']", ["AoJ+"]),
        ('$["message"]["next-cursor"]', ["AoJ+"]),
        ("$.message.items[*].DOI", ["10.1/a", "10.1/b"]),
        ("$.message.items.*.DOI", ["10.1/a", "10.1/b"]),
        ("$.message.items[1].container-title[-1]", ["K"]),
        ("$.message.items[*].title[0]", ["A"]),
        ("$.message.items[0].indexed.date-time", ["2026-01-01T00:00:00Z"]),
        ("$.message.items[*].indexed[*]", ["2026-01-01T00:00:00Z"]),
        ("$.message.items[2]", []),
        ("$.message.items[-3]", []),
        ("$.message.items.DOI", []),
        ("$.status[0]", []),
        ("$.status.length", []),
        ("$.status[*]", []),
        ("$.message[0]", []),
        ("$.nothing.at.all", []),
    ],
)
def test_a_path_leads_to_its_values(text, values):
    path = compile_path(text)

    assert path.all(CROSSREF) == values
    assert path.first(CROSSREF) == (values[0] if values else None)
    assert path.text == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$.where", 1),
        ("$.510k", 2),
        ("$.dc:title", 3),
        ("$.größe", 4),
        ("$.@type", 5),
        (r"$['it\'s']", 6),
        ("$['a.b']", 7),
        ("$.null", 8),
        ("$.0", 9),
        ("$.1.5", 13),
        ("$['-']", 10),
        ("$['x y']", 11),
        ("$.true", 12),
    ],
)
def test_a_name_may_be_odd(text, value):
    assert compile_path(text).all(ODD) == [value]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("$.articleids[?(@.idtype=='doi')].value", ["10.1/a"]),
        ('$.articleids[?(@.idtype != "doi")].value', ["1"]),
        ("$.articleids[?(@.idtype=='doi' || @.idtype=='pubmed')].value", ["1", "10.1/a"]),
        ("$.articleids[0:1].value", ["1"]),
        ("$.articleids[?(@.n > -1.5 && @.n<2.5)].value", ["1"]),
        ("$..id", [1, 2]),
        ("$.history['first','last'].id", [2, 1]),
        ("$.articleids.`len`", [2]),
        ("$.articleids.$.history.last.id", [1]),
        ("$.articleids[?(@.n)].value", ["1"]),
        ("$.articleids[?(!@.n)].value", ["10.1/a"]),
        ("$.articleids[?(@.n == null || @.n != 2)].value", ["10.1/a"]),
        ("$.articleids[?(@.idtype > 'doi')].value", ["1"]),
        ("$.history[?(@.id >= 2)].id", [2]),
        ("$..articleids[1].value", ["10.1/a"]),
        ("$..[?(@.idtype == 'doi')].value", ["10.1/a"]),
        ("$.history.first..`this`", [{"id": 2}, 2]),
        ("$..idtype", ["pubmed", "doi"]),
    ],
)
def test_filters_and_all_the_rest_of_jsonpath_are_understood(text, values):
    path = compile_path(text)

    assert path.all(SUMMARY) == values
    assert path.first(SUMMARY) == values[0]
    assert path.all({}) == []
    assert path.first({}) is None


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("$.Set.Article.Id", ["11", "9"]),
        ("$.Set.Article[*].Id", ["11", "9"]),
        ("$.Set.Article[0].Id", ["11"]),
        ("$.Set.Article[-1].Id", ["9"]),
        ("$.Set.Article[5].Id", []),
        ("$.Set.Article.Authors.Name", ["Ada", "Bo", "Cy"]),
        ("$.Set.Article.Authors.Name[0]", ["Ada", "Cy"]),
        ("$.Set.Article.Authors.Name[1]", ["Bo"]),
        ("$.Set.Article.Authors.Name[*][0]", ["Ada", "Bo", "Cy"]),
        ("$.Set.Article.@Version", ["1", "2"]),
        ("$.Set.Article['@Version']", ["1", "2"]),
        ("$.Set.Article.@Version[0]", []),
        ("$.Set.Article.@None", []),
        ("$.Set.Article.Title", ["H2O"]),
        ("$.Set.*.Id", ["11", "9", "7"]),
        ("$.Set.*[0].Id", ["11"]),
        ("$.*.Deleted.*", ["7"]),
        ("$.Set.Article.n:note", ["n"]),
        ("$.Set.Article.Date[?(@.@Status == 'entrez')].Year", ["2002", "2010", "2011"]),
        ("$.Set.Article.Date[?(@.@Status == 'entrez')].Year[0]", ["2002", "2010"]),
        ("$.Set.Article.Date[?(@.@Status != 'entrez')].Year", ["2001"]),
        ("$.Set.Article.Date[?(@.Year > 2001 && @.Year < 2011)].Year[0]", ["2002", "2010"]),
        ("$.Set.Article[?(@.Id > 10)].Id", ["11"]),
        ("$.Set.Article[?(@.Id > '10')].Id", ["11", "9"]),
        ("$.Set.Article[?(@.Title == 2)].Id", []),
        ("$.Set.Article[?(@.Title)].Id", ["11"]),
        ("$.Set.Article[?(!@.Title)].Id", ["9"]),
        ("$.Set.Article[?(@.Authors.Name == 'Bo')].Id", ["11"]),
        ("$.Set.Article[?(@.Version == true)].Id", []),
        ("$..Id", ["11", "9", "7"]),
        ("$.Set.Article..Name", ["Ada", "Bo", "Cy"]),
        ("$..Date.@Status", ["received", "entrez", "entrez"]),
        ("$..@Version", ["1", "2"]),
        ("$.Article", []),
        ("$.Set.Article.Id.Deeper", []),
    ],
)
def test_the_same_notation_leads_through_xml(text, values):
    path = compile_path(text)

    assert path.all(ARTICLES) == values
    assert path.first(ARTICLES) == (values[0] if values else None)


def test_an_xml_item_is_where_its_own_paths_begin():
    second = compile_path("$.Set.Article").nodes(ARTICLES)[1]

    assert isinstance(second, XmlNode)
    assert compile_path("$").nodes(second) == [second]
    assert compile_path("$.@Version").nodes(second) == ["2"]
    assert compile_path("$.Authors.Name").first(second) == "Cy"
    assert compile_path("$.Set").first(second) is None


def test_nodes_of_json_are_its_values():
    assert compile_path("$.message.items[*].DOI").nodes(CROSSREF) == ["10.1/a", "10.1/b"]


@pytest.mark.parametrize(
    "text", ["$.Set[0:1]", "$['a','b']", "$.Set.`len`", "$.a[?(@.x =~ 'y')]", "$.a[?(@.x == @.y)]"]
)
def test_what_only_json_understands_is_refused_on_xml_when_used(text):
    path = compile_path(text)

    assert path.all({}) == []
    for find in (path.all, path.first, path.nodes):
        with pytest.raises(ValueError, match="works on JSON only; on XML use"):
            find(ARTICLES)


def test_a_path_that_ends_early_does_not_begin_again():
    assert compile_path("$[0].a").first([[{"a": 1}]]) is None
    assert compile_path("$[0][0].a").first([[{"a": 1}]]) == 1


def test_a_path_knows_whether_it_leads_to_one_value():
    assert compile_path("$.a.b[0]").is_single
    assert not compile_path("$.a[*]").is_single
    assert not compile_path("$.a[0:1]").is_single


def test_a_null_is_there_although_it_is_null():
    path = compile_path("$.result")

    assert path.all({"result": None}) == [None]
    assert path.all({}) == []
    assert path.first({"result": None}) is None
    assert compile_path("$.result[*].id").all({"result": None}) == []


@pytest.mark.parametrize(
    ("text", "at"),
    [
        pytest.param("", 0, id="empty"),
        pytest.param("$.a.", 4, id="a dot too many"),
        pytest.param("$.a[", 4, id="an open bracket"),
        pytest.param("$.a['b", 6, id="an open quote"),
        pytest.param("$.long-name.x y", 14, id="a blank in a bare name"),
        pytest.param("$.one.two.-x", 10, id="a name that begins with a hyphen"),
        pytest.param("$.a | $.b", 4, id="a union"),
        pytest.param("$.a[?(@.x==doi)]", 10, id="a word without quotes"),
        pytest.param("$.a[?(@.x=='|' & @.y)]", 15, id="an intersection"),
    ],
)
def test_a_path_that_cannot_be_read_says_where_and_what_to_write(text, at):
    with pytest.raises(ValueError, match=rf"at {at} .*write for example"):
        compile_path(text)


def test_a_path_is_not_endless():
    with pytest.raises(ValueError, match="longer than"):
        compile_path("$" + ".a" * MAX_CHARS)


def test_the_longest_search_still_ends():
    deep = compile_path("$" + "..a" * ((MAX_CHARS - 1) // 3))

    assert deep.all({"a": {"a": 1}}) == []


def test_a_search_that_fails_on_its_values_says_so():
    with pytest.raises(ValueError, match="fails on this response"):
        compile_path("$.a[?(@.n=~'(')]").all({"a": [{"n": "text"}]})


def test_equal_texts_are_equal_paths():
    assert compile_path("$.a.b") == compile_path("$.a.b")
    assert compile_path("$.a.b") != compile_path("$.a['b']")
    assert hash(compile_path("$.a.b")) == hash(compile_path("$.a.b"))
