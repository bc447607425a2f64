"""An address that a source has signed leads to its next page, and is not kept beyond that."""

import pytest
from sqlalchemy import inspect

from patra_ingest.clock import SystemClock
from patra_ingest.executor.replay import replay, replay_live
from patra_ingest.executor.replaying import Outcome
from patra_ingest.ledger.cancel import cancel_plan
from patra_ingest.rawstore.store import RawStore
from patra_ingest_tests.pipeline.harness import Home
from patra_ingest_tests.pipeline.test_paging_kinds import an, page
from patra_ingest_tests.pipeline.walks import (
    a_source,
    harvest,
    ids,
    last_error,
    listening,
    proofs,
    records,
    work_on,
)

CANARY = "c4n4ry5ig"
SIGNATURES = {
    "amazon": f"X-Amz-Expires=300&X-Amz-Signature={CANARY}",
    "azure": f"se=2026-01-01&sig={CANARY}%3D",
    "a token": f"access_token={CANARY}",
}
ONCE = {"retry": {"max_attempts": 1}}


@pytest.fixture
def home(sqlite_db, sqlite_url, tmp_path):
    return Home(sqlite_db, sqlite_url, tmp_path / "home")


def signing(signature, in_header=False, trouble=None):
    """Return a source of 35 works that hands out signed addresses, and insists on them."""

    def answer(asked):
        start = int(asked.get("after", 0))
        if start and signature not in asked["url"]:
            return 403, {"error": "not signed"}
        if trouble and start == trouble.get("at"):
            return trouble["status"], {"error": "later"}
        window = f"from={asked['from']}&to={asked['to']}"
        following = f"/works?after={start + 10}&{window}&{signature}" if start < 30 else None
        if not in_header:
            return page(asked, start, next=following)
        return *page(asked, start), {"Link": f'<{following}>; rel="next"'} if following else {}

    return answer


def addressed(in_header=False):
    place = {"link": "next"} if in_header else "$.next"
    return an(type="URL", next_url=place, stop=["NO_TOKEN"])


def columns_with_canary(home):
    with home.db.read() as tx:
        tables = [name for name in inspect(tx).get_table_names() if "yoyo" not in name]
    rows = [(name, row._mapping) for name in tables for row in home.rows(f"SELECT * FROM {name}")]
    return {
        f"{name}.{column}"
        for name, row in rows
        for column, value in row.items()
        if CANARY in str(value)
    }


@pytest.mark.parametrize("in_header", [False, True], ids=["body", "header"])
@pytest.mark.parametrize("signature", SIGNATURES.values(), ids=SIGNATURES)
def test_a_signed_address_is_followed_replayed_and_written_down_nowhere(home, signature, in_header):
    with listening(signing(signature, in_header)) as server:
        home.apply(a_source(server.url, works=addressed(in_header)))
        assert harvest(home) == ["SUCCEEDED"], last_error(home)

    assert records(home) == ids(35)
    assert columns_with_canary(home) == set()
    told = replay(home.db, RawStore(home.folder / "raw"), SystemClock(), 1)
    assert told.outcome is Outcome.EQUAL, told.as_markdown()
    assert CANARY not in told.as_markdown()


def test_a_walk_goes_on_at_a_signed_address_which_only_its_checkpoint_has(home):
    trouble = {"at": 20, "status": 500}
    with listening(signing(SIGNATURES["azure"], trouble=trouble)) as server:
        home.apply(a_source(server.url, ONCE, works=addressed()))
        assert harvest(home) == ["RELEASED"]
        assert columns_with_canary(home) == {"ing_task_run.checkpoint"}
        trouble.clear()
        asked = len(server.asked)
        home.pass_pauses()

        assert work_on(home) == ["SUCCEEDED"], last_error(home)

    assert [one["after"] for one in server.asked[asked:]] == ["20", "30"]
    assert columns_with_canary(home) == set()
    assert proofs(home)[0]["landed"] == 35


def test_a_task_that_ends_otherwise_lets_go_of_the_signed_address(home):
    with listening(signing(SIGNATURES["azure"], trouble={"at": 20, "status": 404})) as server:
        home.apply(a_source(server.url, works=addressed()))

        assert harvest(home) == ["FAILED"]

    assert columns_with_canary(home) == set()


def test_a_cancelled_task_lets_go_of_the_signed_address(home):
    with listening(signing(SIGNATURES["azure"], trouble={"at": 20, "status": 500})) as server:
        home.apply(a_source(server.url, ONCE, works=addressed()))
        assert harvest(home) == ["RELEASED"]
    with home.db.write() as tx:
        cancel_plan(tx, 1, "me", "enough", home.db.now(tx))

    assert columns_with_canary(home) == set()


def test_live_a_signed_page_is_not_asked_for_again(home):
    with listening(signing(SIGNATURES["amazon"])) as server:
        home.apply(a_source(server.url, works=addressed()))
        assert harvest(home) == ["SUCCEEDED"]
        server.asked.clear()
        with home.live() as live:
            told = replay_live(home.db, live.clock, live.upstream(), 1)

    first, *others = told.batches
    assert (first.outcome, len(server.asked)) == (Outcome.EQUAL, 1)
    assert all("the signature is not kept" in (one.problem or "") for one in others)
