"""Sinks: what is delivered, what is refused and why, and that no secret of an address is shown."""

import json
import logging
import socket
from datetime import timedelta

import pytest

from patra_ingest.errors import PersonMustAct
from patra_ingest.ledger.outbox_queue import Message
from patra_ingest.transport.delivery import Published, Refused
from patra_ingest.transport.sinks import has_secret, open_sink
from patra_ingest_tests.builders import NOON
from patra_ingest_tests.fakes import FakeClock
from patra_ingest_tests.receivers import redis, webhook

SECRET = "CANARY-8f3a"


def messages(*names):
    return [
        Message(
            number,
            "record.example",
            "UPSERT",
            f"works/{name}",
            f"key-{name}",
            json.dumps({"id": name}),
            NOON,
        )
        for number, name in enumerate(names, start=1)
    ]


def publish(to, *names):
    sink = open_sink(str(to), FakeClock(), "patra-tests/1")
    answers = sink.publish(messages(*names))
    sink.close()
    return answers


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_file_gets_one_json_object_per_line(tmp_path):
    file = tmp_path / "out.jsonl"

    first = publish(f"jsonl:{file}", "ä", "b\n")
    then = publish(f"jsonl:{file}", "c")

    assert [one["payload"]["id"] for one in lines(file)] == ["ä", "b\n", "c"]
    assert lines(file)[0] == {
        "dedupKey": "key-ä",
        "channel": "record.example",
        "kind": "UPSERT",
        "partitionKey": "works/ä",
        "messageId": 1,
        "createdAt": "2025-09-20T12:00:00.000000Z",
        "payload": {"id": "ä"},
    }
    offsets = [int(answer.msg_id.removeprefix("byte ")) for answer in first + then]
    assert [file.read_bytes()[at : at + 13] for at in offsets] == [b'{"dedupKey":"'] * 3


def test_half_a_line_of_a_dead_writer_is_not_continued(tmp_path):
    file = tmp_path / "out.jsonl"
    file.write_bytes(b'{"dedupKey":"ha')

    (answer,) = publish(f"jsonl:{file}", "a")

    assert file.read_bytes().split(b"\n")[0] == b'{"dedupKey":"ha'
    assert json.loads(file.read_bytes().split(b"\n")[1])["payload"] == {"id": "a"}
    assert answer == Published("byte 16")


def test_a_file_that_cannot_be_written_refuses_all(tmp_path):
    answers = publish(f"jsonl:{tmp_path / 'nowhere' / 'out.jsonl'}", "a", "b")

    assert [(answer.code, answer.of_all) for answer in answers] == [("NOT_WRITTEN", True)] * 2
    assert "No such file or directory" in answers[0].why


def test_a_full_disk_leaves_no_trace_in_the_file():
    (answer,) = publish("jsonl:/dev/full", "a")

    assert answer.code == "NOT_WRITTEN"
    assert answer.of_all


def test_a_webhook_gets_an_array_and_the_name_of_the_batch():
    with webhook() as hook:
        answers = publish(f"{hook.url}/in?x=1", "a", "b")
        publish(f"{hook.url}/in?x=1", "a", "b")

    assert [one["payload"]["id"] for one in hook.batches[0]] == ["a", "b"]
    sent = hook.headers[0]
    assert (sent["path"], sent["Content-Type"]) == ("/in?x=1", "application/json")
    assert answers == [Published(sent["X-Ingest-Outbox-Batch"])] * 2
    assert hook.headers[1]["X-Ingest-Outbox-Batch"] == sent["X-Ingest-Outbox-Batch"]


@pytest.mark.parametrize(
    ("status", "for_good", "of_all"),
    [
        *((status, True, False) for status in (400, 406, 409, 413, 415, 422, 451)),
        *((status, False, True) for status in (301, 401, 403, 404, 405, 408, 410, 429)),
        *((status, False, True) for status in (502, 503, 504)),
        *((status, False, False) for status in (500, 501, 507)),
    ],
)
def test_a_status_says_who_is_to_blame(status, for_good, of_all):
    with webhook(lambda _: (status, {})) as hook:
        answers = publish(hook.url, "a", "b")

    assert len(answers) == 2
    for answer in answers:
        assert (answer.code, answer.for_good, answer.of_all) == (f"HTTP_{status}", for_good, of_all)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        ("Sat, 20 Sep 2025 12:05:00 GMT", 300),
        ("Sat, 20 Sep 2025 11:00:00 GMT", None),
        ("9" * 5000, 86400),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_honoured_in_both_forms(header, seconds):
    with webhook(lambda _: (503, {"Retry-After": header})) as hook:
        (answer,) = publish(hook.url, "a")

    assert answer.retry_at == (None if seconds is None else NOON + timedelta(seconds=seconds))


def test_a_webhook_that_is_not_there_is_not_the_messages_fault():
    with webhook() as hook:
        pass
    (answer,) = publish(hook.url, "a")

    assert (answer.code, answer.of_all, answer.for_good) == ("UNREACHABLE", True, False)


def test_a_webhook_that_falls_over_may_have_choked_on_the_message():
    with webhook(lambda _: (0, {})) as hook:
        (answer,) = publish(hook.url, "a")

    assert (answer.code, answer.of_all, answer.for_good) == ("NO_ANSWER", False, False)


def test_no_secret_of_a_webhook_is_shown_or_logged(caplog):
    caplog.set_level(logging.DEBUG)
    with webhook(lambda _: (500, {})) as hook:
        to = f"{hook.url.replace('//', f'//me:{SECRET}@')}/hooks/{SECRET}?key={SECRET}"
        sink = open_sink(to, FakeClock(), "patra-tests/1")
        (answer,) = sink.publish(messages("a"))
        sink.close()

    assert hook.headers[0]["Authorization"].startswith("Basic ")
    assert "CANARY" not in f"{answer} {sink.shown} {caplog.text}"
    assert sink.shown == f"{hook.url}/…"
    assert logging.getLogger("httpx").filters.count(sink._without_address) == 0


def test_a_stream_gets_one_entry_per_message():
    with redis(password=SECRET) as server:
        answers = publish(server.url, "a", "b")

    assert answers == [Published("1700000000000-1"), Published("1700000000000-2")]
    first, second = server.entries()
    assert first["dedupKey"] == "key-a"
    assert json.loads(second["message"])["payload"] == {"id": "b"}


def test_an_entry_that_redis_refuses_does_not_stop_the_others():
    with redis(refuse=lambda said: "ERR not this one" if "key-b" in said else None) as server:
        one, two, three = publish(server.url, "a", "b", "c")

    assert isinstance(one, Published)
    assert isinstance(three, Published)
    assert (two.code, two.of_all, two.for_good) == ("ERR", False, False)
    assert len(server.entries()) == 2


@pytest.mark.parametrize("said", ["OOM command not allowed", "READONLY replica", "LOADING"])
def test_a_redis_in_trouble_is_not_the_messages_fault(said):
    with redis(refuse=lambda _: said) as server:
        (answer,) = publish(server.url, "a")

    assert (answer.code, answer.of_all) == (said.split(" ")[0], True)


def test_a_line_that_breaks_in_the_middle_leaves_the_rest_unpublished():
    with redis(hang_up_after=2) as server:
        answers = publish(server.url, "a", "b", "c", "d")

    assert [type(answer) for answer in answers] == [Published, Published, Refused, Refused]
    assert {answer.code for answer in answers[2:]} == {"UNREACHABLE"}


def test_a_wrong_password_is_refused_without_being_shown():
    with redis(password="right") as server:
        (answer,) = publish(server.url.replace("right", SECRET), "a")

    assert (answer.code, answer.of_all) == ("WRONGPASS", True)
    assert "CANARY" not in answer.why


def test_a_connection_that_was_ended_while_idle_is_made_again():
    with redis() as server:
        sink = open_sink(server.url, FakeClock(), "patra-tests/1")
        sink.publish(messages("a"))
        sink._socket.shutdown(socket.SHUT_RDWR)
        assert isinstance(sink.publish(messages("b"))[0], Published)
        assert isinstance(sink.publish(messages("c"))[0], Published)
        sink.close()

    assert server.connections == 2


@pytest.mark.parametrize(
    "to",
    [
        "kafka://host/topic",
        "jsonl:",
        "",
        "http://",
        "https://[::1",
        "redis://host:port/0?stream=x",
        "redis://host/zero?stream=x",
        "redis://host/0",
        "@/no/such/file",
    ],
)
def test_an_address_that_is_none_costs_one_sentence(to):
    with pytest.raises(PersonMustAct, match="Give "):
        open_sink(to, FakeClock(), "patra-tests/1")


def test_an_address_may_be_kept_in_a_file(tmp_path):
    (tmp_path / "address").write_text(f"redis://:{SECRET}@127.0.0.1:1/0?stream=x\n")

    sink = open_sink(f"@{tmp_path / 'address'}", FakeClock(), "patra-tests/1")

    assert sink.shown == "redis://127.0.0.1:1/0?stream=x"


@pytest.mark.parametrize(
    ("to", "secret"),
    [
        ("jsonl:out/changes.jsonl", False),
        ("https://host.example/hook?x=1", False),
        ("redis://host:6379/0?stream=changes", False),
        ("@/run/secrets/hook", False),
        ("https://me:pw@host.example/hook", True),
        ("https://host.example/hook?token=abc", True),
        ("redis://:pw@host/0?stream=changes", True),
        ("https://[::1", True),
    ],
)
def test_an_address_with_a_secret_is_recognized(to, secret):
    assert has_secret(to) is secret
