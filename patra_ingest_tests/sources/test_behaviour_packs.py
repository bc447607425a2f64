"""The packs of the behaviours speak the pack language and nothing else."""

import pytest

from patra_ingest.clock import SystemClock
from patra_ingest.registry.apply import apply_pack
from patra_ingest.registry.check import check_endpoints
from patra_ingest.registry.code_book import builtin_code_book
from patra_ingest.registry.pack import read_pack
from patra_ingest_tests.sources.packs import BEHAVIOURS


@pytest.mark.parametrize("file", BEHAVIOURS, ids=lambda file: file.stem)
def test_a_pack_compiles_without_a_warning_that_is_not_meant(sqlite_db, file):
    pack = read_pack(file)
    with sqlite_db.write() as tx:
        apply_pack(tx, pack, sqlite_db.now(tx))
    with sqlite_db.read() as tx:
        at = SystemClock().now()
        found = check_endpoints(tx, None, at, builtin_code_book(), lambda _: False)
        wrong = {str(one.name): (*one.problems, *one.warnings) for one in found}

    assert {name: problems for name, problems in wrong.items() if problems} == {}


def test_there_is_a_pack_for_each_of_the_behaviours():
    assert sorted(int(file.stem[:2]) for file in BEHAVIOURS) == list(range(1, 23))
