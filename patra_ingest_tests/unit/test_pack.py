"""The pack language: what it accepts, and how it says no."""

from datetime import timedelta

import pytest
import yaml

from patra_ingest.errors import PackError
from patra_ingest.packs import builtin_packs
from patra_ingest.registry.pack import parse_pack, read_pack
from patra_ingest.registry.pack_file import PackText
from patra_ingest_tests.builders import an_endpoint, pack_text


def parsed(**parts):
    return parse_pack(PackText("works.yaml", {**pack_text(), **parts}, {}))


def refusal(**parts):
    with pytest.raises(PackError) as caught:
        parsed(**parts)
    return str(caught.value)


def with_endpoint(**differences):
    return {"endpoints": {"works": an_endpoint(**differences)}}


def test_the_pack_of_the_tests_is_valid():
    assert parsed().endpoints["works"].window.max_span == timedelta(days=1)


@pytest.mark.parametrize("path", builtin_packs(), ids=lambda path: path.stem)
def test_the_packs_that_come_with_us_can_be_read(path):
    assert read_pack(path).provenance.code == path.stem


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        pytest.param(
            {"rate": {"key": "x", "per_secnd": 1, "per_second": 1}},
            "rate.per_secnd: is not a known key (did you mean per_second?)",
            id="a slip of the pen",
        ),
        pytest.param(
            with_endpoint(windows={"max_span": "1d"}),
            "endpoints.works.windows: is not a known key (did you mean window?)",
            id="a slip deep inside",
        ),
        pytest.param(
            {"zzz": 1}, "zzz: is not a known key (known keys: auth,", id="nothing like it"
        ),
        pytest.param({"provenance": {"code": "x"}}, "provenance.name: ", id="missing"),
        pytest.param({"endpoints": {}}, "endpoints: does not fit", id="none"),
        pytest.param(
            {"provenance": {"code": "Big Name", "name": "n", "base_url": "u"}},
            "provenance.code: 'Big Name' does not fit (String should match pattern",
            id="a code that is no name",
        ),
        pytest.param(
            with_endpoint(paging={"type": "GUESS"}),
            "endpoints.works.paging.type: 'GUESS' does not fit (Input should be 'NONE', 'OFFSET'",
            id="an unknown kind of paging",
        ),
        pytest.param(
            with_endpoint(paging={"stop": ["TIRED"]}),
            "endpoints.works.paging.stop.0: 'TIRED' does not fit (Input should be 'NO_TOKEN'",
            id="an unknown rule",
        ),
        pytest.param(
            with_endpoint(window={"max_span": "1 month"}),
            "'1 month' is not a duration; write 1d, 36h",
            id="a duration without a length",
        ),
        pytest.param(
            with_endpoint(window={"initial_from": "last year"}),
            "'last year' is not an instant",
            id="no instant",
        ),
        pytest.param(
            with_endpoint(operations=["METRICS"]),
            "METRICS of the dictionary ing_operation is disabled",
            id="an operation nobody can do yet",
        ),
        pytest.param(
            with_endpoint(usage="FETSCH"),
            "The dictionary endpoint_usage has no code 'FETSCH'. Known: SEARCH",
            id="a code that no dictionary has",
        ),
        pytest.param(
            with_endpoint(paging={"page_size": "100"}),
            "endpoints.works.paging.page_size",
            id="a number as text",
        ),
        pytest.param(
            {"http": {"connect_timeout": 10}},
            "write a duration with its unit, such as 30s",
            id="a duration without its unit",
        ),
    ],
)
def test_the_refusal_says_where_and_what(parts, said):
    message = refusal(**parts)

    assert message.startswith("works.yaml")
    assert said in message


def test_all_mistakes_are_said_at_once():
    message = refusal(rate={"key": "x", "per_secnd": 1}, retry={"attempts": 3}, zzz=1)

    assert message.count("is not a known key") == 3


@pytest.mark.parametrize(
    ("alias", "code"), [("FETCH", "DETAIL"), ("fetch", "DETAIL"), ("search", "SEARCH")]
)
def test_a_code_may_be_written_by_its_alias_and_in_any_case(alias, code):
    assert parsed(**with_endpoint(usage=alias)).endpoints["works"].usage == code


@pytest.mark.parametrize("name", ["CURSOR", "cursor", "TOKEN", "SCROLL"])
def test_kinds_of_paging_may_be_written_as_the_dictionary_calls_them(name):
    endpoint = with_endpoint(paging={"type": name, "next_token": "$.n"})

    assert parsed(**endpoint).endpoints["works"].paging.type == "TOKEN"


def test_a_mistake_is_said_with_its_line(tmp_path):
    file = tmp_path / "pack.yaml"
    file.write_text(yaml.safe_dump(pack_text(), sort_keys=False).replace("burst:", "brust:"))

    with pytest.raises(PackError, match=r"line 10: rate.brust: is not a known key \(did you mean"):
        read_pack(file)


def test_small_things_may_be_written_short():
    short = with_endpoint(
        fields={"title": "$.title"}, paging={"total": "$.total"}, operations=["HARVEST"]
    )
    long = with_endpoint(
        fields={"title": {"path": "$.title"}},
        paging={"total": {"path": "$.total"}},
        operations={"HARVEST": {}},
    )

    assert parsed(**short) == parsed(**long)


@pytest.mark.parametrize(
    ("parts", "where"),
    [
        pytest.param({"http": {"query": {"api_key": "s3cr3t"}}}, "http.query.api_key", id="source"),
        pytest.param(
            with_endpoint(request={"query": {"api_key": "s3cr3t"}}),
            "endpoints.works.request.query.api_key",
            id="endpoint",
        ),
        pytest.param(
            with_endpoint(request={"body": {"auth": {"password": "s3cr3t"}}}),
            "endpoints.works.request.body.auth.password",
            id="body",
        ),
        pytest.param(
            with_endpoint(operations={"BACKFILL": {"http": {"headers": {"Authorization": "x"}}}}),
            "endpoints.works.operations.BACKFILL.http.headers.Authorization",
            id="operation",
        ),
        pytest.param({"http": {"proxy": "http://me:s3cr3t@p"}}, "http.proxy", id="proxy"),
    ],
)
def test_a_secret_in_plain_is_refused_and_not_repeated(parts, where):
    message = refusal(**parts)

    assert f"{where}: holds" in message
    assert "s3cr3t" not in message
    assert "env:NAME" in message


API_KEY = {"type": "API_KEY", "field": "X-Key", "secret": "env:EXAMPLE_KEY"}
BASIC = {"type": "BASIC", "username": "env:EXAMPLE_USER", "password": "env:EXAMPLE_PASSWORD"}
OAUTH = {
    "type": "OAUTH2",
    "token_url": "https://login.example.org/token",
    "client_id": "env:EXAMPLE_ID",
    "client_secret": "env:EXAMPLE_SECRET",
}
REFER = "refer to the secret, as env:NAME or file:PATH"


@pytest.mark.parametrize(
    ("credential", "key", "remedy"),
    [
        ({**API_KEY, "secret": "s3cr3t"}, ".secret", REFER),
        ({**BASIC, "username": "s3cr3t"}, ".username", REFER),
        ({**BASIC, "password": "s3cr3t"}, ".password", REFER),
        ({**OAUTH, "client_id": "s3cr3t"}, ".client_id", REFER),
        ({**OAUTH, "client_secret": "s3cr3t"}, ".client_secret", REFER),
        ({**OAUTH, "refresh_token": "s3cr3t"}, ".refresh_token", REFER),
        ({**API_KEY, "field": ["s3cr3t"]}, ".field", "Input should be a valid string"),
        ({**API_KEY, "location": ["s3cr3t"]}, ".location", "Input should be 'HEADER'"),
        ({**OAUTH, "token_url": ["s3cr3t"]}, ".token_url", "Input should be a valid string"),
        (
            {**API_KEY, "unlocks": {"rate": "s3cr3t"}},
            ".unlocks.rate",
            "Input should be a valid dictionary",
        ),
        ({"secret": "s3cr3t"}, "", "Unable to extract tag using discriminator 'type'"),
    ],
)
def test_a_mistake_in_a_credential_hides_the_value_and_names_the_remedy(credential, key, remedy):
    message = refusal(auth={"credentials": {"k": credential}})

    assert f"auth.credentials.k{key}: does not fit ({remedy}" in message
    assert "s3cr3t" not in message


def test_a_credential_of_an_unknown_kind_is_refused_with_the_kinds_there_are():
    message = refusal(auth={"credentials": {"k": {**API_KEY, "type": "APIKEY"}}})

    assert "auth.credentials.k: does not fit (Input tag 'APIKEY'" in message
    assert "'API_KEY', 'BEARER', 'BASIC', 'OAUTH2'" in message


@pytest.mark.parametrize("content", ["", "- a\n- b\n", "just text", "7"])
def test_a_file_that_holds_no_mapping_is_refused(tmp_path, content):
    file = tmp_path / "pack.yaml"
    file.write_text(content)

    with pytest.raises(PackError, match=r"[Mm]apping"):
        read_pack(file)


@pytest.mark.parametrize(
    "content",
    [
        b"a: [1, 2",
        b"a: b: c",
        b"\xff\xfe\x00",
        b"a: &x\n b: *y",
        b"a: !!python/object:os.system {}",
    ],
    ids=["cut off", "two colons", "no text", "unknown anchor", "a trap"],
)
def test_a_file_that_is_no_yaml_is_refused_in_one_line(tmp_path, content):
    file = tmp_path / "pack.yaml"
    file.write_bytes(content)

    with pytest.raises(PackError, match=r"pack\.yaml") as caught:
        read_pack(file)

    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_a_folder_is_refused(tmp_path):
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(PackError, match=r"cannot be read|is a folder"):
            read_pack(path)


def test_a_file_that_is_far_too_large_is_not_even_read(tmp_path):
    file = tmp_path / "pack.yaml"
    file.write_text("# " + "x" * 1_000_001)

    with pytest.raises(PackError, match=r"is larger than 1,000,000 bytes"):
        read_pack(file)


def test_a_pack_may_be_written_with_anchors(tmp_path):
    file = tmp_path / "pack.yaml"
    text = yaml.safe_dump(pack_text(), sort_keys=False).replace("window:", "window: &w")
    file.write_text(text)

    assert read_pack(file) == parsed()


def test_the_refusal_of_a_whole_part_does_not_repeat_what_stands_in_it():
    endpoint = {"request": {"query": {"api_key": "s3cr3t"}, "path": "/w"}, "response": {}}
    message = refusal(endpoints={"works": {**endpoint, "schedule": {"UPDATE": "0 3 * * *"}}})

    assert "schedule: UPDATE is not among the operations" in message
    assert "s3cr3t" not in message


@pytest.mark.parametrize(
    "cron", ["*/0 * * * *", "0 0 * FOO *", "0 25 * * *", "0 3 * *", "٣ * * * *"]
)
def test_a_clock_that_cannot_be_is_refused(cron):
    said = refusal(**with_endpoint(schedule={"HARVEST": cron}))

    assert "cron expression" in said


@pytest.mark.parametrize("cron", ["*/15 * * * *", "0 3 * * MON-FRI", "5,35 0-6/2 1 jan,jul *"])
def test_a_clock_that_can_be_is_taken(cron):
    assert parsed(**with_endpoint(schedule={"HARVEST": cron})).endpoints["works"].schedule
