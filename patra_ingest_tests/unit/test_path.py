import pytest

from patra_ingest.expr.path import MAX_CHARS, compile_path

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
    ],
)
def test_what_is_not_plain_is_searched(text, values):
    path = compile_path(text)

    assert path.all(SUMMARY) == values
    assert path.first(SUMMARY) == values[0]
    assert path.all({}) == []
    assert path.first({}) is None


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
