"""Recordings served over real HTTP: which one answers, what is kept, where links lead."""

import json
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

import pytest

from patra_ingest.errors import PersonMustAct
from patra_ingest.sandbox.recorded_answer import (
    Fit,
    Memory,
    Rules,
    choose,
    fit,
    read_question,
)
from patra_ingest.sandbox.recordings import (
    InSequence,
    Recording,
    read_recordings,
    write_recording,
)
from patra_ingest.sandbox.replayer import serve_recordings

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures"
API = "https://api.example.org/v2"


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def ask(url, data=None, method=None):
    opener = build_opener(ProxyHandler({}), _Stay)
    request = Request(url.replace(" ", "%20"), data=data, method=method)
    try:
        with opener.open(request) as answer:
            return answer.status, answer.headers, answer.read()
    except HTTPError as answer:
        with answer:
            return answer.code, answer.headers, answer.read()


def page(name, query, body=b"{}", **more):
    return Recording(name, "GET", f"{API}/works?{query}", body, **more)


@pytest.mark.parametrize(
    ("asked", "recorded", "fits"),
    [
        pytest.param("cursor=*&rows=500", "cursor=%2A&rows=20", True, id="a page of another size"),
        pytest.param("offset=0", "", True, id="a first page, asked for in words or without"),
        pytest.param("page=1", "start=0", True, id="a first page, asked for in another way"),
        pytest.param("page=2", "page=1", False, id="another page"),
        pytest.param("offset=20", "", False, id="a later page is not the first"),
        pytest.param("from=20", "from=40", False, id="a number after from is an offset"),
        pytest.param(
            "from=2025-01-02", "from=2014-12-24", True, id="a date after from is a window"
        ),
        pytest.param("cursor=abc", "cursor=abd", False, id="another cursor"),
        pytest.param("token=a%253Ab", "token=a%3Ab", True, id="a token, encoded once more"),
        pytest.param("token=t1", "token=t1&offset=100", True, id="a token says it all"),
        pytest.param("id=1,2", "id=2%2C1", True, id="the same ids in another order"),
        pytest.param("id=1,2", "id=1", False, id="other ids"),
        pytest.param("id=1", "", False, id="ids, where none were asked for"),
        pytest.param("format=json", "format=xml", False, id="another format"),
        pytest.param("format=json", "", True, id="a format that nobody asked for"),
        pytest.param("mailto=a@b.example&api_key=1", "mailto=REDACTED", True, id="another caller"),
        pytest.param("query=owl", "query=fox", True, id="another query, for want of a better one"),
    ],
)
def test_a_recording_answers_what_asks_for_the_same_page_of_the_same_thing(asked, recorded, fits):
    question = read_question("GET", f"/v2/works?{asked}")

    found = fit(question, page("a.json", recorded), Rules())

    assert (found.against == ()) is fits, found


def test_a_rule_makes_a_parameter_matter_or_not():
    question = read_question("GET", "/v2/works?query=owl&page=2")
    other = page("a.json", "query=fox&page=3")

    assert fit(question, other, Rules()).against == ("its page is 3",)
    assert fit(question, other, Rules(ignored=frozenset({"page"}))).against == ()
    strict = Rules(ignored=frozenset({"page"}), same=frozenset({"query"}))
    assert fit(question, other, strict).against == ("its query is fox",)


def test_a_date_in_a_path_may_be_another_one_and_an_id_may_not():
    def fits(asked, recorded):
        one = Recording("a.json", "GET", f"https://api.example.org{recorded}", b"")
        return not fit(read_question("GET", asked), one, Rules()).against

    assert fits("/details/2025-01-02/2025-01-03/0", "/details/2026-07-15/2026-07-18/0")
    assert not fits("/details/2025-01-02/2025-01-03/100", "/details/2026-07-15/2026-07-18/0")
    assert not fits("/works/20240101", "/works/20240102")
    assert fits("/works/10.5555%2Fabc", "/works/10.5555/ABC/")


def test_a_posted_form_is_the_question_that_an_address_asks_and_json_is_read():
    form = Recording("a.xml", "POST", f"{API}/fetch", b"", asked_body="db=x&id=7&email=REDACTED")
    assert not fit(read_question("GET", "/v2/fetch?db=x&id=7"), form, Rules()).against

    tree = json.dumps({"offset": 50, "limit": 50, "criteria": {"ids": ["a", "b"]}})
    posted = Recording("a.json", "POST", f"{API}/search", b"", asked_body=tree)
    again = json.dumps({"criteria": {"ids": ["b", "a"]}, "offset": 50, "limit": 10})
    assert not fit(read_question("POST", "/v2/search", again), posted, Rules()).against
    later = again.replace("50", "100")
    assert fit(read_question("POST", "/v2/search", later), posted, Rules()).against
    assert fit(read_question("GET", "/v2/search?offset=50"), posted, Rules()).against


def test_the_most_alike_answers_and_a_sequence_is_told_in_its_order():
    walk = [
        page(f"{n}.json", "query=owl&cursor=*" if n == 1 else "query=owl&cursor=same")
        for n in (1, 2, 3)
    ]
    walk = [
        Recording(one.name, one.method, one.url, b"", sequence=InSequence("owl", n, 3))
        for n, one in enumerate(walk, 1)
    ]
    others = [page("fox.json", "query=fox&cursor=*"), page("none.json", "query=owl&rows=0")]
    memory = Memory()

    def answer(query):
        found = choose(read_question("GET", f"/v2/works?{query}"), [*others, *walk], memory)
        assert isinstance(found, Fit)
        return found.recording.name

    assert answer("query=fox&rows=9") == "fox.json"
    assert answer("query=owl&rows=0") == "none.json"
    for _ in range(2):  # whoever begins again is told all of it again
        assert answer("query=owl&cursor=*") == "1.json"
        assert [answer("query=owl&cursor=same") for _ in range(2)] == ["2.json", "3.json"]


def test_status_headers_and_body_are_those_of_the_recording():
    headers = (
        *(("content-type", "application/json;v=1"), ("content-encoding", "gzip")),
        *(("content-length", "7"), ("retry-after", "120"), ("x-rate-limit-limit", "5")),
        *(("date", "Tue, 16 Jun 2026 20:53:29 GMT"), ("x-two", "a"), ("x-two", "b")),
    )
    one = page("a.json", "", b'{"a": "\xc3\xa9"}', status=429, headers=headers)
    with serve_recordings([one]) as replayer:
        assert replayer.url.startswith("http://127.0.0.1:")
        status, told, body = ask(replayer.at(f"{API}/works"))

    assert (status, body) == (429, one.body)
    assert told["content-type"] == "application/json;v=1"
    assert told["content-encoding"] is None
    assert told["content-length"] == str(len(body))
    assert (told["retry-after"], told["x-rate-limit-limit"]) == ("120", "5")
    assert told.get_all("date") == ["Tue, 16 Jun 2026 20:53:29 GMT"]
    assert told.get_all("x-two") == ["a", "b"]
    assert replayer.served == ["a.json"]


def test_links_to_pages_lead_back_and_what_records_say_stays():
    mine = f"{API}/works/7"
    body = json.dumps(
        {"next": f"{API}/works?page=2&x=1", "self": f"{API}/works?page=1", "items": [mine]}
    ).replace("/", "\\/")
    link = (("link", f'<{API}/works?page=2>; rel="next"'), ("location", f"{API}/elsewhere"))
    with serve_recordings(
        [page("a.json", "", body.encode(), status=302, headers=link)]
    ) as replayer:
        _, told, sent = ask(f"{replayer.url}/v2/works")

    tree = json.loads(sent)
    assert tree["next"] == f"{replayer.url}/v2/works?page=2&x=1"
    assert (tree["self"], tree["items"]) == (f"{API}/works?page=1", [mine])
    assert told["link"] == f'<{replayer.url}/v2/works?page=2>; rel="next"'
    assert told["location"] == f"{replayer.url}/v2/elsewhere"


def test_what_nothing_answers_is_501_with_the_closest_recordings():
    recordings = [
        page("a.json", "page=2"),
        page("b.json", "page=3"),
        Recording("c", "GET", "", b""),
    ]
    with serve_recordings(recordings) as replayer:
        status, _, said = ask(f"{replayer.url}/v2/works?page=4")

    assert status == 501
    assert said.decode() == (
        "No recording answers GET /v2/works?page=4. The closest: a.json (its page is 2);"
        " b.json (its page is 3); c (nobody recorded what it answered).\n"
    )
    assert [visit.said for visit in replayer.unanswered] == [said.decode()]


def test_what_is_written_is_read_again(tmp_path):
    one = Recording(
        *("a.json", "POST", f"{API}/works", b'{"a": 1}', 503),
        (("retry-after", "7"), ("x-two", "a"), ("x-two", "b")),
        *('{"ids": [1]}', InSequence("walk", 2, 3), "the second page"),
    )

    write_recording(tmp_path, one, "example", {"redactions": ["email"]})

    assert read_recordings(tmp_path) == [one]
    told = json.loads((tmp_path / "a.json.meta.json").read_text())
    assert (told["source"], told["redactions"], told["bytes"]) == ("example", ["email"], 8)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "has no recordings"),
        ({"a.json.meta.json": "{"}, "does not tell what was asked"),
        ({"a.json.meta.json": '{"request": null}', "a.json": ""}, "does not tell what was asked"),
        ({"a.json.meta.json": '{"request": {"method": "GET"}}'}, "cannot be read"),
    ],
)
def test_a_folder_that_is_none_costs_one_sentence(tmp_path, files, words):
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    with pytest.raises(PersonMustAct, match=words):
        read_recordings(tmp_path)


def test_a_folder_that_is_not_there_costs_one_sentence(tmp_path):
    with pytest.raises(PersonMustAct, match="No such file"):
        read_recordings(tmp_path / "nowhere")


@pytest.mark.skipif(not FIXTURES.is_dir(), reason="there are no recordings in ../shared/fixtures")
def test_every_real_recording_answers_the_question_that_it_was_recorded_for():
    asked = 0
    for folder in sorted(one for one in FIXTURES.iterdir() if one.is_dir()):
        recordings = read_recordings(folder)
        with serve_recordings(recordings) as replayer:
            for one in (each for each in recordings if each.url):
                data = one.asked_body.encode() or None
                status, _, _ = ask(replayer.at(one.url), data, one.method)
                assert (status, replayer.served[-1]) == (one.status, one.name)
                asked += 1
    assert asked >= 200
