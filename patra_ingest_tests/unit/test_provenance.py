"""When a source was last looked at: a day of the calendar, a grade, a note."""

import pytest

from patra_ingest.errors import PackError
from patra_ingest.packs import builtin_packs
from patra_ingest.registry.pack import parse_pack, read_pack
from patra_ingest.registry.pack_file import PackText
from patra_ingest_tests.builders import pack_text


def parsed(evidence):
    """Return the evidence of a pack that says so."""
    pack = pack_text()
    pack["provenance"] = {**pack["provenance"], "evidence": evidence}
    return parse_pack(PackText("works.yaml", pack, {})).provenance.evidence


def test_the_day_alone_is_enough():
    found = parsed({"date": "2026-11-01"})

    assert (found.date, found.grade, found.note) == ("2026-11-01", None, None)


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        ({"date": "2026-11"}, "date: '2026-11' does not fit (write a day, such as 2026-11-01)"),
        ({"date": "2026-02-30"}, "date: '2026-02-30' does not fit (is no day of the calendar)"),
        ({"date": "٢٠٢٦-11-01"}, "(write a day, such as 2026-11-01)"),
        ({"grade": "LIVE"}, "evidence.date: "),
        ({"date": "2026-11-01", "grade": "A"}, "grade: 'A' does not fit (Input should be 'LIVE'"),
    ],
)
def test_what_is_no_evidence_is_refused(evidence, said):
    with pytest.raises(PackError) as refused:
        parsed(evidence)

    assert said in str(refused.value)


@pytest.mark.parametrize("path", builtin_packs(), ids=lambda path: path.stem)
def test_every_built_in_pack_says_when_its_source_was_last_looked_at(path):
    found = read_pack(path).provenance.evidence

    assert found is not None
    assert found.grade is not None
