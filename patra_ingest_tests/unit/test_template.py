from datetime import UTC, datetime, timedelta, timezone

import pytest

from patra_ingest.expr.functions import Bound
from patra_ingest.expr.places import MAX_CHARS
from patra_ingest.expr.template import compile_template

VARIABLES = {
    "window": {
        "from": datetime(2026, 1, 1, tzinfo=UTC),
        "to": datetime(2026, 1, 2, 0, 30, tzinfo=timezone(timedelta(hours=1))),
    },
    "page": {"size": 100, "token": None, "offset": 0},
    "item": {"source": "MED", "id": "123", "next-cursor": "x", "@id": "7", "issued": None},
    "params": {"query": "", "ids": ["a", "b"]},
    "at": datetime(2026, 1, 1, tzinfo=UTC),
    "bound": Bound(datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=-5))), "yyyyMMdd HH"),
}


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        pytest.param("plain", "plain", id="no place"),
        pytest.param("", "", id="nothing"),
        pytest.param("${page.size}", "100", id="a number"),
        pytest.param("${page.offset}", "0", id="zero is not null"),
        pytest.param("${params.query}", "", id="an empty text is not null"),
        pytest.param("${page.token}", None, id="a null is left out"),
        pytest.param("${page.token|upper}", None, id="a null passes functions"),
        pytest.param("${page.token|default(*)}", "*", id="a default"),
        pytest.param("${page.token|default('')}", "", id="an empty default"),
        pytest.param("${page.token|default('a,b}|)')}", "a,b}|)", id="quotes protect anything"),
        pytest.param('${page.token|default("it\'s")}', "it's", id="double quotes"),
        pytest.param("${item.issued|coalesce(page.token, item.id)}", "123", id="the first there"),
        pytest.param("${item.source}:${item.id}", "MED:123", id="several places"),
        pytest.param("${item.next-cursor}${item.@id}", "x7", id="odd names"),
        pytest.param("${ page.size }", "100", id="blanks"),
        pytest.param("${params.ids|join(' OR ')}", "a OR b", id="a list is joined"),
        pytest.param("${window.to|iso}", "2026-01-01T23:30:00Z", id="times are UTC"),
        pytest.param("${window.to|date}", "2026-01-01", id="whatever zone they came in"),
        pytest.param(
            "from:${window.from|isoSeconds},until:${window.to|minus(1s)|isoSeconds}",
            "from:2026-01-01T00:00:00,until:2026-01-01T23:29:59",
            id="functions in a row",
        ),
        pytest.param("${at|format(yyyy/MM/dd)}", "2026/01/01", id="a bare pattern"),
        pytest.param("${at|format('HH:mm, dd')}", "00:00, 01", id="a quoted pattern"),
        pytest.param('{"q": "${item.id}"}', '{"q": "123"}', id="braces are text"),
        pytest.param("$${item.id}", "${item.id}", id="an escaped place"),
        pytest.param("$$${item.id} $ ${item.id}", "$${item.id} $ 123", id="dollars"),
        pytest.param("${item.id}$${x}", "123${x}", id="an escape after a place"),
        pytest.param("a${page.token?}b", "ab", id="a place that may be null"),
        pytest.param("a${ page.token ? | upper }b", "ab", id="with blanks and functions"),
        pytest.param("a${item.id?}b", "a123b", id="or be there"),
        pytest.param("${page.token?}", None, id="alone it is left out all the same"),
        pytest.param("${bound}", "20260101 00", id="a bound in its own zone and pattern"),
        pytest.param("${bound|date} ${bound|iso}", "2026-01-01 2026-01-01T05:00:00Z", id="or UTC"),
        pytest.param("${item.source|concat(item.id, page.size)}", "MED123100", id="concat"),
        pytest.param("${item.source|concat(page.token)}", None, id="concat with null"),
        pytest.param("${item|jsonPath('$.source')}", "MED", id="a path in a mapping"),
        pytest.param("${params.ids|wrap('doi:', '')|join}", "doi:a,doi:b", id="a clause each"),
    ],
)
def test_a_template_is_filled(text, rendered):
    assert compile_template(text).render(VARIABLES) == rendered


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("a${page.token}", "page.token is null; give it a default", id="a hole"),
        pytest.param("${params.ids}", "use join", id="a list"),
        pytest.param("${item}", "use join or name a part", id="a mapping"),
        pytest.param("${wimdow.from}", "no variable wimdow", id="an unknown variable"),
        pytest.param("${item.id.x}", "cannot be looked up in a str", id="below a text"),
        pytest.param("${at.year}", "cannot be looked up in a datetime", id="an attribute"),
        pytest.param("${at.__class__}", "cannot be looked up in a datetime", id="a hidden one"),
        pytest.param("${item.id|date}", "not an instant", id="the wrong type"),
        pytest.param("${at|plus(4000000d)}", "plus: .*out of range", id="the end of the calendar"),
        pytest.param("a${page.token}", r"or write \$\{page.token\?\}", id="a hole to allow"),
    ],
)
def test_a_template_that_cannot_be_filled_says_which_and_why(text, reason):
    with pytest.raises(ValueError, match=reason) as caught:
        compile_template(text).render(VARIABLES)
    assert str(caught.value).startswith(f"{text}: ")


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("from:${at|date}", "from:2026-01-01"),
        ("${item.source}:${item.issued}", None),
        ("(${page.token})", None),
        ("${page.token}", None),
        ("(${page.token?})", "()"),
        ("(${page.token|default('*')})", "(*)"),
        ("plain", "plain"),
    ],
)
def test_a_clause_with_a_null_is_dropped_whole(text, rendered):
    assert compile_template(text).render_clause(VARIABLES) == rendered


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${page.size}", 100),
        ("${params.ids}", ["a", "b"]),
        ("${params}", VARIABLES["params"]),
        ("${page.token}", None),
        ("${page.size|suffix('x')}", "100x"),
        ("${at}", "2026-01-01T00:00:00.000000Z"),
        ("${bound}", "20260101 00"),
        ("${page.size} ", "100 "),
        ("plain", "plain"),
        ("", ""),
    ],
)
def test_a_single_place_gives_its_value_as_it_is(text, value):
    assert compile_template(text).value(VARIABLES) == value


def test_what_json_cannot_carry_is_no_value():
    with pytest.raises(ValueError, match="not one value"):
        compile_template("${it}").value({"it": {1, 2}})
    assert compile_template("${it}").value({"it": (1, 2)}) == [1, 2]


def test_what_a_mapping_does_not_have_is_null():
    assert compile_template("${item.doi}").render(VARIABLES) is None
    assert compile_template("${item.issued.year}").render(VARIABLES) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("a ${page.size", "at 2 has no end", id="no end"),
        pytest.param("${a|default('b}", "at 0 has no end", id="no end of a quote"),
        pytest.param("${}", "a name .* is missing at 2", id="no name"),
        pytest.param("${a.}", r"cannot read '\.' at 3", id="a dot too many"),
        pytest.param("${a b}", "cannot read 'b' at 4", id="two names"),
        pytest.param("${a|}", r"cannot read '\|' at 3", id="no function"),
        pytest.param("${a|eval('1')}", "no function eval", id="an unknown function"),
        pytest.param("${a|upper(1)}", "upper takes 0 arguments, not 1", id="too many arguments"),
        pytest.param("${a|minus}", "minus takes 1 arguments, not 0", id="too few"),
        pytest.param("${a|join(,)}", "cannot read the arguments", id="empty arguments"),
        pytest.param("${a|default(b,)}", "cannot read the arguments", id="a comma too many"),
        pytest.param("${a|default('b' 'c')}", "cannot read the arguments", id="no comma"),
        pytest.param("${a|format(YYYY)}", "no part of a time", id="a wrong pattern"),
        pytest.param("${a|coalesce('b c')}", "takes names", id="text where a name is due"),
        pytest.param("${a${b}}", "has no end", id="no nesting"),
        pytest.param("${a??}", r"cannot read '\?' at 4", id="two question marks"),
        pytest.param("${a|upper?}", r"cannot read '\?' at 9", id="a question mark too late"),
        pytest.param("${a|concat('b')}x${a|concat(1)}", "takes names", id="a number for a name"),
        pytest.param("${" + ".".join("abcdefghi") + "}", "9 parts", id="too deep"),
        pytest.param("${a" + "|trim" * 9 + "}", "9 functions", id="too many functions"),
        pytest.param("x" * (MAX_CHARS + 1), "longer than", id="too long"),
    ],
)
def test_a_template_that_cannot_be_read_is_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        compile_template(text)


def test_a_template_knows_which_names_it_uses():
    template = compile_template("${window.from|iso} ${a.b|coalesce(c, d.e)} $${not.this}")

    assert template.names == {"window.from", "a.b", "c", "d.e"}


def test_names_are_checked_before_anything_is_sent():
    template = compile_template("${window.form} ${item.any.depth} ${page.size} ${pages}")

    assert template.check({"window.from", "item", "page.size", "page"}) == [
        "${pages} is not known here",
        "${window.form} is not known here",
    ]
    assert compile_template("${window}").check({"window.from"}) == ["${window} is not known here"]


@pytest.mark.parametrize(
    ("template", "value", "separator"),
    [
        ("${ids|join(',')}", "a,b", ","),
        ("${ids|join}", "a,b", ","),
        ("${ids|join(',')}", "ab", None),
        ("doi:${ids|wrap('(',')')|join(' OR ')}", "a OR b", " OR "),
        ("${ids|quote|join(',')}", "a,b", None),
        ("${ids|escape(',')|join(',')}", "a,b", None),
        ("${ids|int|join(',')}", "a,b", None),
        ("${ids}", "a,b", None),
        ("${other|join(',')}", "a,b", None),
    ],
)
def test_a_value_that_holds_what_joins_a_list_is_told(template, value, separator):
    assert compile_template(template).separator_in("ids", value) == separator
