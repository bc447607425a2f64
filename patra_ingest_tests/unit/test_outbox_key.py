"""What makes a message about a record itself, and where its key stands among the others."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from patra_ingest.model import keys
from patra_ingest.model.window import instant_iso
from patra_ingest_tests.builders import NOON


@given(st.text(st.characters(exclude_categories=["Cs"])), st.none() | st.just("T"), st.integers(0))
def test_the_key_holds_the_digest_of_canonical_json(name, updated, revision):
    said = {"kind": "outbox", "change": "UPSERT", "provenance": "p", "endpoint": "e", "id": name}
    said |= {"sourceUpdatedAt": updated, "contentHash": "c", "revision": revision % 2**53}

    made = keys.outbox_key("p", "e", name, "UPSERT", updated, "c", revision % 2**53)
    assert made == ("T/" if updated else "") + keys.digest(said)


def test_the_keys_of_one_window_are_neighbours_and_fit_their_column():
    days = [NOON + timedelta(days=day) for day in (3, 1, 2)]
    made = {
        keys.outbox_key("p", "e", str(n), "UPSERT", instant_iso(at), "c", n): at
        for at in days
        for n in range(20)
    }

    assert [made[key] for key in sorted(made)] == sorted(made.values())
    assert max(map(len, made)) <= 128
