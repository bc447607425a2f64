"""A word of the pack language that nothing is done with is refused, never ignored."""

import pytest

from patra_ingest.model.codes import UpperBound
from patra_ingest.spec.paging import TimePaging
from patra_ingest.spec.readiness import find_missing
from patra_ingest_tests.builders import a_spec


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        pytest.param({"batching": {"parallel": 1}}, [], id="one after the other"),
        pytest.param({"batching": {"parallel": 2}}, ["batching.parallel"], id="two at once"),
        pytest.param({"batching": {"compress": "NONE"}}, [], id="bodies as they are"),
        pytest.param({"batching": {"compress": "GZIP"}}, ["batching.compress"], id="packed bodies"),
        pytest.param({"batching": {"backpressure": "BLOCK"}}, [], id="who comes too fast waits"),
        pytest.param(
            {"batching": {"backpressure": "DROP"}}, ["batching.backpressure"], id="or not"
        ),
        pytest.param({"batching": {"per_host": 2}}, ["batching.per_host"], id="connections"),
        pytest.param({"batching": {"pool": 2}}, ["batching.pool"], id="open connections"),
        pytest.param(
            {"batching": {"two_phase_from": 9, "combine_below": 9}},
            ["batching.two_phase_from", "batching.combine_below"],
            id="few ids, treated otherwise",
        ),
        pytest.param({"paging": {"fetch_ahead": 2}}, ["paging.fetch_ahead"], id="pages ahead"),
        pytest.param({"http": {"http2": True}}, ["http.http2"], id="another protocol"),
        pytest.param({"http": {"http2": False}}, [], id="the usual protocol"),
    ],
)
def test_what_the_executor_lacks_is_named_as_in_the_pack(said, missing):
    assert find_missing(a_spec(**said)) == missing


BY_TIME = TimePaging(page_size=10, stop=("SHORT_PAGE",), order="ASC")


@pytest.mark.parametrize(
    ("bound", "paging", "held_against", "missing"),
    [
        pytest.param("OPEN", None, True, [], id="dropped here"),
        pytest.param("OPEN", None, False, ["without response.client_window"], id="not dropped"),
        pytest.param("OPEN", BY_TIME, True, ["with paging.type TIME"], id="by time, no end"),
        pytest.param("INCLUSIVE", BY_TIME, True, [], id="by time up to an end"),
    ],
)
def test_a_window_without_an_end_is_run_only_where_the_walk_ends(
    bound, paging, held_against, missing
):
    spec = a_spec()
    spec = spec.model_copy(
        update={
            "window": spec.window.model_copy(update={"upper_bound": UpperBound(bound)}),
            "paging": paging or spec.paging,
            "response": spec.response.model_copy(update={"client_window": held_against}),
        }
    )

    assert find_missing(spec) == [f"window.upper_bound OPEN {one}" for one in missing]
