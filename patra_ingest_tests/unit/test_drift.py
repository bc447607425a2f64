"""A source that changed its shape: the error names the path that differs, and what is there now."""

import pytest

from patra_ingest.executor.drift import found_instead
from patra_ingest.expr.xml_tree import read_xml

PAGE = {"status": "ok", "message": {"total": 3, "results": [{"DOI": "10.1/a"}], "facets": None}}
XML = b'<r v="2"><list n="1"><rec id="7">text</rec></list></r>'
KEY = "api_key=CANARY-8f3a91-c0ffee-0123"


@pytest.mark.parametrize(
    ("tree", "path", "said"),
    [
        (PAGE, "$.message.items", "$.message has total, results, facets"),
        (PAGE, "$.data.items", "$ has status, message"),
        (PAGE, "$.message.facets", "$.message.facets is null"),
        (PAGE, "$.message.total.value", "$.message.total holds 3"),
        (PAGE, "$.message.results[0].title|collapse", "$.message.results[0] has DOI"),
        (PAGE, "$.message.results[?(@.type == 'a')].id", "$.message.results is a list of 1"),
        (PAGE, "$.message['odd name']", "$.message has total, results, facets"),
        ({}, "$.items", "$ is an empty object"),
        ([], "$.items", "$ is a list of 0"),
        (None, "$.items", "$ is null"),
        (read_xml(XML, {}), "$.r.records.rec", "$.r has @v, list"),
        (read_xml(XML, {}), "$.r.list.rec.title", "$.r.list.rec has @id"),
        (read_xml(XML, {}), "$.x.y", "$ has r"),
        ({"a": KEY}, "$.a.b", "$.a holds 'api_key=…'"),
        ({str(n): n for n in range(14)}, "$.x", "$ has 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2"),
        (PAGE, "response.tombstones", "$ has status, message"),
    ],
)
def test_the_nearest_part_that_leads_somewhere_is_named_with_what_it_holds(tree, path, said):
    told = found_instead(tree, path)

    assert said.replace("…'", "") in told
    assert "CANARY" not in told
