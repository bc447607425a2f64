"""Order and completeness of the outbox, for every mood of the receiver."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from patra_ingest.ledger.db import Db, read_json
from patra_ingest.transport.delivery import Published, Refused
from patra_ingest_tests.pipeline.test_outbox import fill, let_time_pass, publish, rows


class Moody:
    """A sink that answers as the test drew, then takes everything; keeps what it took."""

    shown = "moody"
    close = staticmethod(lambda: None)

    def __init__(self, moods):
        self.moods = list(moods)
        self.took: list[tuple[str, str]] = []

    def publish(self, messages):
        return [self._answer(message) for message in messages]

    def _answer(self, message):
        mood = self.moods.pop() if self.moods else "take"
        if mood in ("take", "take and fail"):
            said = read_json(message.payload)
            self.took.append((said["id"], said["contentHash"][0]))
        return Published("x") if mood == "take" else Refused(mood, mood, of_all=mood == "down")


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=12),
    st.lists(st.sampled_from(["take", "no", "down", "take and fail"]), max_size=25),
)
def test_whatever_the_receiver_does_it_ends_up_with_every_version_in_order(
    sqlite_db: Db, names, moods
):
    with sqlite_db.write() as tx:
        tx.execute(text("DELETE FROM ing_outbox_message"))
    for number, name in enumerate(names):
        fill(sqlite_db, name, content=chr(ord("A") + number))
    sink = Moody(moods)
    while set(rows(sqlite_db)) != {"PUBLISHED"}:
        let_time_pass(sqlite_db)
        publish(sqlite_db, sink, max_attempts=99)

    first_seen = list(dict.fromkeys(sink.took))
    for name in set(names):
        told = [content for one, content in first_seen if one == name]
        assert told == [chr(ord("A") + at) for at, one in enumerate(names) if one == name]
