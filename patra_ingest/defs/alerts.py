"""The alert sensor: a person is told once when something goes wrong, and once when it is over.

What is wrong is read from the ledger at every tick; the sensor's cursor only keeps what each sink
was told. A sink that cannot be reached is told later. A daemon that dies between telling and
keeping tells once more, under the same dedupKey.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import dagster as dg
import orjson

from patra_ingest.clock import SystemClock
from patra_ingest.defs.resources import LedgerResource
from patra_ingest.errors import PersonMustAct
from patra_ingest.ledger.outbox_queue import Message
from patra_ingest.model import keys
from patra_ingest.settings import Settings
from patra_ingest.transport.delivery import Published, Sink
from patra_ingest.transport.mail import MailSink
from patra_ingest.transport.sinks import open_sink
from patra_ingest.views.alerts import Alert, list_alerts
from patra_ingest.views.health import Thresholds
from patra_ingest.wiring import read_settings, user_agent

Told = dict[str, dict[str, str]]  # what a sink knows to be wrong: level, words, episode, by key
_OVER = "OVER"


@dg.sensor(
    minimum_interval_seconds=60,
    description="Tell people of trouble and of its end: holds, stalled cursors, dead messages, too"
    " many errors. Starts no run.",
)
def alerts(context: dg.SensorEvaluationContext, ledger: LedgerResource) -> dg.SensorResult:
    """Tell of L4 holds, stalled cursors, dead messages and too many errors; start no run.

    It tells the log, and every sink that PATRA_ALERT_SINKS names.
    """
    settings = read_settings()
    with ledger.look() as live:
        now = live.clock.now()
        with live.db.read() as tx:
            wrong = list_alerts(tx, now, Thresholds.read(settings.check_thresholds))
    kept: dict[str, Told] = json.loads(context.cursor or "{}")
    told = {"log": _log(context, wrong, kept.get("log", {}), now)}
    for name, sink in _sinks(context, settings):
        told[name] = _tell(context, sink, wrong, kept.get(name, {}), now)
        sink.close()
    said = f"wrong: {', '.join(alert.key for alert in wrong)}" if wrong else "nothing is wrong"
    reason = dg.SkipReason(said[:500])
    return dg.SensorResult(skip_reason=reason, cursor=json.dumps(told))


def changes(wrong: list[Alert], told: Told, now: datetime) -> list[Alert]:
    """Return what has to be told: what is new, or not as it was told, then what is over."""
    dated = [_dated(alert, told.get(alert.key, {}), now) for alert in wrong]
    news = [alert for alert in dated if _is_news(alert, told.get(alert.key))]
    gone = sorted(told.keys() - {alert.key for alert in wrong})
    return [*news, *(_over(key, told[key]) for key in gone)]


def _dated(alert: Alert, known: dict[str, str], now: datetime) -> Alert:
    """Return the alert with its episode: the ledger's, the one told of, or that of this hour."""
    return replace(alert, episode=alert.episode or known.get("episode") or f"{now:%FT%HZ}")


def _is_news(alert: Alert, known: dict[str, str] | None) -> bool:
    return known is None or (known["level"], known["episode"]) != (alert.level, alert.episode)


def _over(key: str, known: dict[str, str]) -> Alert:
    return Alert(key, _OVER, f"Over: {known['what']}", "", known["episode"])


def _log(
    context: dg.SensorEvaluationContext, wrong: list[Alert], told: Told, now: datetime
) -> Told:
    for alert in changes(wrong, told, now):
        context.log.warning(f"{alert.level} {alert.what} {alert.remedy}".strip())
        told = _noted(told, alert)
    return told


def _tell(
    context: dg.SensorEvaluationContext, sink: Sink, wrong: list[Alert], told: Told, now: datetime
) -> Told:
    """Return what a sink knows now; what it did not take is tried again at the next tick."""
    for alert in changes(wrong, told, now):
        (answer,) = sink.publish([_message(alert, now)])
        if isinstance(answer, Published):
            told = _noted(told, alert)
        else:
            context.log.error(f"{sink.shown} was not told of {alert.key}: {answer.why}")
            if not answer.for_good:
                break  # it is in trouble: a tick must not wait for it again and again
    return told


def _noted(told: Told, alert: Alert) -> Told:
    others = {key: known for key, known in told.items() if key != alert.key}
    if alert.level == _OVER:
        return others
    known = {"level": alert.level, "what": alert.what, "episode": alert.episode}
    return {**others, alert.key: known}


def _message(alert: Alert, now: datetime) -> Message:
    """Return an alert as sinks take messages; told twice, it has the same key."""
    said = {"key": alert.key, "level": alert.level, "what": alert.what, "remedy": alert.remedy}
    name = keys.digest({"alert": alert.key, "level": alert.level, "of": alert.episode})
    payload = orjson.dumps(said).decode()
    return Message(0, "ingest.alert", "ALERT", alert.key, name, payload, now)


def _sinks(context: dg.SensorEvaluationContext, settings: Settings) -> Iterator[tuple[str, Sink]]:
    names: dict[str, int] = {}
    for word in settings.alert_sinks.split():
        try:
            sink = _open(word, settings)
        except PersonMustAct as error:
            context.log.error(f"PATRA_ALERT_SINKS: {error}")
            continue
        names[sink.shown] = names.get(sink.shown, 0) + 1
        yield f"{sink.shown} {names[sink.shown]}", sink


def _open(word: str, settings: Settings) -> Sink:
    """Return the sink at an address, or at the one that a secret reference holds."""
    address = word
    if word.startswith(("env:", "file:")):
        found = settings.secret(word)
        if found is None:
            raise PersonMustAct(f"There is nothing at {word}.", "Put an address there.")
        address = found
    if address.startswith(("smtp:", "smtps:")):
        return MailSink(address)
    return open_sink(address, SystemClock(), user_agent(settings))
