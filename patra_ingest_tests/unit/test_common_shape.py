import pytest

from patra_ingest.spec.common_shape import COMMON_FIELDS, find_misfits

GOOD = {
    "doi": "10.1000/abc",
    "pmid": "12345",
    "pmcid": "PMC7",
    "title": "On shapes",
    "authors": ["Lovelace, Ada", "WHO"],
    "journal": "Shapes",
    "issn": ["1234-567X"],
    "published": "2026-11",
    "created": "2026-11-03",
    "type": "article",
    "language": "en",
    "has_abstract": False,
    "license": "https://creativecommons.org/licenses/by/4.0/",
    "retracted": False,
    "corrected": True,
}
BAD = {
    "doi": ["https://doi.org/10.1000/abc", "10.1000/ABC", "none"],
    "pmid": [12345, "PMID:1", ""],
    "pmcid": ["7", "PMC", "pmc7"],
    "title": ["", " ", ["A"]],
    "authors": ["Ada", [], [{"family": "Ada"}], [""]],
    "journal": [["Shapes"], ""],
    "issn": ["1234-567X", ["1234567X"]],
    "published": ["2026-13", "2026-11-3", "20261103", "Nov 2026", 2026, "2026-11-03T00:00:00Z"],
    "created": ["2026-00"],
    "type": [3],
    "language": [""],
    "has_abstract": ["true", 1],
    "license": [{"url": "x"}],
    "retracted": ["no"],
    "corrected": [0],
}


def test_a_record_written_as_agreed_has_no_misfits():
    assert find_misfits(GOOD) == []
    assert set(GOOD) == set(BAD) == set(COMMON_FIELDS)


def test_what_a_source_does_not_know_and_what_it_knows_beyond_fits():
    assert find_misfits(dict.fromkeys(COMMON_FIELDS)) == []
    assert find_misfits({"mesh": ["a"], "cited_by": 3}) == []


@pytest.mark.parametrize("name", BAD)
def test_a_value_written_otherwise_is_named(name):
    for value in BAD[name]:
        (misfit,) = find_misfits({**GOOD, name: value})
        assert misfit.startswith(f"{name} is {value!r}")
