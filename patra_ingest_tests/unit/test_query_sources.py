"""The query books of three real sources, as people would write them, and what they are asked."""

import pytest
import yaml

from patra_ingest.expr.query import parse_query
from patra_ingest.expr.query_book import book_problems
from patra_ingest.expr.query_issues import Code, QueryRefused
from patra_ingest.expr.query_render import render_query
from patra_ingest.expr.query_rules import QueryBook

PUBMED = QueryBook.model_validate(
    yaml.safe_load("""
syntax: PUBMED
everything: all[sb]
fields:
  tiab: {type: TEXT, name: Title or abstract}
  entrez_date: {type: DATE}
  publication_date: {type: DATE}
capabilities:
  tiab:
    ops: [TERM, IN]
    negatable_ops: [TERM]
    matches: [PHRASE, ANY]
    min_length: 1
    in_max: 1000
  entrez_date: &date {ops: [RANGE], supports_not: false, range: DATE, min: 1900-01-01}
  publication_date: *date
rules:
  - {field: tiab, op: TERM, match: ANY, template: "{{v}}[TIAB]"}
  - {field: tiab, op: TERM, match: PHRASE, template: "{{quoted}}[TIAB]"}
  - {field: tiab, op: IN, item_template: "{{quoted}}[TIAB]", joiner: " OR ", wrap_group: true}
  - &range
    field: entrez_date
    op: RANGE
    value_type: DATE
    emit: PARAMS
    function: PUBMED_DATETYPE
    params: {from: "{{from}}", to: "{{to}}", datetype: "{{datetype}}"}
    open_from: 1800-01-01       # mindate and maxdate must be given together
    open_to: 3000-01-01
  - {<<: *range, field: publication_date}
params:
  query: term
  from: mindate
  to: {name: maxdate, transform: TO_EXCLUSIVE_MINUS_1D}
  datetype: datetype
  limit: retmax
  offset: retstart
""")
)

CROSSREF = QueryBook.model_validate(
    yaml.safe_load("""
fields:
  text: {type: TEXT}
  doi: {type: KEYWORD}
  publication_date: {type: DATE}
capabilities:
  text: {ops: [TERM, IN], negatable_ops: [TERM], matches: [PHRASE, ANY], in_max: 1000}
  doi: {ops: [TERM, IN], supports_not: false, matches: [EXACT], in_max: 50}
  publication_date: {ops: [RANGE], supports_not: false, range: DATE, min: 1900-01-01}
rules:
  - {field: text, op: TERM, match: ANY, template: "{{v}}"}
  - {field: text, op: TERM, match: PHRASE, template: "{{quoted}}"}
  - {field: text, op: IN, item_template: "{{quoted}}", wrap_group: true}
  - {field: doi, op: TERM, emit: PARAMS, escape: CROSSREF_FILTER, params: {filter: "doi:{{v}}"}}
  - field: doi
    op: IN
    emit: PARAMS
    escape: CROSSREF_FILTER
    item_template: "doi:{{item}}"
    params: {filter: "{{items}}"}
  - field: publication_date
    op: RANGE
    emit: PARAMS
    function: TO_EXCLUSIVE_MINUS_1D     # until-… counts the day in
    params: {filter: ["from-pub-date:{{from}}", "until-pub-date:{{to}}"]}
params:
  query: query
  filter: {name: filter, transform: FILTER_JOIN}
  limit: rows
  offset: offset
""")
)

EPMC = QueryBook.model_validate(
    yaml.safe_load("""
syntax: LUCENE
fields:
  text: {type: TEXT}
  title: {type: TEXT}
  publication_date: {type: DATE}
capabilities:
  text: &text {ops: [TERM, IN], negatable_ops: [TERM], matches: [PHRASE, ANY], in_max: 1000}
  title: *text
  publication_date: {ops: [RANGE], supports_not: false, range: DATE, min: 1900-01-01}
rules:
  - {field: text, op: TERM, match: ANY, template: "{{v}}"}
  - {field: text, op: TERM, match: PHRASE, template: "{{quoted}}"}
  - {field: text, op: IN, item_template: "{{quoted}}", wrap_group: true}
  - {field: title, op: TERM, match: ANY, template: "TITLE:{{v}}"}
  - {field: title, op: TERM, match: PHRASE, template: "TITLE:{{quoted}}"}
  - {field: title, op: IN, item_template: "TITLE:{{item}}", wrap_group: true}
  - field: publication_date
    op: RANGE
    template: "FIRST_PDATE:[{{from}} TO {{to}}]"
    function: TO_EXCLUSIVE_MINUS_1D
    open_from: 1000-01-01
    open_to: 3000-12-31
params:
  query: query
  limit: pageSize
""")
)


def term(field, value, match="PHRASE"):
    return {"term": {"field": field, "value": value, "match": match}}


def dates(field, start="2023-01-01", end="2023-12-31"):
    return {"range": {"field": field, "from": start, "to": end}}


def asked(query, book, **options):
    return render_query(parse_query(query), book, **options)


def codes(query, book, **options):
    with pytest.raises(QueryRefused) as refused:
        asked(query, book, **options)
    return [issue.code for issue in refused.value.issues]


@pytest.mark.parametrize("book", [PUBMED, CROSSREF, EPMC], ids=["pubmed", "crossref", "epmc"])
def test_the_book_is_in_order_and_survives_the_way_through_json(book):
    assert book_problems(book) == []
    assert QueryBook.model_validate_json(book.model_dump_json()) == book


def test_pubmed_is_asked_for_a_phrase_and_a_span_of_entry_dates():
    query = {"and": [term("tiab", "heart failure"), dates("entrez_date")]}

    rendered = asked(query, PUBMED)

    assert rendered.text == '"heart failure"[TIAB]'
    assert rendered.params == {
        "term": '"heart failure"[TIAB]',
        "mindate": "2023-01-01",
        "maxdate": "2023-12-30",
        "datetype": "edat",
    }
    assert rendered.warnings == ()


def test_pubmed_knows_the_publication_date_by_another_type():
    rendered = asked(dates("publication_date"), PUBMED)

    assert rendered.text is None
    assert rendered.params["datetype"] == "pdat"


def test_pubmed_gets_both_dates_even_for_an_open_end():
    rendered = asked(dates("entrez_date", end=None), PUBMED)

    assert (rendered.params["mindate"], rendered.params["maxdate"]) == ("2023-01-01", "2999-12-31")


def test_pubmed_excludes_by_a_word_between_two_clauses():
    either = {"in": {"field": "tiab", "values": ["asthma", "copd"]}}
    query = {"and": [{"not": term("tiab", "mice", "ANY")}, either, term("tiab", "heart", "ANY")]}

    assert asked(query, PUBMED).text == (
        '("asthma"[TIAB] OR "copd"[TIAB]) AND heart[TIAB] NOT mice[TIAB]'
    )


def test_pubmed_takes_a_lone_exclusion_away_from_everything():
    query = {"not": {"or": [term("tiab", "mice"), term("tiab", "rats")]}}

    assert asked(query, PUBMED).text == 'all[sb] NOT ("mice"[TIAB] OR "rats"[TIAB])'


def test_pubmed_cannot_be_asked_for_two_kinds_of_date_at_once():
    query = {"and": [dates("entrez_date"), dates("publication_date")]}

    assert codes(query, PUBMED) == [Code.PARAM_COUNT_LIMIT] * 3


def test_crossref_gets_its_dates_as_one_filter_with_the_last_day_counted_in():
    query = {"and": [term("text", "heart failure", "ANY"), dates("publication_date")]}

    assert asked(query, CROSSREF).params == {
        "query": "(heart failure)",
        "filter": "from-pub-date:2023-01-01,until-pub-date:2023-12-30",
    }


def test_a_filter_written_as_one_text_says_the_same_but_cannot_leave_a_bound_open():
    one = {"filter": "from-pub-date:{{from}},until-pub-date:{{to}}"}
    rules = [rule.model_dump() for rule in CROSSREF.rules]
    rules[-1]["params"] = one
    book = QueryBook.model_validate({**CROSSREF.model_dump(), "rules": rules})

    assert asked(dates("publication_date"), book) == asked(dates("publication_date"), CROSSREF)
    assert codes(dates("publication_date", end=None), book) == [Code.RANGE_OPEN]


def test_a_null_clause_is_dropped_whole():
    rendered = asked(dates("publication_date", end=None), CROSSREF)

    assert rendered.params == {"filter": "from-pub-date:2023-01-01"}


def test_crossref_lists_values_of_one_filter_but_never_joins_two_conditions_by_or():
    listed = {"in": {"field": "doi", "values": ["10.1/a", "10.2/b:c"]}}

    rendered = asked({"and": [listed, dates("publication_date", start=None)]}, CROSSREF)

    assert rendered.params["filter"] == "doi:10.1/a,doi:10.2/b:c,until-pub-date:2023-12-30"
    assert codes({"and": [listed, listed]}, CROSSREF) == [Code.TRANSFORM_VALUE]


def test_crossref_cannot_be_asked_for_a_comma_in_a_filter():
    assert codes(term("doi", "10.1/a,type:book", "EXACT"), CROSSREF) == [Code.VALUE_NOT_EXPRESSIBLE]


def test_epmc_gets_its_dates_inside_the_query():
    query = {"and": [term("text", "heart failure"), dates("publication_date")]}

    rendered = asked(query, EPMC)

    assert rendered.text == '"heart failure" AND FIRST_PDATE:[2023-01-01 TO 2023-12-30]'
    assert rendered.params == {"query": rendered.text}


def test_epmc_writes_an_open_end_as_its_last_day():
    assert asked(dates("publication_date", end=None), EPMC).text == (
        "FIRST_PDATE:[2023-01-01 TO 3000-12-31]"
    )


def test_epmc_excludes_with_and_not_and_keeps_the_words_of_a_field_together():
    query = {"and": [{"not": term("title", "mice")}, term("title", "heart failure", "ANY")]}

    assert asked(query, EPMC).text == 'TITLE:(heart failure) AND NOT TITLE:"mice"'


def test_epmc_has_no_word_for_everything_to_take_an_exclusion_from():
    assert codes({"not": term("text", "mice")}, EPMC) == [Code.NOT_ALONE]
