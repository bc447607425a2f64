"""The alert sensor tells every sink once that something is wrong, and once that it is over."""

import json
import socketserver
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from patra_ingest.errors import PersonMustAct
from patra_ingest.ledger.holds import place_hold, resume
from patra_ingest.ledger.outbox import add_changes
from patra_ingest.ledger.outbox_queue import Message
from patra_ingest.model.lineage import Lineage
from patra_ingest.transport.delivery import Published, Refused
from patra_ingest.transport.mail import MailSink
from patra_ingest.views.alerts import list_alerts
from patra_ingest.views.health import Thresholds
from patra_ingest_tests.builders import NOON, a_change
from patra_ingest_tests.receivers import webhook

SECRET = "CANARY-51"


def hold(ledger, code="L4", at=NOON):
    with ledger.write() as tx:
        place_hold(tx, "sandbox", "works", code, "401: not let in", "worker", at)


def lift(ledger):
    with ledger.write() as tx:
        resume(tx, "sandbox", "works", "ann", NOON)


def payloads(hook):
    return [(one["payload"]["level"], one["payload"]["key"]) for one in hook.accepted]


def alerts_of(ledger, now=None):
    with ledger.read() as tx:
        return list_alerts(tx, now or datetime.now(UTC), Thresholds())


def test_a_hold_is_told_once_and_once_when_it_is_lifted(home, ledger, tick, monkeypatch):
    with webhook() as hook:
        monkeypatch.setenv("PATRA_ALERT_SINKS", f"{hook.url}/hooks/{SECRET}")
        hold(ledger)
        first = tick("alerts")
        second = tick("alerts", first.cursor)  # a daemon that restarts has the cursor, too
        lift(ledger)
        third = tick("alerts", second.cursor)
        tick("alerts", third.cursor)

    assert payloads(hook) == [("ERROR", "hold sandbox/works"), ("OVER", "hold sandbox/works")]
    told = hook.accepted[0]["payload"]
    assert told["what"].endswith(": 401: not let in")
    assert told["remedy"] == "Mend it, then `patra resume sandbox/works`."
    assert SECRET not in first.cursor + first.skip_message


def test_a_hold_that_was_lifted_and_placed_again_between_two_ticks_is_news(
    home, ledger, tick, monkeypatch
):
    with webhook() as hook:
        monkeypatch.setenv("PATRA_ALERT_SINKS", hook.url)
        hold(ledger)
        seen = tick("alerts").cursor
        lift(ledger)
        hold(ledger, at=NOON + timedelta(minutes=1))
        tick("alerts", seen)

    assert payloads(hook) == [("ERROR", "hold sandbox/works")] * 2
    assert len({one["dedupKey"] for one in hook.accepted}) == 2


def test_what_was_told_but_not_noted_is_told_again_under_the_same_key(
    home, ledger, tick, monkeypatch
):
    with webhook() as hook:
        monkeypatch.setenv("PATRA_ALERT_SINKS", hook.url)
        hold(ledger)
        tick("alerts")
        tick("alerts")  # the cursor was lost

    assert len(hook.accepted) == 2
    assert len({one["dedupKey"] for one in hook.accepted}) == 1


def test_a_sink_that_is_down_is_told_later_and_keeps_no_other_waiting(
    home, ledger, tick, monkeypatch, tmp_path
):
    answers = iter([(503, {}), (204, {})])
    with webhook(lambda _: next(answers)) as hook:
        (tmp_path / "address").write_text(hook.url)
        sinks = f"nonsense: file:{tmp_path / 'address'} jsonl:{tmp_path / 'told.jsonl'}"
        monkeypatch.setenv("PATRA_ALERT_SINKS", sinks)
        hold(ledger)
        seen = tick("alerts").cursor
        assert payloads(hook) == []
        tick("alerts", seen)

    assert payloads(hook) == [("ERROR", "hold sandbox/works")]
    (line,) = (tmp_path / "told.jsonl").read_text().splitlines()
    assert json.loads(line)["kind"] == "ALERT"


def test_a_person_who_holds_an_endpoint_needs_no_alert(home, ledger):
    hold(ledger, code="OPERATOR")

    assert alerts_of(ledger) == []


def test_dead_messages_are_told_of_once_per_channel(home, ledger):
    changes = [a_change(name) for name in "ab"]
    with ledger.write() as tx:
        add_changes(tx, changes, Lineage(), NOON)
        tx.execute(text("UPDATE ing_outbox_message SET status_code = 'DEAD'"))

    (alert,) = alerts_of(ledger)

    assert alert.key.startswith("outbox ")
    assert alert.what.startswith("2 messages of ")
    assert alert.episode == "1"


def test_a_cursor_that_stands_still_is_told_of(home, execute, ledger, sandbox):
    days = {"window_from": "2025-09-01", "window_to": "2025-09-03"}
    execute("ingest_job", provenance="sandbox", base_url=sandbox.url, **days)
    assert alerts_of(ledger, datetime(2025, 9, 3, 0, 20, tzinfo=UTC)) == []

    (late,) = alerts_of(ledger, datetime(2025, 9, 3, 1, 30, tzinfo=UTC))
    (later,) = alerts_of(ledger, datetime(2025, 9, 4, tzinfo=UTC))

    assert (late.key, late.level) == ("cursor_lag sandbox/works", "WARN")
    assert (later.key, later.level) == ("cursor_lag sandbox/works", "ERROR")
    assert later.remedy == "`patra coverage sandbox` shows what it waits for."


def test_a_level_that_rises_is_told_again_and_one_that_stays_is_not(
    home, execute, ledger, sandbox, tick, monkeypatch, tmp_path
):
    days = {"window_from": "2025-09-01", "window_to": "2025-09-03"}
    execute("ingest_job", provenance="sandbox", base_url=sandbox.url, **days)
    told = tmp_path / "told.jsonl"
    monkeypatch.setenv("PATRA_ALERT_SINKS", f"jsonl:{told}")
    far = '{"cursor_lag_error": 1e9}'
    monkeypatch.setenv("PATRA_CHECK_THRESHOLDS", far)
    seen = tick("alerts").cursor
    seen = tick("alerts", seen).cursor
    monkeypatch.setenv("PATRA_CHECK_THRESHOLDS", "")
    tick("alerts", tick("alerts", seen).cursor)

    levels = [json.loads(line)["payload"]["level"] for line in told.read_text().splitlines()]
    assert levels == ["WARN", "ERROR"]


class _Post(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self._say("220 here")
        while line := self.rfile.readline().decode().strip():
            word = line.split(" ")[0].upper()
            self.server.heard.append(line)
            if word == "DATA":
                self._say("354 go on")
                self.server.mails.append(self._mail())
            self._say("221 bye" if word == "QUIT" else "250 ok")

    def _mail(self) -> str:
        lines = iter(lambda: self.rfile.readline().decode().rstrip("\r\n"), ".")
        return "\n".join(lines)

    def _say(self, words: str) -> None:
        self.wfile.write(f"{words}\r\n".encode())


@contextmanager
def post_office():
    """Run a mail server without encryption, as a relay next door has none."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Post) as server:
        server.daemon_threads = True
        server.heard, server.mails = [], []
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def message(level="ERROR"):
    said = {"key": "hold sandbox/works", "level": level, "what": "It is held.", "remedy": "Mend."}
    return Message(0, "ingest.alert", "ALERT", "k", "d" * 64, json.dumps(said), NOON)


def test_an_alert_is_mailed(home, ledger, tick, monkeypatch):
    with post_office() as office:
        host = f"127.0.0.1:{office.server_address[1]}"
        monkeypatch.setenv("POST", f"smtp://{host}/?from=patra@a.example&to=ann@a.example")
        monkeypatch.setenv("PATRA_ALERT_SINKS", "env:POST")
        hold(ledger)
        tick("alerts", tick("alerts").cursor)

    (mail,) = office.mails
    assert "Subject: [patra] ERROR: hold sandbox/works" in mail
    assert "To: ann@a.example" in mail
    assert "401: not let in" in mail


def test_a_password_never_goes_over_a_line_that_others_can_read():
    with post_office() as office:
        host = f"127.0.0.1:{office.server_address[1]}"
        sink = MailSink(f"smtp://me:{SECRET}@{host}/?from=a@b.example&to=c@b.example")
        (answer,) = sink.publish([message()])

    assert isinstance(answer, Refused)
    assert SECRET not in f"{answer} {sink.shown} {office.heard} {office.mails}"


def test_a_mail_server_that_is_not_there_is_a_refusal_of_all():
    sink = MailSink("smtp://127.0.0.1:1/?from=a@b.example&to=c@b.example")

    (answer,) = sink.publish([message()])

    assert isinstance(answer, Refused)
    assert answer.of_all
    assert not isinstance(answer, Published)


@pytest.mark.parametrize(
    "address", ["smtp:///x?from=a&to=b", "smtp://h/?to=a@b", "smtp://h:x/?from=a&to=b"]
)
def test_an_address_that_is_none_is_refused_without_showing_it(address):
    with pytest.raises(PersonMustAct) as caught:
        MailSink(address)

    assert address not in str(caught.value)
