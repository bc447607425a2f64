"""Every recorded answer of Crossref, read by the built-in pack: its DOIs, or the declared error."""

import re

import pytest

from patra_ingest.errors import (
    EndpointHalted,
    RequestRejected,
    SliceIncomplete,
    SliceMustRestart,
    Throttled,
    TransientError,
)
from patra_ingest.executor.decoding import BodyUnreadable
from patra_ingest.executor.paging import Ended, Page
from patra_ingest.model.codes import Operation
from patra_ingest.packs import FOLDER
from patra_ingest.registry.pack import read_pack
from patra_ingest_tests.sources.builtin import misfits
from patra_ingest_tests.sources.recorded import (
    asked,
    compiled,
    needs_recordings,
    read,
    recorded,
    recordings,
    walk,
)

pytestmark = needs_recordings

LISTED = {  # how many works, the first and the last DOI, and the total that is promised
    "01-works-cursor-widget-p01.json": (
        *(20, "10.1007/978-1-4302-0197-7_9", "10.59350/7mtwq-q3661"),
        454,
    ),
    "02-works-cursor-widget-p02.json": (
        *(20, "10.1145/3027385.3027428", "10.1201/9781003134046-5"),
        454,
    ),
    "03-works-cursor-widget-p03.json": (
        *(20, "10.1038/nature.2016.9804", "10.3997/2214-4609.201410548"),
        454,
    ),
    "04-works-cursor-ecology-p01.json": (
        *(30, "10.1093/obo/9780199830060-0238", "10.1002/9780470979365.ch2"),
        452242,
    ),
    "05-works-cursor-ecology-p02.json": (
        *(30, "10.1002/9780470979365.ch1", "10.1093/obo/9780199830060-0237"),
        452242,
    ),
    "06-works-cursor-ecology-p03.json": (
        *(30, "10.1093/obo/9780199830060-0082", "10.1002/ecy.1608"),
        452242,
    ),
    "07-members98-works-cursor-p01.json": (
        *(5, "10.4061/2010/505436", "10.1002/humu.2018.39.issue-6"),
        138567,
    ),
    "08-members98-works-cursor-p02.json": (
        *(5, "10.1111/dth.13147", "10.1046/j.1399543x.2000.010407.x"),
        138567,
    ),
    "09-members98-works-cursor-p03.json": (
        *(5, "10.1155/2014/861942", "10.1111/tbj.12248"),
        138567,
    ),
    "10-members98-works-cursor-p04.json": (
        *(5, "10.1111/jai.12009", "10.1002/mmce.20056"),
        138567,
    ),
    "17-cursor-rows0.json": (0, "", "", 3352),
    "18-cursor-created-date-p1.json": (
        *(25, "10.7287/peerj.preprints.1576", "10.1016/j.compstruct.2017.12.064"),
        17739,
    ),
    "28-works-no-hits.json": (0, "", "", 0),
    "31-members-works-rows0-facet.json": (0, "", "", 851692),
    "32-works-offset0.json": (
        *(1, "10.1007/978-1-137-40325-4_12", "10.1007/978-1-137-40325-4_12"),
        851692,
    ),
    "33-works-query-ecology.json": (
        *(2, "10.1093/obo/9780199830060-0238", "10.1093/obo/9780199830060-0023"),
        586628,
    ),
    "34-works-filter-index-date-a.json": (20, "10.3403/30430945", "10.3403/00374960", 411),
    "35-works-filter-index-date-b.json": (20, "10.3403/00374960", "10.3403/30402376", 272),
    "36-works-filter-prefix-list.json": (
        *(20, "10.3969/j.issn.1004-4132.2010.01.020", "10.50505/test_200611161351"),
        1205,
    ),
}
_ONE_WORK = (EndpointHalted, "nothing at $.message.items")
_NO_TIME = (EndpointHalted, "items fails at $.indexed.date-time (the update time is missing)")
REFUSED = {
    "20-cursor-invalid-404.json": (SliceMustRestart, "cursor-invalid"),
    "21-cursor-invalid-500.json": (TransientError, "answered 500"),
    "22-work-404.txt": (SliceMustRestart, "Resource not found."),
    "23-429-html.html": (Throttled, "429 Too Many Requests"),
    "24-504-html.html": (TransientError, "504 Gateway Time-out"),
    "25-400-integer-not-valid.json": (RequestRejected, "field: things (integer-not-valid)"),
    "26-400-filter-not-available.json": (
        *(RequestRejected, "field: has-full-text (filter-not-available)"),
    ),
    # Without the field that was asked for, or from a time before it: every item is broken.
    "29-works-select.json": _NO_TIME,
    "30-works-select-published.json": _NO_TIME,
    "37-works-offset-1000rows-2014.json": _NO_TIME,
    "39-work-elife-relation.json": _ONE_WORK,
    "40-work-posted-blog.json": _ONE_WORK,
    "42-work-peer-review.json": _ONE_WORK,
    "43-work-journal-record.json": _ONE_WORK,
    "44-work-sparse.json": _ONE_WORK,
    "46-work-isrctn.json": _ONE_WORK,
    "47-work-corrected.json": _ONE_WORK,
    "48-work-updates-itself.json": _ONE_WORK,
    "53-work-unixsd-xml.xml": (BodyUnreadable, "that is not JSON"),
    "56-agency.json": _ONE_WORK,
}
ALONE = "50-works-title-retraction-updates.json"  # the same, and only one work: it may be the work
WALKS = {
    "widget": [f"0{n}-works-cursor-widget-p0{n}.json" for n in (1, 2, 3)],
    "ecology": [f"0{n + 3}-works-cursor-ecology-p0{n}.json" for n in (1, 2, 3)],
    "members98": [f"{n + 6:02d}-members98-works-cursor-p0{n}.json" for n in (1, 2, 3, 4)],
}
SIZES = {"widget": 20, "ecology": 30, "members98": 5}


@pytest.fixture(scope="module")
def pack():
    return read_pack(FOLDER / "crossref.yaml")


@pytest.fixture(scope="module")
def works(sqlite_template, pack):
    return compiled(sqlite_template, pack, "works")


@pytest.fixture(scope="module")
def details(sqlite_template, pack):
    return compiled(sqlite_template, pack, "work", Operation.UPDATE)


@pytest.fixture
def paged(sqlite_template, pack, request):
    """The works, asked for in pages as long as those of the recorded walk."""
    values = {"paging": {"page_size": SIZES[request.param]}}
    return compiled(sqlite_template, pack, "works", values=values)


def test_every_recording_has_its_row():
    assert {*LISTED, *REFUSED, ALONE} == recordings("crossref")


def test_one_work_without_a_time_is_a_bad_work_and_no_other_kind_of_answer(works):
    (bad,) = read(recorded("crossref", ALONE), works, works.paging).mapped.bad

    assert (bad.path, bad.reason) == ("$.indexed.date-time", "the update time is missing")


@pytest.mark.parametrize("name", LISTED)
def test_a_page_of_works_gives_their_dois(works, name):
    page = read(recorded("crossref", name), works, works.paging)

    assert (*page.ends, page.decoded.total) == LISTED[name]
    assert page.mapped.bad == []
    assert misfits(page.mapped.records) == []


@pytest.mark.parametrize("name", LISTED)
def test_a_page_of_works_is_also_what_a_question_for_dois_gets(details, name):
    assert read(recorded("crossref", name), details).ends == LISTED[name][:3]


@pytest.mark.parametrize("name", REFUSED)
def test_another_answer_is_the_declared_error(works, name):
    error, words = REFUSED[name]

    with pytest.raises(error, match=re.escape(words)) as raised:
        read(recorded("crossref", name), works, works.paging)

    assert type(raised.value) is error


@pytest.mark.parametrize(("paged", "names"), WALKS.items(), indirect=["paged"], ids=WALKS)
def test_a_walk_goes_on_although_every_page_hands_out_the_same_cursor(paged, names):
    walked = walk("crossref", names, paged)

    sent = [asked("crossref", name)["cursor"] for name in names]
    assert [page.token for page in walked.places] == sent
    assert sent[0] == "*"
    assert len(set(sent[1:])) == 1
    assert walked.after == Page(len(names) + 1, token=sent[1])
    assert len(set(walked.ids)) == len(names) * paged.paging.page_size


@pytest.mark.parametrize(("paged", "names"), WALKS.items(), indirect=["paged"], ids=WALKS)
def test_a_walk_ends_with_a_page_that_is_not_full(paged, names):
    walked = walk("crossref", [*names, "28-works-no-hits.json"], paged)

    assert walked.after == Ended("SHORT_PAGE")


@pytest.mark.parametrize(("paged", "names"), WALKS.items(), indirect=["paged"], ids=WALKS)
def test_a_cursor_that_stays_where_it_is_does_not_hide_a_circle(paged, names):
    with pytest.raises(SliceIncomplete, match="goes in a circle"):
        walk("crossref", [*names, names[0]], paged)


def test_the_older_cursor_that_moves_is_followed_too(sqlite_template, pack):
    values = {"paging": {"page_size": 25}}
    spec = compiled(sqlite_template, pack, "works", values=values)

    after = walk("crossref", ["18-cursor-created-date-p1.json"], spec).after

    assert isinstance(after, Page)
    assert after.token.startswith("AoJw0Lzrwe8CPxNodHRwOi8vZHguZG9pLm9yZy8xMC4xMDE2L2ou")
