"""Our own recordings: tiny invented answers that every built-in pack is always run against.

One folder per source, named by the code of its pack (a test says which are missing):

    handmade/CODE/cases.yaml             what is tested (../suite/cases.py has every key)
    handmade/CODE/01-….json              a body
    handmade/CODE/01-….json.meta.json    its question (patra_ingest/sandbox/recordings.py)

Write for each source:

- a harvest of at least two pages that ends by the real stop signal, with its ids and pages
  (`one_page: why` beside `cases` in the file, where the source has no pages at all);
- a harvest without hits;
- one case for each rule under `errors` of the pack, and for a DETAIL or UPDATE endpoint, if any.

Everything in them is invented: ids, titles, names; addresses are of example.org. Nothing is copied
from a real answer. Only the shape is the source's, as its documentation tells it. `request.url` has
the real host and path: the pack asks for that path, and links to a next page in a body are led back
to the test where they name that host. Nobody ever calls it.

`crossref` is the worked example. To run one source:

    pytest patra_ingest_tests/sources/test_suite.py -k "handmade and crossref"
"""
